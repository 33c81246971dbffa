/*
 * example.h - tf.train.Example, the usual content of a record of a TFRecord file: named lists of bytes, floats or
 * integers. Finds the few of them that make a labelled image. Pure; it takes the bytes in windows, so that a caller
 * who wants only the label need not read the pixels before and behind it.
 *
 *   Example   1: Features
 *   Features  1: entry, any number
 *   entry     1: key   2: Feature
 *   Feature   1: BytesList   2: FloatList   3: Int64List
 *   lists     1: values; integers one by one or packed
 *
 * (tensorflow/core/example/example.proto and feature.proto.) Unknown fields are skipped, fields may have any order, and
 * of an entry or Feature that occurs twice the last one counts, as in protobuf. An entry is passed over at its first
 * key if that is none that is looked for.
 */
#ifndef DATASET_STREAM_EXAMPLE_H
#define DATASET_STREAM_EXAMPLE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* What is looked for. */
enum example_part {
    EXAMPLE_IMAGE,    /* bytes: JPEG, PNG, or the pixels themselves */
    EXAMPLE_FORMAT,   /* bytes: "raw" if they are pixels; others are told by the image's first bytes */
    EXAMPLE_LABEL,    /* an integer */
    EXAMPLE_HEIGHT,   /* an integer, of pixels; likewise the next two */
    EXAMPLE_WIDTH,    /* the same */
    EXAMPLE_CHANNELS, /* the same */
    EXAMPLE_PARTS
};

/* The key of each part, not terminated. */
struct example_keys {
    struct {
        const char *text;
        size_t length;
    } of[EXAMPLE_PARTS];
};

/* text: "label=KEY,image=KEY,...", or NULL: image/encoded, image/format, image/class/label, image/height, image/width
 * and image/channels, which all parts have that text does not name. Borrowed. ERR_ARG: the sentence names the option
 * --example-keys. */
int example_keys_parse(struct example_keys *out, const char *text, struct error *e);

struct example {
    unsigned found; /* 1 << part, of those that are there */
    const uint8_t *bytes[EXAMPLE_PARTS];
    size_t length[EXAMPLE_PARTS];
    int64_t number[EXAMPLE_PARTS];
};

/* One reading of a record. */
struct example_scan {
    const struct example_keys *keys;
    unsigned wanted; /* 1 << part of those that are looked at; the values of others are skipped */
    size_t size;     /* of the record */
    size_t position; /* in it: the next window begins here ... */
    size_t need;     /* ... and has at least so many bytes */
    struct example found;
    const char *problem; /* after an error: what is wrong, "its label has 2 values" */
    /* private */
    size_t end; /* of the Features that it is in; 0: in none */
};

void example_scan_begin(struct example_scan *s, const struct example_keys *keys, unsigned wanted, size_t size);

/* window: n bytes of the record from s->position on, at least s->need. 1: the record is read, and s->found is right;
 * bytes in it point into the windows. 0: give the next window. ERR_CORRUPT: it is no Example; s->problem. */
int example_scan_next(struct example_scan *s, const uint8_t *window, size_t n);

/* Both for a whole record in memory. OK, or ERR_CORRUPT with s->problem. */
int example_scan_whole(struct example_scan *s, const struct example_keys *keys, unsigned wanted, const uint8_t *record,
                       size_t n);

#endif
