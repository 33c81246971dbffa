#include "evaluator/files/file_tree.h"

#include "base/file.h"
#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static int copy_bytes(int in, int out, const char *from, const char *to, struct error *e)
{
    char *piece = malloc(PIECE);
    ssize_t n;
    int rc = OK;

    if (!piece)
        return error_memory(e, from, "to copy it");
    while (rc == OK && (n = read(in, piece, PIECE)) != 0)
        if (n < 0 && errno != EINTR)
            rc = error_system(e, "%s: cannot read", from);
        else if (n > 0 && io_write_full(&io_real, out, piece, (size_t)n) < 0)
            rc = error_system(e, "%s: cannot write", to);
    free(piece);
    if (rc == OK && fsync(out) < 0)
        rc = error_system(e, "%s: cannot sync", to);
    return rc;
}

static int copy_file(const char *from, const char *to, struct error *e)
{
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK), out, rc;

    if (in < 0)
        return error_system(e, "%s: cannot open", from);
    if ((out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0) {
        rc = error_system(e, "%s: cannot create", to);
    } else {
        rc = copy_bytes(in, out, from, to, e);
        if (close(out) < 0 && rc == OK)
            rc = error_system(e, "%s: cannot close", to);
    }
    close(in);
    return rc;
}

static int make(const char *from, const char *to, enum file_tree_means means, int depth, struct error *e);

static int make_directory(const char *from, const char *to, enum file_tree_means means, int depth, struct error *e)
{
    char below_from[PATH_MAX], below_to[PATH_MAX];
    struct dirent *entry;
    DIR *d;
    int rc = OK;

    if (depth >= FILE_TREE_DEPTH_MAX)
        return error_set(e, ERR_ARG, "%s: directories nested more than %d deep", from, FILE_TREE_DEPTH_MAX);
    if (!(d = opendir(from)))
        return error_system(e, "%s: cannot list", from);
    if (mkdir(to, 0777) < 0)
        rc = error_system(e, "%s: cannot make the directory", to);
    for (errno = 0; rc == OK && (entry = readdir(d)); errno = 0)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            (rc = file_join(below_from, sizeof below_from, from, entry->d_name, e)) == OK &&
            (rc = file_join(below_to, sizeof below_to, to, entry->d_name, e)) == OK)
            rc = make(below_from, below_to, means, depth + 1, e);
    if (rc == OK && errno)
        rc = error_system(e, "%s: cannot list", from);
    closedir(d);
    return rc;
}

static int make(const char *from, const char *to, enum file_tree_means means, int depth, struct error *e)
{
    struct stat st;

    if ((depth ? lstat(from, &st) : stat(from, &st)) < 0)
        return error_system(e, "%s: cannot read its status", from);
    if (S_ISDIR(st.st_mode))
        return make_directory(from, to, means, depth, e);
    if (S_ISLNK(st.st_mode) && stat(from, &st) < 0)
        return OK;
    if (!S_ISREG(st.st_mode))
        return depth ? OK : error_set(e, ERR_ARG, "%s: is neither a file nor a directory", from);
    if (means != FILE_TREE_COPY && linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0)
        return OK;
    return means == FILE_TREE_LINK ? error_system(e, "%s: cannot be linked", from) : copy_file(from, to, e);
}

int file_tree_make(const char *from, const char *to, enum file_tree_means means, struct error *e)
{
    int rc = make(from, to, means, 0, e);

    if (rc != OK)
        file_tree_remove(to, NULL);
    return rc;
}

static int remove_below(const char *path, int depth, struct error *e)
{
    char below[PATH_MAX];
    struct dirent *entry;
    DIR *d;
    int rc = OK;

    if (unlink(path) == 0 || errno == ENOENT)
        return OK;
    if (errno != EISDIR && errno != EPERM)
        return error_system(e, "%s: cannot be removed", path);
    if (depth > FILE_TREE_DEPTH_MAX)
        return error_set(e, ERR_ARG, "%s: directories nested more than %d deep", path, FILE_TREE_DEPTH_MAX);
    if (!(d = opendir(path)))
        return error_system(e, "%s: cannot be removed", path);
    while (rc == OK && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            (rc = file_join(below, sizeof below, path, entry->d_name, e)) == OK)
            rc = remove_below(below, depth + 1, e);
    closedir(d);
    if (rc == OK && rmdir(path) < 0 && errno != ENOENT)
        rc = error_system(e, "%s: cannot be removed", path);
    return rc;
}

int file_tree_remove(const char *path, struct error *e)
{
    return remove_below(path, 0, e);
}

static uint64_t bytes_below(const char *path, int depth)
{
    char below[PATH_MAX];
    struct dirent *entry;
    uint64_t bytes = 0;
    struct stat st;
    DIR *d;

    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISDIR(st.st_mode))
        return S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    if (depth > FILE_TREE_DEPTH_MAX || !(d = opendir(path)))
        return 0;
    while ((entry = readdir(d)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            file_join(below, sizeof below, path, entry->d_name, NULL) == OK)
            bytes += bytes_below(below, depth + 1);
    closedir(d);
    return bytes;
}

uint64_t file_tree_bytes(const char *path)
{
    return bytes_below(path, 0);
}
