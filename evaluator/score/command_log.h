/*
 * command_log.h - what a command says, in a file to which several starts are appended: of each the beginning, and the
 * end once it has ended, `limit` bytes together; what lies between is counted and left out. One that prints without end
 * must not fill the disk. A log that cannot be opened or written to keeps nothing, and says nothing.
 */
#ifndef EVALUATOR_SCORE_COMMAND_LOG_H
#define EVALUATOR_SCORE_COMMAND_LOG_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum { COMMAND_LOG_TAIL = 64 << 10 }; /* bytes of the end; limits are larger */

struct command_log { /* changed by command_log.c only */
    int fd; /* -1: none */
    char path[PATH_MAX];
    size_t limit;
    size_t head;    /* bytes of the beginning so far */
    char *tail;     /* a ring of COMMAND_LOG_TAIL bytes; NULL as long as nothing was beyond the beginning */
    uint64_t beyond; /* bytes after the beginning, those in the ring included */
    int in_line;    /* the last byte in the file does not end a line */
};

void command_log_init(struct command_log *l, size_t limit);
void command_log_open(struct command_log *l, const char *path);
void command_log_close(struct command_log *l);

/* A line of ours, with "# " and the time before it. */
void command_log_note(struct command_log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What the command says; and its end, after which the next start begins. */
void command_log_add(struct command_log *l, const char *bytes, size_t n);
void command_log_end(struct command_log *l);

/* ": " and the last line that the command said, for the reason of a failure; "" without one. */
void command_log_last_line(const struct command_log *l, char *out, size_t size);
/* "; see LOG", or "" without a log. */
void command_log_see(const struct command_log *l, char *out, size_t size);

#endif
