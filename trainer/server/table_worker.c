#include "trainer/server/table_worker.h"

#include "base/error.h"
#include "trainer/collective/places.h"
#include "trainer/collective/row_sum.h"
#include "trainer/collective/tally.h"
#include "trainer/server/row_packet.h"
#include "trainer/server/table_protocol.h"
#include "trainer/server/table_server.h"

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- table host -------------------------------------------------------------------------------------------------- */

/*
 * What the workers of one host do among themselves when they exchange rows with the servers together
 * (table_groups.h): by messages between them, their first worker, the speaker, collects the rows that they need, hands
 * the values out, and adds their sums. So what leaves the host is each row once. The messages are those of
 * row_packet.h. One thread. Errors: ERR_PEER, with a sentence that names the worker waited for.
 */

struct table_host;

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

/* 1: this worker is the speaker. */
static int table_host_speaks(const struct table_host *h)
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

/* The speaker: adds to ids (ascending, *count) those that the others need. It has room for the rows of all. */
static int table_host_gather(struct table_host *h, int64_t step, int32_t *ids, size_t *count, struct error *e)
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

/* The speaker: sends the others the values of their rows, which its network has. */
static int table_host_hand_out(struct table_host *h, struct error *e)
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

/* All others: fetches the values of these rows into the network. */
static int table_host_fetch(struct table_host *h, int64_t step, const int32_t *ids, size_t count, struct error *e)
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

/* All others: begins to send the sums of their vectors; NULL: has abandoned the step. */
static int table_host_push(struct table_host *h, int64_t step, const struct row_gradient *own, const real *own_weights,
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

/* The speaker: the sums of the group: of its own (vectors, tables) and the others'. *gradients (sums, tables) and
 * *weights (sums) are borrowed until the next call. *left: 1: one of them has abandoned the step, so there are none. */
static int table_host_add(struct table_host *h, int64_t step, const struct row_gradient *own, const real *own_weights,
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

/* After the last step: waits until all is sent. */
static int table_host_finish(struct table_host *h, struct error *e)
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

static void table_host_free(struct table_host *h);

/* For this worker of a group of several. setup is copied, its pointers and the tables of `parts` are borrowed.
 * ERR_NOMEM, ERR_ARG. On OK *out is yours, table_host_free() it. */
static int table_host_new(struct table_host **out, const struct table_setup *setup, const struct table_parts *parts,
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

static void table_host_free(struct table_host *h)
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

/* ---- table worker ------------------------------------------------------------------------------------------------ */

/* with one server */
struct serving {
    struct message names_out, values_in, sums_out, control;
    char *message, *names, *values, *sums; /* names: in the message, after the norm; values: as they come */
    int32_t *ids;                          /* (count) those that were asked for */
    size_t count;
    int64_t words[TABLE_WORDS];
};

struct table_worker {
    struct table_setup setup;
    int worker;
    struct table_parts parts;
    struct table_host *host; /* NULL: this worker asks and pushes for itself */
    size_t most, room;       /* rows of a batch of its group (table_groups.h); bytes of a message of sums */
    struct serving *servers;
    int32_t *tokens, *ids;          /* (tokens of a batch), (most) */
    struct row_gradient *gradients; /* (own vectors, tables) */
    real *weights;                  /* (own vectors) */
    uint32_t flags;
    int64_t step, pushes, bytes; /* bytes: sent in steps */
    double norm;                 /* of the last step's gradient */
    int fetched;                 /* rows for this step */
    int64_t foreseen;            /* as of so many updates rows are asked for, and not taken; -1: none are */
};

static int rank_of(const struct table_worker *w, int server)
{
    return w->setup.workers + server;
}

static size_t vectors_of(const struct table_worker *w)
{
    return (size_t)reduction_vectors(w->setup.reduction, w->worker);
}

/* How many sums a push has. */
static size_t sums_of(const struct table_worker *w)
{
    return (size_t)table_groups_vectors(w->setup.groups, w->setup.groups->of[w->worker]);
}

/* 1: another worker of the host asks and pushes for this one. */
static int is_spoken_for(const struct table_worker *w)
{
    return w->host && !table_host_speaks(w->host);
}

/* What a message of the step at `step` updates says it is of: alone: of so many pushes of this worker. */
static int64_t time_of(const struct table_worker *w, int64_t step)
{
    return w->setup.alone ? w->pushes : step;
}

/* Bytes of the norm before names. */
static size_t norm_bytes(const struct table_worker *w)
{
    return w->setup.clipping == TABLE_CLIPS_BY_WORKER ? sizeof w->norm : 0;
}

void table_worker_clip(struct table_worker *w, double norm)
{
    w->norm = norm;
}

const struct table_parts *table_worker_parts(const struct table_worker *w)
{
    return &w->parts;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static int late_sentence(const struct table_worker *w, const struct patience *p, int server, const char *what,
                         struct error *e)
{
    size_t count;
    const struct variable *v = network_variables(optimizer_network(w->setup.optimizer), &count);
    char name[WORLD_NAME_MAX];

    world_name(w->setup.world, rank_of(w, server), name, sizeof name);
    return patience_over(p, e, "at step %" PRId64 " for %s (server %d), to %s rows of %s%s", w->step, name, server,
                         what, v[w->parts.tables[0].variable].name,
                         w->parts.table_count > 1 ? " and other tables" : "");
}

/* Waits for a message with this server. Of the workers the first reports. */
static int wait_for(struct table_worker *w, struct message *m, int server, const char *what, struct error *e)
{
    const enum phase before = phase_clock_enter(w->setup.clock, PHASE_WAITING);
    const double deadline = world_deadline(w->setup.world);
    struct patience p;
    int rc;

    patience_init(&p, w->setup.world, deadline + places_precedence(deadline, w->worker > 0));
    while ((rc = message_done(w->setup.world, m, e)) == 0)
        if (!patience_pause(&p) && (rc = late_sentence(w, &p, server, what, e)) < 0)
            return rc;
    phase_clock_enter(w->setup.clock, before);
    return rc < 0 ? rc : OK;
}

/* ---- fetching ---------------------------------------------------------------------------------------------------- */

static int compare_tokens(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* The tokens of a batch, ascending, each once. Returns how many. */
static size_t tokens_of(const struct table_worker *w, const struct batch *batch, int32_t *tokens)
{
    const struct model *model = network_model(optimizer_network(w->setup.optimizer));
    const size_t count = (size_t)batch->count * (size_t)model->height * (size_t)model->width;
    size_t named = 0, distinct = 0;

    for (size_t i = 0; i < count; i++) {
        const int64_t token = field_integer(&batch->fields[FIELD_INPUT], i);

        if (token >= 0 && token < w->parts.rows)
            tokens[named++] = (int32_t)token;
    }
    qsort(tokens, named, sizeof *tokens, compare_tokens);
    for (size_t i = 0; i < named; i++)
        if (i == 0 || tokens[i] != tokens[i - 1])
            tokens[distinct++] = tokens[i];
    return distinct;
}

/* The ids of the rows that a batch uses, ascending: every table is looked up by the same tokens. */
static size_t rows_of(struct table_worker *w, const struct batch *batch)
{
    const size_t distinct = tokens_of(w, batch, w->tokens);
    size_t ids = 0;

    for (size_t t = 0; t < w->parts.table_count; t++)
        for (size_t i = 0; i < distinct && w->tokens[i] < w->parts.tables[t].rows; i++)
            w->ids[ids++] = w->parts.tables[t].first + w->tokens[i];
    return ids;
}

static int ask(struct table_worker *w, int server, int64_t step, size_t rows, struct error *e)
{
    struct serving *s = &w->servers[server];
    struct row_packet_head head = { .step = time_of(w, step) };
    size_t bytes;
    int rc;

    if ((rc = wait_for(w, &s->names_out, server, "send", e)) < 0)
        return rc;
    s->count = 0;
    for (size_t i = 0; i < rows; i++)
        if (table_parts_find(&w->parts, w->ids[i])->server == server)
            s->ids[s->count++] = w->ids[i];
    head.count = (int32_t)s->count;
    rc = world_receive(w->setup.world, rank_of(w, server), table_tag(&w->setup, TAG_VALUES), s->values,
                       row_packet_values_size(&w->parts, s->ids, s->count), &s->values_in, e);
    memcpy(s->message, &w->norm, norm_bytes(w));
    bytes = norm_bytes(w) + row_packet_put_names(s->names, &head, s->ids);
    w->bytes += (int64_t)bytes;
    if (rc == OK)
        rc = world_send(w->setup.world, rank_of(w, server), table_tag(&w->setup, TAG_NAMES), s->message, bytes,
                        &s->names_out, e);
    return rc;
}

/* The k-th server in this worker's order: if all workers began with the first server, its link would get more than it
 * carries while those of others are idle. */
static int in_turn(const struct table_worker *w, int k)
{
    return (w->worker + k) % w->setup.servers;
}

/* Asks all servers for those of the first `rows` of w->ids that they have. */
static int ask_all(struct table_worker *w, int64_t step, size_t rows, struct error *e)
{
    int rc = OK;

    for (int k = 0; k < w->setup.servers && rc == OK; k++)
        rc = ask(w, in_turn(w, k), step, rows, e);
    return rc;
}

/* Takes what the servers answer. */
static int take_rows(struct table_worker *w, struct error *e)
{
    int rc = OK;

    for (int j = 0; j < w->setup.servers && rc == OK; j++) {
        struct serving *s = &w->servers[j];
        struct row_packet_head head;

        if ((rc = wait_for(w, &s->values_in, j, "fetch", e)) < 0)
            return rc;
        memcpy(&head, s->values, sizeof head);
        row_packet_give_values(&w->parts, s->ids, s->count, network_parameters(optimizer_network(w->setup.optimizer)),
                               (const real *)(const void *)(s->values + sizeof head));
        w->flags |= head.flags;
    }
    return rc;
}

/* Fetches the first `rows` of w->ids, and if this worker speaks for others, theirs. */
static int fetch_rows(struct table_worker *w, int64_t step, size_t rows, struct error *e)
{
    int rc = OK;

    w->step = step;
    w->fetched = 1;
    if (is_spoken_for(w))
        return table_host_fetch(w->host, step, w->ids, rows, e);
    if (w->host)
        rc = table_host_gather(w->host, step, w->ids, &rows, e);
    if (rc == OK && (rc = ask_all(w, step, rows, e)) == OK)
        rc = take_rows(w, e);
    return rc == OK && w->host ? table_host_hand_out(w->host, e) : rc;
}

int table_worker_foresee(struct table_worker *w, int64_t step, const struct batch *batch, struct error *e)
{
    if (w->host || w->setup.alone || norm_bytes(w))
        return OK;
    w->foreseen = step;
    return ask_all(w, step, rows_of(w, batch), e);
}

void table_worker_forget(struct table_worker *w, int64_t step)
{
    for (int j = 0; j < w->setup.servers && w->foreseen > step; j++)
        message_cancel(w->setup.world, &w->servers[j].values_in);
    w->foreseen = -1;
}

int table_worker_fetch(struct table_worker *w, int64_t step, const struct batch *batch, struct error *e)
{
    if (w->foreseen == step) {
        w->step = step;
        w->fetched = 1;
        w->foreseen = -1;
        return take_rows(w, e);
    }
    return fetch_rows(w, step, rows_of(w, batch), e);
}

uint32_t table_worker_flags(struct table_worker *w)
{
    const uint32_t flags = w->flags;

    w->flags = 0;
    return flags;
}

/* ---- pushing ----------------------------------------------------------------------------------------------------- */

static int send_sums(struct table_worker *w, int64_t step, const struct row_gradient *gradients, const real *weights,
                     struct error *e)
{
    const struct row_packet_head head = { .step = time_of(w, step), .count = (int32_t)sums_of(w) };
    int rc = OK;

    for (int k = 0; k < w->setup.servers && rc == OK; k++) {
        const int j = in_turn(w, k);
        struct serving *s = &w->servers[j];
        size_t bytes;

        if ((rc = wait_for(w, &s->sums_out, j, "send", e)) < 0)
            return rc;
        bytes = row_packet_put_sums(s->sums, &head, &w->parts, j, gradients, weights);
        w->bytes += (int64_t)bytes;
        rc = world_send(w->setup.world, rank_of(w, j), table_tag(&w->setup, TAG_SUMS), s->sums, bytes, &s->sums_out, e);
    }
    w->pushes++;
    return rc;
}

/* Pushes w->gradients and w->weights, through the host if there are others. */
static int push_gradients(struct table_worker *w, int64_t step, struct error *e)
{
    const struct row_gradient *gradients = w->gradients;
    const real *weights = w->weights;
    int left = 0, rc = OK;

    w->fetched = 0;
    if (is_spoken_for(w))
        return table_host_push(w->host, step, gradients, weights, e);
    if (w->host)
        rc = table_host_add(w->host, step, w->gradients, w->weights, &gradients, &weights, &left, e);
    return rc == OK && !left ? send_sums(w, step, gradients, weights, e) : rc;
}

int table_worker_push(struct table_worker *w, int64_t step, const struct micro_shards *m, real *const *vectors,
                      struct error *e)
{
    const size_t last = network_exchange_count(optimizer_network(w->setup.optimizer)) - 1;

    for (size_t v = 0; v < vectors_of(w); v++) {
        w->weights[v] = vectors[v][last];
        for (size_t t = 0; t < w->parts.table_count; t++)
            w->gradients[v * w->parts.table_count + t] = *micro_shards_rows(m, (int)v, w->parts.tables[t].variable);
    }
    return push_gradients(w, step, e);
}

int table_worker_try(struct table_worker *w, int64_t step, const struct batch *batch, struct error *e)
{
    const real *parameters = network_parameters(optimizer_network(w->setup.optimizer));
    const int vectors = (int)vectors_of(w), samples = batch ? batch->count : 0;
    int32_t *tokens = w->tokens;
    int rc;

    if ((rc = fetch_rows(w, step, batch ? rows_of(w, batch) : 0, e)) < 0)
        return rc;
    for (int v = 0; v < vectors; v++) { /* the samples are about equally many for each, and the values are any */
        const int first = samples * v / vectors, end = samples * (v + 1) / vectors;
        const struct batch part = batch && end > first ? batch_part(batch, first, end - first) : (struct batch){ 0 };
        const size_t count = part.count ? tokens_of(w, &part, tokens) : 0;

        w->weights[v] = 1;
        for (size_t t = 0; t < w->parts.table_count; t++) {
            const struct table *table = &w->parts.tables[t];
            size_t rows = 0;

            while (rows < count && tokens[rows] < table->rows)
                rows++;
            w->gradients[(size_t)v * w->parts.table_count + t] = (struct row_gradient){ table->variable, rows,
                                                                                        table->width, tokens,
                                                                                        parameters + table->offset };
        }
        tokens += count;
    }
    return push_gradients(w, step, e);
}

int table_worker_leave(struct table_worker *w, int64_t step, struct error *e)
{
    const struct row_gradient *gradients;
    const real *weights;
    int left, rc = OK;

    /* Else no server waits for it: nobody asks for the state after this step. */
    const int awaited = w->setup.clipping == TABLE_CLIPS_BY_CALLER;

    if (!w->host && !awaited)
        return OK;
    if (!w->host) {
        for (size_t v = 0; v < vectors_of(w); v++) {
            w->weights[v] = 0;
            for (size_t t = 0; t < w->parts.table_count; t++)
                w->gradients[v * w->parts.table_count + t] = (struct row_gradient){
                    .variable = w->parts.tables[t].variable, .width = w->parts.tables[t].width
                };
        }
        return send_sums(w, step, w->gradients, w->weights, e);
    }
    if (!w->fetched)
        rc = fetch_rows(w, step, 0, e);
    w->fetched = 0;
    if (rc < 0)
        return rc;
    return is_spoken_for(w) ? table_host_push(w->host, step, NULL, NULL, e)
                            : table_host_add(w->host, step, NULL, NULL, &gradients, &weights, &left, e);
}

int64_t table_worker_bytes(const struct table_worker *w)
{
    return w->bytes;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* words: all but the norm */
static int control(struct table_worker *w, const int64_t *words, struct error *e)
{
    int rc = OK;

    for (int j = 0; j < w->setup.servers && rc == OK; j++) {
        struct serving *s = &w->servers[j];

        if ((rc = wait_for(w, &s->control, j, "collect", e)) < 0)
            return rc;
        memcpy(s->words, words, (TABLE_WORDS - 1) * sizeof *words);
        memcpy(&s->words[TABLE_WORDS - 1], &w->norm, sizeof w->norm);
        rc = world_send(w->setup.world, rank_of(w, j), TAG_TABLE_CONTROL, s->words, sizeof s->words, &s->control, e);
    }
    return rc;
}

int table_worker_collect(struct table_worker *w, int64_t step, int state, struct error *e)
{
    const int arrays = state ? TABLE_ARRAYS : 1;
    const int64_t words[TABLE_WORDS - 1] = { state ? TABLE_COLLECT : TABLE_WHOLE, step };
    /* Alone: where the servers stop for the state is agreed on elsewhere, and then they send it. */
    int rc = w->setup.alone && state ? OK : control(w, words, e);

    w->step = step;
    for (size_t i = 0; i < w->parts.count && rc == OK; i++)
        for (int k = 0; k < arrays && rc == OK; k++) {
            const struct optimizer_array a = table_state(&w->setup, &w->parts, i, k);
            const int server = w->parts.parts[i].server;
            struct message m = { 0 };

            if (a.count)
                rc = world_receive(w->setup.world, rank_of(w, server), state ? TAG_STATE : TAG_WHOLE, a.values,
                                   a.count * sizeof *a.values, &m, e);
            if (a.count && rc == OK)
                rc = wait_for(w, &m, server, "collect", e);
        }
    return rc;
}

int table_worker_finish(struct table_worker *w, struct error *e)
{
    const int64_t words[TABLE_WORDS - 1] = { TABLE_DONE, w->pushes };
    int rc = is_spoken_for(w) ? OK : control(w, words, e);

    if (rc == OK && w->host)
        rc = table_host_finish(w->host, e);
    for (int j = 0; j < w->setup.servers && rc == OK; j++)
        if ((rc = wait_for(w, &w->servers[j].control, j, "end", e)) == OK &&
            (rc = wait_for(w, &w->servers[j].names_out, j, "ask for", e)) == OK &&
            (rc = wait_for(w, &w->servers[j].values_in, j, "fetch", e)) == OK) /* foreseen, but the training ends */
            rc = wait_for(w, &w->servers[j].sums_out, j, "send", e);
    return rc;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static int serving_new(struct table_worker *w, struct serving *s)
{
    s->message = malloc(norm_bytes(w) + row_packet_names_size(w->most));
    s->names = s->message ? s->message + norm_bytes(w) : NULL;
    s->values = malloc(row_packet_values_room(&w->parts, w->most));
    s->sums = malloc(w->room);
    s->ids = malloc((w->most + 1) * sizeof *s->ids);
    return s->names && s->values && s->sums && s->ids;
}

int table_worker_new(struct table_worker **out, const struct table_setup *setup, int worker, struct error *e)
{
    const struct network *n = optimizer_network(setup->optimizer);
    const struct model *model = network_model(n);
    const size_t tokens = setup->samples * (size_t)model->height * (size_t)model->width;
    const size_t group = (size_t)setup->groups->size[setup->groups->of[worker]];
    struct table_worker *w = calloc(1, sizeof *w);
    int good = w != NULL, rc = OK;

    if (good) {
        w->setup = *setup;
        w->worker = worker;
        w->foreseen = -1;
        rc = table_parts_make(&w->parts, n, setup->servers, setup->partitions, e);
    }
    if (good && rc == OK && group > 1)
        rc = table_host_new(&w->host, &w->setup, &w->parts, worker, e);
    if (good && rc == OK) {
        w->most = table_parts_rows_most(&w->parts, n, setup->samples * (is_spoken_for(w) ? 1 : group));
        w->room = row_packet_sums_room(&w->parts, w->most * sums_of(w), sums_of(w));
        w->servers = calloc((size_t)setup->servers, sizeof *w->servers);
        w->tokens = malloc((tokens + 1) * sizeof *w->tokens);
        w->ids = malloc((w->most + 1) * sizeof *w->ids);
        w->gradients = calloc(vectors_of(w) * w->parts.table_count + 1, sizeof *w->gradients);
        w->weights = calloc(vectors_of(w), sizeof *w->weights);
        good = w->servers && w->tokens && w->ids && w->gradients && w->weights;
        for (int j = 0; j < setup->servers && good && !is_spoken_for(w); j++)
            good = serving_new(w, &w->servers[j]);
    }
    if (!good)
        rc = error_memory(e, NULL, "for the rows of a worker");
    if (rc < 0) {
        table_worker_free(w);
        return rc;
    }
    *out = w;
    return OK;
}

void table_worker_free(struct table_worker *w)
{
    if (!w)
        return;
    for (int j = 0; w->servers && j < w->setup.servers; j++) {
        free(w->servers[j].message);
        free(w->servers[j].values);
        free(w->servers[j].sums);
        free(w->servers[j].ids);
    }
    free(w->servers);
    table_host_free(w->host);
    free(w->tokens);
    free(w->ids);
    free(w->gradients);
    free(w->weights);
    table_parts_release(&w->parts);
    free(w);
}
