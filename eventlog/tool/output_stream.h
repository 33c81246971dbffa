/*
 * output_stream.h - standard output for data that is sent only once it is complete: it is collected in a file without a
 * name (base/spool.h), which nobody else can open and which disappears however the process ends.
 */
#ifndef EVENTLOG_TOOL_OUTPUT_STREAM_H
#define EVENTLOG_TOOL_OUTPUT_STREAM_H

#include "base/error.h"

/* 1 if -o PATH asks for standard output. */
int output_stream_is(const char *path);

/* OK: *fd is yours until output_stream_send(). ERR_ARG: standard output is a terminal. */
int output_stream_open(int *fd, struct error *e);

/* Sends everything that was written to fd to standard output, and closes fd. */
int output_stream_send(int fd, struct error *e);

#endif
