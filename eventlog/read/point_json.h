/*
 * point_json.h - walks the members of a JSON object on one line. Pure; for point_input.c.
 */
#ifndef EVENTLOG_READ_POINT_JSON_H
#define EVENTLOG_READ_POINT_JSON_H

#include "base/buffer.h"

enum point_json_kind { POINT_JSON_NUMBER, POINT_JSON_STRING, POINT_JSON_OTHER };

struct point_json_member {
    struct buffer key, text;   /* unescaped; text: of a string, or the number as written */
    enum point_json_kind kind; /* OTHER: true, false, null, an object or an array, all skipped */
};

struct point_json {
    const char *next, *end;
    int begun;
};

/* 1 if the line is an object, else 0. */
int point_json_begin(struct point_json *j, const char *line, size_t n);
/* 1: the next member is in *m, whose buffers the caller owns; 0: the object ended, with nothing after it; -1: not JSON,
 * or out of memory, in which case buffer_ok() of key or text is 0. NaN, Infinity and -Infinity count as numbers. */
int point_json_next(struct point_json *j, struct point_json_member *m);

#endif
