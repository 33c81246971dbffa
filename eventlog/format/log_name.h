/*
 * log_name.h - names of event files that may have been compressed since they were written: with ".gz" or ".zst" behind
 * them they are the same files. Pure.
 */
#ifndef EVENTLOG_FORMAT_LOG_NAME_H
#define EVENTLOG_FORMAT_LOG_NAME_H

#include <stddef.h>

/* The length of a path or name without such an ending; and whether two are the same without. */
size_t log_name_length(const char *path);
int log_name_same(const char *a, const char *b);

/* What the file would be called if it were a plain one: the base name without such an ending; for "-", standard input,
 * an event file's name. Returns out, LOG_NAME_MAX bytes. */
enum { LOG_NAME_MAX = 256 };
const char *log_name_plain(char *out, const char *path);

#endif
