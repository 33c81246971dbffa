#include "checkpoint/safetensors.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/file_kind.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "base/unfinished.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_value.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- safetensors header ------------------------------------------------------------------------------------------ */

/*
 *   N        uint64, little-endian: bytes of the header, at most 100,000,000
 *   header   JSON in UTF-8; its first byte is '{', it may end in blanks
 *   data     to the end of the file
 *
 * The header is an object: name -> {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, offsets counted
 * from the start of the data, and perhaps "__metadata__" -> object of strings. No key is repeated. In order of their
 * begin the tensors cover the data from its first byte to its last, without gap or overlap; end - begin is what shape
 * and dtype make, in whole bytes. Numbers are plain and not negative. Newer files may have dtypes that are not known
 * here: how many bytes they take is then what the offsets say.
 *
 * The header is taken apart here only as far as its members and those of __metadata__; jansson gets one member at a
 * time, so that what it builds of hostile text stays small.
 *
 * The index of a checkpoint in parts is a JSON file beside them:
 *   {"metadata": {"total_size": 12}, "weight_map": {"a": "model-00001-of-00002.safetensors", ...}}
 * total_size counts the bytes of all tensors; it and other members may be missing. It is taken apart in the same way.
 */

enum {
    MEMBER_MAX = 64 << 10, /* bytes of a tensor's JSON: one of rank 254 takes about 6,000 */
    DTYPE_MAX = 32,        /* bytes of the name of a type */
};

static const char metadata_key[] = "__metadata__";

/* In the order in which the reference writer sorts, reversed. */
static const struct {
    const char *name;
    unsigned bits;
    int type; /* enum tensor_type with the same bytes, 0: none */
} dtypes[] = {
    { "BOOL", 8, 10 },        { "F4", 4, 0 },           { "F6_E2M3", 6, 0 },
    { "F6_E3M2", 6, 0 },      { "U8", 8, 4 },           { "I8", 8, 6 },
    { "F8_E5M2", 8, 24 },     { "F8_E4M3", 8, 25 },     { "F8_E8M0", 8, TENSOR_E8M0 },
    { "F8_E4M3FNUZ", 8, 26 }, { "F8_E5M2FNUZ", 8, 28 }, { "I16", 16, 5 },
    { "U16", 16, 17 },        { "F16", 16, 19 },        { "BF16", 16, 14 },
    { "I32", 32, 3 },         { "U32", 32, 22 },        { "F32", 32, 1 },
    { "C64", 64, 8 },         { "F64", 64, 2 },         { "I64", 64, 9 },
    { "U64", 64, 23 },
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static int find_dtype(const char *name, size_t length)
{
    for (int i = 0; i < DTYPES; i++)
        if (strlen(dtypes[i].name) == length && memcmp(dtypes[i].name, name, length) == 0)
            return i;
    return -1;
}

int safetensors_tensor_type(const char *dtype)
{
    int i = find_dtype(dtype, strlen(dtype));

    return i < 0 ? 0 : dtypes[i].type;
}

const char *safetensors_dtype(int tensor_type)
{
    for (int i = 0; i < DTYPES; i++)
        if (tensor_type && dtypes[i].type == tensor_type)
            return dtypes[i].name;
    return NULL;
}

/* 1: it can be one, so that it may be written and shown as it is. */
static int is_dtype(const char *name, size_t length)
{
    return length && length <= DTYPE_MAX && strlen(name) == length &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

/* elements x bits / 8; ERR_ARG: over 64 bits, or not a whole number of bytes. */
static int data_bytes(int dtype, uint64_t elements, uint64_t *bytes)
{
    if (elements > UINT64_MAX / dtypes[dtype].bits || elements * dtypes[dtype].bits % 8)
        return ERR_ARG;
    *bytes = elements * dtypes[dtype].bits / 8;
    return OK;
}

/* ---- the header's members -------------------------------------------------------------------------------------- */

/* of a header, or of an index, which has nothing before it */
struct text {
    const char *file, *json;
    size_t n, at;
    size_t before; /* bytes of the file */
};

/* Called with a member's name and the text of its value. */
typedef int member(void *context, const char *name, size_t name_length, const char *value, size_t n, struct error *e);

static int bad_json(const struct text *t, size_t at, const char *why, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s: invalid %s at byte %zu: %s", t->file, t->before ? "header" : "index",
                     t->before + at, why);
}

static void skip_blanks(struct text *t)
{
    while (t->at < t->n && strchr(" \t\r\n", t->json[t->at]) && t->json[t->at])
        t->at++;
}

/* From a quote to after the closing one; 0: there is none. */
static int skip_string(struct text *t)
{
    for (t->at++; t->at < t->n; t->at++) {
        if (t->json[t->at] == '"') {
            t->at++;
            return 1;
        }
        t->at += t->json[t->at] == '\\';
    }
    t->at = t->n;
    return 0;
}

/* The end of a value, at the ',' or '}' that ends it; jansson checks what is in it. 0: it does not end. */
static int safetensors_skip_value(struct text *t)
{
    size_t depth = 0;

    while (t->at < t->n) {
        char c = t->json[t->at];

        if (c == '"') {
            if (!skip_string(t))
                return 0;
            continue;
        }
        if (!depth && (c == ',' || c == '}'))
            return 1;
        if (c == '{' || c == '[')
            depth++;
        if (c == '}' || c == ']') {
            if (!depth)
                return 0;
            depth--;
        }
        t->at++;
    }
    return 0;
}

static json_t *load(const struct text *t, const char *text, size_t n, struct error *e)
{
    json_error_t why;
    json_t *value = json_loadb(text, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);

    if (!value)
        bad_json(t, (size_t)(text - t->json) + (why.position > 0 ? (size_t)why.position : 0), why.text, e);
    return value;
}

/* Reads the object at t->at member by member, and moves t->at past it. */
static int read_object(struct text *t, member *take, void *context, struct error *e)
{
    int rc;

    if (t->at >= t->n || t->json[t->at] != '{')
        return bad_json(t, t->at, "expected '{'", e);
    t->at++;
    skip_blanks(t);
    if (t->at < t->n && t->json[t->at] == '}') {
        t->at++;
        return OK;
    }
    for (;;) {
        size_t name = t->at, name_end, value;
        json_t *key;

        skip_blanks(t);
        name = t->at;
        if (t->at >= t->n || t->json[t->at] != '"' || !skip_string(t))
            return bad_json(t, name, "expected a name in quotes", e);
        name_end = t->at;
        skip_blanks(t);
        if (t->at >= t->n || t->json[t->at] != ':')
            return bad_json(t, t->at, "expected ':'", e);
        t->at++;
        skip_blanks(t);
        value = t->at;
        if (!safetensors_skip_value(t))
            return bad_json(t, value, "this value does not end", e);
        if (!(key = load(t, t->json + name, name_end - name, e)))
            return ERR_CORRUPT;
        rc = take(context, json_string_value(key), json_string_length(key), t->json + value, t->at - value, e);
        json_decref(key);
        if (rc != OK)
            return rc;
        if (t->json[t->at++] == '}')
            return OK;
    }
}

/* ---- reading a header ------------------------------------------------------------------------------------------ */

struct reading {
    struct text text;
    struct safetensors_header *header;
    size_t room, pair_room;
    const char *holder;              /* of the pairs: the key of their object */
    int held;                        /* 1: it was seen */
    struct safetensors_index *index; /* that is read, or NULL */
};

static int safetensors_no_memory(const struct reading *r, struct error *e)
{
    return error_memory(e, r->text.file, r->index ? "for its index" : "for its header");
}

static char *copied(const char *text, size_t n)
{
    char *copy = malloc(n + 1);

    if (copy) {
        memcpy(copy, text, n);
        copy[n] = '\0';
    }
    return copy;
}

static int take_pair(void *context, const char *name, size_t name_length, const char *value, size_t n, struct error *e)
{
    struct reading *r = context;
    struct safetensors_header *h = r->header;
    struct safetensors_pair pair;
    json_t *text;
    int rc = OK;

    if (!ARRAY_ROOM(h->pairs, r->pair_room, h->pair_count + 1))
        return safetensors_no_memory(r, e);
    if (*value != '"') { /* before jansson builds anything of it */
        char why[64];

        snprintf(why, sizeof why, "%s may hold only strings", r->holder);
        return bad_json(&r->text, (size_t)(value - r->text.json), why, e);
    }
    if (!(text = load(&r->text, value, n, e)))
        return ERR_CORRUPT;
    pair = (struct safetensors_pair){ copied(name, name_length),
                                      copied(json_string_value(text), json_string_length(text)), name_length,
                                      json_string_length(text) };
    if (pair.key && pair.value) {
        h->pairs[h->pair_count++] = pair;
    } else {
        free(pair.key);
        free(pair.value);
        rc = safetensors_no_memory(r, e);
    }
    json_decref(text);
    return rc;
}

/* Reads a member that is an object of strings. */
static int read_pairs(struct reading *r, const char *value, size_t n, struct error *e)
{
    struct text inner = r->text;
    char why[64];
    int rc;

    inner.at = (size_t)(value - inner.json);
    if (r->held++) {
        snprintf(why, sizeof why, "%s is repeated", r->holder);
        return bad_json(&r->text, inner.at, why, e);
    }
    if ((rc = read_object(&inner, take_pair, r, e)) != OK)
        return rc;
    skip_blanks(&inner);
    return inner.json + inner.at == value + n ? OK : bad_json(&r->text, inner.at, "expected ',' or '}'", e);
}

static int is_key(const char *name, size_t n, const char *key)
{
    return strlen(key) == n && memcmp(name, key, n) == 0;
}

/* Reads count numbers of a JSON array, all integers that are not negative. */
static int read_numbers(const json_t *array, int64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(array, i);

        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return 0;
        out[i] = json_integer_value(item);
    }
    return 1;
}

static int bad_tensor(const struct reading *r, const char *name, const char *why, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s: tensor %s: %s", r->text.file, name, why);
}

/* Reads a tensor from its JSON and checks it, except for its place among the others. name_of_type: room for DTYPE_MAX
 * + 1 bytes, used where the type is not known. */
static int read_tensor(const struct reading *r, const char *name, const json_t *value, int64_t *shape,
                       char *name_of_type, struct safetensors_tensor *out, struct error *e)
{
    const json_t *dtype = json_object_get(value, "dtype"), *dims = json_object_get(value, "shape");
    const json_t *offsets = json_object_get(value, "data_offsets");
    int64_t place[2];
    uint64_t bytes;
    int kind;

    if (!json_is_string(dtype) || !json_is_array(dims) || !json_is_array(offsets) || json_array_size(offsets) != 2)
        return bad_tensor(r, name, "expected dtype, shape and two data_offsets", e);
    if (!is_dtype(json_string_value(dtype), json_string_length(dtype)))
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: its dtype %.40s is no name of a type", r->text.file, name,
                         json_string_value(dtype));
    kind = find_dtype(json_string_value(dtype), json_string_length(dtype));
    if (!read_numbers(dims, shape, json_array_size(dims)) || !read_numbers(offsets, place, 2))
        return bad_tensor(r, name, "shape and data_offsets must be integers that are not negative", e);
    bytes = (uint64_t)place[1] - (uint64_t)place[0];
    if (bundle_shape_elements((int)json_array_size(dims), shape, &out->elements) != OK ||
        (kind >= 0 && data_bytes(kind, out->elements, &bytes) != OK))
        return bad_tensor(r, name, "its shape makes too many bytes, or a fraction of a byte", e);
    if (place[1] < place[0])
        return bad_tensor(r, name, "it ends before it begins", e);
    if ((uint64_t)(place[1] - place[0]) != bytes)
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: %lld bytes in data_offsets, but shape and dtype need %llu",
                         r->text.file, name, (long long)(place[1] - place[0]), (unsigned long long)bytes);
    out->dtype = kind < 0 ? strcpy(name_of_type, json_string_value(dtype)) : dtypes[kind].name;
    out->rank = (int)json_array_size(dims);
    out->begin = (uint64_t)place[0];
    out->end = (uint64_t)place[1];
    return OK;
}

static int take_tensor(void *context, const char *name, size_t name_length, const char *value, size_t n,
                       struct error *e)
{
    struct reading *r = context;
    struct safetensors_header *h = r->header;
    struct safetensors_tensor tensor = { .name_length = name_length };
    size_t rank;
    json_t *json;
    int rc;

    if (is_key(name, name_length, metadata_key))
        return read_pairs(r, value, n, e);
    if (n > MEMBER_MAX)
        return bad_tensor(r, name, "more JSON than a tensor can need", e);
    if (!ARRAY_ROOM(h->tensors, r->room, h->count + 1))
        return safetensors_no_memory(r, e);
    if (!(json = load(&r->text, value, n, e)))
        return ERR_CORRUPT;
    rank = json_array_size(json_object_get(json, "shape"));
    if (rank > TENSOR_RANK_MAX) {
        rc = bad_tensor(r, name, "more than 254 dimensions", e);
    } else if (!(tensor.memory = malloc(rank * sizeof(int64_t) + name_length + 1 + DTYPE_MAX + 1))) {
        rc = safetensors_no_memory(r, e);
    } else {
        char *copy = (char *)tensor.memory + rank * sizeof(int64_t);

        memcpy(copy, name, name_length);
        copy[name_length] = '\0';
        tensor.name = copy;
        tensor.shape = tensor.memory;
        rc = read_tensor(r, name, json, tensor.memory, copy + name_length + 1, &tensor, e);
    }
    if (rc == OK)
        h->tensors[h->count++] = tensor;
    else
        free(tensor.memory);
    json_decref(json);
    return rc;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct safetensors_pair *x = a, *y = b;

    return bytes_compare(x->key, x->key_length, y->key, y->key_length);
}

static int compare_names(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;

    return bytes_compare(x->name, x->name_length, y->name, y->name_length);
}

static int compare_places(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return compare_names(a, b);
}

/* Sorts the pairs, of which no two may have the same key. */
static int sort_pairs(const struct reading *r, struct error *e)
{
    const struct safetensors_header *h = r->header;

    if (h->pair_count)
        qsort(h->pairs, h->pair_count, sizeof *h->pairs, compare_pairs);
    for (size_t i = 1; i < h->pair_count; i++)
        if (compare_pairs(&h->pairs[i - 1], &h->pairs[i]) == 0)
            return error_set(e, ERR_CORRUPT, "%s: key %s of %s is repeated", r->text.file, h->pairs[i].key, r->holder);
    return OK;
}

/* Checks that need the whole header: repeated keys, and whether the tensors cover the data. */
static int check_header(const struct reading *r, uint64_t data_size, struct error *e)
{
    struct safetensors_header *h = r->header;
    uint64_t at = 0;
    int rc = sort_pairs(r, e);

    if (rc != OK)
        return rc;
    if (h->count)
        qsort(h->tensors, h->count, sizeof *h->tensors, compare_names);
    for (size_t i = 1; i < h->count; i++)
        if (compare_names(&h->tensors[i - 1], &h->tensors[i]) == 0)
            return bad_tensor(r, h->tensors[i].name, "its name is repeated", e);
    if (h->count)
        qsort(h->tensors, h->count, sizeof *h->tensors, compare_places);
    for (size_t i = 0; i < h->count; i++) {
        if (h->tensors[i].begin != at)
            return error_set(
                e, ERR_CORRUPT, "%s: tensor %s begins at byte %llu of the data, but the one before ends at %llu",
                r->text.file, h->tensors[i].name, (unsigned long long)h->tensors[i].begin, (unsigned long long)at);
        at = h->tensors[i].end;
    }
    if (at != data_size)
        return error_set(e, ERR_CORRUPT, "%s: %llu bytes of data, but the tensors need %llu", r->text.file,
                         (unsigned long long)data_size, (unsigned long long)at);
    return OK;
}

int safetensors_header_length(const char *file, const void *bytes, uint64_t file_size, size_t *length, struct error *e)
{
    uint64_t n;

    if (file_size < SAFETENSORS_HEAD)
        return error_set(e, ERR_CORRUPT, "%s: %llu bytes, too short for a safetensors file", file,
                         (unsigned long long)file_size);
    n = get_le64(bytes);
    if (n > SAFETENSORS_HEADER_MAX)
        return error_set(e, ERR_CORRUPT, "%s: a header of %llu bytes, over the limit of %d (not a safetensors file?)",
                         file, (unsigned long long)n, SAFETENSORS_HEADER_MAX);
    if (n > file_size - SAFETENSORS_HEAD)
        return error_set(e, ERR_CORRUPT, "%s: a header of %llu bytes, but the file has only %llu", file,
                         (unsigned long long)n, (unsigned long long)file_size);
    *length = (size_t)n;
    return OK;
}

int safetensors_header_parse(const char *file, const char *json, size_t n, uint64_t data_size,
                             struct safetensors_header **out, struct error *e)
{
    struct reading r = { .text = { file, json, n, 0, SAFETENSORS_HEAD }, .holder = metadata_key };
    size_t bad;
    int rc;

    *out = NULL;
    if (!n || *json != '{')
        return bad_json(&r.text, 0, "it does not begin with '{'", e);
    if (!utf8_valid(json, n, &bad))
        return bad_json(&r.text, bad, "not UTF-8", e);
    if (!(r.header = calloc(1, sizeof *r.header)))
        return safetensors_no_memory(&r, e);
    rc = read_object(&r.text, take_tensor, &r, e);
    while (rc == OK && r.text.at < n)
        if (json[r.text.at++] != ' ')
            rc = bad_json(&r.text, r.text.at - 1, "only blanks may follow the object", e);
    if (rc == OK)
        rc = check_header(&r, data_size, e);
    if (rc != OK) {
        safetensors_header_free(r.header);
        return rc;
    }
    *out = r.header;
    return OK;
}

void safetensors_header_free(struct safetensors_header *header)
{
    if (!header)
        return;
    for (size_t i = 0; i < header->count; i++)
        free(header->tensors[i].memory);
    for (size_t i = 0; i < header->pair_count; i++) {
        free(header->pairs[i].key);
        free(header->pairs[i].value);
    }
    free(header->tensors);
    free(header->pairs);
    free(header);
}

/* ---- reading an index ------------------------------------------------------------------------------------------- */

/* A part lies beside the index, whatever its name. */
static int check_parts(const struct reading *r, struct error *e)
{
    const struct safetensors_header *h = r->header;

    for (size_t i = 0; i < h->pair_count; i++) {
        const struct safetensors_pair *p = &h->pairs[i];

        if (!*p->value || strlen(p->value) != p->value_length || strchr(p->value, '/') || !strcmp(p->value, ".") ||
            !strcmp(p->value, ".."))
            return error_set(e, ERR_CORRUPT,
                             "%s: tensor %.100s: \"%.200s\" is not the name of a file beside the index; parts in other "
                             "directories are refused",
                             r->text.file, p->key, p->value);
    }
    return OK;
}

static int take_total(void *context, const char *name, size_t name_length, const char *value, size_t n, struct error *e)
{
    struct reading *r = context;
    json_t *number;
    double real;

    if (!is_key(name, name_length, "total_size") || n > MEMBER_MAX)
        return OK;
    if (!(number = load(&r->text, value, n, e)))
        return ERR_CORRUPT;
    real = json_number_value(number);
    if (json_is_integer(number) && json_integer_value(number) >= 0)
        r->index->total_size = json_integer_value(number);
    else if (json_is_real(number) && real >= 0 && real < 9e18) /* some write 12.0 */
        r->index->total_size = (int64_t)real;
    else
        r->index->total_size = SAFETENSORS_TOTAL_ODD;
    json_decref(number);
    return OK;
}

static int take_index_member(void *context, const char *name, size_t name_length, const char *value, size_t n,
                             struct error *e)
{
    struct reading *r = context;
    struct text inner = r->text;

    if (is_key(name, name_length, r->holder))
        return read_pairs(r, value, n, e);
    inner.at = (size_t)(value - inner.json);
    return is_key(name, name_length, "metadata") && *value == '{' ? read_object(&inner, take_total, r, e) : OK;
}

int safetensors_index_parse(const char *file, const char *json, size_t n, struct safetensors_index *out,
                            struct error *e)
{
    struct safetensors_header h = { 0 };
    struct reading r = { .text = { file, json, n, 0, 0 }, .header = &h, .holder = "weight_map", .index = out };
    size_t bad;
    int rc;

    *out = (struct safetensors_index){ .total_size = SAFETENSORS_TOTAL_NONE };
    if (!utf8_valid(json, n, &bad))
        return bad_json(&r.text, bad, "not UTF-8", e);
    skip_blanks(&r.text);
    rc = read_object(&r.text, take_index_member, &r, e);
    skip_blanks(&r.text);
    if (rc == OK && r.text.at < n)
        rc = bad_json(&r.text, r.text.at, "only blanks may follow the object", e);
    if (rc == OK && !h.pair_count)
        rc = error_set(e, ERR_CORRUPT, "%s: no weight_map that names the part of each tensor", file);
    if (rc == OK && (rc = sort_pairs(&r, e)) == OK)
        rc = check_parts(&r, e);
    out->places = h.pairs;
    out->count = h.pair_count;
    if (rc != OK)
        safetensors_index_release(out);
    return rc;
}

void safetensors_index_release(struct safetensors_index *index)
{
    for (size_t i = 0; i < index->count; i++) {
        free(index->places[i].key);
        free(index->places[i].value);
    }
    free(index->places);
    *index = (struct safetensors_index){ 0 };
}

const struct safetensors_pair *safetensors_index_find(const struct safetensors_index *index, const char *name, size_t n)
{
    const struct safetensors_pair key = { .key = (char *)(uintptr_t)name, .key_length = n };

    return index->count ? bsearch(&key, index->places, index->count, sizeof key, compare_pairs) : NULL;
}

/* ---- writing a header -------------------------------------------------------------------------------------------- */

static int compare_layout(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    int one = find_dtype(x->dtype, strlen(x->dtype)), two = find_dtype(y->dtype, strlen(y->dtype));

    return one != two ? two - one : compare_names(a, b);
}

/* dtype: -1 for one that is not known, whose bytes are those of its source. */
static int size_in_file(int dtype, const struct safetensors_tensor *t, uint64_t *bytes)
{
    *bytes = t->end - t->begin;
    return dtype < 0 ? OK : data_bytes(dtype, t->elements, bytes);
}

int safetensors_layout(struct safetensors_tensor *tensors, size_t count, struct error *e)
{
    uint64_t at = 0, bytes;

    for (size_t i = 0; i < count; i++) {
        struct safetensors_tensor *t = &tensors[i];
        int dtype = find_dtype(t->dtype, strlen(t->dtype));

        if (!is_dtype(t->dtype, strlen(t->dtype)))
            return error_set(e, ERR_ARG, "tensor %s: safetensors has no dtype %s", t->name, t->dtype);
        if (!utf8_valid(t->name, t->name_length, NULL) || strcmp(t->name, metadata_key) == 0)
            return error_set(e, ERR_ARG, "tensor %s: safetensors does not allow this name", t->name);
        if (bundle_shape_elements(t->rank, t->shape, &t->elements) != OK || size_in_file(dtype, t, &bytes) != OK)
            return error_set(e, ERR_ARG, "tensor %s: its shape makes too many bytes, or a fraction of a byte", t->name);
    }
    if (count)
        qsort(tensors, count, sizeof *tensors, compare_names);
    for (size_t i = 1; i < count; i++)
        if (compare_names(&tensors[i - 1], &tensors[i]) == 0)
            return error_set(e, ERR_ARG, "tensor %s is given twice", tensors[i].name);
    if (count)
        qsort(tensors, count, sizeof *tensors, compare_layout);
    for (size_t i = 0; i < count; i++) {
        size_in_file(find_dtype(tensors[i].dtype, strlen(tensors[i].dtype)), &tensors[i], &bytes);
        if (bytes > INT64_MAX - at)
            return error_set(e, ERR_ARG, "tensor %s: more bytes than a file can hold", tensors[i].name);
        tensors[i].begin = at;
        tensors[i].end = at += bytes;
    }
    return OK;
}

void safetensors_header_encode(struct buffer *out, const struct safetensors_tensor *tensors, size_t count,
                               const struct safetensors_pair *pairs, size_t pair_count)
{
    size_t start = out->length;
    const char *comma = "";

    buffer_append(out, "\0\0\0\0\0\0\0", SAFETENSORS_HEAD);
    buffer_append_byte(out, '{');
    if (pair_count) {
        json_text(out, metadata_key);
        for (size_t i = 0; i < pair_count; i++) {
            buffer_append_text(out, i ? "," : ":{");
            json_span(out, pairs[i].key, pairs[i].key_length, 0);
            buffer_append_byte(out, ':');
            json_span(out, pairs[i].value, pairs[i].value_length, 0);
        }
        buffer_append_byte(out, '}');
        comma = ",";
    }
    for (size_t i = 0; i < count; i++, comma = ",") {
        buffer_append_text(out, comma);
        json_span(out, tensors[i].name, tensors[i].name_length, 0);
        buffer_format(out, ":{\"dtype\":\"%s\",\"shape\":[", tensors[i].dtype);
        for (int d = 0; d < tensors[i].rank; d++)
            buffer_format(out, d ? ",%lld" : "%lld", (long long)tensors[i].shape[d]);
        buffer_format(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)tensors[i].begin,
                      (unsigned long long)tensors[i].end);
    }
    buffer_append_byte(out, '}');
    while ((out->length - start) % 8 && buffer_ok(out))
        buffer_append_byte(out, ' ');
    if (buffer_ok(out))
        put_le64(out->data + start, out->length - start - SAFETENSORS_HEAD);
}

/* ---- safetensors ------------------------------------------------------------------------------------------------- */

/* ---- files ----------------------------------------------------------------------------------------------------- */

struct open_part {
    const char *name;         /* in the index; borrowed from it, so only while the checkpoint is opened */
    struct safetensors *file; /* NULL: missing or damaged */
    uint64_t first;           /* where its data begin among those of all parts, one behind the other */
    size_t end;               /* its tensors, and those of the parts before */
};

/* One file, or an index and its parts. */
struct safetensors {
    char *path;
    int fd;                            /* of one file, else -1 */
    uint64_t data;                     /* where it begins */
    struct safetensors_header *header; /* of all parts: names and shapes are borrowed from those of the parts */
    struct open_part *parts;           /* in order of their names */
    size_t part_count;                 /* 0: one file */
};

static uint64_t data_size(const struct safetensors *s)
{
    return s->header->count ? s->header->tensors[s->header->count - 1].end : 0;
}

static int read_at(const struct safetensors *s, void *out, size_t n, uint64_t offset, struct error *e)
{
    ssize_t got = file_read_at(s->fd, out, n, offset);

    if (got < 0)
        return error_system(e, "%s: cannot read", s->path);
    if ((size_t)got < n)
        return error_set(e, ERR_CORRUPT, "%s: ends at byte %llu (truncated after it was opened)", s->path,
                         (unsigned long long)offset + (unsigned long long)got);
    return OK;
}

static int read_header(struct safetensors *s, struct error *e)
{
    uint8_t head[SAFETENSORS_HEAD] = { 0 };
    uint64_t size;
    struct stat st;
    size_t length;
    char *json;
    int rc;

    if (fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(e, ERR_IO, "%s: not a regular file", s->path);
    size = (uint64_t)st.st_size;
    if ((rc = read_at(s, head, size < SAFETENSORS_HEAD ? 0 : SAFETENSORS_HEAD, 0, e)) != OK ||
        (rc = safetensors_header_length(s->path, head, size, &length, e)) != OK)
        return rc;
    if (!(json = malloc(length + 1)))
        return error_memory(e, s->path, "for its header");
    s->data = SAFETENSORS_HEAD + length;
    if ((rc = read_at(s, json, length, SAFETENSORS_HEAD, e)) == OK)
        rc = safetensors_header_parse(s->path, json, length, size - s->data, &s->header, e);
    free(json);
    return rc;
}

/* For a file of another kind the error names the kind, not what its first bytes would mean here. */
static int say_kind(const struct safetensors *s, int rc, struct error *e)
{
    enum file_kind kind = rc == ERR_CORRUPT ? file_kind_of(s->path) : FILE_KIND_UNKNOWN;

    if (kind == FILE_KIND_UNKNOWN || kind == FILE_KIND_EMPTY || kind == FILE_KIND_SAFETENSORS)
        return rc;
    return error_set(e, rc, "%s: not a safetensors file, but %s", s->path, file_kind_text(kind));
}

/* ---- checkpoints in parts ---------------------------------------------------------------------------------------- */

int safetensors_is_index(const char *path)
{
    const char *name = file_base_name(path);

    return strstr(name, ".safetensors.index") && text_stem(name, strlen(name), ".json");
}

int safetensors_index_open(struct safetensors_index *out, const char *path, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc = file_read(path, SAFETENSORS_HEADER_MAX, &text, e);

    *out = (struct safetensors_index){ 0 };
    if (rc == OK)
        rc = safetensors_index_parse(path, buffer_text(&text), text.length, out, e);
    buffer_release(&text);
    return rc;
}

/* What an index says, held against its parts. */
struct assembling {
    struct safetensors *whole;
    const struct safetensors_index *index;
    char *seen; /* (tensors of the index) enum seen */
    safetensors_problem *problem;
    void *context;
    struct error *e;
    int incomplete;      /* 1: something that the index names cannot be read */
    uint64_t named, all; /* bytes of the tensors that it names, and of all that the parts have */
};
enum seen { SEEN_NOT, SEEN_THERE, SEEN_ELSEWHERE };

/* OK: it was reported. Without anyone to report to, what cannot be read is an error, and all else is passed over. */
static int tell(struct assembling *a, int readable, const struct error *why)
{
    a->incomplete |= !readable;
    if (a->problem)
        a->problem(a->context, why);
    return a->problem || readable ? OK : error_copy(a->e, why);
}

static int open_part(struct assembling *a, struct open_part *part)
{
    struct error why = { 0 };
    char path[PATH_MAX];
    const char *index = a->whole->path;
    const int directory = (int)(file_base_name(index) - index);
    int rc;

    if (snprintf(path, sizeof path, "%.*s%s", directory, index, part->name) >= (int)sizeof path)
        return error_set(a->e, ERR_ARG, "%s: path too long", index);
    if (safetensors_is_index(part->name))
        rc = error_set(&why, ERR_CORRUPT, "%s: names %s, an index, as a part", index, part->name);
    else
        rc = safetensors_open(&part->file, path, &why);
    if (rc == ERR_NOMEM || (rc != OK && error_is_lack(&why)))
        return error_copy(a->e, &why);
    if (why.system == ENOENT) {
        error_set(&why, ERR_IO, "%s: its part %s is missing", index, part->name);
        why.system = ENOENT;
    }
    return rc == OK ? OK : tell(a, 0, &why);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int open_all(struct assembling *a)
{
    struct safetensors *s = a->whole;
    const char **names = calloc(a->index->count + 1, sizeof *names);
    int rc = OK;

    if (!names || !(s->parts = calloc(a->index->count + 1, sizeof *s->parts))) {
        free(names);
        return error_memory(a->e, s->path, "for its parts");
    }
    for (size_t i = 0; i < a->index->count; i++)
        names[i] = a->index->places[i].value;
    qsort(names, a->index->count, sizeof *names, compare_texts);
    for (size_t i = 0; i < a->index->count && rc == OK; i++)
        if (!i || strcmp(names[i], names[i - 1])) {
            s->parts[s->part_count].name = names[i];
            rc = open_part(a, &s->parts[s->part_count++]);
        }
    free(names);
    return rc;
}

/* Takes the tensors that the index places in this part, and the part's pairs. */
static void take_part(struct assembling *a, struct open_part *part)
{
    struct safetensors_header *h = a->whole->header, *from = part->file->header;

    for (size_t i = 0; i < from->count; i++) {
        struct safetensors_tensor *t = &from->tensors[i];
        const struct safetensors_pair *place = safetensors_index_find(a->index, t->name, t->name_length);

        a->all += t->end - t->begin;
        if (!place || strcmp(place->value, part->name))
            continue;
        a->seen[place - a->index->places] = SEEN_THERE;
        a->named += t->end - t->begin;
        h->tensors[h->count] = *t;
        h->tensors[h->count].memory = NULL;
        h->tensors[h->count].begin += part->first;
        h->tensors[h->count++].end += part->first;
    }
    for (size_t i = 0; i < from->pair_count; i++)
        h->pairs[h->pair_count++] = from->pairs[i];
    from->pair_count = 0; /* they have moved */
}

static int compare_moved(const void *a, const void *b)
{
    const struct safetensors_pair *x = a, *y = b;
    const int order = bytes_compare(x->key, x->key_length, y->key, y->key_length);

    return order ? order : bytes_compare(x->value, x->value_length, y->value, y->value_length);
}

/* Parts repeat what holds for all. */
static void keep_each_pair_once(struct safetensors_header *h)
{
    size_t kept = 0;

    if (h->pair_count)
        qsort(h->pairs, h->pair_count, sizeof *h->pairs, compare_moved);
    for (size_t i = 0; i < h->pair_count; i++) {
        struct safetensors_pair *last = kept ? &h->pairs[kept - 1] : NULL, *next = &h->pairs[i];

        if (last && !bytes_compare(last->key, last->key_length, next->key, next->key_length)) {
            free(next->key);
            free(next->value);
        } else {
            h->pairs[kept++] = *next;
        }
    }
    h->pair_count = kept;
}

static int take_all(struct assembling *a)
{
    struct safetensors *s = a->whole;
    struct safetensors_header *h = s->header = calloc(1, sizeof *h);
    size_t pairs = 0;
    uint64_t first = 0;

    for (size_t i = 0; i < s->part_count; i++)
        pairs += s->parts[i].file ? s->parts[i].file->header->pair_count : 0;
    a->seen = calloc(a->index->count + 1, 1);
    if (!h || !a->seen || !(h->tensors = calloc(a->index->count + 1, sizeof *h->tensors)) ||
        !(h->pairs = calloc(pairs + 1, sizeof *h->pairs)))
        return error_memory(a->e, s->path, "for its tensors");
    for (size_t i = 0; i < s->part_count; i++) {
        s->parts[i].first = first;
        if (s->parts[i].file) {
            take_part(a, &s->parts[i]);
            first += data_size(s->parts[i].file);
        }
        s->parts[i].end = h->count;
    }
    keep_each_pair_once(h);
    return OK;
}

/* Tensors of a part that the index does not place there. */
static int check_part(struct assembling *a, const struct open_part *part)
{
    const struct safetensors_header *h = part->file->header;
    const char *path = a->whole->path;
    int rc = OK;

    for (size_t i = 0; i < h->count && rc == OK; i++) {
        const struct safetensors_tensor *t = &h->tensors[i];
        const struct safetensors_pair *place = safetensors_index_find(a->index, t->name, t->name_length);
        struct error why = { 0 };
        char *seen;

        if (place && !strcmp(place->value, part->name))
            continue;
        if (!place) {
            error_set(&why, ERR_CORRUPT, "%s: tensor %s is in %s, but not in the index", path, t->name, part->name);
            rc = tell(a, 1, &why);
            continue;
        }
        seen = &a->seen[place - a->index->places];
        if (*seen == SEEN_THERE)
            error_set(&why, ERR_CORRUPT, "%s: tensor %s is in two parts, %s and %s", path, t->name, place->value,
                      part->name);
        else
            error_set(&why, ERR_CORRUPT, "%s: tensor %s is in %s, not in %s as the index says", path, t->name,
                      part->name, place->value);
        rc = tell(a, *seen == SEEN_THERE, &why);
        *seen = *seen == SEEN_THERE ? SEEN_THERE : SEEN_ELSEWHERE;
    }
    return rc;
}

static int part_is_there(const struct safetensors *s, const char *name)
{
    for (size_t low = 0, high = s->part_count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(s->parts[middle].name, name);

        if (!order)
            return s->parts[middle].file != NULL;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static int check_all(struct assembling *a)
{
    const struct safetensors *s = a->whole;
    const int64_t total = a->index->total_size;
    struct error why = { 0 };
    int rc = OK;

    for (size_t i = 0; i < s->part_count && rc == OK; i++)
        rc = s->parts[i].file ? check_part(a, &s->parts[i]) : OK;
    for (size_t i = 0; i < a->index->count && rc == OK; i++) {
        const struct safetensors_pair *place = &a->index->places[i];

        if (a->seen[i] != SEEN_NOT || !part_is_there(s, place->value))
            continue;
        error_set(&why, ERR_CORRUPT, "%s: tensor %s is not in its part %s", s->path, place->key, place->value);
        rc = tell(a, 0, &why);
    }
    if (rc != OK || a->incomplete || total == SAFETENSORS_TOTAL_NONE)
        return rc;
    if (total == SAFETENSORS_TOTAL_ODD)
        error_set(&why, ERR_CORRUPT, "%s: total_size is not a number of bytes", s->path);
    else if ((uint64_t)total != a->named && (uint64_t)total != a->all)
        error_set(&why, ERR_CORRUPT, "%s: total_size is %lld, but its tensors have %llu bytes", s->path,
                  (long long)total, (unsigned long long)a->named);
    else
        return OK;
    return tell(a, 1, &why);
}

static int open_parts(struct safetensors *s, safetensors_problem *problem, void *context, struct error *e)
{
    struct safetensors_index index;
    struct assembling a = { .whole = s, .index = &index, .problem = problem, .context = context, .e = e };
    int rc = safetensors_index_open(&index, s->path, e);

    if (rc != OK)
        return rc;
    if ((rc = open_all(&a)) == OK && (rc = take_all(&a)) == OK)
        rc = check_all(&a);
    for (size_t i = 0; i < s->part_count; i++)
        s->parts[i].name = NULL;
    free(a.seen);
    safetensors_index_release(&index);
    return rc;
}

int safetensors_open(struct safetensors **out, const char *path, struct error *e)
{
    return safetensors_open_damaged(out, path, NULL, NULL, e);
}

int safetensors_open_damaged(struct safetensors **out, const char *path, safetensors_problem *problem, void *context,
                             struct error *e)
{
    struct safetensors *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return error_memory(e, path, "to open it");
    }
    s->fd = -1;
    /* O_NONBLOCK so that opening a pipe does not wait for a writer. */
    if (safetensors_is_index(path))
        rc = open_parts(s, problem, context, e);
    else if ((s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        rc = error_system(e, "%s: cannot open", path);
    else
        rc = say_kind(s, read_header(s, e), e);
    if (rc != OK)
        safetensors_close(s);
    else
        *out = s;
    return rc;
}

void safetensors_close(struct safetensors *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    safetensors_header_free(s->header);
    for (size_t i = 0; i < s->part_count; i++)
        safetensors_close(s->parts[i].file);
    free(s->parts);
    free(s->path);
    free(s);
}

/* tensor: of s->header. */
static size_t find_part(const struct safetensors *s, const struct safetensors_tensor *tensor)
{
    const size_t place = (size_t)(tensor - s->header->tensors);
    size_t low = 0, high = s->part_count;

    while (low < high) { /* the first part that ends behind it */
        const size_t middle = low + (high - low) / 2;

        if (s->parts[middle].end <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct safetensors_header *safetensors_contents(const struct safetensors *s)
{
    return s->header;
}

int safetensors_read(const struct safetensors *s, const struct safetensors_tensor *tensor, uint64_t at, void *out,
                     size_t n, struct error *e)
{
    uint64_t size = tensor->end - tensor->begin;

    if (at > size || n > size - at)
        return error_set(e, ERR_ARG, "%s: tensor %s has no %zu bytes at its byte %llu", s->path, tensor->name, n,
                         (unsigned long long)at);
    if (s->part_count) {
        const struct open_part *part = &s->parts[find_part(s, tensor)];

        return read_at(part->file, out, n, part->file->data + (tensor->begin - part->first) + at, e);
    }
    return read_at(s, out, n, s->data + tensor->begin + at, e);
}

size_t safetensors_parts(const struct safetensors *s)
{
    return s->part_count ? s->part_count : 1;
}

size_t safetensors_part(const struct safetensors *s, const struct safetensors_tensor *tensor, uint64_t *offset)
{
    const size_t part = s->part_count ? find_part(s, tensor) : 0;

    *offset = tensor->begin - (s->part_count ? s->parts[part].first : 0);
    return part;
}

uint64_t safetensors_bytes(const struct safetensors *s)
{
    uint64_t bytes = s->part_count ? 0 : s->data + data_size(s);

    for (size_t i = 0; i < s->part_count; i++)
        bytes += s->parts[i].file ? safetensors_bytes(s->parts[i].file) : 0;
    return bytes;
}

int safetensors_from_torch(const struct safetensors *s)
{
    const struct safetensors_header *h = s->header;

    for (size_t i = 0; i < h->pair_count; i++)
        if (!strcmp(h->pairs[i].key, "format") && !strcmp(h->pairs[i].value, "pt"))
            return 1;
    return 0;
}

int64_t safetensors_step(const struct safetensors *s, struct error *e)
{
    static const char *const keys[] = { "global_step", "step" };
    const struct safetensors_header *h = s->header;
    uint8_t bytes[8];
    int64_t step;

    for (size_t i = 0; i < h->count; i++) {
        const struct safetensors_tensor *tensor = &h->tensors[i];
        int type = safetensors_tensor_type(tensor->dtype);

        if (strcmp(tensor->name, keys[0]) != 0 || tensor->elements != 1 ||
            (type != TENSOR_INT64 && type != TENSOR_INT32))
            continue;
        if (safetensors_read(s, tensor, 0, bytes, tensor_type_size(type), e) != OK)
            return -1;
        if ((step = (int64_t)tensor_integer(type, bytes)) >= 0)
            return step;
    }
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t i = 0; i < h->pair_count; i++)
            if (strcmp(h->pairs[i].key, keys[k]) == 0 && number_parse_int(h->pairs[i].value, &step) && step >= 0)
                return step;
    return -1;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

struct safetensors_writer {
    const struct io *io;
    char path[PATH_MAX], temporary[PATH_MAX];
    struct unfinished *unfinished;
    int fd;
    uint64_t left; /* bytes of data that are still to come */
};

int safetensors_writer_open(struct safetensors_writer **out, const struct io *io, const char *path,
                            const struct safetensors_tensor *tensors, size_t count,
                            const struct safetensors_pair *pairs, size_t pair_count, struct error *e)
{
    struct safetensors_writer *w = calloc(1, sizeof *w);
    struct buffer head = BUFFER_EMPTY;
    int rc = OK;

    *out = NULL;
    if (!w)
        return error_memory(e, path, "to write it");
    w->io = io ? io : &io_real;
    w->left = count ? tensors[count - 1].end : 0;
    w->fd = -1;
    snprintf(w->path, sizeof w->path, "%s", path);
    if (snprintf(w->temporary, sizeof w->temporary, "%s.tmp%ld", path, (long)getpid()) >= (int)sizeof w->temporary) {
        free(w);
        return error_set(e, ERR_ARG, "%s: path too long", path);
    }
    safetensors_header_encode(&head, tensors, count, pairs, pair_count);
    if (!buffer_ok(&head))
        rc = error_memory(e, path, "for its header");
    else if (head.length - SAFETENSORS_HEAD > SAFETENSORS_HEADER_MAX)
        rc = error_set(e, ERR_ARG, "%s: a header of %zu bytes, over the format's limit", path, head.length);
    if (rc == OK) {
        w->unfinished = unfinished_begin(AT_FDCWD, w->temporary);
        unlink(w->temporary); /* left by a killed process with our process id */
        if ((w->fd = w->io->open(w->io->context, w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
            rc = error_system(e, "%s: cannot create", w->temporary);
        else if (io_write_full(w->io, w->fd, head.data, head.length) < 0)
            rc = error_system(e, "%s: cannot write", w->temporary);
    }
    buffer_release(&head);
    if (rc != OK)
        safetensors_writer_abandon(w);
    else
        *out = w;
    return rc;
}

int safetensors_writer_append(struct safetensors_writer *w, const void *bytes, size_t n, struct error *e)
{
    if (n > w->left)
        return error_set(e, ERR_ARG, "%s: more bytes than its header says", w->path);
    if (n && io_write_full(w->io, w->fd, bytes, n) < 0)
        return error_system(e, "%s: cannot write", w->temporary);
    w->left -= n;
    return OK;
}

int safetensors_writer_finish(struct safetensors_writer *w, struct error *e)
{
    int rc = OK, fd = w->fd;

    if (w->left)
        rc = error_set(e, ERR_ARG, "%s: %llu bytes of data are missing", w->path, (unsigned long long)w->left);
    else if (w->io->fsync(w->io->context, fd) < 0)
        rc = error_system(e, "%s: cannot sync", w->temporary);
    w->fd = -1;
    if (w->io->close(w->io->context, fd) < 0 && rc == OK)
        rc = error_system(e, "%s: cannot close", w->temporary);
    if (rc == OK && w->io->rename(w->io->context, w->temporary, w->path) < 0)
        rc = error_system(e, "%s: cannot rename to %s", w->temporary, w->path);
    if (rc == OK) {
        rc = file_sync_parent(w->io, w->path, e);
        unfinished_end(w->unfinished);
        free(w);
        return rc;
    }
    safetensors_writer_abandon(w);
    return rc;
}

void safetensors_writer_abandon(struct safetensors_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        w->io->close(w->io->context, w->fd);
    unlink(w->temporary);
    unfinished_end(w->unfinished);
    free(w);
}
