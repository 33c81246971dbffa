/*
 * mnist.c - data sets in MNIST's shape: {train,t10k}-{images-idx3,labels-idx1}-ubyte, with '-' or '.' before "idx",
 * gzipped (.gz) or not. MNIST, Fashion-MNIST and others that use these names.
 */
#include "dataset/dataset_kind.h"

#include "base/file.h"
#include "dataset/idx.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The path of the first existing one of PART-idxN-ubyte, PART.idxN-ubyte, and both with .gz. */
static int find_file(const char *directory, const char *part, int rank, const char *how_to_get, char *path, size_t size,
                     struct error *e)
{
    static const char marks[] = { '-', '.' };
    static const char *const ends[] = { "", ".gz" };
    char name[64];

    for (size_t end = 0; end < 2; end++) {
        for (size_t mark = 0; mark < 2; mark++) {
            snprintf(name, sizeof name, "%s%cidx%d-ubyte%s", part, marks[mark], rank, ends[end]);
            if (file_join(path, size, directory, name, e) < 0)
                return ERR_ARG;
            if (access(path, F_OK) == 0)
                return OK;
        }
    }
    error_set(e, ERR_IO, "%s: no file %s-idx%d-ubyte or %s.idx%d-ubyte here, nor either with .gz; %s", directory, part,
              rank, part, rank, how_to_get);
    if (e)
        e->system = ENOENT;
    return ERR_IO;
}

static int read_part(struct idx *x, const char *directory, const char *part, int rank, const char *how_to_get,
                     char *path, size_t size, struct error *e)
{
    int rc = find_file(directory, part, rank, how_to_get, path, size, e);

    if (rc == OK)
        rc = idx_read(x, path, e);
    if (rc == OK && (x->type != IDX_UINT8 || x->rank != rank))
        rc = error_set(e, ERR_CORRUPT, "%s: byte 0: magic 0000%02x%02x, wanted 0000%02x%02x (bytes in %d dimensions)",
                       path, x->type, x->rank, IDX_UINT8, rank, rank);
    return rc;
}

static int read_mnist(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                      enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                      struct error *e)
{
    const int train = split == DATASET_TRAIN;
    char images_path[PATH_MAX], labels_path[PATH_MAX];
    struct idx images = { 0 }, labels = { 0 };
    int rc;

    (void)how;
    (void)shard;
    if ((rc = read_part(&labels, directory, train ? "train-labels" : "t10k-labels", 1, kind->how_to_get, labels_path,
                        sizeof labels_path, e)) < 0)
        goto done;
    if ((rc = read_part(&images, directory, train ? "train-images" : "t10k-images", 3, kind->how_to_get, images_path,
                        sizeof images_path, e)) < 0)
        goto done;
    if (images.size[0] != labels.size[0]) {
        rc = error_set(e, ERR_CORRUPT, "%s: byte 4: %u images, but %s has %u labels", images_path, images.size[0],
                       file_base_name(labels_path), labels.size[0]);
        goto done;
    }
    if (images.bytes == 0 || images.size[1] > 65535 || images.size[2] > 65535) {
        rc = error_set(e, ERR_CORRUPT, "%s: byte 4: %u images of %ux%u pixels cannot be used", images_path,
                       images.size[0], images.size[1], images.size[2]);
        goto done;
    }
    for (size_t i = 0; i < labels.bytes; i++) {
        if (labels.data[i] >= kind->classes) {
            rc = error_set(e, ERR_CORRUPT, "%s: byte %zu: label %d of image %zu is not in 0..%d%s", labels_path, 8 + i,
                           labels.data[i], i, kind->classes - 1,
                           strstr(labels_path, ".gz") ? " (byte of the unpacked file)" : "");
            goto done;
        }
    }
    dataset_owned_add_file(o, images_path);
    o->input = images.data;
    o->labels = labels.data;
    o->d.count = images.size[0];
    o->d.height = (int)images.size[1];
    o->d.width = (int)images.size[2];
    o->d.channels = 1;
    images.data = labels.data = NULL;
done:
    idx_release(&images);
    idx_release(&labels);
    return rc;
}

const struct dataset_kind dataset_kind_mnist = {
    .how_to_get = "it needs the files of MNIST, from https://storage.googleapis.com/cvdf-datasets/mnist/",
    .files = { 1, 1 },
    .classes = 10,
    .class_names = (const char *const[]){ "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" },
    .read = read_mnist,
};

const struct dataset_kind dataset_kind_fashion_mnist = {
    .usual_place = "/usr/share/datasets/fashion-mnist",
    .how_to_get = "it needs the files of Fashion-MNIST; on Debian: apt-get install dataset-fashion-mnist, then leave "
                  "the directory out",
    .files = { 1, 1 },
    .classes = 10,
    .class_names = (const char *const[]){ "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                                          "Sneaker", "Bag", "Ankle boot" },
    .read = read_mnist,
};
