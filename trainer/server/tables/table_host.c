#include "trainer/server/tables/table_host.h"

#include "trainer/collective/places.h"
#include "trainer/collective/row_sum.h"
#include "trainer/collective/tally.h"
#include "trainer/server/tables/row_packet.h"
#include "trainer/server/tables/table_protocol.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* another worker of the host, as the speaker sees it; for the others: the speaker */
struct table_member {
    struct message in, out, second_out; /* second_out: sums, while values may be on their way */
    char *names, *values, *sums;
    const int32_t *ids; /* in names */
    size_t count, room, most, vectors;
    int worker;
};

struct table_host {
    struct table_setup setup;
    const struct table_parts *parts;
    int worker, group;
    size_t others; /* of the speaker: all others; else 1 */
    struct table_member *members;
    size_t most;                       /* rows of one worker's batch */
    int32_t *ids;                      /* (rows of all) for merging */
    size_t own, sources;               /* vectors: of the speaker; of all */
    struct tree_node *nodes;           /* (sources) NULL without micro-shards */
    struct row_gradient *all;          /* (sources, tables) */
    real *all_weights;                 /* (sources) */
    size_t count;                      /* sums */
    struct row_sum *sums;              /* (count, tables) */
    struct row_gradient *column, *out; /* (sources), (count, tables) */
    const real **pieces;               /* (sources) */
    real *weights;                     /* (count) */
};

int table_host_speaks(const struct table_host *h)
{
    return h->worker == h->setup.groups->first[h->group];
}

/* The others give the speaker time to say whom it waits for itself, unless it is stopped. */
static int host_wait(struct table_host *h, struct table_member *m, struct message *message, int64_t step,
                     const char *what, struct error *e)
{
    const enum phase before = phase_clock_enter(h->setup.clock, PHASE_WAITING);
    const double deadline = world_deadline(h->setup.world);
    double longer = places_precedence(deadline, table_host_speaks(h) ? 0 : 2);
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc;

    patience_init(&p, h->setup.world, deadline);
    while ((rc = message_done(h->setup.world, message, e)) == 0) {
        if (patience_pause(&p))
            continue;
        if (longer > 0 && !world_stands(h->setup.world, m->worker)) {
            p.limit += longer;
            longer = 0;
            continue;
        }
        world_name(h->setup.world, m->worker, name, sizeof name);
        if ((rc = patience_over(&p, e, "at step %" PRId64 " for %s, to %s", step, name, what)) < 0)
            return rc;
    }
    phase_clock_enter(h->setup.clock, before);
    return rc < 0 ? rc : OK;
}

static int check_step(const struct table_member *m, const struct row_packet_head *head, int64_t step, struct error *e)
{
    if (head->step == step)
        return OK;
    return error_set(e, ERR_CORRUPT, "rank %d sends rows of step %" PRId64 " at step %" PRId64, m->worker, head->step,
                     step);
}

/* ---- the rows of a batch ----------------------------------------------------------------------------------------- */

static size_t merge(struct table_host *h, int32_t *ids, size_t count, const struct table_member *m)
{
    size_t i = 0, k = 0, n = 0;

    while (i < count || k < m->count) {
        const int own = k == m->count || (i < count && ids[i] <= m->ids[k]);
        const int32_t id = own ? ids[i] : m->ids[k];

        i += own;
        k += k < m->count && m->ids[k] == id;
        h->ids[n++] = id;
    }
    memcpy(ids, h->ids, n * sizeof *ids);
    return n;
}

int table_host_gather(struct table_host *h, int64_t step, int32_t *ids, size_t *count, struct error *e)
{
    const size_t room = row_packet_names_size(h->most);
    struct row_packet_head head;
    int rc = OK;

    for (size_t k = 0; k < h->others && rc == OK; k++)
        rc = world_receive(h->setup.world, h->members[k].worker, table_tag(&h->setup, TAG_HOST_NAMES),
                           h->members[k].names, room, &h->members[k].in, e);
    for (size_t k = 0; k < h->others && rc == OK; k++) {
        struct table_member *m = &h->members[k];

        if ((rc = host_wait(h, m, &m->in, step, "say which rows it needs", e)) == OK &&
            (rc = row_packet_get_names(m->names, room, h->parts, -1, &head, &m->ids, e)) == OK)
            rc = check_step(m, &head, step, e);
        m->count = rc == OK ? (size_t)head.count : 0;
        *count = merge(h, ids, *count, m);
    }
    return rc;
}

int table_host_hand_out(struct table_host *h, struct error *e)
{
    const real *parameters = network_parameters(optimizer_network(h->setup.optimizer));
    int rc = OK;

    for (size_t k = 0; k < h->others && rc == OK; k++) {
        struct table_member *m = &h->members[k];
        const struct row_packet_head head = { .count = (int32_t)m->count };
        size_t reals;

        if ((rc = host_wait(h, m, &m->out, 0, "take rows", e)) < 0)
            return rc;
        memcpy(m->values, &head, sizeof head);
        reals = row_packet_take_values(h->parts, m->ids, m->count, parameters,
                                       (real *)(void *)(m->values + sizeof head));
        rc = world_send(h->setup.world, m->worker, table_tag(&h->setup, TAG_HOST_VALUES), m->values,
                        sizeof head + reals * sizeof(real), &m->out, e);
    }
    return rc;
}

int table_host_fetch(struct table_host *h, int64_t step, const int32_t *ids, size_t count, struct error *e)
{
    struct table_member *m = &h->members[0];
    const struct row_packet_head head = { .step = step, .count = (int32_t)count };
    int rc = host_wait(h, m, &m->out, step, "take the names of rows", e);

    if (rc == OK)
        rc = world_receive(h->setup.world, m->worker, table_tag(&h->setup, TAG_HOST_VALUES), m->values,
                           row_packet_values_size(h->parts, ids, count), &m->in, e);
    if (rc == OK)
        rc = world_send(h->setup.world, m->worker, table_tag(&h->setup, TAG_HOST_NAMES), m->names,
                        row_packet_put_names(m->names, &head, ids), &m->out, e);
    if (rc == OK)
        rc = host_wait(h, m, &m->in, step, "hand out rows", e);
    if (rc == OK)
        row_packet_give_values(h->parts, ids, count, network_parameters(optimizer_network(h->setup.optimizer)),
                               (const real *)(const void *)(m->values + sizeof head));
    return rc;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

int table_host_push(struct table_host *h, int64_t step, const struct row_gradient *own, const real *own_weights,
                    struct error *e)
{
    struct table_member *m = &h->members[0];
    const struct row_packet_head head = { step, own ? (int32_t)h->own : 0, own ? 0 : TALLY_LEFT };
    int rc = host_wait(h, m, &m->second_out, step, "take sums", e);

    if (rc < 0)
        return rc;
    memcpy(m->sums, &head, sizeof head);
    return world_send(h->setup.world, m->worker, table_tag(&h->setup, TAG_HOST_SUMS), m->sums,
                      own ? row_packet_put_sums(m->sums, &head, h->parts, -1, own, own_weights) : sizeof head,
                      &m->second_out, e);
}

/* The vectors of one of the others, from number `first` on. *left: it has none. */
static int take_sums(struct table_host *h, struct table_member *m, int64_t step, size_t first, int *left,
                     struct error *e)
{
    struct row_packet_head head;
    int rc = host_wait(h, m, &m->in, step, "send the gradients of its rows", e);

    if (rc < 0)
        return rc;
    memcpy(&head, m->sums, sizeof head);
    if ((rc = check_step(m, &head, step, e)) < 0)
        return rc;
    if (head.flags & TALLY_LEFT) {
        *left = 1;
        return OK;
    }
    return row_packet_get_sums(m->sums, m->room, h->parts, -1, m->vectors, m->most, &head,
                               h->all + first * h->parts->table_count, h->all_weights + first, e);
}

/* Sum number i is of the vectors [from, from + parts). */
static void add_vectors(struct table_host *h, size_t i, size_t from, int parts)
{
    const size_t tables = h->parts->table_count;
    const struct reduction of = { .workers = 1,
                                  .micro_shards = h->setup.reduction->micro_shards,
                                  .count = parts,
                                  .nodes = h->nodes ? h->nodes + from : NULL };

    for (size_t t = 0; t < tables; t++) {
        struct row_sum *sum = &h->sums[i * tables + t];

        for (int v = 0; v < parts; v++)
            h->column[v] = h->all[(from + (size_t)v) * tables + t];
        row_sum_add(sum, h->column, of.nodes, parts);
        h->out[i * tables + t] = sum->sum;
    }
    for (int v = 0; v < parts; v++)
        h->pieces[v] = &h->all_weights[from + (size_t)v];
    reduction_sum(&of, &h->weights[i], h->pieces, 0, 1);
}

int table_host_add(struct table_host *h, int64_t step, const struct row_gradient *own, const real *own_weights,
                   const struct row_gradient **gradients, const real **weights, int *left, struct error *e)
{
    const int *parts = h->setup.groups->parts + h->setup.groups->vectors[h->group];
    size_t first = h->own, from = 0;
    int rc = OK;

    *left = 0;
    for (size_t k = 0; k < h->others && rc == OK; k++)
        rc = world_receive(h->setup.world, h->members[k].worker, table_tag(&h->setup, TAG_HOST_SUMS),
                           h->members[k].sums, h->members[k].room, &h->members[k].in, e);
    for (size_t k = 0; k < h->others && rc == OK; k++) {
        rc = take_sums(h, &h->members[k], step, first, left, e);
        first += h->members[k].vectors;
    }
    if (rc < 0 || *left || !own)
        return rc;
    memcpy(h->all, own, h->own * h->parts->table_count * sizeof *own);
    memcpy(h->all_weights, own_weights, h->own * sizeof *own_weights);
    for (size_t i = 0; i < h->count; i++) {
        add_vectors(h, i, from, parts[i]);
        from += (size_t)parts[i];
    }
    *gradients = h->out;
    *weights = h->weights;
    return OK;
}

int table_host_finish(struct table_host *h, struct error *e)
{
    int rc = OK;

    for (size_t k = 0; k < h->others && rc == OK; k++)
        if ((rc = host_wait(h, &h->members[k], &h->members[k].out, 0, "take rows", e)) == OK)
            rc = host_wait(h, &h->members[k], &h->members[k].second_out, 0, "take sums", e);
    return rc;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* with: whose vectors travel between this worker and that one. */
static int member_new(struct table_host *h, struct table_member *m, int worker, int with, struct error *e)
{
    m->worker = worker;
    m->vectors = (size_t)reduction_vectors(h->setup.reduction, with);
    m->most = h->most * m->vectors;
    m->room = row_packet_sums_room(h->parts, m->most, m->vectors);
    m->names = malloc(row_packet_names_size(h->most));
    m->values = malloc(row_packet_values_room(h->parts, h->most));
    m->sums = malloc(m->room);
    if (!m->names || !m->values || !m->sums)
        return error_memory(e, NULL, "for the rows of a host's workers");
    if (m->room > INT_MAX)
        return error_set(e, ERR_ARG, "a step's rows take up to %zu bytes in one message; use a smaller batch", m->room);
    return OK;
}

/* What the speaker adds: the vectors of all, in the order of workers, and the room for their sums. */
static int speaker_new(struct table_host *h, struct error *e)
{
    const struct table_groups *g = h->setup.groups;
    const struct reduction *r = h->setup.reduction;
    const size_t tables = h->parts->table_count, workers = (size_t)g->size[h->group];
    const int *parts = g->parts + g->vectors[h->group];
    size_t v = 0;
    int rc = OK;

    h->count = (size_t)table_groups_vectors(g, h->group);
    for (int w = h->worker; w >= 0; w = table_groups_next(g, w))
        h->sources += (size_t)reduction_vectors(r, w);
    h->nodes = r->nodes ? calloc(h->sources, sizeof *h->nodes) : NULL;
    h->all = calloc(h->sources * tables, sizeof *h->all);
    h->all_weights = calloc(h->sources, sizeof *h->all_weights);
    h->column = calloc(h->sources, sizeof *h->column);
    h->pieces = calloc(h->sources, sizeof *h->pieces);
    h->sums = calloc(h->count * tables, sizeof *h->sums);
    h->out = calloc(h->count * tables, sizeof *h->out);
    h->weights = calloc(h->count, sizeof *h->weights);
    h->ids = calloc(h->most * workers + 1, sizeof *h->ids);
    if ((r->nodes && !h->nodes) || !h->all || !h->all_weights || !h->column || !h->pieces || !h->sums || !h->out ||
        !h->weights || !h->ids)
        return error_memory(e, NULL, "for the sums of a host's workers");
    for (int w = h->worker; w >= 0 && h->nodes; w = table_groups_next(g, w))
        for (int i = r->first[w]; i < r->first[w + 1]; i++)
            h->nodes[v++] = r->nodes[i];
    for (size_t i = 0; i < h->count * tables && rc == OK; i++) {
        const struct table *t = &h->parts->tables[i % tables];
        const size_t most = h->most * (size_t)parts[i / tables];

        rc = row_sum_init(&h->sums[i], t->variable, t->width, most < (size_t)t->rows ? most : (size_t)t->rows,
                          h->sources, e);
    }
    return rc;
}

int table_host_new(struct table_host **out, const struct table_setup *setup, const struct table_parts *parts,
                   int worker, struct error *e)
{
    struct table_host *h = calloc(1, sizeof *h);
    const struct table_groups *g = setup->groups;
    int rc = OK;

    if (!h)
        return error_memory(e, NULL, "for a host's workers");
    h->setup = *setup;
    h->parts = parts;
    h->worker = worker;
    h->group = g->of[worker];
    h->most = table_parts_rows_most(parts, optimizer_network(setup->optimizer), setup->samples);
    h->own = (size_t)reduction_vectors(setup->reduction, worker);
    h->others = table_host_speaks(h) ? (size_t)g->size[h->group] - 1 : 1;
    if (!(h->members = calloc(h->others, sizeof *h->members)))
        rc = error_memory(e, NULL, "for a host's workers");
    if (rc == OK && !table_host_speaks(h))
        rc = member_new(h, &h->members[0], g->first[h->group], worker, e);
    if (rc == OK && table_host_speaks(h))
        rc = speaker_new(h, e);
    for (size_t k = 0; k < h->others && rc == OK && table_host_speaks(h); k++) {
        const int other = table_groups_next(g, k ? h->members[k - 1].worker : worker);

        rc = member_new(h, &h->members[k], other, other, e);
    }
    if (rc < 0) {
        table_host_free(h);
        return rc;
    }
    *out = h;
    return OK;
}

void table_host_free(struct table_host *h)
{
    if (!h)
        return;
    for (size_t k = 0; h->members && k < h->others; k++) {
        free(h->members[k].names);
        free(h->members[k].values);
        free(h->members[k].sums);
    }
    for (size_t i = 0; h->sums && i < h->count * h->parts->table_count; i++)
        row_sum_release(&h->sums[i]);
    free(h->members);
    free(h->ids);
    free(h->nodes);
    free(h->all);
    free(h->all_weights);
    free(h->column);
    free(h->pieces);
    free(h->sums);
    free(h->out);
    free(h->weights);
    free(h);
}
