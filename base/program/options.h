/*
 * options.h - command lines from one table: parser, --help and completion read the same rows. Long options are --name
 * value and --name=value; flags take no value, and --no-name turns one off; a row may have a one-letter form; "--" ends
 * options; the rest are positional arguments, in order.
 */
#ifndef BASE_PROGRAM_OPTIONS_H
#define BASE_PROGRAM_OPTIONS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
    OPTION_HEADING, /* a line of --help: `help` is its text */
    OPTION_FLAG,    /* value: int *, set to 1, or 0 by --no-name */
    OPTION_TEXT,    /* value: const char **, borrowed from argv */
    OPTION_INT,     /* value: int64_t *, within [minimum, maximum] */
    OPTION_COUNT,   /* value: int64_t *: --name sets it to 1, --name N and --name=N to N, --no-name to 0. The next word
                       is N if it is a whole number, so this is for programs without positional arguments */
    OPTION_DOUBLE,  /* value: double *, within [minimum, maximum], never NaN */
    OPTION_CHOICE,  /* value: const char **, one of `choices`, words separated by '|' */
    OPTION_CHOICE_OR_PATH, /* the same, or a path: a word with '/' or '.' */
    OPTION_CHOICES,        /* value: const char **, one or more of `choices`, separated by commas */
    OPTION_LIST,           /* value: struct option_list *, may be given several times */
};

enum { OPTION_LIST_MOST = 64 };

struct option_list {
    const char *items[OPTION_LIST_MOST]; /* borrowed from argv */
    size_t count;
};

/* Adds a word; 0: the list is full. */
int option_list_add(struct option_list *list, const char *word);

/* 1 if the name matches one of the list's shell patterns (* matches '/', too). */
int option_list_matches(const struct option_list *list, const char *name);

struct option {
    enum option_kind kind;
    char letter;             /* 'o' for -o, or 0 */
    const char *name;        /* without the dashes */
    void *value;             /* as the kind says; holds the default before parsing; NULL: in options.values */
    const char *argument;    /* the value's name in --help: "DIR", "N"; NULL for flags */
    const char *help;        /* one or more sentences, with the default */
    const char *choices;     /* OPTION_CHOICE, OPTION_CHOICES */
    double minimum, maximum; /* OPTION_INT, OPTION_DOUBLE; both 0: no bounds */
    int given;               /* out: how often it was given */
    size_t offset;           /* of the value in options.values */
};

/* One of the commands of a program that has some (subcommand.h). run gets the arguments from the command's own name on
 * and returns the status. Asked for --describe it prints its options and does nothing else, as options_parse() does. */
struct subcommand {
    const char *name; /* "rename-tag" */
    const char *help; /* one line */
    int (*run)(int argc, char **argv);
};

struct options {
    const char *program;  /* "trainer", "eventlog export" */
    const char *usage;    /* after the program's name: "[OPTION...] PATH..." */
    const char *summary;  /* what it does, a paragraph */
    const char *examples; /* lines, each ending in a newline */
    struct option *table;
    size_t count;
    void *values;                      /* the struct in which rows without a value have theirs */
    size_t least, most;                /* positional arguments; most 0: any number */
    const char *wanted;                /* the error for a wrong number: "which log?", "one checkpoint at a time;" */
    const struct subcommand *commands; /* of a program that has some, and then nothing positional */
    size_t command_count;
};

enum { OPTIONS_RUN = 0, OPTIONS_DONE = 1 }; /* DONE: --help or --version was printed on stdout, exit 0 */

/* Parses argv[1..]. -h, --help, -V and --version always exist. Moves positional arguments to argv[1..*positional], in
 * order. Returns OPTIONS_RUN, OPTIONS_DONE, or ERR_ARG with a sentence that names the option and suggests the nearest
 * known one. `--describe` alone prints the table by options_describe(). */
int options_parse(const struct options *o, int argc, char **argv, int *positional, struct error *e);

/*
 * Prints the table as one line of JSON, from which man pages and completions are made:
 *
 *   {"program", "version", "usage", "summary", "examples",
 *    "options": [{"kind": "flag|text|int|double|choice|choices|list", "letter", "name", "argument", "help",
 *                 "choices": [...]} or {"kind": "heading", "help"}, ...],
 *    "commands": [{"name", "help", "command": such an object}, ...]}
 *
 * letter and argument may be null, choices and commands empty. Commands describe themselves on standard output, so out
 * must be stdout if there are any.
 */
void options_describe(const struct options *o, FILE *out);
void options_print_help(const struct options *o, FILE *out);

/* ERR_ARG: there is no such command; the nearest name is suggested. */
int options_unknown_command(const struct options *o, const char *word, struct error *e);

/* The item of names (count) nearest to `word` by edit distance, NULL: none is near. Borrowed from names. */
const char *options_nearest(const char *word, const char *const *names, size_t count);

/* Whether the n bytes of `word` are one of `choices`. */
int options_is_choice(const char *choices, const char *word, size_t n);
/* "a|b|c" from names, which end with NULL, for `choices`; truncated to `size` bytes. Returns out. */
const char *options_choices(const char *const *names, char *out, size_t size);

/* After options_parse() succeeded, and found no positional arguments: removes the options of the `count` names, with
 * their values, from argv, which then ends with NULL. Returns the new argc: what is left can be handed to another start
 * of the program. */
int options_remove(const struct options *o, int argc, char **argv, const char *const *names, size_t count);

/* 1 if the option of that name was given on the command line. */
int options_given(const struct options *o, const char *name);

#endif
