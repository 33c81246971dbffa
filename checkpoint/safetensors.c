#include "checkpoint/safetensors.h"

#include "base/file.h"
#include "base/file_kind.h"
#include "base/number.h"
#include "base/unfinished.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_value.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------------------------------- */

struct safetensors {
    char *path;
    int fd;
    uint64_t data; /* where it begins */
    struct safetensors_header *header;
};

static int read_at(const struct safetensors *s, void *out, size_t n, uint64_t offset, struct error *e)
{
    ssize_t got = file_read_at(s->fd, out, n, offset);

    if (got < 0)
        return error_system(e, "%s: cannot read", s->path);
    if ((size_t)got < n)
        return error_set(e, ERR_CORRUPT, "%s: ends at byte %llu (truncated after it was opened)", s->path,
                         (unsigned long long)offset + (unsigned long long)got);
    return OK;
}

static int read_header(struct safetensors *s, struct error *e)
{
    uint8_t head[SAFETENSORS_HEAD] = { 0 };
    uint64_t size;
    struct stat st;
    size_t length;
    char *json;
    int rc;

    if (fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(e, ERR_IO, "%s: not a regular file", s->path);
    size = (uint64_t)st.st_size;
    if ((rc = read_at(s, head, size < SAFETENSORS_HEAD ? 0 : SAFETENSORS_HEAD, 0, e)) != OK ||
        (rc = safetensors_header_length(s->path, head, size, &length, e)) != OK)
        return rc;
    if (!(json = malloc(length + 1)))
        return error_memory(e, s->path, "for its header");
    s->data = SAFETENSORS_HEAD + length;
    if ((rc = read_at(s, json, length, SAFETENSORS_HEAD, e)) == OK)
        rc = safetensors_header_parse(s->path, json, length, size - s->data, &s->header, e);
    free(json);
    return rc;
}

/* For a file of another kind the error names the kind, not what its first bytes would mean here. */
static int say_kind(const struct safetensors *s, int rc, struct error *e)
{
    enum file_kind kind = rc == ERR_CORRUPT ? file_kind_of(s->path) : FILE_KIND_UNKNOWN;

    if (kind == FILE_KIND_UNKNOWN || kind == FILE_KIND_EMPTY || kind == FILE_KIND_SAFETENSORS)
        return rc;
    return error_set(e, rc, "%s: not a safetensors file, but %s", s->path, file_kind_text(kind));
}

int safetensors_open(struct safetensors **out, const char *path, struct error *e)
{
    struct safetensors *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return error_memory(e, path, "to open it");
    }
    /* O_NONBLOCK so that opening a pipe does not wait for a writer. */
    if ((s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        rc = error_system(e, "%s: cannot open", path);
    else
        rc = say_kind(s, read_header(s, e), e);
    if (rc != OK)
        safetensors_close(s);
    else
        *out = s;
    return rc;
}

void safetensors_close(struct safetensors *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    safetensors_header_free(s->header);
    free(s->path);
    free(s);
}

const struct safetensors_header *safetensors_contents(const struct safetensors *s)
{
    return s->header;
}

int safetensors_read(const struct safetensors *s, const struct safetensors_tensor *tensor, uint64_t at, void *out,
                     size_t n, struct error *e)
{
    uint64_t size = tensor->end - tensor->begin;

    if (at > size || n > size - at)
        return error_set(e, ERR_ARG, "%s: tensor %s has no %zu bytes at its byte %llu", s->path, tensor->name, n,
                         (unsigned long long)at);
    return read_at(s, out, n, s->data + tensor->begin + at, e);
}

int safetensors_from_torch(const struct safetensors *s)
{
    const struct safetensors_header *h = s->header;

    for (size_t i = 0; i < h->pair_count; i++)
        if (!strcmp(h->pairs[i].key, "format") && !strcmp(h->pairs[i].value, "pt"))
            return 1;
    return 0;
}

int64_t safetensors_step(const struct safetensors *s, struct error *e)
{
    static const char *const keys[] = { "global_step", "step" };
    const struct safetensors_header *h = s->header;
    uint8_t bytes[8];
    int64_t step;

    for (size_t i = 0; i < h->count; i++) {
        const struct safetensors_tensor *tensor = &h->tensors[i];
        int type = safetensors_tensor_type(tensor->dtype);

        if (strcmp(tensor->name, keys[0]) != 0 || tensor->elements != 1 ||
            (type != TENSOR_INT64 && type != TENSOR_INT32))
            continue;
        if (safetensors_read(s, tensor, 0, bytes, tensor_type_size(type), e) != OK)
            return -1;
        if ((step = (int64_t)tensor_integer(type, bytes)) >= 0)
            return step;
    }
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t i = 0; i < h->pair_count; i++)
            if (strcmp(h->pairs[i].key, keys[k]) == 0 && number_parse_int(h->pairs[i].value, &step) && step >= 0)
                return step;
    return -1;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

struct safetensors_writer {
    const struct io *io;
    char path[PATH_MAX], temporary[PATH_MAX];
    struct unfinished *unfinished;
    int fd;
    uint64_t left; /* bytes of data that are still to come */
};

int safetensors_writer_open(struct safetensors_writer **out, const struct io *io, const char *path,
                            const struct safetensors_tensor *tensors, size_t count,
                            const struct safetensors_pair *pairs, size_t pair_count, struct error *e)
{
    struct safetensors_writer *w = calloc(1, sizeof *w);
    struct buffer head = BUFFER_EMPTY;
    int rc = OK;

    *out = NULL;
    if (!w)
        return error_memory(e, path, "to write it");
    w->io = io ? io : &io_real;
    w->left = count ? tensors[count - 1].end : 0;
    w->fd = -1;
    snprintf(w->path, sizeof w->path, "%s", path);
    if (snprintf(w->temporary, sizeof w->temporary, "%s.tmp%ld", path, (long)getpid()) >= (int)sizeof w->temporary) {
        free(w);
        return error_set(e, ERR_ARG, "%s: path too long", path);
    }
    safetensors_header_encode(&head, tensors, count, pairs, pair_count);
    if (!buffer_ok(&head))
        rc = error_memory(e, path, "for its header");
    else if (head.length - SAFETENSORS_HEAD > SAFETENSORS_HEADER_MAX)
        rc = error_set(e, ERR_ARG, "%s: a header of %zu bytes, over the format's limit", path, head.length);
    if (rc == OK) {
        w->unfinished = unfinished_begin(AT_FDCWD, w->temporary);
        unlink(w->temporary); /* left by a killed process with our process id */
        if ((w->fd = w->io->open(w->io->context, w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
            rc = error_system(e, "%s: cannot create", w->temporary);
        else if (io_write_full(w->io, w->fd, head.data, head.length) < 0)
            rc = error_system(e, "%s: cannot write", w->temporary);
    }
    buffer_release(&head);
    if (rc != OK)
        safetensors_writer_abandon(w);
    else
        *out = w;
    return rc;
}

int safetensors_writer_append(struct safetensors_writer *w, const void *bytes, size_t n, struct error *e)
{
    if (n > w->left)
        return error_set(e, ERR_ARG, "%s: more bytes than its header says", w->path);
    if (n && io_write_full(w->io, w->fd, bytes, n) < 0)
        return error_system(e, "%s: cannot write", w->temporary);
    w->left -= n;
    return OK;
}

int safetensors_writer_finish(struct safetensors_writer *w, struct error *e)
{
    int rc = OK, fd = w->fd;

    if (w->left)
        rc = error_set(e, ERR_ARG, "%s: %llu bytes of data are missing", w->path, (unsigned long long)w->left);
    else if (w->io->fsync(w->io->context, fd) < 0)
        rc = error_system(e, "%s: cannot sync", w->temporary);
    w->fd = -1;
    if (w->io->close(w->io->context, fd) < 0 && rc == OK)
        rc = error_system(e, "%s: cannot close", w->temporary);
    if (rc == OK && w->io->rename(w->io->context, w->temporary, w->path) < 0)
        rc = error_system(e, "%s: cannot rename to %s", w->temporary, w->path);
    if (rc == OK) {
        rc = file_sync_parent(w->io, w->path, e);
        unfinished_end(w->unfinished);
        free(w);
        return rc;
    }
    safetensors_writer_abandon(w);
    return rc;
}

void safetensors_writer_abandon(struct safetensors_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        w->io->close(w->io->context, w->fd);
    unlink(w->temporary);
    unfinished_end(w->unfinished);
    free(w);
}
