#include "eventlog/tool/output.h"

#include "base/io.h"
#include "base/terminal.h"
#include "eventlog/log_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER = 256 * 1024, ROOM = 4096 };

struct output {
    int fd, failed;
    char *path, *temporary; /* NULL: bytes go to fd as they come */
    z_stream *gzip;
    struct error error;
    size_t used;
    char buffer[BUFFER + ROOM], packed[BUFFER];
};

static void write_all(struct output *o, const void *bytes, size_t n)
{
    if (!o->failed && io_write_full(&io_real, o->fd, bytes, n) < 0) {
        o->failed = 1;
        error_system(&o->error, "%s: cannot write", o->path ? o->path : "standard output");
    }
}

static void flush(struct output *o, int finish)
{
    if (!o->gzip) {
        write_all(o, o->buffer, o->used);
    } else {
        o->gzip->next_in = (Bytef *)o->buffer;
        o->gzip->avail_in = (uInt)o->used;
        do {
            o->gzip->next_out = (Bytef *)o->packed;
            o->gzip->avail_out = sizeof o->packed;
            deflate(o->gzip, finish ? Z_FINISH : Z_NO_FLUSH);
            write_all(o, o->packed, sizeof o->packed - o->gzip->avail_out);
        } while (o->gzip->avail_out == 0);
    }
    o->used = 0;
}

char *output_room(struct output *o, size_t n)
{
    if (o->used + n > sizeof o->buffer)
        flush(o, 0);
    return o->buffer + o->used;
}

void output_filled(struct output *o, size_t n)
{
    o->used += n;
    if (o->used >= BUFFER)
        flush(o, 0);
}

void output_bytes(struct output *o, const void *bytes, size_t n)
{
    const char *p = bytes;

    while (n) {
        size_t piece = n < ROOM ? n : ROOM;

        memcpy(output_room(o, piece), p, piece);
        output_filled(o, piece);
        p += piece;
        n -= piece;
    }
}

void output_text(struct output *o, const char *text)
{
    output_bytes(o, text, strlen(text));
}

static int open_file(struct output *o, const char *path, int force, struct error *e)
{
    char temporary[PATH_MAX];
    struct stat st;

    if (!(o->path = strdup(path)))
        return error_set(e, ERR_NOMEM, "%s: out of memory", path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a device or a pipe: nothing to rename */
        if ((o->fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
            return error_system(e, "%s: cannot open", path);
        return OK;
    }
    if (!force && output_exists(path))
        return error_set(e, ERR_ARG, "%s: already exists; use -f to overwrite it", path);
    if (log_replace_temporary_name(temporary, sizeof temporary, path, e) != OK)
        return ERR_ARG;
    if (!(o->temporary = strdup(temporary)))
        return error_set(e, ERR_NOMEM, "%s: out of memory", path);
    unlink(temporary); /* of a killed process with our number */
    if ((o->fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0) {
        free(o->temporary);
        o->temporary = NULL;
        return error_system(e, "%s: cannot create a file beside it", path);
    }
    return OK;
}

const char *output_temporary(const struct output *o)
{
    return o->temporary;
}

int output_columns(const struct output *o)
{
    return o->fd == STDOUT_FILENO && isatty(o->fd) ? terminal_columns(o->fd) : 0;
}

int output_is_file(const struct output *o)
{
    return o->path != NULL;
}

int output_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

int output_open(struct output **out, const char *path, int force, struct error *e)
{
    struct output *o = calloc(1, sizeof *o);
    int rc = OK;

    *out = NULL;
    if (!o)
        return error_set(e, ERR_NOMEM, "out of memory for output");
    o->fd = 1;
    if (path && strcmp(path, "-") != 0)
        rc = open_file(o, path, force, e);
    if (rc == OK && path && strlen(path) > 3 && !strcasecmp(path + strlen(path) - 3, ".gz")) {
        /* Window bits 31: a gzip header without a name and with time 0, so equal input gives equal bytes. */
        o->gzip = calloc(1, sizeof *o->gzip);
        if (!o->gzip || deflateInit2(o->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
            free(o->gzip);
            o->gzip = NULL;
            rc = error_set(e, ERR_NOMEM, "%s: out of memory for compression", path);
        }
    }
    if (rc != OK) {
        output_close(o, 0, NULL);
        return rc;
    }
    *out = o;
    return OK;
}

int output_close(struct output *o, int commit, struct error *e)
{
    int rc;

    if (commit)
        flush(o, 1);
    if (o->gzip)
        deflateEnd(o->gzip);
    free(o->gzip);
    if (o->temporary && commit && !o->failed && fsync(o->fd) < 0) {
        o->failed = 1;
        error_system(&o->error, "%s: cannot sync", o->path);
    }
    if (o->fd > 2 && close(o->fd) < 0 && !o->failed) {
        o->failed = 1;
        error_system(&o->error, "%s: cannot close", o->path);
    }
    if (o->temporary && commit && !o->failed && rename(o->temporary, o->path) < 0) {
        o->failed = 1;
        error_system(&o->error, "%s: cannot rename into place", o->path);
    }
    if (o->temporary && (!commit || o->failed))
        unlink(o->temporary);
    rc = commit && o->failed ? o->error.code : OK;
    if (rc != OK && e)
        *e = o->error;
    free(o->temporary);
    free(o->path);
    free(o);
    return rc;
}
