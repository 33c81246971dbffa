/*
 * log_naming.h - finds names that mislead readers, which read every file of a run that looks like an event file, in
 * byte order of names, and may skip a directory that begins with a dot. Pure.
 */
#ifndef EVENTLOG_CHECK_LOG_NAMING_H
#define EVENTLOG_CHECK_LOG_NAMING_H

/*
 * 1 if the numbers in two file names, given in byte order, have the opposite order: `.10` before `.2`. Only numbers
 * that tell when a file was begun count: the seconds after `tfevents.`, or the last number of names that are equal up
 * to it. A process id or a number in a host name tells nothing.
 */
int log_naming_order_broken(const char *former, const char *name);

/* 1 if the file name ends like that of a backup, a part or an archive. */
int log_naming_is_copy(const char *name);

/* 1 if the name of the run's directory, or of one above it in the log, begins with a dot and is not "." itself. */
int log_naming_is_hidden(const char *run);

#endif
