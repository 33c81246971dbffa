#include "base/directory_walk.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 16 };

static int visible_directory(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return text_natural_order((*a)->d_name, (*b)->d_name);
}

static int walk(const char *directory, directory_visit *visit, void *context, int depth)
{
    struct dirent **entries;
    int rc = visit(context, directory), count;

    if (rc != 0 || depth == DEPTH_MAX || (count = scandir(directory, &entries, visible_directory, by_name)) < 0)
        return rc < 0 ? rc : OK;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        struct stat st;
        int below = OK;

        if (file_join(path, sizeof path, directory, entries[i]->d_name, NULL) == OK && lstat(path, &st) == 0 &&
            S_ISDIR(st.st_mode))
            below = walk(path, visit, context, depth + 1);
        rc = rc < 0 ? rc : below;
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int directory_walk(const char *top, directory_visit *visit, void *context)
{
    return walk(top, visit, context, 0);
}
