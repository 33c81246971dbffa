/*
 * caption_set.h - images with captions in a directory laid out as COCO is distributed:
 *   DIR/annotations/captions_PART.json   which images there are, and their captions
 *   DIR/PART/FILE_NAME                   the images, JPEG or PNG
 *   DIR/word_counts.txt                  the vocabulary (word_list.h), made by `dataset vocabulary`
 *   DIR/features/PART.safetensors        what an encoder made of the images (feature_table.h), made by `dataset encode`
 * A PART whose name begins with "train" is of the training part; "val", or "test", is of the test part. There must be
 * one of each. Read-only after opening, so any number of threads may read.
 */
#ifndef DATASET_CAPTIONS_CAPTION_SET_H
#define DATASET_CAPTIONS_CAPTION_SET_H

#include "dataset/captions/caption_file.h"
#include "dataset/captions/feature_table.h"
#include "dataset/captions/word_list.h"
#include "dataset/dataset.h"

#include <limits.h>

#define CAPTION_SET_VOCABULARY "word_counts.txt"

/* Where the files of a part are. */
struct caption_paths {
    char annotations[PATH_MAX], images[PATH_MAX], vocabulary[PATH_MAX], features[PATH_MAX];
};

/* ERR_IO: there are no annotations of this part, or those of several. */
int caption_paths_find(struct caption_paths *out, const char *directory, enum dataset_split split, struct error *e);

struct caption_set {
    struct caption_paths paths;
    struct caption_file file;
    struct word_list words;
    struct feature_table *features; /* NULL: there is no such file */
    size_t *rows;                   /* (images) in features; SIZE_MAX: an image without a caption, and without a row */
    int32_t *tokens;                /* of all captions, one after the other, without <S> and </S> */
    size_t *starts;                 /* (captions + 1) of each in tokens */
    size_t longest;                 /* words of the longest caption */
};

/* features_needed 1: ERR_IO if there is no such file. ERR_CORRUPT: an image with a caption has no features, or a
 * caption is not text. On OK *out is yours until caption_set_free(). */
int caption_set_open(struct caption_set **out, const char *directory, enum dataset_split split, int features_needed,
                     struct error *e);
void caption_set_free(struct caption_set *s); /* NULL is fine */

/* The captions [*first, *end) of an image. */
void caption_set_of_image(const struct caption_set *s, size_t image, size_t *first, size_t *end);

#endif
