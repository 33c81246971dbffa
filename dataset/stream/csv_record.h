/*
 * csv_record.h - the records of a CSV file (RFC 4180), and the option --csv-format, which says what their columns are.
 * Pure.
 *
 * A record ends with CR, LF or CR LF, or with the file. Fields are separated by commas, or by what the option says. A
 * field that begins with a quote ends with one, and may have separators, line ends and doubled quotes in it; a quote
 * elsewhere stands for itself. Lines without a byte are no records.
 */
#ifndef DATASET_STREAM_CSV_RECORD_H
#define DATASET_STREAM_CSV_RECORD_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { CSV_SKIPS_MOST = 64 };

/* A column by its name in the header, or by its number, the first one 1. */
struct csv_column {
    const char *text; /* borrowed from the option, not NUL-terminated */
    size_t length;
};

struct csv_format {
    struct csv_column label; /* text NULL: the column "label", else the last one */
    struct csv_column skips[CSV_SKIPS_MOST];
    int skip_count;
    int header; /* 1: the first record has the names of the columns; 0: it does not; -1: if no feature in it is a
                   number */
    char separator;
    int height, width, channels; /* of features that are pixels, 0..255; 0: they are numbers */
};

/* text: "label=COLUMN,skip=COLUMN,header=yes|no,separator=comma|semicolon|tab,pixels=HxWxC", each of which may be left
 * out and skip repeated; NULL: all left out. ERR_ARG: the sentence says which part is wrong. */
int csv_format_parse(struct csv_format *out, const char *text, struct error *e);

/* Looks for the ends of records; all 0 but the separator and line = 1 at the start of a file. */
struct csv_scan {
    char separator;
    int state;     /* within a field */
    int returned;  /* 1: the byte before was CR */
    uint32_t line; /* of the next byte, from 1 on */
};

/* How many of the n bytes belong to the record, its line end included; *ended: 1 if it ends with them. */
size_t csv_scan_next(struct csv_scan *s, const char *bytes, size_t n, int *ended);
/* 1: the bytes so far end inside of quotes. */
int csv_scan_quoted(const struct csv_scan *s);

/* Splits a record of n bytes, without its line end, in place; text[n] is written to. fields (most): each is NUL
 * terminated then, without its quotes. *count: how many there are, of which `most` are in fields. ERR_CORRUPT: *problem
 * says what is wrong. */
int csv_split(char *text, size_t n, char separator, char **fields, size_t most, size_t *count, const char **problem);

/* 1 and *out: the field, with blanks around it, is a finite number within float32's range. */
int csv_number(const char *field, float *out);
/* 1 and *out: the field, with blanks around it, is a whole number. */
int csv_integer(const char *field, int64_t *out);

#endif
