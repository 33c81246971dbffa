/* Who reports a broadcast that does not end: its root at the deadline, the others later, as the root may wait itself; and
 * what a rank says that the launcher ends. */
#include "trainer/collective/world.h"

#include "base/clock.h"
#include "tests/check.h"
#include "tests/trainer/threads.h"
#include "trainer/collective/places.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, DEADLINE = 1 };

struct one {
    pthread_t thread;
    struct thread_post *post;
    int rank, silent; /* silent: the rank that takes no part */
    int rc;
    double seconds;
    struct error error;
    struct world *world;
};

static void *live(void *context)
{
    struct one *o = context;
    int value = 7;
    double begun;

    if (world_over(&o->world, thread_participant(o->post, o->rank), DEADLINE, NULL) < 0)
        abort();
    begun = clock_monotonic();
    if (o->rank != o->silent)
        o->rc = world_broadcast(o->world, &value, sizeof value, "the weights", &o->error);
    o->seconds = clock_monotonic() - begun;
    return NULL;
}

static void *arrive(void *context)
{
    struct one *o = context;

    if (world_over(&o->world, thread_participant(o->post, o->rank), DEADLINE, NULL) < 0)
        abort();
    return NULL;
}

static struct thread_post *together(struct one *ones, int silent, void *(*begin)(void *))
{
    struct thread_post *post = thread_post_new(RANKS);

    for (int r = 0; r < RANKS; r++) {
        ones[r] = (struct one){ .post = post, .rank = r, .silent = silent };
        assert_int_equal(pthread_create(&ones[r].thread, NULL, begin, &ones[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(ones[r].thread, NULL);
    return post;
}

static void part(struct one *ones, struct thread_post *post)
{
    for (int r = 0; r < RANKS; r++)
        world_close(ones[r].world);
    thread_post_free(post);
}

static void broadcast_without(struct one *ones, int silent)
{
    part(ones, together(ones, silent, live));
}

static void test_root_reports(void **state)
{
    struct one ones[RANKS];

    (void)state;
    broadcast_without(ones, 2);
    assert_int_equal(ones[0].rc, ERR_PEER);
    assert_non_null(strstr(ones[0].error.message, "waited 1 s for rank 2 "));
    assert_non_null(strstr(ones[0].error.message, " to take the weights;"));
    assert_int_equal(ones[1].rc, OK);
}

static void test_root_is_late(void **state)
{
    struct one ones[RANKS];

    (void)state;
    broadcast_without(ones, 0);
    for (int r = 1; r < RANKS; r++) {
        assert_int_equal(ones[r].rc, ERR_PEER);
        assert_non_null(strstr(ones[r].error.message, "waited 1 s for rank 0 "));
        assert_non_null(strstr(ones[r].error.message, " to send the weights;"));
        assert_true(ones[r].seconds > (double)DEADLINE + places_precedence(DEADLINE, 2));
    }
}

/* The workers of a hybrid run wait for each other: the marks are of those only. */
static void test_marks_of_some(void **state)
{
    struct one ones[RANKS];
    struct thread_post *post = together(ones, -1, arrive);
    struct patience p;

    (void)state;
    patience_init(&p, ones[0].world, 0);
    while (patience_pause(&p))
        ;
    assert_int_equal(patience_speaks(&p, (const char[]){ 0, 1, 1 }, 2), 1);
    part(ones, post);
}

static pid_t stopped_child(struct process *out)
{
    int status, fds[2];
    pid_t child;

    assert_int_equal(pipe(fds), 0);
    if ((child = fork()) == 0) {
        struct process self;

        process_self(&self);
        if (write(fds[1], &self, sizeof self) != sizeof self)
            _exit(1);
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(read(fds[0], out, sizeof *out), sizeof *out);
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    return child;
}

/* Of several late ranks, one is stopped, for which the others may wait: it alone is named. */
static void test_one_stands(void **state)
{
    struct one ones[RANKS];
    struct thread_post *post = together(ones, -1, arrive);
    const struct process *places = world_places(ones[0].world);
    struct process *place;
    pid_t child;

    (void)state;
    memcpy(&place, &places, sizeof place);
    child = stopped_child(&place[2]);
    ones[0].rc = world_agree(ones[0].world, "end", OK, &ones[0].error);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(ones[0].rc, ERR_PEER);
    assert_non_null(strstr(ones[0].error.message, "waited 1 s for rank 2 on host "));
    part(ones, post);
}

static void count(void *context, struct error *sentence)
{
    ++*(int *)context;
    assert_non_null(strstr(sentence->message, "mpirun ends the ranks"));
    assert_non_null(strstr(sentence->message, " for all"));
}

/* Who waits for a rank that waits itself, or is computing on a busy machine, gives it time; but not if it is stopped. */
static void test_one_knows_better(void **state)
{
    struct one ones[RANKS];
    struct thread_post *post = together(ones, -1, arrive);
    const struct process *places = world_places(ones[0].world);
    struct process *place;
    struct patience p;
    pid_t child;

    (void)state;
    memcpy(&place, &places, sizeof place);
    child = stopped_child(&place[2]);
    patience_init(&p, ones[0].world, 0);
    assert_int_equal(patience_misses(&p, 1), 0);
    assert_int_equal(patience_misses(&p, 2), 1);
    p.limit -= 1 + places_precedence(DEADLINE, 2);
    assert_int_equal(patience_misses(&p, 1), 1);
    world_hurry(ones[0].world, count, NULL);
    assert_int_equal(patience_misses(&p, 1), 0);
    assert_int_equal(patience_misses(&p, 2), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    part(ones, post);
}

static int over(struct world *w, struct error *e)
{
    struct patience p;

    patience_init(&p, w, 0);
    return patience_over(&p, e, "for %s", "all");
}

/* One rank reports; the others, whose deadline passes before the launcher has ended them, say nothing, unless it takes a
 * whole deadline. */
static void test_one_reports(void **state)
{
    struct one ones[RANKS];
    struct thread_post *post = together(ones, -1, arrive);
    int rc;

    (void)state;
    assert_int_equal(over(ones[1].world, &ones[1].error), ERR_PEER);
    assert_int_equal(over(ones[0].world, &ones[0].error), 0);
    assert_int_equal(over(ones[2].world, &ones[2].error), 0);
    while ((rc = over(ones[0].world, &ones[0].error)) == 0)
        ;
    assert_int_equal(rc, ERR_PEER);
    part(ones, post);
}

/* A rank that the launcher is ending says whom it waits for, and then, though its own deadline passes, no more; but the
 * launcher may fail to end it. */
static void test_last_sentence(void **state)
{
    struct thread_post *post = thread_post_new(1);
    struct error e = { 0 };
    struct world *w;
    struct patience p;
    double begun;
    int said = 0, rc;

    (void)state;
    assert_int_equal(world_over(&w, thread_participant(post, 0), DEADLINE, NULL), OK);
    patience_init(&p, w, (double)DEADLINE / 2.0);
    while (patience_pause(&p))
        ;
    assert_int_equal(patience_over(&p, &e, "for %s", "all"), ERR_PEER);
    assert_string_equal(e.message, "waited 1 s for all; ending all ranks");
    world_hurry(w, count, &said);
    assert_int_equal(patience_over(&p, NULL, "for %s", "all"), 0);
    begun = clock_monotonic();
    do
        patience_pause(&p);
    while ((rc = patience_over(&p, &e, "for %s", "all")) == 0);
    assert_int_equal(rc, ERR_PEER);
    assert_true(clock_monotonic() - begun > (double)DEADLINE / 2.0);
    assert_int_equal(said, 1);
    world_close(w);
    thread_post_free(post);
}

static int refuse(struct participants *p, int to, int tag, const void *bytes, size_t n, uint64_t *handle,
                  struct error *e)
{
    (void)p, (void)to, (void)tag, (void)bytes, (void)n, (void)handle;
    return error_set(e, ERR_PEER, "sending: no way");
}

/* While they meet nobody knows the others' hosts. */
static void test_no_way_to_the_first(void **state)
{
    struct thread_post *post = thread_post_new(2);
    struct participants *p = thread_participant(post, 1);
    struct participants_operations operations = *p->operations;
    struct world *w;
    struct error e;

    (void)state;
    operations.send = refuse;
    p->operations = &operations;
    assert_int_equal(world_over(&w, p, DEADLINE, &e), ERR_PEER);
    assert_string_equal(e.message, "the connection with rank 0 failed: sending: no way");
    world_close(w);
    thread_post_free(post);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root_reports),     cmocka_unit_test(test_root_is_late),
        cmocka_unit_test(test_marks_of_some),    cmocka_unit_test(test_one_stands),
        cmocka_unit_test(test_one_knows_better), cmocka_unit_test(test_one_reports),
        cmocka_unit_test(test_last_sentence),    cmocka_unit_test(test_no_way_to_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
