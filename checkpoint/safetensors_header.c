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
#include "checkpoint/safetensors_header.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/json.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/tensor_bundle.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
