/*
 * caption_score.h - how near told sentences are to those of people. Counts are integers, so parts add up to the same.
 * Pure.
 *
 * BLEU-n of a corpus by its definition (Papineni et al. 2002, "BLEU: a method for automatic evaluation of machine
 * translation"), unsmoothed: the geometric mean over k = 1..n of the share of told k-grams that a reference has (each
 * counted at most as often as in the reference that has it most often), times exp(1 - r/c) if the told sentences are
 * shorter (c words) than the references nearest in length (r words; of two equally near the shorter).
 * Exact match: the share of told sentences that equal a reference.
 */
#ifndef EVALUATOR_SCORE_CAPTION_SCORE_H
#define EVALUATOR_SCORE_CAPTION_SCORE_H

#include <stddef.h>
#include <stdint.h>

enum { CAPTION_SCORE_GRAMS = 4 };

struct caption_score {
    int64_t sentences, exact;
    int64_t told_words, reference_words;
    int64_t told[CAPTION_SCORE_GRAMS], found[CAPTION_SCORE_GRAMS]; /* [k - 1]: k-grams, and those in a reference */
};

struct caption_words {
    const int32_t *words;
    size_t count;
};

/* Counts one told sentence against its references, of which there is at least one. */
void caption_score_add(struct caption_score *s, struct caption_words told, const struct caption_words *references,
                       size_t reference_count);
/* n: 1 to CAPTION_SCORE_GRAMS. 0 if some k-gram share is 0, or nothing was told; NaN without sentences. */
double caption_score_bleu(const struct caption_score *s, int n);
double caption_score_exact(const struct caption_score *s); /* NaN without sentences */

#endif
