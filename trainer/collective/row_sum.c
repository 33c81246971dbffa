#include "trainer/collective/row_sum.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 }; /* reals of a row added at once */

int row_sum_init(struct row_sum *s, size_t variable, size_t width, size_t room, size_t parts, struct error *e)
{
    *s = (struct row_sum){ .room = room, .parts_room = parts };
    s->rows = malloc((room + 1) * sizeof *s->rows);
    s->values = malloc((room * width + 1) * sizeof *s->values);
    s->next = malloc((parts + 1) * sizeof *s->next);
    if (!s->rows || !s->values || !s->next) {
        row_sum_release(s);
        return error_memory(e, NULL, "for the sums of %zu rows", room);
    }
    s->sum = (struct row_gradient){ variable, 0, width, s->rows, s->values };
    return OK;
}

void row_sum_release(struct row_sum *s)
{
    free(s->rows);
    free(s->values);
    free(s->next);
    *s = (struct row_sum){ 0 };
}

void row_sum_copy(struct row_sum *s, const struct row_gradient *of)
{
    assert(of->count <= s->room && of->width == s->sum.width);
    memcpy(s->rows, of->rows, of->count * sizeof *s->rows);
    memcpy(s->values, of->values, of->count * of->width * sizeof *s->values);
    s->sum.count = of->count;
}

/* What is added for one row: the parts, how far each has been read, and which row it is. */
struct sources {
    const struct row_gradient *parts;
    const struct tree_node *nodes;
    const size_t *next;
    int32_t row;
};

/* Elements [at, at + n) of the row in part k; NULL: it does not have the row. */
static const real *values_in(const struct sources *s, int k, size_t at)
{
    const struct row_gradient *p = &s->parts[k];

    return s->next[k] < p->count && p->rows[s->next[k]] == s->row ? p->values + s->next[k] * p->width + at : NULL;
}

static void add(real *restrict out, const real *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] += b[i];
}

/* out (n) = the sum of parts [first, end) from element `at` of the row on, n <= BLOCK. 0: none of them has the row, and
 * out is unchanged. */
static int add_block(const struct sources *s, int first, int end, size_t at, size_t n, real *out)
{
    const real *values;
    real right[BLOCK];
    int leaf, middle = end - 1, some;

    if (end - first == 1) {
        if ((values = values_in(s, first, at)))
            memcpy(out, values, n * sizeof *out);
        return values != NULL;
    }
    if (s->nodes) {
        leaf = s->nodes[first].first;
        leaf += reduction_tree_left(s->nodes[end - 1].first + s->nodes[end - 1].count - leaf);
        for (middle = first + 1; s->nodes[middle].first < leaf; middle++)
            ;
    }
    some = add_block(s, first, middle, at, n, out);
    if (!some)
        return add_block(s, middle, end, at, n, out);
    if (add_block(s, middle, end, at, n, right))
        add(out, right, n);
    return 1;
}

/* In order, without recursion: there may be many parts. */
static void add_in_order(const struct sources *s, int count, size_t width, real *out)
{
    int some = 0;

    for (int k = 0; k < count; k++) {
        const real *values = values_in(s, k, 0);

        if (values && some)
            add(out, values, width);
        else if (values)
            memcpy(out, values, width * sizeof *out);
        some |= values != NULL;
    }
}

void row_sum_add(struct row_sum *s, const struct row_gradient *parts, const struct tree_node *nodes, int count)
{
    struct sources from = { parts, nodes, s->next, 0 };
    const size_t width = s->sum.width;

    assert((size_t)count <= s->parts_room);
    s->sum.count = 0;
    if (count > 0)
        memset(s->next, 0, (size_t)count * sizeof *s->next);
    for (;;) {
        int32_t row = INT32_MAX;
        int some = 0;

        for (int k = 0; k < count; k++)
            if (s->next[k] < parts[k].count && parts[k].rows[s->next[k]] <= row) {
                row = parts[k].rows[s->next[k]];
                some = 1;
            }
        if (!some)
            return;
        assert(s->sum.count < s->room);
        from.row = row;
        if (!nodes)
            add_in_order(&from, count, width, s->values + s->sum.count * width);
        for (size_t at = 0; nodes && at < width; at += BLOCK)
            add_block(&from, 0, count, at, width - at < BLOCK ? width - at : BLOCK,
                      s->values + s->sum.count * width + at);
        s->rows[s->sum.count++] = row;
        for (int k = 0; k < count; k++)
            s->next[k] += s->next[k] < parts[k].count && parts[k].rows[s->next[k]] == row;
    }
}
