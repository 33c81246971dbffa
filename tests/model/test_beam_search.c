/* Beam search against all sentences of a small world, and its ends; the decoder against the network, word by word. */
#include "base/random.h"
#include "model/decoder.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 5, START = 0, END = 1, LONGEST = 5 };

/* Logits of the next word, a function of the sentence so far. */
static void next(const int32_t *words, int count, real *logits)
{
    uint64_t h = 7;
    struct random r;

    for (int k = 0; k < count; k++)
        h = h * 31 + (uint64_t)words[k];
    random_init(&r, 3, RANDOM_TEST, 1, h);
    for (int c = 0; c < CLASSES; c++)
        logits[c] = (real)(2 * random_normal(&r));
}

static double log_probability(const real *logits, int c)
{
    double sum = 0;

    for (int k = 0; k < CLASSES; k++)
        sum += exp((double)logits[k]);
    return (double)logits[c] - log(sum);
}

static void run(struct beam_search *s, int beams, double power)
{
    const struct beam_search_options options = { beams, LONGEST, power, START, END };
    real logits[BEAM_SEARCH_BEAMS_MAX * CLASSES];
    int rows;

    beam_search_begin(s, &options);
    while ((rows = beam_search_rows(s)) > 0) {
        for (int k = 0; k < rows; k++)
            next(s->partial[k].words, s->partial[k].count, logits + k * CLASSES);
        beam_search_advance(s, CLASSES, logits);
    }
}

/* The best complete sentence of all. */
static double best_of_all(int32_t *words, int count, double sum, double power, int32_t *best, double *best_score)
{
    real logits[CLASSES];

    next(words, count, logits);
    for (int c = 0; c < CLASSES && count < LONGEST; c++) {
        const double p = sum + log_probability(logits, c);

        words[count] = c;
        if (c != END) {
            best_of_all(words, count + 1, p, power, best, best_score);
        } else if (p / pow(count + 1, power) > *best_score) {
            *best_score = p / pow(count + 1, power);
            memcpy(best, words, LONGEST * sizeof *best);
        }
    }
    return *best_score;
}

/* With as many beams as there are partial sentences that matter, the search is complete. */
static void finds_the_best(void **state)
{
    static const double powers[] = { 0, 1 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct beam_search s;
        int32_t words[LONGEST + 1] = { START }, best[LONGEST] = { 0 };
        double score = -INFINITY;
        int count;
        const struct beam_sentence *found;

        best_of_all(words, 1, 0, powers[i], best, &score);
        run(&s, 16, powers[i]);
        found = beam_search_result(&s, &count);
        assert_int_equal(count, 16);
        assert_true(fabs(found[0].score - score) < 1e-5);
        assert_memory_equal(found[0].words, best, (size_t)found[0].count * sizeof *best);
        for (int k = 1; k < count; k++)
            assert_true(found[k].score <= found[k - 1].score);
    }
}

/* One beam follows the most probable word. */
static void greedy(void **state)
{
    struct beam_search s;
    int32_t words[LONGEST] = { START };
    int count = 1, found_count;
    const struct beam_sentence *found;

    (void)state;
    for (; count < LONGEST; count++) {
        real logits[CLASSES];
        int top = 0;

        next(words, count, logits);
        for (int c = 1; c < CLASSES; c++)
            top = logits[c] > logits[top] ? c : top;
        words[count] = top;
        if (top == END) {
            count++;
            break;
        }
    }
    run(&s, 1, 0);
    found = beam_search_result(&s, &found_count);
    assert_int_equal(found_count, 1);
    assert_int_equal(found->count, count);
    assert_memory_equal(found->words, words, (size_t)count * sizeof *words);
}

/* Without an end in reach the partial sentences are the result; improbable and NaN words never follow. */
static void edges(void **state)
{
    const struct beam_search_options options = { 3, 4, 0, START, END };
    const real never_ends[] = { -40, -40, 5, 4, (real)NAN };
    struct beam_search s;
    int count, rows;
    const struct beam_sentence *found;

    (void)state;
    beam_search_begin(&s, &options);
    while ((rows = beam_search_rows(&s)) > 0) {
        real logits[3 * CLASSES];

        for (int k = 0; k < rows; k++)
            memcpy(logits + k * CLASSES, never_ends, sizeof never_ends);
        logits[4] = -INFINITY;
        for (int k = 0; k < rows; k++)
            logits[k * CLASSES + 4] = -INFINITY;
        beam_search_advance(&s, CLASSES, logits);
    }
    found = beam_search_result(&s, &count);
    assert_int_equal(count, 3);
    assert_int_equal(found[0].count, 4);
    for (int k = 0; k < count; k++)
        for (int w = 1; w < found[k].count; w++)
            assert_true(found[k].words[w] == 2 || found[k].words[w] == 3);
    assert_int_equal(s.complete_count, 0);
}

/* A sentence word by word has the logits that the network has for all of it. */
static void word_by_word(void **state)
{
    enum { IMAGES = 2, STEPS = 20, WORDS = 12000 };
    const struct model *m = model_find("show_and_tell");
    struct network *n = NULL;
    struct decoder *d = NULL;
    struct error e = { 0 };
    struct batch b = { .count = IMAGES, .field_count = FIELD_FEATURES + 1 };
    float *features = calloc(IMAGES, 2048 * sizeof *features);
    int32_t tokens[IMAGES * STEPS];
    real *all = calloc(IMAGES * STEPS, WORDS * sizeof *all), *step = calloc(IMAGES, WORDS * sizeof *step), *states[2];
    struct random r;

    (void)state;
    if (network_new(&n, m, IMAGES, &e) < 0 || decoder_new(&d, n, IMAGES, &e) < 0)
        fail_msg("%s", e.message);
    network_initialize(n, 1);
    states[0] = calloc(IMAGES, decoder_state(d) * sizeof(real));
    states[1] = calloc(IMAGES, decoder_state(d) * sizeof(real));
    assert_true(features && all && step && states[0] && states[1]);
    random_init(&r, 9, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < IMAGES * 2048; i++)
        features[i] = (float)random_uniform(&r);
    for (size_t i = 0; i < IMAGES * STEPS; i++)
        tokens[i] = (int32_t)random_below(&r, WORDS);
    b.fields[FIELD_INPUT] = model_input(m, tokens, IMAGES);
    b.fields[FIELD_FEATURES] = (struct field){ features, ELEMENT_FLOAT32, 2, { IMAGES, 2048 } };
    network_infer_batch(n, &b, all);
    decoder_begin(d, IMAGES, features, states[0]);
    for (size_t t = 0; t < STEPS; t++) {
        const int32_t words[IMAGES] = { tokens[t], tokens[STEPS + t] };

        decoder_step(d, IMAGES, words, states[t % 2], states[1 - t % 2], step);
        for (size_t i = 0; i < IMAGES; i++)
            for (size_t c = 0; c < WORDS; c++)
                assert_true(fabs((double)(step[i * WORDS + c] - all[(i * STEPS + t) * WORDS + c])) < 2e-6);
    }
    decoder_free(d);
    network_free(n);
    if (network_new(&n, model_find("language_model"), 1, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(decoder_new(&d, n, 1, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "tells no captions"));
    network_free(n);
    free(features);
    free(all);
    free(step);
    free(states[0]);
    free(states[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_best),
        cmocka_unit_test(greedy),
        cmocka_unit_test(edges),
        cmocka_unit_test(word_by_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
