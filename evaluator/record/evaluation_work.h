/*
 * evaluation_work.h - EVAL/work.json: what an evaluator is doing now, for `evaluator status` and other programs.
 * Replaced by rename, not synced, soon after a change and at least every WORK_RENEWED_SECONDS:
 *
 * {"pid":4711,"updated":1.7e9,"queued":2,"not_whole":0,"newest_step":800,"until_step":2000,
 *  "in_hand":[{"checkpoint":"model.ckpt-700","step":700,"since":1.7e9}]}
 *
 *   pid          of the evaluator; if evaluator.lock names another, the file is ignored
 *   updated      when it was written
 *   queued       waiting checkpoints; not_whole: seen, but cannot be opened yet
 *   newest_step  of the checkpoint written last; null: none found yet. until_step: of --until-step; null: not given
 *   in_hand      the first WORK_IN_HAND_MAX checkpoints being evaluated, and since when
 */
#ifndef EVALUATOR_RECORD_EVALUATION_WORK_H
#define EVALUATOR_RECORD_EVALUATION_WORK_H

#include "base/buffer.h"
#include "base/error.h"
#include "evaluator/files/opened_checkpoint.h"

#include <stddef.h>
#include <stdint.h>

enum { WORK_IN_HAND_MAX = 16, WORK_RENEWED_SECONDS = 30 };

struct evaluation_work {
    int64_t pid, queued, not_whole, newest_step, until_step; /* the last two: -1: none */
    double updated;
    size_t in_hand_count; /* of in_hand */
    struct work_in_hand {
        struct checkpoint_identity checkpoint; /* read back: without digest */
        double since;                          /* wall */
    } in_hand[WORK_IN_HAND_MAX];
};

/* Parses n bytes of such a file: 1, or 0: it is not one. Pure. */
int evaluation_work_parse(const char *text, size_t n, struct evaluation_work *out);
void evaluation_work_format(const struct evaluation_work *work, struct buffer *out);

/* 1 if they differ only in `updated`. */
int evaluation_work_same(const struct evaluation_work *a, const struct evaluation_work *b);

/* Call before the first write. ERR_ARG: the file, or its temporary name, is a link or holds something else. */
int evaluation_work_check(const char *eval_directory, struct error *e);
int evaluation_work_write(const char *eval_directory, const struct evaluation_work *work, struct error *e);
/* 1 and *out, or 0: there is no readable one. */
int evaluation_work_read(const char *eval_directory, struct evaluation_work *out);

#endif
