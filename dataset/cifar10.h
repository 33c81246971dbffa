/*
 * cifar10.h - the binary layout of CIFAR-10. A record is 3073 bytes: 1 label byte 0..9, then 1024 red, 1024 green and
 * 1024 blue bytes, each plane row-major 32x32. Images stay on disk (stream/fixed_records.h), and are read interleaved:
 * (32, 32, 3).
 */
#ifndef DATASET_CIFAR10_H
#define DATASET_CIFAR10_H

#include "base/error.h"

#include <stddef.h>

enum {
    CIFAR10_SIDE = 32,
    CIFAR10_RECORD = 1 + 3 * CIFAR10_SIDE * CIFAR10_SIDE,
    CIFAR10_CLASSES = 10,
    CIFAR10_NAME_MAX = 32, /* bytes of a class name, its NUL included */
};

/* Decodes batches.meta.txt: the class names, one per line, in the order of the labels; blank lines at the end are
 * allowed. Pure. */
int cifar10_decode_names(const char *text, size_t n, const char *name, char names[CIFAR10_CLASSES][CIFAR10_NAME_MAX],
                         struct error *e);

/* ERR_CORRUPT: the file's length is 0 or not a multiple of 3073. */
int cifar10_check_size(const char *path, struct error *e);

#endif
