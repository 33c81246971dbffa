#include "eventlog/tool/picture/curve_group.h"

#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------------------------- */

int curve_group_check(const struct option_list *options, struct error *e)
{
    for (size_t i = 0; i < options->count; i++) {
        const char *option = options->items[i], *equals = strrchr(option, '=');

        if (!*option || equals == option || (equals && !equals[1]))
            return error_set(e, ERR_ARG, "--group: '%s' is neither GLOB nor GLOB=NAME", option);
    }
    return OK;
}

/* Whether the whole name matches the first n bytes of glob. */
static int matches(const char *glob, size_t n, const char *name)
{
    char pattern[PATH_MAX];

    if (n >= sizeof pattern)
        return 0;
    memcpy(pattern, glob, n);
    pattern[n] = '\0';
    return fnmatch(pattern, name, 0) == 0;
}

/* Replaces the first part, or end of a part, of the name that matches by the glob: 1, or 0 if none matches. */
static int replace_part(const char *glob, const char *run, struct buffer *out)
{
    char part[PATH_MAX];

    for (const char *at = run; *at; at++) {
        size_t n = strcspn(at, "/");

        if (n >= sizeof part)
            return 0;
        memcpy(part, at, n);
        part[n] = '\0';
        if (!n || fnmatch(glob, part, 0) != 0)
            continue;
        buffer_append(out, run, (size_t)(at - run));
        buffer_append_text(out, glob);
        buffer_append_text(out, at + n);
        return 1;
    }
    return 0;
}

size_t curve_group_name(const struct option_list *options, const char *run, struct buffer *out)
{
    for (size_t i = 0; i < options->count; i++) {
        const char *option = options->items[i], *equals = strrchr(option, '=');

        if (!equals && replace_part(option, run, out))
            return i + 1;
        if (equals && matches(option, (size_t)(equals - option), run)) {
            buffer_append_text(out, equals + 1);
            return i + 1;
        }
    }
    return 0;
}

/* ---- means ----------------------------------------------------------------------------------------------------- */

static int by_x(const void *a, const void *b)
{
    const struct picture_point *p = a, *q = b;

    return (p->x > q->x) - (p->x < q->x);
}

void curve_group_sort(struct picture_point *points, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (points[i].x < points[i - 1].x) {
            qsort(points, count, sizeof *points, by_x);
            return;
        }
}

/* The value of a curve at x; at: its first point that is not before x. 1, or 0: it has not begun yet or has ended. */
static int value_at(const struct picture_curve *c, size_t at, double x, double *y)
{
    const struct picture_point *next = &c->points[at], *before = next - 1;

    if (at == c->count)
        return 0;
    if (next->x == x) { /* of several points at x the last */
        while (at + 1 < c->count && c->points[at + 1].x == x)
            at++;
        *y = c->points[at].y;
        return 1;
    }
    if (!at)
        return 0;
    *y = before->y + (next->y - before->y) * ((x - before->x) / (next->x - before->x));
    return 1;
}

static void add(struct curve_means *out, double x, const double *values, size_t n, enum curve_band band)
{
    double sum = 0, squares = 0, low = INFINITY, high = -INFINITY, mean;
    size_t at = out->count++;

    for (size_t i = 0; i < n; i++) {
        sum += values[i];
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    if (band == CURVE_BAND_DEVIATION) {
        double deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;

        low = mean - deviation;
        high = mean + deviation;
    }
    out->mean[at] = (struct picture_point){ x, mean };
    out->low[at] = (struct picture_point){ x, isfinite(mean) ? low : NAN };
    out->high[at] = (struct picture_point){ x, isfinite(mean) ? high : NAN };
}

int curve_group_means(const struct picture_curve *curves, size_t count, enum curve_band band, struct curve_means *out,
                      struct error *e)
{
    size_t *at = calloc(count + 1, sizeof *at);
    double *values = calloc(count + 1, sizeof *values);
    int rc = at && values ? OK : error_memory(e, NULL, "for the mean of %zu curves", count);

    while (rc == OK) {
        double x = INFINITY;
        size_t n = 0;

        for (size_t i = 0; i < count; i++)
            if (at[i] < curves[i].count && curves[i].points[at[i]].x < x)
                x = curves[i].points[at[i]].x;
        if (!(x < INFINITY))
            break;
        for (size_t i = 0; i < count; i++)
            n += (size_t)value_at(&curves[i], at[i], x, &values[n]);
        add(out, x, values, n, band);
        for (size_t i = 0; i < count; i++)
            while (at[i] < curves[i].count && curves[i].points[at[i]].x <= x)
                at[i]++;
    }
    free(at);
    free(values);
    return rc;
}
