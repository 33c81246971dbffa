/* Decisions carried out packet by packet: in their order, once their pushes have come, packet 0 first. */
#include "trainer/server/server_core.h"

#include "tests/check.h"
#include "tests/failing_allocation.h"

enum { WORKERS = 3, PACKETS = 2, U = DECISION_USED, D = DECISION_DROPPED, A = DECISION_ANSWERED };

static struct follower *new_follower(void)
{
    struct follower *f;

    assert_int_equal(follower_new(&f, WORKERS, PACKETS, NULL), OK);
    return f;
}

static void decide(struct follower *f, int64_t step, uint8_t first, uint8_t second, uint8_t third)
{
    const uint8_t fates[WORKERS] = { first, second, third };

    follower_decision(f, &(struct decision){ follower_known(f), step, 1, fates });
}

static void push(struct follower *f, int worker, size_t packet)
{
    assert_true(follower_takes(f, worker, packet));
    follower_push(f, worker, packet);
}

static void assert_nothing(struct follower *f)
{
    struct application a;

    assert_false(follower_next(f, &a));
}

/* used and freed: a digit a row */
static void assert_next(struct follower *f, size_t packet, int64_t step, const char *used, const char *freed)
{
    struct application a;
    char text[2][16] = { "", "" };

    assert_true(follower_next(f, &a));
    assert_int_equal(a.packet, packet);
    assert_int_equal(a.step, step);
    for (int i = 0; i < a.used_count; i++)
        text[0][i] = (char)('0' + a.used[i]);
    for (int i = 0; i < a.freed_count; i++)
        text[1][i] = (char)('0' + a.freed[i]);
    assert_string_equal(text[0], used);
    assert_string_equal(text[1], freed);
}

/* One decision after the other: also a packet that could go on waits until the first is done with. */
static void test_release(void **state)
{
    struct follower *f = new_follower();

    (void)state;
    follower_wait_for_release(f);
    decide(f, 0, U | A, 0, 0);
    decide(f, 1, U | A, 0, 0);
    push(f, 0, 0);
    assert_next(f, 0, 0, "0", "0");
    push(f, 0, 0);
    assert_nothing(f);
    push(f, 0, 1);
    assert_next(f, 1, 0, "0", "0");
    assert_nothing(f);
    assert_false(follower_is_at(f, 1));
    follower_release(f);
    assert_true(follower_is_at(f, 1));
    assert_next(f, 0, 1, "0", "0");
    follower_free(f);
}

static void test_chosen(void **state)
{
    struct follower *f = new_follower();

    (void)state;
    push(f, 2, 0);
    push(f, 2, 1);
    assert_false(follower_takes(f, 2, 0)); /* until this one is applied */
    assert_nothing(f);
    decide(f, 10, U | A, 0, U | A);
    assert_nothing(f);
    push(f, 0, 1); /* before packet 0, which has the weight */
    assert_nothing(f);
    push(f, 0, 0);
    assert_next(f, 0, 10, "02", "02");
    assert_true(follower_takes(f, 2, 0));
    assert_false(follower_is_at(f, 1));
    assert_next(f, 1, 10, "02", "02");
    assert_nothing(f);
    assert_true(follower_is_at(f, 1));
    assert_false(follower_is_at(f, 0));

    push(f, 1, 0); /* late: dropped at the next update */
    push(f, 1, 1);
    decide(f, 11, U | A, D | A, U | A);
    assert_nothing(f);
    for (size_t k = 0; k < PACKETS; k++) {
        push(f, 0, k);
        push(f, 2, k);
    }
    assert_next(f, 0, 11, "02", "012");
    assert_next(f, 1, 11, "02", "012");
    decide(f, 12, A, 0, 0); /* only an answer */
    assert_next(f, 0, 12, "", "");
    assert_next(f, 1, 12, "", "");
    assert_false(follower_is_at(f, 2));
    assert_true(follower_is_at(f, 3));
    follower_free(f);
    follower_free(NULL);
}

/* Other workers' packets may be decisions ahead of one that is missing. */
static void test_ahead(void **state)
{
    struct follower *f = new_follower();
    int64_t step;

    (void)state;
    decide(f, 0, U, 0, 0);
    decide(f, 1, 0, U, 0);
    push(f, 0, 0);
    push(f, 1, 0);
    push(f, 1, 1);
    assert_next(f, 0, 0, "0", "0");
    assert_next(f, 0, 1, "1", "1");
    assert_nothing(f); /* packet 1 in order, too */
    assert_int_equal(follower_waits_for(f, &step), 1);
    assert_int_equal(step, 0);
    assert_true(follower_expects(f, 0));
    assert_false(follower_expects(f, 1));
    push(f, 0, 1);
    assert_next(f, 1, 0, "0", "0");
    assert_next(f, 1, 1, "1", "1");
    assert_int_equal(follower_waits_for(f, &step), 0);
    assert_int_equal(step, -1);
    assert_true(follower_expects(f, 2)); /* it has sent nothing */
    push(f, 2, 1);
    assert_false(follower_expects(f, 2));
    follower_free(f);
}

/* As many decisions as there is room for, over and over. */
static void test_room(void **state)
{
    struct follower *f = new_follower();

    (void)state;
    assert_true(follower_room(f) > WORKERS);
    for (int64_t done = 0; done < 3 * follower_room(f); done += follower_room(f)) {
        for (int i = 0; i < follower_room(f); i++)
            decide(f, done + i, 0, 0, (uint8_t)(i % 2 ? A : 0));
        for (int i = 0; i < follower_room(f); i++)
            assert_next(f, 0, done + i, "", "");
        for (int i = 0; i < follower_room(f); i++)
            assert_next(f, 1, done + i, "", "");
        assert_nothing(f);
    }
    follower_free(f);
}

static void test_no_memory(void **state)
{
    struct follower *f;
    struct error e;
    int rc;

    (void)state;
    for (long n = 1;; n++) {
        calls = 0;
        fail_at = n;
        rc = follower_new(&f, WORKERS, PACKETS, &e);
        fail_at = 0;
        if (rc == OK)
            break;
        assert_int_equal(rc, ERR_NOMEM);
        assert_string_equal(e.message, "no memory to follow the decisions about 3 workers and 2 packets");
    }
    assert_int_equal(calls, 7); /* all of them failed once */
    follower_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_release), cmocka_unit_test(test_chosen),    cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_room),    cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
