/*
 * session_settings.h - the settings of a training as hyperparameters of its evaluation's run, so that trainings can be
 * compared in TensorBoard's HParams tab: from training.json (training_state.h), else from the evaluator's own options.
 *
 *   model, data, optimizer, run_option   texts
 *   world_size, batch_size, learning_rate   numbers; batch_size is one worker's
 * Unknown ones are left out.
 */
#ifndef EVALUATOR_RECORD_SESSION_SETTINGS_H
#define EVALUATOR_RECORD_SESSION_SETTINGS_H

#include "checkpoint/directory/training_state.h"
#include "eventlog/eventlog.h"

#include <stddef.h>

enum { SESSION_SETTINGS_MAX = 8 };

struct session_settings {
    struct training_state training; /* the texts of items point into it */
    struct eventlog_hparam items[SESSION_SETTINGS_MAX];
    size_t count;
};

/* training: NULL if there is no training.json. model, data: the evaluator's options, or NULL; borrowed. */
void session_settings_fill(struct session_settings *s, const struct training_state *training, const char *model,
                           const char *data);

#endif
