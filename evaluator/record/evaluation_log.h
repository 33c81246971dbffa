/*
 * evaluation_log.h - the points of the evaluations in event files, for TensorBoard: tags by preset, step = global step.
 *
 * TensorBoard drops all points of a run that stand at or after a step that arrives later, so steps never go down
 * within a run directory. A lower step that comes late (training restarted from an earlier step, a repaired file) goes
 * to a new run directory beside: EVAL_1, then EVAL_2; what follows stays there. Which run and step came last is kept
 * in EVAL/.points, written before the points themselves: after a crash between points and ledger it is still known.
 * One thread.
 */
#ifndef EVALUATOR_RECORD_EVALUATION_LOG_H
#define EVALUATOR_RECORD_EVALUATION_LOG_H

#include "base/error.h"
#include "checkpoint/directory/training_state.h"
#include "evaluator/score/evaluation.h"

#include <stddef.h>
#include <stdint.h>

enum { EVALUATION_TAGS_MAX = 4 };

struct evaluation_tag {
    const char *tag;    /* NULL ends the list */
    const char *metric; /* its name in the evaluation */
    int exponential;    /* 1: e to the power of it is written: the perplexity of a cross entropy */
};

/* Tags of the built-in runner's precision, best_precision, loss and cross_entropy: one that is not listed is left out.
 * A metric of any other name is written under that name, between `before` and `behind` where the preset has them and
 * the name is neither a best_NAME nor a path. */
struct evaluation_tags {
    const char *preset; /* as --tags names it; NULL: without --tags */
    const char *before, *behind; /* or NULL */
    struct evaluation_tag tags[EVALUATION_TAGS_MAX + 1];
};

/* NULL: the default, precision, best_precision and loss. Unknown: NULL is returned. */
const struct evaluation_tags *evaluation_tags_find(const char *preset);
/* For evaluations that are not the built-in runner's: every metric under its own name. */
const struct evaluation_tags *evaluation_tags_plain(void);

enum { EVALUATION_TAG_MAX = EVALUATION_NAME_MAX + 32 };

/* The tag under which a metric is written, into out (EVALUATION_TAG_MAX bytes), and its value there. 0: it is not
 * written. */
int evaluation_tags_name(const struct evaluation_tags *tags, const struct evaluation_metric *metric, char *out,
                         float *value);

struct evaluation_point {
    int64_t step;     /* >= 0 */
    double wall_time; /* seconds since 1970 */
    const struct evaluation_metrics *metrics; /* borrowed; best_NAME is there when there is a best */
    const struct evaluation_detail *detail;   /* borrowed; or NULL */
};

struct evaluation_log;

/* Of the logs that share one, so many have their event files open: those that were opened last. The others close
 * theirs, and go on in them with their next point. Zero but for the limit at first; outlives the logs. */
struct evaluation_log_files {
    size_t limit, count;
    struct evaluation_log *newest, *oldest;
};

/* last_run and last_step: what the ledger says (-1: no point yet). tags is borrowed, directory copied; nothing is
 * written before the first point. files: NULL: the event file stays open. On OK *out is yours until
 * evaluation_log_close(). */
int evaluation_log_open(struct evaluation_log **out, const char *directory, const struct evaluation_tags *tags,
                        struct evaluation_log_files *files, int64_t last_run, int64_t last_step, struct error *e);

/* The points from the beginning of that run on are to come, whatever EVAL/.points says. */
void evaluation_log_rewind(struct evaluation_log *l, int64_t run);

/* The settings of the training (session_settings.h), written as a session's start before the first point that follows
 * in each run; training is copied, model and data are borrowed. TensorBoard takes the first of a run, so saying them
 * again after a restart does no harm. */
void evaluation_log_describe(struct evaluation_log *l, const struct training_state *training, const char *model,
                             const char *data);

/* The run this step will go to, and whether it is a new one. */
int64_t evaluation_log_run(const struct evaluation_log *l, int64_t step);

/* Down to the disk when it returns OK. ERR_IO: call it again with the same point until it is, or give up; nothing is
 * written twice by that. */
int evaluation_log_point(struct evaluation_log *l, const struct evaluation_point *p, struct error *e);

/* For many points, without .points and the disk: evaluation_log_sync() brings all of them there. */
int evaluation_log_add(struct evaluation_log *l, const struct evaluation_point *p, struct error *e);
int evaluation_log_sync(struct evaluation_log *l, struct error *e);

/* The event file that is open: it holds so many synced points of this process, all of the newest run; its path,
 * borrowed until the log is closed. 0 and NULL: none is open. */
size_t evaluation_log_held(const struct evaluation_log *l);
const char *evaluation_log_path(const struct evaluation_log *l);
/* If that file was deleted, moved or replaced, it is made again here and only here, with its directory and with what it
 * holds: until then evaluation_log_point() fails with ENOENT. 1: it was; 0: it was not, or could not be. */
int evaluation_log_restore(struct evaluation_log *l);

/* The directory of a run: EVAL or EVAL_k, into out; slashes at the end of EVAL do not count. */
int evaluation_log_directory(const char *eval_directory, int64_t run, char *out, size_t size, struct error *e);

/* Frees l, also when the last write fails. NULL is fine. */
int evaluation_log_close(struct evaluation_log *l, struct error *e);

#endif
