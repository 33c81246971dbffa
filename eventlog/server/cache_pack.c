#include "eventlog/server/cache_pack.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/record_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING ".pack"

enum { CACHE_PACK_VERSION = 2, HEAD = 16 };

static const char pack_magic[8] = { 'E', 'V', 'L', 'O', 'G', 'P', 'A', 'K' };

static void put_head(uint8_t head[HEAD], int merge)
{
    memcpy(head, pack_magic, sizeof pack_magic);
    put_le32(head + 8, CACHE_PACK_VERSION);
    put_le32(head + 12, merge != 0);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

int cache_pack_index(struct cache_pack *p, struct shared_bytes *all, int merge, struct error *e)
{
    const uint8_t *bytes = all->bytes;
    const size_t size = all->size;
    uint8_t head[HEAD];
    size_t at = HEAD, capacity = 0;
    uint64_t length;

    *p = (struct cache_pack){ .bytes = shared_bytes_keep(all), .points = saved_points_of_bytes(all) };
    if (!p->points)
        return error_memory(e, NULL, "for saved runs");
    put_head(head, merge);
    if (size < HEAD || memcmp(bytes, head, HEAD) != 0)
        return error_set(e, ERR_CORRUPT, "no saved runs");
    while (size - at >= RECORD_HEADER && record_header_right(bytes + at, &length) &&
           length <= size - at - RECORD_HEADER) {
        if (!ARRAY_ROOM(p->runs, capacity, p->count + 1))
            return error_memory(e, NULL, "for saved runs");
        p->runs[p->count++] = at + RECORD_HEADER;
        at += RECORD_HEADER + (size_t)length;
    }
    return OK;
}

int cache_pack_read(const struct cache_files *c, struct cache_pack *p, const char *log, int merge, struct error *e)
{
    struct shared_bytes *all = NULL;
    uint64_t size;
    int fd = cache_file_open(c, log, "", merge, ENDING, &size, e), rc = ERR_IO;

    *p = (struct cache_pack){ .bytes = NULL };
    if (fd < 0)
        return ERR_IO;
    if (!size || size > 2 * (uint64_t)CACHE_PACK_MOST)
        rc = error_set(e, ERR_CORRUPT, "no saved runs");
    else if (!(all = shared_bytes_new((size_t)size)))
        rc = error_memory(e, NULL, "for saved runs");
    else if (!cache_file_read(fd, all->bytes, all->size))
        rc = error_system(e, "saved runs cannot be read");
    else if ((rc = cache_pack_index(p, all, merge, e)) == OK)
        futimens(fd, NULL); /* used now */
    close(fd);
    shared_bytes_drop(all);
    if (rc != OK)
        cache_pack_release(p);
    return rc;
}

void cache_pack_release(struct cache_pack *p)
{
    shared_bytes_drop(p->bytes);
    saved_points_drop(p->points);
    free(p->runs);
    *p = (struct cache_pack){ .bytes = NULL };
}

int cache_pack_run(const struct cache_pack *p, size_t i, int merge, struct run_cache *out, struct error *e)
{
    const uint8_t *bytes = p->bytes->bytes + p->runs[i];

    return run_cache_read(out, NULL, merge, bytes, (size_t)get_le64(bytes - RECORD_HEADER), NULL, e);
}

int cache_pack_preview(const struct cache_pack *p, size_t i, int merge, struct run_cache *out, struct error *e)
{
    const uint8_t *bytes = p->bytes->bytes + p->runs[i];
    const struct run_cache_place place = { p->points, p->runs[i], get_le64(bytes - RECORD_HEADER) };
    const uint64_t index = place.size >= RUN_CACHE_END
                               ? run_cache_index_size(bytes + place.size - RUN_CACHE_END, place.size)
                               : 0;

    *out = (struct run_cache){ .run = NULL };
    if (!index)
        return error_set(e, ERR_CORRUPT, "no saved run");
    return run_cache_preview(out, NULL, merge, bytes + place.size - index, (size_t)index, &place, e);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

int cache_pack_begin(struct cache_pack_writing *w, struct cache_files *c, const char *log, int merge, struct error *e)
{
    uint8_t head[HEAD];
    int rc = cache_file_begin(&w->file, c, log, "", merge, ENDING, e);

    w->run = (struct buffer)BUFFER_EMPTY;
    w->merge = merge;
    w->rc = OK;
    put_head(head, merge);
    if (rc > 0 && cache_file_write(&w->file, head, sizeof head) != 0)
        w->rc = ERR_IO;
    return rc;
}

static int pack_keep(void *context, const void *bytes, size_t n)
{
    struct cache_pack_writing *w = context;

    if (w->run.length + n > RECORD_HEADER + CACHE_PACK_RUN_MOST)
        return -1;
    buffer_append(&w->run, bytes, n);
    return buffer_ok(&w->run) ? 0 : -1;
}

int cache_pack_add(struct cache_pack_writing *w, struct run_data *run, const struct run_cache_file *files, size_t count)
{
    uint8_t header[RECORD_HEADER] = { 0 };

    if (w->rc != OK)
        return 1;
    buffer_clear(&w->run);
    buffer_append(&w->run, header, sizeof header);
    if (run_cache_write(run, files, count, pack_keep, w, NULL) != OK || w->file.bytes + w->run.length > CACHE_PACK_MOST)
        return 0;
    put_le64(w->run.data, w->run.length - RECORD_HEADER);
    put_le32(w->run.data + 8, crc32c_mask(crc32c(w->run.data, 8)));
    if (cache_file_write(&w->file, w->run.data, w->run.length) != 0)
        w->rc = ERR_IO;
    return 1;
}

int cache_pack_end(struct cache_pack_writing *w, struct error *e)
{
    buffer_release(&w->run);
    return cache_file_end(&w->file, w->rc, e);
}
