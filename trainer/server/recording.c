#include "trainer/server/recording.h"

#include "base/crc32c.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BATCH = 64 }; /* pushes that are written at once */

struct recording {
    const struct io *io;
    char *path, *part;
    int fd; /* -1: closed */
    uint32_t crc, count;
    struct error error; /* the first */
};

static void recording_write(struct recording *r, const void *bytes, size_t n)
{
    if (r->error.code < 0)
        return;
    if (io_write_full(r->io, r->fd, bytes, n) < 0)
        error_set(&r->error, ERR_IO, "--record: cannot write %s: %s; it ends after %u gradients", r->part,
                  strerror(errno), (unsigned)r->count);
    r->crc = crc32c_extend(r->crc, bytes, n);
}

int recording_open(struct recording **out, const struct io *io, const char *path, const struct arrivals_header *h,
                   struct error *e)
{
    uint8_t header[ARRIVALS_HEADER_BYTES];
    struct recording *r = calloc(1, sizeof *r);
    const size_t room = strlen(path) + sizeof RECORDING_PART;
    struct stat st;

    if (r) {
        r->io = io ? io : &io_real;
        r->fd = -1;
        r->path = strdup(path);
        r->part = malloc(room);
    }
    if (!r || !r->path || !r->part) {
        recording_free(r);
        return error_memory(e, NULL, "for the record of --record");
    }
    snprintf(r->part, room, "%s%s", path, RECORDING_PART);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        error_set(&r->error, ERR_ARG, "--record %s: is a directory; name a file", path);
    else if (file_open_plain(r->io, r->part, O_WRONLY | O_CREAT | O_TRUNC, &r->fd, &r->error) < 0)
        error_prefix(&r->error, "--record");
    arrivals_put_header(h, header);
    recording_write(r, header, sizeof header);
    if (r->error.code < 0) {
        const int rc = error_copy(e, &r->error);

        recording_free(r);
        return rc;
    }
    *out = r;
    return OK;
}

void recording_add(struct recording *r, const struct arrival *pushes, size_t count)
{
    uint8_t bytes[BATCH * ARRIVALS_PUSH_BYTES];

    while (count > 0) {
        const size_t n = count < BATCH ? count : BATCH;

        for (size_t i = 0; i < n; i++)
            arrivals_put(&pushes[i], bytes + i * ARRIVALS_PUSH_BYTES);
        recording_write(r, bytes, n * ARRIVALS_PUSH_BYTES);
        if (r->error.code == OK)
            r->count += (uint32_t)n;
        pushes += n;
        count -= n;
    }
}

int recording_close(struct recording *r, struct error *e)
{
    uint8_t end[ARRIVALS_PUSH_BYTES];

    arrivals_put_end(r->count, r->crc, end);
    recording_write(r, end, sizeof end);
    if (r->error.code == OK && r->io->fsync(r->io->context, r->fd) < 0)
        error_set(&r->error, ERR_IO, "--record: cannot sync %s: %s", r->part, strerror(errno));
    r->io->close(r->io->context, r->fd);
    r->fd = -1;
    if (r->error.code == OK && r->io->rename(r->io->context, r->part, r->path) < 0)
        error_set(&r->error, ERR_IO, "--record: cannot rename %s to %s: %s", r->part, r->path, strerror(errno));
    if (r->error.code == OK)
        file_sync_parent(r->io, r->path, &r->error);
    return r->error.code < 0 ? error_copy(e, &r->error) : OK;
}

void recording_free(struct recording *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        r->io->close(r->io->context, r->fd);
    free(r->path);
    free(r->part);
    free(r);
}
