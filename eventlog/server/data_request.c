#include "eventlog/server/data_request.h"

#include "base/array.h"
#include "base/bytes.h"
#include "eventlog/format/wire.h"

#include <stdlib.h>
#include <string.h>

#define SERVICE "/tensorboard.data.TensorBoardDataProvider/"

/* fields of the requests of lists and series */
enum { EXPERIMENT = 1, PLUGIN_FILTER, RUN_TAG_FILTER, DOWNSAMPLE, FILTER_RUNS = 1, FILTER_TAGS };

static const char *const methods[DATA_METHODS] = {
    [DATA_GET_EXPERIMENT] = "GetExperiment", [DATA_LIST_PLUGINS] = "ListPlugins",
    [DATA_LIST_RUNS] = "ListRuns",           [DATA_LIST_SCALARS] = "ListScalars",
    [DATA_READ_SCALARS] = "ReadScalars",     [DATA_LIST_TENSORS] = "ListTensors",
    [DATA_READ_TENSORS] = "ReadTensors",     [DATA_LIST_BLOBS] = "ListBlobSequences",
    [DATA_READ_BLOBS] = "ReadBlobSequences", [DATA_READ_BLOB] = "ReadBlob",
};

enum data_method data_request_method(const char *path, size_t n)
{
    const char *end = n ? memchr(path, '?', n) : NULL;
    size_t head = strlen(SERVICE);

    n = end ? (size_t)(end - path) : n;
    if (n > head && !memcmp(path, SERVICE, head))
        for (int i = 0; i < DATA_METHODS; i++)
            if (n - head == strlen(methods[i]) && !memcmp(path + head, methods[i], n - head))
                return (enum data_method)i;
    return DATA_METHODS;
}

static int corrupt(struct error *e, const char *what)
{
    return error_set(e, ERR_CORRUPT, "failed to decode Protobuf message: %s", what);
}

static int set_text(struct span *out, const struct wire_field *f, struct error *e)
{
    if (f->type != WIRE_BYTES)
        return OK;
    if (!utf8_valid(f->bytes, f->length, NULL))
        return corrupt(e, "a string is not UTF-8");
    *out = (struct span){ f->bytes, f->length };
    return OK;
}

/* Calls each() for every field of a message. */
static int fields(void *context, const uint8_t *p, size_t n,
                  int (*each)(void *context, const struct wire_field *f, struct error *e), struct error *e)
{
    const uint8_t *end = p + n;
    struct wire_field f;
    int rc = OK;

    while (rc == OK && p < end)
        rc = wire_take(&p, end, &f) == 1 ? each(context, &f, e) : corrupt(e, "a field is cut off or malformed");
    return rc;
}

static int plugin_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_request *r = context;

    return f->number == 1 ? set_text(&r->plugin, f, e) : OK;
}

static int name_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_names *names = context;
    struct span name;
    int rc;

    if (f->number != 1 || f->type != WIRE_BYTES)
        return OK;
    if ((rc = set_text(&name, f, e)) != OK)
        return rc;
    if (!ARRAY_ROOM(names->names, names->capacity, names->count + 1))
        return error_memory(e, NULL, "for %zu names", names->count + 1);
    names->names[names->count++] = name;
    return OK;
}

static int filter_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_request *r = context;
    struct data_names *names = f->number == FILTER_RUNS ? &r->runs : &r->tags;

    if ((f->number != FILTER_RUNS && f->number != FILTER_TAGS) || f->type != WIRE_BYTES)
        return OK;
    names->given = 1;
    return fields(names, f->bytes, f->length, name_field, e);
}

static int limit_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_request *r = context;

    (void)e;
    if (f->number == 1 && f->type == WIRE_VARINT)
        r->limit = (int64_t)f->integer;
    return OK;
}

static int request_field(void *context, const struct wire_field *f, struct error *e)
{
    struct data_request *r = context;

    if (f->number == EXPERIMENT)
        return set_text(r->method == DATA_READ_BLOB ? &r->blob_key : &r->experiment, f, e);
    if (f->type != WIRE_BYTES || r->method < DATA_LIST_SCALARS || r->method > DATA_READ_BLOBS)
        return OK;
    switch (f->number) {
    case PLUGIN_FILTER: return fields(r, f->bytes, f->length, plugin_field, e);
    case RUN_TAG_FILTER: return fields(r, f->bytes, f->length, filter_field, e);
    case DOWNSAMPLE: r->has_limit = 1; return fields(r, f->bytes, f->length, limit_field, e);
    default: return OK;
    }
}

static int by_bytes(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return bytes_compare(x->bytes, x->length, y->bytes, y->length);
}

static void sort_names(struct data_names *n)
{
    size_t count = 0;

    if (!n->count)
        return;
    qsort(n->names, n->count, sizeof *n->names, by_bytes);
    for (size_t i = 0; i < n->count; i++)
        if (!i || by_bytes(&n->names[i], &n->names[count - 1]) != 0)
            n->names[count++] = n->names[i];
    n->count = count;
}

int data_request_read(struct data_request *r, enum data_method method, const uint8_t *bytes, size_t n, struct error *e)
{
    static const uint8_t none[1];
    int rc;

    *r = (struct data_request){ .method = method };
    r->experiment = r->plugin = r->blob_key = (struct span){ none, 0 };
    rc = fields(r, n ? bytes : none, n, request_field, e);
    if (rc != OK) {
        data_request_release(r);
        return rc;
    }
    sort_names(&r->runs);
    sort_names(&r->tags);
    return OK;
}

void data_request_release(struct data_request *r)
{
    free(r->runs.names);
    free(r->tags.names);
    r->runs = r->tags = (struct data_names){ 0 };
}
