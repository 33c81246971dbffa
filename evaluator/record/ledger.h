/*
 * ledger.h - EVAL/evaluations.jsonl: what became of every checkpoint, one JSON object a line, appended and fsynced.
 * All that must survive a restart is computed from it: what is done, and which was best.
 *
 * {"step":700,"checkpoint":"model.ckpt-700","digest":"00f1...","status":"done",
 *  "metrics":{"precision":0.657,"best_precision":0.661,"loss":1.012,"cross_entropy":0.98},"correct":6570,
 *  "examples":10000,"weights":"variables","seconds":1.5,"started":1.7e9,"lag":0.002,"wall_time":1.7e9,"run":0}
 *
 *   checkpoint  its name; a byte that is not UTF-8 is written /xHH, in two hex digits (base/json.h)
 *   step        -1: it failed before its step was known (--step-from)
 *   metrics     what was measured, by name, in that order; best_NAME: the best of the metric NAME so far, this line
 *               included. Any names; those above are the built-in runner's
 *   correct     of examples; both are missing where nobody counts them
 *   status      "done"; "failed": could not be evaluated, or the loss is NaN; "gone": deleted before it was opened
 *   reason      a sentence, with "failed" and "gone"; the metrics may be missing then
 *   digest      16 hex digits: the index file's; name and digest together are the checkpoint. Missing with "gone"
 *   digest_after  of a directory into which its evaluation wrote files: the digest with them, the same checkpoint
 *   seconds     the evaluation took; started: wall time of its start; lag: from the index's last change to it
 *   point_time  the time of the points, where it is not wall_time (--wall-time=checkpoint)
 *   run         where the points are: 0 the event files in EVAL, k those in EVAL_k
 *
 * A crash leaves at worst a cut last line: it is dropped, and cut off before the next append. An append that fails is
 * cut off again, so it can be repeated. One ledger is for one thread at a time.
 */
#ifndef EVALUATOR_RECORD_LEDGER_H
#define EVALUATOR_RECORD_LEDGER_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"
#include "evaluator/files/checkpoint_identity.h"
#include "evaluator/score/evaluation.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>

enum ledger_status { LEDGER_DONE, LEDGER_FAILED, LEDGER_GONE };
#define LEDGER_FILE "evaluations.jsonl"
/* O_APPEND: a write always goes to the end of what is there, also after the file was cut back. */
enum { LEDGER_FLAGS = O_RDWR | O_APPEND | O_CREAT };

struct ledger_record { /* ledger_record_release() it where metrics were put in */
    struct checkpoint_identity checkpoint;
    enum ledger_status status;
    int has_metrics;
    struct evaluation_metrics metrics;
    int64_t correct, examples; /* -1: not counted */
    char weights[32]; /* "variables", "moving averages", "mixed" */
    double seconds, started, lag, wall_time;
    double point_time; /* 0: wall_time */
    int64_t run;
    char reason[480];
};

/* Which checkpoint is the best: computed from the ledger, so that a restart cannot lose it. Lines without the metric,
 * or with NaN, are never best; a better one must beat the best so far by more than delta, so ties keep the earlier. */
struct ledger_best {
    const char *metric; /* borrowed */
    int minimum;        /* 1: smaller is better */
    double delta;       /* >= 0 */
};

/* What stands in the ledger, appended lines included. */
struct ledger_summary {
    size_t done, failed, gone, odd_lines; /* odd lines: passed over, kept in the file */
    size_t cut_bytes;                     /* of a cut last line, dropped at the start */
    struct ledger_best rule;
    int has_best;
    double best_value;                    /* of the rule's metric */
    struct checkpoint_identity best;
    size_t since_best;                    /* done after it; without a best: done in all */
    int64_t last_run, last_step;          /* the newest run, and the highest step with a point in it; -1: none */
    int64_t highest_step;                 /* of all evaluated; -1: none */
};

struct ledger;

/* Called for each record that is there already, in order; the record is borrowed. Not OK ends the reading. */
typedef int ledger_visit(void *context, const struct ledger_record *record, struct error *e);

/* Reads the file and cuts a cut last line off. fd: as evaluation_lock.h has opened it, borrowed until close; -1: it is
 * opened or made here. io may be NULL for io_real; borrowed until close. best may be NULL: highest precision. visit may
 * be NULL. On OK *out is yours until ledger_close(). */
int ledger_open(struct ledger **out, const struct io *io, const char *path, int fd, const struct ledger_best *best,
                ledger_visit *visit, void *context, struct error *e);
void ledger_close(struct ledger *l); /* NULL is fine */

/* Reads a ledger without touching it; odd lines and a cut last one are passed over, *odd_lines (may be NULL) counts the
 * former. OK also when the file is not there; ERR_ARG: it is a link or no plain file. */
int ledger_read(const char *path, ledger_visit *visit, void *context, size_t *odd_lines, struct error *e);

/* Down to the disk when it returns OK. ERR_IO: the record is not in the ledger; the same call may be tried again. */
int ledger_append(struct ledger *l, const struct ledger_record *record, struct error *e);

/* Goes on in another file, open and empty, borrowed until close: it gets all lines from the one before, which the
 * caller may close then, whether that still has a name or not. On error l is as before. */
int ledger_move(struct ledger *l, int fd, struct error *e);

const struct ledger_summary *ledger_summary(const struct ledger *l); /* borrowed */
size_t ledger_lines(const struct ledger_summary *s); /* of checkpoints, whatever became of them */

/* 1 if this value of the rule's metric would be a new best. */
int ledger_improves(const struct ledger_summary *s, double value);

/* One record as a line, with its newline. */
void ledger_format(const struct ledger_record *record, struct buffer *out);
/* And back: n bytes without the newline. ERR_CORRUPT: not such a record. Unknown fields, and metrics that are no
 * numbers, are passed over. On OK ledger_record_release() it. */
int ledger_parse(const char *line, size_t n, struct ledger_record *out, struct error *e);
void ledger_record_release(struct ledger_record *record);

#endif
