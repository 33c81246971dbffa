#include "eventlog/tool/export/media_directory.h"

#include "base/file.h"
#include "base/io.h"
#include "eventlog/tool/directory_below.h"
#include "eventlog/tool/output_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
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
    tag_index_release(&d->runs);
    tag_index_release(&d->run_names);
}

void media_directory_run(struct media_directory *d)
{
    tag_index_release(&d->tags);
    tag_index_release(&d->tag_names);
    tag_index_release(&d->step_names);
}

/* Appends text, or text-2, text-3, ...: the first that `used` does not have with the same `before`. Returns its number
 * in `used`, TAG_INDEX_NONE if memory runs out. */
static size_t append_free(struct tag_index *used, struct buffer *out, const char *text)
{
    size_t from = out->length;

    for (unsigned long number = 1;; number++) {
        size_t count = used->count, at;

        buffer_append_text(out, text);
        if (number > 1)
            buffer_format(out, "-%lu", number);
        at = buffer_ok(out) ? tag_index_add(used, buffer_text(out), out->length) : TAG_INDEX_NONE;
        if (at == count || at == TAG_INDEX_NONE)
            return at;
        out->length = from;
    }
}

/* Appends the name of a run or tag, one of `all`, choosing a name in `used` when it first comes. */
static int append_part(struct tag_index *all, struct tag_index *used, struct buffer *out, const char *text, size_t n)
{
    struct buffer safe = BUFFER_EMPTY, chosen = BUFFER_EMPTY;
    size_t known = all->count, number = tag_index_add(all, text, n), name = TAG_INDEX_NONE;

    if (number < known) {
        name = all->entries[number].value;
    } else if (number == known) {
        output_directory_safe(&safe, text, n < PART_BYTES ? n : PART_BYTES);
        if (!safe.length)
            buffer_append_byte(&safe, '_');
        else if (safe.data[0] == '.')
            safe.data[0] = '_';
        if (buffer_ok(&safe))
            name = append_free(used, &chosen, buffer_text(&safe));
        all->entries[number].value = name;
    }
    if (name != TAG_INDEX_NONE)
        buffer_append_text(out, used->entries[name].text);
    buffer_release(&safe);
    buffer_release(&chosen);
    return name != TAG_INDEX_NONE;
}

int media_directory_value(struct media_directory *d, const char *run, const char *tag, size_t tag_length, int64_t step,
                          struct buffer *name, struct error *e)
{
    char text[24];
    int good;

    buffer_clear(name);
    good = append_part(&d->runs, &d->run_names, name, run, strlen(run));
    buffer_append_byte(name, '/');
    good = good && append_part(&d->tags, &d->tag_names, name, tag, tag_length);
    buffer_append_byte(name, '/');
    snprintf(text, sizeof text, "%lld", (long long)step);
    good = good && append_free(&d->step_names, name, text) != TAG_INDEX_NONE;
    return good && buffer_ok(name) ? OK : error_memory(e, d->path, "for the names in it");
}

int media_directory_write(struct media_directory *d, const char *name, const char *file, const void *bytes, size_t n,
                          struct error *e)
{
    char path[PATH_MAX];
    struct directory_below out;
    int rc = file_join(path, sizeof path, name, file, e);

    if (rc != OK || (rc = directory_below_open(&out, d->fd, d->path, path, d->force, 0666, e)) != OK)
        return rc;
    if (io_write_full(&io_real, out.fd, bytes, n) < 0)
        rc = error_system(e, "%s/%s: cannot write", d->path, path);
    return directory_below_close(&out, rc, e);
}
