/* One clock from several, and the trace of all ranks. */
#include "trainer/timing/trace.h"

#include "base/random.h"
#include "tests/check.h"
#include "tests/trainer/threads.h"
#include "trainer/collective/clock_offset.h"
#include "trainer/timing/phase_clock.h"

#include <pthread.h>
#include <stdlib.h>

static void test_offset(void **state)
{
    static const struct {
        int64_t asked, answer, answered;
        int same;
        struct clock_offset wanted;
    } rows[] = {
        { 100, 5050, 200, 0, { 150, 4900, 50 } },   { 100, 150, 200, 0, { 150, 0, 50 } },
        { 100, 10, 200, 0, { 150, -140, 50 } },     { 100, 190, 200, 0, { 150, 40, 50 } },
        { 100, 190, 200, 1, { 150, 0, 50 } },       { 100, 100, 200, 1, { 150, 0, 50 } },
        { 100, 99, 200, 1, { 150, -51, 50 } },      { 100, 201, 200, 1, { 150, 51, 50 } }, /* another clock after all */
        { 100, 50000, 201, 0, { 150, 49850, 51 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct clock_offset o = clock_offset_of(rows[i].asked, rows[i].answer, rows[i].answered, rows[i].same);

        assert_memory_equal(&o, &rows[i].wanted, sizeof o);
    }
}

struct teller {
    struct thread_post *post;
    int rank, ranks;
    struct world *world;
    struct clock_offset offsets[4];
    pthread_t thread;
};

static void *tell(void *context)
{
    struct teller *t = context;
    struct error e = { 0 };

    if (world_over(&t->world, thread_participant(t->post, t->rank), 60, &e) < 0 ||
        clock_offsets_measure(t->world, t->offsets, "tell the time", &e) < 0)
        abort();
    return NULL;
}

/* Threads have one clock: whatever the rounds take, it is found within the error that is said. */
static void test_measure(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++) {
        struct thread_post *post = thread_post_new(ranks);
        struct teller tellers[4];

        for (int r = 0; r < ranks; r++) {
            tellers[r] = (struct teller){ .post = post, .rank = r, .ranks = ranks };
            assert_int_equal(pthread_create(&tellers[r].thread, NULL, tell, &tellers[r]), 0);
        }
        for (int r = 0; r < ranks; r++)
            pthread_join(tellers[r].thread, NULL);
        for (int r = 0; r < ranks; r++) {
            assert_int_equal(tellers[0].offsets[r].offset, 0);
            assert_true(r == 0 || tellers[0].offsets[r].error > 0);
            world_close(tellers[r].world);
        }
        thread_post_free(post);
    }
}

/* A clock that is off and drifts gives rank 0's times back, and no time runs backwards. */
static void test_drift(void **state)
{
    static const int64_t hour = 3600000000000;
    const int64_t first = 1000000, offset = -987654321000, drift = 180000000; /* 50 ppm of an hour */
    const struct trace_clock c = { first + offset, offset, first + hour + offset + drift, offset + drift, 0 };
    const struct trace_clock wrong = { 0, 5, 100, 60, 0 }, once = { 7, 5, 7, 9, 0 };
    struct random r;

    (void)state;
    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (int i = -10; i < 1000; i++) {
        const int64_t at = first + hour / 900 * i; /* rank 0's */
        const int64_t its = at + offset + (int64_t)((double)drift / 900 * i);
        const int64_t next = its + (int64_t)random_below(&r, 3);

        assert_true(llabs(trace_time(&c, its) - at) <= 2);
        assert_true(trace_time(&c, next) >= trace_time(&c, its));
    }
    assert_int_equal(trace_time(&c, first + offset), first);
    assert_int_equal(trace_time(&c, first + hour + offset + drift), first + hour);
    assert_int_equal(trace_time(&wrong, 100), 95);
    assert_int_equal(trace_time(&once, 100), 95);
}

static void test_text(void **state)
{
    static const struct span of_worker[] = { { 1000, 9000, 12, 0, SPAN_STEP, -1 },
                                             { 1000, 3500, 12, PHASE_FORWARD, SPAN_PHASE, -1 },
                                             { 3500, 9001, 12, PHASE_REDUCING, SPAN_PHASE, 3 } };
    const struct trace_rank worker = { 0, 0, NULL, { 0 }, of_worker, 3 };
    const struct trace_rank server = { 1, 1, "\"b\"", { 10, 10, 20, 10, 12345 }, of_worker, 1 };
    struct buffer b = BUFFER_EMPTY;

    (void)state;
    trace_begin(&b);
    trace_add(&b, &worker, 1500);
    trace_add(&b, &server, 500);
    trace_end(&b);
    assert_string_equal(
        buffer_text(&b),
        "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
        "{\"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"name\": \"process_name\", \"args\": {\"name\": \"rank 0\"}},\n"
        "{\"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"name\": \"process_sort_index\", \"args\": {\"sort_index\": 0}},\n"
        "{\"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"name\": \"thread_name\", \"args\": {\"name\": \"steps\"}},\n"
        "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": -0.500, \"dur\": 8.000, \"cat\": \"step\", \"name\": \"step "
        "12\", \"args\": {\"step\": 12}},\n"
        "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": -0.500, \"dur\": 2.500, \"cat\": \"phase\", \"name\": "
        "\"forward\", \"args\": {\"step\": 12}},\n"
        "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": 2.000, \"dur\": 5.501, \"cat\": \"phase\", \"name\": "
        "\"reducing\", \"args\": {\"step\": 12, \"bucket\": 3}},\n"
        "{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": \"process_name\", \"args\": {\"name\": \"rank 1, a server "
        "on "
        "host \\\"b\\\"\"}},\n"
        "{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": \"process_labels\", \"args\": {\"labels\": \"clock within "
        "12.3 us of rank 0's\"}},\n"
        "{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": \"process_sort_index\", \"args\": {\"sort_index\": 1}},\n"
        "{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": \"thread_name\", \"args\": {\"name\": \"updates\"}},\n"
        "{\"ph\": \"X\", \"pid\": 1, \"tid\": 0, \"ts\": 0.490, \"dur\": 8.000, \"cat\": \"step\", \"name\": \"step "
        "12\", \"args\": {\"step\": 12}}\n"
        "]}\n");
    buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offset),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
