/*
 * terminal.h - what can be shown where output goes: its width, colours, characters beyond ASCII.
 */
#ifndef BASE_PROGRAM_TERMINAL_H
#define BASE_PROGRAM_TERMINAL_H

#include <stdio.h>

/* How many columns lines on fd may take: what the environment's COLUMNS says, else the terminal's width, at least 20
 * of either; 0 (no limit) where fd is no terminal and COLUMNS says nothing. */
int terminal_columns(int fd);

/* Whether output on fd is to be coloured: `choice` is "always", "never" or "auto": on a terminal other than "dumb",
 * unless NO_COLOR is set and not empty. */
int terminal_coloured(int fd, const char *choice);

/* Writes a line, given without its newline, to out: control characters as text_append_safe() makes them, and on a
 * terminal broken between words so that it fits. */
void terminal_put_line(FILE *out, const char *line);

/* 1 if the locale of the environment writes UTF-8. Sets no locale. */
int terminal_utf8(void);

#endif
