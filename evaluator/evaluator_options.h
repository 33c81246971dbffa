/* evaluator_options.h - the evaluator's command line, read and checked. */
#ifndef EVALUATOR_EVALUATOR_OPTIONS_H
#define EVALUATOR_EVALUATOR_OPTIONS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/program/options.h"
#include "base/program/subcommand.h"
#include "checkpoint/directory/training_state.h"
#include "dataset/dataset.h"
#include "evaluator/evaluation_set.h"
#include "evaluator/hooks.h"
#include "evaluator/score/builtin_runner.h"
#include "evaluator/score/command_runner.h"

#include <stddef.h>
#include <stdint.h>

/* The options, in the structs of those who use them; text is borrowed from argv. */
struct evaluator_options {
    struct evaluation_set_options set; /* the settings of each watch, and which directories */
    struct builtin_runner_options builtin;
    struct command_runner_options command;
    struct hooks_options hooks;
    const char *prom, *log_file;
    int log_json;
    /* words, whose meaning is in the structs above */
    struct dataset_words words;
    struct option_list ready;
    const char *precision, *metrics, *tags, *wall_time, *best_mode, *log_format;
    /* in the directory of the checkpoints; what is not given is taken from there */
    struct training_state training;
    char model_file[4096];
    struct buffer told_text;          /* what was taken: " --model lenet --data mnist" */
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
