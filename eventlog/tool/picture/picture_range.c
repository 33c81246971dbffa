#include "eventlog/tool/picture/picture_range.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INNER_SAMPLE = 512 };

struct extent {
    double low, high; /* low above high: of nothing */
};
static const struct extent NOTHING = { INFINITY, -INFINITY };

enum { LINES = 3 }; /* of a curve: itself, and the edges of its band */

struct survey {
    struct extent x, all, inner;
    struct extent best; /* of the values that must always be visible, one of each curve */
    size_t gaps;
    unsigned marks;
    double *sample; /* INNER_SAMPLE for each line */
    size_t *counts; /* of them, that are filled */
};

static void extend(struct extent *e, double v)
{
    e->low = v < e->low ? v : e->low;
    e->high = v > e->high ? v : e->high;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The line of that number in the panel: 1, or 0: the curve has no band. */
static int line_of(const struct picture_panel *panel, size_t number, struct picture_curve *out)
{
    const struct picture_curve *c = &panel->curves[number / LINES];

    *out = *c;
    if (number % LINES)
        out->points = number % LINES == 1 ? c->low : c->high;
    return out->points != NULL;
}

/* Examines all points of a line; which: its number. */
static void survey_line(struct survey *s, const struct picture *p, const struct picture_curve *c, double smoothing,
                        int better, size_t which)
{
    struct picture_walk walk = picture_walk_begin(p, c, smoothing, -PICTURE_FAR, PICTURE_FAR);
    double *sample = s->sample + which * INNER_SAMPLE;
    size_t every = c->count / INNER_SAMPLE + 1, seen = 0, n = 0;
    struct extent all = NOTHING;
    struct picture_point q;
    enum picture_mark mark;

    while (picture_walk_next(&walk, &q, &mark)) {
        s->marks |= which % LINES ? 0 : 1u << mark;
        s->gaps += mark == PICTURE_GAP && which % LINES == 0;
        if (mark == PICTURE_GAP)
            continue;
        extend(&s->x, q.x);
        if (mark != PICTURE_LINE)
            continue;
        extend(&all, q.y);
        if (seen++ % every == 0)
            sample[n++] = q.y;
    }
    s->counts[which] = n;
    if (!n)
        return;
    qsort(sample, n, sizeof *sample, by_value);
    extend(&s->best, better < 0 ? all.low : better > 0 ? all.high : sample[n / 2]);
    extend(&s->all, all.low);
    extend(&s->all, all.high);
}

/* The range of the inner values of all lines; pool: room for all samples. */
static struct extent find_inner(const struct survey *s, size_t lines, double *pool)
{
    struct extent inner = s->best, sound = { -INFINITY, INFINITY };
    size_t n = 0;

    for (size_t i = 0; i < lines; n += s->counts[i++])
        memcpy(pool + n, s->sample + i * INNER_SAMPLE, s->counts[i] * sizeof *pool);
    if (!n)
        return inner;
    qsort(pool, n, sizeof *pool, by_value);
    if (pool[n - 1 - n / 4] > pool[n / 4]) {
        double reach = 100 * (pool[n - 1 - n / 4] - pool[n / 4]);

        sound = (struct extent){ pool[n / 4] - reach, pool[n - 1 - n / 4] + reach };
    }
    for (size_t i = 0; i < lines; i++) {
        const double *sample = s->sample + i * INNER_SAMPLE;
        size_t from = 0, to = s->counts[i], trim;

        while (from < to && sample[from] < sound.low)
            from++;
        while (to > from && sample[to - 1] > sound.high)
            to--;
        if (from == to)
            continue;
        trim = to - from > 2 ? (size_t)ceil(0.05 * (double)(to - from - 1)) : 0;
        extend(&inner, sample[from + trim]);
        extend(&inner, sample[to - 1 - trim]);
    }
    return inner;
}

/* Examines each point that is drawn, with its mark between y0 and y1. */
struct visit {
    double y0, y1;
    void (*point)(struct visit *v, double y, enum picture_mark mark);
    int bands; /* their edges, too */
    struct extent found;
    size_t above, below;
};

static void visit_panel(struct visit *v, const struct picture *p, const struct picture_panel *panel, int raw)
{
    for (size_t i = 0; i < LINES * panel->count; i += v->bands ? 1 : LINES) {
        struct picture_curve c;
        struct picture_walk walk;
        struct picture_point q;
        enum picture_mark mark;

        if (!line_of(panel, i, &c))
            continue;
        walk = picture_walk_begin(p, &c, raw ? 0 : picture_smoothing_of(p, &c), v->y0, v->y1);
        while (picture_walk_next(&walk, &q, &mark))
            v->point(v, q.y, mark);
    }
}

static void find_within(struct visit *v, double y, enum picture_mark mark)
{
    if (mark == PICTURE_LINE)
        extend(&v->found, y);
}

static void count_outside(struct visit *v, double y, enum picture_mark mark)
{
    if (mark != PICTURE_ABOVE && mark != PICTURE_BELOW)
        return;
    v->above += mark == PICTURE_ABOVE;
    v->below += mark == PICTURE_BELOW;
    extend(&v->found, y);
}

/* Chooses the range of the axis of values, as the header says. */
static struct extent ends(const struct picture *p, const struct picture_panel *panel, int raw, const struct survey *s)
{
    double inner = s->inner.high - s->inner.low;
    struct visit near = { s->inner.low - inner / 2, s->inner.high + inner / 2, find_within, 1, NOTHING, 0, 0 };
    struct extent e = s->all;
    int low, high;

    if (p->clip == PICTURE_CLIP_ON)
        return s->inner;
    /* Values that differ only by rounding are not worth the height. */
    if (p->clip == PICTURE_CLIP_OFF || !(inner > 1e-6 * fmax(fabs(s->inner.low), fabs(s->inner.high))))
        return e;
    low = s->all.low < s->inner.low - 4 * inner;
    high = s->all.high > s->inner.high + 4 * inner;
    if (low || high)
        visit_panel(&near, p, panel, raw);
    e.low = low ? near.found.low : e.low;
    e.high = high ? near.found.high : e.high;
    return e;
}

/* Widens an empty range and adds air; ends that the user asked for stay. */
static void spread(const struct picture *p, const struct survey *s, struct extent e, double air,
                   struct picture_range *r)
{
    double low = p->log_y ? log10(p->low) : p->low, high = p->log_y ? log10(p->high) : p->high, room;

    if (e.low > e.high)
        e = (struct extent){ 0, 1 };
    room = e.high - e.low > fabs(e.high) * 1e-9 ? (e.high - e.low) * air : fabs(e.high) * 0.1 + 1e-30;
    /* A quantity that was never negative must not look as if it could be. */
    r->y0 = !isnan(low) ? low : !p->log_y && s->all.low >= 0 && e.low - room < 0 ? 0 : e.low - room;
    r->y1 = !isnan(high) ? high : e.high + room;
    room = fmax(fabs(r->y0), fabs(r->y1)) * 0.1 + 1e-30;
    if (!(r->y1 > r->y0) && isnan(high)) /* all is below what was asked for, or above */
        r->y1 = r->y0 + room;
    else if (!(r->y1 > r->y0))
        r->y0 = r->y1 - room;
}

struct picture_range picture_range_of(const struct picture *p, const struct picture_panel *panel, int raw, double air)
{
    struct picture_range r = { 0, 1, 0, 1, 0, 0, NAN, NAN, 0, 0, 0 };
    size_t lines = LINES * panel->count;
    double *samples = malloc((2 * lines + 1) * INNER_SAMPLE * sizeof *samples);
    size_t *counts = calloc(lines + 1, sizeof *counts);
    struct picture_curve line;
    struct survey s = { NOTHING, NOTHING, NOTHING, NOTHING, 0, 0, samples, counts };
    struct visit outside;

    /* A moving average stays between its values: if these are drawn too, they alone count. */
    r.failed = !samples || !counts;
    for (size_t i = 0; !r.failed && i < lines; i++)
        if (line_of(panel, i, &line))
            survey_line(&s, p, &line, raw ? 0 : picture_smoothing_of(p, &line), panel->better, i);
    if (!r.failed)
        s.inner = find_inner(&s, lines, samples + lines * INNER_SAMPLE);
    free(samples);
    free(counts);
    if (s.x.low <= s.x.high) {
        double half = s.x.high - s.x.low > fabs(s.x.high) * 1e-12 ? 0 : fmax(0.5, fabs(s.x.high) * 1e-9);

        r.x0 = s.x.low - half;
        r.x1 = s.x.high + half;
    }
    spread(p, &s, ends(p, panel, raw, &s), air, &r);
    r.gaps = s.gaps;
    r.marks = s.marks;
    if (s.all.low >= r.y0 && s.all.high <= r.y1)
        return r;
    outside = (struct visit){ r.y0, r.y1, count_outside, 0, NOTHING, 0, 0 };
    visit_panel(&outside, p, panel, raw);
    r.above = outside.above;
    r.below = outside.below;
    r.highest = p->log_y ? pow(10, outside.found.high) : outside.found.high;
    r.lowest = p->log_y ? pow(10, outside.found.low) : outside.found.low;
    r.marks |= (r.above ? 1u << PICTURE_ABOVE : 0) | (r.below ? 1u << PICTURE_BELOW : 0);
    return r;
}

static void note(struct buffer *out, size_t points, const char *where)
{
    if (points)
        buffer_format(out, "%s%zu point%s %s", out->length ? "; " : "", points, points == 1 ? "" : "s", where);
}

void picture_range_notes(const struct picture *p, const struct picture_range *r, struct buffer *out)
{
    char text[64];

    snprintf(text, sizeof text, "above, up to %.4g", r->highest);
    note(out, r->above, text);
    snprintf(text, sizeof text, "below, down to %.4g", r->lowest);
    note(out, r->below, text);
    note(out, r->gaps, p->log_y ? "not above 0" : "without a time");
}

int picture_range_parse(const char *text, double *low, double *high)
{
    double *const ends_of[2] = { low, high };
    const char *comma = strchr(text, ',');

    *low = *high = NAN;
    if (!comma || !text[1])
        return 0;
    for (int i = 0; i < 2; i++) {
        const char *from = i ? comma + 1 : text;
        size_t n = i ? strlen(from) : (size_t)(comma - from);
        char number[64];

        if (!n)
            continue;
        if (n >= sizeof number)
            return 0;
        memcpy(number, from, n);
        number[n] = '\0';
        if (!number_parse_double(number, ends_of[i]) || !(fabs(*ends_of[i]) < PICTURE_FAR))
            return 0;
    }
    return !(*low >= *high);
}
