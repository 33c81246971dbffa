/* Any bytes as a record of pushes: what is accepted is in order, and is written again as it was read. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "trainer/server/arrivals.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t header[ARRIVALS_HEADER_BYTES], push[ARRIVALS_PUSH_BYTES];
    struct arrivals a;

    uint8_t *bytes = malloc(size + 1);

    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    if (size >= sizeof header) /* no fuzzer finds this by chance */
        put_le32(bytes + sizeof header - 4, crc32c(bytes, sizeof header - 4));
    if (arrivals_parse(&a, "record", bytes, size, NULL) != OK) {
        free(bytes);
        return 0;
    }
    arrivals_put_header(&a.header, header);
    if (memcmp(header, bytes, 128) != 0 || a.count > size / ARRIVALS_PUSH_BYTES || (int64_t)a.count < a.steps)
        abort();
    for (size_t i = 0; i < a.count; i++) {
        arrivals_put(&a.items[i], push);
        if (memcmp(push, bytes + sizeof header + i * sizeof push, sizeof push) != 0 ||
            a.items[i].worker >= (uint32_t)a.header.workers || (i > 0 && a.items[i].step < a.items[i - 1].step))
            abort();
    }
    arrivals_release(&a);
    free(bytes);
    return 0;
}
