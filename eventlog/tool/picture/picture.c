#include "eventlog/tool/picture/picture.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- run style --------------------------------------------------------------------------------------------------- */

/* The names of --run-option, and one of its options that makes another strategy. The longest name that fits counts. */
static const struct {
    const char *name;
    int colour;
} strategies[] = {
    { "mpi", 0 }, { "ps", 1 }, { "ps-async", 2 }, { "hybrid", 3 }, { "mirrored", 4 }, { "ring", 5 }, { "single", 6 },
};

/* 1: what follows a strategy's name in a directory's of n bytes belongs to it: nothing, or what ends with workers. */
static int belongs(const char *rest, size_t n)
{
    return n == 0 || (rest[0] == '-' && isdigit((unsigned char)rest[n - 1]));
}

int run_strategy_colour(const char *name)
{
    size_t longest = 0;
    int colour = -1;

    for (const char *part = name; colour < 0 && *part; part += strcspn(part, "/"), part += *part == '/') {
        const size_t n = strcspn(part, "/");

        for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
            const size_t length = strlen(strategies[i].name);

            if (length > longest && length <= n && !strncmp(part, strategies[i].name, length) &&
                belongs(part + length, n - length)) {
                longest = length;
                colour = strategies[i].colour;
            }
        }
    }
    return colour;
}

void run_styles(const char *(*name)(const void *context, size_t run), const void *context, size_t count, size_t *styles)
{
    size_t drawn[RUN_COLOURS] = { 0 }, other = 0;

    for (size_t i = 0; i < count; i++) {
        const int colour = run_strategy_colour(name(context, i));

        styles[i] = colour < 0 ? (size_t)-1 : (size_t)colour + RUN_COLOURS * drawn[colour]++;
    }
    for (size_t i = 0; i < count; i++) {
        if (styles[i] != (size_t)-1)
            continue;
        while (drawn[other % RUN_COLOURS]) /* no strategy has the last one */
            other++;
        styles[i] = other++;
    }
}

/* ---- picture ----------------------------------------------------------------------------------------------------- */

/* ---- axes ------------------------------------------------------------------------------------------------------ */

const char *picture_axis_word(enum picture_axis axis)
{
    static const char *const words[PICTURE_AXES] = { "step", "relative-step", "wall", "relative" };

    return words[axis];
}

int picture_axis_next(const char **words, enum picture_axis *axis)
{
    size_t n = strcspn(*words, ",");

    for (*axis = 0; *axis < PICTURE_AXES; ++*axis) {
        const char *word = picture_axis_word(*axis);

        if (n != strlen(word) || memcmp(*words, word, n) != 0)
            continue;
        *words += n;
        *words += **words == ',';
        return 1;
    }
    return 0;
}

int picture_axis_counts(enum picture_axis axis)
{
    return axis == PICTURE_STEP || axis == PICTURE_RELATIVE_STEP;
}

/* How many digits distinguish v from its neighbours `step` away. */
static int digits_of(double v, double step)
{
    double n = v != 0 ? floor(log10(fabs(v))) - floor(log10(step) + 1e-9) + 1 : 1;

    return n < 1 ? 1 : n > 15 ? 15 : (int)n;
}

/* A step, without decimals if it has none, abbreviated from ten thousand on if that still distinguishes it from
 * others. */
static void step_text(double v, double span, char *out, size_t size)
{
    static const struct {
        double least;
        const char *unit;
    } units[] = { { 1e9, "G" }, { 1e6, "M" }, { 1e4, "k" } };
    double a = fabs(v);

    for (size_t i = 0; i < sizeof units / sizeof *units && digits_of(v, span / 50) <= 4; i++)
        if (a >= units[i].least) {
            snprintf(out, size, "%.4g%s", v / (units[i].unit[0] == 'k' ? 1e3 : units[i].least), units[i].unit);
            return;
        }
    snprintf(out, size, a >= 1e4 && a < 1e15 ? "%.0f" : "%.6g", v);
}

static int calendar(double v, struct tm *out)
{
    time_t t = fabs(v) < 1e11 ? (time_t)v : 0; /* to the year 5000: a larger number is not a time */

    return gmtime_r(&t, out) != NULL;
}

/* v on an axis that spans x0 to x1, as text. */
static void axis_text(enum picture_axis axis, double v, double x0, double x1, char *out, size_t size)
{
    double span = x1 - x0;
    struct tm tm;

    if (picture_axis_counts(axis))
        step_text(v, span, out, size);
    else if (axis == PICTURE_WALL && calendar(v, &tm))
        strftime(out, size, span > 2 * 86400 ? "%d %b" : span > 300 ? "%H:%M" : "%H:%M:%S", &tm);
    else if (span > 3 * 3600)
        snprintf(out, size, "%.4g h", v / 3600);
    else if (span > 180)
        snprintf(out, size, "%.4g min", v / 60);
    else
        snprintf(out, size, "%.4g s", v);
}

void picture_point_text(enum picture_axis axis, double v, double x0, double x1, char *out, size_t size)
{
    struct tm tm;

    if (picture_axis_counts(axis) && fabs(v) < 1e15)
        snprintf(out, size, "%.0f", v);
    else if (axis == PICTURE_WALL && x1 - x0 > 2 * 86400 && calendar(v, &tm))
        strftime(out, size, "%d %b %H:%M", &tm);
    else
        axis_text(axis, v, x0, x1, out, size);
}

void picture_axis_name(enum picture_axis axis, double x0, double x1, char *out, size_t size)
{
    static const char *const names[] = { "step", "steps since the run's first point", "time (UTC)",
                                         "time since the run's first point" };
    struct tm from, to;
    size_t n = (size_t)snprintf(out, size, "%s", names[axis]);

    if (axis != PICTURE_WALL || n >= size || !calendar(x0, &from) || !calendar(x1, &to))
        return;
    n += strftime(out + n, size - n, ", %e %b %Y", &from);
    if (from.tm_yday != to.tm_yday || from.tm_year != to.tm_year)
        strftime(out + n, size - n, " to %e %b %Y", &to);
}

/* 1, 2 or 5 times a power of ten, so that at most `most` ticks fit in span; for time, whole minutes, hours, days. */
static double tick_step(double span, int most, int is_time)
{
    static const double times[] = { 1,   2,   5,    10,   15,   30,    60,    120,   300,
                                    600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400 };
    double raw = span / most, power;

    if (is_time && raw > 0.5)
        for (size_t i = 0; i < sizeof times / sizeof *times; i++)
            if (times[i] >= raw)
                return times[i];
    power = pow(10, floor(log10(raw)));
    return raw <= power ? power : raw <= 2 * power ? 2 * power : raw <= 5 * power ? 5 * power : 10 * power;
}

void picture_axis_ticks(enum picture_axis axis, double x0, double x1, int most, struct picture_ticks *out)
{
    double step = tick_step(x1 - x0, most, !picture_axis_counts(axis));

    if (picture_axis_counts(axis) && step < 1)
        step = 1;
    out->count = 0;
    for (double at = ceil(x0 / step) * step; at <= x1 && out->count < PICTURE_TICKS_MOST; out->count++) {
        out->at[out->count] = at;
        axis_text(axis, at, x0, x1, out->text[out->count], sizeof *out->text);
        at = (ceil(x0 / step) + (double)(out->count + 1)) * step;
    }
}

/* A value that is `step` from the next, on an axis whose values are at most `large`. */
static void value_text(double v, double step, double large, char *out, size_t size)
{
    double decimals = step < 1 ? ceil(-log10(step) - 1e-9) : 0;

    v = fabs(v) < step / 2 ? 0 : v;
    if (large < 1e6 && decimals <= 6)
        snprintf(out, size, "%.*f", (int)decimals, v);
    else
        snprintf(out, size, "%.*g", digits_of(v, step), v);
}

static void add_tick(struct picture_ticks *out, double at, double v, double step, double large)
{
    if (out->count == PICTURE_TICKS_MOST)
        return;
    out->at[out->count] = at;
    value_text(v, step, large, out->text[out->count++], sizeof *out->text);
}

static void linear_ticks(double y0, double y1, int most, int log_y, struct picture_ticks *out)
{
    double step = tick_step(y1 - y0, most, 0), first = ceil(y0 / step - 1e-9);

    for (int i = 0; i < PICTURE_TICKS_MOST && (first + i) * step <= y1 + step * 1e-9; i++) {
        double v = (first + i) * step;

        if (!log_y || v > 0)
            add_tick(out, log_y ? log10(v) : v, v, step, fmax(fabs(y0), fabs(y1)));
    }
}

void picture_value_ticks(const struct picture *p, double y0, double y1, int most, struct picture_ticks *out)
{
    static const int parts[] = { 1, 2, 5 };
    double every = ceil((y1 - y0) / most);

    out->count = 0;
    if (!p->log_y)
        linear_ticks(y0, y1, most, 0, out);
    else if (y1 - y0 >= 2)
        for (double at = ceil(y0 / every - 1e-9) * every; at <= y1 + 1e-9; at += every)
            add_tick(out, at, pow(10, at), pow(10, at), pow(10, y1));
    else if (y1 - y0 >= 0.7)
        for (int i = 3 * (int)floor(y0); i <= 3 * (int)ceil(y1); i++) {
            double power = pow(10, floor(i / 3.0)), v = parts[((i % 3) + 3) % 3] * power, at = log10(v);

            if (at >= y0 - 1e-9 && at <= y1 + 1e-9)
                add_tick(out, at, v, power, pow(10, y1));
        }
    else
        linear_ticks(pow(10, y0), pow(10, y1), most, 1, out);
}

/* ---- curves ---------------------------------------------------------------------------------------------------- */

int picture_shares_colours(const struct picture *p, size_t colours)
{
    unsigned seen = 0;

    for (size_t i = 0; i < p->run_count; i++) {
        const unsigned colour = 1u << picture_colour(p, i, colours);

        if (seen & colour)
            return 1;
        seen |= colour;
    }
    return 0;
}

char picture_letter(size_t run)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    return letters[run % (sizeof letters - 1)];
}

size_t picture_line_length(const char *text, size_t columns)
{
    size_t n = strlen(text), at = columns;

    if (n <= columns)
        return n;
    while (at && text[at] != ' ')
        at--;
    return at ? at : columns ? columns : 1;
}

void picture_spread(double *places, size_t count, double least, double low, double high)
{
    for (size_t i = 0; i < count; i++)
        places[i] = fmax(places[i], i ? places[i - 1] + least : low);
    for (size_t i = count; i-- > 0;)
        places[i] = fmin(places[i], i + 1 < count ? places[i + 1] - least : high);
}

double picture_smooth(struct picture_average *a, double y)
{
    if (!isfinite(y) || a->smoothing == 0)
        return y;
    a->sum = a->sum * a->smoothing + (1 - a->smoothing) * y;
    a->weight = a->weight * a->smoothing + (1 - a->smoothing);
    return a->sum / a->weight;
}

/* fmin() and fmax() are calls, and slow; v is a number. */
static double between(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

/* Where a value is on its axis: itself or its logarithm, or the lowest position if it has none. */
static double scale(const struct picture *p, double y)
{
    if (p->log_y && !isnan(y))
        y = y > 0 ? log10(y) : -INFINITY;
    return isfinite(y) ? between(y, -PICTURE_FAR, PICTURE_FAR) : y;
}

double picture_smoothing_of(const struct picture *p, const struct picture_curve *c)
{
    return c->low ? 0 : p->smoothing;
}

struct picture_walk picture_walk_begin(const struct picture *p, const struct picture_curve *c, double smoothing,
                                       double y0, double y1)
{
    struct picture_walk w = { p, c, y0, y1, y0, { smoothing, 0, 0 }, 0, smoothing == 0 && !p->log_y };

    for (size_t i = 0; i < c->count; i++)
        if (isfinite(scale(p, c->points[i].y))) {
            w.height = scale(p, c->points[i].y);
            break;
        }
    return w;
}

int picture_walk_on(struct picture_walk *w, struct picture_point *point, enum picture_mark *mark)
{
    double y;

    *point = w->curve->points[w->next++];
    y = picture_smooth(&w->average, point->y);
    if (!(fabs(point->x) < PICTURE_FAR) || (w->picture->log_y && y <= 0 && isfinite(y))) {
        *mark = PICTURE_GAP;
        return 1;
    }
    y = scale(w->picture, y);
    if (isfinite(y)) {
        w->height = y;
        *mark = y > w->y1 ? PICTURE_ABOVE : y < w->y0 ? PICTURE_BELOW : PICTURE_LINE;
    } else {
        *mark = isnan(y) ? PICTURE_NAN : y > 0 ? PICTURE_PLUS : PICTURE_MINUS;
        y = between(*mark == PICTURE_NAN ? w->height : y, w->y0, w->y1);
    }
    point->y = y;
    return 1;
}

int picture_clip(double y0, double y1, struct picture_point *a, struct picture_point *b)
{
    struct picture_point *const ends[2] = { a, b };
    const struct picture_point from = *a, to = *b;

    if ((from.y < y0 && to.y < y0) || (from.y > y1 && to.y > y1))
        return 0;
    for (int i = 0; i < 2; i++) {
        double edge = ends[i]->y < y0 ? y0 : ends[i]->y > y1 ? y1 : ends[i]->y;

        if (edge == ends[i]->y)
            continue;
        ends[i]->x = from.x + (edge - from.y) / (to.y - from.y) * (to.x - from.x);
        ends[i]->y = edge;
    }
    return 1;
}

struct picture_summary picture_summary_of(const struct picture_curve *c, int better)
{
    struct picture_summary s = { NULL, NULL };

    for (size_t i = 0; i < c->count; i++) {
        const struct picture_point *q = &c->points[i];

        if (!(fabs(q->x) < PICTURE_FAR))
            continue;
        s.last = q;
        if (better && isfinite(q->y) && (!s.best || (better < 0 ? q->y < s.best->y : q->y > s.best->y)))
            s.best = q;
    }
    return s;
}
