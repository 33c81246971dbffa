/* BLEU and exact match, by hand. */
#include "evaluator/score/captioning.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

#define WORDS(...) \
    ((struct caption_words){ (const int32_t[]){ __VA_ARGS__ }, sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t) })

static void near(double got, double want)
{
    if (!(fabs(got - want) < 1e-12))
        fail_msg("%.15g instead of %.15g", got, want);
}

/* Papineni's example: "the" seven times against "the cat is on the mat": two of seven. */
static void clipped(void **state)
{
    const struct caption_words references[] = { WORDS(1, 2, 3, 4, 1, 5), WORDS(6, 3, 7, 2, 4, 1, 5) };
    struct caption_score s = { 0 };

    (void)state;
    caption_score_add(&s, WORDS(1, 1, 1, 1, 1, 1, 1), references, 2);
    assert_int_equal(s.found[0], 2);
    assert_int_equal(s.told[0], 7);
    near(caption_score_bleu(&s, 1), 2.0 / 7);
    near(caption_score_bleu(&s, 2), 0);
    near(caption_score_exact(&s), 0);
}

static void exact(void **state)
{
    const struct caption_words references[] = { WORDS(1, 2, 3), WORDS(1, 2, 3, 4, 5) };
    struct caption_score s = { 0 };

    (void)state;
    caption_score_add(&s, WORDS(1, 2, 3, 4, 5), references, 2);
    near(caption_score_exact(&s), 1);
    for (int n = 1; n <= 4; n++)
        near(caption_score_bleu(&s, n), 1);
    caption_score_add(&s, WORDS(1, 2), references, 2); /* shorter than the nearest, which has 3 */
    assert_int_equal(s.reference_words, 8);
    near(caption_score_exact(&s), 0.5);
    near(caption_score_bleu(&s, 2), exp(1 - 8.0 / 7));
}

/* Of two references equally near in length the shorter one counts. */
static void nearest(void **state)
{
    const struct caption_words references[] = { WORDS(1, 2, 3, 4, 5, 6), WORDS(7, 8) };
    struct caption_score s = { 0 };

    (void)state;
    caption_score_add(&s, WORDS(1, 2, 9, 9), references, 2);
    assert_int_equal(s.reference_words, 2);
    near(caption_score_bleu(&s, 1), 0.5);
    near(caption_score_bleu(&s, 2), sqrt(0.5 / 3));
}

static void nothing(void **state)
{
    const struct caption_words reference = WORDS(1);
    struct caption_score s = { 0 };

    (void)state;
    assert_true(isnan(caption_score_bleu(&s, 4)) && isnan(caption_score_exact(&s)));
    caption_score_add(&s, (struct caption_words){ NULL, 0 }, &reference, 1);
    near(caption_score_bleu(&s, 1), 0);
    near(caption_score_exact(&s), 0);
    caption_score_add(&s, (struct caption_words){ NULL, 0 }, &(struct caption_words){ NULL, 0 }, 1);
    near(caption_score_exact(&s), 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(clipped), cmocka_unit_test(exact), cmocka_unit_test(nearest),
                                        cmocka_unit_test(nothing) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
