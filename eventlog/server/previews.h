/*
 * previews.h - views of runs as they were saved, which are shown from the start until the loader has views of its own:
 * then the saved points have been read and verified, or the files again. One thread at a time, but for
 * previews_find(), which several may call meanwhile.
 */
#ifndef EVENTLOG_SERVER_PREVIEWS_H
#define EVENTLOG_SERVER_PREVIEWS_H

#include "eventlog/server/store/snapshot.h"

#include <stddef.h>

struct previews {            /* all zero at first */
    struct run_view **views; /* count of them, by name */
    size_t count;
};

/* Takes over `count` views, some of which may be NULL; of two with one name only one is kept. 0: no memory, and none is
 * kept. */
int previews_add(struct previews *p, struct run_view *const *views, size_t count);
int previews_find(const struct previews *p, const char *name); /* whether there is one */
void previews_drop(struct previews *p);

#endif
