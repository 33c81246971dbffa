/*
 * unfinished.h - files under temporary names, which a signal removes. Whoever makes such a file begins it here before,
 * and ends it once the name is gone. In a program that has called unfinished_remove_at_signals(), SIGINT, SIGTERM and
 * SIGHUP then remove those that have not ended, and end the program as they would without it; elsewhere nothing
 * happens. Thread-safe.
 */
#ifndef BASE_UNFINISHED_H
#define BASE_UNFINISHED_H

struct unfinished;

/* path: as unlinkat() takes it, with its directory, which stays open until the end; copied. Without memory NULL, which
 * is fine for unfinished_end(); the file is left by a signal then. */
struct unfinished *unfinished_begin(int directory, const char *path);
void unfinished_end(struct unfinished *u);

/* Once, in main(). Signals that are ignored stay ignored. */
void unfinished_remove_at_signals(void);

#endif
