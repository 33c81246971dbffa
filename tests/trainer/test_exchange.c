/* Buckets and slices cover the vector once; sums are the same bits however the vector is cut. */
#include "trainer/collective/exchange.h"

#include "base/random.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static void test_cover(void **state)
{
    static const size_t totals[] = { 1, 15, 16, 17, 1000, 4096 }, buckets[] = { 16, 32, 1008, 8192 };

    (void)state;
    for (size_t t = 0; t < sizeof totals / sizeof *totals; t++)
        for (size_t b = 0; b < sizeof buckets / sizeof *buckets; b++)
            for (int n = 1; n <= 5; n++) {
                size_t above = totals[t], count = bucket_count(totals[t], buckets[b]);

                for (size_t q = 0; q < count; q++) {
                    struct extent x = bucket_extent(totals[t], buckets[b], q);
                    size_t at = x.from;

                    assert_true(x.to == above && x.from < x.to && x.to - x.from <= buckets[b]);
                    assert_int_equal(buckets_ready(totals[t], buckets[b], x.from), q + 1);
                    assert_int_equal(buckets_ready(totals[t], buckets[b], x.from + 1), q);
                    for (int r = 0; r < n; r++) {
                        struct extent s = slice_extent(x, n, r);

                        assert_true(s.from == at && s.to >= s.from);
                        at = s.to;
                    }
                    assert_true(at == x.to);
                    above = x.from;
                }
                assert_int_equal(above, 0);
                assert_int_equal(buckets_ready(totals[t], buckets[b], totals[t]), 0);
                assert_int_equal(buckets_ready(totals[t], buckets[b], 0), count);
            }
}

static void test_order(void **state)
{
    enum { N = 1333, PARTS = 9 };
    static real vectors[PARTS][N], whole[N], cut[N], in_place[N];
    const real *parts[PARTS];
    int differing = 0;
    struct random r;

    (void)state;
    random_init(&r, 9, RANDOM_TEST, 0, 0);
    for (int k = 0; k < PARTS; k++) {
        parts[k] = vectors[k];
        for (size_t i = 0; i < N; i++)
            vectors[k][i] = (real)random_normal(&r);
    }
    for (int count = 1; count <= PARTS; count++) {
        exchange_sum(whole, parts, count, 0, N);
        for (size_t piece = 1; piece <= N; piece += 1 + piece / 7) {
            for (size_t from = 0; from < N; from += piece)
                exchange_sum(cut, parts, count, from, from + piece < N ? from + piece : N);
            assert_memory_equal(whole, cut, sizeof whole);
        }
        for (size_t i = 0; i < N; i++) {
            real sum = parts[0][i], back = parts[count - 1][i];

            for (int k = 1; k < count; k++) {
                sum += parts[k][i];
                back += parts[count - 1 - k][i];
            }
            assert_memory_equal(&sum, &whole[i], sizeof sum);
            differing += memcmp(&sum, &back, sizeof sum) != 0;
        }
        memcpy(in_place, vectors[0], sizeof in_place);
        parts[0] = in_place;
        exchange_sum(in_place, parts, count, 0, N);
        parts[0] = vectors[0];
        assert_memory_equal(whole, in_place, sizeof whole);
    }
    assert_true(differing > N); /* the order is not all the same */
}

static void test_hash(void **state)
{
    unsigned char bytes[67] = { 0 };
    uint64_t h = exchange_hash(bytes, sizeof bytes, EXCHANGE_HASH_SEED);

    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(exchange_hash(bytes, sizeof bytes, EXCHANGE_HASH_SEED) != h);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(exchange_hash(bytes, 66, EXCHANGE_HASH_SEED) != h);
}

static void test_names(void **state)
{
    struct network *n;
    char text[100];

    (void)state;
    assert_int_equal(network_new(&n, model_find("lenet"), 0, NULL), OK);
    extent_names(n, (struct extent){ 0, network_parameter_count(n) }, text, sizeof text);
    assert_string_equal(text, "conv1/weights .. fc4/biases");
    extent_names(n, (struct extent){ 0, 1 }, text, sizeof text);
    assert_string_equal(text, "conv1/weights");
    network_free(n);
}

/* Pieces of equal size, as many as wanted, unless they would be too small or too large. */
static void test_piece(void **state)
{
    static const struct {
        size_t total, pieces, piece;
    } cases[] = {
        { 0, 16, 1 },        { 1, 16, 1 },          { 2559, 16, 2559 },    { 2560, 16, 1280 },
        { 21841, 16, 1366 }, { 5462, 16, 1366 },    { 21841, 2, 10921 },   { 30720, 2, 15360 },
        { 30721, 2, 10241 }, { 464155, 16, 14973 }, { 464155, 40, 11604 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(exchange_piece(cases[i].total, cases[i].pieces), cases[i].piece);
}

/* Each rank meets each of the others once, and in each round two ranks meet each other. */
static void test_partner(void **state)
{
    (void)state;
    for (int n = 1; n <= 17; n++)
        for (int r = 0; r < n; r++) {
            int met[17] = { 0 };

            for (int k = 0; k < n; k++) {
                const int with = exchange_partner(n, r, k);

                assert_in_range(with, 0, n - 1);
                assert_int_equal(exchange_partner(n, with, k), r);
                met[with]++;
            }
            for (int other = 0; other < n; other++)
                assert_int_equal(met[other], 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cover), cmocka_unit_test(test_order),
                                        cmocka_unit_test(test_hash),  cmocka_unit_test(test_piece),
                                        cmocka_unit_test(test_names), cmocka_unit_test(test_partner) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
