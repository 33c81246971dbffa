/*
 * command_words.h - splits a command given as one text into words, and replaces {checkpoint}, {step}, ... in them.
 * Pure. Words are split as in a shell, without its other features (no variables, wildcards or pipes; for those use `sh
 * -c '...'`, which finds the values in its environment: "$EVALUATOR_CHECKPOINT"):
 *
 *   'text'   as it is, up to the next quote
 *   "text"   as it is, except \" and \\
 *   \c       the character c
 *
 * Placeholders are replaced after the splitting, so a path with blanks or quotes stays one word.
 */
#ifndef EVALUATOR_SCORE_COMMAND_WORDS_H
#define EVALUATOR_SCORE_COMMAND_WORDS_H

#include "base/error.h"

#include <stddef.h>

enum { COMMAND_WORDS_MAX = 1024 };

/* Splits into a list that ends with NULL; yours, command_words_free() it. ERR_ARG: an unclosed quote, a backslash at
 * the end, no word, or too many. */
int command_words_split(const char *text, char ***out, struct error *e);
void command_words_free(char **words); /* NULL is fine */

/* {name} becomes value. variable: the environment variable that also has it, or NULL if it is always a number or a word
 * of the program's own. */
struct command_value {
    const char *name, *value, *variable;
};

/* Makes a list with the placeholders replaced; unknown ones stay as they are. ERR_NOMEM. */
int command_words_fill(char *const *words, const struct command_value *values, size_t count, char ***out,
                       struct error *e);

/* ERR_ARG: a {word} is similar to one of the names but not equal, as {chekpoint}; or a {name} with a variable is in a
 * word that a shell or an interpreter will read as code, such as that after `sh -c`, `python3 -c` or `ssh HOST`, where
 * the name of a file would run. The value of an item may be NULL. */
int command_words_check(char *const *words, const struct command_value *values, size_t count, struct error *e);

#endif
