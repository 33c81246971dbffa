#include "eventlog/read/scalar_series.h"

#include "base/array.h"
#include "base/bytes.h"
#include "eventlog/format/event_wire.h"
#include "eventlog/format/record.h"
#include "eventlog/format/summary_metadata.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum eventlog_view scalar_view_of(const char *word)
{
    return !strcmp(word, "tensorboard") ? EVENTLOG_VIEW_TENSORBOARD
           : !strcmp(word, "session")   ? EVENTLOG_VIEW_SESSION
                                        : EVENTLOG_VIEW_ALL;
}

void scalar_run_init(struct scalar_run *r, enum eventlog_view view, int keep_order, int store)
{
    memset(r, 0, sizeof *r);
    r->view = view;
    r->follow_loader = view == EVENTLOG_VIEW_TENSORBOARD;
    r->keep_order = keep_order;
    r->store = store;
}

void scalar_run_release(struct scalar_run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->series[i].plugin);
        free(r->series[i].metadata);
        scalar_points_free(r->series[i].points, r->series[i].mapped);
        free(r->series[i].marks);
    }
    free(r->series);
    tag_index_release(&r->tags);
    r->series = NULL;
    r->count = r->capacity = 0;
    r->left_out = r->rounded = r->numbered = 0;
    r->file_ended = 0;
}

void scalar_run_restart(struct scalar_run *r)
{
    scalar_run_release(r);
}

void scalar_run_begin_file(struct scalar_run *r)
{
    r->file_ended = 0;
}

/* Without checking CRCs, but only those of the data: with a wrong length it finds no next record. */
int scalar_run_damage(struct scalar_run *r, const struct event_damage *d, struct event *event)
{
    if (d->kind == EVENTLOG_DAMAGE_TOO_LONG && d->found <= RECORD_LENGTH_MAX)
        return 0; /* over our limit, not over the loader's */
    if (!r->follow_loader || r->file_ended || d->kind != EVENTLOG_DAMAGE_DATA_CRC ||
        event_decode(d->data, d->length, event, NULL) != OK || isnan(event->wall_time)) {
        r->file_ended = 1;
        return 0;
    }
    event->is_damaged = 1;
    return 1;
}

void scalar_run_begin_event(struct scalar_run *r, const struct event *event)
{
    if (!r->follow_loader)
        return;
    if (!event->is_usual && !r->file_ended && event_wire_check(event->data, event->length, NULL) != EVENT_SOUND)
        r->file_ended = 1;
    r->loader_reads = !r->file_ended && !isinf(event->wall_time);
}

/* ---- tags ------------------------------------------------------------------------------------------------------ */

/* What the series is by its first value. */
static int describe(struct scalar_series *s, const struct event_value *v)
{
    free(s->plugin);
    free(s->metadata);
    s->metadata = NULL;
    s->metadata_length = 0;
    /* A legacy value implies its plugin, whatever its metadata says. */
    s->plugin = v->kind == EVENT_VALUE_SIMPLE      ? strdup("scalars")
                : v->kind == EVENT_VALUE_IMAGE     ? strdup("images")
                : v->kind == EVENT_VALUE_AUDIO     ? strdup("audio")
                : v->kind == EVENT_VALUE_HISTOGRAM ? strdup("histograms")
                                                   : strndup(v->plugin, v->plugin_length);
    if (v->metadata && (s->metadata = malloc(v->metadata_length + 1))) {
        memcpy(s->metadata, v->metadata, v->metadata_length);
        s->metadata_length = v->metadata_length;
    }
    s->first_kind = v->kind;
    s->first_dtype = v->dtype;
    return s->plugin && (!v->metadata || s->metadata);
}

static struct scalar_series *add_series(struct scalar_run *r, const struct event_value *v, int damaged)
{
    struct scalar_series *s;

    if (!ARRAY_ROOM(r->series, r->capacity, r->count + 1))
        return NULL;
    s = &r->series[r->count];
    memset(s, 0, sizeof *s);
    if (!describe(s, v) || tag_index_add(&r->tags, v->tag, v->tag_length) == TAG_INDEX_NONE) {
        free(s->plugin);
        free(s->metadata);
        return NULL;
    }
    s->tag = r->tags.entries[r->count].text;
    s->tag_length = v->tag_length;
    s->number = r->count++;
    s->from_damage = damaged;
    return s;
}

static struct scalar_series *find_series(struct scalar_run *r, const struct event_value *v, int damaged)
{
    size_t number = tag_index_find(&r->tags, v->tag, v->tag_length);
    struct scalar_series *s;

    if (number == TAG_INDEX_NONE)
        return add_series(r, v, damaged);
    s = &r->series[number];
    if (s->from_damage && !damaged) {
        s->from_damage = 0;
        return describe(s, v) ? s : NULL;
    }
    return s;
}

/* ---- points ---------------------------------------------------------------------------------------------------- */

unsigned scalar_series_from(const struct scalar_series *s, size_t i)
{
    return s->marks ? (unsigned)(s->marks[i] & 0xff) : s->alike;
}

static int begin_marks(struct scalar_series *s)
{
    if (!(s->marks = malloc(s->capacity * sizeof *s->marks)))
        return 0;
    for (size_t i = 0; i < s->count; i++)
        s->marks[i] = s->alike;
    return 1;
}

/* More points than these get pages of their own: those grow without being copied, and leave no holes in the heap, which
 * would stay as large. If the kernel gives no more mappings, the heap has to do. */
enum { POINTS_FIRST = 16, POINTS_IN_HEAP = 512 };

void scalar_points_free(void *points, size_t mapped)
{
    if (mapped)
        munmap(points, mapped);
    else
        free(points);
}

static size_t whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

static int grow_points(struct scalar_series *s)
{
    size_t capacity = s->capacity ? s->capacity * 2 : POINTS_FIRST, bytes = capacity * sizeof *s->points;
    size_t mapped = whole_pages(bytes);
    void *points = MAP_FAILED;
    uint64_t *marks;

    if (s->marks) {
        if (!(marks = realloc(s->marks, capacity * sizeof *marks)))
            return 0;
        s->marks = marks;
    }
    if (s->mapped)
        points = mremap(s->points, s->mapped, mapped, MREMAP_MAYMOVE);
    else if (capacity > POINTS_IN_HEAP)
        points = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (points != MAP_FAILED && !s->mapped) {
        memcpy(points, s->points, s->count * sizeof *s->points);
        free(s->points);
    }
    if (points != MAP_FAILED)
        s->mapped = mapped;
    else if (s->mapped || !(points = realloc(s->points, bytes)))
        return 0;
    s->points = points;
    s->capacity = capacity;
    return 1;
}

void scalar_series_fit(struct scalar_series *s)
{
    const size_t bytes = s->count * sizeof *s->points, mapped = whole_pages(bytes);
    void *points;

    if (!s->count || s->count == s->capacity)
        return;
    points = s->mapped ? mremap(s->points, s->mapped, mapped, 0) : realloc(s->points, bytes);
    if (!points || points == MAP_FAILED)
        return;
    s->points = points;
    s->capacity = s->count;
    s->mapped = s->mapped ? mapped : 0;
}

static int keep_point(struct scalar_run *r, struct scalar_series *s, const struct eventlog_point *point, unsigned from)
{
    if (s->count == s->capacity && !grow_points(s))
        return 0;
    if (!s->marks && s->count == 0)
        s->alike = from;
    if (!s->marks && (r->keep_order || from != s->alike) && !begin_marks(s))
        return 0;
    if (s->marks)
        s->marks[s->count] = r->numbered << 8 | from;
    s->points[s->count++] = *point;
    return 1;
}

static void skip_value(struct scalar_series *s, int64_t step)
{
    if (!s->skipped++)
        s->skipped_first = s->skipped_min = s->skipped_max = step;
    s->skipped_last = step;
    s->skipped_min = step < s->skipped_min ? step : s->skipped_min;
    s->skipped_max = step > s->skipped_max ? step : s->skipped_max;
}

/* The default loader's rule (specification of event logs, 6.1): a given data class counts; without one, the kind of a
 * legacy value, then the name of the plugin. */
static int begins_scalars(const struct event_value *v)
{
    struct summary_metadata m;
    int is_scalars;

    summary_metadata_read(&m, v->metadata ? v->metadata : (const uint8_t *)"", v->metadata_length);
    is_scalars = m.plugin.length == 7 && !memcmp(m.plugin.bytes, "scalars", 7);
    if (m.data_class)
        return m.data_class == 1 && is_scalars;
    return v->kind == EVENT_VALUE_SIMPLE ||
           ((v->kind == EVENT_VALUE_TENSOR || v->kind == EVENT_VALUE_NONE || v->kind == EVENT_VALUE_OLD_HISTOGRAM) &&
            is_scalars);
}

/* SCALAR_TAKEN and SCALAR_SHOWN of a value. */
static unsigned loaded(struct scalar_run *r, struct scalar_series *s, const struct event_value *v)
{
    if (!r->loader_reads)
        return 0;
    if (s->loaded == SCALAR_NOT_READ)
        s->loaded = begins_scalars(v) ? SCALAR_SCALARS : SCALAR_OTHER;
    return s->loaded == SCALAR_OTHER ? 0 : v->is_shown ? SCALAR_TAKEN | SCALAR_SHOWN : SCALAR_TAKEN;
}

int scalar_run_value(struct scalar_run *r, const struct event *event, const struct event_value *value,
                     struct eventlog_point *point, struct scalar_series **series, unsigned *from, struct error *e)
{
    struct scalar_series *s = find_series(r, value, event->is_damaged);
    int is_shown, is_point;

    if (!(*series = s))
        return error_memory(e, NULL, "for a series");
    *from = value->kind == EVENT_VALUE_SIMPLE ? SCALAR_FROM_SIMPLE | SCALAR_FROM_FLOAT32
            : value->dtype == EVENT_FLOAT     ? SCALAR_FROM_FLOAT32
                                              : 0;
    *from |= loaded(r, s, value);
    is_shown = r->view == EVENTLOG_VIEW_TENSORBOARD && (*from & SCALAR_SHOWN);
    is_point = !event->is_damaged && value->is_number &&
               (value->kind != EVENT_VALUE_TENSOR || !strcmp(s->plugin, "scalars"));
    s->usual = is_point && event->is_usual ? *from : 0;
    if (!is_point && !is_shown) {
        if (!event->is_damaged)
            skip_value(s, event->step);
        return 0;
    }
    *point = (struct eventlog_point){ event->step, event->wall_time, is_shown ? value->shown : value->number };
    if (!r->numbered++)
        r->began = event->wall_time;
    s->seen++;
    r->rounded += (uint64_t)value->is_rounded;
    return 1;
}

static void remove_from(struct scalar_series *s, int64_t step)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->count; i++) {
        if (s->points[i].step >= step)
            continue;
        s->points[kept] = s->points[i];
        if (s->marks)
            s->marks[kept] = s->marks[i];
        kept++;
    }
    s->count = kept;
}

int scalar_run_event(struct scalar_run *r, const struct event *event, struct error *e)
{
    struct event_values values;
    const struct event_value *value;

    if (r->view == EVENTLOG_VIEW_SESSION && event->what == EVENT_SESSION_LOG && event->session == EVENT_SESSION_START)
        for (size_t i = 0; i < r->count; i++)
            remove_from(&r->series[i], event->step);
    scalar_run_begin_event(r, event);
    if (event->what != EVENT_SUMMARY)
        return OK;
    event_values_init(&values, event);
    while ((value = event_values_next(&values))) {
        struct scalar_series *s;
        struct eventlog_point point;
        unsigned from;
        int rc = scalar_run_value(r, event, value, &point, &s, &from, e);

        if (rc < 0)
            return rc;
        if (from & SCALAR_TAKEN && r->view == EVENTLOG_VIEW_TENSORBOARD)
            while (s->count && s->points[s->count - 1].step >= event->step)
                s->count--; /* the steps kept rise strictly, so this removes all of them */
        if (rc == 0 && r->other && !event->is_damaged)
            rc = r->other(r->context, s, event, value, e);
        if (rc < 0)
            return rc;
        if (rc == 0 || !r->store || (r->view == EVENTLOG_VIEW_TENSORBOARD && !(from & SCALAR_TAKEN)) ||
            (r->wanted && !r->wanted(r->context, s, &point)))
            continue;
        if (!keep_point(r, s, &point, from))
            return error_memory(e, NULL, "for %llu points", (unsigned long long)r->numbered);
    }
    return OK;
}

int scalar_run_usual(void *run, const struct usual_event *event)
{
    const struct eventlog_point point = { event->step, event->wall_time, event->number };
    const unsigned from = event->is_tensor ? SCALAR_FROM_FLOAT32 : SCALAR_FROM_SIMPLE | SCALAR_FROM_FLOAT32;
    struct scalar_run *r = run;
    const size_t number = tag_index_find(&r->tags, event->tag, event->tag_length);
    struct scalar_series *s;

    if (number == TAG_INDEX_NONE || r->series[number].usual != from || r->follow_loader || !r->store)
        return 0;
    s = &r->series[number];
    if ((!r->wanted || r->wanted(r->context, s, &point)) && !keep_point(r, s, &point, from))
        return 0;
    r->numbered++;
    s->seen++;
    return 1;
}

void scalar_run_finish(struct scalar_run *r)
{
    uint64_t seen = 0, kept = 0;

    for (size_t i = 0; i < r->count; i++) {
        struct scalar_series *s = &r->series[i];
        size_t count = 0;

        if (r->view == EVENTLOG_VIEW_TENSORBOARD) {
            for (size_t k = 0; k < s->count; k++) {
                if (!(scalar_series_from(s, k) & SCALAR_SHOWN))
                    continue;
                s->points[count] = s->points[k];
                if (s->marks)
                    s->marks[count] = s->marks[k];
                count++;
            }
            s->count = count;
        }
        seen += s->seen;
        kept += s->count;
    }
    r->left_out = r->store ? seen - kept : 0;
}

/* ---- parts of a run ---------------------------------------------------------------------------------------------- */

int scalar_run_is_plain(const struct scalar_run *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->series[i].from_damage)
            return 0;
    return r->view == EVENTLOG_VIEW_ALL && !r->follow_loader && !r->keep_order && r->store;
}

size_t scalar_run_find(struct scalar_run *r, const char *tag, size_t length)
{
    const size_t number = tag_index_search(&r->tags, tag, length);

    return number == TAG_INDEX_NONE ? SCALAR_RUN_NONE : number;
}

/* Of a tensor the plugin of the first value decides whether it is a point. */
static int takes_alike(const struct scalar_series *a, const struct scalar_series *b)
{
    return !a->from_damage && !b->from_damage && !strcmp(a->plugin, b->plugin);
}

size_t scalar_run_like(struct scalar_run *r, const struct scalar_series *s)
{
    const size_t found = scalar_run_find(r, s->tag, s->tag_length);
    const struct event_value first = {
        .kind = s->first_kind,
        .dtype = s->first_dtype,
        .tag = s->tag,
        .tag_length = s->tag_length,
        .plugin = s->plugin,
        .plugin_length = strlen(s->plugin),
        .metadata = (const uint8_t *)s->metadata,
        .metadata_length = s->metadata_length,
    };
    struct scalar_series *own;

    if (found != SCALAR_RUN_NONE)
        return takes_alike(&r->series[found], s) ? found : SCALAR_RUN_NONE;
    if (!(own = add_series(r, &first, s->from_damage)))
        return SCALAR_RUN_NONE;
    own->usual = s->usual;
    return own->number;
}

int scalar_series_fits(const struct scalar_series *s, const struct scalar_series *part)
{
    if (part->count && part->marks)
        return 0;
    if (!s)
        return !part->from_damage;
    return takes_alike(s, part) && (!part->count || (!s->marks && (!s->count || s->alike == part->alike)));
}

int scalar_run_append(struct scalar_run *r, struct scalar_series *s, const struct scalar_series *part)
{
    if (part->seen + part->skipped)
        s->usual = part->usual;
    if (part->skipped) {
        s->skipped_min = !s->skipped || part->skipped_min < s->skipped_min ? part->skipped_min : s->skipped_min;
        s->skipped_max = !s->skipped || part->skipped_max > s->skipped_max ? part->skipped_max : s->skipped_max;
        s->skipped_first = s->skipped ? s->skipped_first : part->skipped_first;
        s->skipped_last = part->skipped_last;
        s->skipped += part->skipped;
    }
    s->seen += part->seen;
    for (size_t i = 0; i < part->count && r->wanted; i++)
        if (r->wanted(r->context, s, &part->points[i]) && !keep_point(r, s, &part->points[i], part->alike))
            return 0;
    if (!part->count || r->wanted)
        return 1;
    while (s->capacity - s->count < part->count)
        if (!grow_points(s))
            return 0;
    memcpy(s->points + s->count, part->points, part->count * sizeof *s->points);
    s->alike = part->alike;
    s->count += part->count;
    return 1;
}

void scalar_run_count(struct scalar_run *r, const struct scalar_run *part)
{
    if (!r->numbered && part->numbered)
        r->began = part->began;
    r->numbered += part->numbered;
    r->rounded += part->rounded;
}

void scalar_run_empty(struct scalar_run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct scalar_series *s = &r->series[i];

        free(s->marks);
        s->marks = NULL;
        s->count = 0;
        s->seen = s->skipped = 0;
    }
    r->numbered = r->rounded = 0;
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

static int by_tag(const void *a, const void *b)
{
    const struct scalar_series *x = a, *y = b;

    return bytes_compare(x->tag, x->tag_length, y->tag, y->tag_length);
}

void scalar_run_sort(struct scalar_run *r)
{
    if (r->count)
        qsort(r->series, r->count, sizeof *r->series, by_tag);
}

/* Stable merge sort by step. It first finds the stretches that are in order already, as restarts leave them: k of them
 * cost log2(k) passes over the points. */
static void merge_sort(struct eventlog_point *points, uint64_t *marks, size_t n, struct eventlog_point *other,
                       uint64_t *other_marks)
{
    size_t low, middle, high;

    for (;;) {
        size_t out = 0, merged = 0;

        for (low = 0; low < n; low = high, merged++) {
            size_t a, b;

            for (middle = low + 1; middle < n && points[middle - 1].step <= points[middle].step; middle++)
                ;
            for (high = middle + (middle < n); high < n && points[high - 1].step <= points[high].step; high++)
                ;
            for (a = low, b = middle; a < middle || b < high; out++) {
                size_t take = b == high || (a < middle && points[a].step <= points[b].step) ? a++ : b++;

                other[out] = points[take];
                if (marks)
                    other_marks[out] = marks[take];
            }
        }
        memcpy(points, other, n * sizeof *points);
        if (marks)
            memcpy(marks, other_marks, n * sizeof *marks);
        if (merged <= 1)
            return;
    }
}

/* How many points at the start are where they belong: none of them has a greater step than a point from `tail` on.
 * After a restart from a checkpoint these are nearly all. */
static size_t in_place(const struct eventlog_point *points, size_t tail, size_t n)
{
    int64_t least = points[tail].step;
    size_t low = 0, high = tail;

    for (size_t i = tail; i < n; i++)
        least = points[i].step < least ? points[i].step : least;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (points[middle].step <= least)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int scalar_series_sort(struct scalar_series *s, struct error *e)
{
    struct eventlog_point *other;
    uint64_t *other_marks = NULL;
    size_t i = 1, first, n;

    while (i < s->count && s->points[i - 1].step <= s->points[i].step)
        i++;
    if (i >= s->count)
        return OK;
    first = in_place(s->points, i, s->count);
    n = s->count - first;
    other = malloc(n * sizeof *other);
    if (s->marks)
        other_marks = malloc(n * sizeof *other_marks);
    if (!other || (s->marks && !other_marks)) {
        free(other);
        free(other_marks);
        return error_memory(e, NULL, "for sorting %zu points", n);
    }
    merge_sort(s->points + first, s->marks ? s->marks + first : NULL, n, other, other_marks);
    free(other);
    free(other_marks);
    return OK;
}
