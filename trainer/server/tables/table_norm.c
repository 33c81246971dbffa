#include "trainer/server/tables/table_norm.h"

#include "trainer/collective/places.h"
#include "trainer/server/tables/table_protocol.h"
#include "trainer/update/gradient_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct table_norm {
    struct table_setup setup;
    const struct dense_part *dense;
    struct gradient_parts parts; /* holders: the servers, and a worker itself */
    double *memory;              /* for each holder: the step, as an int64, then its sums */
    const double **sums;         /* (holders) */
    struct message *messages;    /* a server's to the workers; a worker's from the servers */
    int64_t offered;             /* of which step the server has sent its sums; -1: of none */
};

_Static_assert(sizeof(double) == sizeof(int64_t), "a step has the place of a sum");

static int holders(const struct table_norm *t)
{
    return t->setup.servers + 1;
}

int table_norm_new(struct table_norm **out, const struct table_setup *setup, const struct dense_part *dense,
                   struct error *e)
{
    struct table_norm *t = calloc(1, sizeof *t);
    const int most = setup->workers > setup->servers ? setup->workers : setup->servers;

    if (t) {
        *t = (struct table_norm){ .setup = *setup, .dense = dense, .offered = -1 };
        t->sums = calloc((size_t)holders(t), sizeof *t->sums);
        t->messages = calloc((size_t)most, sizeof *t->messages);
    }
    if (!t || !t->sums || !t->messages) {
        table_norm_free(t);
        return error_memory(e, NULL, "for the norm of a gradient");
    }
    *out = t;
    return OK;
}

void table_norm_free(struct table_norm *t)
{
    if (!t)
        return;
    gradient_parts_release(&t->parts);
    free(t->memory);
    free(t->sums);
    free(t->messages);
    free(t);
}

/* Where a holder's sums are, and before them the step. */
static double *memory_of(const struct table_norm *t, int holder)
{
    return t->memory + (t->sums[holder] - t->memory) - 1;
}

static int make_memory(struct table_norm *t, struct error *e)
{
    size_t count = 0;

    for (int j = 0; j < holders(t); j++)
        count += 1 + t->parts.sums[j];
    if (!(t->memory = calloc(count, sizeof *t->memory)))
        return error_memory(e, NULL, "for %zu sums of squares", count);
    count = 0;
    for (int j = 0; j < holders(t); j++) {
        t->sums[j] = t->memory + count + 1;
        count += 1 + t->parts.sums[j];
    }
    return OK;
}

/* Learns who holds what: the tables are cut when the first step is made, not before. */
static int know_parts(struct table_norm *t, const struct table_parts *tables, struct error *e)
{
    const size_t count = tables->count + t->dense->count;
    struct gradient_part *held;
    int rc;

    if (t->memory)
        return OK;
    if (!(held = calloc(count, sizeof *held)))
        return error_memory(e, NULL, "for the %zu parts of a gradient", count);
    table_parts_held(tables, held);
    for (size_t i = 0; i < t->dense->count; i++)
        held[tables->count + i] = (struct gradient_part){ .from = t->dense->extents[i].from,
                                                          .to = t->dense->extents[i].to,
                                                          .holder = t->setup.servers };
    rc = gradient_parts_init(&t->parts, optimizer_network(t->setup.optimizer), held, count, holders(t), e);
    free(held);
    return rc < 0 ? rc : make_memory(t, e);
}

static size_t squares_bytes(const struct table_norm *t, int server)
{
    return (1 + t->parts.sums[server]) * sizeof(double);
}

/* Waits for a message; sentence: what for. */
static int wait_for_squares(struct table_norm *t, struct message *m, int rank, int64_t step, double limit,
                            const char *sentence, struct error *e)
{
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc;

    patience_init(&p, t->setup.world, limit);
    while ((rc = message_done(t->setup.world, m, e)) == 0) {
        if (patience_pause(&p))
            continue;
        world_name(t->setup.world, rank, name, sizeof name);
        if ((rc = patience_over(&p, e, "at step %" PRId64 " for %s, %s", step, name, sentence)) < 0)
            return rc;
    }
    return rc < 0 ? rc : OK;
}

/* ---- a server ---------------------------------------------------------------------------------------------------- */

static int settle_offers(struct table_norm *t, struct error *e)
{
    int rc = OK;

    for (int w = 0; w < t->setup.workers && rc == OK; w++)
        rc = wait_for_squares(t, &t->messages[w], w, t->offered, world_deadline(t->setup.world),
                              "to take squares of gradients", e);
    return rc;
}

int table_norm_offer(struct table_norm *t, struct table_server *s, int server, struct error *e)
{
    const int64_t step = table_server_step(s);
    int rc;

    if (t->offered == step || !table_server_has_sums(s))
        return 0;
    if ((rc = settle_offers(t, e)) < 0 || (rc = know_parts(t, table_server_parts(s), e)) < 0)
        return rc;
    table_server_squares(s, &t->parts, memory_of(t, server) + 1);
    memcpy(memory_of(t, server), &step, sizeof step);
    t->offered = step;
    for (int w = 0; w < t->setup.workers && rc == OK; w++)
        rc = world_send(t->setup.world, w, TAG_TABLE_SQUARES, memory_of(t, server), squares_bytes(t, server),
                        &t->messages[w], e);
    return rc < 0 ? rc : 1;
}

int table_norm_end(struct table_norm *t, struct error *e)
{
    return settle_offers(t, e);
}

/* ---- a worker ---------------------------------------------------------------------------------------------------- */

/* The sums of the dense part, which this worker has. */
static void add_dense(struct table_norm *t, int64_t step, const real *packed)
{
    double *own = memory_of(t, t->setup.servers) + 1;

    for (size_t i = 0; i < t->parts.count; i++) {
        const struct gradient_part *part = &t->parts.parts[i];

        if (part->holder == t->setup.servers)
            optimizer_squares(t->setup.optimizer, step, packed + dense_part_below(t->dense, part->from),
                              packed[t->dense->total - 1], part->from, part->to, own + part->at);
    }
}

static int receive_squares(struct table_norm *t, int64_t step, struct error *e)
{
    const double deadline = world_deadline(t->setup.world);
    int rc = OK;

    for (int j = 0; j < t->setup.servers && rc == OK; j++)
        rc = world_receive(t->setup.world, t->setup.workers + j, TAG_TABLE_SQUARES, memory_of(t, j),
                           squares_bytes(t, j), &t->messages[j], e);
    for (int j = 0; j < t->setup.servers && rc == OK; j++) {
        int64_t its;

        rc = wait_for_squares(t, &t->messages[j], t->setup.workers + j, step,
                              deadline + places_precedence(deadline, world_rank(t->setup.world) > 0),
                              "for the norm of its rows' gradients", e);
        memcpy(&its, memory_of(t, j), sizeof its);
        if (rc == OK && its != step)
            return error_set(e, ERR_CORRUPT, "server %d sends the squares of step %" PRId64 " at step %" PRId64, j, its,
                             step);
    }
    return rc;
}

int table_norm_find(struct table_norm *t, int64_t step, const real *packed, const struct table_parts *parts,
                    double *norm, struct error *e)
{
    int rc = know_parts(t, parts, e);

    if (rc < 0)
        return rc;
    add_dense(t, step, packed);
    if ((rc = receive_squares(t, step, e)) == OK)
        *norm = gradient_parts_norm(&t->parts, t->sums);
    return rc;
}
