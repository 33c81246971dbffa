/*
 * evaluation_work.h - EVAL/work.json: what an evaluator is at just now, for whoever asks from outside (`evaluator
 * status`). Replaced by rename, not synced, soon after something has changed and every WORK_RENEWED_SECONDS at least:
 *
 * {"pid":4711,"updated":1.7e9,"queued":2,"not_whole":0,"newest_step":800,"until_step":2000,
 *  "in_hand":[{"checkpoint":"model.ckpt-700","step":700,"since":1.7e9}]}
 *
 *   pid          of the evaluator; of another one than evaluator.lock names it counts for nothing
 *   updated      when it was written
 *   queued       checkpoints that wait; not_whole: that were seen and cannot be opened yet
 *   newest_step  of the checkpoint that was written last; null: none was found yet. until_step: as --until-step; null
 *   in_hand      what is being evaluated, the first WORK_IN_HAND_MAX of them, and since when
 */
#ifndef EVALUATOR_RECORD_EVALUATION_WORK_H
#define EVALUATOR_RECORD_EVALUATION_WORK_H

#include "base/buffer.h"
#include "base/error.h"
#include "evaluator/files/checkpoint_identity.h"

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

/* n bytes of such a file: 1, or 0: it is none. Pure. */
int evaluation_work_parse(const char *text, size_t n, struct evaluation_work *out);
void evaluation_work_format(const struct evaluation_work *work, struct buffer *out);

/* 1 if they say the same but for when they were written. */
int evaluation_work_same(const struct evaluation_work *a, const struct evaluation_work *b);

/* Before the first write: ERR_ARG when the file, or its temporary name, is a link or holds something else. */
int evaluation_work_check(const char *eval_directory, struct error *e);
int evaluation_work_write(const char *eval_directory, const struct evaluation_work *work, struct error *e);
/* 1 and *out, or 0: there is none that can be read. */
int evaluation_work_read(const char *eval_directory, struct evaluation_work *out);

#endif
