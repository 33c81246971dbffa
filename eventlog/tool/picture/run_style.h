/*
 * run_style.h - which style, a colour and a dash, each run of a picture has. Runs of a strategy of the trainer have
 * that one's colour in every picture, whatever else is drawn: mpi/eval, round-1/ps-async-4/train. All others take the
 * colours that are left, in turn. Pure.
 *
 * A style is a number: its colour is that number modulo RUN_COLOURS; styles of one colour have different dashes.
 */
#ifndef EVENTLOG_TOOL_PICTURE_RUN_STYLE_H
#define EVENTLOG_TOOL_PICTURE_RUN_STYLE_H

#include <stddef.h>

enum { RUN_COLOURS = 8 };

/* The colour of the strategy that a directory in the run's name is named after: just that, or with its options and a
 * number of workers behind it, as `trainer compare` names them. -1: none is. */
int run_strategy_colour(const char *name);

/* Sets styles[0] to styles[count - 1]. name: that of a run, by its number. */
void run_styles(const char *(*name)(const void *context, size_t run), const void *context, size_t count,
                size_t *styles);

#endif
