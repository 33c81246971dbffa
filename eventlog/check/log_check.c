#include "eventlog/check/log_check.h"

#include "base/array.h"
#include "base/bytes.h"
#include "eventlog/check/log_naming.h"
#include "eventlog/check/log_value.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/event_wire.h"
#include "eventlog/format/foreign_record.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/format/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
