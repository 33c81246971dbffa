/* What arrives: keys of blobs, requests, hints, deadlines; in order, broken, and too much. */
#include "eventlog/server/blob_key.h"
#include "eventlog/server/data_answer.h"
#include "eventlog/server/grpc/grpc_connection.h"
#include "eventlog/server/sample_hints.h"
#include "tests/check.h"

#include <string.h>

static struct span text_span(const char *text)
{
    return (struct span){ (const uint8_t *)text, strlen(text) };
}

static void expect_text(struct span found, const char *wanted)
{
    assert_int_equal(found.length, strlen(wanted));
    assert_memory_equal(found.bytes, wanted, found.length);
}

/* The first four are the specification's, made by TensorBoard's data server. */
static void test_blob_keys(void **state)
{
    static const struct {
        const char *experiment, *run, *tag;
        int64_t step;
        uint64_t index;
        const char *key;
    } rows[] = {
        { "", "train", "input", 0, 2, "WyIiLCJ0cmFpbiIsImlucHV0IiwwLDJd" },
        { "123", "mnist", "input_image", 777, 123, "WyIxMjMiLCJtbmlzdCIsImlucHV0X2ltYWdlIiw3NzcsMTIzXQ" },
        { "", ".", "__run_graph__", 0, 0, "WyIiLCIuIiwiX19ydW5fZ3JhcGhfXyIsMCwwXQ" },
        { "", "a\"b", "t\xc3\xa9\\x", -1, 0, "WyIiLCJhXCJiIiwidMOpXFx4IiwtMSwwXQ" },
        { "\x01\n\t", "/", "\x7f", INT64_MIN, UINT64_MAX, NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct blob_key key = { text_span(rows[i].experiment),
                                      text_span(rows[i].run),
                                      text_span(rows[i].tag),
                                      rows[i].step,
                                      rows[i].index,
                                      NULL };
        struct buffer text = BUFFER_EMPTY;
        struct blob_key back;

        blob_key_append(&text, &key);
        if (rows[i].key)
            assert_string_equal(buffer_text(&text), rows[i].key);
        assert_int_equal(blob_key_read(&back, (const uint8_t *)text.data, text.length, NULL), OK);
        expect_text(back.experiment, rows[i].experiment);
        expect_text(back.run, rows[i].run);
        expect_text(back.tag, rows[i].tag);
        assert_true(back.step == rows[i].step && back.index == rows[i].index);
        blob_key_release(&back);
        for (size_t n = 0; n < text.length; n++) /* cut short */
            assert_int_equal(blob_key_read(&back, (const uint8_t *)text.data, n, NULL), ERR_ARG);
        buffer_release(&text);
    }
}

static void test_hints(void **state)
{
    static const char *const wrong[] = { "scalars", "=1",   "a=-1", "a=1,", "a=b=c",
                                         "a= 1",    "a=1 ", ",",    "a=",   "a=18446744073709551616",
                                         "a=ALL",   "a=+" };
    struct sample_hints h;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(sample_hints_read(&h, wrong[i], NULL), ERR_ARG);
    assert_int_equal(sample_hints_read(&h, "", NULL), OK);
    assert_true(sample_hints_most(&h, "scalars", 7) == UINT64_MAX);
    sample_hints_release(&h);
    assert_int_equal(sample_hints_read(&h, "scalars=1,images=all,x=0,scalars=+007,y=18446744073709551615", NULL), OK);
    assert_true(sample_hints_most(&h, "scalars", 7) == 7 && sample_hints_most(&h, "images", 6) == UINT64_MAX &&
                sample_hints_most(&h, "x", 1) == 0 && sample_hints_most(&h, "scalar", 6) == UINT64_MAX);
    sample_hints_release(&h);
}

/* Fields in another order, in pieces, twice. */
static void test_request(void **state)
{
    static const char bytes[] = "\x22\x02\x08\x05"
                                "\x1a\x0a\x0a\x03\x0a\x01"
                                "b\x0a\x03\x0a\x01"
                                "a"
                                "\x1a\x05\x0a\x03\x0a\x01"
                                "b"
                                "\x1a\x02\x12\x00"
                                "\x12\x03\x0a\x01x\x12\x09\x0a\x07scalars\x0a\x01"
                                "7\x7a\x01z";
    struct data_request r;

    (void)state;
    assert_int_equal(data_request_read(&r, DATA_READ_SCALARS, (const uint8_t *)bytes, sizeof bytes - 1, NULL), OK);
    expect_text(r.plugin, "scalars");
    expect_text(r.experiment, "7");
    assert_true(r.has_limit && r.limit == 5 && r.runs.given && r.tags.given && !r.tags.count && r.runs.count == 2);
    expect_text(r.runs.names[0], "a");
    data_request_release(&r);
    for (size_t n = 1; n < 4; n++)
        assert_int_equal(data_request_read(&r, DATA_READ_SCALARS, (const uint8_t *)bytes, n, NULL), ERR_CORRUPT);
}

static void test_methods_and_timeouts(void **state)
{
    static const char path[] = "/tensorboard.data.TensorBoardDataProvider/ReadBlob?x";
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    assert_int_equal(data_request_method(path, strlen(path)), DATA_READ_BLOB);
    assert_int_equal(data_request_method(path, strlen(path) - 2), DATA_READ_BLOB);
    assert_int_equal(data_request_method(path, strlen(path) - 3), DATA_METHODS);
    assert_int_equal(data_request_method("", 0), DATA_METHODS);
    assert_true(grpc_timeout_seconds("5S", 2) == 5 && grpc_timeout_seconds("100m", 4) == 0.1);
    assert_true(grpc_timeout_seconds("S", 1) < 0 && grpc_timeout_seconds("5s", 2) < 0 &&
                grpc_timeout_seconds("123456789S", 10) < 0 && grpc_timeout_seconds("-1S", 3) < 0);
    grpc_message_append(&out, "100% \xc3\xa9\n");
    assert_string_equal(buffer_text(&out), "100%25 %C3%A9%0A");
    buffer_release(&out);
}

/* ---- requests that are held ---- */

struct handed {
    size_t calls, length;
};

static void count_call(void *context, const struct grpc_request *request)
{
    struct handed *h = context;

    h->calls++;
    h->length = request->length;
}

static void ignore_gone(void *context, int32_t stream)
{
    (void)context;
    (void)stream;
}

static void receive_frame(struct grpc_connection *c, int type, int flags, int stream, const void *bytes, size_t n)
{
    const uint8_t head[9] = { (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, (uint8_t)type, (uint8_t)flags, 0, 0, 0,
                              (uint8_t)stream };
    struct buffer out = BUFFER_EMPTY;

    assert_true(grpc_connection_receive(c, head, sizeof head) && grpc_connection_receive(c, bytes, n));
    assert_true(grpc_connection_send(c, &out, 1 << 20)); /* opens windows */
    buffer_release(&out);
}

/* A request with a message of 100,000 bytes, but for its last frame. */
static void receive_most(struct grpc_connection *c, int stream)
{
    /* :method POST, :scheme http, :path /, as HPACK's table has them, and :authority x */
    static const uint8_t headers[] = { 0x83, 0x86, 0x84, 0x01, 1, 'x' }, prefix[] = { 0, 0, 1, 0x86, 0xa0 };
    static const uint8_t zeros[10000];

    receive_frame(c, 1, 4, stream, headers, sizeof headers);
    receive_frame(c, 0, 0, stream, prefix, sizeof prefix);
    for (int i = 0; i < 9; i++)
        receive_frame(c, 0, 0, stream, zeros, sizeof zeros);
}

static void receive_last(struct grpc_connection *c, int stream)
{
    static const uint8_t zeros[10000];

    receive_frame(c, 0, 1, stream, zeros, sizeof zeros);
}

/* Of all connections together, so many bytes of requests are held; beyond that they are refused until others are over. */
static void test_held_requests(void **state)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct handed handed = { 0 };
    size_t held = GRPC_HELD_MOST - 150000;
    const struct grpc_handler handler = { &handed, count_call, ignore_gone, &held };
    struct grpc_connection *connections[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_non_null(connections[i] = grpc_connection_new(&handler));
        assert_true(grpc_connection_receive(connections[i], (const uint8_t *)preface, sizeof preface - 1));
        receive_frame(connections[i], 4, 0, 0, "", 0);
        receive_most(connections[i], 1);
        assert_true(held <= GRPC_HELD_MOST);
    }
    receive_last(connections[1], 1);
    assert_int_equal(handed.calls, 0);
    receive_last(connections[0], 1);
    assert_true(handed.calls == 1 && handed.length == 100000);
    assert_int_equal(held, GRPC_HELD_MOST - 150000);
    receive_most(connections[1], 3);
    receive_last(connections[1], 3);
    assert_int_equal(handed.calls, 2);
    receive_most(connections[0], 3);
    for (int i = 0; i < 2; i++)
        grpc_connection_free(connections[i]);
    assert_int_equal(held, GRPC_HELD_MOST - 150000);
    assert_true(grpc_held_most(1 << 20) - grpc_held_most((1 << 20) + 1) == GRPC_HELD_MOST / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blob_keys),     cmocka_unit_test(test_hints),
        cmocka_unit_test(test_request),       cmocka_unit_test(test_methods_and_timeouts),
        cmocka_unit_test(test_held_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
