/* evaluator status: eval directories from outside, as a table or as JSON. */
#include "base/buffer.h"
#include "base/clock.h"
#include "base/directory_walk.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/options.h"
#include "base/subcommand.h"
#include "evaluator/evaluation_status.h"
#include "evaluator/tool/command.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct job {
    struct log log;
    int json, trouble; /* trouble: a checkpoint failed, or an evaluator died */
    size_t shown;
};

static void number(struct buffer *b, const char *name, double x)
{
    buffer_format(b, ",\"%s\":", name);
    json_double(b, x);
}

static void text(struct buffer *b, const char *name, const char *value)
{
    buffer_format(b, ",\"%s\":", name);
    json_text(b, value);
}

static void holder_json(struct buffer *b, const struct evaluation_status *s)
{
    if (s->holder == LOCK_NONE)
        return;
    text(b, "host", s->lock.process.host);
    buffer_format(b, ",\"pid\":%" PRId64 ",\"alive\":%s", s->lock.process.pid, s->holder == LOCK_ALIVE ? "true" :
                  s->holder == LOCK_ELSEWHERE ? "null" : "false");
    if (s->lock.since > 0)
        number(b, "since", s->lock.since);
    if (*s->lock.why)
        text(b, "why", s->lock.why);
    if (*s->lock.checkpoint_directory)
        text(b, "checkpoint_dir", s->lock.checkpoint_directory);
}

static void print_json(const char *directory, const struct evaluation_status *s)
{
    struct buffer b = BUFFER_EMPTY;

    buffer_append_text(&b, "{\"eval_dir\":");
    json_text(&b, directory);
    text(&b, "state", evaluation_status_state(s));
    holder_json(&b, s);
    buffer_format(&b, ",\"done\":%zu,\"failed\":%zu,\"gone\":%zu", s->done, s->failed, s->gone);
    if (s->queued >= 0)
        buffer_format(&b, ",\"queued\":%" PRId64, s->queued);
    else
        buffer_append_text(&b, ",\"queued\":null");
    if (s->has_best) {
        buffer_append_text(&b, ",\"best\":{\"metric\":");
        json_text(&b, s->best_metric);
        number(&b, "value", s->best_value);
        if (s->best_step >= 0) {
            buffer_format(&b, ",\"step\":%" PRId64, s->best_step);
            text(&b, "checkpoint", s->best_checkpoint);
        }
        buffer_append_text(&b, "}");
    } else {
        buffer_append_text(&b, ",\"best\":null");
    }
    if (s->last_time > 0) {
        buffer_format(&b, ",\"last\":{\"step\":%" PRId64, s->last_step);
        text(&b, "checkpoint", s->last_checkpoint);
        number(&b, "wall_time", s->last_time);
        number(&b, "age", clock_wall() - s->last_time);
        buffer_append_text(&b, "}");
    } else {
        buffer_append_text(&b, ",\"last\":null");
    }
    if (s->rate > 0)
        number(&b, "per_hour", s->rate);
    if (*s->last_reason)
        text(&b, "last_reason", s->last_reason);
    buffer_format(&b, ",\"odd_lines\":%zu}\n", s->odd_lines);
    fwrite(buffer_text(&b), 1, b.length, stdout);
    buffer_release(&b);
}

static void age_text(double seconds, char *out, size_t size)
{
    static const struct { double seconds; const char *name; } units[] = {
        { 86400, "d" }, { 3600, "h" }, { 60, "min" },
    };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (seconds >= 2 * units[i].seconds) {
            snprintf(out, size, "%.0f %s", floor(seconds / units[i].seconds), units[i].name);
            return;
        }
    snprintf(out, size, "%.0f s", fmax(0, seconds));
}

static void print_row(struct job *j, const char *directory, const struct evaluation_status *s)
{
    char pid[96] = "-", queued[24] = "-", best[64] = "-", best_step[24] = "", age[32] = "-", rate[32] = "-";

    if (!j->shown)
        printf("%-9s %8s %7s %7s %7s %7s  %-22s %9s %8s %9s  %s\n", "state", "pid", "done", "queued", "failed", "gone",
               "best", "at step", "age", "per hour", "eval directory");
    if (s->holder == LOCK_ALIVE)
        snprintf(pid, sizeof pid, "%" PRId64, s->lock.process.pid);
    if (s->queued >= 0)
        snprintf(queued, sizeof queued, "%" PRId64, s->queued);
    if (s->has_best)
        snprintf(best, sizeof best, "%.24s %.6g", s->best_metric, s->best_value);
    if (s->best_step >= 0)
        snprintf(best_step, sizeof best_step, "%" PRId64, s->best_step);
    if (s->last_time > 0)
        age_text(clock_wall() - s->last_time, age, sizeof age);
    if (s->rate > 0)
        snprintf(rate, sizeof rate, "%.4g", s->rate);
    printf("%-9s %8s %7zu %7s %7zu %7zu  %-22s %9s %8s %9s  %s\n", evaluation_status_state(s), pid, s->done, queued,
           s->failed, s->gone, best, best_step, age, rate, directory);
}

static int show(struct job *j, const char *directory)
{
    struct evaluation_status *s = malloc(sizeof *s);
    struct error e = { 0 };
    int rc = s ? evaluation_status_read(directory, s, &e) : error_set(&e, ERR_NOMEM, "no memory");

    if (rc == OK) {
        if (j->json)
            print_json(directory, s);
        else
            print_row(j, directory, s);
        j->shown++;
        j->trouble |= s->failed || s->gone || s->holder == LOCK_DEAD;
    } else {
        log_line(&j->log, "%s", e.message);
    }
    free(s);
    return rc;
}

static int is_eval_directory(const char *directory)
{
    char path[PATH_MAX];

    return (file_join(path, sizeof path, directory, "evaluations.jsonl", NULL) == OK && access(path, F_OK) == 0) ||
           (file_join(path, sizeof path, directory, "evaluator.lock", NULL) == OK && access(path, F_OK) == 0);
}

static int visit(void *context, const char *directory)
{
    int rc;

    if (!is_eval_directory(directory))
        return 0;
    rc = show(context, directory);
    return rc == OK ? 1 : rc;
}

int command_status(int argc, char **argv)
{
    struct job j = { .trouble = 0 };
    struct option table[] = {
        { OPTION_FLAG, .name = "json", .value = &j.json, .help = "One JSON object a line for each eval directory." },
    };
    const struct options options = {
        .program = "evaluator status", .usage = "[--json] EVAL...",
        .summary = "Says of each eval directory, or of those below a directory, what became of its checkpoints, which "
                   "was best, and whether an evaluator works there: from its ledger and lock, changing nothing. "
                   "State: running, ended, died (not in order), elsewhere (on another host, last seen there), "
                   "unknown. Queued: checkpoints of which the ledger knows nothing yet. Exit status: 0 all is well, "
                   "1 checkpoints failed or an evaluator died, 2 wrong usage or no eval directory.",
        .examples = "  evaluator status runs/mpi/eval runs/ps/eval\n"
                    "  evaluator status --json runs | jq -r .eval_dir\n",
        .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .wanted = "which eval directory?",
    };
    struct error e = { 0 };
    int count = 0, rc, wrong = 0;

    log_init(&j.log, "evaluator status", STDERR_FILENO);
    if ((rc = options_parse(&options, argc, argv, &count, &e)) != OPTIONS_RUN) {
        if (rc < 0)
            log_line(&j.log, "%s", e.message);
        return rc == OPTIONS_DONE ? EXIT_DONE : EXIT_USAGE;
    }
    for (int i = 1; i <= count; i++) {
        size_t before = j.shown;
        struct stat st;

        if (stat(argv[i], &st) < 0)
            log_line(&j.log, "%s: %s", argv[i], strerror(errno));
        else if (directory_walk(argv[i], visit, &j) == OK && j.shown == before)
            log_line(&j.log, "%s: no eval directory; looked for evaluations.jsonl in it and below", argv[i]);
        wrong |= j.shown == before;
    }
    if (fflush(stdout) != 0)
        return EXIT_USAGE;
    return wrong ? EXIT_USAGE : j.trouble ? EXIT_NO : EXIT_DONE;
}
