/*
 * log_watch.h - watches directories for changes, with inotify. Some changes go unnoticed (watches run out, another
 * machine makes the change), so callers also check from time to time. One thread at a time.
 */
#ifndef EVENTLOG_READ_LOG_WATCH_H
#define EVENTLOG_READ_LOG_WATCH_H

#include <stddef.h>

struct log_watch {
    int fd;     /* for poll(); -1: none */
    int last;   /* number of the newest watch */
    int missed; /* a directory could not be watched, or is where other machines' changes go unnoticed */
    int number; /* of the watch of the directory given last; -1: it is not watched */
    /* private */
    size_t have, at;
    char bytes[4096] __attribute__((aligned(8)));
};

#define LOG_WATCH_NONE \
    { \
        .fd = -1, .last = -1, .number = -1 \
    }

void log_watch_open(struct log_watch *w); /* fd stays -1 if the system has no more inotify instances */
void log_watch_close(struct log_watch *w);

/* 1 if the open directory is in a file system that only this machine writes to. */
int log_watch_is_local(int fd);

/* Returns 1 if the directory was not watched before: the caller must check for changes made before now. */
int log_watch_directory(struct log_watch *w, const char *path);

/* The next pending notification: 1, of which watch it is, and whether only the contents of a file of the directory
 * changed (1) or its files (0); 0: none is pending. number -1: notifications were lost, so anything may have
 * changed. */
int log_watch_next(struct log_watch *w, int *number, int *contents);

/* Reads all pending notifications, so that poll() waits again. */
void log_watch_drain(struct log_watch *w);

#endif
