/* Any bytes as a record of pushes: what is accepted is in order, and is written again as it was read. */
#include "trainer/server/decisions/arrivals.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t header[ARRIVALS_HEADER_BYTES], push[ARRIVALS_PUSH_BYTES];
    struct arrivals a;

    if (arrivals_parse(&a, "record", data, size, NULL) != OK)
        return 0;
    arrivals_put_header(&a.header, header);
    if (memcmp(header, data, 40) != 0 || a.count > size / ARRIVALS_PUSH_BYTES || (int64_t)a.count < a.steps)
        abort();
    for (size_t i = 0; i < a.count; i++) {
        arrivals_put(&a.items[i], push);
        if (memcmp(push, data + sizeof header + i * sizeof push, sizeof push) != 0 ||
            a.items[i].worker >= (uint32_t)a.header.workers || (i > 0 && a.items[i].step < a.items[i - 1].step))
            abort();
    }
    arrivals_release(&a);
    return 0;
}
