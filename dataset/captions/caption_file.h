/*
 * caption_file.h - images and their captions, as COCO's annotation files have them (JSON):
 *   { "images": [{ "id": 9, "file_name": "COCO_train2014_000000000009.jpg", ... }, ...],
 *     "annotations": [{ "image_id": 9, "caption": "A cat on a mat.", ... }, ...], ... }
 * Other members are left out. Pure but for caption_file_read(). Source: cocodataset.org, "Data format".
 */
#ifndef DATASET_CAPTIONS_CAPTION_FILE_H
#define DATASET_CAPTIONS_CAPTION_FILE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

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

#endif
