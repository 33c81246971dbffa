/*
 * evaluation_loop.h - serves watched directories with one runner until the work of all of them is done: hears what came
 * to light, starts, records, sleeps. Of several directories with something waiting, the one whose last start is longest
 * ago is next. All parts are put in by the caller.
 */
#ifndef EVALUATOR_EVALUATION_LOOP_H
#define EVALUATOR_EVALUATION_LOOP_H

#include "base/error.h"
#include "base/program/log.h"
#include "evaluator/evaluation_set.h"
#include "evaluator/evaluation_watch.h"
#include "evaluator/hooks.h"
#include "evaluator/score/runner.h"

#include <stddef.h>

struct evaluation_slot { /* what a slot of the runner is busy with; both NULL: nothing */
    struct evaluation_watch *watch;
    struct evaluation_flight *flight;
};

/* Fill in what is borrowed, the rest zero; log is used by one thread, the caller's. */
struct evaluation_loop {
    struct log *log;
    struct evaluation_watch **watches;
    size_t watch_count;
    const struct runner *runner;
    int signal_fd;               /* gives a byte, its number, for each SIGTERM, SIGINT or SIGHUP; not blocking */
    struct evaluation_set *set;  /* where the watches come from, asked when they may change; NULL: they stay */
    struct lookout *lookout;     /* who looks at the watches' directories */
    struct hooks *hooks;         /* those of the watches' settings; NULL: none */
    const char *prom;            /* a file for Prometheus' collector, written anew after each score; NULL: none */
    void (*hung_up)(void *context); /* called after a SIGHUP, when every directory was told to look; or NULL */
    void *context;

    int signals;                 /* so many of the first two came */
    int hangup;                  /* 1: a SIGHUP came and was not answered yet */
    size_t prom_recorded, prom_pending; /* as it was written last */
    double prom_next;            /* monotonic: not before this if only what is pending has changed */
    int prom_failed;
    struct evaluation_slot *slots; /* one for each of the runner's, while it runs */
};

enum { EVALUATION_LOOP_DONE = 0, EVALUATION_LOOP_STOPPED = 1, EVALUATION_LOOP_FAILED = 2 };

/* For the time in which another thread makes the runner, which is not touched: says what comes to light, and serves
 * what comes and goes in the set, until `descriptor` is readable. A first signal is
 * answered by evaluation_loop_run() afterwards. Negative: an error, in e. */
int evaluation_loop_look_until(struct evaluation_loop *l, int descriptor, struct error *e);

/* DONE: the work of all directories is done, or one signal came and what was begun is recorded. STOPPED: a second
 * signal, or --strict and a failure. FAILED or negative: an error, in e. Waits for the commands of hooks then, but not
 * after a second signal. Frees what the loop itself took. */
int evaluation_loop_run(struct evaluation_loop *l, struct error *e);

#endif
