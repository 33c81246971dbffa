#include "trainer/collective/transport.h"

#include "trainer/collective/places.h"

#include <limits.h>
#include <stdlib.h>

int transport_late(const struct transport *t, size_t bucket, char *late, const struct patience *patience,
                   struct error *e)
{
    return patience_speaks(patience, late, t->plan.ranks) ? transport_late_sentence(t, bucket, late, patience, e) : 0;
}

int transport_late_sentence(const struct transport *t, size_t bucket, char *late, const struct patience *patience,
                            struct error *e)
{
    const struct transport_plan *p = &t->plan;
    struct buffer ranks = BUFFER_EMPTY;
    struct extent x = bucket_extent(p->total, p->bucket, bucket);
    char names[200];
    int rc;

    if (p->part)
        x = dense_part_extent(p->part, x);
    world_narrow(p->world, late, p->ranks);
    places_text(&ranks, world_places(p->world), late, p->ranks, 1);
    extent_names(p->network, x, names, sizeof names);
    rc = patience_over(patience, e, "at step %lld for %s, for tensors %s", (long long)t->step, buffer_text(&ranks),
                       names);
    buffer_release(&ranks);
    return rc;
}

int transport_messages_fit(const struct transport_plan *plan, struct error *e)
{
    if (plan->bucket > INT_MAX / sizeof(real) / 2 || plan->buckets > 10000)
        return error_set(e, ERR_ARG, "--bucket-bytes makes %zu buckets of %zu values; at most 10000 of 1 GiB",
                         plan->buckets, plan->bucket);
    return OK;
}

/* ---- one rank ---------------------------------------------------------------------------------------------------- */

static void alone_begin(struct transport *t, int64_t step)
{
    t->step = step;
}

static void alone_advance(struct transport *t, size_t ready)
{
    (void)t;
    (void)ready;
}

static int alone_complete(struct transport *t, const struct tally_part *mine, struct tally_part *all, struct error *e)
{
    (void)t;
    (void)e;
    all[0] = *mine;
    return OK;
}

static void alone_free(struct transport *t)
{
    free(t->vectors);
    free(t);
}

int transport_alone_new(struct transport **out, const struct transport_plan *plan, real *vector, struct error *e)
{
    static const struct transport_operations alone = { "none", alone_begin, alone_advance, alone_complete, alone_free };

    if (!(*out = malloc(sizeof **out)))
        return error_memory(e, NULL, "for a transport");
    **out = (struct transport){ .operations = &alone, .plan = *plan, .result = vector };
    if (!((*out)->vectors = malloc(sizeof vector))) {
        free(*out);
        return error_memory(e, NULL, "for a transport");
    }
    (*out)->vectors[0] = vector;
    return OK;
}
