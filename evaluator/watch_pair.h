/*
 * watch_pair.h - NAME=DIR, as --watch takes it and as a line of a --watch-file. Pure.
 *
 * Blanks around it do not count. NAME is where the results go below the eval root: a relative path without empty parts,
 * . and .. in it; DIR is what follows the first '=', any path. A line that is empty or begins with # says nothing.
 */
#ifndef EVALUATOR_WATCH_PAIR_H
#define EVALUATOR_WATCH_PAIR_H

#include "base/error.h"

/* 1, *name and *directory, both in `line`, which is cut up; 0: it says nothing; ERR_ARG with a sentence. */
int watch_pair_parse(char *line, char **name, char **directory, struct error *e);

#endif
