/*
 * outcome.h - what one run of one cell gave: figures from the trainer's --json, speeds from its curve, precision from
 * the evaluator's ledger. An outcome is a line of DIR/results.jsonl, from which a comparison is continued and its
 * tables are made. Pure; JSON by jansson.
 *
 * Its parts come first: the cells of a comparison, speeds from a curve, and the file of results.
 */
#ifndef TRAINER_COMPARE_OUTCOME_H
#define TRAINER_COMPARE_OUTCOME_H

#include "base/array.h"
#include "base/buffer.h"
#include "base/error.h"
#include "trainer/timing/phase_clock.h"

#include <stddef.h>
#include <stdint.h>

/* ---- cell -------------------------------------------------------------------------------------------------------- */

/*
 * The cells of a comparison: each strategy, with options of its own, on each number of workers. Pure.
 *
 * A strategy is written NAME[:OPTION[=VALUE]]...: ps:async:staleness=2 is --run-option ps --async --staleness 2. The
 * names are those of the table of strategies; the options are checked by the trainer's own command line.
 */

enum { CELL_TEXT = 96, CELL_WORDS = 24, CELLS_MOST = 512, CELL_WORKERS_MOST = 4096 };

struct cell {
    char strategy[CELL_TEXT]; /* as written: "ps:async" */
    int workers;
    char name[CELL_TEXT + 16]; /* of its directory, and so of its curves: "ps-async-4" */
};

/* The words of its command line that choose the strategy; they point into the struct. */
struct cell_words {
    char text[2 * CELL_TEXT + 32];
    const char *words[CELL_WORDS];
    size_t count;
};

/* Reads "mpi,ps:async" and "1,2,4". names: of all strategies, NULL at the end. ERR_ARG: an unknown name (the nearest is
 * suggested), a number that is none, or something that is there twice. On OK *out is yours: free() it. */
int cells_parse(struct cell **out, size_t *count, const char *strategies, const char *ranks, const char *const *names,
                struct error *e);

/* "--run-option", "ps", "--async", and so on. ERR_ARG: too many. */
int cell_words(const struct cell *c, struct cell_words *out, struct error *e);

/* Which of `count` cells comes at this place (from 0) of this round (from 1) of `rounds`: each round begins further
 * on, so that none is always the first or the last. */
size_t cell_turn(size_t count, int rounds, int round, size_t place);

/* ---- curve ------------------------------------------------------------------------------------------------------- */

/*
 * Speeds from the points that a training wrote: (step, time) of each log line. Pure.
 */

struct curve_point {
    int64_t step;
    double time; /* seconds since any start */
};

/* Steps a second from the second point to the last: what came before the second, the first interval of the log, has
 * caches to fill and memory to get. With only two points between these. 0: not known. */
double curve_speed(const struct curve_point *points, size_t count);

/* Steps a second from step `from` to step `to`, straight between points. 0: the points do not reach so far. */
double curve_speed_between(const struct curve_point *points, size_t count, int64_t from, int64_t to);

struct evaluation {
    int64_t step;
    double seconds; /* from the start of the training to the checkpoint */
    double precision;
};

/* The last evaluation up to this step and up to this time; both count. NULL: there is none. Steps rise. */
const struct evaluation *curve_evaluation(const struct evaluation *e, size_t count, int64_t step, double seconds);

/* ---- results ----------------------------------------------------------------------------------------------------- */

/*
 * DIR/results.jsonl: an outcome a line, appended when a run has ended, from which a comparison is
 * continued. An incomplete last line, left by a crash, is removed. All lines are of the same training: the words of the
 * command line that all cells share.
 */

#define RESULTS_FILE "results.jsonl"

enum { RESULTS_TRAINING = 4096 };

struct results {
    char path[4096];
    char training[RESULTS_TRAINING]; /* "": nothing was run yet */
    struct outcome *items;           /* (count) in the order of the file */
    size_t count, capacity;
};

/* Reads what is in the directory, if there is anything. ERR_ARG: the directory has other files, but no results.
 * ERR_CORRUPT: a line is none. On OK or not, results_release() it. */
int results_open(struct results *r, const char *directory, struct error *e);
void results_release(struct results *r);

/* Makes the directory and the file, if they are not there: from then on it is the directory of a comparison. */
int results_begin(const struct results *r, const char *directory, struct error *e);

/* Appends a run, down to the disk, and takes what o holds. */
int results_add(struct results *r, struct outcome *o, struct error *e);

/* 1: that cell was run in that round, and ended well. */
int results_has(const struct results *r, const char *cell, int64_t round);

/* ---- outcome ----------------------------------------------------------------------------------------------------- */

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
