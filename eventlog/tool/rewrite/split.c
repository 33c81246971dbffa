/* eventlog split: one log as several, by tags, steps, sessions, runs or size. */
#include "base/array.h"
#include "base/human.h"
#include "base/number.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/log_name.h"
#include "eventlog/format/record.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/rewrite.h"
#include "eventlog/tool/rewrite/rewrite_command.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- split session ----------------------------------------------------------------------------------------------- */

/*
 * Finds where the sessions of a run begin: at a file in which a series goes back, at a later time, to
 * a step that the session already has, and at session starts after its first value.
 */

struct split_session;

/* of a series: in the session before this file, and in this file */
struct span {
    int64_t high, low;
    double last, first, last_here;
    int64_t high_here;
    int known, here;
};

struct start {
    size_t file;
    uint64_t offset;
};

struct split_session {
    struct tag_index tags; /* items: struct span */
    size_t file;
    char *begins;         /* one a file: a session begins with it */
    struct start *starts; /* session starts within files */
    size_t start_count, start_capacity, next;
    int values; /* the session at hand has some */
};

static int no_memory(struct error *e)
{
    return error_memory(e, NULL, "for sessions");
}

static int start(struct split_session *s, uint64_t offset, struct error *e)
{
    struct span *spans = s->tags.items;

    if (!ARRAY_ROOM(s->starts, s->start_capacity, s->start_count + 1))
        return no_memory(e);
    s->starts[s->start_count++] = (struct start){ s->file, offset };
    for (size_t i = 0; i < s->tags.count; i++)
        spans[i].known = spans[i].here = 0;
    s->values = 0;
    return OK;
}

static int split_session_visit(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                               struct error *e)
{
    struct split_session *s = context;
    struct event_values values;
    const struct event_value *v;

    (void)data;
    (void)n;
    if (event->what == EVENT_SESSION_LOG && event->session == EVENT_SESSION_START && s->values)
        return start(s, offset, e);
    event_values_init(&values, event);
    while (event->what == EVENT_SUMMARY && (v = event_values_next(&values))) {
        double wall_time = isfinite(event->wall_time) ? event->wall_time : NAN; /* passed over by fmin and fmax */
        struct span *span = tag_index_item(&s->tags, v->tag, v->tag_length);

        if (!span)
            return no_memory(e);
        s->values = 1;
        span->low = span->here && span->low < event->step ? span->low : event->step;
        span->high_here = span->here && span->high_here > event->step ? span->high_here : event->step;
        span->first = span->here ? fmin(span->first, wall_time) : wall_time;
        span->last_here = span->here ? fmax(span->last_here, wall_time) : wall_time;
        span->here = 1;
    }
    return OK;
}

/* The file is read: does it begin a session, and what does the session at hand have now? */
static void end_file(struct split_session *s)
{
    struct span *spans = s->tags.items;
    int begins = 0;

    for (size_t i = 0; i < s->tags.count; i++) {
        const struct span *span = &spans[i];

        begins |= span->here && span->known && span->low <= span->high && !(span->first < span->last);
    }
    s->begins[s->file] = (char)begins;
    for (size_t i = 0; i < s->tags.count; i++) {
        struct span *span = &spans[i];

        if (begins)
            span->known = 0;
        if (span->here) {
            span->high = span->known && span->high > span->high_here ? span->high : span->high_here;
            span->last = span->known ? fmax(span->last, span->last_here) : span->last_here;
            span->known = 1;
        }
        span->here = 0;
    }
}

/* Reads the run. On OK *out is yours: split_session_free() it, NULL is fine. */
static int split_session_new(struct split_session **out, struct rewrite *w, const struct log_run *run, struct error *e)
{
    struct split_session *s = *out = calloc(1, sizeof *s);
    int rc = OK;

    if (!s || !(s->begins = calloc(run->file_count + 1, 1)))
        return no_memory(e);
    s->tags.item_size = sizeof(struct span);
    w->looking_ahead = 1;
    for (; rc == OK && s->file < run->file_count; s->file++)
        if ((rc = rewrite_read(w, run->name, run->files[s->file], split_session_visit, s, e)) == OK)
            end_file(s);
    w->looking_ahead = 0;
    return rc;
}

static void split_session_free(struct split_session *s)
{
    if (!s)
        return;
    tag_index_release(&s->tags);
    free(s->begins);
    free(s->starts);
    free(s);
}

/* In the second reading, for each file of the run: 1 if a session begins with it. */
static int split_session_file(struct split_session *s, size_t file)
{
    s->file = file;
    return s->begins[file];
}

/* ... and for each of its records, in ascending order: 1 if a session begins there (other than with the file). */
static int split_session_next(struct split_session *s, uint64_t offset)
{
    if (s->next == s->start_count || s->starts[s->next].file != s->file || s->starts[s->next].offset != offset)
        return 0;
    s->next++;
    return 1;
}

/* ---- split ------------------------------------------------------------------------------------------------------- */

enum { PARTS_MOST = 130 };

struct splitting {
    struct rewrite rewrite; /* its tags' values: with --tags the part of each; as many as there are: none */
    struct rewrite_command command;
    struct rewrite_part parts[PARTS_MOST];
    struct range {
        const char *glob; /* of tags, or NULL: */
        int64_t from, to; /* steps, from <= step < to */
    } ranges[PARTS_MOST]; /* of the parts */
    size_t count;
    struct option_list tags, steps; /* as given */
    const char *rest, *by, *size_text;
    uint64_t size;
    struct selection globs; /* of --tags, by part */
    struct buffer version;  /* the first record of the file at hand, framed */
    const struct log_run *run;
    const char *path;
    unsigned number; /* of files or sessions of this file or run */
    struct split_session *sessions;
    int sessions_wanted;
    uint64_t homeless;
};

/* ---- the parts ------------------------------------------------------------------------------------------------- */

/* NAME=...; a name is a directory below the output. */
static int add_part(struct splitting *s, const char *text, const char **value, struct range **out, struct error *e)
{
    const char *at = strchr(text, '=');
    size_t n = at ? (size_t)(at - text) : 0;

    if (s->count == PARTS_MOST)
        return error_set(e, ERR_ARG, "more than %d parts", PARTS_MOST);
    if (!at || !n || memchr(text, '/', n) || *text == '.')
        return error_set(e, ERR_ARG, "'%.80s' is not NAME=... with a directory name", text);
    if (!(s->parts[s->count].name = strndup(text, n)))
        return error_memory(e, NULL, "for a name");
    *value = at + 1;
    *out = &s->ranges[s->count++];
    return OK;
}

static int add_tags(struct splitting *s, const char *text, struct error *e)
{
    struct range *p;

    if (add_part(s, text, &text, &p, e) != OK)
        return e->code;
    p->glob = text;
    option_list_add(&s->globs.patterns, text); /* as many as --tags */
    return OK;
}

/* FROM:TO, either may be missing. */
static int add_steps(struct splitting *s, const char *text, struct error *e)
{
    char from[32] = "", to[32] = "";
    struct range *p;
    const char *colon;

    if (add_part(s, text, &text, &p, e) != OK)
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

static int holds(const struct range *range, const struct event *event)
{
    return event->step >= range->from && event->step < range->to;
}

/* The part that a series goes to. */
static size_t home_of(struct splitting *s, const char *tag)
{
    const size_t globs = s->globs.patterns.count;
    size_t home = selection_wants(&s->globs, tag) ? 0 : globs; /* the rest, if it is wanted */

    while (home < globs && fnmatch(s->ranges[home].glob, tag, 0))
        home++;
    return home;
}

static int split_choose(void *context, const struct rewrite_value *value, struct log_rewrite_choice *choice,
                        struct error *e)
{
    struct splitting *s = context;
    size_t home = 0;

    (void)e;
    if (s->ranges[0].glob && value->is_new)
        value->tag->value = home_of(s, value->tag->text);
    if (s->ranges[0].glob)
        home = value->tag->value;
    else
        while (home < s->count && !holds(&s->ranges[home], value->event))
            home++;
    s->homeless += home >= s->count && !value->part;
    choice->keep = home == value->part;
    return OK;
}

/* What is no value goes to all parts, session marks to those of their steps. */
static int split_keeps(void *context, const struct event *event, size_t part)
{
    const struct range *range = &((const struct splitting *)context)->ranges[part];

    return event->what != EVENT_SESSION_LOG || range->glob || holds(range, event);
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
    struct rewrite_part *p = &s->parts[0];
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
    log_rewrite_next_file(p->records);
    buffer_append(&p->out->pending, s->version.data, s->version.length);
    return OK;
}

static int roll_record(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                       struct error *e)
{
    struct splitting *s = context;
    struct rewrite_part *p = &s->parts[0];
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

static int rolling(void *context, const struct log_run *run, size_t file, struct error *e)
{
    struct splitting *s = context;
    struct rewrite_part *p = &s->parts[0];
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

static int split_begin_run(void *context, const struct log_run *run, struct error *e)
{
    struct splitting *s = context;

    return s->sessions_wanted ? split_session_new(&s->sessions, &s->rewrite, run, e) : OK;
}

static void split_end_run(void *context)
{
    struct splitting *s = context;

    split_session_free(s->sessions);
    s->sessions = NULL;
}

static int split_tell(void *context)
{
    struct splitting *s = context;
    struct scan *scan = &s->rewrite.scan;

    s->rewrite.dropped = s->homeless;
    if (s->homeless)
        log_line(&scan->log, "left out %llu values that belong to no part", (unsigned long long)s->homeless);
    rewrite_print(&s->rewrite, "split", "");
    if (s->globs.names) /* the parts that got nothing */
        scan->unmatched += selection_tell(&s->globs, "--tags", "tag", &scan->log);
    for (size_t i = 0; i < s->steps.count; i++)
        if (!s->parts[i].values) {
            log_line(&scan->log, "--steps '%.80s': no value at these steps", s->steps.items[i]);
            scan->unmatched++;
        }
    return rewrite_files(&s->rewrite) > 0;
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static int split_check(void *context, struct error *e)
{
    struct splitting *s = context;
    const struct option_list *tags = &s->tags, *steps = &s->steps;
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
        struct range *p;
        char text[256];

        snprintf(text, sizeof text, "%.200s=*", s->rest);
        if ((rc = add_part(s, text, &(const char *){ NULL }, &p, e)) == OK)
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
    s->command.part_count = s->count += !s->count; /* by size, session, run: one at a time */
    s->command.file = s->size || s->by ? rolling : NULL;
    s->rewrite.scan.passes = s->sessions_wanted ? 2 : 1;
    return rc;
}

int command_split(int argc, char **argv)
{
    struct splitting s = { .count = 0 };
    struct option table[] = {
        { OPTION_LIST, 't', "tags", &s.tags, "NAME=GLOB",
          .help = "Write series whose tag matches GLOB to DIR/NAME; may be repeated, the first that matches counts" },
        { OPTION_TEXT, 0, "rest", &s.rest, "NAME",
          .help = "Write series that match no --tags to DIR/NAME (default: leave them out and count them)" },
        { OPTION_LIST, 0, "steps", &s.steps, "NAME=FROM:TO",
          .help = "Write values at steps from FROM up to but not including TO to DIR/NAME; either number may be left "
                  "out; may be repeated" },
        { OPTION_CHOICE, 0, "by", &s.by,
          .help = "Write each restart of a run to DIR/RUN/session-1, session-2 and so on, or each run to DIR/RUN, with "
                  "- in place of / in its name",
          .choices = "session|run" },
        { OPTION_TEXT, 0, "size", &s.size_text, "BYTES",
          .help = "Write files of at most BYTES (k, M and G: 1024 and its powers), with .00001, .00002 and so on added "
                  "to their names; a longer record gets a file of its own" },
        REWRITE_OPTIONS(s.rewrite),
    };
    const struct options options = {
        .program = "eventlog split",
        .usage = "--tags | --steps | --by | --size ... [OPTION...] PATH... -o DIR",
        .summary = "Split a log into several by tags, steps, sessions, runs or size. Values are copied bit for bit, in "
                   "the same order. Each new file gets a first record and the metadata of its series; graphs and the "
                   "like go to all parts. A session begins with a session start (TensorFlow 1), or with a file in "
                   "which a series goes back, at a later time, to a step that an earlier file has. Exit status: 0 "
                   "done; 1 nothing to split, or damage; 2 usage or I/O.",
        .examples = "  eventlog split --tags 'train=train/*' --tags 'eval=eval/*' --rest other logs -o parts\n"
                    "  eventlog split --steps warmup=:1000 --steps rest=1000: logs/train -o parts\n"
                    "  eventlog split --by session logs/train -o attempts      a curve for each attempt\n"
                    "  eventlog split --size 100M logs -o small\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    int status;

    s.command = (struct rewrite_command){
        &options,
        &s,
        .group_files = 1,
        .parts = s.parts,
        .check = split_check,
        .begin_run = split_begin_run,
        .end_run = split_end_run,
        .choose = split_choose,
        .keeps = split_keeps,
        .tell = split_tell,
    };
    status = rewrite_command_run(&s.rewrite, &s.command, argc, argv);
    for (size_t i = 0; i < s.count; i++)
        free(s.parts[i].name);
    selection_release(&s.globs);
    buffer_release(&s.version);
    return status;
}
