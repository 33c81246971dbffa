#include "tests/fuzz/made_events.h"

#include "base/bytes.h"
#include "tests/fuzz/made_event_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define B(text) text, sizeof text - 1

enum { TAGS = 4, EVENTS_MOST = 24, VALUES_MOST = 4 };
enum { GZIP_LENGTH = 0x8b1f - 4 }; /* without the field's key and length */

struct tag {
    struct buffer text;
    enum made_family family;
    int described; /* a value of it has had metadata */
};

/* a file while it is made */
struct writing {
    struct maker maker;
    struct tag tags[TAGS];
    size_t tag_count;
    uint64_t metadata; /* 0: with a tag's first value, 1: with all, 2: with none */
    int64_t step;
    double wall_time;
};

/* A damage that is in the data of one record. */
static const struct {
    const char *name, *findings;
    enum made_fault fault;
    int given, counted; /* as in struct made_record */
} faults[] = {
    { "varint_cut", "protobuf ", MADE_VARINT_CUT, 0, 0 },
    { "varint_long", "protobuf ", MADE_VARINT_LONG, 0, 0 },
    { "key_long", "protobuf ", MADE_KEY_LONG, 0, 0 },
    { "size_long", "protobuf ", MADE_SIZE_LONG, 0, 0 },
    { "size_over", "protobuf ", MADE_SIZE_OVER, 0, 0 },
    { "fixed_cut", "protobuf ", MADE_FIXED_CUT, 0, 0 },
    { "type_unknown", "protobuf ", MADE_TYPE_UNKNOWN, 0, 0 },
    { "field_zero", "protobuf ", MADE_FIELD_ZERO, 0, 0 },
    { "group_open", "protobuf ", MADE_GROUP_OPEN, 0, 0 },
    { "group_crossed", "protobuf ", MADE_GROUP_CROSSED, 0, 0 },
    { "group_deep", "protobuf ", MADE_GROUP_DEEP, 0, 0 },
    { "group_end", "group_end ", MADE_GROUP_END, 0, 0 },
    /* What a reader of numbers can still read, it gives: event_decode.h. */
    { "type_other", "wire_type ", MADE_TYPE_OTHER, 1, 0 },
    { "group_deep_inside", "protobuf ", MADE_GROUP_DEEP_INSIDE, 1, 0 },
    { "not_utf8", "utf8 ", MADE_NOT_UTF8, 1, 0 },
    { "list_cut", "protobuf ", MADE_LIST_CUT, 0, 0 },
    { "skipped_list_cut", "protobuf ", MADE_SKIPPED_LIST_CUT, 1, 0 },
    /* These are events that all protobuf libraries take; verify says what TensorBoard makes of them. */
    { "elements_other", "tensor_count scalar_value ", MADE_ELEMENTS_OTHER, 1, 1 },
    { "buckets_other", "histogram_lengths ", MADE_BUCKETS_OTHER, 1, 1 },
    { "wall_nan", "wall_nan ", MADE_WALL_NAN, 0, 0 },
    { "wall_infinite", "wall_infinite ", MADE_WALL_INFINITE, 0, 1 },
};
enum { FAULTS = sizeof faults / sizeof *faults };

/* ---- memory ---------------------------------------------------------------------------------------------------- */

struct made_span made_keep(struct made_events *m, const void *bytes, size_t n)
{
    struct made_span s = { m->kept.length, n };

    if (n)
        buffer_append(&m->kept, bytes, n);
    return s;
}

void *made_grow(void *list, size_t item, size_t count, size_t *capacity)
{
    if (count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 32;
        if (!(list = realloc(list, *capacity * item)))
            abort();
    }
    return list;
}

void made_events_release(struct made_events *m)
{
    buffer_release(&m->file);
    buffer_release(&m->kept);
    free(m->records);
    free(m->values);
}

/* ---- tags ------------------------------------------------------------------------------------------------------ */

static void choose_tags(struct writing *w)
{
    static const struct {
        const char *text;
        size_t n;
    } pool[] = {
        { B("loss") },
        { B("a/b") },
        { B("größe/π 😀") },
        { B("") },
        { B("two\nlines") },
        { B("nul\0inside") },
        { B("\xf4\x8f\xbf\xbf") },
        { B("\xef\xbb\xbf"
            "bom") },
        { B("\"quoted\\\"") },
        { B("e\xcc\x81") },
        { B("\x7f\x1b[31m") },
        { B("\xef\xbf\xbe") },
    };
    struct decisions *d = w->maker.d;

    w->tag_count = 1 + decide(d, TAGS);
    for (size_t i = 0; i < w->tag_count; i++) {
        struct tag *t = &w->tags[i];
        size_t n = decide(d, sizeof pool / sizeof *pool);

        buffer_append(&t->text, pool[n].text, pool[n].n);
        if (made_rarely(&w->maker, 8))
            for (size_t k = decide(d, 300); k; k--)
                buffer_append_byte(&t->text, 'x');
        t->family = decide(d, 2) ? (enum made_family)decide(d, MADE_FAMILIES)
                                 : (enum made_family)decide(d, MADE_NUMBER + 1);
    }
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

static void add_values(struct made_events *m, struct writing *w, struct made_record *r, struct made_parts *event)
{
    struct maker *k = &w->maker;
    struct made_parts summary = { 0 };
    struct buffer tag = BUFFER_EMPTY;

    for (size_t n = 1 + (made_rarely(k, 3) ? decide(k->d, VALUES_MOST) : 0); n; n--) {
        struct tag *t = &w->tags[decide(k->d, w->tag_count)];
        enum made_family family = made_rarely(k, 16) ? (enum made_family)decide(k->d, MADE_FAMILIES) : t->family;
        int described = w->metadata == 1 || (w->metadata == 0 && !t->described);

        t->described |= described;
        if (t->text.length)
            buffer_append(&tag, t->text.data, t->text.length);
        made_value(m, k, family, &tag, described, &summary);
    }
    buffer_release(&tag);
    r->what = EVENTLOG_EVENT_VALUES;
    made_inside(k, &summary, MADE_SUMMARY, 5, &event->bytes);
}

/* The one value of a record whose fault is in a value: its tag is its own, and its metadata are there. */
static void add_faulty_value(struct made_events *m, struct writing *w, struct made_record *r, struct made_parts *event)
{
    static const enum made_family tensors[] = { MADE_NUMBER, MADE_BUCKETS, MADE_TEXTS };
    struct maker *k = &w->maker;
    int list = k->fault == MADE_LIST_CUT || k->fault == MADE_SKIPPED_LIST_CUT;
    enum made_family family = k->fault == MADE_BUCKETS_OTHER || (k->fault == MADE_SKIPPED_LIST_CUT && decide(k->d, 2))
                                  ? MADE_OLD_BUCKETS
                                  : tensors[decide(k->d, list ? 2 : 3)];
    struct made_parts summary = { 0 };
    struct buffer tag = BUFFER_EMPTY;

    buffer_append_text(&tag, "faulty");
    made_value(m, k, family, &tag, 1, &summary);
    buffer_release(&tag);
    r->what = EVENTLOG_EVENT_VALUES;
    made_inside(k, &summary, MADE_SUMMARY, 5, &event->bytes);
}

static void add_text(struct maker *k, struct made_parts *m, uint64_t field, const char *text)
{
    struct buffer b = BUFFER_EMPTY;

    buffer_append_text(&b, text);
    made_text(k, &m->bytes, field, &b);
    made_part_end(m);
    buffer_release(&b);
}

/* A member of the event's oneof that is a message of its own, or bytes. */
static void add_other(struct made_events *m, struct maker *k, struct made_record *r, enum eventlog_what what,
                      struct made_parts *event)
{
    static const char graph[] = "\x0a\x0a\x0a\1a\x12\5Const";
    struct made_parts parts = { 0 };
    struct buffer bytes = BUFFER_EMPTY;
    uint64_t status;

    switch (what) {
    case EVENTLOG_EVENT_FILE_VERSION:
        buffer_append_text(&bytes, "brain.Event:2");
        made_text(k, &event->bytes, 3, &bytes);
        break;
    case EVENTLOG_EVENT_SESSION:
        status = 1 + decide(k->d, made_rarely(k, 4) ? 5 : 3);
        if (made_rarely(k, 16)) /* the last counts */
            made_integer(k, &parts.bytes, 1, 1 + decide(k->d, 2));
        made_integer(k, &parts.bytes, 1, status | (made_rarely(k, 16) ? (uint64_t)1 << 32 : 0)); /* 32 bits count */
        made_part_end(&parts);
        if (decide(k->d, 2))
            add_text(k, &parts, 2 + decide(k->d, 2), "/tmp/model.ckpt");
        made_finish(k, &parts, MADE_SESSION, &bytes);
        r->starts_session = status == 1;
        break;
    case EVENTLOG_EVENT_MESSAGE:
        made_integer(k, &parts.bytes, 1, 10 * decide(k->d, 6));
        made_part_end(&parts);
        add_text(k, &parts, 2, "a message");
        made_finish(k, &parts, MADE_LOG_MESSAGE, &bytes);
        break;
    case EVENTLOG_EVENT_RUN_METADATA:
        add_text(k, &parts, 1, "step 1");
        made_bytes(k, &parts.bytes, 2, "\x0a\0", 2);
        made_part_end(&parts);
        made_finish(k, &parts, MADE_RUN_METADATA, &bytes);
        break;
    default: buffer_append(&bytes, graph, sizeof graph - 1); break;
    }
    if (what != EVENTLOG_EVENT_FILE_VERSION)
        made_bytes(k, &event->bytes, (uint64_t)what, bytes.data, bytes.length);
    r->what = what;
    r->payload = made_keep(m, bytes.data, bytes.length);
    buffer_release(&bytes);
}

/* Values that another member of the event's oneof replaces. */
static void add_replaced_values(struct made_events *m, struct writing *w, struct made_parts *event)
{
    struct made_record replaced;
    size_t count = m->value_count;

    add_values(m, w, &replaced, event);
    m->value_count = count;
}

static void add_what(struct made_events *m, struct writing *w, struct made_record *r, struct made_parts *event)
{
    static const enum eventlog_what others[] = { EVENTLOG_EVENT_SESSION,      EVENTLOG_EVENT_SESSION,
                                                 EVENTLOG_EVENT_MESSAGE,      EVENTLOG_EVENT_GRAPH,
                                                 EVENTLOG_EVENT_RUN_METADATA, EVENTLOG_EVENT_META_GRAPH,
                                                 EVENTLOG_EVENT_FILE_VERSION };
    struct maker *k = &w->maker;
    int in_value = k->fault >= MADE_LIST_CUT && k->fault <= MADE_BUCKETS_OTHER;

    if (in_value) {
        add_faulty_value(m, w, r, event);
    } else if (!made_rarely(k, 3)) {
        if (made_rarely(k, 16)) { /* of several members the last counts */
            struct made_record replaced;

            if (decide(k->d, 2))
                add_replaced_values(m, w, event);
            add_other(m, k, &replaced, EVENTLOG_EVENT_MESSAGE, event);
        }
        add_values(m, w, r, event);
        if (made_rarely(k, 16)) /* two summaries are one */
            add_values(m, w, r, event);
    } else if (made_rarely(k, 8)) {
        return;
    } else {
        if (made_rarely(k, 16))
            add_replaced_values(m, w, event);
        add_other(m, k, r, others[decide(k->d, sizeof others / sizeof *others)], event);
    }
    made_part_end(event);
}

static void next_step(struct writing *w)
{
    static const int64_t odd[] = { INT64_MIN, -1, INT64_MAX, (int64_t)1 << 53, -5000000000, 0 };
    struct maker *k = &w->maker;

    if (made_rarely(k, 16))
        w->step = odd[decide(k->d, sizeof odd / sizeof *odd)];
    else if (made_rarely(k, 8)) /* back, as after a restart */
        w->step -= w->step > 0 ? (int64_t)decide(k->d, w->step < 20 ? (uint64_t)w->step + 1 : 20) : 0;
    else if (w->step < INT64_MAX / 2)
        w->step += (int64_t)decide(k->d, 3);
}

static double next_wall_time(struct writing *w)
{
    static const double odd[] = { 0, -1, 1e300, 5e-324, -0.0, 1e12 };
    struct maker *k = &w->maker;

    if (k->fault == MADE_WALL_NAN || k->fault == MADE_WALL_INFINITE) {
        double v = k->fault == MADE_WALL_NAN ? (double)NAN : (double)INFINITY;

        k->fault = MADE_NO_FAULT;
        return decide(k->d, 2) ? -v : v;
    }
    w->wall_time += 0.5;
    return made_rarely(k, 16) ? odd[decide(k->d, sizeof odd / sizeof *odd)] : w->wall_time;
}

/* Of the writer; the last place for a fault inside another message. */
static void add_source(struct maker *k, struct made_parts *event)
{
    struct made_parts source = { 0 };

    k->fault_in = MADE_SOURCE;
    add_text(k, &source, 1, "writer of odd files");
    made_inside(k, &source, MADE_SOURCE, 10, &event->bytes);
    made_part_end(event);
}

static void add_times(struct writing *w, struct made_record *r, int is_first, struct made_parts *event)
{
    struct maker *k = &w->maker;
    int twice = made_rarely(k, 24);

    r->wall_time = next_wall_time(w);
    if (double_bits(r->wall_time) || k->zeros) {
        made_fixed64(k, &event->bytes, 1, double_bits(r->wall_time));
        made_part_end(event);
    }
    if (!is_first) {
        next_step(w);
        r->step = w->step;
    }
    if (twice) /* then the last counts */
        made_integer(k, &event->bytes, 2, 77);
    if (r->step || k->zeros || twice)
        made_integer(k, &event->bytes, 2, (uint64_t)r->step);
    made_part_end(event);
}

/* Its bytes are put behind those of the file; r becomes one of its records. */
static void keep_record(struct made_events *m, struct made_record *r, const struct buffer *data)
{
    r->offset = m->file.length;
    r->size = data->length + MADE_HEADER + MADE_FOOTER;
    r->given = r->counted = r->whole = 1;
    r->data = made_keep(m, data->data, data->length);
    made_append_record(&m->file, data);
    m->records = made_grow(m->records, sizeof *r, m->record_count, &m->record_capacity);
    m->records[m->record_count++] = *r;
}

static void add_event(struct made_events *m, struct writing *w, int is_version)
{
    struct maker *k = &w->maker;
    struct made_record r = { .first_value = m->value_count };
    struct made_parts parts = { 0 };
    struct buffer data = BUFFER_EMPTY;

    if (is_version || k->fault != MADE_NO_FAULT || !made_rarely(k, 24)) { /* 0 bytes are an event, too */
        add_times(w, &r, is_version, &parts);
        if (is_version) {
            add_other(m, k, &r, EVENTLOG_EVENT_FILE_VERSION, &parts);
            made_part_end(&parts);
        } else {
            add_what(m, w, &r, &parts);
        }
        if ((is_version && decide(k->d, 2)) || k->fault == MADE_NOT_UTF8 || k->fault == MADE_GROUP_DEEP_INSIDE)
            add_source(k, &parts);
        k->fault_in = k->fault ? MADE_EVENT : k->fault_in; /* there was no such message in it */
        made_finish(k, &parts, MADE_EVENT, &data);
        r.values = m->value_count - r.first_value;
    }
    keep_record(m, &r, &data);
    buffer_release(&data);
}

/* A graph of those bytes, as the only thing in its event. */
static struct made_record *add_graph(struct made_events *m, const struct buffer *graph)
{
    struct made_record r = { .what = EVENTLOG_EVENT_GRAPH, .payload = made_keep(m, graph->data, graph->length) };
    struct buffer data = BUFFER_EMPTY;
    struct maker plain = { 0 };

    made_bytes(&plain, &data, EVENTLOG_EVENT_GRAPH, graph->data, graph->length);
    keep_record(m, &r, &data);
    buffer_release(&data);
    return &m->records[m->record_count - 1];
}

/* So many bytes. GZIP_LENGTH: of a record whose header, if it is the first, begins as a gzip file does: 1f 8b. */
static void add_large_graph(struct made_events *m, size_t n)
{
    struct buffer graph = BUFFER_EMPTY;
    char *to = buffer_reserve(&graph, n);

    if (!to)
        abort();
    memset(to, 'g', n);
    graph.length = n;
    add_graph(m, &graph);
    buffer_release(&graph);
}

/* A graph in which a whole record stands. */
static void add_record_inside(struct made_events *m)
{
    struct made_record inner = { .inside = 1, .whole = 1, .step = 7 };
    struct buffer graph = BUFFER_EMPTY, data = BUFFER_EMPTY;

    buffer_append(&data, "\x10\7", 2);
    inner.data = made_keep(m, data.data, data.length);
    inner.size = data.length + MADE_HEADER + MADE_FOOTER;
    buffer_append_text(&graph, "ab");
    made_append_record(&graph, &data);
    inner.offset = add_graph(m, &graph)->offset + MADE_HEADER + 2 + 2; /* field and length, "ab" */
    m->records = made_grow(m->records, sizeof inner, m->record_count, &m->record_capacity);
    m->records[m->record_count++] = inner;
    buffer_release(&graph);
    buffer_release(&data);
}

/* ---- series ---------------------------------------------------------------------------------------------------- */

static int same_tag(const struct made_events *m, const struct made_value *a, const struct made_value *b)
{
    return a->tag.length == b->tag.length &&
           !memcmp(made_bytes_of(m, &a->tag), made_bytes_of(m, &b->tag), a->tag.length);
}

/* Whether a series that begins with this value belongs to that plugin: values of the old kinds imply theirs. */
static int has_plugin(const struct made_events *m, const struct made_value *first, const char *plugin)
{
    static const char *const implied[] = {
        [EVENTLOG_STORED_SIMPLE_VALUE] = "scalars",
        [EVENTLOG_STORED_IMAGE] = "images",
        [EVENTLOG_STORED_HISTOGRAM] = "histograms",
        [EVENTLOG_STORED_AUDIO] = "audio",
        [EVENTLOG_STORED_TENSOR] = NULL,
    };

    if (implied[first->stored])
        return !strcmp(implied[first->stored], plugin);
    return first->plugin.length == strlen(plugin) &&
           !memcmp(made_bytes_of(m, &first->plugin), plugin, first->plugin.length);
}

static enum eventlog_kind tensor_kind(const struct made_events *m, const struct made_value *v,
                                      const struct made_value *first)
{
    int strings = v->dtype == EVENTLOG_DTYPE_STRING;

    if (v->is_number && has_plugin(m, first, "scalars"))
        return EVENTLOG_KIND_SCALAR;
    if (!strings && has_plugin(m, first, "histograms"))
        return EVENTLOG_KIND_HISTOGRAM;
    if (strings && has_plugin(m, first, "images"))
        return EVENTLOG_KIND_IMAGE;
    if (strings && has_plugin(m, first, "audio"))
        return EVENTLOG_KIND_AUDIO;
    return strings && has_plugin(m, first, "text") ? EVENTLOG_KIND_TEXT : EVENTLOG_KIND_TENSOR;
}

/* What a value is depends on the first value of its tag that comes out. */
static void set_kinds(struct made_events *m)
{
    static const enum eventlog_kind kinds[] = {
        [EVENTLOG_STORED_SIMPLE_VALUE] = EVENTLOG_KIND_SCALAR,
        [EVENTLOG_STORED_IMAGE] = EVENTLOG_KIND_IMAGE,
        [EVENTLOG_STORED_HISTOGRAM] = EVENTLOG_KIND_HISTOGRAM,
        [EVENTLOG_STORED_AUDIO] = EVENTLOG_KIND_AUDIO,
    };

    for (size_t i = 0; i < m->value_count; i++) {
        struct made_value *v = &m->values[i], *first = m->values;

        while (first < v && !(first->known && same_tag(m, first, v)))
            first++;
        v->kind = v->stored == EVENTLOG_STORED_TENSOR ? tensor_kind(m, v, first) : kinds[v->stored];
    }
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* fault: which of faults, FAULTS or more for none. inside: records may stand inside another. */
static void make_records(struct made_events *m, struct writing *w, uint64_t fault, int inside)
{
    struct maker *k = &w->maker;
    size_t count = decide(k->d, EVENTS_MOST), version = decide(k->d, 8), faulty;

    if (made_rarely(k, 64))
        add_large_graph(m, made_rarely(k, 2) ? GZIP_LENGTH : 1 + decide(k->d, 600000));
    if (version < 6)
        add_event(m, w, 1);
    count += fault < FAULTS || !m->record_count;
    faulty = fault < FAULTS ? decide(k->d, count) : count;
    for (size_t i = 0; i < count; i++) {
        size_t before = m->file.length;

        if (version == 7 && i == 1) /* in the midst of the file */
            add_event(m, w, 1);
        if (i == faulty) {
            k->fault = faults[fault].fault;
            k->fault_in = (enum made_message)decide(k->d, MADE_MESSAGES);
            before = m->file.length;
        }
        add_event(m, w, 0);
        if (i == faulty) {
            struct made_record *r = &m->records[m->record_count - 1];

            m->verdict = MADE_DAMAGED;
            m->damage = faults[fault].name;
            m->findings = faults[fault].findings;
            m->damage_from = before;
            m->damage_to = m->file.length;
            r->given = faults[fault].given;
            r->counted = faults[fault].counted;
        }
    }
    if (made_rarely(k, 32) && inside)
        add_record_inside(m);
}

/* Of a sound file the rest may be zeros at first, as of pages that are not written yet. A reader knows a CRC that is 0
 * for one of those; one that is there in part it cannot know. */
static void choose_cut(struct made_events *m, struct decisions *d)
{
    m->cut = decide(d, 2) ? decide(d, m->file.length) : m->file.length;
    m->zeros_behind = m->verdict == MADE_SOUND && decide(d, 2);
    for (size_t i = 0; i < m->record_count && m->zeros_behind; i++) {
        const struct made_record *r = &m->records[i];
        size_t end = r->offset + r->size;

        if (!r->inside && ((m->cut > r->offset + 8 && m->cut < r->offset + MADE_HEADER) ||
                           (m->cut > end - MADE_FOOTER && m->cut < end)))
            m->cut = r->offset;
    }
    if (m->cut < MADE_HEADER) /* a length that begins like a gzip file is one only with its CRC */
        m->cut = 0;
}

void made_events_make(struct made_events *m, struct decisions d)
{
    struct writing w = { .maker = { .d = &d }, .wall_time = 1700000000 };
    uint64_t damage;

    memset(m, 0, sizeof *m);
    m->damage = "none";
    m->findings = "";
    damage = decide(&d, 2) ? decide(&d, FAULTS + MADE_FRAMINGS) : FAULTS + MADE_FRAMINGS;
    w.maker.overlong = made_rarely(&w.maker, 3);
    w.maker.shuffled = made_rarely(&w.maker, 3);
    w.maker.unknown = made_rarely(&w.maker, 3);
    w.maker.zeros = made_rarely(&w.maker, 3);
    w.metadata = decide(&d, 3);
    choose_tags(&w);
    make_records(m, &w, damage, damage <= FAULTS + MADE_LENGTH_OVER_LIMIT || damage == FAULTS + MADE_FRAMINGS);
    if (damage >= FAULTS && damage < FAULTS + MADE_FRAMINGS)
        made_damage(m, &d, (enum made_framing)(damage - FAULTS));
    for (size_t i = 0; i < m->record_count; i++)
        for (size_t k = 0; k < m->records[i].values; k++)
            m->values[m->records[i].first_value + k].known = m->records[i].given || isinf(m->records[i].wall_time);
    set_kinds(m);
    choose_cut(m, &d);
    for (size_t i = 0; i < w.tag_count; i++)
        buffer_release(&w.tags[i].text);
    if (!buffer_ok(&m->file) || !buffer_ok(&m->kept))
        abort();
}
