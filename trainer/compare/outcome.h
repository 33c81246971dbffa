/*
 * outcome.h - what one run of one cell gave: figures from the trainer's --json, speeds from its curve, precision from
 * the evaluator's ledger. An outcome is a line of DIR/results.jsonl, from which a comparison is continued and its
 * tables are made. Pure; JSON by jansson.
 */
#ifndef TRAINER_COMPARE_OUTCOME_H
#define TRAINER_COMPARE_OUTCOME_H

#include "base/array.h"
#include "base/buffer.h"
#include "base/error.h"
#include "trainer/compare/cell.h"
#include "trainer/compare/curve.h"
#include "trainer/timing/phase_clock.h"

#include <stddef.h>
#include <stdint.h>

struct outcome {
    char cell[CELL_TEXT + 16], strategy[CELL_TEXT];
    int64_t workers, round;
    int64_t ranks, cores; /* processes, and threads, with a share of the work, and cores of the machine */
    int64_t status;       /* exit status; 0: the rest is valid */
    char reason[400];     /* why it failed */
    int64_t steps;
    double seconds;                        /* of the training */
    double steps_per_second;               /* without the first interval */
    double steady;                         /* mean of steps 101 to 200; 0: not known */
    double samples_per_step;               /* of all workers */
    double waiting;                        /* share of the workers' time, 0 to 1 */
    double phases[PHASE_COUNT];            /* seconds a step, mean over workers; all 0: not known */
    double serving;                        /* share of their time in which servers worked; -1: there are none */
    double sent;                           /* bytes a step, of all ranks together */
    double busiest_sent, busiest_received; /* bytes a step */
    char busiest[40];                      /* "server 2"; "": nobody sends */
    double staleness_mean, staleness_max;  /* 0: synchronous */
    double dropped;                        /* gradients that made no update; -1: not counted */
    double others;                         /* share of this host's processors that other programs used; -1: not known */
    char weights[20];                      /* hash */
    struct evaluation *evaluations;        /* (evaluation_count), owned */
    size_t evaluation_count, evaluation_room;
};

/* Frees what it holds. */
void outcome_release(struct outcome *o);

/* Adds the figures of the trainer's --json. ERR_CORRUPT: it is not such a text. */
int outcome_add_summary(struct outcome *o, const char *json, size_t n, struct error *e);

/* Adds the evaluations of a ledger; a line that is none is left out. The time of a checkpoint counts from that of the
 * first. ERR_NOMEM. */
int outcome_add_ledger(struct outcome *o, const char *lines, size_t n, struct error *e);

/* Why a job failed, from what it wrote: the first line that the trainer wrote about itself, else the first with words
 * in it. */
void outcome_reason(const char *log, char *out, size_t size);

/* Appends the outcome as a line of JSON. training: the words of the command line that all cells share. */
void outcome_write(const struct outcome *o, const char *training, struct buffer *out);

/* Reads such a line. training (size): its words. On OK outcome_release() it. ERR_CORRUPT, ERR_NOMEM. */
int outcome_read(struct outcome *o, char *training, size_t size, const char *line, size_t n, struct error *e);

#endif
