/*
 * checkpoint_data.h - watches the data files of incomplete checkpoints: changes in them extend the quiet time. One
 * thread at a time.
 */
#ifndef EVALUATOR_WATCH_CHECKPOINT_DATA_H
#define EVALUATOR_WATCH_CHECKPOINT_DATA_H

#include "base/error.h"
#include "evaluator/watch/sightings.h"

/* Calls sighting_data() for incomplete bundles. now, wall: the same moment. OK if the directory is gone; ERR_NOMEM. */
int checkpoint_data_look(struct sightings *s, int directory_fd, double now, double wall, struct error *e);

#endif
