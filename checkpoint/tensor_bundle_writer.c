/*
 * Writes a TensorFlow V2 checkpoint of one shard, with the same bytes as TensorFlow's own writer for the same tensors
 * in the same order. Order of writes: data and index to temporary names, fsync of both; data renamed, index renamed,
 * fsync of the directory. So an index that can be seen has its data, whenever the process or the machine stops.
 *
 * Temporary names are fixed, not random: what a killed process left is taken over by the run that saves the step again.
 */
#include "checkpoint/tensor_bundle.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/unfinished.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/data_file.h"
#include "checkpoint/saved_slices.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARED = 1 << 20 }; /* from this size on, a thread for the CRC saves more than starting it costs */

/* a future entry of the index */
struct item {
    struct buffer key; /* as in the index */
    char *name;
    struct tensor_entry entry;
    int64_t *shape;        /* rank numbers, or NULL */
    struct buffer extents; /* partitioned: per slice rank starts, then rank lengths, as int64_t */
};

struct tensor_bundle_writer {
    const struct io *io;
    char *prefix;
    char data_path[PATH_MAX], data_temporary[PATH_MAX], index_path[PATH_MAX], index_temporary[PATH_MAX];
    struct unfinished *unfinished[2]; /* of data and index */
    struct data_file *data;
    int64_t offset; /* where the next tensor goes */
    struct item **items;
    size_t count, room;
    struct item *partitioned; /* the one a slice was added to last */
    struct item *begun;       /* the one that is appended to */
    uint64_t begun_left;      /* bytes that it still needs */
    uint32_t begun_crc;
    int use_thread;
};

static void item_free(struct item *item)
{
    if (!item)
        return;
    buffer_release(&item->key);
    buffer_release(&item->extents);
    free(item->name);
    free(item->shape);
    free(item);
}

static void writer_free(struct tensor_bundle_writer *w)
{
    unfinished_end(w->unfinished[0]);
    unfinished_end(w->unfinished[1]);
    for (size_t i = 0; i < w->count; i++)
        item_free(w->items[i]);
    free(w->items);
    data_file_free(w->data);
    free(w->prefix);
    free(w);
}

int tensor_bundle_writer_open(struct tensor_bundle_writer **out, const struct io *io, const char *prefix,
                              struct error *e)
{
    struct tensor_bundle_writer *w = calloc(1, sizeof *w);
    int n, rc;

    *out = NULL;
    if (!w || !(w->prefix = strdup(prefix))) {
        free(w);
        return error_memory(e, prefix, "to write it");
    }
    w->io = io ? io : &io_real;
    /* The longest name last: if it fits, all do. */
    snprintf(w->index_path, PATH_MAX, "%s.index", prefix);
    snprintf(w->index_temporary, PATH_MAX, "%s.index.tempstate0", prefix);
    snprintf(w->data_path, PATH_MAX, "%s.data-00000-of-00001", prefix);
    n = snprintf(w->data_temporary, PATH_MAX, "%s.data-00000-of-00001.tempstate0", prefix);
    if (n >= PATH_MAX) {
        writer_free(w);
        return error_set(e, ERR_ARG, "%s: path too long", prefix);
    }
    w->unfinished[0] = unfinished_begin(AT_FDCWD, w->data_temporary);
    if ((rc = data_file_create(&w->data, w->io, w->data_temporary, e)) != OK) {
        writer_free(w);
        return rc;
    }
    *out = w;
    return OK;
}

void tensor_bundle_writer_use_thread(struct tensor_bundle_writer *w, int use)
{
    w->use_thread = use;
}

/* ---- adding ---------------------------------------------------------------------------------------------------- */

/* A new item whose key is its name, held by nobody yet; NULL without memory, which keep_item() says. */
static struct item *item_new(const char *name, int type, int rank, const int64_t *shape)
{
    struct item *item = calloc(1, sizeof *item);

    if (!item || !(item->name = strdup(name)) || !(item->shape = malloc(((size_t)rank + 1) * sizeof *item->shape))) {
        item_free(item);
        return NULL;
    }
    if (rank)
        memcpy(item->shape, shape, (size_t)rank * sizeof *shape);
    buffer_append_text(&item->key, name);
    item->entry = (struct tensor_entry){
        .name = item->name, .name_length = strlen(name), .type = type, .rank = rank, .shape = item->shape
    };
    return item;
}

static int keep_item(struct tensor_bundle_writer *w, struct item *item, struct error *e)
{
    if (!item || !buffer_ok(&item->key) || !ARRAY_ROOM(w->items, w->room, w->count + 1)) {
        item_free(item);
        return error_memory(e, w->prefix, "for one more tensor");
    }
    w->items[w->count++] = item;
    return OK;
}

static int check_arguments(const char *name, int rank, const int64_t *shape, uint64_t *elements, struct error *e)
{
    if (!*name)
        return error_set(e, ERR_ARG, "a tensor needs a name");
    if (rank < 0 || rank > TENSOR_RANK_MAX)
        return error_set(e, ERR_ARG, "tensor %s: rank %d", name, rank);
    if (bundle_shape_elements(rank, shape, elements) != OK)
        return error_set(e, ERR_ARG, "tensor %s: its shape has a negative or too large dimension", name);
    return OK;
}

/* Nothing can be added while a tensor waits for the rest of its bytes. */
static int check_begun(const struct tensor_bundle_writer *w, struct error *e)
{
    const int rc = data_file_error(w->data, e);

    if (rc == OK && w->begun_left)
        return error_set(e, ERR_ARG, "tensor %s: %llu of its bytes are missing", w->begun->name,
                         (unsigned long long)w->begun_left);
    return rc;
}

/* the work of the second thread */
struct sum {
    const void *bytes;
    size_t n;
    uint32_t crc;
};

static void *add_up(void *context)
{
    struct sum *s = context;

    s->crc = crc32c_extend(s->crc, s->bytes, s->n);
    return NULL;
}

static int write_with_crc(struct tensor_bundle_writer *w, const void *bytes, size_t n, uint32_t *crc, struct error *e)
{
    struct sum s = { bytes, n, *crc };
    pthread_t thread;
    int rc;

    if (!w->use_thread || n < SHARED || pthread_create(&thread, NULL, add_up, &s) != 0)
        return data_file_append(w->data, bytes, n, crc, e);
    rc = data_file_append(w->data, bytes, n, NULL, e);
    pthread_join(thread, NULL);
    *crc = s.crc;
    return rc;
}

/* Takes the item over as the entry of the next n bytes, all of which are to be appended before the next one begins. */
static int begin_item(struct tensor_bundle_writer *w, struct item *item, uint64_t n, struct error *e)
{
    int rc = check_begun(w, e);

    if (rc != OK) {
        item_free(item);
        return rc;
    }
    if ((rc = keep_item(w, item, e)) != OK)
        return rc;
    bundle_shape_elements(item->entry.rank, item->shape, &item->entry.elements);
    item->entry.offset = w->offset;
    item->entry.size = (int64_t)n;
    item->entry.crc = crc32c_mask(0);
    w->begun = item;
    w->begun_left = n;
    w->begun_crc = 0;
    return OK;
}

int tensor_bundle_writer_begin(struct tensor_bundle_writer *w, const char *name, int type, int rank,
                               const int64_t *shape, struct error *e)
{
    size_t each = tensor_type_size(type);
    uint64_t elements;
    int rc;

    if ((rc = check_arguments(name, rank, shape, &elements, e)) != OK || (rc = check_begun(w, e)) != OK)
        return rc;
    if (!each)
        return error_set(e, ERR_ARG, "tensor %s: type %d (%s) has no fixed size", name, type, tensor_type_name(type));
    if (elements > (uint64_t)(INT64_MAX - w->offset) / each)
        return error_set(e, ERR_ARG, "tensor %s: more bytes than a file can hold", name);
    return begin_item(w, item_new(name, type, rank, shape), elements * each, e);
}

int tensor_bundle_writer_append(struct tensor_bundle_writer *w, const void *bytes, size_t n, struct error *e)
{
    int rc;

    if ((rc = data_file_error(w->data, e)) != OK)
        return rc;
    if (!w->begun || n > w->begun_left)
        return error_set(e, ERR_ARG, "tensor %s: more bytes than its type and shape need",
                         w->begun ? w->begun->name : "?");
    if ((rc = write_with_crc(w, bytes, n, &w->begun_crc, e)) != OK)
        return rc;
    w->offset += (int64_t)n;
    w->begun_left -= n;
    w->begun->entry.crc = crc32c_mask(w->begun_crc);
    return OK;
}

int tensor_bundle_writer_add(struct tensor_bundle_writer *w, const char *name, int type, int rank, const int64_t *shape,
                             const void *bytes, size_t n, struct error *e)
{
    const size_t each = tensor_type_size(type);
    uint64_t elements;
    int rc;

    if ((rc = check_arguments(name, rank, shape, &elements, e)) != OK)
        return rc;
    if (each && (n / each != elements || n % each))
        return error_set(e, ERR_ARG, "tensor %s: %zu bytes do not match its shape of %llu elements of %zu", name, n,
                         (unsigned long long)elements, each);
    rc = tensor_bundle_writer_begin(w, name, type, rank, shape, e);
    return rc == OK ? tensor_bundle_writer_append(w, bytes, n, e) : rc;
}

int tensor_bundle_writer_add_strings(struct tensor_bundle_writer *w, const char *name, int rank, const int64_t *shape,
                                     const struct tensor_string *strings, size_t count, struct error *e)
{
    struct buffer stored = BUFFER_EMPTY;
    uint64_t elements;
    uint32_t crc;
    int rc;

    if ((rc = check_arguments(name, rank, shape, &elements, e)) != OK)
        return rc;
    if (elements != count)
        return error_set(e, ERR_ARG, "tensor %s: %zu strings do not match its shape of %llu elements", name, count,
                         (unsigned long long)elements);
    crc = string_tensor_encode(&stored, strings, count);
    if (!buffer_ok(&stored))
        rc = error_memory(e, w->prefix, "for tensor %s", name);
    else if ((rc = begin_item(w, item_new(name, TENSOR_STRING, rank, shape), stored.length, e)) == OK)
        rc = tensor_bundle_writer_append(w, stored.data, stored.length, e);
    if (rc == OK)
        w->begun->entry.crc = crc32c_mask(crc); /* not that of the plain bytes */
    buffer_release(&stored);
    return rc;
}

/* The item of the whole variable, made at its first slice. */
static int find_partitioned(struct tensor_bundle_writer *w, const char *name, int type, int rank, const int64_t *shape,
                            struct item **out, struct error *e)
{
    struct item *item = w->partitioned && strcmp(w->partitioned->name, name) == 0 ? w->partitioned : NULL;
    int rc;

    for (size_t i = 0; i < w->count && !item; i++)
        if (w->items[i]->entry.slices && strcmp(w->items[i]->name, name) == 0)
            item = w->items[i];
    if (item && (item->entry.type != type || item->entry.rank != rank ||
                 (rank && memcmp(item->shape, shape, (size_t)rank * sizeof *shape) != 0)))
        return error_set(e, ERR_ARG, "tensor %s: an earlier slice had another type or shape", name);
    if (!item) {
        item = item_new(name, type, rank, shape);
        if ((rc = keep_item(w, item, e)) != OK)
            return rc;
        bundle_shape_elements(rank, shape, &item->entry.elements);
    }
    *out = w->partitioned = item;
    return OK;
}

static int check_slice(const char *name, int type, int rank, const int64_t *shape, const int64_t *start,
                       const int64_t *length, int64_t *part, size_t n, struct error *e)
{
    uint64_t elements;

    for (int d = 0; d < rank; d++) {
        part[d] = length[d] < 0 ? shape[d] : length[d];
        if (start[d] < 0 || (length[d] < 0 && start[d]) || part[d] > shape[d] - start[d])
            return error_set(e, ERR_ARG, "tensor %s: a slice does not lie within dimension %d of size %lld", name, d,
                             (long long)shape[d]);
    }
    if (!tensor_type_size(type))
        return error_set(e, ERR_ARG, "tensor %s: type %d (%s) has no fixed size", name, type, tensor_type_name(type));
    if (bundle_shape_elements(rank, part, &elements) != OK || n / tensor_type_size(type) != elements ||
        n % tensor_type_size(type))
        return error_set(e, ERR_ARG, "tensor %s: %zu bytes do not match the shape of the slice", name, n);
    return OK;
}

int tensor_bundle_writer_add_slice(struct tensor_bundle_writer *w, const char *name, int type, int rank,
                                   const int64_t *shape, const int64_t *start, const int64_t *length, const void *bytes,
                                   size_t n, struct error *e)
{
    int64_t part[TENSOR_RANK_MAX];
    struct item *item, *whole = NULL;
    uint64_t elements;
    int rc;

    if ((rc = check_arguments(name, rank, shape, &elements, e)) != OK ||
        (rc = check_slice(name, type, rank, shape, start, length, part, n, e)) != OK ||
        (rc = find_partitioned(w, name, type, rank, shape, &whole, e)) != OK)
        return rc;
    buffer_append(&whole->extents, start, (size_t)rank * sizeof *start);
    buffer_append(&whole->extents, length, (size_t)rank * sizeof *length);
    whole->entry.slices++;
    if ((item = item_new(name, type, rank, part))) {
        buffer_clear(&item->key);
        slice_key_append(&item->key, name, strlen(name), rank, start, length);
    }
    rc = begin_item(w, item, n, e);
    return rc == OK ? tensor_bundle_writer_append(w, bytes, n, e) : rc;
}

/* ---- finishing ------------------------------------------------------------------------------------------------- */

static int compare_items(const void *a, const void *b)
{
    const struct buffer *x = &(*(struct item *const *)a)->key, *y = &(*(struct item *const *)b)->key;

    return bytes_compare(x->data, x->length, y->data, y->length);
}

/* Appends the encoded entry; a partitioned variable gets the slices that were collected. */
static int encode_item(const struct tensor_bundle_writer *w, struct item *item, struct buffer *value, struct error *e)
{
    size_t slices = item->entry.slices, rank = (size_t)item->entry.rank;
    const int64_t *numbers = (const int64_t *)(const void *)item->extents.data;
    struct tensor_slice *slice;
    int rc;

    if (!slices)
        return bundle_entry_encode(value, &item->entry, e);
    if (!(slice = malloc(slices * sizeof *slice)) || !buffer_ok(&item->extents)) {
        free(slice);
        return error_memory(e, w->prefix, "for the slices of tensor %s", item->name);
    }
    for (size_t i = 0; i < slices; i++) {
        slice[i].start = rank ? numbers + 2 * rank * i : item->shape;
        slice[i].length = slice[i].start + rank;
    }
    item->entry.slice = slice;
    if ((rc = bundle_slices_check(w->index_path, &item->entry, e)) == OK)
        rc = bundle_entry_encode(value, &item->entry, e);
    item->entry.slice = NULL;
    free(slice);
    return rc;
}

static int build_index(struct tensor_bundle_writer *w, struct buffer *out, struct error *e)
{
    struct buffer value = BUFFER_EMPTY;
    struct table_builder table;
    int rc = OK;

    if (w->count)
        qsort(w->items, w->count, sizeof *w->items, compare_items);
    table_builder_init(&table, out);
    bundle_header_encode(&value, 1);
    if (!buffer_ok(&value))
        rc = error_memory(e, w->prefix, "for its header");
    table_builder_add(&table, "", 0, buffer_text(&value), value.length);
    for (size_t i = 0; i < w->count && rc == OK; i++) {
        struct item *item = w->items[i];

        if (i && compare_items(&w->items[i - 1], &w->items[i]) == 0) {
            rc = error_set(e, ERR_ARG, "%s: tensor %s was added twice", w->prefix, item->name);
            break;
        }
        buffer_clear(&value);
        if ((rc = encode_item(w, item, &value, e)) == OK)
            table_builder_add(&table, item->key.data, item->key.length, buffer_text(&value), value.length);
    }
    if (rc == OK)
        rc = table_builder_finish(&table, e);
    table_builder_release(&table);
    buffer_release(&value);
    return rc;
}

static int write_index(struct tensor_bundle_writer *w, const struct buffer *index, struct error *e)
{
    int fd, rc;

    w->unfinished[1] = unfinished_begin(AT_FDCWD, w->index_temporary);
    unlink(w->index_temporary);
    fd = w->io->open(w->io->context, w->index_temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd < 0)
        return error_system(e, "%s: cannot create", w->index_temporary);
    if (io_write_full(w->io, fd, index->data, index->length) < 0)
        rc = error_system(e, "%s: cannot write", w->index_temporary);
    else
        rc = w->io->fsync(w->io->context, fd) < 0 ? error_system(e, "%s: cannot sync", w->index_temporary) : OK;
    if (w->io->close(w->io->context, fd) < 0 && rc == OK)
        rc = error_system(e, "%s: cannot close", w->index_temporary);
    return rc;
}

/* Renames data and index to their final names. An old index with other contents is removed first. */
static int make_visible(struct tensor_bundle_writer *w, const struct buffer *index, struct error *e)
{
    struct buffer old = BUFFER_EMPTY;
    int rc = OK, there = access(w->index_path, F_OK) == 0, same;

    same = there && file_read(w->index_path, index->length, &old, NULL) == OK && old.length == index->length &&
           memcmp(old.data, index->data, old.length) == 0;
    buffer_release(&old);
    if (there && !same) {
        if (w->io->unlink(w->io->context, w->index_path) < 0 && errno != ENOENT)
            return error_system(e, "%s: cannot remove the old index", w->index_path);
        if ((rc = file_sync_parent(w->io, w->index_path, e)) != OK)
            return rc;
    }
    if (w->io->rename(w->io->context, w->data_temporary, w->data_path) < 0)
        return error_system(e, "%s: cannot rename to %s", w->data_temporary, w->data_path);
    if (w->io->rename(w->io->context, w->index_temporary, w->index_path) < 0) {
        rc = error_system(e, "%s: cannot rename to %s", w->index_temporary, w->index_path);
        if (!same)
            unlink(w->data_path); /* without an index it belongs to no checkpoint */
        return rc;
    }
    return file_sync_parent(w->io, w->index_path, e);
}

int tensor_bundle_writer_finish(struct tensor_bundle_writer *w, struct error *e)
{
    struct buffer index = BUFFER_EMPTY;
    int rc;

    if ((rc = check_begun(w, e)) == OK && (rc = build_index(w, &index, e)) == OK &&
        (rc = data_file_finish(w->data, e)) == OK && (rc = write_index(w, &index, e)) == OK)
        rc = make_visible(w, &index, e);
    buffer_release(&index);
    if (rc != OK) {
        tensor_bundle_writer_abandon(w);
        return rc;
    }
    writer_free(w);
    return OK;
}

void tensor_bundle_writer_abandon(struct tensor_bundle_writer *w)
{
    if (!w)
        return;
    unlink(w->data_temporary);
    unlink(w->index_temporary);
    writer_free(w);
}
