/*
 * evaluation_log.h - writes the points of evaluations to event files for TensorBoard: tags by preset, step = global
 * step.
 *
 * TensorBoard drops all points of a run at or after a step that arrives later, so steps never go down within a run
 * directory. A late lower step (training restarted from an earlier step, a repaired file) goes to another run directory
 * beside it, EVAL_1, then EVAL_2. Each point goes to the run whose newest step is the highest below its own, and only
 * where there is none to a new one, so there are as few runs as possible. Run and step of the newest point, and what is
 * being recorded, are in EVAL/.points before the points are written. One thread.
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
    int exponential;    /* 1: exp(value) is written: the perplexity of a cross entropy */
};

/* Tags of the built-in runner's precision, best_precision, loss and cross_entropy; of these, one that is not listed is
 * not written. Any other metric is written under its own name, between `before` and `behind` if the preset has them and
 * the name is neither a best_NAME nor a path. */
struct evaluation_tags {
    const char *preset;          /* as --tags names it; NULL: without --tags */
    const char *before, *behind; /* or NULL */
    struct evaluation_tag tags[EVALUATION_TAGS_MAX + 1];
};

/* preset NULL: the default, precision, best_precision and loss. Returns NULL if the preset is unknown. */
const struct evaluation_tags *evaluation_tags_find(const char *preset);
/* For runners other than the built-in one: every metric under its own name. */
const struct evaluation_tags *evaluation_tags_plain(void);

enum { EVALUATION_TAG_MAX = EVALUATION_NAME_MAX + 32 };

/* Sets out (EVALUATION_TAG_MAX bytes) to the tag of a metric, and *value to the value written. 0: it is not written. */
int evaluation_tags_name(const struct evaluation_tags *tags, const struct evaluation_metric *metric, char *out,
                         float *value);

struct evaluation_point {
    int64_t step;                             /* >= 0 */
    double wall_time;                         /* seconds since 1970 */
    const struct evaluation_metrics *metrics; /* borrowed; with best_NAME if there is a best */
    const struct evaluation_detail *detail;   /* borrowed; or NULL */
    const char *line;                         /* its line of the ledger, which follows; borrowed. NULL: there is none */
};

struct evaluation_log;

/* Limits how many of the logs that share it keep their event files open: the ones opened last. The others close theirs,
 * and reopen them for their next point. Zero except limit at first; must outlive the logs. */
struct evaluation_log_files {
    size_t limit, count;
    struct evaluation_log *newest, *oldest;
};

/* last_run and last_step: of a point that is there (-1: none). tags is borrowed, directory copied; nothing is written
 * before the first point. files NULL: the event file stays open. On OK *out is yours until evaluation_log_close(). */
int evaluation_log_open(struct evaluation_log **out, const char *directory, const struct evaluation_tags *tags,
                        struct evaluation_log_files *files, int64_t last_run, int64_t last_step, struct error *e);

/* Takes in a point that is there, from the ledger. ERR_NOMEM; ERR_ARG: nobody has so many runs. */
int evaluation_log_seen(struct evaluation_log *l, int64_t run, int64_t step, struct error *e);

/* Prepares for writing again all points of that run, and of no other, ignoring EVAL/.points. */
void evaluation_log_rewind(struct evaluation_log *l, int64_t run);

/* Sets the settings of the training, which are written as a session start before the next point of
 * each run. training is copied, model and data are borrowed. TensorBoard uses the first session start of a run, so
 * repeating it after a restart does no harm. */
void evaluation_log_describe(struct evaluation_log *l, const struct training_state *training, const char *model,
                             const char *data);

/* The run of the newest point. */
int64_t evaluation_log_newest(const struct evaluation_log *l);
/* The run that this step will go to; may be a new one. */
int64_t evaluation_log_run(const struct evaluation_log *l, int64_t step);

/* Writes and syncs a point. ERR_IO: call again with the same point until OK, or give up; nothing is written twice. */
int evaluation_log_point(struct evaluation_log *l, const struct evaluation_point *p, struct error *e);

/* The line of the point that was written last and is not said to be in the ledger, perhaps by an earlier process;
 * borrowed. NULL: there is none. settle: 1: all of its events are in the event file; 0: none is any more, so it has to
 * be evaluated again; ERR_IO. recorded: the line is in the ledger, or has been settled. */
const char *evaluation_log_unrecorded(const struct evaluation_log *l);
int evaluation_log_settle(const struct evaluation_log *l, struct error *e);
void evaluation_log_recorded(struct evaluation_log *l);

/* For many points: adds one without .points and without syncing; evaluation_log_sync() syncs all of them. */
int evaluation_log_add(struct evaluation_log *l, const struct evaluation_point *p, struct error *e);
int evaluation_log_sync(struct evaluation_log *l, struct error *e);

/* The open event file: the number of synced points of this process in it, all of one run; and its path, borrowed
 * until the log is closed. 0 and NULL: none is open. */
size_t evaluation_log_held(const struct evaluation_log *l);
const char *evaluation_log_path(const struct evaluation_log *l);
/* Makes that file again, with its directory and its content, if it was deleted, moved or replaced; nothing else does,
 * and until then evaluation_log_point() fails with ENOENT. 1: made again; 0: not needed, or not possible. */
int evaluation_log_restore(struct evaluation_log *l);

/* Sets out to the directory of a run, EVAL or EVAL_k; slashes at the end of EVAL are ignored. */
int evaluation_log_directory(const char *eval_directory, int64_t run, char *out, size_t size, struct error *e);

/* Frees l even if the last write fails. NULL is fine. */
int evaluation_log_close(struct evaluation_log *l, struct error *e);

#endif
