#include "eventlog/rewrite/log_merge.h"

#include "base/array.h"
#include "eventlog/format/tag_index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The series that are none: their places in the index of tags come first. */
enum { SESSION, GRAPH, META_GRAPH, OTHER, FIXED };

enum once { MANY, ONCE_FIRST, ONCE_LAST, MARKS };

/* what a series has in one segment of the files */
struct span {
    uint32_t segment;
    int64_t low, high;  /* steps */
    double first, last; /* wall times */
    int64_t limit;      /* of EVENTLOG_OVERLAP_LAST: steps from here on are left out, if limited */
    int64_t floor;      /* of EVENTLOG_OVERLAP_FIRST: steps up to here are left out, if floored */
    int limited, floored;
};

struct merge_series {
    enum once once;
    size_t run; /* that had it first */
    struct span *spans;
    uint32_t count;
    size_t capacity;
    size_t item; /* of the one that stays of a series that a run has once; of the last one at the step at hand */
    int seen;    /* item holds */
    int64_t at;  /* step of item */
};

/* a file, or its part from a session start on */
struct segment {
    size_t run;
    int has_start;
    int64_t start; /* step */
};

struct log_merge {
    enum eventlog_overlap overlap;
    struct tag_index tags; /* items: struct merge_series */
    struct segment *segments;
    size_t segment_count, segment_capacity;
    const char **names; /* of runs, one a file */
    size_t file_count, file_capacity, run;
    struct log_merge_item *items;
    size_t count, capacity;
    struct eventlog_merged totals;
};

static int no_memory(const struct log_merge *m, struct error *e)
{
    return error_memory(e, NULL, "for %zu values", m->count + 1);
}

static struct merge_series *series_at(const struct log_merge *m, size_t number)
{
    return (struct merge_series *)m->tags.items + number;
}

static enum once once_of(const char *tag, size_t n)
{
    static const struct {
        const char *tag;
        enum once once;
    } known[] = {
        { "_hparams_/experiment", ONCE_FIRST },
        { "_hparams_/session_start_info", ONCE_FIRST },
        { "_hparams_/session_end_info", ONCE_LAST },
        { "custom_scalars__config__", ONCE_LAST },
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].tag) == n && !memcmp(known[i].tag, tag, n))
            return known[i].once;
    return MANY;
}

/* The number of the series, or TAG_INDEX_NONE without memory. */
static size_t merge_series_of(struct log_merge *m, const char *tag, size_t n, enum once once)
{
    size_t known = m->tags.count, number = tag_index_add(&m->tags, tag, n);

    if (number == known)
        *series_at(m, number) = (struct merge_series){ .once = once, .run = m->run };
    return number;
}

int log_merge_new(struct log_merge **out, enum eventlog_overlap overlap, struct error *e)
{
    static const struct {
        const char *tag;
        enum once once;
    } fixed[FIXED] = {
        /* No tag of a value begins with a NUL here: values' names get a mark of their own. */
        { "\0session", MARKS },
        { "\0graph", ONCE_LAST },
        { "\0meta", ONCE_LAST },
        { "\0other", MARKS },
    };
    struct log_merge *m = calloc(1, sizeof *m);

    *out = m;
    if (m)
        m->tags.item_size = sizeof(struct merge_series);
    for (size_t i = 0; m && i < FIXED; i++)
        if (merge_series_of(m, fixed[i].tag, 1 + strlen(fixed[i].tag + 1), fixed[i].once) == TAG_INDEX_NONE) {
            log_merge_free(m);
            *out = m = NULL;
        }
    if (!m)
        return error_memory(e, NULL, "for a merge");
    m->overlap = overlap;
    return OK;
}

void log_merge_free(struct log_merge *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->tags.count; i++)
        free(series_at(m, i)->spans);
    tag_index_release(&m->tags);
    free(m->segments);
    free(m->names);
    free(m->items);
    free(m);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int begin_segment(struct log_merge *m, int has_start, int64_t start, struct error *e)
{
    if (m->segment_count == UINT32_MAX || !ARRAY_ROOM(m->segments, m->segment_capacity, m->segment_count + 1))
        return no_memory(m, e);
    m->segments[m->segment_count++] = (struct segment){ m->run, has_start, start };
    return OK;
}

int log_merge_file(struct log_merge *m, size_t run, const char *name, struct error *e)
{
    if (m->file_count == UINT32_MAX || !ARRAY_ROOM(m->names, m->file_capacity, m->file_count + 1))
        return no_memory(m, e);
    m->names[m->file_count++] = name;
    m->run = run;
    return begin_segment(m, 0, 0, e);
}

static struct span *span_of(struct log_merge *m, struct merge_series *s, int64_t step, double wall_time)
{
    uint32_t segment = (uint32_t)(m->segment_count - 1);
    struct span *span;

    if (!isfinite(wall_time))
        wall_time = NAN; /* tells nothing: fmin and fmax pass over it, and it compares as no overlap */

    if (s->count && s->spans[s->count - 1].segment == segment) {
        span = &s->spans[s->count - 1];
        span->low = step < span->low ? step : span->low;
        span->high = step > span->high ? step : span->high;
        span->first = fmin(span->first, wall_time);
        span->last = fmax(span->last, wall_time);
        return span;
    }
    if (!ARRAY_ROOM(s->spans, s->capacity, s->count + 1))
        return NULL;
    span = &s->spans[s->count++];
    *span = (struct span){ .segment = segment, .low = step, .high = step, .first = wall_time, .last = wall_time };
    return span;
}

static int add(struct log_merge *m, size_t number, uint64_t offset, uint32_t value, int64_t step, double wall_time,
               struct error *e)
{
    struct merge_series *s = series_at(m, number);

    if (!ARRAY_ROOM(m->items, m->capacity, m->count + 1) || !span_of(m, s, step, wall_time))
        return no_memory(m, e);
    m->items[m->count++] = (struct log_merge_item){ step,  offset,           (uint32_t)(m->file_count - 1),
                                                    value, (uint32_t)number, s->count - 1 };
    m->totals.values++;
    return OK;
}

static const char *run_name(const struct log_merge *m, size_t run)
{
    size_t segment = 0;

    for (size_t i = 0; i < m->file_count; i++, segment++) {
        while (segment < m->segment_count && m->segments[segment].has_start)
            segment++;
        if (segment < m->segment_count && m->segments[segment].run == run)
            return m->names[i];
    }
    return "?";
}

static int add_named(struct log_merge *m, char mark, uint64_t offset, uint32_t value, const char *tag, size_t n,
                     int64_t step, double wall_time, struct error *e)
{
    enum once once = mark == 'v' ? once_of(tag, n) : MANY;
    char small[128], *name = n < sizeof small ? small : malloc(n + 1);
    size_t number = TAG_INDEX_NONE;

    if (name) {
        name[0] = mark;
        memcpy(name + 1, tag, n);
        number = merge_series_of(m, name, n + 1, once);
    }
    if (name != small)
        free(name);
    if (number == TAG_INDEX_NONE)
        return no_memory(m, e);
    if (once == MANY && series_at(m, number)->run != m->run)
        return error_set(e, ERR_ARG, "tag '%.80s' is in the runs '%.80s' and '%.80s'", m->tags.entries[number].text + 1,
                         run_name(m, series_at(m, number)->run), m->names[m->file_count - 1]);
    return add(m, number, offset, value, step, wall_time, e);
}

int log_merge_value(struct log_merge *m, uint64_t offset, uint32_t number, const char *tag, size_t n, int64_t step,
                    double wall_time, struct error *e)
{
    return add_named(m, 'v', offset, number, tag, n, step, wall_time, e);
}

int log_merge_run_metadata(struct log_merge *m, uint64_t offset, const char *tag, size_t n, int64_t step,
                           double wall_time, struct error *e)
{
    return add_named(m, 'p', offset, LOG_MERGE_EVENT, tag, n, step, wall_time, e);
}

int log_merge_event(struct log_merge *m, uint64_t offset, enum log_merge_mark mark, int64_t step, struct error *e)
{
    static const size_t numbers[] = { SESSION, SESSION, GRAPH, META_GRAPH, OTHER };

    if (mark == LOG_MERGE_SESSION_START && begin_segment(m, 1, step, e) != OK)
        return ERR_NOMEM;
    return add(m, numbers[mark], offset, LOG_MERGE_EVENT, step, 0, e);
}

/* ---- deciding -------------------------------------------------------------------------------------------------- */

static void limit(struct span *s, int64_t step)
{
    s->limit = s->limited && s->limit < step ? s->limit : step;
    s->limited = 1;
}

static void raise_floor(struct span *s, int64_t step)
{
    s->floor = s->floored && s->floor > step ? s->floor : step;
    s->floored = 1;
}

/* Applies the later segment b of a series to segment a. */
static void decide_pair(struct log_merge *m, struct span *a, struct span *b)
{
    if (b->first < a->last) {
        m->totals.interleaved += b->low <= a->high;
        return;
    }
    if (b->low > a->high)
        return;
    m->totals.restarts++;
    limit(a, b->low);
    raise_floor(b, a->high);
}

/* Where no step goes back, which is the rule, no pair has to be looked at. */
static void decide_series(struct log_merge *m, struct merge_series *s)
{
    int64_t highest = INT64_MIN;

    for (uint32_t b = 0; b < s->count; b++) {
        for (uint32_t a = 0; a < b && s->spans[b].low <= highest; a++)
            decide_pair(m, &s->spans[a], &s->spans[b]);
        highest = s->spans[b].high > highest ? s->spans[b].high : highest;
    }
}

/* Session starts apply to all series of their run: earlier values end there. */
static void decide_starts(struct log_merge *m, struct merge_series *s)
{
    for (size_t i = 0; i < m->segment_count; i++)
        for (uint32_t k = 0; m->segments[i].has_start && k < s->count && s->spans[k].segment < i; k++)
            if (m->segments[s->spans[k].segment].run == m->segments[i].run && s->spans[k].high >= m->segments[i].start)
                limit(&s->spans[k], m->segments[i].start);
}

static void decide(struct log_merge *m)
{
    int starts = 0;

    for (size_t i = 0; i < m->segment_count; i++)
        starts |= m->segments[i].has_start;
    for (size_t i = FIXED; i < m->tags.count; i++) {
        struct merge_series *s = series_at(m, i);

        if (s->once != MANY)
            continue;
        decide_series(m, s);
        if (starts)
            decide_starts(m, s);
    }
}

static int twice(const struct log_merge *m, const struct log_merge_item *item, struct error *e)
{
    return error_set(e, ERR_ARG, "run '%.80s': tag '%.80s' has step %lld more than once, or goes back to it",
                     m->names[item->file], m->tags.entries[item->series].text + 1, (long long)item->step);
}

/* Items that stay move to the front. */
static int merge_keep(struct log_merge *m, struct error *e)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->count; i++) {
        struct log_merge_item *item = &m->items[i];
        struct merge_series *s = series_at(m, item->series);
        const struct span *span = &s->spans[item->span];
        int out = m->overlap == EVENTLOG_OVERLAP_FIRST ? span->floored && item->step <= span->floor
                                                       : span->limited && item->step >= span->limit;

        if (s->once == ONCE_FIRST || s->once == ONCE_LAST) {
            m->totals.repeated += s->seen != 0;
            if (s->seen && s->once == ONCE_LAST)
                m->items[s->item] = *item; /* the place does not matter before sorting */
            if (s->seen)
                continue;
            s->seen = 1;
            s->item = kept;
        } else if (s->once == MANY && out && m->overlap == EVENTLOG_OVERLAP_ERROR) {
            return twice(m, item, e);
        } else if (s->once == MANY && out && m->overlap != EVENTLOG_OVERLAP_KEEP) {
            m->totals.restarted++;
            continue;
        }
        m->items[kept++] = *item;
    }
    m->count = kept;
    for (size_t i = 0; i < m->tags.count; i++)
        series_at(m, i)->seen = 0;
    return OK;
}

/* Session marks first: a mark takes away what stands before it at its step and beyond, which is then nothing. */
static int by_step(const void *x, const void *y)
{
    const struct log_merge_item *a = x, *b = y;

    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if ((a->series == SESSION) != (b->series == SESSION))
        return a->series == SESSION ? -1 : 1;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

/* If a series has several values at a step, keeps one. */
static int single(struct log_merge *m, struct error *e)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->count; i++) {
        struct merge_series *s = series_at(m, m->items[i].series);

        if (s->once == MANY && s->seen && s->at == m->items[i].step) {
            if (m->overlap == EVENTLOG_OVERLAP_ERROR)
                return twice(m, &m->items[i], e);
            m->totals.doubled++;
            m->items[m->overlap == EVENTLOG_OVERLAP_FIRST ? i : s->item].file = UINT32_MAX; /* taken out below */
            if (m->overlap == EVENTLOG_OVERLAP_FIRST)
                continue;
        }
        s->seen = 1;
        s->at = m->items[i].step;
        s->item = i;
    }
    for (size_t i = 0; i < m->count; i++)
        if (m->items[i].file != UINT32_MAX)
            m->items[kept++] = m->items[i];
    m->count = kept;
    return OK;
}

int log_merge_finish(struct log_merge *m, struct error *e)
{
    int rc, sorted = 1;

    decide(m);
    if ((rc = merge_keep(m, e)) != OK)
        return rc;
    for (size_t i = 1; i < m->count && sorted; i++)
        sorted = by_step(&m->items[i - 1], &m->items[i]) <= 0;
    if (!sorted)
        qsort(m->items, m->count, sizeof *m->items, by_step);
    return m->overlap == EVENTLOG_OVERLAP_KEEP ? OK : single(m, e);
}

const struct log_merge_item *log_merge_items(const struct log_merge *m, size_t *count)
{
    *count = m->count;
    return m->items;
}

struct eventlog_merged log_merge_totals(const struct log_merge *m)
{
    return m->totals;
}
