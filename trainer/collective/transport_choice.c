#include "trainer/collective/transport_choice.h"

#include "trainer/collective/lanes.h"
#include "trainer/collective/places.h"
#include "trainer/collective/shared_memory.h"

#include <stdlib.h>
#include <string.h>

enum kind { TRANSPORT_MESSAGES, TRANSPORT_SHARED, TRANSPORT_TWO_LEVEL };

/* Sets *kind, by `how`, or by where the ranks are. host: (ranks) filled with the number of each rank's host. */
static int choose(const struct transport_plan *plan, const char *how, int *host, enum kind *kind, struct error *e)
{
    const int hosts = places_hosts(world_places(plan->world), plan->ranks, host);
    const int keeps = lanes_keep_order(host, plan->reduction), by_itself = !strcmp(how, "auto");

    *kind = TRANSPORT_MESSAGES;
    if (!strcmp(how, "shared") && hosts > 1)
        return error_set(e, ERR_ARG, "--transport shared: the ranks are not all on one host");
    if (!strcmp(how, "two-level") && !keeps)
        return error_set(
            e, ERR_ARG,
            "--transport two-level: with --micro-shards the ranks of each host must be a whole part of the "
            "tree, such as 2 or 4 with neighbouring numbers (mpirun --map-by slot); use --transport mpi");
    if (!strcmp(how, "shared") || (by_itself && hosts == 1))
        *kind = TRANSPORT_SHARED;
    else if (!strcmp(how, "two-level") || (by_itself && hosts < plan->ranks && keeps))
        *kind = TRANSPORT_TWO_LEVEL;
    return OK;
}

/* What a rank without the transport does while others make it. */
static int attend(const struct transport_plan *plan, enum kind kind, struct error *e)
{
    int rc = world_agree(plan->world, "make room for the exchange", OK, e);

    if (rc == OK && kind != TRANSPORT_MESSAGES)
        rc = shared_memory_attend(plan->world, e);
    return rc;
}

static int make_chosen(struct transport **out, const struct transport_plan *plan, const int *host, enum kind kind,
                       struct error *e)
{
    if (plan->rank < 0)
        return attend(plan, kind, e);
    switch (kind) {
    case TRANSPORT_SHARED: return shared_window_new(out, plan, e);
    case TRANSPORT_TWO_LEVEL: return two_level_new(out, plan, host, e);
    case TRANSPORT_MESSAGES: break;
    }
    return message_exchange_new(out, plan, e);
}

int transport_choose(struct transport **out, const struct transport_plan *plan, const char *how, struct error *e)
{
    int *host = calloc((size_t)plan->ranks, sizeof *host), rc;
    enum kind kind = TRANSPORT_MESSAGES;

    *out = NULL;
    rc = world_agree(plan->world, "choose a transport",
                     host ? OK : error_memory(e, NULL, "for the hosts of %d ranks", plan->ranks), e);
    if (rc == OK && (rc = choose(plan, how, host, &kind, e)) == OK) {
        rc = make_chosen(out, plan, host, kind, e);
        /* A host may have no shared memory (a container's /dev/shm): all ranks agreed on that, so all continue. */
        if (rc < 0 && kind != TRANSPORT_MESSAGES && !strcmp(how, "auto"))
            rc = make_chosen(out, plan, host, TRANSPORT_MESSAGES, e);
    }
    free(host);
    return rc;
}
