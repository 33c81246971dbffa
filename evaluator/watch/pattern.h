/*
 * pattern.h - names of checkpoints with the step in them, as --pattern gives them. Pure.
 *
 *   checkpoint-{step}            a file or directory of that name, {step} being 1 to 18 digits
 *   checkpoint-{step}/           a directory
 *   epoch={*}-step={step}.ckpt   {*}, or {} for short: any text, also none; the earliest place that fits counts
 *
 * All digits that stand in a row are the step: "model{step}.pt" finds 12 in model12.pt, and so does "{*}{step}.pt".
 * Where the step is found elsewhere (step_rule.h), there is no {step} in it: "last.ckpt".
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
    char text[PATTERN_TEXT_MAX];      /* the pattern itself, without the '/' at its end */
    int directory;                    /* 1: it had a '/' at its end */
};

/* with_step: 1: {step} must be in it once; 0: it must not. ERR_ARG: it is not so, a '/' inside, an unknown {word}, a
 * digit right behind {step}, too long. */
int pattern_parse(const char *text, int with_step, struct pattern *out, struct error *e);

/* 1 and the step if all of the name fits; -1 where there is no {step}. */
int pattern_match(const struct pattern *p, const char *name, int64_t *step);

#endif
