/*
 * strategy.h - how the ranks of a run train one model together. The training loop knows the other ranks only through
 * this interface: it trains on its own batch, and between step_begin and the end of step_end the strategy turns the
 * local result (its exchange vectors) into the applied one (the new weights in the network).
 *
 * A strategy is one file in this folder, composed of trainer/collective/ and trainer/server/, with one `struct
 * strategy_kind`, and one row below, from which parser, --help, names and checks are made.
 *
 * Synchronous strategies give the same bits for the same number of workers, and with micro-shards for any number:
 * element by element the workers' sums are added in one order (reduction.h), and the optimizer is the same function
 * everywhere. One thread; all calls come
 * from it. Errors: ERR_PEER, with a sentence naming rank, step, tensors and the ranks waited for.
 */
#ifndef TRAINER_STRATEGIES_STRATEGY_H
#define TRAINER_STRATEGIES_STRATEGY_H

#include "base/error.h"
#include "base/program/options.h"
#include "model/network.h"
#include "trainer/collective/dense_part.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/micro_shards.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/tally.h"
#include "trainer/collective/world.h"
#include "trainer/optimizers/optimizer.h"
#include "trainer/timing/phase_clock.h"

#include <stddef.h>
#include <stdint.h>

struct strategy_kind;

/* Options of a single strategy: memory for a struct of its file. */
enum { STRATEGY_OWN_SIZE = 128, STRATEGY_ROWS = 12, STRATEGY_LABEL_SIZE = 16 };
struct strategy_own {
    _Alignas(max_align_t) unsigned char bytes[STRATEGY_OWN_SIZE];
};

struct strategy_options {
    const struct strategy_kind *kind;
    struct strategy_own own;         /* of the kind */
    uint64_t fingerprint;            /* a hash of the kind's options; must be the same on all ranks */
    int synchronous;                 /* 0: each worker's gradients make a separate update */
    int aggregate;                   /* synchronous: gradients that make an update; 0: one of each worker */
    int chosen;                      /* 1: updates without some workers' gradients; these learn of later steps only */
    const char *instead;             /* the strategy that was asked for, if another one does the same; static */
    char label[STRATEGY_LABEL_SIZE]; /* "mpi", "ps", "ps --async": in files and log lines */
    int threads;                     /* of kinds whose workers are threads: how many were asked for; 0: not given */
    int64_t batch_size;              /* samples per worker and step */
    int unit;                        /* samples that are computed at once */
    int64_t first_step;              /* updates done before this run */
    int64_t max_steps;               /* updates after which the run ends */
    size_t bucket_bytes;            /* maximum size of the pieces in which gradients are exchanged; 0: as it sees fit */
    const char *data;               /* the name of the data set; borrowed */
    uint64_t seed, training;        /* of the run; a hash of all other options that the weights depend on */
    int micro_shards;               /* of a step of all workers; 0: each hands on one sum. Synchronous */
    int64_t check_every;            /* steps between two comparisons of all replicas; 0: never */
    struct phase_clock *clock;      /* of this rank; borrowed; NULL: none */
    void (*changes)(void *context); /* what strategy_changes() calls; NULL: nothing */
    void *changes_context;          /* borrowed */
};

/* How many pushes had a staleness of `from` to `to`; INT64_MAX: and more. */
struct strategy_range {
    int64_t from, to, pushes;
};
enum { STRATEGY_RANGES = 48 };

/* What became of the gradients of a run whose updates leave some out. */
struct strategy_gradients {
    int64_t used, dropped;
    int64_t absent; /* workers without a part in an update, over all updates */
    double samples_used, samples_dropped;
    int64_t own, own_dropped; /* of this worker */
};

/* Into how many parts tables are cut on servers; with a search, what was tried, in this order. */
struct strategy_parts {
    int partitions; /* 0: no tables on servers */
    size_t count;   /* 0: no search */
    struct {
        int partitions;
        double seconds; /* in which the rows of a step are exchanged */
    } tried[STRATEGY_RANGES];
};

struct strategy_report {
    double bytes_step;     /* bytes per step from this rank to others: sent, or read by them in shared memory */
    double staleness_mean; /* asynchronous: updates between a worker's pull and its push; else 0 */
    int64_t staleness_max;
    struct strategy_gradients gradients; /* on rank 0, at the end of the run; `dropped` at any time */
    double gradient_norm;                /* of the last update, with --clip-norm and before clipping; else 0 */
    int64_t copies; /* of variables and their slots, made at the start for replicas in this process */
    struct strategy_range
        staleness[STRATEGY_RANGES]; /* asynchronous, at the end of the run, on rank 0: the histogram */
    size_t staleness_ranges;        /* its ranges up to the last that is not empty */
    struct strategy_parts parts;    /* on rank 0 */
    const char *transport;          /* "none", "threads", "shared memory", "messages"; static */
};

struct strategy;
struct strategy_operations {
    /* Of strategies whose workers are threads of a rank: trains all on the batch, which has the samples of one worker
     * after the other. `shards` is of the strategy's network, which the first worker uses. Returns and scores as
     * micro_shards_train. NULL: the caller trains the rank's only worker. */
    int (*train)(struct strategy *s, struct micro_shards *shards, const struct batch *batch, uint64_t seed,
                 struct score *score);
    /* Call before training on the batch of `step` (the worker's own count). */
    int (*step_begin)(struct strategy *s, int64_t step, struct error *e);
    /* Call after step_begin with that batch, unless there is none: fetches what of the weights training on it needs.
     * NULL: they are all there. */
    int (*fetch)(struct strategy *s, const struct batch *batch, struct error *e);
    /* As gradient_sink.dense: all vectors of this worker are final from `low` on. Never blocks; errors are kept for
     * step_end. */
    void (*ready)(struct strategy *s, size_t low);
    /* May be called before step_end with the batch of the next step: what fetch will need for it can be asked for as
     * soon as this step's gradients are sent. Borrowed until fetch. NULL: nothing is gained by it. */
    void (*foresee)(struct strategy *s, const struct batch *next);
    /* Call after training: returns when the network holds the weights of the next step. With TALLY_LEFT, set by a
     * worker that abandoned its step, the step is completed all the same, so that nobody waits for the others, but no
     * rank's state changes. Asynchronous workers then push nothing, and only they themselves end. */
    int (*step_end)(struct strategy *s, struct tally *tally, struct error *e);
    /* On rank 0, between steps: collects the whole state, as of *step updates, in rank 0's optimizer for saving.
     * `last`: after the last step: waits until every worker has reached it. */
    int (*collect)(struct strategy *s, int last, int64_t *step, struct error *e);
    /* On rank 0, between steps: fetches the weights that fetch() left out, as of the last update. NULL: none. */
    int (*fetch_all)(struct strategy *s, struct error *e);
    /* Runs a server, from start to the end of the run. 1: it ended in order, but e says what could not be written.
     * NULL: no rank is a server. *signal: the signal that asked this rank to end, 0: none yet. */
    int (*serve)(struct strategy *s, const volatile int *signal, struct error *e);
    /* On workers, after the last step (and rank 0's last collect): compares replicas, releases servers. */
    int (*finish)(struct strategy *s, struct error *e);
    void (*report)(const struct strategy *s, struct strategy_report *r);
    void (*free)(struct strategy *s);
};

/* common part; the operations' own structs begin with it */
struct strategy {
    const struct strategy_operations *operations;
    struct world *world;
    struct optimizer *optimizer;
    struct network *network;
    struct strategy_options options;
    struct reduction reduction; /* the vectors of the workers */
    real *const *vectors;       /* (reduction_vectors) this worker's; the last is the network's exchange vector */
    /* Set by start where only some runs of a kind take the gradients of tables as rows: in those, the part of the
     * network that every worker has whole, by which replicas are compared. */
    const struct dense_part *dense;
    int takes_rows;              /* 1: likewise, of a run whose replicas are whole */
    struct micro_shards *shards; /* computes this worker's gradients; set by strategy_attach() */
    int workers, worker;         /* of this run; worker: index of this rank, -1: a server */
    int64_t global_step;
    int more; /* 1: there is a first step to train */
    /* 1: between steps rank 0's optimizer has the whole state, and strategy_changes() announces each change. */
    int holds_state;
};

/* How many ranks are servers: in all, or, unless it is 0, on each host. */
struct strategy_servers {
    int64_t total, per_host;
    int given; /* 1: the user chose the total; set once the command line was read */
};

/* A row of the table of strategies. */
struct strategy_kind {
    const char *name; /* for --run-option, and in files */
    const char *help; /* ends the sentence "Train ..." */
    int rows;         /* 1: takes the gradients of tables as rows, from strategy.shards. See strategy.dense */
    /* Sets `own` to its defaults and `rows` (at most STRATEGY_ROWS) to the strategy's own options, whose values are in
     * `own`. Returns how many. NULL: none. An option that other strategies have, too, is the same in all: kind, bounds,
     * help. Given with a strategy that does not have it, it is refused (strategy_choice.h). */
    size_t (*options)(struct option *rows, void *own);
    /* For a model without tables: changes o to the strategy that does the same then, and sets o->instead. NULL: tables
     * change nothing. */
    void (*without_tables)(struct strategy_options *o);
    /* Call after the command line was read: sets o->synchronous and o->label from o->own. NULL: they stay 1 and the
     * name. */
    void (*resolve)(struct strategy_options *o);
    int threads; /* 1: the workers are threads of a single rank */
    /* Where o->own says how many servers there are. NULL: no rank is a server. */
    struct strategy_servers *(*servers)(struct strategy_options *o);
    /* How many of `ranks` ranks are workers, the first ones, or how many threads; ERR_ARG with the reason if
     * impossible. */
    int (*workers)(const struct strategy_options *o, int ranks, struct error *e);
    /* "2 workers and 1 server" into text; "" for a rank alone. */
    void (*describe)(const struct strategy_options *o, int ranks, char *text, size_t size);
    /* Collective. `common` is copied into the new object. */
    int (*start)(struct strategy **out, const struct strategy *common, struct error *e);
};

/* The table: a row is the name of a file in this folder, and of its strategy_NAME. The first is the default. */
#define STRATEGIES(ROW) \
    ROW(single) \
    ROW(mirrored) \
    ROW(allreduce) \
    ROW(ring) \
    ROW(parameter_server) \
    ROW(hybrid)

#define STRATEGY_DECLARATION(name) extern const struct strategy_kind strategy_##name;
STRATEGIES(STRATEGY_DECLARATION)
#define STRATEGY_ONE(name) +1
enum { STRATEGY_KINDS = 0 STRATEGIES(STRATEGY_ONE) };
extern const struct strategy_kind *const strategy_kinds[STRATEGY_KINDS + 1]; /* ends with NULL */

/* How many servers to start beside the workers of so many hosts; without an option that says it, one on each. 0: the
 * strategy has none. From then on o has that number in all. */
int strategy_count_servers(struct strategy_options *o, int hosts);

/* 1: updates of so many workers may be without some of their gradients: see `chosen`. */
int strategy_chooses(const struct strategy_options *o, int workers);

/* Collective; call before asking which ranks are workers. With servers counted by host, renumbers the ranks, so that
 * workers come first also then (server_seats.h), and puts the servers' number into o. ERR_ARG: a host has no rank left
 * for a worker, or not all ranks say the same. */
int strategy_seat(struct strategy_options *o, struct world *w, struct error *e);

/* Collective. Checks that all ranks have the same variables, options and `fingerprint` (a hash of everything else that
 * must be equal), then starts. Network, optimizer and world are borrowed until strategy_free(). The optimizer's state
 * must be the same on all ranks. The network's exchange vector may be in the strategy's memory: after strategy_free()
 * the network may only be freed. */
int strategy_start(struct strategy **out, struct world *w, const struct strategy_options *options, struct optimizer *o,
                   uint64_t fingerprint, struct error *e);
void strategy_free(struct strategy *s); /* NULL is fine */

/* Call on workers, whose batches m trains on, before the first step: m then uses the strategy's vectors, and hands out
 * the gradients of tables as rows if the strategy takes them. Borrowed until free. ERR_NOMEM. */
int strategy_attach(struct strategy *s, struct micro_shards *m, struct error *e);

/* How many ranks are workers: fewer than s->workers if these are threads of one rank. */
int strategy_worker_ranks(const struct strategy *s);

/* Collective, servers too, after the last step: compares the weights and statistics of all ranks that have those of the
 * newest step. whole: 1: this rank has a whole replica of s->global_step. ERR_CORRUPT, naming those that differ. */
int strategy_compare_replicas(struct strategy *s, int whole, struct error *e);

/* 1: an update waits for the slowest worker. */
int strategy_waits_for_all(const struct strategy *s);

/* From here on the optimizer's state is in the middle of an update, until whoever trains says that it is whole. */
void strategy_changes(const struct strategy *s);

/* For strategies with replicas: this worker's part of the step, with a hash of its replica every check_every steps. */
struct tally_part strategy_part(const struct strategy *s, const struct tally *t);
/* Compares the hashes in the parts of all workers. ERR_CORRUPT, naming those that differ. */
int strategy_compare_parts(const struct strategy *s, const struct tally_part *parts, struct error *e);

#endif
