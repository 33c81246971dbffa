/*
 * terminal.h - what an output can show: its width, colours, characters beyond ASCII.
 */
#ifndef BASE_PROGRAM_TERMINAL_H
#define BASE_PROGRAM_TERMINAL_H

#include <stdio.h>

/* How many columns lines on fd may have: COLUMNS from the environment, else the terminal's width, at least 20; 0 (no
 * limit) if fd is not a terminal and COLUMNS is not set. */
int terminal_columns(int fd);

/* 1 if output on fd should be coloured: `choice` is "always", "never" or "auto" (on a terminal other than "dumb",
 * unless NO_COLOR is set and not empty). */
int terminal_coloured(int fd, const char *choice);

/* Writes a line, given without its newline, to out: control characters as in text_append_safe(), and wrapped between
 * words on a terminal. */
void terminal_put_line(FILE *out, const char *line);

/* 1 if the environment's locale uses UTF-8. Sets no locale. */
int terminal_utf8(void);

#endif
