#include "eventlog/tool/directory_below.h"

#include "base/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory that the file lies in, and in *base its name there; or a negative code. */
static int enter(int root, const char *root_path, const char *path, const char **base, struct error *e)
{
    char part[NAME_MAX + 1];
    const char *slash;
    int at = dup(root);

    if (at < 0)
        return error_system(e, "%s: cannot enter the directory", root_path);
    for (*base = path; (slash = strchr(*base, '/')); *base = slash + 1) {
        size_t n = (size_t)(slash - *base);
        int next = -1, rc = OK;

        if (n < sizeof part) {
            memcpy(part, *base, n);
            part[n] = '\0';
            if (mkdirat(at, part, 0777) == 0 || errno == EEXIST)
                next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        } else {
            errno = ENAMETOOLONG;
        }
        if (next < 0)
            rc = error_system(e, "%s/%s: cannot enter directory '%.*s' (links are not followed)", root_path, path,
                              (int)n, *base);
        close(at);
        if ((at = next) < 0)
            return rc;
    }
    return at;
}

int directory_below_open(struct directory_below *f, int root, const char *root_path, const char *path, int force,
                         mode_t mode, struct error *e)
{
    struct stat st;
    int rc;

    *f = (struct directory_below){ .root_path = root_path, .path = path, .fd = -1 };
    if ((f->at = enter(root, root_path, path, &f->base, e)) < 0)
        return f->at;
    snprintf(f->temporary, sizeof f->temporary, ".eventlog.%ld.tmp", (long)getpid());
    if (!force && fstatat(f->at, f->base, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        rc = error_set(e, ERR_ARG, "%s/%s: already exists; use -f to overwrite it", root_path, path);
    } else {
        f->unfinished = unfinished_begin(f->at, f->temporary);
        unlinkat(f->at, f->temporary, 0); /* of a killed process with our number */
        f->fd = openat(f->at, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (f->fd >= 0)
            return OK;
        rc = error_system(e, "%s/%s: cannot create", root_path, path);
        unfinished_end(f->unfinished);
    }
    close(f->at);
    return rc;
}

int directory_below_close(struct directory_below *f, int rc, struct error *e)
{
    if (close(f->fd) < 0 && rc == OK)
        rc = error_system(e, "%s/%s: cannot close", f->root_path, f->path);
    if (rc == OK && renameat(f->at, f->temporary, f->at, f->base) < 0)
        rc = error_system(e, "%s/%s: cannot rename into place", f->root_path, f->path);
    if (rc != OK)
        unlinkat(f->at, f->temporary, 0);
    unfinished_end(f->unfinished);
    close(f->at);
    return rc;
}
