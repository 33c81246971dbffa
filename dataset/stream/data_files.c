#include "dataset/stream/data_files.h"

#include "base/array.h"
#include "base/file.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SAYS_TRAIN = 1, SAYS_TEST = 2 };

static int says(const char *path)
{
    static const char *const test_words[] = { "test", "val", "t10k" };
    const char *name = file_base_name(path);

    if (strstr(name, "train"))
        return SAYS_TRAIN;
    for (size_t i = 0; i < sizeof test_words / sizeof *test_words; i++)
        if (strstr(name, test_words[i]))
            return SAYS_TEST;
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_path(struct data_files *f, const char *path, struct error *e)
{
    if (!ARRAY_ROOM(f->paths, f->room, f->count + 1) || !(f->paths[f->count] = strdup(path)))
        return error_memory(e, path, "for its name");
    f->count++;
    return OK;
}

/* All files that match, NULL: any. */
static int list_all(struct data_files *f, const char *directory, const char *pattern, struct error *e)
{
    DIR *d = opendir(directory);
    const struct dirent *entry;
    char path[PATH_MAX];
    struct stat st;
    int rc = OK;

    if (!d)
        return error_system(e, "%s: cannot list", directory);
    while (rc == OK && (entry = readdir(d))) {
        if (entry->d_name[0] == '.' || (pattern && fnmatch(pattern, entry->d_name, 0) != 0))
            continue;
        if ((rc = file_join(path, sizeof path, directory, entry->d_name, e)) == OK && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode))
            rc = add_path(f, path, e);
    }
    closedir(d);
    if (rc == OK && f->count)
        qsort(f->paths, f->count, sizeof *f->paths, by_path);
    return rc;
}

/* Keeps those whose names say `wanted`; 0: those that do not say SAYS_TEST. */
static void keep_part(struct data_files *f, int wanted)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->count; i++) {
        const int said = says(f->paths[i]);

        if (wanted ? said == wanted : said != SAYS_TEST)
            f->paths[kept++] = f->paths[i];
        else
            free(f->paths[i]);
    }
    f->count = kept;
}

int data_files_list(struct data_files *out, const char *directory, enum dataset_split split,
                    const struct dataset_reading *how, struct error *e)
{
    const char *pattern = split == DATASET_TRAIN ? how->train_files : how->test_files;
    const char *option = split == DATASET_TRAIN ? "--train-files" : "--test-files";
    int all = 0, rc;
    struct stat st;

    *out = (struct data_files){ 0 };
    if (stat(directory, &st) < 0)
        return error_system(e, "%s: cannot be read", directory);
    if (!S_ISDIR(st.st_mode))
        return pattern ? error_set(e, ERR_ARG, "%s %s: %s is a file; give its directory as --data-dir", option, pattern,
                                   directory)
                       : add_path(out, directory, e);
    if ((rc = list_all(out, directory, pattern, e)) < 0)
        return rc;
    if (pattern && !out->count)
        return error_set(e, ERR_ARG, "%s %s: no file in %s matches", option, pattern, directory);
    if (pattern)
        return OK;
    for (size_t i = 0; i < out->count; i++)
        all |= says(out->paths[i]);
    if (all && split == DATASET_TRAIN)
        keep_part(out, all & SAYS_TRAIN ? SAYS_TRAIN : 0);
    else if (all)
        keep_part(out, SAYS_TEST);
    if (!out->count)
        return error_set(e, ERR_ARG, "%s: no files%s%s; %s takes those that match a pattern", directory,
                         all ? " with " : "",
                         !all                     ? ""
                         : split == DATASET_TRAIN ? "\"train\" in their names"
                                                  : "\"test\" or \"val\" in their names",
                         option);
    return OK;
}

void data_files_release(struct data_files *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->paths[i]);
    free(f->paths);
    *f = (struct data_files){ 0 };
}
