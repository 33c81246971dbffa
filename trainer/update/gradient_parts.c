#include "trainer/update/gradient_parts.h"

#include "trainer/update/gradient_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
