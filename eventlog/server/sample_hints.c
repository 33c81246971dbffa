#include "eventlog/server/sample_hints.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* An unsigned decimal number, perhaps with a '+', or "all". 1, or 0: neither, or too large. */
static int read_most(const char *p, const char *end, uint64_t *out)
{
    if (end - p == 3 && !memcmp(p, "all", 3)) {
        *out = UINT64_MAX;
        return 1;
    }
    p += p < end && *p == '+';
    *out = 0;
    for (const char *from = p; p < end; p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        if (*p < '0' || *p > '9' || *out > (UINT64_MAX - digit) / 10)
            return 0;
        *out = *out * 10 + digit;
        if (p - from > 100)
            return 0;
    }
    return p[-1] >= '0' && p[-1] <= '9';
}

static int add_hint(struct sample_hints *h, const char *part, const char *end, struct error *e)
{
    const char *equals = memchr(part, '=', (size_t)(end - part));
    struct sample_hint hint;

    if (!equals || equals == part || memchr(equals + 1, '=', (size_t)(end - equals - 1)) || equals + 1 == end ||
        !read_most(equals + 1, end, &hint.most))
        return error_set(e, ERR_ARG, "--samples-per-plugin: '%.*s' is not PLUGIN=N or PLUGIN=all", (int)(end - part),
                         part);
    if (!ARRAY_ROOM(h->items, h->capacity, h->count + 1))
        return error_memory(e, NULL, "for --samples-per-plugin");
    hint.plugin = part;
    hint.length = (size_t)(equals - part);
    h->items[h->count++] = hint;
    return OK;
}

int sample_hints_read(struct sample_hints *h, const char *text, struct error *e)
{
    int rc = OK;

    memset(h, 0, sizeof *h);
    for (const char *part = text; *text && part && rc == OK;) {
        const char *comma = strchr(part, ',');

        rc = add_hint(h, part, comma ? comma : part + strlen(part), e);
        part = comma ? comma + 1 : NULL;
    }
    if (rc != OK)
        sample_hints_release(h);
    return rc;
}

void sample_hints_release(struct sample_hints *h)
{
    free(h->items);
    memset(h, 0, sizeof *h);
}

uint64_t sample_hints_most(const struct sample_hints *h, const char *plugin, size_t n)
{
    for (size_t i = h->count; i-- > 0;)
        if (h->items[i].length == n && !memcmp(h->items[i].plugin, plugin, n))
            return h->items[i].most;
    return UINT64_MAX;
}
