/*
 * subcommand.h - programs with commands, `program COMMAND [OPTION...] ...`, from one table: finds the command, prints
 * --help with all of them and --version, and suggests the nearest name for an unknown one.
 */
#ifndef BASE_PROGRAM_SUBCOMMAND_H
#define BASE_PROGRAM_SUBCOMMAND_H

#include "base/program/options.h"

enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2 }; /* 1: "no", or damage was found; 2: usage or input error */

/* Runs what argv[1] names: a command, or `help` and `help COMMAND` as --help. 1 and *status; 0: argv[1] is neither, or
 * missing, for programs that also do something without a command. */
int subcommand_run(const struct options *o, int argc, char **argv, int *status);

/* main() of a program that needs a command: runs the one in argv[1], or prints help. Returns the status. */
int subcommand_main(const struct options *o, int argc, char **argv);

#endif
