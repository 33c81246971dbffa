/*
 * progress.h - reports the progress of a training: log lines, scalars for TensorBoard, a progress line, the final
 * summary. Used only on the rank that reports for all. Rates count all workers' images; a point's count from the last
 * point.
 */
#ifndef TRAINER_PROGRESS_H
#define TRAINER_PROGRESS_H

#include "base/error.h"
#include "base/program/log.h"
#include "trainer/collective/traffic.h"
#include "trainer/strategies/strategy.h"
#include "trainer/timing/rate.h"
#include "trainer/timing/time_report.h"

#include <stdint.h>

struct eventlog_writer;

struct progress_weights {
    int64_t step;
    uint64_t hash;
};

struct progress {
    struct log *log; /* borrowed */
    int quiet;
    int watched; /* 1: the log goes to a terminal indirectly: see world_watched() */
    int64_t log_every, max_steps;
    int64_t samples_step;              /* samples per global step */
    const char *unit;                  /* what speed is counted in: dataset_speed_unit(); static */
    int64_t unit_each;                 /* how many of these a sample is */
    int prompt;                        /* 1: each point is in its file before progress_point() returns */
    int streams;                       /* 1: samples are read from disk while the training runs */
    double first_batch_seconds;        /* of waiting for input; < 0: there was no batch yet */
    int explains_time;                 /* 1: the summary has a table of all ranks' time */
    struct eventlog_writer *events;    /* NULL: no scalars */
    int64_t first_step, logged, rated; /* steps at the start, the last point, and the last line with a rate */
    double started, logged_at, rated_at, flushed_at, first_step_at;
    double shown_at; /* the last line that progress_show() wrote as a log line */
    struct rate rate;
    double loss, precision;           /* of the last point */
    int complained;                   /* 1: trouble with the event file was logged */
    struct progress_weights *weights; /* (weights_count) the hashes that were logged */
    size_t weights_count, weights_room;
};

/* log_directory NULL: no event file. The first record of the file is on disk on return. step: where the training
 * continues, 0 at its start; points of later steps that an earlier run logged there are purged from the curves. */
int progress_open(struct progress *p, struct log *log, const char *log_directory, int64_t step, struct error *e);
/* The training loop starts now, at `step`. */
void progress_start(struct progress *p, int64_t step);
/* Call when there is a batch: notes how long the first one was waited for. */
void progress_first_batch(struct progress *p, struct phase_clock *clock);
/* 1: the point of `step` must be logged: the first, every log_every-th, and the last. */
int progress_due(const struct progress *p, int64_t step, int64_t max_steps);
/* Writes a point of the curves. decay: weight decay's part of the loss, rate: the learning rate, both of the update
 * that made `tally`. */
void progress_point(struct progress *p, const struct tally *tally, double decay, double rate,
                    const struct strategy_report *report);
/* Logs that point. */
void progress_say(struct progress *p);
/* Logs a hash of all weights after `step`, writes it as a text that TensorBoard shows (as a number it would not be
 * exact), and keeps it for the summary. */
void progress_hash(struct progress *p, int64_t step, uint64_t hash);
/* Writes points of `step`: what the workers' time since the last ones was spent on (time_watch.h). */
void progress_times(struct progress *p, int64_t step, const struct phase_times *times, int workers);
/* Call when a step has ended. */
void progress_step(struct progress *p, int64_t step);
/* Shows step, speed and time left: on a terminal a line that is redrawn, through a launcher to a terminal a line every
 * 10 s, elsewhere one a minute. Call it often. */
void progress_show(struct progress *p);
/* Makes events visible to readers, and syncs them if `durable`. */
void progress_flush(struct progress *p, int durable);
/* ERR_IO: points are lost, which was logged. */
int progress_close(struct progress *p);

/* of a whole run, as rank 0 sees it */
struct summary {
    const char *state, *run_option;
    const char *reason;     /* why it stopped; "" */
    const char *checkpoint; /* the newest one's path; "" */
    int64_t global_step, max_steps;
    int world_size, workers;
    uint64_t hash; /* of all weights, at the end */
    struct strategy_report report;
    const struct traffic *traffic; /* of all ranks */
    const struct rank_times *times;
};
void progress_summary(const struct progress *p, const struct summary *s, int json);

#endif
