/*
 * directory_walk.h - the directories below one that are of some kind. Those whose names begin with a dot and links are
 * passed over, except for the one to begin with; deeper than 16 nothing is looked for.
 */
#ifndef BASE_DIRECTORY_WALK_H
#define BASE_DIRECTORY_WALK_H

/* 1: it is of the kind, and nothing below it is looked at. 0: it is not. < 0: it is, but something went wrong. */
typedef int directory_visit(void *context, const char *directory);

/* Visits `top`, then what is below, names in natural order. What cannot be listed has nothing below. OK, or the first
 * error of a visit; the others are visited all the same. */
int directory_walk(const char *top, directory_visit *visit, void *context);

#endif
