/*
 * step_rule.h - which step a checkpoint is of, as --step-from, --step-scale and --step-offset say it: a number times
 * the scale, plus the offset. Pure.
 *
 *   (nothing)    the number is in the name
 *   FILE:KEY     it is the whole number at KEY, a dotted path of members, of the JSON in FILE: in the directory of the
 *                checkpoint, that is NAME/FILE of a directory and FILE beside a file. With {name} in it, FILE is a path
 *                from the watched directory. FILE is written after the checkpoint: an older one is of another
 *   count        it is how many were found: 1, 2, 3, ...
 *   mtime        it is when the checkpoint was last modified, in whole seconds since 1970
 */
#ifndef EVALUATOR_WATCH_STEP_RULE_H
#define EVALUATOR_WATCH_STEP_RULE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum step_from { STEP_FROM_NAME, STEP_FROM_FILE, STEP_FROM_COUNT, STEP_FROM_MTIME };

struct step_rule {
    enum step_from from;
    char file[256];    /* STEP_FROM_FILE */
    const char *key;   /* the same; borrowed */
    int64_t scale, offset;
    int scaled;        /* 1: the two were given, so the number that they are about is the step's */
};

/* from: as on the command line, NULL: the name; borrowed. scale 0: 1. ERR_ARG with a sentence. */
int step_rule_parse(struct step_rule *out, const char *from, int64_t scale, int64_t offset, struct error *e);

/* The step of a number, and back; -1: there is none that is 0 or more. */
int64_t step_rule_step(const struct step_rule *r, int64_t number);
int64_t step_rule_number(const struct step_rule *r, int64_t step);

/* The path of FILE from the watched directory; 0: it does not fit. */
int step_rule_path(const struct step_rule *r, const char *name, int is_directory, char *out, size_t size);
/* The number at the key of these n bytes of FILE. ERR_CORRUPT with a sentence that names path. */
int step_rule_find(const struct step_rule *r, const char *path, const char *bytes, size_t n, int64_t *out,
                   struct error *e);

#endif
