#include "eventlog/tool/rewrite/removable.h"

#include "base/array.h"
#include "base/file.h"
#include "eventlog/read/log_input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- listing --------------------------------------------------------------------------------------------------- */

static int no_memory(const char *path, struct error *e)
{
    return error_memory(e, path, "while listing");
}

/* What stands behind the directory that was listed, "." for that itself; of several, all of the path. */
static char *run_name(const char *directory, size_t root, int several)
{
    const char *below = directory + (several ? 0 : root);

    while (!several && *below == '/')
        below++;
    return strdup(*below ? below : ".");
}

static struct removable_run *add_run(struct removable *r, const FTSENT *directory, size_t root, int several)
{
    struct removable_run *run;

    if (!ARRAY_ROOM(r->runs, r->capacity, r->count + 1))
        return NULL;
    run = &r->runs[r->count];
    *run = (struct removable_run){
        .directory = strndup(directory->fts_path, directory->fts_pathlen),
        .root = root,
        .before = *directory->fts_statp,
    };
    if (!run->directory || !(run->name = run_name(run->directory, root, several))) {
        free(run->directory);
        return NULL;
    }
    r->count++;
    return run;
}

static int add_file(struct removable_run *run, const FTSENT *entry)
{
    struct removable_file *files = run->files;
    const struct stat *st = entry->fts_statp;
    double changed = (double)st->st_mtim.tv_sec + (double)st->st_mtim.tv_nsec * 1e-9;

    if (!(run->count & (run->count - 1))) { /* capacities are powers of two */
        if (!(files = realloc(files, (run->count ? run->count * 2 : 1) * sizeof *files)))
            return 0;
        run->files = files;
    }
    if (!(files[run->count].name = strdup(entry->fts_name)))
        return 0;
    files[run->count++].before = *st;
    run->bytes += (uint64_t)st->st_size;
    if (run->count == 1 || changed > run->changed)
        run->changed = changed;
    return 1;
}

static int removable_by_name(const void *a, const void *b)
{
    return strcmp(((const struct removable_file *)a)->name, ((const struct removable_file *)b)->name);
}

static int named_like_events(const char *name)
{
    return strstr(name, "tfevents") != NULL;
}

/* 0: its first bytes are those of something else, such as a script or a packed directory. A file that cannot be opened
 * may be one. */
static int may_be_events(int directory, const char *path)
{
    int fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    enum file_kind kind = fd < 0 ? FILE_KIND_EVENT_LOG : log_input_kind_of_descriptor(fd);

    if (fd >= 0)
        close(fd);
    return kind == FILE_KIND_EVENT_LOG || kind == FILE_KIND_EMPTY;
}

/* fts_number of a directory: 1 + its run. */
static int removable_take(struct removable *r, FTSENT *entry, size_t root, int several)
{
    struct removable_run *run;

    if (!named_like_events(entry->fts_name))
        return 1;
    if (!may_be_events(AT_FDCWD, entry->fts_accpath)) {
        r->others++;
        return 1;
    }
    if (entry->fts_parent->fts_number)
        run = &r->runs[entry->fts_parent->fts_number - 1];
    else if (!(run = add_run(r, entry->fts_parent, root, several)))
        return 0;
    entry->fts_parent->fts_number = run - r->runs + 1;
    return add_file(run, entry);
}

int removable_list(struct removable *r, char *path, int several, struct log *log, struct error *e)
{
    char *paths[] = { path, NULL };
    size_t root = strlen(path), first = r->count;
    struct stat st;
    FTS *tree;
    int rc = OK;

    if (stat(path, &st) < 0)
        return error_system(e, "%s: cannot be read", path);
    if (!S_ISDIR(st.st_mode))
        return error_set(e, ERR_ARG, "%s: not a directory; runs are deleted from log directories", path);
    if (!(tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL)))
        return error_system(e, "%s: cannot be read", path);
    for (FTSENT *entry; rc == OK && (errno = 0, entry = fts_read(tree));) {
        if (entry->fts_info == FTS_F && !removable_take(r, entry, root, several))
            rc = no_memory(path, e);
        r->links += entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE;
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS) {
            if (entry->fts_level > FTS_ROOTLEVEL && entry->fts_errno == ENOENT)
                continue; /* removed since its directory was read */
            log_line(log, "%s: cannot be read: %s", entry->fts_path, strerror(entry->fts_errno));
            r->failed = 1;
        }
    }
    if (rc == OK && errno)
        rc = error_system(e, "%s: cannot be read", path);
    fts_close(tree);
    for (size_t i = first; i < r->count; i++)
        qsort(r->runs[i].files, r->runs[i].count, sizeof *r->runs[i].files, removable_by_name);
    return rc;
}

void removable_release(struct removable *r)
{
    for (size_t i = 0; i < r->count; i++) {
        for (size_t k = 0; k < r->runs[i].count; k++)
            free(r->runs[i].files[k].name);
        free(r->runs[i].files);
        free(r->runs[i].name);
        free(r->runs[i].directory);
    }
    free(r->runs);
    *r = (struct removable){ 0 };
}

/* ---- what keeps a run ------------------------------------------------------------------------------------------ */

static int stays(const struct removable_run *run, const char *name, const char *why, struct error *e)
{
    return error_set(e, ERR_ARG, "run %s: %s %s, so the run stays", run->name, name, why);
}

static int same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The directory as it was listed, or an error. */
static int removable_enter(const struct removable_run *run, struct error *e)
{
    /* The directory that was listed may have been given by a link. */
    int follow = strlen(run->directory) == run->root ? 0 : O_NOFOLLOW;
    int fd = open(run->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
    struct stat st;

    if (fd < 0)
        return stays(run, run->directory, "cannot be entered any more", e);
    if (fstat(fd, &st) == 0 && st.st_dev == run->before.st_dev && st.st_ino == run->before.st_ino)
        return fd;
    close(fd);
    return stays(run, run->directory, "is another directory now", e);
}

/* A descriptor of the file with a lock that keeps writers of this library away; or -1, and *why it must stay. */
static int hold(int directory, const char *name, const struct stat *before, int *unknown, const char **why)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    enum file_writer writer;
    struct stat st;

    *why = "cannot be opened";
    if (fd < 0)
        return -1;
    writer = file_writer(fd);
    *unknown |= writer == FILE_WRITER_UNKNOWN;
    if (fstat(fd, &st) < 0 || !same(&st, before))
        *why = "has changed since it was listed";
    else if (writer == FILE_WRITTEN || (flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK))
        *why = "is being written";
    else
        return fd;
    close(fd);
    return -1;
}

static int is_called(const void *name, const void *file)
{
    return strcmp(name, ((const struct removable_file *)file)->name);
}

/* Whether all event files in the directory are those that were listed. */
static int nothing_new(const struct removable_run *run, int directory, struct error *e)
{
    DIR *d = fdopendir(fcntl(directory, F_DUPFD_CLOEXEC, 3));
    const struct dirent *entry;
    struct stat st;
    int rc = OK;

    if (!d)
        return stays(run, run->directory, "cannot be read", e);
    rewinddir(d);
    while (rc == OK && (entry = readdir(d))) {
        if (named_like_events(entry->d_name) &&
            !bsearch(entry->d_name, run->files, run->count, sizeof *run->files, is_called) &&
            fstatat(directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            may_be_events(directory, entry->d_name))
            rc = stays(run, entry->d_name, "has come since it was listed", e);
    }
    closedir(d);
    return rc;
}

/* The directory, and in *held the last file, which is the one that a writer would go on in. Or an error. */
static int open_run(const struct removable_run *run, int *held, int *unknown, struct error *e)
{
    int directory = removable_enter(run, e), rc = OK;
    const char *why;

    *held = -1;
    if (directory < 0)
        return directory;
    for (size_t i = 0; rc == OK && i < run->count; i++) {
        if (*held >= 0)
            close(*held);
        *held = hold(directory, run->files[i].name, &run->files[i].before, unknown, &why);
        rc = *held < 0 ? stays(run, run->files[i].name, why, e) : OK;
    }
    if (rc == OK)
        rc = nothing_new(run, directory, e);
    if (rc == OK)
        return directory;
    if (*held >= 0)
        close(*held);
    close(directory);
    return rc;
}

int removable_check(const struct removable_run *run, int *unknown, struct error *e)
{
    int held, directory = open_run(run, &held, unknown, e);

    if (directory < 0)
        return directory;
    close(held);
    close(directory);
    return OK;
}

/* ---- deleting -------------------------------------------------------------------------------------------------- */

/* The run's directory and those above it, as far as nothing is in them. */
static void remove_directories(const struct removable_run *run)
{
    char *path = strdup(run->directory), *slash;

    while (path && strlen(path) > run->root && rmdir(path) == 0 && (slash = strrchr(path, '/')))
        *slash = '\0';
    free(path);
}

/* Deletes a file under a name by which nobody else opens or replaces it. ERR_IO: it stays, under its own name if
 * possible. */
static int delete_file(const struct removable_run *run, int directory, const struct removable_file *file,
                       struct error *e)
{
    char away[NAME_MAX + 1];
    int unknown = 0, fd, rc = ERR_IO;
    const char *why;

    if ((size_t)snprintf(away, sizeof away, "%s.prune", file->name) >= sizeof away)
        return error_set(e, ERR_IO, "%s/%.100s...: cannot be deleted, its name is too long", run->directory,
                         file->name);
    if (faccessat(directory, away, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return error_set(e, ERR_IO, "%s/%s: cannot be deleted, %s is in the way", run->directory, file->name, away);
    if (renameat(directory, file->name, directory, away) < 0)
        return error_system(e, "%s/%s: cannot be deleted", run->directory, file->name);
    if ((fd = hold(directory, away, &file->before, &unknown, &why)) < 0)
        error_set(e, ERR_IO, "%s/%s: %s, and stays", run->directory, file->name, why);
    else if (unlinkat(directory, away, 0) < 0)
        error_system(e, "%s/%s: cannot be deleted", run->directory, file->name);
    else
        rc = OK;
    if (fd >= 0)
        close(fd);
    /* Not with rename(), which would replace a file made there meanwhile. */
    if (rc != OK && (linkat(directory, away, directory, file->name, 0) < 0 || unlinkat(directory, away, 0) < 0))
        error_set(e, ERR_IO, "%s/%s: stays as %s: %s", run->directory, file->name, away, strerror(errno));
    return rc;
}

int removable_delete(const struct removable_run *run, struct error *e)
{
    int held, unknown = 0, directory = open_run(run, &held, &unknown, e), rc = OK;

    if (directory < 0)
        return directory;
    for (size_t i = run->count; rc == OK && i--;)
        rc = delete_file(run, directory, &run->files[i], e);
    close(held);
    close(directory);
    if (rc == OK)
        remove_directories(run);
    return rc;
}
