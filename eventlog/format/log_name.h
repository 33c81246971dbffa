/*
 * log_name.h - names of event files that may have been compressed since they were written: one of
 * LOG_NAME_ENDINGS at the end does not make them other files. Pure.
 */
#ifndef EVENTLOG_FORMAT_LOG_NAME_H
#define EVENTLOG_FORMAT_LOG_NAME_H

#include <stddef.h>
#include <stdint.h>

#define LOG_NAME_ENDINGS ".gz", ".zst", ".xz", ".bz2"

/* The length of a path or name without such an ending; 1 if two are the same without it. */
size_t log_name_length(const char *path);
int log_name_same(const char *a, const char *b);

/* The name of the file if it were uncompressed: the base name without such an ending; for "-" (standard input), a name
 * for an event file. Returns out, which holds LOG_NAME_MAX bytes. */
enum { LOG_NAME_MAX = 256 };
const char *log_name_plain(char *out, const char *path);

/* The process that writes a file of this name, on which host, as TensorFlow's and PyTorch's writers and ours have them:
 * "events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER", also with ".v2" at the end; 0: the name does not say. host holds
 * LOG_NAME_MAX bytes. */
int64_t log_name_writer(const char *path, char *host);

#endif
