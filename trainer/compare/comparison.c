#include "trainer/compare/comparison.h"

#include "base/human.h"
#include "base/program/table.h"
#include "base/text.h"
#include "trainer/timing/processor_use.h"

#include <math.h>
#include <stdarg.h>
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

/* ---- comparison text --------------------------------------------------------------------------------------------- */

enum { STRATEGY_NARROWEST = 12 };

static const struct table_column speed_columns[] = {
    { .title = "strategy", .cut = STRATEGY_NARROWEST },
    { .title = "workers", .right = 1 },
    { .title = "steps/s", .right = 1 },
    { .title = "+-%", .right = 1 },
    { .title = "samples/s", .right = 1 },
    { .title = "efficiency", .right = 1 },
    { .title = "waiting", .right = 1, .leave_out = 1 },
    { .title = "weights" },
};
static const struct table_column sent_columns[] = {
    { .title = "strategy", .cut = STRATEGY_NARROWEST },
    { .title = "workers", .right = 1 },
    { .title = "sent/step", .right = 1 },
    { .title = "busiest", .leave_out = 2 },
    { .title = "bytes/step", .right = 1 },
    { .title = "staleness", .right = 1 },
    { .title = "max", .right = 1 },
    { .title = "dropped", .right = 1, .leave_out = 1 },
};

/* Strategy and workers, "*" behind these with more ranks than cores. */
static void strategy_cells(struct table *t, const struct standing *s)
{
    table_cell(t, "%s", s->strategy);
    table_cell(t, "%lld%s", (long long)s->workers, s->ranks > s->cores ? "*" : "");
}

/* Decimals that show three digits of a number like this. */
static int decimals_of(double x)
{
    return x >= 100 ? 0 : x >= 10 ? 1 : x >= 1 ? 2 : x >= 0.1 ? 3 : 4;
}

/* The median, "-" if there is none. */
static void median_cell(struct table *t, const struct spread *s, int decimals)
{
    if (s->count)
        table_cell(t, "%.*f", decimals, s->median);
    else
        table_cell(t, "-");
}

/* Prints the table and removes it. */
static void print_table(struct table *t, const struct text_style *style, struct buffer *out)
{
    table_print(t, 0, style->columns, style->ascii, out);
    table_release(t);
}

void comparison_text_note(struct buffer *out, const struct text_style *style, const char *format, ...)
{
    char text[1200];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    text_append_wrapped(out, text, 0, 0, (size_t)style->columns);
    buffer_append_byte(out, '\n');
}

static void bytes_cell(struct table *t, const struct spread *s)
{
    char text[HUMAN_TEXT_MAX];

    if (s->count && s->median > 0)
        table_cell(t, "%s", human_bytes((uint64_t)(s->median + 0.5), text));
    else
        table_cell(t, "-");
}

static void percent_cell(struct table *t, double part, int known)
{
    if (known)
        table_cell(t, "%.*f %%", part < 0.0995 ? 1 : 0, 100 * part);
    else
        table_cell(t, "-");
}

static void add_speeds(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    struct table t;

    buffer_append_text(out, "Speed, and the beginning of the hash of the weights:\n\n");
    table_init(&t, speed_columns, sizeof speed_columns / sizeof *speed_columns);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];

        if (!s->rounds)
            continue;
        strategy_cells(&t, s);
        median_cell(&t, &s->steps_per_second, decimals_of(s->steps_per_second.median));
        if (s->steps_per_second.count > 1)
            table_cell(&t, "%.1f", 100 * spread_width(&s->steps_per_second));
        else
            table_cell(&t, "-");
        median_cell(&t, &s->samples_per_second, decimals_of(s->samples_per_second.median));
        percent_cell(&t, s->efficiency, s->efficiency > 0);
        percent_cell(&t, s->waiting.median, s->waiting.count > 0);
        table_cell(&t, "%.8s", *s->weights ? s->weights : "-");
    }
    print_table(&t, style, out);
}

/* ---- where the time of a step goes ------------------------------------------------------------------------------- */

static double step_seconds(const struct standing *s)
{
    double sum = 0;

    for (int p = 0; p < PHASE_COUNT; p++)
        sum += s->phases[p].median;
    return sum;
}

static int anything_timed(const struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].phases[0].count)
            return 1;
    return 0;
}

static int anything_served(const struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].serving.count)
            return 1;
    return 0;
}

/* More where a step is short. */
static int milliseconds_decimals(double seconds)
{
    return seconds >= 0.1 ? 0 : seconds >= 0.01 ? 1 : 2;
}

static void add_times(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    const int serves = anything_served(c);
    struct table_column columns[] = {
        { .title = "strategy", .cut = STRATEGY_NARROWEST },
        { .title = "workers", .right = 1 },
        { .title = "step", .right = 1 },
        /* the phases, in their order */
        { .title = "input", .right = 1, .leave_out = 2 },
        { .title = "forward", .right = 1 },
        { .title = "backward", .right = 1 },
        { .title = "waiting", .right = 1 },
        { .title = "reducing", .right = 1 },
        { .title = "updating", .right = 1 },
        { .title = "saving", .right = 1, .leave_out = 4 },
        { .title = "other", .right = 1, .leave_out = 3 },
        { .title = "servers", .right = 1, .leave_out = 1 },
    };
    struct table t;

    buffer_format(out, "\nWhere the time of a step goes, in ms, mean over workers%s:\n\n",
                  serves ? "; how busy servers are" : "");
    table_init(&t, columns, sizeof columns / sizeof *columns - !serves); /* its last column */
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];
        const int decimals = milliseconds_decimals(step_seconds(s));

        if (!s->rounds || !s->phases[0].count)
            continue;
        strategy_cells(&t, s);
        table_cell(&t, "%.*f", decimals, 1e3 * step_seconds(s));
        for (int p = 0; p < PHASE_COUNT; p++)
            table_cell(&t, "%.*f", decimals, 1e3 * s->phases[p].median);
        if (serves)
            percent_cell(&t, s->serving.median, s->serving.count > 0);
    }
    print_table(&t, style, out);
}

/* The phase that grew most from one worker to several, and is not in `said`. */
static int grown_most(const struct standing *one, const struct standing *s, unsigned said)
{
    int most = -1;

    for (int p = 0; p < PHASE_COUNT; p++)
        if (!(said >> p & 1) && (most < 0 || s->phases[p].median - one->phases[p].median >
                                                 s->phases[most].median - one->phases[most].median))
            most = p;
    return most;
}

/* Why several workers of a strategy need longer for a step than one: the phases that have at least a tenth of it. */
static void add_loss(const struct standing *one, const struct standing *s, const struct text_style *style, int first,
                     struct buffer *out)
{
    const double before = step_seconds(one), lost = step_seconds(s) - before;
    const int decimals = milliseconds_decimals(before);
    struct buffer parts = BUFFER_EMPTY;
    unsigned said = 0;

    if (!(before > 0) || lost < before / 200)
        return;
    for (int p; (p = grown_most(one, s, said)) >= 0; said |= 1u << p) {
        const double more = s->phases[p].median - one->phases[p].median;

        if (more < lost / 10)
            break;
        buffer_format(&parts, "%s%s %.*f", said ? ", " : "", phase_names[p], decimals, 1e3 * more);
    }
    if (first)
        buffer_append_byte(out, '\n');
    comparison_text_note(out, style, "%s: a step of %lld workers takes %.*f ms (%.1f %%) more than that of 1: %s ms.",
                         s->strategy, (long long)s->workers, decimals, 1e3 * lost, 100 * lost / before,
                         buffer_text(&parts));
    buffer_release(&parts);
}

static void add_losses(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    const struct standing *one = NULL;
    const size_t before = out->length;

    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];

        if (!s->rounds || !s->phases[0].count)
            continue;
        if (s->workers == 1)
            one = s;
        else if (one && !strcmp(one->strategy, s->strategy))
            add_loss(one, s, style, out->length == before, out);
    }
}

/* ---- what is sent, and precision --------------------------------------------------------------------------------- */

static int anything_dropped(const struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].dropped.most > 0)
            return 1;
    return 0;
}

static int anything_sent(const struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].sent.median > 0)
            return 1;
    return 0;
}

static void add_sent(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    const int drops = anything_dropped(c);
    struct table t;

    buffer_append_text(out, "\nMessages: bytes of all ranks, and of the busiest link:\n\n");
    table_init(&t, sent_columns, sizeof sent_columns / sizeof *sent_columns - !drops); /* its last column */
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];

        if (!s->rounds)
            continue;
        strategy_cells(&t, s);
        bytes_cell(&t, &s->sent);
        table_cell(&t, "%s", *s->busiest ? s->busiest : "-");
        bytes_cell(&t, &s->busiest_bytes);
        median_cell(&t, &s->staleness_mean, 2);
        median_cell(&t, &s->staleness_max, 0);
        if (drops)
            median_cell(&t, &s->dropped, 0);
    }
    print_table(&t, style, out);
}

static void add_precision(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    char step[48], time[64], duration[HUMAN_TEXT_MAX];
    const struct table_column columns[] = {
        { .title = "strategy", .cut = STRATEGY_NARROWEST },
        { .title = "workers", .right = 1 },
        { .title = step, .right = 1 },
        { .title = "+-", .right = 1, .leave_out = 1 },
        { .title = time, .right = 1 },
        { .title = "at its end", .right = 1, .leave_out = 2 },
        { .title = "after", .right = 1, .leave_out = 3 },
    };
    struct table t;

    snprintf(step, sizeof step, "at step %lld", (long long)c->equal_step);
    snprintf(time, sizeof time, "after %s", human_duration(c->equal_seconds, duration));
    buffer_append_text(out, "\nPrecision on the test data, after equal steps, after equal time, and at the end:\n\n");
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];

        if (!s->rounds)
            continue;
        strategy_cells(&t, s);
        median_cell(&t, &s->at_equal_steps, 4);
        if (s->at_equal_steps.count > 1)
            table_cell(&t, "%.4f", (s->at_equal_steps.most - s->at_equal_steps.least) / 2);
        else
            table_cell(&t, "-");
        median_cell(&t, &s->at_equal_time, 4);
        median_cell(&t, &s->at_end, 4);
        table_cell(&t, "%s", human_duration(s->seconds.median, duration));
    }
    print_table(&t, style, out);
}

/* The cells during which others used the processors, in a round at least. */
static void add_busy(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    struct buffer cells = BUFFER_EMPTY;
    double most = 0;

    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].others.most > PROCESSOR_USE_BUSY) {
            buffer_format(&cells, "%s%s", cells.length ? ", " : "", c->rows[i].cell);
            most = c->rows[i].others.most > most ? c->rows[i].others.most : most;
        }
    if (cells.length)
        comparison_text_note(out, style,
                             "Other programs used up to %.0f %% of the processors, so these speeds say little: %s.",
                             100 * most, buffer_text(&cells));
    buffer_release(&cells);
}

static void add_notes(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    int crowded = 0;

    if (c->rounds > 0)
        buffer_append_byte(out, '\n');
    if (c->rounds > 1)
        comparison_text_note(
            out, style, "Medians of up to %zu rounds; +-: half the distance from the least to the most.", c->rounds);
    for (size_t i = 0; i < c->count; i++)
        crowded |= c->rows[i].ranks > c->rows[i].cores;
    if (crowded)
        comparison_text_note(out, style,
                             "*: more ranks or threads than cores, which take turns: the speed says little.");
    add_busy(c, style, out);
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].failed)
            comparison_text_note(out, style, "%s failed in %zu round%s: %s", c->rows[i].cell, c->rows[i].failed,
                                 c->rows[i].failed == 1 ? "" : "s", c->rows[i].reason);
}

void comparison_text(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    if (c->rounds > 0)
        add_speeds(c, style, out);
    if (anything_timed(c)) {
        add_times(c, style, out);
        add_losses(c, style, out);
    }
    if (anything_sent(c))
        add_sent(c, style, out);
    if (c->equal_step > 0)
        add_precision(c, style, out);
    add_notes(c, style, out);
}
