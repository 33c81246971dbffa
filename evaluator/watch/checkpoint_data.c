#include "evaluator/watch/checkpoint_data.h"

#include "evaluator/files/file_stamp.h"
#include "evaluator/files/opened_checkpoint.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* of one incomplete checkpoint */
struct data_files {
    struct sighting *item;
    uint64_t sum;
    double newest;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct data_files *)a)->item->name, ((const struct data_files *)b)->item->name);
}

static void add_data_file(int directory_fd, const char *file, struct data_files *files, size_t count)
{
    const char *mark = strstr(file, ".data-"), *next;
    char name[NAME_MAX + 1];
    struct sighting key_item = { .name = name };
    struct data_files key = { .item = &key_item }, *found;
    struct stat st;

    while (mark && (next = strstr(mark + 1, ".data-"))) /* the last one: the name itself may contain this text */
        mark = next;
    if (!mark || snprintf(name, sizeof name, "%.*s", (int)(mark - file), file) >= (int)sizeof name ||
        !(found = bsearch(&key, files, count, sizeof *files, by_name)) || fstatat(directory_fd, file, &st, 0) < 0)
        return;
    found->sum += file_stamp(&st);
    if (file_stamp_changed(&st) > found->newest)
        found->newest = file_stamp_changed(&st);
}

int checkpoint_data_look(struct sightings *s, int directory_fd, double now, double wall, struct error *e)
{
    size_t count = 0, incomplete = sightings_incomplete(s);
    struct data_files *files;
    struct dirent *entry;
    DIR *d = NULL;
    int fd;

    if (!incomplete)
        return OK;
    if (!(files = calloc(incomplete, sizeof *files)))
        return error_memory(e, NULL, "for %zu checkpoints that are not whole", incomplete);
    if ((fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 || !(d = fdopendir(fd))) {
        if (fd >= 0)
            close(fd);
        free(files);
        return OK; /* deleted meanwhile: the next look will notice */
    }
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].kind == CHECKPOINT_BUNDLE && sighting_incomplete(&s->items[i]))
            files[count++] = (struct data_files){ &s->items[i], 1, 0 }; /* 0 would mean: not looked yet */
    qsort(files, count, sizeof *files, by_name);
    while ((entry = readdir(d)))
        add_data_file(directory_fd, entry->d_name, files, count);
    closedir(d);
    for (size_t i = 0; i < count; i++)
        sighting_data(files[i].item, files[i].sum ? files[i].sum : 1,
                      files[i].newest > 0 ? wall - files[i].newest : wall, now);
    free(files);
    return OK;
}
