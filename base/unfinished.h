/*
 * unfinished.h - removes files with temporary names on a signal. A writer registers such a file before making it, and
 * unregisters it once the name is gone. In programs that call unfinished_remove_at_signals(), SIGINT, SIGTERM and
 * SIGHUP remove the registered files, then end the program as usual; in others nothing happens. Thread-safe.
 */
#ifndef BASE_UNFINISHED_H
#define BASE_UNFINISHED_H

struct unfinished;

/* path: for unlinkat() in `directory`, which must stay open until the end; copied. NULL: no memory; a signal then
 * leaves the file. unfinished_end() accepts NULL. */
struct unfinished *unfinished_begin(int directory, const char *path);
void unfinished_end(struct unfinished *u);

/* Call once, in main(). Ignored signals stay ignored. */
void unfinished_remove_at_signals(void);

#endif
