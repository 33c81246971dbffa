/*
 * point_input.h - points of scalar series out of text: CSV and JSON lines, as `eventlog export` writes them and as
 * loggers do. Pure: fed with lines, gives points. One thread at a time.
 *
 * CSV (RFC 4180) has a header. Long: the columns tag, step and value, one point a row. Wide: step, then a column a
 * tag, where an empty cell is no point; a tag called as one of the columns below stands there as tag:NAME. In both
 * run and wall_time may be there, and columns come in any order; of TensorBoard's own download, Wall
 * time,Step,Value, the tag is the one given to point_input_new(). With tabs between
 * columns, as `export --tsv` has them, fields hold \t \n \r \\ for what they cannot, and no quotes. Not finite:
 * nan, inf, -inf in any of the usual spellings.
 *
 * JSON lines: an object a line. With "tag": one point of "step" and "value". Without: every other member that is a
 * number is a point of the series of its name. "run" and "wall_time" may be there; other members are passed over, and
 * so is an object with "type" but without "value", which is no point. The array of `export --format=json` works, too.
 */
#ifndef EVENTLOG_READ_POINT_INPUT_H
#define EVENTLOG_READ_POINT_INPUT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum point_input_format { POINT_INPUT_AUTO, POINT_INPUT_CSV, POINT_INPUT_JSONL };

struct point_input_point {
    const char *run, *tag; /* NUL-terminated, without one inside; run NULL: none was given */
    int64_t step;
    int has_wall_time;
    double wall_time, value; /* may be NaN or infinite */
};

struct point_input;

/* Called for each point; strings are borrowed for the call. Not OK ends the line with that. */
typedef int point_input_visit(void *context, const struct point_input_point *point, struct error *e);

/* AUTO: JSON lines if the first line that is not empty begins with '{' or '['. tag: of points without one, or NULL;
 * borrowed. On OK *out is yours. */
int point_input_new(struct point_input **out, enum point_input_format format, const char *tag, struct error *e);
void point_input_free(struct point_input *p); /* NULL is fine */

/* The next line, without its newline. OK; ERR_CORRUPT: it is none that can be read, the next one may be (not so where
 * point_input_lost() says 1: without a header); ERR_NOMEM; or what visit returned. Points of a bad line before the
 * place where it is bad were visited already in wide CSV and JSON, none of them in long CSV. */
int point_input_line(struct point_input *p, const char *line, size_t n, point_input_visit *visit, void *context,
                     struct error *e);
/* No more lines: ERR_CORRUPT where a quoted field is still open. */
int point_input_end(struct point_input *p, struct error *e);

int point_input_lost(const struct point_input *p); /* 1: the header was bad, nothing that follows has a meaning */
uint64_t point_input_passed_over(const struct point_input *p); /* objects that were no points */

#endif
