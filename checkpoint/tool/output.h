/*
 * output.h - where the data of a command goes, as text or JSON: standard output, or a file that appears whole by
 * rename. Text is put together in `text` and leaves it with output_put(). What goes wrong on the way is kept and makes
 * the status at the end.
 */
#ifndef CHECKPOINT_TOOL_OUTPUT_H
#define CHECKPOINT_TOOL_OUTPUT_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/program/options.h"

#include <limits.h>
#include <stdio.h>

struct output { /* all zero, but for program, before the options are parsed */
    const char *program;      /* "checkpoint inspect", for sentences */
    const char *path;         /* of the option; NULL and "-": standard output */
    int json, force;          /* of the options; json also if the file's name says so */
    struct buffer text;
    FILE *file;
    char temporary[PATH_MAX]; /* "": none, what is written is there at once */
    struct unfinished *unfinished;
    struct error error;       /* the first one */
};

#define OUTPUT_JSON_OPTION(o) \
    { OPTION_FLAG, 0, "json", &(o).json, .help = "Print JSON" }
#define OUTPUT_OPTIONS(o) \
    OUTPUT_JSON_OPTION(o), \
    { OPTION_TEXT, 'o', "output", &(o).path, "FILE", .help = "Write to FILE, in the format of its extension, .json " \
      "or .txt (default: standard output, -). FILE appears once it is complete" }, \
    { OPTION_FLAG, 'f', "force", &(o).force, .help = "Overwrite an existing FILE" }

/* ERR_ARG: the ending of the file's name is not known, or says something else than --json, or the file exists and is
 * not to be overwritten. ERR_IO. */
int output_open(struct output *o, struct error *e);

/* Writes the text and empties it. On a terminal its lines are broken between words to fit. */
void output_put(struct output *o);

/* Prints "program: sentence" on standard error; EXIT_USAGE. */
int output_fail(struct output *o, const struct error *e);

/* Ends the output and returns the status in the end: `status`, or EXIT_USAGE, with its sentence, where something could
 * not be written. With status EXIT_USAGE no file appears. */
int output_close(struct output *o, int status);

#endif
