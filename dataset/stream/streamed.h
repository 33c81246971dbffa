/*
 * streamed.h - what all data sets that stay on disk do once their samples are listed.
 */
#ifndef DATASET_STREAM_STREAMED_H
#define DATASET_STREAM_STREAMED_H

#include "dataset/dataset_kind.h"

/*
 * Makes o->d a data set of `count` samples that format reads from context, which belongs to it from here on, also after
 * an error. o->d has its shape and classes, and o->labels the int32_t (count). Broken test samples must not count: with
 * how->skip_bad all are read once, and only the good ones stay. ERR_CORRUPT, ERR_IO: one that cannot be read.
 */
int streamed_take(struct dataset_owned *o, const struct sample_stream_format *format, void *context, size_t count,
                  enum dataset_split split, const struct dataset_reading *how, struct error *e);

#endif
