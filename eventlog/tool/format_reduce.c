/*
 * reduce: several runs into one: per tag and step the mean and other figures over the runs that have it, as a table
 * with two header lines for pandas' read_csv(header=[0, 1], index_col=0), or as event files.
 */
#include "base/number.h"
#include "eventlog/eventlog.h"
#include "eventlog/tool/export_columns.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation { MEAN, STD, MIN, MAX, MEDIAN, SUM, COUNT, VAR, OPERATIONS };

static const char *const names[OPERATIONS] = { "mean", "std", "min", "max", "median", "sum", "count", "var" };

struct result { /* of a tag at one step */
    int64_t step;
    double wall_time; /* the latest of its points */
    unsigned present; /* 1 << operation for those that have a value */
    double values[OPERATIONS];
};

struct column { /* of a tag */
    const char *tag;
    size_t length;
    const struct scalar_series **series; /* per run, NULL where the run has no such tag */
    size_t runs;                        /* that have it */
    struct result *results;             /* by step */
    size_t count, capacity, next;       /* next: for the walk over rows */
};

struct table {
    enum operation operations[OPERATIONS];
    size_t operation_count;
    struct column *columns;
    size_t count;
    double *values, *sorted; /* of one step: at most one a run */
    size_t *next;            /* per run: how far its series of the tag has been read */
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

/* A column a tag with points, in the order asked for, with its series of each run. */
static int find_columns(struct table *t, const struct export *x, const struct export_run *runs, size_t count,
                        struct error *e)
{
    struct export_columns all;
    int rc = export_columns_find(&all, x, runs, count, e);

    if (rc == OK && !(t->columns = calloc(all.tags.count + 1, sizeof *t->columns)))
        rc = error_set(e, ERR_NOMEM, "out of memory for %zu columns", all.tags.count);
    for (; rc == OK && t->count < all.tags.count; t->count++)
        if (!(t->columns[t->count].series = calloc(count + 1, sizeof *t->columns->series)))
            rc = error_set(e, ERR_NOMEM, "out of memory for %zu runs", count);
    for (size_t i = 0; rc == OK && i < count; i++)
        for (size_t k = 0; k < runs[i].scalars.count; k++) {
            const struct scalar_series *s = &runs[i].scalars.series[k];
            struct column *c = s->count ? &t->columns[export_columns_place(&all, s)] : NULL;

            if (!c)
                continue;
            c->tag = s->tag;
            c->length = s->tag_length;
            c->series[i] = s;
            c->runs++;
        }
    export_columns_release(&all);
    return rc;
}

static int check_tags(const struct table *t, const struct export_run *runs, size_t count, struct error *e)
{
    struct buffer missing = BUFFER_EMPTY;
    size_t lacking = 0;
    int rc;

    for (size_t c = 0; c < t->count; c++)
        for (size_t i = 0; i < count; i++) /* a root with hyperparameters alone is no run of these */
            if (!t->columns[c].series[i] && runs[i].scalars.numbered && lacking++ < 5)
                buffer_format(&missing, "%s'%s' in run %s", missing.length ? ", " : "", t->columns[c].tag,
                              runs[i].name);
    if (!lacking)
        return OK;
    rc = error_set(e, ERR_ARG, "some runs lack these tags: %.300s%s; use --lax-tags to accept that",
                   buffer_text(&missing), lacking > 5 ? ", ..." : "");
    buffer_release(&missing);
    return rc;
}

/* ---- figures --------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of n values without NaN. Sums in the order of the runs, the variance in a second pass around the mean, over n - 1. */
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
    memcpy(t->sorted, v, n * sizeof *v);
    qsort(t->sorted, n, sizeof *v, by_value);
    r->values[MEAN] = mean;
    r->values[MIN] = t->sorted[0];
    r->values[MAX] = t->sorted[n - 1];
    r->values[MEDIAN] = n % 2 ? t->sorted[n / 2] : (t->sorted[n / 2 - 1] + t->sorted[n / 2]) / 2;
    r->present |= 1u << MEAN | 1u << MIN | 1u << MAX | 1u << MEDIAN;
    if (n < 2)
        return;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    r->values[VAR] = squares / (double)(n - 1);
    r->values[STD] = sqrt(r->values[VAR]);
    r->present |= 1u << VAR | 1u << STD;
}

static struct result *add_result(struct column *c, int64_t step)
{
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : 64;
        struct result *results = realloc(c->results, capacity * sizeof *results);

        if (!results)
            return NULL;
        c->results = results;
        c->capacity = capacity;
    }
    c->results[c->count] = (struct result){ .step = step, .wall_time = -INFINITY };
    return &c->results[c->count++];
}

static int reduce_column(struct export *x, struct table *t, struct column *c, const struct export_run *runs,
                         size_t count, struct error *e)
{
    size_t wanted = x->options->min_runs ? (size_t)x->options->min_runs : c->runs;

    memset(t->next, 0, count * sizeof *t->next);
    for (;;) {
        double wall_time = -INFINITY;
        size_t have = 0, n = 0;
        struct result *r;
        int64_t step = 0;
        int found = 0;

        for (size_t i = 0; i < count; i++)
            if (c->series[i] && t->next[i] < c->series[i]->count &&
                (!found || c->series[i]->points[t->next[i]].step < step)) {
                step = c->series[i]->points[t->next[i]].step;
                found = 1;
            }
        if (!found)
            return OK;
        for (size_t i = 0; i < count; i++) {
            const struct scalar_series *s = c->series[i];
            size_t first = t->next[i], next = first;
            unsigned from;

            for (; s && next < s->count && s->points[next].step == step; next++)
                wall_time = s->points[next].wall_time > wall_time ? s->points[next].wall_time : wall_time;
            t->next[i] = next;
            if (next == first)
                continue;
            if (export_columns_value(x, runs[i].name, s, first, next, &t->values[n], &from, e) != OK)
                return ERR_ARG;
            x->points += next - first;
            have++;
            n += !isnan(t->values[n]);
        }
        if (have < wanted)
            continue;
        if (!(r = add_result(c, step)))
            return error_set(e, ERR_NOMEM, "out of memory for the steps of %s", c->tag);
        r->wall_time = wall_time;
        compute(t, n, r);
    }
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* 1 and the smallest step that any column still has. */
static int next_step(const struct table *t, int64_t *step)
{
    int found = 0;

    for (size_t c = 0; c < t->count; c++) {
        const struct column *column = &t->columns[c];

        if (column->next == column->count)
            continue;
        if (!found || column->results[column->next].step < *step)
            *step = column->results[column->next].step;
        found = 1;
    }
    return found;
}

static int write_table(struct table *t, struct output *out, struct error *e)
{
    struct buffer line = BUFFER_EMPTY;
    char text[NUMBER_TEXT_MAX];
    int64_t step = 0;
    int good;

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
    while (next_step(t, &step) && buffer_ok(&line)) {
        buffer_clear(&line);
        buffer_append(&line, text, (size_t)export_integer(step, text));
        for (size_t o = 0; o < t->operation_count; o++)
            for (size_t c = 0; c < t->count; c++) {
                const struct column *column = &t->columns[c];
                const struct result *r = column->next < column->count ? &column->results[column->next] : NULL;
                enum operation which = t->operations[o];

                buffer_append_byte(&line, ',');
                if (!r || r->step != step || !(r->present & 1u << which))
                    continue;
                buffer_append(&line, text, (size_t)(which == COUNT ? export_integer((int64_t)r->values[COUNT], text)
                                                                   : number_text(r->values[which], text)));
            }
        buffer_append_byte(&line, '\n');
        output_bytes(out, buffer_text(&line), line.length);
        for (size_t c = 0; c < t->count; c++)
            t->columns[c].next += t->columns[c].next < t->columns[c].count &&
                                  t->columns[c].results[t->columns[c].next].step == step;
    }
    good = buffer_ok(&line);
    buffer_release(&line);
    return good ? OK : error_set(e, ERR_NOMEM, "out of memory for a row of %zu columns", t->count);
}

/* DIR/ for "mean" is the run DIR-mean/. */
static int write_events(struct export *x, struct table *t, enum operation which, struct error *e)
{
    struct eventlog_error error = { 0 };
    struct eventlog_writer *writer;
    size_t n = strlen(x->options->to.path);
    char path[PATH_MAX];
    int64_t step = 0;
    int rc;

    while (n > 1 && x->options->to.path[n - 1] == '/')
        n--;
    if (snprintf(path, sizeof path, "%.*s-%s", (int)n, x->options->to.path, names[which]) >= (int)sizeof path)
        return error_set(e, ERR_ARG, "%s: path too long", x->options->to.path);
    if (!x->options->to.force && output_exists(path))
        return error_set(e, ERR_ARG, "%s: already exists; use -f to add a file to it", path);
    if ((rc = eventlog_writer_open(&writer, path, NULL, &error)) != EVENTLOG_OK)
        return error_set(e, ERR_IO, "%s", error.message);
    for (size_t c = 0; c < t->count; c++)
        t->columns[c].next = 0;
    while (rc == EVENTLOG_OK && next_step(t, &step))
        for (size_t c = 0; c < t->count && rc == EVENTLOG_OK; c++) {
            struct column *column = &t->columns[c];
            const struct result *r = column->next < column->count ? &column->results[column->next] : NULL;

            if (!r || r->step != step)
                continue;
            column->next++;
            if (r->present & 1u << which)
                rc = eventlog_writer_scalar(writer, column->tag, step, r->wall_time, (float)r->values[which], &error);
        }
    if (rc != EVENTLOG_OK) {
        eventlog_writer_close(writer, NULL);
        return error_set(e, ERR_IO, "%s: %s", path, error.message);
    }
    return eventlog_writer_close(writer, &error) == EVENTLOG_OK ? OK : error_set(e, ERR_IO, "%s", error.message);
}

static int write_all(struct export *x, struct table *t, struct error *e)
{
    struct output *out;
    int rc = OK;

    if (x->options->events) {
        for (size_t o = 0; o < t->operation_count && rc == OK; o++)
            rc = write_events(x, t, t->operations[o], e);
        return rc;
    }
    if ((rc = output_open(&out, x->options->to.path, x->options->to.force, e)) != OK)
        return rc;
    if ((rc = write_table(t, out, e)) == OK)
        return output_close(out, 1, e);
    output_close(out, 0, NULL);
    return rc;
}

static void release(struct table *t)
{
    for (size_t c = 0; c < t->count; c++) {
        free(t->columns[c].series);
        free(t->columns[c].results);
    }
    free(t->columns);
    free(t->values);
    free(t->sorted);
    free(t->next);
}

static int runs(struct export *x, struct export_run *list, size_t count, struct error *e)
{
    struct table t = { .count = 0 };
    int rc = parse_operations(&t, x->options->ops, e);

    t.values = malloc((count + 1) * sizeof *t.values);
    t.sorted = malloc((count + 1) * sizeof *t.sorted);
    t.next = malloc((count + 1) * sizeof *t.next);
    if (rc == OK && (!t.values || !t.sorted || !t.next))
        rc = error_set(e, ERR_NOMEM, "out of memory for %zu runs", count);
    if (rc == OK)
        rc = find_columns(&t, x, list, count, e);
    if (rc == OK && !x->options->lax_tags)
        rc = check_tags(&t, list, count, e);
    for (size_t c = 0; c < t.count && rc == OK; c++)
        rc = reduce_column(x, &t, &t.columns[c], list, count, e);
    if (rc == OK && !x->failed)
        rc = write_all(x, &t, e);
    release(&t);
    return rc;
}

const struct export_format format_reduce = { .name = "reduce", .opens_files = 1, .runs = runs };
