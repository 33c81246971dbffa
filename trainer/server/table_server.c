#include "trainer/server/table_server.h"

#include "trainer/collective/row_sum.h"
#include "trainer/optimizers/gradient_norm.h"
#include "trainer/server/row_packet.h"
#include "trainer/server/table_protocol.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- table update ------------------------------------------------------------------------------------------------ */

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

static void table_update_squares(const struct table_update *u, int64_t step, const struct gradient_parts *parts,
                                 int server, double *sums)
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

/* ---- table server ------------------------------------------------------------------------------------------------ */

/* one group of workers (table_groups.h), as a server sees it: its first worker alone asks and pushes */
struct asking {
    struct message in, out;
    char *message, *names, *values; /* names: in the message, after the norm */
    size_t most;                    /* rows that it names */
    int here;                       /* names have come, and are not answered */
    int done;
    int64_t step; /* of the newest names */
};

/* the same group, as a source of sums */
struct pushing {
    struct message in;
    char *sums;
    int here;
    int64_t taken, said;        /* messages; said: by the worker, once it is done */
    size_t room, most, vectors; /* most: rows */
    struct row_gradient *gradients;
    real *weights;
};

struct table_server {
    struct table_setup setup;
    int server;
    struct table_parts parts;
    struct table_update *update;
    struct asking *asking;
    struct pushing *pushing;
    struct row_gradient *gradients; /* (vectors of all workers, tables) */
    real *weights;                  /* (vectors) */
    int64_t step;                   /* updates made */
    int added, clipped;             /* the sums of this step; the optimizer knows its norm */
    int64_t words[TABLE_WORDS];
    struct message control;
    int64_t collect; /* worker 0 wants the state as of so many updates; -1: it does not */
    enum table_control what;
    struct message *state; /* (parts, arrays) */
    int dones;
};

/* The rank that speaks for a group. */
static int speaker(const struct table_server *s, int k)
{
    return s->setup.groups->first[k];
}

/* Bytes of the norm before names. */
static size_t norm_size(const struct table_server *s)
{
    return s->setup.clipping == TABLE_CLIPS_BY_WORKER ? sizeof(double) : 0;
}

struct optimizer_array table_state(const struct table_setup *setup, const struct table_parts *p, size_t part, int k)
{
    static const enum optimizer_array_kind arrays[TABLE_ARRAYS] = { ARRAY_WEIGHTS, ARRAY_SLOT_1, ARRAY_SLOT_2,
                                                                    ARRAY_AVERAGES };
    const struct table_part *its = &p->parts[part];
    const struct table *t = &p->tables[its->table];
    struct optimizer_array a = optimizer_array(setup->optimizer, arrays[k]);

    if (a.count)
        a = (struct optimizer_array){ .values = a.values + t->offset + (size_t)(its->first - t->first) * t->width,
                                      .count = (size_t)its->rows * t->width };
    return a;
}

int table_tag(const struct table_setup *setup, int tag)
{
    return setup->trial ? tag + TAG_TRIAL : tag;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static int post_names(struct table_server *s, int k, struct error *e)
{
    struct asking *a = &s->asking[k];

    return world_receive(s->setup.world, speaker(s, k), table_tag(&s->setup, TAG_NAMES), a->message,
                         norm_size(s) + row_packet_names_size(a->most), &a->in, e);
}

static int post_sums(struct table_server *s, int k, struct error *e)
{
    struct pushing *p = &s->pushing[k];

    return world_receive(s->setup.world, speaker(s, k), table_tag(&s->setup, TAG_SUMS), p->sums, p->room, &p->in, e);
}

static int post_control(struct table_server *s, struct error *e)
{
    return world_receive(s->setup.world, WORLD_ANY_RANK, TAG_TABLE_CONTROL, s->words, sizeof s->words, &s->control, e);
}

int table_server_begin(struct table_server *s, struct error *e)
{
    int rc = post_control(s, e);

    for (int k = 0; k < s->setup.groups->count && rc == OK; k++)
        if ((rc = post_names(s, k, e)) == OK)
            rc = post_sums(s, k, e);
    return rc;
}

/* Waits until a send is done, which its receiver has begun to take. */
static int settle(struct table_server *s, struct message *m, int rank, const char *what, struct error *e)
{
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc;

    patience_init(&p, s->setup.world, world_deadline(s->setup.world));
    while ((rc = message_done(s->setup.world, m, e)) == 0)
        if (!patience_pause(&p)) {
            world_name(s->setup.world, rank, name, sizeof name);
            return patience_over(&p, e, "at step %" PRId64 ", as server %d, for %s to take %s", s->step, s->server,
                                 name, what);
        }
    return rc < 0 ? rc : OK;
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

static int all_pushed(const struct table_server *s)
{
    for (int k = 0; k < s->setup.groups->count; k++)
        if (!s->pushing[k].here)
            return 0;
    return 1;
}

static void add_sums(struct table_server *s)
{
    const struct table_groups *g = s->setup.groups;
    const size_t tables = s->parts.table_count;

    for (int k = 0; k < g->count; k++)
        for (size_t v = 0; v < s->pushing[k].vectors; v++) {
            const size_t place = (size_t)g->place[(size_t)g->vectors[k] + v];

            memcpy(s->gradients + place * tables, s->pushing[k].gradients + v * tables, tables * sizeof *s->gradients);
            s->weights[place] = s->pushing[k].weights[v];
        }
    table_update_add(s->update, s->gradients, s->weights);
    s->added = 1;
}

int table_server_has_sums(const struct table_server *s)
{
    return all_pushed(s);
}

void table_server_squares(struct table_server *s, const struct gradient_parts *parts, double *sums)
{
    const enum phase before = phase_clock_enter(s->setup.clock, PHASE_REDUCING);

    if (!s->added)
        add_sums(s);
    table_update_squares(s->update, s->step, parts, s->server, sums);
    phase_clock_enter(s->setup.clock, before);
}

void table_server_clip(struct table_server *s)
{
    s->clipped = 1;
}

/* Who asks for the state after this update says the norm of its gradient. */
static void clip_as_told(struct table_server *s, int64_t step, const void *bytes)
{
    double norm;

    if (s->setup.clipping != TABLE_CLIPS_BY_WORKER || step <= s->step)
        return;
    memcpy(&norm, bytes, sizeof norm);
    optimizer_clip(s->setup.optimizer, s->step, norm);
    s->clipped = 1;
}

int64_t table_server_step(const struct table_server *s)
{
    return s->step;
}

const struct table_parts *table_server_parts(const struct table_server *s)
{
    return &s->parts;
}

/* Makes the update if somebody has asked for a later state and all sums are here. 1: made. */
static int update_if_due(struct table_server *s, struct error *e)
{
    const struct table_groups *g = s->setup.groups;
    int due = s->collect > s->step, rc = OK;
    enum phase before;

    if (s->setup.alone)
        return 0;

    for (int k = 0; k < g->count; k++)
        due |= s->asking[k].here && s->asking[k].step > s->step;
    if (!due || !all_pushed(s) || (s->setup.clipping && !s->clipped))
        return 0;
    before = phase_clock_enter(s->setup.clock, PHASE_UPDATING);
    if (!s->added)
        add_sums(s);
    if (!s->setup.trial)
        table_update_apply(s->update, s->step);
    s->step++;
    s->added = s->clipped = 0;
    for (int k = 0; k < g->count && rc == OK; k++) {
        s->pushing[k].here = 0;
        rc = post_sums(s, k, e);
    }
    phase_clock_enter(s->setup.clock, before);
    return rc < 0 ? rc : 1;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static int answer(struct table_server *s, int k, uint32_t flags, struct error *e)
{
    struct asking *a = &s->asking[k];
    struct row_packet_head head;
    const int32_t *ids;
    size_t reals;
    int rc = settle(s, &a->out, speaker(s, k), "rows", e);

    if (rc == OK)
        rc = row_packet_get_names(a->names, row_packet_names_size(a->most), &s->parts, s->server, &head, &ids, e);
    if (rc < 0)
        return rc;
    reals = row_packet_take_values(&s->parts, ids, (size_t)head.count,
                                   network_parameters(optimizer_network(s->setup.optimizer)),
                                   (real *)(void *)(a->values + sizeof head));
    head.flags = flags;
    memcpy(a->values, &head, sizeof head);
    a->here = 0;
    rc = world_send(s->setup.world, speaker(s, k), table_tag(&s->setup, TAG_VALUES), a->values,
                    sizeof head + reals * sizeof(real), &a->out, e);
    return rc < 0 ? rc : post_names(s, k, e);
}

/* 1: what is asked for as of `step` updates can be answered; alone: once that many pushes of its worker are used. */
static int is_answerable(const struct table_server *s, int worker)
{
    const struct asking *a = &s->asking[worker];

    return a->here && (s->setup.alone ? s->pushing[worker].taken >= a->step : a->step == s->step);
}

/* Sends worker 0 the rows of this server's parts, from where they are. */
static int send_state(struct table_server *s, struct error *e)
{
    const int arrays = s->what == TABLE_WHOLE ? 1 : TABLE_ARRAYS, tag = s->what == TABLE_WHOLE ? TAG_WHOLE : TAG_STATE;
    int rc = OK;

    for (size_t i = 0; i < s->parts.count && rc == OK; i++)
        for (int k = 0; k < arrays && s->parts.parts[i].server == s->server && rc == OK; k++) {
            const struct optimizer_array a = table_state(&s->setup, &s->parts, i, k);

            if (a.count)
                rc = world_send(s->setup.world, 0, tag, a.values, a.count * sizeof *a.values,
                                &s->state[i * TABLE_ARRAYS + (size_t)k], e);
        }
    for (size_t i = 0; i < s->parts.count * TABLE_ARRAYS && rc == OK; i++)
        rc = settle(s, &s->state[i], 0, "the state of a table", e);
    s->collect = -1;
    return rc;
}

/* ---- what has come ----------------------------------------------------------------------------------------------- */

/* Each of these returns 1: something came; 0: nothing. */

static int look_for_names(struct table_server *s, int k, struct error *e)
{
    struct asking *a = &s->asking[k];
    struct row_packet_head head;
    int rc;

    if (a->here || !a->in.active || (rc = message_done(s->setup.world, &a->in, e)) == 0)
        return 0;
    if (rc < 0)
        return rc;
    memcpy(&head, a->names, sizeof head); /* the rest is checked in answer() */
    if (s->setup.alone ? head.step < 0 : head.step < s->step || head.step > s->step + 1)
        return error_set(e, ERR_CORRUPT, "worker %d asks for rows as of step %" PRId64 " at step %" PRId64,
                         speaker(s, k), head.step, s->step);
    a->here = 1;
    a->step = head.step;
    clip_as_told(s, a->step, a->message);
    return 1;
}

static int look_for_sums(struct table_server *s, int k, struct error *e)
{
    struct pushing *p = &s->pushing[k];
    struct row_packet_head head;
    int rc;

    if (p->here || !p->in.active || (rc = message_done(s->setup.world, &p->in, e)) == 0)
        return 0;
    if (rc < 0 || (rc = row_packet_get_sums(p->sums, p->room, &s->parts, s->server, p->vectors, p->most, &head,
                                            p->gradients, p->weights, e)) < 0)
        return rc;
    if (head.step != (s->setup.alone ? p->taken : s->step))
        return error_set(e, ERR_CORRUPT, "rank %d sends the sums of step %" PRId64 " at step %" PRId64, speaker(s, k),
                         head.step, s->setup.alone ? p->taken : s->step);
    p->here = 1;
    p->taken += !s->setup.alone;
    return 1;
}

int table_server_take(struct table_server *s, int worker, struct error *e)
{
    return look_for_sums(s, worker, e);
}

int table_server_apply(struct table_server *s, int worker, int64_t step, struct error *e)
{
    const enum phase before = phase_clock_enter(s->setup.clock, PHASE_UPDATING);
    struct pushing *p = &s->pushing[worker];

    table_update_alone(s->update, step, p->gradients, p->weights[0]);
    p->here = 0;
    p->taken++;
    phase_clock_enter(s->setup.clock, before);
    return post_sums(s, worker, e);
}

static void speaker_done(struct table_server *s, int w, int64_t pushes)
{
    const int k = w >= 0 && w < s->setup.workers ? s->setup.groups->of[w] : -1;

    if (k < 0 || s->asking[k].done)
        return;
    s->asking[k].done = 1;
    s->dones++;
    s->pushing[k].said = pushes;
}

static int look_for_control(struct table_server *s, struct error *e)
{
    int rc = message_done(s->setup.world, &s->control, e);

    if (rc <= 0)
        return rc;
    if (s->words[0] == TABLE_DONE) {
        speaker_done(s, s->control.source, s->words[1]);
    } else {
        s->what = s->words[0] == TABLE_WHOLE ? TABLE_WHOLE : TABLE_COLLECT;
        s->collect = s->words[1];
        clip_as_told(s, s->collect, &s->words[TABLE_WORDS - 1]);
    }
    return (rc = post_control(s, e)) < 0 ? rc : 1;
}

int table_server_look(struct table_server *s, uint32_t flags, struct error *e)
{
    const int groups = s->setup.groups->count;
    int moved = look_for_control(s, e), rc = moved;

    for (int k = 0; k < groups && rc >= 0; k++)
        moved |= (rc = look_for_names(s, k, e)) > 0;
    for (int k = 0; k < groups && rc >= 0 && !s->setup.alone; k++)
        moved |= (rc = look_for_sums(s, k, e)) > 0;
    if (rc >= 0)
        moved |= (rc = update_if_due(s, e)) > 0;
    for (int k = 0; k < groups && rc >= 0; k++)
        if (is_answerable(s, k)) {
            rc = answer(s, k, flags, e);
            moved = 1;
        }
    if (rc >= 0 && s->collect >= 0 && (s->setup.alone || s->collect == s->step)) {
        rc = send_state(s, e);
        moved = 1;
    }
    return rc < 0 ? rc : moved > 0;
}

int table_server_state(struct table_server *s, struct error *e)
{
    s->what = TABLE_COLLECT;
    return send_state(s, e);
}

int table_server_ended(const struct table_server *s)
{
    for (int k = 0; k < s->setup.groups->count; k++) /* those of an abandoned step are taken, and not used */
        if (s->pushing[k].taken < s->pushing[k].said)
            return 0;
    return s->dones == s->setup.groups->count;
}

int table_server_end(struct table_server *s, struct error *e)
{
    int rc = OK;

    message_cancel(s->setup.world, &s->control);
    for (int k = 0; k < s->setup.groups->count; k++)
        message_cancel(s->setup.world, &s->pushing[k].in);
    for (int k = 0; k < s->setup.groups->count && rc == OK; k++) {
        message_cancel(s->setup.world, &s->asking[k].in);
        rc = settle(s, &s->asking[k].out, speaker(s, k), "rows", e);
    }
    return rc;
}

int64_t table_server_waits_for(const struct table_server *s, char *late)
{
    const int groups = s->setup.groups->count;
    int some = 0, pushed = 0;

    memset(late, 0, (size_t)s->setup.workers);
    for (int k = 0; k < groups; k++)
        pushed += s->pushing[k].here;
    for (int k = 0; k < groups && s->setup.clipping && pushed && pushed < groups; k++) /* others wait for the norm */
        some |= late[speaker(s, k)] = (char)!s->pushing[k].here;
    if (some)
        return s->step;
    for (int k = 0; k < groups; k++) /* who has not asked while others have */
        some |= late[speaker(s, k)] = (char)(!s->asking[k].here && !s->asking[k].done);
    for (int k = 0; k < groups && !some; k++)
        late[speaker(s, k)] = (char)!s->pushing[k].here;
    return s->step;
}

void table_server_names(const struct table_server *s, char *text, size_t size)
{
    size_t count, used = 0;
    const struct variable *v = network_variables(optimizer_network(s->setup.optimizer), &count);

    *text = '\0';
    for (size_t t = 0; t < s->parts.table_count && used < size; t++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", t ? ", " : "", v[s->parts.tables[t].variable].name);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static int asking_new(struct table_server *s, int k)
{
    const size_t workers = (size_t)s->setup.groups->size[k];
    struct asking *a = &s->asking[k];

    a->most = table_parts_rows_most(&s->parts, optimizer_network(s->setup.optimizer), s->setup.samples * workers);
    a->step = s->setup.alone ? 0 : s->setup.first_step;
    a->message = malloc(norm_size(s) + row_packet_names_size(a->most));
    a->names = a->message ? a->message + norm_size(s) : NULL;
    a->values = malloc(row_packet_values_room(&s->parts, a->most));
    return a->names && a->values;
}

static int pushing_new(struct table_server *s, int k)
{
    struct pushing *p = &s->pushing[k];

    p->vectors = (size_t)table_groups_vectors(s->setup.groups, k);
    p->most = s->asking[k].most * p->vectors;
    p->room = row_packet_sums_room(&s->parts, p->most, p->vectors);
    p->sums = malloc(p->room);
    p->gradients = calloc(p->vectors * s->parts.table_count, sizeof *p->gradients);
    p->weights = calloc(p->vectors, sizeof *p->weights);
    return p->sums && p->gradients && p->weights;
}

static int messages_new(struct table_server *s, struct error *e)
{
    const struct table_groups *g = s->setup.groups;
    const size_t groups = (size_t)g->count, sums = (size_t)g->pushed.count;
    int good;

    s->asking = calloc(groups, sizeof *s->asking);
    s->pushing = calloc(groups, sizeof *s->pushing);
    s->gradients = calloc(sums * s->parts.table_count, sizeof *s->gradients);
    s->weights = calloc(sums, sizeof *s->weights);
    s->state = calloc(s->parts.count * TABLE_ARRAYS, sizeof *s->state);
    good = s->asking && s->pushing && s->gradients && s->weights && s->state;
    for (int k = 0; k < g->count && good; k++) {
        good = asking_new(s, k) && pushing_new(s, k);
        if (good && s->pushing[k].room > INT_MAX)
            return error_set(e, ERR_ARG, "a step's rows take up to %zu bytes in one message; use a smaller batch",
                             s->pushing[k].room);
    }
    return good ? OK : error_memory(e, NULL, "for the rows of %d workers", s->setup.workers);
}

int table_server_new(struct table_server **out, const struct table_setup *setup, int server, struct error *e)
{
    const struct network *n = optimizer_network(setup->optimizer);
    struct table_server *s = calloc(1, sizeof *s);
    int rc;

    if (!s)
        return error_memory(e, NULL, "for a server of tables");
    s->setup = *setup;
    s->server = server;
    s->step = setup->first_step;
    s->collect = -1;
    if ((rc = table_parts_make(&s->parts, n, setup->servers, setup->partitions, e)) == OK)
        rc = messages_new(s, e);
    if (rc == OK)
        rc = table_update_new(&s->update, setup->optimizer, &s->parts, &setup->groups->pushed, setup->rule,
                              table_parts_rows_most(&s->parts, n, setup->samples) * (size_t)setup->workers, e);
    if (rc < 0) {
        table_server_free(s);
        return rc;
    }
    *out = s;
    return OK;
}

void table_server_free(struct table_server *s)
{
    if (!s)
        return;
    for (int k = 0; s->asking && k < s->setup.groups->count; k++) {
        free(s->asking[k].message);
        free(s->asking[k].values);
    }
    for (int k = 0; s->pushing && k < s->setup.groups->count; k++) {
        free(s->pushing[k].sums);
        free(s->pushing[k].gradients);
        free(s->pushing[k].weights);
    }
    free(s->asking);
    free(s->pushing);
    free(s->gradients);
    free(s->weights);
    free(s->state);
    table_update_free(s->update);
    table_parts_release(&s->parts);
    free(s);
}
