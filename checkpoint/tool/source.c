#include "checkpoint/tool/source.h"

#include "base/bytes.h"
#include "base/file.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/tool/find.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 18 }; /* bytes read at once */

static int open_bundle(struct source *s, int index_only, struct error *e)
{
    int rc = (index_only ? tensor_bundle_open_index : tensor_bundle_open)(&s->bundle, s->path, e);

    if (rc != OK)
        return rc;
    s->format = "bundle";
    s->shards = tensor_bundle_shards(s->bundle);
    s->count = tensor_bundle_count(s->bundle);
    if (!(s->tensors = calloc(s->count + 1, sizeof *s->tensors)))
        return error_memory(e, s->path, "for its tensors");
    for (size_t i = 0; i < s->count; i++) {
        const struct tensor_entry *entry = tensor_bundle_entry(s->bundle, i);

        s->tensors[i] = (struct source_tensor){
            .name = entry->name,
            .name_length = entry->name_length,
            .type = entry->type,
            .type_name = tensor_type_name(entry->type),
            .role = tensor_role(entry->name, entry->type, entry->elements),
            .rank = entry->rank,
            .shape = entry->shape,
            .elements = entry->elements,
            .bytes = tensor_entry_bytes(entry),
            .shard = entry->shard,
            .offset = (uint64_t)entry->offset,
            .slices = entry->slices,
            .entry = entry,
        };
    }
    return OK;
}

static int compare_names(const void *a, const void *b)
{
    const struct source_tensor *x = a, *y = b;

    return bytes_compare(x->name, x->name_length, y->name, y->name_length);
}

const struct source_tensor *source_find(const struct source *s, const char *name, size_t length)
{
    const struct source_tensor key = { .name = name, .name_length = length };

    return s->count ? bsearch(&key, s->tensors, s->count, sizeof key, compare_names) : NULL;
}

static const struct {
    const char *name;
    int type, kept_as;
} kept[] = {
    { "string", TENSOR_STRING, TENSOR_UINT8 },
    /* clang-format off */
    { "qint8", 11, 6 }, { "quint8", 12, TENSOR_UINT8 }, { "qint32", 13, TENSOR_INT32 }, { "qint16", 15, 5 },
    { "quint16", 16, 17 }, { "complex128", 18, TENSOR_DOUBLE }, { "float8_e4m3b11fnuz", 27, TENSOR_UINT8 },
    { "int4", 29, TENSOR_UINT8 }, { "uint4", 30, TENSOR_UINT8 }, { "int2", 31, TENSOR_UINT8 },
    { "uint2", 32, TENSOR_UINT8 }, { "float4_e2m1fn", TENSOR_FLOAT4, TENSOR_UINT8 },
    /* clang-format on */
};
enum { KEPT = sizeof kept / sizeof *kept };

int source_kept_as(int type)
{
    for (int i = 0; i < KEPT; i++)
        if (kept[i].type == type)
            return kept[i].kept_as;
    return 0;
}

int source_is_hint(const struct safetensors_pair *pair)
{
    return strncmp(pair->key, SOURCE_HINT, sizeof SOURCE_HINT - 1) == 0;
}

/* Parses "[2, 3]" into shape; returns the rank, or -1 if it is not a shape. */
static int parse_shape(const char *text, int64_t *shape)
{
    int rank = 0;
    char *end;

    if (*text++ != '[')
        return -1;
    while (*text != ']') {
        if (rank == TENSOR_RANK_MAX || *text < '0' || *text > '9')
            return -1;
        shape[rank++] = strtoll(text, &end, 10); /* sizes that are too large stay at the limit, which no bytes match */
        text = end;
        if (text[0] == ',' && text[1] == ' ')
            text += 2;
    }
    return text[1] ? -1 : rank;
}

/* Restores a tensor that was stored as another type; leaves it unchanged if that is impossible. */
static int apply_hint(struct source_tensor *tensor, const char *hint)
{
    int64_t shape[TENSOR_RANK_MAX];
    uint64_t elements;
    size_t length = strcspn(hint, "[");
    int i, rank;

    for (i = 0; i < KEPT && (strlen(kept[i].name) != length || strncmp(kept[i].name, hint, length) != 0); i++)
        ;
    if (i == KEPT || kept[i].kept_as != tensor->type)
        return OK;
    if (kept[i].type == TENSOR_STRING) {
        if (tensor->rank != 1 || (rank = parse_shape(hint + length, shape)) < 0 ||
            bundle_shape_elements(rank, shape, &elements) != OK || elements > tensor->bytes)
            return OK;
        if (!(tensor->own_shape = malloc(((size_t)rank + 1) * sizeof *shape)))
            return ERR_NOMEM;
        memcpy(tensor->own_shape, shape, (size_t)rank * sizeof *shape);
        tensor->shape = tensor->own_shape;
        tensor->rank = rank;
        tensor->elements = elements;
    } else if (kept[i].kept_as == TENSOR_DOUBLE) {
        if (!tensor->rank || tensor->shape[tensor->rank - 1] != 2)
            return OK;
        tensor->rank--;
        tensor->elements /= 2;
    }
    tensor->type = kept[i].type;
    tensor->type_name = tensor_type_name(tensor->type);
    return OK;
}

static int apply_hints(struct source *s, const struct safetensors_header *h, struct error *e)
{
    static const size_t length = sizeof SOURCE_HINT - 1;

    for (size_t i = 0; i < h->pair_count; i++) {
        const struct source_tensor *found;

        if (!source_is_hint(&h->pairs[i]))
            continue;
        found = source_find(s, h->pairs[i].key + length, h->pairs[i].key_length - length);
        if (found && apply_hint(&s->tensors[found - s->tensors], h->pairs[i].value) != OK)
            return error_memory(e, s->path, "for its tensors");
    }
    return OK;
}

static int open_safetensors(struct source *s, struct error *e)
{
    const struct safetensors_header *h;
    int rc = safetensors_open(&s->safetensors, s->path, e);

    if (rc != OK)
        return rc;
    h = safetensors_contents(s->safetensors);
    s->format = "safetensors";
    s->shards = (int32_t)safetensors_parts(s->safetensors);
    s->count = h->count;
    if (!(s->tensors = calloc(s->count + 1, sizeof *s->tensors)))
        return error_memory(e, s->path, "for its tensors");
    for (size_t i = 0; i < s->count; i++) {
        const struct safetensors_tensor *t = &h->tensors[i];
        int packed = strcmp(t->dtype, "F4") == 0, type = packed ? TENSOR_FLOAT4 : safetensors_tensor_type(t->dtype);

        s->tensors[i] = (struct source_tensor){
            .name = t->name,
            .name_length = t->name_length,
            .type = type,
            .type_name = type ? tensor_type_name(type) : t->dtype,
            .role = tensor_role(t->name, type, t->elements),
            .rank = t->rank,
            .shape = t->shape,
            .elements = t->elements,
            .bytes = t->end - t->begin,
            .section = t,
            .packed = packed,
        };
        s->tensors[i].shard = (int32_t)safetensors_part(s->safetensors, t, &s->tensors[i].offset);
    }
    if (s->count)
        qsort(s->tensors, s->count, sizeof *s->tensors, compare_names);
    return apply_hints(s, h, e);
}

int64_t source_global_step(struct tensor_bundle *b, struct error *e)
{
    const struct tensor_entry *entry = tensor_bundle_find(b, "global_step");
    int64_t step;

    return entry && tensor_bundle_read_integer(b, entry, &step, e) == OK && step >= 0 ? step : -1;
}

void source_step_differs(const char *path, int64_t named, int64_t step, struct error *e)
{
    error_set(e, ERR_ARG, "%s: its name says step %lld, but global_step is %lld", path, (long long)named,
              (long long)step);
}

int source_open(struct source *s, const char *path, int index_only, struct error *e)
{
    struct found found;
    int64_t step = -1;
    int rc;

    memset(s, 0, sizeof *s);
    if ((rc = find_checkpoint(path, index_only, &found, e)) != OK)
        return rc;
    memcpy(s->path, found.path, sizeof s->path);
    s->step = checkpoint_name_step(file_base_name(s->path));
    if (found.is_file)
        s->step = checkpoint_path_safetensors(s->path);
    s->notes[0] = found.note;
    if ((rc = found.is_file ? open_safetensors(s, e) : open_bundle(s, index_only, e)) != OK) {
        source_close(s);
        return rc;
    }
    if (s->safetensors)
        step = safetensors_step(s->safetensors, &s->notes[1]);
    else if (!index_only)
        step = source_global_step(s->bundle, &s->notes[1]);
    if (step >= 0 && s->step >= 0 && step != s->step)
        source_step_differs(s->path, s->step, step, &s->notes[1]);
    s->step = step < 0 ? s->step : step;
    return OK;
}

void source_close(struct source *s)
{
    tensor_bundle_close(s->bundle);
    safetensors_close(s->safetensors);
    for (size_t i = 0; i < s->count && s->tensors; i++)
        free(s->tensors[i].own_shape);
    free(s->tensors);
    memset(s, 0, sizeof *s);
}

int source_stream_open(struct source_stream *stream, const struct source *s, const struct source_tensor *tensor,
                       struct error *e)
{
    *stream = (struct source_stream){ .source = s, .tensor = tensor };
    if (tensor->section)
        return OK;
    return tensor_stream_open(&stream->bundle, s->bundle, tensor->entry, e);
}

int source_stream_read(struct source_stream *stream, void *out, size_t n, size_t *got, struct error *e)
{
    const struct source_tensor *tensor = stream->tensor;
    const int unpack = tensor->packed && !stream->source->as_stored;
    uint64_t left;
    int rc;

    if (!tensor->section)
        return tensor_stream_read(stream->bundle, out, n, got, e);
    left = tensor->bytes - stream->at;
    n = unpack ? n / 2 : n;
    *got = n < left ? n : (size_t)left;
    if ((rc = safetensors_read(stream->source->safetensors, tensor->section, stream->at, out, *got, e)) != OK)
        return rc;
    stream->at += *got;
    for (size_t i = unpack ? *got : 0; i-- > 0;) { /* from the end, since it is done in place; the low half is first */
        uint8_t pair = ((uint8_t *)out)[i];

        ((uint8_t *)out)[2 * i] = pair & 15;
        ((uint8_t *)out)[2 * i + 1] = pair >> 4;
    }
    *got *= unpack ? 2 : 1;
    return rc;
}

void source_stream_close(struct source_stream *stream)
{
    tensor_stream_close(stream->bundle);
}

int source_read(const struct source *s, const struct source_tensor *tensor, char **out, struct error *e)
{
    struct source_stream stream;
    size_t got = 0, done = 0, bytes = (size_t)(tensor->packed ? tensor->elements : tensor->bytes);
    uint32_t crc;
    int rc;

    *out = NULL;
    if (tensor->bytes >= SIZE_MAX || !(*out = malloc(bytes + 1)))
        return error_memory(e, s->path, "for tensor %s", tensor->name);
    if ((rc = source_stream_open(&stream, s, tensor, e)) == OK)
        while ((rc = source_stream_read(&stream, *out + done, bytes - done, &got, e)) == OK && got)
            done += got;
    source_stream_close(&stream);
    if (rc == OK && tensor->section && tensor->type == TENSOR_STRING &&
        (rc = string_tensor_check(*out, bytes, tensor->elements, &crc, e)) != OK)
        error_prefix(e, "%s: tensor %s", s->path, tensor->name);
    if (rc == OK)
        return OK;
    free(*out);
    *out = NULL;
    return rc;
}

int source_strings(const struct source *s, const struct source_tensor *tensor, struct tensor_string **out,
                   struct error *e)
{
    size_t head = ((size_t)tensor->elements + 1) * sizeof **out, bytes = (size_t)tensor->bytes;
    char *stored, *all;
    int rc = source_read(s, tensor, &stored, e);

    *out = NULL;
    if (rc != OK)
        return rc;
    /* Each string has at least one byte of length, so there are no more elements than bytes. */
    if (!(all = realloc(stored, head + bytes))) {
        free(stored);
        return error_memory(e, s->path, "for tensor %s", tensor->name);
    }
    memmove(all + head, all, bytes);
    *out = (struct tensor_string *)(void *)all;
    string_tensor_split(all + head, bytes, tensor->elements, *out);
    return OK;
}

int source_pieces(const struct source *s, const struct source_tensor *tensor, source_take *take, void *context,
                  struct error *e)
{
    struct source_stream stream;
    char *piece = malloc(PIECE);
    size_t got;
    int rc;

    if (!piece)
        return error_memory(e, s->path, "to read tensor %s", tensor->name);
    if ((rc = source_stream_open(&stream, s, tensor, e)) == OK)
        while ((rc = source_stream_read(&stream, piece, PIECE, &got, e)) == OK && got &&
               (rc = take(context, piece, got, e)) == OK)
            ;
    source_stream_close(&stream);
    free(piece);
    return rc;
}
