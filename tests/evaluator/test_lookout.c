/* The thread that looks at directories: it looks by itself, not while its caller holds one, and not after a rest; posts
 * come and go while it works; what came to light is told once, in order. Run with SAN=thread. */
#include "evaluator/watch/lookout.h"

#include "base/file.h"
#include "evaluator/files/file_tree.h"
#include "tests/check.h"
#include "tests/failing_allocation.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEADLINE_MS = 600000 };

static char top[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "%s/lookout.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(top) ? chdir(top) : -1; /* so all names in the tests are short ones */
}

static int tear_down(void **state)
{
    (void)state;
    return chdir("/") == 0 ? file_tree_remove(top, NULL) : -1;
}

static void make(const char *path)
{
    assert_int_equal(file_replace(NULL, path, path, strlen(path), NULL), OK);
}

static struct watcher_options each_file(double poll_seconds)
{
    static const char *const ready[] = { "rename" };
    const struct checkpoint_source_options source = { .pattern = "m_{step}.pt", .ready = ready, .ready_count = 1 };
    struct watcher_options options = { .poll_seconds = poll_seconds, .quiet_seconds = 30 };

    assert_int_equal(checkpoint_source_init(&options.source, &source, NULL), OK);
    return options;
}

/* the kinds, a letter each, and the steps of what was found */
struct told {
    char kinds[64];
    int64_t last_step;
};

static void note(void *context, const struct watcher_news *news)
{
    struct told *t = context;
    const size_t n = strlen(t->kinds);

    assert_true(n + 1 < sizeof t->kinds);
    t->kinds[n] = "FXKLTNU!"[news->kind];
    t->kinds[n + 1] = '\0';
    assert_int_equal(news->checkpoint != NULL, news->kind == WATCHER_FOUND || news->kind == WATCHER_LOST);
    if (news->kind == WATCHER_FOUND)
        t->last_step = news->checkpoint->step;
}

static void tell(struct lookout_post *p, struct told *t)
{
    size_t undecided;

    assert_int_equal(lookout_tell(p, note, t, &undecided, NULL), OK);
    assert_int_equal(undecided, 0);
}

static void wait_for_look(struct lookout *l)
{
    struct pollfd news = { .fd = lookout_descriptor(l), .events = POLLIN };

    assert_int_equal(poll(&news, 1, DEADLINE_MS), 1);
    lookout_heard(l);
}

static void wait_for_count(struct lookout *l, struct queue *q, size_t count)
{
    while (queue_count(q) < count)
        wait_for_look(l);
}

/* By the poll, and by inotify alone. What was told is not told again. */
static void test_looks_by_itself(void **state)
{
    static const double polls[] = { 0.01, 3600 };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct watcher_options options = each_file(polls[i]);
        struct told told = { "", -1 };
        struct lookout_post *p;
        struct lookout *l;
        struct queue *q;

        options.inotify = polls[i] > 1;
        assert_int_equal(file_make_directories("a", NULL), OK);
        make("a/m_1.pt");
        assert_int_equal(queue_new(&q, 8, NULL), OK);
        assert_int_equal(lookout_start(&l, NULL), OK);
        assert_int_equal(lookout_open(&p, l, "a", &options, q, NULL), OK);
        assert_int_equal(queue_count(q), 1); /* by the first look, which is the caller's */
        tell(p, &told);
        assert_string_equal(told.kinds, "TF");
        make("a/m_2.pt");
        wait_for_count(l, q, 2);
        tell(p, &told);
        assert_string_equal(told.kinds, "TFF");
        assert_int_equal(told.last_step, 2);
        tell(p, &told);
        assert_string_equal(told.kinds, "TFF");
        lookout_close(p);
        lookout_stop(l);
        queue_free(q);
        assert_int_equal(file_tree_remove("a", NULL), OK);
    }
}

/* The next look is an hour away, and there is no inotify: whoever asks for one wakes the thread. */
static void test_look_soon(void **state)
{
    struct watcher_options options = each_file(3600);
    struct lookout_post *p;
    struct lookout *l;
    struct queue *q;

    (void)state;
    assert_int_equal(file_make_directories("a", NULL), OK);
    assert_int_equal(queue_new(&q, 8, NULL), OK);
    assert_int_equal(lookout_start(&l, NULL), OK);
    assert_int_equal(lookout_open(&p, l, "a", &options, q, NULL), OK);
    for (size_t i = 1; i <= 3; i++) {
        char name[32];

        snprintf(name, sizeof name, "a/m_%zu.pt", i);
        make(name);
        watcher_look_soon(lookout_hold(p));
        lookout_release(p);
        wait_for_count(l, q, i);
    }
    lookout_close(p);
    lookout_stop(l);
    queue_free(q);
}

/* Another directory is looked at meanwhile; after the release this one is, as what the holder did may make it due. */
static void test_hold(void **state)
{
    struct watcher_options options = each_file(0.01);
    struct lookout_post *held, *other;
    struct queue *q, *others;
    struct lookout *l;

    (void)state;
    assert_int_equal(file_make_directories("a", NULL), OK);
    assert_int_equal(file_make_directories("b", NULL), OK);
    assert_int_equal(queue_new(&q, 8, NULL), OK);
    assert_int_equal(queue_new(&others, 8, NULL), OK);
    assert_int_equal(lookout_start(&l, NULL), OK);
    assert_int_equal(lookout_open(&held, l, "a", &options, q, NULL), OK);
    assert_int_equal(lookout_open(&other, l, "b", &options, others, NULL), OK);
    assert_non_null(lookout_hold(held));
    make("a/m_1.pt");
    for (size_t i = 1; i <= 3; i++) {
        char name[32];

        snprintf(name, sizeof name, "b/m_%zu.pt", i);
        make(name);
        wait_for_count(l, others, i); /* so rounds go by */
    }
    assert_int_equal(queue_count(q), 0);
    lookout_release(held);
    wait_for_count(l, q, 1);
    lookout_rest(held);
    watcher_look_soon(lookout_hold(held)); /* a look that was at hand is over */
    lookout_release(held);
    make("a/m_2.pt");
    make("b/m_4.pt");
    wait_for_count(l, others, 4);
    make("b/m_5.pt");
    wait_for_count(l, others, 5); /* a whole round at least went by */
    assert_int_equal(queue_count(q), 1);
    lookout_close(held);
    lookout_close(other);
    lookout_stop(l);
    queue_free(q);
    queue_free(others);
}

/* Posts come and go while others are looked at, and checkpoints are taken while others are found. */
static void test_come_and_go(void **state)
{
    enum { POSTS = 8, ROUNDS = 20 };
    struct watcher_options options = each_file(0.001);
    struct lookout_post *posts[POSTS] = { NULL };
    struct queue *queues[POSTS];
    struct lookout *l;

    (void)state;
    assert_int_equal(lookout_start(&l, NULL), OK);
    for (size_t i = 0; i < POSTS; i++)
        assert_int_equal(queue_new(&queues[i], 8, NULL), OK);
    for (size_t round = 0; round < ROUNDS * POSTS; round++) {
        const size_t i = round * 5 % POSTS;
        struct queue_item item;
        char path[32];

        snprintf(path, sizeof path, "%zu", i);
        assert_int_equal(file_make_directories(path, NULL), OK);
        lookout_close(posts[i]);
        assert_int_equal(lookout_open(&posts[i], l, path, &options, queues[i], NULL), OK);
        snprintf(path, sizeof path, "%zu/m_%zu.pt", i, round);
        make(path);
        wait_for_count(l, queues[i], 1);
        assert_int_equal(queue_take(queues[i], &item), 1);
        assert_int_equal(item.checkpoint.step, round);
        queue_item_release(&item);
    }
    for (size_t i = 0; i < POSTS; i++) {
        lookout_close(posts[i]);
        queue_free(queues[i]);
    }
    lookout_stop(l);
}

static volatile sig_atomic_t caught_by_caller;
static pthread_t caller;

static void on_signal(int number)
{
    (void)number;
    caught_by_caller = pthread_equal(pthread_self(), caller);
}

/* A signal to the process never lands in the thread that looks, also where its caller has blocked it. */
static void test_signals(void **state)
{
    const struct sigaction action = { .sa_handler = on_signal };
    struct watcher_options options = each_file(0.01);
    struct lookout_post *p;
    struct lookout *l;
    struct queue *q;
    sigset_t one;

    (void)state;
    caller = pthread_self();
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(file_make_directories("a", NULL), OK);
    assert_int_equal(queue_new(&q, 8, NULL), OK);
    assert_int_equal(lookout_start(&l, NULL), OK);
    assert_int_equal(lookout_open(&p, l, "a", &options, q, NULL), OK);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &one, NULL), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    make("a/m_1.pt");
    wait_for_count(l, q, 1);
    assert_int_equal(caught_by_caller, 0);
    assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &one, NULL), 0);
    assert_int_equal(caught_by_caller, 1);
    lookout_close(p);
    lookout_stop(l);
    queue_free(q);
}

/* Want of memory at each allocation of opening a post, whose look finds something: said, and nothing is left. */
static void test_no_memory(void **state)
{
    struct watcher_options options = each_file(3600);
    int rc = ERR_NOMEM;
    struct lookout *l;

    (void)state;
    assert_int_equal(file_make_directories("a", NULL), OK);
    make("a/m_1.pt");
    assert_int_equal(lookout_start(&l, NULL), OK);
    for (long at = 1; rc != OK; at++) {
        struct told told = { "", -1 };
        struct lookout_post *p = NULL;
        struct error e = { 0 };
        struct queue *q;
        size_t undecided;

        assert_int_equal(queue_new(&q, 8, NULL), OK);
        atomic_store(&calls, 0);
        atomic_store(&fail_at, at);
        rc = lookout_open(&p, l, "a", &options, q, &e);
        if (rc == OK)
            rc = lookout_tell(p, note, &told, &undecided, &e);
        const int failed = atomic_load(&calls) >= at;
        atomic_store(&fail_at, 0);
        if (!failed) {
            assert_int_equal(rc, OK);
            assert_string_equal(told.kinds, "TF");
        } else if (rc == OK) { /* the machine's lack says nothing of the checkpoint: told as trouble, tried again */
            assert_int_equal(queue_count(q), 0);
            assert_int_equal(told.kinds[strlen(told.kinds) - 1], '!');
            rc = ERR_NOMEM;
        } else {
            assert_int_equal(rc, ERR_NOMEM);
            assert_non_null(strstr(e.message, "no memory"));
        }
        lookout_close(p);
        queue_free(q);
    }
    lookout_stop(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_looks_by_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_look_soon, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_signals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
