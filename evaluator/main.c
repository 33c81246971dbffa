/*
 * evaluator - evaluates every checkpoint of a running training once, and writes curves for TensorBoard.
 */
#include "base/file.h"
#include "base/program/options.h"
#include "base/program/subcommand.h"
#include "dataset/dataset.h"
#include "evaluator/evaluation_loop.h"
#include "evaluator/score/builtin_runner.h"
#include "evaluator/score/command_runner.h"
#include "evaluator/score/metrics/metric.h"
#include "evaluator/score/thread_runner.h"
#include "evaluator/tool/command.h"
#include "evaluator/watch_log.h"
#include "model/model.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* as given on the command line */
struct command {
    const char *checkpoint_directory, *eval_directory, *model, *data, *data_directory;
    unsigned metric_bits; /* of metrics */
    int64_t detail_every, patience, keep_best;
    int64_t batch_size, threads, num_examples, every, from, until_step, max_evaluations, pid;
    double poll, quiet, idle_timeout, min_interval;
    double best_delta, exec_timeout;
    int64_t retries, jobs;
    const char *exec, *pattern, *step_from;
    struct option_list ready;
    int64_t step_scale, step_offset;
    double pin_limit, hook_timeout;
    const char *on_best, *on_failure, *on_end;
    int pin;
    const char *done_file, *tags, *wall_time, *metrics, *best_metric, *best_mode;
    int once, latest_only, forever, wait_for_restart, strict, retry_failed, json, moving_averages, inotify;
    int tutorial_denominator, take_over;
    struct option_list watch;
    const char *watch_file, *watch_tree, *eval_root, *prom, *log_format, *log_file;
    char models[256], data_sets[256]; /* to choose from */
};

static const char examples[] =
    "  evaluator --checkpoint-dir ckpt --eval-dir logs/run/eval --model resnet32 --data cifar10 --data-dir data\n"
    "  evaluator --checkpoint-dir ckpt --eval-dir eval --model lenet --data fashion-mnist --once --json\n"
    "  evaluator --checkpoint-dir ckpt --eval-dir eval --pattern 'model_{step}.pt' --exec 'python3 evaluate.py "
    "{checkpoint}'\n"
    "  evaluator --watch mpi=ckpt/mpi --watch ps=ckpt/ps --eval-root runs --model lenet --data fashion-mnist\n"
    "  evaluator status runs\n";

static const struct option table_template[] = {
    { OPTION_HEADING,
      .help = "Directories: --checkpoint-dir and --eval-dir, or --eval-root with one of the --watch options:" },
    { OPTION_TEXT, .name = "checkpoint-dir", .argument = "DIR",
      .help = "Watch DIR for checkpoints. DIR need not exist yet." },
    { OPTION_TEXT, .name = "eval-dir", .argument = "DIR",
      .help = "Write the ledger evaluations.jsonl and the event files to DIR, which is created if it is missing." },
    { OPTION_LIST, .name = "watch", .argument = "NAME=DIR",
      .help = "Watch DIR, and write its ledger and curves to ROOT/NAME/eval. May be given several times; the "
              "directories take turns, with one model and data set in memory." },
    { OPTION_TEXT, .name = "watch-file", .argument = "FILE",
      .help = "Watch the directories that FILE lists, one NAME=DIR per line. FILE is read again on SIGHUP; directories "
              "that it no longer lists are no longer watched." },
    { OPTION_TEXT, .name = "watch-tree", .argument = "DIR",
      .help = "Watch every directory below DIR that has checkpoints, now or later, under the name of its path, until "
              "its training has finished. Ends only on a signal, or with --once." },
    { OPTION_TEXT, .name = "eval-root", .argument = "ROOT",
      .help = "Put the eval directories of --watch, --watch-file and --watch-tree below ROOT." },
    { OPTION_HEADING,
      .help = "Evaluate with a built-in model; --model and --data are required unless --exec is given:" },
    { OPTION_CHOICE, .name = "model", .argument = "NAME", .help = "Evaluate checkpoints of this model." },
    { OPTION_CHOICE, .name = "data", .argument = "NAME", .help = "Evaluate on the test images of this data set." },
    { OPTION_TEXT, .name = "data-dir", .argument = "DIR",
      .help = "Read the data set from DIR. Default: where Debian's package installs it, if there is one." },
    { OPTION_INT, .name = "batch-size", .argument = "N",
      .help = "Evaluate N images at a time; the results do not depend on N. Default: 128.", .minimum = 1,
      .maximum = 65536 },
    { OPTION_INT, .name = "num-examples", .argument = "N",
      .help = "Evaluate on the first N test images, each once. Default: all.", .minimum = 1, .maximum = 1e9 },
    { OPTION_INT, .name = "threads", .argument = "N",
      .help = "Share the images among N threads; the results do not depend on N. Default: 1.", .minimum = 1,
      .maximum = BUILTIN_RUNNER_THREADS_MAX },
    { OPTION_FLAG, .name = "tutorial-denominator",
      .help = "Count as TensorFlow's CIFAR-10 tutorial does: round the number of examples up to whole batches of 128, "
              "and count the first ones twice (10,112 instead of 10,000)." },
    { OPTION_FLAG, .name = "ema",
      .help = "Use the moving averages of the variables if the model's reference does and the checkpoint has them "
              "(default). --no-ema uses the variables themselves." },
    { OPTION_HEADING, .help = "Or evaluate with a command:" },
    { OPTION_TEXT, .name = "exec", .argument = "COMMAND",
      .help = "Run COMMAND for each checkpoint, with {checkpoint}, {step}, {index}, {eval_dir} and {name} replaced; "
              "its environment has them as EVALUATOR_CHECKPOINT and so on. COMMAND is split into words as in a shell, "
              "but no shell is run; for one, use sh -c '...'. Metrics are read from its standard output, one line "
              "each: 'accuracy 0.91', 'accuracy=0.91', or a JSON object. Its output is kept in EVAL/logs/. When "
              "COMMAND ends, all processes that it started are ended, too." },
    { OPTION_DOUBLE, .name = "exec-timeout", .argument = "SECONDS",
      .help = "End a command that runs longer than SECONDS, with all processes that it started: SIGTERM first, SIGKILL "
              "5 seconds later. Default: no limit.",
      .minimum = 0, .maximum = 1e9 },
    { OPTION_INT, .name = "retries", .argument = "N",
      .help = "Retry a failed command up to N times, after 1, 2, 4, ... seconds. Default: 0.", .minimum = 0,
      .maximum = 1e6 },
    { OPTION_INT, .name = "jobs", .argument = "N",
      .help = "Run up to N commands at a time; results are recorded in the order of their steps. Default: 1.",
      .minimum = 1, .maximum = COMMAND_JOBS_MAX },
    { OPTION_HEADING, .help = "Which checkpoints to evaluate (default: all, in the order of their steps):" },
    { OPTION_TEXT, .name = "pattern", .argument = "NAME",
      .help = "Evaluate files and directories whose names match NAME: 'model_{step}.pt', 'checkpoint-{step}/' (a "
              "directory), 'epoch={*}-step={step}.ckpt' ({*} is any text). Default: NAME-STEP.index (TensorFlow) and "
              "NAME-STEP.safetensors." },
    { OPTION_LIST, .name = "ready", .argument = "RULE",
      .help = "Evaluate a checkpoint of --pattern only once RULE is met. May be given several times; then all rules "
              "must be met. quiet:SECONDS: nothing in it has changed for SECONDS. marker:FILE: FILE exists, in the "
              "directory or as NAME.FILE beside the file ({name} and {step} are replaced), has not changed for half a "
              "second and, if it is JSON, is complete. latest:FILE: FILE in the watched directory names this "
              "checkpoint or a later one, like DeepSpeed's latest and Megatron's latest_checkpointed_iteration.txt. "
              "rename: its name exists; only for a trainer that writes under another name and then renames. Default: "
              "quiet:5. Index and safetensors files need no rule: they show whether they are complete." },
    { OPTION_TEXT, .name = "step-from", .argument = "FROM",
      .help = "Follow checkpoints without a step in their names, such as --pattern last.ckpt, and evaluate each new "
              "content once. FILE:KEY: the step is the number at KEY, a dotted path, in the JSON file FILE, which is "
              "written after the checkpoint in the same directory ({name} is replaced). count: the steps are 1, 2, 3, "
              "... in the order in which contents are found. mtime: the step is the modification time, in seconds "
              "since 1970. With --pin each content is copied and waits; without it, a content that is overwritten "
              "before its evaluation is skipped." },
    { OPTION_INT, .name = "step-scale", .argument = "N",
      .help = "Multiply the number from the name or from --step-from by N, for names that count epochs of N steps. The "
              "result is the step everywhere: in {step}, the ledger, the curves, --from and --until-step. Default: 1.",
      .minimum = 1, .maximum = 1e12 },
    { OPTION_INT, .name = "step-offset", .argument = "N",
      .help = "Add N, which may be negative, to that product. If epochs are counted from 0, use the N of --step-scale. "
              "Default: 0.",
      .minimum = -1e15, .maximum = 1e15 },
    { OPTION_FLAG, .name = "latest-only", .help = "Evaluate only the newest of the checkpoints that are waiting." },
    { OPTION_INT, .name = "every", .argument = "N",
      .help = "Evaluate the first checkpoint that is found, and then every N-th.", .minimum = 1, .maximum = 1e9 },
    { OPTION_INT, .name = "from", .argument = "STEP", .help = "Skip checkpoints below STEP.", .minimum = 0,
      .maximum = 1e15 },
    { OPTION_DOUBLE, .name = "min-interval", .argument = "SECONDS",
      .help = "Leave at least SECONDS between the starts of two evaluations.", .minimum = 0, .maximum = 1e9 },
    { OPTION_FLAG, .name = "retry-failed",
      .help = "Evaluate again the checkpoints that the ledger records as failed." },
    { OPTION_HEADING, .help = "When to end, in the order in which it is checked. Checkpoints that are waiting are "
                              "evaluated first, except with --max-evaluations:" },
    { OPTION_INT, .name = "max-evaluations", .argument = "N", .help = "End after N evaluations.", .minimum = 1,
      .maximum = 1e15 },
    { OPTION_FLAG, .name = "once", .help = "End when all checkpoints that exist have been evaluated." },
    { OPTION_INT, .name = "until-step", .argument = "STEP", .help = "End when STEP or a later step has been evaluated.",
      .minimum = 0, .maximum = 1e15 },
    { OPTION_TEXT, .name = "done-file", .argument = "FILE", .help = "End when FILE exists." },
    { OPTION_INT, .name = "pid", .argument = "PID", .help = "End when the process PID is gone.", .minimum = 1,
      .maximum = INT_MAX },
    { OPTION_DOUBLE, .name = "idle-timeout", .argument = "SECONDS",
      .help = "End after SECONDS without a new checkpoint.", .minimum = 0, .maximum = 1e9 },
    { OPTION_FLAG, .name = "forever",
      .help = "Do not end when training.json beside the checkpoints says that the training has finished or was "
              "stopped, which is checked last." },
    { OPTION_FLAG, .name = "wait-for-restart",
      .help = "Do not end when training.json says that a signal stopped the training; wait until it is resumed." },
    { OPTION_FLAG, .name = "strict", .help = "End at the first checkpoint that fails, with exit status 1." },
    { OPTION_HEADING, .help = "What to write:" },
    { OPTION_CHOICES, .name = "metrics", .argument = "LIST",
      .help = "Measure these as well as precision and loss; the man page describes each. Default: basic, which adds "
              "nothing. With --exec only hparams is possible.",
      .choices = METRIC_CHOICES },
    { OPTION_INT, .name = "detail-every", .argument = "N",
      .help = "Write pictures, tables and curves only for every N-th evaluation. Default: for the first twenty, then "
              "less and less often, so that the event file stays small.",
      .minimum = 1, .maximum = 1e9 },
    { OPTION_CHOICE, .name = "tags", .argument = "NAME",
      .help = "Write the tags of another evaluator; the man page lists them. Default: precision, best_precision and "
              "loss; with --exec, each metric under its own name.",
      .choices = "homework|tutorial|resnet|im2txt|keras|estimator" },
    { OPTION_CHOICE, .name = "wall-time", .argument = "WHAT",
      .help = "Give points the time of the evaluation (default), or the time when the checkpoint was written.",
      .choices = "evaluation|checkpoint" },
    { OPTION_FLAG, .name = "json", .help = "Print each line of the ledger on standard output as well." },
    { OPTION_TEXT, .name = "prom", .argument = "FILE",
      .help = "Write the newest values and the state of the work to FILE after each evaluation, for the textfile "
              "collector of Prometheus' node_exporter, which reads names that end in .prom." },
    { OPTION_CHOICE, .name = "log-format", .argument = "WHAT",
      .help = "Log text (default), or one JSON object per line with time, level, program and message; results also "
              "have step, checkpoint and metrics.",
      .choices = "text|json" },
    { OPTION_TEXT, .name = "log-file", .argument = "FILE",
      .help = "Append the log to FILE instead of writing it to standard error. FILE is opened again on SIGHUP." },
    { OPTION_HEADING, .help = "The best checkpoint:" },
    { OPTION_TEXT, .name = "best-metric", .argument = "NAME",
      .help = "Decide by this metric which checkpoint is the best. Default: precision." },
    { OPTION_CHOICE, .name = "best-mode", .argument = "MODE",
      .help = "Take the largest value as the best (default), or the smallest.", .choices = "max|min" },
    { OPTION_DOUBLE, .name = "best-delta", .argument = "X",
      .help = "Count a checkpoint as the new best only if it is better by more than X. Default: 0; of equal ones the "
              "earlier stays the best.",
      .minimum = 0, .maximum = 1e300 },
    { OPTION_COUNT, .name = "keep-best", .argument = "N",
      .help = "Keep the best checkpoint, or the N best, in EVAL/best/, as hard links where possible. The file "
              "checkpoint there names them, the best one as the newest. Refuse to start when EVAL/best/ holds anything "
              "that this option did not put there.",
      .minimum = 1, .maximum = 1000 },
    { OPTION_INT, .name = "patience", .argument = "N",
      .help = "Ask the trainer to stop after N evaluations without a new best, by writing stop.json beside the "
              "checkpoints.",
      .minimum = 1, .maximum = 1e9 },
    { OPTION_HEADING, .help = "Commands to run when something happens:" },
    { OPTION_TEXT, .name = "on-best", .argument = "COMMAND",
      .help = "Run COMMAND when a checkpoint is the best so far, including the first. COMMAND is split into words as "
              "with --exec; {event}, {eval_dir}, {checkpoint_dir}, {checkpoint}, {name}, {step}, {metric}, {value}, "
              "{reason}, {done}, {failed} and {gone} are replaced, and its environment has them as EVALUATOR_EVENT and "
              "so on. It runs beside the evaluations, once the result is in the ledger. Its output is kept in "
              "EVAL/logs/on-best.log; if it fails, that is only reported." },
    { OPTION_TEXT, .name = "on-failure", .argument = "COMMAND",
      .help =
          "Run COMMAND when a checkpoint has failed, or was deleted before it could be evaluated; {reason} says why." },
    { OPTION_TEXT, .name = "on-end", .argument = "COMMAND",
      .help = "Run COMMAND when the work on an eval directory ends; {reason} says why, {name} and the rest describe "
              "the best checkpoint. The evaluator waits for the command; a further signal ends it." },
    { OPTION_DOUBLE, .name = "hook-timeout", .argument = "SECONDS",
      .help = "End a command of --on-best, --on-failure or --on-end that runs longer than SECONDS. Default: 600.",
      .minimum = 0.01, .maximum = 1e9 },
    { OPTION_HEADING, .help = "How to watch:" },
    { OPTION_FLAG, .name = "pin",
      .help = "Keep each checkpoint until it has been evaluated, by hard links in EVAL/pinned/ (copies on another file "
              "system), so that the trainer may delete it while it waits. Default with --keep-best, unless --no-pin is "
              "given." },
    { OPTION_DOUBLE, .name = "pin-limit", .argument = "MB",
      .help = "Stop pinning while MB megabytes are pinned. Default: no limit.", .minimum = 0, .maximum = 1e12 },
    { OPTION_DOUBLE, .name = "poll-interval", .argument = "SECONDS",
      .help = "List the directory at least every SECONDS, for file systems that report no changes. Default: 1.",
      .minimum = 0.01, .maximum = 86400 },
    { OPTION_DOUBLE, .name = "quiet-time", .argument = "SECONDS",
      .help = "Record an incomplete checkpoint as failed when it has not changed for SECONDS; if it changes later, it "
              "is evaluated after all. Default: 30.",
      .minimum = 0, .maximum = 1e9 },
    { OPTION_FLAG, .name = "inotify", .help = "Let the kernel report changes (default). --no-inotify only polls." },
    { OPTION_FLAG, .name = "take-over",
      .help = "Take over an eval directory whose lock names an evaluator on another host. Use it only if that "
              "evaluator is gone; a lock of a dead process on this host is taken over without it." },
};
enum { OPTIONS = sizeof table_template / sizeof *table_template };

static void set_choices(struct option *table, const char *name, const char *choices)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (table[i].name && !strcmp(table[i].name, name))
            table[i].choices = choices;
}

static void bind_values(struct option *table, struct command *c)
{
    const struct {
        const char *name;
        void *value;
    } values[] = {
        { "checkpoint-dir", &c->checkpoint_directory },
        { "eval-dir", &c->eval_directory },
        { "model", &c->model },
        { "data", &c->data },
        { "data-dir", &c->data_directory },
        { "batch-size", &c->batch_size },
        { "threads", &c->threads },
        { "tutorial-denominator", &c->tutorial_denominator },
        { "num-examples", &c->num_examples },
        { "ema", &c->moving_averages },
        { "latest-only", &c->latest_only },
        { "every", &c->every },
        { "from", &c->from },
        { "min-interval", &c->min_interval },
        { "retry-failed", &c->retry_failed },
        { "once", &c->once },
        { "until-step", &c->until_step },
        { "idle-timeout", &c->idle_timeout },
        { "done-file", &c->done_file },
        { "pid", &c->pid },
        { "max-evaluations", &c->max_evaluations },
        { "forever", &c->forever },
        { "wait-for-restart", &c->wait_for_restart },
        { "strict", &c->strict },
        { "poll-interval", &c->poll },
        { "quiet-time", &c->quiet },
        { "inotify", &c->inotify },
        { "tags", &c->tags },
        { "pin", &c->pin },
        { "pin-limit", &c->pin_limit },
        { "pattern", &c->pattern },
        { "ready", &c->ready },
        { "step-from", &c->step_from },
        { "step-scale", &c->step_scale },
        { "step-offset", &c->step_offset },
        { "exec", &c->exec },
        { "exec-timeout", &c->exec_timeout },
        { "retries", &c->retries },
        { "jobs", &c->jobs },
        { "on-best", &c->on_best },
        { "on-failure", &c->on_failure },
        { "on-end", &c->on_end },
        { "hook-timeout", &c->hook_timeout },
        { "keep-best", &c->keep_best },
        { "patience", &c->patience },
        { "metrics", &c->metrics },
        { "detail-every", &c->detail_every },
        { "best-metric", &c->best_metric },
        { "best-mode", &c->best_mode },
        { "best-delta", &c->best_delta },
        { "wall-time", &c->wall_time },
        { "json", &c->json },
        { "take-over", &c->take_over },
        { "watch", &c->watch },
        { "watch-file", &c->watch_file },
        { "watch-tree", &c->watch_tree },
        { "eval-root", &c->eval_root },
        { "prom", &c->prom },
        { "log-format", &c->log_format },
        { "log-file", &c->log_file },
    };

    for (size_t i = 0; i < OPTIONS; i++)
        for (size_t k = 0; table[i].name && k < sizeof values / sizeof *values; k++)
            if (!strcmp(table[i].name, values[k].name))
                table[i].value = values[k].value;
    set_choices(table, "model", options_choices(model_names(), c->models, sizeof c->models));
    set_choices(table, "data", options_choices(dataset_names(), c->data_sets, sizeof c->data_sets));
}

static int several(const struct command *c)
{
    return c->watch.count || c->watch_file || c->watch_tree;
}

static int check_command(const struct command *c, struct error *e)
{
    struct stat st;

    if (several(c) ? c->checkpoint_directory || c->eval_directory : c->eval_root != NULL)
        return error_set(e, ERR_ARG,
                         "--checkpoint-dir goes with --eval-dir, and --watch, --watch-file and --watch-tree with "
                         "--eval-root; use one or the other");
    if (several(c) && !c->eval_root)
        return error_set(e, ERR_ARG, "--eval-root is missing; --watch, --watch-file and --watch-tree need it");
    if (!several(c) && (!c->checkpoint_directory || !c->eval_directory))
        return error_set(e, ERR_ARG, "--%s is missing; use --checkpoint-dir and --eval-dir, or --watch and --eval-root",
                         c->checkpoint_directory ? "eval-dir" : "checkpoint-dir");
    if (c->exec && (c->model || c->data))
        return error_set(
            e, ERR_ARG,
            "--exec evaluates with a command, --model and --data with a built-in model; use one or the other");
    if (c->exec && (c->metric_bits & ~(unsigned)METRIC_SETTINGS))
        return error_set(e, ERR_ARG,
                         "--metrics %s: with --exec the metrics are what the command prints; only hparams is possible",
                         c->metrics);
    if (c->keep_best && c->step_from && !c->pin)
        return error_set(e, ERR_ARG,
                         "--keep-best with --step-from needs copies of what is overwritten; remove --no-pin");
    if (!c->exec && (c->exec_timeout > 0 || c->retries || c->jobs))
        return error_set(e, ERR_ARG, "--exec-timeout, --retries and --jobs need --exec");
    if (!c->exec && (!c->model || !c->data))
        return error_set(e, ERR_ARG, "--%s is missing; use one of %s, or --exec", c->model ? "data" : "model",
                         c->model ? c->data_sets : c->models);
    if (several(c))
        return OK;
    if (stat(c->checkpoint_directory, &st) == 0 && !S_ISDIR(st.st_mode))
        return error_set(e, ERR_ARG, "%s: not a directory", c->checkpoint_directory);
    if (c->once && stat(c->checkpoint_directory, &st) < 0)
        return error_system(e, "%s: no checkpoint to evaluate with --once", c->checkpoint_directory);
    return OK;
}

enum {
    PINNED_MAX = 100000,  /* how many may wait pinned, which needs no descriptors */
    EVENT_FILES_OPEN = 16 /* with several directories */
};

/* How many checkpoints may wait with open files: a quarter of the available descriptors, since each has its index and
 * at least one data file. */
static size_t queue_limit(void)
{
    size_t count = file_open_limit(4096) / 4;

    return count < 8 ? 8 : count;
}

/* The only variable outside a struct: a signal handler gets no context. signalfd needs no handler, but only sees
 * signals that all threads block, and libraries start threads before main() does. */
static volatile sig_atomic_t signal_pipe = -1;

static void on_signal(int number)
{
    unsigned char byte = (unsigned char)number;
    int before = errno;
    ssize_t ignored = write((int)signal_pipe, &byte, 1); /* full: enough signals are waiting */

    (void)ignored;
    errno = before;
}

/* *fd becomes what evaluation_loop.h reads. */
static int open_signals(int *fd, struct error *e)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, hangup;
    int fds[2];

    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
        return error_system(e, "cannot make a pipe for signals");
    *fd = fds[0];
    signal_pipe = fds[1];
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    /* On a terminal SIGHUP means that the terminal is gone; under nohup it must do nothing. */
    if (!isatty(STDERR_FILENO) && sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* makes a write past the file size limit fail, like a full disk */
    return OK;
}

static struct evaluation_watch_settings settings(const struct command *c,
                                                 const struct checkpoint_source_options *wanted,
                                                 const struct checkpoint_source *source, struct hooks *hooks)
{
    return (struct evaluation_watch_settings){
        .checkpoint_directory = c->checkpoint_directory,
        .eval_directory = c->eval_directory,
        .source = *wanted,
        .watcher = { .poll_seconds = c->poll,
                     .quiet_seconds = c->quiet,
                     .inotify = c->inotify,
                     .source = *source,
                     .pin_limit = c->pin_limit * 1e6 },
        .pin = c->pin,
        .queue_limit = c->pin ? PINNED_MAX : queue_limit(),
        .ending = { .once = c->once,
                    .forever = c->forever,
                    .wait_for_restart = c->wait_for_restart,
                    .until_step = c->until_step,
                    .max_evaluations = c->max_evaluations,
                    .idle_timeout = c->idle_timeout,
                    .done_file = c->done_file,
                    .pid = c->pid },
        .latest_only = c->latest_only,
        .every = c->every,
        .from = c->from,
        .min_interval = c->min_interval,
        .retry_failed = c->retry_failed,
        .take_over = c->take_over,
        .strict = c->strict,
        .json = c->json,
        .retry_seconds = 1,
        .best = { c->best_metric, c->best_mode && !strcmp(c->best_mode, "min"), c->best_delta },
        .keep_best = (size_t)c->keep_best,
        .patience = c->patience,
        .hooks = hooks,
        .session = (c->metric_bits & METRIC_SETTINGS) != 0,
        .model = c->model,
        .data = c->data,
        .tags = c->exec && !c->tags ? evaluation_tags_plain() : evaluation_tags_find(c->tags),
        .checkpoint_time = c->wall_time && !strcmp(c->wall_time, "checkpoint"),
    };
}

static int main_finish(const struct evaluation_watch_facts *w, struct log *log, int rc)
{
    const struct watch_log says = { log, w->settings->name };
    const struct ledger_summary *s = w->record.summary;
    char skipped[40] = "", wanted[PATTERN_TEXT_MAX + 32];

    if (w->skipped)
        snprintf(skipped, sizeof skipped, ", %lld skipped", (long long)w->skipped);
    watch_log_say(&says, "%lld evaluated%s; in all %zu done, %zu failed, %zu gone", (long long)w->evaluations, skipped,
                  s->done, w->record.failed, w->record.gone);
    if (s->has_best)
        watch_log_say(&says, "best %s %.3f (%s)", s->rule.metric, s->best_value, s->best.name);
    else if (s->done)
        watch_log_say(&says, "no best checkpoint yet");
    checkpoint_source_describe(&w->settings->watcher.source, wanted, sizeof wanted);
    if (!ledger_lines(s) && w->settings->ending.once)
        watch_log_say(&says, "%s: no checkpoint found; looked for %s", w->settings->checkpoint_directory, wanted);
    return rc == OK && !w->record.failed && !w->record.gone ? EXIT_DONE : EXIT_NO;
}

static int open_runner(const struct command *c, struct runner *out, struct error *e)
{
    struct builtin_runner_options options = { .model = c->model,
                                              .data = c->data,
                                              .data_directory = c->data_directory,
                                              .num_examples = c->num_examples,
                                              .batch_size = (int)c->batch_size,
                                              .threads = (int)c->threads,
                                              .tutorial_denominator = c->tutorial_denominator,
                                              .metrics = c->metric_bits,
                                              .detail_every = c->detail_every,
                                              .moving_averages = c->moving_averages };
    struct command_runner_options command = {
        .command = c->exec, .jobs = (size_t)c->jobs, .timeout = c->exec_timeout, .retries = c->retries
    };
    struct scorer scorer;
    int rc;

    if (c->exec)
        return command_runner_new(out, &command, e);
    rc = builtin_runner_new(&scorer, &options, e);
    return rc == OK ? thread_runner_new(out, &scorer, e) : rc;
}

/* Redirects standard error to the file, so that messages of libraries go there, too. */
static int open_log_file(const struct command *c, struct log *log, struct error *e)
{
    int fd;

    if (!c->log_file)
        return OK;
    if ((fd = open(c->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0)
        return error_system(e, "%s: cannot open", c->log_file);
    dup2(fd, STDERR_FILENO);
    close(fd);
    log_set_json(log, log->json); /* a terminal no more */
    return OK;
}

struct log_place {
    const struct command *command;
    struct log *log;
};

/* After SIGHUP: the file was moved away, as logrotate does. */
static void reopen_log(void *context)
{
    const struct log_place *place = context;
    struct error e = { 0 };

    if (open_log_file(place->command, place->log, &e) != OK)
        log_event(place->log, "error", NULL, "%s; logging goes on in the old file", e.message);
}

/* The status is the worst of all watches. */
static int finish_all(const struct evaluation_loop_options *l, int rc, const struct error *e)
{
    struct evaluation_set_past past = l->set ? evaluation_set_past(l->set) : (struct evaluation_set_past){ 0, 0, 0 };
    size_t count = l->watch_count;
    struct evaluation_watch **watches = l->set ? evaluation_set_watches(l->set, &count) : l->watches;
    int status = past.failed || past.gone ? EXIT_NO : EXIT_DONE;

    if (*e->message)
        log_event(l->log, "error", NULL, "%s", e->message);
    if (rc < 0)
        return EXIT_USAGE;
    for (size_t i = 0; i < count; i++) {
        const struct evaluation_watch_facts w = evaluation_watch_facts(watches[i]);
        int one = main_finish(&w, l->log, rc);

        status = one > status ? one : status;
    }
    return status;
}

static int open_set(const struct command *c, const struct evaluation_watch_settings *each, struct log *log,
                    struct evaluation_set **out, struct error *e)
{
    struct evaluation_set_options options = { .settings = *each,
                                              .eval_root = c->eval_root,
                                              .pairs = c->watch.items,
                                              .pair_count = c->watch.count,
                                              .file = c->watch_file,
                                              .tree = c->watch_tree,
                                              .scan_seconds = c->poll,
                                              .inotify = c->inotify };

    options.settings.queue_limit = each->queue_limit / (c->watch.count > 8 ? c->watch.count : 8) + 4;
    return evaluation_set_open(out, &options, log, e);
}

struct loading {
    const struct command *command;
    struct runner *runner;
    struct error why;
    int rc, done_fd;
};

static void *load(void *context)
{
    const uint64_t one = 1;
    struct loading *l = context;
    ssize_t ignored;

    l->rc = open_runner(l->command, l->runner, &l->why);
    ignored = write(l->done_fd, &one, sizeof one); /* its counter was 0, so this does not block */
    (void)ignored;
    return NULL;
}

/* The data and the net may take seconds: what comes to light meanwhile is said. */
static int load_and_look(struct evaluation_loop *loop, const struct command *c, struct runner *out, struct error *e)
{
    struct loading l = { .command = c, .runner = out, .done_fd = eventfd(0, EFD_CLOEXEC) };
    pthread_t thread;
    int rc;

    if (l.done_fd < 0)
        return error_system(e, "cannot make a descriptor to wait on");
    if (pthread_create(&thread, NULL, load, &l) != 0) {
        close(l.done_fd);
        return open_runner(c, out, e);
    }
    rc = evaluation_loop_look_until(loop, l.done_fd, e);
    pthread_join(thread, NULL);
    close(l.done_fd);
    if (l.rc != OK)
        *e = l.why;
    return l.rc != OK ? l.rc : rc;
}

/* First lock, ledger and watch, then data and network: nothing that comes and goes meanwhile is missed. */
static int work(const struct command *c, struct log *log)
{
    const struct checkpoint_source_options wanted = { .pattern = c->pattern,
                                                      .ready = c->ready.items,
                                                      .ready_count = c->ready.count,
                                                      .step_from = c->step_from,
                                                      .step_scale = c->step_scale,
                                                      .step_offset = c->step_offset };
    struct checkpoint_source source;
    const struct hooks_options hooks = {
        .commands = { [HOOK_BEST] = c->on_best, [HOOK_FAILURE] = c->on_failure, [HOOK_END] = c->on_end },
        .timeout = c->hook_timeout
    };
    struct evaluation_watch_settings each;
    struct evaluation_log_files open_files = { .limit = EVENT_FILES_OPEN };
    struct evaluation_watch *watch = NULL;
    struct runner runner = { 0 };
    struct log_place place = { c, log };
    struct evaluation_loop_options l = { .log = log,
                                         .watches = &watch,
                                         .watch_count = 1,
                                         .runner = &runner,
                                         .prom = c->prom,
                                         .hung_up = reopen_log,
                                         .context = &place };
    struct evaluation_loop *loop = NULL;
    struct error e = { 0 };
    int status = EXIT_USAGE, rc;

    if ((rc = open_signals(&l.signal_fd, &e)) == OK && (rc = checkpoint_source_init(&source, &wanted, &e)) == OK &&
        (rc = hooks_new(&l.hooks, &hooks, log, &e)) == OK && (rc = lookout_start(&l.lookout, &e)) == OK) {
        each = settings(c, &wanted, &source, l.hooks);
        each.open_files = &open_files;
        each.lookout = l.lookout;
        rc = several(c) ? open_set(c, &each, log, &l.set, &e) : evaluation_watch_open(&watch, &each, log, &e);
    }
    if (rc == OK && (rc = evaluation_loop_new(&loop, &l, &e)) == OK &&
        (rc = load_and_look(loop, c, &runner, &e)) == OK) {
        malloc_trim(0);
        rc = evaluation_loop_run(loop, &e);
        status = finish_all(&l, rc, &e);
    } else {
        log_event(log, "error", NULL, "%s", e.message);
    }
    if (runner.free)
        runner.free(runner.context);
    evaluation_loop_free(loop);
    evaluation_set_close(l.set);
    evaluation_watch_close(watch);
    lookout_stop(l.lookout);
    hooks_free(l.hooks);
    return status;
}

#define ROW(function, name, help) { name, help, command_##function },
static const struct subcommand commands[] = { EVALUATOR_COMMANDS(ROW) };

int main(int argc, char **argv)
{
    struct command c = { .until_step = -1,
                         .poll = 1,
                         .quiet = 30,
                         .moving_averages = 1,
                         .inotify = 1,
                         .hook_timeout = 600,
                         .best_metric = EVALUATION_PRECISION };
    struct option table[OPTIONS];
    struct options options = {
        .program = "evaluator",
        .usage = "(--checkpoint-dir DIR --eval-dir DIR | --watch NAME=DIR... --eval-root ROOT) (--model NAME --data "
                 "NAME | --exec COMMAND) [OPTION...]",
        .summary = "Watch the checkpoints of a running training and evaluate each of them once, in the order of their "
                   "steps. Write scalars for TensorBoard, and one line of JSON for each checkpoint. When started "
                   "again, continue where the last run ended. Exit status: 0 all checkpoints were evaluated, 1 some "
                   "failed, or were deleted first, and were not evaluated later, 2 wrong usage or input.",
        .examples = examples,
        .table = table,
        .count = OPTIONS,
        .commands = commands,
        .command_count = sizeof commands / sizeof *commands,
    };
    struct error e = { 0 };
    struct log log;
    int positional = 0, status, rc;

    if (subcommand_run(&options, argc, argv, &status))
        return status;
    memcpy(table, table_template, sizeof table);
    bind_values(table, &c);
    log_init(&log, "evaluator", STDERR_FILENO);
    rc = options_parse(&options, argc, argv, &positional, &e);
    log_set_json(&log, c.log_format && !strcmp(c.log_format, "json"));
    if (c.keep_best && !options_given(&options, "pin"))
        c.pin = 1;
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    c.metric_bits = metric_choice(c.metrics);
    if (rc != OPTIONS_RUN || (rc = check_command(&c, &e)) != OK || (rc = open_log_file(&c, &log, &e)) != OK) {
        log_event(&log, "error", NULL, "%s", e.message);
        return EXIT_USAGE;
    }
    return work(&c, &log);
}
