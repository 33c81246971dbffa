/*
 * ledger.h - EVAL/evaluations.jsonl: the outcome of every checkpoint, one JSON object per line, appended and fsynced.
 * All that must survive a restart is computed from it: which checkpoints are done, and which is the best.
 *
 * {"step":700,"checkpoint":"model.ckpt-700","digest":"00f1...","status":"done",
 *  "metrics":{"precision":0.657,"best_precision":0.661,"loss":1.012,"cross_entropy":0.98},"correct":6570,
 *  "examples":10000,"weights":"variables","seconds":1.5,"started":1.7e9,"lag":0.002,"wall_time":1.7e9,"run":0}
 *
 *   checkpoint  its name; a byte that is not UTF-8 is written /xHH, with two hex digits (base/json.h)
 *   step        -1: it failed before its step was known (--step-from)
 *   metrics     by name, in the order of measuring; best_NAME: the best value of the metric NAME so far, this line
 *               included. Names are free; those above are the built-in runner's
 *   correct     correct examples; both are missing if they were not counted
 *   status      "done"; "failed": could not be evaluated, or the loss is NaN; "gone": deleted before it was opened;
 *               "untried": left for the next start, because the command had failed for those before
 *   reason      a sentence, with all but "done"; metrics may be missing then
 *   digest      16 hex digits, of the index file; name and digest identify the checkpoint. Missing with "gone"
 *   digest_after  if its evaluation added files to the directory: the digest with them; still the same checkpoint
 *   seconds     duration of the evaluation; started: its wall time; lag: from the index's last change to the start
 *   point_time  the time of the points, if it is not wall_time (--wall-time=checkpoint)
 *   command     16 hex digits, if a command failed: command_stamp() of it, which changes when it is mended
 *   run         where the points are: 0: event files in EVAL, k: in EVAL_k
 *
 * A crash leaves at worst a truncated last line, which is ignored, and cut off before the next append. A failed append
 * is cut off, so it can be repeated. One thread at a time for each ledger.
 *
 * After it: which checkpoints have failed or are gone by these lines, and how often in a row in the same way.
 */
#ifndef EVALUATOR_RECORD_LEDGER_H
#define EVALUATOR_RECORD_LEDGER_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"
#include "evaluator/files/opened_checkpoint.h"
#include "evaluator/score/evaluation.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>

enum ledger_status { LEDGER_DONE, LEDGER_FAILED, LEDGER_GONE, LEDGER_UNTRIED };
#define LEDGER_FILE "evaluations.jsonl"
/* O_APPEND: writes go to the end of the file, also after it was cut back. */
enum { LEDGER_FLAGS = O_RDWR | O_APPEND | O_CREAT };

/* ledger_record_release() it if metrics were added */
struct ledger_record {
    struct checkpoint_identity checkpoint;
    enum ledger_status status;
    int has_metrics;
    struct evaluation_metrics metrics;
    int64_t correct, examples; /* -1: not counted */
    char weights[32];          /* "variables", "moving averages", "mixed" */
    double seconds, started, lag, wall_time;
    double point_time; /* 0: wall_time */
    int64_t run;
    uint64_t command; /* 0: none */
    char reason[480];
};

/* The rule for the best checkpoint, computed from the ledger, so a restart cannot lose it. Lines without the metric, or
 * with NaN, are never best; a new best must beat the old by more than delta, so of equals the earlier stays. */
struct ledger_best {
    const char *metric; /* borrowed */
    int minimum;        /* 1: smaller is better */
    double delta;       /* >= 0 */
};

/* The content of the ledger, appended lines included. */
struct ledger_summary {
    size_t done, failed, gone, untried, odd_lines; /* odd lines: skipped, kept in the file */
    size_t cut_bytes;                              /* of a truncated last line, dropped at the start */
    struct ledger_best rule;
    int has_best;
    double best_value; /* of the rule's metric */
    struct checkpoint_identity best;
    size_t since_best;           /* done after the best; without a best: all done */
    int64_t last_run, last_step; /* the newest run and its highest step; -1: none */
    int64_t highest_step;        /* ever evaluated; -1: none */
};

struct ledger;

/* Called for each existing record, in order; the record is borrowed. Not OK ends the reading. */
typedef int ledger_visit(void *context, const struct ledger_record *record, struct error *e);

/* Reads the file and cuts off a truncated last line. fd: opened as evaluation_lock.h does, borrowed until close; -1:
 * open or make it here. io may be NULL for io_real; borrowed until close. best may be NULL: highest precision. visit
 * may be NULL. On OK *out is yours until ledger_close(). */
int ledger_open(struct ledger **out, const struct io *io, const char *path, int fd, const struct ledger_best *best,
                ledger_visit *visit, void *context, struct error *e);
void ledger_close(struct ledger *l); /* NULL is fine */

/* Reads a ledger without changing it; skips odd lines and a truncated last one, and counts the former in *odd_lines
 * (may be NULL). OK if the file does not exist; ERR_ARG: it is a link or not a regular file. */
int ledger_read(const char *path, ledger_visit *visit, void *context, size_t *odd_lines, struct error *e);

/* Appends and syncs. ERR_IO: the record is not in the ledger; the same call may be repeated. */
int ledger_append(struct ledger *l, const struct ledger_record *record, struct error *e);

/* Continues in another file, open and empty, borrowed until close: copies all lines to it from the old one, even if
 * that has been deleted; the caller may close the old one then. On error l is unchanged. */
int ledger_move(struct ledger *l, int fd, struct error *e);

const struct ledger_summary *ledger_summary(const struct ledger *l); /* borrowed */
size_t ledger_lines(const struct ledger_summary *s);                 /* of checkpoints that were not left untried */

/* 1 if this value of the rule's metric would be a new best. */
int ledger_improves(const struct ledger_summary *s, double value);

/* One record as a line, with its newline. */
void ledger_format(const struct ledger_record *record, struct buffer *out);
/* Parses n bytes, without the newline. ERR_CORRUPT: not a record. Skips unknown fields, and metrics that are not
 * numbers. On OK ledger_record_release() it. */
int ledger_parse(const char *line, size_t n, struct ledger_record *out, struct error *e);
void ledger_record_release(struct ledger_record *record);

/* ---- outcomes ---------------------------------------------------------------------------------------------------- */

/*
 * The checkpoints that have failed, are gone for good or were left untried: the newest ledger line of each
 * counts, so one that was scored in the end has not failed. An all-zero struct is empty. One thread.
 */

/* private to ledger.c */
struct outcomes {
    int by_step; /* 1: the same name with another step is another checkpoint (--step-from) */
    struct outcome {
        char *name; /* owned */
        int64_t step;
        enum ledger_status status;              /* not LEDGER_DONE */
        uint64_t digest, digest_after, command; /* of that line */
        int unread; /* it failed because its index could not be read; may be one that is known */
    } * items;      /* ascending by name, then step */
    size_t count, capacity;
};

/* by_step as above; empty. */
void outcomes_init(struct outcomes *o, int by_step);
/* Adds the next line. ERR_NOMEM. */
int outcomes_note(struct outcomes *o, const struct ledger_record *r, struct error *e);
/* The checkpoint can be read, and already has a line: forgets that it was unreadable before. */
void outcomes_read(struct outcomes *o, const char *name);
/* 1: the newest line of this one has this status, which is not LEDGER_DONE. */
int outcomes_is(const struct outcomes *o, const char *name, int64_t step, enum ledger_status status);
/* How many checkpoints have this status. */
size_t outcomes_count(const struct outcomes *o, enum ledger_status status);
void outcomes_release(struct outcomes *o);

/* ---- same failures ----------------------------------------------------------------------------------------------- */

/*
 * Counts how often in a row a command has failed in the same way, which says more about the command
 * than about the checkpoints. Two failures are the same if they have the same exit status and the same last line of
 * output, apart from words with digits (numbers, names of checkpoints, addresses); or, without an exit status, if they
 * are of one class: the same signal, too long, no metric in the output, not to be run. Pure.
 */

enum { SAME_FAILURES_MOST = 3 }; /* after so many in a row, the rest waits */

/* all zero: none yet */
struct same_failures {
    size_t count;
    char kind[sizeof((struct ledger_record *)0)->reason];
};

/* Takes in the next line of a ledger. An evaluated checkpoint ends the row; what no command was run for is ignored. */
void same_failures_note(struct same_failures *s, const struct ledger_record *r);

#endif
