/*
 * pattern.h - matches names of checkpoints that contain the step, as given with --pattern. Pure.
 *
 *   checkpoint-{step}            a file or directory with such a name; {step} is 1 to 18 digits
 *   checkpoint-{step}/           a directory
 *   epoch={*}-step={step}.ckpt   {*}, or {} for short: any text or none; the shortest match is taken
 *
 * {step} takes all digits in a row: "model{step}.pt" finds 12 in model12.pt, and so does "{*}{step}.pt". A pattern
 * without {step}, "last.ckpt", is for steps that come from elsewhere (step_rule.h).
 */
#ifndef EVALUATOR_WATCH_PATTERN_H
#define EVALUATOR_WATCH_PATTERN_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { PATTERN_PARTS_MAX = 32, PATTERN_TEXT_MAX = 256 };
enum pattern_part_kind { PATTERN_TEXT, PATTERN_STEP, PATTERN_ANY };

struct pattern {
    struct pattern_part {
        enum pattern_part_kind kind;
        unsigned short start, length; /* of a TEXT part, in text */
    } parts[PATTERN_PARTS_MAX];
    size_t count;
    char text[PATTERN_TEXT_MAX]; /* the pattern, without a final '/' */
    int directory;               /* 1: it had a final '/' */
};

/* with_step 1: {step} must occur once; 0: it must not occur. ERR_ARG: it does not follow that rule, has a '/' inside,
 * an unknown {word}, or a digit right after {step}, or is too long. */
int pattern_parse(const char *text, int with_step, struct pattern *out, struct error *e);

/* 1 if the whole name matches; *step: -1 without {step}. */
int pattern_match(const struct pattern *p, const char *name, int64_t *step);

#endif
