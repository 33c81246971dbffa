/*
 * caption_set.h - images with captions in a directory laid out as COCO is distributed:
 *   DIR/annotations/captions_PART.json   which images there are, and their captions
 *   DIR/PART/FILE_NAME                   the images, JPEG or PNG
 *   DIR/word_counts.txt                  the vocabulary, made by `dataset vocabulary`
 *   DIR/features/PART.safetensors        what an encoder made of the images, made by `dataset encode`
 * A PART whose name begins with "train" is of the training part; "val", or "test", is of the test part. There must be
 * one of each. Read-only after opening, so any number of threads may read.
 *
 * Its parts come first: annotations, features of images, and the vocabulary.
 */
#ifndef DATASET_CAPTIONS_CAPTION_SET_H
#define DATASET_CAPTIONS_CAPTION_SET_H

#include "base/error.h"
#include "dataset/dataset.h"
#include "dataset/words.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* ---- caption file ------------------------------------------------------------------------------------------------ */

/*
 * Images and their captions, as COCO's annotation files have them (JSON):
 *   { "images": [{ "id": 9, "file_name": "COCO_train2014_000000000009.jpg", ... }, ...],
 *     "annotations": [{ "image_id": 9, "caption": "A cat on a mat.", ... }, ...], ... }
 * Other members are left out. Pure but for caption_file_read(). Source: cocodataset.org, "Data format".
 */

/* 2 GiB of JSON: COCO's training part has 66 MB. */
enum { CAPTION_FILE_BYTES_MAX = INT32_MAX };

struct caption_image {
    int64_t id;
    const char *file_name; /* without a folder */
};

struct caption {
    size_t image; /* index */
    char *text;   /* UTF-8, NUL-terminated */
};

struct caption_file {
    struct caption_image *images; /* in the order of the file */
    size_t image_count;
    struct caption *captions; /* in the order of the images, then of the file */
    size_t count;
    char *texts; /* what both point into */
};

/* name: of the file, for errors. ERR_CORRUPT: it is not such JSON; the sentence names the element. ERR_NOMEM. On OK
 * *out is yours until caption_file_release(); else it is empty. */
int caption_file_parse(struct caption_file *out, const char *name, const char *json, size_t n, struct error *e);
int caption_file_read(struct caption_file *out, const char *path, struct error *e);
void caption_file_release(struct caption_file *f); /* frees what it has, and empties it */

/* ---- feature table ----------------------------------------------------------------------------------------------- */

/*
 * What a frozen encoder made of images, as a safetensors file:
 *   "features"  F32 (images, width)
 *   "image_id"  I64 (images): which image each row is of, as in the annotations
 * Any program can write one. Rows stay on disk. Any number of threads may read.
 */

struct feature_table;

enum { FEATURE_TABLE_WIDTH_MAX = 65536 };

/* ERR_IO: there is no such file. ERR_CORRUPT: it has other tensors; or two rows of one image. */
int feature_table_open(struct feature_table **out, const char *path, struct error *e);
void feature_table_close(struct feature_table *t); /* NULL is fine */

size_t feature_table_width(const struct feature_table *t); /* numbers of a row */
/* 1 and *row: the row of that image. 0: there is none. */
int feature_table_find(const struct feature_table *t, int64_t image_id, size_t *row);
/* out: (width). ERR_IO, ERR_CORRUPT: the file has become shorter, or the row is not finite. */
int feature_table_read(const struct feature_table *t, size_t row, float *out, struct error *e);

/* Writes such a file, whole or not at all: features (rows, width), image_ids (rows). */
int feature_table_write(const char *path, const float *features, const int64_t *image_ids, size_t rows, size_t width,
                        struct error *e);

/* ---- word list --------------------------------------------------------------------------------------------------- */

/*
 * A vocabulary file, as im2txt has it: in each line a word and behind a blank how often it occurs, which
 * is not read; the most frequent first. A word's number is that of its line, counted from 0. Among the words are <S>,
 * which begins a sentence, and </S>, which ends it. All words that are not in the list share the number of <UNK>, which
 * follows that of the last line unless the list has it. Pure but for word_list_read().
 */

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
void word_list_release(struct word_list *l); /* frees what it has, and empties it */

int32_t word_list_find(const struct word_list *l, struct word w); /* the unknown word's if it has none */

/* ---- caption set ------------------------------------------------------------------------------------------------- */

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
