#include "checkpoint/saved_slices.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/table.h"
#include "proto/tensor_bundle.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* ---- slice key --------------------------------------------------------------------------------------------------- */

void slice_key_append_number(struct buffer *out, int64_t v)
{
    uint8_t bytes[10];
    uint64_t magnitude = v < 0 ? ~(uint64_t)v : (uint64_t)v;
    int n = 1;

    while (n < 10 && magnitude >> (7 * n - 1) != 0)
        n++;
    /* Ten bytes are more than the 64 bits of v: the ones in front repeat its sign. */
    for (int i = 0; i < n; i++) {
        int shift = 8 * (n - 1 - i);

        bytes[i] = (uint8_t)(shift < 64 ? (uint64_t)v >> shift : v < 0 ? 0xff : 0);
    }
    for (int bit = 0; bit < n; bit++)
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 0x80 >> bit % 8);
    buffer_append(out, bytes, (size_t)n);
}

void slice_key_append(struct buffer *out, const char *name, size_t name_length, int rank, const int64_t *start,
                      const int64_t *length)
{
    uint8_t bytes[8];
    int n = 0;

    buffer_append_byte(out, 0);
    for (size_t i = 0; i < name_length; i++) {
        uint8_t c = (uint8_t)name[i];

        buffer_append_byte(out, c);
        if (c == 0x00 || c == 0xff)
            buffer_append_byte(out, c ^ 0xff);
    }
    buffer_append(out, "\0\1", 2);
    for (unsigned rest = (unsigned)rank; rest; rest >>= 8)
        n++;
    for (int i = 0; i < n; i++)
        bytes[i] = (uint8_t)((unsigned)rank >> (8 * (n - 1 - i)));
    buffer_append_byte(out, n);
    buffer_append(out, bytes, (size_t)n);
    for (int d = 0; d < rank; d++) {
        slice_key_append_number(out, start[d]);
        slice_key_append_number(out, length[d]);
    }
}

/* ---- saved slices ------------------------------------------------------------------------------------------------ */

enum {
    HALF = TENSOR_HALF,
    COMPLEX64 = 8,
    COMPLEX128 = 18,
    UINT32 = 22,
    UINT64 = 23,
    VALUE_MAX = 1 << 30, /* bytes of a value: TensorFlow's own limit of a message is 2 GiB */
};

typedef TensorBundle__SavedTensorSlices Saved;
typedef TensorBundle__SavedSliceMeta Meta;
typedef TensorBundle__SavedValues Values;
typedef TensorBundle__TensorSliceProto Slice;

/* An entry without bytes, whose slices are those of the table's meta so far. */
struct saved_tensor {
    struct tensor_entry *entry;
    int64_t *numbers; /* start and length of each slice: (slices, 2, rank) */
    size_t slices, room;
    size_t found; /* of the slices, those whose values were read */
};

static const char *name_of(const struct saved_tensor *t)
{
    return bundle_entry_label(t->entry);
}

void saved_slices_release(struct saved_slices *s)
{
    for (size_t i = 0; i < s->tensor_count; i++) {
        free(s->tensors[i].entry);
        free(s->tensors[i].numbers);
    }
    for (size_t i = 0; i < s->entry_count; i++)
        free(s->entries[i]);
    free(s->tensors);
    free(s->entries);
    buffer_release(&s->data);
    memset(s, 0, sizeof *s);
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

/* An entry of its own memory from one that borrows: as if it had been in the index of a V2 checkpoint. */
static int copy_entry(const char *file, const struct tensor_entry *from, struct tensor_entry **out, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    int rc = bundle_entry_encode(&bytes, from, e);

    if (rc == OK && !buffer_ok(&bytes))
        rc = error_memory(e, file, "for tensor %s", bundle_entry_label(from));
    if (rc == OK)
        rc = bundle_entry_decode(file, from->name, from->name_length, bytes.data, bytes.length, 1, out, e);
    buffer_release(&bytes);
    return rc;
}

static int add_entry(struct saved_slices *s, const char *file, const struct tensor_entry *from, struct error *e)
{
    if (!ARRAY_ROOM(s->entries, s->entry_room, s->entry_count + 1))
        return error_memory(e, file, "for its tensors");
    const int rc = copy_entry(file, from, &s->entries[s->entry_count], e);

    s->entry_count += rc == OK;
    return rc;
}

/* ---- meta -------------------------------------------------------------------------------------------------------- */

/* Where the tensor of that name is, or would be. */
static size_t place_of(const struct saved_slices *s, const void *name, size_t n, int *found)
{
    size_t low = 0, high = s->tensor_count;

    *found = 0;
    while (low < high && !*found) {
        const size_t middle = low + (high - low) / 2;
        const struct tensor_entry *at = s->tensors[middle].entry;
        const int order = bytes_compare(at->name, at->name_length, name, n);

        if (order < 0)
            low = middle + 1;
        else
            high = middle;
        if (order == 0) {
            *found = 1;
            low = middle;
        }
    }
    return low;
}

/* start[d], length[d] of a slice; -1: the whole dimension. 0: it has not as many dimensions as the tensor. */
static int take_extents(const Slice *slice, int rank, int64_t *start, int64_t *length)
{
    if (slice->n_extent != (size_t)rank)
        return 0;
    for (int d = 0; d < rank; d++) {
        const TensorBundle__TensorSliceProto__Extent *x = slice->extent[d];
        const int given = x->has_length_case == TENSOR_BUNDLE__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;

        start[d] = x->start;
        length[d] = given ? x->length : -1;
    }
    return 1;
}

static int add_slices(struct saved_tensor *t, const char *file, const Meta *meta, struct error *e)
{
    const size_t rank = (size_t)t->entry->rank;

    for (size_t i = 0; i < meta->n_slice; i++) {
        const size_t wanted = (t->slices + 1) * 2 * rank + 1;

        if (!ARRAY_ROOM(t->numbers, t->room, wanted))
            return error_memory(e, file, "for the slices of tensor %s", name_of(t));
        if (!take_extents(meta->slice[i], (int)rank, t->numbers + t->slices * 2 * rank,
                          t->numbers + (t->slices * 2 + 1) * rank))
            return error_set(e, ERR_CORRUPT, "%s: tensor %s: slice %zu has %zu dimensions, the tensor %zu", file,
                             name_of(t), t->slices, meta->slice[i]->n_extent, rank);
        t->slices++;
    }
    return OK;
}

/* The head of a tensor as an entry that has no bytes. */
static int make_head(const char *file, const Meta *meta, struct tensor_entry **out, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    TensorBundle__BundleEntryProto proto = TENSOR_BUNDLE__BUNDLE_ENTRY_PROTO__INIT;
    Slice whole = TENSOR_BUNDLE__TENSOR_SLICE_PROTO__INIT, *slices[1] = { &whole };
    TensorBundle__TensorSliceProto__Extent extent = TENSOR_BUNDLE__TENSOR_SLICE_PROTO__EXTENT__INIT;
    TensorBundle__TensorSliceProto__Extent *extents[TENSOR_RANK_MAX];
    const size_t rank = meta->shape ? meta->shape->n_dim : 0;
    char *room;
    int rc;

    for (size_t d = 0; d < rank && d < TENSOR_RANK_MAX; d++)
        extents[d] = &extent;
    whole.n_extent = rank < TENSOR_RANK_MAX ? rank : TENSOR_RANK_MAX; /* more are refused */
    whole.extent = extents;
    proto.dtype = meta->type;
    proto.shape = meta->shape;
    proto.n_slices = 1; /* else the size would have to fit */
    proto.slices = slices;
    if ((room = buffer_reserve(&bytes, tensor_bundle__bundle_entry_proto__get_packed_size(&proto) + 1)))
        bytes.length = tensor_bundle__bundle_entry_proto__pack(&proto, (uint8_t *)room);
    rc = room ? bundle_entry_decode(file, meta->name.data, meta->name.len, bytes.data, bytes.length, 1, out, e)
              : error_memory(e, file, "for its tensors");
    buffer_release(&bytes);
    return rc;
}

static int announce_tensor(struct saved_slices *s, const char *file, const Meta *meta, struct error *e)
{
    struct tensor_entry *head;
    int found, rc;

    if (!meta->name.len || !*meta->name.data)
        return error_set(e, ERR_CORRUPT, "%s: a tensor has no name", file);
    if ((rc = make_head(file, meta, &head, e)) != OK)
        return rc;
    const size_t at = place_of(s, meta->name.data, meta->name.len, &found);
    struct saved_tensor *t;

    if (found) { /* the other slices of it are in another shard */
        const struct tensor_entry *known = s->tensors[at].entry;

        if (known->type != head->type || known->rank != head->rank ||
            (head->rank && memcmp(known->shape, head->shape, (size_t)head->rank * sizeof *head->shape) != 0))
            rc = error_set(e, ERR_CORRUPT, "%s: tensor %s has another type or shape in another shard", file,
                           head->name);
        free(head);
    } else if (!ARRAY_ROOM(s->tensors, s->tensor_room, s->tensor_count + 1)) {
        free(head);
        return error_memory(e, file, "for its tensors");
    } else {
        memmove(&s->tensors[at + 1], &s->tensors[at], (s->tensor_count - at) * sizeof *s->tensors);
        s->tensors[at] = (struct saved_tensor){ .entry = head };
        s->tensor_count++;
    }
    t = &s->tensors[at];
    return rc == OK ? add_slices(t, file, meta, e) : rc;
}

static int take_meta(struct saved_slices *s, const char *file, const Saved *saved, struct error *e)
{
    const TensorBundle__VersionDef *version;
    int rc = OK;

    if (!saved->meta)
        return error_set(e, ERR_CORRUPT, "%s: the first value does not say which tensors there are", file);
    version = saved->meta->versions;
    if (version && (rc = bundle_version_check(file, version->producer, version->min_consumer, version->bad_consumers,
                                              version->n_bad_consumers, e)) != OK)
        return rc;
    for (size_t i = 0; i < saved->meta->n_tensor && rc == OK; i++)
        rc = announce_tensor(s, file, saved->meta->tensor[i], e);
    return rc;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The field of a type: how many values it has, of how many bytes in memory, and where. 0: no such type is saved. */
static int field_of(int type, const Values *v, size_t *count, size_t *width, const void **values)
{
#define FIELD(name) (*count = v->n_##name, *width = sizeof *v->name, *values = v->name, 1)
    switch (type) {
    case TENSOR_FLOAT: return FIELD(float_val);
    case TENSOR_DOUBLE: return FIELD(double_val);
    case COMPLEX64: return FIELD(scomplex_val);
    case COMPLEX128: return FIELD(dcomplex_val);
    case TENSOR_INT64: return FIELD(int64_val);
    case UINT64: return FIELD(uint64_val);
    case UINT32: return FIELD(uint32_val);
    case TENSOR_BOOL: return FIELD(bool_val);
    case HALF:
    case TENSOR_BFLOAT16: return FIELD(half_val);
    case TENSOR_INT32:
    case TENSOR_UINT8:
    case 5:  /* int16 */
    case 6:  /* int8 */
    case 11: /* the quantized types */
    case 12:
    case 13:
    case 15:
    case 16:
    case 17: /* uint16 */ return FIELD(int_val);
    default: return 0;
    }
#undef FIELD
}

static int wrong_count(const char *file, const struct tensor_entry *part, uint64_t values, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s: tensor %s has %llu values where its shape has %llu", file,
                     bundle_entry_label(part), (unsigned long long)values, (unsigned long long)part->elements);
}

/* Appends strings as V2 stores them, and sets the entry's CRC. */
static int append_strings(struct saved_slices *s, const char *file, struct tensor_entry *part, const Values *v,
                          struct error *e)
{
    struct tensor_string *strings;
    uint32_t crc;

    if (v->n_string_val != part->elements)
        return wrong_count(file, part, v->n_string_val, e);
    if (!(strings = calloc(v->n_string_val + 1, sizeof *strings)))
        return error_memory(e, file, "for tensor %s", bundle_entry_label(part));
    for (size_t i = 0; i < v->n_string_val; i++)
        strings[i] = (struct tensor_string){ (const char *)v->string_val[i].data, v->string_val[i].len };
    string_tensor_encode(&s->data, strings, v->n_string_val);
    free(strings);
    if (!buffer_ok(&s->data) || string_tensor_check(s->data.data + part->offset, s->data.length - (size_t)part->offset,
                                                    part->elements, &crc, e) != OK)
        return error_memory(e, file, "for tensor %s", bundle_entry_label(part));
    part->crc = crc32c_mask(crc);
    return OK;
}

/* Appends numbers, little-endian: the low bytes of those that are kept wider. */
static int append_numbers(struct saved_slices *s, const char *file, struct tensor_entry *part, const Values *v,
                          struct error *e)
{
    const size_t each = tensor_type_size(part->type);
    size_t count, width;
    const void *values;
    char *out;

    if (!each || !field_of(part->type, v, &count, &width, &values))
        return error_set(e, ERR_ARG, "%s: tensor %s is of type %s, which V1 checkpoints do not have", file,
                         bundle_entry_label(part), tensor_type_name(part->type));
    if (part->type == COMPLEX64 || part->type == COMPLEX128) {
        count = count % 2 ? SIZE_MAX : count / 2;
        width *= 2;
    }
    if (count != part->elements)
        return wrong_count(file, part, count, e);
    if (!(out = buffer_reserve(&s->data, count * each + 1)))
        return error_memory(e, file, "for tensor %s", bundle_entry_label(part));
    if (width == each && count)
        memcpy(out, values, count * each);
    for (size_t i = 0; width != each && i < count; i++)
        memcpy(out + i * each, (const char *)values + i * width, each < width ? each : width);
    part->crc = crc32c_mask(crc32c(out, count * each));
    s->data.length += count * each;
    return OK;
}

/* 1: the slice is the whole tensor, however it says so. */
static int is_whole(const struct tensor_entry *full, const int64_t *start, const int64_t *length)
{
    for (int d = 0; d < full->rank; d++)
        if (start[d] || (length[d] >= 0 && length[d] != full->shape[d]))
            return 0;
    return 1;
}

/* Sets the shape of a slice; 0: it does not lie within the tensor. */
static int slice_shape(const struct tensor_entry *full, const int64_t *start, const int64_t *length, int64_t *shape)
{
    for (int d = 0; d < full->rank; d++) {
        shape[d] = length[d] < 0 ? full->shape[d] : length[d];
        if (start[d] < 0 || (length[d] < 0 && start[d]) || shape[d] > full->shape[d] - start[d])
            return 0;
    }
    return 1;
}

/* Adds an entry with the values of a slice, under the tensor's name if that is all of it. */
static int take_values(struct saved_slices *s, const char *file, struct saved_tensor *t, const int64_t *start,
                       const int64_t *length, const Values *v, struct error *e)
{
    int64_t shape[TENSOR_RANK_MAX];
    struct tensor_entry part = *t->entry;
    struct buffer key = BUFFER_EMPTY;
    int rc;

    part.slices = 0;
    part.shape = shape;
    part.offset = (int64_t)s->data.length;
    if (!slice_shape(t->entry, start, length, shape) || bundle_shape_elements(part.rank, shape, &part.elements) != OK)
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: a slice does not lie within it", file, name_of(t));
    rc = part.type == TENSOR_STRING ? append_strings(s, file, &part, v, e) : append_numbers(s, file, &part, v, e);
    if (rc != OK)
        return rc;
    part.size = (int64_t)s->data.length - part.offset;
    if (!is_whole(t->entry, start, length)) {
        slice_key_append(&key, part.name, part.name_length, part.rank, start, length);
        part.name = buffer_text(&key);
        part.name_length = key.length;
    }
    rc = buffer_ok(&key) ? add_entry(s, file, &part, e) : error_memory(e, file, "for tensor %s", name_of(t));
    buffer_release(&key);
    t->found++;
    return rc;
}

static int take_data(struct saved_slices *s, const char *file, const Saved *saved, struct error *e)
{
    static const Values none = TENSOR_BUNDLE__SAVED_VALUES__INIT;
    static const Slice scalar = TENSOR_BUNDLE__TENSOR_SLICE_PROTO__INIT;
    const TensorBundle__SavedSlice *data = saved->data;
    int64_t start[TENSOR_RANK_MAX], length[TENSOR_RANK_MAX];
    struct saved_tensor *t;
    int found;
    size_t at;

    if (!data || !data->name.len)
        return error_set(e, ERR_CORRUPT, "%s: a value without a tensor's name", file);
    at = place_of(s, data->name.data, data->name.len, &found);
    if (!found)
        return error_set(e, ERR_CORRUPT, "%s: values of tensor %.*s, which is not announced", file,
                         data->name.len < 200 ? (int)data->name.len : 200, (const char *)data->name.data);
    t = &s->tensors[at];
    if (!take_extents(data->slice ? data->slice : &scalar, t->entry->rank, start, length))
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: its values are a slice of another rank", file, name_of(t));
    return take_values(s, file, t, start, length, data->data ? data->data : &none, e);
}

struct saved_reading {
    struct saved_slices *s;
    const char *file;
    int have_meta;
};

static int take_value(void *context, const void *key, size_t key_length, const void *value, size_t value_length,
                      struct error *e)
{
    struct saved_reading *r = context;
    Saved *saved;
    int rc;

    (void)key;
    if (!r->have_meta && key_length)
        return error_set(e, ERR_CORRUPT, "%s: the first key is not the empty one: not a V1 checkpoint", r->file);
    if (value_length > VALUE_MAX)
        return error_set(e, ERR_CORRUPT, "%s: a value of %zu bytes", r->file, value_length);
    if (!(saved = tensor_bundle__saved_tensor_slices__unpack(NULL, value_length, value)))
        return error_set(e, ERR_CORRUPT, "%s: a value is not a SavedTensorSlices: not a V1 checkpoint", r->file);
    rc = r->have_meta ? take_data(r->s, r->file, saved, e) : take_meta(r->s, r->file, saved, e);
    r->have_meta = 1;
    tensor_bundle__saved_tensor_slices__free_unpacked(saved, NULL);
    return rc;
}

int saved_slices_read(struct saved_slices *s, const char *file, const void *bytes, size_t n, struct error *e)
{
    struct saved_reading r = { s, file, 0 };
    const int rc = table_read(file, bytes, n, take_value, &r, e);

    if (rc == OK && !r.have_meta)
        return error_set(e, ERR_CORRUPT, "%s: the table is empty: not a V1 checkpoint", file);
    return rc;
}

/* The entry of a tensor that is in several slices. */
static int add_full(struct saved_slices *s, const char *file, const struct saved_tensor *t, struct error *e)
{
    struct tensor_entry full = *t->entry;
    struct tensor_slice *slices = calloc(t->slices, sizeof *slices);
    int rc;

    if (!slices)
        return error_memory(e, file, "for the slices of tensor %s", name_of(t));
    for (size_t i = 0; i < t->slices; i++) {
        slices[i].start = t->numbers + i * 2 * (size_t)full.rank;
        slices[i].length = slices[i].start + full.rank;
    }
    full.slice = slices;
    full.slices = t->slices;
    rc = add_entry(s, file, &full, e);
    free(slices);
    return rc;
}

int saved_slices_finish(struct saved_slices *s, const char *file, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; i < s->tensor_count && rc == OK; i++) {
        const struct saved_tensor *t = &s->tensors[i];

        if (!t->slices || t->found != t->slices)
            return error_set(e, ERR_CORRUPT,
                             "%s: tensor %s: the values of %zu slices were announced, and %zu are there", file,
                             name_of(t), t->slices, t->found);
        if (t->slices > 1 || !is_whole(t->entry, t->numbers, t->numbers + t->entry->rank))
            rc = add_full(s, file, t, e);
    }
    return rc;
}
