#include "trainer/plan/planning.h"

#include "base/array.h"
#include "base/human.h"
#include "trainer/plan/fit.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

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
