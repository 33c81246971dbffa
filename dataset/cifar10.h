/*
 * cifar10.h - the binary layout of CIFAR-10. A record is 3073 bytes: 1 label byte 0..9, then 1024 red, 1024 green and
 * 1024 blue bytes, each plane row-major 32x32. Decoded interleaved: (32, 32, 3). The decoder is pure.
 */
#ifndef DATASET_CIFAR10_H
#define DATASET_CIFAR10_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CIFAR10_SIDE = 32,
    CIFAR10_PIXELS = CIFAR10_SIDE * CIFAR10_SIDE,
    CIFAR10_IMAGE = 3 * CIFAR10_PIXELS,
    CIFAR10_RECORD = 1 + CIFAR10_IMAGE,
    CIFAR10_CLASSES = 10,
    CIFAR10_NAME_MAX = 32, /* bytes of a class name, its NUL included */
};

/* Decodes n bytes, whole records, that begin at byte `offset` of the file `name`, into images (n / 3073, 32, 32, 3) and
 * labels (n / 3073). ERR_CORRUPT: the sentence names the file, the byte and the record. */
int cifar10_decode(const uint8_t *bytes, size_t n, const char *name, uint64_t offset, uint8_t *images, uint8_t *labels,
                   struct error *e);

/* Decodes batches.meta.txt: the class names, one per line, in the order of the labels; blank lines at the end are
 * allowed. */
int cifar10_decode_names(const char *text, size_t n, const char *name, char names[CIFAR10_CLASSES][CIFAR10_NAME_MAX],
                         struct error *e);

/* Counts the records of a file. ERR_CORRUPT if its length is 0 or not a multiple of 3073. */
int cifar10_count(const char *path, size_t *count, struct error *e);

/* Reads a file of exactly count records, decoded as in cifar10_decode(). */
int cifar10_read(const char *path, size_t count, uint8_t *images, uint8_t *labels, struct error *e);

#endif
