/*
 * evaluation_best.h - acts on which checkpoints are the best: keeps them in EVAL/best/, and after N evaluations
 * without a better one asks the training to end with CKPT/stop.json (training_state.h). Both depend on the ledger
 * alone, so a restart changes nothing. Failures here never stop the evaluations. One thread. Its parts come first: the
 * list of the best, the manifest of our files, and the directory.
 */
#ifndef EVALUATOR_RECORD_EVALUATION_BEST_H
#define EVALUATOR_RECORD_EVALUATION_BEST_H

#include "base/buffer.h"
#include "base/error.h"
#include "evaluator/files/opened_checkpoint.h"
#include "evaluator/record/ledger.h"

#include <stddef.h>
#include <stdint.h>

/* ---- best list --------------------------------------------------------------------------------------------------- */

/*
 * The N best of a sequence of evaluations. Of equal values the earlier is better; of a checkpoint that
 * was evaluated several times, as after a restart of the training, the best evaluation counts. Pure. One thread.
 */

/* private to evaluation_best.c */
struct best_list {
    size_t limit; /* N */
    int minimum;  /* 1: smaller is better */
    int by_step;  /* 1: the same name with a different step is a different checkpoint */
    struct best_entry {
        struct checkpoint_identity checkpoint;
        double value;
    } * items; /* best first */
    size_t count;
};

/* ERR_NOMEM. best_list_release() it. */
int best_list_init(struct best_list *l, size_t limit, int minimum, int by_step, struct error *e);
void best_list_release(struct best_list *l);

/* Adds the next evaluation; a NaN value is never among the best. */
void best_list_add(struct best_list *l, const struct best_entry *entry);
/* The i-th best, borrowed; NULL: there are fewer. */
const struct best_entry *best_list_at(const struct best_list *l, size_t i);

/* ---- best manifest ----------------------------------------------------------------------------------------------- */

/*
 * Lists of file names, and the text of EVAL/best/.evaluator, which lists the files in EVAL/best/ that
 * are the evaluator's own; it is written before they are made:
 *
 *   # files that evaluator --keep-best made here and may delete
 *   checkpoint
 *   model.ckpt-700.data-00000-of-00001
 *   model.ckpt-700.index
 *
 * One file name per line. Pure.
 */

#define BEST_MANIFEST_FILE ".evaluator"

/* all zero: none */
struct best_names {
    char **items;
    size_t count;
};

void best_names_release(struct best_names *n);

/* On OK *out is yours until best_names_release(). ERR_CORRUPT: not such a text, or truncated. */
int best_manifest_parse(const char *text, size_t n, struct best_names *out, struct error *e);
void best_manifest_format(const struct best_names *n, struct buffer *out);

/* ---- best directory ---------------------------------------------------------------------------------------------- */

/*
 * EVAL/best/: the best checkpoint or the N best, and a file `checkpoint` that names them, so that
 * all readers of TensorFlow checkpoints find them, the best as the newest. A checkpoint named in `checkpoint` is always
 * complete: the file is renamed into place once all files of the checkpoint are there, and files that are no longer
 * among the best are deleted only afterwards.
 *
 *   .tmp-DIGEST-FILE   a file of a checkpoint that is being evaluated: a hard link made before the evaluation, so that
 *                      the trainer may delete the original meanwhile
 *   FILE               once its evaluation is in the ledger and among the best: the link, renamed; or a copy if links
 *                      cannot be made (another file system)
 *   .evaluator         the list of files the evaluator made here, written before they are made
 *
 * No other file is deleted or overwritten: opening refuses a directory that holds any; later ones are left alone. The
 * ledger says which checkpoints are best; best_directory_recover() finishes or removes what a killed process left. An
 * original that is changed in place, not replaced, changes here, too. A hard link changes the ctime of the original's
 * inode; a watcher that compares ctimes looks again and finds the same content. One thread.
 */

struct best_checkpoint {
    const char *directory; /* holds NAME.index and NAME.data-* of a bundle; or the file or directory NAME */
    struct checkpoint_identity checkpoint; /* the step is ignored */
    const char *kept;                      /* its name here, unique among the wanted; NULL: unchanged */
    int volatile_name;                     /* 1: its file is overwritten in place, so copy it, do not link it */
};

struct best_directory;

/* Makes the directory; `directory` is copied. On OK *out is yours until best_directory_close(). ERR_ARG, ERR_CORRUPT:
 * it holds something that is not the evaluator's, which e names. */
int best_directory_open(struct best_directory **out, const char *directory, struct error *e);
void best_directory_close(struct best_directory *b); /* NULL is fine */

/* Call first after opening. wanted: what the ledger says, best first; count 0: none. OK: the directory holds the best
 * one and as many of the others as could be had, or there is no best yet. Not OK: the best one is no longer to be had;
 * what was whole there still is. */
int best_directory_recover(struct best_directory *b, const struct best_checkpoint *wanted, size_t count,
                           struct error *e);

/* Before an evaluation: makes the links. Failures show in promote. May be repeated. */
void best_directory_reserve(struct best_directory *b, const struct best_checkpoint *c);
/* Call when it is not among the best. */
void best_directory_drop(struct best_directory *b, const struct best_checkpoint *c);
/* wanted: what the ledger says, best first; wanted[new] has just joined; others that are not here already are left out.
 * ERR_IO, ERR_CORRUPT: its files are gone or have changed, or there is no room; the earlier ones are still there,
 * whole, except one of the same name. */
int best_directory_promote(struct best_directory *b, const struct best_checkpoint *wanted, size_t count, size_t new,
                           struct error *e);

/* ---- evaluation best --------------------------------------------------------------------------------------------- */

struct evaluation_best_options {
    const char *checkpoint_directory, *eval_directory; /* borrowed */
    size_t keep;                                       /* how many EVAL/best/ holds; 0: no EVAL/best/ */
    int64_t patience;                                  /* evaluations; 0: no stop file */
    struct ledger_best rule;                           /* of the ledger */
    int volatile_names;                                /* 1: files are overwritten under one name (--step-from) */
};

struct evaluation_best;

enum { EVALUATION_BEST_STOP = 1 }; /* the stop file was written just now; e holds its reason */

/* OK and *out is yours, or ERR_NOMEM, ERR_IO: EVAL/best cannot be made. */
int evaluation_best_open(struct evaluation_best **out, const struct evaluation_best_options *options, struct error *e);
void evaluation_best_close(struct evaluation_best *b); /* NULL is fine here and below */

/* Call for each line of the ledger, before evaluation_best_resume(). */
void evaluation_best_recall(struct evaluation_best *b, const struct ledger_record *r);
/* Call once after the last line. Returns as evaluation_best_after(). */
int evaluation_best_resume(struct evaluation_best *b, const struct ledger_summary *s, struct error *e);
/* 1 and the path where the best checkpoint is kept (for a bundle, the prefix); 0: it is not kept. */
int evaluation_best_kept(struct evaluation_best *b, const struct ledger_summary *s, char *out, size_t size);
/* Call before a checkpoint is evaluated. directory: where its files are, the watched one or (pinned) its pin's. */
void evaluation_best_before(struct evaluation_best *b, const char *directory, int pinned,
                            const struct checkpoint_identity *checkpoint);
/* Call when its line is in the ledger and s includes it. OK, EVALUATION_BEST_STOP, or a failure to be reported. */
int evaluation_best_after(struct evaluation_best *b, const struct ledger_record *r, const struct ledger_summary *s,
                          struct error *e);
/* Call once it is recorded or will not be; may be repeated. */
void evaluation_best_forget(struct evaluation_best *b, const struct checkpoint_identity *checkpoint);

#endif
