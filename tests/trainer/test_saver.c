/* The saver that is killed, and the saver of a trainer that is. */
#include "tests/trainer/saved_training.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

/* The saver is killed before each of its calls: this process says so, writes that checkpoint and the next ones. */
static void test_saver_is_killed(void **state)
{
    struct io_failing *failing = shared(sizeof *failing);
    const struct io io = io_failing_table(failing);
    int killed = 0, called = 1;

    (void)state;
    for (long call = 1; called; call++) {
        struct training t;

        *failing = (struct io_failing){ .fail_at = call, .kill = 1 };
        start(&t, &io, &(struct saving_options){ .steps = 10, .keep = 2 });
        t.saving.io = NULL;
        assert_int_equal(save_at(&t, 10, NULL), OK);
        assert_int_equal(outcome(&t, NULL), SAVING_ENDED);
        assert_newest(10);
        called = failing->calls >= call;
        killed += called;
        assert_int_equal(logged("was killed by signal 9; training waits for each checkpoint"), killed);
        assert_int_equal(save_at(&t, 20, NULL), called ? SAVING_ENDED : OK);
        assert_int_equal(outcome(&t, NULL), called ? OK : SAVING_ENDED);
        assert_newest(20);
        end(&t);
    }
    assert_true(killed > 10);
}

/* ---- what is left of a training that dies ------------------------------------------------------------------------- */

/* What rank 0 leaves if it is killed while it writes training.json. */
static const char *temporary_of(char out[PATH_MAX], pid_t pid)
{
    snprintf(out, PATH_MAX, "%s/" TRAINING_STATE_FILE ".tmp.%d", directory, (int)pid);
    return out;
}

static void leave_temporary(void)
{
    char path[PATH_MAX];
    FILE *file = fopen(temporary_of(path, getpid()), "w");

    if (!file || fclose(file))
        abort();
}

/* A process that trains to step 20, and dies: in the middle of an update, or in the middle of a save. */
enum death { BETWEEN_STEPS, IN_AN_UPDATE, IN_A_SAVE, WITH_NOTHING_WHOLE, DEATHS };

static _Noreturn void train_and_die(enum death death, const struct io *io, struct held *h)
{
    struct training_state will = { .state = "failed", .run_option = "single", .reason = "a test", .max_steps = 100 };
    struct training t;

    start(&t, io, &(struct saving_options){ .steps = 10 });
    process_self(&will.process);
    saving_will(&t.saving, &will);
    if (save_at(&t, 10, NULL) == OK && death != IN_A_SAVE)
        outcome(&t, NULL);
    else
        reached(h);
    train_to(&t, 20);
    saving_whole(&t.saving, 20);
    if (death == IN_AN_UPDATE || death == WITH_NOTHING_WHOLE) {
        saver_changes(t.saver);
        memset(network_parameters(t.network), 1, 100 * sizeof(real));
    }
    if (death == WITH_NOTHING_WHOLE)
        saving_torn(&t.saving);
    leave_temporary();
    raise(SIGKILL);
    for (;;)
        pause();
}

static void test_the_trainer_dies(void **state)
{
    for (enum death death = 0; death < DEATHS; death++) {
        struct held *h = shared(sizeof *h);
        const struct io io = held_table(h);
        const int64_t wanted = death == WITH_NOTHING_WHOLE ? 10 : 20;
        struct training_state there;
        char left[PATH_MAX];
        int status, lock, rc;
        pid_t pid;

        atomic_store(&h->pass, death != IN_A_SAVE);
        if ((pid = fork()) == 0)
            train_and_die(death, death == IN_A_SAVE ? &io : NULL, h);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        /* Nobody else may work there before it is over. */
        if (death == IN_A_SAVE)
            assert_true(training_lock_take(directory, 0, &lock, NULL) != OK);
        let_go(h);
        while ((rc = training_lock_take(directory, 0, &lock, NULL)) != OK)
            assert_true(rc == TRAINING_LOCK_SAVING || rc == ERR_PEER);
        close(lock);
        assert_newest(wanted);
        assert_int_equal(training_state_read(directory, &there, NULL), 1);
        assert_string_equal(there.state, "failed");
        assert_string_equal(there.reason, "a test");
        assert_int_equal(there.global_step, death == WITH_NOTHING_WHOLE ? 0 : 20);
        assert_int_equal(access(temporary_of(left, pid), F_OK), -1);
        tear_down(state);
        set_up(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_saver_is_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_trainer_dies, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
