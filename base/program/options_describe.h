/*
 * options_describe.h - prints a command line's table as JSON, for the programs that make man pages and completions from
 * it.
 *
 *   {"program", "version", "usage", "summary", "examples",
 *    "options": [{"kind": "flag|text|int|double|choice|choices|list", "letter", "name", "argument", "help",
 *                 "choices": [...]} or {"kind": "heading", "help"}, ...],
 *    "commands": [{"name", "help", "command": such an object}, ...]}
 *
 * letter and argument may be null, choices and commands empty.
 */
#ifndef BASE_PROGRAM_OPTIONS_DESCRIBE_H
#define BASE_PROGRAM_OPTIONS_DESCRIBE_H

#include "base/program/options.h"

/* Prints one line. Commands describe themselves on standard output, so out must be stdout if there are any. */
void options_describe(const struct options *o, FILE *out);

#endif
