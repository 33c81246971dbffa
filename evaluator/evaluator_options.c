#include "evaluator/evaluator_options.h"

#include "base/file.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "dataset/dataset.h"
#include "evaluator/score/command_words.h"
#include "evaluator/score/evaluation.h"
#include "evaluator/score/metrics/metric.h"
#include "model/model.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(member) .offset = offsetof(struct evaluator_options, member)

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
    { OPTION_TEXT, .name = "checkpoint-dir", AT(set.settings.checkpoint_directory), .argument = "DIR",
      .help = "Watch DIR for checkpoints. DIR need not exist yet." },
    { OPTION_TEXT, .name = "eval-dir", AT(set.settings.eval_directory), .argument = "DIR",
      .help = "Write the ledger evaluations.jsonl and the event files to DIR, which is created if it is missing." },
    { OPTION_LIST, .name = "watch", AT(set.pairs), .argument = "NAME=DIR",
      .help = "Watch DIR, and write its ledger and curves to ROOT/NAME/eval. May be given several times; the "
              "directories take turns, with one model and data set in memory." },
    { OPTION_TEXT, .name = "watch-file", AT(set.file), .argument = "FILE",
      .help = "Watch the directories that FILE lists, one NAME=DIR per line. FILE is read again on SIGHUP; directories "
              "that it no longer lists are no longer watched." },
    { OPTION_TEXT, .name = "watch-tree", AT(set.tree), .argument = "DIR",
      .help = "Watch every directory below DIR that has checkpoints, now or later, under the name of its path, until "
              "its training has finished. Ends only on a signal, or with --once." },
    { OPTION_TEXT, .name = "eval-root", AT(set.eval_root), .argument = "ROOT",
      .help = "Put the eval directories of --watch, --watch-file and --watch-tree below ROOT." },
    { OPTION_HEADING,
      .help = "Evaluate with a built-in model; --model and --data are required unless --exec is given:" },
    { OPTION_CHOICE_OR_PATH, .name = "model", AT(builtin.model), .argument = "NAME",
      .help = "Evaluate checkpoints of this model: a built-in one, or that of a model file. Default: that of the "
              "trainer that writes to --checkpoint-dir." },
    { OPTION_CHOICE, .name = "data", AT(builtin.data), .argument = "NAME",
      .help =
          "Evaluate on the test images of this data set. Default: the trainer's, with its --data-dir and the options "
          "of reading that are not given here." },
    { OPTION_TEXT, .name = "data-dir", AT(builtin.data_directory), .argument = "DIR",
      .help = "Read the data set from DIR. Default: where Debian's package installs it, if there is one." },
    { OPTION_INT, .name = "batch-size", AT(builtin.batch_size), .argument = "N",
      .help = "Evaluate N images at a time; the results do not depend on N. Default: 128.", .minimum = 1,
      .maximum = 65536 },
    { OPTION_INT, .name = "num-examples", AT(builtin.num_examples), .argument = "N",
      .help = "Evaluate on the first N test images, each once. Default: all.", .minimum = 1, .maximum = 1e9 },
    { OPTION_INT, .name = "threads", AT(builtin.threads), .argument = "N",
      .help = "Share the images among N threads; the results do not depend on N. Default: 1.", .minimum = 1,
      .maximum = BUILTIN_RUNNER_THREADS_MAX },
    { OPTION_CHOICE, .name = "precision", AT(precision), .argument = "NAME", .choices = "float32|bfloat16",
      .help = "Multiply in float32 (the default), or in bfloat16 in convolutions and larger matrix products, which is "
              "faster on processors with AMX and on AMD's with AVX512-BF16; a few images in a thousand may be "
              "classified otherwise. A "
              "processor without AMX or AVX512-BF16 says so and evaluates in float32." },
    { OPTION_FLAG, .name = "ema", AT(builtin.moving_averages),
      .help = "Use the moving averages of the variables if the model's reference does and the checkpoint has them "
              "(default). --no-ema uses the variables themselves." },
    { OPTION_HEADING, .help = "Or evaluate with a command:" },
    { OPTION_TEXT, .name = "exec", AT(command.command), .argument = "COMMAND",
      .help =
          "Run COMMAND for each checkpoint, with {checkpoint}, {step}, {index}, {eval_dir} and {name} replaced; "
          "its environment has them as EVALUATOR_CHECKPOINT and so on. COMMAND is split into words as in a shell, "
          "but no shell is run; for one, use sh -c '...' with \"$EVALUATOR_CHECKPOINT\" in it, as {checkpoint} is "
          "refused there. Metrics are read from its standard output, one line "
          "each: 'accuracy 0.91', 'accuracy=0.91', a JSON object or a dictionary of Python's, "
          "'Test accuracy: 0.703' and 'Accuracy: 70.3%', which counts as 0.703. Its output is kept in EVAL/logs/. When "
          "COMMAND ends, all processes that it started are ended, too. When it has failed three times in a row in the "
          "same way, wait until COMMAND or a file that it names is changed, and evaluate the failed ones again." },
    { OPTION_DOUBLE, .name = "exec-timeout", AT(command.timeout), .argument = "SECONDS",
      .help = "End a command that runs longer than SECONDS, with all processes that it started: SIGTERM first, SIGKILL "
              "5 seconds later. Default: no limit.",
      .minimum = 0, .maximum = 1e9 },
    { OPTION_TEXT, .name = "metric", AT(command.metric), .argument = "NAME",
      .help = "Read a line of the output that is nothing but a number as the metric NAME." },
    { OPTION_INT, .name = "retries", AT(command.retries), .argument = "N",
      .help = "Retry a failed command up to N times, after 1, 2, 4, ... seconds. Default: 0.", .minimum = 0,
      .maximum = 1e6 },
    { OPTION_INT, .name = "jobs", AT(command.jobs), .argument = "N",
      .help = "Run up to N commands at a time; results are recorded in the order of their steps. Default: 1.",
      .minimum = 1, .maximum = COMMAND_JOBS_MAX },
    { OPTION_HEADING, .help = "Which checkpoints to evaluate (default: all, in the order of their steps):" },
    { OPTION_TEXT, .name = "pattern", AT(set.settings.source.pattern), .argument = "NAME",
      .help = "Evaluate files and directories whose names match NAME: 'model_{step}.pt', 'checkpoint-{step}/' (a "
              "directory), 'epoch={*}-step={step}.ckpt' ({*} is any text). Default: NAME-STEP.index (TensorFlow), "
              "NAME-STEP.safetensors, and directories NAME-STEP with a model.safetensors or "
              "its index (Hugging Face)." },
    { OPTION_LIST, .name = "ready", AT(ready), .argument = "RULE",
      .help = "Evaluate a checkpoint of --pattern only once RULE is met. May be given several times; then all rules "
              "must be met. quiet:SECONDS: nothing in it has changed for SECONDS. marker:FILE: FILE exists, in the "
              "directory or as NAME.FILE beside the file ({name} and {step} are replaced), has not changed for half a "
              "second and, if it is JSON, is complete. latest:FILE: FILE in the watched directory names this "
              "checkpoint or a later one, like DeepSpeed's latest and Megatron's latest_checkpointed_iteration.txt. "
              "rename: its name exists; only for a trainer that writes under another name and then renames. Default: "
              "quiet:5, also for directories with a model.safetensors or its index. Index and safetensors files need "
              "no rule: they show whether they are complete." },
    { OPTION_TEXT, .name = "step-from", AT(set.settings.source.step_from), .argument = "FROM",
      .help = "Follow checkpoints without a step in their names, such as --pattern last.ckpt, and evaluate each new "
              "content once. FILE:KEY: the step is the number at KEY, a dotted path, in the JSON file FILE, which is "
              "written after the checkpoint in the same directory ({name} is replaced). count: the steps are 1, 2, 3, "
              "... in the order in which contents are found. mtime: the step is the modification time, in seconds "
              "since 1970. With --pin each content is copied and waits; without it, a content that is overwritten "
              "before its evaluation is skipped." },
    { OPTION_INT, .name = "step-scale", AT(set.settings.source.step_scale), .argument = "N",
      .help = "Multiply the number from the name or from --step-from by N, for names that count epochs of N steps. The "
              "result is the step everywhere: in {step}, the ledger, the curves, --from and --until-step. Default: 1.",
      .minimum = 1, .maximum = 1e12 },
    { OPTION_INT, .name = "step-offset", AT(set.settings.source.step_offset), .argument = "N",
      .help = "Add N, which may be negative, to that product. If epochs are counted from 0, use the N of --step-scale. "
              "Default: 0.",
      .minimum = -1e15, .maximum = 1e15 },
    { OPTION_FLAG, .name = "latest-only", AT(set.settings.latest_only),
      .help = "Evaluate only the newest of the checkpoints that are waiting." },
    { OPTION_INT, .name = "every", AT(set.settings.every), .argument = "N",
      .help = "Evaluate the first checkpoint that is found, and then every N-th.", .minimum = 1, .maximum = 1e9 },
    { OPTION_INT, .name = "from", AT(set.settings.from), .argument = "STEP", .help = "Skip checkpoints below STEP.",
      .minimum = 0, .maximum = 1e15 },
    { OPTION_DOUBLE, .name = "min-interval", AT(set.settings.min_interval), .argument = "SECONDS",
      .help = "Leave at least SECONDS between the starts of two evaluations.", .minimum = 0, .maximum = 1e9 },
    { OPTION_FLAG, .name = "retry-failed", AT(set.settings.retry_failed),
      .help =
          "Evaluate again the checkpoints that the ledger records as failed. Those that failed with another COMMAND "
          "of --exec, or before its files were changed, are evaluated again without it." },
    { OPTION_HEADING, .help = "When to end, in the order in which it is checked. Checkpoints that are waiting are "
                              "evaluated first, except with --max-evaluations:" },
    { OPTION_INT, .name = "max-evaluations", AT(set.settings.ending.max_evaluations), .argument = "N",
      .help = "End after N evaluations.", .minimum = 1, .maximum = 1e15 },
    { OPTION_FLAG, .name = "once", AT(set.settings.ending.once),
      .help = "End when all checkpoints that exist have been evaluated." },
    { OPTION_INT, .name = "until-step", AT(set.settings.ending.until_step), .argument = "STEP",
      .help = "End when STEP or a later step has been evaluated.", .minimum = 0, .maximum = 1e15 },
    { OPTION_TEXT, .name = "done-file", AT(set.settings.ending.done_file), .argument = "FILE",
      .help = "End when FILE exists." },
    { OPTION_INT, .name = "pid", AT(set.settings.ending.pid), .argument = "PID",
      .help = "End when the process PID is gone.", .minimum = 1, .maximum = INT_MAX },
    { OPTION_DOUBLE, .name = "idle-timeout", AT(set.settings.ending.idle_timeout), .argument = "SECONDS",
      .help = "End after SECONDS without a new checkpoint.", .minimum = 0, .maximum = 1e9 },
    { OPTION_FLAG, .name = "forever", AT(set.settings.ending.forever),
      .help = "Do not end when training.json beside the checkpoints says that the training has finished or was "
              "stopped, which is checked last." },
    { OPTION_FLAG, .name = "wait-for-restart", AT(set.settings.ending.wait_for_restart),
      .help = "Do not end when training.json says that a signal stopped the training; wait until it is resumed." },
    { OPTION_FLAG, .name = "strict", AT(set.settings.strict),
      .help = "End at the first checkpoint that fails, with exit status 1." },
    { OPTION_HEADING, .help = "What to write:" },
    { OPTION_CHOICES, .name = "metrics", AT(metrics), .argument = "LIST",
      .help = "Measure these as well as precision and loss; the man page describes each. Default: basic, which adds "
              "nothing. With --exec only hparams is possible.",
      .choices = METRIC_CHOICES },
    { OPTION_INT, .name = "detail-every", AT(builtin.detail_every), .argument = "N",
      .help = "Write pictures, tables and curves only for every N-th evaluation. Default: for the first twenty, then "
              "less and less often, so that the event file stays small.",
      .minimum = 1, .maximum = 1e9 },
    { OPTION_CHOICE, .name = "tags", AT(tags), .argument = "NAME",
      .help = "Write the tags of another evaluator; the man page lists them. Default: precision, best_precision and "
              "loss; with --exec, each metric under its own name.",
      .choices = "homework|tutorial|resnet|im2txt|keras|estimator" },
    { OPTION_CHOICE, .name = "wall-time", AT(wall_time), .argument = "WHAT",
      .help = "Give points the time of the evaluation (default), or the time when the checkpoint was written.",
      .choices = "evaluation|checkpoint" },
    { OPTION_FLAG, .name = "json", AT(set.settings.json),
      .help = "Print each line of the ledger on standard output as well." },
    { OPTION_TEXT, .name = "prom", AT(prom), .argument = "FILE",
      .help = "Write the newest values and the state of the work to FILE after each evaluation, for the textfile "
              "collector of Prometheus' node_exporter, which reads names that end in .prom." },
    { OPTION_CHOICE, .name = "log-format", AT(log_format), .argument = "WHAT",
      .help = "Log text (default), or one JSON object per line with time, level, program and message; results also "
              "have step, checkpoint and metrics.",
      .choices = "text|json" },
    { OPTION_TEXT, .name = "log-file", AT(log_file), .argument = "FILE",
      .help = "Append the log to FILE instead of writing it to standard error. FILE is opened again on SIGHUP. It "
              "must not be a symbolic link." },
    { OPTION_HEADING, .help = "The best checkpoint:" },
    { OPTION_TEXT, .name = "best-metric", AT(set.settings.best.metric), .argument = "NAME",
      .help = "Decide by this metric which checkpoint is the best. Default: precision." },
    { OPTION_CHOICE, .name = "best-mode", AT(best_mode), .argument = "MODE",
      .help = "Take the largest value as the best (default), or the smallest.", .choices = "max|min" },
    { OPTION_DOUBLE, .name = "best-delta", AT(set.settings.best.delta), .argument = "X",
      .help = "Count a checkpoint as the new best only if it is better by more than X. Default: 0; of equal ones the "
              "earlier stays the best.",
      .minimum = 0, .maximum = 1e300 },
    { OPTION_COUNT, .name = "keep-best", AT(set.settings.keep_best), .argument = "N",
      .help = "Keep the best checkpoint, or the N best, in EVAL/best/, as hard links where possible. The file "
              "checkpoint there names them, the best one as the newest. Refuse to start when EVAL/best/ holds anything "
              "that this option did not put there.",
      .minimum = 1, .maximum = 1000 },
    { OPTION_INT, .name = "patience", AT(set.settings.patience), .argument = "N",
      .help = "Ask the trainer to stop after N evaluations without a new best, by writing stop.json beside the "
              "checkpoints.",
      .minimum = 1, .maximum = 1e9 },
    { OPTION_HEADING, .help = "Commands to run when something happens:" },
    { OPTION_TEXT, .name = "on-best", AT(hooks.commands[HOOK_BEST]), .argument = "COMMAND",
      .help = "Run COMMAND when a checkpoint is the best so far, including the first. COMMAND is split into words as "
              "with --exec; {event}, {eval_dir}, {checkpoint_dir}, {checkpoint}, {name}, {step}, {metric}, {value}, "
              "{reason}, {done}, {failed} and {gone} are replaced, and its environment has them as EVALUATOR_EVENT and "
              "so on. It runs beside the evaluations, once the result is in the ledger. Its output is kept in "
              "EVAL/logs/on-best.log; if it fails, that is only reported." },
    { OPTION_TEXT, .name = "on-failure", AT(hooks.commands[HOOK_FAILURE]), .argument = "COMMAND",
      .help =
          "Run COMMAND when a checkpoint has failed, or was deleted before it could be evaluated; {reason} says why." },
    { OPTION_TEXT, .name = "on-end", AT(hooks.commands[HOOK_END]), .argument = "COMMAND",
      .help = "Run COMMAND when the work on an eval directory ends; {reason} says why, {name} and the rest describe "
              "the best checkpoint. The evaluator waits for the command; a further signal ends it." },
    { OPTION_DOUBLE, .name = "hook-timeout", AT(hooks.timeout), .argument = "SECONDS",
      .help = "End a command of --on-best, --on-failure or --on-end that runs longer than SECONDS. Default: 600.",
      .minimum = 0.01, .maximum = 1e9 },
    { OPTION_HEADING, .help = "How to watch:" },
    { OPTION_FLAG, .name = "pin", AT(set.settings.pin),
      .help = "Keep each checkpoint until it has been evaluated, by hard links in EVAL/pinned/ (copies on another file "
              "system), so that the trainer may delete it while it waits. Default with --keep-best, unless --no-pin is "
              "given." },
    { OPTION_DOUBLE, .name = "pin-limit", AT(set.settings.watcher.pin_limit), .argument = "MB",
      .help = "Stop pinning while MB megabytes are pinned. Default: no limit.", .minimum = 0, .maximum = 1e12 },
    { OPTION_DOUBLE, .name = "poll-interval", AT(set.settings.watcher.poll_seconds), .argument = "SECONDS",
      .help = "List the directory at least every SECONDS, for file systems that report no changes. Default: 1.",
      .minimum = 0.01, .maximum = 86400 },
    { OPTION_DOUBLE, .name = "quiet-time", AT(set.settings.watcher.quiet_seconds), .argument = "SECONDS",
      .help = "Record an incomplete checkpoint as failed when it has not changed for SECONDS; if it changes later, it "
              "is evaluated after all. Default: 30.",
      .minimum = 0, .maximum = 1e9 },
    { OPTION_FLAG, .name = "inotify", AT(set.settings.watcher.inotify),
      .help = "Let the kernel report changes (default). --no-inotify only polls." },
    { OPTION_FLAG, .name = "take-over", AT(set.settings.take_over),
      .help = "Take over an eval directory whose lock names an evaluator on another host. Use it only if that "
              "evaluator is gone; a lock of a dead process on this host is taken over without it." },
};
enum { OWN = sizeof table_template / sizeof *table_template, OPTIONS = OWN + DATASET_READING_ROWS };

static void set_choices(struct option *table, const char *name, const char *choices)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (table[i].name && !strcmp(table[i].name, name))
            table[i].choices = choices;
}

static void fill_choices(struct option *table, struct evaluator_options *c)
{
    set_choices(table, "model", options_choices(model_names(), c->models, sizeof c->models));
    set_choices(table, "data", options_choices(dataset_names(), c->data_sets, sizeof c->data_sets));
}

int evaluator_options_several(const struct evaluator_options *c)
{
    return c->set.pairs.count || c->set.file || c->set.tree;
}

/* The name in training.json, if it is one of the choices; otherwise NULL. */
static const char *told(const char *name, const char *choices)
{
    return options_is_choice(choices, name, strlen(name)) ? name : NULL;
}

/* Takes the options that say how the data are read, where they are not given. */
static void ask_reading(struct evaluator_options *c)
{
    struct option rows[DATASET_READING_ROWS];
    char **words;

    if (command_words_split(c->training.data_options, &words, NULL) != OK)
        return;
    c->told_words = words;
    dataset_reading_rows(rows, &c->words);
    for (; words[0] && words[1]; words += 2)
        for (size_t i = 0; i < DATASET_READING_ROWS; i++) {
            const char **value = rows[i].value;

            if (strncmp(words[0], "--", 2) != 0 || strcmp(words[0] + 2, rows[i].name) != 0 || *value)
                continue;
            *value = words[1];
            buffer_format(&c->told_text, " %s %s", words[0], words[1]);
        }
}

/* Where --model or --data is missing, uses what the training there says: the model file beside its checkpoints, and the
 * built-in names in its training.json; and with its data, where they are and how they are read. */
static void ask_training(struct evaluator_options *c)
{
    const char *directory = c->set.settings.checkpoint_directory;
    struct builtin_runner_options *b = &c->builtin;

    if ((b->model && b->data) || c->command.command || !directory || evaluator_options_several(c))
        return;
    if (!b->model && file_join(c->model_file, sizeof c->model_file, directory, CHECKPOINT_MODEL_FILE, NULL) == OK &&
        access(c->model_file, R_OK) == 0)
        b->model = c->model_file;
    if (training_state_read(directory, &c->training, NULL) != 1)
        return;
    if (!b->model && (b->model = told(c->training.model, c->models)))
        buffer_format(&c->told_text, " --model %s", b->model);
    if (b->data || !(b->data = told(c->training.data, c->data_sets)))
        return;
    buffer_format(&c->told_text, " --data %s", b->data);
    if (!b->data_directory && *c->training.data_dir) {
        b->data_directory = c->training.data_dir;
        buffer_format(&c->told_text, " --data-dir %s", b->data_directory);
    }
    ask_reading(c);
}

void evaluator_options_release(struct evaluator_options *c)
{
    command_words_free(c->told_words);
    buffer_release(&c->told_text);
}

static int say_missing(const struct evaluator_options *c, struct error *e)
{
    return error_set(e, ERR_ARG, "--%s is missing; use one of %s%s, or --exec", c->builtin.model ? "data" : "model",
                     c->builtin.model ? c->data_sets : c->models, c->builtin.model ? "" : ", or a model file");
}

/* It need not exist yet, but then nothing there says what is trained. */
static int check_directory(const struct evaluator_options *c, struct error *e)
{
    const int complete = c->command.command || (c->builtin.model && c->builtin.data);
    const char *directory = c->set.settings.checkpoint_directory;
    struct stat st;
    int missing = 0; /* several times: once may be a network file system's mistake */

    while (missing < 3 && stat(directory, &st) < 0)
        missing++;
    if (missing < 3)
        return S_ISDIR(st.st_mode) ? OK : error_set(e, ERR_ARG, "%s: not a directory", directory);
    if (errno != ENOENT && errno != ENOTDIR)
        return OK; /* the watcher tries again */
    if (c->set.settings.ending.once)
        return error_system(e, "%s: no checkpoint to evaluate with --once", directory);
    return complete ? OK
                    : error_system(e,
                                   "%s: no trainer has begun there, which would say what it trains; give --model and "
                                   "--data, or --exec, to wait for one",
                                   directory);
}

static int check_command(const struct evaluator_options *c, struct error *e)
{
    const struct evaluation_watch_settings *s = &c->set.settings;
    const int several = evaluator_options_several(c);
    int rc;

    if (several ? s->checkpoint_directory || s->eval_directory : c->set.eval_root != NULL)
        return error_set(e, ERR_ARG,
                         "--checkpoint-dir goes with --eval-dir, and --watch, --watch-file and --watch-tree with "
                         "--eval-root; use one or the other");
    if (several && !c->set.eval_root)
        return error_set(e, ERR_ARG, "--eval-root is missing; --watch, --watch-file and --watch-tree need it");
    if (!several && (!s->checkpoint_directory || !s->eval_directory))
        return error_set(e, ERR_ARG, "--%s is missing; use --checkpoint-dir and --eval-dir, or --watch and --eval-root",
                         s->checkpoint_directory ? "eval-dir" : "checkpoint-dir");
    if (c->command.command && (c->builtin.model || c->builtin.data))
        return error_set(
            e, ERR_ARG,
            "--exec evaluates with a command, --model and --data with a built-in model; use one or the other");
    if (c->command.command && (c->builtin.metrics & ~(unsigned)METRIC_SETTINGS))
        return error_set(e, ERR_ARG,
                         "--metrics %s: with --exec the metrics are what the command prints; only hparams is possible",
                         c->metrics);
    if (s->keep_best && s->source.step_from && !s->pin)
        return error_set(e, ERR_ARG,
                         "--keep-best with --step-from needs copies of what is overwritten; remove --no-pin");
    if (!c->command.command && (c->command.timeout > 0 || c->command.metric || c->command.retries || c->command.jobs))
        return error_set(e, ERR_ARG, "--exec-timeout, --metric, --retries and --jobs need --exec");
    if (!several && (rc = check_directory(c, e)) != OK)
        return rc;
    return !c->command.command && (!c->builtin.model || !c->builtin.data) ? say_missing(c, e) : OK;
}

/* Puts the rows of the data set's reading after that of its directory. */
static void fill_table(struct option *table, struct evaluator_options *o)
{
    size_t at = 0;

    while (!table_template[at].name || strcmp(table_template[at].name, "data-dir") != 0)
        at++;
    at++;
    memcpy(table, table_template, at * sizeof *table);
    dataset_reading_rows(table + at, &o->words);
    memcpy(table + at + DATASET_READING_ROWS, table_template + at, (OWN - at) * sizeof *table);
}

/* Fills table (OPTIONS) and *o with the defaults. */
static struct options evaluator_options_describe(struct option *table, struct evaluator_options *o,
                                                 const struct subcommand *commands, size_t count)
{
    *o = (struct evaluator_options){
        .set.settings = { .ending.until_step = -1,
                          .watcher = { .poll_seconds = 1, .quiet_seconds = 30, .inotify = 1 },
                          .best.metric = EVALUATION_PRECISION,
                          .retry_seconds = 1 },
        .builtin.moving_averages = 1,
        .hooks.timeout = 600,
    };
    fill_table(table, o);
    fill_choices(table, o);
    return (struct options){
        .program = "evaluator",
        .usage = "(--checkpoint-dir DIR --eval-dir DIR | --watch NAME=DIR... --eval-root ROOT) (--model NAME --data "
                 "NAME | --exec COMMAND) [OPTION...]",
        .summary = "Watch the checkpoints of a running training and evaluate each of them once, in the order of their "
                   "steps. Write scalars for TensorBoard, and one line of JSON for each checkpoint. When started "
                   "again, continue where the last run ended. Exit status: 0 all checkpoints were evaluated, 1 some "
                   "failed, or were deleted first, and were not evaluated later, or --pattern with --once, or "
                   "--pid, ended with none at all, 2 wrong usage or input.",
        .examples = examples,
        .table = table,
        .values = o,
        .count = OPTIONS,
        .commands = commands,
        .command_count = count,
    };
}

int evaluator_options_command(const struct subcommand *commands, size_t count, int argc, char **argv, int *status)
{
    struct evaluator_options o;
    struct option table[OPTIONS];
    const struct options options = evaluator_options_describe(table, &o, commands, count);

    return subcommand_run(&options, argc, argv, status);
}

static int is(const char *given, const char *word)
{
    return given && !strcmp(given, word);
}

/* What the words of the command line mean for those who do the work. */
static void translate(struct evaluator_options *c, int pin_given)
{
    struct evaluation_watch_settings *s = &c->set.settings;

    s->command = c->command.command;
    s->model = c->builtin.model;
    s->data = c->builtin.data;
    s->pin |= s->keep_best && !pin_given;
    s->watcher.pin_limit *= 1e6;
    s->source.ready = c->ready.items;
    s->source.ready_count = c->ready.count;
    s->best.minimum = is(c->best_mode, "min");
    s->session = (c->builtin.metrics & METRIC_SETTINGS) != 0;
    s->tags = s->command && !c->tags ? evaluation_tags_plain() : evaluation_tags_find(c->tags);
    s->checkpoint_time = is(c->wall_time, "checkpoint");
    c->builtin.bfloat16 = is(c->precision, "bfloat16");
    c->log_json = is(c->log_format, "json");
}

int evaluator_options_parse(struct evaluator_options *out, const struct subcommand *commands, size_t count, int argc,
                            char **argv, struct error *e)
{
    struct option table[OPTIONS];
    const struct options options = evaluator_options_describe(table, out, commands, count);
    int positional = 0, rc = options_parse(&options, argc, argv, &positional, e);

    out->builtin.metrics = metric_choice(out->metrics);
    if (rc == OPTIONS_RUN)
        ask_training(out);
    translate(out, options_given(&options, "pin"));
    if (rc == OPTIONS_RUN && dataset_reading_parse(&out->builtin.reading, &out->words, e) < 0)
        return ERR_ARG;
    return rc == OPTIONS_RUN ? check_command(out, e) : rc;
}
