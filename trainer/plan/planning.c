#include "trainer/plan/planning.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/human.h"
#include "base/json.h"
#include "base/number.h"
#include "base/program/table.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- plan table -------------------------------------------------------------------------------------------------- */

enum { ROOM_FOR_NAMES = 100 }; /* columns */

double plan_row_error(const struct plan_row *r)
{
    return r->cost.steps / r->measured - 1;
}

static int any_measured(const struct plan_row *rows, size_t count)
{
    size_t i = 0;

    while (i < count && !(rows[i].measured > 0))
        i++;
    return i < count;
}

/* Servers of the row; 0: the strategy has none. */
static int servers_of(const struct plan_row *r)
{
    return !r->strategy->servers ? 0 : r->shape.servers ? r->shape.servers : plan_hosts(&r->shape);
}

static int hosts_of(const struct plan_row *r)
{
    return r->strategy->devices ? 1 : plan_hosts(&r->shape);
}

static void number_cell(struct table *t, double value)
{
    char text[HUMAN_TEXT_MAX];

    table_cell(t, "%s", human_number(value, text));
}

static void measured_cells(struct table *t, const struct plan_row *r)
{
    if (!(r->measured > 0)) {
        table_cell(t, "-");
        table_cell(t, "-");
        return;
    }
    number_cell(t, 1e3 / r->measured * r->cost.seconds * r->cost.steps);
    if (r->fitted)
        table_cell(t, "fitted");
    else
        table_cell(t, "%+.1f %%", 100 * plan_row_error(r));
}

/* The strategy as --strategies takes it; where there is no room for that, its option without a name: what would be cut
 * out of the middle is more. */
static void name_cell(struct table *t, const char *name, int whole)
{
    const char *option = strchr(name, ':'), *value = option ? strchr(option, '=') : NULL;

    if (whole || !value)
        table_cell(t, "%s", name);
    else
        table_cell(t, "%.*s%s", (int)(option + 1 - name), name, value + 1);
}

static void row_cells(struct table *t, const struct plan_row *r, int measured, int whole)
{
    char text[HUMAN_TEXT_MAX];

    name_cell(t, r->strategy->name, whole);
    table_cell(t, "%d", r->shape.workers);
    table_cell(t, "%d", hosts_of(r));
    if (servers_of(r))
        table_cell(t, "%d", servers_of(r));
    else
        table_cell(t, "-");
    number_cell(t, 1e3 * r->cost.seconds);
    number_cell(t, r->cost.samples);
    table_cell(t, "%.0f %%", 100 * r->efficiency);
    table_cell(t, "%s", r->cost.bytes > 0 ? human_bytes((uint64_t)r->cost.bytes, text) : "-");
    table_cell(t, "%s", plan_limit_names[r->cost.limit]);
    if (measured)
        measured_cells(t, r);
}

void plan_table_text(struct buffer *out, const struct plan_row *rows, size_t count, int columns, int ascii)
{
    static const struct table_column all[] = {
        { .title = "strategy", .cut = 14 },
        { .title = "workers", .right = 1 },
        { .title = "hosts", .right = 1, .leave_out = 1 },
        { .title = "servers", .right = 1, .leave_out = 3 },
        { .title = "ms", .right = 1 },
        { .title = "samples/s", .right = 1 },
        { .title = "eff.", .right = 1, .leave_out = 2 },
        { .title = "busiest", .right = 1, .leave_out = 4 },
        { .title = "limit" },
        { .title = "measured", .right = 1 },
        { .title = "error", .right = 1 },
    };
    const int measured = any_measured(rows, count);
    struct table t;

    table_init(&t, all, sizeof all / sizeof *all - (measured ? 0 : 2));
    for (size_t i = 0; i < count; i++)
        row_cells(&t, &rows[i], measured, !columns || columns >= ROOM_FOR_NAMES);
    table_print(&t, 0, columns, ascii, out);
    table_release(&t);
}

static void csv_number(struct buffer *out, double value, int there)
{
    char text[NUMBER_TEXT_MAX];

    buffer_append_byte(out, ',');
    if (!there)
        return;
    number_text(value, text);
    buffer_append_text(out, text);
}

void plan_table_csv(struct buffer *out, const struct plan_row *rows, size_t count)
{
    buffer_append_text(out,
                       "strategy,ranks,hosts,servers,seconds_per_step,steps_per_second,samples_per_second,efficiency,"
                       "busiest_link_bytes,limit,measured_steps_per_second,fitted,error\n");
    for (size_t i = 0; i < count; i++) {
        const struct plan_row *r = &rows[i];

        buffer_format(out, "%s,%d,%d,%d", r->strategy->name, r->shape.workers, hosts_of(r), servers_of(r));
        csv_number(out, r->cost.seconds, 1);
        csv_number(out, r->cost.steps, 1);
        csv_number(out, r->cost.samples, 1);
        csv_number(out, r->efficiency, 1);
        csv_number(out, r->cost.bytes, 1);
        buffer_format(out, ",%s", plan_limit_names[r->cost.limit]);
        csv_number(out, r->measured, r->measured > 0);
        buffer_format(out, ",%d", r->fitted);
        csv_number(out, r->measured > 0 ? plan_row_error(r) : 0, r->measured > 0);
        buffer_append_byte(out, '\n');
    }
}

static void json_number(struct buffer *out, const char *name, double value, int there)
{
    buffer_format(out, ", \"%s\": ", name);
    if (there)
        json_double(out, value);
    else
        buffer_append_text(out, "null");
}

void plan_table_json(struct buffer *out, const struct plan_row *rows, size_t count)
{
    buffer_append_text(out, "[");
    for (size_t i = 0; i < count; i++) {
        const struct plan_row *r = &rows[i];

        buffer_format(out, "%s\n{\"strategy\": \"%s\", \"ranks\": %d, \"hosts\": %d, \"servers\": %d", i ? "," : "",
                      r->strategy->name, r->shape.workers, hosts_of(r), servers_of(r));
        json_number(out, "seconds_per_step", r->cost.seconds, 1);
        json_number(out, "steps_per_second", r->cost.steps, 1);
        json_number(out, "samples_per_second", r->cost.samples, 1);
        json_number(out, "efficiency", r->efficiency, 1);
        json_number(out, "busiest_link_bytes", r->cost.bytes, 1);
        buffer_format(out, ", \"limit\": \"%s\"", plan_limit_names[r->cost.limit]);
        json_number(out, "measured_steps_per_second", r->measured, r->measured > 0);
        buffer_format(out, ", \"fitted\": %s", r->fitted ? "true" : "false");
        json_number(out, "error", r->measured > 0 ? plan_row_error(r) : 0, r->measured > 0);
        buffer_append_text(out, "}");
    }
    buffer_append_text(out, "]");
}

/* ---- measured ---------------------------------------------------------------------------------------------------- */

enum { COLUMN_STRATEGY, COLUMN_WORKERS, COLUMN_RANKS, COLUMN_STEPS, COLUMNS, WORKERS_MOST = 1 << 20 };
static const char *const column_names[COLUMNS] = { "strategy", "workers", "ranks", "steps_per_second" };

void measured_release(struct measured *m)
{
    free(m->items);
    *m = (struct measured){ 0 };
}

/* Of the name, or of its beginning up to one of its options. */
static const struct plan_strategy *strategy_of(const char *text)
{
    const struct plan_strategy *found = plan_strategy_find(text);
    char name[64];
    char *colon;

    if (snprintf(name, sizeof name, "%s", text) >= (int)sizeof name)
        return NULL;
    while (!found && (colon = strrchr(name, ':'))) {
        *colon = '\0';
        found = plan_strategy_find(name);
    }
    return found;
}

static int add(struct measured *m, const char *strategy, int64_t workers, double steps, const char *path, size_t line,
               struct error *e)
{
    const struct plan_strategy *s = strategy_of(strategy);

    if (workers < 1 || workers > WORKERS_MOST)
        return error_set(e, ERR_ARG, "%s:%zu: %lld workers; wanted 1 to %d", path, line, (long long)workers,
                         WORKERS_MOST);
    if (!(steps > 0) || steps > 1e12)
        return error_set(e, ERR_ARG, "%s:%zu: %g steps a second; wanted a number above 0", path, line, steps);
    if (!s) {
        m->skipped++;
        return OK;
    }
    if (!ARRAY_ROOM(m->items, m->capacity, m->count + 1))
        return error_memory(e, path, "for %zu measurements", m->count);
    m->items[m->count++] = (struct measurement){ s, (int)workers, steps };
    return OK;
}

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

/* Takes the next field, without its quotes, from a line that ends at `end`. 0: there is none. */
static int next_field(const char **at, const char *end, struct buffer *field)
{
    int quoted = 0;

    buffer_clear(field);
    if (!*at)
        return 0;
    for (; *at < end && (quoted || **at != ','); ++*at)
        if (**at == '"')
            quoted = !quoted;
        else if (**at != '\r')
            buffer_append_byte(field, **at);
    *at = *at < end ? *at + 1 : NULL;
    return 1;
}

static void read_names(const char *at, const char *end, int *places, struct buffer *field)
{
    for (int c = 0; c < COLUMNS; c++)
        places[c] = -1;
    for (int i = 0; next_field(&at, end, field); i++)
        for (int c = 0; c < COLUMNS; c++)
            if (places[c] < 0 && !strcmp(buffer_text(field), column_names[c]))
                places[c] = i;
}

static int read_row(struct measured *m, const char *at, const char *end, const int *places, struct buffer *field,
                    const char *path, size_t line, struct error *e)
{
    char strategy[64] = "";
    int64_t workers = 0;
    double steps = 0;
    const int of_workers = places[COLUMN_WORKERS] >= 0 ? places[COLUMN_WORKERS] : places[COLUMN_RANKS];

    for (int i = 0; next_field(&at, end, field); i++) {
        if (i == places[COLUMN_STRATEGY])
            snprintf(strategy, sizeof strategy, "%s", buffer_text(field));
        if (i == of_workers && !number_parse_int(buffer_text(field), &workers))
            return error_set(e, ERR_ARG, "%s:%zu: '%s' is not a number of workers", path, line, buffer_text(field));
        if (i == places[COLUMN_STEPS] && field->length == 0) {
            m->skipped++;
            return OK;
        }
        if (i == places[COLUMN_STEPS] && !number_parse_double(buffer_text(field), &steps))
            return error_set(e, ERR_ARG, "%s:%zu: '%s' is not a number of steps a second", path, line,
                             buffer_text(field));
    }
    return add(m, strategy, workers, steps, path, line, e);
}

static int parse_csv(struct measured *m, const char *text, size_t n, const char *path, struct error *e)
{
    const char *at = text, *const end = text + n;
    struct buffer field = BUFFER_EMPTY;
    int places[COLUMNS], rc = OK;

    for (size_t line = 1; at < end && rc == OK; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        stop = stop ? stop : end;
        if (line == 1) {
            read_names(at, stop, places, &field);
            if (places[COLUMN_STRATEGY] < 0 || places[COLUMN_STEPS] < 0 ||
                (places[COLUMN_WORKERS] < 0 && places[COLUMN_RANKS] < 0))
                rc = error_set(e, ERR_ARG,
                               "%s:1: no columns strategy, ranks and steps_per_second; the first line names the "
                               "columns",
                               path);
        } else if (stop > at && *at != '\r') {
            rc = read_row(m, at, stop, places, &field, path, line, e);
        }
        at = stop + (stop < end);
    }
    buffer_release(&field);
    return rc;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static int read_object(struct measured *m, const json_t *o, const char *path, size_t line, struct error *e)
{
    const json_t *strategy = json_object_get(o, "strategy"), *steps = json_object_get(o, "steps_per_second");
    const json_t *workers = json_object_get(o, "workers");

    if (!workers)
        workers = json_object_get(o, "ranks");
    if (json_is_object(steps))
        steps = json_object_get(steps, "median");
    if (json_is_string(strategy) && json_is_null(steps)) {
        m->skipped++;
        return OK;
    }
    if (!json_is_string(strategy) || !json_is_integer(workers) || !json_is_number(steps))
        return error_set(e, ERR_ARG, "%s:%zu: an object without strategy, ranks and steps_per_second", path, line);
    return add(m, json_string_value(strategy), json_integer_value(workers), json_number_value(steps), path, line, e);
}

static int read_value(struct measured *m, const json_t *root, const char *path, size_t line, struct error *e)
{
    const json_t *cells = json_is_object(root) ? json_object_get(root, "cells") : root;
    int rc = OK;

    if (!json_is_array(cells))
        return read_object(m, root, path, line, e);
    for (size_t i = 0; i < json_array_size(cells) && rc == OK; i++)
        rc = read_object(m, json_array_get(cells, i), path, line, e);
    return rc;
}

static int parse_json(struct measured *m, const char *text, size_t n, const char *path, struct error *e)
{
    size_t at = 0, line = 1;
    int rc = OK;

    while (rc == OK) {
        json_error_t wrong;
        json_t *root;

        while (at < n && strchr(" \t\r\n", text[at]))
            line += text[at++] == '\n';
        if (at == n)
            break;
        root = json_loadb(text + at, n - at, JSON_DISABLE_EOF_CHECK, &wrong);
        if (!root)
            return error_set(e, ERR_ARG, "%s:%zu: not JSON: %s", path,
                             line + (size_t)(wrong.line > 0 ? wrong.line - 1 : 0), wrong.text);
        rc = read_value(m, root, path, line, e);
        json_decref(root);
        for (int i = 0; i < wrong.position; i++)
            line += text[at++] == '\n';
    }
    return rc;
}

int measured_parse(struct measured *out, const char *text, size_t n, const char *path, struct error *e)
{
    size_t at = 0;
    int rc;

    *out = (struct measured){ 0 };
    while (at < n && strchr(" \t\r\n", text[at]))
        at++;
    if (at < n && (text[at] == '[' || text[at] == '{'))
        rc = parse_json(out, text, n, path, e);
    else
        rc = parse_csv(out, text, n, path, e);
    if (rc == OK && out->count == 0)
        rc = error_set(e, ERR_ARG, "%s: no measurements of strategies that have a model", path);
    if (rc < 0)
        measured_release(out);
    return rc;
}

/* ---- fit --------------------------------------------------------------------------------------------------------- */

#define DIFFERENCE 1e-5 /* of the logarithm of a parameter */
#define STEP_MOST 2.0   /* of that, at once */
#define GAIN_LEAST 1e-14

enum { ROUNDS = 200 };

struct fit {
    fit_model *model;
    void *context;
    const double *measured;
    int count, points;
    double residual[FIT_POINTS_MOST];
    double slope[FIT_PARAMETERS_MOST][FIT_POINTS_MOST];
};

/* Sets the residuals, and *sum to that of their squares. */
static int look(const struct fit *f, const double *logs, double *residual, double *sum, struct error *e)
{
    double parameters[FIT_PARAMETERS_MOST] = { 0 }, predicted[FIT_POINTS_MOST] = { 0 };
    int rc;

    for (int k = 0; k < f->count; k++)
        parameters[k] = exp(logs[k]);
    if ((rc = f->model(f->context, parameters, predicted, e)) < 0)
        return rc;
    *sum = 0;
    for (int i = 0; i < f->points; i++) {
        residual[i] = log(predicted[i] / f->measured[i]);
        *sum += residual[i] * residual[i];
    }
    return OK;
}

static int find_slopes(struct fit *f, const double *logs, struct error *e)
{
    double there[FIT_PARAMETERS_MOST], moved[FIT_POINTS_MOST], sum;
    int rc = OK;

    for (int k = 0; k < f->count && rc == OK; k++) {
        memcpy(there, logs, sizeof there);
        there[k] += DIFFERENCE;
        rc = look(f, there, moved, &sum, e);
        for (int i = 0; i < f->points; i++)
            f->slope[k][i] = (moved[i] - f->residual[i]) / DIFFERENCE;
    }
    return rc;
}

/* Solves (J'J + damping) step = -J'r. */
static void find_step(const struct fit *f, double damping, double *step)
{
    double a[FIT_PARAMETERS_MOST][FIT_PARAMETERS_MOST + 1];
    const int n = f->count;

    for (int j = 0; j < n; j++) {
        a[j][n] = 0;
        for (int k = 0; k < n; k++)
            a[j][k] = j == k ? damping : 0;
        for (int i = 0; i < f->points; i++) {
            a[j][n] -= f->slope[j][i] * f->residual[i];
            for (int k = 0; k < n; k++)
                a[j][k] += f->slope[j][i] * f->slope[k][i];
        }
    }
    for (int j = 0; j < n; j++) /* symmetric, and positive by the damping: no pivots are needed */
        for (int i = j + 1; i < n; i++) {
            const double factor = a[i][j] / a[j][j];

            for (int k = j; k <= n; k++)
                a[i][k] -= factor * a[j][k];
        }
    for (int j = n - 1; j >= 0; j--) {
        step[j] = a[j][n];
        for (int k = j + 1; k < n; k++)
            step[j] -= a[j][k] * step[k];
        step[j] /= a[j][j];
        step[j] = fmax(-STEP_MOST, fmin(STEP_MOST, step[j]));
    }
}

static int improve(struct fit *f, double *logs, struct error *e)
{
    double sum, damping = 1e-3;
    int rc = look(f, logs, f->residual, &sum, e);

    for (int round = 0; round < ROUNDS && rc == OK && sum > GAIN_LEAST && damping < 1e12; round++) {
        double step[FIT_PARAMETERS_MOST], there[FIT_PARAMETERS_MOST], residual[FIT_POINTS_MOST], better;

        if ((rc = find_slopes(f, logs, e)) < 0)
            break;
        find_step(f, damping, step);
        for (int k = 0; k < f->count; k++)
            there[k] = logs[k] + step[k];
        if ((rc = look(f, there, residual, &better, e)) < 0)
            break;
        if (better < sum) {
            memcpy(logs, there, (size_t)f->count * sizeof *logs);
            memcpy(f->residual, residual, sizeof residual);
            sum = better;
            damping = fmax(damping / 10, 1e-12);
        } else {
            damping *= 10;
        }
    }
    return rc;
}

int fit_least_squares(double *parameters, int count, fit_model *model, void *context, const double *measured,
                      int points, struct error *e)
{
    struct fit f = { .model = model, .context = context, .measured = measured, .count = count, .points = points };
    double logs[FIT_PARAMETERS_MOST];
    int rc;

    if (count > points || count > FIT_PARAMETERS_MOST || points > FIT_POINTS_MOST)
        return error_set(e, ERR_ARG, "%d parameters cannot be found from %d measurements", count, points);
    for (int k = 0; k < count; k++)
        logs[k] = log(parameters[k]);
    rc = improve(&f, logs, e);
    for (int k = 0; k < count && rc == OK; k++)
        parameters[k] = exp(logs[k]);
    return rc;
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

#define FIRST_SHARE 0.1 /* of a step for which the wire is assumed to be busy, where a fit begins */

enum { FREE_COMPUTE, FREE_WIRE, FREE_MOST };

void planning_release(struct planning *p)
{
    free(p->rows);
    p->rows = NULL;
    p->count = p->capacity = 0;
}

/* The work of each worker where all share --global-batch. */
static struct plan_work work_of(const struct planning *p, int workers)
{
    struct plan_work w = p->work;
    double share;

    if (p->global_batch > 0) {
        w.batch = p->global_batch / workers;
        share = w.batch / p->work.batch;
        w.forward *= share;
        w.backward *= share;
    }
    return w;
}

static struct plan_shape shape_of(const struct planning *p, const struct plan_strategy *strategy, int workers)
{
    struct plan_shape s = { .workers = workers,
                            .per_host = strategy->devices ? workers : p->per_host,
                            .servers = strategy->servers ? p->servers : 0 };
    int left = workers, here;

    if (!p->slots || strategy->devices)
        return s;
    s.per_host = 0;
    for (; left > 0; left -= here, s.hosts++) { /* one host after the other, as mpirun fills them */
        here = p->slots[s.hosts] < left ? p->slots[s.hosts] : left;
        s.per_host = here > s.per_host ? here : s.per_host;
        s.fewest = s.hosts == 0 || here < s.fewest ? here : s.fewest;
    }
    return s;
}

int planning_room(const struct planning *p)
{
    int room = 0;

    for (size_t i = 0; i < p->slot_count; i++)
        room += p->slots[i];
    return p->slots ? room : INT_MAX;
}

int planning_add(struct planning *p, const struct plan_strategy *strategy, int workers, double measured,
                 struct error *e)
{
    const struct plan_work w = work_of(p, workers), alone = work_of(p, 1);
    struct plan_row row = { .strategy = strategy, .shape = shape_of(p, strategy, workers), .measured = measured };
    const int rc = plan_cost(strategy, &w, &p->machine, &row.shape, &row.cost, e);

    if (rc < 0)
        return rc;
    row.efficiency = row.cost.samples / workers * (alone.forward + alone.backward + alone.update) / alone.batch;
    if (!ARRAY_ROOM(p->rows, p->capacity, p->count + 1))
        return error_memory(e, NULL, "for %zu rows of a plan", p->count);
    p->rows[p->count++] = row;
    return OK;
}

/* ---- fitting ----------------------------------------------------------------------------------------------------- */

struct series {
    const struct planning *as_given;
    struct planning fitted; /* only the setting */
    const struct plan_strategy *strategy;
    const struct planning_free *what;
    int workers[FIT_POINTS_MOST];
    double steps[FIT_POINTS_MOST];
    int points, parameters[FREE_MOST], parameter_count;
};

static void set_parameters(struct series *s, const double *values)
{
    s->fitted.work = s->as_given->work;
    for (int k = 0; k < s->parameter_count; k++)
        if (s->parameters[k] == FREE_COMPUTE) {
            s->fitted.work.forward *= values[k];
            s->fitted.work.backward *= values[k];
            s->fitted.work.update *= values[k];
        } else {
            s->fitted.machine.network.bandwidth = values[k];
        }
}

static int predict(void *context, const double *parameters, double *predicted, struct error *e)
{
    struct series *s = context;
    int rc = OK;

    set_parameters(s, parameters);
    for (int i = 0; i < s->points && rc == OK; i++) {
        const struct plan_work w = work_of(&s->fitted, s->workers[i]);
        const struct plan_shape shape = shape_of(&s->fitted, s->strategy, s->workers[i]);
        struct plan_cost cost = { 0 };

        rc = s->strategy->cost(&w, &s->fitted.machine, &shape, &cost, e);
        predicted[i] = cost.steps;
    }
    return rc;
}

static double seconds_alone(const struct plan_work *w)
{
    return w->forward + w->backward + w->update;
}

/* Begins with a step that takes as long as the first measured one, the wire a tenth of it. */
static int fit_series(struct series *s, struct error *e)
{
    const double first = (s->strategy->asynchronous ? s->workers[0] : 1) / s->steps[0];
    const struct plan_work w = work_of(s->as_given, s->workers[0]);
    double values[FREE_MOST];
    int rc = OK;

    if (s->what->compute && s->points > 0)
        s->parameters[s->parameter_count++] = FREE_COMPUTE;
    if (s->what->bandwidth && s->points > s->parameter_count)
        s->parameters[s->parameter_count++] = FREE_WIRE;
    else if (s->what->bandwidth)
        s->fitted.machine.network.bandwidth = INFINITY;
    for (int k = 0; k < s->parameter_count; k++)
        values[k] = s->parameters[k] == FREE_COMPUTE
                        ? first / seconds_alone(&w)
                        : (double)s->as_given->work.elements * sizeof(float) / (FIRST_SHARE * first);
    if (s->parameter_count > 0)
        rc = fit_least_squares(values, s->parameter_count, predict, s, s->steps, s->points, e);
    set_parameters(s, values);
    return rc;
}

static void say_found(const struct series *s, struct buffer *about)
{
    char seconds[HUMAN_TEXT_MAX], bandwidth[HUMAN_TEXT_MAX];

    buffer_format(about, "%s, fitted to", s->strategy->name);
    for (int i = 0; i < s->points; i++)
        buffer_format(about, "%s %d", i ? "," : "", s->workers[i]);
    buffer_format(about, " worker%s:", s->points == 1 && s->workers[0] == 1 ? "" : "s");
    for (int k = 0; k < s->parameter_count; k++)
        if (s->parameters[k] == FREE_COMPUTE)
            buffer_format(about, " %s ms to compute a step",
                          human_number(1e3 * seconds_alone(&s->fitted.work), seconds));
        else
            buffer_format(about, "%s %s MB/s each way", k ? "," : "",
                          human_number(1e-6 * s->fitted.machine.network.bandwidth, bandwidth));
    buffer_append_byte(about, '\n');
}

static int add_predicted(struct planning *p, struct series *s, int workers, double measured, int fitted,
                         struct error *e)
{
    const struct plan_work work = p->work;
    const struct plan_machine machine = p->machine;
    int rc;

    p->work = s->fitted.work;
    p->machine = s->fitted.machine;
    rc = planning_add(p, s->strategy, workers, measured, e);
    p->work = work;
    p->machine = machine;
    if (rc == OK)
        p->rows[p->count - 1].fitted = fitted;
    return rc;
}

/* The measured steps a second of so many workers, 0: none; and whether that is one of the points fitted to. */
static double find_measured(const struct measured *m, const struct series *s, int workers, int *fitted)
{
    double steps = 0;
    int points = 0;

    *fitted = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (m->items[i].strategy != s->strategy)
            continue;
        points++;
        if (m->items[i].workers == workers) {
            steps = m->items[i].steps;
            *fitted = points <= s->points;
        }
    }
    return steps;
}

/* The smallest number of workers above `last` that is measured or wanted; 0: none. */
static int next_workers(const struct measured *m, const struct plan_strategy *strategy, const int *workers, int count,
                        int last)
{
    int next = 0;

    for (size_t i = 0; i < m->count; i++)
        if (m->items[i].strategy == strategy && m->items[i].workers > last && (!next || m->items[i].workers < next))
            next = m->items[i].workers;
    for (int i = 0; i < count; i++)
        if (workers[i] > last && (!next || workers[i] < next))
            next = workers[i];
    return next;
}

static int add_series(struct planning *p, struct series *s, const struct measured *m, const int *workers, int count,
                      struct buffer *about, struct error *e)
{
    int rc, fitted;

    for (size_t i = 0; i < m->count && s->points < s->what->points && s->points < FIT_POINTS_MOST; i++)
        if (m->items[i].strategy == s->strategy) {
            s->workers[s->points] = m->items[i].workers;
            s->steps[s->points++] = m->items[i].steps;
        }
    s->fitted = *p;
    rc = fit_series(s, e);
    if (rc == OK && s->parameter_count > 0)
        say_found(s, about);
    if (isinf(s->fitted.machine.network.bandwidth)) /* nobody knows it */
        count = 0;
    for (int n = 0; rc == OK && (n = next_workers(m, s->strategy, workers, count, n)) > 0;) {
        const double steps = find_measured(m, s, n, &fitted);

        rc = add_predicted(p, s, n, steps, fitted && s->parameter_count > 0, e);
    }
    return rc;
}

int planning_fit(struct planning *p, const struct planning_free *what, const struct measured *measured,
                 const int *workers, int worker_count, struct buffer *about, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; plan_strategies[i] && rc == OK; i++) {
        struct series s = { .as_given = p, .strategy = plan_strategies[i], .what = what };
        size_t k = 0;

        while (k < measured->count && measured->items[k].strategy != s.strategy)
            k++;
        if (k < measured->count)
            rc = add_series(p, &s, measured, workers, worker_count, about, e);
    }
    return rc;
}
