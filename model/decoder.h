/*
 * decoder.h - runs a decoder of captions word by word, for a search: a network of the layers of show_and_tell, of any
 * sizes, whose memory is kept outside, so that it can go on from any of several beginnings. Dropout is left out, as in
 * evaluation. One decoder is for one thread at a time.
 */
#ifndef MODEL_DECODER_H
#define MODEL_DECODER_H

#include "model/network.h"
#include "model/real.h"

#include <stdint.h>

/* ---- beam search ------------------------------------------------------------------------------------------------- */

/*
 * Finds the most probable sentences, word by word, as im2txt's caption generator does: each step
 * extends the partial sentences by their most probable next words, and keeps the best as partial or, where the word
 * ends a sentence, as complete ones. Pure; one search is for one thread at a time.
 *
 * A word of probability below 1e-12 never follows. Scores are log-probabilities; with a length power x > 0, that of a
 * complete sentence is divided by the number of its words, <S> and </S> included, to the power of x. Without a complete
 * sentence the partial ones are the result. Source: im2txt/inference_utils/caption_generator.py of tensorflow/models.
 * (A version there takes all next words but the most probable ones, by a wrong slice; this is the definition in its
 * comments.)
 */

enum { BEAM_SEARCH_BEAMS_MAX = 16, BEAM_SEARCH_WORDS_MAX = 64 };

struct beam_search_options {
    int beams;    /* 1 to BEAM_SEARCH_BEAMS_MAX; im2txt: 3 */
    int longest;  /* words of a sentence with <S> and </S>, 2 to BEAM_SEARCH_WORDS_MAX; im2txt: 20 */
    double power; /* of the length; im2txt: 0 */
    int32_t start, end;
};

struct beam_sentence {
    int32_t words[BEAM_SEARCH_WORDS_MAX]; /* from <S> on */
    int count;
    int parent; /* the row of the last step that it continues */
    double log_probability, score;
};

struct beam_search {
    struct beam_search_options options;
    struct beam_sentence partial[BEAM_SEARCH_BEAMS_MAX], complete[BEAM_SEARCH_BEAMS_MAX]; /* by score, the best first */
    int partial_count, complete_count, steps;
};

void beam_search_begin(struct beam_search *s, const struct beam_search_options *options);
/* The rows of the next step: the last words of as many partial sentences. 0: the search has ended. */
int beam_search_rows(const struct beam_search *s);
/* logits (rows, classes): of the next word of each partial sentence. */
void beam_search_advance(struct beam_search *s, int classes, const real *logits);
/* After the end: the sentences, the best first. Borrowed. */
const struct beam_sentence *beam_search_result(const struct beam_search *s, int *count);

/* ---- decoder ----------------------------------------------------------------------------------------------------- */

struct decoder;

/* rows: the most in one call. Reads n's weights as they are at each call; n is borrowed until free. ERR_ARG: it has
 * other layers. ERR_NOMEM. */
int decoder_new(struct decoder **out, struct network *n, int rows, struct error *e);
void decoder_free(struct decoder *d); /* NULL is fine */

size_t decoder_state(const struct decoder *d); /* reals of one state */
/* What the memory holds after it has read the features of an image: features (count, of the model) -> states. */
void decoder_begin(struct decoder *d, int count, const float *features, real *states);
/* Reads a word after each state: -> the next states, and logits (count, classes) of the word after it. */
void decoder_step(struct decoder *d, int count, const int32_t *words, const real *states, real *next, real *logits);

#endif
