/* The times of all ranks on rank 0, over threads for ranks: at the end, and in windows while they go on. */
#include "trainer/time_watch.h"

#include "tests/check.h"
#include "tests/trainer/threads.h"

#include <pthread.h>
#include <stdlib.h>

enum { RANKS_MAX = 5, STEPS = 40 };

struct player {
    struct thread_post *post;
    struct world *world;
    struct phase_clock clock;
    int rank, ranks, workers, every, steps;
    int outlives; /* 1: rank 0 goes on until the others have ended */
    struct rank_times all;
    struct phase_times sum[RANKS_MAX]; /* rank 0: of all windows */
    int windows;
    int64_t last; /* step of the last window */
    pthread_t thread;
};

/* Rank 0: 1: all windows of the others have come, and it has taken some steps since. */
static int is_alone(const struct times_windows *t, int *steps)
{
    for (int r = 1; r < t->workers; r++)
        if (t->open[r])
            return 0;
    return ++*steps > 10;
}

static void work(struct player *p)
{
    struct times_windows t;
    struct error e = { 0 };
    int64_t step;
    int rc, alone = 0;

    if (times_windows_open(&t, p->world, &p->clock, p->workers, p->rank, &e) < 0)
        abort();
    for (int i = 1; i <= p->steps || (p->outlives && !is_alone(&t, &alone)); i++) {
        phase_clock_step(&p->clock, i - 1, PHASE_INPUT);
        phase_clock_enter(&p->clock, PHASE_FORWARD);
        if ((rc = times_windows_step(&t, i, i % p->every == 0, &step, &e)) < 0)
            abort();
        if (rc == 0)
            continue;
        if (p->rank != 0 || step <= p->last || step > i || step % p->every != 0)
            abort();
        for (int r = 0; r < p->workers; r++)
            phase_times_add(&p->sum[r], &t.times[r]);
        p->windows++;
        p->last = step;
    }
    if (times_windows_close(&t, 1, "close", &e) < 0)
        abort();
}

static void *live(void *context)
{
    struct player *p = context;
    struct error e = { 0 };

    if (world_over(&p->world, thread_participant(p->post, p->rank), 60, &e) < 0)
        abort();
    phase_clock_start(&p->clock, PHASE_OTHER, NULL);
    if (p->rank < p->workers)
        work(p);
    phase_clock_stop(&p->clock);
    if (times_gather(&p->all, p->world, &p->clock, p->workers, 1, "end", &e) < 0)
        abort();
    return NULL;
}

static void play(struct player *players, int ranks, int workers, int every, int uneven)
{
    struct thread_post *post = thread_post_new(ranks);

    for (int r = 0; r < ranks; r++) {
        players[r] = (struct player){ .post = post, .rank = r, .ranks = ranks, .workers = workers, .every = every };
        players[r].steps = STEPS + uneven * 10 * r;
        players[r].outlives = r == 0 && uneven < 0 && workers > 1;
    }
    for (int r = 0; r < ranks; r++)
        assert_int_equal(pthread_create(&players[r].thread, NULL, live, &players[r]), 0);
    for (int r = 0; r < ranks; r++)
        pthread_join(players[r].thread, NULL);
    for (int r = 0; r < ranks; r++) {
        for (int k = 0; k < ranks; k++)
            assert_memory_equal(&players[r].all.all[k], &players[k].clock.times, sizeof(struct phase_times));
        assert_int_equal(players[r].all.ranks, ranks);
        assert_int_equal(players[r].all.workers, workers);
    }
    for (int r = 0; r < ranks; r++) {
        times_release(&players[r].all);
        world_close(players[r].world);
    }
    thread_post_free(post);
}

/* Whenever messages arrive: no time is told twice, none that a worker did not have, and rank 0's own windows end at its
 * points; servers take no part, and a worker may take more steps than rank 0, or fewer. */
static void test_windows(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++)
        for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
            struct player players[RANKS_MAX];
            const int workers = ranks > 2 && round % 2 ? ranks - 1 : ranks, every = 1 + round % 3;

            play(players, ranks, workers, every, round % 3 - 1);
            for (int r = 0; r < workers; r++)
                for (int p = 0; p < PHASE_COUNT; p++) {
                    assert_true(players[0].sum[r].nanoseconds[p] >= 0);
                    assert_true(players[0].sum[r].nanoseconds[p] <= players[r].clock.times.nanoseconds[p]);
                    assert_true(players[0].sum[r].steps <= players[r].clock.times.steps);
                }
            if (workers == 1) {
                assert_int_equal(players[0].windows, STEPS / every);
                assert_int_equal(players[0].sum[0].steps, STEPS / every * every);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_windows) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
