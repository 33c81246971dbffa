/*
 * ready_rule.h - when a checkpoint of no known format is ready to be opened, as --ready says it. Several rules hold
 * together: all must be met.
 *
 *   quiet:SECONDS   nothing in it has changed for that long; the default, with 5 seconds
 *   marker:FILE     FILE is there: NAME/FILE of a directory; NAME.FILE, or NAMEFILE for a FILE that begins with a dot,
 *                   of a file. With {name} or {step} in it, FILE is a path from the watched directory. It counts once
 *                   it has not changed for READY_MARKER_SECONDS and, where its name or content says JSON, is whole
 *   rename          as soon as its name is there: it was written under another one, and is not changed in place
 */
#ifndef EVALUATOR_READY_RULE_H
#define EVALUATOR_READY_RULE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { READY_MARKERS_MAX = 8 };

#define READY_QUIET_SECONDS 5.0
#define READY_MARKER_SECONDS 0.5 /* who makes a file and fills it afterwards does so sooner */

struct ready_rule {
    int rename;
    double quiet_seconds; /* 0: need not be quiet */
    const char *markers[READY_MARKERS_MAX]; /* borrowed */
    size_t marker_count;
};

/* texts: as on the command line, borrowed; count 0: the default. ERR_ARG with a sentence. */
int ready_rule_parse(struct ready_rule *out, const char *const *texts, size_t count, struct error *e);

/* The path of a marker from the watched directory; 0: it does not fit. Pure. */
int ready_rule_marker_path(const char *marker, const char *name, int64_t step, int is_directory, char *out,
                           size_t size);

/* 1 if a marker of that path is JSON, by its name or its first bytes: an object. Pure. */
int ready_rule_says_json(const char *path, const char *bytes, size_t n);
/* OK if these bytes can be a whole marker of that path: JSON is parsed. ERR_CORRUPT with a sentence. Pure. */
int ready_rule_marker_whole(const char *path, const char *bytes, size_t n, struct error *e);

#endif
