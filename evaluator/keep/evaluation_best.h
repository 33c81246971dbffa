/*
 * evaluation_best.h - acts on which checkpoints are the best: keeps them in EVAL/best/ (best_directory.h), and after N
 * evaluations without a better one asks the training to end with CKPT/stop.json (stop_file.h). Both depend on the
 * ledger alone, so a restart changes nothing. Failures here never stop the evaluations. One thread.
 */
#ifndef EVALUATOR_KEEP_EVALUATION_BEST_H
#define EVALUATOR_KEEP_EVALUATION_BEST_H

#include "base/error.h"
#include "evaluator/record/ledger.h"

#include <stddef.h>
#include <stdint.h>

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
