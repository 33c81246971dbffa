#include "trainer/train_options.h"

#include "base/number.h"
#include "base/program/options.h"
#include "dataset/transform.h"
#include "trainer/collective/exchange.h"
#include "trainer/strategies/strategy_choice.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIMIZER_CHOICE(place, name) "|" #name
/* Those of enum shard_kind, then files by the other rule. */
static const char *const shards[] = { "records", "files", "none", "contiguous" };
/* Those of enum precision. */
static const char *const precisions[] = { "float32", "bfloat16" };
enum { SHARD_CONTIGUOUS_FILES = SHARD_NONE + 1 };

static const char examples[] =
    "  trainer --model lenet --data fashion-mnist --checkpoint-dir ckpt --max-steps 1000\n"
    "  mpirun -n 4 trainer --run-option mpi --model resnet32 --data cifar10 --data-dir data --batch-size 32 "
    "--checkpoint-dir ckpt --save-checkpoint-steps 100 --log-dir logs/mpi/train --max-steps 3500\n";

enum { COMMON_ROWS = 46 + DATASET_READING_ROWS + LAUNCH_ROWS, ALL_ROWS = COMMON_ROWS + STRATEGY_CHOICE_ROWS };

enum { REPRODUCIBLE_SHARDS = 8 }; /* of 16 images at a batch of 128: more of them would be smaller, and slower */

/* as given; initially the defaults below */
struct command {
    struct train_options o; /* what needs no translation */
    const char *model, *precision, *optimizer, *shard, *resume, *scale, *decay_at;
    int64_t batch_size, global_batch, micro_shards, threads, keep, seed, bucket_bytes, hold_out;
    double learning_rate, momentum;
    int moving_average;
    char models[256], data_sets[256]; /* to choose from */
    struct strategy_choice strategies;
};

static const struct command defaults = {
    .o = { .augment = 1,
           .max_steps = 1000,
           .log_every = 10,
           .deadline = TRAIN_DEADLINE,
           .optimizer.schedule.decay_factor = 0.1 },
    .precision = "float32",
    .scale = "none",
    .shard = "records",
    .resume = "auto",
};

static size_t add_rows(struct option *table, size_t at, const struct option *rows, size_t count)
{
    assert(at + count <= ALL_ROWS);
    memcpy(table + at, rows, count * sizeof *rows);
    return at + count;
}

/* Adds how the images of a step are cut and shared, and what makes weights comparable. */
static size_t add_sharing_rows(struct option *t, size_t at, struct command *c)
{
    const struct option rows[] = {
        { OPTION_HEADING, .help = "How a step is shared among workers:" },
        { OPTION_FLAG, .name = "reproducible", .value = &c->o.reproducible,
          .help = "End with the same weights, bit for bit, for any number of workers up to the number of micro-shards, "
                  "with every synchronous --run-option, and after any resume: with --micro-shards 8 and the model's "
                  "batch as --global-batch unless they are given." },
        { OPTION_INT, .name = "hash-every", .value = &c->o.hash_every, .argument = "N", .minimum = 1, .maximum = 1e15,
          .help = "Log a hash of all weights every N steps and at the end, and compare it over the workers as often: "
                  "trainings with the same hash have the same weights. Default: compare every 100 steps." },
        { OPTION_INT, .name = "global-batch", .value = &c->global_batch, .argument = "N", .minimum = 1,
          .maximum = 1 << 26,
          .help = "Train all workers together on N samples per step, instead of --batch-size each." },
        { OPTION_INT, .name = "micro-shards", .value = &c->micro_shards, .argument = "N", .minimum = 1,
          .maximum = 1 << 20,
          .help =
              "Compute the gradients of a step in N equal parts of all workers' samples, and add them in a fixed tree: "
              "memory is needed for one part at a time, and any number of workers up to N end with the same weights, "
              "bit for bit, if they have the same samples per step (--global-batch). Default: one part per worker." },
        { OPTION_INT, .name = "threads", .value = &c->threads, .argument = "N", .minimum = 1, .maximum = 1024,
          .help =
              "Compute each worker's gradients in N threads, which share its micro-shards; without --micro-shards "
              "each has an equal part of the worker's batch. With --run-option mirrored, train N workers, each in a "
              "thread with a batch of its own: mirrored needs N. Default: 1." },
    };

    return add_rows(t, at, rows, sizeof rows / sizeof *rows);
}

static size_t add_launch_rows(struct option *table, size_t at, struct command *c)
{
    return at + launch_rows(table + at, &c->o.launch);
}

/* Adds what to train, and on which ranks. */
static size_t add_what_rows(struct option *t, size_t at, struct command *c)
{
    struct option reading[DATASET_READING_ROWS];
    const struct option rows[] = {
        { OPTION_HEADING, .help = "What to train, and on which ranks:" },
        { OPTION_CHOICE_OR_PATH, .name = "model", .value = &c->model, .argument = "NAME",
          .help = "Train this model: a built-in one, or that of a model file ('trainer models --reference' explains "
                  "it), a copy of which is kept in CKPT. Required.",
          .choices = options_choices(model_names(), c->models, sizeof c->models) },
        { OPTION_CHOICE, .name = "data", .value = &c->o.data, .argument = "NAME",
          .help = "Train on this data set. Required.",
          .choices = options_choices(dataset_names(), c->data_sets, sizeof c->data_sets) },
        { OPTION_TEXT, .name = "data-dir", .value = &c->o.data_directory, .argument = "DIR",
          .help = "Read the data set from DIR. Default: where Debian's package installs it, if there is one." },
    };

    at = add_rows(t, at, rows, sizeof rows / sizeof *rows);
    dataset_reading_rows(reading, &c->o.words);
    return add_rows(t, at, reading, DATASET_READING_ROWS);
}

/* Adds how to train. */
static size_t add_how_rows(struct option *t, size_t at, struct command *c)
{
    const struct option rows[] = {
        { OPTION_CHOICE, .name = "shard", .value = &c->shard, .argument = "KIND",
          .choices = "records|files|contiguous|none",
          .help =
              "Give each worker its part of all records in one shuffled order (records, the default), whole "
              "files of its own, as much for each, except with --async (files: every n-th of n workers; contiguous: "
              "neighbours), or all records in an order of its own (none)." },
        { OPTION_INT, .name = "hold-out", .value = &c->hold_out, .argument = "N", .minimum = 0, .maximum = 1e12,
          .help = "Leave out the first N training samples, which TensorFlow's readers of MNIST hold out for "
                  "validation. Default: the model's." },
        { OPTION_HEADING, .help = "How to train:" },
        { OPTION_INT, .name = "max-steps", .value = &c->o.max_steps, .argument = "N", .minimum = 1, .maximum = 1e15,
          .help = "Finish the training at global step N. Default: 1000." },
        { OPTION_INT, .name = "batch-size", .value = &c->batch_size, .argument = "N", .minimum = 1, .maximum = 1 << 20,
          .help = "Train each worker on N samples (images, sequences, captions) per step. Default: the model's." },
        { OPTION_CHOICE, .name = "optimizer", .value = &c->optimizer, .argument = "NAME",
          .choices = &OPTIMIZERS(OPTIMIZER_CHOICE)[1],
          .help = "Use this optimizer. lazy_adam is adam, except that of a table it updates only the rows that were "
                  "used. Default: the model's." },
        { OPTION_CHOICE, .name = "precision", .value = &c->precision, .argument = "NAME", .choices = "float32|bfloat16",
          .help =
              "Multiply in float32 (the default), or in bfloat16 in convolutions and larger matrix products, which is "
              "faster on processors with AMX and on AMD's with AVX512-BF16. Weights, sums, gradients of weights, batch "
              "norm, losses "
              "and checkpoints stay float32. A processor without AMX or AVX512-BF16 says so and trains in float32." },
        { OPTION_TEXT, .name = "init-from", .value = &c->o.init_from, .argument = "CKPT",
          .help =
              "Begin a new training with the variables of a checkpoint (TensorFlow's, V1 or V2, a .safetensors file "
              "or the index of its parts, also with PyTorch's order of dimensions): those that the model has with the "
              "same name and shape. It reports which are not taken, and why." },
        { OPTION_TEXT, .name = "scope", .value = &c->o.scope, .argument = "A[=B],...",
          .help =
              "With --init-from: take the variables under A, which have the names under B in the checkpoint, and no "
              "others; all of them must be there." },
        { OPTION_TEXT, .name = "freeze", .value = &c->o.freeze, .argument = "A,...",
          .help = "Do not train the variables under A (whose names begin with A and '/' or '.'), and keep the moving "
                  "statistics of batch norm there, which are used instead of those of the batch." },
        { OPTION_DOUBLE, .name = "learning-rate", .value = &c->learning_rate, .argument = "X", .minimum = 1e-12,
          .maximum = 1e6, .help = "Start the model's schedule at learning rate X. Default: the model's." },
        { OPTION_DOUBLE, .name = "momentum", .value = &c->momentum, .argument = "X", .minimum = 0, .maximum = 1,
          .help = "Use momentum X. Default: the model's, or 0.9." },
        { OPTION_FLAG, .name = "moving-average", .value = &c->moving_average,
          .help = "Keep moving averages of the variables. Default: as the model's reference does." },
        { OPTION_FLAG, .name = "augment", .value = &c->o.augment,
          .help = "Augment images by random crops, flips and so on, as the model's reference does (default)." },
        { OPTION_INT, .name = "seed", .value = &c->seed, .argument = "N", .minimum = 0, .maximum = 9e15,
          .help = "Draw the initial values, the order of the data and the augmentation from seed N. Default: the "
                  "model's or 1, or the checkpoint's on resume." },
    };

    return add_rows(t, at, rows, sizeof rows / sizeof *rows);
}

/* Adds what changes learning rates and gradients from step to step. */
static size_t add_schedule_rows(struct option *t, size_t at, struct command *c)
{
    struct optimizer_options *o = &c->o.optimizer;
    struct schedule *s = &o->schedule;
    const struct option rows[] = {
        { OPTION_CHOICE, .name = "scale-learning-rate", .value = &c->scale, .argument = "HOW", .choices = "linear|none",
          .help = "Multiply the learning rate by the number of workers whose gradients are averaged (linear), or use "
                  "it as it is (none, the default)." },
        { OPTION_INT, .name = "warmup", .value = &s->warmup, .argument = "STEPS", .minimum = 0, .maximum = 1e12,
          .help = "Let the learning rate rise linearly over the first STEPS steps: from one worker's rate with "
                  "--scale-learning-rate linear, else from 1/(STEPS + 1) of the rate. Default: 0." },
        { OPTION_TEXT, .name = "decay-at", .value = &c->decay_at, .argument = "STEP[,STEP...]",
          .help = "Multiply the learning rate by --decay-factor at each of these steps, instead of the model's "
                  "schedule." },
        { OPTION_DOUBLE, .name = "decay-factor", .value = &s->decay_factor, .argument = "X", .minimum = 1e-6,
          .maximum = 1, .help = "Multiply the learning rate by X at each step of --decay-at. Default: 0.1." },
        { OPTION_DOUBLE, .name = "clip-norm", .value = &o->clip_norm, .argument = "X", .minimum = 1e-12,
          .maximum = 1e12,
          .help = "Scale an update's gradient down to norm X if its norm, over all variables together, is larger; with "
                  "--async each worker's. Default: leave it as it is." },
    };

    return add_rows(t, at, rows, sizeof rows / sizeof *rows);
}

/* Adds checkpoints, curves, and how ranks communicate. */
static size_t add_saving_rows(struct option *t, size_t at, struct command *c)
{
    const struct option rows[] = {
        { OPTION_HEADING, .help = "Checkpoints and curves:" },
        { OPTION_TEXT, .name = "checkpoint-dir", .value = &c->o.checkpoint_directory, .argument = "CKPT",
          .help = "Save checkpoints (model.ckpt-N), their list (checkpoint) and training.json in CKPT. Default: save "
                  "nothing." },
        { OPTION_INT, .name = "save-checkpoint-steps", .value = &c->o.save_steps, .argument = "N", .minimum = 1,
          .maximum = 1e15,
          .help = "Save a checkpoint at each multiple of N steps, as well as at the start and at the end." },
        { OPTION_DOUBLE, .name = "save-checkpoint-seconds", .value = &c->o.save_seconds, .argument = "SECONDS",
          .minimum = 0.001, .maximum = 1e9, .help = "Save a checkpoint every SECONDS instead of every N steps." },
        { OPTION_INT, .name = "keep", .value = &c->keep, .argument = "N", .minimum = 0, .maximum = 1e9,
          .help = "Keep only the newest N checkpoints; a later evaluator finds no others. Default: 0, keep all." },
        { OPTION_TEXT, .name = "resume", .value = &c->resume, .argument = "auto|never|STEP",
          .help = "Resume from the newest whole checkpoint and name damaged ones, or start anew if there is no "
                  "checkpoint (auto, the default); start anew and replace checkpoints of the same steps (never); or "
                  "resume from the checkpoint of STEP." },
        { OPTION_FLAG, .name = "take-over", .value = &c->o.take_over,
          .help =
              "Train in CKPT although training.json was renewed by a trainer on another host within the last minute." },
        { OPTION_TEXT, .name = "log-dir", .value = &c->o.log_directory, .argument = "DIR",
          .help = "Write event files for TensorBoard to DIR, for example LOGDIR/<name>/train. Default: write none." },
        { OPTION_INT, .name = "log-every", .value = &c->o.log_every, .argument = "N", .minimum = 1, .maximum = 1e15,
          .help = "Log a line, and write points, every N steps. Default: 10." },
        { OPTION_FLAG, .name = "time", .value = &c->o.time,
          .help = "Explain what the time of each rank is spent on: input, forward, backward, waiting, reducing, "
                  "updating, saving, other. Write curves (time/input and so on, in milliseconds a step), name a rank "
                  "that becomes slow, and log a table at the end." },
        { OPTION_TEXT, .name = "trace", .value = &c->o.trace, .argument = "FILE",
          .help =
              "Write the phases of every step of all ranks to FILE at the end, on one clock, for ui.perfetto.dev or "
              "chrome://tracing: the last 50000 slices of each rank, 1000000 of all." },
        { OPTION_FLAG, .letter = 'q', .name = "quiet", .value = &c->o.quiet, .help = "Log only errors." },
        { OPTION_FLAG, .name = "json", .value = &c->o.json,
          .help = "Print one JSON object on standard output at the end: steps, seconds, rates, bytes, waiting, "
                  "staleness, hash of the weights." },
        { OPTION_HEADING, .help = "How ranks communicate:" },
        { OPTION_DOUBLE, .name = "deadline", .value = &c->o.deadline, .argument = "SECONDS", .minimum = 0.1,
          .maximum = 1e9,
          .help = "End all ranks when one has waited SECONDS for another, or, with --async, when a server has not "
                  "heard from a worker for SECONDS. Default: 60." },
        { OPTION_INT, .name = "bucket-bytes", .value = &c->bucket_bytes, .argument = "N", .minimum = 64,
          .maximum = 1 << 30,
          .help = "Exchange gradients in pieces of N bytes. Default: by the size of the model, at most 61440." },
    };

    return add_rows(t, at, rows, sizeof rows / sizeof *rows);
}

static size_t fill_table(struct option *t, struct command *c)
{
    size_t count = add_what_rows(t, 0, c);

    strategy_choice_init(&c->strategies, strategy_kinds);
    count += strategy_choice_rows(&c->strategies, t + count);
    count = add_schedule_rows(t, add_how_rows(t, count, c), c);
    return add_launch_rows(t, add_sharing_rows(t, add_saving_rows(t, count, c), c), c);
}

static int index_of(const char *word, const char *const *names, size_t count)
{
    for (size_t i = 0; word && i < count; i++)
        if (!strcmp(word, names[i]))
            return (int)i;
    return 0;
}

static int train_options_check(const struct command *c, struct error *e)
{
    if (!c->model || !c->o.data)
        return error_set(e, ERR_ARG, "--%s is missing; use one of %s", c->model ? "data" : "model",
                         c->model ? c->data_sets : c->models);
    if (c->o.save_steps && c->o.save_seconds > 0)
        return error_set(e, ERR_ARG, "--save-checkpoint-steps and --save-checkpoint-seconds are both given; use one");
    if (c->o.launch.restarts > 0 && !c->o.checkpoint_directory)
        return error_set(e, ERR_ARG, "--restarts needs --checkpoint-dir");
    if (c->o.launch.dry_run && !c->o.launch.resource_info)
        return error_set(e, ERR_ARG, "--dry-run needs --resource-info");
    if ((c->o.save_steps || c->o.save_seconds > 0) && !c->o.checkpoint_directory)
        return error_set(e, ERR_ARG, "--save-checkpoint-%s needs --checkpoint-dir",
                         c->o.save_steps ? "steps" : "seconds");
    if (c->batch_size && c->global_batch)
        return error_set(e, ERR_ARG, "--batch-size and --global-batch are both given; use one");
    return OK;
}

/* Refuses what only makes sense if all workers make an update together. */
static int check_synchronous(const struct command *c, const struct train_options *o, struct error *e)
{
    if (!o->strategy.synchronous && c->global_batch)
        return error_set(e, ERR_ARG, "--global-batch: workers of %s make no step together; use --batch-size",
                         o->strategy.label);
    if (!o->strategy.synchronous && c->o.hash_every)
        return error_set(e, ERR_ARG, "--hash-every: no two workers of %s have the same weights at a step",
                         o->strategy.label);
    return OK;
}

static int check_reproducible(const struct command *c, const struct train_options *o, struct error *e)
{
    if (!c->o.reproducible)
        return OK;
    if (!o->strategy.synchronous)
        return error_set(e, ERR_ARG,
                         "--reproducible: with %s the weights depend on the order in which gradients arrive; train "
                         "without --async",
                         o->strategy.label);
    if (o->shard != SHARD_RECORDS)
        return error_set(
            e, ERR_ARG,
            "--reproducible: with --shard files or none the images of a step depend on the number of workers; "
            "use --shard records");
    if (o->scale_learning_rate)
        return error_set(e, ERR_ARG,
                         "--reproducible: --scale-learning-rate depends on the number of workers; give the "
                         "--learning-rate itself");
    if (c->batch_size)
        return error_set(e, ERR_ARG,
                         "--reproducible: with --batch-size the images of a step depend on the number of workers; use "
                         "--global-batch");
    return OK;
}

static struct batch_sizes sizes_of(const struct command *c, const struct train_options *o)
{
    struct batch_sizes s = {
        .batch_size = c->batch_size ? (int)c->batch_size : o->recipe->batch_size,
        .global_batch = (int)c->global_batch,
        .micro_shards = (int)c->micro_shards,
        .threads = o->strategy.kind->threads ? 0 : (int)c->threads,
        .synchronous = o->strategy.synchronous,
    };

    if (c->o.reproducible && !s.micro_shards)
        s.micro_shards = REPRODUCIBLE_SHARDS;
    if (c->o.reproducible && !s.global_batch)
        s.global_batch = o->recipe->batch_size;
    return s;
}

static int resume_of(const char *text, struct train_options *o, struct error *e)
{
    o->resume = RESUME_AUTO;
    if (!strcmp(text, "never"))
        o->resume = RESUME_NEVER;
    else if (strcmp(text, "auto") != 0) {
        o->resume = RESUME_STEP;
        if (!number_parse_int(text, &o->resume_step) || o->resume_step < 0)
            return error_set(e, ERR_ARG, "--resume: '%s' is not auto, never or a step", text);
        if (!o->checkpoint_directory)
            return error_set(e, ERR_ARG, "--resume %s needs --checkpoint-dir", text);
    }
    return OK;
}

static int schedule_of(const struct command *c, const struct options *given, struct train_options *o, struct error *e)
{
    o->optimizer.schedule.recipe = &o->recipe->schedule;
    if (!options_given(given, "warmup"))
        o->optimizer.schedule.warmup = o->recipe->warmup;
    if (!options_given(given, "clip-norm"))
        o->optimizer.clip_norm = o->recipe->clip_norm;
    o->scale_learning_rate = !strcmp(c->scale, "linear");
    if (o->scale_learning_rate && !o->strategy.synchronous)
        return error_set(e, ERR_ARG,
                         "--scale-learning-rate linear: with --async each update is of one worker's gradients, and "
                         "nothing is averaged; keep the learning rate, or lower it");
    if (!c->decay_at && options_given(given, "decay-factor"))
        return error_set(e, ERR_ARG, "--decay-factor needs --decay-at");
    if (c->decay_at && schedule_parse_decays(&o->optimizer.schedule, c->decay_at, e) < 0) {
        error_prefix(e, "--decay-at");
        return ERR_ARG;
    }
    return OK;
}

static void optimizer_of(const struct command *c, const struct options *given, struct train_options *o)
{
    const struct recipe *r = o->recipe;
    const char *name = c->optimizer ? c->optimizer : r->optimizer;

    o->optimizer.kind = (enum optimizer_kind)index_of(name, optimizer_kind_names, OPTIMIZER_KINDS);
    o->optimizer.learning_rate = c->learning_rate > 0 ? c->learning_rate : r->learning_rate;
    o->optimizer.momentum = options_given(given, "momentum") ? c->momentum : r->momentum > 0 ? r->momentum : 0.9;
    o->optimizer.moving_average = r->moving_average;
    if (options_given(given, "moving-average"))
        o->optimizer.moving_average = !c->moving_average ? 0 : r->moving_average > 0 ? r->moving_average : 0.9999;
}

/* A wrong optimizer or transform of a model file is found here, where these are known. */
static int check_recipe(const struct model_file *f, struct error *e)
{
    const char *const transforms[] = { f->model.transform, f->recipe.transform };

    if (strcmp(f->recipe.optimizer,
               optimizer_kind_names[index_of(f->recipe.optimizer, optimizer_kind_names, OPTIMIZER_KINDS)]) != 0)
        return error_set(e, ERR_ARG, "%s: optimizer: '%s' is not one of %s", f->path, f->recipe.optimizer,
                         &OPTIMIZERS(OPTIMIZER_CHOICE)[1]);
    for (size_t i = 0; i < 2; i++)
        if (transforms[i] && !transform_find(transforms[i]))
            return error_set(e, ERR_ARG, "%s: %s: there is no transform '%s'", f->path, i ? "augment" : "transform",
                             transforms[i]);
    return OK;
}

static int model_of(const struct command *c, struct train_options *o, struct error *e)
{
    o->model_given = c->model;
    if (!model_file_is_path(c->model)) {
        o->model = model_find(c->model);
        o->recipe = recipe_find(c->model);
        return OK;
    }
    if (model_file_open(&o->file, c->model, e) < 0 || check_recipe(o->file, e) < 0)
        return error_prefix(e, "--model");
    o->model = &o->file->model;
    o->recipe = &o->file->recipe;
    return OK;
}

/* Gives the model what options change of it. */
static int change_model(const struct command *c, struct train_options *o, struct error *e)
{
    const enum precision precision = (enum precision)index_of(c->precision, precisions,
                                                              sizeof precisions / sizeof *precisions);
    struct model *changed = o->file ? &o->file->model : NULL;

    if (o->scope && !o->init_from)
        return error_set(e, ERR_ARG, "--scope needs --init-from");
    if (!o->freeze && precision == PRECISION_FLOAT32)
        return OK;
    if (!changed) {
        if (!(changed = o->own_model = malloc(sizeof *changed)))
            return error_memory(e, NULL, "for the model");
        *changed = *o->model;
        o->model = changed;
    }
    if (o->freeze)
        changed->frozen = o->freeze;
    changed->precision = precision;
    return OK;
}

static int translate(struct command *c, const struct options *given, struct train_options *o, struct error *e)
{
    *o = c->o;
    if (model_of(c, o, e) < 0 || change_model(c, o, e) < 0)
        return ERR_ARG;
    if (strategy_choice_resolve(&c->strategies, given, &o->strategy, e) < 0)
        return ERR_ARG;
    o->strategy.threads = o->strategy.kind->threads ? (int)c->threads : 0;
    if (!o->model->integers && o->strategy.kind->without_tables) /* only tables read integers */
        o->strategy.kind->without_tables(&o->strategy);
    o->shard = (enum shard_kind)index_of(c->shard, shards, sizeof shards / sizeof *shards);
    if ((int)o->shard == SHARD_CONTIGUOUS_FILES) {
        o->shard = SHARD_FILES;
        o->shard_rule = SHARD_CONTIGUOUS;
    }
    if (o->shard == SHARD_FILES && o->strategy.kind->threads)
        return error_set(e, ERR_ARG, "--shard files: the threads of --run-option %s read one data set; use records",
                         o->strategy.kind->name);
    o->sizes = sizes_of(c, o);
    o->keep = (size_t)c->keep;
    o->bucket_bytes = (size_t)c->bucket_bytes;
    o->seed_given = options_given(given, "seed");
    o->seed = o->seed_given ? (uint64_t)c->seed : o->recipe->seed ? o->recipe->seed : 1;
    if (dataset_reading_parse(&o->reading, &o->words, e) < 0)
        return ERR_ARG;
    o->hold_out = options_given(given, "hold-out") ? c->hold_out : o->recipe->hold_out;
    if (o->hold_out && o->shard == SHARD_FILES)
        return error_set(e, ERR_ARG,
                         "--hold-out %" PRId64 ": with --shard files each worker would leave out samples of its own; "
                         "use --shard records, or --hold-out 0",
                         o->hold_out);
    optimizer_of(c, given, o);
    if (schedule_of(c, given, o, e) < 0 || check_reproducible(c, o, e) < 0 || check_synchronous(c, o, e) < 0)
        return ERR_ARG;
    return resume_of(c->resume, o, e);
}

static struct options describe(struct command *c, struct option *table, const struct subcommand *commands, size_t count)
{
    return (struct options){
        .program = "trainer",
        .usage = "--model NAME --data NAME [OPTION...]",
        .summary = "Train a model, and write TensorFlow checkpoints and TensorBoard event files. Start the trainer "
                   "with mpirun to train on several ranks.",
        .examples = examples,
        .table = table,
        .count = fill_table(table, c),
        .commands = commands,
        .command_count = count,
    };
}

int train_options_command(const struct subcommand *commands, size_t count, int argc, char **argv, int *status)
{
    static const char *const asking[] = { "--help", "-h", "--version", "-V", "--describe" };
    struct command c = defaults;
    struct option table[ALL_ROWS];
    const struct options o = describe(&c, table, commands, count);
    int positional, asks = 0;

    if (subcommand_run(&o, argc, argv, status))
        return 1;
    for (size_t i = 0; argc == 2 && i < sizeof asking / sizeof *asking; i++)
        asks |= !strcmp(argv[1], asking[i]);
    *status = EXIT_DONE;
    return asks && options_parse(&o, argc, argv, &positional, NULL) == OPTIONS_DONE;
}

int train_options_parse(struct train_options *out, const struct subcommand *commands, size_t count, int argc,
                        char **argv, struct error *e)
{
    struct command c = defaults;
    struct option table[ALL_ROWS];
    const struct options o = describe(&c, table, commands, count);
    int positional, rc = options_parse(&o, argc, argv, &positional, e);

    if (rc != OPTIONS_RUN)
        return rc;
    if (positional > 0)
        return options_unknown_command(&o, argv[1], e);
    if ((rc = train_options_check(&c, e)) < 0)
        return rc;
    if ((rc = translate(&c, &o, out, e)) < 0) {
        train_options_release(out);
        return rc;
    }
    out->own = argv;
    out->own_count = options_remove(&o, argc, argv, launch_option_names, LAUNCH_NAMES);
    return OPTIONS_RUN;
}

void train_options_release(struct train_options *o)
{
    model_file_free(o->file);
    free(o->own_model);
    o->file = NULL;
    o->own_model = NULL;
}

struct option *train_options_rows(size_t *count, void **values)
{
    struct option *rows = calloc(ALL_ROWS, sizeof *rows);
    struct command *c = malloc(sizeof *c);

    if (!rows || !c) {
        free(rows);
        free(c);
        return NULL;
    }
    *c = defaults;
    *count = fill_table(rows, c);
    *values = c;
    return rows;
}

const char *train_options_shard(const struct train_options *o)
{
    return shards[o->shard == SHARD_FILES && o->shard_rule == SHARD_CONTIGUOUS ? SHARD_CONTIGUOUS_FILES
                                                                               : (int)o->shard];
}

int train_options_parts_of_threads(const struct train_options *o)
{
    return o->sizes.micro_shards || o->sizes.threads < 2 ? 0 : o->sizes.threads;
}

uint64_t train_options_training(const struct train_options *o)
{
    const struct schedule *s = &o->optimizer.schedule;
    const double numbers[] = { o->optimizer.learning_rate,
                               o->optimizer.momentum,
                               o->optimizer.moving_average,
                               o->optimizer.clip_norm,
                               (double)o->optimizer.kind,
                               (double)o->shard,
                               (double)o->shard_rule,
                               (double)o->augment,
                               (double)o->sizes.micro_shards,
                               (double)o->scale_learning_rate,
                               (double)o->hold_out,
                               (double)s->warmup,
                               s->decay_factor };

    const uint64_t h = exchange_hash(s->decay_at, (size_t)s->decays * sizeof *s->decay_at,
                                     exchange_hash(numbers, sizeof numbers, EXCHANGE_HASH_SEED));
    const char *precision = precisions[o->model->precision];
    const int parts = train_options_parts_of_threads(o); /* 0: the hash is as it was before there were threads */
    const uint64_t shared = parts ? exchange_hash(&parts, sizeof parts, h) : h;

    return o->model->precision == PRECISION_FLOAT32 ? shared : exchange_hash(precision, strlen(precision), shared);
}

uint64_t train_options_fingerprint(const struct train_options *o)
{
    double numbers[] = { o->optimizer.learning_rate,
                         o->optimizer.momentum,
                         o->optimizer.moving_average,
                         (double)o->optimizer.kind,
                         (double)o->sizes.batch_size,
                         (double)o->sizes.global_batch,
                         (double)o->hash_every,
                         (double)o->max_steps,
                         (double)o->seed,
                         (double)o->hold_out,
                         (double)o->shard,
                         (double)o->shard_rule,
                         (double)o->augment,
                         (double)o->sizes.micro_shards,
                         (double)train_options_parts_of_threads(o),
                         (double)o->model->precision,
                         (double)o->time,
                         (double)(o->trace != NULL) };
    const struct schedule *s = &o->optimizer.schedule;
    double schedule[] = { (double)o->scale_learning_rate, (double)s->warmup, s->decay_factor, o->optimizer.clip_norm };
    const char *reading[2 * DATASET_READING_ROWS];
    uint64_t h = exchange_hash(o->model->name, strlen(o->model->name), EXCHANGE_HASH_SEED);

    for (size_t i = 0, n = dataset_reading_line(&o->words, reading); i < n; i++)
        h = exchange_hash(reading[i], strlen(reading[i]), h);
    h = o->file ? exchange_hash(o->file->text, o->file->length, h) : h;
    h = exchange_hash(o->data, strlen(o->data), h);
    h = exchange_hash(schedule, sizeof schedule, h);
    h = exchange_hash(s->decay_at, (size_t)s->decays * sizeof *s->decay_at, h);
    return exchange_hash(numbers, sizeof numbers, h);
}
