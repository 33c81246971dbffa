/* eventlog split: one log as several, by tags, steps, sessions, runs or size. */
#include "base/file.h"
#include "base/human.h"
#include "base/number.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/log_name.h"
#include "eventlog/format/record.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/rewrite.h"
#include "eventlog/tool/rewrite/split_session.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MOST = 130 };

struct part {
    char *name;
    const char *glob;      /* of tags, or NULL: */
    int64_t from, to;      /* steps, from <= step < to */
    struct rewrite_file *out;
    struct log_rewrite *records;
    uint64_t values;       /* in the file at hand, before it */
    uint64_t all;          /* values of all runs so far */
};

struct splitting {
    struct rewrite rewrite;
    struct part parts[PARTS_MOST];
    size_t count, at;      /* at: the one that a record is being written to */
    const char *rest, *by, *size_text;
    uint64_t size;
    struct selection globs; /* of --tags, by part */
    struct tag_index tags; /* of this log; value: the part of each, PARTS_MOST if none */
    struct buffer version; /* the first record of the file at hand, framed */
    const struct log_run *run;
    const char *path;
    unsigned number;       /* of files or sessions of this file or run */
    struct split_session *sessions;
    int sessions_wanted;
    uint64_t homeless, outputs;
};

/* ---- the parts ------------------------------------------------------------------------------------------------- */

/* NAME=...; a name is a directory below the output. */
static int begin_part(struct splitting *s, const char *text, const char **value, struct part **out, struct error *e)
{
    const char *at = strchr(text, '=');
    struct part *p = &s->parts[s->count];
    size_t n = at ? (size_t)(at - text) : 0;

    if (s->count == PARTS_MOST)
        return error_set(e, ERR_ARG, "more than %d parts", PARTS_MOST);
    if (!at || !n || memchr(text, '/', n) || *text == '.')
        return error_set(e, ERR_ARG, "'%.80s' is not NAME=... with a directory name", text);
    if (!(p->name = strndup(text, n)))
        return error_memory(e, NULL, "for a name");
    *value = at + 1;
    *out = p;
    s->count++;
    return OK;
}

static int add_tags(struct splitting *s, const char *text, struct error *e)
{
    struct part *p;

    if (begin_part(s, text, &text, &p, e) != OK)
        return e->code;
    p->glob = text;
    option_list_add(&s->globs.patterns, text); /* as many as --tags */
    return OK;
}

/* FROM:TO, either may be missing. */
static int add_steps(struct splitting *s, const char *text, struct error *e)
{
    char from[32] = "", to[32] = "";
    struct part *p;
    const char *colon;

    if (begin_part(s, text, &text, &p, e) != OK)
        return e->code;
    p->from = INT64_MIN;
    p->to = INT64_MAX;
    colon = strchr(text, ':');
    if (colon && colon - text < 32 && strlen(colon + 1) < 32) {
        memcpy(from, text, (size_t)(colon - text));
        strcpy(to, colon + 1);
    }
    if (!colon || (!*from && !*to) || (*from && !number_parse_int(from, &p->from)) ||
        (*to && !number_parse_int(to, &p->to)) || p->from >= p->to)
        return error_set(e, ERR_ARG, "'%.80s' is not a range of steps FROM:TO", text);
    return OK;
}

/* The part that a value goes to, PARTS_MOST: none; TAG_INDEX_NONE without memory. */
static size_t home_of(struct splitting *s, const struct event *event, const struct event_value *v, struct error *e)
{
    size_t home = 0, known = s->tags.count, number;
    struct tag_index_entry *tag;

    if (!s->parts[0].glob) {
        while (home < s->count && (event->step < s->parts[home].from || event->step >= s->parts[home].to))
            home++;
        return home < s->count ? home : PARTS_MOST;
    }
    if ((number = tag_index_add(&s->tags, v->tag, v->tag_length)) == TAG_INDEX_NONE) {
        error_memory(e, NULL, "for %zu tags", known + 1);
        return TAG_INDEX_NONE;
    }
    tag = &s->tags.entries[number];
    if (number < known)
        return tag->value;
    if (!selection_wants(&s->globs, tag->text))
        home = s->globs.patterns.count; /* the rest, if it is wanted */
    while (home < s->globs.patterns.count && fnmatch(s->parts[home].glob, tag->text, 0))
        home++;
    return tag->value = home < s->count ? home : PARTS_MOST;
}

static int choose_part(void *context, const struct event *event, const struct event_value *v, size_t place,
                       struct log_rewrite_choice *choice, struct error *e)
{
    struct splitting *s = context;
    const struct part *p = &s->parts[s->at];
    size_t home;

    (void)place;
    if (!v) { /* what is no value goes to all parts, session marks to those of their steps */
        choice->keep = event->what != EVENT_SESSION_LOG || p->glob || (event->step >= p->from && event->step < p->to);
        return OK;
    }
    if ((home = home_of(s, event, v, e)) == TAG_INDEX_NONE)
        return ERR_NOMEM;
    s->homeless += home == PARTS_MOST && !s->at;
    choice->keep = home == s->at;
    return OK;
}

static int part_record(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                       struct error *e)
{
    struct splitting *s = context;
    int rc = OK;

    (void)offset;
    for (s->at = 0; rc == OK && s->at < s->count; s->at++) {
        struct part *p = &s->parts[s->at];

        rc = log_rewrite_record(p->records, data, n, event, choose_part, s, &p->out->pending, e);
        if (rc == OK)
            rc = rewrite_flush(&s->rewrite, p->out, 0, e);
    }
    return rc;
}

/* One file into a file of that name in each part that gets values of it. */
static int split_parts(struct splitting *s, const struct log_run *run, const char *path, struct error *e)
{
    char directory[4096], name[LOG_NAME_MAX];
    int rc = OK;

    log_name_plain(name, path);
    for (size_t i = 0; rc == OK && i < s->count; i++) {
        struct part *p = &s->parts[i];

        if ((rc = file_join(directory, sizeof directory, p->name, strcmp(run->name, ".") != 0 ? run->name : "", e)) ==
            OK)
            rc = rewrite_create(&s->rewrite, directory, name, &p->out, e);
        if (rc == OK && !p->records)
            rc = log_rewrite_new(&p->records, e);
        if (rc == OK) {
            log_rewrite_next_file(p->records);
            p->values = log_rewrite_totals(p->records).values;
        }
    }
    if (rc == OK)
        rc = rewrite_read(&s->rewrite, run->name, path, part_record, s, e);
    for (size_t i = 0; rc == OK && i < s->count; i++) {
        struct part *p = &s->parts[i];

        p->out->keep_old = log_rewrite_totals(p->records).values == p->values; /* none: no file */
        s->outputs += !p->out->keep_old;
        rc = rewrite_flush(&s->rewrite, p->out, 1, e);
    }
    return rc;
}

/* ---- by size and session ---------------------------------------------------------------------------------------- */

static int keep_all(void *context, const struct event *event, const struct event_value *v, size_t place,
                    struct log_rewrite_choice *choice, struct error *e)
{
    (void)context;
    (void)event;
    (void)v;
    (void)place;
    (void)choice;
    (void)e;
    return OK;
}

/* The next file of the part at hand, with the first record that its source had. */
static int next_file(struct splitting *s, struct error *e)
{
    struct part *p = &s->parts[0];
    char run[4096], base[LOG_NAME_MAX], name[400];
    int rc = OK;

    if (p->out && (rc = rewrite_flush(&s->rewrite, p->out, 1, e)) != OK)
        return rc;
    snprintf(run, sizeof run, "%s", s->run->name);
    snprintf(name, sizeof name, "%s", log_name_plain(base, s->path));
    if (s->size)
        snprintf(name, sizeof name, "%s.%05u", base, s->number++);
    else if (!strcmp(s->by, "session"))
        snprintf(run, sizeof run, "%s/session-%u", s->run->name, s->number);
    else
        for (char *c = run; *c; c++)
            *c = *c == '/' ? '-' : *c;
    if ((rc = rewrite_create(&s->rewrite, !strncmp(run, "./", 2) ? run + 2 : run, name, &p->out, e)) != OK)
        return rc;
    s->outputs++;
    log_rewrite_next_file(p->records);
    buffer_append(&p->out->pending, s->version.data, s->version.length);
    return OK;
}

static int roll_record(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                       struct error *e)
{
    struct splitting *s = context;
    struct part *p = &s->parts[0];
    int rc = OK, session = s->sessions ? split_session_next(s->sessions, offset) : 0;

    if (event->what == EVENT_FILE_VERSION && !s->version.length) { /* stands at the start of every new file */
        event_encode_record(&s->version, data, n);
        return buffer_ok(&s->version) ? OK : error_memory(e, s->path, "for it");
    }
    if (!s->version.length && (rc = event_encode_start(&s->version, event->wall_time, "evalboard", e)) != OK)
        return rc;
    s->number += session != 0;
    if (!p->out || session ||
        (s->size && p->out->bytes + p->out->pending.length + n + RECORD_OVERHEAD > s->size &&
         p->out->bytes + p->out->pending.length > s->version.length))
        rc = next_file(s, e);
    if (rc == OK)
        rc = log_rewrite_record(p->records, data, n, event, keep_all, NULL, &p->out->pending, e);
    return rc == OK ? rewrite_flush(&s->rewrite, p->out, 0, e) : rc;
}

static int split_rolling(struct splitting *s, const struct log_run *run, size_t file, struct error *e)
{
    struct part *p = &s->parts[0];
    int rc = OK;

    s->run = run;
    s->path = run->files[file];
    p->out = NULL;
    buffer_clear(&s->version);
    if (s->size || !file)
        s->number = 1;
    if (!p->records)
        rc = log_rewrite_new(&p->records, e);
    if (s->sessions)
        s->number += split_session_file(s->sessions, file) != 0;
    if (rc == OK)
        rc = rewrite_read(&s->rewrite, run->name, s->path, roll_record, s, e);
    if (rc == OK && !p->out && s->version.length) /* nothing but its first record */
        rc = next_file(s, e);
    return rc == OK && p->out ? rewrite_flush(&s->rewrite, p->out, 1, e) : rc;
}

static int split(struct splitting *s, struct error *e)
{
    const struct log_directory *d = &s->rewrite.scan.directory;
    int rc = OK;

    for (size_t i = 0; rc == OK && i < d->count; i++) {
        const struct log_run *run = &d->runs[i];

        if (!scan_run_wanted(&s->rewrite.scan, run->name))
            continue;
        if (s->sessions_wanted)
            rc = split_session_new(&s->sessions, &s->rewrite, run, e);
        for (size_t k = 0; rc == OK && k < run->file_count; k++)
            rc = s->size || s->by ? split_rolling(s, run, k, e) : split_parts(s, run, run->files[k], e);
        for (size_t k = 0; k < s->count; k++) { /* metadata belongs to a run */
            struct log_rewrite_totals t = { 0 };

            if (s->parts[k].records)
                t = log_rewrite_totals(s->parts[k].records);
            s->rewrite.records += t.records;
            s->rewrite.values += t.values;
            s->parts[k].all += t.values;
            log_rewrite_free(s->parts[k].records);
            s->parts[k].records = NULL;
        }
        split_session_free(s->sessions);
        s->sessions = NULL;
    }
    log_progress_end(&s->rewrite.scan.log);
    return rc == OK ? rewrite_commit(&s->rewrite, e) : rc;
}

/* The parts that got nothing. */
static void tell_empty(struct splitting *s, const struct option_list *steps)
{
    struct scan *scan = &s->rewrite.scan;

    if (s->globs.names)
        scan->unmatched += selection_tell(&s->globs, "--tags", "tag", &scan->log);
    for (size_t i = 0; i < steps->count; i++)
        if (!s->parts[i].all) {
            log_line(&scan->log, "--steps '%.80s': no value at these steps", steps->items[i]);
            scan->unmatched++;
        }
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static int prepare(struct splitting *s, const struct option_list *tags, const struct option_list *steps,
                   struct error *e)
{
    int rc = OK;

    if ((tags->count > 0) + (steps->count > 0) + (s->by != NULL) + (s->size_text != NULL) != 1)
        return error_set(e, ERR_ARG, "give one of --tags, --steps, --by and --size");
    for (size_t i = 0; rc == OK && i < tags->count; i++)
        rc = add_tags(s, tags->items[i], e);
    for (size_t i = 0; rc == OK && i < steps->count; i++)
        rc = add_steps(s, steps->items[i], e);
    if (rc == OK && s->rest && !tags->count)
        rc = error_set(e, ERR_ARG, "--rest needs --tags");
    if (rc == OK && s->rest) {
        struct part *p;
        char text[256];

        snprintf(text, sizeof text, "%.200s=*", s->rest);
        if ((rc = begin_part(s, text, &(const char *){ NULL }, &p, e)) == OK)
            p->glob = "*";
    }
    for (size_t i = 0; rc == OK && i < s->count; i++)
        for (size_t k = 0; rc == OK && k < i; k++)
            if (!strcmp(s->parts[i].name, s->parts[k].name))
                rc = error_set(e, ERR_ARG, "two parts have the name '%.80s'", s->parts[i].name);
    if (rc == OK && s->size_text && (!human_parse_bytes(s->size_text, &s->size) || !s->size))
        rc = error_set(e, ERR_ARG, "--size %.40s: not a size; write a number of bytes, or 100k, 100M, 1.5G",
                       s->size_text);
    s->sessions_wanted = s->by && !strcmp(s->by, "session");
    s->count += !s->count; /* by size, session, run: one at a time */
    return rc;
}

int command_split(int argc, char **argv)
{
    struct splitting s = { .count = 0 };
    struct option_list tags = { .count = 0 }, steps = { .count = 0 };
    struct option table[] = {
        { OPTION_LIST, 't', "tags", &tags, "NAME=GLOB", .help = "Write series whose tag matches GLOB to DIR/NAME; may "
          "be repeated, the first that matches counts" },
        { OPTION_TEXT, 0, "rest", &s.rest, "NAME", .help = "Write series that match no --tags to DIR/NAME (default: "
          "leave them out and count them)" },
        { OPTION_LIST, 0, "steps", &steps, "NAME=FROM:TO", .help = "Write values at steps from FROM to below TO to "
          "DIR/NAME; either number may be left out; may be repeated" },
        { OPTION_CHOICE, 0, "by", &s.by, .help = "Write each restart of a run to DIR/RUN/session-1, session-2 and so "
          "on, or each run to DIR/RUN, with - in place of / in its name", .choices = "session|run" },
        { OPTION_TEXT, 0, "size", &s.size_text, "BYTES", .help = "Write files of at most BYTES (k, M and G stand for "
          "1024 and its powers), with .00001, .00002 and so on after their names; a longer record gets a file of its "
          "own" },
        REWRITE_OPTIONS(s.rewrite),
    };
    const struct options options = {
        .program = "eventlog split", .usage = "--tags | --steps | --by | --size ... [OPTION...] PATH... -o DIR",
        .summary = "Split a log into several by tags, steps, sessions, runs or size. Values are copied bit for bit, in "
                   "the same order. Each new file gets a first record and the metadata of its series; graphs and the "
                   "like go to all parts. A session begins with a file in which a series goes back to a step that an "
                   "earlier file has, at a later time, or with a session start (TensorFlow 1). Exit status: 0 done; 1 "
                   "nothing to split, or damage; 2 usage or I/O.",
        .examples = "  eventlog split --tags 'train=train/*' --tags 'eval=eval/*' --rest other logs -o parts\n"
                    "  eventlog split --steps warmup=:1000 --steps rest=1000: logs/train -o parts\n"
                    "  eventlog split --by session logs/train -o attempts      a curve for each attempt\n"
                    "  eventlog split --size 100M logs -o small\n",
        .table = table, .count = sizeof table / sizeof *table, .least = 1, .wanted = "no PATH given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&s.rewrite.scan, &options, argc, argv, &count, &e);

    if (rc == OK)
        rc = prepare(&s, &tags, &steps, &e);
    status = rc == OK ? rewrite_open(&s.rewrite, argv + 1, (size_t)count)
                      : scan_leave(&s.rewrite.scan, rc, &e);
    if (rc == OK && status == EXIT_DONE) {
        if (s.sessions_wanted)
            s.rewrite.scan.passes = 2;
        if ((rc = rewrite_group_files(&s.rewrite, &e)) == OK)
            rc = split(&s, &e);
        s.rewrite.dropped = s.homeless;
        if (s.homeless)
            log_line(&s.rewrite.scan.log, "left out %llu values that belong to no part",
                     (unsigned long long)s.homeless);
        if (rc == OK)
            rewrite_print(&s.rewrite, "split", "");
        if (rc == OK)
            tell_empty(&s, &steps);
        status = rewrite_close(&s.rewrite, rc, s.outputs > 0, &e);
    }
    for (size_t i = 0; i < s.count; i++) {
        free(s.parts[i].name);
        log_rewrite_free(s.parts[i].records);
    }
    split_session_free(s.sessions);
    tag_index_release(&s.tags);
    selection_release(&s.globs);
    buffer_release(&s.version);
    return status;
}
