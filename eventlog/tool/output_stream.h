/*
 * output_stream.h - standard output for what can only be written into a file: the file is made in the directory for
 * temporary files, sent whole once it is complete, and removed.
 */
#ifndef EVENTLOG_TOOL_OUTPUT_STREAM_H
#define EVENTLOG_TOOL_OUTPUT_STREAM_H

#include "base/error.h"

#include <stddef.h>

/* 1 if -o PATH asks for it. */
int output_stream_is(const char *path);

/* A name for the file, which is not there. ERR_ARG: standard output is a terminal. */
int output_stream_name(char *path, size_t size, struct error *e);

/* Sends the file and removes it, in any case. */
int output_stream_send(const char *path, struct error *e);

#endif
