/*
 * log_watch.h - hears of changes in directories: inotify. What it cannot watch (no more watches, another machine's
 * changes) is not heard of; whoever waits looks at times as well. One thread at a time.
 */
#ifndef EVENTLOG_READ_LOG_WATCH_H
#define EVENTLOG_READ_LOG_WATCH_H

struct log_watch {
    int fd;   /* for poll(); -1: none */
    int last; /* the newest watch */
};

#define LOG_WATCH_NONE { -1, -1 }

void log_watch_open(struct log_watch *w); /* fd stays -1 where the system has no more of them */
void log_watch_close(struct log_watch *w);

/* 1 if the directory was not watched before: what happened in it until now has to be looked at. */
int log_watch_directory(struct log_watch *w, const char *path);

/* Takes all that was heard, so that the descriptor is quiet. */
void log_watch_drain(struct log_watch *w);

#endif
