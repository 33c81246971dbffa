#include "trainer/server/norm_exchange.h"

#include "trainer/server/parameter_protocol.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* of one holder */
struct squares {
    struct message in; /* this rank's own do not come */
    double *sums;      /* the step, as an int64, then its sums */
    int here;          /* those of this step */
};

struct norm_exchange {
    struct norm_exchange_setup setup;
    struct squares *holders;
    const double **sums; /* (holders) */
    struct message *out; /* (receivers) */
    int64_t step;
    int sent; /* this step's, and the norm is not known */
};

_Static_assert(sizeof(double) == sizeof(int64_t), "a step has the place of a sum");

int norm_exchange_new(struct norm_exchange **out, const struct norm_exchange_setup *setup, struct error *e)
{
    const struct gradient_parts *parts = setup->parts;
    struct norm_exchange *x = calloc(1, sizeof *x);
    int good = x != NULL;

    if (good) {
        x->setup = *setup;
        x->holders = calloc((size_t)parts->holders, sizeof *x->holders);
        x->sums = calloc((size_t)parts->holders, sizeof *x->sums);
        x->out = calloc((size_t)setup->receivers + 1, sizeof *x->out);
        good = x->holders && x->sums && x->out;
    }
    for (int j = 0; good && j < parts->holders; j++) {
        good = (x->holders[j].sums = calloc(1 + parts->sums[j], sizeof(double))) != NULL;
        x->sums[j] = good ? x->holders[j].sums + 1 : NULL;
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
    for (int j = 0; x->holders && j < x->setup.parts->holders; j++)
        free(x->holders[j].sums);
    free(x->holders);
    free(x->sums);
    free(x->out);
    free(x);
}

static size_t squares_bytes(const struct norm_exchange *x, int holder)
{
    return (1 + x->setup.parts->sums[holder]) * sizeof(double);
}

int norm_exchange_begin(struct norm_exchange *x, struct error *e)
{
    int rc = OK;

    for (int j = 0; j < x->setup.servers && x->setup.listens && rc == OK; j++) {
        struct squares *s = &x->holders[j];

        s->here = 0;
        if (j != x->setup.own)
            rc = world_receive(x->setup.world, x->setup.workers + j, TAG_SQUARES, s->sums, squares_bytes(x, j), &s->in,
                               e);
    }
    return rc;
}

double *norm_exchange_own(struct norm_exchange *x)
{
    return x->holders[x->setup.own].sums + 1;
}

/* Waits until all have taken the last message. They have, once they have sent what came after that. */
static int settle_squares(struct norm_exchange *x, struct error *e)
{
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc;

    patience_init(&p, x->setup.world, world_deadline(x->setup.world));
    for (int i = 0; i < x->setup.receivers; i++)
        while ((rc = message_done(x->setup.world, &x->out[i], e)) <= 0) {
            if (rc < 0)
                return rc;
            if (patience_pause(&p))
                continue;
            world_name(x->setup.world, x->setup.receiver + i, name, sizeof name);
            return patience_over(&p, e, "at step %" PRId64 ", as server %d, for %s to take squares of gradients",
                                 x->step, x->setup.own, name);
        }
    return OK;
}

int norm_exchange_send(struct norm_exchange *x, int64_t step, struct error *e)
{
    const struct norm_exchange_setup *s = &x->setup;
    double *own = x->holders[s->own].sums;
    int rc = settle_squares(x, e);

    x->step = step;
    x->sent = 1;
    memcpy(own, &step, sizeof step);
    for (int k = 0; k < s->receivers && rc == OK; k++) { /* each begins with another one */
        const int i = (s->own + 1 + k) % s->receivers;

        if (s->receiver + i != world_rank(s->world))
            rc = world_send(s->world, s->receiver + i, TAG_SQUARES, own, squares_bytes(x, s->own), &x->out[i], e);
    }
    return rc;
}

/* 1: the sums of server j are here. */
static int look_for_squares(struct norm_exchange *x, int j, struct error *e)
{
    struct squares *s = &x->holders[j];
    int64_t step;
    int rc;

    if (s->here || j == x->setup.own)
        return 1;
    if ((rc = message_done(x->setup.world, &s->in, e)) <= 0)
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

    for (int j = 0; j < x->setup.servers && x->sent; j++) {
        if ((rc = look_for_squares(x, j, e)) < 0)
            return rc;
        all &= rc;
    }
    if (!all)
        return 0;
    *norm = gradient_parts_norm(x->setup.parts, x->sums);
    x->sent = 0;
    rc = norm_exchange_begin(x, e);
    return rc < 0 ? rc : 1;
}

int norm_exchange_late(const struct norm_exchange *x, char *late)
{
    int some = 0;

    memset(late, 0, (size_t)world_size(x->setup.world));
    for (int j = 0; j < x->setup.servers && x->sent; j++)
        if (j != x->setup.own && !x->holders[j].here)
            some = late[x->setup.workers + j] = 1;
    return some;
}

int norm_exchange_end(struct norm_exchange *x, struct error *e)
{
    for (int j = 0; j < x->setup.servers; j++)
        message_cancel(x->setup.world, &x->holders[j].in);
    return settle_squares(x, e);
}
