#include "eventlog/tool/rewrite/rewrite_command.h"

#include "base/file.h"
#include "eventlog/format/log_name.h"
#include "eventlog/rewrite/log_group.h"

#include <limits.h>
#include <string.h>

struct filter {
    struct rewrite *rewrite;
    const struct rewrite_command *command;
    struct rewrite_part *parts, one; /* one: where the command names none */
    size_t count, at;                /* at: that a record is being written to */
};

/* ---- values ---------------------------------------------------------------------------------------------------- */

static int choose_value(void *context, const struct event *event, const struct event_value *v, size_t place,
                        struct log_rewrite_choice *choice, struct error *e)
{
    struct filter *f = context;
    const struct rewrite_command *c = f->command;
    struct tag_index *tags = &f->rewrite->tags;
    struct rewrite_value value = { .event = event, .part = f->at };
    size_t known = tags->count;

    (void)place;
    if (!v) {
        choice->keep = !c->keeps || c->keeps(c->context, event, f->at);
        return OK;
    }
    if ((value.number = tag_index_add(tags, v->tag, v->tag_length)) == TAG_INDEX_NONE)
        return error_memory(e, NULL, "for %zu tags", known + 1);
    value.tag = &tags->entries[value.number];
    value.is_new = value.number == known;
    return c->choose(c->context, &value, choice, e);
}

static int filter_record(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                         struct error *e)
{
    struct filter *f = context;
    int rc = OK;

    (void)offset;
    for (f->at = 0; rc == OK && f->at < f->count; f->at++) {
        struct rewrite_part *p = &f->parts[f->at];

        if ((rc = log_rewrite_record(p->records, data, n, event, choose_value, f, &p->out->pending, e)) == OK)
            rc = rewrite_flush(f->rewrite, p->out, 0, e);
    }
    return rc;
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static int begin_part(struct rewrite *w, struct rewrite_part *p, const struct log_run *run, const char *path,
                      struct error *e)
{
    char directory[PATH_MAX], name[LOG_NAME_MAX];
    int rc = OK;

    if (w->in_place)
        rc = rewrite_create_in_place(w, run->name, path, &p->out, e);
    else if (!p->name)
        rc = rewrite_create(w, run->name, log_name_plain(name, path), &p->out, e);
    else if ((rc = file_join(directory, sizeof directory, p->name, strcmp(run->name, ".") != 0 ? run->name : "", e)) ==
             OK)
        rc = rewrite_create(w, directory, log_name_plain(name, path), &p->out, e);
    if (rc == OK && !p->records)
        rc = log_rewrite_new(&p->records, e);
    if (rc == OK) {
        log_rewrite_next_file(p->records);
        p->before = log_rewrite_totals(p->records).values;
    }
    return rc;
}

/* What was written by these rules so far is counted, and the next value begins anew. */
static void end_records(struct rewrite *w, struct rewrite_part *p)
{
    struct log_rewrite_totals t = { 0 };

    if (p->records)
        t = log_rewrite_totals(p->records);
    w->records += t.records;
    w->values += t.values;
    w->dropped += t.dropped;
    w->renamed += t.renamed;
    p->values += t.values;
    log_rewrite_free(p->records);
    p->records = NULL;
}

/* complete: all of the old file was sound. */
static int end_part(struct rewrite *w, struct rewrite_part *p, const char *path, int complete, struct error *e)
{
    const struct log_rewrite_totals t = log_rewrite_totals(p->records);

    if (w->in_place) {
        p->out->keep_old = complete && !t.dropped && !t.renamed;
    } else if (p->name) {
        p->out->keep_old = t.values == p->before;
    } else if (!t.records) {
        log_line(&w->scan.log, "%s: nothing of it is left, so no new file is written", path);
        p->out->keep_old = 1;
    }
    if (!p->name)
        end_records(w, p);
    return rewrite_flush(w, p->out, 1, e);
}

static int filter_file(struct filter *f, const struct log_run *run, const char *path, struct error *e)
{
    struct rewrite *w = f->rewrite;
    uint64_t damaged = w->scan.damaged, torn = w->torn;
    int rc = OK;

    for (size_t i = 0; rc == OK && i < f->count; i++)
        rc = begin_part(w, &f->parts[i], run, path, e);
    if (rc == OK)
        rc = rewrite_read(w, run->name, path, filter_record, f, e);
    for (size_t i = 0; rc == OK && i < f->count; i++)
        rc = end_part(w, &f->parts[i], path, damaged == w->scan.damaged && torn == w->torn, e);
    return rc;
}

/* Every run that is wanted, file by file. */
static int filter_all(struct rewrite *w, const struct rewrite_command *c, struct error *e)
{
    struct filter f = { .rewrite = w, .command = c, .parts = c->parts };
    int rc = OK;

    f.count = f.parts ? c->part_count : 1;
    f.parts = f.parts ? f.parts : &f.one;
    for (const struct log_run *run = NULL; rc == OK && (run = scan_next_run(&w->scan, run));) {
        if (c->begin_run)
            rc = c->begin_run(c->context, run, e);
        for (size_t k = 0; rc == OK && k < run->file_count; k++)
            rc = c->file ? c->file(c->context, run, k, e) : filter_file(&f, run, run->files[k], e);
        for (size_t k = 0; k < f.count; k++)
            end_records(w, &f.parts[k]);
        if (c->end_run)
            c->end_run(c->context);
    }
    return rc;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

int rewrite_command_run(struct rewrite *w, const struct rewrite_command *c, int argc, char **argv)
{
    struct error e = { 0 };
    int count = 0, first = 1, matched = 0, status, rc = scan_begin(&w->scan, c->options, argc, argv, &count, &e);

    if (rc == OK && c->arguments)
        rc = c->arguments(c->context, count, argv, &first, &e);
    if (rc == OK && c->check)
        rc = c->check(c->context, &e);
    if (rc == OK && first > count)
        rc = error_set(&e, ERR_ARG, "no PATH given; run '%s --help' for help", c->options->program);
    if (rc != OK)
        return scan_leave(&w->scan, rc, &e);
    if ((status = rewrite_open(w, argv + first, (size_t)(count - first + 1))) != EXIT_DONE)
        return status;
    if (c->group_files)
        rc = log_group_files(&w->scan.directory, &e);
    if (rc == OK)
        rc = c->all ? c->all(c->context, &e) : filter_all(w, c, &e);
    log_progress_end(&w->scan.log);
    if (rc == OK)
        rc = rewrite_commit(w, &e);
    if (rc == OK)
        matched = c->tell(c->context);
    return rewrite_close(w, rc, matched, &e);
}
