#include "trainer/optimizers/optimizer.h"

#include "base/vector.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/team.h"
#include "trainer/optimizers/gradient_norm.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KIND_TEXT(place, name) #name,
#define KIND_RULE(place, name) &optimizer_rule_##name,
const char *const optimizer_kind_names[OPTIMIZER_KINDS] = { OPTIMIZERS(KIND_TEXT) };
const struct optimizer_rule *const optimizer_kind_rules[OPTIMIZER_KINDS] = { OPTIMIZERS(KIND_RULE) };

/* one variable's range in the exchange vector, and what its update depends on */
struct segment {
    size_t from, to;
    size_t row_width; /* of a table whose rows are updated only if they have a gradient; else 0 */
    int statistic, debias, frozen;
    float decay;
};

struct optimizer {
    struct network *network;
    struct optimizer_options options;
    struct optimizer_counters counters;
    size_t parameters, statistics;
    struct segment *segments; /* in order of `from` */
    size_t segment_count;
    real *memory; /* slot 1, slot 2, averages, biased; those that exist */
    real *slot1, *slot2, *averages, *biased;
    double statistics_decay;
    double norm;       /* of the last gradient that was measured */
    real clip;         /* by what it is multiplied */
    int64_t measured;  /* its step; -1: none */
    struct team *team; /* that makes large updates; NULL: the caller alone */
    int threads;
};

enum { SHARED_ELEMENTS = 1 << 15 }; /* an update of fewer takes no longer than it takes to wake a thread */

static int compare_segments(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

static int make_segments(struct optimizer *o, struct error *e)
{
    size_t count;
    const struct variable *v = network_variables(o->network, &count);

    o->segments = calloc(count + 1, sizeof *o->segments);
    if (!o->segments)
        return error_memory(e, NULL, "for the optimizer's table of %zu variables", count);
    for (size_t i = 0; i < count; i++) {
        struct segment *s = &o->segments[i];

        s->statistic = v[i].kind == VARIABLE_STATISTIC;
        s->frozen = v[i].frozen;
        s->from = network_exchange_place(o->network, &v[i]);
        s->to = s->from + v[i].count;
        s->decay = (float)v[i].decay;
        s->debias = v[i].debias_scope[0] != 0;
        s->row_width = optimizer_kind_rules[o->options.kind]->all_rows ? 0 : v[i].row_width;
    }
    o->segment_count = count;
    qsort(o->segments, count, sizeof *o->segments, compare_segments);
    return OK;
}

int optimizer_new(struct optimizer **out, struct network *n, const struct optimizer_options *options, struct error *e)
{
    struct optimizer *o = calloc(1, sizeof *o);
    size_t p = network_parameter_count(n), s = network_statistic_count(n);
    const struct optimizer_rule *rule = optimizer_kind_rules[options->kind];
    int slots = !!rule->slots[0] + !!rule->slots[1];
    real *next;

    if (!o)
        return error_memory(e, NULL, "for an optimizer");
    o->network = n;
    o->options = *options;
    o->parameters = p;
    o->statistics = s;
    o->statistics_decay = network_model(n)->statistics_decay;
    o->clip = 1;
    o->measured = -1;
    if (make_segments(o, e) < 0) {
        optimizer_free(o);
        return ERR_NOMEM;
    }
    /* calloc: pages that a server never touches, because other servers hold them, take no memory. */
    next = o->memory = calloc(p * (size_t)(slots + (options->moving_average > 0)) + s + 1, sizeof *next);
    if (!o->memory) {
        optimizer_free(o);
        return error_memory(e, NULL, "for the optimizer's slots of %zu weights", p);
    }
    if (slots > 0) {
        o->slot1 = next;
        next += p;
    }
    if (slots > 1) {
        o->slot2 = next;
        next += p;
    }
    if (options->moving_average > 0) {
        o->averages = next;
        next += p;
    }
    o->biased = next;
    optimizer_reset(o, 0);
    *out = o;
    return OK;
}

void optimizer_free(struct optimizer *o)
{
    if (!o)
        return;
    free(o->segments);
    free(o->memory);
    free(o);
}

void optimizer_reset(struct optimizer *o, int64_t step)
{
    double kept = 1 - pow(o->statistics_decay, (double)step);
    const real *statistics = network_statistics(o->network);

    for (size_t i = 0; o->slot1 && i < o->parameters; i++)
        o->slot1[i] = optimizer_kind_rules[o->options.kind]->initial;
    if (o->slot2)
        memset(o->slot2, 0, o->parameters * sizeof(real));
    if (o->averages)
        memcpy(o->averages, network_parameters(o->network), o->parameters * sizeof(real));
    for (size_t i = 0; i < o->statistics; i++)
        o->biased[i] = (real)((double)statistics[i] * kept);
    memset(&o->counters, 0, sizeof o->counters);
}

double optimizer_rate(const struct optimizer *o, int64_t step)
{
    return schedule_rate(&o->options.schedule, o->options.learning_rate, step);
}

VECTOR_CLONES static void move_averages(real *restrict averages, const real *restrict w, real part, size_t count)
{
    for (size_t i = 0; i < count; i++)
        averages[i] -= part * (averages[i] - w[i]);
}

/* after: the number of updates, this one included. */
static void update_averages(const struct optimizer *o, double after, const struct optimizer_state *at, size_t count)
{
    /* With an update count the decay is min(decay, (1 + u) / (10 + u)): young averages follow quickly. */
    const real keep = (real)fmin(o->options.moving_average, (1 + after) / (10 + after));

    if (at->averages)
        move_averages(at->averages, at->values, 1 - keep, count);
}

static void update_statistics(const struct optimizer *o, int64_t step, real scale, int debias, const real *sum,
                              const struct optimizer_state *at, size_t count)
{
    real *m = at->values, *biased = at->first, follow = (real)(1 - o->statistics_decay);
    double updates = (double)(step + 1 + o->counters.statistics_ahead);
    real correction = (real)(1 - pow(o->statistics_decay, updates));

    for (size_t i = 0; i < count; i++) {
        if (debias) {
            biased[i] -= follow * (biased[i] - sum[i] * scale);
            m[i] = biased[i] / correction;
        } else {
            m[i] -= follow * (m[i] - sum[i] * scale);
        }
    }
}

static struct optimizer_state state_at(const struct optimizer_state *s, size_t i)
{
    return (struct optimizer_state){ .values = s->values + i,
                                     .first = s->first ? s->first + i : NULL,
                                     .second = s->second ? s->second + i : NULL,
                                     .averages = s->averages ? s->averages + i : NULL };
}

/* The optimizer's own arrays at element i of the exchange vector. */
static struct optimizer_state own_state(const struct optimizer *o, const struct segment *s, size_t i)
{
    const struct optimizer_state weights = { network_parameters(o->network), o->slot1, o->slot2, o->averages };
    const struct optimizer_state statistics = { network_statistics(o->network), o->biased, NULL, NULL };

    return s->statistic ? state_at(&statistics, i - o->parameters) : state_at(&weights, i);
}

/* What does not depend on the variable. */
static struct optimizer_step unclipped_step(const struct optimizer *o, int64_t step, real weight)
{
    return (struct optimizer_step){ .scale = weight > 0 ? (real)(1.0 / (double)weight) : 0,
                                    .clip = 1,
                                    .rate = optimizer_rate(o, step),
                                    .momentum = o->options.momentum,
                                    .updates = (double)(step + 1) + (double)o->counters.adam_ahead };
}

static struct optimizer_step step_of(const struct optimizer *o, int64_t step, real weight)
{
    struct optimizer_step s = unclipped_step(o, step, weight);

    assert(!(o->options.clip_norm > 0) || o->measured == step);
    s.clip = o->clip;
    return s;
}

static int has_gradient(const real *sum, size_t count)
{
    size_t i = 0;

    while (i < count && sum[i] == 0) /* a NaN is a gradient, -0 is none */
        i++;
    return i < count;
}

/* The start of the row that element i is in. */
static size_t row_start(const struct segment *s, size_t i)
{
    return i - (i - s->from) % s->row_width;
}

/* a part of the sum of the exchange vectors: elements [from, to) */
struct part {
    const real *values; /* of element `from` on */
    size_t from, to;
};

/* 1: this row of a table has a gradient, in that part of it which the sum has. */
static int updates_row(const struct segment *s, size_t row, const struct part *sum)
{
    const size_t a = row > sum->from ? row : sum->from, end = row + s->row_width, b = end < sum->to ? end : sum->to;

    return has_gradient(sum->values + (a - sum->from), b - a);
}

/* of which the squares are added */
struct square_source {
    const struct optimizer *optimizer;
    const struct segment *segment;
    struct optimizer_step rule;
    struct part sum;                 /* dense; or */
    const struct row_gradient *rows; /* of the whole table */
};

/* The gradients of elements [from, from + count) of a variable; those of rows that are not updated are 0. */
static void gradient_of(const struct square_source *q, size_t from, size_t count, real *gradient)
{
    const struct segment *s = q->segment;
    const real *w = network_parameters(q->optimizer->network), *sum = q->sum.values + (from - q->sum.from);

    for (size_t i = 0; i < count; i++)
        gradient[i] = optimizer_gradient(&q->rule, sum[i], w[from + i]);
    for (size_t row = s->row_width ? row_start(s, from) : from + count; row < from + count; row += s->row_width)
        if (!updates_row(s, row, &q->sum))
            for (size_t i = row < from ? from : row; i < row + s->row_width && i < from + count; i++)
                gradient[i - from] = 0;
}

/* The same of rows. 0: all gradients are 0, and not set. */
static int gradient_of_rows(const struct square_source *q, size_t from, size_t count, real *gradient)
{
    const struct row_gradient *g = q->rows;
    const real *w = network_parameters(q->optimizer->network);
    const int moves_all = !q->segment->row_width && q->segment->decay > 0;
    const size_t first = from - q->segment->from, end = first + count; /* in the table */
    size_t low = 0, high = g->count;

    while (low < high) { /* the first row that reaches beyond the beginning */
        const size_t middle = low + (high - low) / 2;

        if (((size_t)g->rows[middle] + 1) * g->width <= first)
            low = middle + 1;
        else
            high = middle;
    }
    if (!moves_all && (low == g->count || (size_t)g->rows[low] * g->width >= end))
        return 0;
    for (size_t i = 0; i < count; i++)
        gradient[i] = moves_all ? optimizer_gradient(&q->rule, 0, w[from + i]) : 0;
    for (; low < g->count && (size_t)g->rows[low] * g->width < end; low++) {
        const size_t row = (size_t)g->rows[low] * g->width;
        const real *sum = g->values + low * g->width;

        if (q->segment->row_width && !has_gradient(sum, g->width))
            continue;
        for (size_t i = row > first ? row : first; i < row + g->width && i < end; i++)
            gradient[i - first] = optimizer_gradient(&q->rule, sum[i - row], w[q->segment->from + i]);
    }
    return 1;
}

static double squares_of_node(const struct square_source *q, size_t from, size_t to)
{
    real gradient[GRADIENT_NORM_BLOCK];
    struct gradient_norm norm = { 0 };

    for (size_t count; from < to; from += count) {
        count = to - from < GRADIENT_NORM_BLOCK ? to - from : GRADIENT_NORM_BLOCK;
        if (!q->rows)
            gradient_of(q, from, count, gradient);
        if (!q->rows || gradient_of_rows(q, from, count, gradient))
            gradient_norm_add(&norm, gradient, count);
        else
            gradient_norm_add_zeros(&norm);
    }
    return gradient_norm_squares(&norm);
}

static size_t squares_of(struct square_source *q, int64_t step, real weight, size_t from, size_t to, double *squares)
{
    const struct optimizer *o = q->optimizer;
    struct gradient_norm_node nodes[GRADIENT_NORM_NODES];
    const struct segment *s = o->segments;
    size_t count;

    while (from >= s->to)
        s++;
    assert(s->from <= from && to <= s->to && !s->statistic);
    q->segment = s;
    q->rule = unclipped_step(o, step, weight);
    q->rule.decay = s->decay;
    count = gradient_norm_nodes(s->to - s->from, from - s->from, to - s->from, nodes);
    for (size_t i = 0; i < count; i++)
        squares[i] = squares_of_node(q, s->from + nodes[i].from, s->from + nodes[i].to);
    return count;
}

size_t optimizer_squares(const struct optimizer *o, int64_t step, const real *sum, real weight, size_t from, size_t to,
                         double *squares)
{
    struct square_source q = { .optimizer = o, .sum = { sum, from, to } };

    return squares_of(&q, step, weight, from, to, squares);
}

size_t optimizer_squares_of_rows(const struct optimizer *o, int64_t step, const struct row_gradient *sum, real weight,
                                 size_t from, size_t to, double *squares)
{
    struct square_source q = { .optimizer = o, .rows = sum };

    return squares_of(&q, step, weight, from, to, squares);
}

void optimizer_clip(struct optimizer *o, int64_t step, double norm)
{
    optimizer_clip_by(o, step, (real)gradient_norm_factor(norm, o->options.clip_norm));
    o->norm = norm;
}

void optimizer_clip_by(struct optimizer *o, int64_t step, real factor)
{
    o->clip = factor;
    o->measured = step;
}

real optimizer_clip_factor(const struct optimizer *o)
{
    return o->clip;
}

void optimizer_measure_rows(struct optimizer *o, int64_t step, const real *sum, const struct row_gradient *tables,
                            size_t count)
{
    const real weight = sum[o->parameters + o->statistics];
    size_t variables;
    const struct variable *v = network_variables(o->network, &variables);
    double squares = 0;

    if (!(o->options.clip_norm > 0))
        return;
    for (size_t i = 0; i < o->segment_count; i++) {
        const struct segment *s = &o->segments[i];
        double one = 0;
        size_t t = 0;

        while (t < count && network_exchange_place(o->network, &v[tables[t].variable]) != s->from)
            t++;
        if (s->statistic || s->from == s->to)
            continue;
        if (t < count)
            optimizer_squares_of_rows(o, step, &tables[t], weight, s->from, s->to, &one);
        else
            optimizer_squares(o, step, sum + s->from, weight, s->from, s->to, &one);
        squares += one;
    }
    optimizer_clip(o, step, sqrt(squares));
}

void optimizer_measure(struct optimizer *o, int64_t step, const real *sum)
{
    optimizer_measure_rows(o, step, sum, NULL, 0);
}

double optimizer_gradient_norm(const struct optimizer *o)
{
    return o->norm;
}

/* Elements [a, b) of a table, whose state begins at a: rows that have a gradient, as many at once as follow each
 * other. */
static void update_table(const struct optimizer *o, const struct optimizer_step *rule, const struct segment *s,
                         const struct part *sum, const struct optimizer_state *at, size_t a, size_t b)
{
    for (size_t from = a, row = row_start(s, a); from < b; row += s->row_width) {
        const size_t to = row < b ? row : b;
        struct optimizer_state rows;

        if (row < b && updates_row(s, row, sum))
            continue;
        if (from < to) {
            rows = state_at(at, from - a);
            optimizer_kind_rules[o->options.kind]->update(*rule, sum->values + (from - sum->from), rows.values,
                                                          rows.first, rows.second, to - from);
        }
        from = row + s->row_width;
    }
}

/* state: of elements from `from` on; NULL: the optimizer's own. */
static void update_range(const struct optimizer *o, int64_t step, const struct part *sum, real weight, size_t from,
                         size_t to, const struct optimizer_state *state)
{
    const double after = (double)(step + 1);
    struct optimizer_step rule = step_of(o, step, weight);

    for (size_t i = 0; i < o->segment_count; i++) {
        const struct segment *s = &o->segments[i];
        const size_t a = s->from > from ? s->from : from, b = s->to < to ? s->to : to;
        struct optimizer_state at;

        if (a >= b || s->frozen) /* slots of an earlier training move nothing either */
            continue;
        at = state ? state_at(state, a - from) : own_state(o, s, a);
        if (s->statistic) {
            update_statistics(o, step, rule.scale, s->debias, sum->values + (a - sum->from), &at, b - a);
        } else {
            rule.decay = s->decay;
            if (s->row_width)
                update_table(o, &rule, s, sum, &at, a, b);
            else
                optimizer_kind_rules[o->options.kind]->update(rule, sum->values + (a - sum->from), at.values, at.first,
                                                              at.second, b - a);
            update_averages(o, after, &at, b - a);
        }
    }
}

void optimizer_use_threads(struct optimizer *o, struct team *team, int threads)
{
    o->team = team;
    o->threads = threads;
}

/* An update that is made by several threads. */
struct shared_update {
    const struct optimizer *optimizer;
    int64_t step;
    const real *sum;
    struct extent range;
};

static void update_slice(void *context, int member)
{
    const struct shared_update *u = context;
    const struct optimizer *o = u->optimizer;
    const size_t end = o->parameters + o->statistics;
    struct extent x = { 0, 0 };

    if (member < o->threads)
        x = slice_extent(u->range, o->threads, member);
    update_range(o, u->step, &(struct part){ u->sum, 0, end }, u->sum[end], x.from, x.to, NULL);
}

void optimizer_apply(struct optimizer *o, int64_t step, const real *sum, size_t from, size_t to)
{
    const size_t end = o->parameters + o->statistics;

    if (o->team && to - from >= SHARED_ELEMENTS && optimizer_cuts_rows(o)) {
        const size_t most = to < end ? to : end;

        team_run(o->team, update_slice, NULL, &(struct shared_update){ o, step, sum, { from, most } });
        return;
    }
    update_range(o, step, &(struct part){ sum, 0, end }, sum[end], from, to, NULL);
}

void optimizer_apply_to(const struct optimizer *o, int64_t step, const real *sum, real weight, size_t from, size_t to,
                        const struct optimizer_state *state)
{
    update_range(o, step, &(struct part){ sum, from, to }, weight, from, to, state);
}

/* Elements [from, to) of a table, which have no gradient. */
static void update_untouched(const struct optimizer_rule *r, const struct optimizer_step *s,
                             const struct optimizer_state *table, size_t from, size_t to)
{
    static const real zeros[GRADIENT_NORM_BLOCK];

    for (size_t count; r->all_rows && from < to; from += count) {
        const struct optimizer_state at = state_at(table, from);

        count = to - from < GRADIENT_NORM_BLOCK ? to - from : GRADIENT_NORM_BLOCK;
        r->update(*s, zeros, at.values, at.first, at.second, count);
    }
}

void optimizer_apply_rows(struct optimizer *o, int64_t step, const struct row_gradient *sum, real weight)
{
    const struct optimizer_rule *r = optimizer_kind_rules[o->options.kind];
    size_t count, done = 0;
    const struct variable *v = &network_variables(o->network, &count)[sum->variable];
    struct optimizer_step s = step_of(o, step, weight);
    const struct optimizer_state own = { network_parameters(o->network), o->slot1, o->slot2, o->averages };
    const struct optimizer_state table = state_at(&own, v->offset);

    assert(sum->variable < count);
    s.decay = (float)v->decay;
    for (size_t i = 0; i < sum->count; i++) {
        const size_t row = (size_t)sum->rows[i] * sum->width;
        const struct optimizer_state at = state_at(&table, row);

        if (!r->all_rows && !has_gradient(sum->values + i * sum->width, sum->width))
            continue;
        update_untouched(r, &s, &table, done, row);
        r->update(s, sum->values + i * sum->width, at.values, at.first, at.second, sum->width);
        done = row + sum->width;
    }
    update_untouched(r, &s, &table, done, v->count);
    update_averages(o, (double)(step + 1), &table, v->count);
}

int optimizer_cuts_rows(const struct optimizer *o)
{
    for (size_t i = 0; i < o->segment_count; i++)
        if (o->segments[i].row_width && (o->segments[i].decay > 0 || !optimizer_kind_rules[o->options.kind]->still))
            return 0;
    return 1;
}

const struct optimizer_options *optimizer_options_of(const struct optimizer *o)
{
    return &o->options;
}

struct network *optimizer_network(const struct optimizer *o)
{
    return o->network;
}

struct optimizer_array optimizer_array(struct optimizer *o, enum optimizer_array_kind kind)
{
    struct optimizer_array a = { NULL, o->parameters, 0 };

    switch (kind) {
    case ARRAY_WEIGHTS: a.values = network_parameters(o->network); break;
    case ARRAY_SLOT_1: a.values = o->slot1; break;
    case ARRAY_SLOT_2: a.values = o->slot2; break;
    case ARRAY_AVERAGES: a.values = o->averages; break;
    case ARRAY_STATISTICS:
    case ARRAY_BIASED:
        a.values = kind == ARRAY_BIASED ? o->biased : network_statistics(o->network);
        a.count = o->statistics;
        a.base = o->parameters;
        break;
    case ARRAY_KINDS: break;
    }
    if (!a.values)
        a.count = 0;
    return a;
}

void optimizer_move(struct optimizer *o, real *const to[ARRAY_KINDS])
{
    real **const own[ARRAY_KINDS] = {
        [ARRAY_SLOT_1] = &o->slot1,
        [ARRAY_SLOT_2] = &o->slot2,
        [ARRAY_AVERAGES] = &o->averages,
        [ARRAY_BIASED] = &o->biased,
    };

    for (int k = 0; k < ARRAY_KINDS; k++) {
        const struct optimizer_array a = optimizer_array(o, (enum optimizer_array_kind)k);

        if (!own[k] || !*own[k])
            continue;
        memcpy(to[k], a.values, a.count * sizeof *a.values);
        *own[k] = to[k];
    }
    network_move(o->network, to[ARRAY_WEIGHTS], to[ARRAY_STATISTICS]);
    free(o->memory);
    o->memory = NULL;
}

struct optimizer_counters *optimizer_counters(struct optimizer *o)
{
    return &o->counters;
}

size_t optimizer_copy(struct optimizer *to, struct optimizer *from)
{
    size_t count, copies = 0;
    const struct variable *v = network_variables(from->network, &count);

    for (int k = 0; k < ARRAY_KINDS; k++) {
        const struct optimizer_array source = optimizer_array(from, (enum optimizer_array_kind)k);
        const struct optimizer_array target = optimizer_array(to, (enum optimizer_array_kind)k);

        for (size_t i = 0; i < count; i++) {
            const size_t place = network_exchange_place(from->network, &v[i]), at = place - source.base;

            if (place < source.base || at >= source.count)
                continue;
            memcpy(target.values + at, source.values + at, v[i].count * sizeof *target.values);
            copies++;
        }
    }
    to->counters = from->counters;
    return copies;
}
