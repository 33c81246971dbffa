/* A file read in pieces gives the points that one reader gives: with tensors whose plugin only the first one has, new
 * tags, tags that change their kind, other values and damage anywhere. */
#include "tests/eventlog/pieces_run.h"

#include "base/bytes.h"
#include "base/program/ordered_work.h"
#include "base/record_frame.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { FILE_MOST = 1 << 16, RECORDS = 300 };

/* How a value is written. */
enum form { SIMPLE, TENSOR_WITH_PLUGIN, TENSOR, IMAGE, FORMS };

static char pieces_log[] = "/tmp/test_run_pieces.XXXXXX";
static uint8_t content[FILE_MOST];
static size_t content_size;
static uint64_t random_state;

static unsigned pick(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

static void add_value(uint8_t tag, enum form form, uint8_t step)
{
    static const uint8_t tensor[] = { 0x42, 0x0a, 0x08, 0x01, 0x12, 0x00, 0x2a, 4 };
    static const uint8_t plugin[] = { 0x4a, 0x0b, 0x0a, 0x09, 0x0a, 0x07, 's', 'c', 'a', 'l', 'a', 'r', 's' };
    uint8_t value[64] = { 0x0a, 1, tag }, event[128] = { 0x09 };
    size_t n = 3;

    if (form == SIMPLE)
        value[n++] = 0x15;
    if (form == TENSOR || form == TENSOR_WITH_PLUGIN) {
        bytes_copy(value + n, tensor, sizeof tensor);
        n += sizeof tensor;
    }
    if (form == IMAGE) {
        value[n++] = 0x22;
        value[n++] = 0;
    } else {
        put_le32(value + n, float_bits((float)pick(1000) / 7));
        n += 4;
    }
    if (form == TENSOR_WITH_PLUGIN) {
        bytes_copy(value + n, plugin, sizeof plugin);
        n += sizeof plugin;
    }
    put_le64(event + 1, double_bits(1000 + (double)pick(9000)));
    event[9] = 0x10;
    event[10] = step;
    event[11] = 0x2a;
    event[12] = (uint8_t)(n + 2);
    event[13] = 0x0a;
    event[14] = (uint8_t)n;
    bytes_copy(event + 15, value, n);
    n += 15;
    assert_true(content_size + n + RECORD_OVERHEAD <= sizeof content);
    bytes_copy(content + content_size + RECORD_HEADER, event, n);
    record_seal(content + content_size, n);
    content_size += n + RECORD_OVERHEAD;
}

/* Tags a to d have a form each, with the plugin in their first value alone; e to h come later. odd: one in so many values
 * is of another form or tag; 0: none. */
static void make_content(uint64_t seed, unsigned odd)
{
    random_state = seed;
    content_size = 0;
    for (unsigned i = 0; i < RECORDS; i++) {
        const unsigned tags = i < RECORDS / 2 ? 4 : 8, tag = pick(tags);
        const int is_odd = odd && pick(odd) == 0;
        const enum form own = tag % 2 ? i < 20 ? TENSOR_WITH_PLUGIN : TENSOR : SIMPLE;

        add_value((uint8_t)(is_odd && pick(2) ? 0xff : 'a' + (int)tag), is_odd ? (enum form)pick(FORMS) : own,
                  (uint8_t)pick(128));
    }
}

static void write_content(void)
{
    const int fd = open(pieces_log, O_WRONLY | O_TRUNC);

    assert_true(fd >= 0 && write(fd, content, content_size) == (ssize_t)content_size);
    close(fd);
}

/* Returns how many pieces were passed. */
static size_t check_pieces(uint64_t length, int with_other, int with_wanted)
{
    struct pieces_run one, many;
    size_t passed;

    assert_true(pieces_run_read(&one, pieces_log, 0, with_other, with_wanted));
    assert_true(pieces_run_read(&many, pieces_log, length, with_other, with_wanted));
    assert_true(pieces_same(&one, &many));
    passed = many.passed;
    pieces_run_release(&one);
    pieces_run_release(&many);
    return passed;
}

/* 1: the machine has cores for it. */
static int in_threads(void)
{
    const struct ordered_work_calls calls = { .item_size = 1 };
    struct ordered_work *w = NULL;
    int some;

    assert_int_equal(ordered_work_open(&w, &calls, NULL), OK);
    some = ordered_work_threads(w) > 0;
    ordered_work_close(w, NULL);
    return some;
}

static void test_plain(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        make_content(seed, 0);
        write_content();
        for (uint64_t length = 100; length < 4000; length *= 3)
            for (int how = 0; how < 4; how++) {
                const size_t passed = check_pieces(length, how & 1, how & 2);

                assert_true(passed > 0 || !in_threads());
            }
    }
}

static void test_odd_values(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        make_content(seed, 1 + (unsigned)seed);
        write_content();
        for (int how = 0; how < 4; how++)
            check_pieces(100 + 40 * seed, how & 1, how & 2);
    }
}

static void test_damage(void **state)
{
    (void)state;
    make_content(5, 0);
    for (size_t at = 0; at < content_size; at += 37) {
        content[at] ^= 0x10;
        write_content();
        check_pieces(700, at & 1, 0);
        content[at] ^= 0x10;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_plain), cmocka_unit_test(test_odd_values),
                                        cmocka_unit_test(test_damage) };
    const int fd = mkstemp(pieces_log);
    int failed;

    if (fd < 0)
        return 1;
    close(fd);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(pieces_log);
    return failed;
}
