/* Several directories served by one runner that only says that it is done: whose turn it is, what is pinned, which
 * directories of a tree are served. */
#include "evaluator/evaluation_loop.h"

#include "base/file.h"
#include "evaluator/files/file_tree.h"
#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static char top[PATH_MAX];
static struct log quiet;
static struct lookout *lookout;

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "%s/loop.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    log_init(&quiet, "test", open("/dev/null", O_WRONLY | O_CLOEXEC));
    assert_int_equal(lookout_start(&lookout, NULL), OK);
    return mkdtemp(top) ? chdir(top) : -1; /* so all names in the tests are short ones */
}

static int tear_down(void **state)
{
    (void)state;
    close(quiet.fd);
    lookout_stop(lookout);
    return chdir("/") == 0 ? file_tree_remove(top, NULL) : -1;
}

/* NAME/m_1.pt to m_COUNT.pt. */
static void make_checkpoints(const char *name, int count)
{
    char file[64];

    assert_int_equal(file_make_directories(name, NULL), OK);
    for (int step = 1; step <= count; step++) {
        snprintf(file, sizeof file, "%s/m_%d.pt", name, step);
        assert_int_equal(file_replace(NULL, file, file, strlen(file), NULL), OK);
    }
}

static struct evaluation_watch_settings settings(const char *pattern, const char *ready)
{
    struct evaluation_watch_settings s = { .watcher = { .poll_seconds = 1, .quiet_seconds = 30 },
                                           .queue_limit = 8,
                                           .ending = { .once = 1, .until_step = -1 },
                                           .retry_seconds = 1,
                                           .best = { EVALUATION_PRECISION, 0, 0 },
                                           .tags = evaluation_tags_plain(),
                                           .lookout = lookout };

    const struct checkpoint_source_options source = { .pattern = pattern,
                                                      .ready = &ready,
                                                      .ready_count = ready != NULL };

    assert_int_equal(checkpoint_source_init(&s.watcher.source, &source, NULL), OK);
    return s;
}

/* a runner; what it was given, in order: the last letter of the directory and the step */
struct fake {
    char order[128];
    int lacks; /* so many times memory is lacking */
};

static int fake_start(void *context, size_t slot, const struct runner_job *job, struct error *e)
{
    struct fake *f = context;
    size_t n = strlen(f->order);

    (void)slot;
    if (f->lacks && f->lacks--)
        return error_memory(e, NULL, "for anything");
    snprintf(f->order + n, sizeof f->order - n, "%s%c%d", n ? " " : "", job->directory[strlen(job->directory) - 1],
             (int)job->checkpoint->step);
    return OK;
}

static enum runner_state fake_look(void *context, size_t slot, struct runner_progress *progress, struct evaluation *out,
                                   struct error *why)
{
    (void)context;
    (void)slot;
    *progress = (struct runner_progress){ 1, WEIGHTS_UNKNOWN, NULL };
    return evaluation_metrics_add(&out->metrics, EVALUATION_PRECISION, 0.5, why) == OK ? RUNNER_DONE : RUNNER_FAILED;
}

static void fake_stop(void *context, size_t slot)
{
    (void)context;
    (void)slot;
}

static int run(const struct evaluation_loop_options *options)
{
    struct evaluation_loop *l;
    int rc;

    assert_int_equal(evaluation_loop_new(&l, options, NULL), OK);
    rc = evaluation_loop_run(l, NULL);
    evaluation_loop_free(l);
    return rc;
}

/* The one whose last start is longest ago is next; what is left of a longer queue comes when the others are empty. */
static void test_turns(void **state)
{
    static const struct {
        const char *name, *eval;
        int count;
    } directories[] = {
        { "a", "eval-a", 4 },
        { "b", "eval-b", 2 },
        { "c", "eval-c", 3 },
    };

    (void)state;
    for (size_t slots = 1; slots <= 3; slots++) {
        struct fake fake = { "", 0 };
        struct runner runner = {
            .name = "fake", .slots = slots, .start = fake_start, .look = fake_look, .stop = fake_stop, .context = &fake
        };
        struct evaluation_loop_options l = { .log = &quiet, .runner = &runner, .lookout = lookout };
        struct evaluation_watch *watches[3];
        int signals[2];

        for (size_t i = 0; i < 3; i++) {
            struct evaluation_watch_settings s = settings("m_{step}.pt", "rename");

            make_checkpoints(directories[i].name, directories[i].count);
            s.checkpoint_directory = directories[i].name;
            s.eval_directory = directories[i].eval;
            assert_int_equal(file_tree_remove(s.eval_directory, NULL), OK);
            assert_int_equal(evaluation_watch_open(&watches[i], &s, &quiet, NULL), OK);
        }
        assert_int_equal(pipe2(signals, O_NONBLOCK | O_CLOEXEC), 0);
        l.watches = watches;
        l.watch_count = 3;
        l.signal_fd = signals[0];
        runner.descriptor = eventfd(1, EFD_CLOEXEC); /* always readable: there is news at once */
        assert_int_equal(run(&l), EVALUATION_LOOP_DONE);
        assert_string_equal(fake.order, "a1 b1 c1 a2 b2 c2 a3 c3 a4");
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(evaluation_watch_facts(watches[i]).record.summary->done, directories[i].count);
            evaluation_watch_close(watches[i]);
        }
        close(signals[0]);
        close(signals[1]);
        close(runner.descriptor);
    }
}

/* A checkpoint whose evaluation cannot begin for want of memory waits; it has not failed. */
static void test_lack(void **state)
{
    struct evaluation_watch_settings s = settings("m_{step}.pt", "rename");
    struct fake fake = { "", 2 };
    struct runner runner = { .name = "fake",
                             .slots = 1,
                             .start = fake_start,
                             .look = fake_look,
                             .stop = fake_stop,
                             .context = &fake,
                             .descriptor = eventfd(1, EFD_CLOEXEC) };
    struct evaluation_watch *watch;
    struct evaluation_loop_options l = {
        .log = &quiet, .runner = &runner, .watches = &watch, .watch_count = 1, .lookout = lookout
    };
    int signals[2];

    (void)state;
    make_checkpoints("a", 2);
    s.checkpoint_directory = "a";
    s.eval_directory = "eval";
    assert_int_equal(pipe2(signals, O_NONBLOCK | O_CLOEXEC), 0);
    l.signal_fd = signals[0];
    assert_int_equal(evaluation_watch_open(&watch, &s, &quiet, NULL), OK);
    assert_int_equal(run(&l), EVALUATION_LOOP_DONE);
    assert_string_equal(fake.order, "a1 a2");
    assert_int_equal(evaluation_watch_facts(watch).record.summary->done, 2);
    assert_int_equal(evaluation_watch_facts(watch).record.summary->failed, 0);
    evaluation_watch_close(watch);
    close(signals[0]);
    close(signals[1]);
    close(runner.descriptor);
}

static void test_pinned(void **state)
{
    static const char *const pins[] = { "runs/a/eval/pinned/", "runs/b/eval/pinned/" };
    struct evaluation_set_options options = { .settings = settings("m_{step}.pt", "rename"),
                                              .eval_root = "runs",
                                              .pairs = { { "a=a", "b=b" }, 2 } };
    struct evaluation_watch **watches;
    struct evaluation_set *s;
    size_t count;

    (void)state;
    make_checkpoints("a", 2);
    make_checkpoints("b", 2);
    options.settings.pin = 1;
    assert_int_equal(evaluation_set_open(&s, &options, &quiet, NULL), OK);
    watches = evaluation_set_watches(s, &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        DIR *pinned = opendir(pins[i]);
        struct dirent *entry;
        int pinned_count = 0;

        assert_non_null(pinned);
        while ((entry = readdir(pinned)))
            pinned_count += *entry->d_name != '.';
        closedir(pinned);
        assert_int_equal(pinned_count, 2);
        assert_int_equal(evaluation_watch_facts(watches[i]).intake.queued, 2);
    }
    evaluation_set_close(s);
}

/* NAME.index is a checkpoint NAME, also where a pattern says what NAME is like. */
static void test_tree(void **state)
{
    static const char *const patterns[] = { NULL, "model.ckpt-{step}", "model.ckpt-{step}.index", "other-{step}" };

    (void)state;
    assert_int_equal(file_make_directories("tree/deep/run", NULL), OK);
    assert_int_equal(file_replace(NULL, "tree/deep/run/model.ckpt-5.index", "", 0, NULL), OK);
    for (size_t i = 0; i < 4; i++) {
        struct evaluation_set_options options = { .settings = settings(patterns[i], NULL),
                                                  .eval_root = "runs",
                                                  .tree = "tree" };
        struct evaluation_set *s;
        size_t count;

        assert_int_equal(evaluation_set_open(&s, &options, &quiet, NULL), OK);
        evaluation_set_watches(s, &count);
        assert_int_equal(count, i < 3);
        evaluation_set_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pinned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tree, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
