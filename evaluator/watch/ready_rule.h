/*
 * ready_rule.h - when a checkpoint of no known format is ready to be opened, as --ready says it. Several rules hold
 * together: all must be met.
 *
 *   quiet:SECONDS   nothing in it has changed for that long; the default, with 5 seconds
 *   marker:FILE     FILE is there: NAME/FILE of a directory; NAME.FILE, or NAMEFILE for a FILE that begins with a dot,
 *                   of a file. With {name} or {step} in it, FILE is a path from the watched directory. It counts once
 *                   it has not changed for READY_MARKER_SECONDS and, where its name or content says JSON, is whole
 *   latest:FILE     FILE of the watched directory names it, or a later one: by its name, as DeepSpeed's "latest" does,
 *                   or by its number, as Megatron's "latest_checkpointed_iteration.txt"
 *   rename          as soon as its name is there: it was written under another one, and is not changed in place
 *
 * A marker or latest FILE that is older than what it stands for may be left from an earlier training: then the
 * checkpoint must also have been quiet for READY_QUIET_SECONDS.
 */
#ifndef EVALUATOR_WATCH_READY_RULE_H
#define EVALUATOR_WATCH_READY_RULE_H

#include "base/error.h"
#include "evaluator/watch/pattern.h"

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
    const char *latest;   /* borrowed; NULL: none */
};

/* texts: as on the command line, borrowed; count 0: the default. ERR_ARG with a sentence. */
int ready_rule_parse(struct ready_rule *out, const char *const *texts, size_t count, struct error *e);

/* 1: the name alone says that it is ready. */
int ready_rule_by_name(const struct ready_rule *r);
/* The text with {name} and {step} replaced; 0: it does not fit. Pure. */
int ready_rule_fill(const char *text, const char *name, int64_t step, char *out, size_t size);
/* The path of a marker from the watched directory; 0: it does not fit. Pure. */
int ready_rule_marker_path(const char *marker, const char *name, int64_t step, int is_directory, char *out,
                           size_t size);

/* 1 if a marker of that path is JSON, by its name or its first bytes: an object. Pure. */
int ready_rule_says_json(const char *path, const char *bytes, size_t n);
/* OK if these bytes can be a whole marker of that path: JSON is parsed. ERR_CORRUPT with a sentence. Pure. */
int ready_rule_marker_whole(const char *path, const char *bytes, size_t n, struct error *e);

/* The number that these n bytes of a latest FILE name: "global_step500", as a name that fits, or "500". 0: they name
 * none, as "release" does not. Pure. */
int ready_rule_latest(const struct pattern *p, const char *bytes, size_t n, int64_t *number);

#endif
