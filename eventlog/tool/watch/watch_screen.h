/*
 * watch_screen.h - the terminal of `eventlog watch`: shows a grid of cells and reads keys, the mouse and changes of
 * size, with ncurses; in a build without ncurses it never opens. One per process at a time. Closing it restores the
 * terminal.
 */
#ifndef EVENTLOG_TOOL_WATCH_WATCH_SCREEN_H
#define EVENTLOG_TOOL_WATCH_WATCH_SCREEN_H

#include "base/error.h"
#include "eventlog/tool/picture/cell_grid.h"

struct watch_screen;

struct watch_input {
    enum { WATCH_INPUT_OTHER, WATCH_INPUT_KEY, WATCH_INPUT_CLICK, WATCH_INPUT_WHEEL } kind;
    int key;         /* as in watch_model.h */
    int column, row; /* of the mouse */
    int direction;   /* of its wheel: -1 up, 1 down */
};

/* ERR_ARG: standard input and output are not a terminal that can show a page, or there is no ncurses. colour: use
 * colours if the terminal has them. */
int watch_screen_open(struct watch_screen **out, int colour, struct error *e);
void watch_screen_close(struct watch_screen *s); /* NULL is fine */

int watch_screen_coloured(const struct watch_screen *s);
void watch_screen_size(struct watch_screen *s, int *columns, int *rows); /* as it is now */
void watch_screen_show(struct watch_screen *s, const struct cell_grid *g);

/* What was pressed or clicked: 1 and *input, 0: nothing more for now, -1: the terminal has gone away. Never waits. */
int watch_screen_next(struct watch_screen *s, struct watch_input *input);

#endif
