/* train_options.h - reads the trainer's command line, and checks all that can be checked without files but that of the
 * model. */
#ifndef TRAINER_TRAIN_OPTIONS_H
#define TRAINER_TRAIN_OPTIONS_H

#include "base/error.h"
#include "base/program/subcommand.h"
#include "dataset/dataset.h"
#include "model/file/model_file.h"
#include "model/file/recipe.h"
#include "model/model.h"
#include "trainer/batch_plan.h"
#include "trainer/launch/launch.h"
#include "trainer/optimizers/optimizer.h"
#include "trainer/strategies/strategy.h"

#include <stddef.h>
#include <stdint.h>

enum resume_kind { RESUME_AUTO, RESUME_NEVER, RESUME_STEP };

#define TRAIN_DEADLINE 60.0 /* seconds, the default */

struct train_options {
    struct model_file *file; /* owned: train_options_release(); NULL: a built-in model */
    const char *model_given; /* as on the command line; borrowed from argv */
    const struct model *model;
    const struct recipe *recipe;                      /* of the model */
    struct dataset_words words;                       /* borrowed from argv */
    struct dataset_reading reading;                   /* what they say */
    const char *data, *data_directory;                /* borrowed from argv */
    const char *checkpoint_directory, *log_directory; /* NULL: none */
    const char *init_from, *scope, *freeze;           /* the same */
    struct model *own_model;                          /* owned: a built-in model with --freeze or --precision */
    struct strategy_options strategy; /* kind, its own options, and what follows from them; the run sets the rest */
    struct optimizer_options optimizer;
    int scale_learning_rate; /* 1: the run sets optimizer.schedule.workers, once the number is known */
    enum shard_kind shard;
    enum shard_rule shard_rule;
    int augment, quiet, json, take_over, reproducible;
    const char *trace; /* a file; NULL: none */
    int time;          /* 1: explain what the ranks' time is spent on */
    struct batch_sizes sizes;
    int64_t max_steps, log_every, hash_every; /* hash_every 0: no hash is logged */
    int64_t save_steps;                       /* 0: not by steps */
    double save_seconds;                      /* 0: not by time */
    size_t keep, bucket_bytes;
    enum resume_kind resume;
    int64_t resume_step;
    uint64_t seed;
    int seed_given;
    int64_t hold_out; /* the first training samples, which are left out */
    double deadline;
    struct launch_options launch;
    char **own; /* (own_count) argv without the options of `launch` */
    int own_count;
};

/* Handles what needs no ranks: one of the `count` subcommands, --help, --version. 1 and *status if argv asks for one of
 * these; it has been done then. Else 0. */
int train_options_command(const struct subcommand *commands, size_t count, int argc, char **argv, int *status);

/* OPTIONS_RUN, OPTIONS_DONE after --help or --version, or ERR_ARG with a sentence, which may suggest a subcommand. argv
 * is reordered and borrowed. */
int train_options_parse(struct train_options *out, const struct subcommand *commands, size_t count, int argc,
                        char **argv, struct error *e);

void train_options_release(struct train_options *o);

/* The rows of a training's command line, *count of them, for a command that starts trainings and takes their options
 * among its own. Their values are in *values. Both are yours: free() them. NULL: no memory. */
struct option *train_options_rows(size_t *count, void **values);

/* The word of --shard. Static. */
const char *train_options_shard(const struct train_options *o);

/* The parts into which threads cut a worker's batch; 0: they change nothing. */
int train_options_parts_of_threads(const struct train_options *o);

/* A hash of everything that must be the same on every rank, except the strategy's own options, which the strategy
 * compares itself. */
uint64_t train_options_fingerprint(const struct train_options *o);
/* A hash of what the weights depend on beside model, data set, batch, seed and strategy, for --replay. */
uint64_t train_options_training(const struct train_options *o);

#endif
