/*
 * checkpoint_data.h - what the data files of checkpoints look like that are not whole: they decide whether the quiet
 * time goes on. One thread at a time.
 */
#ifndef EVALUATOR_WATCH_CHECKPOINT_DATA_H
#define EVALUATOR_WATCH_CHECKPOINT_DATA_H

#include "base/error.h"
#include "evaluator/watch/sightings.h"

/* Tells each bundle that is not whole, by sighting_data(). now, wall: one moment on both clocks. OK also when the
 * directory is gone; ERR_NOMEM. */
int checkpoint_data_look(struct sightings *s, int directory_fd, double now, double wall, struct error *e);

#endif
