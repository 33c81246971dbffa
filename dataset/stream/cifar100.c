/*
 * cifar100.c - CIFAR-100 in its binary version: train.bin and test.bin of 3074 bytes a record, a coarse label (0..19),
 * a fine one (0..99), then 1024 red, 1024 green and 1024 blue bytes; and the names in fine_label_names.txt and
 * coarse_label_names.txt, one per line. (https://www.cs.toronto.edu/~kriz/cifar.html)
 */
#include "dataset/stream/fixed_dataset.h"

#include "base/buffer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD = 3074, SIDE = 32, NAMES_BYTES_MAX = 1 << 16 };

/* Finds the classes' names in text, one per line, `classes` of them, into names. 0: it has fewer, or empty ones. */
static int split_lines(char *text, int classes, const char **names)
{
    for (int i = 0; i < classes; i++) {
        char *end = strchrnul(text, '\n');
        const int last = !*end;

        *end = '\0';
        if (end > text && end[-1] == '\r')
            end[-1] = '\0';
        if (!*text)
            return 0;
        names[i] = text;
        text = last ? end : end + 1;
    }
    return 1;
}

/* Without the file classes have no names. */
static int read_names(struct dataset_owned *o, const char *directory, const char *file, int classes, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    const char **names;
    int rc = file_join(path, sizeof path, directory, file, e);

    if (rc < 0 || access(path, F_OK) < 0)
        return rc;
    if ((rc = file_read(path, NAMES_BYTES_MAX, &text, e)) == OK) {
        if (!(o->names = names = malloc((size_t)classes * sizeof *names + text.length + 1))) {
            rc = error_memory(e, path, "for it");
        } else {
            char *copy = (char *)(names + classes);

            memcpy(copy, buffer_text(&text), text.length);
            copy[text.length] = '\0';
            if (!split_lines(copy, classes, names))
                rc = error_set(e, ERR_CORRUPT, "%s: needs the names of %d classes, one on each line", path, classes);
            o->d.class_names = names;
        }
    }
    buffer_release(&text);
    return rc;
}

static int read_cifar100(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                         enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                         struct error *e)
{
    const int fine = kind->classes == 100;
    const struct fixed_layout layout = { .bytes = RECORD,
                                         .label_at = fine ? 1 : 0,
                                         .label_bytes = 1,
                                         .input_at = 2,
                                         .height = SIDE,
                                         .width = SIDE,
                                         .channels = 3,
                                         .planar = 1 };
    const char *name = split == DATASET_TRAIN ? "train.bin" : "test.bin";
    char below[PATH_MAX], path[PATH_MAX], *paths[] = { path };
    const struct data_files files = { paths, 1, 1 };
    int rc;

    if ((rc = file_join(path, sizeof path, directory, name, e)) < 0)
        return rc;
    if (access(path, F_OK) < 0 && file_join(below, sizeof below, directory, "cifar-100-binary", NULL) == OK &&
        access(below, F_OK) == 0) {
        directory = below;
        if ((rc = file_join(path, sizeof path, directory, name, e)) < 0)
            return rc;
    }
    if (access(path, F_OK) < 0)
        return error_system(e, "%s: no such file; %s", path, kind->how_to_get);
    if ((rc = read_names(o, directory, fine ? "fine_label_names.txt" : "coarse_label_names.txt", kind->classes, e)) < 0)
        return rc;
    return fixed_dataset_open(o, &layout, &files, kind->classes, split, shard, how, e);
}

#define HOW_TO_GET \
    "it needs train.bin and test.bin, as unpacked from https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"

const struct dataset_kind dataset_kind_cifar100 = {
    .how_to_get = HOW_TO_GET,
    .files = { 1, 1 },
    .classes = 100,
    .read = read_cifar100,
};

const struct dataset_kind dataset_kind_cifar100_coarse = {
    .how_to_get = HOW_TO_GET,
    .files = { 1, 1 },
    .classes = 20,
    .read = read_cifar100,
};
