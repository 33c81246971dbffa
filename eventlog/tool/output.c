#include "eventlog/tool/output.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/io.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "base/unfinished.h"
#include "eventlog/rewrite/log_replace.h"
#include "eventlog/tool/gzip_packing.h"

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

enum { BUFFER = 256 * 1024, ROOM = 4096 };

struct output {
    int fd, failed;
    int shielded;           /* a terminal, which must not get control characters in names */
    char *path, *temporary; /* NULL: bytes go to fd unchanged */
    int force, named;       /* named: the file has its temporary name; 0: it has none yet */
    struct unfinished *unfinished;
    struct gzip_packing *gzip;
    int keeps; /* bytes go to `kept` */
    struct buffer kept;
    struct error error;
    size_t used;
    char buffer[BUFFER + ROOM];
};

static void write_all(struct output *o, const void *bytes, size_t n)
{
    if (!o->failed && io_write_full(&io_real, o->fd, bytes, n) < 0) {
        o->failed = 1;
        error_system(&o->error, "%s: cannot write", o->path ? o->path : "standard output");
    }
}

static void write_shielded(struct output *o, const char *bytes, size_t n)
{
    struct buffer safe = BUFFER_EMPTY;

    for (size_t at = 0, next; at < n; at = next) {
        size_t end = at;

        while (end < n && bytes[end] != '\n' && bytes[end] != '\t')
            end++;
        next = end < n ? end + 1 : n;
        if (end > at && end < n && bytes[end] == '\n' && bytes[end - 1] == '\r')
            end--;
        text_append_safe(&safe, bytes + at, end - at);
        buffer_append(&safe, bytes + end, next - end);
    }
    write_all(o, buffer_text(&safe), safe.length);
    buffer_release(&safe);
}

static void write_packed(void *context, const void *bytes, size_t n)
{
    write_all(context, bytes, n);
}

static void send(struct output *o, const char *bytes, size_t n)
{
    if (o->keeps)
        buffer_append(&o->kept, bytes, n);
    else if (o->gzip)
        gzip_packing_add(o->gzip, bytes, n);
    else if (o->shielded)
        write_shielded(o, bytes, n);
    else
        write_all(o, bytes, n);
}

static void flush(struct output *o)
{
    send(o, o->buffer, o->used);
    o->used = 0;
}

/* What is left at the end. */
static void finish(struct output *o)
{
    struct error e = { 0 };

    flush(o);
    if (o->gzip && gzip_packing_finish(o->gzip, &e) != OK && !o->failed) {
        o->failed = 1;
        o->error = e;
    }
}

void output_gzip_level(struct output *o, int64_t level)
{
    if (o->gzip && level)
        gzip_packing_level(o->gzip, (int)level);
}

int output_path_is_packed(const char *path)
{
    return path && strlen(path) > 3 && !strcasecmp(path + strlen(path) - 3, ".gz");
}

void output_colours(struct output *o)
{
    o->shielded = 0;
}

char *output_room(struct output *o, size_t n)
{
    if (o->used + n > sizeof o->buffer)
        flush(o);
    return o->buffer + o->used;
}

void output_filled(struct output *o, size_t n)
{
    o->used += n;
    if (o->used >= BUFFER)
        flush(o);
}

void output_bytes(struct output *o, const void *bytes, size_t n)
{
    const char *p = bytes;

    while (n) {
        size_t piece = n < ROOM ? n : ROOM;

        bytes_copy(output_room(o, piece), p, piece);
        output_filled(o, piece);
        p += piece;
        n -= piece;
    }
}

void output_text(struct output *o, const char *text)
{
    output_bytes(o, text, strlen(text));
}

/* Opens a file without a name in the directory of the path, which disappears if the process is killed; -1 if that is
 * not supported. */
static int open_nameless(const char *path)
{
    size_t n = (size_t)(file_base_name(path) - path);
    char directory[PATH_MAX], here[32];
    int fd;

    snprintf(directory, sizeof directory, "%.*s", n ? (int)n : 1, n ? path : ".");
    fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    snprintf(here, sizeof here, "/proc/self/fd/%d", fd);
    if (fd >= 0 && access(here, F_OK) < 0) { /* no /proc: it could never get a name */
        close(fd);
        fd = -1;
    }
    return fd;
}

static int give_name(const struct output *o, const char *name)
{
    char here[32];

    snprintf(here, sizeof here, "/proc/self/fd/%d", o->fd);
    return linkat(AT_FDCWD, here, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static int refuse_existing(const char *path, struct error *e)
{
    return error_set(e, ERR_ARG, "%s: already exists; use -f to overwrite it", path);
}

static int open_file(struct output *o, const char *path, int force, struct error *e)
{
    char temporary[PATH_MAX];
    struct stat st;

    if (!(o->path = strdup(path)))
        return error_memory(e, path, "for it");
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a device or a pipe: nothing to rename */
        if ((o->fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
            return error_system(e, "%s: cannot open", path);
        return OK;
    }
    if (!force && output_exists(path))
        return refuse_existing(path, e);
    if (log_replace_temporary_name(temporary, sizeof temporary, path, e) != OK)
        return ERR_ARG;
    if (!(o->temporary = strdup(temporary)))
        return error_memory(e, path, "for it");
    o->force = force;
    o->unfinished = unfinished_begin(AT_FDCWD, temporary);
    unlink(temporary); /* left by a killed process with our process id */
    if ((o->fd = open_nameless(path)) >= 0)
        return OK;
    if ((o->fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0) {
        free(o->temporary);
        o->temporary = NULL;
        return error_system(e, "%s: cannot create a file beside it", path);
    }
    o->named = 1;
    return OK;
}

const char *output_temporary(struct output *o)
{
    if (o->temporary && !o->named)
        o->named = give_name(o, o->temporary) == 0;
    return o->named ? o->temporary : NULL;
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
        return error_memory(e, NULL, "for output");
    o->fd = 1;
    if (path && strcmp(path, "-") != 0)
        rc = open_file(o, path, force, e);
    if (rc == OK && output_path_is_packed(path))
        rc = gzip_packing_open(&o->gzip, OUTPUT_GZIP_LEVEL, write_packed, o, e);
    if (rc != OK) {
        output_close(o, 0, NULL);
        return rc;
    }
    o->shielded = o->fd == STDOUT_FILENO && !o->gzip && isatty(o->fd);
    *out = o;
    return OK;
}

int output_open_memory(struct output **out, struct error *e)
{
    if (!(*out = calloc(1, sizeof **out)))
        return error_memory(e, NULL, "for output");
    (*out)->keeps = 1;
    return OK;
}

void output_move(struct output *to, struct output *from)
{
    if (to->used)
        flush(to);
    if (!buffer_ok(&from->kept) && !to->failed) {
        to->failed = 1;
        error_memory(&to->error, to->path, "for output");
    }
    if (from->kept.length)
        send(to, from->kept.data, from->kept.length);
    if (from->used)
        send(to, from->buffer, from->used);
    buffer_clear(&from->kept);
    from->used = 0;
}

/* Gives the nameless file its final name, or the temporary one if the final name may belong to another file. */
static void name_file(struct output *o)
{
    if (give_name(o, o->force ? o->temporary : o->path) == 0) {
        o->named = o->force;
        return;
    }
    o->failed = 1;
    if (errno == EEXIST && !o->force)
        refuse_existing(o->path, &o->error);
    else
        error_system(&o->error, "%s: cannot give the new file its name", o->path);
}

int output_close(struct output *o, int commit, struct error *e)
{
    int rc;

    if (commit)
        finish(o);
    gzip_packing_close(o->gzip);
    if (o->temporary && commit && !o->failed && fsync(o->fd) < 0) {
        o->failed = 1;
        error_system(&o->error, "%s: cannot sync", o->path);
    }
    if (o->temporary && !o->named && commit && !o->failed)
        name_file(o);
    if (o->fd > 2 && close(o->fd) < 0 && !o->failed) {
        o->failed = 1;
        error_system(&o->error, "%s: cannot close", o->path);
    }
    if (o->named && commit && !o->failed && rename(o->temporary, o->path) < 0) {
        o->failed = 1;
        error_system(&o->error, "%s: cannot rename into place", o->path);
    }
    if (o->named && (!commit || o->failed))
        unlink(o->temporary);
    unfinished_end(o->unfinished);
    buffer_release(&o->kept);
    rc = commit && o->failed ? o->error.code : OK;
    if (rc != OK && e)
        *e = o->error;
    free(o->temporary);
    free(o->path);
    free(o);
    return rc;
}
