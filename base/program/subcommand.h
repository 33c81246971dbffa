/*
 * subcommand.h - programs of several commands, `program COMMAND [OPTION...] ...`, from one table: finding the command,
 * --help with all of them, --version, and the nearest name for one that is not known.
 */
#ifndef BASE_PROGRAM_SUBCOMMAND_H
#define BASE_PROGRAM_SUBCOMMAND_H

#include "base/program/options.h"

enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2 }; /* 1: the answer is no, or there is damage; 2: usage, or input */

/* Runs what argv[1] asks for: a command, or `help` and `help COMMAND` as --help. 1 and *status; 0 where argv[1] is
 * neither (or is missing), for programs that also do something by themselves. */
int subcommand_run(const struct options *o, int argc, char **argv, int *status);

/* main() of a program that does nothing without a command: runs the one that argv[1] names, or prints what is asked
 * for. Returns the status. */
int subcommand_main(const struct options *o, int argc, char **argv);

#endif
