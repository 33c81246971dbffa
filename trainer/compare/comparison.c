#include "trainer/compare/comparison.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- figures over rounds ----------------------------------------------------------------------------------------- */

struct collected {
    const struct outcome *outcomes;
    const char *superseded; /* (count) 1: a later run of the same cell and round is there */
    size_t count;
    double *values; /* (count) */
};

typedef double figure(const struct outcome *o); /* NAN: not known */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct spread spread_of(double *values, size_t n)
{
    struct spread s = { .count = n };

    if (n == 0)
        return s;
    qsort(values, n, sizeof *values, ascending);
    s.least = values[0];
    s.most = values[n - 1];
    s.median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    return s;
}

static int is_of(const struct collected *all, size_t i, const char *cell)
{
    return !all->superseded[i] && !strcmp(all->outcomes[i].cell, cell);
}

static struct spread figures(const struct collected *all, const char *cell, figure *f)
{
    size_t n = 0;

    for (size_t i = 0; i < all->count; i++)
        if (is_of(all, i, cell) && all->outcomes[i].status == 0 && !isnan(f(&all->outcomes[i])))
            all->values[n++] = f(&all->outcomes[i]);
    return spread_of(all->values, n);
}

static double known(double x)
{
    return x > 0 ? x : NAN;
}

/* Seconds a step; a phase that takes none is known where others take some. */
static struct spread phase_figures(const struct collected *all, const char *cell, int phase)
{
    size_t n = 0;

    for (size_t i = 0; i < all->count; i++) {
        const struct outcome *o = &all->outcomes[i];
        double step = 0;

        for (int p = 0; p < PHASE_COUNT; p++)
            step += o->phases[p];
        if (is_of(all, i, cell) && o->status == 0 && step > 0)
            all->values[n++] = o->phases[phase];
    }
    return spread_of(all->values, n);
}

static double steps_per_second(const struct outcome *o)
{
    return known(o->steps_per_second);
}

static double samples_per_second(const struct outcome *o)
{
    return known(o->steps_per_second * o->samples_per_step);
}

static double steady(const struct outcome *o)
{
    return known(o->steady);
}

static double waiting(const struct outcome *o)
{
    return o->waiting;
}

static double sent(const struct outcome *o)
{
    return o->sent;
}

static double busiest_bytes(const struct outcome *o)
{
    return o->busiest_sent > o->busiest_received ? o->busiest_sent : o->busiest_received;
}

static double staleness_mean(const struct outcome *o)
{
    return known(o->staleness_mean);
}

static double staleness_max(const struct outcome *o)
{
    return known(o->staleness_max);
}

static double dropped(const struct outcome *o)
{
    return o->dropped < 0 ? NAN : o->dropped;
}

static double serving(const struct outcome *o)
{
    return o->serving < 0 ? NAN : o->serving;
}

static double others(const struct outcome *o)
{
    return o->others < 0 ? NAN : o->others;
}

static double seconds(const struct outcome *o)
{
    return o->seconds;
}

static double at_end(const struct outcome *o)
{
    return o->evaluation_count ? o->evaluations[o->evaluation_count - 1].precision : NAN;
}

/* ---- precision at equal steps and at equal time ------------------------------------------------------------------ */

static const struct evaluation *last_of(const struct outcome *o)
{
    return o->status == 0 && o->evaluation_count ? &o->evaluations[o->evaluation_count - 1] : NULL;
}

static int64_t equal_step(const struct collected *all)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < all->count; i++) {
        const struct evaluation *last = all->superseded[i] ? NULL : last_of(&all->outcomes[i]);

        if (last && last->step < least)
            least = last->step;
    }
    return least == INT64_MAX ? 0 : least;
}

/* How long the fastest cell of that round took; INFINITY: none was evaluated. */
static double equal_seconds(const struct collected *all, int64_t round)
{
    double least = INFINITY;

    for (size_t i = 0; i < all->count; i++) {
        const struct evaluation *last = all->superseded[i] ? NULL : last_of(&all->outcomes[i]);

        if (last && all->outcomes[i].round == round && last->seconds < least)
            least = last->seconds;
    }
    return least;
}

static struct spread precisions(const struct collected *all, const char *cell, int64_t step, int by_time)
{
    size_t n = 0;

    for (size_t i = 0; i < all->count; i++) {
        const struct outcome *o = &all->outcomes[i];
        const struct evaluation *found = is_of(all, i, cell) && o->status == 0
                                             ? curve_evaluation(o->evaluations, o->evaluation_count,
                                                                by_time ? INT64_MAX : step,
                                                                by_time ? equal_seconds(all, o->round) : INFINITY)
                                             : NULL;

        if (found)
            all->values[n++] = found->precision;
    }
    return spread_of(all->values, n);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void count_rounds(struct standing *s, const struct collected *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct outcome *o = &all->outcomes[i];

        if (!is_of(all, i, s->cell))
            continue;
        if (o->status != 0) {
            s->failed++;
            snprintf(s->reason, sizeof s->reason, "%s", o->reason);
            continue;
        }
        if (s->rounds++ == 0)
            snprintf(s->weights, sizeof s->weights, "%s", o->weights);
        else if (strcmp(s->weights, o->weights) != 0)
            snprintf(s->weights, sizeof s->weights, COMPARISON_DIFFER);
        snprintf(s->busiest, sizeof s->busiest, "%s", o->busiest);
        s->samples_per_step = o->samples_per_step;
    }
}

static void fill(struct standing *s, const struct collected *all, const struct outcome *first, int64_t step)
{
    memset(s, 0, sizeof *s);
    snprintf(s->cell, sizeof s->cell, "%s", first->cell);
    snprintf(s->strategy, sizeof s->strategy, "%s", first->strategy);
    s->workers = first->workers;
    s->ranks = first->ranks;
    s->cores = first->cores;
    count_rounds(s, all);
    s->steps_per_second = figures(all, s->cell, steps_per_second);
    s->samples_per_second = figures(all, s->cell, samples_per_second);
    s->steady = figures(all, s->cell, steady);
    s->waiting = figures(all, s->cell, waiting);
    for (int p = 0; p < PHASE_COUNT; p++)
        s->phases[p] = phase_figures(all, s->cell, p);
    s->serving = figures(all, s->cell, serving);
    s->others = figures(all, s->cell, others);
    s->sent = figures(all, s->cell, sent);
    s->busiest_bytes = figures(all, s->cell, busiest_bytes);
    s->staleness_mean = figures(all, s->cell, staleness_mean);
    s->staleness_max = figures(all, s->cell, staleness_max);
    s->dropped = figures(all, s->cell, dropped);
    s->seconds = figures(all, s->cell, seconds);
    s->at_end = figures(all, s->cell, at_end);
    s->at_equal_steps = precisions(all, s->cell, step, 0);
    s->at_equal_time = precisions(all, s->cell, step, 1);
}

/* Where the first row of that strategy is; count: there is none yet. */
static size_t strategy_place(const struct comparison *c, const char *strategy)
{
    size_t i = 0;

    while (i < c->count && strcmp(c->rows[i].strategy, strategy) != 0)
        i++;
    return i;
}

static void insert(struct comparison *c, const struct standing *s)
{
    size_t at = strategy_place(c, s->strategy);

    while (at < c->count && !strcmp(c->rows[at].strategy, s->strategy) && c->rows[at].workers < s->workers)
        at++;
    memmove(c->rows + at + 1, c->rows + at, (c->count - at) * sizeof *c->rows);
    c->rows[at] = *s;
    c->count++;
}

static int is_there(const struct comparison *c, const char *cell)
{
    for (size_t i = 0; i < c->count; i++)
        if (!strcmp(c->rows[i].cell, cell))
            return 1;
    return 0;
}

/* One worker of the same strategy, else of the first strategy that has one. NULL: neither. */
static const struct standing *alone(const struct comparison *c, const struct standing *s)
{
    const struct standing *any = NULL;

    for (size_t i = 0; i < c->count; i++) {
        const struct standing *r = &c->rows[i];

        if (r->workers != 1 || r->samples_per_second.count == 0)
            continue;
        if (!strcmp(r->strategy, s->strategy))
            return r;
        any = any ? any : r;
    }
    return any;
}

static void compare_rows(struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct standing *s = &c->rows[i];
        const struct standing *one = alone(c, s);

        c->rounds = s->rounds > c->rounds ? s->rounds : c->rounds;
        if (!one || s->samples_per_second.count == 0)
            continue;
        s->speed_up = s->samples_per_second.median / one->samples_per_second.median;
        s->efficiency = s->speed_up / (double)s->workers;
    }
}

static double median_of_equal_seconds(const struct collected *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->count; i++) {
        const struct outcome *o = &all->outcomes[i];
        int first = isfinite(equal_seconds(all, o->round));

        for (size_t k = 0; k < i; k++)
            first &= all->outcomes[k].round != o->round;
        if (first)
            all->values[n++] = equal_seconds(all, o->round);
    }
    return spread_of(all->values, n).median;
}

static void mark_superseded(const struct outcome *o, size_t count, char *superseded)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (o[i].round == o[k].round && !strcmp(o[i].cell, o[k].cell))
                superseded[i] = 1;
}

int comparison_make(struct comparison *out, const struct outcome *outcomes, size_t count, struct error *e)
{
    char *superseded = calloc(count + 1, 1);
    double *values = calloc(count + 1, sizeof *values);
    const struct collected all = { outcomes, superseded, count, values };
    int rc = OK;

    memset(out, 0, sizeof *out);
    out->rows = calloc(count + 1, sizeof *out->rows);
    if (!superseded || !values || !out->rows) {
        rc = error_memory(e, NULL, "for %zu results", count);
        comparison_release(out);
    } else {
        mark_superseded(outcomes, count, superseded);
        out->equal_step = equal_step(&all);
        for (size_t i = 0; i < count; i++)
            if (!is_there(out, outcomes[i].cell)) {
                struct standing s;

                fill(&s, &all, &outcomes[i], out->equal_step);
                insert(out, &s);
            }
        out->equal_seconds = median_of_equal_seconds(&all);
        compare_rows(out);
    }
    free(superseded);
    free(values);
    return rc;
}

void comparison_release(struct comparison *c)
{
    free(c->rows);
    c->rows = NULL;
    c->count = 0;
}

double spread_width(const struct spread *s)
{
    return s->count > 1 && s->median > 0 ? (s->most - s->least) / 2 / s->median : 0;
}
