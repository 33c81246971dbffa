#include "dataset/captions/feature_table.h"

#include "base/file.h"
#include "checkpoint/safetensors.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char features_name[] = "features", ids_name[] = "image_id";

struct row_place {
    int64_t id;
    size_t row;
};

struct feature_table {
    char path[PATH_MAX];
    int fd;
    uint64_t begin; /* byte of the first row in the file */
    size_t rows, width;
    struct row_place *places; /* (rows) in the order of their ids */
};

static int row_by_id(const void *a, const void *b)
{
    const struct row_place *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static const struct safetensors_tensor *find_tensor(const struct safetensors_header *h, const char *name,
                                                    const char *dtype, int rank)
{
    for (size_t i = 0; i < h->count; i++)
        if (!strcmp(h->tensors[i].name, name))
            return h->tensors[i].rank == rank && !strcmp(h->tensors[i].dtype, dtype) ? &h->tensors[i] : NULL;
    return NULL;
}

static int take_ids(struct feature_table *t, const struct safetensors *s, const struct safetensors_tensor *tensor,
                    struct error *e)
{
    int64_t *ids = malloc(t->rows * sizeof *ids + 1);
    int rc;

    t->places = calloc(t->rows + 1, sizeof *t->places);
    rc = ids && t->places ? safetensors_read(s, tensor, 0, ids, t->rows * sizeof *ids, e)
                          : error_memory(e, t->path, "for the ids of %zu images", t->rows);
    for (size_t i = 0; rc == OK && i < t->rows; i++)
        t->places[i] = (struct row_place){ ids[i], i };
    free(ids);
    if (rc < 0)
        return rc;
    qsort(t->places, t->rows, sizeof *t->places, row_by_id);
    for (size_t i = 1; i < t->rows; i++)
        if (t->places[i].id == t->places[i - 1].id)
            return error_set(e, ERR_CORRUPT, "%s: rows %zu and %zu are of the same image, %lld", t->path,
                             t->places[i - 1].row, t->places[i].row, (long long)t->places[i].id);
    return OK;
}

static int take_tensors(struct feature_table *t, const struct safetensors *s, struct error *e)
{
    const struct safetensors_header *h = safetensors_contents(s);
    const struct safetensors_tensor *features = find_tensor(h, features_name, "F32", 2);
    const struct safetensors_tensor *ids = find_tensor(h, ids_name, "I64", 1);
    unsigned char head[SAFETENSORS_HEAD];
    uint64_t length = 0;

    if (!features || !ids || features->shape[0] != ids->shape[0])
        return error_set(e, ERR_CORRUPT,
                         "%s: must have \"features\", F32 of (images, width), and \"image_id\", I64 of (images)",
                         t->path);
    if (features->shape[0] < 1 || features->shape[1] < 1 || features->shape[1] > FEATURE_TABLE_WIDTH_MAX)
        return error_set(e, ERR_CORRUPT, "%s: has %lld rows of %lld features; must be at least 1 of 1 to %d", t->path,
                         (long long)features->shape[0], (long long)features->shape[1], FEATURE_TABLE_WIDTH_MAX);
    if ((t->fd = open(t->path, O_RDONLY | O_CLOEXEC)) < 0 || file_read_at(t->fd, head, sizeof head, 0) != sizeof head)
        return error_system(e, "%s: cannot be read", t->path);
    for (size_t i = sizeof head; i-- > 0;)
        length = length << 8 | head[i];
    t->begin = SAFETENSORS_HEAD + length + features->begin;
    t->rows = (size_t)features->shape[0];
    t->width = (size_t)features->shape[1];
    return take_ids(t, s, ids, e);
}

int feature_table_open(struct feature_table **out, const char *path, struct error *e)
{
    struct feature_table *t = calloc(1, sizeof *t);
    struct safetensors *s = NULL;
    int rc;

    *out = NULL;
    if (!t)
        return error_memory(e, path, "to read it");
    t->fd = -1;
    if (snprintf(t->path, sizeof t->path, "%s", path) >= (int)sizeof t->path)
        rc = error_set(e, ERR_ARG, "%.100s...: path too long", path);
    else if ((rc = safetensors_open(&s, path, e)) == OK)
        rc = take_tensors(t, s, e);
    safetensors_close(s);
    if (rc < 0) {
        feature_table_close(t);
        return rc;
    }
    *out = t;
    return OK;
}

void feature_table_close(struct feature_table *t)
{
    if (!t)
        return;
    if (t->fd >= 0)
        close(t->fd);
    free(t->places);
    free(t);
}

size_t feature_table_width(const struct feature_table *t)
{
    return t->width;
}

int feature_table_find(const struct feature_table *t, int64_t image_id, size_t *row)
{
    size_t low = 0, high = t->rows;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (t->places[middle].id < image_id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == t->rows || t->places[low].id != image_id)
        return 0;
    *row = t->places[low].row;
    return 1;
}

int feature_table_read(const struct feature_table *t, size_t row, float *out, struct error *e)
{
    const size_t bytes = t->width * sizeof *out;
    const ssize_t n = file_read_at(t->fd, out, bytes, t->begin + row * bytes);

    if (n < 0)
        return error_system(e, "%s: row %zu cannot be read", t->path, row);
    if ((size_t)n < bytes)
        return error_set(e, ERR_CORRUPT, "%s: ends in row %zu; it has become shorter", t->path, row);
    for (size_t k = 0; k < t->width; k++)
        if (!isfinite(out[k]))
            return error_set(e, ERR_CORRUPT, "%s: row %zu: feature %zu is not finite", t->path, row, k);
    return OK;
}

int feature_table_write(const char *path, const float *features, const int64_t *image_ids, size_t rows, size_t width,
                        struct error *e)
{
    const int64_t shape[] = { (int64_t)rows, (int64_t)width };
    struct safetensors_tensor tensors[] = {
        { .name = features_name, .name_length = sizeof features_name - 1, .dtype = "F32", .rank = 2, .shape = shape },
        { .name = ids_name, .name_length = sizeof ids_name - 1, .dtype = "I64", .rank = 1, .shape = shape },
    };
    struct safetensors_writer *w = NULL;
    int rc = safetensors_layout(tensors, 2, e);

    if (rc < 0 || (rc = safetensors_writer_open(&w, NULL, path, tensors, 2, NULL, 0, e)) < 0)
        return rc;
    for (int i = 0; i < 2 && rc == OK; i++)
        rc = tensors[i].rank == 2 ? safetensors_writer_append(w, features, rows * width * sizeof *features, e)
                                  : safetensors_writer_append(w, image_ids, rows * sizeof *image_ids, e);
    if (rc == OK)
        return safetensors_writer_finish(w, e);
    safetensors_writer_abandon(w);
    return rc;
}
