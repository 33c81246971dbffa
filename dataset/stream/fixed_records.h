/*
 * fixed_records.h - files of records that are all equally long: raw records, CIFAR-100, idx. They stay on disk; a
 * record is read when it is wanted. Of a file that ends in a record, this one is broken.
 */
#ifndef DATASET_STREAM_FIXED_RECORDS_H
#define DATASET_STREAM_FIXED_RECORDS_H

#include "dataset/dataset_reading.h"

#include <stddef.h>
#include <stdint.h>

/* What the input consists of. All but bytes become float32. */
enum fixed_type {
    FIXED_UINT8,
    FIXED_INT8,
    FIXED_INT16_BIG,
    FIXED_INT32_BIG,
    FIXED_FLOAT_BIG,
    FIXED_DOUBLE_BIG,
    FIXED_FLOAT_LITTLE
};

struct fixed_layout {
    size_t bytes;                 /* of a record */
    size_t label_at, label_bytes; /* 1, 2 or 4 bytes, little-endian; 0 bytes: labels are elsewhere */
    size_t input_at;
    int height, width, channels;
    int planar; /* 1: in the file it is (channels, height, width) */
    enum fixed_type type;
};

/* The bytes of one element. */
size_t fixed_type_size(enum fixed_type type);
/* n elements as float32. */
void fixed_type_floats(enum fixed_type type, const uint8_t *bytes, size_t n, float *out);

struct fixed_records;

/* The records of the files, behind `header` bytes in each. ERR_IO: one cannot be read. ERR_ARG:
 * there are no records, or too many. On OK *out is yours, fixed_records_free() it. */
int fixed_records_open(struct fixed_records **out, const struct fixed_layout *layout, const char *const *paths,
                       size_t files, uint64_t header, struct error *e);
size_t fixed_records_count(const struct fixed_records *x);

/* Reads the classes of all records, how->first_label the first, into labels (count), -1 of broken records. Returns how
 * many classes there are, how->classes if that is given. ERR_CORRUPT: one is broken, and how does not skip. Records of
 * other labels are broken from here on. */
int fixed_records_labels(struct fixed_records *x, const struct dataset_reading *how, int32_t *labels, struct error *e);

/* As sample_stream_format has them: (height, width, channels) bytes or floats. */
int fixed_records_read(const void *x, size_t i, void *out, struct error *e);
void fixed_records_free(void *x); /* NULL is fine */

#endif
