/* The exchange vector without tables: dense variables before, between and after two of them. */
#include "trainer/collective/dense_part.h"

#include "tests/trainer/words.h"

static void test_part(void **state)
{
    struct network *n;
    struct dense_part p;
    size_t count, packed = 0, total;
    const struct variable *v;
    real *vector, *out;

    (void)state;
    assert_int_equal(network_new(&n, &words_model, 0, NULL), OK);
    assert_int_equal(dense_part_init(&p, n, NULL), OK);
    v = network_variables(n, &count);
    total = network_exchange_count(n);
    vector = calloc(total, sizeof *vector);
    out = calloc(p.total, sizeof *out);
    for (size_t i = 0; i < total; i++)
        vector[i] = (real)i;
    dense_part_gather(&p, 0, p.total / 3, vector, out);
    dense_part_gather(&p, p.total / 3, p.total, vector, out);
    for (size_t i = 0; i < total; i++) {
        int in_table = 0;

        for (size_t k = 0; k < count; k++)
            in_table |= v[k].row_width && i >= v[k].offset && i < v[k].offset + v[k].count;
        assert_int_equal(dense_part_below(&p, i), packed);
        if (in_table)
            continue;
        assert_true(out[packed] == (real)i);
        assert_int_equal(dense_part_extent(&p, (struct extent){ packed, packed + 1 }).from, i);
        assert_int_equal(dense_part_extent(&p, (struct extent){ 0, packed + 1 }).to, i + 1);
        packed++;
    }
    assert_true(packed == p.total && p.total < total);
    free(vector);
    free(out);
    dense_part_release(&p);
    network_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_part) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
