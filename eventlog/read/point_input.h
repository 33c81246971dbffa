/*
 * point_input.h - reads points of scalar series from text: CSV and JSON lines, as `eventlog export` and other loggers
 * write them. Pure: takes lines, gives points. One thread at a time.
 *
 * CSV (RFC 4180) needs a header. Long form: the columns tag, step and value, one point per row. Wide form: step, then
 * one column per tag, where an empty cell means no point; a tag with the name of another column is written tag:NAME.
 * Both may have the columns run and wall_time, and columns may be in any order. For TensorBoard's own download, Wall
 * time,Step,Value, the tag is the one given to point_input_new(). With tabs between columns, as from `export --tsv`,
 * fields use the escapes \t \n \r \\ and no quotes. Values that are not finite: nan, inf, -inf in any of the usual
 * spellings.
 *
 * JSON lines: one object per line. With "tag", it is one point with "step" and "value". Without, every other member
 * that is a number is a point of the series with that name. "run" and "wall_time" are optional; other members are
 * skipped, and so is an object with "type" but without "value", which is not a point. The array of `export
 * --format=json` works too.
 */
#ifndef EVENTLOG_READ_POINT_INPUT_H
#define EVENTLOG_READ_POINT_INPUT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum point_input_format { POINT_INPUT_AUTO, POINT_INPUT_CSV, POINT_INPUT_JSONL };

struct point_input_point {
    const char *run, *tag; /* NUL-terminated, without NULs inside; run NULL: none was given */
    int64_t step;
    int has_wall_time;
    double wall_time, value; /* may be NaN or infinite */
};

struct point_input;

/* Called for each point; strings are borrowed for the call. A result other than OK ends the line and is returned. */
typedef int point_input_visit(void *context, const struct point_input_point *point, struct error *e);

/* AUTO: JSON lines if the first non-empty line begins with '{' or '['. tag (borrowed): for points without one, or NULL.
 * On OK *out is yours: point_input_free() it. */
int point_input_new(struct point_input **out, enum point_input_format format, const char *tag, struct error *e);
void point_input_free(struct point_input *p); /* NULL is fine */

/* Takes the next line, without its newline. OK; ERR_CORRUPT: this line is bad, but the next may be good (unless
 * point_input_lost() is 1: the header is bad); ERR_NOMEM; or what visit returned. In wide CSV and JSON the points
 * before the error in a bad line have already been visited; in long CSV none have. */
int point_input_line(struct point_input *p, const char *line, size_t n, point_input_visit *visit, void *context,
                     struct error *e);
/* There are no more lines: ERR_CORRUPT if a quoted field is still open. */
int point_input_end(struct point_input *p, struct error *e);

int point_input_lost(const struct point_input *p); /* 1: the header was bad, so no following line can be read */
uint64_t point_input_passed_over(const struct point_input *p); /* objects that were not points */

#endif
