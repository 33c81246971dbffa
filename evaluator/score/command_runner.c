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

enum { VALUES = 5, LOG_BYTES_MAX = 16 << 20, BACK_OFF_MAX = 60, LACK_SECONDS = 1 };

static const struct { const char *placeholder, *variable; } names[VALUES] = {
    { "checkpoint", "EVALUATOR_CHECKPOINT" }, { "step", "EVALUATOR_STEP" },         { "index", "EVALUATOR_INDEX" },
    { "eval_dir", "EVALUATOR_EVAL_DIR" },     { "name", "EVALUATOR_NAME" },
};

enum phase { IDLE, RUNNING, WAITING };

struct slot {
    enum phase phase;
    const struct runner_job *job;
    int64_t attempt;                 /* from 1 */
    struct command_process process;
    double retry_at;                 /* WAITING */
    struct error lack;               /* WAITING: what the machine lacked, code OK if nothing */
    int stopping;
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
    const char *const texts[VALUES] = { s->job->path, step, index, s->job->eval_directory,
                                        s->job->checkpoint->name };
    struct command_value values[VALUES];
    struct command_variable variables[VALUES];
    char **words = NULL, **environment = NULL;
    int rc;

    snprintf(step, sizeof step, "%" PRId64, s->job->checkpoint->step);
    snprintf(index, sizeof index, "%" PRId64, s->job->index);
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = (struct command_value){ names[i].placeholder, texts[i] };
        variables[i] = (struct command_variable){ names[i].variable, texts[i] };
    }
    if ((rc = command_words_fill(r->words, values, VALUES, &words, e)) == OK &&
        !(environment = command_process_environment(variables, VALUES)))
        rc = error_set(e, ERR_NOMEM, "no memory for the environment of the command");
    if (!s->lack.code)
        command_log_note(&s->process.log, "attempt %" PRId64 ": %s", s->attempt, r->options.command);
    if (rc == OK && (rc = command_process_start(&s->process, words, environment, 0, r->poll_fd, e)) == OK) {
        s->phase = RUNNING;
        metric_output_init(&s->output);
    }
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
    *s = (struct slot){ .job = job, .attempt = 0 };
    command_process_init(&s->process, LOG_BYTES_MAX);
    if (runner_log_path(job, log, sizeof log))
        command_log_open(&s->process.log, log);
    s->phase = WAITING; /* for the first attempt, at once */
    s->retry_at = 0;
    return OK;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void take_output(void *context, const char *bytes, size_t n)
{
    struct slot *s = context;

    metric_output_add(&s->output, bytes, n, &s->metrics);
}

/* What became of the attempt; 1: trying again may help. */
static int judge(const struct command_runner *r, struct slot *s, struct evaluation *out, struct error *why)
{
    char log[PATH_MAX + 8];

    if (command_process_outcome(&s->process, r->words[0], r->options.timeout, "--exec-timeout", why) != OK)
        return 1;
    if (metric_output_finish(&s->output, &s->metrics, why) != OK) {
        command_log_see(&s->process.log, log, sizeof log);
        if (strlen(why->message) + strlen(log) < sizeof why->message)
            strcat(why->message, log);
        return 0;
    }
    out->metrics = s->metrics;
    s->metrics = (struct evaluation_metrics){ NULL, 0, 0 };
    return 0;
}

static void release_attempt(struct slot *s)
{
    command_process_release(&s->process);
    metric_output_release(&s->output);
    evaluation_metrics_release(&s->metrics);
}

static enum runner_state go_idle(struct slot *s, enum runner_state state)
{
    command_log_close(&s->process.log);
    s->phase = IDLE;
    return state;
}

/* After an attempt that failed for a reason in why: again later, or the end of it. */
static enum runner_state after_failure(const struct command_runner *r, struct slot *s, int again, struct error *why)
{
    double pause = s->attempt < 7 ? (double)(1 << (s->attempt - 1)) : BACK_OFF_MAX;

    command_log_note(&s->process.log, "%s", why->message);
    if (access(s->job->witness, F_OK) < 0 && errno == ENOENT) {
        error_set(why, ERR_IO, "deleted before the command had evaluated it (--pin keeps checkpoints until then)");
        return go_idle(s, RUNNER_GONE);
    }
    if (!again || s->attempt > r->options.retries)
        return go_idle(s, RUNNER_FAILED);
    s->phase = WAITING;
    s->retry_at = clock_monotonic() + fmin(pause, BACK_OFF_MAX);
    return RUNNER_BUSY;
}

/* The same attempt again, as often as it takes. */
static enum runner_state wait_for_machine(struct slot *s, const struct error *lack)
{
    s->attempt--;
    s->lack = *lack;
    s->phase = WAITING;
    s->retry_at = clock_monotonic() + LACK_SECONDS;
    return RUNNER_BUSY;
}

/* The next attempt, or, while the machine lacks what it takes, the same again. */
static enum runner_state begin(struct command_runner *r, struct slot *s, struct error *why)
{
    struct error reason = { 0 };

    s->attempt++;
    if (launch(r, s, &reason) == OK)
        return RUNNER_BUSY;
    if (error_is_lack(&reason))
        return wait_for_machine(s, &reason);
    s->lack.code = OK;
    if (why)
        *why = reason;
    return after_failure(r, s, 1, &reason);
}

static enum runner_state finish(struct command_runner *r, struct slot *s, struct evaluation *out, struct error *why)
{
    int again;
    struct error reason = { 0 };
    enum runner_state state = RUNNER_DONE;

    command_process_finish(&s->process);
    again = s->stopping ? 0 : judge(r, s, out, &reason);
    release_attempt(s);
    if (s->stopping)
        return go_idle(s, RUNNER_STOPPED);
    if (reason.system && error_is_lack(&reason))
        return wait_for_machine(s, &reason);
    s->lack.code = OK;
    if (reason.code)
        state = after_failure(r, s, again, &reason);
    else
        go_idle(s, RUNNER_DONE);
    if (why)
        *why = reason;
    return state;
}

static enum runner_state runner_look(void *context, size_t slot, struct runner_progress *progress,
                                     struct evaluation *out, struct error *why)
{
    struct command_runner *r = context;
    struct slot *s = &r->slots[slot];

    *progress = (struct runner_progress){ -1, WEIGHTS_UNKNOWN, NULL };
    if (s->phase == WAITING && s->stopping)
        return go_idle(s, RUNNER_STOPPED);
    if (s->phase == WAITING && clock_monotonic() >= s->retry_at) {
        const enum runner_state state = begin(r, s, why);

        if (state != RUNNER_BUSY)
            return state;
    }
    progress->lack = s->lack.code ? s->lack.message : NULL;
    if (s->phase == WAITING || !command_process_look(&s->process, r->options.timeout, take_output, s))
        return RUNNER_BUSY;
    return finish(r, s, out, why);
}

static void runner_stop(void *context, size_t slot)
{
    struct command_runner *r = context;
    struct slot *s = &r->slots[slot];

    s->stopping = 1;
    if (s->phase == RUNNING)
        command_process_stop(&s->process, 1); /* whoever stops is in a hurry */
}

static double runner_due(void *context)
{
    const struct command_runner *r = context;
    double now = clock_monotonic(), due = INFINITY;

    for (size_t i = 0; i < r->options.jobs; i++) {
        const struct slot *s = &r->slots[i];

        if (s->phase == WAITING)
            due = fmin(due, s->stopping ? 0 : s->retry_at - now);
        if (s->phase == RUNNING)
            due = fmin(due, command_process_due(&s->process, r->options.timeout));
    }
    return due > 0 ? due : 0;
}

static void runner_free(void *context)
{
    struct command_runner *r = context;

    if (!r)
        return;
    for (size_t i = 0; r->slots && i < r->options.jobs; i++) {
        struct slot *s = &r->slots[i];

        if (s->phase == RUNNING)
            release_attempt(s);
        if (s->phase != IDLE)
            go_idle(s, RUNNER_STOPPED);
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
        return error_set(e, ERR_NOMEM, "no memory for the runner");
    r->options = *options;
    r->options.jobs = options->jobs ? options->jobs : 1;
    r->poll_fd = -1;
    for (size_t i = 0; i < VALUES; i++)
        values[i] = (struct command_value){ names[i].placeholder, NULL };
    if ((rc = command_words_split(options->command, &r->words, e)) != OK ||
        (rc = command_words_check(r->words, values, VALUES, e)) != OK) {
        error_prefix(e, "--exec");
    } else if (!(r->slots = calloc(r->options.jobs, sizeof *r->slots))) {
        rc = error_set(e, ERR_NOMEM, "no memory for %zu commands at a time", r->options.jobs);
    } else if ((r->poll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        rc = error_system(e, "cannot make a descriptor for the runner");
    } else {
        *out = (struct runner){ .name = "command", .slots = r->options.jobs, .descriptor = r->poll_fd,
                                .by_path = 1, .start = runner_start, .look = runner_look, .stop = runner_stop,
                                .due = runner_due, .free = runner_free, .context = r };
        return OK;
    }
    runner_free(r);
    return rc;
}
