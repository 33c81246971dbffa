/*
 * command_words.h - the words of a command given as one text, and what is put in place of {checkpoint}, {step}, ... in
 * them. Pure. Words are split as a shell does, and nothing else is done that a shell does (no variables, wildcards,
 * pipes: for those the command is `sh -c '...'`, which finds the values in its environment):
 *
 *   'text'   as it is, up to the next quote
 *   "text"   as it is, but for \" and \\
 *   \c       the character c
 *
 * Placeholders are replaced after the splitting, so a path with blanks or quotes in it stays one word.
 */
#ifndef EVALUATOR_SCORE_COMMAND_WORDS_H
#define EVALUATOR_SCORE_COMMAND_WORDS_H

#include "base/error.h"

#include <stddef.h>

enum { COMMAND_WORDS_MAX = 1024 };

/* Splits into a list that ends with NULL; all of it is yours: command_words_free(). ERR_ARG: a quote that is not
 * closed, a backslash at the end, no word, too many. */
int command_words_split(const char *text, char ***out, struct error *e);
void command_words_free(char **words); /* NULL is fine */

struct command_value { /* {name} becomes value */
    const char *name, *value;
};

/* A list with the placeholders replaced; those of other names stay as they are. ERR_NOMEM. */
int command_words_fill(char *const *words, const struct command_value *values, size_t count, char ***out,
                       struct error *e);

/* ERR_ARG: a {word} that is none of the names but nearly one: {chekpoint}. values may be NULL in values. */
int command_words_check(char *const *words, const struct command_value *values, size_t count, struct error *e);

#endif
