#include "checkpoint/bundle_check.h"

#include "checkpoint/bundle_entry.h"
#include "checkpoint/tensor_stream.h"

#include <limits.h>
#include <stdlib.h>

enum { PIECE = 1 << 18 };

/* all entries with bytes of their own */
struct stored {
    const struct tensor_entry **items;
    size_t count;
};

static int compare_places(const void *a, const void *b)
{
    const struct tensor_entry *x = *(const struct tensor_entry *const *)a;
    const struct tensor_entry *y = *(const struct tensor_entry *const *)b;

    if (x->shard != y->shard)
        return (x->shard > y->shard) - (x->shard < y->shard);
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int list_stored(const struct tensor_bundle *b, struct stored *out, struct error *e)
{
    size_t slices = tensor_bundle_slice_count(b), whole = tensor_bundle_count(b);

    out->count = 0;
    if (!(out->items = malloc((slices + whole + 1) * sizeof(struct tensor_entry *))))
        return error_memory(e, NULL, "to list the tensors");
    for (size_t i = 0; i < slices; i++)
        if (!tensor_bundle_slice(b, i)->slices)
            out->items[out->count++] = tensor_bundle_slice(b, i);
    for (size_t i = 0; i < whole; i++)
        if (!tensor_bundle_entry(b, i)->slices)
            out->items[out->count++] = tensor_bundle_entry(b, i);
    return OK;
}

/* Checks that the tensors of a shard do not overlap. */
static void check_overlaps(struct bundle_check *c, const struct tensor_bundle *b, struct stored *all)
{
    const struct tensor_entry *before = NULL; /* the one that ends furthest so far */
    char path[PATH_MAX];

    if (all->count)
        qsort(all->items, all->count, sizeof *all->items, compare_places);
    for (size_t i = 0; i < all->count; i++) {
        const struct tensor_entry *entry = all->items[i];
        struct error e = { 0 };

        if (!entry->size)
            continue;
        if (before && before->shard == entry->shard && entry->offset < before->offset + before->size &&
            tensor_bundle_shard_path(b, entry->shard, path, sizeof path, &e) == OK) {
            error_set(&e, ERR_CORRUPT, "%s: tensor %s begins at byte %lld, inside tensor %s, which ends at %lld", path,
                      bundle_entry_label(entry), (long long)entry->offset, bundle_entry_label(before),
                      (long long)(before->offset + before->size));
            c->problem(c->context, &e);
        }
        if (!before || before->shard != entry->shard || entry->offset + entry->size > before->offset + before->size)
            before = entry;
    }
}

static int compare_addresses(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const struct tensor_entry *const *)a;
    uintptr_t y = (uintptr_t) * (const struct tensor_entry *const *)b;

    return (x > y) - (x < y);
}

int bundle_loose_slices(const struct tensor_bundle *b, bundle_loose_slice *visit, void *context, struct error *e)
{
    const struct tensor_entry **known, *slice;
    size_t count = 0, used = 0;

    if (!tensor_bundle_slice_count(b))
        return OK;
    for (size_t i = 0; i < tensor_bundle_count(b); i++)
        count += tensor_bundle_entry(b, i)->slices;
    if (!(known = malloc((count + 1) * sizeof(struct tensor_entry *))))
        return error_memory(e, NULL, "to list the slices");
    for (size_t i = 0; i < tensor_bundle_count(b); i++)
        for (size_t k = 0; k < tensor_bundle_entry(b, i)->slices; k++)
            if (tensor_bundle_find_slice(b, tensor_bundle_entry(b, i), k, &slice, NULL) == OK)
                known[used++] = slice;
    qsort(known, used, sizeof *known, compare_addresses);
    for (size_t i = 0; i < tensor_bundle_slice_count(b); i++) {
        slice = tensor_bundle_slice(b, i);
        if (!bsearch(&slice, known, used, sizeof *known, compare_addresses))
            visit(context, slice);
    }
    free(known);
    return OK;
}

struct checking {
    struct bundle_check *check;
    const struct tensor_bundle *bundle;
};

/* A key or a name is damaged. */
static void take_loose_slice(void *context, const struct tensor_entry *slice)
{
    struct checking *checking = context;
    struct error why = { 0 };

    error_set(&why, ERR_CORRUPT, "%s.index: no variable lists this slice of %s", tensor_bundle_prefix(checking->bundle),
              bundle_entry_label(slice));
    checking->check->problem(checking->check->context, &why);
}

/* piece: PIECE bytes of room. */
static int check_bytes(struct tensor_bundle *b, const struct tensor_entry *entry, char *piece, struct error *e)
{
    struct tensor_stream *stream;
    size_t got = 0;
    int rc = tensor_stream_open(&stream, b, entry, e);

    if (rc != OK)
        return rc;
    while ((rc = tensor_stream_read(stream, piece, PIECE, &got, e)) == OK && got)
        ;
    tensor_stream_close(stream);
    return rc;
}

static void check_entry(struct bundle_check *c, struct tensor_bundle *b, const struct tensor_entry *entry, char *piece)
{
    struct error why = { 0 };

    c->tensors++;
    if ((!tensor_type_size(entry->type) || entry->type == TENSOR_E8M0) && entry->type != TENSOR_STRING &&
        entry->type != TENSOR_VARIANT)
        error_set(&why, ERR_CORRUPT, "%s.index: tensor %s: dtype %d (%s) cannot be stored in a checkpoint",
                  tensor_bundle_prefix(b), bundle_entry_label(entry), entry->type, tensor_type_name(entry->type));
    /* Missing and short shards were reported when the bundle was opened. */
    else if ((uint64_t)(entry->offset + entry->size) > tensor_bundle_shard_size(b, entry->shard))
        return;
    else if (check_bytes(b, entry, piece, &why) == OK)
        c->bytes += (uint64_t)entry->size;
    if (why.code != OK)
        c->problem(c->context, &why);
}

int bundle_check(struct bundle_check *c, struct tensor_bundle *b, struct error *e)
{
    struct checking checking = { c, b };
    struct stored all = { NULL, 0 };
    char *piece = malloc(PIECE);
    int rc;

    c->tensors = c->bytes = 0;
    if (!piece)
        return error_memory(e, NULL, "to read");
    if ((rc = list_stored(b, &all, e)) == OK && (rc = bundle_loose_slices(b, take_loose_slice, &checking, e)) == OK) {
        check_overlaps(c, b, &all);
        for (size_t i = 0; i < all.count; i++)
            if (!c->wanted || c->wanted(c->context, bundle_entry_label(all.items[i])))
                check_entry(c, b, all.items[i], piece);
    }
    free(all.items);
    free(piece);
    return rc;
}
