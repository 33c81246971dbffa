/*
 * log_group.h - what makes one run of several: event files that were given by name, runs that are parts of one.
 */
#ifndef EVENTLOG_REWRITE_LOG_GROUP_H
#define EVENTLOG_REWRITE_LOG_GROUP_H

#include "base/error.h"
#include "eventlog/read/log_directory.h"

/* Groups event files that were given by name into runs, one per directory and named after it. */
int log_group_files(struct log_directory *d, struct error *e);

/* Sorts runs by when they began; equal ones keep their order. */
int log_group_by_start(struct log_directory *d, struct log_input *in, struct error *e);

#endif
