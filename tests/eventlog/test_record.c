/* Framing: TensorFlow's own bytes both ways, every split, every cut, every damaged byte. */
#include "eventlog/format/record.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/check.h"
#include "tests/eventlog/hex.h"

#include <stdio.h>
#include <string.h>

/* Two records that TensorFlow wrote: the file version, and scalar `accuracy` 0.99 at step 77. */
static const char tensorflow[] =
    "18 00 00 00 00 00 00 00 a3 7f 4b 22 09 00 00 80 38 99 d6 d7 41 1a 0d 62 72 61 69 6e 2e 45 76 65"
    "6e 74 3a 32 12 4b 36 ab"
    "32 00 00 00 00 00 00 00 24 19 56 ec 09 c4 05 b7 3d 99 d6 d7 41 10 4d 2a 25 0a 23 0a 08 61 63 63"
    "75 72 61 63 79 42 0a 08 01 12 00 22 04 a4 70 7d 3f 4a 0b 0a 09 0a 07 73 63 61 6c 61 72 73 a5 5b"
    "64 33";

/* Reads a whole file through windows of at most `window` bytes (more only where the parser needs more) and writes what
 * came out as text: D<offset>:<length> for data, L, C, T<offset> for damage, then the end. */
static void read_all(const uint8_t *file, size_t n, size_t window, uint64_t limit, char *out, size_t size)
{
    struct record_parser p;
    struct record r;
    size_t used = 0, give = window;

    record_parser_init(&p, 0, limit);
    *out = '\0';
    for (;;) {
        size_t left = n - (size_t)p.position, have = give < left ? give : left;
        uint8_t *bytes = malloc(have ? have : 1); /* of its own, so that a sanitizer sees one byte too many */
        enum record_result result;

        memcpy(bytes, file + p.position, have);
        result = record_next(&p, bytes, have, n, &r);
        if (result == RECORD_DATA) {
            used += (size_t)snprintf(out + used, size - used, "D%llu:%zu ", (unsigned long long)r.offset, r.length);
            assert_memory_equal(r.data, file + r.offset + RECORD_HEADER, r.length);
        } else if (result == RECORD_DAMAGE) {
            used += (size_t)snprintf(out + used, size - used, "%c%llu ", "LCT"[r.damage], (unsigned long long)r.offset);
            assert_true(!r.data == (r.damage != RECORD_BAD_DATA_CRC));
            if (r.data)
                assert_memory_equal(r.data, file + r.offset + RECORD_HEADER, r.length);
        }
        free(bytes);
        give = window;
        if (result == RECORD_MORE) {
            if (r.need > n - p.position)
                break;
            if (give < r.need)
                give = r.need;
        }
        assert_true(used < size - 64);
    }
    snprintf(out + used, size - used, "end %llu lost %llu%s", (unsigned long long)p.offset, (unsigned long long)p.lost,
             record_parser_inside(&p, n) ? " inside" : "");
}

static void expect(const uint8_t *file, size_t n, uint64_t limit, const char *want)
{
    char got[2000];

    for (size_t window = 1; window <= 64; window++) {
        read_all(file, n, window, limit, got, sizeof got);
        assert_string_equal(got, want);
    }
    read_all(file, n, n, limit, got, sizeof got);
    assert_string_equal(got, want);
}

static void test_vectors(void **state)
{
    static const struct {
        const char *payload, *record;
    } cases[] = {
        { "", "00 00 00 00 00 00 00 00 29 03 98 07 d8 ea 82 a2" },
        { "hello world", "0b 00 00 00 00 00 00 00 86 15 f5 04 68 65 6c 6c 6f 20 77 6f 72 6c 64 00 7e d8 6d" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].payload);
        uint8_t record[64], want[64];

        memcpy(record + RECORD_HEADER, cases[i].payload, n);
        record_seal(record, n);
        assert_int_equal(hex_bytes(cases[i].record, want), n + RECORD_OVERHEAD);
        assert_memory_equal(record, want, n + RECORD_OVERHEAD);
    }
}

static void test_tensorflow_bytes(void **state)
{
    uint8_t file[200], again[200];
    size_t n = hex_bytes(tensorflow, file);
    (void)state;

    assert_int_equal(n, 106);
    expect(file, n, 0, "D0:24 D40:50 end 106 lost 0");
    memcpy(again, file, n);
    memset(again + 8, 0xee, 4); /* header and footer from us: the same bytes */
    memset(again + 36, 0xee, 4);
    record_seal(again, 24);
    assert_memory_equal(again, file, n);
}

static size_t put_record(uint8_t *p, size_t n, int fill)
{
    memset(p + RECORD_HEADER, fill, n);
    record_seal(p, n);
    return n + RECORD_OVERHEAD;
}

/* Records of 5, 0 and 9 bytes: at 0, 21, 37, end 62. */
static size_t three(uint8_t *file)
{
    size_t n = put_record(file, 5, 'a');

    n += put_record(file + n, 0, 0);
    return n + put_record(file + n, 9, 'c');
}

static void test_every_cut_waits(void **state)
{
    uint8_t file[100];
    size_t n = three(file);
    (void)state;

    for (size_t cut = 0; cut <= n; cut++) {
        size_t whole = cut < 21 ? 0 : cut < 37 ? 21 : cut < 62 ? 37 : 62;
        char want[100];

        snprintf(want, sizeof want, "%s%s%send %zu lost 0%s", whole > 0 ? "D0:5 " : "", whole > 21 ? "D21:0 " : "",
                 whole > 37 ? "D37:9 " : "", whole, cut > whole ? " inside" : "");
        expect(file, cut, 0, want);
    }
}

static void test_every_flipped_byte(void **state)
{
    static const struct {
        size_t from, to;
        const char *want;
    } rows[] = {
        { 0, 12, "L0 D21:0 D37:9 end 62 lost 21" },        { 12, 21, "C0 D21:0 D37:9 end 62 lost 21" },
        { 21, 33, "D0:5 L21 D37:9 end 62 lost 16" },       { 33, 37, "D0:5 C21 D37:9 end 62 lost 16" },
        { 37, 49, "D0:5 D21:0 L37 end 37 lost 0 inside" }, { 49, 62, "D0:5 D21:0 C37 end 62 lost 25" },
    };
    uint8_t file[100];
    size_t n = three(file);
    (void)state;

    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (size_t i = rows[row].from; i < rows[row].to; i++)
            for (int bit = 0; bit < 8; bit++) {
                file[i] ^= (uint8_t)(1 << bit);
                expect(file, n, 0, rows[row].want);
                file[i] ^= (uint8_t)(1 << bit);
            }
}

static void test_zero_tails_wait(void **state)
{
    uint8_t file[9000] = { 0 };
    size_t n = three(file);
    (void)state;

    for (size_t zeros = 1; zeros < 40; zeros++)
        expect(file, n + zeros, 0, "D0:5 D21:0 D37:9 end 62 lost 0 inside");
    expect(file, 5000, 0, "D0:5 D21:0 D37:9 end 62 lost 0 inside");
    /* The hole begins at any byte of the last record. */
    for (size_t from = n - 25; from < n; from++) {
        three(file);
        memset(file + from, 0, n - from);
        expect(file, 300, 0, "D0:5 D21:0 end 37 lost 0 inside");
    }
    /* Something behind the hole: now it is damage, and what is behind is found. */
    three(file);
    put_record(file + 5000, 3, 'd');
    expect(file, 5019, 0, "D0:5 D21:0 D37:9 L62 D5000:3 end 5019 lost 4938");
    memset(file + 58, 0, 4);
    put_record(file + 62, 3, 'd');
    expect(file, 81, 0, "D0:5 D21:0 C37 D62:3 end 81 lost 25");
}

static void test_hole_filled_later(void **state)
{
    uint8_t file[300] = { 0 }, whole[300] = { 0 };
    size_t n = three(whole);
    struct record_parser p;
    struct record r;
    (void)state;

    memcpy(file, whole, 40);
    record_parser_init(&p, 0, 0);
    assert_int_equal(record_next(&p, file, 300, 300, &r), RECORD_DATA);
    assert_int_equal(record_next(&p, file + 21, 279, 300, &r), RECORD_DATA);
    assert_int_equal(record_next(&p, file + 37, 263, 300, &r), RECORD_MORE);
    assert_int_equal(p.position + r.need, 301);
    memcpy(file, whole, n);
    record_parser_again(&p);
    assert_int_equal(p.position, 37);
    assert_int_equal(record_next(&p, file + 37, 263, 300, &r), RECORD_DATA);
    assert_int_equal(r.length, 9);
}

static void test_lengths(void **state)
{
    uint8_t file[200];
    size_t n;
    (void)state;

    /* A header that is right and promises more than there is: wait, up to the limit of protobuf. */
    n = three(file);
    put_le64(file + n, 1 << 30);
    put_le32(file + n + 8, crc32c_mask(crc32c(file + n, 8)));
    expect(file, n + 12, 0, "D0:5 D21:0 D37:9 end 62 lost 0 inside");
    put_le64(file + n, (uint64_t)1 << 62);
    put_le32(file + n + 8, crc32c_mask(crc32c(file + n, 8)));
    put_record(file + n + 12, 4, 'e');
    expect(file, n + 32, 0, "D0:5 D21:0 D37:9 T62 D74:4 end 94 lost 12");
    put_le64(file + n, UINT64_MAX - 4);
    put_le32(file + n + 8, crc32c_mask(crc32c(file + n, 8)));
    expect(file, n + 32, 0, "D0:5 D21:0 D37:9 T62 D74:4 end 94 lost 12");
    /* A limit of the caller: the record is passed over without being looked at. */
    expect(file, n, 8, "D0:5 D21:0 T37 end 62 lost 25");
    expect(file, n - 1, 8, "D0:5 D21:0 end 37 lost 0 inside");
}

/* Lost at the end of a file that goes on growing: the header that does not fit yet must not be missed. */
static void test_lost_then_grown(void **state)
{
    uint8_t file[200];
    struct record_parser p;
    struct record r;
    size_t n = put_record(file, 5, 'a'), end;
    (void)state;

    file[3] ^= 1;
    end = n + put_record(file + n, 9, 'b');
    for (size_t first = 12; first < end; first++) {
        record_parser_init(&p, 0, 0);
        assert_int_equal(record_next(&p, file, first, first, &r), RECORD_DAMAGE);
        while (p.position < first && record_next(&p, file + p.position, first - p.position, first, &r) != RECORD_MORE)
            fail();
        record_parser_again(&p);
        assert_int_equal(record_next(&p, file + p.position, end - p.position, end, &r), RECORD_DATA);
        assert_int_equal(r.offset, n);
        assert_int_equal(p.lost, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),         cmocka_unit_test(test_tensorflow_bytes),
        cmocka_unit_test(test_every_cut_waits), cmocka_unit_test(test_every_flipped_byte),
        cmocka_unit_test(test_zero_tails_wait), cmocka_unit_test(test_hole_filled_later),
        cmocka_unit_test(test_lengths),         cmocka_unit_test(test_lost_then_grown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
