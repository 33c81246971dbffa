/* Rows of a series, compressed: every bit comes back, a step removes what it repeats, and the sample is the specified one. */
#include "base/bytes.h"
#include "eventlog/server/store/run_data.h"
#include "eventlog/server/store/series_sample.h"
#include "eventlog/server/store/snapshot.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

static uint64_t drawn(uint64_t *state)
{
    return series_sample_order((int64_t)(*state)++);
}

static void expect_rows(const struct column_row *rows, size_t n, size_t columns)
{
    struct column_block *b = column_block_new(rows, n, columns);
    uint64_t column[COLUMN_BLOCK_ROWS];
    struct column_row back[COLUMN_BLOCK_ROWS];

    assert_non_null(b);
    assert_int_equal(column_block_rows(b), n);
    column_block_rows_read(b, back);
    for (size_t c = 0; c < columns; c++) {
        column_block_read(b, (enum column)c, n / 3, n - n / 3, column);
        for (size_t i = 0; i < n; i++) {
            assert_true(column_block_at(b, i, (enum column)c) == rows[i].at[c]);
            assert_true(back[i].at[c] == rows[i].at[c]);
            assert_true(i < n / 3 || column[i - n / 3] == rows[i].at[c]);
        }
    }
    column_block_drop(b);
}

/* Regular, irregular in each width, at the ends of the range, and anything. */
static void test_blocks_keep_every_bit(void **state)
{
    struct column_row rows[COLUMN_BLOCK_ROWS];
    uint64_t seed = 1;

    (void)state;
    for (int kind = 0; kind < 8; kind++)
        for (size_t n = 1; n <= COLUMN_BLOCK_ROWS; n = n < 5 ? n + 1 : n * 2 - 1) {
            for (size_t i = 0; i < n; i++)
                for (size_t c = 0; c < COLUMNS_MOST; c++) {
                    uint64_t any = drawn(&seed);

                    rows[i].at[c] = kind == 7   ? any
                                    : kind == 6 ? (i % 2 ? (uint64_t)INT64_MAX : (uint64_t)INT64_MIN) + (any & 3)
                                    : kind == 5 ? double_bits(1.7e9 + (double)i * 0.1)
                                                : 1000000 - 77 * i * c + (kind ? any >> (64 - 8 * kind) : 0);
                }
            expect_rows(rows, n, COLUMNS_MOST);
            expect_rows(rows, n, COLUMN_VALUE + 1);
        }
}

static void add(struct point_series *p, int64_t step, double wall, float value)
{
    const struct column_row row = { { (uint64_t)step, double_bits(wall), float_bits(value) } };

    assert_int_equal(point_series_add(p, &row, COLUMN_VALUE + 1), 1);
}

static struct series_view *view_of(struct point_series *p)
{
    const struct event_value value = { .kind = EVENT_VALUE_SIMPLE };
    struct series_info *info = series_info_of_value("t", 1, &value);
    struct series_view *v;

    assert_int_equal(point_series_settle(p, COLUMN_VALUE + 1), 1);
    v = series_view_new(info, p->blocks, p->block_count);
    assert_non_null(v);
    v->latest = p->latest;
    series_info_drop(info);
    return v;
}

/* Each position of a restart, with and without settling in between, against a plain list. */
static void test_lower_steps_remove(void **state)
{
    enum { FIRST = 700 };

    (void)state;
    for (int64_t from = -1; from <= FIRST + 1; from += from % 5 == 0 ? 13 : 7)
        for (int settled = 0; settled < 2; settled++) {
            struct point_series p = { 0 };
            struct series_view *v;
            int64_t kept = from < 0 ? 0 : from < FIRST ? from : FIRST;

            for (int64_t s = 0; s < FIRST; s++)
                add(&p, s, 2000.0 - (double)s, 1);
            if (settled)
                assert_int_equal(point_series_settle(&p, COLUMN_VALUE + 1), 1);
            for (int64_t s = from; s < from + 300; s++)
                add(&p, s, 5, 2);
            v = view_of(&p);
            assert_int_equal(v->count, kept + 300);
            assert_int_equal(v->last_step, from + 299);
            assert_true(v->latest == (kept ? 2000.0 : 5.0));
            for (size_t i = 0; i < v->count; i++) {
                assert_int_equal((int64_t)series_view_at(v, i, COLUMN_STEP),
                                 (int64_t)i < kept ? (int64_t)i : from + (int64_t)i - kept);
                assert_int_equal(series_view_find(v, (int64_t)series_view_at(v, i, COLUMN_STEP)), i);
            }
            series_view_drop(v);
            point_series_release(&p);
        }
}

static void expect_sample(size_t n, size_t wanted, const uint32_t *rows)
{
    struct point_series p = { 0 };
    const struct series_sample *s;
    struct series_view *v;

    for (size_t i = 0; i < n; i++)
        add(&p, (int64_t)i, 1, 1);
    v = view_of(&p);
    assert_non_null(s = series_sample_take(v, wanted, 0));
    assert_int_equal(s->count, wanted);
    for (size_t i = 0; rows && i < wanted; i++)
        assert_int_equal(s->rows[i], rows[i]);
    for (size_t i = 0; i < wanted; i++)
        assert_true(s->rows[i] < n && (!i || s->rows[i - 1] < s->rows[i]));
    assert_int_equal(s->rows[wanted - 1], n - 1);
    series_sample_drop(v, s);
    series_view_drop(v);
    point_series_release(&p);
}

/* The vectors of the specification of data servers, 7.4. */
static void test_samples(void **state)
{
    (void)state;
    assert_true(series_sample_order(0) == 0xe220a8397b1dcdaf && series_sample_order(1000) == 0x3c1eba8b4dccc148 &&
                series_sample_order(-1) == 0xe4d971771b652c20);
    expect_sample(10, 4, (const uint32_t[]){ 3, 5, 7, 9 });
    expect_sample(11, 4, (const uint32_t[]){ 3, 5, 7, 10 });
    expect_sample(12, 4, (const uint32_t[]){ 3, 5, 10, 11 });
    expect_sample(20, 4, (const uint32_t[]){ 3, 10, 18, 19 });
    for (size_t n = 2; n < 1000; n += 1 + n / 7)
        for (size_t wanted = 1; wanted < n; wanted += 1 + wanted / 3)
            expect_sample(n, wanted, NULL);
    expect_sample(100000, 99999, NULL);
}

/* Where a curve is not finite, the points on both sides are there; with extremes, so are the highest and the lowest. */
static void test_samples_keep_what_stands_out(void **state)
{
    (void)state;
    for (int extremes = 0; extremes < 2; extremes++)
        for (size_t wanted = 13; wanted < 400; wanted += 31) {
            struct point_series p = { 0 };
            const struct series_sample *s;
            struct series_view *v;
            int found = 0;

            for (int64_t i = 0; i < 5000; i++)
                add(&p, i, 1, i == 2222 || i == 4000 ? (extremes ? 1e30f : NAN) : i == 3333 && extremes ? -1e30f : 1);
            v = view_of(&p);
            assert_non_null(s = series_sample_take(v, wanted, extremes));
            assert_int_equal(s->count, wanted);
            for (size_t i = 0; i < wanted; i++) {
                assert_true(!i || s->rows[i - 1] < s->rows[i]);
                found += s->rows[i] == 2222 || s->rows[i] == 4000 ||
                         (extremes ? s->rows[i] == 3333 : s->rows[i] == 2221 || s->rows[i] == 2223);
            }
            assert_true(found >= (extremes ? (wanted > 40 ? 3 : 1) : wanted > 40 ? 4 : 1));
            series_sample_drop(v, s);
            series_view_drop(v);
            point_series_release(&p);
        }
}

/* A curve that ceases to be finite at every other point is thinned as soon as another one. */
static void test_samples_of_many_turns(void **state)
{
    enum { ROWS = 400000, WANTED = 200000 };
    struct point_series p = { 0 };
    const struct series_sample *s;
    struct series_view *v;

    (void)state;
    for (int64_t i = 0; i < ROWS; i++)
        add(&p, i, 1, i % 2 ? NAN : 1);
    v = view_of(&p);
    assert_non_null(s = series_sample_take(v, WANTED, 0));
    assert_int_equal(s->count, WANTED);
    for (size_t i = 1; i < WANTED; i++)
        assert_true(s->rows[i - 1] < s->rows[i]);
    assert_int_equal(s->rows[WANTED - 1], ROWS - 1);
    series_sample_drop(v, s);
    series_view_drop(v);
    point_series_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_keep_every_bit),
        cmocka_unit_test(test_lower_steps_remove),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_samples_keep_what_stands_out),
        cmocka_unit_test(test_samples_of_many_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
