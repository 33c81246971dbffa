/* Decisions carried out packet by packet: in their order, once their pushes have come, packet 0 first. */
#include "trainer/server/decisions/follower.h"

#include "tests/check.h"
#include "tests/failing_allocation.h"

enum { WORKERS = 3, PACKETS = 2, U = 1, UU = 2, D = 1 << DECISION_DROPPED_SHIFT, A = DECISION_ANSWERED };

static struct follower *follower_of(int slots)
{
    struct follower *f;

    assert_int_equal(follower_new(&f, WORKERS, PACKETS, slots, NULL), OK);
    return f;
}

static void decide(struct follower *f, int64_t step, uint8_t first, uint8_t second, uint8_t third)
{
    const uint8_t fates[WORKERS] = { first, second, third };

    follower_decision(f, &(struct decision){ follower_known(f), step, 1, fates });
}

static void push(struct follower *f, int worker, size_t packet)
{
    assert_true(follower_slot(f, worker, packet) >= 0);
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
    struct follower *f = follower_of(2);

    (void)state;
    follower_wait_for_release(f);
    for (int twice = 0; twice < 2; twice++) {
        decide(f, twice, U | A, 0, 0);
        push(f, 0, 0);
    }
    assert_next(f, 0, 0, "0", "0");
    assert_nothing(f);
    push(f, 0, 1);
    assert_next(f, 1, 0, "0", "0");
    assert_nothing(f);
    assert_false(follower_is_at(f, 1));
    follower_release(f);
    assert_true(follower_is_at(f, 1));
    assert_next(f, 0, 1, "3", "3");
    follower_free(f);
}

static void test_chosen(void **state)
{
    struct follower *f = follower_of(1);

    (void)state;
    push(f, 2, 0);
    push(f, 2, 1);
    assert_int_equal(follower_slot(f, 2, 0), -1); /* no room for another */
    assert_nothing(f);
    decide(f, 10, U | A, 0, U | A);
    assert_nothing(f);
    push(f, 0, 1); /* before packet 0, which has the weight */
    assert_nothing(f);
    push(f, 0, 0);
    assert_next(f, 0, 10, "02", "02");
    assert_int_equal(follower_slot(f, 2, 0), 0);
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
    struct follower *f = follower_of(1);
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

static void test_two_slots(void **state)
{
    struct follower *f = follower_of(2);

    (void)state;
    for (size_t k = 0; k < PACKETS; k++) {
        assert_int_equal(follower_slot(f, 0, k), 0);
        push(f, 0, k);
        assert_int_equal(follower_slot(f, 0, k), 1);
        push(f, 0, k);
        assert_int_equal(follower_slot(f, 0, k), -1);
        push(f, 1, k);
    }
    decide(f, 0, UU | A, U, 0);
    assert_next(f, 0, 0, "031", "031"); /* row 3: slot 1 of worker 0 */
    assert_next(f, 1, 0, "031", "031");
    assert_int_equal(follower_slot(f, 0, 0), 0);
    assert_int_equal(follower_slot(f, 1, 0), 1);
    push(f, 1, 0);
    push(f, 1, 1);
    push(f, 1, 0);
    push(f, 1, 1);
    decide(f, 1, 0, D | U | A, 0); /* the first is dropped, the second used */
    assert_next(f, 0, 1, "1", "41");
    assert_next(f, 1, 1, "1", "41");
    follower_free(f);
}

/* As many decisions as there is room for, over and over. */
static void test_room(void **state)
{
    struct follower *f = follower_of(1);

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
        rc = follower_new(&f, WORKERS, PACKETS, 1, &e);
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
        cmocka_unit_test(test_release),   cmocka_unit_test(test_chosen), cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_two_slots), cmocka_unit_test(test_room),   cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
