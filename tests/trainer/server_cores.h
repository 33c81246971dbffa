/* server_cores.h - for tests of the core of a parameter server: cores of three workers, messages to them, who is late. */
#ifndef TESTS_TRAINER_SERVER_CORES_H
#define TESTS_TRAINER_SERVER_CORES_H

#include "tests/check.h"
#include "trainer/server/server_core.h"

#include <string.h>

enum { WORKERS = 3, PACKETS = 2 };

static const struct server_plan plan_sync = {
    .workers = WORKERS,
    .synchronous = 1,
    .tallies = 1,
    .servers = 1,
    .packets = PACKETS,
    .first_step = 10,
    .max_steps = 13,
};

static inline struct server_core *core_of(struct server_plan plan)
{
    struct server_core *c;

    assert_int_equal(server_core_new(&c, &plan, NULL), OK);
    server_core_begin(c, 0);
    return c;
}

/* Every push is an update; 7 steps. */
static inline struct server_plan plan_async(void)
{
    struct server_plan plan = plan_sync;

    plan.synchronous = 0;
    plan.decided = 1;
    plan.max_steps = 17;
    plan.arbiter = (struct arbiter_plan){
        .workers = WORKERS, .staleness = ARBITER_UNBOUNDED, .first_step = plan.first_step, .max_steps = plan.max_steps
    };
    return plan;
}

static inline void push(struct server_core *c, int worker, size_t packet)
{
    assert_true(server_core_takes_push(c, worker, packet));
    server_core_push(c, worker, packet, 0);
}

static inline void tally(struct server_core *c, int worker, const struct tally_part *part, uint32_t flags)
{
    assert_true(server_core_takes_tally(c));
    server_core_tally(c, worker, part, flags, 0);
}

static inline struct server_action due(struct server_core *c)
{
    struct server_action a;

    assert_int_equal(server_core_due(c, 100, &a, NULL), OK);
    return a;
}

/* Does all that is due. */
static inline void settle(struct server_core *c)
{
    while (due(c).kind != SERVER_NOTHING)
        ;
}

static inline struct server_action cut(struct server_core *c, double now)
{
    struct server_action a;

    server_core_cut(c, now, &a);
    return a;
}

static inline void control(struct server_core *c, int worker, int64_t kind, int64_t argument)
{
    server_core_control(c, worker, (int64_t[CONTROL_WORDS]){ kind, argument }, 0);
}

static inline void done(struct server_core *c, int worker, uint32_t flags)
{
    control(c, worker, CONTROL_DONE, flags);
}

static const struct tally_part part = { .score = { 2, 5, 3, 6 } };

/* All packets and the tally of one worker. */
static inline void step_of(struct server_core *c, int worker)
{
    for (size_t k = 0; k < PACKETS; k++)
        push(c, worker, k);
    tally(c, worker, &part, 0);
}

/* Whom the server waits for, with limit 10 and precedence 4. wanted: a digit a worker. */
static inline void assert_late(const struct server_core *c, double now, double calm, const char *wanted)
{
    char late[WORKERS], got[WORKERS + 1] = "";
    const int some = server_core_late(c, now, calm, 10, 4, late);

    for (int w = 0; w < WORKERS; w++)
        got[w] = (char)('0' + late[w]);
    assert_string_equal(got, wanted);
    assert_int_equal(some, strchr(wanted, '1') != NULL);
}

#endif
