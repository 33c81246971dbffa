#include "trainer/collective/tally.h"

#include <signal.h>

uint32_t tally_signal(int number)
{
    return number == SIGINT ? TALLY_INT : number ? TALLY_TERM : 0;
}

struct tally tally_sum(const struct tally_part *parts, int count, int64_t step, int64_t max_steps)
{
    struct tally all = { .global_step = step };

    for (int w = 0; w < count; w++) {
        score_add(&all.score, &parts[w].score);
        all.flags |= parts[w].flags;
    }
    if (!(all.flags & TALLY_LEFT))
        all.global_step++;
    all.more = all.global_step < max_steps && !(all.flags & TALLY_ENDS);
    return all;
}

int tally_differs(const struct tally_part *parts, int count, int first)
{
    for (int w = first; w < count; w++)
        if (parts[0].hashed && parts[w].hashed && parts[w].hash != parts[0].hash)
            return w;
    return -1;
}
