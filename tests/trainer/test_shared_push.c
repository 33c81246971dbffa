/* Whom a worker blames that waits for the one which pushes for their host: nobody, as long as that one looks for messages,
 * however seldom it runs on a busy machine. */
#include "trainer/server/shared_push.h"

#include "tests/check.h"
#include "tests/trainer/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 2, DEADLINE = 1 };

struct worker {
    pthread_t thread;
    struct thread_post *post;
    _Atomic double *ran; /* seconds in which worker 1 has waited; < 0: it waits no more */
    double pause;        /* of those: then worker 0 looks again; 0: it never does */
    int rank, rc;
    struct error error;
    struct world *world;
    struct shared_push *push;
    struct verdict verdict;
};

/* In a thread, where cmocka's own checks cannot return. */
static void must(int holds)
{
    if (!holds)
        abort();
}

static void tell(void *context)
{
    struct worker *w = context;

    atomic_store(w->ran, world_ran(w->world));
}

static void speak(struct worker *w)
{
    const struct timespec pause = { 0, 1000000 };
    double ran;

    shared_push_look(w->push);
    while ((ran = atomic_load(w->ran)) >= 0 && (w->pause <= 0 || ran < w->pause))
        nanosleep(&pause, NULL);
    if (ran >= 0)
        shared_push_answer(w->push, &(struct verdict){ .values = 1 });
}

static void *live(void *context)
{
    struct worker *w = context;
    struct reduction reduction;
    struct worker_groups groups;
    struct shared_push_plan plan = { .groups = &groups, .reduction = &reduction, .total = 8, .values = 8, .pushed = 8 };

    must(world_over(&w->world, thread_participant(w->post, w->rank), DEADLINE, NULL) == OK);
    must(reduction_init(&reduction, WORKERS, 0, NULL) == OK);
    must(worker_groups_init(&groups, &reduction, (const int[WORKERS]){ 0 }, NULL) == OK);
    plan.world = w->world;
    plan.worker = w->rank;
    must(shared_push_new(&w->push, &plan, NULL) == OK);
    shared_push_begin(w->push);
    if (w->rank == 0) {
        speak(w);
    } else {
        world_set_idle(w->world, tell, w);
        w->rc = shared_push_wait(w->push, 5, &w->verdict, &w->error);
        world_set_idle(w->world, NULL, NULL);
        atomic_store(w->ran, -1);
    }
    shared_push_free(w->push);
    worker_groups_release(&groups);
    reduction_release(&reduction);
    return NULL;
}

/* What worker 1 has at the end; worker 0 pauses in between. */
static struct worker wait_for_speaker(double pause)
{
    struct thread_post *post = thread_post_new(WORKERS);
    struct worker workers[WORKERS];
    _Atomic double ran = 0;

    for (int k = 0; k < WORKERS; k++) {
        workers[k] = (struct worker){ .post = post, .ran = &ran, .pause = pause, .rank = k };
        assert_int_equal(pthread_create(&workers[k].thread, NULL, live, &workers[k]), 0);
    }
    for (int k = 0; k < WORKERS; k++)
        pthread_join(workers[k].thread, NULL);
    for (int k = 0; k < WORKERS; k++)
        world_close(workers[k].world);
    thread_post_free(post);
    return workers[1];
}

static void test_speaker_runs_seldom(void **state)
{
    const struct worker w = wait_for_speaker(DEADLINE + 3);

    (void)state;
    assert_string_equal(w.error.message, "");
    assert_int_equal(w.rc, OK);
    assert_int_equal(w.verdict.values, 1);
}

static void test_speaker_runs_no_more(void **state)
{
    const struct worker w = wait_for_speaker(0);

    (void)state;
    assert_int_equal(w.rc, ERR_PEER);
    assert_non_null(strstr(w.error.message, "waited 1 s at step 5 for rank 0 on host "));
    assert_non_null(strstr(w.error.message, ", which pushes the gradients of this host;"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speaker_runs_seldom),
        cmocka_unit_test(test_speaker_runs_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
