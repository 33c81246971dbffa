#include "eventlog/tool/picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- text ------------------------------------------------------------------------------------------------------ */

/* A step without decimals where it has none, shortened from ten thousand on. */
static void step_text(double v, char *out, size_t size)
{
    double a = fabs(v);

    if (a >= 1e9)
        snprintf(out, size, "%.4gG", v / 1e9);
    else if (a >= 1e6)
        snprintf(out, size, "%.4gM", v / 1e6);
    else if (a >= 1e4)
        snprintf(out, size, "%.4gk", v / 1e3);
    else
        snprintf(out, size, "%.6g", v);
}

static void time_text(double v, double span, char *out, size_t size)
{
    time_t t = fabs(v) < 1e11 ? (time_t)v : 0; /* to the year 5000: beyond, what stands there is no time */
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(out, size, span > 2 * 86400 ? "%d %b" : span > 300 ? "%H:%M" : "%H:%M:%S", &tm);
}

void picture_axis_text(enum picture_axis axis, double v, double span, char *out, size_t size)
{
    if (axis == PICTURE_STEP)
        step_text(v, out, size);
    else if (axis == PICTURE_WALL)
        time_text(v, span, out, size);
    else if (span > 3 * 3600)
        snprintf(out, size, "%.4g h", v / 3600);
    else if (span > 180)
        snprintf(out, size, "%.4g min", v / 60);
    else
        snprintf(out, size, "%.4g s", v);
}

/* ---- scales ---------------------------------------------------------------------------------------------------- */

/* 1, 2 or 5 times a power of ten, so that at most `most` ticks fit in span; for time, whole minutes, hours, days. */
double picture_tick_step(double span, int most, int is_time)
{
    static const double times[] = { 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
                                    86400 };
    double raw = span / most, power;

    if (is_time && raw > 0.5)
        for (size_t i = 0; i < sizeof times / sizeof *times; i++)
            if (times[i] >= raw)
                return times[i];
    power = pow(10, floor(log10(raw)));
    return raw <= power ? power : raw <= 2 * power ? 2 * power : raw <= 5 * power ? 5 * power : 10 * power;
}

/* What can be placed: beyond 1e300 even differences overflow. */
int picture_placeable(double x, double y)
{
    return fabs(x) < 1e300 && fabs(y) < 1e300; /* no NaN either */
}

int picture_axis_next(const char **words, enum picture_axis *axis)
{
    if (!**words)
        return 0;
    *axis = **words == 'w' ? PICTURE_WALL : **words == 's' ? PICTURE_STEP : PICTURE_RELATIVE;
    *words += strcspn(*words, ",");
    *words += **words == ',';
    return 1;
}

double picture_scale(const struct picture *p, double y)
{
    return !p->log_y ? y : y > 0 ? log10(y) : NAN;
}

double picture_smooth(struct picture_average *a, double y)
{
    if (!isfinite(y))
        return y;
    a->sum = a->sum * a->smoothing + (1 - a->smoothing) * y;
    a->weight = a->weight * a->smoothing + (1 - a->smoothing);
    return a->sum / a->weight;
}

struct picture_summary picture_summary_of(const struct picture_curve *c, int lower)
{
    struct picture_summary s = { NULL, NULL };

    for (size_t i = 0; i < c->count; i++) {
        const struct picture_point *q = &c->points[i];

        if (!picture_placeable(q->x, q->y))
            continue;
        s.last = q;
        if (!s.best || (lower ? q->y < s.best->y : q->y > s.best->y))
            s.best = q;
    }
    return s;
}
