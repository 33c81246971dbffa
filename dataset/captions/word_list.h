/*
 * word_list.h - a vocabulary file, as im2txt has it: in each line a word and behind a blank how often it occurs, which
 * is not read; the most frequent first. A word's number is that of its line, counted from 0. Among the words are <S>,
 * which begins a sentence, and </S>, which ends it. All words that are not in the list share the number of <UNK>, which
 * follows that of the last line unless the list has it. Pure but for word_list_read().
 */
#ifndef DATASET_CAPTIONS_WORD_LIST_H
#define DATASET_CAPTIONS_WORD_LIST_H

#include "base/error.h"
#include "dataset/words.h"

#include <stddef.h>
#include <stdint.h>

#define WORD_LIST_START "<S>"
#define WORD_LIST_END "</S>"
#define WORD_LIST_UNKNOWN "<UNK>"

enum { WORD_LIST_BYTES_MAX = 1 << 26, WORD_LIST_WORDS_MAX = 65535 };

struct word_list {
    const char **words;          /* (count) by their numbers */
    int32_t *order;              /* (count) numbers, in the order of their words' bytes */
    int32_t count;               /* with the unknown word */
    int32_t start, end, unknown; /* numbers */
    uint64_t hash;               /* of all words in the order of their numbers; not 0 */
    char *text;                  /* what words point into */
};

/* name: of the file, for errors. ERR_CORRUPT: the sentence names the line. On OK *out is yours until
 * word_list_release(); else it is empty. */
int word_list_parse(struct word_list *out, const char *name, const char *text, size_t n, struct error *e);
int word_list_read(struct word_list *out, const char *path, struct error *e);
void word_list_release(struct word_list *l); /* frees what it has, and empties it */

int32_t word_list_find(const struct word_list *l, struct word w); /* the unknown word's if it has none */

#endif
