#include "trainer/update/gradient_norm.h"

#include <assert.h>
#include <math.h>

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
