#include "checkpoint/bundle_entry.h"

#include "base/bytes.h"
#include "proto/tensor_bundle.pb-c.h"

#include <stdlib.h>
#include <string.h>

enum {
    LITTLE_ENDIAN_DATA = 0,
    REFERENCE_TYPES = 100,            /* DataType n + 100, for n up to this, is a reference to type n */
    VALUE_MAX = 16 << 20,             /* bytes of an entry: half a million slices; decoding takes thirty times as much
                                       * memory */
    OVERLAP_WORK = 100 * 1000 * 1000, /* comparisons of slices before the variable is refused */
};

typedef TensorBundle__BundleHeaderProto Header;
typedef TensorBundle__BundleEntryProto Entry;
typedef TensorBundle__TensorShapeProto Shape;
typedef TensorBundle__TensorShapeProto__Dim Dimension;
typedef TensorBundle__TensorSliceProto Slice;
typedef TensorBundle__TensorSliceProto__Extent Extent;

int bundle_shape_elements(int rank, const int64_t *shape, uint64_t *elements)
{
    int64_t product = 1;

    for (int d = 0; d < rank; d++)
        if (shape[d] < 0 || __builtin_mul_overflow(product, shape[d], &product))
            return ERR_ARG;
    *elements = (uint64_t)product;
    return OK;
}

/* 1 if the message, or one in it, has a field number that protobuf does not allow: 0, from 2^29, or encoded in more
 * bytes than necessary. protobuf-c skips these; TensorFlow refuses the whole message. */
static int has_bad_field(const ProtobufCMessage *m)
{
    enum { FIELD_MOST = (1 << 29) - 1 };
    const char *base = (const char *)m;

    for (unsigned i = 0; i < m->n_unknown_fields; i++)
        if (!m->unknown_fields[i].tag || m->unknown_fields[i].tag > FIELD_MOST)
            return 1;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &m->descriptor->fields[i];
        const void *value = base + field->offset;
        size_t count = 1;

        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&count, base + field->quantifier_offset, sizeof count);
            value = *(const void *const *)value;
        }
        for (size_t k = 0; k < count; k++) {
            const ProtobufCMessage *part = ((const ProtobufCMessage *const *)value)[k];

            if (part && has_bad_field(part))
                return 1;
        }
    }
    return 0;
}

/* ---- header --------------------------------------------------------------------------------------------------- */

int bundle_version_check(const char *file, int32_t producer, int32_t min_consumer, const int32_t *bad_consumers,
                         size_t bad_consumer_count, struct error *e)
{
    if (producer < 0)
        return error_set(e, ERR_CORRUPT, "%s: the header names version %d", file, producer);
    if (min_consumer > BUNDLE_VERSION)
        return error_set(e, ERR_CORRUPT,
                         "%s: the checkpoint requires a reader of version %d or newer, and this is version %d", file,
                         min_consumer, BUNDLE_VERSION);
    for (size_t i = 0; i < bad_consumer_count; i++)
        if (bad_consumers[i] == BUNDLE_VERSION)
            return error_set(e, ERR_CORRUPT, "%s: the checkpoint excludes readers of version %d, which this is", file,
                             BUNDLE_VERSION);
    return OK;
}

int bundle_header_decode(const char *file, const void *bytes, size_t n, int32_t *shards, struct error *e)
{
    Header *header = tensor_bundle__bundle_header_proto__unpack(NULL, n, bytes);
    int rc = OK;

    if (!header)
        return error_set(e, ERR_CORRUPT, "%s: the header is not a BundleHeaderProto", file);
    if (has_bad_field(&header->base))
        rc = error_set(e, ERR_CORRUPT, "%s: the header has a field with an invalid number", file);
    else if (header->endianness != LITTLE_ENDIAN_DATA)
        rc = error_set(e, ERR_CORRUPT, "%s: big-endian byte order is not supported", file);
    else if (header->num_shards < 1)
        rc = error_set(e, ERR_CORRUPT, "%s: the header names %d shards", file, header->num_shards);
    else if (header->version)
        rc = bundle_version_check(file, header->version->producer, header->version->min_consumer,
                                  header->version->bad_consumers, header->version->n_bad_consumers, e);
    *shards = header->num_shards;
    tensor_bundle__bundle_header_proto__free_unpacked(header, NULL);
    return rc;
}

void bundle_header_encode(struct buffer *out, int32_t shards)
{
    Header header = TENSOR_BUNDLE__BUNDLE_HEADER_PROTO__INIT;
    TensorBundle__VersionDef version = TENSOR_BUNDLE__VERSION_DEF__INIT;
    char *room;
    size_t size;

    version.producer = BUNDLE_VERSION;
    header.num_shards = shards;
    header.version = &version;
    size = tensor_bundle__bundle_header_proto__get_packed_size(&header);
    if ((room = buffer_reserve(out, size)))
        out->length += tensor_bundle__bundle_header_proto__pack(&header, (uint8_t *)room);
}

/* ---- reading an entry ------------------------------------------------------------------------------------------ */

/* One allocation: entry, shape, slices, their starts and lengths, name. */
static struct tensor_entry *entry_new(const void *name, size_t name_length, size_t rank, size_t slices)
{
    struct tensor_entry *entry;
    struct tensor_slice *slice;
    int64_t *numbers;
    size_t size = sizeof *entry + rank * sizeof(int64_t), each = sizeof *slice + 2 * rank * sizeof(int64_t);
    char *text;

    if (name_length > (size_t)-1 / 2 || slices > ((size_t)-1 / 2 - size) / each)
        return NULL;
    size += slices * each;
    if (!(entry = calloc(1, size + name_length + 1)))
        return NULL;
    slice = (struct tensor_slice *)(entry + 1);
    numbers = (int64_t *)(slice + slices);
    text = (char *)entry + size;
    entry->shape = numbers;
    for (size_t i = 0; i < slices; i++) {
        slice[i].start = numbers + rank + 2 * rank * i;
        slice[i].length = slice[i].start + rank;
    }
    entry->slice = slice;
    entry->slices = slices;
    entry->rank = (int)rank;
    if (name_length)
        memcpy(text, name, name_length);
    entry->name = text;
    entry->name_length = name_length;
    return entry;
}

/* The numbers that entry_new's const pointers point to, for filling them in. */
static int64_t *writable(const int64_t *numbers)
{
    return (int64_t *)(uintptr_t)numbers;
}

static int copy_slices(const char *file, const Entry *proto, struct tensor_entry *entry, struct error *e)
{
    for (size_t i = 0; i < entry->slices; i++) {
        const Slice *from = proto->slices[i];
        int64_t *start = writable(entry->slice[i].start), *length = writable(entry->slice[i].length);

        for (int d = 0; d < entry->rank; d++) {
            const Extent *extent = from->extent[d];
            int given = extent->has_length_case == TENSOR_BUNDLE__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;

            start[d] = extent->start;
            length[d] = given ? extent->length : -1;
            if (start[d] < 0 || (given && length[d] < 0) || (!given && start[d]) ||
                bundle_slice_length(entry, i, d) > entry->shape[d] - start[d])
                return error_set(e, ERR_CORRUPT,
                                 "%s: tensor %s: slice %zu does not lie within dimension %d of size %lld", file,
                                 bundle_entry_label(entry), i, d, (long long)entry->shape[d]);
        }
    }
    return OK;
}

static int check_place(const char *file, const struct tensor_entry *entry, int32_t shards, struct error *e)
{
    uint64_t element = tensor_type_size(entry->type), size = (uint64_t)entry->size;

    if (entry->shard < 0 || entry->shard >= shards)
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: shard %d of %d", file, bundle_entry_label(entry), entry->shard,
                         shards);
    if (entry->offset < 0 || entry->size < 0 || entry->offset > INT64_MAX - entry->size)
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: offset %lld, size %lld", file, bundle_entry_label(entry),
                         (long long)entry->offset, (long long)entry->size);
    if (element && (size / element != entry->elements || size % element))
        return error_set(e, ERR_CORRUPT,
                         "%s: tensor %s: the size of %lld bytes does not match its shape of %llu elements of %llu",
                         file, bundle_entry_label(entry), (long long)entry->size, (unsigned long long)entry->elements,
                         (unsigned long long)element);
    /* Each string or variant takes at least the byte of its length. */
    if ((entry->type == TENSOR_STRING || entry->type == TENSOR_VARIANT) && entry->elements > size)
        return error_set(e, ERR_CORRUPT,
                         "%s: tensor %s: the size of %lld bytes does not match its shape of %llu strings", file,
                         bundle_entry_label(entry), (long long)entry->size, (unsigned long long)entry->elements);
    return OK;
}

static int fill_entry(const char *file, const Entry *proto, struct tensor_entry *entry, int32_t shards, struct error *e)
{
    int64_t *shape = writable(entry->shape);

    for (int d = 0; d < entry->rank; d++)
        shape[d] = proto->shape->dim[d]->size;
    entry->type = proto->dtype;
    if (entry->type > REFERENCE_TYPES && entry->type <= 2 * REFERENCE_TYPES)
        entry->type -= REFERENCE_TYPES;
    entry->shard = proto->shard_id;
    entry->offset = proto->offset;
    entry->size = proto->size;
    entry->crc = proto->crc32c;
    if (entry->type <= 0)
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: dtype %d", file, bundle_entry_label(entry), proto->dtype);
    if (bundle_shape_elements(entry->rank, entry->shape, &entry->elements) != OK)
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: its shape has a negative or too large dimension", file,
                         entry->name);
    if (entry->slices)
        return copy_slices(file, proto, entry, e);
    return check_place(file, entry, shards, e);
}

/* Checked before memory is allocated: otherwise two bytes of a slice could cost four thousand of ours. The names of
 * dimensions are not used, but TensorFlow refuses a message with text that is not UTF-8. */
static int check_dimensions(const char *file, const char *name, int name_length, const Entry *proto, struct error *e)
{
    size_t rank = proto->shape ? proto->shape->n_dim : 0;

    if (proto->shape && (proto->shape->unknown_rank || rank > TENSOR_RANK_MAX))
        return error_set(e, ERR_CORRUPT, "%s: tensor %.*s: its rank is unknown or above %d", file, name_length, name,
                         TENSOR_RANK_MAX);
    for (size_t d = 0; d < rank; d++)
        if (!utf8_valid(proto->shape->dim[d]->name.data, proto->shape->dim[d]->name.len, NULL))
            return error_set(e, ERR_CORRUPT, "%s: tensor %.*s: the name of dimension %zu is not UTF-8", file,
                             name_length, name, d);
    for (size_t i = 0; i < proto->n_slices; i++)
        if (proto->slices[i]->n_extent != rank)
            return error_set(e, ERR_CORRUPT, "%s: tensor %.*s: slice %zu has %zu dimensions, the tensor %zu", file,
                             name_length, name, i, proto->slices[i]->n_extent, rank);
    return OK;
}

int bundle_entry_decode(const char *file, const void *name, size_t name_length, const void *bytes, size_t n,
                        int32_t shards, struct tensor_entry **out, struct error *e)
{
    int shown = name_length < 200 ? (int)name_length : 200, rc;
    const char *text = name;
    Entry *proto;

    if (name_length && !*text) { /* the key of a slice: only messages leave out its first byte */
        shown--;
        text++;
    }
    *out = NULL;
    if (n > VALUE_MAX)
        return error_set(e, ERR_CORRUPT, "%s: tensor %.*s: an entry of %zu bytes", file, shown, text, n);
    proto = tensor_bundle__bundle_entry_proto__unpack(NULL, n, bytes);
    if (!proto)
        return error_set(e, ERR_CORRUPT, "%s: tensor %.*s: not a BundleEntryProto", file, shown, text);
    if (has_bad_field(&proto->base))
        rc = error_set(e, ERR_CORRUPT, "%s: tensor %.*s: a field with an invalid number", file, shown, text);
    else if ((rc = check_dimensions(file, text, shown, proto, e)) != OK)
        ;
    else if (!(*out = entry_new(name, name_length, proto->shape ? proto->shape->n_dim : 0, proto->n_slices)))
        rc = error_memory(e, file, "for tensor %.*s", shown, text);
    else
        rc = fill_entry(file, proto, *out, shards, e);
    if (rc != OK) {
        free(*out);
        *out = NULL;
    }
    tensor_bundle__bundle_entry_proto__free_unpacked(proto, NULL);
    return rc;
}

/* ---- writing an entry ------------------------------------------------------------------------------------------ */

/* The structs that protobuf-c packs, in one allocation. */
struct packing {
    Entry entry;
    Shape shape;
    Dimension *dimension, **dimensions;
    Slice *slice, **slices;
    Extent *extent, **extents;
    void *memory;
};

static int packing_init(struct packing *p, size_t rank, size_t slices)
{
    size_t extents = rank * slices;
    char *at;

    at = p->memory = calloc(1, 1 + rank * (sizeof *p->dimension + sizeof(void *)) +
                                   slices * (sizeof *p->slice + sizeof(void *)) +
                                   extents * (sizeof *p->extent + sizeof(void *)));
    if (!at)
        return ERR_NOMEM;
    p->dimension = (void *)at;
    p->slice = (void *)(p->dimension + rank);
    p->extent = (void *)(p->slice + slices);
    p->dimensions = (void *)(p->extent + extents);
    p->slices = (void *)(p->dimensions + rank);
    p->extents = (void *)(p->slices + slices);
    return OK;
}

int bundle_entry_encode(struct buffer *out, const struct tensor_entry *entry, struct error *e)
{
    struct packing p = { .entry = TENSOR_BUNDLE__BUNDLE_ENTRY_PROTO__INIT,
                         .shape = TENSOR_BUNDLE__TENSOR_SHAPE_PROTO__INIT };
    size_t rank = (size_t)entry->rank, size;
    char *room;

    if (packing_init(&p, rank, entry->slices) != OK)
        return error_memory(e, NULL, "for the entry of tensor %s", entry->name);
    for (size_t d = 0; d < rank; d++) {
        tensor_bundle__tensor_shape_proto__dim__init(&p.dimension[d]);
        p.dimension[d].size = entry->shape[d];
        p.dimensions[d] = &p.dimension[d];
    }
    for (size_t i = 0; i < entry->slices; i++) {
        tensor_bundle__tensor_slice_proto__init(&p.slice[i]);
        p.slice[i].n_extent = rank;
        p.slice[i].extent = p.extents + i * rank;
        p.slices[i] = &p.slice[i];
        for (size_t d = 0; d < rank; d++) {
            Extent *extent = &p.extent[i * rank + d];

            tensor_bundle__tensor_slice_proto__extent__init(extent);
            extent->start = entry->slice[i].start[d];
            if (entry->slice[i].length[d] >= 0) {
                extent->has_length_case = TENSOR_BUNDLE__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
                extent->length = entry->slice[i].length[d];
            }
            p.extents[i * rank + d] = extent;
        }
    }
    p.shape.n_dim = rank;
    p.shape.dim = p.dimensions;
    p.entry.dtype = entry->type;
    p.entry.shape = &p.shape;
    p.entry.shard_id = entry->shard;
    p.entry.offset = entry->offset;
    p.entry.size = entry->size;
    p.entry.crc32c = entry->crc;
    p.entry.n_slices = entry->slices;
    p.entry.slices = p.slices;
    size = tensor_bundle__bundle_entry_proto__get_packed_size(&p.entry);
    if ((room = buffer_reserve(out, size)))
        out->length += tensor_bundle__bundle_entry_proto__pack(&p.entry, (uint8_t *)room);
    free(p.memory);
    return buffer_ok(out) ? OK : error_memory(e, NULL, "for the entry of tensor %s", entry->name);
}

/* ---- slices ---------------------------------------------------------------------------------------------------- */

/* a slice, by where it begins in the dimension that separates most slices */
struct ordered {
    int64_t start;
    size_t slice;
};

static int compare_ordered(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static int slices_overlap(const struct tensor_entry *full, size_t a, size_t b)
{
    for (int d = 0; d < full->rank; d++) {
        int64_t p = full->slice[a].start[d], q = full->slice[b].start[d];

        if (p + bundle_slice_length(full, a, d) <= q || q + bundle_slice_length(full, b, d) <= p)
            return 0;
    }
    return 1;
}

/* Sorts the slices along dimension `along`; each is then compared with those that follow until one begins after its
 * end. A variable cut along one dimension costs nothing more than the sorting. */
static int find_overlap(const char *file, const struct tensor_entry *full, int along, struct ordered *order,
                        size_t count, struct error *e)
{
    long work = 0;

    for (size_t i = 0; i < count; i++)
        order[i].start = full->slice[order[i].slice].start[along];
    qsort(order, count, sizeof *order, compare_ordered);
    for (size_t i = 0; i < count; i++) {
        int64_t end = order[i].start + bundle_slice_length(full, order[i].slice, along);

        for (size_t j = i + 1; j < count && order[j].start < end; j++) {
            if ((work += full->rank) > OVERLAP_WORK)
                return error_set(e, ERR_CORRUPT, "%s: tensor %s: too many slices (%zu) to tell whether they overlap",
                                 file, full->name, count);
            if (slices_overlap(full, order[i].slice, order[j].slice))
                return error_set(e, ERR_CORRUPT, "%s: tensor %s: slices %zu and %zu overlap", file, full->name,
                                 order[i].slice, order[j].slice);
        }
    }
    return OK;
}

/* The dimension that the fewest slices cover completely. */
static int most_cut(const struct tensor_entry *full)
{
    size_t best_cut = 0;
    int best = 0;

    for (int d = 0; d < full->rank; d++) {
        size_t cut = 0;

        for (size_t i = 0; i < full->slices; i++)
            cut += bundle_slice_length(full, i, d) < full->shape[d];
        if (cut > best_cut) {
            best_cut = cut;
            best = d;
        }
    }
    return best;
}

int bundle_slices_check(const char *file, const struct tensor_entry *full, struct error *e)
{
    struct ordered *order = malloc((full->slices + 1) * sizeof *order);
    uint64_t covered = 0;
    size_t count = 0;
    int rc = OK;

    if (!order)
        return error_memory(e, file, "for the slices of tensor %s", full->name);
    for (size_t i = 0; i < full->slices; i++) {
        uint64_t elements = 1;

        for (int d = 0; d < full->rank; d++)
            elements *= (uint64_t)bundle_slice_length(full, i, d); /* within the shape, whose product fits */
        if (elements > full->elements - covered)
            rc = error_set(e, ERR_CORRUPT, "%s: tensor %s: its slices overlap: they have more elements than the tensor",
                           file, full->name);
        if (rc != OK)
            break;
        covered += elements;
        if (elements)
            order[count++].slice = i;
    }
    if (rc == OK && covered != full->elements)
        rc = error_set(e, ERR_CORRUPT, "%s: tensor %s: its slices do not cover it: %llu of %llu elements", file,
                       full->name, (unsigned long long)covered, (unsigned long long)full->elements);
    if (rc == OK && full->rank)
        rc = find_overlap(file, full, most_cut(full), order, count, e);
    free(order);
    return rc;
}
