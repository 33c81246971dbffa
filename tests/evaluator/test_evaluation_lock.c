/* The lock of an eval directory: living and dead holders, another host, a process number given again, odd texts. */
#include "evaluator/record/evaluation_lock.h"

#include "base/buffer.h"
#include "base/file.h"
#include "evaluator/record/ledger.h"
#include "tests/check.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char directory[PATH_MAX], path[PATH_MAX], aside[PATH_MAX], ledger[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/lock.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(directory))
        return -1;
    if (file_join(aside, sizeof aside, directory, "aside", NULL) != OK ||
        file_join(ledger, sizeof ledger, directory, LEDGER_FILE, NULL) != OK)
        return -1;
    return file_join(path, sizeof path, directory, "evaluator.lock", NULL);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    unlink(ledger);
    return rmdir(directory);
}

struct taken {
    struct evaluation_lock_held held;
    struct evaluation_lock before;
    enum evaluation_lock_state was;
    struct error error;
};

static int take(struct taken *t, int take_over)
{
    memset(t, 0, sizeof *t);
    const struct evaluation_lock_about about = { "/somewhere/ckpt", "m{*}.pt", "count", "resnet", 391, -1 };

    return evaluation_lock_take(path, &about, take_over, &t->held, &t->before, &t->was, &t->error);
}

static void put(const char *format, const char *host, int64_t pid, int64_t start)
{
    char text[512];
    int n = snprintf(text, sizeof text, format, host, pid, start);

    assert_int_equal(file_replace(NULL, path, text, (size_t)n, NULL), OK);
}

#define LINE "{\"state\":\"running\",\"host\":\"%s\",\"pid\":%" PRId64 ",\"process_start\":%" PRId64 "}\n"

static void test_taken_and_ended(void **state)
{
    struct evaluation_lock l;
    struct taken t;

    (void)state;
    assert_int_equal(evaluation_lock_read(path, &l), LOCK_NONE);
    assert_int_equal(take(&t, 0), OK);
    assert_int_equal(t.was, LOCK_NONE);
    assert_true(t.held.ledger >= 0 && t.held.file < 0); /* one descriptor a directory */
    evaluation_lock_release(path, &t.held, "training.json says finished");
    assert_int_equal(evaluation_lock_read(path, &l), LOCK_ENDED);
    assert_string_equal(l.why, "training.json says finished");
    assert_string_equal(l.checkpoint_directory, "/somewhere/ckpt");
    assert_string_equal(l.eval_directory, directory);
    assert_string_equal(l.tags, "resnet");
    assert_string_equal(l.pattern, "m{*}.pt");
    assert_string_equal(l.step_from, "count");
    assert_true(l.step_scale == 391 && l.step_offset == -1);
    assert_int_equal(l.process.pid, getpid());
    assert_int_equal(take(&t, 0), OK);
    assert_int_equal(t.was, LOCK_ENDED);
    evaluation_lock_release(path, &t.held, NULL);
}

static void test_a_living_process(void **state)
{
    int ready[2], status;
    struct evaluation_lock l;
    struct taken t;
    char byte, number[32];
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    if ((child = fork()) == 0) {
        byte = take(&t, 0) == OK ? 'y' : 'n';
        (void)!write(ready[1], &byte, 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(evaluation_lock_read(path, &l), LOCK_ALIVE);
    for (int take_over = 0; take_over < 2; take_over++) {
        assert_int_equal(take(&t, take_over), ERR_PEER);
        snprintf(number, sizeof number, "process %d ", (int)child);
        assert_non_null(strstr(t.error.message, number));
        assert_null(strstr(t.error.message, "--take-over"));
    }
    /* Without its file the lock lets nobody in, and no new file is made. */
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(take(&t, 1), ERR_PEER);
    assert_non_null(strstr(t.error.message, "whose lock file was deleted"));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rename(aside, path), 0);
    kill(child, SIGKILL);
    waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT); /* it has ended, and nobody waited for it */
    assert_int_equal(process_lives(child, -1), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(take(&t, 0), OK);
    assert_int_equal(t.was, LOCK_DEAD);
    assert_int_equal(t.before.process.pid, child);
    evaluation_lock_release(path, &t.held, NULL);
    close(ready[0]);
    close(ready[1]);
}

/* A child that an evaluator forked, and that is not another program yet, has its lock as well. */
static void test_a_child_of_one_that_was_killed(void **state)
{
    const struct timespec moment = { 0, 100000000 };
    struct taken t;
    int ready[2];
    pid_t holder, child;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    if ((holder = fork()) == 0) {
        if (take(&t, 0) != OK || (child = fork()) < 0)
            _exit(1);
        if (!child) {
            child = getpid();
            (void)!write(ready[1], &child, sizeof child);
            nanosleep(&moment, NULL);
            _exit(0);
        }
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &child, sizeof child), sizeof child);
    kill(holder, SIGKILL);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    assert_int_equal(take(&t, 0), OK);
    assert_int_equal(t.was, LOCK_DEAD);
    assert_int_equal(t.before.process.pid, holder);
    evaluation_lock_release(path, &t.held, NULL);
    close(ready[0]);
    close(ready[1]);
}

static void test_what_stands_there(void **state)
{
    char host[HOST_NAME_MAX + 1] = "";
    struct taken t;

    (void)state;
    gethostname(host, sizeof host - 1);
    /* This process lives, and so may be the one that is meant; started at another time it is not. */
    put(LINE, host, getpid(), -1);
    assert_int_equal(take(&t, 0), ERR_PEER);
    put(LINE, host, getpid(), 1);
    assert_int_equal(take(&t, 0), OK);
    assert_int_equal(t.was, LOCK_DEAD);
    evaluation_lock_release(path, &t.held, NULL);
    put("%s %" PRId64 "\n", host, getppid(), 0); /* as it was written before */
    assert_int_equal(take(&t, 0), ERR_PEER);
    put(LINE, "another.host", 17, 3);
    assert_int_equal(take(&t, 0), ERR_PEER);
    assert_non_null(strstr(t.error.message, "process 17 on host another.host"));
    assert_non_null(strstr(t.error.message, "--take-over"));
    assert_int_equal(take(&t, 1), OK);
    assert_int_equal(t.was, LOCK_ELSEWHERE);
    put(LINE, "another.host", 18, 3); /* somebody takes it over from us: what stands there is theirs */
    evaluation_lock_release(path, &t.held, "done");
    assert_int_equal(evaluation_lock_read(path, &t.before), LOCK_ELSEWHERE);
}

static void test_odd_texts(void **state)
{
    static const struct {
        const char *text;
        int ours;
    } texts[] = {
        /* what a crash may have left of a lock is ours */
        { "", 1 },
        { "{", 1 },
        { "{\"state\":\"running\",\"host\":\"a\"}", 1 },
        { "{\"state\":\"running\",\"host\":\"a\",\"pid\":-3}", 1 },
        { "{\"state\":\"odd\",\"host\":\"a\",\"pid\":3}", 1 },
        { "\n", 0 },
        { "{}", 0 },
        { "[]", 0 },
        { "null", 0 },
        { "host", 0 },
        { "host 0", 0 },
        { "host x", 0 },
        { " 12", 0 },
        { "{\"state\":7,\"host\":[],\"pid\":{}}", 0 },
    };
    struct buffer found = BUFFER_EMPTY;
    struct evaluation_lock l;
    struct taken t;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = texts[i].text;

        assert_int_equal(evaluation_lock_parse(text, strlen(text), &l), 0);
        assert_int_equal(file_replace(NULL, path, text, strlen(text), NULL), OK);
        assert_int_equal(take(&t, 0), texts[i].ours ? OK : ERR_ARG);
        evaluation_lock_release(path, &t.held, NULL);
        if (texts[i].ours)
            continue;
        assert_true(strstr(t.error.message, path) && strstr(t.error.message, "is not the lock of an evaluator"));
        buffer_clear(&found);
        assert_int_equal(file_read(path, 100, &found, NULL), OK);
        assert_string_equal(buffer_text(&found), text);
    }
    buffer_release(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_taken_and_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_living_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_child_of_one_that_was_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_stands_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_odd_texts, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
