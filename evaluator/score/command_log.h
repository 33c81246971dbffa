/*
 * command_log.h - a log file of a command's output, to which several runs append: of each the beginning and, once it
 * has ended, the end, together `limit` bytes; the bytes between are counted and left out, so endless output cannot fill
 * the disk. If the log cannot be opened or written, the output is dropped silently.
 */
#ifndef EVALUATOR_SCORE_COMMAND_LOG_H
#define EVALUATOR_SCORE_COMMAND_LOG_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum { COMMAND_LOG_TAIL = 64 << 10 }; /* bytes of the end; limit must be larger */

/* only command_log.c changes it */
struct command_log {
    int fd; /* -1: none */
    char path[PATH_MAX];
    size_t limit;
    size_t head;     /* bytes of the beginning so far */
    char *tail;      /* a ring of COMMAND_LOG_TAIL bytes; NULL until the beginning is full */
    uint64_t beyond; /* bytes after the beginning, those in the ring included */
    int in_line;     /* the last byte in the file is not a newline */
};

void command_log_init(struct command_log *l, size_t limit);
void command_log_open(struct command_log *l, const char *path);
void command_log_close(struct command_log *l);

/* Adds a line of the evaluator's, after "# " and the time. */
void command_log_note(struct command_log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds output of the command; and ends the run, after which the next begins. */
void command_log_add(struct command_log *l, const char *bytes, size_t n);
void command_log_end(struct command_log *l);

/* Sets out to ": " and the last line of output, for the reason of a failure; "" if there was none. */
void command_log_last_line(const struct command_log *l, char *out, size_t size);
/* Sets out to "; see LOG", or "" without a log. */
void command_log_see(const struct command_log *l, char *out, size_t size);

#endif
