#include "checkpoint/tensor_stream.h"

#include "base/crc32c.h"
#include "checkpoint/string_tensor.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* a run of the tensor's bytes that is stored as one entry */
struct part {
    uint64_t at;
    const struct tensor_entry *entry;
};

struct tensor_stream {
    struct tensor_bundle *bundle;
    const struct tensor_entry *entry;
    char *held;         /* the whole tensor, if it cannot be read in pieces */
    uint64_t bytes, at; /* of the tensor; read so far */
    struct part *parts; /* ascending */
    size_t count, part; /* parts; the one being read */
    uint64_t part_at;   /* how many of its bytes were read */
    uint32_t crc;       /* of those */
};

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* 1 if the slice is one run of the full tensor's bytes, beginning at *at. */
static int is_run(const struct tensor_entry *full, size_t i, const struct tensor_entry *slice, uint64_t *at)
{
    int cut = full->rank - 1;
    uint64_t element = 0;

    while (cut >= 0 && slice->shape[cut] == full->shape[cut])
        cut--;
    for (int d = 0; d < cut; d++)
        if (slice->shape[d] != 1)
            return 0;
    for (int d = 0; d < full->rank; d++)
        element = element * (uint64_t)full->shape[d] + (uint64_t)full->slice[i].start[d];
    *at = element * tensor_type_size(full->type);
    return 1;
}

/* 1: the parts are listed; 0: the slices are not runs; < 0: an error. */
static int list_parts(struct tensor_stream *s, struct error *e)
{
    const struct tensor_entry *full = s->entry;
    uint64_t at = 0;
    int rc;

    s->parts = malloc((full->slices + 1) * sizeof *s->parts);
    if (!s->parts)
        return error_memory(e, NULL, "for the parts of tensor %s", full->name);
    if (!full->slices)
        s->parts[s->count++] = (struct part){ 0, full };
    for (size_t i = 0; i < full->slices; i++) {
        struct part *part = &s->parts[s->count];

        if ((rc = tensor_bundle_find_slice(s->bundle, full, i, &part->entry, e)) != OK)
            return rc;
        if (part->entry->elements && !is_run(full, i, part->entry, &part->at))
            return 0;
        s->count += part->entry->elements > 0;
    }
    qsort(s->parts, s->count, sizeof *s->parts, compare_parts);
    for (size_t i = 0; i < s->count; i++) {
        if (s->parts[i].at != at && full->slices)
            return 0; /* overlap or gap, which tensor_bundle_open_damaged() lets through: reading the whole tensor is
                       * safe */
        at += (uint64_t)s->parts[i].entry->size;
    }
    return at == s->bytes ? 1 : 0;
}

static int hold_variants(struct tensor_stream *s, struct error *e)
{
    struct error why = { 0 };
    uint32_t crc = 0;
    int rc = tensor_bundle_read_piece(s->bundle, s->entry, 0, s->held, (size_t)s->bytes, &crc, e);

    if (rc != OK)
        return rc;
    if (variant_tensor_check(s->held, (size_t)s->bytes, s->entry->elements, &crc, &why) != OK)
        return tensor_bundle_bad_tensor(s->bundle, s->entry, why.message, e);
    return tensor_bundle_check_crc(s->bundle, s->entry, crc, e);
}

int tensor_stream_open(struct tensor_stream **out, struct tensor_bundle *b, const struct tensor_entry *entry,
                       struct error *e)
{
    struct tensor_stream *s = calloc(1, sizeof *s);
    int in_pieces = 0, rc = OK;

    *out = NULL;
    if (!s)
        return error_memory(e, NULL, "to read tensor %s", entry->name);
    *s = (struct tensor_stream){ .bundle = b, .entry = entry, .bytes = tensor_entry_bytes(entry) };
    if (tensor_type_size(entry->type) && (in_pieces = list_parts(s, e)) < 0) {
        rc = in_pieces;
    } else if (!in_pieces) {
        if (s->bytes >= SIZE_MAX || !(s->held = malloc((size_t)s->bytes + 1)))
            rc = error_memory(e, NULL, "to hold tensor %s, %llu bytes", entry->name, (unsigned long long)s->bytes);
        else if (entry->type == TENSOR_VARIANT && !entry->slices)
            rc = hold_variants(s, e);
        else
            rc = tensor_bundle_read(b, entry, s->held, (size_t)s->bytes, e);
    }
    if (rc != OK) {
        tensor_stream_close(s);
        return rc;
    }
    *out = s;
    return OK;
}

int tensor_stream_read(struct tensor_stream *s, void *out, size_t n, size_t *got, struct error *e)
{
    size_t wanted = n < s->bytes - s->at ? n : (size_t)(s->bytes - s->at), done = 0;
    int rc;

    *got = 0;
    if (s->held) {
        memcpy(out, s->held + s->at, wanted);
        done = wanted;
    }
    /* Empty parts are read too, so that their CRC is checked. */
    while (!s->held && s->part < s->count) {
        const struct tensor_entry *entry = s->parts[s->part].entry;
        uint64_t left = (uint64_t)entry->size - s->part_at;
        size_t piece = left < wanted - done ? (size_t)left : wanted - done;

        if ((rc = tensor_bundle_read_piece(s->bundle, entry, s->part_at, (char *)out + done, piece, &s->crc, e)) != OK)
            return rc;
        done += piece;
        s->part_at += piece;
        if (piece < left)
            break;
        if ((rc = tensor_bundle_check_crc(s->bundle, entry, s->crc, e)) != OK)
            return rc;
        s->part++;
        s->part_at = 0;
        s->crc = 0;
    }
    s->at += done;
    *got = done;
    return OK;
}

void tensor_stream_close(struct tensor_stream *s)
{
    if (!s)
        return;
    free(s->held);
    free(s->parts);
    free(s);
}
