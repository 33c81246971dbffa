/*
 * planning.h - a plan: rows of strategies and numbers of workers, predicted from one setting, or from what is fitted to
 * measurements of some of them. Pure.
 *
 * Its parts come first: the table of a plan, the reading of measurements, and the fit of parameters to them.
 */
#ifndef TRAINER_PLAN_PLANNING_H
#define TRAINER_PLAN_PLANNING_H

#include "base/buffer.h"
#include "base/error.h"
#include "trainer/plan/cost.h"

#include <stddef.h>

/* ---- plan table -------------------------------------------------------------------------------------------------- */

/*
 * The rows of a plan, as a table for people, as CSV, or as JSON. Pure but for the width of the terminal,
 * which the caller gives.
 */

struct plan_row {
    const struct plan_strategy *strategy;
    struct plan_shape shape;
    struct plan_cost cost;
    double efficiency; /* samples a second and worker, as a share of those of one worker alone */
    double measured;   /* steps a second; 0: nobody measured them */
    int fitted;        /* 1: that is one of the points from which parameters were found */
};

/* The predicted steps a second are so much more than the measured ones: 0.05 is 5 %. */
double plan_row_error(const struct plan_row *r);

/* Appends the table, at most `columns` wide (0: no limit); ascii: without other characters. */
void plan_table_text(struct buffer *out, const struct plan_row *rows, size_t count, int columns, int ascii);
/* Appends a line of names, and one for each row. Absent values are empty. */
void plan_table_csv(struct buffer *out, const struct plan_row *rows, size_t count);
/* Appends a JSON array of objects. Absent values are null. */
void plan_table_json(struct buffer *out, const struct plan_row *rows, size_t count);

/* ---- measured ---------------------------------------------------------------------------------------------------- */

/*
 * Reads how fast trainings were, as `trainer compare` writes it or as people do: CSV with the columns
 * strategy, workers (or ranks) and steps_per_second; or JSON: objects with these members, in an array, in the member
 * "cells" of an object, or one a line. Other columns and members are skipped. Pure.
 *
 * A strategy is written as for `trainer compare`, NAME[:OPTION[=VALUE]]...; options that make no difference here are
 * dropped. Asynchronous steps are those of all workers together.
 */

struct measurement {
    const struct plan_strategy *strategy;
    int workers;
    double steps; /* a second */
};

struct measured {
    struct measurement *items;
    size_t count, capacity;
    size_t skipped; /* of strategies that have no model, or without a result */
};

/* Reads n bytes; `path` names them in errors: ERR_ARG "PATH:LINE: what is wrong". On OK *out is yours,
 * measured_release() it; it has at least one item. */
int measured_parse(struct measured *out, const char *text, size_t n, const char *path, struct error *e);
void measured_release(struct measured *m);

/* ---- fit --------------------------------------------------------------------------------------------------------- */

/*
 * Finds the parameters of a model from measured points: the least squares of relative differences
 * (Levenberg-Marquardt, derivatives by differences). Parameters and values are positive; steps are factors. Pure.
 */

enum { FIT_PARAMETERS_MOST = 3, FIT_POINTS_MOST = 64 };

/* Sets predicted (points) from the parameters. An error ends the fit. */
typedef int fit_model(void *context, const double *parameters, double *predicted, struct error *e);

/* Improves `parameters`, from which it begins, until nothing is gained any more. A parameter that changes nothing stays
 * about where it is. ERR_ARG: more parameters than points, or too many of one. */
int fit_least_squares(double *parameters, int count, fit_model *model, void *context, const double *measured,
                      int points, struct error *e);

/* ---- planning ---------------------------------------------------------------------------------------------------- */

struct planning {
    struct plan_work work; /* of a worker with a batch of its own */
    struct plan_machine machine;
    int per_host, servers;
    const int
        *slots; /* (slot_count) workers that each host has room for, borrowed; NULL: per_host on each of any number */
    size_t slot_count;
    double global_batch; /* samples that all workers share in a step; 0: each has work.batch */
    struct plan_row *rows;
    size_t count, capacity;
};

/* Frees the rows. */
void planning_release(struct planning *p);

/* How many workers there is room for; INT_MAX: any number. */
int planning_room(const struct planning *p);

/* Adds a row, of at most planning_room() workers. measured: steps a second, or 0. ERR_NOMEM. */
int planning_add(struct planning *p, const struct plan_strategy *strategy, int workers, double measured,
                 struct error *e);

/* What of the setting is to be fitted: what nobody gave. */
struct planning_free {
    int compute;   /* forward, backward and update, by one factor */
    int bandwidth; /* of the network */
    int points;    /* the first of each strategy's measurements to be fitted to */
};

/* Fits the setting to the first measurements of each strategy, and adds a row for each of its measurements and for each
 * of `workers` that was not measured, in ascending order. Appends to `about` a line for each strategy with what was
 * found. With one measurement of a strategy the bandwidth remains unknown: then it has only a row for that. ERR_NOMEM,
 * ERR_ARG. */
int planning_fit(struct planning *p, const struct planning_free *what, const struct measured *measured,
                 const int *workers, int worker_count, struct buffer *about, struct error *e);

#endif
