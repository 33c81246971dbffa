/*
 * log_watch.h - watches directories for changes, with inotify. Some changes go unnoticed (watches run out, another
 * machine makes the change), so callers also check from time to time. One thread at a time.
 */
#ifndef EVENTLOG_READ_LOG_WATCH_H
#define EVENTLOG_READ_LOG_WATCH_H

struct log_watch {
    int fd;     /* for poll(); -1: none */
    int last;   /* descriptor of the newest watch */
    int missed; /* a directory could not be watched, or is where other machines' changes go unnoticed */
};

#define LOG_WATCH_NONE \
    { \
        -1, -1, 0 \
    }

void log_watch_open(struct log_watch *w); /* fd stays -1 if the system has no more inotify instances */
void log_watch_close(struct log_watch *w);

/* Returns 1 if the directory was not watched before: the caller must check for changes made before now. */
int log_watch_directory(struct log_watch *w, const char *path);

/* Reads all pending notifications, so that poll() waits again. */
void log_watch_drain(struct log_watch *w);

#endif
