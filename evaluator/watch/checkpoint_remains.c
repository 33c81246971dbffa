#include "evaluator/watch/checkpoint_remains.h"

#include "base/text.h"
#include "checkpoint/safetensors.h"
#include "evaluator/files/content_digest.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int has(int directory_fd, const char *name, const char *file)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s", name, file) >= (int)sizeof path ||
           faccessat(directory_fd, path, F_OK, 0) == 0;
}

/* model.safetensors.index.json, pytorch_model.bin.index.json. */
static int index_lacks(int fd, const char *name, char *lacks, size_t size)
{
    struct safetensors_index index;
    char path[PATH_MAX];
    int found = 0;

    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", fd, name);
    if (safetensors_index_open(&index, path, NULL) != OK)
        return 0;
    for (size_t i = 0; i < index.count && !found; i++)
        if ((found = faccessat(fd, index.places[i].value, F_OK, 0) < 0))
            snprintf(lacks, size, "%s", index.places[i].value);
    safetensors_index_release(&index);
    return found;
}

static DIR *open_names(int directory_fd, const char *name)
{
    const int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !d)
        close(fd);
    return d;
}

int checkpoint_remains_lacks(int directory_fd, const char *name, const char *const *brothers, size_t count, char *lacks,
                             size_t size)
{
    DIR *own = open_names(directory_fd, name), *d = NULL;
    struct dirent *entry;
    int found = 0;

    if (!own)
        return 0;
    while (!found && (entry = readdir(own)))
        found = text_stem(entry->d_name, strlen(entry->d_name), ".index.json") &&
                index_lacks(dirfd(own), entry->d_name, lacks, size);
    if (!found && count >= 2)
        d = open_names(directory_fd, brothers[0]);
    while (d && !found && (entry = readdir(d))) {
        found = faccessat(dirfd(own), entry->d_name, F_OK, 0) < 0;
        for (size_t i = 1; found && i < count; i++)
            found = has(directory_fd, brothers[i], entry->d_name);
        if (found)
            snprintf(lacks, size, "%s", entry->d_name);
    }
    if (d)
        closedir(d);
    closedir(own);
    return found;
}

int checkpoint_remains_trace(int directory_fd, const char *name)
{
    double file, directory;

    return content_times(directory_fd, name, &file, &directory) && directory > file;
}

int checkpoint_remains_older(int directory_fd, const char *name, double wall)
{
    double file, directory;

    return content_times(directory_fd, name, &file, &directory) && file <= wall;
}
