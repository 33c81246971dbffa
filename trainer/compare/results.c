#include "trainer/compare/results.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MOST = 256 << 20 }; /* bytes */

/* 1: there is nothing in it, or no such directory. */
static int is_empty(const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *item;
    int found = 0;

    while (d && !found && (item = readdir(d)))
        found = strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0;
    if (d)
        closedir(d);
    return !found;
}

static int take_line(struct results *r, const char *line, size_t n, size_t number, struct error *e)
{
    char training[RESULTS_TRAINING];
    int rc;

    if (!ARRAY_ROOM(r->items, r->capacity, r->count + 1))
        return error_memory(e, NULL, "for the results");
    if ((rc = outcome_read(&r->items[r->count], training, sizeof training, line, n, e)) < 0) {
        error_prefix(e, "%s:%zu", r->path, number);
        return rc;
    }
    r->count++;
    snprintf(r->training, sizeof r->training, "%s", training);
    return OK;
}

int results_open(struct results *r, const char *directory, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    size_t at = 0, number = 1;
    int rc;

    memset(r, 0, sizeof *r);
    if ((rc = file_join(r->path, sizeof r->path, directory, RESULTS_FILE, e)) < 0)
        return rc;
    if (access(r->path, F_OK) < 0 && errno == ENOENT)
        return is_empty(directory)
                   ? OK
                   : error_set(e, ERR_ARG, "%s has files, but no " RESULTS_FILE " of a comparison; use a new directory",
                               directory);
    if ((rc = file_read_plain(r->path, FILE_MOST, &text, e)) < 0)
        return rc;
    while (at < text.length && rc == OK) {
        const char *line = buffer_text(&text) + at, *end = memchr(line, '\n', text.length - at);

        if (!end) {
            if (truncate(r->path, (off_t)at) < 0)
                rc = error_system(e, "%s: remove an incomplete line", r->path);
            break;
        }
        rc = take_line(r, line, (size_t)(end - line), number++, e);
        at += (size_t)(end - line) + 1;
    }
    buffer_release(&text);
    return rc;
}

void results_release(struct results *r)
{
    for (size_t i = 0; i < r->count; i++)
        outcome_release(&r->items[i]);
    free(r->items);
    r->items = NULL;
    r->count = r->capacity = 0;
}

static int append(const char *path, const struct buffer *text, struct error *e)
{
    struct stat st;
    int rc = OK, fd;

    if (!buffer_ok(text))
        return error_memory(e, path, "for a line");
    if ((rc = file_open_plain(NULL, path, O_WRONLY | O_CREAT, &fd, e)) < 0)
        return rc;
    if (fstat(fd, &st) < 0 || file_write_at(fd, text->data, text->length, (uint64_t)st.st_size) < 0 || fsync(fd) < 0)
        rc = error_system(e, "write %s", path);
    close(fd);
    return rc;
}

int results_begin(const struct results *r, const char *directory, struct error *e)
{
    const struct buffer nothing = BUFFER_EMPTY;
    const int rc = file_make_directories(directory, e);

    return rc < 0 ? rc : append(r->path, &nothing, e);
}

int results_add(struct results *r, struct outcome *o, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc;

    if (!ARRAY_ROOM(r->items, r->capacity, r->count + 1))
        return error_memory(e, NULL, "for the results");
    outcome_write(o, r->training, &text);
    if ((rc = append(r->path, &text, e)) == OK) {
        r->items[r->count++] = *o;
        memset(o, 0, sizeof *o);
    }
    buffer_release(&text);
    return rc;
}

int results_has(const struct results *r, const char *cell, int64_t round)
{
    int has = 0;

    for (size_t i = 0; i < r->count; i++)
        if (r->items[i].round == round && !strcmp(r->items[i].cell, cell))
            has = r->items[i].status == 0;
    return has;
}
