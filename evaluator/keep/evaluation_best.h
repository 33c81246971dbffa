/*
 * evaluation_best.h - what follows from which checkpoints are the best: EVAL/best/ holds them (best_directory.h), and
 * after N evaluations without a better one CKPT/stop.json asks the training to end (stop_file.h). Both go by
 * the ledger alone, so a restart changes nothing. Trouble here never stops the evaluations. One thread.
 */
#ifndef EVALUATOR_KEEP_EVALUATION_BEST_H
#define EVALUATOR_KEEP_EVALUATION_BEST_H

#include "base/error.h"
#include "evaluator/record/ledger.h"

#include <stddef.h>
#include <stdint.h>

struct evaluation_best_options {
    const char *checkpoint_directory, *eval_directory; /* borrowed */
    size_t keep;                                       /* how many EVAL/best/ holds; 0: there is none */
    int64_t patience;                                  /* evaluations; 0: no stop file */
    struct ledger_best rule;                           /* of the ledger */
    int volatile_names;                                /* 1: names are overwritten: they are of no step (--step-from) */
};

struct evaluation_best;

enum { EVALUATION_BEST_STOP = 1 }; /* the stop file was written just now; e holds its reason */

/* OK and *out is yours, or ERR_NOMEM, ERR_IO: EVAL/best cannot be made. */
int evaluation_best_open(struct evaluation_best **out, const struct evaluation_best_options *options, struct error *e);
void evaluation_best_close(struct evaluation_best *b); /* NULL is fine, also for the next four */

/* Each line of the ledger, before the next. */
void evaluation_best_recall(struct evaluation_best *b, const struct ledger_record *r);
/* Once after that, with what the ledger says. As evaluation_best_after(). */
int evaluation_best_resume(struct evaluation_best *b, const struct ledger_summary *s, struct error *e);
/* 1 and where the best checkpoint is kept, of a bundle its prefix; 0: it is not kept. */
int evaluation_best_kept(struct evaluation_best *b, const struct ledger_summary *s, char *out, size_t size);
/* Before a checkpoint is evaluated; directory: where its files are just now, the watched one or a pin's (pinned). */
void evaluation_best_before(struct evaluation_best *b, const char *directory, int pinned,
                            const struct checkpoint_identity *checkpoint);
/* When its line is in the ledger; s: with it. OK, EVALUATION_BEST_STOP, or what went wrong, to be told. */
int evaluation_best_after(struct evaluation_best *b, const struct ledger_record *r, const struct ledger_summary *s,
                          struct error *e);
/* When it will not be recorded, or was; harmless to repeat. */
void evaluation_best_forget(struct evaluation_best *b, const struct checkpoint_identity *checkpoint);

#endif
