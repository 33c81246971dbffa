#include "eventlog/check/log_check.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/text.h"
#include "eventlog/check/log_finding.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/event_wire.h"
#include "eventlog/format/foreign_record.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/format/wire.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- log naming -------------------------------------------------------------------------------------------------- */

static int all_digits(const char *from, const char *to)
{
    if (from == to)
        return 0;
    for (; from < to; from++)
        if (!isdigit((unsigned char)*from))
            return 0;
    return 1;
}

int log_naming_order_broken(const char *former, const char *name)
{
    size_t same = 0, start;
    const char *a, *b;
    unsigned long long first, second;

    while (former[same] && former[same] == name[same])
        same++;
    for (start = same; start && name[start - 1] != '.'; start--)
        ;
    a = former + start + strcspn(former + start, ".");
    b = name + start + strcspn(name + start, ".");
    if (!all_digits(former + start, a) || !all_digits(name + start, b))
        return 0;
    first = strtoull(former + start, NULL, 10);
    second = strtoull(name + start, NULL, 10);
    if (first <= second)
        return 0;
    if (start >= 9 && !strncmp(name + start - 9, "tfevents.", 9))
        return 1;
    for (const char *p = b; *p;) { /* another number follows: this one is not a counter */
        const char *from = p + 1, *to = from + strcspn(from, ".");

        if (all_digits(from, to))
            return 0;
        p = to;
    }
    return 1;
}

int log_naming_is_copy(const char *name)
{
    static const char *const endings[] = { ".bak",    ".orig", ".old", ".swp", ".tmp",  ".save",
                                           ".backup", "~",     ".gz",  ".zst", ".part", ".partial" };
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (text_stem(name, n, endings[i]))
            return 1;
    return 0;
}

int log_naming_is_hidden(const char *run)
{
    for (const char *p = run; *p; p += strcspn(p, "/"), p += *p == '/')
        if (*p == '.' && p[1] && p[1] != '/')
            return 1;
    return 0;
}

/* ---- log check --------------------------------------------------------------------------------------------------- */

/* ---- log value --------------------------------------------------------------------------------------------------- */

/*
 * One value of a Summary as TensorBoard's plugins see it: its kind, the data class that its metadata
 * gives it, and whether a series of that class can show it. Pure functions; the bytes are those of an event that
 * event_wire_check() found sound.
 */

enum { LOG_CLASS_NONE, LOG_CLASS_SCALAR, LOG_CLASS_TENSOR, LOG_CLASS_BLOBS };

struct log_value {
    const char *tag;
    size_t tag_length;
    enum event_kind kind;
    int has_metadata;
    int data_class; /* as given */
    const char *plugin;
    size_t plugin_length;
    const uint8_t *content; /* of the plugin's data */
    size_t content_length;
    const char *display_name, *description; /* "" if there is none */
    size_t display_name_length, description_length;
    int dtype, rank;
    uint64_t elements, last_dimension; /* of the shape: 1 without one */
    uint64_t content_bytes;            /* tensor_content */
    uint64_t listed[18];               /* how many elements the typed list with this field number has */
    size_t limits, buckets;            /* of an old histogram */
    double first_bucket, last_bucket;
    const uint8_t *image;
    size_t image_length;
    const uint8_t *bytes; /* length bytes: all of the value */
    size_t length;
    const uint8_t *number; /* 4 bytes of a float32; NULL if there are none */
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

static void read_shape(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f, inner;

    while (wire_take(&p, end, &f) == 1) {
        const uint8_t *q = f.bytes, *stop = q + f.length;
        uint64_t size = 0;

        if (f.number != 2 || f.type != WIRE_BYTES)
            continue;
        while (wire_take(&q, stop, &inner) == 1)
            if (inner.number == 1)
                size = inner.integer;
        v->rank += v->rank < 1000;
        v->last_dimension = size;
        if (__builtin_mul_overflow(v->elements, size, &v->elements))
            v->elements = UINT64_MAX;
    }
}

static uint64_t packed_count(const struct wire_field *f, size_t size)
{
    uint64_t count = 0;

    if (f->type != WIRE_BYTES)
        return 1;
    if (size)
        return f->length / size;
    for (size_t i = 0; i < f->length; i++)
        count += f->bytes[i] < 0x80; /* the last byte of a varint */
    return count;
}

static void read_tensor(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1) {
        if (f.number == 1)
            v->dtype = (int)(int32_t)f.integer;
        else if (f.number == 2)
            read_shape(v, f.bytes, f.bytes + f.length);
        else if (f.number == 4)
            v->content_bytes = f.length;
        else if (f.number == 5 || f.number == 9)
            v->listed[f.number] += packed_count(&f, 4);
        else if (f.number == 6 || f.number == 12)
            v->listed[f.number] += packed_count(&f, 8);
        else if (f.number == 8)
            v->listed[8]++;
        else if (f.number < 18)
            v->listed[f.number] += packed_count(&f, 0);
        if ((f.number == 4 || f.number == 5) && f.type == WIRE_BYTES && f.length == 4)
            v->number = f.bytes;
    }
}

static void read_histogram(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1) {
        size_t count = f.type == WIRE_BYTES ? f.length / 8 : 1;

        if (f.number == 6)
            v->limits += count;
        if (f.number != 7 || !count)
            continue;
        if (!v->buckets)
            v->first_bucket = bits_double(f.type == WIRE_BYTES ? get_le64(f.bytes) : f.integer);
        v->last_bucket = bits_double(f.type == WIRE_BYTES ? get_le64(f.bytes + 8 * (count - 1)) : f.integer);
        v->buckets += count;
    }
}

static void read_metadata(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f, inner;

    v->has_metadata = 1;
    while (wire_take(&p, end, &f) == 1) {
        const uint8_t *q = f.bytes, *stop = q + f.length;

        if (f.number == 4)
            v->data_class = (int)(int32_t)f.integer;
        if (f.number == 2) {
            v->display_name = (const char *)f.bytes;
            v->display_name_length = f.length;
        } else if (f.number == 3) {
            v->description = (const char *)f.bytes;
            v->description_length = f.length;
        }
        if (f.number != 1)
            continue;
        while (wire_take(&q, stop, &inner) == 1) {
            if (inner.number == 1) {
                v->plugin = (const char *)inner.bytes;
                v->plugin_length = inner.length;
            } else if (inner.number == 2) {
                v->content = inner.bytes;
                v->content_length = inner.length;
            }
        }
    }
}

static void read_image(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1)
        if (f.number == 4) {
            v->image = f.bytes;
            v->image_length = f.length;
        }
}

/* Reads the value in these bytes; pointers are borrowed from them. */
static void log_value_read(struct log_value *v, const uint8_t *bytes, size_t n)
{
    const uint8_t *p = bytes, *end = bytes + n;
    struct wire_field f;

    memset(v, 0, sizeof *v);
    v->tag = v->plugin = v->display_name = v->description = "";
    v->content = v->image = v->bytes = bytes;
    v->length = n;
    v->elements = v->last_dimension = 1;
    while (wire_take(&p, end, &f) == 1) {
        const uint8_t *stop = f.bytes + f.length;

        if ((f.number >= EVENT_VALUE_SIMPLE && f.number <= EVENT_VALUE_AUDIO) || f.number == EVENT_VALUE_TENSOR)
            v->kind = (enum event_kind)f.number;
        switch (f.number) {
        case 1:
            v->tag = (const char *)f.bytes;
            v->tag_length = f.length;
            break;
        case 2: v->number = p - 4; break;
        case 4: read_image(v, f.bytes, stop); break;
        case 5: read_histogram(v, f.bytes, stop); break;
        case 8: read_tensor(v, f.bytes, stop); break;
        case 9: read_metadata(v, f.bytes, stop); break;
        default: break;
        }
    }
}

static int log_value_plugin_is(const struct log_value *v, const char *name)
{
    return v->plugin_length == strlen(name) && !memcmp(v->plugin, name, v->plugin_length);
}

/* ---- classes --------------------------------------------------------------------------------------------------- */

static int plugin_class(const struct log_value *v)
{
    static const struct {
        const char *name;
        int class;
    } known[] = {
        { "scalars", LOG_CLASS_SCALAR },
        { "histograms", LOG_CLASS_TENSOR },
        { "text", LOG_CLASS_TENSOR },
        { "hparams", LOG_CLASS_TENSOR },
        { "pr_curves", LOG_CLASS_TENSOR },
        { "mesh", LOG_CLASS_TENSOR },
        { "custom_scalars", LOG_CLASS_TENSOR },
        { "images", LOG_CLASS_BLOBS },
        { "audio", LOG_CLASS_BLOBS },
        { "graph_run_metadata", LOG_CLASS_BLOBS },
        { "graph_run_metadata_graph", LOG_CLASS_BLOBS },
        { "graph_keras_model", LOG_CLASS_BLOBS },
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (log_value_plugin_is(v, known[i].name))
            return known[i].class;
    return LOG_CLASS_NONE;
}

/* The class that a value of an old kind has by itself. */
static int legacy_class(enum event_kind kind)
{
    switch (kind) {
    case EVENT_VALUE_SIMPLE: return LOG_CLASS_SCALAR;
    case EVENT_VALUE_HISTOGRAM: return LOG_CLASS_TENSOR;
    case EVENT_VALUE_IMAGE:
    case EVENT_VALUE_AUDIO: return LOG_CLASS_BLOBS;
    default: return LOG_CLASS_NONE;
    }
}

/* The class that a series gets from its first value. */
static int log_value_class(const struct log_value *first)
{
    if (first->data_class)
        return first->data_class > 0 && first->data_class <= LOG_CLASS_BLOBS ? first->data_class : LOG_CLASS_NONE;
    if (legacy_class(first->kind))
        return legacy_class(first->kind);
    return plugin_class(first);
}

/* 1 if the default loader makes its own metadata for a series with this first value, and loses name and description. */
static int log_value_loses_texts(const struct log_value *first)
{
    return !first->data_class && legacy_class(first->kind) && (first->display_name_length || first->description_length);
}

static int image_known(const uint8_t *p, size_t n)
{
    return (n >= 4 && !memcmp(p, "\x89PNG", 4)) || (n >= 3 && !memcmp(p, "\xff\xd8\xff", 3)) ||
           (n >= 4 && !memcmp(p, "GIF8", 4)) || (n >= 2 && !memcmp(p, "BM", 2));
}

/* What the first value alone shows to be wrong with a series: LOG_KINDS if nothing. */
static enum log_finding_kind log_value_series_fault(const struct log_value *v, int class)
{
    static const char layout[] = "custom_scalars__config__";
    struct wire_field f;
    uint64_t version = 0;
    int shape = 0, body = 0;
    const uint8_t *p = v->content, *end = p + v->content_length;

    if (v->data_class < 0 || v->data_class > LOG_CLASS_BLOBS)
        return LOG_DATA_CLASS;
    if (!class)
        return LOG_NO_CLASS;
    if (v->data_class && legacy_class(v->kind) && legacy_class(v->kind) != class)
        return LOG_LEGACY_CLASS;
    if (class == LOG_CLASS_BLOBS && (memchr(v->tag, '"', v->tag_length) || memchr(v->tag, '\\', v->tag_length) ||
                                     memchr(v->tag, '\n', v->tag_length)))
        return LOG_BLOB_TAG;
    if (log_value_plugin_is(v, "custom_scalars") &&
        (v->tag_length != sizeof layout - 1 || memcmp(v->tag, layout, sizeof layout - 1) != 0))
        return LOG_LAYOUT_TAG;
    while (wire_take(&p, end, &f) == 1) {
        version = f.number == 1 && f.type == WIRE_VARINT ? f.integer : version;
        shape |= f.number == 6;
        body |= f.number >= 2 && f.number <= 4 && f.type == WIRE_BYTES;
    }
    if (log_value_plugin_is(v, "hparams") && (p < end || version || !body))
        return LOG_HPARAMS;
    if (log_value_plugin_is(v, "mesh") && (p < end || !shape))
        return LOG_MESH_SHAPE;
    return LOG_KINDS;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Bytes of an element in tensor_content, and the field that lists such elements; 0: no array has this type. */
static size_t element_size(int dtype, int *list)
{
    /* clang-format off */
    static const struct { int dtype, list; size_t size; } known[] = {
        { EVENT_FLOAT, 5, 4 },   { EVENT_DOUBLE, 6, 8 },  { EVENT_INT32, 7, 4 },     { EVENT_UINT8, 7, 1 },
        { EVENT_INT16, 7, 2 },   { EVENT_INT8, 7, 1 },    { EVENT_INT64, 10, 8 },    { EVENT_BOOL, 11, 1 },
        { EVENT_UINT16, 7, 2 },  { EVENT_HALF, 13, 2 },   { EVENT_UINT32, 0, 4 },    { EVENT_UINT64, 0, 8 },
        { EVENT_COMPLEX64, 9, 8 }, { EVENT_COMPLEX128, 12, 16 },
        { 11, 7, 1 }, { 12, 7, 1 }, { 13, 7, 4 }, { 15, 7, 2 }, { 16, 7, 2 }, /* quantized ones */
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].dtype == dtype) {
            *list = known[i].list;
            return known[i].size;
        }
    return 0;
}

static uint64_t elements_given(const struct log_value *v, int *typed)
{
    int list = 0;
    size_t size = element_size(v->dtype, &list);
    uint64_t count;

    *typed = size != 0;
    if (v->dtype == EVENT_STRING) {
        *typed = 1;
        return v->listed[8];
    }
    if (!size)
        return 0;
    if (v->content_bytes)
        return v->content_bytes % size ? UINT64_MAX : v->content_bytes / size;
    count = v->listed[list];
    return v->dtype == EVENT_COMPLEX64 || v->dtype == EVENT_COMPLEX128 ? count / 2 : count;
}

static enum log_finding_kind scalar_fault(const struct log_value *v)
{
    int typed;
    uint64_t count;

    if (v->kind == EVENT_VALUE_SIMPLE)
        return LOG_KINDS;
    if (v->kind == EVENT_VALUE_NONE)
        return LOG_NO_VALUE;
    if (v->kind != EVENT_VALUE_TENSOR)
        return LOG_SCALAR_CHANGED;
    if (v->dtype == EVENT_FLOAT && !v->rank && (v->listed[5] == 1 || (!v->listed[5] && v->content_bytes == 4)))
        return LOG_KINDS;
    count = elements_given(v, &typed);
    if (!typed || v->dtype == EVENT_STRING || v->dtype == EVENT_COMPLEX64 || v->dtype == EVENT_COMPLEX128 ||
        count != 1 || v->elements != 1)
        return LOG_SCALAR_VALUE;
    return LOG_SCALAR_FORM;
}

static enum log_finding_kind tensor_fault(const struct log_value *v)
{
    int typed;
    uint64_t count;

    if (v->kind == EVENT_VALUE_NONE)
        return log_value_plugin_is(v, "hparams") && !v->data_class ? LOG_KINDS : LOG_NO_VALUE;
    if (v->kind == EVENT_VALUE_HISTOGRAM) {
        if (v->limits != v->buckets)
            return LOG_HISTOGRAM_LENGTHS;
        return v->buckets > 1 && (!(v->first_bucket > 0) || !(v->last_bucket > 0)) ? LOG_HISTOGRAM_EDGES : LOG_KINDS;
    }
    if (v->kind != EVENT_VALUE_TENSOR)
        return LOG_KIND_CHANGED;
    count = elements_given(v, &typed);
    if (!typed || (count != v->elements && (count != 1 || v->content_bytes)))
        return LOG_TENSOR_COUNT;
    return LOG_KINDS;
}

static enum log_finding_kind blobs_fault(const struct log_value *v, const struct log_value *first)
{
    int audio = log_value_plugin_is(first, "audio"), images = log_value_plugin_is(first, "images");

    switch (v->kind) {
    case EVENT_VALUE_NONE: return LOG_NO_VALUE;
    case EVENT_VALUE_IMAGE: return image_known(v->image, v->image_length) ? LOG_KINDS : LOG_IMAGE_TYPE;
    case EVENT_VALUE_AUDIO: return LOG_KINDS;
    case EVENT_VALUE_TENSOR: break;
    default: return LOG_KIND_CHANGED;
    }
    if (v->dtype != EVENT_STRING)
        return LOG_BLOB_FORM;
    if (v->rank == 1)
        return images && v->listed[8] < 3 ? LOG_NO_PICTURE : LOG_KINDS; /* width and height come first */
    if ((v->rank == 2 && v->last_dimension == 2 && audio) ||
        (v->rank == 0 && v->listed[8] == 1 && !audio && !images && plugin_class(first) == LOG_CLASS_BLOBS))
        return first->data_class ? LOG_BLOB_SHAPE : LOG_KINDS;
    return LOG_BLOB_FORM;
}

/* What is wrong with the value in a series of this class whose first value was `first` (v itself for the first): a kind
 * of finding, or LOG_KINDS if nothing. */
static enum log_finding_kind log_value_fault(const struct log_value *v, const struct log_value *first, int class)
{
    if (class == LOG_CLASS_SCALAR)
        return scalar_fault(v);
    if (class == LOG_CLASS_TENSOR) {
        struct log_value with = *v;

        with.plugin = first->plugin; /* later values need not name it again */
        with.plugin_length = first->plugin_length;
        with.data_class = first->data_class;
        return tensor_fault(&with);
    }
    return class == LOG_CLASS_BLOBS ? blobs_fault(v, first) : LOG_KINDS;
}

/* ---- log check --------------------------------------------------------------------------------------------------- */

static const double year_5000 = 95617584000.0;
enum { USUAL_MAX = 120 };

struct series {
    int class;              /* of its values */
    struct log_value first; /* its pointers are the index's tag, words, or NULL */
    char *words;            /* plugin, name and description of the first value */
    int64_t last, most;
    size_t last_file;
    uint64_t last_record;     /* number of the record in the run that held its last value */
    size_t next;              /* the series that followed it last time */
    size_t described;         /* 1 + the last file with its metadata */
    size_t *found;            /* by kind: 1 + its last finding; NULL while there is none */
    uint8_t usual[USUAL_MAX]; /* usual_length bytes: a value of this series in which nothing is wrong ... */
    uint8_t usual_length, usual_number, usual_described; /* ... and where its float is; whether it has metadata */
};

struct log_check {
    char *run;
    struct log_finding *findings;
    size_t count, capacity;
    struct tag_index tags;
    struct series *series; /* its items */
    size_t at, former;     /* the series that is likely next, and the one before it */
    char *name, *former_name;
    size_t files;                   /* begun so far; the current file is files - 1 */
    size_t found[LOG_KINDS];        /* as found of a series, but for the file itself */
    uint64_t kind_count[LOG_KINDS]; /* damage in this file */
    size_t pending;                 /* 1 + the finding whose lost bytes end at the next record, and where they begin */
    uint64_t pending_offset;
    uint64_t file_records, record;
    double wall_first, wall_most, former_wall_most; /* of this file, and of all before it */
    int has_wall, former_has_wall;
    int64_t most_step;
    int has_step;
    uint64_t starts, start_record; /* session starts so far; the last one's place */
    int64_t start_step;
    struct log_check_totals totals;
};

/* ---- findings -------------------------------------------------------------------------------------------------- */

static struct log_finding *add(struct log_check *c, enum log_finding_kind kind, uint64_t offset, struct error *e)
{
    struct log_finding *f;

    if (!ARRAY_ROOM(c->findings, c->capacity, c->count + 1)) {
        error_memory(e, c->run, "for %zu findings", c->count + 1);
        return NULL;
    }
    f = &c->findings[c->count++];
    *f = (struct log_finding){ .kind = kind, .file = c->files ? c->files - 1 : 0, .offset = offset, .count = 1 };
    c->totals.by_level[log_finding_text(kind)->level]++;
    return f;
}

/* One finding a file and kind, and series unless s is NULL. */
static int note(struct log_check *c, struct series *s, enum log_finding_kind kind, uint64_t offset, struct error *e)
{
    struct log_finding *f;
    size_t *found = s ? s->found : c->found;

    if (s && !found && !(found = s->found = calloc(LOG_KINDS, sizeof *found)))
        return error_memory(e, c->run, "for findings");
    if (found[kind] && c->findings[found[kind] - 1].file == c->files - 1) {
        c->findings[found[kind] - 1].count++;
        c->totals.by_level[log_finding_text(kind)->level]++;
        return OK;
    }
    if (!(f = add(c, kind, offset, e)))
        return ERR_NOMEM;
    found[kind] = c->count;
    if (s) {
        f->tag = s->first.tag;
        f->tag_length = s->first.tag_length;
    }
    return OK;
}

/* One finding each. */
static int damage(struct log_check *c, enum log_finding_kind kind, uint64_t offset, uint64_t found, uint64_t wanted,
                  uint64_t lost, struct error *e)
{
    struct log_finding *f;

    c->totals.lost += lost;
    if (c->kind_count[kind]++ >= LOG_CHECK_EACH) {
        c->findings[c->found[kind] - 1].count++;
        c->findings[c->found[kind] - 1].lost += lost;
        c->totals.by_level[LOG_DAMAGE]++;
        return OK;
    }
    if (!(f = add(c, kind, offset, e)))
        return ERR_NOMEM;
    c->found[kind] = c->count;
    f->found = found;
    f->wanted = wanted;
    f->lost = lost;
    return OK;
}

/* How many bytes were skipped is known only where reading continues. */
static void settle(struct log_check *c, uint64_t offset)
{
    struct log_finding *f;

    if (!c->pending)
        return;
    f = &c->findings[c->pending - 1];
    f->lost += offset - c->pending_offset;
    c->totals.lost += offset - c->pending_offset;
    c->pending = 0;
}

/* ---- runs and files -------------------------------------------------------------------------------------------- */

static int check_run_name(struct log_check *c, struct error *e)
{
    int rc = utf8_valid(c->run, strlen(c->run), NULL) ? OK : note(c, NULL, LOG_RUN_NAME, 0, e);

    return rc == OK && log_naming_is_hidden(c->run) ? note(c, NULL, LOG_HIDDEN_DIRECTORY, 0, e) : rc;
}

int log_check_new(struct log_check **out, const char *run, struct error *e)
{
    struct log_check *c = calloc(1, sizeof *c);

    *out = NULL;
    if (!c || !(c->run = strdup(run))) {
        free(c);
        return error_memory(e, run, "for its check");
    }
    c->tags.item_size = sizeof *c->series;
    *out = c;
    return OK;
}

void log_check_free(struct log_check *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->tags.count; i++) {
        free(c->series[i].words);
        free(c->series[i].found);
    }
    tag_index_release(&c->tags);
    free(c->findings);
    free(c->name);
    free(c->former_name);
    free(c->run);
    free(c);
}

int log_check_file(struct log_check *c, const char *name, struct error *e)
{
    int rc = OK;

    free(c->former_name);
    c->former_name = c->name;
    if (!(c->name = strdup(name)))
        return error_memory(e, c->run, "for a name");
    memset(c->found, 0, sizeof c->found);
    memset(c->kind_count, 0, sizeof c->kind_count);
    if (c->has_wall && (!c->former_has_wall || c->wall_most > c->former_wall_most)) {
        c->former_wall_most = c->wall_most;
        c->former_has_wall = 1;
    }
    c->has_wall = 0;
    c->pending = 0;
    c->file_records = 0;
    if (!c->files++)
        rc = check_run_name(c, e);
    if (rc == OK && c->former_name && log_naming_order_broken(c->former_name, name))
        rc = note(c, NULL, LOG_NAME_ORDER, 0, e);
    if (rc == OK && log_naming_is_copy(name))
        rc = note(c, NULL, LOG_BACKUP_NAME, 0, e);
    return rc;
}

/* ---- series ---------------------------------------------------------------------------------------------------- */

/* The series of a tag, or NULL. */
static struct series *find(struct log_check *c, const char *tag, size_t n)
{
    size_t number = tag_index_find(&c->tags, tag, n);

    return number == TAG_INDEX_NONE ? NULL : &c->series[number];
}

/* Copies the bytes to *to and moves that past them; returns the copy. */
static const char *keep_words(char **to, const char *from, size_t n)
{
    char *at = *to;

    memcpy(at, from, n);
    *to += n;
    return at;
}

static struct series *new_series(struct log_check *c, const struct log_value *v, struct error *e)
{
    const size_t number = c->tags.count;
    char *words = malloc(v->plugin_length + v->display_name_length + v->description_length + 1), *to = words;
    struct series *s = words ? tag_index_item(&c->tags, v->tag, v->tag_length) : NULL;

    c->series = c->tags.items; /* they may have moved even if there is no memory for one more */
    if (!s) {
        free(words);
        error_memory(e, c->run, "for %zu tags", number + 1);
        return NULL;
    }
    s->first = *v;
    s->first.tag = c->tags.entries[number].text;
    s->words = words;
    s->first.plugin = keep_words(&to, v->plugin, v->plugin_length);
    s->first.display_name = keep_words(&to, v->display_name, v->display_name_length);
    s->first.description = keep_words(&to, v->description, v->description_length);
    s->first.content = s->first.image = s->first.bytes = s->first.number = NULL;
    s->class = log_value_class(v);
    s->next = number;
    return s;
}

/* A value of this series came: remembers which series follows which, since writers log their tags in turn. */
static inline void turn(struct log_check *c, const struct series *s)
{
    size_t now = (size_t)(s - c->series);

    c->series[c->former].next = now;
    c->former = now;
    c->at = s->next;
}

/* A point of the series at that step. */
static inline int step(struct log_check *c, struct series *s, int64_t at, uint64_t offset, int begun, struct error *e)
{
    int64_t last = s->last;
    size_t file = s->last_file;

    s->last = at;
    s->last_file = c->files - 1;
    s->last_record = c->record;
    if (begun || at > s->most)
        s->most = at;
    if (at > c->most_step || !c->has_step) {
        c->most_step = at;
        c->has_step = 1;
    }
    if (begun || at > last)
        return OK;
    /* Two files were written at the same time if the later one began before the other had ended. */
    if (file != s->last_file && c->has_wall && c->former_has_wall && c->wall_first < c->former_wall_most)
        return note(c, s, LOG_INTERLEAVED, offset, e);
    return note(c, s, at == last ? LOG_STEP_TWICE : LOG_STEP_BACK, offset, e);
}

/* Nothing is wrong with this value: the next of its series is compared with it, see quick(). */
static void keep_usual(struct series *s, const struct log_value *v)
{
    if (s->class != LOG_CLASS_SCALAR || v->length > USUAL_MAX || !v->number)
        return;
    memcpy(s->usual, v->bytes, v->length);
    s->usual_length = (uint8_t)v->length;
    s->usual_number = (uint8_t)(v->number - v->bytes);
    s->usual_described = (uint8_t)v->has_metadata;
}

/* Name and description: the loaders use those of the first value, the default loader not for every kind. */
static int texts(struct log_check *c, struct series *s, const struct log_value *v, int begun, uint64_t offset,
                 struct error *e)
{
    const struct log_value *first = &s->first;

    if (begun)
        return log_value_loses_texts(v) ? note(c, s, LOG_TEXT_LOST, offset, e) : OK;
    if ((!v->display_name_length && !v->description_length) ||
        (!bytes_compare(v->display_name, v->display_name_length, first->display_name, first->display_name_length) &&
         !bytes_compare(v->description, v->description_length, first->description, first->description_length)))
        return OK;
    return note(c, s, LOG_TEXT_LATE, offset, e);
}

static int value(struct log_check *c, const struct log_value *v, int64_t at, uint64_t offset, int shown,
                 struct error *e)
{
    enum log_finding_kind kind;
    struct series *s = find(c, v->tag, v->tag_length);
    int begun = !s, rc = OK;

    if (!s) {
        if (!(s = new_series(c, v, e)))
            return ERR_NOMEM;
        if ((kind = log_value_series_fault(v, s->class)) != LOG_KINDS)
            rc = note(c, s, kind, offset, e);
    } else if ((!s->class || s->first.data_class > LOG_CLASS_BLOBS) && s->last_file != c->files - 1) {
        rc = note(c, s, s->first.data_class ? LOG_DATA_CLASS : LOG_NO_CLASS, offset, e);
    }
    if (rc == OK)
        rc = texts(c, s, v, begun, offset, e);
    if (rc != OK)
        return rc;
    turn(c, s);
    if ((kind = log_value_fault(v, &s->first, s->class)) == LOG_KINDS)
        keep_usual(s, v);
    else if (!(begun && s->found && s->found[LOG_LEGACY_CLASS]))
        rc = note(c, s, kind, offset, e);
    /* The Python loader forgets metadata from file to file, and needs it for values that it converts: audio pairs,
     * hparams, graphs. */
    if (v->has_metadata)
        s->described = c->files;
    else if (rc == OK && s->described && s->described != c->files && !s->first.data_class &&
             (v->kind == EVENT_VALUE_NONE
                  ? log_value_plugin_is(&s->first, "hparams")
                  : v->kind == EVENT_VALUE_TENSOR && s->class == LOG_CLASS_BLOBS && v->rank != 1))
        rc = note(c, s, LOG_METADATA_ONCE, offset, e);
    return rc == OK && shown ? step(c, s, at, offset, begun, e) : rc;
}

/* ---- records --------------------------------------------------------------------------------------------------- */

/* The wall time of an event; is_point: it tells when the file was written. That of the first record does not: some
 * writers give it whole seconds, which may be before the last point of the file before a restart. */
static int wall(struct log_check *c, double t, int is_point, uint64_t offset, struct error *e)
{
    if (__builtin_expect(t > 0 && t < year_5000, 1)) {
        if (!is_point)
            return OK;
        if (!c->has_wall) {
            c->wall_first = c->wall_most = t;
            c->has_wall = 1;
        } else if (t > c->wall_most) {
            c->wall_most = t;
        }
        return OK;
    }
    return note(c, NULL, isinf(t) ? LOG_WALL_INFINITE : t > 0 ? LOG_WALL_UNIT : LOG_WALL_ZERO, offset, e);
}

/*
 * Nearly all records of nearly all files: wall time, step, a summary of one value, nothing else, and the value has the
 * bytes of one that was found sound, except for its float, in which nothing can be wrong.
 *   09 <8: wall time>  10 <varint: step>  2a <n>  0a <n>  <value>
 * Points *value into the record and reads the rest. 1: the record has this form so far.
 */
static int usual_event(const uint8_t *p, size_t n, const uint8_t **value, size_t *length, int64_t *steps, double *t)
{
    const uint8_t *q = p + 10;
    uint64_t v = 0;
    size_t left;
    int size;

    if (n < 17 || p[0] != 0x09)
        return 0;
    if (p[9] != 0x10)
        q--;
    else if (*q < 0x80)
        v = *q++;
    else if ((size = get_varint(q, n - 10, &v)) > 0)
        q += size;
    else
        return 0;
    left = (size_t)(p + n - q);
    if (left < 7 || left > USUAL_MAX + 4 || q[0] != 0x2a || q[1] != left - 2 || q[2] != 0x0a || q[3] != left - 4)
        return 0;
    *t = bits_double(get_le64(p + 1));
    *steps = (int64_t)v;
    *value = q + 4;
    *length = left - 4;
    return *t > 0 && *t < year_5000;
}

static int is_usual(const struct series *s, const uint8_t *value, size_t n)
{
    size_t behind = s->usual_number + 4u;

    return n == s->usual_length && !memcmp(value, s->usual, s->usual_number) &&
           !memcmp(value + behind, s->usual + behind, n - behind);
}

/* 1: it was such a record, 0: check it fully, negative: an error. */
static int quick(struct log_check *c, uint64_t offset, const uint8_t *p, size_t n, struct error *e)
{
    const uint8_t *value;
    struct series *s;
    int64_t steps;
    size_t length;
    double t;
    int rc;

    if (c->at >= c->tags.count || !c->file_records || !usual_event(p, n, &value, &length, &steps, &t))
        return 0;
    s = &c->series[c->at];
    if (!is_usual(s, value, length)) {
        size_t tag = value[0] == 0x0a && value[1] <= length - 2 ? value[1] : SIZE_MAX;

        if (tag == SIZE_MAX || !(s = find(c, (const char *)value + 2, tag)) || !is_usual(s, value, length))
            return 0;
    }
    if (s->usual_described)
        s->described = c->files;
    if ((rc = wall(c, t, 1, offset, e)) == OK)
        rc = step(c, s, steps, offset, 0, e);
    c->file_records++;
    turn(c, s);
    return rc == OK ? 1 : rc;
}

static enum log_finding_kind data_fault(const uint8_t *data, size_t n, struct event *event, size_t *place)
{
    static const enum log_finding_kind kinds[] = { LOG_KINDS, LOG_PROTOBUF, LOG_GROUP_END, LOG_WIRE_TYPE, LOG_UTF8 };
    enum event_fault fault = event_wire_check(data, n, place);
    enum foreign_kind foreign;

    if (fault == EVENT_OTHER_WIRE_TYPE &&
        ((foreign = foreign_record(data, n)) == FOREIGN_EXAMPLE || foreign == FOREIGN_SEQUENCE_EXAMPLE))
        return LOG_EXAMPLE;
    if (fault != EVENT_SOUND)
        return kinds[fault];
    if (event_decode(data, n, event, place) != OK)
        return LOG_PROTOBUF;
    *place = 0;
    return isnan(event->wall_time) ? LOG_WALL_NAN : LOG_KINDS;
}

enum log_finding_kind log_check_data(const uint8_t *data, size_t n, size_t *place)
{
    struct event event;

    return data_fault(data, n, &event, place);
}

static int session(struct log_check *c, const struct event *event, uint64_t offset, struct error *e)
{
    if (event->session != EVENT_SESSION_START)
        return OK;
    c->start_step = event->step;
    c->start_record = c->record;
    c->starts++;
    if (!c->has_step || c->most_step < event->step)
        return OK;
    return note(c, NULL, c->starts == 1 ? LOG_START_FIRST : LOG_START_AGAIN, offset, e);
}

static int values(struct log_check *c, const uint8_t *data, size_t n, const struct event *event, uint64_t offset,
                  struct error *e)
{
    const uint8_t *p = data, *end = data + n;
    struct wire_field f, inner;
    int rc = OK;

    while (rc == OK && wire_take(&p, end, &f) == 1) {
        const uint8_t *q = f.bytes, *stop = q + f.length;

        if (f.number != 5)
            continue;
        while (rc == OK && wire_take(&q, stop, &inner) == 1) {
            struct log_value v;

            if (inner.number != 1)
                continue;
            log_value_read(&v, inner.bytes, inner.length);
            rc = value(c, &v, event->step, offset, isfinite(event->wall_time), e);
        }
    }
    return rc;
}

static int graph(struct log_check *c, const uint8_t *data, size_t n, uint64_t offset, struct error *e)
{
    const uint8_t *p = data, *end = data + n, *graph_def = data;
    size_t length = 0, nodes;
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1)
        if (f.number == 4) {
            graph_def = f.bytes;
            length = f.length;
        }
    return graph_wire_check(graph_def, length, &nodes) == EVENT_SOUND && nodes ? OK
                                                                               : note(c, NULL, LOG_GRAPH, offset, e);
}

int log_check_record(struct log_check *c, uint64_t offset, const uint8_t *data, size_t n, struct error *e)
{
    enum log_finding_kind kind;
    struct event event;
    size_t place = 0;
    int rc;

    settle(c, offset);
    c->record++;
    if ((rc = quick(c, offset, data, n, e)) != 0) {
        c->totals.records += rc == 1;
        return rc == 1 ? OK : rc;
    }
    if ((kind = data_fault(data, n, &event, &place)) != LOG_KINDS)
        return damage(c, kind, offset, place, 0, n + RECORD_OVERHEAD, e);
    c->totals.records++;
    rc = wall(c, event.wall_time, event.what != EVENT_FILE_VERSION, offset, e);
    if (rc == OK && !c->file_records++ && event.what != EVENT_FILE_VERSION)
        rc = note(c, NULL, LOG_NO_VERSION, offset, e);
    if (rc == OK)
        rc = session(c, &event, offset, e);
    if (rc == OK && event.what == EVENT_GRAPH)
        rc = graph(c, data, n, offset, e);
    return rc == OK && event.what == EVENT_SUMMARY ? values(c, data, n, &event, offset, e) : rc;
}

int log_check_damage(struct log_check *c, const struct record *r, struct error *e)
{
    enum log_finding_kind kind = r->damage == RECORD_BAD_LENGTH_CRC ? LOG_LENGTH_CRC
                                 : r->damage == RECORD_BAD_DATA_CRC ? LOG_DATA_CRC
                                 : r->damage == RECORD_TOO_LONG     ? LOG_TOO_LONG
                                                                    : LOG_STREAM;
    int rc;

    settle(c, r->offset);
    if ((rc = damage(c, kind, r->offset, r->found, r->wanted, 0, e)) == OK)
        c->pending = c->found[kind];
    c->pending_offset = r->offset;
    return rc;
}

int log_check_end(struct log_check *c, uint64_t whole, uint64_t size, struct error *e)
{
    struct log_finding *f = c->pending ? &c->findings[c->pending - 1] : NULL;
    int rc = OK;

    c->totals.bytes += size;
    if (f && whole > c->pending_offset) {
        settle(c, whole);
    } else if (f) { /* nothing sound after it */
        settle(c, size);
        if (!c->file_records && f->kind == LOG_LENGTH_CRC && !f->offset && c->kind_count[LOG_LENGTH_CRC] == 1)
            f->kind = LOG_NO_LOG;
        whole = size;
    }
    if (!size && !f)
        rc = note(c, NULL, LOG_EMPTY_FILE, 0, e);
    if (rc == OK && whole < size && (rc = note(c, NULL, LOG_PARTIAL, whole, e)) == OK)
        c->findings[c->count - 1].lost = size - whole;
    return rc;
}

int log_check_compressed(struct log_check *c, struct error *e)
{
    return note(c, NULL, LOG_COMPRESSED, 0, e);
}

int log_check_finish(struct log_check *c, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; rc == OK && c->starts && i < c->tags.count; i++) {
        struct series *s = &c->series[i];

        if (s->last_record < c->start_record && s->most >= c->start_step)
            rc = note(c, s, LOG_STALE_TAIL, 0, e);
    }
    return rc;
}

struct log_check_totals log_check_totals(const struct log_check *c)
{
    return c->totals;
}

const struct log_finding *log_check_findings(const struct log_check *c, size_t *count)
{
    *count = c->count;
    return c->findings;
}
