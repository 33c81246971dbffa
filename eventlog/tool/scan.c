#include "eventlog/tool/scan.h"

#include "base/clock.h"
#include "base/human.h"
#include "base/text.h"
#include "eventlog/format/foreign_record.h"
#include "eventlog/read/log_follow.h"
#include "eventlog/tool/value_words.h"

#include <stdlib.h>
#include <string.h>

enum { DAMAGE_LINES = 20, PROGRESS_EVERY = 2500000 /* bytes */ };

int scan_begin(struct scan *s, const struct options *o, int argc, char **argv, int *count, struct error *e)
{
    log_init(&s->log, o->program, 2);
    return options_parse(o, argc, argv, count, e);
}

int scan_leave(struct scan *s, int rc, const struct error *e)
{
    return rc == OPTIONS_DONE ? EXIT_DONE : scan_fail(s, e);
}

int scan_open(struct scan *s, char *const *paths, size_t count)
{
    struct error e = { 0 };

    s->began = clock_monotonic();
    s->input.standard_input = 1;
    s->paths = paths;
    s->path_count = count;
    if (log_directory_list(&s->directory, &s->input, paths, count, &e) != OK) {
        log_directory_release(&s->directory);
        log_input_release(&s->input);
        return scan_fail(s, &e);
    }
    for (size_t i = 0; i < s->directory.problem_count; i++) {
        log_line(&s->log, "%s", s->directory.problems[i]);
        s->failed = 1;
    }
    for (const struct log_run *run = NULL; (run = scan_next_run(s, run)); s->matching++)
        for (size_t k = 0; k < run->file_count; k++)
            s->bytes += log_input_bytes(&s->input, run->files[k]);
    if (!s->directory.count)
        scan_tell_empty(s, paths[0], "");
    scan_tell_unmatched(s);
    return EXIT_DONE;
}

static int by_name(const void *a, const void *b)
{
    return text_natural_order(((const struct log_run *)a)->name, ((const struct log_run *)b)->name);
}

void scan_natural_order(struct log_directory *d)
{
    if (d->count)
        qsort(d->runs, d->count, sizeof *d->runs, by_name);
}

void scan_tell_empty(struct scan *s, const char *path, const char *yet)
{
    log_line(&s->log, "%s: contains no event files (with 'tfevents' in their names)%s", path, yet);
    s->empty = 1;
}

void scan_close(struct scan *s)
{
    log_progress_end(&s->log);
    log_directory_release(&s->directory);
    log_input_release(&s->input);
    selection_release(&s->runs);
    selection_release(&s->tags);
}

int scan_run_wanted(struct scan *s, const char *run)
{
    return selection_wants(&s->runs, run);
}

const struct log_run *scan_next_run(struct scan *s, const struct log_run *run)
{
    const struct log_run *runs = s->directory.runs;

    for (size_t i = run ? (size_t)(run - runs) + 1 : 0; i < s->directory.count; i++)
        if (scan_run_wanted(s, runs[i].name))
            return &runs[i];
    return NULL;
}

int scan_tag_wanted(struct scan *s, const char *tag)
{
    return selection_wants(&s->tags, tag);
}

int scan_fail(struct scan *s, const struct error *e)
{
    log_line(&s->log, "%s", e->message);
    return EXIT_USAGE;
}

size_t scan_tell_unmatched(struct scan *s)
{
    /* If no name was asked for, there was no run, or none with tags: that has its own message. */
    return (s->runs.names ? selection_tell(&s->runs, "--run", "run", &s->log) : 0) +
           (s->tags.names ? selection_tell(&s->tags, "--tag", "tag", &s->log) : 0);
}

void scan_series(struct scan *s, const struct scalar_series *series)
{
    const struct event_value first = { .kind = series->first_kind };
    const char *word = value_words_word(&first, series->plugin);
    size_t i = 0;

    s->points |= series->seen != 0;
    if (series->seen || !series->skipped)
        return;
    while (i < SCAN_KINDS - 1 && s->kinds[i].word && strcmp(s->kinds[i].word, word) != 0)
        i++;
    s->kinds[i].word = word;
    s->kinds[i].series++;
}

/* Nothing was found, and no message says why. Where all that was wanted is of other kinds, they are named. */
static void tell_nothing(struct scan *s)
{
    struct buffer kinds = BUFFER_EMPTY;
    int histograms = 0;

    for (size_t i = 0; i < SCAN_KINDS && s->kinds[i].word; i++) {
        buffer_format(&kinds, "%s%llu of kind %s", i ? ", " : "", (unsigned long long)s->kinds[i].series,
                      s->kinds[i].word);
        histograms |= strcmp(s->kinds[i].word, "histogram") == 0;
    }
    if (s->points || !kinds.length)
        log_line(&s->log, "nothing matched");
    else
        log_line(&s->log,
                 "nothing matched: %s have no scalar points, but other values; 'eventlog tail --all' prints them, "
                 "%s'eventlog export --media DIR' extracts them (series: %s)",
                 s->tags.patterns.count ? "series with such tags" : "the series here",
                 histograms ? "'eventlog export --format=histograms' writes the histograms, and " : "and ",
                 buffer_text(&kinds));
    buffer_release(&kinds);
}

int scan_status(struct scan *s, int matched)
{
    size_t unmatched = scan_tell_unmatched(s) + s->unmatched;

    if (!matched && !unmatched && !s->failed && !s->empty && !s->foreign)
        tell_nothing(s);
    for (int unit = TIME_SECONDS + 1; unit < TIME_UNITS; unit++)
        if (s->units >> unit & 1)
            log_line(
                &s->log,
                "wall times in %s are taken for that wherever a date or a span is shown; TensorBoard takes them for "
                "seconds",
                time_unit_name((enum time_unit)unit));
    return s->failed ? EXIT_USAGE : !matched || unmatched || s->damaged || s->foreign ? EXIT_NO : EXIT_DONE;
}

int scan_gone(struct scan *s, const char *path, const struct error *e)
{
    for (size_t i = 0; i < s->path_count; i++)
        if (!strcmp(s->paths[i], path))
            return 0;
    if (!log_input_gone(path, e))
        return 0;
    log_line(&s->log, "%s: was removed before it was read; left out", path);
    return 1;
}

void scan_unread(struct scan *s, const char *path, const struct error *e)
{
    if (scan_gone(s, path, e))
        return;
    s->failed = 1;
    log_line(&s->log, "%s", e->message);
}

void scan_damage(struct scan *s, const char *path, const struct event_damage *d, uint64_t number)
{
    char text[200];

    if (d->kind == EVENTLOG_DAMAGE_UTF8) {
        s->bad_text++;
        s->damaged += s->quiet_damage; /* a command that lists damage lists this too */
        return;
    }
    s->damaged++;
    if (s->quiet_damage || number > DAMAGE_LINES)
        return;
    event_damage_text(d, text, sizeof text);
    log_line(&s->log, "%s:%llu: %s", path, (unsigned long long)d->offset, text);
    if (number == DAMAGE_LINES)
        log_line(&s->log, "%s: more damage in this file is only counted", path);
}

void scan_foreign(struct scan *s, const char *path, const struct event_reader *reader, const struct event *event)
{
    static const char *const texts[] = {
        [FOREIGN_EXAMPLE] = "tf.Example",
        [FOREIGN_SEQUENCE_EXAMPLE] = "tf.SequenceExample",
        [FOREIGN_OTHER] = "messages of another kind",
    };
    const enum foreign_kind kind = event_reader_state(reader).records == 1 ? foreign_record(event->data, event->length)
                                                                           : FOREIGN_NOT;

    if (kind == FOREIGN_NOT)
        return;
    s->foreign++;
    log_line(&s->log, "%s: its records hold %s, not events", path, texts[kind]);
}

void scan_progress_file(struct scan *s, const char *path, uint64_t size)
{
    s->file_bytes = log_input_bytes(&s->input, path);
    s->file_size = size;
    s->added = s->shown_at = 0;
}

/* A part has read so much of the current file. */
static void add_read(struct scan *s, uint64_t bytes)
{
    if (bytes > s->added)
        __atomic_fetch_add(s->read, bytes - s->added, __ATOMIC_RELAXED);
    s->added = bytes > s->added ? bytes : s->added;
}

void scan_progress(struct scan *s, const char *run, uint64_t offset)
{
    double all = (double)s->bytes * (s->passes ? s->passes : 1);
    double part = s->file_size ? (double)offset / (double)s->file_size * (double)s->file_bytes : 0;
    char size[HUMAN_TEXT_MAX];

    if (s->read) {
        add_read(s, (uint64_t)part);
        return;
    }
    log_progress_work(&s->log, s->began, all > 0 ? ((double)s->bytes_done + part) / all : 1, run, "%s in %zu run%s",
                      human_bytes(s->bytes, size), s->matching, s->matching == 1 ? "" : "s");
}

void scan_progress_end(struct scan *s)
{
    s->bytes_done += s->file_bytes;
    if (s->read)
        add_read(s, s->file_bytes);
    s->file_bytes = 0;
}

struct scan scan_part(const struct scan *s, struct buffer *kept, uint64_t *read)
{
    struct scan part = {
        .log = s->log,
        .paths = s->paths,
        .path_count = s->path_count,
        .input = s->input,
        .quiet_damage = s->quiet_damage,
        .read = read,
    };

    part.log.kept = kept;
    part.log.drawn = 0;
    return part;
}

int scan_join(struct scan *s, const struct scan *part, struct error *e)
{
    log_kept_lines(&s->log, part->log.kept);
    s->damaged += part->damaged;
    s->foreign += part->foreign;
    s->units |= part->units;
    s->bad_text = part->bad_text;
    s->failed |= part->failed;
    return buffer_ok(part->log.kept) ? OK : error_memory(e, NULL, "for messages about the log");
}

/* One run while it is read. */
struct run_scan {
    struct scan *scan;
    const char *run, *path; /* path: of the current file */
    const struct scan_sink *sink;
    int rc; /* what a sink returned */
};

static void show_offset(struct run_scan *w, uint64_t offset)
{
    if (offset - w->scan->shown_at < PROGRESS_EVERY)
        return;
    w->scan->shown_at = offset;
    scan_progress(w->scan, w->run, offset);
}

/* Where a file that is read in pieces is. */
struct pieces_place {
    struct run_scan *scan;
    struct event_reader *reader;
};

static void piece_passed(void *context)
{
    const struct pieces_place *p = context;

    show_offset(p->scan, event_reader_offset(p->reader));
}

static int read_pieces(struct run_scan *w, struct event_reader *reader, struct error *e)
{
    struct pieces_place place = { w, reader };

    return w->scan->read ? OK : w->sink->pieces(w->sink->context, reader, piece_passed, &place, e);
}

/* Gives the events of a file to the sinks; returns the last result of event_reader_next(). */
static int scan_file(struct run_scan *w, struct event_reader *reader, struct error *e)
{
    const struct scan_sink *sink = w->sink;
    struct scan *s = w->scan;
    struct event_reader_state state;
    struct event_damage damage;
    struct event event;
    int rc = event_reader_check(reader, e), tried = !sink->pieces;

    if (rc != OK)
        return rc;
    scan_progress_file(s, w->path, event_reader_state(reader).size);
    if (sink->begin_file)
        sink->begin_file(sink->context, w->path);
    while ((rc = event_reader_next(reader, &event, &damage, e)) > 0 && rc != EVENTLOG_READ_RESTARTED) {
        if (rc == EVENTLOG_READ_DAMAGE) {
            scan_damage(s, w->path, &damage, event_reader_state(reader).damaged);
            w->rc = sink->damage ? sink->damage(sink->context, &damage, e) : OK;
        } else {
            scan_foreign(s, w->path, reader, &event);
            s->units |= 1u << time_unit_of(event.wall_time);
            w->rc = sink->event ? sink->event(sink->context, &event, e) : OK;
        }
        if (w->rc != OK)
            return rc;
        if (sink->usual)
            event_reader_take_usual(reader, sink->usual, sink->context);
        if (!tried && (w->rc = read_pieces(w, reader, e)) != OK)
            return rc;
        tried = 1;
        show_offset(w, event_reader_offset(reader));
    }
    state = event_reader_state(reader);
    if (rc == EVENTLOG_READ_END && sink->end_file)
        sink->end_file(sink->context, &state);
    if (rc == EVENTLOG_READ_END && state.damaged > DAMAGE_LINES && !s->quiet_damage)
        log_line(&s->log, "%s: %llu damaged records in all", w->path, (unsigned long long)state.damaged);
    scan_progress_end(s);
    return rc;
}

/* What a sink has done may be final: then the rest of a file that was cut or replaced is left out. */
static int restarted(struct run_scan *w, int result)
{
    if (result != EVENTLOG_READ_RESTARTED || w->sink->restart)
        return result;
    log_line(&w->scan->log, "%s: was truncated or replaced while it was read; what it holds now was not read", w->path);
    w->scan->failed = 1;
    return EVENTLOG_READ_END;
}

static void tell_bad_text(struct scan *s, const char *run)
{
    if (s->bad_text && !s->quiet_damage)
        log_line(&s->log,
                 "run %s: %llu events hold text that is not UTF-8, shown here as U+FFFD; TensorBoard's default loader "
                 "stops at the first of them",
                 run, (unsigned long long)s->bad_text);
}

int scan_run(struct scan *s, const struct log_run *run, const struct scan_sink *sink, struct error *e)
{
    struct run_scan w = { .scan = s, .run = run->name, .sink = sink };
    const int before = e->code;
    struct event_reader *reader;
    struct log_follow_run files;
    int found, rc = OK;

    s->bad_text = 0;
    log_follow_listed(&files, run);
    while (rc == OK && (found = log_follow_begin_file(NULL, &files, &s->input, &reader, e)) != LOG_FOLLOW_END) {
        w.path = run->files[files.at_file];
        if (found == LOG_FOLLOW_FILE) {
            found = scan_file(&w, reader, e);
            if ((rc = w.rc) != OK)
                break;
            found = log_follow_end_file(NULL, &files, restarted(&w, found), e);
        }
        if (found == EVENTLOG_READ_RESTARTED) {
            s->bad_text = 0;
            sink->restart(sink->context);
        } else if (found == ERR_IO) {
            scan_unread(s, w.path, e);
            e->code = before;
        } else if (found < 0) {
            rc = found;
        }
    }
    log_follow_forget(NULL, &files);
    if (rc != OK)
        return rc;
    log_progress_end(&s->log);
    tell_bad_text(s, run->name);
    return OK;
}
