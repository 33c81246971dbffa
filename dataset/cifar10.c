#include "dataset/cifar10.h"

#include "base/file.h"
#include "dataset/dataset_kind.h"
#include "dataset/stream/fixed_dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TRAIN_FILES = 5,
    META_BYTES_MAX = 4096,
};

int cifar10_decode_names(const char *text, size_t n, const char *name, char names[CIFAR10_CLASSES][CIFAR10_NAME_MAX],
                         struct error *e)
{
    size_t at = 0;

    for (int i = 0; i < CIFAR10_CLASSES; i++) {
        const char *line = text + at;
        const char *end = at < n ? memchr(line, '\n', n - at) : NULL;
        size_t whole = end ? (size_t)(end - line) : n - at, length = whole;

        if (length && line[length - 1] == '\r')
            length--;
        if (length == 0 || length >= CIFAR10_NAME_MAX || memchr(line, '\0', length))
            return error_set(e, ERR_CORRUPT,
                             "%s: byte %zu: line %d is not a class name (1 to %d bytes); need %d lines with one each",
                             name, at, i + 1, CIFAR10_NAME_MAX - 1, CIFAR10_CLASSES);
        memcpy(names[i], line, length);
        names[i][length] = '\0';
        at += whole + (end ? 1 : 0);
    }
    return OK;
}

int cifar10_check_size(const char *path, struct error *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return error_system(e, "%s: cannot open", path);
    if (!S_ISREG(st.st_mode))
        return error_set(e, ERR_IO, "%s: not a file", path);
    if (st.st_size == 0 || st.st_size % CIFAR10_RECORD)
        return error_set(e, ERR_CORRUPT,
                         "%s: byte %lld: the file ends here, but its length is not a multiple of %d, the size of a "
                         "record of binary CIFAR-10; get the file again",
                         path, (long long)st.st_size, CIFAR10_RECORD);
    return OK;
}

/* The directory with the files: `directory`, or the one in it that its archive unpacks to. */
static int find_files(const char *directory, const char *first, const struct dataset_kind *kind, char *out, size_t size,
                      struct error *e)
{
    static const char *const below[] = { ".", "cifar-10-batches-bin" };
    char path[PATH_MAX];

    for (size_t i = 0; i < 2; i++) {
        if (i == 0 ? snprintf(out, size, "%s", directory) >= (int)size
                   : file_join(out, size, directory, below[i], e) < 0)
            return error_set(e, ERR_ARG, "%.100s...: path too long", directory);
        if (file_join(path, sizeof path, out, first, e) < 0)
            return ERR_ARG;
        if (access(path, F_OK) == 0)
            return OK;
    }
    error_set(e, ERR_IO, "%s: no file %s here nor in %s/ below it; %s", directory, first, below[1], kind->how_to_get);
    if (e)
        e->system = ENOENT;
    return ERR_IO;
}

static int read_class_names(struct dataset_owned *o, const char *directory, struct error *e)
{
    struct class_names {
        char text[CIFAR10_CLASSES][CIFAR10_NAME_MAX];
        const char *list[CIFAR10_CLASSES];
    } * names;
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, directory, "batches.meta.txt", e);

    if (rc < 0 || access(path, F_OK) < 0)
        return rc; /* without the file the well-known names are used */
    if (!(o->names = names = malloc(sizeof *names)))
        return error_memory(e, path, "for it");
    if ((rc = file_read(path, META_BYTES_MAX, &text, e)) == OK)
        rc = cifar10_decode_names(buffer_text(&text), text.length, path, names->text, e);
    for (int i = 0; rc == OK && i < CIFAR10_CLASSES; i++)
        names->list[i] = names->text[i];
    o->d.class_names = names->list;
    buffer_release(&text);
    return rc;
}

static int read_cifar10(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                        enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                        struct error *e)
{
    static const char *const train_files[TRAIN_FILES] = {
        "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
    };
    static const char *const test_files[] = { "test_batch.bin" };
    static const struct fixed_layout layout = { .bytes = CIFAR10_RECORD,
                                                .label_bytes = 1,
                                                .input_at = 1,
                                                .height = CIFAR10_SIDE,
                                                .width = CIFAR10_SIDE,
                                                .channels = 3,
                                                .planar = 1 };
    const char *const *names = split == DATASET_TRAIN ? train_files : test_files;
    char where[PATH_MAX], path[TRAIN_FILES][PATH_MAX], *paths[TRAIN_FILES];
    const struct data_files files = { paths, (size_t)kind->files[split], (size_t)kind->files[split] };
    struct error why = { 0 };
    int rc;

    if ((rc = find_files(directory, names[0], kind, where, sizeof where, e)) < 0 ||
        (rc = read_class_names(o, where, e)) < 0)
        return rc;
    for (size_t f = 0; f < files.count; f++) {
        paths[f] = path[f];
        if ((rc = file_join(path[f], sizeof path[f], where, names[f], e)) < 0)
            return rc;
        if (!how->skip_bad && shard_has_file(shard, f, files.count) && (rc = cifar10_check_size(path[f], e)) < 0)
            return rc;
    }
    if ((rc = fixed_dataset_open(o, &layout, &files, kind->classes, split, shard, how, &why)) == ERR_CORRUPT)
        return error_set(e, rc, "%.400s; is this CIFAR-10 in its binary version?", why.message);
    return rc < 0 ? error_copy(e, &why) : OK;
}

const struct dataset_kind dataset_kind_cifar10 = {
    .how_to_get = "it needs data_batch_1.bin to data_batch_5.bin and test_batch.bin, as unpacked from "
                  "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    .files = { TRAIN_FILES, 1 },
    .classes = CIFAR10_CLASSES,
    .class_names = (const char *const[]){ "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
                                          "ship", "truck" },
    .read = read_cifar10,
};
