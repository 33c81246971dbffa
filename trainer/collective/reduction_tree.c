#include "trainer/collective/reduction_tree.h"

#include "trainer/collective/addition.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 512 }; /* elements added at once, so that what is between stays in the first cache */

int reduction_tree_first(int leaves, int n, int r)
{
    return (int)((int64_t)leaves * r / n);
}

int reduction_tree_left(int count)
{
    int left = 1;

    while (left < count - left)
        left *= 2;
    return left;
}

/* Appends the nodes of `node` that are whole within [from, to) to out, which has `used`; returns how many there are. */
static int cover(struct tree_node node, int from, int to, struct tree_node *out, int used)
{
    const int end = node.first + node.count;
    int left;

    if (to <= node.first || end <= from)
        return used;
    if (from <= node.first && end <= to) {
        if (out)
            out[used] = node;
        return used + 1;
    }
    left = reduction_tree_left(node.count);
    used = cover((struct tree_node){ node.first, left }, from, to, out, used);
    return cover((struct tree_node){ node.first + left, node.count - left }, from, to, out, used);
}

int reduction_tree_nodes(int leaves, int from, int to, struct tree_node *out)
{
    return from < to ? cover((struct tree_node){ 0, leaves }, from, to, out, 0) : 0;
}

/* out (n) = elements [at, at + n) of the parts' node; n <= BLOCK. */
static void sum_block(real *out, const real *const *parts, const struct tree_node *nodes, int count, size_t at,
                      size_t n)
{
    const int first = nodes[0].first, end = nodes[count - 1].first + nodes[count - 1].count;
    real right[BLOCK];
    int middle, k = 1;

    if (count == 1) {
        if (out != parts[0] + at)
            memcpy(out, parts[0] + at, n * sizeof *out);
        return;
    }
    if (count == 2) {
        addition_both(out, parts[0] + at, parts[1] + at, n);
        return;
    }
    for (middle = first + reduction_tree_left(end - first); nodes[k].first < middle; k++)
        ;
    sum_block(out, parts, nodes, k, at, n);
    if (count - k == 1) {
        addition_both(out, out, parts[k] + at, n);
        return;
    }
    sum_block(right, parts + k, nodes + k, count - k, at, n);
    addition_both(out, out, right, n);
}

void reduction_tree_sum(real *out, const real *const *parts, const struct tree_node *nodes, int count, size_t from,
                        size_t to)
{
    for (size_t at = from; at < to; at += BLOCK)
        sum_block(out + at, parts, nodes, count, at, to - at < BLOCK ? to - at : BLOCK);
}
