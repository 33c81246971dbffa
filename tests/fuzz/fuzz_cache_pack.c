/* Any bytes as a file of small saved runs, as they are and with the checksum of the first run's index made right: each run
 * is shown by its index and read, or left out. */
#include "eventlog/server/cache_pack.h"

#include "base/bytes.h"
#include "base/record_frame.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_pack(const uint8_t *bytes, size_t size)
{
    struct shared_bytes *all = shared_bytes_new(size + !size);
    struct cache_pack p;
    struct run_cache c;

    if (!all)
        abort();
    bytes_copy(all->bytes, bytes, size);
    all->size = size;
    if (cache_pack_index(&p, all, 1, NULL) == OK)
        for (size_t i = 0; i < p.count; i++) {
            if (cache_pack_preview(&p, i, 1, &c, NULL) == OK)
                for (size_t k = 0; c.view && k < c.view->count; k++)
                    series_view_fill(c.view->series[k]);
            run_cache_release(&c);
            if (cache_pack_run(&p, i, 1, &c, NULL) == OK)
                run_cache_release(&c);
        }
    cache_pack_release(&p);
    shared_bytes_drop(all);
}

/* Of the first run: its length reaches to the end. */
static void make_right(uint8_t *bytes, size_t size)
{
    uint8_t *run = bytes + HEAD + RECORD_HEADER;
    size_t n = size - HEAD - RECORD_HEADER, index;

    memcpy(bytes, "EVLOGPAK\2\0\0\0\1\0\0\0", HEAD);
    put_le64(bytes + HEAD, n);
    put_le32(bytes + HEAD + 8, crc32c_mask(crc32c(bytes + HEAD, 8)));
    if (n < RUN_CACHE_END)
        return;
    if (!(index = (size_t)run_cache_index_size(run + n - RUN_CACHE_END, n)))
        put_le64(run + n - RUN_CACHE_END, (index = n) - RUN_CACHE_END);
    put_le32(run + n - 4, crc32c(run + n - index, index - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = calloc(1, size + !size);

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
