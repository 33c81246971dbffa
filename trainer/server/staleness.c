#include "trainer/server/staleness.h"

static int64_t begin_of(size_t i)
{
    const size_t above = i - STALENESS_EXACT;

    if (i < STALENESS_EXACT)
        return (int64_t)i;
    return (int64_t)(above % 2 ? STALENESS_EXACT * 3 / 2 : STALENESS_EXACT) << (above / 2);
}

void staleness_range(size_t i, int64_t *from, int64_t *to)
{
    *from = begin_of(i);
    *to = i + 1 < STALENESS_RANGES ? begin_of(i + 1) - 1 : INT64_MAX;
}

void staleness_add(struct staleness *s, int64_t stale)
{
    size_t i = 0;

    while (i + 1 < STALENESS_RANGES && begin_of(i + 1) <= stale)
        i++;
    s->counts[i]++;
    s->pushes++;
    s->sum += (double)stale;
    s->max = stale > s->max ? stale : s->max;
}

double staleness_mean(const struct staleness *s)
{
    return s->pushes ? s->sum / (double)s->pushes : 0;
}
