/* trainer status: shows trainings from outside, as a table or as JSON. */
#include "base/buffer.h"
#include "base/clock.h"
#include "base/directory_walk.h"
#include "base/json.h"
#include "base/program/log.h"
#include "base/program/subcommand.h"
#include "base/program/table.h"
#include "base/program/terminal.h"
#include "trainer/tool/command.h"
#include "trainer/training_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct table_column columns[] = {
    { .title = "state" },
    { .title = "step", .right = 1 },
    { .title = "of", .right = 1 },
    { .title = "to go", .right = 1 },
    { .title = "steps/s", .right = 1, .leave_out = 2 },
    { .title = "samples/s", .right = 1, .leave_out = 4 },
    { .title = "last step", .right = 1, .leave_out = 1 },
    { .title = "saved", .right = 1, .leave_out = 3 },
    { .title = "directory", .cut = 16 },
    { .title = "why", .cut = 12, .leave_out = 5 },
};

struct job {
    struct log log;
    int json;
    double now;
    struct table table;
    struct buffer runs; /* JSON */
    size_t shown, count[CONDITIONS];
};

/* The details that the state does not say. */
static void why(const struct training_status *s, char *out, size_t size)
{
    char age[HUMAN_TEXT_MAX];

    *out = '\0';
    if (s->condition == CONDITION_DIED)
        snprintf(out, size, "process %" PRId64 " on %s is gone", s->state.process.pid, s->state.process.host);
    else if (s->condition == CONDITION_SILENT)
        snprintf(out, size, "no sign of life for %s; process %" PRId64 " on %s", human_duration(s->updated_age, age),
                 s->state.process.pid, s->state.process.host);
    else if (s->condition != CONDITION_RUNNING)
        snprintf(out, size, "%s", s->state.reason);
}

static void add_row(struct job *j, const char *directory, const struct training_status *s)
{
    char text[HUMAN_TEXT_MAX], reason[sizeof s->state.reason];
    struct table *t = &j->table;

    table_cell(t, "%s", training_condition_names[s->condition]);
    table_cell(t, "%" PRId64, s->state.global_step);
    table_cell(t, "%" PRId64, s->state.max_steps);
    table_cell(t, "%s", s->left >= 0 ? human_duration(s->left, text) : "-");
    if (s->condition == CONDITION_RUNNING && s->state.steps_per_second > 0) {
        table_cell(t, "%s", human_number(s->state.steps_per_second, text));
        table_cell(t, "%s", human_number(s->state.images_per_second, text));
    } else {
        table_cell(t, "-");
        table_cell(t, "-");
    }
    if (s->stepped_age >= 0)
        table_cell(t, "%s ago", human_duration(s->stepped_age, text));
    else
        table_cell(t, "-");
    if (s->checkpoint >= 0)
        table_cell(t, "%" PRId64, s->checkpoint);
    else
        table_cell(t, "-");
    table_cell(t, "%s", directory);
    why(s, reason, sizeof reason);
    table_cell(t, "%s", reason);
}

static void put_text(struct buffer *b, const char *name, const char *value)
{
    if (!*value)
        return;
    buffer_format(b, ",\"%s\":", name);
    json_text(b, value);
}

static void put_number(struct buffer *b, const char *name, double value, int known)
{
    buffer_format(b, ",\"%s\":", name);
    if (known)
        json_double(b, value);
    else
        buffer_append_text(b, "null");
}

static void add_json(struct job *j, const char *directory, const struct training_status *s)
{
    static const char *const alive[] = {
        [PROCESS_LIVES] = "true",
        [PROCESS_GONE] = "false",
        [PROCESS_ELSEWHERE] = "null",
    };
    const struct training_state *t = &s->state;
    struct buffer *b = &j->runs;

    buffer_append_text(b, j->shown ? ",\n{\"checkpoint_dir\":" : "\n{\"checkpoint_dir\":");
    json_text(b, directory);
    put_text(b, "state", training_condition_names[s->condition]);
    buffer_format(b, ",\"global_step\":%" PRId64 ",\"max_steps\":%" PRId64, t->global_step, t->max_steps);
    put_number(b, "seconds_left", s->left, s->left >= 0);
    put_number(b, "steps_per_second", t->steps_per_second, t->stepped > 0);
    put_number(b, "images_per_second", t->images_per_second, t->stepped > 0);
    put_number(b, "step_age", s->stepped_age, s->stepped_age >= 0);
    put_number(b, "updated_age", s->updated_age, t->updated > 0);
    if (s->checkpoint >= 0)
        buffer_format(b, ",\"checkpoint_step\":%" PRId64, s->checkpoint);
    else
        buffer_append_text(b, ",\"checkpoint_step\":null");
    put_text(b, "reason", t->reason);
    put_text(b, "signal", t->signal);
    put_text(b, "host", t->process.host);
    buffer_format(b, ",\"pid\":%" PRId64 ",\"alive\":%s", t->process.pid,
                  t->process.pid > 0 ? alive[s->process] : "null");
    put_number(b, "started", t->started, t->started > 0);
    put_text(b, "model", t->model);
    put_text(b, "data", t->data);
    put_text(b, "optimizer", t->optimizer);
    put_text(b, "run_option", t->run_option);
    buffer_format(b, ",\"world_size\":%" PRId64 ",\"batch_size\":%" PRId64 "}", t->world_size, t->batch_size);
}

static int visit(void *context, const char *directory)
{
    struct job *j = context;
    struct training_status s;
    struct error e = { 0 };
    int rc = training_status_read(directory, j->now, &s, &e);

    if (rc < 0)
        log_line(&j->log, "%s", e.message);
    if (rc != 1)
        return rc;
    if (j->json)
        add_json(j, directory, &s);
    else
        add_row(j, directory, &s);
    j->count[s.condition]++;
    j->shown++;
    return 1;
}

static int print(struct job *j)
{
    struct buffer out = BUFFER_EMPTY;

    if (j->json) {
        buffer_append_text(&out, "{\"type\":\"trainer-status\",\"version\":1,\"runs\":[");
        buffer_append(&out, j->runs.data, j->runs.length);
        buffer_format(&out, "],\n\"total\":{\"runs\":%zu", j->shown);
        for (int c = 0; c < CONDITIONS; c++)
            buffer_format(&out, ",\"%s\":%zu", training_condition_names[c], j->count[c]);
        buffer_append_text(&out, "}}\n");
    } else if (j->shown) {
        table_print(&j->table, 0, terminal_columns(STDOUT_FILENO), !terminal_utf8(), &out);
    }
    if (buffer_ok(&out) && !j->runs.failed)
        fwrite(buffer_text(&out), 1, out.length, stdout);
    else
        log_line(&j->log, "no memory for %zu trainings", j->shown);
    buffer_release(&out);
    return fflush(stdout) == 0;
}

int command_status(int argc, char **argv)
{
    struct job j = { .now = clock_wall() };
    struct option table[] = {
        { .kind = OPTION_FLAG, .name = "json", .value = &j.json, .help = "Print one JSON document." },
    };
    const struct options options = {
        .program = "trainer status",
        .usage = "[--json] CKPT...",
        .summary = "Show, for each checkpoint directory or those below a directory, whether its training is running, "
                   "how far and how fast it is, and when it will be done. Only training.json is read, and nothing is "
                   "changed. State: running, finished, stopped (by a signal, everything saved), failed, died (its "
                   "process is gone), silent (no sign of life for a minute; the trainer gives one every 10 seconds). "
                   "Saved: the step of the newest checkpoint. Exit status: 0 all is well, 1 a training failed, died or "
                   "is silent, 2 wrong usage or no training found.",
        .examples = "  trainer status ckpt\n  trainer status --json runs | jq '.runs[].seconds_left'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "which checkpoint directory?",
    };
    struct error e = { 0 };
    int count = 0, rc, wrong = 0;

    log_init(&j.log, "trainer status", STDERR_FILENO);
    if ((rc = options_parse(&options, argc, argv, &count, &e)) != OPTIONS_RUN) {
        if (rc < 0)
            log_line(&j.log, "%s", e.message);
        return rc == OPTIONS_DONE ? EXIT_DONE : EXIT_USAGE;
    }
    table_init(&j.table, columns, sizeof columns / sizeof *columns);
    for (int i = 1; i <= count; i++) {
        size_t before = j.shown;
        struct stat st;

        if (stat(argv[i], &st) < 0)
            log_line(&j.log, "%s: %s", argv[i], strerror(errno));
        else if ((rc = directory_walk(argv[i], visit, &j)) == OK && j.shown == before)
            log_line(&j.log, "%s: no training; looked for training.json in it and below", argv[i]);
        wrong |= j.shown == before || rc < 0;
    }
    wrong |= !print(&j);
    table_release(&j.table);
    buffer_release(&j.runs);
    if (wrong)
        return EXIT_USAGE;
    return j.count[CONDITION_FAILED] || j.count[CONDITION_DIED] || j.count[CONDITION_SILENT] ? EXIT_NO : EXIT_DONE;
}
