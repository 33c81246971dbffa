/* fuzz_directory.h - the directory in which a harness writes its files: in memory where it can be, removed at exit. */
#ifndef TESTS_FUZZ_FUZZ_DIRECTORY_H
#define TESTS_FUZZ_FUZZ_DIRECTORY_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char fuzz_directory_path[64];

static void fuzz_directory_remove(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf '%s'", fuzz_directory_path);
    if (system(command) != 0)
        abort();
}

/* Its path; the first call makes it. Borrowed. */
static inline const char *fuzz_directory(void)
{
    if (*fuzz_directory_path)
        return fuzz_directory_path;
    snprintf(fuzz_directory_path, sizeof fuzz_directory_path, "%s/evalboard-fuzz-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(fuzz_directory_path))
        abort();
    atexit(fuzz_directory_remove);
    return fuzz_directory_path;
}

static int fuzz_directory_take_away(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

/* Removes a folder in it with all that is there. */
static inline void fuzz_directory_empty(const char *path)
{
    if (nftw(path, fuzz_directory_take_away, 8, FTW_DEPTH | FTW_PHYS) < 0)
        abort();
}

#endif
