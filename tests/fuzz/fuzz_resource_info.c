/* Any bytes as a list of hosts: what is taken has hosts and counts within bounds, no name twice, and written down it reads
 * back as the same. */
#include "trainer/launch/resource_info.h"

#include "base/buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct resource_info r, back;
    struct buffer text = BUFFER_EMPTY;
    struct error e = { 0 };

    if (resource_info_parse(&r, (const char *)data, size, "hosts", &e) != OK) {
        must(!strncmp(e.message, "hosts:", 6) && !r.hosts);
        return 0;
    }
    must(r.count > 0 && r.count <= RESOURCE_HOSTS_MOST);
    for (size_t i = 0; i < r.count; i++) {
        const struct resource_host *h = &r.hosts[i];

        must(h->devices > 0 && h->devices <= RESOURCE_DEVICES_MOST && h->name[0] && h->name[0] != '-');
        must(!strpbrk(h->name, " ,:#@/\t\r\n'\"$"));
        for (size_t k = 0; k < i && i < 100; k++)
            must(strcasecmp(h->name, r.hosts[k].name) != 0);
        buffer_format(&text, "%s:0-%d\n", h->name, h->devices - 1);
    }
    must(resource_info_parse(&back, buffer_text(&text), text.length, "hosts", &e) == OK && back.count == r.count);
    must(!memcmp(back.hosts, r.hosts, r.count * sizeof *r.hosts));
    resource_info_release(&back);
    resource_info_release(&r);
    buffer_release(&text);
    return 0;
}
