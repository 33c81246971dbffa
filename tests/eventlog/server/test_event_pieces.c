/* A file read in pieces, cut at every place, gives the run, the damage and the reader that one reader gives, to commands
 * (run_pieces.h) and to the data server (loader.h): for numbers and other values, tensors whose plugin only the first
 * one has, new tags, tags that change their kind, restarts, damage anywhere, and records in records. */
#include "tests/eventlog/pieces.h"

#include "base/bytes.h"
#include "base/program/ordered_work.h"
#include "base/record_frame.h"
#include "tests/check.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MOST = 1 << 16, RECORDS = 60, TENSOR_RECORDS = 300 };

static char pieces_log[] = "/tmp/test_event_pieces.XXXXXX";
static uint8_t content[FILE_MOST];
static size_t content_size;
static uint64_t random_state;

static unsigned pick(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

static void add_framed(const void *data, size_t n)
{
    assert_true(content_size + n + RECORD_OVERHEAD <= sizeof content);
    bytes_copy(content + content_size + RECORD_HEADER, data, n);
    record_seal(content + content_size, n);
    content_size += n + RECORD_OVERHEAD;
}

/* wall time, step, and a field of that number with those bytes */
static void add_pieces_event(double wall, uint8_t step, uint8_t field, const uint8_t *bytes, size_t n)
{
    uint8_t event[160] = { 0x09 };

    assert_true(n < 128);
    put_le64(event + 1, double_bits(wall));
    event[9] = 0x10;
    event[10] = step;
    event[11] = (uint8_t)(field << 3 | 2);
    event[12] = (uint8_t)n;
    bytes_copy(event + 13, bytes, n);
    add_framed(event, 13 + n);
}

/* A number at a tag of one byte; a summary of one or more of them. */
static size_t value_of(uint8_t *out, uint8_t tag)
{
    const uint8_t value[] = { 0x0a, 8, 0x0a, 1, tag, 0x15, (uint8_t)pick(256), (uint8_t)pick(256), 0x80, 0x3f };

    bytes_copy(out, value, sizeof value);
    return sizeof value;
}

static void add_any(double wall, uint8_t step)
{
    static const uint8_t image[] = { 0x0a, 5, 0x0a, 1, 'i', 0x22, 0 };
    static const uint8_t tensor[] = { 0x0a, 14, 0x0a, 1, 't', 0x42, 9, 0x08, 1, 0x12, 0, 0x2a, 4, 0, 0, 0, 0, 0 };
    static const uint8_t image_at_number[] = { 0x0a, 5, 0x0a, 1, 'a', 0x22, 0 };
    uint8_t values[128], inner[64];
    size_t n = value_of(values, (uint8_t)('a' + pick(4)));

    switch (pick(12)) {
    case 0: add_pieces_event(wall, step, 5, image, sizeof image); break;
    case 1: add_pieces_event(wall, step, 5, tensor, sizeof tensor - 2); break;
    case 2: add_pieces_event(pick(2) ? NAN : INFINITY, step, 5, values, n); break;
    case 3: add_framed("\xff\xff", 2); break;
    case 4: /* a record in a record */
        bytes_copy(inner + RECORD_HEADER, "\x09\0\0\0\0\0\0\0\x40", 9);
        record_seal(inner, 9);
        add_pieces_event(wall, step, 3, inner, 9 + RECORD_OVERHEAD);
        break;
    case 5:
        n += value_of(values + n, 'x');
        add_pieces_event(wall, step, 5, values, n + value_of(values + n, 'a'));
        break;
    case 6:
        value_of(values, 0xff);
        add_pieces_event(wall, step, 5, values, n);
        break; /* not UTF-8 */
    case 7: add_pieces_event(wall, step, 5, image_at_number, sizeof image_at_number); break;
    default: add_pieces_event(wall, step, 5, values, n); break;
    }
}

static void make_content(uint64_t seed)
{
    double wall = 1000;

    random_state = seed;
    content_size = 0;
    for (unsigned i = 0, step = 0; i < RECORDS; i++) {
        add_any(wall += 1, (uint8_t)step);
        step = pick(15) ? step + pick(2) : pick(step + 1); /* the same again, and restarts */
    }
}

/* How a value is written. */
enum form { SIMPLE, TENSOR_WITH_PLUGIN, TENSOR, IMAGE, FORMS };

static void add_value(uint8_t tag, enum form form, uint8_t step)
{
    static const uint8_t tensor[] = { 0x42, 0x0a, 0x08, 0x01, 0x12, 0x00, 0x2a, 4 };
    static const uint8_t plugin[] = { 0x4a, 0x0b, 0x0a, 0x09, 0x0a, 0x07, 's', 'c', 'a', 'l', 'a', 'r', 's' };
    uint8_t value[64] = { 0x0a, 0, 0x0a, 1, tag };
    size_t n = 5;

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
    value[1] = (uint8_t)(n - 2);
    add_pieces_event(1000 + (double)pick(9000), step, 5, value, n);
}

/* Tags a to d have a form each, with the plugin in their first value alone; e to h come later. odd: one in so many values
 * is of another form or tag; 0: none. */
static void make_tensors(uint64_t seed, unsigned odd)
{
    random_state = seed;
    content_size = 0;
    for (unsigned i = 0; i < TENSOR_RECORDS; i++) {
        const unsigned tags = i < TENSOR_RECORDS / 2 ? 4 : 8, tag = pick(tags);
        const int is_odd = odd && pick(odd) == 0;
        const enum form own = tag % 2 ? i < 20 ? TENSOR_WITH_PLUGIN : TENSOR : SIMPLE;

        add_value((uint8_t)(is_odd && pick(2) ? 0xff : 'a' + (int)tag), is_odd ? (enum form)pick(FORMS) : own,
                  (uint8_t)pick(128));
    }
}

static void save_content(void)
{
    int fd = open(pieces_log, O_WRONLY | O_TRUNC);

    assert_int_equal(write(fd, content, content_size), content_size);
    close(fd);
}

/* Both return how many pieces were read by others. */
static size_t compare_runs(uint64_t length, int with_other, int with_wanted)
{
    struct pieces_run one, many;
    size_t passed;

    assert_int_equal(pieces_run_read(&one, pieces_log, 0, with_other, with_wanted), 1);
    assert_int_equal(pieces_run_read(&many, pieces_log, length, with_other, with_wanted), 1);
    assert_true(pieces_same_runs(&one, &many));
    passed = many.file.passed;
    pieces_run_release(&one);
    pieces_run_release(&many);
    return passed;
}

static size_t compare_data(uint64_t length)
{
    struct pieces_data one, many;
    size_t passed;

    assert_int_equal(pieces_data_read(&one, pieces_log, 0), 1);
    assert_int_equal(pieces_data_read(&many, pieces_log, length), 1);
    assert_true(pieces_same_data(&one, &many));
    passed = many.file.passed;
    pieces_data_release(&one);
    pieces_data_release(&many);
    return passed;
}

static size_t compare_all(size_t every)
{
    size_t pieces = 0;

    save_content();
    for (uint64_t length = 1; length < content_size / 2; length += every) {
        pieces += compare_data(length);
        compare_runs(length, length & 1, length & 2);
    }
    return pieces;
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

static int pieces_setup(void **state)
{
    int fd = mkstemp(pieces_log);

    (void)state;
    return fd < 0 || close(fd);
}

static int pieces_teardown(void **state)
{
    (void)state;
    return unlink(pieces_log);
}

static void test_sound(void **state)
{
    size_t pieces = 0;

    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        make_content(seed);
        pieces += compare_all(3);
    }
    assert_true(!in_threads() || pieces > 1000);
}

static void test_damaged(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 40; seed++) {
        make_content(seed);
        for (unsigned i = 0, count = 1 + pick(3); i < count; i++) {
            size_t at = pick((unsigned)content_size), n = 1 + pick(90);

            if (pick(2))
                content[at] ^= (uint8_t)(1 << pick(8));
            else
                memset(content + at, 0, n < content_size - at ? n : content_size - at);
        }
        if (!pick(4))
            content_size -= pick(200);
        compare_all(1 + content_size / 24);
    }
}

/* A tag that holds images is one of numbers in a piece alone. */
static void test_another_kind(void **state)
{
    static const uint8_t image[] = { 0x0a, 5, 0x0a, 1, 'a', 0x22, 0 };
    uint8_t value[16];

    (void)state;
    content_size = 0;
    for (int i = 0; i < 4; i++)
        add_pieces_event(1000 + i, (uint8_t)i, 5, image, sizeof image);
    for (int i = 4; i < 90; i++)
        add_pieces_event(1000 + i, (uint8_t)i, 5, value, value_of(value, 'a'));
    compare_all(37);
}

/* By commands, which take usual values of known tags on a short way. */
static void test_tensors(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        make_tensors(seed, 0);
        save_content();
        for (uint64_t length = 100; length < 4000; length *= 3) {
            assert_true(compare_runs(length, seed & 1, seed & 2) > 0 || !in_threads());
            compare_data(length);
        }
    }
}

static void test_odd_tensors(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        make_tensors(seed, 1 + (unsigned)seed);
        save_content();
        for (int how = 0; how < 4; how++)
            compare_runs(100 + 40 * seed, how & 1, how & 2);
        compare_data(100 + 40 * seed);
    }
}

static void test_damaged_tensors(void **state)
{
    (void)state;
    make_tensors(5, 0);
    for (size_t at = 0; at < content_size; at += 37) {
        content[at] ^= 0x10;
        save_content();
        compare_runs(700, at & 1, 0);
        content[at] ^= 0x10;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),   cmocka_unit_test(test_damaged),     cmocka_unit_test(test_another_kind),
        cmocka_unit_test(test_tensors), cmocka_unit_test(test_odd_tensors), cmocka_unit_test(test_damaged_tensors),
    };

    return cmocka_run_group_tests(tests, pieces_setup, pieces_teardown);
}
