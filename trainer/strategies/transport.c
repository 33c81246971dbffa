#include "trainer/strategies/transport.h"

#include <stdio.h>

int transport_late(const struct transport *t, size_t bucket, const char *late, int grace, struct error *e)
{
    const struct transport_plan *p = &t->plan;
    char names[300], ranks[80] = "";
    size_t used = 0;
    int count = 0;

    for (int r = 0; r < p->rank; r++)
        if (!late[r] && !grace)
            return 0;
    for (int r = 0; r < p->ranks; r++) {
        if (!late[r])
            continue;
        if (used + 16 < sizeof ranks)
            used += (size_t)snprintf(ranks + used, sizeof ranks - used, "%s%d", count ? ", " : "", r);
        count++;
    }
    extent_names(p->network, bucket_extent(p->total, p->bucket, bucket), names, sizeof names);
    return error_set(e, ERR_PEER, "rank %d waited %g s at step %lld for rank%s %s, for tensors %s; ending all ranks",
                     p->rank, world_deadline(p->world), (long long)t->step, count == 1 ? "" : "s", ranks, names);
}
