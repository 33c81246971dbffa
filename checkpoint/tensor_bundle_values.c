/*
 * Whole tensors of an open checkpoint: read in pieces and checked, joined from slices, converted. It knows entries and
 * pieces, but not files.
 */
#include "checkpoint/tensor_bundle.h"

#include "checkpoint/string_tensor.h"
#include "checkpoint/tensor_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 18 }; /* tensors are read, and their CRC is computed, in pieces that stay in the cache */

/* Reads the stored bytes of an entry without slices, and their CRC; out holds entry->size bytes. */
static int read_stored(const struct tensor_bundle *b, const struct tensor_entry *entry, void *out, struct error *e)
{
    size_t size = (size_t)entry->size;
    struct error why = { 0 };
    uint32_t crc = 0;
    int rc;

    for (size_t at = 0; at < size; at += PIECE)
        if ((rc = tensor_bundle_read_piece(b, entry, at, (char *)out + at, size - at < PIECE ? size - at : PIECE, &crc,
                                           e)) != OK)
            return rc;
    if (entry->type == TENSOR_STRING && string_tensor_check(out, size, entry->elements, &crc, &why) != OK)
        return tensor_bundle_bad_tensor(b, entry, why.message, e);
    return tensor_bundle_check_crc(b, entry, crc, e);
}

/* Copies a slice into the full tensor, or reads it directly if it is one run of bytes. */
static int read_slice(const struct tensor_bundle *b, const struct tensor_entry *full, size_t i, char *out,
                      struct error *e)
{
    const int64_t *start = full->slice[i].start;
    const struct tensor_entry *part;
    int64_t index[TENSOR_RANK_MAX] = { 0 };
    size_t run = tensor_type_size(full->type), runs = 1, to = 0;
    int cut = full->rank - 1, rc;
    char *bytes = NULL;

    if ((rc = tensor_bundle_find_slice(b, full, i, &part, e)) != OK || !part->elements)
        return rc;
    /* Dimensions after `cut` are whole, so a run is their product times the slice's length in `cut`. */
    while (cut >= 0 && part->shape[cut] == full->shape[cut])
        run *= (size_t)part->shape[cut--];
    if (cut >= 0)
        run *= (size_t)part->shape[cut];
    for (int d = 0; d < cut; d++)
        runs *= (size_t)part->shape[d];
    if (runs > 1 && !(bytes = malloc((size_t)part->size)))
        return error_memory(e, tensor_bundle_prefix(b), "for a slice of tensor %s", full->name);
    for (size_t r = 0; r < runs; r++) {
        to = 0;
        for (int d = 0; d < full->rank; d++)
            to = to * (size_t)full->shape[d] + (size_t)(start[d] + index[d]);
        to *= tensor_type_size(full->type);
        if (r == 0 && (rc = read_stored(b, part, bytes ? bytes : out + to, e)) != OK)
            break;
        if (bytes)
            memcpy(out + to, bytes + r * run, run);
        for (int d = cut - 1; d >= 0 && ++index[d] == part->shape[d]; d--)
            index[d] = 0;
    }
    free(bytes);
    return rc;
}

uint64_t tensor_entry_bytes(const struct tensor_entry *entry)
{
    return entry->slices ? entry->elements * tensor_type_size(entry->type) : (uint64_t)entry->size;
}

int tensor_bundle_read(struct tensor_bundle *b, const struct tensor_entry *entry, void *out, size_t bytes,
                       struct error *e)
{
    int rc = OK;

    if (entry->type == TENSOR_VARIANT || (entry->slices && !tensor_type_size(entry->type)))
        return error_set(e, ERR_ARG, "%s: tensor %s: reading %s is not supported", tensor_bundle_prefix(b), entry->name,
                         entry->slices ? "slices of strings" : "variants");
    if (bytes != tensor_entry_bytes(entry))
        return error_set(e, ERR_ARG, "%s: tensor %s has %llu bytes, not %zu", tensor_bundle_prefix(b), entry->name,
                         (unsigned long long)tensor_entry_bytes(entry), bytes);
    if (!entry->slices)
        return read_stored(b, entry, out, e);
    for (size_t i = 0; i < entry->slices && rc == OK; i++)
        rc = read_slice(b, entry, i, out, e);
    return rc;
}

int tensor_bundle_read_float(struct tensor_bundle *b, const struct tensor_entry *entry, float *out, size_t count,
                             struct error *e)
{
    size_t each = tensor_type_size(entry->type);
    char *bytes;
    int rc;

    if (!tensor_type_is_float(entry->type))
        return error_set(e, ERR_ARG, "%s: tensor %s is %s, not a floating-point type", tensor_bundle_prefix(b),
                         entry->name, tensor_type_name(entry->type));
    if (count != entry->elements)
        return error_set(e, ERR_ARG, "%s: tensor %s has %llu elements, not %zu", tensor_bundle_prefix(b), entry->name,
                         (unsigned long long)entry->elements, count);
    if (entry->type == TENSOR_FLOAT)
        return tensor_bundle_read(b, entry, out, count * each, e);
    if (!(bytes = calloc(count + 1, each))) /* slices of a damaged bundle may leave gaps */
        return error_memory(e, tensor_bundle_prefix(b), "for tensor %s", entry->name);
    rc = tensor_bundle_read(b, entry, bytes, count * each, e);
    if (rc == OK)
        tensor_floats(entry->type, bytes, count, out);
    free(bytes);
    return rc;
}

int tensor_bundle_read_integer(struct tensor_bundle *b, const struct tensor_entry *entry, int64_t *out, struct error *e)
{
    uint8_t bytes[8];
    double v;
    int rc;

    if (entry->elements != 1 || (entry->type != TENSOR_INT64 && entry->type != TENSOR_INT32 &&
                                 entry->type != TENSOR_FLOAT && entry->type != TENSOR_DOUBLE))
        return error_set(e, ERR_ARG, "%s: tensor %s (%s, %llu elements) is not an integer scalar",
                         tensor_bundle_prefix(b), entry->name, tensor_type_name(entry->type),
                         (unsigned long long)entry->elements);
    if ((rc = tensor_bundle_read(b, entry, bytes, tensor_type_size(entry->type), e)) != OK)
        return rc;
    if (tensor_kind(entry->type) == TENSOR_KIND_SIGNED) {
        *out = (int64_t)tensor_integer(entry->type, bytes);
        return OK;
    }
    tensor_values(entry->type, bytes, 1, &v);
    if (!(fabs(v) < 0x1p63) || v != floor(v))
        return error_set(e, ERR_ARG, "%s: tensor %s holds %g, which is not an integer", tensor_bundle_prefix(b),
                         entry->name, v);
    *out = (int64_t)v;
    return OK;
}
