/* Values as text. The layouts are those of numpy.array2string() but for the digits of numbers. */

#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_print.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

/* 0, 1, 2, ... as int32 of a shape, handed in by pieces of so many. */
static char *counted(int rank, const int64_t *shape, uint64_t limit, size_t columns, size_t piece)
{
    struct buffer out = BUFFER_EMPTY;
    struct tensor_print p;
    uint64_t elements = 1;
    int32_t *values;

    for (int d = 0; d < rank; d++)
        elements *= (uint64_t)shape[d];
    values = malloc((elements + 1) * sizeof *values);
    for (uint64_t i = 0; i < elements; i++)
        values[i] = (int32_t)i;
    tensor_print_init(&p, rank, shape, elements, limit);
    for (uint64_t at = 0; at < elements; at += piece)
        tensor_print_add(&p, TENSOR_INT32, values + at, elements - at < piece ? elements - at : piece);
    tensor_print_append(&p, columns, &out);
    tensor_print_release(&p);
    free(values);
    assert_true(buffer_ok(&out));
    return out.data;
}

static void test_layouts(void **state)
{
    static const struct {
        int rank;
        int64_t shape[3];
        uint64_t limit;
        size_t columns;
        const char *want;
    } cases[] = {
        { 0, { 0 }, 1000, 75, "0\n" },
        { 1, { 0 }, 1000, 75, "[]\n" },
        { 1, { 3 }, 1000, 75, "[0 1 2]\n" },
        { 1, { 12 }, 1000, 16, "[ 0  1  2  3  4\n  5  6  7  8  9\n 10 11]\n" },
        { 1, { 1200 }, 1000, 75, "[   0    1    2 ... 1197 1198 1199]\n" },
        { 2, { 2, 3 }, 1000, 75, "[[0 1 2]\n [3 4 5]]\n" },
        { 2, { 7, 2 }, 5, 75, "[[ 0  1]\n [ 2  3]\n [ 4  5]\n ...\n [ 8  9]\n [10 11]\n [12 13]]\n" },
        { 2, { 1, 7 }, 5, 75, "[[0 1 2 ... 4 5 6]]\n" },
        { 2, { 6, 2 }, 5, 75, "[[ 0  1]\n [ 2  3]\n [ 4  5]\n [ 6  7]\n [ 8  9]\n [10 11]]\n" },
        { 3, { 2, 2, 2 }, 1000, 75, "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]\n" },
        { 3, { 8, 1, 1 }, 5, 75, "[[[0]]\n\n [[1]]\n\n [[2]]\n\n ...\n\n [[5]]\n\n [[6]]\n\n [[7]]]\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece <= 64; piece *= 4) {
            char *got = counted(cases[i].rank, cases[i].shape, cases[i].limit, cases[i].columns, piece);

            if (strcmp(got, cases[i].want) != 0)
                fail_msg("case %zu, pieces of %zu:\n%s", i, piece, got);
            free(got);
        }
}

/* However many dimensions there are, each too short to be cut, what is shown has an end. */
static void test_bounds(void **state)
{
    static const int64_t sixes[] = { 6, 6, 6, 6, 6, 6, 6 };
    int64_t ones[TENSOR_RANK_MAX];
    char *got = counted(7, sixes, 1000, 75, 4096);

    (void)state;
    assert_non_null(strstr(got, " ... (too many to show)\n"));
    assert_true(strlen(got) < 3000000);
    free(got);
    for (int i = 0; i < TENSOR_RANK_MAX; i++)
        ones[i] = 1;
    got = counted(TENSOR_RANK_MAX, ones, 1000, 75, 1);
    assert_int_equal(strlen(got), 2 * TENSOR_RANK_MAX + 2);
    free(got);
}

static void test_texts(void **state)
{
    static const int64_t shape[] = { 2, 2 };
    struct buffer out = BUFFER_EMPTY;
    struct tensor_print p;
    char endless[300];

    (void)state;
    memset(endless, 'x', sizeof endless);
    tensor_print_init(&p, 2, shape, 4, 1000);
    tensor_print_add_string(&p, "cat", 3);
    tensor_print_add_string(&p, "", 0);
    tensor_print_add_string(&p, "a\x1b[\0", 4);
    tensor_print_add_string(&p, endless, sizeof endless);
    tensor_print_append(&p, 75, &out);
    assert_int_equal(strncmp(out.data, "[[\"cat\"", 7), 0);
    assert_non_null(strstr(out.data, "\n [\"a\\x1b[\\x00\""));
    assert_non_null(strstr(out.data, "x\"...]]\n"));
    assert_true(strlen(out.data) < 1000);
    tensor_print_release(&p);
    buffer_clear(&out);
    tensor_print_init(&p, 1, shape, 2, 1000);
    tensor_print_add(&p, TENSOR_BOOL, "\1\0", 2);
    tensor_print_append(&p, 75, &out);
    assert_string_equal(out.data, "[ True False]\n");
    tensor_print_release(&p);
    buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_layouts), cmocka_unit_test(test_bounds),
                                        cmocka_unit_test(test_texts) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
