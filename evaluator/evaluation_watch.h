/*
 * evaluation_watch.h - one watched directory and its eval directory: lock, ledger, event files, watcher and queue;
 * decides which checkpoints are evaluated, records their outcomes, and knows when the work is done. evaluation_loop.h
 * serves an array of these with one runner. Nothing here waits: the next evaluation_watch_tick() looks again at what
 * must be waited for (a full disk, --min-interval). One thread.
 *
 * A checkpoint that is being evaluated is a flight. Flights may land in any order; results are recorded in the order of
 * their steps: first the points are written to the event file and synced, then one line to the ledger and synced.
 */
#ifndef EVALUATOR_EVALUATION_WATCH_H
#define EVALUATOR_EVALUATION_WATCH_H

#include "base/error.h"
#include "base/program/log.h"
#include "evaluator/evaluation_flight.h"
#include "evaluator/evaluation_intake.h"
#include "evaluator/evaluation_settings.h"
#include "evaluator/score/runner.h"

#include <stddef.h>
#include <stdint.h>

struct evaluation_watch;

/* how its work stands: a value; what it points to is borrowed until the next call */
struct evaluation_watch_facts {
    const struct evaluation_watch_settings *settings;
    struct evaluation_record_facts record; /* what became of checkpoints */
    int64_t evaluations, skipped;          /* of this process, failed ones included; by options */
    struct evaluation_intake_facts intake; /* what waits, and what was found */
    size_t in_flight;                      /* checkpoints being evaluated */
    double last_start;                     /* monotonic, of the last evaluation; 0: none yet */
    const char *ended;                     /* the reason; NULL: it goes on */
};
struct evaluation_watch_facts evaluation_watch_facts(const struct evaluation_watch *w);

/* Makes the eval directory, locks it, reads the ledger, starts watching, and looks once: nothing that comes or goes
 * later is missed. On OK *out is yours until evaluation_watch_close(). */
int evaluation_watch_open(struct evaluation_watch **out, const struct evaluation_watch_settings *settings,
                          struct log *log, struct error *e);
void evaluation_watch_close(struct evaluation_watch *w); /* drops flights unrecorded; NULL is fine */

/* Takes in what came to light in the directory and logs it, no more. */
int evaluation_watch_hear(struct evaluation_watch *w, struct error *e);

/* Takes in what came to light, records what can be recorded, and decides whether the work is done (`ended`, which is
 * logged). signalled: a signal ends all, so nothing is tried again. EVALUATION_STOPPED or EVALUATION_GIVEN_UP, of
 * evaluation_record.h, with a sentence in e. Negative: cannot go on. */
int evaluation_watch_tick(struct evaluation_watch *w, int signalled, struct error *e);

/* 1 if a checkpoint may be started now. window: the maximum number of flights. */
int evaluation_watch_ready(const struct evaluation_watch *w, size_t window);
/* Takes the next checkpoint that no option skips: 1 and *out, or 0. The caller starts its job and reports progress, or
 * lands it. */
int evaluation_watch_take(struct evaluation_watch *w, struct evaluation_flight **out, struct error *e);
/* Call before a runner starts on it; by_path is the runner's. 0: its files are no longer those that were found, so the
 * flight is dropped, and its new content is evaluated once whole. */
int evaluation_watch_start(struct evaluation_watch *w, struct evaluation_flight *flight, int by_path);

/* What the runner reports about a flight. landed: takes *v over with RUNNER_DONE; otherwise `why` is the reason.
 * RUNNER_STOPPED: drops the flight, and a later process evaluates the checkpoint. A flight whose files have changed
 * meanwhile is dropped and evaluated again, too. */
void evaluation_watch_progress(struct evaluation_watch *w, struct evaluation_flight *flight,
                               const struct runner_progress *progress);
void evaluation_watch_landed(struct evaluation_watch *w, struct evaluation_flight *flight, int by_path,
                             enum runner_state state, struct evaluation *v, const struct error *why);

/* Runs the command of --on-end, unless it has run already: the work has ended, for `reason` unless the watch has its
 * own. */
void evaluation_watch_post_end(struct evaluation_watch *w, const char *reason);

/* Borrowed, for the caller that tells it when and how to look. */
struct evaluation_intake *evaluation_watch_intake(const struct evaluation_watch *w);

/* Writes EVAL/work.json if something has changed since the last write; not too often, unless `now`. A failed write is
 * ignored: readers see how old the file is. */
void evaluation_watch_report(struct evaluation_watch *w, int now);

/* Seconds until the next tick is due, if there is no news before. */
double evaluation_watch_due(const struct evaluation_watch *w);

#endif
