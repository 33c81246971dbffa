/* command.h - the subcommands of `dataset`. Each gets the arguments from its own name on, and returns the status. */
#ifndef DATASET_TOOL_COMMAND_H
#define DATASET_TOOL_COMMAND_H

#include "base/error.h"

/* All commands: ROW(the end of command_NAME(), name, its line in --help). A new command is one row here. */
#define DATASET_COMMANDS(ROW) \
    ROW(vocabulary, "vocabulary", "Count the words of captions or of texts, and write a vocabulary") \
    ROW(encode, "encode", "Run a trained model over images with captions, and keep what it makes of them")

#define DECLARE(function, name, help) int command_##function(int argc, char **argv);
DATASET_COMMANDS(DECLARE)
#undef DECLARE

/* "2x3", or "2" for 2x2: each 1 to `most`. ERR_ARG: the sentence begins with the option's name. */
int command_grid(const char *option, const char *text, int most, int *rows, int *columns, struct error *e);
/* Prints "program: message" on standard error; returns EXIT_USAGE. */
int command_fail(const char *program, const struct error *e);

#endif
