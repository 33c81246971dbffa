#include "evaluator/files/content_digest.h"

#include "base/array.h"
#include "base/crc32c.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- file stamp -------------------------------------------------------------------------------------------------- */

uint64_t file_stamp_mix(uint64_t h, uint64_t x)
{
    h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

static uint64_t mix_time(uint64_t h, const struct timespec *t)
{
    return file_stamp_mix(file_stamp_mix(h, (uint64_t)t->tv_sec), (uint64_t)t->tv_nsec);
}

uint64_t file_stamp(const struct stat *st)
{
    uint64_t h = file_stamp_mix((uint64_t)st->st_dev, (uint64_t)st->st_ino);

    return mix_time(mix_time(file_stamp_mix(h, (uint64_t)st->st_size), &st->st_mtim), &st->st_ctim);
}

static double seconds(const struct timespec *t)
{
    return (double)t->tv_sec + (double)t->tv_nsec * 1e-9;
}

double file_stamp_changed(const struct stat *st)
{
    return seconds(&st->st_ctim);
}

double file_stamp_modified(const struct stat *st)
{
    return seconds(&st->st_mtim);
}

/* ---- content digest ---------------------------------------------------------------------------------------------- */

enum { PIECE = CONTENT_WHOLE / CONTENT_PIECES };

void content_release(struct content *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->files[i].name);
    free(c->files);
    *c = (struct content){ NULL, 0, 0 };
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

int content_changed(struct error *e, const char *path)
{
    error_set(e, ERR_IO, "%s: changed while it was read", path);
    if (e)
        e->system = EAGAIN;
    return ERR_IO;
}

/* n: PIECE at most. */
static int read_piece(int fd, const char *path, off_t at, size_t n, uint64_t *digest, struct error *e)
{
    unsigned char bytes[PIECE];
    ssize_t got = file_read_at(fd, bytes, n, (uint64_t)at);

    if (got < 0)
        return error_system(e, "%s: cannot be read at byte %lld", path, (long long)at);
    if ((size_t)got < n)
        return content_changed(e, path);
    *digest = file_stamp_mix(*digest, crc32c(bytes, n));
    return OK;
}

static int digest_file(int directory_fd, const char *name, const char *path, uint64_t *out, struct error *e)
{
    int fd = openat(directory_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc = OK;
    struct stat st;

    if (fd < 0)
        return error_system(e, "%s: cannot be opened", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        rc = error_set(e, ERR_IO, "%s: no longer a file", path);
    } else if (st.st_size <= CONTENT_WHOLE) {
        *out = file_stamp_mix(1, (uint64_t)st.st_size);
        for (off_t at = 0; rc == OK && at < st.st_size; at += PIECE)
            rc = read_piece(fd, path, at, st.st_size - at < PIECE ? (size_t)(st.st_size - at) : PIECE, out, e);
    } else {
        *out = file_stamp_mix(2, (uint64_t)st.st_size);
        for (off_t i = 0; rc == OK && i < CONTENT_PIECES; i++)
            rc = read_piece(fd, path,
                            (st.st_size - PIECE) / (CONTENT_PIECES - 1) * i +
                                (i == CONTENT_PIECES - 1 ? (st.st_size - PIECE) % (CONTENT_PIECES - 1) : 0),
                            PIECE, out, e);
    }
    close(fd);
    return rc;
}

/* ---- all below a directory --------------------------------------------------------------------------------------- */

/* Called for each file; name: relative to the first directory. Not OK ends the walk. */
typedef int visit_file(void *context, int directory_fd, const char *file, const char *name, const struct stat *st,
                       struct error *e);

struct walk {
    visit_file *visit;
    void *context;
    double *changed;     /* of directories as well; may be NULL */
    uint64_t *stamps;    /* may be NULL */
    double *directories; /* when the newest directory was modified; may be NULL */
    size_t files;
};

static void note(const struct walk *w, const struct stat *st)
{
    if (w->stamps)
        *w->stamps += file_stamp(st); /* added: the order of the listing must not matter */
    if (w->changed && file_stamp_changed(st) > *w->changed)
        *w->changed = file_stamp_changed(st);
}

static int walk(struct walk *w, int parent_fd, const char *directory, const char *below, int depth, struct error *e)
{
    int fd = openat(parent_fd, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0)), rc = OK;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        error_system(e, "%s: cannot be listed", directory);
        if (fd >= 0)
            close(fd);
        return ERR_IO;
    }
    while (rc == OK && (errno = 0, entry = readdir(d))) {
        char name[PATH_MAX];
        struct stat st;

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "", entry->d_name) >= (int)sizeof name)
            continue;
        if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno != ENOENT) /* deleted meanwhile */
                rc = error_system(e, "%s", name);
            continue;
        }
        if (S_ISLNK(st.st_mode) && (fstatat(fd, entry->d_name, &st, 0) < 0 || S_ISDIR(st.st_mode)))
            continue;
        if (S_ISDIR(st.st_mode)) {
            note(w, &st);
            if (w->directories && file_stamp_modified(&st) > *w->directories)
                *w->directories = file_stamp_modified(&st);
            rc = depth + 1 < CONTENT_DEPTH_MAX ? walk(w, fd, entry->d_name, name, depth + 1, e)
                                               : error_set(e, ERR_ARG, "%s: nested too deeply", name);
        } else if (S_ISREG(st.st_mode)) {
            note(w, &st);
            rc = ++w->files > CONTENT_FILES_MAX
                     ? error_set(e, ERR_ARG, "%s: more than %d files", directory, CONTENT_FILES_MAX)
                 : w->visit ? w->visit(w->context, fd, entry->d_name, name, &st, e)
                            : OK;
        }
    }
    if (rc == OK && errno)
        rc = error_system(e, "%s: cannot be listed", directory);
    closedir(d);
    return rc;
}

static int add_file(void *context, int directory_fd, const char *file, const char *name, const struct stat *st,
                    struct error *e)
{
    struct content *c = context;
    struct content_file *added;
    int rc;

    (void)st;
    if (!ARRAY_ROOM(c->files, c->capacity, c->count + 1))
        return error_memory(e, NULL, "for %zu files", c->count + 1);
    added = &c->files[c->count];
    if (!(added->name = strdup(name)))
        return error_memory(e, NULL, "for %zu files", c->count);
    c->count++;
    if ((rc = digest_file(directory_fd, file, *name ? name : file, &added->digest, e)) != OK)
        return rc;
    added->digest = file_stamp_mix(added->digest, crc32c(name, strlen(name)));
    return OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct content_file *)a)->name, ((const struct content_file *)b)->name);
}

int content_read(const char *path, struct content *out, struct error *e)
{
    struct walk w = { .visit = add_file, .context = out };
    struct stat st;
    int rc;

    *out = (struct content){ NULL, 0, 0 };
    if (stat(path, &st) < 0)
        return error_system(e, "%s", path);
    if (S_ISDIR(st.st_mode))
        rc = walk(&w, AT_FDCWD, path, "", 0, e);
    else
        rc = add_file(out, AT_FDCWD, path, "", &st, e);
    if (rc != OK)
        content_release(out);
    else if (out->count)
        qsort(out->files, out->count, sizeof *out->files, by_name);
    return rc;
}

uint64_t content_digest(const struct content *c)
{
    uint64_t h = file_stamp_mix(3, c->count);

    for (size_t i = 0; i < c->count; i++)
        h = file_stamp_mix(h, c->files[i].digest);
    return h;
}

int content_only_grew(const struct content *before, const struct content *after)
{
    size_t k = 0;

    for (size_t i = 0; i < before->count; i++, k++) {
        while (k < after->count && strcmp(after->files[k].name, before->files[i].name) < 0)
            k++;
        if (k == after->count || strcmp(after->files[k].name, before->files[i].name) ||
            after->files[k].digest != before->files[i].digest)
            return 0;
    }
    return 1;
}

int content_shrank(const struct content *before, const struct content *after)
{
    return after->count < before->count && content_only_grew(after, before);
}

int content_copy(const struct content *c, struct content *out, struct error *e)
{
    if (!(out->files = calloc(c->count + 1, sizeof *out->files)))
        return error_memory(e, NULL, "for %zu files", c->count);
    out->capacity = c->count + 1;
    for (size_t i = 0; i < c->count; i++) {
        out->files[i].digest = c->files[i].digest;
        if (!(out->files[i].name = strdup(c->files[i].name))) {
            content_release(out);
            return error_memory(e, NULL, "for %zu files", c->count);
        }
        out->count++;
    }
    return OK;
}

static int note_modified(void *context, int directory_fd, const char *file, const char *name, const struct stat *st,
                         struct error *e)
{
    double *modified = context;

    (void)directory_fd;
    (void)file;
    (void)name;
    (void)e;
    if (file_stamp_modified(st) > *modified)
        *modified = file_stamp_modified(st);
    return OK;
}

int content_modified(int directory_fd, const char *name, double *modified)
{
    struct walk w = { .visit = note_modified, .context = modified };
    struct stat st;

    *modified = 0;
    if (fstatat(directory_fd, name, &st, 0) < 0)
        return 0;
    errno = ENOENT;
    if (S_ISDIR(st.st_mode))
        walk(&w, directory_fd, name, "", 0, NULL);
    else
        note_modified(modified, directory_fd, name, "", &st, NULL);
    return *modified > 0;
}

int content_times(int directory_fd, const char *name, double *file, double *directory)
{
    struct walk w = { .visit = note_modified, .context = file, .directories = directory };
    struct stat st;

    *file = 0;
    if (fstatat(directory_fd, name, &st, 0) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    *directory = file_stamp_modified(&st);
    return walk(&w, directory_fd, name, "", 0, NULL) == OK;
}

static int is_written(void *context, int directory_fd, const char *file, const char *name, const struct stat *st,
                      struct error *e)
{
    int fd = openat(directory_fd, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    (void)name;
    (void)st;
    (void)e;
    if (fd < 0)
        return OK;
    *(int *)context = file_is_written(fd);
    close(fd);
    return *(int *)context ? ERR_IO : OK; /* one is enough */
}

int content_is_written(const char *path)
{
    int written = 0;
    struct walk w = { .visit = is_written, .context = &written };
    struct stat st;

    if (stat(path, &st) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        walk(&w, AT_FDCWD, path, "", 0, NULL);
    else if (S_ISREG(st.st_mode))
        is_written(&written, AT_FDCWD, path, "", &st, NULL);
    return written;
}

int content_stamp(int directory_fd, const char *name, uint64_t *stamp, double *changed)
{
    struct walk w = { .changed = changed, .stamps = stamp };
    struct error why = { 0 };
    struct stat st;

    *stamp = 0;
    *changed = 0;
    if (fstatat(directory_fd, name, &st, 0) < 0)
        return 0;
    errno = ENOENT;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;
    note(&w, &st);
    if (S_ISDIR(st.st_mode) && walk(&w, directory_fd, name, "", 0, &why) != OK && error_may_pass(&why) &&
        why.system != EACCES && why.system != EPERM) {
        errno = why.system;
        return 0;
    }
    return 1; /* other errors are reported by opening the checkpoint */
}
