#include "trainer/time_watch.h"

#include "base/buffer.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- times exchange ---------------------------------------------------------------------------------------------- */

enum { TAG_WINDOW = 32000 }; /* above those of steps */

int times_gather(struct rank_times *out, struct world *w, const struct phase_clock *clock, int workers, int synchronous,
                 const char *doing, struct error *e)
{
    struct phase_times *all = calloc((size_t)world_size(w), sizeof *all);
    int rc = all ? OK : error_memory(e, NULL, "for the times of %d ranks", world_size(w));

    *out = (struct rank_times){ all, world_size(w), workers, synchronous, world_places(w) };
    if ((rc = world_agree(w, doing, rc, e)) == OK)
        rc = world_gather(w, &clock->times, sizeof *all, all, doing, e);
    if (rc < 0)
        times_release(out);
    return rc;
}

void times_release(struct rank_times *t)
{
    free(t->all);
    *t = (struct rank_times){ 0 };
}

/* ---- while the run goes on --------------------------------------------------------------------------------------- */

/* Rank 0: the next window of worker r. */
static int expect(struct times_windows *t, int r, struct error *e)
{
    return world_receive(t->world, r, TAG_WINDOW, &t->slots[r], sizeof t->slots[r], &t->messages[r], e);
}

static int send_window(struct times_windows *t, int last, struct error *e)
{
    const struct phase_times now = phase_clock_times(t->clock);

    t->slots[0] = (struct times_window){ phase_times_since(&now, &t->sent), last };
    t->sent = now;
    return world_send(t->world, 0, TAG_WINDOW, &t->slots[0], sizeof t->slots[0], &t->messages[0], e);
}

static void windows_release(struct times_windows *t)
{
    free(t->slots);
    free(t->messages);
    free(t->times);
    free(t->open);
    *t = (struct times_windows){ 0 };
}

int times_windows_open(struct times_windows *t, struct world *w, struct phase_clock *clock, int workers, int worker,
                       struct error *e)
{
    const size_t count = worker == 0 ? (size_t)workers : 1;
    int rc = OK;

    *t = (struct times_windows){ .world = w, .clock = clock, .workers = workers, .worker = worker, .step = -1 };
    t->slots = calloc(count, sizeof *t->slots);
    t->messages = calloc(count, sizeof *t->messages);
    t->times = calloc(count, sizeof *t->times);
    t->open = calloc(count, sizeof *t->open);
    if (!t->slots || !t->messages || !t->times || !t->open)
        rc = error_memory(e, NULL, "for the times of %d workers", workers);
    for (int r = 1; worker == 0 && r < workers && rc == OK; r++) {
        t->open[r] = 1;
        rc = expect(t, r, e);
    }
    if (rc < 0)
        windows_release(t);
    return rc;
}

/* Rank 0: 1: a window of every worker has come, < 0: an error. */
static int all_came(struct times_windows *t, struct error *e)
{
    int rc;

    for (int r = 1; r < t->workers; r++)
        if (t->messages[r].active) {
            if ((rc = message_done(t->world, &t->messages[r], e)) != 1)
                return rc;
            t->open[r] = !t->slots[r].last;
        }
    return 1;
}

int times_windows_step(struct times_windows *t, int64_t now, int ends, int64_t *step, struct error *e)
{
    int rc = 0;

    if (t->worker > 0) {
        if (ends && (rc = message_done(t->world, &t->messages[0], e)) == 1)
            rc = send_window(t, 0, e);
        return rc < 0 ? rc : 0;
    }
    if (ends && t->step < 0) {
        const struct phase_times times = phase_clock_times(t->clock);

        t->slots[0].times = phase_times_since(&times, &t->sent);
        t->sent = times;
        t->step = now;
    }
    if (t->step < 0 || (rc = all_came(t, e)) != 1)
        return rc;
    for (int r = 0; r < t->workers && rc >= 0; r++) {
        t->times[r] = t->slots[r].times;
        t->slots[r].times = (struct phase_times){ 0 };
        rc = r > 0 && t->open[r] ? expect(t, r, e) : 0;
    }
    *step = t->step;
    t->step = -1;
    return rc < 0 ? rc : 1;
}

/* Waits for the message to, or from, rank r. */
static int wait_for_window(struct times_windows *t, struct message *m, int r, const char *doing, struct error *e)
{
    struct patience p;
    char name[WORLD_NAME_MAX];
    int rc;

    patience_init(&p, t->world, world_deadline(t->world));
    while ((rc = message_done(t->world, m, e)) == 0)
        if (!patience_pause(&p)) {
            world_name(t->world, r, name, sizeof name);
            if ((rc = patience_over(&p, e, "for %s to %s", name, doing)) < 0)
                return rc;
        }
    return rc < 0 ? rc : OK;
}

int times_windows_close(struct times_windows *t, int ended, const char *doing, struct error *e)
{
    int rc = OK;

    if (!t->slots)
        return OK;
    if (ended && t->worker > 0) {
        if ((rc = wait_for_window(t, &t->messages[0], 0, doing, e)) == OK && (rc = send_window(t, 1, e)) == OK)
            rc = wait_for_window(t, &t->messages[0], 0, doing, e);
    }
    for (int r = 1; ended && t->worker == 0 && r < t->workers && rc == OK; r++)
        while (rc == OK && t->open[r]) {
            rc = t->messages[r].active ? wait_for_window(t, &t->messages[r], r, doing, e) : expect(t, r, e);
            if (rc == OK && !t->messages[r].active)
                t->open[r] = !t->slots[r].last;
        }
    windows_release(t);
    return rc;
}

/* ---- time watch -------------------------------------------------------------------------------------------------- */

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
