#include "trainer/server/norm_exchange.h"

#include "trainer/server/parameter_protocol.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* of one server */
struct squares {
    struct message in, out; /* to and from it; of this server itself: none */
    double *sums;           /* the step, as an int64, then its sums */
    int here;               /* those of this step */
};

struct norm_exchange {
    struct world *world;
    const struct gradient_parts *parts;
    int workers, server;
    struct squares *servers; /* (servers) */
    const double **sums;     /* (servers) */
    int64_t step;
    int sent; /* this step's, and the norm is not known */
};

_Static_assert(sizeof(double) == sizeof(int64_t), "a step has the place of a sum");

int norm_exchange_new(struct norm_exchange **out, struct world *world, const struct gradient_parts *parts, int workers,
                      int server, struct error *e)
{
    struct norm_exchange *x = calloc(1, sizeof *x);
    int good = x != NULL;

    if (good) {
        *x = (struct norm_exchange){ .world = world, .parts = parts, .workers = workers, .server = server };
        x->servers = calloc((size_t)parts->holders, sizeof *x->servers);
        x->sums = calloc((size_t)parts->holders, sizeof *x->sums);
        good = x->servers && x->sums;
    }
    for (int j = 0; good && j < parts->holders; j++) {
        good = (x->servers[j].sums = calloc(1 + parts->sums[j], sizeof(double))) != NULL;
        x->sums[j] = good ? x->servers[j].sums + 1 : NULL;
    }
    if (!good) {
        norm_exchange_free(x);
        return error_memory(e, NULL, "for the norm of a gradient");
    }
    *out = x;
    return OK;
}

void norm_exchange_free(struct norm_exchange *x)
{
    if (!x)
        return;
    for (int j = 0; x->servers && j < x->parts->holders; j++)
        free(x->servers[j].sums);
    free(x->servers);
    free(x->sums);
    free(x);
}

static size_t squares_bytes(const struct norm_exchange *x, int server)
{
    return (1 + x->parts->sums[server]) * sizeof(double);
}

static int post_squares(struct norm_exchange *x, int j, struct error *e)
{
    x->servers[j].here = 0;
    return world_receive(x->world, x->workers + j, TAG_SQUARES, x->servers[j].sums, squares_bytes(x, j),
                         &x->servers[j].in, e);
}

int norm_exchange_begin(struct norm_exchange *x, struct error *e)
{
    int rc = OK;

    for (int j = 0; j < x->parts->holders && rc == OK; j++)
        if (j != x->server)
            rc = post_squares(x, j, e);
    return rc;
}

double *norm_exchange_own(struct norm_exchange *x)
{
    return x->servers[x->server].sums + 1;
}

/* Waits until server j has taken the last message. It has, once it has sent what came after that. */
static int settle_squares(struct norm_exchange *x, int j, struct error *e)
{
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc;

    patience_init(&p, x->world, world_deadline(x->world));
    while ((rc = message_done(x->world, &x->servers[j].out, e)) == 0)
        if (!patience_pause(&p)) {
            world_name(x->world, x->workers + j, name, sizeof name);
            return patience_over(&p, e, "at step %" PRId64 ", as server %d, for %s to take squares of gradients",
                                 x->step, x->server, name);
        }
    return rc < 0 ? rc : OK;
}

static int settle_all_squares(struct norm_exchange *x, struct error *e)
{
    int rc = OK;

    for (int j = 0; j < x->parts->holders && rc == OK; j++)
        rc = settle_squares(x, j, e);
    return rc;
}

int norm_exchange_send(struct norm_exchange *x, int64_t step, struct error *e)
{
    double *own = x->servers[x->server].sums;
    int rc = settle_all_squares(x, e);

    x->step = step;
    x->sent = 1;
    memcpy(own, &step, sizeof step);
    for (int i = 1; i < x->parts->holders && rc == OK; i++) { /* each begins with another one */
        const int j = (x->server + i) % x->parts->holders;

        rc = world_send(x->world, x->workers + j, TAG_SQUARES, own, squares_bytes(x, x->server), &x->servers[j].out, e);
    }
    return rc;
}

/* 1: the sums of server j are here. */
static int look_for_squares(struct norm_exchange *x, int j, struct error *e)
{
    struct squares *s = &x->servers[j];
    int64_t step;
    int rc;

    if (s->here || j == x->server)
        return 1;
    if ((rc = message_done(x->world, &s->in, e)) <= 0)
        return rc;
    memcpy(&step, s->sums, sizeof step);
    if (step != x->step)
        return error_set(e, ERR_CORRUPT, "server %d sends the squares of step %" PRId64 " at step %" PRId64, j, step,
                         x->step);
    return s->here = 1;
}

int norm_exchange_look(struct norm_exchange *x, double *norm, struct error *e)
{
    int all = x->sent, rc;

    for (int j = 0; j < x->parts->holders && x->sent; j++) {
        if ((rc = look_for_squares(x, j, e)) < 0)
            return rc;
        all &= rc;
    }
    if (!all)
        return 0;
    *norm = gradient_parts_norm(x->parts, x->sums);
    x->sent = 0;
    rc = norm_exchange_begin(x, e);
    return rc < 0 ? rc : 1;
}

int norm_exchange_late(const struct norm_exchange *x, char *late)
{
    int some = 0;

    memset(late, 0, (size_t)world_size(x->world));
    for (int j = 0; j < x->parts->holders && x->sent; j++)
        if (j != x->server && !x->servers[j].here)
            some = late[x->workers + j] = 1;
    return some;
}

int norm_exchange_end(struct norm_exchange *x, struct error *e)
{
    for (int j = 0; j < x->parts->holders; j++)
        message_cancel(x->world, &x->servers[j].in);
    return settle_all_squares(x, e);
}
