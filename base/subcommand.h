/*
 * subcommand.h - programs of several commands, `program COMMAND [OPTION...] ...`, from one table: finding the command,
 * --help with all of them, --version, and the nearest name for one that is not known.
 */
#ifndef BASE_SUBCOMMAND_H
#define BASE_SUBCOMMAND_H

#include <stddef.h>

enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2 }; /* 1: the answer is no, or there is damage; 2: usage, or input */

struct subcommand {
    const char *name; /* "rename-tag" */
    const char *help; /* one line */
    int (*run)(int argc, char **argv); /* gets the arguments from the command's own name on; returns the status */
};

struct subcommands {
    const char *program;  /* "eventlog" */
    const char *usage;    /* after the program's name: "COMMAND [OPTION...] PATH..." */
    const char *summary;  /* what it does and what its arguments are, a paragraph */
    const char *examples; /* lines, each ending in a newline */
    const struct subcommand *table;
    size_t count;
};

/* The row of that name, NULL where there is none. Borrowed from the table. */
const struct subcommand *subcommand_find(const struct subcommands *s, const char *name);

/* main() of such a program: runs the command that argv[1] names, or prints what is asked for. Returns the status. */
int subcommand_main(const struct subcommands *s, int argc, char **argv);

#endif
