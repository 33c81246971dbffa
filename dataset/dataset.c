#include "dataset/dataset.h"

#include "base/file.h"
#include "base/program/options.h"
#include "dataset/cifar10.h"
#include "dataset/mnist.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CLASSES = 10, TRAIN_FILES = 5, META_BYTES_MAX = 4096 };

/* A data set with the memory it owns. */
struct owned {
    struct dataset d; /* first: what the caller sees */
    uint8_t *images, *labels;
    char names[CLASSES][CIFAR10_NAME_MAX]; /* where they were read from a file */
    const char *name_list[CLASSES];
};

struct kind {
    const char *name;
    const char *usual_place; /* NULL: there is none */
    const char *how_to_get;
    const char *class_names[CLASSES];
    int (*read)(struct owned *o, const struct kind *kind, const char *directory, enum dataset_split split,
                const struct shard *shard, struct error *e);
};

/* --shard files: a worker takes the files f of the sorted list with f mod count = index; at least one. */
static int check_files(const struct kind *kind, const struct shard *shard, int files, struct error *e)
{
    if (shard->kind == SHARD_FILES && shard->index >= files)
        return error_set(e, ERR_ARG, "worker %d of %d has no file: the data of %s is %d file%s; use at most"
                         " %d worker%s, or share single records instead of files", shard->index, shard->count,
                         kind->name, files, files == 1 ? "" : "s", files, files == 1 ? "" : "s");
    return OK;
}

static int has_file(const struct shard *shard, int file)
{
    return shard->kind == SHARD_RECORDS || file % shard->count == shard->index;
}

static int read_mnist(struct owned *o, const struct kind *kind, const char *directory, enum dataset_split split,
                      const struct shard *shard, struct error *e)
{
    struct mnist m;
    int rc = check_files(kind, shard, 1, e);

    if (rc < 0 || (rc = mnist_read(&m, directory, split == DATASET_TRAIN, CLASSES, kind->how_to_get, e)) < 0)
        return rc;
    o->images = m.images;
    o->labels = m.labels;
    o->d.count = m.count;
    o->d.height = m.height;
    o->d.width = m.width;
    o->d.channels = 1;
    return OK;
}

/* The directory that holds the files: `directory` or what its archive unpacks to in it. */
static int find_cifar10(const char *directory, const char *first, const struct kind *kind, char *out, size_t size,
                        struct error *e)
{
    static const char *const below[] = { ".", "cifar-10-batches-bin" };
    char path[PATH_MAX];
    struct stat st;

    if (stat(directory, &st) < 0)
        return error_system(e, "%s: no data directory here (%s)", directory, kind->how_to_get);
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

static int read_class_names(struct owned *o, const char *directory, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, directory, "batches.meta.txt", e);

    if (rc < 0 || access(path, F_OK) < 0)
        return rc; /* without the file the names everybody knows stay */
    if ((rc = file_read(path, META_BYTES_MAX, &text, e)) == OK)
        rc = cifar10_decode_names(buffer_text(&text), text.length, path, o->names, e);
    for (int i = 0; rc == OK && i < CLASSES; i++)
        o->name_list[i] = o->names[i];
    buffer_release(&text);
    return rc;
}

static int read_cifar10(struct owned *o, const struct kind *kind, const char *directory, enum dataset_split split,
                        const struct shard *shard, struct error *e)
{
    static const char *const train_files[TRAIN_FILES] = {
        "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
    };
    static const char *const test_files[] = { "test_batch.bin" };
    const char *const *names = split == DATASET_TRAIN ? train_files : test_files;
    int files = split == DATASET_TRAIN ? TRAIN_FILES : 1, rc;
    char where[PATH_MAX], path[TRAIN_FILES][PATH_MAX];
    size_t count[TRAIN_FILES] = { 0 }, total = 0, done = 0;

    if ((rc = check_files(kind, shard, files, e)) < 0 ||
        (rc = find_cifar10(directory, names[0], kind, where, sizeof where, e)) < 0 ||
        (rc = read_class_names(o, where, e)) < 0)
        return rc;
    for (int f = 0; f < files; f++) {
        if (!has_file(shard, f))
            continue;
        if ((rc = file_join(path[f], sizeof path[f], where, names[f], e)) < 0 ||
            (rc = cifar10_count(path[f], &count[f], e)) < 0)
            return rc;
        if (count[f] > UINT32_MAX - total)
            return error_set(e, ERR_CORRUPT, "%s: more records than any CIFAR-10 has", path[f]);
        total += count[f];
    }
    o->images = total > SIZE_MAX / CIFAR10_IMAGE ? NULL : malloc(total * CIFAR10_IMAGE);
    o->labels = malloc(total);
    if (!o->images || !o->labels)
        return error_memory(e, where, "for %zu images", total);
    for (int f = 0; f < files; f++) {
        if (count[f] == 0)
            continue;
        if ((rc = cifar10_read(path[f], count[f], o->images + done * CIFAR10_IMAGE, o->labels + done, e)) < 0)
            return rc;
        done += count[f];
    }
    o->d.count = total;
    o->d.height = o->d.width = CIFAR10_SIDE;
    o->d.channels = 3;
    return OK;
}

static const struct kind kinds[] = {
    { "mnist", NULL, "it needs the files of MNIST, from https://storage.googleapis.com/cvdf-datasets/mnist/",
      { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" }, read_mnist },
    { "fashion-mnist", "/usr/share/datasets/fashion-mnist",
      "it needs the files of Fashion-MNIST; on Debian: apt-get install dataset-fashion-mnist, then leave the directory"
      " out",
      { "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot" },
      read_mnist },
    { "cifar10", NULL,
      "it needs data_batch_1.bin to data_batch_5.bin and test_batch.bin, as unpacked from"
      " https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
      { "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck" }, read_cifar10 },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *const kind_names[KINDS + 1] = { "mnist", "fashion-mnist", "cifar10", NULL };

const char *const *dataset_names(void)
{
    return kind_names;
}

static const struct kind *find_kind(const char *name, struct error *e)
{
    const char *near;

    for (size_t i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    near = options_nearest(name, kind_names, KINDS);
    error_set(e, ERR_ARG, "unknown data set \"%.60s\"%s%s%s; known: mnist, fashion-mnist, cifar10", name,
              near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    return NULL;
}

int dataset_open(struct dataset **out, const char *name, const char *directory, enum dataset_split split,
                 const struct shard *shard, struct error *e)
{
    static const struct shard everything = { SHARD_RECORDS, 1, 0 };
    const struct kind *kind;
    struct owned *o;
    int rc;

    *out = NULL;
    if (!shard)
        shard = &everything;
    if (!(kind = find_kind(name, e)))
        return ERR_ARG;
    if (shard->count < 1 || shard->index < 0 || shard->index >= shard->count)
        return error_set(e, ERR_ARG, "worker %d of %d cannot be: numbers go from 0 to the count less one", shard->index,
                         shard->count);
    if (!directory || !*directory)
        directory = kind->usual_place;
    if (!directory)
        return error_set(e, ERR_ARG, "%s has no usual place, so its directory must be given; %s", kind->name,
                         kind->how_to_get);
    if (!(o = calloc(1, sizeof *o)))
        return error_memory(e, directory, "for it");
    for (int i = 0; i < CLASSES; i++)
        o->name_list[i] = kind->class_names[i];
    if ((rc = kind->read(o, kind, directory, split, shard, e)) < 0) {
        dataset_free(&o->d);
        return rc;
    }
    snprintf(o->d.name, sizeof o->d.name, "%s", kind->name);
    o->d.classes = CLASSES;
    o->d.images = o->images;
    o->d.labels = o->labels;
    o->d.class_names = o->name_list;
    *out = &o->d;
    return OK;
}

void dataset_free(struct dataset *d)
{
    struct owned *o = (struct owned *)(void *)d; /* d is its first member */

    if (!o)
        return;
    free(o->images);
    free(o->labels);
    free(o);
}
