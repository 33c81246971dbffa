#include "trainer/time_watch.h"

#include "base/buffer.h"

#include <inttypes.h>

int time_watch_open(struct time_watch *w, struct progress *p, struct strategy *s, int64_t step, int64_t every,
                    struct error *e)
{
    int rc;

    *w = (struct time_watch){ .progress = p, .every = every, .last = step };
    if ((rc = straggler_watch_init(&w->stragglers, strategy_worker_ranks(s), strategy_waits_for_all(s), step, e)) < 0)
        return rc;
    if ((rc = times_windows_open(&w->windows, s->world, s->options.clock, strategy_worker_ranks(s), s->worker, e)) < 0)
        straggler_watch_release(&w->stragglers);
    else
        w->strategy = s;
    return rc;
}

static void say(const struct time_watch *w, enum straggler_news news, const struct straggler *s)
{
    struct buffer text = BUFFER_EMPTY;
    char name[WORLD_NAME_MAX];

    world_name(w->strategy->world, s->worker, name, sizeof name);
    if (news == STRAGGLER_SLOW)
        straggler_text(&text, s, name, 0);
    else
        buffer_format(&text, "%s is as fast as the others again since step %" PRId64, name, s->since);
    if (!w->progress->quiet)
        log_line(w->progress->log, "%s", buffer_text(&text));
    buffer_release(&text);
}

int time_watch_step(struct time_watch *w, int64_t step, struct error *e)
{
    const int ends = w->strategy && step / w->every != w->last / w->every;
    enum straggler_news news;
    struct straggler s;
    int64_t at;
    int rc;

    if (!w->strategy)
        return OK;
    if ((rc = times_windows_step(&w->windows, step, ends, &at, e)) < 0)
        return rc;
    w->last = step;
    if (rc == 0)
        return OK;
    progress_times(w->progress, at, w->windows.times, w->windows.workers);
    if ((news = straggler_watch_add(&w->stragglers, w->windows.times, at, &s)) != STRAGGLER_NOTHING)
        say(w, news, &s);
    return OK;
}

int time_watch_close(struct time_watch *w, int ended, const char *doing, struct error *e)
{
    int rc;

    if (!w->strategy)
        return OK;
    rc = times_windows_close(&w->windows, ended, doing, e);
    straggler_watch_release(&w->stragglers);
    w->strategy = NULL;
    return rc;
}
