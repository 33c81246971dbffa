/* The N best of sequences, in order, against what a plain sort of all of them says. */
#include "evaluator/record/evaluation_best.h"

#include "base/random.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Letter, value and, after a dot, the step: "a5 b7.2". The names of the best, in order. */
static const char *best_of(const char *sequence, size_t limit, int minimum, int by_step)
{
    static char out[64];
    const struct best_entry *entry;
    struct best_list l;
    size_t used = 0;

    assert_int_equal(best_list_init(&l, limit, minimum, by_step, NULL), OK);
    for (const char *p = sequence; *p; p += strcspn(p, " "), p += *p == ' ') {
        const struct best_entry next = { .value = p[1] == 'n' ? NAN : p[1] - '0',
                                         .checkpoint = { { *p }, p[2] == '.' ? p[3] - '0' : 0, 0, 0, 0 } };

        best_list_add(&l, &next);
    }
    out[0] = '\0';
    for (size_t i = 0; (entry = best_list_at(&l, i)); i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%g", entry->checkpoint.name, entry->value);
    best_list_release(&l);
    return out;
}

static void test_sequences(void **state)
{
    (void)state;
    assert_string_equal(best_of("", 3, 0, 0), "");
    assert_string_equal(best_of("a1 b2", 3, 0, 0), "b2a1");
    assert_string_equal(best_of("a1 b2 c3 d4", 3, 0, 0), "d4c3b2");
    assert_string_equal(best_of("d4 c3 b2 a1", 3, 0, 0), "d4c3b2");
    assert_string_equal(best_of("a1 b2 c3 d4", 3, 1, 0), "a1b2c3");
    assert_string_equal(best_of("a5 b5 c5 d5", 3, 0, 0), "a5b5c5"); /* of equal ones the earlier */
    assert_string_equal(best_of("an b1 cn", 3, 0, 0), "b1");
    assert_string_equal(best_of("a1 b2 a3", 3, 0, 0), "a3b2"); /* the better time of one checkpoint */
    assert_string_equal(best_of("a3 b2 a1 c0", 3, 0, 0), "a3b2c0");
    assert_string_equal(best_of("a1.1 a2.2 a3.3", 2, 0, 1), "a3a2");
    assert_string_equal(best_of("a1.1 a2.1 a3.3", 2, 0, 1), "a3a2");
    assert_string_equal(best_of("a1 b2 c3", 1, 0, 0), "c3");
}

/* Random values under few names: each name's first best value, sorted. */
static void test_random(void **state)
{
    (void)state;
    for (uint64_t run = 0; run < 200; run++) {
        struct random random;
        char sequence[256] = "", wanted[64] = "";
        double values[8];
        int first[8];
        size_t used = 0;

        random_init(&random, run, RANDOM_TEST, 0, 0);
        for (int k = 0; k < 8; k++)
            values[k] = -1;
        for (int i = 0; i < 20; i++) {
            const int name = (int)random_below(&random, 8), value = (int)random_below(&random, 8);

            used += (size_t)snprintf(sequence + used, sizeof sequence - used, "%s%c%d", i ? " " : "", 'a' + name,
                                     value);
            if (value > values[name]) {
                values[name] = value;
                first[name] = i;
            }
        }
        for (int place = 0; place < 4; place++) {
            int best = -1;

            for (int k = 0; k < 8; k++)
                if (values[k] >= 0 &&
                    (best < 0 || values[k] > values[best] || (values[k] == values[best] && first[k] < first[best])))
                    best = k;
            if (best < 0)
                break;
            snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%c%g", 'a' + best, values[best]);
            values[best] = -1;
        }
        assert_string_equal(best_of(sequence, 4, 0, 0), wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sequences), cmocka_unit_test(test_random) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
