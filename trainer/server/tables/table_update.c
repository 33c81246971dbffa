#include "trainer/server/tables/table_update.h"

#include "trainer/collective/row_sum.h"
#include "trainer/update/gradient_norm.h"

#include <stdlib.h>

struct table_update {
    struct optimizer *optimizer;
    const struct table_parts *parts;
    const struct reduction *reduction;
    enum sparse_reduce rule;
    struct row_sum *sums;        /* (tables) */
    struct row_gradient *column; /* (vectors) of one table */
    struct row_gradient *added;  /* (tables) the sums, to be measured */
    const real **weights;        /* (vectors) */
    real weight;                 /* of what was added */
};

int table_update_new(struct table_update **out, struct optimizer *o, const struct table_parts *parts,
                     const struct reduction *reduction, enum sparse_reduce rule, size_t most, struct error *e)
{
    struct table_update *u = calloc(1, sizeof *u);
    const size_t vectors = (size_t)reduction->count;
    int rc = ERR_NOMEM;

    if (u) {
        *u = (struct table_update){ .optimizer = o,
                                    .parts = parts,
                                    .reduction = reduction,
                                    .rule = rule,
                                    .sums = calloc(parts->table_count + 1, sizeof *u->sums),
                                    .column = calloc(vectors + 1, sizeof *u->column),
                                    .added = calloc(parts->table_count + 1, sizeof *u->added),
                                    .weights = calloc(vectors + 1, sizeof *u->weights) };
        rc = u->sums && u->column && u->added && u->weights ? OK : ERR_NOMEM;
    }
    if (rc < 0)
        error_memory(e, NULL, "for the updates of %zu tables", parts->table_count);
    for (size_t t = 0; t < parts->table_count && rc == OK; t++) {
        const struct table *table = &parts->tables[t];

        rc = row_sum_init(&u->sums[t], table->variable, table->width,
                          most < (size_t)table->rows ? most : (size_t)table->rows, vectors, e);
    }
    if (rc < 0) {
        table_update_free(u);
        return rc;
    }
    *out = u;
    return OK;
}

void table_update_free(struct table_update *u)
{
    if (!u)
        return;
    for (size_t t = 0; u->sums && t < u->parts->table_count; t++)
        row_sum_release(&u->sums[t]);
    free(u->sums);
    free(u->column);
    free(u->added);
    free(u->weights);
    free(u);
}

/* How many workers have this row in one of their vectors. */
static int touching(const struct table_update *u, size_t *next, int32_t row)
{
    const struct reduction *r = u->reduction;
    int workers = 0;

    for (int w = 0; w < r->workers; w++) {
        int has = 0;

        for (int v = r->first[w]; v < r->first[w + 1]; v++) {
            const struct row_gradient *g = &u->column[v];

            while (next[v] < g->count && g->rows[next[v]] < row)
                next[v]++;
            has |= next[v] < g->count && g->rows[next[v]] == row;
        }
        workers += has;
    }
    return workers;
}

/* Multiplies each row's sum, so that dividing by G gives the rule's mean. */
static void scale_rows(const struct table_update *u, struct row_sum *sum)
{
    for (int v = 0; v < u->reduction->count; v++)
        sum->next[v] = 0;
    for (size_t i = 0; i < sum->sum.count; i++) {
        const real factor = (real)((double)u->reduction->workers / touching(u, sum->next, sum->rows[i]));

        for (size_t k = 0; k < sum->sum.width; k++)
            sum->values[i * sum->sum.width + k] *= factor;
    }
}

void table_update_add(struct table_update *u, const struct row_gradient *gradients, const real *weights)
{
    const int vectors = u->reduction->count;

    for (int v = 0; v < vectors; v++)
        u->weights[v] = &weights[v];
    reduction_sum(u->reduction, &u->weight, u->weights, 0, 1);
    if (u->rule == SPARSE_SUM)
        u->weight /= (real)u->reduction->workers;
    for (size_t t = 0; t < u->parts->table_count; t++) {
        for (int v = 0; v < vectors; v++)
            u->column[v] = gradients[(size_t)v * u->parts->table_count + t];
        row_sum_add(&u->sums[t], u->column, u->reduction->nodes, vectors);
        if (u->rule == SPARSE_MEAN_TOUCHING)
            scale_rows(u, &u->sums[t]);
    }
}

void table_update_squares(const struct table_update *u, int64_t step, const struct gradient_parts *parts, int server,
                          double *sums)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct gradient_part *part = &parts->parts[i];

        for (size_t t = 0; t < u->parts->table_count && part->holder == server; t++)
            if (u->parts->tables[t].variable == part->variable)
                optimizer_squares_of_rows(u->optimizer, step, &u->sums[t].sum, u->weight, part->from, part->to,
                                          sums + part->at);
    }
}

void table_update_measure(const struct table_update *u, int64_t step, const real *sum)
{
    for (size_t t = 0; t < u->parts->table_count; t++)
        u->added[t] = u->sums[t].sum;
    optimizer_measure_rows(u->optimizer, step, sum, u->added, u->parts->table_count);
}

void table_update_apply(struct table_update *u, int64_t step)
{
    for (size_t t = 0; t < u->parts->table_count; t++)
        optimizer_apply_rows(u->optimizer, step, &u->sums[t].sum, u->weight);
}

void table_update_alone(struct table_update *u, int64_t step, const struct row_gradient *gradients, real weight)
{
    for (size_t t = 0; t < u->parts->table_count; t++)
        optimizer_apply_rows(u->optimizer, step, &gradients[t], weight);
}
