/*
 * command_stamp.h - tells a command from what it was before somebody mended it: a number that differs once another
 * command is given, or one of the files that it names was changed.
 */
#ifndef EVALUATOR_SCORE_COMMAND_STAMP_H
#define EVALUATOR_SCORE_COMMAND_STAMP_H

#include <stdint.h>

/* Of the text and of the files named in it: its program, also if PATH has it, and every other word or part of a word,
 * such as those after `sh -c`, that names a regular file. A file that a '>' precedes is written by the command, and
 * does not count. Never 0. */
uint64_t command_stamp(const char *command);

#endif
