/*
 * reduce: combines several runs: for each tag and step the mean and other figures over the runs that have it, as a
 * table with two header lines for pandas' read_csv(header=[0, 1], index_col=0), or as event files. A row is computed
 * when it is written, so memory holds the points and a word or two per series.
 */
#include "base/number.h"
#include "eventlog/eventlog.h"
#include "eventlog/tool/export/export_columns.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation { MEAN, STD, MIN, MAX, MEDIAN, SUM, COUNT, VAR, OPERATIONS };

static const char *const names[OPERATIONS] = { "mean", "std", "min", "max", "median", "sum", "count", "var" };

struct reduce_options {
    const char *ops;
    int64_t min_runs; /* 0: all that have the tag */
    int lax_tags, events;
};

_Static_assert(sizeof(struct reduce_options) <= EXPORT_OWN_SIZE, "they have room");

static const struct reduce_options *own(const struct export *x)
{
    return x->own;
}

/* of a tag at the current step */
struct result {
    size_t column;
    double wall_time; /* the latest of its points */
    unsigned present; /* 1 << operation for those that have a value */
    double values[OPERATIONS];
};

/* of a tag */
struct column {
    const char *tag;
    size_t length, runs; /* runs: that have it */
};

/* in a series with points */
struct reduce_cursor {
    int64_t step; /* step of its next point: reading that from the points of 100,000 series would mean a cache miss for
                   * each */
    size_t column, run, next;
    const struct scalar_series *series;
};

struct table {
    enum operation operations[OPERATIONS];
    size_t operation_count;
    const struct export_run *runs;
    size_t run_count;
    struct column *columns;
    size_t count;
    struct reduce_cursor *cursors; /* a heap of `live` by step, column and run */
    size_t cursor_count, live;
    struct result *row; /* row_count of them, by column */
    size_t row_count;
    double *values, *sorted; /* of one step: at most one a run */
};

static int parse_operations(struct table *t, const char *list, struct error *e)
{
    for (const char *at = list; t->operation_count < OPERATIONS;) {
        size_t n = strcspn(at, ",");
        int which = 0;

        while (which < OPERATIONS && (strlen(names[which]) != n || memcmp(names[which], at, n) != 0))
            which++;
        if (which == OPERATIONS)
            return error_set(e, ERR_ARG, "--ops: '%.*s' is not one of mean, std, min, max, median, sum, count, var",
                             (int)n, at);
        for (size_t i = 0; i < t->operation_count; i++)
            if (t->operations[i] == (enum operation)which)
                return error_set(e, ERR_ARG, "--ops: %s is given twice", names[which]);
        t->operations[t->operation_count++] = (enum operation)which;
        if (!at[n])
            return OK;
        at += n + 1;
    }
    return error_set(e, ERR_ARG, "--ops: too many");
}

/* ---- tags ------------------------------------------------------------------------------------------------------ */

/* Makes a column for each tag with points, in the order asked for, and a cursor for each of its series. */
static int find_columns(struct table *t, const struct export *x, struct error *e)
{
    struct export_columns all;
    size_t series = 0;
    int rc = export_columns_find(&all, x, t->runs, t->run_count, e);

    for (size_t i = 0; i < t->run_count; i++)
        series += t->runs[i].scalars.count;
    t->count = rc == OK ? all.tags.count : 0;
    t->columns = calloc(t->count + 1, sizeof *t->columns);
    t->row = calloc(t->count + 1, sizeof *t->row);
    t->cursors = calloc(series + 1, sizeof *t->cursors);
    if (rc == OK && (!t->columns || !t->row || !t->cursors))
        rc = error_memory(e, NULL, "for %zu columns of %zu series", t->count, series);
    for (size_t i = 0; rc == OK && i < t->run_count; i++)
        for (size_t k = 0; k < t->runs[i].scalars.count; k++) {
            const struct scalar_series *s = &t->runs[i].scalars.series[k];
            struct reduce_cursor *cursor = &t->cursors[t->cursor_count];

            if (!s->count)
                continue;
            *cursor = (struct reduce_cursor){
                .series = s, .step = s->points[0].step, .run = i, .column = export_columns_place(&all, s)
            };
            t->cursor_count++;
            t->columns[cursor->column].tag = s->tag;
            t->columns[cursor->column].length = s->tag_length;
            t->columns[cursor->column].runs++;
        }
    export_columns_release(&all);
    return rc;
}

/* Names runs without the tag, until *named is `most`. */
static void name_missing(const struct table *t, size_t column, size_t *named, size_t most, struct buffer *out)
{
    char *has = calloc(t->run_count + 1, 1);

    for (size_t i = 0; has && i < t->cursor_count; i++)
        has[t->cursors[i].run] |= t->cursors[i].column == column;
    for (size_t i = 0; has && i < t->run_count && *named < most; i++)
        if (!has[i] && t->runs[i].scalars.numbered)
            buffer_format(out, "%s'%s' in run %s", (*named)++ ? ", " : "", t->columns[column].tag, t->runs[i].name);
    free(has);
}

static int check_tags(const struct table *t, struct error *e)
{
    enum { NAMED = 5 };
    struct buffer missing = BUFFER_EMPTY;
    size_t wanted = 0, lacking = 0, named = 0;
    int rc;

    for (size_t i = 0; i < t->run_count; i++)
        wanted += t->runs[i].scalars.numbered != 0; /* a root with only hyperparameters does not count as a run */
    for (size_t c = 0; c < t->count; c++) {
        if (t->columns[c].runs < wanted && named < NAMED)
            name_missing(t, c, &named, NAMED, &missing);
        lacking += wanted - t->columns[c].runs;
    }
    if (!lacking)
        return OK;
    rc = error_set(e, ERR_ARG, "some runs lack these tags: %.300s%s; use --lax-tags to accept that",
                   buffer_text(&missing), lacking > NAMED ? ", ..." : "");
    buffer_release(&missing);
    return rc;
}

/* Checks that a value can be chosen at every step of every run, so that nothing is refused after writing has begun. */
static int check_values(struct export *x, const struct table *t, struct error *e)
{
    for (size_t i = 0; i < t->cursor_count; i++) {
        const struct scalar_series *s = t->cursors[i].series;
        unsigned from;
        double value;

        for (size_t first = 0, next; first < s->count; first = next) {
            for (next = first + 1; next < s->count && s->points[next].step == s->points[first].step;)
                next++;
            if (export_columns_value(x, t->runs[t->cursors[i].run].name, s, first, next, &value, &from, e) != OK)
                return ERR_ARG;
        }
        x->points += s->count;
    }
    return OK;
}

/* ---- figures --------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int any_nan(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(v[i]))
            return 1;
    return 0;
}

/* The figures of n values, but for the count all NaN if one of them is. Sums are in the order of the runs; the variance
 * is computed in a second pass around the mean, over n - 1. */
static void compute(struct table *t, size_t n, struct result *r)
{
    double sum = 0, squares = 0, mean, *v = t->values;

    for (size_t i = 0; i < n; i++)
        sum += v[i];
    r->values[SUM] = sum;
    r->values[COUNT] = (double)n;
    r->present |= 1u << SUM | 1u << COUNT;
    if (!n)
        return;
    mean = sum / (double)n;
    r->values[MEAN] = mean;
    if (isnan(mean) && any_nan(v, n)) { /* kept: they have no order */
        r->values[MIN] = r->values[MAX] = r->values[MEDIAN] = NAN;
    } else {
        memcpy(t->sorted, v, n * sizeof *v);
        qsort(t->sorted, n, sizeof *v, by_value);
        r->values[MIN] = t->sorted[0];
        r->values[MAX] = t->sorted[n - 1];
        r->values[MEDIAN] = n % 2 ? t->sorted[n / 2] : (t->sorted[n / 2 - 1] + t->sorted[n / 2]) / 2;
    }
    r->present |= 1u << MEAN | 1u << MIN | 1u << MAX | 1u << MEDIAN;
    if (n < 2)
        return;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    r->values[VAR] = squares / (double)(n - 1);
    r->values[STD] = sqrt(r->values[VAR]);
    r->present |= 1u << VAR | 1u << STD;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static int before(const struct reduce_cursor *a, const struct reduce_cursor *b)
{
    if (a->step != b->step)
        return a->step < b->step;
    return a->column != b->column ? a->column < b->column : a->run < b->run;
}

static void sift_down(struct table *t, size_t at)
{
    const struct reduce_cursor moved = t->cursors[at];

    for (size_t child; (child = 2 * at + 1) < t->live; at = child) {
        child += child + 1 < t->live && before(&t->cursors[child + 1], &t->cursors[child]);
        if (!before(&t->cursors[child], &moved))
            break;
        t->cursors[at] = t->cursors[child];
    }
    t->cursors[at] = moved;
}

static void order_all(struct table *t)
{
    t->live = t->cursor_count;
    for (size_t i = t->live / 2; i-- > 0;)
        sift_down(t, i);
}

/* Moves the first cursor on to its next step. */
static void advance(struct table *t, size_t next)
{
    struct reduce_cursor *first = &t->cursors[0];

    first->next = next;
    if (next == first->series->count)
        *first = t->cursors[--t->live];
    else
        first->step = first->series->points[next].step;
    if (t->live)
        sift_down(t, 0);
}

/* The first cursor's column at its step: a result, if enough runs have it. */
static int reduce(struct export *x, struct table *t, struct error *e)
{
    const size_t column = t->cursors[0].column;
    const int64_t step = t->cursors[0].step;
    struct result *r = &t->row[t->row_count];
    size_t have = 0, n = 0;

    *r = (struct result){ .column = column, .wall_time = -INFINITY };
    while (t->live && t->cursors[0].column == column && t->cursors[0].step == step) {
        const struct scalar_series *s = t->cursors[0].series;
        size_t first = t->cursors[0].next, next = first;
        unsigned from;

        for (; next < s->count && s->points[next].step == step; next++)
            r->wall_time = fmax(r->wall_time, s->points[next].wall_time);
        if (export_columns_value(x, t->runs[t->cursors[0].run].name, s, first, next, &t->values[n], &from, e) != OK)
            return ERR_ARG;
        have++;
        n += x->nonfinite == EXPORT_KEEP || !isnan(t->values[n]);
        advance(t, next);
    }
    if (have >= (own(x)->min_runs ? (size_t)own(x)->min_runs : t->columns[column].runs)) {
        x->left_out += have - n;
        compute(t, n, r);
        t->row_count++;
    }
    return OK;
}

/* The next step at which a column has a result. 1: t->row holds them; 0: there is none; or an error. */
static int next_row(struct export *x, struct table *t, int64_t *step, struct error *e)
{
    int rc = OK;

    for (t->row_count = 0; rc == OK && t->live && (!t->row_count || t->cursors[0].step == *step);) {
        *step = t->row_count ? *step : t->cursors[0].step;
        rc = reduce(x, t, e);
    }
    return rc == OK ? t->row_count > 0 : rc;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static int write_table(struct export *x, struct table *t, struct output *out, struct error *e)
{
    struct buffer line = BUFFER_EMPTY;
    char text[NUMBER_TEXT_MAX];
    int64_t step = 0;
    int rc;

    for (int row = 0; row < 3; row++) {
        buffer_append_text(&line, row == 2 ? "step" : "");
        for (size_t o = 0; o < t->operation_count; o++)
            for (size_t c = 0; c < t->count; c++) {
                buffer_append_byte(&line, ',');
                if (row == 0)
                    export_field(&line, t->columns[c].tag, t->columns[c].length, 0);
                else
                    buffer_append_text(&line, row == 1 ? names[t->operations[o]] : "");
            }
        buffer_append_byte(&line, '\n');
    }
    output_bytes(out, buffer_text(&line), line.length);
    while ((rc = next_row(x, t, &step, e)) == 1 && buffer_ok(&line)) {
        buffer_clear(&line);
        buffer_append(&line, text, (size_t)number_text_integer(step, text));
        for (size_t o = 0; o < t->operation_count; o++) {
            const struct result *r = t->row, *end = t->row + t->row_count;
            enum operation which = t->operations[o];

            for (size_t c = 0; c < t->count; c++) {
                buffer_append_byte(&line, ',');
                if (r == end || r->column != c)
                    continue;
                if (r->present & 1u << which)
                    buffer_append(&line, text,
                                  (size_t)(which == COUNT ? number_text_integer((int64_t)r->values[COUNT], text)
                                                          : export_csv_double(r->values[which], text)));
                r++;
            }
        }
        buffer_append_byte(&line, '\n');
        output_bytes(out, buffer_text(&line), line.length);
    }
    if (!buffer_ok(&line))
        rc = error_memory(e, NULL, "for a row of %zu columns", t->count);
    buffer_release(&line);
    return rc;
}

/* DIR/ for "mean" is the run DIR-mean/. */
static int open_events(struct export *x, enum operation which, struct eventlog_writer **out, struct error *e)
{
    struct eventlog_error error = { 0 };
    size_t n = strlen(x->options->to.path);
    char path[PATH_MAX];

    while (n > 1 && x->options->to.path[n - 1] == '/')
        n--;
    if (snprintf(path, sizeof path, "%.*s-%s", (int)n, x->options->to.path, names[which]) >= (int)sizeof path)
        return error_set(e, ERR_ARG, "%s: path too long", x->options->to.path);
    if (!x->options->to.force && output_exists(path))
        return error_set(e, ERR_ARG, "%s: already exists; use -f to add a file to it", path);
    return eventlog_writer_open(out, path, NULL, &error) == EVENTLOG_OK ? OK
                                                                        : error_set(e, ERR_IO, "%s", error.message);
}

static int write_row(const struct table *t, int64_t step, struct eventlog_writer **writers, struct error *e)
{
    struct eventlog_error error = { 0 };

    for (size_t i = 0; i < t->row_count; i++)
        for (size_t o = 0; o < t->operation_count; o++) {
            const struct result *r = &t->row[i];
            enum operation which = t->operations[o];

            if (r->present & 1u << which &&
                eventlog_writer_scalar(writers[o], t->columns[r->column].tag, step, r->wall_time,
                                       (float)r->values[which], &error) != EVENTLOG_OK)
                return error_set(e, ERR_IO, "%s", error.message);
        }
    return OK;
}

static int write_events(struct export *x, struct table *t, struct error *e)
{
    struct eventlog_writer *writers[OPERATIONS] = { NULL };
    int64_t step = 0;
    int rc = OK;

    for (size_t o = 0; o < t->operation_count && rc == OK; o++)
        rc = open_events(x, t->operations[o], &writers[o], e);
    while (rc == OK && (rc = next_row(x, t, &step, e)) == 1)
        rc = write_row(t, step, writers, e);
    for (size_t o = 0; o < t->operation_count; o++) {
        struct eventlog_error error = { 0 };

        if (eventlog_writer_close(writers[o], &error) != EVENTLOG_OK && rc == OK)
            rc = error_set(e, ERR_IO, "%s", error.message);
    }
    return rc;
}

static int write_all(struct export *x, struct table *t, struct error *e)
{
    struct output *out;
    int rc;

    order_all(t);
    if (own(x)->events)
        return write_events(x, t, e);
    if ((rc = output_open(&out, x->options->to.path, x->options->to.force, e)) != OK)
        return rc;
    output_gzip_level(out, x->options->gzip_level);
    if ((rc = write_table(x, t, out, e)) == OK)
        return output_close(out, 1, e);
    output_close(out, 0, NULL);
    return rc;
}

static int reduce_runs(struct export *x, struct export_run *list, size_t count, struct error *e)
{
    struct table t = { .runs = list, .run_count = count };
    int rc = parse_operations(&t, own(x)->ops, e);

    t.values = malloc((count + 1) * sizeof *t.values);
    t.sorted = malloc((count + 1) * sizeof *t.sorted);
    if (rc == OK && (!t.values || !t.sorted))
        rc = error_memory(e, NULL, "for %zu runs", count);
    if (rc == OK)
        rc = find_columns(&t, x, e);
    if (rc == OK && !own(x)->lax_tags)
        rc = check_tags(&t, e);
    if (rc == OK)
        rc = check_values(x, &t, e);
    if (rc == OK && !x->failed)
        rc = write_all(x, &t, e);
    free(t.columns);
    free(t.row);
    free(t.cursors);
    free(t.values);
    free(t.sorted);
    return rc;
}

static size_t reduce_rows(struct option *rows, void *memory)
{
    struct reduce_options *o = memory;

    o->ops = "mean,std";
    rows[0] = (struct option){
        OPTION_TEXT,
        0,
        "ops",
        &o->ops,
        "LIST",
        .help = ": Compute these figures, a list of mean, std, min, max, median, sum, count and var (default mean,std)"
    };
    rows[1] = (struct option){
        OPTION_INT,   0,
        "min-runs",   &o->min_runs,
        "N",          .help = ": Write the steps that at least N runs have (default: all runs that have the tag)",
        .minimum = 1, .maximum = 1e9
    };
    rows[2] = (struct option){ OPTION_FLAG, 0, "lax-tags", &o->lax_tags, .help = ": Accept tags that some runs lack" };
    rows[3] = (struct option){ OPTION_FLAG, 0, "events", &o->events,
                               .help = ": Write event files to DIR-mean/, DIR-std/ and so on; needs -o DIR/" };
    return 4;
}

static int reduce_check(struct export_options *o, const void *memory, struct error *e)
{
    o->duplicate = o->duplicate ? o->duplicate : "error";
    o->columns = o->columns ? o->columns : "first";
    if (((const struct reduce_options *)memory)->events && !o->to.path)
        return error_set(e, ERR_ARG, "--events needs -o DIR/; the runs are DIR-mean/, DIR-std/ and so on");
    return OK;
}

const struct export_format format_reduce = {
    .name = "reduce",
    .help = "mean and more over runs",
    .extensions = "csv",
    .takes = "view nonfinite nonfinite=keep columns dup",
    .by_step = 1,
    .rows = reduce_rows,
    .check = reduce_check,
    .opens_files = 1,
    .runs = reduce_runs,
};
