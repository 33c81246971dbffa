#include "evaluator/watch_report.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORK_PAUSE 0.1 /* seconds between two writes of EVAL/work.json */

static void describe_work(const struct evaluation_watch *w, struct evaluation_work *out)
{
    memset(out, 0, sizeof *out);
    out->pid = getpid();
    out->queued = (int64_t)w->queue.count;
    out->not_whole = (int64_t)watcher_undecided(w->watcher);
    out->newest_step = w->newest_step;
    out->until_step = w->settings.ending.until_step;
    out->updated = clock_wall();
    for (size_t i = 0; i < w->flight_count && out->in_hand_count < WORK_IN_HAND_MAX; i++) {
        const struct evaluation_flight *f = w->flights[i];
        struct work_in_hand *one = &out->in_hand[out->in_hand_count];

        if (f->state != FLIGHT_RUNNING)
            continue;
        snprintf(one->checkpoint, sizeof one->checkpoint, "%s", f->item.name);
        one->step = f->item.step;
        one->since = f->record.started;
        out->in_hand_count++;
    }
}

void watch_report_write(struct evaluation_watch *w, int now)
{
    struct evaluation_work work;

    describe_work(w, &work);
    if (evaluation_work_same(&work, &w->work) && work.updated - w->work.updated < WORK_RENEWED_SECONDS)
        return;
    if (clock_monotonic() < w->work_next && !now)
        return;
    w->work_next = clock_monotonic() + WORK_PAUSE;
    w->work = work;
    evaluation_work_write(w->settings.eval_directory, &work, NULL);
}

double watch_report_due(const struct evaluation_watch *w)
{
    struct evaluation_work work;

    describe_work(w, &work);
    return evaluation_work_same(&work, &w->work) ? w->work.updated + WORK_RENEWED_SECONDS - work.updated
                                                 : w->work_next - clock_monotonic();
}

void watch_report_text(const struct evaluation_watch *w, char *out, size_t size)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);
    char best[320] = "none yet", newest[64] = "no checkpoint yet", pinned[48] = "";

    if (s->has_best)
        snprintf(best, sizeof best, "%.3f (%s)", s->best_value, s->best_checkpoint);
    if (w->newest_written > 0)
        snprintf(newest, sizeof newest, "newest %.0f s old", fmax(0, clock_wall() - w->newest_written));
    if (w->settings.pin)
        snprintf(pinned, sizeof pinned, " (%.1f MB pinned)", (double)queue_pinned_bytes(&w->queue) / 1e6);
    snprintf(out, size, "%s: %zu done, %zu queued%s, %zu not whole, %zu failed, %zu gone, best %s, %s",
             w->settings.checkpoint_directory, s->done, w->queue.count + w->flight_count, pinned,
             watcher_undecided(w->watcher), outcomes_count(&w->outcomes, LEDGER_FAILED),
             outcomes_count(&w->outcomes, LEDGER_GONE), best, newest);
}
