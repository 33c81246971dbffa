#include "trainer/train_options.h"

#include "base/number.h"
#include "base/program/options.h"
#include "trainer/collective/exchange.h"

#include <string.h>

static const char *const run_options[] = { "single", "mpi", "ps" };
static const char *const shards[] = { "records", "files" };
static const char *const transports[] = { "auto", "shared", "mpi" };

static const char examples[] =
    "  trainer --model lenet --data fashion-mnist --checkpoint-dir ckpt --max-steps 1000\n"
    "  mpirun -n 4 trainer --run-option mpi --model resnet32 --data cifar10 --data-dir data --batch-size 32 "
    "--checkpoint-dir ckpt --save-checkpoint-steps 100 --log-dir logs/mpi/train --max-steps 3500\n";

struct command { /* as given; what is not given stays at these defaults */
    const char *model, *data, *data_directory, *checkpoint_directory, *log_directory, *run_option, *optimizer, *shard,
        *resume, *transport;
    int64_t batch_size, save_steps, keep, log_every, max_steps, seed, servers, bucket_bytes;
    double save_seconds, learning_rate, momentum, deadline;
    int sync, async, augment, moving_average, quiet, json, take_over;
    char models[256], data_sets[256]; /* to choose from */
};

static const struct command defaults = {
    .run_option = "single", .shard = "records", .resume = "auto", .transport = "auto", .servers = 1, .sync = 1,
    .augment = 1, .max_steps = 1000, .keep = 5, .log_every = 10, .seed = 1, .deadline = TRAIN_DEADLINE,
    /* Below Open MPI's eager limit of TCP, 65536 with its header. Larger messages are announced first, and go when the
     * receiver has answered: at a latency of 5 ms a step of lenet, ps, took 26 ms instead of 10. */
    .bucket_bytes = 61440,
};

enum { ROWS = 35 };

static size_t fill_table(struct option *t, struct command *c)
{
    const struct option rows[] = {
        { OPTION_HEADING, .help = "What to train, and on which ranks:" },
        { OPTION_CHOICE, .name = "model", .value = &c->model, .argument = "NAME",
          .help = "Train this model. Required.",
          .choices = options_choices(model_names(), c->models, sizeof c->models) },
        { OPTION_CHOICE, .name = "data", .value = &c->data, .argument = "NAME",
          .help = "Train on this data set. Required.",
          .choices = options_choices(dataset_names(), c->data_sets, sizeof c->data_sets) },
        { OPTION_TEXT, .name = "data-dir", .value = &c->data_directory, .argument = "DIR",
          .help = "Read the data set from DIR. Default: where Debian's package installs it, if there is one." },
        { OPTION_CHOICE, .name = "run-option", .value = &c->run_option, .argument = "HOW", .choices = "single|mpi|ps",
          .help = "Train on one rank (single, the default); on ranks that all hold the weights and all-reduce the "
                  "gradients (mpi); or on workers, with the last ranks as parameter servers (ps)." },
        { OPTION_INT, .name = "servers", .value = &c->servers, .argument = "K", .minimum = 1, .maximum = 1000,
          .help = "Use the last K ranks as parameter servers, with --run-option ps. Default: 1." },
        { OPTION_FLAG, .name = "sync", .value = &c->sync,
          .help = "Make one update per step from the gradients of all workers, with --run-option ps (default)." },
        { OPTION_FLAG, .name = "async", .value = &c->async,
          .help = "Make an update from the gradients of each worker as they arrive, with --run-option ps, and report "
                  "the staleness." },
        { OPTION_CHOICE, .name = "shard", .value = &c->shard, .argument = "KIND", .choices = "records|files",
          .help = "Give each worker its part of all records in one shuffled order (records, the default), or whole "
                  "files of its own (files)." },
        { OPTION_HEADING, .help = "How to train:" },
        { OPTION_INT, .name = "max-steps", .value = &c->max_steps, .argument = "N", .minimum = 1, .maximum = 1e15,
          .help = "Finish the training at global step N. Default: 1000." },
        { OPTION_INT, .name = "batch-size", .value = &c->batch_size, .argument = "N", .minimum = 1,
          .maximum = 1 << 20, .help = "Train each worker on N images per step. Default: the model's." },
        { OPTION_CHOICE, .name = "optimizer", .value = &c->optimizer, .argument = "NAME",
          .choices = "sgd|momentum|adam", .help = "Use this optimizer. Default: the model's." },
        { OPTION_DOUBLE, .name = "learning-rate", .value = &c->learning_rate, .argument = "X", .minimum = 1e-12,
          .maximum = 1e6, .help = "Start the model's schedule at learning rate X. Default: the model's." },
        { OPTION_DOUBLE, .name = "momentum", .value = &c->momentum, .argument = "X", .minimum = 0, .maximum = 1,
          .help = "Use momentum X. Default: the model's, or 0.9." },
        { OPTION_FLAG, .name = "moving-average", .value = &c->moving_average,
          .help = "Keep moving averages of the variables. Default: as the model's reference does." },
        { OPTION_FLAG, .name = "augment", .value = &c->augment,
          .help = "Augment images by random crops, flips and so on, as the model's reference does (default)." },
        { OPTION_INT, .name = "seed", .value = &c->seed, .argument = "N", .minimum = 0, .maximum = 9e15,
          .help = "Draw the initial values, the order of the data and the augmentation from seed N. Default: 1, or the "
                  "checkpoint's on resume." },
        { OPTION_HEADING, .help = "Checkpoints and curves:" },
        { OPTION_TEXT, .name = "checkpoint-dir", .value = &c->checkpoint_directory, .argument = "CKPT",
          .help = "Save checkpoints (model.ckpt-N), their list (checkpoint) and training.json in CKPT. Default: save "
                  "nothing." },
        { OPTION_INT, .name = "save-checkpoint-steps", .value = &c->save_steps, .argument = "N", .minimum = 1,
          .maximum = 1e15, .help = "Save a checkpoint every N steps, besides those at the start and at the end." },
        { OPTION_DOUBLE, .name = "save-checkpoint-seconds", .value = &c->save_seconds, .argument = "SECONDS",
          .minimum = 0.001, .maximum = 1e9, .help = "Save a checkpoint every SECONDS instead of every N steps." },
        { OPTION_INT, .name = "keep", .value = &c->keep, .argument = "N", .minimum = 0, .maximum = 1e9,
          .help = "Keep only the newest N checkpoints; 0 keeps all. Default: 5." },
        { OPTION_TEXT, .name = "resume", .value = &c->resume, .argument = "auto|never|STEP",
          .help = "Resume from the newest whole checkpoint and name damaged ones, or start anew if there are none "
                  "(auto, the default); start anew and replace checkpoints of the same steps (never); or resume from "
                  "the checkpoint of STEP." },
        { OPTION_FLAG, .name = "take-over", .value = &c->take_over,
          .help = "Train in CKPT although training.json was renewed by a trainer on another host within the last "
                  "minute." },
        { OPTION_TEXT, .name = "log-dir", .value = &c->log_directory, .argument = "DIR",
          .help = "Write event files for TensorBoard to DIR, for example LOGDIR/<name>/train. Default: write none." },
        { OPTION_INT, .name = "log-every", .value = &c->log_every, .argument = "N", .minimum = 1, .maximum = 1e15,
          .help = "Log a line, and write points, every N steps. Default: 10." },
        { OPTION_FLAG, .letter = 'q', .name = "quiet", .value = &c->quiet, .help = "Log only errors." },
        { OPTION_FLAG, .name = "json", .value = &c->json,
          .help = "Print one JSON object on standard output at the end: steps, seconds, rates, bytes, waiting, "
                  "staleness." },
        { OPTION_HEADING, .help = "How ranks communicate:" },
        { OPTION_DOUBLE, .name = "deadline", .value = &c->deadline, .argument = "SECONDS", .minimum = 0.1,
          .maximum = 1e9, .help = "End all ranks when one has waited SECONDS for another, or, with --async, when a "
                                  "server has not heard from a worker for SECONDS. Default: 60." },
        { OPTION_CHOICE, .name = "transport", .value = &c->transport, .argument = "HOW", .choices = "auto|shared|mpi",
          .help = "Send gradients, with --run-option mpi, through shared memory (shared) or in MPI messages (mpi). "
                  "Default: auto, which is shared if all ranks are on one host." },
        { OPTION_INT, .name = "bucket-bytes", .value = &c->bucket_bytes, .argument = "N", .minimum = 64,
          .maximum = 1 << 30, .help = "Exchange gradients in pieces of N bytes. Default: 61440." },
    };

    _Static_assert(sizeof rows / sizeof *rows <= ROWS, "the table has room");
    memcpy(t, rows, sizeof rows);
    return sizeof rows / sizeof *rows;
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
    if (!c->model || !c->data)
        return error_set(e, ERR_ARG, "--%s is missing; use one of %s", c->model ? "data" : "model",
                         c->model ? c->data_sets : c->models);
    if (c->save_steps && c->save_seconds > 0)
        return error_set(e, ERR_ARG, "--save-checkpoint-steps and --save-checkpoint-seconds are both given; use one");
    if ((c->save_steps || c->save_seconds > 0) && !c->checkpoint_directory)
        return error_set(e, ERR_ARG, "--save-checkpoint-%s needs --checkpoint-dir",
                         c->save_steps ? "steps" : "seconds");
    if (c->async && strcmp(c->run_option, "ps") != 0)
        return error_set(e, ERR_ARG, "--async needs --run-option ps, not %s", c->run_option);
    return OK;
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

static void optimizer_of(const struct command *c, const struct options *given, struct train_options *o)
{
    const struct model *m = o->model;
    const char *name = c->optimizer ? c->optimizer : m->optimizer;

    o->optimizer.kind = (enum optimizer_kind)index_of(name, optimizer_kind_names, OPTIMIZER_KINDS);
    o->optimizer.learning_rate = c->learning_rate > 0 ? c->learning_rate : m->learning_rate;
    o->optimizer.momentum = options_given(given, "momentum") ? c->momentum : m->momentum > 0 ? m->momentum : 0.9;
    o->optimizer.moving_average = m->moving_average;
    if (options_given(given, "moving-average"))
        o->optimizer.moving_average = !c->moving_average ? 0 : m->moving_average > 0 ? m->moving_average : 0.9999;
}

static int translate(const struct command *c, const struct options *given, struct train_options *o, struct error *e)
{
    memset(o, 0, sizeof *o);
    o->model = model_find(c->model);
    o->data = c->data;
    o->data_directory = c->data_directory;
    o->checkpoint_directory = c->checkpoint_directory;
    o->log_directory = c->log_directory;
    o->run_option = (enum run_option)index_of(c->run_option, run_options, 3);
    o->transport = (enum transport_choice)index_of(c->transport, transports, 3);
    o->shard = index_of(c->shard, shards, 2) ? SHARD_FILES : SHARD_RECORDS;
    o->servers = o->run_option == RUN_PS ? (int)c->servers : 0;
    o->asynchronous = c->async || !c->sync;
    o->augment = c->augment;
    o->quiet = c->quiet;
    o->json = c->json;
    o->take_over = c->take_over;
    o->batch_size = c->batch_size ? (int)c->batch_size : o->model->batch_size;
    o->max_steps = c->max_steps;
    o->log_every = c->log_every;
    o->save_steps = c->save_steps;
    o->save_seconds = c->save_seconds;
    o->keep = (size_t)c->keep;
    o->bucket_bytes = (size_t)c->bucket_bytes;
    o->seed = (uint64_t)c->seed;
    o->seed_given = options_given(given, "seed");
    o->deadline = c->deadline;
    optimizer_of(c, given, o);
    return resume_of(c->resume, o, e);
}

static struct options describe(struct command *c, struct option *table, const struct subcommand *commands, size_t count)
{
    return (struct options){
        .program = "trainer", .usage = "--model NAME --data NAME [OPTION...]",
        .summary = "Train a model, and write TensorFlow checkpoints and TensorBoard event files. Start the trainer "
                   "with mpirun to train on several ranks.",
        .examples = examples, .table = table, .count = fill_table(table, c),
        .commands = commands, .command_count = count,
    };
}

int train_options_command(const struct subcommand *commands, size_t count, int argc, char **argv, int *status)
{
    static const char *const asking[] = { "--help", "-h", "--version", "-V", "--describe" };
    struct command c = defaults;
    struct option table[ROWS];
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
    struct option table[ROWS];
    const struct options o = describe(&c, table, commands, count);
    int positional, rc = options_parse(&o, argc, argv, &positional, e);

    if (rc != OPTIONS_RUN)
        return rc;
    if (positional > 0)
        return subcommand_unknown(&o, argv[1], e);
    if ((rc = train_options_check(&c, e)) < 0 || (rc = translate(&c, &o, out, e)) < 0)
        return rc;
    return OPTIONS_RUN;
}

const char *run_option_name(enum run_option r)
{
    return run_options[r];
}

const char *strategy_name(const struct train_options *o)
{
    return o->asynchronous ? "ps --async" : run_options[o->run_option];
}

const char *shard_name(enum shard_kind s)
{
    return s == SHARD_FILES ? shards[1] : shards[0];
}

uint64_t train_options_fingerprint(const struct train_options *o)
{
    double numbers[] = { o->optimizer.learning_rate, o->optimizer.momentum, o->optimizer.moving_average,
                         (double)o->optimizer.kind, (double)o->batch_size, (double)o->max_steps, (double)o->seed,
                         (double)o->shard, (double)o->augment, (double)o->asynchronous };
    uint64_t h = exchange_hash(o->model->name, strlen(o->model->name), EXCHANGE_HASH_SEED);

    h = exchange_hash(o->data, strlen(o->data), h);
    return exchange_hash(numbers, sizeof numbers, h);
}
