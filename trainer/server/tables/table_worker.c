#include "trainer/server/tables/table_worker.h"

#include "trainer/collective/places.h"
#include "trainer/server/tables/row_packet.h"
#include "trainer/server/tables/table_host.h"
#include "trainer/server/tables/table_protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
