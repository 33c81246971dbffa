/*
 * output_format.h - where a command writes and in which of its formats: the one that --format names, else the one that
 * the extension of -o FILE stands for, else the command's usual one. What contradicts itself is refused.
 */
#ifndef EVENTLOG_TOOL_OUTPUT_FORMAT_H
#define EVENTLOG_TOOL_OUTPUT_FORMAT_H

#include "base/error.h"
#include "base/program/options.h"

#include <stddef.h>

struct output_format {
    const char *name;       /* as in --format=NAME */
    const char *extensions; /* "md markdown": those of a FILE in this format, blanks between; NULL: any */
    int binary;             /* no text: FILE.gz is refused */
};

struct output_options { /* all zero before the command line is parsed */
    const char *format; /* --format: the name of one of the formats */
    const char *path;   /* -o */
    int json, force;    /* --json, -f */
};

/* Rows of a table; words: the names of the formats as choices, usual: that of no extension, text: what --help says. */
#define OUTPUT_OPTIONS(o, words, usual, text) \
    { OPTION_CHOICE, 0, "format", &(o).format, .help = text " (default: by the extension of FILE, else " \
      usual ")", .choices = words }, \
    { OPTION_FLAG, 0, "json", &(o).json, .help = "Same as --format=json" }, \
    { OPTION_TEXT, 'o', "output", &(o).path, .argument = "FILE", .help = "Write to FILE, which appears once it is " \
      "complete; .gz at the end of its name compresses (default: standard output)" }, \
    { OPTION_FLAG, 'f', "force", &(o).force, .help = "Overwrite an existing FILE" }

/* A flag that stands for a format, such as --tree: o->format becomes `name` where the flag was given. ERR_ARG where
 * another format is asked for. */
int output_format_flag(struct output_options *o, int given, const char *name, struct error *e);

/* To be called once all is parsed: o->format becomes the name of one of `formats`: that asked for; else the first that
 * has the extension of o->path, in upper or lower case and with or without .gz behind it; else, where that has none,
 * `usual`. o->path becomes NULL where it is "-". ERR_ARG: no format has that extension, or it is not one of the format
 * asked for. */
int output_format_settle(struct output_options *o, const struct output_format *formats, size_t count, const char *usual,
                         struct error *e);

/* 1 if the path, which may be NULL, has that extension. */
int output_format_extension_is(const char *path, const char *extension);

#endif
