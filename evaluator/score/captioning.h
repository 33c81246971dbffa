/*
 * captioning.h - tells captions of the images of a data set with the weights of a decoder, by beam search as im2txt has
 * it (3 beams, 20 words with <S> and </S>), and compares them with those of people. One thread.
 */
#ifndef EVALUATOR_SCORE_CAPTIONING_H
#define EVALUATOR_SCORE_CAPTIONING_H

#include "dataset/dataset.h"
#include "eventlog/eventlog.h"
#include "model/network.h"

#include <stddef.h>
#include <stdint.h>

/* ---- caption score ----------------------------------------------------------------------------------------------- */

/*
 * How near told sentences are to those of people. Counts are integers, so parts add up to the same.
 * Pure.
 *
 * BLEU-n of a corpus by its definition (Papineni et al. 2002, "BLEU: a method for automatic evaluation of machine
 * translation"), unsmoothed: the geometric mean over k = 1..n of the share of told k-grams that a reference has (each
 * counted at most as often as in the reference that has it most often), times exp(1 - r/c) if the told sentences are
 * shorter (c words) than the references nearest in length (r words; of two equally near the shorter).
 * Exact match: the share of told sentences that equal a reference.
 */

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

/* ---- captioning -------------------------------------------------------------------------------------------------- */

struct captioning;

/* A few images with what was told of them, for the event file. */
struct caption_samples;

/* images: the first N of the data set that have captions are told; 0: all. Data set and network are borrowed. ERR_ARG:
 * the model tells no captions (decoder.h), or the data has no images. On OK *out is yours until captioning_free(). */
int captioning_new(struct captioning **out, struct network *n, const struct dataset *d, size_t images, struct error *e);
void captioning_free(struct captioning *c); /* NULL is fine */

/* Begins with the weights as they are now. */
void captioning_begin(struct captioning *c);
/* Tells some more images. 1: there are more; 0: all are told; < 0: features cannot be read. */
int captioning_step(struct captioning *c, struct error *e);
double captioning_share(const struct captioning *c); /* of the images, 0 to 1 */
/* After captioning_step() returned 0. Borrowed until the next begin. */
const struct caption_score *captioning_score(const struct captioning *c);

/* Copies the first images' captions of the last round; NULL: no memory. Yours until caption_samples_free(). */
struct caption_samples *captioning_samples(const struct captioning *c);
void caption_samples_free(struct caption_samples *s); /* NULL is fine */
/* Writes captions/K, a text with the told caption and those of people, and caption_images/K, the image file, if it can
 * be read. EVENTLOG_OK, or the writer's error in *error. */
int caption_samples_write(const struct caption_samples *s, struct eventlog_writer *writer, int64_t step,
                          double wall_time, struct eventlog_error *error);

#endif
