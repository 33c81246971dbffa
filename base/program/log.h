/*
 * log.h - what a program says to people: whole lines on standard error, and one progress line that is rewritten in
 * place on a terminal. Only main.c files and what they hand a struct log to talk; libraries return errors instead.
 * Each line is one write(2), so lines of several processes do not mix; on a terminal it is broken between words.
 * Control characters in a message, which may hold names from anywhere, are written as \xHH. One struct is for one
 * thread at a time.
 */
#ifndef BASE_PROGRAM_LOG_H
#define BASE_PROGRAM_LOG_H

struct log {
    const char *program; /* borrowed; put before each line as "program: ", NULL for none */
    int fd;              /* where lines go, 2 as a rule */
    int terminal;        /* 1: fd is a terminal, so progress may be drawn */
    int drawn;           /* 1: a progress line stands on the terminal */
    double status_next;  /* monotonic seconds before which log_progress stays silent */
    int json;            /* 1: each line is a JSON object: time (seconds since 1970), level, program, message, fields */
};

void log_init(struct log *l, const char *program, int fd);

/* One line; the newline is added. */
void log_line(struct log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with what programs read: level is "info" (as log_line), "warning" or "error"; fields is JSON text of more
 * members of the object, `"step":700,"loss":0.5`, or NULL. As text only the message is written. */
void log_event(struct log *l, const char *level, const char *fields, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* From now on JSON (1) or text (0). A terminal shows no progress then. */
void log_set_json(struct log *l, int json);

/* Progress: on a terminal redraws one line, at most ten times a second, cut in the middle where it is wider than the
 * terminal; elsewhere writes it as a line, at most once a minute. log_progress_end takes the drawn line away. */
void log_progress(struct log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_progress_end(struct log *l);

/* The same of work that ends: "35% of WORK, 2 min to go: NAME", the time from the speed since `began` (monotonic), once
 * a second of it has passed. share: of the work that is done, 0 to 1. NAME is of what is at hand, cut to what the line
 * has room for; NULL: none. format: the WORK. */
void log_progress_work(struct log *l, double began, double share, const char *name, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
