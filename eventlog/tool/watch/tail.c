/* eventlog tail: prints the newest points, and with -f new ones as they come. */
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/number.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "eventlog/read/scalar_series.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/point_range.h"
#include "eventlog/tool/scan.h"
#include "eventlog/tool/time_option.h"
#include "eventlog/tool/value_words.h"
#include "eventlog/tool/watch/follow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* a point whose line is not printed yet; the tag of its series stays valid */
struct last {
    const char *tag;
    size_t tag_length;
    struct eventlog_point point;
    unsigned from;
    const char *word; /* of a value that is not a point, else NULL; */
    char *details;    /* and its details, owned by the line */
};

struct tail_run {
    const char *name; /* borrowed */
    struct scalar_run scalars;
    int holding;       /* existing points are being read: the last ones are kept in the ring */
    struct last *ring; /* as many as there were points, at most ring_size; the oldest at ring_next once it is full */
    size_t ring_size, ring_capacity, ring_next;
    uint64_t ring_seen;
};

struct tail {
    struct scan *scan;
    struct follow follow;
    struct tail_run *runs; /* by their numbers */
    size_t run_count;
    int64_t keep; /* -1: all */
    struct point_range range;
    enum time_style time;
    int json, terminal, everything;
    struct buffer line;
    uint64_t points;
};

/* ---- lines ----------------------------------------------------------------------------------------------------- */

static void number(struct buffer *b, double v, unsigned from)
{
    char text[NUMBER_TEXT_MAX];

    if (from & SCALAR_FROM_FLOAT32)
        number_text_float((float)v, text);
    else
        number_text(v, text);
    buffer_append_text(b, text);
}

/* A name in a line of fields separated by tabs: control characters and backslashes are escaped as in C. */
static void escaped(struct buffer *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '\\')
            buffer_append_text(b, "\\\\");
        else if (c < 0x20 || c == 0x7f)
            buffer_format(b, "\\x%02x", c);
        else
            buffer_append_byte(b, c);
    }
}

static void field(struct buffer *b, const char *text, size_t n)
{
    escaped(b, text, n);
    buffer_append_byte(b, '\t');
}

static void value_text(struct buffer *b, const struct last *l)
{
    if (!l->word) {
        number(b, l->point.value, l->from);
        return;
    }
    buffer_format(b, *l->details ? "<%s: " : "<%s", l->word);
    escaped(b, l->details, strlen(l->details));
    buffer_append_byte(b, '>');
}

/* The line for a terminal of this many columns: names and long values are cut in the middle, and if there is no room
 * for names the time is left out. */
static void terminal_line(struct buffer *b, const struct tail_run *run, const struct last *l, const char *time,
                          size_t columns)
{
    enum { BETWEEN = 2, LEAST_OF_NAMES = 16 };
    size_t run_width = text_columns(run->name, strlen(run->name)), tag_width = text_columns(l->tag, l->tag_length);
    struct buffer value = BUFFER_EMPTY, rest = BUFFER_EMPTY;
    int ascii = !terminal_utf8();
    size_t used, room, half;

    value_text(&value, l);
    buffer_format(&rest, "  %lld  ", (long long)l->point.step);
    text_append_cut(&rest, buffer_text(&value), value.length, columns / 2, ascii);
    used = text_columns(buffer_text(&rest), rest.length) + BETWEEN;
    if (used + LEAST_OF_NAMES + BETWEEN + strlen(time) <= columns) {
        buffer_format(&rest, "  %s", time);
        used += BETWEEN + strlen(time);
    }
    room = columns > used + LEAST_OF_NAMES ? columns - used : LEAST_OF_NAMES;
    half = room / 2;
    if (run_width + tag_width > room && run_width > half)
        run_width = tag_width > half ? half : room - tag_width;
    text_append_cut(b, run->name, strlen(run->name), run_width, ascii);
    buffer_append_text(b, "  ");
    text_append_cut(b, l->tag, l->tag_length, room - run_width, ascii);
    buffer_format(b, "%s\n", buffer_text(&rest));
    b->failed |= !buffer_ok(&value) || !buffer_ok(&rest);
    buffer_release(&value);
    buffer_release(&rest);
}

/* One write per line: readers of a pipe get whole lines, and a kill cuts none. */
static int print(struct tail *t, const struct tail_run *run, const struct last *l, struct error *e)
{
    size_t columns = t->terminal ? (size_t)terminal_columns(STDOUT_FILENO) : 0;
    struct buffer *b = &t->line;
    char time[TIME_TEXT_MAX];

    buffer_clear(b);
    if (t->json) {
        if (l->word)
            buffer_format(b, "{\"type\":\"%s\",\"run\":", l->word);
        else
            buffer_append_text(b, "{\"run\":");
        json_text(b, run->name);
        buffer_append_text(b, ",\"tag\":");
        json_span(b, l->tag, l->tag_length, 0);
        buffer_format(b, ",\"step\":%lld,\"wall_time\":", (long long)l->point.step);
        time_option_json(b, t->time, l->point.wall_time);
        if (l->word) {
            buffer_append_text(b, l->details);
        } else {
            buffer_append_text(b, ",\"value\":");
            json_double(b, l->point.value);
        }
        buffer_append_text(b, "}\n");
    } else if (columns) {
        terminal_line(b, run, l, time_text(t->time, l->point.wall_time, time), columns);
    } else {
        field(b, run->name, strlen(run->name));
        field(b, l->tag, l->tag_length);
        buffer_format(b, "%lld\t", (long long)l->point.step);
        value_text(b, l);
        buffer_format(b, "\t%s\n", time_text(t->time, l->point.wall_time, time));
    }
    if (!buffer_ok(b))
        return error_memory(e, run->name, "for a line");
    t->points++;
    if (io_write_full(&io_real, 1, b->data, b->length) < 0)
        return error_system(e, "standard output: cannot write");
    return OK;
}

/* Takes over the details of the line. */
static int point(struct tail *t, struct tail_run *run, const struct last *l, struct error *e)
{
    if (!run->holding || run->ring_size == 0) {
        int rc = run->holding ? OK : print(t, run, l, e);

        free(l->details);
        return rc;
    }
    if (run->ring_next == run->ring_capacity) {
        size_t more = run->ring_capacity ? run->ring_capacity * 2 : 16;
        struct last *bigger;

        more = more < run->ring_size ? more : run->ring_size;
        if (!(bigger = realloc(run->ring, more * sizeof *bigger))) {
            free(l->details);
            return error_memory(e, run->name, "for its last %zu points", more);
        }
        run->ring = bigger;
        run->ring_capacity = more;
    }
    if (run->ring_seen++ >= run->ring_size)
        free(run->ring[run->ring_next].details);
    run->ring[run->ring_next] = *l;
    run->ring_next = run->ring_next + 1 == run->ring_size ? 0 : run->ring_next + 1;
    return OK;
}

static void forget_ring(struct tail_run *run)
{
    for (size_t i = 0; i < run->ring_size && i < run->ring_seen; i++)
        free(run->ring[i].details);
    free(run->ring);
    run->ring = NULL;
    run->ring_seen = 0;
}

/* The existing points have been read: prints the last ones, and from now on each as it comes. */
static int print_ring(struct tail *t, struct tail_run *run, struct error *e)
{
    size_t count = run->ring_seen < run->ring_size ? (size_t)run->ring_seen : run->ring_size;
    int rc = OK;

    for (size_t i = 0; rc == OK && i < count; i++) {
        size_t at = run->ring_next + run->ring_size - count + i;

        rc = print(t, run, &run->ring[at >= run->ring_size ? at - run->ring_size : at], e);
    }
    forget_ring(run);
    run->holding = 0;
    return rc;
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static char *details(const struct event_value *value, const char *plugin, int json)
{
    struct buffer b = BUFFER_EMPTY;

    value_words_details(&b, value, plugin, json);
    if (!buffer_ok(&b))
        buffer_release(&b);
    else if (!b.data) /* an empty text */
        b.data = strdup("");
    else
        b.length = strlen(b.data);
    return b.data;
}

/* Graphs, session marks: lines with an empty tag. */
static int take_other(struct tail *t, struct tail_run *run, const struct event *event, struct error *e)
{
    struct last l = { .tag = "", .point = { event->step, event->wall_time, 0 }, .word = value_words_event(event) };

    if (!l.word || t->scan->tags.patterns.count || !point_range_holds(&t->range, event->step, event->wall_time))
        return OK;
    if (!(l.details = strdup("")))
        return error_memory(e, run->name, "for a line");
    return point(t, run, &l, e);
}

static int take_event(struct tail *t, struct tail_run *run, const struct event *event, struct error *e)
{
    struct event_values values;
    const struct event_value *value;

    event_values_init(&values, event);
    while ((value = event_values_next(&values))) {
        struct scalar_series *s;
        struct last l = { .word = NULL };
        int rc = scalar_run_value(&run->scalars, event, value, &l.point, &s, &l.from, e);
        int wanted = rc >= 0 && scan_tag_wanted(t->scan, s->tag) &&
                     point_range_holds(&t->range, event->step, event->wall_time);

        if (rc == 0 && t->everything && wanted) {
            l.word = value_words_word(value, s->plugin);
            if (!(l.details = details(value, s->plugin, t->json)))
                return error_memory(e, run->name, "for a line");
            l.point = (struct eventlog_point){ event->step, event->wall_time, 0 };
            rc = 1;
        }
        if (rc == 1 && wanted) {
            l.tag = s->tag;
            l.tag_length = s->tag_length;
            rc = point(t, run, &l, e);
        }
        if (rc < 0)
            return rc;
    }
    return OK;
}

static int new_run(void *context, size_t number, int first, struct error *e)
{
    struct tail *t = context;
    const char *name = t->follow.log.runs[number].name;
    struct tail_run *runs = realloc(t->runs, (number + 1) * sizeof *runs);

    if (!runs)
        return error_memory(e, name, "for it");
    t->runs = runs;
    runs += t->run_count++;
    *runs = (struct tail_run){ .name = name, .holding = first && t->keep >= 0 };
    runs->ring_size = runs->holding ? (size_t)t->keep : 0;
    scalar_run_init(&runs->scalars, EVENTLOG_VIEW_ALL, 0, 0);
    return OK;
}

static int tail_take(void *context, size_t run, const struct event *event, struct error *e)
{
    struct tail *t = context;

    if (event->what == EVENT_SUMMARY)
        return take_event(t, &t->runs[run], event, e);
    return t->everything ? take_other(t, &t->runs[run], event, e) : OK;
}

/* The first time, the files of a run come together. */
static int end_of_run(void *context, size_t run, struct error *e)
{
    struct tail *t = context;

    return t->runs[run].holding ? print_ring(t, &t->runs[run], e) : OK;
}

static void release(struct tail *t)
{
    for (size_t i = 0; i < t->run_count; i++) {
        scalar_run_release(&t->runs[i].scalars);
        forget_ring(&t->runs[i]);
    }
    free(t->runs);
    follow_release(&t->follow);
    buffer_release(&t->line);
}

/* ERR_ARG: -f with an input that cannot grow. */
static int refuse_packed(struct tail *t, struct error *e)
{
    for (size_t i = 0; i < t->follow.path_count; i++) {
        const char *packed = log_input_packed(&t->scan->input, t->follow.paths[i]);

        if (packed)
            return error_set(e, ERR_ARG, "%s: is %s, which does not grow; 'eventlog tail' without -f reads it",
                             t->follow.paths[i], packed);
    }
    return OK;
}

/* Looks again and again until no point has come for idle seconds; 0: forever. */
static int follow_on(struct tail *t, double interval, double idle, struct error *e)
{
    double since = clock_monotonic();
    uint64_t points = t->points;
    int rc = OK;

    while (rc == OK) {
        if (t->points != points)
            since = clock_monotonic();
        if (idle > 0 && clock_monotonic() - since >= idle)
            break;
        points = t->points;
        follow_wait(&t->follow, interval, idle > 0 ? fmax(since + idle - clock_monotonic(), 0) : INFINITY);
        if ((rc = follow_look(&t->follow, 0, e)) == OK)
            rc = follow_read(&t->follow, e);
    }
    return rc;
}

static void prepare_follow(struct tail *t, char *const *paths, size_t count, int following)
{
    t->follow = (struct follow){ .scan = t->scan,
                                 .paths = paths,
                                 .path_count = count,
                                 .waits = following,
                                 .natural_order = !t->json,
                                 .sink = { t, new_run, tail_take, end_of_run, NULL },
                                 .watch = LOG_WATCH_NONE };
    if (following)
        log_watch_open(&t->follow.watch);
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static void count_series(struct tail *t)
{
    for (size_t i = 0; i < t->run_count; i++)
        for (size_t k = 0; k < t->runs[i].scalars.count; k++)
            if (scan_tag_wanted(t->scan, t->runs[i].scalars.series[k].tag))
                scan_series(t->scan, &t->runs[i].scalars.series[k]);
}

int command_tail(int argc, char **argv)
{
    struct scan s = { .failed = 0 };
    struct tail t = { .scan = &s, .keep = 10, .range = POINT_RANGE_ALL, .line = BUFFER_EMPTY };
    double interval = 0.5, idle = 0;
    const char *time = NULL;
    int following = 0;
    struct option table[] = {
        { OPTION_FLAG, 'f', "follow", &following,
          .help = "Keep printing points as they are written, also from new files and runs, until interrupted; wait for "
                  "a PATH that does not exist yet" },
        { OPTION_INT, 'n', "points", &t.keep, "N",
          .help = "Begin with the last N points of each run, in reading order; -1: all (default 10; with --since, "
                  "--from-step or --to-step: all)",
          .minimum = -1, .maximum = 1e9 },
        { OPTION_FLAG, 'a', "all", &t.everything,
          .help = "Also print, in a few words, values that are not scalar points: images, histograms, audio, texts, "
                  "graphs, session marks and so on. They count for -n" },
        { OPTION_FLAG, 0, "json", &t.json,
          .help = "Print a JSON object for each point, as 'export --format=jsonl' does; a value that is not a point "
                  "has a member \"type\"" },
        SCAN_RUN_OPTION(s),
        SCAN_TAG_OPTION(s),
        POINT_RANGE_OPTIONS(t.range),
        TIME_OPTION(time, ""),
        { OPTION_DOUBLE, 0, "interval", &interval, "SECONDS",
          .help = "With -f, look for new points every SECONDS where changes are not noticed at once: on network file "
                  "systems, behind links to files, before PATH exists; elsewhere every 30 times SECONDS (default 0.5)",
          .minimum = 0.01, .maximum = 3600 },
        { OPTION_DOUBLE, 0, "idle-timeout", &idle, "SECONDS",
          .help = "With -f, exit after SECONDS without a new point (default: never)", .minimum = 0, .maximum = 1e9 },
    };
    const struct options options = {
        .program = "eventlog tail",
        .usage = "[OPTION...] PATH...",
        .summary = "Print the newest points, one per line: run, tag, step, value and wall time, separated by tabs. "
                   "Control characters and backslashes in names are written as \\xNN and \\\\, float32 values with the "
                   "fewest digits that identify them; with --all a value may be <image: 3x2, 170 B> and the like. On a "
                   "terminal, long names are cut so that a line fits. Each line is a single write. With -f, a file "
                   "that was truncated or replaced is read again from its start, or continued if it was replaced by a "
                   "longer copy of itself; files and directories that disappear may come back. The 64 most recently "
                   "changed files stay open and are read to their end even if they are renamed. Exit status: 0 done; 1 "
                   "no points, or damage; 2 usage or I/O.",
        .examples = "  eventlog tail -f logs\n  eventlog tail -f -n 0 --tag 'loss*' --json logs | jq .value\n"
                    "  eventlog tail --all -n -1 logs | grep '<text'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    struct error e = { 0 };
    int count = 0, rc = scan_begin(&s, &options, argc, argv, &count, &e);

    if (rc == OK)
        rc = point_range_settle(&t.range, &e);
    if (!options_given(&options, "points") &&
        (t.range.since_text || options_given(&options, "from-step") || options_given(&options, "to-step")))
        t.keep = -1;
    if (rc != OK)
        return scan_leave(&s, rc, &e);
    t.time = time_option_style(time);
    t.terminal = isatty(STDOUT_FILENO);
    prepare_follow(&t, argv + 1, (size_t)count, following);
    s.input.standard_input = 1;
    if (!following || (rc = refuse_packed(&t, &e)) == OK)
        rc = follow_look(&t.follow, 1, &e);
    if (rc == OK && !t.run_count && !s.runs.names && !s.empty)
        scan_tell_empty(&s, argv[1], following ? " yet" : "");
    if (rc == OK)
        rc = follow_read(&t.follow, &e);
    if (rc == OK && following) {
        scan_tell_unmatched(&s); /* matching names may still come, but a mistyped filter must be reported now */
        rc = follow_on(&t, interval, idle, &e);
    }
    s.failed |= follow_failed(&t.follow);
    count_series(&t);
    count = rc == OK ? scan_status(&s, t.points > 0 || t.keep == 0) : scan_fail(&s, &e);
    release(&t);
    scan_close(&s);
    return count;
}
