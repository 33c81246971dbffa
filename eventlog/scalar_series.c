#include "eventlog/scalar_series.h"

#include "base/bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum scalar_view scalar_view_of(const char *word)
{
    return !strcmp(word, "tensorboard") ? SCALAR_VIEW_TENSORBOARD
           : !strcmp(word, "session")   ? SCALAR_VIEW_SESSION
                                        : SCALAR_VIEW_ALL;
}

void scalar_run_init(struct scalar_run *r, enum scalar_view view, int keep_order, int store)
{
    memset(r, 0, sizeof *r);
    r->view = view;
    r->keep_order = keep_order;
    r->store = store;
}

void scalar_run_release(struct scalar_run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->series[i].plugin);
        free(r->series[i].metadata);
        free(r->series[i].points);
        free(r->series[i].marks);
    }
    free(r->series);
    tag_index_release(&r->tags);
    r->series = NULL;
    r->count = r->capacity = r->guess = 0;
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

void scalar_run_damage(struct scalar_run *r)
{
    r->file_ended = 1;
}

/* ---- tags ------------------------------------------------------------------------------------------------------ */

static int has_tag(const struct scalar_series *s, const struct event_value *v)
{
    return s->tag_length == v->tag_length && !memcmp(s->tag, v->tag, v->tag_length);
}

static struct scalar_series *add_series(struct scalar_run *r, const struct event_value *v)
{
    struct scalar_series *s;

    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? r->capacity * 2 : 16;

        if (!(s = realloc(r->series, capacity * sizeof *s)))
            return NULL;
        r->series = s;
        r->capacity = capacity;
    }
    s = &r->series[r->count];
    memset(s, 0, sizeof *s);
    /* A legacy value implies its plugin, whatever its metadata says. */
    s->plugin = v->kind == EVENT_VALUE_SIMPLE                                       ? strdup("scalars")
                : v->kind == EVENT_VALUE_IMAGE                                      ? strdup("images")
                : v->kind == EVENT_VALUE_AUDIO                                      ? strdup("audio")
                : v->kind == EVENT_VALUE_HISTOGRAM                                  ? strdup("histograms")
                                                         : strndup(v->plugin, v->plugin_length);
    if (v->metadata && s->plugin && (s->metadata = malloc(v->metadata_length + 1))) {
        memcpy(s->metadata, v->metadata, v->metadata_length);
        s->metadata_length = v->metadata_length;
    }
    if (!s->plugin || (v->metadata && !s->metadata) ||
        tag_index_add(&r->tags, v->tag, v->tag_length) == TAG_INDEX_NONE) {
        free(s->plugin);
        free(s->metadata);
        return NULL;
    }
    s->tag = r->tags.entries[r->count].text;
    s->tag_length = v->tag_length;
    s->number = r->count++;
    s->first_kind = v->kind;
    s->first_dtype = v->dtype;
    return s;
}

/* Programs log the same tags over and over in the same order, so the one after the last is the first guess. */
static struct scalar_series *find_series(struct scalar_run *r, const struct event_value *v)
{
    size_t number;

    if (r->count) {
        if (++r->guess >= r->count)
            r->guess = 0;
        if (has_tag(&r->series[r->guess], v))
            return &r->series[r->guess];
    }
    number = tag_index_find(&r->tags, v->tag, v->tag_length);
    r->guess = number == TAG_INDEX_NONE ? r->count : number;
    return number == TAG_INDEX_NONE ? add_series(r, v) : &r->series[number];
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

static int grow_points(struct scalar_series *s)
{
    size_t capacity = s->capacity ? s->capacity * 2 : 16;
    struct scalar_point *points = realloc(s->points, capacity * sizeof *points);
    uint64_t *marks;

    if (!points)
        return 0;
    s->points = points;
    if (s->marks) {
        if (!(marks = realloc(s->marks, capacity * sizeof *marks)))
            return 0;
        s->marks = marks;
    }
    s->capacity = capacity;
    return 1;
}

static int keep_point(struct scalar_run *r, struct scalar_series *s, const struct scalar_point *point, unsigned from)
{
    if (r->view == SCALAR_VIEW_TENSORBOARD)
        while (s->count && s->points[s->count - 1].step >= point->step)
            s->count--; /* what is kept rises strictly, so this removes all of them */
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

int scalar_run_value(struct scalar_run *r, const struct event *event, const struct event_value *value,
                     struct scalar_point *point, struct scalar_series **series, unsigned *from, struct error *e)
{
    struct scalar_series *s = find_series(r, value);

    if (!(*series = s))
        return error_set(e, ERR_NOMEM, "out of memory for a series");
    if (!value->is_number || (value->kind == EVENT_VALUE_TENSOR && strcmp(s->plugin, "scalars") != 0)) {
        skip_value(s, event->step);
        return 0;
    }
    *point = (struct scalar_point){ event->step, event->wall_time, value->number };
    *from = value->kind == EVENT_VALUE_SIMPLE  ? SCALAR_FROM_SIMPLE | SCALAR_FROM_FLOAT32 | SCALAR_SHOWN
            : value->dtype != EVENT_FLOAT      ? 0
            : value->rank                      ? SCALAR_FROM_FLOAT32
                                               : SCALAR_FROM_FLOAT32 | SCALAR_SHOWN;
    r->numbered++;
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
    struct event_value value;

    if (r->view == SCALAR_VIEW_SESSION && event->what == EVENT_SESSION_LOG && event->session == EVENT_SESSION_START)
        for (size_t i = 0; i < r->count; i++)
            remove_from(&r->series[i], event->step);
    if (event->what != EVENT_SUMMARY)
        return OK;
    event_values_init(&values, event);
    while (event_values_next(&values, &value)) {
        struct scalar_series *s;
        struct scalar_point point;
        unsigned from;
        int rc = scalar_run_value(r, event, &value, &point, &s, &from, e);

        if (rc == 0 && r->other)
            rc = r->other(r->context, s, event, &value, e);
        if (rc < 0)
            return rc;
        if (rc == 0 || !r->store || (r->wanted && !r->wanted(r->context, s, &point)))
            continue;
        if (r->view == SCALAR_VIEW_TENSORBOARD &&
            (r->file_ended || isinf(point.wall_time) || strcmp(s->plugin, "scalars") != 0))
            continue;
        if (!keep_point(r, s, &point, from))
            return error_set(e, ERR_NOMEM, "out of memory for %llu points", (unsigned long long)r->numbered);
    }
    return OK;
}

void scalar_run_finish(struct scalar_run *r)
{
    uint64_t seen = 0, kept = 0;

    for (size_t i = 0; i < r->count; i++) {
        struct scalar_series *s = &r->series[i];
        size_t count = 0;

        if (r->view == SCALAR_VIEW_TENSORBOARD) {
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

/* Stable merge sort by step. Runs that are in order already, as restarts leave them, are found first: k runs cost
 * log2(k) passes over the points. */
static void merge_sort(struct scalar_point *points, uint64_t *marks, size_t n, struct scalar_point *other,
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

int scalar_series_sort(struct scalar_series *s, struct error *e)
{
    struct scalar_point *other;
    uint64_t *other_marks = NULL;
    size_t i = 1;

    while (i < s->count && s->points[i - 1].step <= s->points[i].step)
        i++;
    if (i >= s->count)
        return OK;
    other = malloc(s->count * sizeof *other);
    if (s->marks)
        other_marks = malloc(s->count * sizeof *other_marks);
    if (!other || (s->marks && !other_marks)) {
        free(other);
        free(other_marks);
        return error_set(e, ERR_NOMEM, "out of memory for sorting %zu points", s->count);
    }
    merge_sort(s->points, s->marks, s->count, other, other_marks);
    free(other);
    free(other_marks);
    return OK;
}
