/*
 * compare_plan.h - what `trainer compare` has to run: its cells, checked with the trainer's own command line before
 * anything starts, and then with the data, so that what is wrong is said once and at once.
 */
#ifndef TRAINER_TOOL_COMPARE_PLAN_H
#define TRAINER_TOOL_COMPARE_PLAN_H

#include "base/buffer.h"
#include "dataset/dataset_reading.h"
#include "trainer/compare/cell_run.h"

struct compare_wanted {
    const char *strategies, *ranks;
    const struct resource_info *hosts; /* NULL: this one alone */
    int64_t samples;                   /* of each cell; 0: as many steps as the training options say */
    int64_t evaluations;               /* checkpoints of a run, besides the first; 0: none */
    int64_t num_examples;              /* of each evaluation; 0: all */
    char *const *training;             /* (training_count) options, borrowed */
    size_t training_count;
};

struct compare_plan {
    struct cell *cells;    /* all of them */
    struct cell_job *jobs; /* (count) those that are possible; round is not set */
    size_t count;
    struct buffer left_out;                    /* "single with 2 workers", those that are not, with commas; may be "" */
    struct dataset_words words;                /* the same; borrowed */
    const char *model, *data, *data_directory; /* borrowed from the options */
};

/* ERR_ARG: a sentence for the user. On OK or not, compare_plan_release() it. */
int compare_plan_make(struct compare_plan *out, const struct compare_wanted *w, struct error *e);
/* Opens the data that the cells read, as their workers and the evaluator would on this host. ERR_ARG, whatever
 * is wrong: a sentence that names the cell. */
int compare_plan_check_data(const struct compare_plan *p, const struct compare_wanted *w, struct error *e);
void compare_plan_release(struct compare_plan *p);

#endif
