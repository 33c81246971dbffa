/*
 * log_name.h - names of event files that may have been compressed since they were written: ".gz" or ".zst" at the end
 * does not make them other files. Pure.
 */
#ifndef EVENTLOG_FORMAT_LOG_NAME_H
#define EVENTLOG_FORMAT_LOG_NAME_H

#include <stddef.h>

/* The length of a path or name without such an ending; 1 if two are the same without it. */
size_t log_name_length(const char *path);
int log_name_same(const char *a, const char *b);

/* The name of the file if it were uncompressed: the base name without such an ending; for "-" (standard input), a name
 * for an event file. Returns out, which holds LOG_NAME_MAX bytes. */
enum { LOG_NAME_MAX = 256 };
const char *log_name_plain(char *out, const char *path);

#endif
