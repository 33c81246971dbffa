/* arbiters.h - for tests of the arbiter: arbiters of four workers, pushes, and rulings as lines. */
#ifndef TESTS_TRAINER_ARBITERS_H
#define TESTS_TRAINER_ARBITERS_H

#include "tests/check.h"
#include "trainer/server/arbiter.h"

#include <stdio.h>
#include <string.h>

enum { WORKERS = 4, FIRST = 10 };

static const struct arbiter_plan together = { .workers = WORKERS,
                                              .synchronous = 1,
                                              .aggregate = 3,
                                              .staleness = ARBITER_UNBOUNDED,
                                              .first_step = FIRST,
                                              .max_steps = FIRST + 4 };
static const struct arbiter_plan alone = {
    .workers = WORKERS, .staleness = ARBITER_UNBOUNDED, .first_step = FIRST, .max_steps = FIRST + 12
};

static inline struct arbiter *arbiter_of(struct arbiter_plan plan)
{
    struct arbiter *a;

    assert_int_equal(arbiter_new(&a, &plan, NULL), OK);
    return a;
}

/* Each worker's own loss and hash, so that a sum shows whose pushes it has. */
static inline struct tally_part part_of(int worker, uint32_t flags)
{
    return (struct tally_part){ .score = { 1 << worker, 8, 1, 8 }, .flags = flags };
}

static inline void push(struct arbiter *a, int worker)
{
    arbiter_push(a, worker, &(struct tally_part){ .score = { 1 << worker, 8, 1, 8 } });
}

/* The fates of all workers in a line: d for a dropped push, u for a used one, ! for an answer, . for nothing; then "="
 * for a decision without an update. "": nothing is due. v: only verdicts. */
static inline const char *next(struct arbiter *a, struct ruling *r)
{
    static char text[8 * WORKERS];
    char *at = text;

    *text = 0;
    if (arbiter_next(a, r, NULL) == 0)
        return text;
    for (int w = 0; w < WORKERS; w++) {
        const uint8_t fate = r->decides ? r->decision.fates[w] : 0;
        char *begin = at;

        if (fate & DECISION_DROPPED)
            *at++ = 'd';
        if (fate & DECISION_USED)
            *at++ = 'u';
        if (fate & DECISION_ANSWERED)
            *at++ = '!';
        if (!r->decides && arbiter_verdict(a, w))
            *at++ = 'v';
        if (at == begin)
            *at++ = '.';
        *at++ = ' ';
    }
    if (r->decides && !r->decision.updates)
        *at++ = '=';
    else
        at--;
    *at = 0;
    return text;
}

static inline void expect(struct arbiter *a, const char *wanted)
{
    struct ruling r;

    assert_string_equal(next(a, &r), wanted);
}

#endif
