/* evaluator status: shows eval directories from outside, one in full, several as a table, or as JSON. */
#include "base/buffer.h"
#include "base/clock.h"
#include "base/directory_walk.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/program/log.h"
#include "base/program/options.h"
#include "base/program/subcommand.h"
#include "base/program/table.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "evaluator/evaluation_status.h"
#include "evaluator/tool/command.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct job {
    struct log log;
    int json, details;
    double now;
    int trouble; /* a checkpoint failed, or an evaluator died */
    struct shown {
        char *directory;
        struct evaluation_status status;
    } * items;
    size_t count;
};

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void number(struct buffer *b, const char *name, double x, int known)
{
    buffer_format(b, ",\"%s\":", name);
    if (known)
        json_double(b, x);
    else
        buffer_append_text(b, "null");
}

static void count(struct buffer *b, const char *name, int64_t n)
{
    if (n >= 0)
        buffer_format(b, ",\"%s\":%" PRId64, name, n);
    else
        buffer_format(b, ",\"%s\":null", name);
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
    buffer_format(b, ",\"pid\":%" PRId64 ",\"alive\":%s", s->lock.process.pid,
                  s->holder == LOCK_ALIVE       ? "true"
                  : s->holder == LOCK_ELSEWHERE ? "null"
                                                : "false");
    if (s->lock.since > 0)
        number(b, "since", s->lock.since, 1);
    if (*s->lock.why)
        text(b, "why", s->lock.why);
    if (*s->lock.checkpoint_directory)
        text(b, "checkpoint_dir", s->lock.checkpoint_directory);
}

static void in_hand_json(struct buffer *b, const struct evaluation_status *s, double now)
{
    number(b, "updated_age", now - s->work.updated, s->has_work);
    buffer_append_text(b, ",\"in_hand\":[");
    for (size_t i = 0; s->has_work && i < s->work.in_hand_count; i++) {
        const struct work_in_hand *one = &s->work.in_hand[i];

        buffer_append_text(b, i ? ",{\"checkpoint\":" : "{\"checkpoint\":");
        json_file_name(b, one->checkpoint.name);
        count(b, "step", one->checkpoint.step);
        number(b, "since", one->since, 1);
        number(b, "seconds", now - one->since, 1);
        buffer_append_text(b, "}");
    }
    buffer_append_text(b, "]");
}

static void training_json(struct buffer *b, const struct evaluation_status *s, double now)
{
    buffer_append_text(b, ",\"training\":");
    if (!s->has_training) {
        buffer_append_text(b, "null");
        return;
    }
    buffer_append_text(b, "{\"state\":");
    json_text(b, s->training.state);
    count(b, "global_step", s->training.global_step);
    count(b, "max_steps", s->training.max_steps > 0 ? s->training.max_steps : -1);
    number(b, "updated_age", now - s->training.updated, s->training.updated > 0);
    if (*s->training.reason)
        text(b, "reason", s->training.reason);
    buffer_append_text(b, "}");
}

static void run_json(struct buffer *b, const char *directory, const struct evaluation_status *s, double now)
{
    buffer_append_text(b, "{\"eval_dir\":");
    json_text(b, directory);
    text(b, "state", evaluation_status_state(s));
    holder_json(b, s);
    buffer_format(b, ",\"done\":%zu,\"failed\":%zu,\"gone\":%zu", s->done, s->failed, s->gone);
    count(b, "queued", s->queued);
    count(b, "not_whole", s->has_work ? s->work.not_whole : -1);
    in_hand_json(b, s, now);
    count(b, "newest_step", s->newest_step);
    count(b, "steps_behind", s->behind);
    if (s->has_best) {
        buffer_append_text(b, ",\"best\":{\"metric\":");
        json_text(b, s->best_metric);
        number(b, "value", s->best_value, 1);
        if (s->best.step >= 0) {
            count(b, "step", s->best.step);
            text(b, "checkpoint", s->best.name);
        }
        buffer_append_text(b, "}");
    } else {
        buffer_append_text(b, ",\"best\":null");
    }
    if (s->last_time > 0) {
        buffer_format(b, ",\"last\":{\"step\":%" PRId64, s->last.step);
        text(b, "checkpoint", s->last.name);
        number(b, "wall_time", s->last_time, 1);
        number(b, "age", now - s->last_time, 1);
        buffer_append_text(b, "}");
    } else {
        buffer_append_text(b, ",\"last\":null");
    }
    number(b, "evaluations_per_hour", s->rate, s->rate > 0);
    number(b, "seconds_per_evaluation", s->each, s->each > 0);
    count(b, "until_step", s->target);
    number(b, "seconds_left", s->seconds_left, s->seconds_left >= 0);
    training_json(b, s, now);
    if (*s->last_reason)
        text(b, "last_reason", s->last_reason);
    buffer_format(b, ",\"odd_lines\":%zu}", s->odd_lines);
}

static void print_json(const struct job *j, struct buffer *b)
{
    size_t done = 0, failed = 0, gone = 0;
    int64_t queued = 0;

    buffer_append_text(b, "{\"type\":\"evaluator-status\",\"version\":1,\"runs\":[");
    for (size_t i = 0; i < j->count; i++) {
        const struct evaluation_status *s = &j->items[i].status;

        buffer_append_text(b, i ? ",\n" : "\n");
        run_json(b, j->items[i].directory, s, j->now);
        done += s->done;
        failed += s->failed;
        gone += s->gone;
        queued += s->queued > 0 ? s->queued : 0;
    }
    buffer_format(b, "],\n\"total\":{\"runs\":%zu,\"done\":%zu,\"queued\":%" PRId64 ",\"failed\":%zu,\"gone\":%zu}}\n",
                  j->count, done, queued, failed, gone);
}

/* ---- one in full ------------------------------------------------------------------------------------------------- */

struct page {
    struct buffer *out;
    size_t width; /* 0: no limit */
    int ascii;
};

/* Prints " label text", the text cut to fit. */
static void line(const struct page *p, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void line(const struct page *p, const char *label, const char *format, ...)
{
    enum { LABEL = 13 };
    char said[1200];
    va_list args;

    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    buffer_format(p->out, "  %-*s", LABEL - 2, label);
    if (p->width > LABEL + 8)
        text_append_cut(p->out, said, strlen(said), p->width - LABEL, p->ascii);
    else
        text_append_safe(p->out, said, strlen(said));
    buffer_append_byte(p->out, '\n');
}

static void holder_line(const struct page *p, const struct evaluation_status *s, double now)
{
    const struct process *process = &s->lock.process;
    char age[HUMAN_TEXT_MAX];

    switch (s->holder) {
    case LOCK_ALIVE:
        line(p, "evaluator", "process %" PRId64 " on %s, for %s", process->pid, process->host,
             human_duration(now - s->lock.since, age));
        break;
    case LOCK_ENDED: line(p, "evaluator", "ended: %s", s->lock.why); break;
    case LOCK_DEAD: line(p, "evaluator", "process %" PRId64 " on %s died", process->pid, process->host); break;
    case LOCK_ELSEWHERE:
        if (s->has_work)
            line(p, "evaluator", "process %" PRId64 " on %s; last sign of life %s ago", process->pid, process->host,
                 human_duration(now - s->work.updated, age));
        else
            line(p, "evaluator", "process %" PRId64 " on %s; no sign of life", process->pid, process->host);
        break;
    case LOCK_NONE: line(p, "evaluator", "not known: there is no evaluator.lock"); break;
    }
}

static void training_line(const struct page *p, const struct evaluation_status *s, double now)
{
    char age[HUMAN_TEXT_MAX], end[40] = "";

    if (!s->has_training)
        return;
    if (s->training.max_steps > 0)
        snprintf(end, sizeof end, " of %" PRId64, s->training.max_steps);
    line(p, "training", "%s, step %" PRId64 "%s, %s ago%s%s", s->training.state, s->training.global_step, end,
         human_duration(now - s->training.updated, age), *s->training.reason ? ": " : "", s->training.reason);
}

static void work_lines(const struct page *p, const struct evaluation_status *s, double now)
{
    char age[HUMAN_TEXT_MAX], whole[48] = "";

    for (size_t i = 0; s->has_work && i < s->work.in_hand_count; i++)
        line(p, i ? "" : "in hand", "%s, for %s", s->work.in_hand[i].checkpoint.name,
             human_duration(now - s->work.in_hand[i].since, age));
    if (s->has_work && !s->work.in_hand_count && s->holder == LOCK_ALIVE)
        line(p, "in hand", "nothing");
    if (s->last_time > 0)
        line(p, "last", "%s, %s ago", s->last.name, human_duration(now - s->last_time, age));
    if (s->has_work && s->work.not_whole)
        snprintf(whole, sizeof whole, ", %" PRId64 " not ready yet", s->work.not_whole);
    if (s->behind >= 0)
        line(p, "behind", "%" PRId64 " steps, %" PRId64 " queued%s", s->behind, s->queued > 0 ? s->queued : 0, whole);
    else if (s->queued >= 0)
        line(p, "behind", "%" PRId64 " queued%s", s->queued, whole);
}

static void end_line(const struct page *p, const struct evaluation_status *s)
{
    char left[HUMAN_TEXT_MAX];

    if (s->holder != LOCK_ALIVE)
        return;
    if (s->seconds_left >= 0 && s->target >= 0)
        line(p, "to go", "about %s, to step %" PRId64, human_duration(s->seconds_left, left), s->target);
    else if (s->seconds_left >= 0)
        line(p, "to go", "about %s", human_duration(s->seconds_left, left));
    else if (s->target >= 0)
        line(p, "to go", "not known yet; to step %" PRId64, s->target);
    else
        line(p, "to go", "not known: no --until-step, and no training.json");
}

static void print_one(const struct page *p, const char *directory, const struct evaluation_status *s, double now)
{
    const size_t room = p->width ? p->width - 12 : 0; /* the state behind it */
    char each[HUMAN_TEXT_MAX], rate[HUMAN_TEXT_MAX];

    if (room > 8)
        text_append_cut(p->out, directory, strlen(directory), room, p->ascii);
    else
        text_append_safe(p->out, directory, strlen(directory));
    buffer_format(p->out, ": %s\n", evaluation_status_state(s));
    holder_line(p, s, now);
    training_line(p, s, now);
    work_lines(p, s, now);
    line(p, "outcomes", "%zu done, %zu failed, %zu gone", s->done, s->failed, s->gone);
    if (*s->last_reason)
        line(p, "reason", "%s", s->last_reason);
    if (s->rate > 0)
        line(p, "rate", "%s evaluations/h, %s each", human_number(s->rate, rate), human_duration(s->each, each));
    else if (s->each > 0)
        line(p, "rate", "%s an evaluation", human_duration(s->each, each));
    if (s->has_best && s->best.step >= 0)
        line(p, "best", "%s %.6g at step %" PRId64 ", %s", s->best_metric, s->best_value, s->best.step, s->best.name);
    else if (s->has_best)
        line(p, "best", "%s %.6g", s->best_metric, s->best_value);
    end_line(p, s);
    if (s->odd_lines)
        line(p, "ledger", "%zu lines are not of a ledger", s->odd_lines);
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
    { .title = "state" },
    { .title = "step", .right = 1 },
    { .title = "behind", .right = 1 },
    { .title = "queued", .right = 1, .leave_out = 2 },
    { .title = "done", .right = 1, .leave_out = 3 },
    { .title = "failed", .right = 1 },
    { .title = "gone", .right = 1, .leave_out = 5 },
    { .title = "in hand", .cut = 10, .leave_out = 4 },
    { .title = "for", .right = 1, .leave_out = 4 },
    { .title = "evals/h", .right = 1, .leave_out = 7 },
    { .title = "best", .right = 1, .leave_out = 6 },
    { .title = "at step", .right = 1, .leave_out = 6 },
    { .title = "to go", .right = 1, .leave_out = 1 },
    { .title = "eval directory", .cut = 14 },
};

static void count_cell(struct table *t, int64_t n)
{
    if (n >= 0)
        table_cell(t, "%" PRId64, n);
    else
        table_cell(t, "-");
}

static void add_row(struct table *t, const char *directory, const struct evaluation_status *s, double now)
{
    const int busy = s->has_work && s->work.in_hand_count;
    char duration[HUMAN_TEXT_MAX];

    table_cell(t, "%s", evaluation_status_state(s));
    count_cell(t, s->last.step);
    count_cell(t, s->behind);
    count_cell(t, s->queued);
    table_cell(t, "%zu", s->done);
    table_cell(t, "%zu", s->failed);
    table_cell(t, "%zu", s->gone);
    table_cell(t, "%s", busy ? s->work.in_hand[0].checkpoint.name : "-");
    table_cell(t, "%s", busy ? human_duration(now - s->work.in_hand[0].since, duration) : "-");
    if (s->rate > 0)
        table_cell(t, "%s", human_number(s->rate, duration));
    else
        table_cell(t, "-");
    if (s->has_best)
        table_number(t, s->best_value);
    else
        table_cell(t, "-");
    count_cell(t, s->has_best ? s->best.step : -1);
    table_cell(t, "%s", s->seconds_left >= 0 ? human_duration(s->seconds_left, duration) : "-");
    table_cell(t, "%s", directory);
}

static void print_table(const struct job *j, int width, int ascii, struct buffer *out)
{
    struct table t;

    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < j->count; i++)
        add_row(&t, j->items[i].directory, &j->items[i].status, j->now);
    table_print(&t, 0, width, ascii, out);
    table_release(&t);
}

static int print(const struct job *j)
{
    const int width = terminal_columns(STDOUT_FILENO), ascii = !terminal_utf8();
    struct buffer out = BUFFER_EMPTY;
    const struct page page = { &out, (size_t)width, ascii };

    if (j->json)
        print_json(j, &out);
    else if (j->count > 1 && !j->details)
        print_table(j, width, ascii, &out);
    else
        for (size_t i = 0; i < j->count; i++) {
            buffer_append_text(&out, i ? "\n" : "");
            print_one(&page, j->items[i].directory, &j->items[i].status, j->now);
        }
    if (buffer_ok(&out))
        fwrite(buffer_text(&out), 1, out.length, stdout);
    buffer_release(&out);
    return buffer_ok(&out) && fflush(stdout) == 0;
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static int show(struct job *j, const char *directory)
{
    struct shown *grown = realloc(j->items, (j->count + 1) * sizeof *grown), *one;
    struct error e = { 0 };
    int rc;

    if (!grown) {
        log_line(&j->log, "%s: no memory", directory);
        return ERR_NOMEM;
    }
    j->items = grown;
    one = &j->items[j->count];
    if ((rc = evaluation_status_read(directory, j->now, &one->status, &e)) == OK &&
        !(one->directory = strdup(directory)))
        rc = error_memory(&e, directory, "for it");
    if (rc != OK) {
        log_line(&j->log, "%s", e.message);
        return rc;
    }
    j->count++;
    j->trouble |= one->status.failed || one->status.gone || one->status.holder == LOCK_DEAD;
    return OK;
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
    struct job j = { .now = clock_wall() };
    struct option table[] = {
        { OPTION_FLAG, .name = "json", .value = &j.json, .help = "Print one JSON document." },
        { OPTION_FLAG, .name = "details", .value = &j.details,
          .help = "Show each of several directories in full, instead of all in one table." },
    };
    const struct options options = {
        .program = "evaluator status",
        .usage = "[OPTION...] EVAL...",
        .summary = "Show, for each eval directory or those below a directory, whether an evaluator is working there, "
                   "what it is evaluating and since when, how far it is behind the training, how fast it is, when it "
                   "will be done, how many checkpoints failed or are gone (deleted before they were evaluated), and "
                   "which is the best. Nothing is changed. State: running, ended, died (without ending properly), "
                   "elsewhere (on another host), unknown. Behind: the steps from the last evaluated to the newest "
                   "checkpoint. Exit status: 0 all is well, 1 checkpoints failed or were deleted before they were "
                   "evaluated, or an evaluator died, 2 wrong usage or no eval directory.",
        .examples = "  evaluator status runs/mpi/eval\n"
                    "  evaluator status runs\n"
                    "  evaluator status --json runs | jq -r '.runs[].eval_dir'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "which eval directory?",
    };
    struct error e = { 0 };
    int given = 0, rc, wrong = 0;

    log_init(&j.log, "evaluator status", STDERR_FILENO);
    if ((rc = options_parse(&options, argc, argv, &given, &e)) != OPTIONS_RUN) {
        if (rc < 0)
            log_line(&j.log, "%s", e.message);
        return rc == OPTIONS_DONE ? EXIT_DONE : EXIT_USAGE;
    }
    for (int i = 1; i <= given; i++) {
        size_t before = j.count;
        struct stat st;

        if (stat(argv[i], &st) < 0)
            log_line(&j.log, "%s: %s", argv[i], strerror(errno));
        else if (directory_walk(argv[i], visit, &j) == OK && j.count == before)
            log_line(&j.log, "%s: no eval directory; looked for evaluations.jsonl in it and below", argv[i]);
        wrong |= j.count == before;
    }
    wrong |= (j.count || j.json) && !print(&j);
    for (size_t i = 0; i < j.count; i++)
        free(j.items[i].directory);
    free(j.items);
    return wrong ? EXIT_USAGE : j.trouble ? EXIT_NO : EXIT_DONE;
}
