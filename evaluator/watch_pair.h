/*
 * watch_pair.h - NAME=DIR, as --watch takes it and as a line of a --watch-file. Pure.
 *
 * Blanks around it are ignored. NAME is the path of the results below the eval root: relative, without empty parts, .
 * or ..; DIR is any path, and begins after the first '='. Empty lines and lines that begin with # are ignored.
 */
#ifndef EVALUATOR_WATCH_PAIR_H
#define EVALUATOR_WATCH_PAIR_H

#include "base/error.h"

/* 1: *name and *directory point into `line`, which is modified; 0: the line is ignored; ERR_ARG with a sentence. */
int watch_pair_parse(char *line, char **name, char **directory, struct error *e);

#endif
