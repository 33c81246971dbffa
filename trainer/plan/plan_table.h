/*
 * plan_table.h - the rows of a plan, as a table for people, as CSV, or as JSON. Pure but for the width of the terminal,
 * which the caller gives.
 */
#ifndef TRAINER_PLAN_PLAN_TABLE_H
#define TRAINER_PLAN_PLAN_TABLE_H

#include "base/buffer.h"
#include "trainer/plan/cost.h"

#include <stddef.h>

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

#endif
