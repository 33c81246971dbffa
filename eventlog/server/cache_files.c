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

#define ENDING ".run"
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

static int path_of(const struct cache_files *c, char *out, size_t size, const char *place, const char *name, int merge)
{
    char here[PATH_MAX] = "";
    uint64_t hash = 0xcbf29ce484222325u;

    if (*place != '/' && !getcwd(here, sizeof here))
        return 0;
    hash = hash_text(hash_text(hash_text(hash, here), place), name);
    return snprintf(out, size, "%s/%016llx%s" ENDING, c->directory, (unsigned long long)hash, merge ? "" : "-apart") <
           (int)size;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static long read_some(void *context, void *out, size_t n)
{
    ssize_t got;

    do
        got = read(*(int *)context, out, n);
    while (got < 0 && errno == EINTR);
    return got;
}

int cache_files_read(const struct cache_files *c, struct run_cache *out, const char *place, const char *name, int merge,
                     struct error *e)
{
    char path[PATH_MAX];
    struct stat st;
    int fd, rc;

    *out = (struct run_cache){ .run = NULL };
    if (!c->directory || !path_of(c, path, sizeof path, place, name, merge))
        return error_set(e, ERR_ARG, "%s: has no place among saved runs", name);
    if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)) < 0)
        return error_system(e, "%s: cannot be opened", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        rc = error_set(e, ERR_CORRUPT, "%s: is not this user's file", path);
    else
        rc = run_cache_read(out, name, merge, read_some, &fd, (uint64_t)st.st_size, e);
    if (rc == OK)
        futimens(fd, NULL); /* used now; without the right to, it is removed earlier */
    close(fd);
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

struct written {
    const struct io *io;
    int fd, system;
    uint64_t bytes;
};

static int write_some(void *context, const void *bytes, size_t n)
{
    struct written *w = context;

    w->bytes += n;
    if (io_write_full(w->io, w->fd, bytes, n) == 0)
        return 0;
    w->system = errno;
    return -1;
}

static int cannot(struct cache_files *c, int system, struct error *e)
{
    c->full = 1;
    errno = system;
    return error_system(e, "%s: runs cannot be saved for the next start (--cache names another place)", c->directory);
}

int cache_files_write(struct cache_files *c, const char *place, struct run_data *run, int merge,
                      const struct run_cache_file *files, size_t count, struct error *e)
{
    const char *name = run_data_name(run);
    char path[PATH_MAX], temporary[PATH_MAX + 32];
    struct written w = { .io = c->io ? c->io : &io_real };
    int rc;

    if (!c->directory || c->full || !path_of(c, path, sizeof path, place, name, merge))
        return OK;
    if (!c->seen && file_make_directories(c->directory, e) != OK) {
        c->full = 1;
        return ERR_IO;
    }
    snprintf(temporary, sizeof temporary, "%s.tmp.%ld", path, (long)getpid());
    unlink(temporary);
    if ((w.fd = w.io->open(w.io->context, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)
        return cannot(c, errno, e);
    /* Not synced: after a power cut the checksum tells whether all of it came to the disk. */
    rc = run_cache_write(run, files, count, write_some, &w, e);
    if (w.io->close(w.io->context, w.fd) < 0 && rc == OK) {
        w.system = errno;
        rc = ERR_IO;
    }
    if (rc == OK && w.io->rename(w.io->context, temporary, path) < 0) {
        w.system = errno;
        rc = ERR_IO;
    }
    c->unseen += w.bytes;
    if (rc == OK)
        return OK;
    unlink(temporary);
    return rc == ERR_IO ? cannot(c, w.system, e) : rc;
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
    const size_t n = strspn(name, "0123456789abcdef");
    const char *rest = name + n;

    if (n != 16 || strlen(name) >= sizeof((struct saved *)0)->name)
        return 0;
    rest += !strncmp(rest, "-apart", 6) ? 6 : 0;
    return !strncmp(rest, ENDING, 4) && (!rest[4] || !strncmp(rest + 4, ".tmp.", 5));
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
