/*
 * evaluation_loop.h - serves watched directories with one runner until all their work is done: look, start, record,
 * sleep. Among directories with waiting checkpoints, the one whose last start is longest ago is next. The caller
 * provides all parts.
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

/* a value; all borrowed */
struct evaluation_loop_options {
    struct log *log;            /* used by one thread, the caller's */
    struct evaluation_set *set; /* refreshes the watches when they may change; NULL: these are fixed: */
    struct evaluation_watch **watches;
    size_t watch_count;
    const struct runner *runner;    /* not used before evaluation_loop_run() */
    struct lookout *lookout;        /* looks at the watches' directories */
    int signal_fd;                  /* delivers the number of each SIGTERM, SIGINT, SIGHUP as a byte; non-blocking */
    struct hooks *hooks;            /* the same as in the watches' settings; NULL: none */
    const char *prom;               /* rewritten after each score, for Prometheus' collector; NULL: none */
    void (*hung_up)(void *context); /* called after SIGHUP, once every directory was told to look; or NULL */
    void *context;
};

struct evaluation_loop;

/* On OK *out is yours until evaluation_loop_free(), NULL is fine. */
int evaluation_loop_new(struct evaluation_loop **out, const struct evaluation_loop_options *options, struct error *e);
void evaluation_loop_free(struct evaluation_loop *l);

enum { EVALUATION_LOOP_DONE = 0, EVALUATION_LOOP_STOPPED = 1, EVALUATION_LOOP_FAILED = 2 };

/* Looks at the directories until `descriptor` is readable, without using the runner, which another thread is making:
 * what appears meanwhile is pinned or held open before it can be deleted. A first signal is handled later, by
 * evaluation_loop_run(). Negative: an error, in e. */
int evaluation_loop_look_until(struct evaluation_loop *l, int descriptor, struct error *e);

/* DONE: the work of all directories is done, or a signal came and the running evaluations are recorded. STOPPED: a
 * second signal, or a failure with --strict. FAILED or negative: an error, in e. Before returning, waits for the
 * commands of hooks, except after a second signal. Frees what the loop allocated. */
int evaluation_loop_run(struct evaluation_loop *l, struct error *e);

#endif
