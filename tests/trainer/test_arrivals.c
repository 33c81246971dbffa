/* The record of pushes: what is written is read; a run that was killed; every other damage is refused. */
#include "trainer/server/arrivals.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/check.h"

#include <string.h>

enum { MOST = 16 };

#define TRAINING 32, 5, 0x0807060504030201, "lenet", "mnist"
static const struct arrivals_header backup = { 4, 2, -1, 100, TRAINING }, alone = { 3, 0, 2, 0, TRAINING };

static size_t put(uint8_t *bytes, const struct arrivals_header *h, const struct arrival *items, size_t count)
{
    arrivals_put_header(h, bytes);
    for (size_t i = 0; i < count; i++)
        arrivals_put(&items[i], bytes + ARRIVALS_HEADER_BYTES + i * ARRIVALS_PUSH_BYTES);
    return ARRIVALS_HEADER_BYTES + count * ARRIVALS_PUSH_BYTES;
}

static void test_layout(void **state)
{
    static const char wanted[] = "arrivals\2\0\0\0\4\0\0\0\2\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"
                                 "\x64\0\0\0\0\0\0\0 \0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\1\2\3\4\5\6\7\10"
                                 "lenet\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                 "mnist\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                 "\x05\x26\x36\x4a" /* by another program, bit by bit */
                                 "\2\1\0\0\3\0\0\0\1\1\0\0";
    uint8_t bytes[ARRIVALS_HEADER_BYTES + ARRIVALS_PUSH_BYTES];

    (void)state;
    assert_int_equal(put(bytes, &backup, &(struct arrival){ 258, 3, 257 }, 1), sizeof bytes);
    assert_memory_equal(bytes, wanted, sizeof bytes);
}

static void test_read(void **state)
{
    static const struct arrival steps[] = {
        { 0, 1, 0 }, { 0, 3, 0 }, { 1, 0, 0 }, { 1, 1, 1 }, { 1, 3, 1 }, { 2, 0, 2 }
    };
    static const struct arrival pushes[] = { { 0, 2, 0 }, { 1, 2, 1 }, { 2, 0, 0 } };
    uint8_t bytes[ARRIVALS_HEADER_BYTES + MOST * ARRIVALS_PUSH_BYTES];
    struct arrivals a;
    size_t n = put(bytes, &backup, steps, 6);

    (void)state;
    assert_int_equal(arrivals_parse(&a, "f", bytes, n, NULL), OK);
    assert_int_equal(a.steps, 2); /* the third is not whole */
    assert_int_equal(a.count, 5);
    assert_memory_equal(&a.header, &backup, sizeof backup);
    assert_memory_equal(a.items, steps, 5 * sizeof *steps);
    arrivals_release(&a);
    assert_int_equal(arrivals_parse(&a, "f", bytes, n - ARRIVALS_PUSH_BYTES - 1, NULL), OK);
    assert_int_equal(a.steps, 1);
    assert_int_equal(a.count, 2);
    arrivals_release(&a);
    assert_int_equal(arrivals_parse(&a, "f", bytes, ARRIVALS_HEADER_BYTES, NULL), OK);
    assert_int_equal(a.steps, 0);
    arrivals_release(&a);

    n = put(bytes, &alone, pushes, 3);
    assert_int_equal(arrivals_parse(&a, "f", bytes, n, NULL), OK);
    assert_int_equal(a.steps, 3);
    assert_int_equal(a.count, 3);
    assert_memory_equal(a.items, pushes, sizeof pushes);
    arrivals_release(&a);
}

static void test_damage(void **state)
{
    static const struct {
        size_t at;
        uint8_t byte;
        const char *says;
    } rows[] = {
        { 0, 'b', "f: not a record of --record" },
        { 8, 1, "f: format 1 is of another version of this program" },
        { 12, 0, "f: damaged at byte 12: its header has impossible numbers" },
        { 15, 1, "f: damaged at byte 12: its header has impossible numbers" },
        { 16, 5, "f: damaged at byte 12: its header has impossible numbers" },
        { 20, 2, "f: damaged at byte 12: its header has impossible numbers" },
        { 24, 0xfe, "f: damaged at byte 12: its header has impossible numbers" },
        { 39, 0x80, "f: damaged at byte 12: its header has impossible numbers" },
        { 95, 1, "f: damaged at byte 12: its header has impossible numbers" }, /* a name without an end */
        { 127, 1, "f: damaged at byte 12: its header has impossible numbers" },
        { 135, 1, "f: damaged at byte 0: its header does not have its checksum" },
        { ARRIVALS_HEADER_BYTES, 1, "f: damaged at byte 136, or before it" },     /* its step */
        { ARRIVALS_HEADER_BYTES + 4, 4, "f: damaged at byte 136, or before it" }, /* its worker */
        { ARRIVALS_HEADER_BYTES + 8, 1, "f: damaged at byte 136, or before it" }, /* its version */
        { ARRIVALS_HEADER_BYTES + 3 * ARRIVALS_PUSH_BYTES + 8, 0,
          "f: damaged at byte 172, or before it" }, /* dropped after a used one */
    };
    static const struct arrival steps[] = { { 0, 1, 0 }, { 0, 3, 0 }, { 1, 1, 1 }, { 1, 3, 1 } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[ARRIVALS_HEADER_BYTES + MOST * ARRIVALS_PUSH_BYTES];
        const size_t n = put(bytes, &backup, steps, 4);
        struct arrivals a;
        struct error e;

        bytes[rows[i].at] = rows[i].byte;
        if (rows[i].at >= 12 && rows[i].at < 132)
            put_le32(bytes + 132, crc32c(bytes, 132));
        assert_int_equal(arrivals_parse(&a, "f", bytes, n, &e), ERR_CORRUPT);
        assert_string_equal(e.message, rows[i].says);
        assert_null(a.items);
    }
    for (size_t n = 0; n < ARRIVALS_HEADER_BYTES; n++) {
        uint8_t bytes[ARRIVALS_HEADER_BYTES];
        struct arrivals a;

        put(bytes, &backup, NULL, 0);
        assert_int_equal(arrivals_parse(&a, "f", bytes, n, NULL), ERR_CORRUPT);
    }
}

/* A run that ended in order: each of its bits counts, and nothing may follow. */
static void test_end(void **state)
{
    static const struct arrival steps[] = { { 0, 1, 0 }, { 0, 3, 0 }, { 1, 1, 1 }, { 1, 3, 1 } };
    uint8_t bytes[ARRIVALS_HEADER_BYTES + MOST * ARRIVALS_PUSH_BYTES];
    size_t n = put(bytes, &backup, steps, 4);
    struct arrivals a;
    struct error e;

    (void)state;
    arrivals_put_end(4, crc32c(bytes, n), bytes + n);
    n += ARRIVALS_PUSH_BYTES;
    assert_int_equal(arrivals_parse(&a, "f", bytes, n, NULL), OK);
    assert_int_equal(a.complete, 1);
    assert_int_equal(a.count, 4);
    assert_int_equal(a.steps, 2);
    arrivals_release(&a);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(arrivals_parse(&a, "f", bytes, n, NULL), ERR_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    memset(bytes + n, 0, ARRIVALS_PUSH_BYTES);
    assert_int_equal(arrivals_parse(&a, "f", bytes, n + ARRIVALS_PUSH_BYTES, &e), ERR_CORRUPT);
    assert_string_equal(e.message, "f: damaged at byte 184, or before it");
}

static void test_fit(void **state)
{
    static const struct {
        struct arrivals_header now;
        int64_t max_steps;
        const char *says;
    } rows[] = {
        { { 4, 2, -1, 100, TRAINING }, 107, NULL },
        { { 4, 2, -1, 100, TRAINING }, 103, NULL },
        { { 4, 2, -1, 100, TRAINING },
          108,
          "f ends at step 107, where its run was killed, before --max-steps 108; train to at most that" },
        { { 3, 2, -1, 100, TRAINING }, 107, "f is of a run with 4 workers, and here are 3" },
        { { 4, 3, -1, 100, TRAINING },
          107,
          "f is of a run with --replicas-to-aggregate 2, and this one has --replicas-to-aggregate 3" },
        { { 4, 0, 3, 100, TRAINING },
          107,
          "f is of a run with --replicas-to-aggregate 2, and this one has --async --staleness 3" },
        { { 4, 0, -1, 100, TRAINING }, 107, "f is of a run with --replicas-to-aggregate 2, and this one has --async" },
        { { 4, 2, -1, 0, TRAINING },
          7,
          "f is of a run that began at step 100, and this one begins at step 0; begin with the same checkpoint, or "
          "with "
          "--resume never" },
        { { 4, 2, -1, 100, 32, 5, 1, "resnet32", "mnist" },
          107,
          "f is of a run with --model lenet, and this one has resnet32" },
        { { 4, 2, -1, 100, 32, 5, 1, "lenet", "cifar10" },
          107,
          "f is of a run with --data mnist, and this one has cifar10" },
        { { 4, 2, -1, 100, 64, 5, 1, "lenet", "mnist" },
          107,
          "f is of a run with 32 samples a step of each worker, and this one has 64; give its --batch-size or "
          "--global-batch" },
        { { 4, 2, -1, 100, 32, 6, 1, "lenet", "mnist" }, 107, "f is of a run with --seed 5, and this one has 6" },
        { { 4, 2, -1, 100, 32, 5, 1, "lenet", "mnist" },
          107,
          "f is of a run with another optimizer, learning rate, schedule, --shard, --augment or --micro-shards; give "
          "the options of that run" },
    };
    const struct arrivals a = { .header = backup, .steps = 7 };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error e = { 0 };
        const int rc = arrivals_fit(&a, "f", &rows[i].now, rows[i].max_steps, &e);

        assert_int_equal(rc, rows[i].says ? ERR_ARG : OK);
        if (rows[i].says)
            assert_string_equal(e.message, rows[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout), cmocka_unit_test(test_read), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_end),    cmocka_unit_test(test_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
