/*
 * scene.h - a made picture: items on a grid, and the sentences that tell what is where. Pure.
 *
 * The grammar, for items A, B, ... in the order in which they are read, and places such as "top left":
 *   one item   "A at the P" | "there is A at the P" | "the P has A" | "a picture of A at the P" | "at the P is A"
 *   two        "A R B" | "there is A R B" | "B S A" | "a picture of B S A" | "A at the P and B at the P"
 *              R: left of, above, above and left of, above and right of; S: right of, below, ...
 *   three, four "A, B and C" | "there are A, B and C" | "a picture of A, B and C" | "A, B and C in a picture"
 *              | "A at the P, B at the P and C at the P"
 * Each begins with a capital letter and ends with a point.
 */
#ifndef DATASET_TOOL_SCENE_H
#define DATASET_TOOL_SCENE_H

#include "base/buffer.h"
#include "base/random.h"

#include <stddef.h>

enum { SCENE_SIDE_MAX = 3, SCENE_ITEMS_MAX = 4, SCENE_SENTENCES = 5 };

struct scene_item {
    int row, column;
    size_t sample; /* of the data set that items are from */
};

struct scene {
    int rows, columns, count;
    struct scene_item items[SCENE_ITEMS_MAX]; /* row by row */
};

/* Draws 1 to `most` items of so many samples, each in a cell of its own. */
void scene_draw(struct scene *s, int rows, int columns, int most, size_t samples, struct random *r);

/* Appends sentence `which` of SCENE_SENTENCES. names: of each item, with its article: "a bag". */
void scene_sentence(const struct scene *s, int which, const char *const *names, struct buffer *out);

/* The name of a class as sentences have it: "an ankle boot" of "Ankle boot", "a t-shirt" of "T-shirt/top", "a seven" of
 * "7"; truncated to size. */
void scene_name(const char *class_name, char *out, size_t size);

#endif
