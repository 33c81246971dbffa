#include "evaluator/evaluation_watch.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/process.h"
#include "evaluator/evaluation_intake.h"
#include "evaluator/evaluation_record.h"
#include "evaluator/record/evaluation_work.h"
#include "evaluator/record/ledger.h"
#include "evaluator/record/pin.h"
#include "evaluator/score/command_stamp.h"
#include "evaluator/watch_log.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DISTURBED_MAX = 3 }; /* how often in a row a checkpoint may change during its evaluation */
#define LACK_SECONDS 1.0
#define MEND_SECONDS 1.0 /* between two looks at the command's files */
#define WORK_PAUSE 0.1   /* seconds between two writes of EVAL/work.json */

struct evaluation_watch {
    struct evaluation_watch_settings settings;
    struct watch_log says;
    struct evaluation_intake *intake;
    struct queue *queue; /* of the intake */
    struct evaluation_record *record;
    struct evaluation_flight **flights; /* ascending by step */
    size_t flight_count, flight_capacity;

    int64_t evaluations, skipped;
    int64_t position;     /* counts the checkpoints that could be evaluated, for `every` */
    double last_recorded; /* monotonic: an evaluation */
    double last_start;
    double lack_until;           /* monotonic: a resource was lacking; start none before */
    struct evaluation_work work; /* as in EVAL/work.json */
    double work_next;            /* monotonic: do not write it again before */
    uint64_t command;            /* command_stamp() when it was last started; 0: it has not been */
    int command_changes;         /* 1: it changed while it ran, as if it wrote to a file of its own */
    int waits_for_mend;          /* 1: the command failed too often in the same way; none is started */
    double mend_next;            /* monotonic: when to look again whether it was mended */
    int failed_training_said;
    enum evaluation_weights weights_said;
    struct ending_training training;
    enum ending_training_end training_end; /* according to training.json, if that counts */
    const char *draining;                  /* why it will end once the existing checkpoints are evaluated */
    const char *ended;
    int end_posted;
    struct error error; /* it cannot go on */
};

int evaluation_watch_hear(struct evaluation_watch *w, struct error *e)
{
    return w->error.code != OK ? error_copy(e, &w->error) : evaluation_intake_hear(w->intake, e);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void note_training(struct evaluation_watch *w)
{
    struct training_state state;
    int known = training_state_read(w->settings.checkpoint_directory, &state, NULL) == 1;
    int failed = known && (!strcmp(state.state, "failed") ||
                           (w->settings.ending.wait_for_restart && !strcmp(state.state, "stopped")));

    w->training_end = ending_training_ended(&w->training, known ? &state : NULL, clock_monotonic());
    if (failed && !w->failed_training_said && !w->settings.ending.forever)
        watch_log_say(&w->says, "training.json says that the training %s at step %" PRId64 "; waiting for its restart",
                      strcmp(state.state, "failed") ? "was stopped" : "failed", state.global_step);
    w->failed_training_said = failed;
}

int evaluation_watch_open(struct evaluation_watch **out, const struct evaluation_watch_settings *settings,
                          struct log *log, struct error *e)
{
    struct evaluation_watch *w = calloc(1, sizeof *w);
    int rc;

    *out = NULL;
    if (!w)
        return error_memory(e, NULL, "to watch %s", settings->checkpoint_directory);
    w->settings = *settings;
    w->says = (struct watch_log){ log, settings->name };
    if ((rc = evaluation_intake_new(&w->intake, &w->settings, &w->says, e)) == OK) {
        w->queue = evaluation_intake_queue(w->intake);
        rc = evaluation_record_open(&w->record, &w->settings, &w->says, w->queue, e);
    }
    if (rc != OK || (rc = evaluation_intake_begin(w->intake, w->record, e)) != OK) {
        evaluation_watch_close(w);
        return rc;
    }
    w->position = evaluation_record_summary(w->record)->highest_step >= 0; /* that one, by an earlier process */
    note_training(w);
    *out = w;
    return OK;
}

/* Frees a flight without recording it. */
static void drop(struct evaluation_watch *w, struct evaluation_flight *flight)
{
    const struct checkpoint_identity *checkpoint = &evaluation_flight_item(flight)->checkpoint;
    const int large = evaluation_flight_detail(flight) != NULL;
    size_t i = 0;

    while (w->flights[i] != flight)
        i++;
    memmove(w->flights + i, w->flights + i + 1, (--w->flight_count - i) * sizeof *w->flights);
    if (*checkpoint->name)
        evaluation_record_forget(w->record, checkpoint);
    evaluation_flight_free(flight);
    if (large)
        malloc_trim(0); /* gives back memory of pictures and tables, whose holes make the heap grow */
}

void evaluation_watch_close(struct evaluation_watch *w)
{
    if (!w)
        return;
    evaluation_intake_free(w->intake);
    while (w->flight_count)
        drop(w, w->flights[0]);
    free(w->flights);
    evaluation_record_close(w->record, w->ended ? w->ended : "stopped");
    free(w);
}

/* ---- choosing and waiting ---------------------------------------------------------------------------------------- */

/* NULL: evaluate it. Otherwise why it is skipped. Skipped checkpoints are not in the ledger: a later start without the
 * option, or with another, evaluates them. So a restart must not evaluate what an earlier process has skipped: of the
 * checkpoints found in the first look, the two selecting modes accept only those above the ledger's highest step. */
static const char *skip(struct evaluation_watch *w, const struct queue_item *item)
{
    const struct evaluation_watch_settings *s = &w->settings;
    int64_t highest = evaluation_record_summary(w->record)->highest_step;
    int selecting = s->latest_only || s->every > 1;

    if (item->checkpoint.step >= 0 && item->checkpoint.step < s->from)
        return "--from";
    if (selecting && item->found <= evaluation_intake_facts(w->intake).first_look && item->checkpoint.step < highest)
        return s->latest_only ? "--latest-only" : "--every";
    if (s->latest_only && queue_count(w->queue))
        return "--latest-only";
    if (s->every > 1 && !item->again && w->position++ % s->every)
        return "--every";
    return NULL;
}

static int take_off(struct evaluation_watch *w, const struct queue_item *item, struct evaluation_flight **out,
                    struct error *e)
{
    const struct ledger_summary *s = evaluation_record_summary(w->record);
    size_t i = w->flight_count;
    struct evaluation_flight *f;
    int rc;

    if (!ARRAY_ROOM(w->flights, w->flight_capacity, w->flight_count + 1))
        return error_memory(e, NULL, "to evaluate %s", item->checkpoint.name);
    if ((rc = evaluation_flight_new(&f, item, w->settings.checkpoint_directory, w->settings.eval_directory,
                                    (int64_t)(ledger_lines(s) + w->flight_count), e)) != OK)
        return rc;
    w->last_start = clock_monotonic();
    if (w->settings.command)
        evaluation_flight_record(f)->command = w->command = command_stamp(w->settings.command);
    evaluation_record_begin(w->record, f);
    while (i > 0 && evaluation_flight_item(w->flights[i - 1])->checkpoint.step > item->checkpoint.step)
        i--;
    /* A flight whose points are written keeps its place even if an earlier step comes late. */
    while (i < w->flight_count && evaluation_flight_state(w->flights[i]) >= FLIGHT_PREPARED)
        i++;
    memmove(w->flights + i + 1, w->flights + i, (w->flight_count++ - i) * sizeof *w->flights);
    *out = w->flights[i] = f;
    return 1;
}

int evaluation_watch_take(struct evaluation_watch *w, struct evaluation_flight **out, struct error *e)
{
    struct queue_item item;
    const char *why;
    int rc;

    while (queue_take(w->queue, &item)) {
        if (!(why = skip(w, &item))) {
            if ((rc = take_off(w, &item, out, e)) < 0)
                queue_item_release(&item);
            return rc;
        }
        w->skipped++;
        if (item.pinned)
            pin_remove(item.pinned);
        watch_log_say(&w->says, "%s: skipped (%s)", item.checkpoint.name, why);
        queue_item_release(&item);
    }
    return 0;
}

static void say_lack(struct evaluation_watch *w, struct queue_item *item, const char *lack, const char *when)
{
    if (!item->lack_said)
        watch_log_warn(&w->says, "warning", "%s waits: %s; trying again %s", item->checkpoint.name, lack, when);
    item->lack_said = 1;
}

void evaluation_watch_progress(struct evaluation_watch *w, struct evaluation_flight *flight,
                               const struct runner_progress *progress)
{
    static const char *const said[] = { "", "variables themselves", "moving averages of the variables",
                                        "moving averages of those variables that have one" };

    if (progress->weights != WEIGHTS_UNKNOWN && progress->weights != w->weights_said) {
        w->weights_said = progress->weights;
        watch_log_say(&w->says, "%s: evaluated with the %s", evaluation_flight_item(flight)->checkpoint.name,
                      said[progress->weights]);
    }
    if (progress->lack)
        say_lack(w, evaluation_flight_item(flight), progress->lack, "every second");
    watch_log_progress(&w->says, evaluation_flight_record(flight), progress->share, queue_count(w->queue));
}

int evaluation_watch_start(struct evaluation_watch *w, struct evaluation_flight *f, int by_path)
{
    const char *name = evaluation_flight_item(f)->checkpoint.name;
    enum evaluation_flight_files files;
    struct error why = { 0 };
    uint64_t now;

    if (!by_path)
        return 1;
    if ((files = evaluation_flight_files(f, &now, &why)) == FLIGHT_FILES_GOING) {
        error_set(&why, ERR_IO, "was being deleted before it was evaluated");
        evaluation_flight_land(f, RUNNER_GONE, NULL, &why);
        return 0;
    }
    if (files != FLIGHT_FILES_CHANGED ||
        evaluation_intake_changed(w->intake, evaluation_flight_item(f), 0, INT_MAX) < 0)
        return 1;
    w->skipped++;
    watch_log_say(&w->says, "%s: changed while it waited; what is there now is evaluated instead", name);
    drop(w, f);
    return 0;
}

static void remember_after(struct evaluation_watch *w, struct evaluation_flight *f, uint64_t digest)
{
    struct checkpoint_identity *checkpoint = &evaluation_flight_record(f)->checkpoint;

    if (queue_remember(w->queue, checkpoint->name, digest, NULL) == OK)
        checkpoint->digest_after = digest;
}

/* It changed during its evaluation. 1: drop it and evaluate it again; 0: that is pointless, and why has the reason. */
static int again(struct evaluation_watch *w, struct evaluation_flight *f, uint64_t now, enum runner_state *state,
                 struct error *why)
{
    const struct queue_item *item = evaluation_flight_item(f);
    const int times = evaluation_intake_changed(w->intake, item, 1, DISTURBED_MAX);

    if (times >= 0 && times < DISTURBED_MAX) {
        watch_log_warn(&w->says, "warning",
                       "%s: changed while it was evaluated; its result is dropped, and it is evaluated again when it "
                       "has stopped changing",
                       item->checkpoint.name);
        drop(w, f);
        return 1;
    }
    *state = times < 0 ? RUNNER_GONE : RUNNER_FAILED;
    if (times < 0) {
        error_set(why, ERR_IO, "changed while it was evaluated, and is gone");
        return 0;
    }
    error_set(why, ERR_PEER,
              "changed during each of %d evaluations; either the command writes to it, or it is overwritten faster "
              "than it is evaluated",
              times);
    if (now)
        remember_after(w, f, now);
    return 0;
}

static const char *reason_to_end(struct evaluation_watch *w)
{
    const struct ending_rules *rules = &w->settings.ending;
    const double last_news = fmax(w->last_recorded, evaluation_intake_facts(w->intake).last_found);
    struct ending_facts facts = { .idle_seconds = clock_monotonic() - last_news,
                                  .evaluations = w->evaluations,
                                  .highest_step = evaluation_record_summary(w->record)->highest_step };

    note_training(w);
    facts.training = w->training_end;
    facts.done_file_there = rules->done_file && access(rules->done_file, F_OK) == 0;
    facts.process_gone = rules->pid && !process_lives(rules->pid, -1);
    return ending_reason(rules, &facts);
}

/* Nor does it say anything if the checkpoint could not be read; that is tried again without end, unless it is all that
 * keeps the work from ending. */
static int passes(struct evaluation_watch *w, const struct queue_item *item, const struct error *why)
{
    return error_is_lack(why) || (error_may_pass(why) && (item->unread < WATCHER_TRIES || !reason_to_end(w)));
}

/* A lack of resources says nothing about the checkpoint, which waits as before, with its files open or pinned. */
static void take_back(struct evaluation_watch *w, struct evaluation_flight *f, const struct error *lack)
{
    struct queue_item item = *evaluation_flight_item(f);
    const double now = clock_monotonic();

    evaluation_record_forget(w->record, &item.checkpoint);
    memset(evaluation_flight_item(f), 0, sizeof item);
    drop(w, f);
    say_lack(w, &item, lack->message, error_is_lack(lack) ? "every second" : "less and less often");
    item.again = 1;
    if (error_is_lack(lack))
        w->lack_until = now + LACK_SECONDS;
    else
        item.not_before = now + sighting_pause(w->settings.watcher.poll_seconds, ++item.unread);
    if (queue_return(w->queue, &item, &w->error) != OK)
        queue_item_release(&item);
}

void evaluation_watch_landed(struct evaluation_watch *w, struct evaluation_flight *f, int by_path,
                             enum runner_state state, struct evaluation *v, const struct error *why)
{
    struct queue_item *item = evaluation_flight_item(f);
    enum evaluation_flight_files files = FLIGHT_FILES_SAME;
    const int ours = !by_path || (item->pinned && !item->opened); /* what a command could not do is its failure */
    struct error changed = { 0 };
    uint64_t now = 0;

    if (state == RUNNER_STOPPED) {
        drop(w, f);
        return;
    }
    if (state == RUNNER_FAILED && item->pinned && !item->opened &&
        access(evaluation_flight_job(f)->witness, F_OK) < 0 && errno == ENOENT) {
        evaluation_intake_find_again(w->intake, item);
        drop(w, f);
        return;
    }
    if (by_path || state == RUNNER_FAILED) /* a runner that held it open has read what was found, or failed */
        files = evaluation_flight_files(f, &now, &changed);
    if (files == FLIGHT_FILES_LACK ||
        (state == RUNNER_FAILED && (error_is_lack(why) || (error_may_pass(why) && ours)))) {
        if (state == RUNNER_DONE)
            evaluation_release(v);
        if (files == FLIGHT_FILES_LACK)
            why = &changed;
        if (passes(w, item, why)) {
            take_back(w, f, why);
            return;
        }
        state = RUNNER_FAILED;
        evaluation_flight_record(f)->checkpoint.has_digest = 0; /* so that the next start tries again */
        files = FLIGHT_FILES_SAME;
    }
    if (files == FLIGHT_FILES_GOING) {
        if (state == RUNNER_DONE)
            evaluation_release(v);
        state = RUNNER_GONE;
        error_set(&changed, ERR_IO, "was being deleted while it was evaluated");
        why = &changed;
    } else if (files == FLIGHT_FILES_CHANGED) {
        if (state == RUNNER_DONE)
            evaluation_release(v);
        if (again(w, f, now, &state, &changed))
            return;
        why = &changed;
    } else if (item->again) {
        evaluation_intake_undisturbed(w->intake, item->checkpoint.name);
    }
    if (files == FLIGHT_FILES_GREW)
        remember_after(w, f, now);
    evaluation_flight_land(f, state, v, why);
    if (w->settings.checkpoint_time)
        evaluation_flight_record(f)->point_time = item->modified;
}

/* Seconds until the next evaluation may start. */
static double interval_left(const struct evaluation_watch *w)
{
    const double now = clock_monotonic(), left = w->last_start + w->settings.min_interval - now;
    const double interval = w->settings.min_interval > 0 && w->last_start > 0 ? left : 0;

    return fmax(fmax(interval, w->lack_until - now), 0);
}

static int enough(const struct evaluation_watch *w, size_t flights)
{
    int64_t most = w->settings.ending.max_evaluations;

    return most && w->evaluations + (int64_t)flights >= most;
}

int evaluation_watch_ready(const struct evaluation_watch *w, size_t window)
{
    const struct evaluation_record_facts record = evaluation_record_facts(w->record);

    return queue_due(w->queue) <= clock_monotonic() && !w->ended && !w->waits_for_mend && w->flight_count < window &&
           interval_left(w) <= 0 && !enough(w, w->flight_count) && !record.pending && !record.retries;
}

static void forgotten(void *context, const char *name)
{
    evaluation_intake_forgotten(context, name);
}

/* A command that fails for each checkpoint in the same way has a mistake, which says nothing about the checkpoints:
 * none is started until one of its files was changed, and then those that failed are evaluated again, in their order:
 * found before the next is started, so that the points stay in one run. */
static int wait_for_mend(struct evaluation_watch *w, struct error *e)
{
    const struct evaluation_record_facts facts = evaluation_record_facts(w->record);
    const int enough_failed = facts.same_failures >= SAME_FAILURES_MOST;
    uint64_t now;

    if (!w->settings.command || (!enough_failed && !w->waits_for_mend) ||
        (w->waits_for_mend && enough_failed && w->mend_next > clock_monotonic()))
        return OK;
    w->mend_next = clock_monotonic() + MEND_SECONDS;
    now = command_stamp(w->settings.command);
    if (!w->waits_for_mend && (now == w->command || w->command_changes)) {
        w->waits_for_mend = 1;
        w->command = now;
        watch_log_warn(&w->says, "error", "the command failed in the same way %zu times in a row; %s",
                       facts.same_failures,
                       reason_to_end(w) ? "the next start evaluates these again"
                                        : "waiting until a file that --exec names is changed, or for a restart");
    } else if (now == w->command && !enough_failed) { /* of several at a time */
        w->waits_for_mend = 0;
        watch_log_say(&w->says, "the command has evaluated a checkpoint; going on");
    } else if (now != w->command) {
        w->command_changes = !w->waits_for_mend;
        w->waits_for_mend = 0;
        watch_log_say(&w->says, "the command was changed: evaluating %zu failed checkpoints again, and the others",
                      evaluation_record_mended(w->record, now, forgotten, w->intake));
        return evaluation_intake_look(w->intake, e);
    }
    return OK;
}

/* The work ends with a command that was not mended: what waits is left to the next start, with its pins. */
static int leave_untried(struct evaluation_watch *w, int signalled, struct error *e)
{
    struct queue_item item;
    size_t count = 0;

    while (queue_take_if(w->queue, NULL, &item)) {
        evaluation_record_untried(w->record, &item.checkpoint, "the command had failed too often in the same way");
        queue_item_release(&item);
        count++;
    }
    if (count)
        watch_log_warn(&w->says, "warning", "%zu checkpoints are left untried, for the next start", count);
    return evaluation_record_pending(w->record, signalled, e);
}

/* Nothing waits and nothing is being evaluated: is the work done? */
static int decide(struct evaluation_watch *w, struct error *e)
{
    const char *reason = reason_to_end(w);
    int rc;

    if (!reason != !w->draining) {
        /* The condition held before this listing, so the listing has everything that existed when it became true. */
        if ((rc = evaluation_intake_close(w->intake, reason != NULL, e)) != OK)
            return rc;
        w->draining = reason;
    }
    if (w->draining && !evaluation_record_facts(w->record).pending) {
        const struct evaluation_intake_facts facts = evaluation_intake_facts(w->intake);

        if (!facts.queued && !facts.undecided)
            w->ended = w->draining;
    }
    return OK;
}

/* Is EVAL there? Where it was made again, so is what goes with it; what waited pinned is found again, if the trainer
 * has not deleted it. */
static int check(struct evaluation_watch *w, int signalled, struct error *e)
{
    int rc = evaluation_record_check(w->record, w->flight_count ? w->flights[0] : NULL, signalled, e);

    if (rc != EVALUATION_MADE_AGAIN)
        return rc;
    for (size_t i = 0; i < w->flight_count; i++)
        evaluation_record_begin(w->record, w->flights[i]);
    evaluation_intake_find_lost(w->intake);
    memset(&w->work, 0, sizeof w->work);
    return OK;
}

/* Records all flights that have landed, up to the first that has not, so points and lines are in the order of the
 * steps. Looks at the directory between two syncs, since a sync may take long and a checkpoint may be deleted soon. */
static int record_flights(struct evaluation_watch *w, int signalled, struct error *e)
{
    int rc = OK, done = 1;

    while (rc == OK && w->flight_count && evaluation_flight_state(w->flights[0]) != FLIGHT_RUNNING) {
        struct evaluation_flight *f = w->flights[0];

        rc = evaluation_record_flight(w->record, f, signalled, &done, e);
        if (!done)
            return rc;
        w->evaluations++;
        w->last_recorded = clock_monotonic();
        if (evaluation_flight_item(f)->pinned)
            pin_remove(evaluation_flight_item(f)->pinned);
        drop(w, f);
    }
    return rc;
}

int evaluation_watch_tick(struct evaluation_watch *w, int signalled, struct error *e)
{
    const struct evaluation_record_facts record = evaluation_record_facts(w->record);
    int rc;

    if (w->ended)
        return OK;
    if ((rc = evaluation_watch_hear(w, e)) != OK)
        return rc;
    if (record.retries && record.due > 0 && !signalled)
        return OK;
    if ((rc = check(w, signalled, e)) != OK || (rc = evaluation_record_pending(w->record, signalled, e)) != OK ||
        (rc = record_flights(w, signalled, e)) != OK)
        return rc == EVALUATION_LATER ? OK : rc;
    if (!signalled && (rc = wait_for_mend(w, e)) != OK)
        return rc;
    if (w->waits_for_mend && !w->flight_count && (signalled || reason_to_end(w)) &&
        (rc = leave_untried(w, signalled, e)) != OK)
        return rc == EVALUATION_LATER ? OK : rc;
    if (signalled || w->flight_count)
        return OK;
    if (enough(w, 0))
        w->ended = reason_to_end(w);
    else if (w->waits_for_mend && reason_to_end(w))
        w->ended = "the command fails";
    else if (!queue_count(w->queue) && (rc = decide(w, e)) != OK)
        return rc;
    if (!w->ended)
        return OK;
    evaluation_record_check_soon(w->record); /* all that was done must be there at the end */
    if ((rc = check(w, signalled, e)) != OK) {
        w->ended = NULL;
        return rc == EVALUATION_LATER ? OK : rc;
    }
    evaluation_intake_rest(w->intake);
    watch_log_say(&w->says, "ending: %s", w->ended);
    evaluation_watch_post_end(w, NULL);
    return OK;
}

void evaluation_watch_post_end(struct evaluation_watch *w, const char *reason)
{
    if (!w->end_posted)
        evaluation_record_end(w->record, w->ended ? w->ended : reason);
    w->end_posted = 1;
}

/* ---- for others -------------------------------------------------------------------------------------------------- */

struct evaluation_watch_facts evaluation_watch_facts(const struct evaluation_watch *w)
{
    return (struct evaluation_watch_facts){
        .settings = &w->settings,
        .record = evaluation_record_facts(w->record),
        .intake = evaluation_intake_facts(w->intake),
        .in_flight = w->flight_count,
        .evaluations = w->evaluations,
        .skipped = w->skipped,
        .last_start = w->last_start,
        .ended = w->ended,
    };
}

struct evaluation_intake *evaluation_watch_intake(const struct evaluation_watch *w)
{
    return w->intake;
}

static void describe_work(const struct evaluation_watch *w, struct evaluation_work *out)
{
    const struct evaluation_intake_facts intake = evaluation_intake_facts(w->intake);

    *out = (struct evaluation_work){ .pid = getpid(),
                                     .queued = (int64_t)intake.queued,
                                     .not_whole = (int64_t)intake.undecided,
                                     .updated = clock_wall(),
                                     .until_step = w->settings.ending.until_step,
                                     .newest_step = intake.newest_written > 0
                                                        ? intake.newest_step
                                                        : evaluation_record_facts(w->record).last_step };
    for (size_t i = 0; i < w->flight_count && out->in_hand_count < WORK_IN_HAND_MAX; i++)
        if (evaluation_flight_state(w->flights[i]) == FLIGHT_RUNNING)
            out->in_hand[out->in_hand_count++] = (struct work_in_hand){
                evaluation_flight_item(w->flights[i])->checkpoint, evaluation_flight_record(w->flights[i])->started
            };
}

void evaluation_watch_report(struct evaluation_watch *w, int now)
{
    struct evaluation_work work;

    describe_work(w, &work);
    if (evaluation_work_same(&work, &w->work) && work.updated - w->work.updated < (double)WORK_RENEWED_SECONDS)
        return;
    if (clock_monotonic() < w->work_next && !now)
        return;
    w->work_next = clock_monotonic() + WORK_PAUSE;
    w->work = work;
    evaluation_work_write(w->settings.eval_directory, &work, NULL);
}

static double report_due(const struct evaluation_watch *w)
{
    struct evaluation_work work;

    describe_work(w, &work);
    return evaluation_work_same(&work, &w->work) ? w->work.updated + (double)WORK_RENEWED_SECONDS - work.updated
                                                 : w->work_next - clock_monotonic();
}

double evaluation_watch_due(const struct evaluation_watch *w)
{
    const double interval = interval_left(w);
    double due;

    if (w->ended)
        return INFINITY;
    due = fmin(report_due(w), evaluation_record_facts(w->record).due);
    if (queue_count(w->queue) && interval > 0)
        due = fmin(due, interval);
    if (w->waits_for_mend)
        due = fmin(due, w->mend_next - clock_monotonic());
    if (queue_due(w->queue) > clock_monotonic())
        due = fmin(due, queue_due(w->queue) - clock_monotonic());
    return fmax(due, 0);
}
