/*
 * progress.h - what a training says while it runs: log lines, scalars for TensorBoard, how far it is, the summary at
 * the end. Used on the one rank that speaks for all. Rates count all workers' images; those of a point count from the
 * last point.
 */
#ifndef TRAINER_PROGRESS_H
#define TRAINER_PROGRESS_H

#include "base/error.h"
#include "base/program/log.h"
#include "trainer/rate.h"
#include "trainer/strategies/strategy.h"

#include <stdint.h>

struct eventlog_writer;

struct progress {
    struct log *log;                 /* borrowed */
    int quiet;
    int watched;                     /* 1: the log goes to a terminal, though not directly: see world_watched() */
    int64_t log_every, images_step;  /* images_step: images that one global step stands for */
    int64_t max_steps;
    struct eventlog_writer *events;  /* NULL: no scalars */
    int64_t first_step, logged, rated; /* steps at: the start, the last point, the last line with a rate */
    double started, logged_at, rated_at, flushed_at, first_step_at;
    double shown_at;                 /* the last line of progress_show() that was not drawn */
    struct rate rate;
    double loss, precision;          /* of the last point */
    int complained;                  /* about the event file */
};

/* log_directory NULL: no event file. The first record of the file is on disk on return. step: where the training goes
 * on, 0 at its start; points of later steps, which a run that died has logged, are purged from the curves. */
int progress_open(struct progress *p, struct log *log, const char *log_directory, int64_t step, struct error *e);
/* The training loop starts now, at `step`. */
void progress_start(struct progress *p, int64_t step);
/* 1: the point of `step` is to be logged: the first, every log_every-th, and the last. */
int progress_due(const struct progress *p, int64_t step, int64_t max_steps);
/* decay: weight decay's part of the loss, rate: the learning rate, both of the update that made `tally`. */
void progress_point(struct progress *p, const struct tally *tally, double decay, double rate,
                    const struct strategy_report *report);
/* A step has ended. */
void progress_step(struct progress *p, int64_t step);
/* How far it is, how fast, and how long it has to go: on a terminal a line that is drawn anew, through a launcher to a
 * terminal a line every 10 s, elsewhere one a minute. To be called often. */
void progress_show(struct progress *p);
/* Hands events to the readers, and to the disk where `durable`. */
void progress_flush(struct progress *p, int durable);
/* ERR_IO: points are lost, which was said. */
int progress_close(struct progress *p);

struct summary { /* of a whole run, as rank 0 sees it */
    const char *state, *run_option;
    const char *reason;     /* why it stopped; "" */
    const char *checkpoint; /* the newest one's path; "" */
    int64_t global_step, max_steps;
    int world_size, workers;
    double input_waited; /* seconds in which the prefetch thread was behind */
    struct strategy_report report;
};
void progress_summary(const struct progress *p, const struct summary *s, int json);

#endif
