/*
 * evaluation_loop.h - serves watched directories with one runner until the work of all of them is done: hears what came
 * to light, starts, records, sleeps. Of several directories with something waiting, the one whose last start is longest
 * ago is next.
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

struct evaluation_loop_options { /* a value; all borrowed */
    struct log *log;             /* used by one thread, the caller's */
    struct evaluation_set *set;  /* where the watches come from, asked when they may change; NULL: they stay these: */
    struct evaluation_watch **watches;
    size_t watch_count;
    const struct runner *runner; /* not looked at before evaluation_loop_run() */
    struct lookout *lookout;     /* who looks at the watches' directories */
    int signal_fd;               /* gives a byte, its number, for each SIGTERM, SIGINT or SIGHUP; not blocking */
    struct hooks *hooks;         /* those of the watches' settings; NULL: none */
    const char *prom;            /* a file for Prometheus' collector, written anew after each score; NULL: none */
    void (*hung_up)(void *context); /* called after a SIGHUP, when every directory was told to look; or NULL */
    void *context;
};

struct evaluation_loop;

/* On OK *out is yours until evaluation_loop_free(), NULL is fine. */
int evaluation_loop_new(struct evaluation_loop **out, const struct evaluation_loop_options *options, struct error *e);
void evaluation_loop_free(struct evaluation_loop *l);

enum { EVALUATION_LOOP_DONE = 0, EVALUATION_LOOP_STOPPED = 1, EVALUATION_LOOP_FAILED = 2 };

/* For the time in which another thread makes the runner, which is not touched: says what comes to light, and serves
 * what comes and goes in the set, until `descriptor` is readable. A first signal is answered by evaluation_loop_run()
 * afterwards. Negative: an error, in e. */
int evaluation_loop_look_until(struct evaluation_loop *l, int descriptor, struct error *e);

/* DONE: the work of all directories is done, or one signal came and what was begun is recorded. STOPPED: a second
 * signal, or --strict and a failure. FAILED or negative: an error, in e. Waits for the commands of hooks then, but not
 * after a second signal. */
int evaluation_loop_run(struct evaluation_loop *l, struct error *e);

#endif
