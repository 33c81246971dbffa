/* trainer compare: trains every cell of strategies and numbers of ranks, in rounds, and prints how they compare. */
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/program/log.h"
#include "base/program/subcommand.h"
#include "base/program/terminal.h"
#include "checkpoint/directory/training_state.h"
#include "dataset/dataset_reading.h"
#include "trainer/compare/cell_run.h"
#include "trainer/compare/comparison.h"
#include "trainer/compare/outcome.h"
#include "trainer/launch/mpirun_line.h"
#include "trainer/timing/processor_use.h"
#include "trainer/tool/command.h"
#include "trainer/train_options.h"
#include "trainer/training_data.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- compare plan ------------------------------------------------------------------------------------------------ */

/*
 * What `trainer compare` has to run: its cells, checked with the trainer's own command line before
 * anything starts, and then with the data, so that what is wrong is said once and at once.
 */

struct compare_wanted {
    const char *strategies, *ranks;
    const struct resource_info *hosts; /* NULL: this one alone */
    int64_t samples;                   /* of each cell; 0: as many steps as the training options say */
    int64_t evaluations;               /* checkpoints of a run, besides the first; 0: none */
    int64_t num_examples;              /* of each evaluation; 0: all */
    char *const *training;             /* (training_count) options, borrowed */
    size_t training_count;
};

struct compare_plan {
    struct cell *cells;    /* all of them */
    struct cell_job *jobs; /* (count) those that are possible; round is not set */
    size_t count;
    struct buffer left_out;                    /* "single with 2 workers", those that are not, with commas; may be "" */
    struct dataset_words words;                /* the same; borrowed */
    const char *model, *data, *data_directory; /* borrowed from the options */
};

enum { OPTIONS_MORE = 6 }; /* words: the program, --threads and --checkpoint-dir with their values, NULL */

/* 1: the workers of that strategy are threads. */
static int has_threads(const struct cell *c)
{
    const size_t n = strcspn(c->strategy, ":");

    for (size_t i = 0; strategy_kinds[i]; i++)
        if (strlen(strategy_kinds[i]->name) == n && !strncmp(strategy_kinds[i]->name, c->strategy, n))
            return strategy_kinds[i]->threads;
    return 0;
}

/* What the words of a cell's training say, as far as they can be checked, and the texts that it borrows. */
struct cell_options {
    struct train_options o;
    struct cell_words own;
    char threads[16];
};

/* The words point into their owners; the parser moves the pointers alone. On OK train_options_release() its o. */
static int parse_cell(struct cell_options *out, const struct compare_wanted *w, const struct cell *c, struct error *e)
{
    /* Each cell has a directory of checkpoints, which options that ask for one are checked with. */
    static char program[] = "trainer", option[] = "--threads", saving[] = "--checkpoint-dir", directory[] = "CELL";
    char **words = calloc(w->training_count + CELL_WORDS + OPTIONS_MORE, sizeof *words);
    int n = 0, rc = words ? cell_words(c, &out->own, e) : error_memory(e, NULL, "for a cell");

    if (rc == OK) {
        words[n++] = program;
        for (size_t i = 0; i < w->training_count; i++)
            words[n++] = w->training[i];
        for (size_t i = 0; i < out->own.count; i++)
            words[n++] = out->own.text + (out->own.words[i] - out->own.text);
        if (has_threads(c)) {
            snprintf(out->threads, sizeof out->threads, "%d", c->workers);
            words[n++] = option;
            words[n++] = out->threads;
        }
        words[n++] = saving;
        words[n++] = directory;
        rc = train_options_parse(&out->o, NULL, 0, n, words, e);
    }
    free(words);
    return rc < 0 ? error_prefix(e, "%s", c->name) : OK;
}

static int64_t steps_for(const struct train_options *o, int workers, int64_t samples)
{
    const int64_t step = o->sizes.global_batch     ? o->sizes.global_batch
                         : o->strategy.synchronous ? (int64_t)o->sizes.batch_size * workers
                                                   : o->sizes.batch_size;

    return (samples + step - 1) / step;
}

/* On how many hosts it is; and its servers: unless options say otherwise, with a list of hosts one on each. */
static int place_cell(struct cell_job *job, const struct compare_wanted *w, struct strategy_options *o, struct error *e)
{
    const struct strategy_servers *said = o->kind->servers ? o->kind->servers(o) : NULL;
    struct resource_info hosts = { .count = 1 };
    int rc = OK;

    if (w->hosts && !job->threads && (rc = resource_info_first(&hosts, w->hosts, job->cell->workers, e)) < 0)
        return error_prefix(e, "%s", job->cell->name);
    job->hosts = (int)hosts.count;
    job->each_host = w->hosts && said && !said->given && !said->per_host;
    job->servers = strategy_count_servers(o, job->hosts);
    resource_info_release(&hosts);
    return rc;
}

/* Plans a cell. 1: it is possible; 0: not with this number of workers. */
static int plan_cell(struct compare_plan *p, const struct compare_wanted *w, const struct cell *c, struct error *e)
{
    struct cell_job job = { .cell = c, .threads = has_threads(c) };
    struct cell_options all;
    struct train_options *const o = &all.o;
    int rc = parse_cell(&all, w, c, e);

    if (rc < 0)
        return rc;
    train_options_release(o); /* what is used below are numbers, and words of the command line */
    if (w->hosts && job.threads && c->workers > w->hosts->hosts[0].devices)
        return 0;
    if ((rc = place_cell(&job, w, &o->strategy, e)) < 0)
        return rc;
    if (o->strategy.kind->workers(&o->strategy, job.threads ? 1 : c->workers + job.servers, NULL) != c->workers)
        return 0;
    job.worker_threads = o->sizes.threads;
    job.max_steps = w->samples ? steps_for(o, c->workers, w->samples) : 0;
    if (!o->save_steps && !(o->save_seconds > 0) && w->evaluations)
        job.save_steps = ((w->samples ? job.max_steps : o->max_steps) + w->evaluations - 1) / w->evaluations;
    p->model = o->model_given;
    p->data = o->data;
    p->data_directory = o->data_directory;
    p->words = o->words;
    p->jobs[p->count++] = job;
    return 1;
}

/* ERR_ARG: a sentence for the user. On OK or not, compare_plan_release() it. */
static int compare_plan_make(struct compare_plan *out, const struct compare_wanted *w, struct error *e)
{
    const char *names[STRATEGY_KINDS + 1] = { NULL };
    size_t cells;
    int rc;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; strategy_kinds[i]; i++)
        names[i] = strategy_kinds[i]->name;
    if ((rc = cells_parse(&out->cells, &cells, w->strategies, w->ranks, names, e)) < 0)
        return rc;
    if (!(out->jobs = calloc(cells, sizeof *out->jobs)))
        return error_memory(e, NULL, "for %zu cells", cells);
    for (size_t i = 0; i < cells; i++) {
        const struct cell *c = &out->cells[i];

        if ((rc = plan_cell(out, w, c, e)) < 0)
            return rc;
        if (rc == 0)
            buffer_format(&out->left_out, "%s%s with %d worker%s", out->left_out.length ? ", " : "", c->strategy,
                          c->workers, c->workers == 1 ? "" : "s");
    }
    if (out->count == 0)
        return error_set(e, ERR_ARG, "nothing is possible of: %s", buffer_text(&out->left_out));
    return OK;
}

/* Opens what worker `worker` of a cell reads, unless *d is that already, as each worker reads everything. */
static int check_worker(struct dataset **d, struct train_options *o, int workers, int worker, struct error *e)
{
    struct batch_plan batches;
    int rc = training_data_batches(&batches, o, workers, worker, e);

    if (rc == OK && *d && o->shard == SHARD_FILES) {
        dataset_free(*d);
        *d = NULL;
    }
    if (rc == OK && !*d)
        rc = training_data_open(d, o, workers, worker, e);
    return rc == OK ? training_data_fills(*d, o, &batches, workers, e) : rc;
}

/* Of its workers the last one has the least. */
static int check_cell(struct dataset **d, struct train_options *o, const struct cell_job *j, struct error *e)
{
    const int workers = j->cell->workers;
    int rc = check_worker(d, o, workers, 0, e);

    if (rc == OK && workers > 1 && !j->threads && o->shard == SHARD_FILES) {
        const uint64_t first = (*d)->count;

        if ((rc = check_worker(d, o, workers, workers - 1, e)) == OK)
            rc = training_data_even(*d, o, workers - 1, first, e);
    }
    return rc;
}

/* Opens the data that the cells read, as their workers and the evaluator would on this host. ERR_ARG, whatever
 * is wrong: a sentence that names the cell. */
static int compare_plan_check_data(const struct compare_plan *p, const struct compare_wanted *w, struct error *e)
{
    struct dataset *d = NULL;
    int rc = OK;

    for (size_t i = 0; i < p->count && rc == OK; i++) {
        struct cell_options all;

        if ((rc = parse_cell(&all, w, p->jobs[i].cell, e)) < 0)
            break;
        if ((rc = check_cell(&d, &all.o, &p->jobs[i], e)) < 0)
            error_prefix(e, "%s", p->jobs[i].cell->name);
        else if (i == 0 && w->evaluations && (rc = training_data_check_test(&all.o, w->num_examples, e)) < 0)
            error_prefix(e, "the evaluator");
        train_options_release(&all.o);
    }
    dataset_free(d);
    return rc < 0 ? (e->code = ERR_ARG) : OK;
}

static void compare_plan_release(struct compare_plan *p)
{
    free(p->cells);
    free(p->jobs);
    buffer_release(&p->left_out);
    memset(p, 0, sizeof *p);
}

/* ---- compare ----------------------------------------------------------------------------------------------------- */

enum { SIGNALLED = 128, LEAST_ROUNDS = 3, OWN_MOST = 16 };

_Static_assert(2 * DATASET_READING_ROWS <= CELL_READING_MAX, "the evaluator gets all options of the data set");

struct compare {
    struct log log;
    const char *strategies, *ranks, *hosts_path, *output, *evaluate, *format;
    struct resource_info hosts; /* of hosts_path */
    int64_t rounds, samples, evaluations, num_examples;
    int dry_run;
    char counts[12 * RESOURCE_COUNTS_MOST]; /* --ranks, unless given */
    char **training; /* (training_count) the options that are not this command's, without its name */
    size_t training_count;
    struct compare_wanted wanted;
    struct compare_plan plan;
    struct results results;
    struct cell_setup setup;
    const char *reading[2 * DATASET_READING_ROWS];
    char program[4096], evaluator[4096];
    double began;
    size_t done, to_do;      /* runs */
    struct cell_job current; /* the run at work, with its directory of checkpoints */
    char checkpoints[2304];
    int asked; /* the signal that ended it; 0: none */
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

static const char *const own_names[] = { "strategies",   "ranks",  "rounds", "samples", "evaluate",     "evaluations",
                                         "num-examples", "output", "format", "dry-run", "resource-info" };
enum { OWN_NAMES = sizeof own_names / sizeof *own_names };
/* What each cell has its own value of, or what would come between. */
static const char *const refused[] = { "run-option", "checkpoint-dir", "log-dir",  "resume",  "json",
                                       "take-over",  "trace",          "restarts", "dry-run", "keep" };
/* The trainer's options that --help shows here, too. */
static const char *const shown[] = { "model",      "threads",      "data",         "data-dir",      "max-steps",
                                     "batch-size", "global-batch", "reproducible", "learning-rate", "seed" };

static int is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (name && !strcmp(name, names[i]))
            return 1;
    return 0;
}
#define IS_AMONG(name, names) is_among(name, names, sizeof(names) / sizeof *(names))

static size_t own_rows(struct option *rows, struct compare *c)
{
    const struct option table[] = {
        { OPTION_TEXT, .name = "strategies", .value = &c->strategies, .argument = "HOW[,HOW...]",
          .help = "Compare these: names of --run-option, each with options of its own after colons, as in "
                  "ps:async:staleness=2 for --run-option ps --async --staleness 2. Default: mpi,ring,ps,ps:async." },
        { OPTION_TEXT, .name = "ranks", .value = &c->ranks, .argument = "N[,N...]",
          .help = "Train each with N workers: ranks of a job of its own, threads with mirrored. Parameter servers are "
                  "more ranks beside them. Default: 1,2; with --resource-info 1 and the workers of the first 1, 2, "
                  "4, ... and of all hosts." },
        { OPTION_TEXT, .name = "resource-info", .value = &c->hosts_path, .argument = "FILE",
          .help = "Train on the hosts listed in FILE, as the trainer's option of that name does: each cell on as many "
                  "of the first ones as have devices for its workers, with a server on each of them, where there are "
                  "servers. Run it on the first host, where the threads of mirrored are, too." },
        { OPTION_INT, .name = "rounds", .value = &c->rounds, .argument = "N", .minimum = 1, .maximum = 1000,
          .help = "Train each cell N times, all cells in each round, and print medians and their spread. Default: 3." },
        { OPTION_INT, .name = "samples", .value = &c->samples, .argument = "N", .minimum = 1, .maximum = 1e15,
          .help = "Train each cell on N samples, instead of --max-steps updates each." },
        { OPTION_CHOICE, .name = "evaluate", .value = &c->evaluate, .argument = "WHEN", .choices = "after|beside|never",
          .help = "Evaluate checkpoints after each training (default), beside it, where they share its cores, or "
                  "never." },
        { OPTION_INT, .name = "evaluations", .value = &c->evaluations, .argument = "N", .minimum = 1, .maximum = 10000,
          .help = "Save and evaluate N checkpoints of each training, besides the first, unless "
                  "--save-checkpoint-steps or -seconds is given. Default: 10." },
        { OPTION_INT, .name = "num-examples", .value = &c->num_examples, .argument = "N", .minimum = 1, .maximum = 1e9,
          .help = "Evaluate on the first N test images. Default: all." },
        { OPTION_TEXT, .name = "output", .value = &c->output, .argument = "DIR",
          .help = "Write everything to DIR: curves, checkpoints and logs to DIR/round-N/CELL, results to "
                  "results.jsonl, tables to comparison.txt, .csv and .json. Without other options, print what is "
                  "in DIR." },
        { OPTION_CHOICE, .name = "format", .value = &c->format, .argument = "NAME", .choices = "text|csv|json",
          .help = "Print tables for people (text, default), CSV with a line for each cell, or one JSON document." },
        { OPTION_FLAG, .name = "dry-run", .value = &c->dry_run, .help = "Print the command of each cell, and end." },
        { OPTION_HEADING, .help = "What to train, as for trainer itself, whose other options can be given, too:" },
    };

    memcpy(rows, table, sizeof table);
    return sizeof table / sizeof *table;
}

/* Sets rows to our own options, then those of trainings; *visible: how many --help shows. */
static size_t all_rows(struct option *rows, struct compare *c, const struct option *theirs, size_t count,
                       size_t *visible)
{
    size_t n = own_rows(rows, c);

    for (size_t i = 0; i < count; i++)
        if (IS_AMONG(theirs[i].name, shown))
            rows[n++] = theirs[i];
    *visible = n;
    for (size_t i = 0; i < count; i++)
        if (theirs[i].kind != OPTION_HEADING && !IS_AMONG(theirs[i].name, shown) &&
            !IS_AMONG(theirs[i].name, own_names))
            rows[n++] = theirs[i];
    return n;
}

static int check_refused(const struct options *o, struct error *e)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (options_given(o, refused[i]) && !IS_AMONG(refused[i], own_names))
            return error_set(e, ERR_ARG, "--%s: each cell has its own; leave it out%s", refused[i],
                             !strcmp(refused[i], "run-option") ? ", and use --strategies" : "");
    return OK;
}

/* 1: the command line asks for a help text. */
static int asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h") || !strcmp(argv[i], "--describe"))
            return 1;
    return 0;
}

static int parse(struct compare *c, int argc, char **argv, struct error *e)
{
    size_t count = 0, visible;
    void *values = NULL;
    struct option *theirs = train_options_rows(&count, &values);
    struct option *rows = theirs ? calloc(count + OWN_MOST + sizeof shown / sizeof *shown, sizeof *rows) : NULL;
    struct options o = {
        .program = "trainer compare",
        .usage = "[--strategies HOW,...] [--ranks N,...] --output DIR --model NAME --data NAME [OPTION...]",
        .summary =
            "Train the same model with several strategies on several numbers of ranks, each cell as a job of its "
            "own, and compare speed, efficiency, bytes, staleness, precision at equal steps and at equal time, "
            "and the hash of the weights. All cells are trained in turn, in rounds that each begin with another "
            "cell, so that a noisy machine hits all alike. The first interval of each log is left out. Started "
            "again with the same options, it continues where it was ended. Exit status: 0 all cells were "
            "trained, 1 some failed, 2 wrong usage, 130 Ctrl-C ended it.",
        .examples = "  trainer compare --model lenet --data fashion-mnist --max-steps 500 --output cmp\n"
                    "  trainer compare --strategies mpi,ps,ps:async --ranks 4 --rounds 1 --evaluate beside "
                    "--model resnet32 --data cifar10 --data-dir data --max-steps 1000 --output cifar\n"
                    "  trainer compare --output cmp --format csv\n"
                    "  tensorboard --logdir cmp/round-1\n",
        .table = rows,
        .most = 0,
    };
    int positional = 0, rc = OPTIONS_RUN;

    if (!rows)
        rc = error_memory(e, NULL, "for the options");
    if (rc == OPTIONS_RUN) {
        o.count = all_rows(rows, c, theirs, count, &visible);
        if (asks_for_help(argc, argv))
            o.count = visible;
        rc = options_parse(&o, argc, argv, &positional, e);
    }
    if (rc == OPTIONS_RUN && positional > 0)
        rc = error_set(e, ERR_ARG, "'%s' is not an option", argv[1]);
    if (rc == OPTIONS_RUN && !c->output)
        rc = error_set(e, ERR_ARG, "--output is missing: where to?");
    if (rc == OPTIONS_RUN)
        rc = check_refused(&o, e);
    if (rc == OPTIONS_RUN) {
        c->training_count = (size_t)options_remove(&o, argc, argv, own_names, OWN_NAMES) - 1;
        c->training = argv + 1;
    }
    free(rows);
    free(theirs);
    free(values);
    return rc;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Finds this program, and the evaluator beside it, or anywhere in PATH. */
static int find_programs(struct compare *c, struct error *e)
{
    const ssize_t n = readlink("/proc/self/exe", c->program, sizeof c->program - 1);

    if (n <= 0)
        return error_system(e, "cannot find this program");
    c->program[n] = '\0';
    snprintf(c->evaluator, sizeof c->evaluator, "%.*sevaluator", (int)(file_base_name(c->program) - c->program),
             c->program);
    if (access(c->evaluator, X_OK) == 0 || !strcmp(c->evaluate, "never") ||
        file_find_program("evaluator", c->evaluator))
        return OK;
    return error_set(e, ERR_ARG, "no %s, and no evaluator in PATH; --evaluate never trains without", c->evaluator);
}

/* Reads --resource-info, and how many workers its hosts are for. */
static int find_hosts(struct compare *c, struct error *e)
{
    int counts[RESOURCE_COUNTS_MOST], n, rc;
    size_t used = 0;

    if (!c->hosts_path)
        return OK;
    if ((rc = launch_hosts(&c->hosts, c->hosts_path, e)) < 0)
        return rc;
    n = resource_info_counts(&c->hosts, counts);
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(c->counts + used, sizeof c->counts - used, "%s%d", i ? "," : "", counts[i]);
    return OK;
}

static int set_up(struct compare *c, struct error *e)
{
    int rc;

    if ((rc = launch_may("strategies", e)) < 0 || (rc = find_programs(c, e)) < 0 || (rc = find_hosts(c, e)) < 0)
        return rc;
    c->wanted = (struct compare_wanted){
        .strategies = c->strategies,
        .ranks = c->ranks ? c->ranks : c->counts,
        .hosts = c->hosts_path ? &c->hosts : NULL,
        .samples = c->samples,
        .evaluations = strcmp(c->evaluate, "never") ? c->evaluations : 0,
        .num_examples = c->num_examples,
        .training = c->training,
        .training_count = c->training_count,
    };
    if ((rc = compare_plan_make(&c->plan, &c->wanted, e)) < 0)
        return rc;
    c->setup = (struct cell_setup){
        .program = c->program,
        .evaluator = c->evaluator,
        .directory = c->output,
        .hosts = c->wanted.hosts,
        .mpirun = launch_mpirun(),
        .training = c->training,
        .training_count = c->training_count,
        .model = c->plan.model,
        .data = c->plan.data,
        .data_directory = c->plan.data_directory,
        .reading = c->reading,
        .reading_count = dataset_reading_line(&c->plan.words, c->reading),
        .evaluate = !strcmp(c->evaluate, "never")    ? EVALUATE_NOT
                    : !strcmp(c->evaluate, "beside") ? EVALUATE_BESIDE
                                                     : EVALUATE_AFTER,
        .num_examples = c->num_examples,
    };
    return OK;
}

/* What all runs of a directory must have in common, as text. */
static int compare_training(struct compare *c, char *out, size_t size, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    const char **words = calloc(c->training_count + 1, sizeof *words);
    int rc = OK;

    if (!words)
        return error_memory(e, NULL, "for the options");
    for (size_t i = 0; i < c->training_count; i++)
        words[i] = c->training[i];
    mpirun_line_quoted(&text, words);
    free(words);
    if (c->samples)
        buffer_format(&text, " --samples %" PRId64, c->samples);
    for (size_t i = 0; i < c->hosts.count; i++)
        buffer_format(&text, "%s%s:%d", i ? "," : " on ", c->hosts.hosts[i].name, c->hosts.hosts[i].devices);
    buffer_format(&text, " --evaluate %s", c->evaluate);
    if (strcmp(c->evaluate, "never") != 0)
        buffer_format(&text, " --evaluations %" PRId64, c->evaluations);
    if (c->num_examples)
        buffer_format(&text, " --num-examples %" PRId64, c->num_examples);
    if (!buffer_ok(&text) || text.length >= size)
        rc = error_set(e, ERR_ARG, "the options are too long");
    else
        memcpy(out, text.data, text.length + 1);
    buffer_release(&text);
    return rc;
}

/* Redraws the line about the run at work. */
static void look(void *context)
{
    struct compare *c = context;
    struct training_state state;
    double part = 0;

    if (training_state_read(c->checkpoints, &state, NULL) == 1 && state.max_steps > 0)
        part = (double)state.global_step / (double)state.max_steps;
    else
        state.global_step = 0;
    if (c->log.terminal)
        log_progress_work(&c->log, c->began, ((double)c->done + part) / (double)c->to_do, c->current.cell->name,
                          "%zu runs, round %d of %" PRId64 ", step %" PRId64, c->to_do, c->current.round, c->rounds,
                          state.global_step);
}

static void say_outcome(struct compare *c, const struct outcome *o, const char *directory)
{
    char speed[HUMAN_TEXT_MAX], precision[48] = "", busy[80] = "";

    log_progress_end(&c->log);
    if (o->status != 0) {
        log_line(&c->log, "round %" PRId64 ", %s: failed: %s; its log is in %s", o->round, o->cell, o->reason,
                 directory);
        return;
    }
    if (o->evaluation_count)
        snprintf(precision, sizeof precision, ", precision %.4f", o->evaluations[o->evaluation_count - 1].precision);
    if (o->others > PROCESSOR_USE_BUSY)
        snprintf(busy, sizeof busy, "; other programs used %.0f %% of the processors", 100 * o->others);
    log_line(&c->log, "round %" PRId64 ", %s: %s steps/s%s (%zu of %zu)%s", o->round, o->cell,
             human_number(o->steps_per_second, speed), precision, c->done, c->to_do, busy);
}

static int run_cell(struct compare *c, const struct cell_job *j, struct error *e)
{
    struct cell_place place;
    struct outcome o;
    int rc = cell_place(&place, &c->setup, j, e);

    if (rc < 0)
        return rc;
    c->current = *j;
    snprintf(c->checkpoints, sizeof c->checkpoints, "%s", place.checkpoints);
    rc = cell_run(&c->setup, j, look, c, &o, &c->asked, e);
    if (rc == OK && !c->asked) {
        c->done++;
        say_outcome(c, &o, place.directory);
        rc = results_add(&c->results, &o, e);
    }
    outcome_release(&o);
    return rc;
}

static void count_runs(struct compare *c)
{
    for (int round = 1; round <= (int)c->rounds; round++)
        for (size_t i = 0; i < c->plan.count; i++)
            c->to_do += !results_has(&c->results, c->plan.jobs[i].cell->name, round);
}

static int run_rounds(struct compare *c, struct error *e)
{
    int rc = OK;

    c->began = clock_monotonic();
    for (int round = 1; round <= (int)c->rounds; round++)
        for (size_t i = 0; i < c->plan.count && rc == OK && !c->asked; i++) {
            struct cell_job j = c->plan.jobs[cell_turn(c->plan.count, (int)c->rounds, round, i)];

            j.round = round;
            if (!results_has(&c->results, j.cell->name, round))
                rc = run_cell(c, &j, e);
        }
    log_progress_end(&c->log);
    if (rc == OK && c->asked)
        log_line(&c->log, "ended by a signal after %zu of %zu runs; the same command goes on with the others", c->done,
                 c->to_do);
    return rc;
}

static void say_beginning(struct compare *c)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t crowded = 0;

    if (c->plan.left_out.length)
        log_line(&c->log, "left out, because it is impossible: %s", buffer_text(&c->plan.left_out));
    for (size_t i = 0; i < c->plan.count; i++)
        crowded += cell_ranks(&c->plan.jobs[i]) > c->plan.jobs[i].hosts * cores;
    if (crowded)
        log_line(&c->log,
                 "%zu of %zu cells have more ranks than %s cores (%ld%s): their speed says little, and is "
                 "marked with *",
                 crowded, c->plan.count, c->hosts.count > 1 ? "their hosts have" : "this machine has", cores,
                 c->hosts.count > 1 ? " each" : "");
    if (c->rounds < LEAST_ROUNDS)
        log_line(&c->log, "with less than %d rounds the spread is not known", LEAST_ROUNDS);
}

static int print_lines(struct compare *c, struct error *e)
{
    struct buffer out = BUFFER_EMPTY;
    int rc = OK;

    for (size_t i = 0; i < c->plan.count && rc == OK; i++) {
        struct cell_job j = c->plan.jobs[i];
        struct cell_place place;
        const char **line = NULL;

        j.round = 1;
        if ((rc = cell_place(&place, &c->setup, &j, e)) == OK &&
            (rc = cell_line(&line, &c->setup, &j, &place, e)) == OK) {
            mpirun_line_quoted(&out, line);
            buffer_append_byte(&out, '\n');
        }
        free(line);
    }
    fwrite(buffer_text(&out), 1, out.length, stdout);
    buffer_release(&out);
    return rc;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static int write_file(const struct compare *c, const char *name, const struct buffer *text, struct error *e)
{
    char path[4096];
    int rc = file_join(path, sizeof path, c->output, name, e);

    return rc < 0 ? rc : file_replace(NULL, path, text->data, text->length, e);
}

static void print_text(const struct comparison *all, const struct text_style *style, const char *training,
                       struct buffer *out)
{
    comparison_text_note(out, style, "%s", training);
    buffer_append_byte(out, '\n');
    comparison_text(all, style, out);
}

/* Writes the tables to files, and prints them in the form that is asked for. */
static int tell(struct compare *c, struct error *e)
{
    const struct text_style page = { 100, 1 };
    const struct text_style terminal = { terminal_columns(STDOUT_FILENO), !terminal_utf8() };
    struct buffer text = BUFFER_EMPTY, csv = BUFFER_EMPTY, json = BUFFER_EMPTY, shown_text = BUFFER_EMPTY;
    struct comparison all;
    const struct buffer *printed;
    int rc = comparison_make(&all, c->results.items, c->results.count, e);

    if (rc < 0)
        return rc;
    print_text(&all, &page, c->results.training, &text);
    print_text(&all, &terminal, c->results.training, &shown_text);
    comparison_csv(&all, &csv);
    comparison_json(&all, c->results.training, &json);
    printed = !strcmp(c->format, "csv") ? &csv : !strcmp(c->format, "json") ? &json : &shown_text;
    if (!buffer_ok(&text) || !buffer_ok(&csv) || !buffer_ok(&json) || !buffer_ok(&shown_text))
        rc = error_memory(e, NULL, "for the tables");
    if (rc == OK && (rc = write_file(c, "comparison.txt", &text, e)) == OK &&
        (rc = write_file(c, "comparison.csv", &csv, e)) == OK)
        rc = write_file(c, "comparison.json", &json, e);
    fwrite(buffer_text(printed), 1, printed->length, stdout);
    fflush(stdout);
    if (rc == OK)
        for (size_t i = 0; i < all.count; i++)
            rc = all.rows[i].failed ? 1 : rc;
    buffer_release(&text);
    buffer_release(&csv);
    buffer_release(&json);
    buffer_release(&shown_text);
    comparison_release(&all);
    return rc;
}

static int work(struct compare *c, struct error *e)
{
    char training[RESULTS_TRAINING];
    int rc = results_open(&c->results, c->output, e);

    if (rc < 0)
        return rc;
    if (c->training_count == 0 && c->results.count)
        return tell(c, e);
    if (c->training_count == 0)
        return error_set(e, ERR_ARG, "%s has no results to print; give --model and --data to train", c->output);
    if ((rc = set_up(c, e)) < 0 || (rc = compare_training(c, training, sizeof training, e)) < 0)
        return rc;
    if (c->dry_run)
        return print_lines(c, e);
    if (c->results.count && strcmp(c->results.training, training) != 0)
        return error_set(e, ERR_ARG, "%s has a comparison with other options: %.200s; use another --output", c->output,
                         c->results.training);
    count_runs(c);
    if (c->to_do && (rc = compare_plan_check_data(&c->plan, &c->wanted, e)) < 0)
        return rc;
    memcpy(c->results.training, training, sizeof training);
    if ((rc = results_begin(&c->results, c->output, e)) < 0)
        return rc;
    say_beginning(c);
    if ((rc = run_rounds(c, e)) < 0)
        return rc;
    return c->results.count ? tell(c, e) : OK;
}

int command_compare(int argc, char **argv)
{
    struct compare c = {
        .strategies = "mpi,ring,ps,ps:async",
        .counts = "1,2",
        .evaluate = "after",
        .format = "text",
        .rounds = LEAST_ROUNDS,
        .evaluations = 10,
    };
    struct error e = { 0 };
    int rc;

    log_init(&c.log, "trainer compare", STDERR_FILENO);
    if ((rc = parse(&c, argc, argv, &e)) == OPTIONS_RUN)
        rc = work(&c, &e);
    else if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc < 0)
        log_line(&c.log, "%s", e.message);
    compare_plan_release(&c.plan);
    resource_info_release(&c.hosts);
    results_release(&c.results);
    if (c.asked)
        return SIGNALLED + c.asked;
    return rc == OK ? EXIT_DONE : rc == ERR_ARG || rc == ERR_CORRUPT ? EXIT_USAGE : EXIT_NO;
}
