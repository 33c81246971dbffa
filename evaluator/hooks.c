#include "evaluator/hooks.h"

#include "base/file.h"
#include "base/number.h"
#include "evaluator/score/command_process.h"
#include "evaluator/score/command_words.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const events[HOOK_EVENTS] = { "best", "failure", "end" };

static const struct {
    const char *placeholder, *variable;
    int text; /* not a number or a word of ours */
} names[] = {
    { "event", "EVALUATOR_EVENT", 0 },
    { "eval_dir", "EVALUATOR_EVAL_DIR", 1 },
    { "checkpoint_dir", "EVALUATOR_CHECKPOINT_DIR", 1 },
    { "checkpoint", "EVALUATOR_CHECKPOINT", 1 },
    { "name", "EVALUATOR_NAME", 1 },
    { "step", "EVALUATOR_STEP", 0 },
    { "metric", "EVALUATOR_METRIC", 1 },
    { "value", "EVALUATOR_VALUE", 0 },
    { "reason", "EVALUATOR_REASON", 1 },
    { "done", "EVALUATOR_DONE", 0 },
    { "failed", "EVALUATOR_FAILED", 0 },
    { "gone", "EVALUATOR_GONE", 0 },
};
enum { VALUES = sizeof names / sizeof *names };

/* one run of a command, waiting or running */
struct run {
    enum hook_event event;
    char *about;         /* for the log: "a: --on-best for model.ckpt-5" */
    char *texts[VALUES]; /* in the order of `names` */
    char log[PATH_MAX];  /* "": none */
    struct run *next;
};

struct hooks {
    char **words[HOOK_EVENTS]; /* NULL: none */
    struct hooks_options options;
    struct log *log;
    int poll_fd;
    struct run *first, *last; /* the first one is running, if any is */
    size_t pending;
    int running, left_out; /* left_out: skipped events were logged */
    struct command_process process;
};

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void run_free(struct run *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < VALUES; i++)
        free(r->texts[i]);
    free(r->about);
    free(r);
}

static struct run *run_new(enum hook_event event, const struct hook_values *v)
{
    char step[24] = "", value[NUMBER_TEXT_MAX] = "", counts[3][24];
    const char *const texts[VALUES] = { events[event],
                                        v->eval_directory,
                                        v->checkpoint_directory,
                                        v->checkpoint,
                                        v->name,
                                        step,
                                        v->metric,
                                        value,
                                        v->reason,
                                        counts[0],
                                        counts[1],
                                        counts[2] };
    struct run *r = calloc(1, sizeof *r);
    char file[64];
    int ok = r != NULL;

    if (v->step >= 0)
        snprintf(step, sizeof step, "%" PRId64, v->step);
    if (!isnan(v->value))
        number_text(v->value, value);
    snprintf(counts[0], sizeof counts[0], "%zu", v->done);
    snprintf(counts[1], sizeof counts[1], "%zu", v->failed);
    snprintf(counts[2], sizeof counts[2], "%zu", v->gone);
    for (size_t i = 0; ok && i < VALUES; i++)
        ok = (r->texts[i] = strdup(texts[i] ? texts[i] : "")) != NULL;
    if (ok && asprintf(&r->about, "%s%s--on-%s%s%s", v->watch ? v->watch : "", v->watch ? ": " : "", events[event],
                       v->name && event != HOOK_END ? " for " : "", v->name && event != HOOK_END ? v->name : "") < 0) {
        r->about = NULL;
        ok = 0;
    }
    if (!ok) {
        run_free(r);
        return NULL;
    }
    r->event = event;
    snprintf(file, sizeof file, "logs/on-%s.log", events[event]);
    if (file_join(r->log, sizeof r->log, v->eval_directory, "logs", NULL) != OK ||
        file_make_directories(r->log, NULL) != OK ||
        file_join(r->log, sizeof r->log, v->eval_directory, file, NULL) != OK)
        *r->log = '\0';
    return r;
}

static void open_log(struct command_log *l, const char *path)
{
    char old[PATH_MAX];
    struct stat st;

    if (!*path)
        return;
    if (stat(path, &st) == 0 && st.st_size > HOOK_LOG_ALL && snprintf(old, sizeof old, "%s.old", path) < PATH_MAX)
        rename(path, old);
    command_log_open(l, path);
}

static int hooks_start(struct hooks *h, struct error *e)
{
    const struct run *r = h->first;
    struct command_value values[VALUES];
    struct command_variable variables[VALUES];
    char **words = NULL, **environment = NULL;
    int rc;

    for (size_t i = 0; i < VALUES; i++) {
        values[i] = (struct command_value){ names[i].placeholder, r->texts[i], NULL };
        variables[i] = (struct command_variable){ names[i].variable, r->texts[i] };
    }
    command_process_init(&h->process, HOOK_LOG_RUN);
    open_log(&h->process.log, r->log);
    command_log_note(&h->process.log, "%s: %s", r->about, h->options.commands[r->event]);
    if ((rc = command_words_fill(h->words[r->event], values, VALUES, &words, e)) == OK &&
        !(environment = command_process_environment(variables, VALUES)))
        rc = error_memory(e, NULL, "for the environment of the command");
    if (rc == OK)
        rc = command_process_start(&h->process, words, environment, 1, h->poll_fd, e);
    command_words_free(words);
    free(environment);
    return rc;
}

/* The first run is over; why: how it failed, if it did. */
static void end_first(struct hooks *h, const struct error *why)
{
    struct run *r = h->first;

    if (why->code)
        log_event(h->log, "warning", NULL, "%s: %s", r->about, why->message);
    command_process_release(&h->process);
    command_log_close(&h->process.log);
    h->running = 0;
    h->first = r->next;
    if (!h->first)
        h->last = NULL;
    h->pending--;
    run_free(r);
}

void hooks_look(struct hooks *h)
{
    while (h && h->first) {
        struct error why = { 0 };

        if (!h->running && hooks_start(h, &why) != OK) {
            end_first(h, &why);
            continue;
        }
        h->running = 1;
        if (!command_process_look(&h->process, h->options.timeout, NULL, NULL))
            return;
        command_process_finish(&h->process);
        command_process_outcome(&h->process, h->words[h->first->event][0], h->options.timeout, "--hook-timeout", &why);
        end_first(h, &why);
    }
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

int hooks_wanted(const struct hooks *h, enum hook_event event)
{
    return h && h->words[event];
}

void hooks_post(struct hooks *h, enum hook_event event, const struct hook_values *values)
{
    struct run *r;

    if (!hooks_wanted(h, event))
        return;
    if (h->pending >= HOOKS_WAITING_MAX || !(r = run_new(event, values))) {
        if (!h->left_out)
            log_event(h->log, "warning", NULL, "--on-%s: %zu runs are waiting; events are skipped until they are done",
                      events[event], h->pending);
        h->left_out = 1;
        return;
    }
    h->left_out = 0;
    *(h->last ? &h->last->next : &h->first) = r;
    h->last = r;
    h->pending++;
    hooks_look(h);
}

int hooks_descriptor(const struct hooks *h)
{
    return h ? h->poll_fd : -1;
}

double hooks_due(const struct hooks *h)
{
    return h && h->running ? fmax(0, command_process_due(&h->process, h->options.timeout)) : INFINITY;
}

size_t hooks_pending(const struct hooks *h)
{
    return h ? h->pending : 0;
}

void hooks_stop(struct hooks *h)
{
    if (!h || !h->first)
        return;
    while (h->first->next) {
        struct run *r = h->first->next;

        h->first->next = r->next;
        run_free(r);
        h->pending--;
    }
    h->last = h->first;
    command_process_stop(&h->process, 1);
}

void hooks_free(struct hooks *h)
{
    if (!h)
        return;
    command_process_release(&h->process);
    command_log_close(&h->process.log);
    for (struct run *r = h->first, *next; r; r = next) {
        next = r->next;
        run_free(r);
    }
    for (int i = 0; i < HOOK_EVENTS; i++)
        command_words_free(h->words[i]);
    if (h->poll_fd >= 0)
        close(h->poll_fd);
    free(h);
}

int hooks_new(struct hooks **out, const struct hooks_options *options, struct log *log, struct error *e)
{
    struct command_value values[VALUES];
    struct hooks *h;
    int rc = OK;

    *out = NULL;
    if (!options->commands[HOOK_BEST] && !options->commands[HOOK_FAILURE] && !options->commands[HOOK_END])
        return OK;
    if (!(h = calloc(1, sizeof *h)))
        return error_memory(e, NULL, "for --on-end");
    h->options = *options;
    h->log = log;
    command_process_init(&h->process, HOOK_LOG_RUN);
    for (size_t i = 0; i < VALUES; i++)
        values[i] = (struct command_value){ names[i].placeholder, NULL, names[i].text ? names[i].variable : NULL };
    for (int i = 0; rc == OK && i < HOOK_EVENTS; i++)
        if (options->commands[i] && ((rc = command_words_split(options->commands[i], &h->words[i], e)) != OK ||
                                     (rc = command_words_check(h->words[i], values, VALUES, e)) != OK))
            error_prefix(e, "--on-%s", events[i]);
    if ((h->poll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0 && rc == OK)
        rc = error_system(e, "cannot make a descriptor for commands");
    if (rc == OK)
        *out = h;
    else
        hooks_free(h);
    return rc;
}
