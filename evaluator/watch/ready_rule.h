/*
 * ready_rule.h - when a checkpoint of unknown format is ready to be opened, as given with --ready. If several rules are
 * given, all must be met.
 *
 *   quiet:SECONDS   nothing in it has changed for SECONDS; the default, with 5
 *   marker:FILE     FILE exists: NAME/FILE in a directory; for a file NAME.FILE, or NAMEFILE if FILE begins with a dot.
 *                   With {name} or {step} in it, FILE is a path relative to the watched directory. It counts once
 *                   it has not changed for READY_MARKER_SECONDS and, if its name or content says JSON, is complete
 *   latest:FILE     FILE in the watched directory names it or a later one: by its name, as DeepSpeed's "latest" does,
 *                   or by its number, as Megatron's "latest_checkpointed_iteration.txt"
 *   rename          as soon as its name exists: it was written under another name, and does not change in place
 *
 * A marker or latest FILE that is older than the checkpoint may be left from an earlier training: then the checkpoint
 * must also have been quiet for READY_QUIET_SECONDS.
 */
#ifndef EVALUATOR_WATCH_READY_RULE_H
#define EVALUATOR_WATCH_READY_RULE_H

#include "base/error.h"
#include "evaluator/watch/pattern.h"

#include <stddef.h>
#include <stdint.h>

enum { READY_MARKERS_MAX = 8 };

#define READY_QUIET_SECONDS 5.0
#define READY_MARKER_SECONDS 0.5 /* a program that creates a file fills it sooner */
#define READY_TICK_SECONDS 0.01  /* of the kernel's clock, at most */

struct ready_rule {
    int rename;
    double quiet_seconds;                   /* 0: need not be quiet */
    const char *markers[READY_MARKERS_MAX]; /* borrowed */
    size_t marker_count;
    const char *latest; /* borrowed; NULL: none */
};

/* texts: as on the command line, borrowed; count 0: the default. ERR_ARG with a sentence. */
int ready_rule_parse(struct ready_rule *out, const char *const *texts, size_t count, struct error *e);

/* 1: it is ready as soon as the name exists. */
int ready_rule_by_name(const struct ready_rule *r);
/* Replaces {name} and {step} in text; 0: it does not fit. Pure. */
int ready_rule_fill(const char *text, const char *name, int64_t step, char *out, size_t size);
/* The path of a marker relative to the watched directory; 0: it does not fit. Pure. */
int ready_rule_marker_path(const char *marker, const char *name, int64_t step, int is_directory, char *out,
                           size_t size);

/* 1: the checkpoint changed after its marker, so that the marker may be older than the checkpoint; in wall seconds. A
 * rename changes the marker and then the directory, in the same tick or the next: that is no change. Pure. */
int ready_rule_changed_after(double changed, double marked);
/* 1 if a marker is JSON, judging by its name or its first bytes: an object. Pure. */
int ready_rule_says_json(const char *path, const char *bytes, size_t n);
/* OK if these bytes can be the complete marker of that path: JSON is parsed. ERR_CORRUPT with a sentence. Pure. */
int ready_rule_marker_whole(const char *path, const char *bytes, size_t n, struct error *e);

/* The number named in these n bytes of a latest FILE: "global_step500", as a name that matches, or "500". 0: none, as
 * in "release". Pure. */
int ready_rule_latest(const struct pattern *p, const char *bytes, size_t n, int64_t *number);

#endif
