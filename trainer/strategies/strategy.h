/*
 * strategy.h - how the ranks of a run train one model together. The training loop knows this interface and nothing
 * else of the other ranks: it trains on its own batch, and between step_begin and the end of step_end the strategy
 * turns what is local (the exchange vector) into what is applied (the new weights in the network).
 *
 * A strategy is one file of this folder, composed of trainer/collective/ and trainer/server/, with one
 * `struct strategy_kind`, and one row below. Parser, --help, names and checks come from there.
 *
 * Synchronous strategies give the same bits as each other for the same number of workers: element by element the
 * workers' sums are added in worker order (exchange_sum), and the optimizer is one function wherever it runs.
 * One thread; all calls from it. Errors: ERR_PEER, with a sentence naming rank, step, tensors and the ranks waited for.
 */
#ifndef TRAINER_STRATEGIES_STRATEGY_H
#define TRAINER_STRATEGIES_STRATEGY_H

#include "base/error.h"
#include "base/program/options.h"
#include "model/network.h"
#include "trainer/collective/tally.h"
#include "trainer/collective/world.h"
#include "trainer/optimizer.h"

#include <stddef.h>
#include <stdint.h>

struct strategy_kind;

/* Options that one strategy alone has: memory for a struct of its file. */
enum { STRATEGY_OWN_SIZE = 64, STRATEGY_ROWS = 8, STRATEGY_LABEL_SIZE = 16 };
struct strategy_own {
    _Alignas(max_align_t) unsigned char bytes[STRATEGY_OWN_SIZE];
};

struct strategy_options {
    const struct strategy_kind *kind;
    struct strategy_own own;         /* of the kind */
    uint64_t fingerprint;            /* a hash of the kind's options, to be the same on all ranks */
    int synchronous;                 /* 0: each worker's gradients make an update of their own */
    char label[STRATEGY_LABEL_SIZE]; /* "mpi", "ps", "ps --async": in files and log lines */
    int64_t batch_size;              /* samples of one worker a step */
    int64_t first_step;              /* updates done before this run */
    int64_t max_steps;               /* updates after which the run ends */
    size_t bucket_bytes;             /* gradients are exchanged in pieces of at most this */
    int64_t check_every;             /* steps between two comparisons of all replicas; 0: never */
};

struct strategy_report {
    double bytes_step;      /* bytes this rank hands to others a step: sent, or read by them in shared memory */
    double waited;          /* seconds in which this rank waited for others */
    double staleness_mean;  /* asynchronous: updates between a worker's pull and its push; else 0 */
    int64_t staleness_max;
    const char *transport;  /* "none", "shared memory", "messages"; static */
};

struct strategy;
struct strategy_operations {
    /* Before training on the batch of `step` (the worker's own count). */
    int (*step_begin)(struct strategy *s, int64_t step, struct error *e);
    /* As network_ready: the exchange vector is final from `low` on. Never blocks; errors are kept for step_end. */
    void (*ready)(struct strategy *s, size_t low);
    /* After training: returns when the network holds the weights of the next step. With TALLY_LEFT, which a worker
     * sets that left its step in the middle, the step is gone through all the same, so that nobody waits for the
     * others, and no rank's state changes. Asynchronous workers push nothing then, and only they themselves end. */
    int (*step_end)(struct strategy *s, struct tally *tally, struct error *e);
    /* On rank 0, between steps: brings the whole state, as of *step updates, into rank 0's optimizer for saving. `last`
     * is for after the last step: waits until every worker has come to it. */
    int (*collect)(struct strategy *s, int last, int64_t *step, struct error *e);
    /* A server's whole life, from start to the end of the run. NULL where no rank is one. *signal: the signal that
     * asked this rank to end, 0: none yet. */
    int (*serve)(struct strategy *s, const volatile int *signal, struct error *e);
    /* Worker, after its last step (and rank 0's last collect): replicas are compared, servers let go. */
    int (*finish)(struct strategy *s, struct error *e);
    void (*report)(const struct strategy *s, struct strategy_report *r);
    void (*free)(struct strategy *s);
};

struct strategy { /* what all have; the operations' own structs begin with it */
    const struct strategy_operations *operations;
    struct world *world;
    struct optimizer *optimizer;
    struct network *network;
    struct strategy_options options;
    int workers, worker; /* of this run; worker: which one this rank is, -1: a server */
    int64_t global_step;
    int more; /* 1: there is a first step to train */
};

/* A row of the table of strategies. */
struct strategy_kind {
    const char *name;      /* for --run-option, and in files */
    const char *help;      /* ends the sentence "Train ..." */
    const char *exclusive; /* the flag of its own that is refused with another strategy; NULL: none */
    /* Sets `own` to its defaults and `rows` (at most STRATEGY_ROWS) to the options of this strategy alone, whose values
     * are in `own`. Returns how many. NULL: none. */
    size_t (*options)(struct option *rows, void *own);
    /* After the command line was read: o->own is turned into o->synchronous and o->label. NULL: they stay 1 and the
     * name. */
    void (*resolve)(struct strategy_options *o);
    /* How many of `ranks` ranks are workers, the first ones; ERR_ARG with the reason when that cannot be. */
    int (*workers)(const struct strategy_options *o, int ranks, struct error *e);
    /* "2 workers and 1 server" into text; "" for a rank alone. */
    void (*describe)(const struct strategy_options *o, int ranks, char *text, size_t size);
    /* Collective. `common` is copied into the new object. */
    int (*start)(struct strategy **out, const struct strategy *common, struct error *e);
};

/* The table: a row is the name of a file of this folder, and of its strategy_NAME. The first is the default. */
#define STRATEGIES(ROW) \
    ROW(single)         \
    ROW(allreduce)      \
    ROW(parameter_server)

#define STRATEGY_DECLARATION(name) extern const struct strategy_kind strategy_##name;
STRATEGIES(STRATEGY_DECLARATION)
#define STRATEGY_ONE(name) +1
enum { STRATEGY_KINDS = 0 STRATEGIES(STRATEGY_ONE) };
extern const struct strategy_kind *const strategy_kinds[STRATEGY_KINDS + 1]; /* ends with NULL */

/* Collective. Checks that all ranks have the same variables, options and `fingerprint` (a hash of whatever else must be
 * equal), then starts. Network, optimizer and world are borrowed until strategy_free(). The optimizer's state must
 * be the same on all ranks. The network's exchange vector may lie in the strategy's memory: after strategy_free() the
 * network is only to be freed. */
int strategy_start(struct strategy **out, struct world *w, const struct strategy_options *options, struct optimizer *o,
                   uint64_t fingerprint, struct error *e);
void strategy_free(struct strategy *s); /* NULL is fine */

/* For strategies of replicas: this worker's part of the step, with a hash of its replica every check_every steps,
 * where there are others. */
struct tally_part strategy_part(const struct strategy *s, const struct tally *t);

#endif
