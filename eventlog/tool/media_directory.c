#include "eventlog/tool/media_directory.h"

#include "base/file.h"
#include "base/io.h"
#include "eventlog/tool/directory_below.h"
#include "eventlog/tool/output_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PART_BYTES = 200 };

int media_directory_open(struct media_directory *d, const char *path, int force, struct error *e)
{
    int rc;

    memset(d, 0, sizeof *d);
    d->path = path;
    d->force = force;
    d->fd = -1;
    if ((rc = file_make_directories(path, e)) != OK)
        return rc;
    if ((d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return error_system(e, "%s: cannot open the directory", path);
    return OK;
}

void media_directory_release(struct media_directory *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
    media_directory_run(d);
    tag_table_release(&d->runs);
    tag_table_release(&d->run_names);
}

void media_directory_run(struct media_directory *d)
{
    tag_table_release(&d->tags);
    tag_table_release(&d->tag_names);
    tag_table_release(&d->steps);
}

/* Appends text, or text-2, text-3, ... : the first that `used` does not have with the same `before`. */
static int append_free(struct tag_table *used, struct buffer *out, const char *text)
{
    size_t from = out->length;

    for (unsigned long number = 1;; number++) {
        buffer_append_text(out, text);
        if (number > 1)
            buffer_format(out, "-%lu", number);
        if (!buffer_ok(out))
            return 0;
        if (!tag_table_find(used, buffer_text(out)))
            return tag_table_add(used, buffer_text(out), "") == 0;
        out->length = from;
    }
}

/* Appends what a run or tag is called in `names`, choosing a name in `used` the first time it comes. */
static int append_part(struct tag_table *names, struct tag_table *used, struct buffer *out, const char *text, size_t n)
{
    struct buffer key = BUFFER_EMPTY, safe = BUFFER_EMPTY, chosen = BUFFER_EMPTY;
    const char *known;
    int good = 1;

    /* A table's names end at a NUL, so one in a tag is told apart by an escape. */
    for (size_t i = 0; i < n; i++) {
        buffer_append_byte(&key, text[i] ? text[i] : 1);
        if (!text[i] || text[i] == 1)
            buffer_append_byte(&key, text[i] ? 'b' : 'a');
    }
    if (!(known = tag_table_find(names, buffer_text(&key)))) {
        output_directory_safe(&safe, text, n < PART_BYTES ? n : PART_BYTES);
        if (!safe.length)
            buffer_append_byte(&safe, '_');
        else if (safe.data[0] == '.')
            safe.data[0] = '_';
        good = buffer_ok(&key) && buffer_ok(&safe) && append_free(used, &chosen, buffer_text(&safe)) &&
               tag_table_add(names, buffer_text(&key), buffer_text(&chosen)) == 0;
        known = buffer_text(&chosen);
    }
    if (good)
        buffer_append_text(out, known);
    buffer_release(&key);
    buffer_release(&safe);
    buffer_release(&chosen);
    return good;
}

int media_directory_value(struct media_directory *d, const char *run, const char *tag, size_t tag_length, int64_t step,
                          struct buffer *name, struct error *e)
{
    char text[24];
    int good;

    buffer_clear(name);
    good = append_part(&d->run_names, &d->runs, name, run, strlen(run));
    buffer_append_byte(name, '/');
    good = good && append_part(&d->tag_names, &d->tags, name, tag, tag_length);
    buffer_append_byte(name, '/');
    snprintf(text, sizeof text, "%lld", (long long)step);
    good = good && append_free(&d->steps, name, text);
    return good && buffer_ok(name) ? OK : error_set(e, ERR_NOMEM, "%s: out of memory for the names in it", d->path);
}

int media_directory_write(struct media_directory *d, const char *name, const char *file, const void *bytes, size_t n,
                          struct error *e)
{
    char path[PATH_MAX], temporary[64];
    const char *base;
    struct stat st;
    int fd, out = -1, rc = file_join(path, sizeof path, name, file, e);

    if (rc != OK)
        return rc;
    if ((fd = directory_below_open(d->fd, d->path, path, &base, e)) < 0)
        return fd;
    snprintf(temporary, sizeof temporary, ".eventlog.%ld.tmp", (long)getpid());
    unlinkat(fd, temporary, 0); /* of a killed process with our number */
    if (!d->force && fstatat(fd, base, &st, AT_SYMLINK_NOFOLLOW) == 0)
        rc = error_set(e, ERR_ARG, "%s/%s: exists already; -f writes over it", d->path, path);
    else if ((out = openat(fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)) < 0 ||
             io_write_full(&io_real, out, bytes, n) < 0)
        rc = error_system(e, "%s/%s: cannot write", d->path, path);
    if (out >= 0 && close(out) < 0 && rc == OK)
        rc = error_system(e, "%s/%s: cannot close", d->path, path);
    if (rc == OK && renameat(fd, temporary, fd, base) < 0)
        rc = error_system(e, "%s/%s: cannot rename into place", d->path, path);
    if (out >= 0 && rc != OK)
        unlinkat(fd, temporary, 0);
    close(fd);
    return rc;
}
