/*
 * vocabulary.h - the numbers of words. The most frequent ones have a number each, the others share that of the unknown
 * word. The same counts give the same numbers, in whatever order the words came. One thread.
 */
#ifndef DATASET_VOCABULARY_H
#define DATASET_VOCABULARY_H

#include "base/error.h"
#include "dataset/words.h"

#include <stddef.h>
#include <stdint.h>

enum { VOCABULARY_UNKNOWN, VOCABULARY_END /* of a piece of text */, VOCABULARY_FIRST /* the most frequent word */ };

struct vocabulary;

int vocabulary_new(struct vocabulary **out, struct error *e); /* ERR_NOMEM */
void vocabulary_free(struct vocabulary *v);                   /* NULL is fine */

/* Counts a word. Its text is borrowed until free. ERR_NOMEM. */
int vocabulary_count(struct vocabulary *v, struct word w, struct error *e);

/* Call once, after all were counted: numbers the most frequent words from VOCABULARY_FIRST on, in all at most `size`
 * numbers; of equally frequent ones the first in the order of their bytes come first. Returns how many numbers are in
 * use. */
int32_t vocabulary_choose(struct vocabulary *v, int32_t size);

/* Its number, once chosen. */
int32_t vocabulary_find(const struct vocabulary *v, struct word w);

/* The word of a number in use: "<unk>", "<end>", and so on. */
struct word vocabulary_word(const struct vocabulary *v, int32_t number);

/* How often it was counted; a number from VOCABULARY_FIRST on. */
uint64_t vocabulary_frequency(const struct vocabulary *v, int32_t number);

/* Of all words in the order of their numbers: another vocabulary has another one. Not 0. */
uint64_t vocabulary_hash(const struct vocabulary *v);

#endif
