/*
 * step_rule.h - the step of a checkpoint, by --step-from, --step-scale and --step-offset: a number times the scale,
 * plus the offset. Pure.
 *
 *   (nothing)    the number in the name
 *   FILE:KEY     the whole number at KEY, a dotted path of members, in the JSON file FILE: NAME/FILE in a directory,
 *                FILE beside a file. With {name} in it, FILE is a path relative to the watched directory. FILE is
 *                written after the checkpoint: an older one belongs to another checkpoint
 *   count        the number of checkpoints found so far: 1, 2, 3, ...
 *   mtime        the modification time of the checkpoint, in whole seconds since 1970
 */
#ifndef EVALUATOR_WATCH_STEP_RULE_H
#define EVALUATOR_WATCH_STEP_RULE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum step_from { STEP_FROM_NAME, STEP_FROM_FILE, STEP_FROM_COUNT, STEP_FROM_MTIME };

struct step_rule {
    enum step_from from;
    char file[256];  /* STEP_FROM_FILE */
    const char *key; /* the same; borrowed */
    int64_t scale, offset;
    int scaled; /* 1: scale or offset was given, so the step comes from the name, not a tensor */
};

/* from: as on the command line, NULL: the name; borrowed. scale 0: 1. ERR_ARG with a sentence. */
int step_rule_parse(struct step_rule *out, const char *from, int64_t scale, int64_t offset, struct error *e);

/* The step of a number, and back; -1: there is no such step of 0 or more. */
int64_t step_rule_step(const struct step_rule *r, int64_t number);
int64_t step_rule_number(const struct step_rule *r, int64_t step);

/* The path of FILE relative to the watched directory; 0: it does not fit. */
int step_rule_path(const struct step_rule *r, const char *name, int is_directory, char *out, size_t size);
/* The number at the key in these n bytes of FILE. ERR_CORRUPT with a sentence that names path. */
int step_rule_find(const struct step_rule *r, const char *path, const char *bytes, size_t n, int64_t *out,
                   struct error *e);

#endif
