/* Order, identity and the limit of the queue. Items without open files: closing NULL is fine. */
#include "evaluator/watch/queue.h"

#include "tests/check.h"
#include "tests/failing_allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int offer(struct queue *q, const char *name, int64_t step, uint64_t digest)
{
    struct queue_item item = { .checkpoint = checkpoint_identity_of(name, step) };
    int rc;

    item.checkpoint.digest = digest;
    rc = queue_offer(q, &item, NULL);
    if (rc != QUEUE_ADDED)
        queue_item_release(&item);
    queue_publish(q);
    return rc;
}

static void takes(struct queue *q, const char *name, uint64_t digest)
{
    struct queue_item item;

    assert_int_equal(queue_take(q, &item), 1);
    assert_string_equal(item.checkpoint.name, name);
    assert_int_equal(item.checkpoint.digest, digest);
    queue_item_release(&item);
}

static void test_order(void **state)
{
    struct queue_item none;
    struct queue *q;

    (void)state;
    assert_int_equal(queue_new(&q, 8, NULL), OK);
    assert_int_equal(offer(q, "c-300", 300, 3), QUEUE_ADDED);
    assert_int_equal(offer(q, "c-100", 100, 1), QUEUE_ADDED);
    assert_int_equal(offer(q, "c-200", 200, 2), QUEUE_ADDED);
    assert_int_equal(offer(q, "c-200", 200, 22), QUEUE_ADDED); /* overwritten: another checkpoint, after the first */
    assert_int_equal(offer(q, "c-0", 0, 9), QUEUE_ADDED);
    takes(q, "c-0", 9);
    takes(q, "c-100", 1);
    assert_int_equal(offer(q, "c-50", 50, 5), QUEUE_ADDED);
    takes(q, "c-50", 5);
    takes(q, "c-200", 2);
    takes(q, "c-200", 22);
    takes(q, "c-300", 3);
    assert_int_equal(queue_take(q, &none), 0);
    queue_free(q);
}

static void test_forget(void **state)
{
    struct queue *q;

    (void)state;
    assert_int_equal(queue_new(&q, 4, NULL), OK);
    assert_int_equal(offer(q, "c-1", 1, 1), QUEUE_ADDED);
    assert_int_equal(offer(q, "c-1", 1, 2), QUEUE_ADDED);
    takes(q, "c-1", 1);
    queue_forget(q, "c-1", 3);
    assert_int_equal(offer(q, "c-1", 1, 1), QUEUE_KNOWN);
    queue_forget(q, "c-1", 1);
    assert_true(!queue_knows(q, "c-1", 1) && queue_knows(q, "c-1", 2));
    assert_int_equal(offer(q, "c-1", 1, 1), QUEUE_ADDED);
    queue_free(q);
}

static void test_known(void **state)
{
    struct queue *q;

    (void)state;
    assert_int_equal(queue_new(&q, 4, NULL), OK);
    assert_int_equal(queue_remember(q, "c-100", 1, NULL), OK);
    assert_int_equal(queue_remember(q, "c-100", 1, NULL), OK);
    queue_forget(q, "c-100", 1); /* once, as it was remembered once */
    assert_int_equal(queue_knows(q, "c-100", 1), 0);
    assert_int_equal(queue_remember(q, "c-100", 1, NULL), OK);
    assert_int_equal(offer(q, "c-100", 100, 1), QUEUE_KNOWN);
    assert_int_equal(offer(q, "c-100", 100, 2), QUEUE_ADDED); /* the name alone is not the checkpoint */
    assert_int_equal(offer(q, "d-100", 100, 1), QUEUE_ADDED); /* nor is the digest */
    assert_int_equal(offer(q, "c-100", 100, 2), QUEUE_KNOWN); /* while it waits */
    takes(q, "c-100", 2);
    assert_int_equal(offer(q, "c-100", 100, 2), QUEUE_KNOWN); /* and ever after */
    assert_int_equal(queue_knows_name(q, "c-100"), 1);
    assert_int_equal(queue_knows_name(q, "c-10"), 0);
    assert_int_equal(queue_knows_name(q, "c-1000"), 0);
    assert_int_equal(queue_knows_name(q, "z"), 0);
    queue_free(q); /* closes what still waits */
}

/* A limit takes no memory: a hundred thousand may wait pinned, in each of a thousand directories. */
static void test_limit(void **state)
{
    struct queue *q;

    (void)state;
    assert_int_equal(queue_new(&q, (size_t)1 << 62, NULL), OK);
    assert_int_equal(queue_full(q), 0);
    assert_int_equal(offer(q, "c-1", 1, 1), QUEUE_ADDED);
    queue_free(q);
}

static int is_third(const struct queue_item *item)
{
    return item->checkpoint.step == 3;
}

/* What pins of all that wait take; and one that is given back is taken again before later ones. */
static void test_pinned(void **state)
{
    struct queue_item item = { .checkpoint = checkpoint_identity_of("c-2", 2), .pinned_bytes = 5 };
    struct queue *q;

    (void)state;
    assert_int_equal(queue_new(&q, 4, NULL), OK);
    assert_int_equal(queue_pinned_bytes(q), 0);
    assert_int_equal(queue_offer(q, &item, NULL), QUEUE_ADDED);
    item.checkpoint = checkpoint_identity_of("c-3", 3);
    item.pinned_bytes = 7;
    assert_int_equal(queue_offer(q, &item, NULL), QUEUE_ADDED);
    assert_int_equal(queue_pinned_bytes(q), 12);
    assert_int_equal(queue_count(q), 0); /* while the look goes on that finds them */
    assert_int_equal(queue_take(q, &item), 0);
    queue_publish(q);
    assert_int_equal(queue_count(q), 2);
    assert_int_equal(queue_take_if(q, is_third, &item), 1);
    assert_int_equal(item.checkpoint.step, 3);
    assert_int_equal(queue_pinned_bytes(q), 5);
    item.checkpoint.step = 1;
    assert_int_equal(queue_return(q, &item, NULL), OK); /* known already, and waits all the same */
    takes(q, "c-3", 0);
    takes(q, "c-2", 0);
    queue_free(q);
}

/* Want of memory at each allocation: the item stays the caller's, and may be offered again. */
static void test_no_memory(void **state)
{
    struct queue_item item = { .checkpoint = checkpoint_identity_of("c-1", 1) };
    long at = 1;
    int rc;

    (void)state;
    for (;; at++) {
        struct error e = { 0 };
        struct queue *q;

        assert_int_equal(queue_new(&q, 4, NULL), OK);
        atomic_store(&calls, 0);
        atomic_store(&fail_at, at);
        rc = queue_offer(q, &item, &e);
        atomic_store(&fail_at, 0);
        queue_publish(q);
        assert_int_equal(queue_count(q), rc == QUEUE_ADDED);
        queue_free(q);
        if (rc == QUEUE_ADDED)
            break;
        assert_int_equal(rc, ERR_NOMEM);
        assert_non_null(strstr(e.message, "no memory"));
    }
    for (long k = 1; rc != OK || k == 1; k++) {
        struct error e = { 0 };
        struct queue *q = NULL;

        atomic_store(&calls, 0);
        atomic_store(&fail_at, k);
        rc = queue_new(&q, 4, &e);
        atomic_store(&fail_at, 0);
        assert_true(k > 1 || rc == ERR_NOMEM);
        queue_free(q);
    }
    queue_free(NULL);
    assert_int_equal(at, 5); /* a list of the known ones and a name; a queue and an item */
}

static void test_many(void **state)
{
    enum { COUNT = 3000 };
    struct queue *q;
    int known = 0;

    (void)state;
    assert_int_equal(queue_new(&q, COUNT, NULL), OK);
    for (uint64_t i = 0; i < COUNT; i++) {
        char name[32];

        snprintf(name, sizeof name, "model.ckpt-%d", (int)(i * 7919 % COUNT));
        assert_int_equal(queue_full(q), 0);
        assert_int_equal(offer(q, name, (int64_t)(i * 7919 % COUNT), i % 3), QUEUE_ADDED);
    }
    assert_int_equal(queue_full(q), 1);
    for (uint64_t i = 0; i < COUNT; i++) {
        char name[32];

        snprintf(name, sizeof name, "model.ckpt-%d", (int)(i * 7919 % COUNT));
        known += queue_knows(q, name, i % 3) && !queue_knows(q, name, i % 3 + 1);
    }
    assert_int_equal(known, COUNT);
    for (int64_t step = 0; step < COUNT; step++) {
        struct queue_item item;

        assert_int_equal(queue_take(q, &item), 1);
        assert_int_equal(item.checkpoint.step, step);
        queue_item_release(&item);
    }
    queue_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_known), cmocka_unit_test(test_forget),
        cmocka_unit_test(test_limit),     cmocka_unit_test(test_many),  cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
