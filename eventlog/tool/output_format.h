/*
 * output_format.h - where a command writes, and in which of its formats: the one named by --format, else the one for
 * the extension of -o FILE, else the command's usual one. Contradictory options are refused.
 */
#ifndef EVENTLOG_TOOL_OUTPUT_FORMAT_H
#define EVENTLOG_TOOL_OUTPUT_FORMAT_H

#include "base/error.h"
#include "base/program/options.h"

#include <stddef.h>

struct output_format {
    const char *name;       /* as in --format=NAME */
    const char *extensions; /* "md markdown": those of a FILE in this format, separated by blanks; NULL: any */
    int binary;             /* not text: FILE.gz is refused */
};

/* all zero before the command line is parsed */
struct output_options {
    const char *format; /* --format: the name of one of the formats */
    const char *path;   /* -o */
    int json, force;    /* --json, -f */
};

/* Rows of a table. words: the names of the formats as choices; usual: the format without an extension; text: for
 * --help. */
#define OUTPUT_OPTIONS(o, words, usual, text) \
    { OPTION_CHOICE,   0, "format", &(o).format, .help = text " (default: by the extension of FILE, else " usual ")", \
      .choices = words }, \
        { OPTION_FLAG, 0, "json", &(o).json, .help = "Same as --format=json" }, \
        { OPTION_TEXT, \
          'o', \
          "output", \
          &(o).path, \
          .argument = "FILE", \
          .help = "Write to FILE, which appears once it is complete, compressed if its name ends in .gz (default: " \
                  "standard output)" }, \
    { \
        OPTION_FLAG, 'f', "force", &(o).force, .help = "Overwrite an existing FILE" \
    }

/* For a flag that stands for a format, such as --tree: sets o->format to `name` if the flag was given. ERR_ARG: another
 * format was asked for. */
int output_format_flag(struct output_options *o, int given, const char *name, struct error *e);

/* Call it once the command line is parsed. Sets o->format to the name of one of `formats`: the one asked for; else the
 * first with the extension of o->path, in upper or lower case and with or without .gz after it; else, if that has no
 * extension, `usual`. Sets o->path to NULL if it is "-". ERR_ARG: no format has that extension, or the format asked for
 * does not. */
int output_format_settle(struct output_options *o, const struct output_format *formats, size_t count, const char *usual,
                         struct error *e);

/* 1 if the word is one of "words with blanks between", in upper or lower case. */
int output_format_in_words(const char *words, const char *word);
/* 1 if the path, which may be NULL, has that extension. */
int output_format_extension_is(const char *path, const char *extension);

#endif
