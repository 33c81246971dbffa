/* Threads that work together: each member once a round, in turn for as long as the team lives. */
#include "trainer/collective/team.h"

#include "base/clock.h"
#include "tests/check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS_MAX = 8, ROUNDS = 200 };

struct work {
    struct team *team;
    int size;
    int did[MEMBERS_MAX];
    pthread_t threads[MEMBERS_MAX]; /* of the first round */
    int other_thread, unblocked;
    atomic_int idled, go, waiting;
};

static void count(void *context, int member)
{
    struct work *w = context;
    sigset_t blocked;

    assert_true(member >= 0 && member < w->size);
    if (w->did[member]++ == 0)
        w->threads[member] = pthread_self();
    else if (!pthread_equal(w->threads[member], pthread_self()))
        w->other_thread = 1;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (member > 0 && !sigismember(&blocked, SIGTERM))
        w->unblocked = 1;
}

/* Every member works once a round, always in the same thread, and the caller sees what it did. */
static void test_rounds(void **state)
{
    (void)state;
    for (int size = 1; size <= MEMBERS_MAX; size++) {
        struct work w = { .size = size };
        struct error e = { 0 };

        assert_int_equal(team_new(&w.team, size, &e), OK);
        for (int round = 1; round <= ROUNDS; round++) {
            team_run(w.team, count, NULL, &w);
            for (int m = 0; m < size; m++)
                assert_int_equal(w.did[m], round);
        }
        assert_true(pthread_equal(w.threads[0], pthread_self()));
        for (int m = 1; m < size; m++)
            for (int k = 0; k < m; k++)
                assert_false(pthread_equal(w.threads[m], w.threads[k]));
        assert_int_equal(w.other_thread, 0);
        assert_int_equal(w.unblocked, 0); /* signals are the caller's */
        team_free(w.team);
    }
    team_free(NULL);
}

/* They run at the same time: each waits until all are there. */
static void meet(void *context, int member)
{
    struct work *w = context;
    const double begun = clock_monotonic();

    (void)member;
    atomic_fetch_add(&w->waiting, 1);
    while (atomic_load(&w->waiting) < w->size && clock_monotonic() - begun < 60)
        sched_yield();
}

static void test_at_once(void **state)
{
    struct work w = { .size = 4 };

    (void)state;
    assert_int_equal(team_new(&w.team, w.size, NULL), OK);
    team_run(w.team, meet, NULL, &w);
    assert_int_equal(atomic_load(&w.waiting), 4);
    team_free(w.team);
}

/* The caller is called while it waits, and may so end the waiting. */
static void wait_for_go(void *context, int member)
{
    struct work *w = context;
    const double begun = clock_monotonic();

    while (member > 0 && !atomic_load(&w->go) && clock_monotonic() - begun < 60)
        nanosleep(&(struct timespec){ 0, 100000 }, NULL);
}

static void let_go(void *context)
{
    struct work *w = context;

    assert_true(pthread_equal(w->threads[0], pthread_self()));
    if (atomic_fetch_add(&w->idled, 1) >= 2)
        atomic_store(&w->go, 1);
}

static void test_idle(void **state)
{
    struct work w = { .size = 3, .threads = { pthread_self() } };

    (void)state;
    assert_int_equal(team_new(&w.team, w.size, NULL), OK);
    team_run(w.team, wait_for_go, let_go, &w);
    assert_true(atomic_load(&w.idled) >= 3);
    team_free(w.team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_idle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
