/* watch_inotify.h without libinotifytools: starting always fails, so its users poll. */
#include "evaluator/watch/watch_inotify.h"

int watch_inotify_start(struct watch_inotify **out, const char *const *directories, size_t count, double retry_seconds,
                        int *standing, struct error *e)
{
    (void)directories;
    (void)count;
    (void)retry_seconds;
    (void)standing;
    *out = NULL;
    return error_set(e, ERR_IO, "built without libinotifytools");
}

void watch_inotify_stop(struct watch_inotify *w)
{
    (void)w;
}

int watch_inotify_descriptor(const struct watch_inotify *w)
{
    (void)w;
    return -1;
}

unsigned watch_inotify_take(struct watch_inotify *w, size_t i)
{
    (void)w;
    (void)i;
    return 0;
}

void watch_inotify_names(struct watch_inotify *w, size_t i, struct buffer *out)
{
    (void)w;
    (void)i;
    (void)out;
}

void watch_inotify_settle(struct watch_inotify *w)
{
    (void)w;
}
