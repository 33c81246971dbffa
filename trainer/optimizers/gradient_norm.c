#include "trainer/optimizers/gradient_norm.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As a binary counter carries. */
static void add_block(struct gradient_norm *g, double sum)
{
    uint64_t bit = 0;

    for (; g->blocks >> bit & 1; bit++)
        sum = g->sums[bit] + sum;
    g->sums[bit] = sum;
    g->blocks++;
}

void gradient_norm_add(struct gradient_norm *g, const real *values, size_t count)
{
    double sums[GRADIENT_NORM_BLOCK];

    for (size_t i = 0; i < count; i++)
        sums[i] = (double)values[i] * (double)values[i];
    /* Neighbours, level by level; one that has none waits for the next level. */
    for (size_t left = count; left > 1; left = (left + 1) / 2) {
        for (size_t i = 0; i < left / 2; i++)
            sums[i] = sums[2 * i] + sums[2 * i + 1];
        if (left % 2)
            sums[left / 2] = sums[left - 1];
    }
    add_block(g, count ? sums[0] : 0);
}

void gradient_norm_add_zeros(struct gradient_norm *g)
{
    add_block(g, 0);
}

double gradient_norm_squares(const struct gradient_norm *g)
{
    double sum = 0;

    for (uint64_t bit = 0; bit < 64 && g->blocks >> bit; bit++)
        if (g->blocks >> bit & 1)
            sum = g->sums[bit] + sum;
    return sum;
}

double gradient_norm_factor(double norm, double limit)
{
    return limit / fmax(limit, norm);
}

/* Values of the largest node that begins at `from` and ends at `to` or before. */
static size_t largest_node(size_t count, size_t from, size_t to)
{
    size_t size = 1;

    while (from % (2 * size) == 0 && size < count && (from + 2 * size <= to || (to == count && from + size < count)))
        size *= 2;
    return from + size < to ? size : to - from;
}

size_t gradient_norm_nodes(size_t count, size_t from, size_t to, struct gradient_norm_node *nodes)
{
    size_t n = 0;

    for (size_t size; from < to; from += size, n++) {
        size = largest_node(count, from, to);
        if (nodes)
            nodes[n] = (struct gradient_norm_node){ from, from + size };
    }
    return n;
}

/* 1: the two are the halves of a node. */
static int are_halves(size_t count, struct gradient_norm_node left, struct gradient_norm_node right)
{
    const size_t size = left.to - left.from, end = left.from + 2 * size;

    return !(size & (size - 1)) && left.from % (2 * size) == 0 && right.to == (end < count ? end : count);
}

void gradient_norm_join(struct gradient_norm_tree *t, size_t count, struct gradient_norm_node node, double sum)
{
    assert(t->depth < sizeof t->sums / sizeof *t->sums && node.from == (t->depth ? t->nodes[t->depth - 1].to : 0));
    t->nodes[t->depth] = node;
    t->sums[t->depth++] = sum;
    while (t->depth > 1 && are_halves(count, t->nodes[t->depth - 2], t->nodes[t->depth - 1])) {
        t->depth--;
        t->nodes[t->depth - 1].to = t->nodes[t->depth].to;
        t->sums[t->depth - 1] += t->sums[t->depth];
    }
}

double gradient_norm_whole(const struct gradient_norm_tree *t)
{
    assert(t->depth <= 1);
    return t->depth ? t->sums[0] : 0;
}

/* ---- of several holders ----------------------------------------------------------------------------------------- */

static int lower_part_first(const void *a, const void *b)
{
    const struct gradient_part *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

static const struct variable *variable_of(const struct gradient_parts *p, const struct gradient_part *part)
{
    size_t count;

    return &network_variables(p->network, &count)[part->variable];
}

/* The nodes of elements [from, to) of its variable, of which they are part. */
static size_t nodes_of(const struct gradient_parts *p, const struct gradient_part *part,
                       struct gradient_norm_node *nodes)
{
    const struct variable *v = variable_of(p, part);
    const size_t first = network_exchange_place(p->network, v);

    return gradient_norm_nodes(v->count, part->from - first, part->to - first, nodes);
}

/* Cuts what is held at the limits of variables. Returns how many parts that makes; parts NULL: only that. */
static size_t cut_at_variables(const struct network *n, const struct gradient_part *held, size_t count,
                               struct gradient_part *parts)
{
    size_t variables, made = 0;
    const struct variable *v = network_variables(n, &variables);

    for (size_t i = 0; i < variables; i++) {
        const size_t first = network_exchange_place(n, &v[i]), end = first + v[i].count;

        for (size_t k = 0; k < count && v[i].kind == VARIABLE_WEIGHT; k++) {
            const size_t from = held[k].from > first ? held[k].from : first, to = held[k].to < end ? held[k].to : end;

            if (from < to && parts)
                parts[made] = (struct gradient_part){ .from = from, .to = to, .holder = held[k].holder, .variable = i };
            made += from < to;
        }
    }
    return made;
}

int gradient_parts_init(struct gradient_parts *out, const struct network *n, const struct gradient_part *held,
                        size_t count, int holders, struct error *e)
{
    const size_t parts = cut_at_variables(n, held, count, NULL);

    *out = (struct gradient_parts){ .network = n,
                                    .parts = calloc(parts + 1, sizeof *out->parts),
                                    .count = parts,
                                    .sums = calloc((size_t)holders, sizeof *out->sums),
                                    .holders = holders };
    if (!out->parts || !out->sums) {
        gradient_parts_release(out);
        return error_memory(e, NULL, "for the %zu parts of a gradient", parts);
    }
    cut_at_variables(n, held, count, out->parts);
    qsort(out->parts, parts, sizeof *out->parts, lower_part_first);
    for (size_t i = 0; i < parts; i++) {
        struct gradient_part *part = &out->parts[i];

        part->at = out->sums[part->holder];
        part->count = nodes_of(out, part, NULL);
        out->sums[part->holder] += part->count;
    }
    return OK;
}

void gradient_parts_release(struct gradient_parts *p)
{
    free(p->parts);
    free(p->sums);
    memset(p, 0, sizeof *p);
}

double gradient_parts_norm(const struct gradient_parts *p, const double *const *sums)
{
    double squares = 0;

    for (size_t i = 0; i < p->count;) {
        const size_t variable = p->parts[i].variable;
        struct gradient_norm_tree tree = { 0 };

        for (; i < p->count && p->parts[i].variable == variable; i++) {
            const struct gradient_part *part = &p->parts[i];
            struct gradient_norm_node nodes[GRADIENT_NORM_NODES];

            nodes_of(p, part, nodes);
            for (size_t k = 0; k < part->count; k++)
                gradient_norm_join(&tree, variable_of(p, part)->count, nodes[k], sums[part->holder][part->at + k]);
        }
        squares += gradient_norm_whole(&tree);
    }
    return sqrt(squares);
}
