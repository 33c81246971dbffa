/* Any bytes as a file of small saved runs, as they are and with the checksum of the first run made right: each run is read,
 * or left out. */
#include "eventlog/server/cache_pack.h"

#include "base/bytes.h"
#include "base/record_frame.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_pack(uint8_t *bytes, size_t size)
{
    struct cache_pack p;
    struct run_cache c;

    if (cache_pack_index(&p, bytes, size, 1, NULL) == OK)
        for (size_t i = 0; i < p.count; i++)
            if (cache_pack_run(&p, i, 1, &c, NULL) == OK)
                run_cache_release(&c);
    p.bytes = NULL;
    cache_pack_release(&p);
}

/* Of the first run: its length reaches to the end. */
static void make_right(uint8_t *bytes, size_t size)
{
    uint8_t *run = bytes + HEAD + RECORD_HEADER;
    size_t n = size - HEAD - RECORD_HEADER;

    memcpy(bytes, "EVLOGPAK\1\0\0\0\1\0\0\0", HEAD);
    put_le64(bytes + HEAD, n);
    put_le32(bytes + HEAD + 8, crc32c_mask(crc32c(bytes + HEAD, 8)));
    if (n < 12)
        return;
    put_le64(run + n - 12, n - 12);
    put_le32(run + n - 4, crc32c(run, n - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + !size);

    if (!copy)
        return 0;
    bytes_copy(copy, data, size);
    try_pack(copy, size);
    if (size >= HEAD + RECORD_HEADER) {
        make_right(copy, size);
        try_pack(copy, size);
    }
    free(copy);
    return 0;
}
