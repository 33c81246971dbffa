#include "evaluator/pin.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_AT_ONCE = 1 << 20 };

static const char temporary[] = ".unfinished-";

/* ---- removing ---------------------------------------------------------------------------------------------------- */

static void remove_tree(int parent_fd, const char *name, int depth)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        if (fd >= 0)
            close(fd);
        unlinkat(parent_fd, name, 0);
        return;
    }
    while (depth <= CONTENT_DEPTH_MAX + 2 && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            remove_tree(fd, entry->d_name, depth + 1);
    closedir(d);
    unlinkat(parent_fd, name, AT_REMOVEDIR);
}

void pin_remove(const char *path)
{
    char *directory = strdup(path), *slash = directory ? strrchr(directory, '/') : NULL;

    if (slash) {
        *slash = '\0';
        remove_tree(AT_FDCWD, directory, 0);
    }
    free(directory);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static int copy(int from, int to, char *bytes, const char *name, struct error *e)
{
    for (;;) {
        ssize_t n = read(from, bytes, COPY_AT_ONCE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_system(e, "%s: cannot be read", name);
        if (!n)
            return OK;
        if (io_write_full(&io_real, to, bytes, (size_t)n) < 0)
            return error_system(e, "%s: cannot be copied", name);
    }
}

static int copy_file(int from_fd, const char *from, int to_fd, const char *to, struct error *e)
{
    int in = openat(from_fd, from, O_RDONLY | O_NONBLOCK | O_CLOEXEC), out = -1, rc;
    char *bytes = malloc(COPY_AT_ONCE);

    if (!bytes)
        rc = error_set(e, ERR_NOMEM, "no memory to copy %s", from);
    else if (in < 0 || (out = openat(to_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        rc = error_system(e, "%s: cannot be copied", from);
    else
        rc = copy(in, out, bytes, from, e);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    free(bytes);
    return rc;
}

static int keep_file(int from_fd, const char *from, int to_fd, const char *to, uint64_t *bytes, struct error *e)
{
    struct stat st;

    if (fstatat(from_fd, from, &st, 0) < 0)
        return error_system(e, "%s", from);
    *bytes += (uint64_t)st.st_size;
    if (linkat(from_fd, from, to_fd, to, AT_SYMLINK_FOLLOW) == 0)
        return OK;
    if (errno != EXDEV && errno != EPERM && errno != EMLINK && errno != EOPNOTSUPP)
        return error_system(e, "%s: cannot be linked", from);
    return copy_file(from_fd, from, to_fd, to, e);
}

static int open_directory(int parent_fd, const char *name)
{
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* All files of a directory, with the directories they lie in; what is no file is passed over, as its digest does. */
static int keep_tree(int from_fd, int to_fd, int depth, uint64_t *bytes, struct error *e)
{
    int fd = open_directory(from_fd, "."), rc = OK;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        rc = error_system(e, "a directory of the checkpoint cannot be listed");
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (rc == OK && (entry = readdir(d))) {
        const char *name = entry->d_name;
        struct stat st;

        if (!strcmp(name, ".") || !strcmp(name, "..") || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            (S_ISLNK(st.st_mode) && (fstatat(fd, name, &st, 0) < 0 || !S_ISREG(st.st_mode))))
            continue;
        if (S_ISREG(st.st_mode)) {
            rc = keep_file(fd, name, to_fd, name, bytes, e);
        } else if (S_ISDIR(st.st_mode)) {
            int below = open_directory(fd, name), made = -1;

            if (below < 0 || mkdirat(to_fd, name, 0777) < 0 || (made = open_directory(to_fd, name)) < 0)
                rc = error_system(e, "%s: cannot be pinned", name);
            else if (depth >= CONTENT_DEPTH_MAX)
                rc = error_set(e, ERR_ARG, "%s: lies too deep", name);
            else
                rc = keep_tree(below, made, depth + 1, bytes, e);
            if (below >= 0)
                close(below);
            if (made >= 0)
                close(made);
        }
    }
    closedir(d);
    return rc;
}

/* NAME.index, NAME.data-*, NAME.meta. */
static int keep_bundle(int from_fd, int to_fd, const char *name, uint64_t *bytes, struct error *e)
{
    int fd = open_directory(from_fd, "."), rc = OK;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    size_t n = strlen(name);
    struct dirent *entry;

    if (!d) {
        rc = error_system(e, "%s: its directory cannot be listed", name);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (rc == OK && (entry = readdir(d))) {
        const char *end = entry->d_name + n;

        if (!strncmp(entry->d_name, name, n) && (!strcmp(end, ".index") || !strcmp(end, ".meta") ||
                                                 !strncmp(end, ".data-", 6)))
            rc = keep_file(fd, entry->d_name, to_fd, entry->d_name, bytes, e);
    }
    closedir(d);
    return rc;
}

static int keep(int from_fd, int to_fd, const struct pin *pin, uint64_t *bytes, struct error *e)
{
    int from, to = -1, rc;

    if (pin->kind == CHECKPOINT_BUNDLE)
        return keep_bundle(from_fd, to_fd, pin->name, bytes, e);
    if ((from = open_directory(from_fd, pin->name)) < 0)
        return keep_file(from_fd, pin->name, to_fd, pin->name, bytes, e);
    if (mkdirat(to_fd, pin->name, 0777) < 0 || (to = open_directory(to_fd, pin->name)) < 0)
        rc = error_system(e, "%s: cannot be pinned", pin->name);
    else
        rc = keep_tree(from, to, 0, bytes, e);
    close(from);
    if (to >= 0)
        close(to);
    return rc;
}

/* Deletion may have come in between: what was pinned must still be the checkpoint that was found. */
static int check(const struct pin *pin, const char *path, struct error *e)
{
    struct opened_checkpoint *c;
    int rc = opened_checkpoint_open(&c, pin->kind, path, e), same;

    if (rc != OK)
        return rc;
    same = c->digest == pin->digest;
    opened_checkpoint_close(c);
    return same ? OK : error_set(e, ERR_IO, "%s: changed while it was pinned", path);
}

int pin_make(const char *eval_directory, const char *directory, const struct pin *pin, char **path, uint64_t *bytes,
             struct error *e)
{
    char all[PATH_MAX], begun[PATH_MAX + 96], done[PATH_MAX + 96], where[PATH_MAX + 96 + NAME_MAX + 2];
    int from = -1, to = -1, rc;

    *path = NULL;
    *bytes = 0;
    if ((rc = file_join(all, sizeof all, eval_directory, "pinned", e)) != OK ||
        (rc = file_make_directories(all, e)) != OK)
        return rc;
    snprintf(done, sizeof done, "%s/%d-%" PRId64 "-%016" PRIx64, all, (int)pin->kind, pin->step, pin->digest);
    snprintf(begun, sizeof begun, "%s/%s%d-%" PRId64 "-%016" PRIx64, all, temporary, (int)pin->kind, pin->step,
             pin->digest);
    remove_tree(AT_FDCWD, begun, 0);
    remove_tree(AT_FDCWD, done, 0);
    if (mkdir(begun, 0777) < 0 || (to = open_directory(AT_FDCWD, begun)) < 0)
        rc = error_system(e, "%s: cannot be made", begun);
    else if ((from = open_directory(AT_FDCWD, directory)) < 0)
        rc = error_system(e, "%s", directory);
    else if ((rc = keep(from, to, pin, bytes, e)) == OK) {
        snprintf(where, sizeof where, "%s/%s", begun, pin->name);
        rc = check(pin, where, e);
    }
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    if (rc == OK && rename(begun, done) < 0)
        rc = error_system(e, "%s: cannot be renamed", begun);
    snprintf(where, sizeof where, "%s/%s", done, pin->name);
    if (rc == OK && !(*path = strdup(where)))
        rc = error_set(e, ERR_NOMEM, "no memory to pin %s", pin->name);
    if (rc != OK)
        remove_tree(AT_FDCWD, begun, 0);
    return rc;
}

/* ---- after a crash ----------------------------------------------------------------------------------------------- */

/* The checkpoint in the directory of a pin: its name, as the one thing in it, or that of the index. 0: none. */
static int find_name(const char *directory, enum checkpoint_kind kind, char *name, size_t size, uint64_t *bytes)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    int found = 0;

    *bytes = 0;
    while (d && (entry = readdir(d))) {
        const char *end = strrchr(entry->d_name, '.');
        struct stat st;

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            *bytes += (uint64_t)st.st_size;
        if (kind != CHECKPOINT_BUNDLE || (end && !strcmp(end, ".index")))
            found = snprintf(name, size, "%.*s", kind != CHECKPOINT_BUNDLE ? NAME_MAX : (int)(end - entry->d_name),
                             entry->d_name) > 0;
    }
    if (d)
        closedir(d);
    return found;
}

int pin_recover(const char *eval_directory, pin_visit *visit, void *context, struct error *e)
{
    char all[PATH_MAX];
    struct dirent *entry;
    DIR *d;
    int rc = file_join(all, sizeof all, eval_directory, "pinned", e);

    if (rc != OK || !(d = opendir(all)))
        return rc;
    while (rc == OK && (entry = readdir(d))) {
        char directory[PATH_MAX + NAME_MAX + 2], name[NAME_MAX + 1], path[PATH_MAX + 2 * NAME_MAX + 4];
        struct pin pin = { .name = name };
        uint64_t bytes;
        int kind;

        snprintf(directory, sizeof directory, "%s/%s", all, entry->d_name);
        if (!strncmp(entry->d_name, temporary, strlen(temporary)))
            remove_tree(AT_FDCWD, directory, 0);
        if (sscanf(entry->d_name, "%1d-%" SCNd64 "-%16" SCNx64, &kind, &pin.step, &pin.digest) != 3 || kind < 0 ||
            kind > CHECKPOINT_OTHER)
            continue;
        pin.kind = (enum checkpoint_kind)kind;
        if (!find_name(directory, pin.kind, name, sizeof name, &bytes))
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, name);
        rc = visit(context, &pin, path, bytes, e);
    }
    closedir(d);
    return rc;
}
