/*
 * log_naming.h - what names do to readers, which take the files of a run in byte order, all that look like event files,
 * and no directory that begins with a dot. Pure.
 */
#ifndef EVENTLOG_CHECK_LOG_NAMING_H
#define EVENTLOG_CHECK_LOG_NAMING_H

/*
 * Two names of files in byte order whose numbers say the other order: `.10` before `.2`. It counts only where the
 * number tells when the file was begun: the seconds behind `tfevents.`, or the last number of a name that is equal
 * before it. A process id or a host's number tells nothing.
 */
int log_naming_order_broken(const char *former, const char *name);

/* The name of a file ends as those of backups, parts and archives do. */
int log_naming_is_copy(const char *name);

/* A directory on the way to the run, or the run's own, begins with a dot and is not "." itself. */
int log_naming_is_hidden(const char *run);

#endif
