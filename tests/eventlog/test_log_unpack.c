/* gzip and zstd streams in pieces of every size, several behind one another, cut everywhere, damaged everywhere. */
#include "eventlog/read/log_unpack.h"

#include "tests/check.h"

#include <string.h>

#define B(text) text, sizeof text - 1
#define HELLO_GZIP \
    "\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x57\x28\xcf\x2f\xca\x49\x01\0\x85\x11\x4a\x0d\x0b\0\0\0"
#define HELLO_ZSTD "\x28\xb5\x2f\xfd\x04\x58\x59\0\0hello world\x68\x69\x1e\xb2"
#define ZEROS_ZSTD \
    "\x28\xb5\x2f\xfd\x04\x68\x4c\0\0\x08\0\x01\0\xfc\xff\x39\x10\x02\x02\0\x10\0\x03\x9f\x04\0\x2d\x28\xde\x26"
#define SKIPPED "\x5a\x2a\x4d\x18\x03\0\0\0abc"

/* Made by gzip -n, zstd and (300,000 zeros) zstd -19. */
static const struct {
    const char *name, *bytes;
    size_t n;
    enum file_kind kind;
    const char *text; /* what comes out; NULL: zeros */
    size_t length;
    int whole;
} cases[] = {
    { "gzip", B(HELLO_GZIP), FILE_KIND_GZIP, B("hello world"), 1 },
    { "two members", B(HELLO_GZIP HELLO_GZIP), FILE_KIND_GZIP, B("hello worldhello world"), 1 },
    { "zeros behind", B(HELLO_GZIP "\0\0\0\0\0"), FILE_KIND_GZIP, B("hello world"), 1 },
    { "zeros between", B(HELLO_GZIP "\0\0\0" HELLO_GZIP), FILE_KIND_GZIP, B("hello worldhello world"), 1 },
    { "something behind", B(HELLO_GZIP "x" HELLO_GZIP), FILE_KIND_GZIP, B("hello world"), 0 },
    { "wrong length", B(HELLO_GZIP "\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\x01"), FILE_KIND_GZIP,
      B("hello world"), 0 },
    { "zstd", B(HELLO_ZSTD), FILE_KIND_ZSTD, B("hello world"), 1 },
    { "two frames", B(HELLO_ZSTD HELLO_ZSTD), FILE_KIND_ZSTD, B("hello worldhello world"), 1 },
    { "skipped frames", B(SKIPPED HELLO_ZSTD SKIPPED), FILE_KIND_ZSTD, B("hello world"), 1 },
    { "wrong checksum", B("\x28\xb5\x2f\xfd\x04\x58\x59\0\0hello world\x68\x69\x1e\xb3"), FILE_KIND_ZSTD,
      B("hello world"), 0 },
    { "frame and more", B(HELLO_ZSTD "x"), FILE_KIND_ZSTD, B("hello world"), 0 },
    { "much of it", B(ZEROS_ZSTD), FILE_KIND_ZSTD, NULL, 300000, 1 },
};

struct output {
    uint8_t bytes[300000];
    size_t n, most; /* most: the sink fails beyond it */
};

static int sink(void *context, const void *bytes, size_t n, struct error *e)
{
    struct output *o = context;

    if (n > o->most - o->n)
        return error_set(e, ERR_PEER, "full");
    memcpy(o->bytes + o->n, bytes, n);
    o->n += n;
    return OK;
}

/* Whether it was whole, or an error. Another kind than this library has is a skip. */
static int unpack(struct output *o, enum file_kind kind, const char *bytes, size_t n, size_t piece)
{
    struct log_unpack *u;
    int rc = log_unpack_new(&u, kind, sink, o, NULL);

    o->n = 0;
    if (rc == ERR_IO)
        skip();
    assert_int_equal(rc, OK);
    for (size_t at = 0; at < n && rc == OK; at += piece)
        rc = log_unpack_feed(u, bytes + at, piece < n - at ? piece : n - at, NULL);
    if (rc == OK)
        rc = log_unpack_whole(u);
    log_unpack_free(u);
    return rc;
}

static void assert_begins(const struct output *o, const char *text, size_t length)
{
    assert_true(o->n <= length);
    for (size_t i = 0; i < o->n; i++)
        assert_int_equal(o->bytes[i], text ? (uint8_t)text[i] : 0);
}

static void test_pieces(void **state)
{
    static struct output o;

    (void)state;
    o.most = sizeof o.bytes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece <= cases[i].n; piece++) {
            assert_int_equal(unpack(&o, cases[i].kind, cases[i].bytes, cases[i].n, piece), cases[i].whole);
            assert_int_equal(o.n, cases[i].length);
            assert_begins(&o, cases[i].text, cases[i].length);
        }
}

/* What comes out of a stream that is cut is a beginning of what it holds, and it counts as whole at no place but where
 * a member or a frame ends. */
static void test_cut(void **state)
{
    static struct output o;

    (void)state;
    o.most = sizeof o.bytes;
    for (size_t n = 1; n < sizeof HELLO_GZIP - 1; n++) {
        assert_int_equal(unpack(&o, FILE_KIND_GZIP, HELLO_GZIP, n, n), 0);
        assert_begins(&o, "hello world", 11);
    }
    assert_int_equal(unpack(&o, FILE_KIND_GZIP, HELLO_GZIP, sizeof HELLO_GZIP - 2, 1), 0);
    assert_int_equal(o.n, 11);
    for (size_t n = 1; n < sizeof ZEROS_ZSTD - 1; n++) {
        assert_int_equal(unpack(&o, FILE_KIND_ZSTD, ZEROS_ZSTD, n, n), 0);
        assert_begins(&o, NULL, 300000);
    }
}

/* A wrong bit in the text or the checksum is told, unless nothing hangs on it. */
static void test_flipped(void **state)
{
    static struct output o;
    char bytes[] = HELLO_GZIP;
    int whole = 0;

    (void)state;
    o.most = sizeof o.bytes;
    for (size_t i = 80; i < 8 * (sizeof bytes - 1); i++) {
        bytes[i / 8] ^= (char)(1 << i % 8);
        if (unpack(&o, FILE_KIND_GZIP, bytes, sizeof bytes - 1, 7)) {
            assert_int_equal(o.n, 11);
            assert_begins(&o, "hello world", 11);
            whole++;
        }
        bytes[i / 8] ^= (char)(1 << i % 8);
    }
    assert_true(whole < 8); /* the bits that fill the last byte of the text up */
}

static void test_sink_fails(void **state)
{
    static struct output o;

    (void)state;
    o.most = 10;
    assert_int_equal(unpack(&o, FILE_KIND_GZIP, HELLO_GZIP, sizeof HELLO_GZIP - 1, 100), ERR_PEER);
    assert_int_equal(unpack(&o, FILE_KIND_ZSTD, ZEROS_ZSTD, sizeof ZEROS_ZSTD - 1, 100), ERR_PEER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_sink_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
