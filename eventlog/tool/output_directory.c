#include "eventlog/tool/output_directory.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES = 255 }; /* what file systems take */

int output_directory_is(const char *path)
{
    size_t n = strlen(path);
    struct stat st;

    return n && (path[n - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)));
}

int output_directory_open(struct output_directory *d, const char *path, int force, struct error *e)
{
    size_t n = strlen(path);

    memset(d, 0, sizeof *d);
    d->force = force;
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (!(d->path = strndup(path, n)))
        return error_memory(e, path, "for it");
    return file_make_directories(d->path, e);
}

void output_directory_release(struct output_directory *d)
{
    free(d->path);
    d->path = NULL;
    tag_index_release(&d->used);
}

void output_directory_safe(struct buffer *name, const char *text, size_t n)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+@=-";

    for (size_t i = 0; i < n; i++)
        buffer_append_byte(name, text[i] && strchr(good, text[i]) ? text[i] : '_');
}

/* Room is left for a number and the extension; stems that become equal when cut are told apart by the number. */
static void numbered(struct buffer *name, const char *stem, size_t number, const char *extension)
{
    char suffix[64] = "";
    size_t n = number > 1 ? (size_t)snprintf(suffix, sizeof suffix, "-%zu", number) : 0;
    size_t room = NAME_BYTES - n - strlen(extension), length = strlen(stem);

    buffer_clear(name);
    buffer_append(name, stem, length < room ? length : room);
    buffer_append_text(name, suffix);
    buffer_append_text(name, extension);
}

int output_directory_next(struct output_directory *d, const char *stem, const char *extension, struct output **out,
                          struct error *e)
{
    struct buffer name = BUFFER_EMPTY;
    size_t known, number = 1, at;
    char path[PATH_MAX];
    int rc;

    do {
        known = d->used.count;
        numbered(&name, stem, number++, extension);
        at = buffer_ok(&name) ? tag_index_add(&d->used, buffer_text(&name), name.length) : TAG_INDEX_NONE;
    } while (at < known);
    rc = at == TAG_INDEX_NONE ? error_memory(e, d->path, "for the names in it")
                              : file_join(path, sizeof path, d->path, buffer_text(&name), e);
    if (rc == OK)
        rc = output_open(out, path, d->force, e);
    buffer_release(&name);
    return rc;
}
