/*
 * log.h - a program's messages for people: whole lines on standard error, and a progress line that is redrawn in place
 * on a terminal. Only main.c files, and code they give a struct log, write messages; libraries return errors instead.
 * Each line is one write(2), so lines of several processes do not mix; on a terminal it is wrapped between words.
 * Control characters in a message, which may hold names from anywhere, are written as \xHH. One struct is for one
 * thread at a time.
 */
#ifndef BASE_PROGRAM_LOG_H
#define BASE_PROGRAM_LOG_H

#include "base/buffer.h"

struct log {
    const char *program; /* borrowed; put before each line as "program: ", NULL for none */
    int fd;              /* where lines go, usually 2 */
    int terminal;        /* 1: fd is a terminal, so progress may be drawn */
    int drawn;           /* 1: a progress line is on the terminal */
    double status_next;  /* monotonic: log_progress writes nothing before */
    struct buffer *kept; /* unless NULL: messages of log_line() go there, each with a NUL, and progress nowhere */
    int json;            /* 1: each line is a JSON object: time (seconds since 1970), level, program, message, fields */
};

void log_init(struct log *l, const char *program, int fd);

/* Writes one line; adds the newline. */
void log_line(struct log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the messages that another log kept. A thread that works for another one keeps what it has to say, until it is
 * its turn. */
void log_kept_lines(struct log *l, const struct buffer *kept);

/* The same with data for programs: level is "info" (as log_line), "warning" or "error"; fields is JSON text with more
 * members of the object, `"step":700,"loss":0.5`, or NULL. As text only the message is written. */
void log_event(struct log *l, const char *level, const char *fields, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Switches to JSON (1) or text (0). With JSON there is no progress line. */
void log_set_json(struct log *l, int json);

/* Progress: on a terminal redraws one line, at most ten times a second, cut in the middle if it is wider than the
 * terminal; elsewhere writes a line, at most once a minute. log_progress_end removes the drawn line. */
void log_progress(struct log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_progress_end(struct log *l);

/* The same for work of known size: "35% of WORK, 2 min to go: NAME", the time estimated from the speed since `began`
 * (monotonic), after the first second. share: the part that is done, 0 to 1. name: the current item, cut to fit the
 * line; NULL: none. format: the WORK. */
void log_progress_work(struct log *l, double began, double share, const char *name, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
