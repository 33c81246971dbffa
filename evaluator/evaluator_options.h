/* evaluator_options.h - the evaluator's command line, read and checked. */
#ifndef EVALUATOR_EVALUATOR_OPTIONS_H
#define EVALUATOR_EVALUATOR_OPTIONS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/program/options.h"
#include "base/program/subcommand.h"
#include "checkpoint/directory/training_state.h"
#include "dataset/dataset.h"

#include <stddef.h>
#include <stdint.h>

struct evaluator_options {          /* text is borrowed from argv; what is not given is 0 or NULL, or as --help says */
    struct dataset_words words;     /* how the data set is read */
    struct dataset_reading reading; /* what they say */
    const char *checkpoint_directory, *eval_directory, *model, *data, *data_directory, *precision;
    unsigned metric_bits; /* of metrics */
    int64_t detail_every, patience, keep_best;
    int64_t batch_size, threads, num_examples, every, from, until_step, max_evaluations, pid;
    double poll, quiet, idle_timeout, min_interval;
    double best_delta, exec_timeout;
    const char *metric;
    int64_t retries, jobs;
    const char *exec, *pattern, *step_from;
    struct option_list ready;
    int64_t step_scale, step_offset;
    double pin_limit, hook_timeout;
    const char *on_best, *on_failure, *on_end;
    int pin;
    const char *done_file, *tags, *wall_time, *metrics, *best_metric, *best_mode;
    int once, latest_only, forever, wait_for_restart, strict, retry_failed, json, moving_averages, inotify;
    int take_over;
    struct option_list watch;
    const char *watch_file, *watch_tree, *eval_root, *prom, *log_format, *log_file;
    char model_file[4096];            /* `model`, if it was found beside the checkpoints */
    struct training_state training;   /* in checkpoint_directory; what is not given is its */
    struct buffer told_text;          /* what was taken from there: " --model lenet --data mnist" */
    char **told_words;                /* owned */
    char models[256], data_sets[256]; /* to choose from */
};

/* Runs one of the subcommands (all `count` of them) if argv names it: 1 and *status; else 0. */
int evaluator_options_command(const struct subcommand *commands, size_t count, int argc, char **argv, int *status);

/* OPTIONS_RUN, OPTIONS_DONE after --help or --version, or negative with a sentence: ERR_ARG, or ERR_IO if --once finds
 * no checkpoint directory. argv is reordered and borrowed. */
int evaluator_options_parse(struct evaluator_options *out, const struct subcommand *commands, size_t count, int argc,
                            char **argv, struct error *e);

/* Frees what parse took from training.json. */
void evaluator_options_release(struct evaluator_options *o);

/* 1: one of the --watch options is given, so that several directories may be watched. */
int evaluator_options_several(const struct evaluator_options *o);

#endif
