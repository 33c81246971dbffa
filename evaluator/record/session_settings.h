/*
 * session_settings.h - the settings of a training as hyperparameters of its evaluation's run, so that trainings can be
 * compared in TensorBoard's HParams tab: what training.json tells (training_state.h), else what the
 * evaluator itself was told.
 *
 *   model, data, optimizer, run_option   texts
 *   world_size, batch_size, learning_rate   numbers; batch_size is one worker's
 * What is not known is left out.
 */
#ifndef EVALUATOR_RECORD_SESSION_SETTINGS_H
#define EVALUATOR_RECORD_SESSION_SETTINGS_H

#include "checkpoint/directory/training_state.h"
#include "eventlog/eventlog.h"

#include <stddef.h>

enum { SESSION_SETTINGS_MAX = 8 };

struct session_settings {
    struct training_state training; /* what the texts of items point into */
    struct eventlog_hparam items[SESSION_SETTINGS_MAX];
    size_t count;
};

/* training: NULL where there is no training.json. model, data: as the evaluator was told, or NULL; borrowed. */
void session_settings_fill(struct session_settings *s, const struct training_state *training, const char *model,
                           const char *data);

#endif
