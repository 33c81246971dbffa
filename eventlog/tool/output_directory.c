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
        return error_set(e, ERR_NOMEM, "%s: out of memory", path);
    return file_make_directories(d->path, e);
}

void output_directory_release(struct output_directory *d)
{
    free(d->path);
    d->path = NULL;
    tag_table_release(&d->used);
}

void output_directory_safe(struct buffer *name, const char *text, size_t n)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+@=-";

    for (size_t i = 0; i < n; i++)
        buffer_append_byte(name, text[i] && strchr(good, text[i]) ? text[i] : '_');
}

/* Room is left for a number and the extension; a stem that is cut may fall together with another, which the number
 * tells apart. */
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

int output_directory_name(struct output_directory *d, const char *stem, const char *extension, struct buffer *name,
                          struct error *e)
{
    char path[PATH_MAX];
    struct stat st;

    for (size_t number = 1;; number++) {
        numbered(name, stem, number, extension);
        if (!buffer_ok(name))
            return error_set(e, ERR_NOMEM, "%s: out of memory for a name in it", d->path);
        if (!tag_table_find(&d->used, buffer_text(name)))
            break;
    }
    if (tag_table_add(&d->used, buffer_text(name), "") < 0)
        return error_set(e, ERR_NOMEM, "%s: out of memory for the names in it", d->path);
    if (file_join(path, sizeof path, d->path, buffer_text(name), e) != OK)
        return ERR_ARG;
    if (!d->force && lstat(path, &st) == 0)
        return error_set(e, ERR_ARG, "%s: exists already; -f writes over it", path);
    return OK;
}

int output_directory_next(struct output_directory *d, const char *stem, const char *extension, struct output **out,
                          struct error *e)
{
    struct buffer name = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc = output_directory_name(d, stem, extension, &name, e);

    if (rc == OK)
        rc = file_join(path, sizeof path, d->path, buffer_text(&name), e);
    if (rc == OK)
        rc = output_open(out, path, d->force, e);
    buffer_release(&name);
    return rc;
}
