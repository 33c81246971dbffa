/* Records made into others: what stays is the same to the byte, metadata moves to the first value that is left. */
#include "eventlog/rewrite/log_rewrite.h"

#include "base/bytes.h"
#include "eventlog/format/record.h"
#include "eventlog/format/wire.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One value: tag, text in a tensor (NULL: a simple_value), plugin in its metadata (NULL: none). */
static void value(struct wire *w, const char *tag, const char *text, const char *plugin)
{
    size_t mark = wire_begin(w, 1), inner;

    wire_text(w, 1, tag);
    if (text) {
        inner = wire_begin(w, 8);
        wire_integer(w, 1, 7);
        wire_text(w, 8, text);
        wire_end(w, inner);
    } else {
        buffer_append(&w->bytes, "\x15\0\0\0\x3f", 5);
    }
    if (plugin) {
        size_t metadata = wire_begin(w, 9), data = wire_begin(w, 1);

        wire_text(w, 1, plugin);
        wire_end(w, data);
        wire_text(w, 3, "described");
        wire_end(w, metadata);
    }
    wire_integer(w, 100, 7); /* a field of the future */
    wire_end(w, mark);
}

static void event(struct wire *w, int64_t step, int values, const char *const (*v)[3])
{
    size_t mark;

    wire_number(w, 1, 1.5e9);
    wire_integer(w, 2, step);
    mark = wire_begin(w, 5);
    for (int i = 0; i < values; i++)
        value(w, v[i][0], v[i][1], v[i][2]);
    wire_end(w, mark);
    wire_integer(w, 50, 3);
}

struct rule {
    const char *drop, *from, *to;
};

static int choose(void *context, const struct event *ev, const struct event_value *v, size_t number,
                  struct log_rewrite_choice *choice, struct error *e)
{
    const struct rule *rule = context;

    (void)ev;
    (void)number;
    (void)e;
    choice->keep = !(v && rule->drop && strlen(rule->drop) == v->tag_length &&
                     !memcmp(rule->drop, v->tag, v->tag_length));
    if (v && rule->from && strlen(rule->from) == v->tag_length && !memcmp(rule->from, v->tag, v->tag_length)) {
        choice->tag = rule->to;
        choice->tag_length = strlen(rule->to);
    }
    return OK;
}

/* The data of the record that comes out, "" if none. */
static struct buffer rewritten(struct log_rewrite *r, const struct wire *in, struct rule rule)
{
    struct buffer out = BUFFER_EMPTY, data = BUFFER_EMPTY;
    struct event ev;

    assert_int_equal(event_decode((const uint8_t *)in->bytes.data, in->bytes.length, &ev, NULL), OK);
    assert_int_equal(
        log_rewrite_record(r, (const uint8_t *)in->bytes.data, in->bytes.length, &ev, choose, &rule, &out, NULL), OK);
    if (out.length) {
        struct record_parser p;
        struct record record;

        record_parser_init(&p, 0, 0);
        assert_int_equal(record_next(&p, (const uint8_t *)out.data, out.length, out.length, &record), RECORD_DATA);
        assert_int_equal(record.length + RECORD_OVERHEAD, out.length);
        buffer_append(&data, record.data, record.length);
    }
    buffer_release(&out);
    return data;
}

/* Rewrites an event of `values` values from v and wants an event of the values in want. */
static void check(struct log_rewrite *r, struct rule rule, int values, const char *const (*v)[3], int wanted,
                  const char *const (*want)[3])
{
    struct wire in = WIRE_EMPTY, expected = WIRE_EMPTY;
    struct buffer out;

    event(&in, 7, values, v);
    out = rewritten(r, &in, rule);
    if (!wanted) {
        assert_int_equal(out.length, 0);
    } else {
        struct event a, b;
        struct event_values x, y;
        const struct event_value *p, *q;
        int n = 0;

        event(&expected, 7, wanted, want);
        assert_int_equal(event_decode((const uint8_t *)out.data, out.length, &a, NULL), OK);
        assert_int_equal(event_decode((const uint8_t *)expected.bytes.data, expected.bytes.length, &b, NULL), OK);
        assert_int_equal(a.step, 7);
        assert_true(a.wall_time == 1.5e9);
        assert_int_equal(out.length, expected.bytes.length); /* the unknown fields are there as well */
        event_values_init(&x, &a);
        event_values_init(&y, &b);
        while ((q = event_values_next(&y))) {
            assert_non_null(p = event_values_next(&x));
            assert_int_equal(p->tag_length, q->tag_length);
            assert_memory_equal(p->tag, q->tag, p->tag_length);
            assert_int_equal(p->kind, q->kind);
            assert_int_equal(p->metadata_length, q->metadata_length);
            assert_memory_equal(p->metadata ? p->metadata : (const void *)"",
                                q->metadata ? q->metadata : (const void *)"", p->metadata_length);
            n++;
        }
        assert_int_equal(n, wanted);
    }
    buffer_release(&out);
    wire_release(&in);
    wire_release(&expected);
}

static const char *const three[3][3] = { { "a", NULL, NULL }, { "b", "text of b", "text" }, { "c", NULL, NULL } };

static void test_nothing_to_do(void **state)
{
    struct log_rewrite *r;
    struct wire in = WIRE_EMPTY;
    struct buffer out;

    (void)state;
    assert_int_equal(log_rewrite_new(&r, NULL), OK);
    event(&in, -3, 3, three);
    out = rewritten(r, &in, (struct rule){ "x", "y", "z" });
    assert_int_equal(out.length, in.bytes.length);
    assert_memory_equal(out.data, in.bytes.data, out.length);
    assert_int_equal(log_rewrite_totals(r).values, 3);
    assert_int_equal(log_rewrite_totals(r).dropped + log_rewrite_totals(r).renamed, 0);
    buffer_release(&out);
    wire_release(&in);
    log_rewrite_free(r);
}

static void test_drop_and_rename(void **state)
{
    static const char *const without_a[2][3] = { { "b", "text of b", "text" }, { "c", NULL, NULL } };
    static const char *const long_b[3][3] = { { "a", NULL, NULL },
                                              { "quite/another/name", "text of b", "text" },
                                              { "c", NULL, NULL } };
    struct log_rewrite *r;

    (void)state;
    assert_int_equal(log_rewrite_new(&r, NULL), OK);
    check(r, (struct rule){ "a", NULL, NULL }, 3, three, 2, without_a);
    check(r, (struct rule){ NULL, "b", "quite/another/name" }, 3, three, 3, long_b);
    check(r, (struct rule){ "a", NULL, NULL }, 1, three, 0, NULL);
    assert_int_equal(log_rewrite_totals(r).records, 2);
    assert_int_equal(log_rewrite_totals(r).dropped, 2);
    assert_int_equal(log_rewrite_totals(r).renamed, 1);
    log_rewrite_free(r);
}

static void test_metadata_moves(void **state)
{
    static const char *const first[1][3] = { { "t", "one", "text" } }, *const bare[1][3] = { { "t", "two", NULL } };
    static const char *const other[1][3] = { { "t", NULL, NULL } }, *const with[1][3] = { { "t", "two", "text" } };
    struct log_rewrite *r;

    (void)state;
    assert_int_equal(log_rewrite_new(&r, NULL), OK);
    check(r, (struct rule){ "t", NULL, NULL }, 1, first, 0, NULL);
    check(r, (struct rule){ NULL, NULL, NULL }, 1, other, 1, other); /* another kind: not its metadata */
    log_rewrite_next_file(r);
    check(r, (struct rule){ NULL, NULL, NULL }, 1, bare, 1, with);
    check(r, (struct rule){ NULL, NULL, NULL }, 1, bare, 1, bare); /* once a file */
    log_rewrite_next_file(r);
    check(r, (struct rule){ NULL, NULL, NULL }, 1, bare, 1, with);
    log_rewrite_free(r);
}

static void test_other_events(void **state)
{
    struct log_rewrite *r;
    struct wire in = WIRE_EMPTY;
    struct buffer out;

    (void)state;
    assert_int_equal(log_rewrite_new(&r, NULL), OK);
    wire_number(&in, 1, 1.0e9);
    wire_bytes(&in, 4, "\x0a\x03\x0a\x01\x61", 5);
    out = rewritten(r, &in, (struct rule){ NULL, NULL, NULL });
    assert_int_equal(out.length, in.bytes.length);
    assert_memory_equal(out.data, in.bytes.data, out.length);
    buffer_release(&out);
    wire_release(&in);
    log_rewrite_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_drop_and_rename),
        cmocka_unit_test(test_metadata_moves),
        cmocka_unit_test(test_other_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
