#include "eventlog/server/cache_files.h"

#include "base/array.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ENDING_RUN ".run"
#define ENDING_PACK ".pack"
#define LEFT_BEHIND 3600       /* seconds */
#define LOOK_EVERY (64u << 20) /* bytes written */

int cache_files_open(struct cache_files *c, const char *name, struct error *e)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char path[PATH_MAX];
    int n = 0;

    *c = (struct cache_files){ .directory = NULL };
    if (name && !strcmp(name, "off"))
        return OK;
    if (name)
        n = snprintf(path, sizeof path, "%s", name);
    else if (base && *base == '/')
        n = snprintf(path, sizeof path, "%s/evalboard", base);
    else if (home && *home == '/')
        n = snprintf(path, sizeof path, "%s/.cache/evalboard", home);
    if (n <= 0 || n >= (int)sizeof path)
        return OK;
    return (c->directory = strdup(path)) ? OK : error_memory(e, path, "for its name");
}

void cache_files_close(struct cache_files *c)
{
    free(c->directory);
    c->directory = NULL;
}

/* FNV-1a of 64 bits (Fowler, Noll, Vo): two runs of the same number only take turns in one file. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    } while (*text++);
    return hash;
}

static int path_of(const struct cache_files *c, char *out, const char *place, const char *name, int merge,
                   const char *ending)
{
    char here[PATH_MAX] = "";
    uint64_t hash = 0xcbf29ce484222325u;

    if (*place != '/' && !getcwd(here, sizeof here))
        return 0;
    hash = hash_text(hash_text(hash_text(hash, here), place), name);
    return snprintf(out, PATH_MAX, "%s/%016llx%s%s", c->directory, (unsigned long long)hash, merge ? "" : "-apart",
                    ending) < PATH_MAX;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

int cache_file_read(int fd, uint8_t *bytes, size_t size)
{
    ssize_t got = 1;

    for (size_t have = 0; have < size && got > 0; have += (size_t)got)
        do
            got = read(fd, bytes + have, size - have);
        while (got < 0 && errno == EINTR);
    return got > 0;
}

int cache_file_open(const struct cache_files *c, const char *place, const char *name, int merge, const char *ending,
                    uint64_t *size, struct error *e)
{
    char path[PATH_MAX];
    struct stat st;
    int fd;

    if (!c->directory || !path_of(c, path, place, name, merge, ending)) {
        error_set(e, ERR_ARG, "%s: has no place among saved runs", name);
        return -1;
    }
    if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)) < 0) {
        error_system(e, "%s: cannot be opened", path);
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()) {
        *size = (uint64_t)st.st_size;
        return fd;
    }
    error_set(e, ERR_CORRUPT, "%s: is not this user's file", path);
    close(fd);
    return -1;
}

int cache_files_read(const struct cache_files *c, struct run_cache *out, const char *place, const char *name, int merge,
                     struct error *e)
{
    struct error own = { 0 };
    struct shared_bytes *all = NULL;
    uint64_t size;
    int fd = cache_file_open(c, place, name, merge, ENDING_RUN, &size, &own), rc = own.code;

    *out = (struct run_cache){ .run = NULL };
    if (fd < 0) {
        if (e)
            *e = own;
        return rc;
    }
    if (!size || size > CACHE_FILES_BYTES)
        rc = error_set(e, ERR_CORRUPT, "%s: no saved run", name);
    else if (!(all = shared_bytes_new((size_t)size)))
        rc = error_memory(e, name, "for it");
    else if (!cache_file_read(fd, all->bytes, all->size))
        rc = error_system(e, "%s: cannot be read", name);
    else if ((rc = run_cache_read(out, name, merge, all->bytes, all->size, all, e)) == OK)
        futimens(fd, NULL); /* used now; without the right to, it is removed earlier */
    shared_bytes_drop(all);
    close(fd);
    return rc;
}

enum { PREVIEW_TAIL = 8 * 1024 }; /* most indexes are no longer */

/* The index at the end of a file, in *tail, to be freed in any case. 0: there is none. */
static size_t read_file_index(int fd, uint64_t size, uint8_t **tail)
{
    const size_t n = size < PREVIEW_TAIL ? (size_t)size : PREVIEW_TAIL;
    uint64_t index = 0;

    if ((*tail = malloc(n + !n)) && n >= RUN_CACHE_END && file_read_at(fd, *tail, n, size - n) == (ssize_t)n)
        index = run_cache_index_size(*tail + n - RUN_CACHE_END, size);
    if (index <= n) {
        if (index)
            memmove(*tail, *tail + n - index, (size_t)index);
        return (size_t)index;
    }
    free(*tail);
    *tail = index < SIZE_MAX / 2 ? malloc((size_t)index) : NULL;
    return *tail && file_read_at(fd, *tail, (size_t)index, size - index) == (ssize_t)index ? (size_t)index : 0;
}

int cache_files_preview(const struct cache_files *c, struct run_cache *out, const char *place, const char *name,
                        int merge, struct error *e)
{
    struct run_cache_place where = { .points = NULL };
    char path[PATH_MAX];
    uint8_t *tail = NULL;
    size_t index;
    int fd = cache_file_open(c, place, name, merge, ENDING_RUN, &where.size, e), rc = ERR_CORRUPT;

    *out = (struct run_cache){ .run = NULL };
    if (fd < 0)
        return ERR_IO;
    if (where.size <= CACHE_FILES_BYTES && (index = read_file_index(fd, where.size, &tail)) &&
        path_of(c, path, place, name, merge, ENDING_RUN)) {
        where.points = saved_points_of_file(path);
        rc = where.points ? run_cache_preview(out, name, merge, tail, index, &where, e)
                          : error_memory(e, name, "for it");
    }
    saved_points_drop(where.points);
    free(tail);
    close(fd);
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static int cannot(struct cache_files *c, int system, struct error *e)
{
    c->full = 1;
    errno = system;
    return error_system(e, "%s: runs cannot be saved for the next start (--cache names another place)", c->directory);
}

int cache_file_begin(struct cache_file *f, struct cache_files *c, const char *place, const char *name, int merge,
                     const char *ending, struct error *e)
{
    f->to = c;
    f->io = c->io ? c->io : &io_real;
    f->system = 0;
    f->bytes = 0;
    if (!c->directory || c->full || !path_of(c, f->path, place, name, merge, ending))
        return 0;
    if (!c->seen && file_make_directories(c->directory, e) != OK) {
        c->full = 1;
        return ERR_IO;
    }
    snprintf(f->temporary, sizeof f->temporary, "%s.tmp.%ld", f->path, (long)getpid());
    unlink(f->temporary);
    f->fd = f->io->open(f->io->context, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return f->fd >= 0 ? 1 : cannot(c, errno, e);
}

int cache_file_write(void *cache_file, const void *bytes, size_t n)
{
    struct cache_file *f = cache_file;

    f->bytes += n;
    if (io_write_full(f->io, f->fd, bytes, n) == 0)
        return 0;
    f->system = errno;
    return -1;
}

int cache_file_end(struct cache_file *f, int rc, struct error *e)
{
    /* Not synced: after a power cut the checksum tells whether all of it came to the disk. */
    if (f->io->close(f->io->context, f->fd) < 0 && rc == OK) {
        f->system = errno;
        rc = ERR_IO;
    }
    if (rc == OK && f->io->rename(f->io->context, f->temporary, f->path) < 0) {
        f->system = errno;
        rc = ERR_IO;
    }
    f->to->unseen += f->bytes;
    if (rc == OK)
        return OK;
    unlink(f->temporary);
    return rc == ERR_IO ? cannot(f->to, f->system, e) : rc;
}

int cache_files_write(struct cache_files *c, const char *place, struct run_data *run, int merge,
                      const struct run_cache_file *files, size_t count, struct error *e)
{
    struct cache_file f;
    int rc = cache_file_begin(&f, c, place, run_data_name(run), merge, ENDING_RUN, e);

    if (rc <= 0)
        return rc;
    return cache_file_end(&f, run_cache_write(run, files, count, cache_file_write, &f, e), e);
}

/* ---- what is too much ------------------------------------------------------------------------------------------ */

struct saved {
    char name[64];
    uint64_t bytes;
    struct timespec used;
};

static int by_use(const void *a, const void *b)
{
    const struct timespec x = ((const struct saved *)a)->used, y = ((const struct saved *)b)->used;

    return x.tv_sec != y.tv_sec ? (x.tv_sec < y.tv_sec ? -1 : 1) : x.tv_nsec < y.tv_nsec ? -1 : x.tv_nsec > y.tv_nsec;
}

static int is_saved(const char *name)
{
    static const char *const endings[] = { ENDING_RUN, ENDING_PACK };
    const size_t n = strspn(name, "0123456789abcdef");
    const char *rest = name + n;

    if (n != 16 || strlen(name) >= sizeof((struct saved *)0)->name)
        return 0;
    rest += !strncmp(rest, "-apart", 6) ? 6 : 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t length = strlen(endings[i]);

        if (!strncmp(rest, endings[i], length) && (!rest[length] || !strncmp(rest + length, ".tmp.", 5)))
            return 1;
    }
    return 0;
}

void cache_files_trim(struct cache_files *c)
{
    struct saved *all = NULL;
    size_t count = 0, capacity = 0;
    uint64_t bytes = 0, most = c->most ? c->most : CACHE_FILES_BYTES;
    struct dirent *entry;
    struct stat st;
    DIR *d;

    if (!c->directory || (c->seen ? c->unseen < LOOK_EVERY && !c->most : !c->unseen) || !(d = opendir(c->directory)))
        return;
    c->seen = 1;
    c->unseen = 0;
    while ((entry = readdir(d))) {
        if (!is_saved(entry->d_name) || fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (strstr(entry->d_name, ".tmp.")) {
            if (st.st_mtim.tv_sec < time(NULL) - LEFT_BEHIND)
                unlinkat(dirfd(d), entry->d_name, 0);
        } else if (ARRAY_ROOM(all, capacity, count + 1)) {
            all[count] = (struct saved){ .bytes = (uint64_t)st.st_size, .used = st.st_mtim };
            memcpy(all[count++].name, entry->d_name, strlen(entry->d_name) + 1);
            bytes += (uint64_t)st.st_size;
        }
    }
    if (count)
        qsort(all, count, sizeof *all, by_use);
    for (size_t i = 0; i < count && bytes > most; i++) {
        unlinkat(dirfd(d), all[i].name, 0);
        bytes -= all[i].bytes;
    }
    free(all);
    closedir(d);
}
