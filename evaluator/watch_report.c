#include "evaluator/watch_report.h"

#include "base/clock.h"
#include "base/human.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORK_PAUSE 0.1 /* seconds between two writes of EVAL/work.json */

static void describe_work(const struct evaluation_watch *w, struct evaluation_work *out)
{
    memset(out, 0, sizeof *out);
    out->pid = getpid();
    out->queued = (int64_t)queue_count(w->queue);
    out->not_whole = (int64_t)w->undecided;
    out->newest_step = w->newest_step;
    out->until_step = w->settings.ending.until_step;
    out->updated = clock_wall();
    for (size_t i = 0; i < w->flight_count && out->in_hand_count < WORK_IN_HAND_MAX; i++) {
        const struct evaluation_flight *f = w->flights[i];
        struct work_in_hand *one = &out->in_hand[out->in_hand_count];

        if (f->state != FLIGHT_RUNNING)
            continue;
        one->checkpoint = f->item.checkpoint;
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

static void count(struct buffer *b, size_t n, const char *what)
{
    if (n)
        buffer_format(b, ", %zu %s", n, what);
}

void watch_report_text(const struct evaluation_watch *w, struct buffer *out)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);
    char age[HUMAN_TEXT_MAX];

    buffer_format(out, "%zu done", s->done);
    count(out, outcomes_count(&w->outcomes, LEDGER_FAILED), "failed");
    count(out, outcomes_count(&w->outcomes, LEDGER_GONE), "gone");
    count(out, queue_count(w->queue) + w->flight_count, "queued");
    if (w->settings.pin && queue_count(w->queue))
        buffer_format(out, " (%.1f MB pinned)", (double)queue_pinned_bytes(w->queue) / 1e6);
    count(out, w->undecided, "not whole");
    if (w->newest_written > 0)
        buffer_format(out, ", newest %s old", human_duration(clock_wall() - w->newest_written, age));
    if (s->has_best)
        buffer_format(out, ", best %s %.3f (%s)", s->rule.metric, s->best_value, s->best.name);
}
