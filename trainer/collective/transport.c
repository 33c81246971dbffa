#include "trainer/collective/transport.h"

#include "trainer/collective/places.h"

int transport_late(const struct transport *t, size_t bucket, const char *late, const struct patience *patience,
                   struct error *e)
{
    const struct transport_plan *p = &t->plan;
    struct buffer ranks = BUFFER_EMPTY;
    char names[200];
    int rc;

    if (!patience_speaks(patience, late))
        return 0;
    places_text(&ranks, world_places(p->world), late, p->ranks, 1);
    extent_names(p->network, bucket_extent(p->total, p->bucket, bucket), names, sizeof names);
    rc = patience_over(patience, e, "at step %lld for %s, for tensors %s", (long long)t->step, buffer_text(&ranks),
                       names);
    buffer_release(&ranks);
    return rc;
}
