/*
 * cell_run.h - runs one cell of a comparison once: the training as a job of its own, then (or beside it) the evaluator
 * over its checkpoints; and reads what they left.
 *
 *   DIR/round-R/CELL/train  curves      eval  curves and ledger      ckpt  checkpoints      log.txt, evaluator.txt
 */
#ifndef TRAINER_COMPARE_CELL_RUN_H
#define TRAINER_COMPARE_CELL_RUN_H

#include "trainer/compare/outcome.h"
#include "trainer/launch/mpirun_line.h"
#include "trainer/launch/resource_info.h"

enum { CELL_READING_MAX = 40 };
enum evaluate { EVALUATE_AFTER, EVALUATE_BESIDE, EVALUATE_NOT };

/* of all cells; borrowed */
struct cell_setup {
    const char *program, *evaluator;   /* paths, or evaluator a name to be found in PATH */
    const char *directory;             /* of the whole comparison */
    const struct resource_info *hosts; /* NULL: this one alone */
    enum mpirun_kind mpirun;
    char *const *training; /* (training_count) options that all cells share */
    size_t training_count;
    const char *const
        *reading; /* (reading_count, at most CELL_READING_MAX) options of the data set for the evaluator */
    size_t reading_count;
    const char *model, *data, *data_directory; /* data_directory NULL: the default */
    enum evaluate evaluate;
    int64_t num_examples; /* to evaluate on; 0: all */
};

/* of one cell */
struct cell_job {
    const struct cell *cell;
    int round, servers, hosts; /* hosts: on how many it is */
    int each_host;             /* 1: it has servers because each host has one, as nobody said otherwise */
    int threads;               /* 1: its workers are threads */
    int worker_threads;        /* --threads of each worker that is a rank; 0 or 1: one */
    int64_t max_steps;         /* of this cell; 0: as in `training` */
    int64_t save_steps;        /* 0: as in `training`, or only at the end */
};

/* Processes that take part in the work: workers, also threads, and servers. */
int cell_ranks(const struct cell_job *j);

/* The words of the training, NULL at the end: yours, free() it. ERR_NOMEM. `place` (size) is where its paths are put;
 * all else is borrowed. */
struct cell_place {
    char directory[2048], checkpoints[2304], train[2304], eval[2304], log[2304], summary[2304], evaluator_log[2304];
};
int cell_place(struct cell_place *out, const struct cell_setup *s, const struct cell_job *j, struct error *e);
int cell_line(const char ***out, const struct cell_setup *s, const struct cell_job *j, const struct cell_place *place,
              struct error *e);

/* Runs it, in place of an earlier run of the same cell and round. `look` is called a few times a second. On OK *out is
 * yours, outcome_release() it: its status says whether the training went well. *asked: the signal that ended it, and
 * then *out is worth nothing; else 0. Errors: what keeps every cell from running. */
int cell_run(const struct cell_setup *s, const struct cell_job *j, void (*look)(void *context), void *context,
             struct outcome *out, int *asked, struct error *e);

#endif
