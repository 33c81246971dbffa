/* The hand-written path for scalars against protobuf-c, byte for byte, and against records of the specification. */
#include "eventlog/format/event_encode.h"

#include "base/bytes.h"
#include "base/random.h"
#include "eventlog/format/record.h"
#include "proto/event.pb-c.h"
#include "tests/check.h"
#include "tests/eventlog/hex.h"

#include <math.h>
#include <string.h>

static size_t by_protobuf(uint8_t *out, char *tag, int64_t step, double wall_time, float value)
{
    Eventlog__Event event;
    Eventlog__Summary summary;
    Eventlog__Summary__Value point, *points[1] = { &point };
    size_t n;

    eventlog__event__init(&event);
    eventlog__summary__init(&summary);
    eventlog__summary__value__init(&point);
    point.tag = tag;
    point.value_case = EVENTLOG__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    point.simple_value = value;
    summary.n_value = 1;
    summary.value = points;
    event.wall_time = wall_time;
    event.step = step;
    event.what_case = EVENTLOG__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    n = eventlog__event__pack(&event, out + RECORD_HEADER);
    record_seal(out, n);
    return n + RECORD_OVERHEAD;
}

static void test_equal_to_protobuf(void **state)
{
    static const int64_t steps[] = { 0, 1, 127, 128, 1000000, INT64_MAX, -1, INT64_MIN };
    static const float values[] = { 0, 1, -2.5f, NAN, INFINITY, -INFINITY, 1e-40f };
    static const double times[] = { 0, 1, 1700000000.123456, -5, 1e300 };
    static uint8_t ours[70000 + EVENT_SCALAR_OVERHEAD], theirs[sizeof ours];
    static char tag[70001];
    (void)state;

    for (size_t length = 0; length <= 70000; length = length < 300 ? length + 1 : length * 3) {
        memset(tag, 'x', length);
        tag[length] = '\0';
        for (size_t s = 0; s < 8; s++)
            for (size_t v = 0; v < 7; v++)
                for (size_t t = 0; t < 5; t++) {
                    size_t n = event_encode_scalar(ours, tag, length, steps[s], times[t], values[v]);

                    assert_int_equal(n, by_protobuf(theirs, tag, steps[s], times[t], values[v]));
                    assert_memory_equal(ours, theirs, n);
                    assert_true(n <= length + EVENT_SCALAR_OVERHEAD);
                }
    }
}

static void test_random_steps(void **state)
{
    uint8_t ours[200], theirs[200];
    char tag[] = "loss/größe";
    struct random random;
    (void)state;

    random_init(&random, 1, RANDOM_TEST, 0, 0);
    for (int i = 0; i < 20000; i++) {
        int64_t step = (int64_t)(((uint64_t)random_u32(&random) << 32 | random_u32(&random)) >> (i % 64));
        float value = bits_float(random_u32(&random));
        double wall = random_uniform(&random) * 4e9;
        size_t n = event_encode_scalar(ours, tag, strlen(tag), step, wall, value);

        assert_int_equal(n, by_protobuf(theirs, tag, step, wall, value));
        assert_memory_equal(ours, theirs, n);
    }
}

static void test_specified_records(void **state)
{
    static const char start[] =
        "48 00 00 00 00 00 00 00 fe 92 48 9d 09 00 00 00 00 65 cd cd 41 1a 0d 62 72 61 69 6e 2e 45 76 65 6e 74 3a 32"
        "52 2e 0a 2c 74 65 6e 73 6f 72 62 6f 61 72 64 2e 73 75 6d 6d 61 72 79 2e 77 72 69 74 65 72 2e 65 76 65 6e 74"
        "5f 66 69 6c 65 5f 77 72 69 74 65 72 36 87 d0 af";
    static const char bare[] =
        "18 00 00 00 00 00 00 00 a3 7f 4b 22 09 00 00 80 38 99 d6 d7 41 1a 0d 62 72 61 69 6e 2e 45 76 65 6e 74 3a 32"
        "12 4b 36 ab"; /* TensorFlow's own */
    static const char loss[] = "1a 00 00 00 00 00 00 00 12 9b d8 2d 09 00 00 80 00 65 cd cd 41 10 05 2a 0d 0a 0b 0a"
                               "04 6c 6f 73 73 15 00 00 00 3f 5d 15 d5 68";
    struct buffer out = BUFFER_EMPTY;
    uint8_t want[200], got[200];
    size_t n = hex_bytes(start, want);
    (void)state;

    assert_int_equal(event_encode_start(&out, 1e9, "tensorboard.summary.writer.event_file_writer", NULL), OK);
    assert_int_equal(out.length, n);
    assert_memory_equal(out.data, want, n);
    buffer_clear(&out);
    assert_int_equal(event_encode_start(&out, 1599759586.0, "", NULL), OK);
    n = hex_bytes(bare, want);
    assert_int_equal(out.length, n);
    assert_memory_equal(out.data, want, n);
    buffer_release(&out);
    n = hex_bytes(loss, want);
    assert_int_equal(event_encode_scalar(got, "loss", 4, 5, 1e9 + 1, 0.5f), n);
    assert_memory_equal(got, want, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_to_protobuf),
        cmocka_unit_test(test_random_steps),
        cmocka_unit_test(test_specified_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
