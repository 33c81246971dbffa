/*
 * log_roots.h - lists the runs of the directories that a server shows. Symbolic links that lead out of a directory are
 * left out unless they are to be followed: no file outside is read. One thread at a time.
 */
#ifndef EVENTLOG_SERVER_LOG_ROOTS_H
#define EVENTLOG_SERVER_LOG_ROOTS_H

#include "base/error.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/read/log_directory.h"

#include <stddef.h>

struct log_root {
    const char *path;
    const char *name; /* before the names of its runs, with a '/'; NULL or "": nothing */
};

struct log_roots {
    const struct log_root *roots;
    size_t count;
    int follow_links;
    void (*left_out)(void *context, const char *path); /* a link that leads out, each once */
    void *context;
    /* private */
    struct tag_index told;
    struct directory_cache cache;
};

/* Lists what exists. Directories that do not exist have no runs. Names are made valid UTF-8. On OK d is yours:
 * log_directory_release() it. ERR_NOMEM, or ERR_IO if a directory cannot be read. */
int log_roots_list(struct log_roots *r, struct log_directory *d, struct log_input *in, struct error *e);
int log_roots_are_same(struct log_roots *r); /* 1: another listing would find what the last one did */
void log_roots_release(struct log_roots *r);

#endif
