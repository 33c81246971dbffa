/*
 * decoder.h - runs a decoder of captions word by word, for a search: a network of the layers of show_and_tell, of any
 * sizes, whose memory is kept outside, so that it can go on from any of several beginnings. Dropout is left out, as in
 * evaluation. One decoder is for one thread at a time.
 */
#ifndef MODEL_DECODER_H
#define MODEL_DECODER_H

#include "model/network.h"

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
