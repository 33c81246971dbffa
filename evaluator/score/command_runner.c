#include "evaluator/score/command_runner.h"

#include "base/clock.h"
#include "evaluator/score/command_process.h"
#include "evaluator/score/command_words.h"
#include "evaluator/score/metric_output.h"
#include "evaluator/score/runner_log.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ---- command attempts -------------------------------------------------------------------------------------------- */

enum { BACK_OFF_MAX = 60, BACK_OFF_DOUBLED = 6, LACK_SECONDS = 1 };

void command_attempts_start(struct command_attempts *a)
{
    *a = (struct command_attempts){ .phase = ATTEMPTS_WAITING };
}

enum command_step command_attempts_step(struct command_attempts *a, double now)
{
    if (a->phase != ATTEMPTS_WAITING)
        return ATTEMPTS_LOOK;
    if (a->stopping) {
        a->phase = ATTEMPTS_IDLE;
        return ATTEMPTS_GIVE_UP;
    }
    if (now < a->retry_at)
        return ATTEMPTS_SLEEP;
    a->phase = ATTEMPTS_RUNNING;
    a->number++;
    return ATTEMPTS_BEGIN;
}

static enum runner_state pause_for(struct command_attempts *a, double seconds, double now)
{
    a->phase = ATTEMPTS_WAITING;
    a->retry_at = now + seconds;
    return RUNNER_BUSY;
}

enum runner_state command_attempts_end(struct command_attempts *a, enum command_outcome outcome, int gone,
                                       int64_t retries, double now)
{
    if (outcome == ATTEMPT_LACK) {
        a->number--;
        return pause_for(a, LACK_SECONDS, now);
    }
    if (outcome == ATTEMPT_FAILED && !gone && a->number <= retries)
        return pause_for(a, a->number <= BACK_OFF_DOUBLED ? 1 << (a->number - 1) : BACK_OFF_MAX, now);
    a->phase = ATTEMPTS_IDLE;
    if (outcome == ATTEMPT_DONE || outcome == ATTEMPT_STOPPED)
        return outcome == ATTEMPT_DONE ? RUNNER_DONE : RUNNER_STOPPED;
    return gone ? RUNNER_GONE : RUNNER_FAILED;
}

double command_attempts_due(const struct command_attempts *a, double now)
{
    if (a->phase != ATTEMPTS_WAITING)
        return INFINITY;
    return a->stopping ? 0 : a->retry_at - now;
}

/* ---- command runner ---------------------------------------------------------------------------------------------- */

enum { VALUES = 5, LOG_BYTES_MAX = 16 << 20 };

static const struct {
    const char *placeholder, *variable;
    int text; /* not a number */
} names[VALUES] = {
    { "checkpoint", "EVALUATOR_CHECKPOINT", 1 }, { "step", "EVALUATOR_STEP", 0 }, { "index", "EVALUATOR_INDEX", 0 },
    { "eval_dir", "EVALUATOR_EVAL_DIR", 1 },     { "name", "EVALUATOR_NAME", 1 },
};

struct slot {
    struct command_attempts attempts;
    const struct runner_job *job;
    struct command_process process;
    struct error lack; /* the resource lacking for the last attempt; code OK if none */
    struct metric_output output;
    struct evaluation_metrics metrics;
};

struct command_runner {
    char **words;
    struct command_runner_options options;
    int poll_fd; /* readable when a command printed something or ended */
    struct slot *slots;
};

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static int launch(struct command_runner *r, struct slot *s, struct error *e)
{
    char step[24], index[24];
    const char *const texts[VALUES] = { s->job->path, step, index, s->job->eval_directory, s->job->checkpoint->name };
    struct command_value values[VALUES];
    struct command_variable variables[VALUES];
    char **words = NULL, **environment = NULL;
    int rc;

    snprintf(step, sizeof step, "%" PRId64, s->job->checkpoint->step);
    snprintf(index, sizeof index, "%" PRId64, s->job->index);
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = (struct command_value){ names[i].placeholder, texts[i], NULL };
        variables[i] = (struct command_variable){ names[i].variable, texts[i] };
    }
    if ((rc = command_words_fill(r->words, values, VALUES, &words, e)) == OK &&
        !(environment = command_process_environment(variables, VALUES)))
        rc = error_memory(e, NULL, "for the environment of the command");
    if (!s->lack.code)
        command_log_note(&s->process.log, "attempt %" PRId64 ": %s", s->attempts.number, r->options.command);
    if (rc == OK && (rc = command_process_start(&s->process, words, environment, 0, r->poll_fd, e)) == OK)
        metric_output_init(&s->output, r->options.metric);
    command_words_free(words);
    free(environment);
    return rc;
}

static int runner_start(void *context, size_t slot, const struct runner_job *job, struct error *e)
{
    struct command_runner *r = context;
    struct slot *s = &r->slots[slot];
    char log[PATH_MAX];

    (void)e;
    *s = (struct slot){ .job = job };
    command_process_init(&s->process, LOG_BYTES_MAX);
    if (runner_log_path(job, log, sizeof log))
        command_log_open(&s->process.log, log);
    command_attempts_start(&s->attempts);
    return OK;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void take_output(void *context, const char *bytes, size_t n)
{
    struct slot *s = context;

    metric_output_add(&s->output, bytes, n, &s->metrics);
}

static enum command_outcome judge(const struct command_runner *r, struct slot *s, struct evaluation *out,
                                  struct error *why)
{
    char log[PATH_MAX + 8];

    if (s->attempts.stopping)
        return ATTEMPT_STOPPED;
    if (command_process_outcome(&s->process, r->words[0], r->options.timeout, "--exec-timeout", why) != OK)
        return why->system && error_is_lack(why) ? ATTEMPT_LACK : ATTEMPT_FAILED;
    if (metric_output_finish(&s->output, &s->metrics, why) != OK) {
        command_log_see(&s->process.log, log, sizeof log);
        if (strlen(why->message) + strlen(log) < sizeof why->message)
            strcat(why->message, log);
        return ATTEMPT_USELESS;
    }
    out->metrics = s->metrics;
    s->metrics = (struct evaluation_metrics){ NULL, 0, 0 };
    return ATTEMPT_DONE;
}

static void release_attempt(struct slot *s)
{
    command_process_release(&s->process);
    metric_output_release(&s->output);
    evaluation_metrics_release(&s->metrics);
}

/* why: of a failure or a lack; changed if the checkpoint is gone. */
static enum runner_state end_attempt(const struct command_runner *r, struct slot *s, enum command_outcome outcome,
                                     struct error *why)
{
    const int failed = outcome == ATTEMPT_FAILED || outcome == ATTEMPT_USELESS;
    enum runner_state state;
    int gone;

    if (failed)
        command_log_note(&s->process.log, "%s", why->message);
    gone = failed && access(s->job->witness, F_OK) < 0 && errno == ENOENT;
    state = command_attempts_end(&s->attempts, outcome, gone, r->options.retries, clock_monotonic());
    if (state == RUNNER_GONE)
        error_set(why, ERR_IO, "deleted before the command had evaluated it (--pin keeps checkpoints until then)");
    s->lack = outcome == ATTEMPT_LACK ? *why : (struct error){ 0 };
    if (state != RUNNER_BUSY)
        command_log_close(&s->process.log);
    return state;
}

static enum runner_state finish(const struct command_runner *r, struct slot *s, struct evaluation *out,
                                struct error *why)
{
    enum command_outcome outcome;

    command_process_finish(&s->process);
    outcome = judge(r, s, out, why);
    release_attempt(s);
    return end_attempt(r, s, outcome, why);
}

static enum runner_state runner_look(void *context, size_t slot, struct runner_progress *progress,
                                     struct evaluation *out, struct error *why)
{
    struct command_runner *r = context;
    struct slot *s = &r->slots[slot];
    const enum command_step step = command_attempts_step(&s->attempts, clock_monotonic());
    enum runner_state state = RUNNER_BUSY;
    struct error reason = { 0 };

    if (step == ATTEMPTS_GIVE_UP)
        state = end_attempt(r, s, ATTEMPT_STOPPED, &reason);
    else if (step == ATTEMPTS_BEGIN && launch(r, s, &reason) != OK)
        state = end_attempt(r, s, error_is_lack(&reason) ? ATTEMPT_LACK : ATTEMPT_FAILED, &reason);
    *progress = (struct runner_progress){ -1, WEIGHTS_UNKNOWN, s->lack.code ? s->lack.message : NULL };
    if (s->attempts.phase == ATTEMPTS_RUNNING && command_process_look(&s->process, r->options.timeout, take_output, s))
        state = finish(r, s, out, &reason);
    if (why)
        *why = reason;
    return state;
}

static void runner_stop(void *context, size_t slot)
{
    struct command_runner *r = context;
    struct slot *s = &r->slots[slot];

    s->attempts.stopping = 1;
    if (s->attempts.phase == ATTEMPTS_RUNNING)
        command_process_stop(&s->process, 1); /* stopping is urgent */
}

static double runner_due(void *context)
{
    const struct command_runner *r = context;
    double now = clock_monotonic(), due = INFINITY;

    for (size_t i = 0; i < (size_t)r->options.jobs; i++) {
        const struct slot *s = &r->slots[i];

        due = fmin(due, command_attempts_due(&s->attempts, now));
        if (s->attempts.phase == ATTEMPTS_RUNNING)
            due = fmin(due, command_process_due(&s->process, r->options.timeout));
    }
    return due > 0 ? due : 0;
}

static void runner_free(void *context)
{
    struct command_runner *r = context;

    if (!r)
        return;
    for (size_t i = 0; r->slots && i < (size_t)r->options.jobs; i++) {
        struct slot *s = &r->slots[i];

        if (s->attempts.phase == ATTEMPTS_RUNNING)
            release_attempt(s);
        if (s->attempts.phase != ATTEMPTS_IDLE)
            command_log_close(&s->process.log);
    }
    if (r->poll_fd >= 0)
        close(r->poll_fd);
    free(r->slots);
    command_words_free(r->words);
    free(r);
}

int command_runner_new(struct runner *out, const struct command_runner_options *options, struct error *e)
{
    struct command_runner *r = calloc(1, sizeof *r);
    struct command_value values[VALUES];
    int rc;

    if (!r)
        return error_memory(e, NULL, "for the runner");
    r->options = *options;
    r->options.jobs = options->jobs ? options->jobs : 1;
    r->poll_fd = -1;
    for (size_t i = 0; i < VALUES; i++)
        values[i] = (struct command_value){ names[i].placeholder, NULL, names[i].text ? names[i].variable : NULL };
    if ((rc = command_words_split(options->command, &r->words, e)) != OK ||
        (rc = command_words_check(r->words, values, VALUES, e)) != OK) {
        error_prefix(e, "--exec");
    } else if (!(r->slots = calloc((size_t)r->options.jobs, sizeof *r->slots))) {
        rc = error_memory(e, NULL, "for %lld commands at a time", (long long)r->options.jobs);
    } else if ((r->poll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        rc = error_system(e, "cannot make a descriptor for the runner");
    } else {
        *out = (struct runner){ .name = "command",
                                .slots = (size_t)r->options.jobs,
                                .descriptor = r->poll_fd,
                                .by_path = 1,
                                .start = runner_start,
                                .look = runner_look,
                                .stop = runner_stop,
                                .due = runner_due,
                                .free = runner_free,
                                .context = r };
        return OK;
    }
    runner_free(r);
    return rc;
}
