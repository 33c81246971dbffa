#include "trainer/progress.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/json.h"
#include "base/program/terminal.h"
#include "eventlog/eventlog.h"
#include "trainer/collective/places.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCHED_SECONDS 10
enum { LINE_COLUMNS = 80 }; /* where there is no terminal */

/* 1: a run has logged there; a directory that cannot be read has none. */
static int has_event_files(const char *directory)
{
    DIR *d = directory ? opendir(directory) : NULL;
    int found = 0;

    for (const struct dirent *entry; d && !found && (entry = readdir(d)) != NULL;)
        found = entry->d_name[0] != '.' && strstr(entry->d_name, "tfevents") != NULL;
    if (d)
        closedir(d);
    return found;
}

int progress_open(struct progress *p, struct log *log, const char *log_directory, int64_t step, struct error *e)
{
    struct eventlog_writer_options options = { .flush_seconds = 0.5 };
    struct eventlog_error error = { 0 };

    if (step > 0 || has_event_files(log_directory)) { /* also after a run that died before its first checkpoint */
        options.resume = EVENTLOG_RESUME_PURGE;
        options.purge_step = step + 1;
    }
    memset(p, 0, sizeof *p);
    p->log = log;
    p->first_batch_seconds = -1;
    if (!log_directory)
        return OK;
    if (eventlog_writer_open(&p->events, log_directory, &options, &error) < 0) {
        p->events = NULL;
        return error_set(e, ERR_IO, "--log-dir %s: %s", log_directory, error.message);
    }
    return OK;
}

void progress_start(struct progress *p, int64_t step)
{
    p->first_step = p->logged = p->rated = step;
    p->started = p->logged_at = p->rated_at = p->shown_at = clock_monotonic();
    rate_start(&p->rate, step, p->started);
}

int progress_due(const struct progress *p, int64_t step, int64_t max_steps)
{
    return p->logged == p->first_step || step / p->log_every != p->logged / p->log_every || step == max_steps;
}

/* Training continues: a curve is not worth ending it. Logged once; lost points are reported at the end. */
static void complain(struct progress *p, const struct eventlog_error *error)
{
    if (!p->complained)
        log_line(p->log, "trainer: %s; training goes on", error->message);
    p->complained = 1;
}

static void scalar(struct progress *p, const char *tag, int64_t step, double value)
{
    struct eventlog_error error = { 0 };

    if (p->events && eventlog_writer_scalar(p->events, tag, step, 0, (float)value, &error) != EVENTLOG_OK)
        complain(p, &error);
}

static double per_second(int64_t steps, double seconds)
{
    return seconds > 0 ? (double)steps / seconds : 0;
}

/* Of so many steps a second, images, words and so on a second. */
static double units_per_second(const struct progress *p, double steps)
{
    return steps * (double)(p->samples_step * p->unit_each);
}

void progress_point(struct progress *p, const struct tally *tally, double decay, double rate,
                    const struct strategy_report *report)
{
    double now = clock_monotonic();
    double speed = per_second(tally->global_step - p->logged, now - p->logged_at);
    int64_t step = tally->global_step;
    char tag[32];

    p->loss = score_loss(&tally->score) + decay;
    p->precision = score_precision(&tally->score);
    if (p->logged == p->first_step)
        p->first_step_at = now;
    scalar(p, "loss", step, p->loss);
    scalar(p, "precision", step, p->precision);
    scalar(p, "learning_rate", step, rate);
    scalar(p, "global_step/sec", step, speed);
    snprintf(tag, sizeof tag, "%s/sec", p->unit);
    scalar(p, tag, step, units_per_second(p, speed));
    if (report->gradient_norm > 0)
        scalar(p, "gradient_norm", step, report->gradient_norm);
    if (report->staleness_max > 0)
        scalar(p, "staleness", step, report->staleness_mean);
    if (report->gradients.dropped > 0)
        scalar(p, "gradients_dropped", step, (double)report->gradients.dropped);
    if (p->prompt || now - p->flushed_at > 0.5) /* readers see whole points, half a second old at most */
        progress_flush(p, 0);
    p->logged = step;
    p->logged_at = now;
}

void progress_say(struct progress *p)
{
    const int64_t step = p->logged;

    if (!p->quiet)
        log_line(p->log, "step: %" PRId64 ", loss: %.3f, precision: %.3f", step, p->loss, p->precision);
    if (step / (10 * p->log_every) == p->rated / (10 * p->log_every))
        return;
    if (!p->quiet)
        log_line(p->log, "global_step/sec: %g", per_second(step - p->rated, p->logged_at - p->rated_at));
    p->rated = step;
    p->rated_at = p->logged_at;
}

void progress_hash(struct progress *p, int64_t step, uint64_t hash)
{
    struct eventlog_error error = { 0 };
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, hash);
    if (!p->quiet)
        log_line(p->log, "step: %" PRId64 ", weights: %s", step, text);
    if (p->events && eventlog_writer_text(p->events, "weights", step, 0, text, NULL, &error) != EVENTLOG_OK)
        complain(p, &error);
    if (ARRAY_ROOM(p->weights, p->weights_room, p->weights_count + 1))
        p->weights[p->weights_count++] = (struct progress_weights){ step, hash };
    else
        log_line(p->log, "trainer: no memory for the hash of step %" PRId64 "; --json will not have it", step);
}

/* Milliseconds a step. */
static double phase_of_step(const struct phase_times *t, int phase)
{
    return (double)t->nanoseconds[phase] / 1e6 / (double)t->steps;
}

void progress_times(struct progress *p, int64_t step, const struct phase_times *times, int workers)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        double least = INFINITY, most = 0, sum = 0;
        char tag[64];
        int count = 0;

        for (int r = 0; r < workers; r++)
            if (times[r].steps > 0) { /* an asynchronous worker may have ended */
                const double x = phase_of_step(&times[r], phase);

                least = x < least ? x : least;
                most = x > most ? x : most;
                sum += x;
                count++;
            }
        snprintf(tag, sizeof tag, "time/%s", phase_names[phase]);
        if (times[0].steps > 0)
            scalar(p, tag, step, phase_of_step(&times[0], phase));
        if (workers == 1 || count == 0)
            continue;
        snprintf(tag, sizeof tag, "time_min/%s", phase_names[phase]);
        scalar(p, tag, step, least);
        snprintf(tag, sizeof tag, "time_mean/%s", phase_names[phase]);
        scalar(p, tag, step, sum / count);
        snprintf(tag, sizeof tag, "time_max/%s", phase_names[phase]);
        scalar(p, tag, step, most);
    }
}

void progress_step(struct progress *p, int64_t step)
{
    rate_step(&p->rate, step, clock_monotonic());
}

void progress_show(struct progress *p)
{
    const double now = clock_monotonic(), speed = rate_per_second(&p->rate);
    char text[160], steps[HUMAN_TEXT_MAX], units[HUMAN_TEXT_MAX], left[HUMAN_TEXT_MAX];
    int n;

    if (p->quiet)
        return;
    n = snprintf(text, sizeof text, "step %" PRId64 " of %" PRId64, p->rate.step, p->max_steps);
    if (speed > 0)
        snprintf(text + n, sizeof text - (size_t)n, ", %s steps/s, %s %s/s, %s to go", human_number(speed, steps),
                 human_number(units_per_second(p, speed), units), p->unit,
                 human_duration(rate_left(&p->rate, p->max_steps, now), left));
    if (!p->watched) {
        log_progress(p->log, "%s", text);
    } else if (now - p->shown_at >= WATCHED_SECONDS) {
        p->shown_at = now;
        log_line(p->log, "%s", text);
    }
}

void progress_flush(struct progress *p, int durable)
{
    struct eventlog_error error = { 0 };

    p->flushed_at = clock_monotonic();
    if (p->events && (durable ? eventlog_writer_sync : eventlog_writer_flush)(p->events, &error) != EVENTLOG_OK)
        complain(p, &error);
}

int progress_close(struct progress *p)
{
    struct eventlog_writer_statistics s = { 0 };
    struct eventlog_error error = { 0 };
    int rc;

    free(p->weights);
    p->weights = NULL;
    p->weights_count = p->weights_room = 0;
    if (!p->events)
        return OK;
    eventlog_writer_statistics(p->events, &s, NULL);
    if ((rc = eventlog_writer_close(p->events, &error)) != EVENTLOG_OK)
        log_line(p->log, "trainer: %s", error.message);
    if (s.dropped)
        log_line(p->log, "trainer: %" PRIu64 " points of the curves are lost: %s", s.dropped, s.last_error.message);
    p->events = NULL;
    return rc != EVENTLOG_OK || s.dropped ? ERR_IO : OK;
}

void progress_first_batch(struct progress *p, struct phase_clock *clock)
{
    if (p->first_batch_seconds < 0)
        p->first_batch_seconds = (double)phase_clock_times(clock).nanoseconds[PHASE_INPUT] * 1e-9;
}

/* Rank 0's time in a phase, as a part of all its time. */
static double lead_share(const struct summary *s, enum phase phase)
{
    return s->times->ranks > 0 ? phase_times_share(&s->times->all[0], phase) : 0;
}

/* Rank 0's waiting for input after the first batch, as a part of its time since then. */
static double later_input_share(const struct progress *p, const struct summary *s)
{
    const double first = p->first_batch_seconds > 0 ? p->first_batch_seconds : 0;
    double input, all;

    if (s->times->ranks == 0)
        return 0;
    input = (double)s->times->all[0].nanoseconds[PHASE_INPUT] * 1e-9 - first;
    all = (double)phase_times_total(&s->times->all[0]) * 1e-9 - first;
    return all > 0 ? input / all : 0;
}

static void number(struct buffer *b, const char *name, double value)
{
    buffer_append_text(b, ", ");
    json_text(b, name);
    buffer_append_text(b, ": ");
    json_double(b, value);
}

/* "[{"from": 0, "to": 0, "pushes": 12}, ...]"; the last range may be open. */
static void histogram(struct buffer *b, const struct strategy_report *r)
{
    buffer_append_text(b, ", \"staleness_histogram\": [");
    for (size_t i = 0; i < r->staleness_ranges; i++) {
        const struct strategy_range *range = &r->staleness[i];

        buffer_format(b, "%s{\"from\": %" PRId64, i ? ", " : "", range->from);
        if (range->to < INT64_MAX)
            buffer_format(b, ", \"to\": %" PRId64, range->to);
        buffer_format(b, ", \"pushes\": %" PRId64 "}", range->pushes);
    }
    buffer_append_text(b, "]");
}

/* "partitions": 8, "partitions_tried": [{"partitions": 2, "seconds": 0.031}, ...] */
static void parts_json(struct buffer *b, const struct strategy_parts *p)
{
    number(b, "partitions", p->partitions);
    buffer_append_text(b, ", \"partitions_tried\": [");
    for (size_t i = 0; i < p->count; i++) {
        buffer_format(b, "%s{\"partitions\": %d", i ? ", " : "", p->tried[i].partitions);
        number(b, "seconds", p->tried[i].seconds);
        buffer_append_text(b, "}");
    }
    buffer_append_text(b, "]");
}

/* Logs into how many parts tables are cut, if that was searched. */
static void say_parts(const struct progress *p, const struct strategy_parts *parts)
{
    struct buffer b = BUFFER_EMPTY;

    if (!parts->count)
        return;
    for (size_t i = 0; i < parts->count; i++)
        buffer_format(&b, "%s%d: %.3g", i ? ", " : "", parts->tried[i].partitions, 1e3 * parts->tried[i].seconds);
    log_line(p->log, "tables in %d part%s, found by search; ms a step with %s", parts->partitions,
             parts->partitions == 1 ? "" : "s", buffer_text(&b));
    buffer_release(&b);
}

/* What updates used and left out; all 0 where they leave out nothing. */
static void gradients_json(struct buffer *b, const struct strategy_gradients *c)
{
    number(b, "gradients_used", (double)c->used);
    number(b, "gradients_dropped", (double)c->dropped);
    number(b, "workers_left_out", (double)c->absent);
    number(b, "samples_used", c->samples_used);
    number(b, "samples_dropped", c->samples_dropped);
}

/* "[{"step": 4, "weights": "00c0ffee00c0ffee"}, ...]" */
static void hashes(struct buffer *b, const struct progress *p)
{
    buffer_append_text(b, ", \"hashes\": [");
    for (size_t i = 0; i < p->weights_count; i++)
        buffer_format(b, "%s{\"step\": %" PRId64 ", \"weights\": \"%016" PRIx64 "\"}", i ? ", " : "",
                      p->weights[i].step, p->weights[i].hash);
    buffer_append_text(b, "]");
}

/* "[{"host": "a", "workers": [0, 1], "servers": [4]}, ...]" */
static void hosts(struct buffer *b, const struct rank_times *t)
{
    struct process own;

    if (!t->places)
        process_self(&own);
    places_json(b, t->places ? t->places : &own, t->ranks, t->workers);
}

static void print_json(const struct progress *p, const struct summary *s, double seconds)
{
    struct buffer b = BUFFER_EMPTY;
    double speed = per_second(s->global_step - p->first_step, seconds);
    char name[48];

    snprintf(name, sizeof name, "%s_per_second", p->unit);
    buffer_append_text(&b, "{\"state\": ");
    json_text(&b, s->state);
    buffer_append_text(&b, ", \"run_option\": ");
    json_text(&b, s->run_option);
    buffer_append_text(&b, ", \"transport\": ");
    json_text(&b, s->report.transport);
    buffer_format(&b,
                  ", \"world_size\": %d, \"workers\": %d, \"global_step\": %" PRId64 ", \"max_steps\": %" PRId64
                  ", \"steps\": %" PRId64,
                  s->world_size, s->workers, s->global_step, s->max_steps, s->global_step - p->first_step);
    number(&b, "seconds", seconds);
    number(&b, "steps_per_second", speed);
    number(&b, "samples_per_second", speed * (double)p->samples_step);
    if (strcmp(p->unit, "samples") != 0)
        number(&b, name, units_per_second(p, speed));
    number(&b, "first_step_seconds", p->first_step_at > 0 ? p->first_step_at - p->started : 0);
    number(&b, "bytes_per_step", s->report.bytes_step);
    number(&b, "waiting_share", lead_share(s, PHASE_WAITING));
    number(&b, "input_waiting_share", lead_share(s, PHASE_INPUT));
    number(&b, "first_batch_seconds", p->first_batch_seconds > 0 ? p->first_batch_seconds : 0);
    number(&b, "input_waiting_share_later", later_input_share(p, s));
    number(&b, "staleness_mean", s->report.staleness_mean);
    number(&b, "staleness_max", (double)s->report.staleness_max);
    number(&b, "variables_copied", (double)s->report.copies);
    histogram(&b, &s->report);
    gradients_json(&b, &s->report.gradients);
    parts_json(&b, &s->report.parts);
    number(&b, "loss", p->loss);
    number(&b, "precision", p->precision);
    buffer_format(&b, ", \"weights\": \"%016" PRIx64 "\"", s->hash);
    hashes(&b, p);
    buffer_append_text(&b, ", \"hosts\": ");
    hosts(&b, s->times);
    buffer_append_text(&b, ", ");
    traffic_json(&b, s->traffic, s->global_step - p->first_step);
    buffer_append_text(&b, ", ");
    time_report_json(&b, s->times);
    buffer_append_text(&b, "}\n");
    if (buffer_ok(&b)) {
        fwrite(b.data, 1, b.length, stdout);
        fflush(stdout);
    }
    buffer_release(&b);
}

/* Logs the communication of the ranks, if there are several. */
static void say_of_ranks(const struct progress *p, const struct summary *s)
{
    const struct strategy_report *r = &s->report;
    struct buffer busiest = BUFFER_EMPTY;
    char sent[HUMAN_TEXT_MAX], stale[80] = "";

    if (r->staleness_max > 0)
        snprintf(stale, sizeof stale, "; staleness mean %.2f, max %" PRId64, r->staleness_mean, r->staleness_max);
    if (s->traffic->ranks > 0) {
        const struct traffic_link link = traffic_busiest(s->traffic);

        buffer_append_text(&busiest, "; busiest link: ");
        traffic_text(&busiest, s->traffic, &link, s->global_step - p->first_step);
    }
    log_line(p->log, "rank 0 sent %s a step (%s) and waited %.1f %% of the time%s%s",
             human_bytes((uint64_t)r->bytes_step, sent), r->transport, 100 * lead_share(s, PHASE_WAITING), stale,
             buffer_text(&busiest));
    buffer_release(&busiest);
}

/* Each line of a text by itself. */
static void log_lines(const struct progress *p, const char *text)
{
    for (size_t n = strcspn(text, "\n"); text[n]; n = strcspn(text, "\n")) {
        log_line(p->log, "%.*s", (int)n, text);
        text += n + 1;
    }
}

/* Logs what the ranks' time was spent on, and the rank that the others waited for, if one has to be named. */
static void say_of_time(const struct progress *p, const struct rank_times *t)
{
    const int columns = terminal_columns(p->log->fd);
    struct buffer text = BUFFER_EMPTY;

    if (time_report_straggler(&text, t))
        buffer_append_byte(&text, '\n');
    if (p->explains_time)
        time_report_table(&text, t, columns ? columns : LINE_COLUMNS, !terminal_utf8());
    log_lines(p, buffer_text(&text));
    buffer_release(&text);
}

/* "staleness of 61 pushes: 12 of 0, 30 of 1, 7 of 16 to 23" */
static void say_of_staleness(const struct progress *p, const struct strategy_report *r)
{
    struct buffer counts = BUFFER_EMPTY;
    int64_t pushes = 0;

    for (size_t i = 0; i < r->staleness_ranges; i++) {
        const struct strategy_range *range = &r->staleness[i];

        if (!range->pushes)
            continue;
        buffer_format(&counts, "%s%" PRId64 " of %" PRId64, pushes ? ", " : "", range->pushes, range->from);
        if (range->to == INT64_MAX)
            buffer_append_text(&counts, " or more");
        else if (range->to > range->from)
            buffer_format(&counts, " to %" PRId64, range->to);
        pushes += range->pushes;
    }
    if (pushes && buffer_ok(&counts))
        log_line(p->log, "staleness of %" PRId64 " pushes: %s", pushes, buffer_text(&counts));
    buffer_release(&counts);
}

static void say_of_gradients(const struct progress *p, const struct strategy_gradients *c)
{
    char used[HUMAN_TEXT_MAX], dropped[HUMAN_TEXT_MAX];

    if (!c->used)
        return;
    log_line(p->log,
             "used %" PRId64 " gradients of %s images, dropped %" PRId64 " of %s (%.1f %%); updates left out %" PRId64
             " times a worker",
             c->used, human_number(c->samples_used, used), c->dropped, human_number(c->samples_dropped, dropped),
             100 * (double)c->dropped / (double)(c->used + c->dropped), c->absent);
}

static void say_the_end(const struct progress *p, const struct summary *s, double seconds)
{
    const int64_t steps = s->global_step - p->first_step;
    const double speed = per_second(steps, seconds);
    const int finished = !strcmp(s->state, "finished");
    char took[HUMAN_TEXT_MAX], rate[HUMAN_TEXT_MAX], units[HUMAN_TEXT_MAX], last[64] = "";

    log_line(p->log, "%s at step %" PRId64 " of %" PRId64 "%s%s%s; %s%s%s", s->state, s->global_step, s->max_steps,
             *s->reason ? " (" : "", s->reason, *s->reason ? ")" : "",
             *s->checkpoint ? "saved as " : "nothing is saved", s->checkpoint,
             *s->checkpoint && !finished ? ", which the same command resumes" : "");
    if (p->first_step_at > 0)
        snprintf(last, sizeof last, "; loss %.3f, precision %.3f", p->loss, p->precision);
    log_line(p->log, "%" PRId64 " steps in %s, %s steps/s, %s %s/s%s", steps, human_duration(seconds, took),
             human_number(speed, rate), human_number(units_per_second(p, speed), units), p->unit, last);
    if (s->world_size > 1)
        say_of_ranks(p, s);
    else if (s->workers > 1)
        log_line(p->log, "thread 0 waited %.1f %% of the time for the others", 100 * lead_share(s, PHASE_WAITING));
    if (p->streams && p->first_batch_seconds >= 0)
        log_line(p->log, "waited %s for the first batch, then %.1f %% of the time for input",
                 human_duration(p->first_batch_seconds, took), 100 * later_input_share(p, s));
    say_parts(p, &s->report.parts);
    say_of_staleness(p, &s->report);
    say_of_gradients(p, &s->report.gradients);
    if (s->times->ranks > 0)
        say_of_time(p, s->times);
}

void progress_summary(const struct progress *p, const struct summary *s, int json)
{
    const double seconds = clock_monotonic() - p->started;

    if (!p->quiet)
        say_the_end(p, s, seconds);
    if (json)
        print_json(p, s, seconds);
}
