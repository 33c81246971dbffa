/*
 * output.h - a command's output, as text or JSON: standard output, or a file that appears by rename once complete.
 * Collect text in `text` and write it with output_put(). Errors are kept and decide the exit status at the end.
 */
#ifndef CHECKPOINT_TOOL_OUTPUT_H
#define CHECKPOINT_TOOL_OUTPUT_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/program/options.h"

#include <limits.h>
#include <stdio.h>

/* all zero except program before the options are parsed */
struct output {
    const char *program; /* "checkpoint inspect", for messages */
    const char *path;    /* of the option; NULL and "-": standard output */
    int json, force;     /* of the options; json is also set by the file's extension */
    struct buffer text;
    FILE *file;
    char temporary[PATH_MAX]; /* "": none, output is written directly */
    struct unfinished *unfinished;
    struct error error; /* the first one */
};

#define OUTPUT_JSON_OPTION(o) \
    { \
        OPTION_FLAG, 0, "json", &(o).json, .help = "Print JSON" \
    }
#define OUTPUT_OPTIONS(o) \
    OUTPUT_JSON_OPTION(o), \
        { OPTION_TEXT, \
          'o', \
          "output", \
          &(o).path, \
          "FILE", \
          .help = "Write to FILE, in the format of its extension, .json or .txt (default: standard output, -). FILE " \
                  "appears once it is complete" }, \
    { \
        OPTION_FLAG, 'f', "force", &(o).force, .help = "Overwrite an existing FILE" \
    }

/* ERR_ARG: the extension is unknown or contradicts --json, or the file exists and --force was not given. ERR_IO. */
int output_open(struct output *o, struct error *e);

/* Writes the text and empties it. On a terminal, lines that are too long are wrapped between words. */
void output_put(struct output *o);

/* Prints "program: message" on standard error; returns EXIT_USAGE. */
int output_fail(struct output *o, const struct error *e);

/* Ends the output and returns the exit status: `status`, or EXIT_USAGE, after printing the error, if something could
 * not be written. With status EXIT_USAGE no file appears. */
int output_close(struct output *o, int status);

#endif
