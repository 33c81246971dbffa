/*
 * idx_files.c - idx files of any shape as a data set: of the files of a part (data_files.h), the one of rank 1 has the
 * labels, integers of any width, and the other one the samples: (count, width), (count, height, width) or (count,
 * height, width, channels). Bytes are pixels; numbers of other types go to the model as they are, in float32.
 *
 * Samples stay on disk, unless the file is gzipped: then they are unpacked into memory.
 */
#include "dataset/stream/data_files.h"
#include "dataset/stream/fixed_records.h"
#include "dataset/stream/streamed.h"

#include "base/bytes.h"
#include "dataset/idx.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_MAX = 4 + 4 * IDX_RANK_MAX, SIDE_MOST = 1 << 20 };

/* The head of an idx file. */
struct idx_head {
    const char *path;
    int gzipped, rank, type;
};

static enum fixed_type type_of(int type)
{
    return type == IDX_INT8     ? FIXED_INT8
           : type == IDX_INT16  ? FIXED_INT16_BIG
           : type == IDX_INT32  ? FIXED_INT32_BIG
           : type == IDX_FLOAT  ? FIXED_FLOAT_BIG
           : type == IDX_DOUBLE ? FIXED_DOUBLE_BIG
                                : FIXED_UINT8;
}

/* Gzipped files are read as a whole here: *whole is then the caller's. */
static int read_head(struct idx_head *out, const char *path, struct idx *whole, struct error *e)
{
    uint8_t head[4];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : file_read_at(fd, head, sizeof head, 0);
    int rc = got < 0 ? error_system(e, "%s: cannot open", path) : OK;

    if (fd >= 0)
        close(fd);
    *out = (struct idx_head){ .path = path };
    if (rc < 0)
        return rc;
    out->gzipped = got >= 2 && head[0] == 0x1f && head[1] == 0x8b;
    if (out->gzipped) {
        if ((rc = idx_read(whole, path, e)) < 0)
            return rc;
        out->rank = whole->rank;
        out->type = whole->type;
        return OK;
    }
    if (got < 4 || head[0] || head[1] || !strchr("\x08\x09\x0b\x0c\x0d\x0e", head[2]) || !head[2] || head[3] < 1 ||
        head[3] > IDX_RANK_MAX)
        return error_set(e, ERR_CORRUPT, "%s: byte 0: not an idx header; need 00 00, a type and a rank of 1 to %d",
                         path, IDX_RANK_MAX);
    out->type = head[2];
    out->rank = head[3];
    return OK;
}

/* Finds the labels and the samples among the files of a part. */
static int find_pair(const struct data_files *files, struct idx *labels, struct idx *samples,
                     struct idx_head *of_samples, struct error *e)
{
    struct idx_head head = { 0 }, of_labels = { 0 };
    int rc = OK;

    *of_samples = head;
    for (size_t i = 0; i < files->count && rc == OK; i++) {
        struct idx whole = { 0 };

        rc = read_head(&head, files->paths[i], &whole, e);
        if (rc == OK && (head.rank == 1 ? of_labels : *of_samples).path)
            rc = error_set(e, ERR_ARG,
                           "%s and %s both have %s; one file of labels and one of samples make a part (--train-files, "
                           "--test-files)",
                           (head.rank == 1 ? of_labels : *of_samples).path, file_base_name(head.path),
                           head.rank == 1 ? "labels" : "samples");
        if (rc == OK && head.rank == 1) {
            of_labels = head;
            if (!head.gzipped)
                rc = idx_read(&whole, head.path, e);
            *labels = whole;
        } else if (rc == OK) {
            *of_samples = head;
            *samples = whole;
        } else {
            idx_release(&whole);
        }
    }
    if (rc == OK && (!of_labels.path || !of_samples->path))
        rc = error_set(e, ERR_ARG, "%s: no idx file of %s beside it; a part is one of labels and one of samples",
                       files->paths[0], of_labels.path ? "samples" : "labels");
    return rc;
}

/* The classes of all samples, *classes of them, 0: as many as there are. */
static int take_labels(const struct idx *x, const struct dataset_reading *how, int32_t **out, int *classes,
                       struct error *e)
{
    const size_t n = x->size[0], width = n ? x->bytes / n : 0;
    const int64_t most = how->classes ? how->classes : DATASET_CLASSES_MAX;
    int32_t *labels = *out = malloc((n ? n : 1) * sizeof *labels);

    if (!labels)
        return error_memory(e, NULL, "for %zu labels", n);
    *classes = how->classes;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = x->data + i * width;
        const int64_t label = (x->type == IDX_UINT8   ? p[0]
                               : x->type == IDX_INT8  ? (int8_t)p[0]
                               : x->type == IDX_INT16 ? (int16_t)(p[0] << 8 | p[1])
                               : x->type == IDX_INT32 ? (int32_t)get_be32(p)
                                                      : INT64_MIN / 2) -
                              how->first_label;

        if (label < 0 || label >= most)
            return error_set(e, ERR_CORRUPT, "label %lld of sample %zu is not in %lld..%lld%s",
                             (long long)(label + how->first_label), i, (long long)how->first_label,
                             (long long)(how->first_label + most - 1),
                             width > 4 || x->type == IDX_FLOAT ? "; labels must be integers" : "");
        labels[i] = (int32_t)label;
        if (!how->classes && labels[i] >= *classes)
            *classes = labels[i] + 1;
    }
    return OK;
}

/* Height, width and channels from the sizes of a header. */
static int take_shape(struct dataset *d, const char *path, int rank, const uint32_t *size, struct error *e)
{
    for (int i = 1; i < rank; i++)
        if (size[i] == 0 || size[i] > SIDE_MOST)
            return error_set(e, ERR_CORRUPT, "%s: byte 4: samples with a size of %u cannot be used", path, size[i]);
    d->height = rank > 2 ? (int)size[1] : 1;
    d->width = (int)size[rank > 2 ? 2 : 1];
    d->channels = rank > 3 ? (int)size[3] : 1;
    if (dataset_width(d) > SIDE_MOST * 64u)
        return error_set(e, ERR_CORRUPT, "%s: byte 4: samples of %dx%dx%d are too large", path, d->height, d->width,
                         d->channels);
    return OK;
}

static int unequal(const char *path, size_t samples, size_t labels, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s: byte 4: %zu samples, but the file beside it has %zu labels", path, samples,
                     labels);
}

/* Unpacked samples become those of a data set in memory. */
static int take_unpacked(struct dataset_owned *o, const struct idx_head *head, struct idx *x, size_t labels,
                         struct error *e)
{
    const enum fixed_type type = type_of(x->type);
    const size_t n = x->bytes / fixed_type_size(type);
    int rc = take_shape(&o->d, head->path, x->rank, x->size, e);

    if (rc == OK && x->size[0] != labels)
        rc = unequal(head->path, x->size[0], labels, e);
    if (rc < 0)
        return rc;
    o->d.count = labels;
    if (type == FIXED_UINT8) {
        o->input = x->data;
        x->data = NULL;
        return OK;
    }
    if (!(o->input = malloc((n ? n : 1) * sizeof(float))))
        return error_memory(e, head->path, "for %zu numbers", n);
    fixed_type_floats(type, x->data, n, o->input);
    return OK;
}

/* Samples of a file as it is stay there. */
static int take_stored(struct dataset_owned *o, const struct idx_head *head, size_t labels, enum dataset_split split,
                       const struct dataset_reading *how, struct error *e)
{
    static const struct sample_stream_format format = { fixed_records_read, fixed_records_free };
    const size_t header = 4 + 4 * (size_t)head->rank;
    uint32_t size[IDX_RANK_MAX] = { 0 };
    struct fixed_records *x;
    struct fixed_layout layout;
    uint8_t bytes[HEADER_MAX];
    const int fd = open(head->path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : file_read_at(fd, bytes, header, 0);
    int rc;

    if (fd >= 0)
        close(fd);
    if (got < (ssize_t)header)
        return got < 0
                   ? error_system(e, "%s: cannot read", head->path)
                   : error_set(e, ERR_CORRUPT, "%s: byte %zd: the file ends inside the idx header", head->path, got);
    for (int i = 0; i < head->rank; i++)
        size[i] = get_be32(bytes + 4 + 4 * i);
    if ((rc = take_shape(&o->d, head->path, head->rank, size, e)) < 0)
        return rc;
    if (size[0] != labels)
        return unequal(head->path, size[0], labels, e);
    layout = (struct fixed_layout){ .bytes = dataset_width(&o->d) * fixed_type_size(type_of(head->type)),
                                    .height = o->d.height,
                                    .width = o->d.width,
                                    .channels = o->d.channels,
                                    .type = type_of(head->type) };
    if ((rc = fixed_records_open(&x, &layout, &head->path, 1, header, e)) < 0)
        return rc;
    if (fixed_records_count(x) != labels) {
        rc = error_set(e, ERR_CORRUPT, "%s: its header promises %zu samples, but %zu are in it; get the file again",
                       head->path, labels, fixed_records_count(x));
        fixed_records_free(x);
        return rc;
    }
    return streamed_take(o, &format, x, labels, split, how, e);
}

/* As many classes as the labels of the training part need; 0: there is no such part. */
static int classes_in_training(const char *directory, const struct dataset_reading *how, struct error *e)
{
    struct idx labels = { 0 }, samples = { 0 };
    struct error why = { 0 };
    struct idx_head head;
    struct data_files files;
    int32_t *classes = NULL;
    int count = 0, rc = data_files_list(&files, directory, DATASET_TRAIN, how, &why);

    if (rc == OK && (rc = find_pair(&files, &labels, &samples, &head, &why)) == OK)
        rc = take_labels(&labels, how, &classes, &count, &why);
    free(classes);
    idx_release(&labels);
    idx_release(&samples);
    data_files_release(&files);
    return rc == OK ? count : rc == ERR_ARG ? 0 : error_copy(e, &why);
}

static int read_idx_files(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                          enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                          struct error *e)
{
    struct idx labels = { 0 }, samples = { 0 };
    struct dataset_reading reading = *how;
    struct data_files files = { 0 };
    struct idx_head head = { 0 };
    int32_t *classes = NULL;
    int rc = OK;

    (void)kind;
    if (shard->kind == SHARD_FILES && shard->count > 1)
        return error_set(e, ERR_ARG, "--shard files: idx has one file of samples; use --shard records");
    if (!how->classes && split == DATASET_TEST)
        rc = reading.classes = classes_in_training(directory, how, e);
    if (rc >= 0 && (rc = data_files_list(&files, directory, split, how, e)) == OK &&
        (rc = find_pair(&files, &labels, &samples, &head, e)) == OK) {
        if ((rc = take_labels(&labels, &reading, &classes, &o->d.classes, e)) < 0)
            error_prefix(e, "the labels beside %s", head.path);
        o->labels = classes;
        o->d.labels.element = ELEMENT_INT32;
        o->d.element = type_of(head.type) == FIXED_UINT8 ? ELEMENT_UINT8 : ELEMENT_FLOAT32;
    }
    if (rc == OK) {
        dataset_owned_add_file(o, head.path);
        rc = head.gzipped ? take_unpacked(o, &head, &samples, labels.size[0], e)
                          : take_stored(o, &head, labels.size[0], split, how, e);
    }
    if (rc == OK && o->d.count == 0)
        rc = error_set(e, ERR_ARG, "%s: no samples", head.path);
    idx_release(&labels);
    idx_release(&samples);
    data_files_release(&files);
    return rc;
}

const struct dataset_kind dataset_kind_idx = {
    .how_to_get = "it needs idx files: one of labels and one of samples for each part",
    .takes = DATASET_TAKES_FILES | DATASET_TAKES_LABELS,
    .read = read_idx_files,
};
