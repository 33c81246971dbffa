#include "eventlog/server/loader.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/spool.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/format/wire.h"
#include "eventlog/read/event_pieces.h"
#include "eventlog/read/log_follow.h"
#include "eventlog/read/log_watch.h"
#include "eventlog/server/store/run_data.h"
#include "eventlog/server/store/series_info.h"
#include "eventlog/server/store/snapshot.h"
#include "eventlog/server/store/utf8_text.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* ---- file pieces ------------------------------------------------------------------------------------------------- */

enum { ARENA_BLOCK = 256 * 1024 };

/* In the place of a tag: that is an event, or damage, of number `step`. */
enum { ITEM_EVENT = UINT32_MAX - 1, ITEM_DAMAGE = UINT32_MAX };

struct piece_item {
    int64_t step;
    double wall;
    float number;
    uint32_t tag;
};

struct piece_event {
    struct event event;
    uint64_t offset;
};

struct piece_tag {
    int rows;      /* its first value here is one of a series of numbers: later ones become rows */
    size_t series; /* in the run; (size_t)-1: not known yet */
};

struct arena_block {
    struct arena_block *next;
    uint8_t bytes[];
};

struct piece {
    struct event_piece piece;
    int failed; /* no memory */
    struct piece_item *items;
    struct piece_event *events;
    struct event_damage *damages;
    size_t item_count, item_capacity, event_count, event_capacity, damage_count, damage_capacity;
    struct tag_index tags; /* items: struct piece_tag */
    struct arena_block *arena;
    size_t arena_used, arena_size; /* of its first block */
};

struct work {
    const struct file_pieces *calls;
    struct run_data *run;
    size_t file;
    const char *path;
    struct error *e;
    int rc;
};

/* ---- one piece, by any thread ---------------------------------------------------------------------------------- */

static uint8_t *arena_room(struct piece *p, size_t n)
{
    if (!p->arena || p->arena_size - p->arena_used < n) {
        size_t size = n > ARENA_BLOCK ? n : ARENA_BLOCK;
        struct arena_block *b = malloc(sizeof *b + size);

        if (!b)
            return NULL;
        b->next = p->arena;
        p->arena = b;
        p->arena_size = size;
        p->arena_used = 0;
    }
    p->arena_used += n;
    return p->arena->bytes + p->arena_used - n;
}

static void empty_piece(void *piece)
{
    struct piece *p = piece;

    p->item_count = p->event_count = p->damage_count = 0;
    p->failed = 0;
    while (p->arena) {
        struct arena_block *b = p->arena;

        p->arena = b->next;
        free(b);
    }
    tag_index_release(&p->tags);
    p->tags.item_size = sizeof(struct piece_tag);
}

static void add_item(struct piece *p, uint32_t tag, int64_t step, double wall, float number)
{
    if (ARRAY_ROOM(p->items, p->item_capacity, p->item_count + 1))
        p->items[p->item_count++] = (struct piece_item){ step, wall, number, tag };
    else
        p->failed = 1;
}

static int take_damage_of_piece(const void *context, void *piece, const struct event_damage *damage)
{
    struct piece *p = piece;

    (void)context;
    if (!ARRAY_ROOM(p->damages, p->damage_capacity, p->damage_count + 1))
        return 0;
    p->damages[p->damage_count] = *damage;
    p->damages[p->damage_count].data = NULL;
    add_item(p, ITEM_DAMAGE, (int64_t)p->damage_count++, 0, 0);
    return !p->failed;
}

/* The event itself, with a copy of its bytes. */
static void add_event(struct piece *p)
{
    size_t length;
    uint64_t offset;
    const uint8_t *data = event_reader_record(p->piece.reader, &length, &offset);
    uint8_t *copy = arena_room(p, length + !length);
    struct piece_event *to;

    if (!copy || !ARRAY_ROOM(p->events, p->event_capacity, p->event_count + 1)) {
        p->failed = 1;
        return;
    }
    bytes_copy(copy, data, length);
    to = &p->events[p->event_count];
    to->offset = offset;
    if (event_decode(copy, length, &to->event, NULL) != OK)
        p->failed = 1; /* it was decoded before */
    add_item(p, ITEM_EVENT, (int64_t)p->event_count++, 0, 0);
}

/* The number of the tag if the value can become a row. 0: it cannot. */
static int row_tag(struct piece *p, const struct event_value *v, uint32_t *number)
{
    const size_t known = p->tags.count;
    struct piece_tag *tag = tag_index_item(&p->tags, v->tag, v->tag_length);
    struct series_info *info;

    if (!tag) {
        p->failed = 1;
        return 0;
    }
    if (p->tags.count != known) {
        tag->series = (size_t)-1;
        if (!(info = series_info_of_value(v->tag, v->tag_length, v)))
            p->failed = 1;
        tag->rows = info && info->class == SERIES_SCALARS;
        series_info_drop(info);
        return 0;
    }
    *number = (uint32_t)(tag - (struct piece_tag *)p->tags.items);
    return tag->rows && v->is_number && *number < ITEM_EVENT;
}

/* The event as rows: 1, or 0: not all of its values can be. */
static int add_rows(struct piece *p, const struct event *event)
{
    const size_t before = p->item_count;
    const struct event_value *v;
    struct event_values values;
    uint32_t number;

    if (event->what != EVENT_SUMMARY || !event->values)
        return 0;
    event_values_init(&values, event);
    while ((v = event_values_next(&values))) {
        if (!row_tag(p, v, &number)) {
            p->item_count = before;
            return 0;
        }
        add_item(p, number, event->step, event->wall_time, (float)v->number);
    }
    return 1;
}

static int take_event_of_piece(const void *context, void *piece, const struct event *event)
{
    struct piece *p = piece;

    (void)context;
    if (isfinite(event->wall_time) && !add_rows(p, event))
        add_event(p);
    return !p->failed;
}

/* ---- all of them, in order, by the caller ---------------------------------------------------------------------- */

/* Where the run has a series of another kind, values become no rows. */
static int find_series(struct run_data *run, struct piece *p)
{
    struct piece_tag *tags = p->tags.items;
    int numbers = 1;

    for (size_t i = 0; i < p->tags.count; i++) {
        tags[i].series = run_data_series(run, p->tags.entries[i].text, p->tags.entries[i].length, &numbers);
        if (tags[i].rows && tags[i].series != (size_t)-1 && !numbers)
            return 0;
    }
    return 1;
}

static int add_row(struct work *w, struct piece *p, const struct piece_item *item)
{
    struct piece_tag *tag = (struct piece_tag *)p->tags.items + item->tag;
    int numbers;

    if (tag->series == (size_t)-1) {
        const struct tag_index_entry *entry = &p->tags.entries[item->tag];

        tag->series = run_data_series(w->run, entry->text, entry->length, &numbers);
    }
    return run_data_row(w->run, w->file, tag->series, item->step, item->wall, item->number, w->e);
}

static int prepare(void *context, void *piece)
{
    (void)context;
    ((struct piece *)piece)->tags.item_size = sizeof(struct piece_tag);
    return 1;
}

static int take_piece(void *context, void *piece)
{
    struct work *w = context;
    struct piece *p = piece;

    if (!find_series(w->run, p))
        return 0;
    for (size_t i = 0; i < p->item_count && w->rc == OK; i++) {
        const struct piece_item *one = &p->items[i];

        if (one->tag == ITEM_DAMAGE)
            w->calls->damage(w->calls->context, &p->damages[one->step]);
        else if (one->tag == ITEM_EVENT)
            w->rc = run_data_event(w->run, w->file, w->path, &p->events[one->step].event, p->events[one->step].offset,
                                   w->e);
        else
            w->rc = add_row(w, p, one);
    }
    return w->rc == OK;
}

static int piece_passed(void *context)
{
    const struct work *w = context;

    return w->calls->go_on(w->calls->context);
}

static void release_piece(void *piece)
{
    struct piece *p = piece;

    empty_piece(p);
    free(p->items);
    free(p->events);
    free(p->damages);
}

int file_pieces_read(const struct file_pieces *f, struct event_reader *reader, struct run_data *run, size_t file,
                     const char *path, struct error *e)
{
    struct work w = { .calls = f, .run = run, .file = file, .path = path, .e = e };
    const struct event_pieces pieces = {
        .size = sizeof(struct piece),
        .length = f->length,
        .context = &w,
        .event = take_event_of_piece,
        .damage = take_damage_of_piece,
        .prepare = prepare,
        .take = take_piece,
        .passed = piece_passed,
        .empty = empty_piece,
        .release = release_piece,
    };

    event_pieces_read(&pieces, reader);
    return w.rc;
}

/* ---- loader ------------------------------------------------------------------------------------------------------ */

/* ---- loss report ------------------------------------------------------------------------------------------------- */

/*
 * What was lost of a log, as a text of a run of its own, for people who look at TensorBoard and not at
 * the messages of its data server. The text is an event in a file without a name, so that it is read and answered like
 * any other. loss_report_note() may be called by any thread; the other functions by one at a time.
 */

#define LOSS_REPORT_RUN "eventlog-server"
#define LOSS_REPORT_TAG "lost"

enum { LOSS_REPORT_LINES = 200 };

struct loss_report;

/* fields of an Event and what is in it */
enum { EVENT_WALL_TIME = 1, EVENT_SUMMARY_FIELD = 5, SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN_DATA = 1, METADATA_DATA_CLASS = 4, PLUGIN_DATA_NAME = 1, CLASS_TENSOR = 2 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE_FIELD = 2, TENSOR_STRING = 8, SHAPE_DIMENSION = 2, DIMENSION_SIZE = 1 };

struct loss_report {
    struct spool file;
    char path[64];
    struct run_data *run;
    pthread_mutex_t lock; /* of what follows */
    struct buffer lines;
    size_t noted, shown; /* (size_t)-1: never */
};

/* On OK *out is yours: loss_report_close() it, after the last of its views was dropped. ERR_IO: no unnamed file. */
static int loss_report_open(struct loss_report **out, struct error *e)
{
    struct loss_report *r = calloc(1, sizeof *r);
    int rc;

    *out = NULL;
    if (!r || !(r->run = run_data_new(LOSS_REPORT_RUN, 1))) {
        free(r);
        return error_memory(e, NULL, "for a report");
    }
    if ((rc = spool_open(&r->file, e)) != OK) {
        run_data_free(r->run);
        free(r);
        return rc;
    }
    snprintf(r->path, sizeof r->path, "/proc/self/fd/%d", r->file.fd);
    pthread_mutex_init(&r->lock, NULL);
    r->shown = (size_t)-1;
    *out = r;
    return OK;
}

static void loss_report_close(struct loss_report *r)
{
    if (!r)
        return;
    run_data_free(r->run);
    spool_close(&r->file);
    buffer_release(&r->lines);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* Adds a sentence. After LOSS_REPORT_LINES of them, only their number. */
static void loss_report_note(struct loss_report *r, const char *text)
{
    pthread_mutex_lock(&r->lock);
    if (r->noted++ < LOSS_REPORT_LINES) {
        buffer_append_text(&r->lines, "    "); /* as it is, in Markdown */
        for (; *text; text++)
            buffer_append_byte(&r->lines, *text == '\n' ? ' ' : *text);
        buffer_append_byte(&r->lines, '\n');
    }
    pthread_mutex_unlock(&r->lock);
}

/* The text so far; *noted: how many sentences it has. */
static void append_report(struct loss_report *r, struct buffer *out, size_t *noted)
{
    pthread_mutex_lock(&r->lock);
    *noted = r->noted;
    if (!r->noted)
        buffer_append_text(out, "Nothing is missing.\n");
    else
        buffer_format(out, "%zu message%s about what is missing:\n\n", r->noted, r->noted == 1 ? "" : "s");
    utf8_text_append(out, buffer_text(&r->lines), r->lines.length);
    if (r->noted > LOSS_REPORT_LINES)
        buffer_format(out, "\nand %zu more\n", r->noted - LOSS_REPORT_LINES);
    pthread_mutex_unlock(&r->lock);
}

/* A summary with the text, like those of the text plugin. */
static void write_event(struct wire *w, double now, const char *text)
{
    size_t summary, value, metadata, part, inner;

    wire_number(w, EVENT_WALL_TIME, now);
    summary = wire_begin(w, EVENT_SUMMARY_FIELD);
    value = wire_begin(w, SUMMARY_VALUE);
    wire_text(w, VALUE_TAG, LOSS_REPORT_TAG);
    part = wire_begin(w, VALUE_TENSOR);
    wire_integer(w, TENSOR_TYPE, EVENT_STRING);
    inner = wire_begin(w, TENSOR_SHAPE_FIELD);
    wire_end(w, inner);
    wire_text_always(w, TENSOR_STRING, text);
    wire_end(w, part);
    metadata = wire_begin(w, VALUE_METADATA);
    part = wire_begin(w, METADATA_PLUGIN_DATA);
    wire_text(w, PLUGIN_DATA_NAME, "text");
    wire_end(w, part);
    wire_integer(w, METADATA_DATA_CLASS, CLASS_TENSOR);
    wire_end(w, metadata);
    wire_end(w, value);
    wire_end(w, summary);
}

/* Replaces the event before it, because it is at the same step. */
static int add_report(struct loss_report *r, const struct wire *w)
{
    struct buffer record = BUFFER_EMPTY;
    const uint64_t offset = r->file.size;
    struct event event;
    int good;

    event_encode_record(&record, w->bytes.data, w->bytes.length);
    good = buffer_ok(&record) && spool_append(&r->file, record.data, record.length, NULL) == OK &&
           event_decode((const uint8_t *)w->bytes.data, w->bytes.length, &event, NULL) == OK &&
           run_data_event(r->run, 0, r->path, &event, offset, NULL) == OK;
    buffer_release(&record);
    return good;
}

/* 1 and a view with all that was noted; 0: nothing was noted since the last one. The first call always gives one.
 * Without memory or room for the text it is tried again the next time. */
static int loss_report_view(struct loss_report *r, double now, struct run_view **view)
{
    struct buffer text = BUFFER_EMPTY;
    struct wire w = WIRE_EMPTY;
    size_t noted;
    int good = 0;

    append_report(r, &text, &noted);
    /* Where only the number changes, it is told again when it has doubled. */
    if (noted != r->shown && (r->shown < LOSS_REPORT_LINES || r->shown == (size_t)-1 || noted >= 2 * r->shown) &&
        buffer_ok(&text)) {
        write_event(&w, now, buffer_text(&text));
        good = wire_check(&w, "a report", NULL) == OK && add_report(r, &w) && run_data_view(r->run, view, NULL) == OK;
    }
    r->shown = good ? noted : r->shown;
    buffer_release(&text);
    wire_release(&w);
    return good;
}

/* ---- loader ------------------------------------------------------------------------------------------------------ */

/* Seconds after which everything is listed anew, whatever the system notifies of. */
#define LIST_EVERY 60
/* Seconds between rounds, at least, and where showing them takes long: many changes are read together. */
#define ROUND_PAUSE 0.02
#define ROUND_PAUSE_MOST 0.1

enum {
    OPEN_MOST = 32, /* files between rounds: the server has 64 descriptors, and one for each client */
    THREADS_MOST = 64,
};

/* While much is read: seconds until the first view of a run, and between its later ones. */
#define VIEW_FIRST 0.05
#define VIEW_EVERY 0.25

struct loader_run {
    struct run_data *data;
    struct run_view *view; /* with the lock; NULL: not shown */
};

struct loader {
    struct loader_options options;
    struct snapshot *snapshot;
    struct log_roots roots;
    struct log_follow follow;
    struct log_input input;
    struct loader_run *runs; /* by index in follow.runs */
    size_t run_count, run_capacity;
    pthread_t thread;
    int stop, stop_event; /* stop: read and written atomically */
    pthread_mutex_t lock; /* of all below, and of messages */
    int views_changed;
    double shown; /* when the snapshot was last changed */
    double show_cost;
    uint64_t rounds, points, bytes;
    int problem_told;
    struct loss_report *report;   /* NULL: none */
    struct run_view *report_view; /* with the lock; NULL: not shown */
    /* notifications */
    struct log_watch watch;
    size_t *watched; /* by number of a watch: 1 + the index of its run; 0: no run; WATCH_SEVERAL */
    size_t watch_count;
    struct tag_index names; /* of the runs; their numbers are indices of runs */
    int complete;           /* all directories are watched, and on file systems that notify */
    int follows_listing;    /* what the last listing found */
    double listed, looked;  /* when everything was listed, and when all files were looked at */
    /* of a round: all runs, or those in hot */
    int all;
    unsigned char *is_hot; /* by index of the run */
    size_t *hot, hot_count;
    size_t next_run; /* atomic */
    size_t threads;
    size_t reading; /* of them, those that still read; atomic */
};

#define WATCH_SEVERAL ((size_t)-1)

/* ---- messages -------------------------------------------------------------------------------------------------- */

static void say(struct loader *l, enum loader_level level, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (l->report && level == LOADER_WARNING)
        loss_report_note(l->report, text);
    pthread_mutex_lock(&l->lock);
    if (l->options.message)
        l->options.message(l->options.context, level, text);
    pthread_mutex_unlock(&l->lock);
}

static void say_left_out(void *context, const char *path)
{
    say(context, LOADER_WARNING,
        "%s: is a link that leads out of the log directory; left out (--follow-links reads it)", path);
}

/* ---- views ----------------------------------------------------------------------------------------------------- */

static void show(struct loader *l)
{
    struct run_view **views;
    struct log_view *view;
    double began = clock_monotonic();
    size_t count = 0;

    if (!l->views_changed || !(views = malloc((l->run_count + 1) * sizeof *views)))
        return;
    for (size_t i = 0; i < l->run_count; i++)
        if (l->runs[i].view)
            views[count++] = l->runs[i].view;
    if (l->report_view && tag_index_find(&l->names, LOSS_REPORT_RUN, strlen(LOSS_REPORT_RUN)) == TAG_INDEX_NONE)
        views[count++] = l->report_view;
    if ((view = log_view_new(views, count))) {
        snapshot_put(l->snapshot, view);
        l->views_changed = 0;
    }
    free(views);
    l->shown = clock_monotonic();
    l->show_cost = l->shown - began;
}

static void view_run(struct loader *l, struct loader_run *run)
{
    struct run_view *view, *old;
    double wait;

    if (!run_data_changed(run->data) || run_data_view(run->data, &view, NULL) != OK)
        return;
    pthread_mutex_lock(&l->lock);
    old = run->view;
    run->view = view;
    l->views_changed = 1;
    wait = 20 * l->show_cost > VIEW_FIRST ? 20 * l->show_cost : VIEW_FIRST;
    if (clock_monotonic() - l->shown >= wait)
        show(l);
    pthread_mutex_unlock(&l->lock);
    run_view_drop(old);
}

/* ---- runs ------------------------------------------------------------------------------------------------------ */

/* Knows the runs that are followed. */
static int know_runs(struct loader *l, struct error *e)
{
    size_t wanted = l->follow.count;
    unsigned char *is_hot = realloc(l->is_hot, wanted + 1);
    size_t *hot = realloc(l->hot, (wanted + 1) * sizeof *hot);
    int good;

    l->is_hot = is_hot ? is_hot : l->is_hot;
    l->hot = hot ? hot : l->hot;
    pthread_mutex_lock(&l->lock);
    good = is_hot && hot && ARRAY_ROOM_ZERO(l->runs, l->run_capacity, wanted);
    while (good && l->run_count < wanted) {
        struct loader_run *run = &l->runs[l->run_count];
        const char *name = l->follow.runs[l->run_count].name;

        good = (run->data || (run->data = run_data_new(name, l->options.merge))) &&
               tag_index_add(&l->names, name, strlen(name)) == l->run_count;
        if (good)
            l->is_hot[l->run_count++] = 0;
    }
    pthread_mutex_unlock(&l->lock);
    return good ? OK : error_memory(e, NULL, "for %zu runs", wanted);
}

static void make_hot(struct loader *l, size_t run)
{
    if (!l->is_hot[run]) {
        l->is_hot[run] = 1;
        l->hot[l->hot_count++] = run;
    }
}

/* Runs that have files which were not read yet, or have lost all of theirs. */
static void make_unread_hot(struct loader *l)
{
    for (size_t i = 0; i < l->run_count; i++) {
        const struct log_follow_run *run = &l->follow.runs[i];
        int unread = run->forget;

        for (size_t k = 0; k < run->count && !unread; k++)
            unread = !run->files[k].reader;
        if (unread)
            make_hot(l, i);
    }
}

/* The number of the watch of a run's directory; -1: none. */
static int watch_of(struct loader *l, const struct log_directory *d, const struct log_run *run)
{
    const int *mark = run->place < d->directory_count ? d->directories[run->place].mark : NULL;

    if (mark)
        return *mark;
    log_watch_directory(&l->watch, run->directory);
    return l->watch.number;
}

/* Watches the directories of a listing. Returns 1 if one was not watched before: it may have changed since. */
static int watch_listing(struct loader *l, const struct log_directory *d)
{
    int again = 0;

    for (size_t i = 0; i < d->directory_count; i++) {
        int *mark = d->directories[i].mark;

        if (mark && *mark >= 0)
            continue; /* an unchanged directory is still watched, with that number */
        again |= log_watch_directory(&l->watch, d->directories[i].path);
        if (mark)
            *mark = l->watch.number;
    }
    l->complete = d->directory_count > 0 && !l->watch.missed;
    if (l->watch.last >= 0 && !ARRAY_ROOM_ZERO(l->watched, l->watch_count, (size_t)l->watch.last + 1))
        return again;
    memset(l->watched, 0, l->watch_count * sizeof *l->watched);
    for (size_t i = 0; i < d->count; i++) {
        size_t run = tag_index_find(&l->names, d->runs[i].name, strlen(d->runs[i].name));
        int number = watch_of(l, d, &d->runs[i]);

        if (number >= 0 && (size_t)number < l->watch_count && run != TAG_INDEX_NONE) {
            size_t *place = &l->watched[number];

            *place = *place && *place != run + 1 ? WATCH_SEVERAL : run + 1;
        }
    }
    return again;
}

static int list_runs(struct loader *l, struct error *e)
{
    int rc = OK, again = 1;

    if (l->all && l->follows_listing && l->watch.fd < 0 && log_roots_are_same(&l->roots)) {
        l->listed = clock_monotonic();
        return OK;
    }
    l->follows_listing = 0;
    for (int round = 0; round < 8 && again && rc == OK; round++) {
        struct log_directory d;

        again = 0;
        if ((rc = log_roots_list(&l->roots, &d, &l->input, e)) != OK)
            return rc;
        for (size_t i = 0; i < d.problem_count && !l->problem_told; i++)
            say(l, LOADER_WARNING, "%s", d.problems[i]);
        l->problem_told = d.problem_count != 0;
        rc = log_follow_list(&l->follow, &d, e);
        if (rc == OK)
            rc = know_runs(l, e);
        if (rc == OK)
            make_unread_hot(l);
        if (rc == OK && l->watch.fd >= 0)
            again = watch_listing(l, &d);
        log_directory_release(&d);
    }
    l->follows_listing = rc == OK;
    l->listed = clock_monotonic();
    return rc;
}

static int note_changes(struct loader *l, int *all)
{
    int number, contents, listing = 0;

    while (log_watch_next(&l->watch, &number, &contents)) {
        size_t run = number >= 0 && (size_t)number < l->watch_count ? l->watched[number] : 0;

        listing |= !contents || !run || run == WATCH_SEVERAL;
        *all |= number < 0 || run == WATCH_SEVERAL;
        if (run && run != WATCH_SEVERAL)
            make_hot(l, run - 1);
    }
    return listing;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

enum { EVENTS_BETWEEN_LOOKS = 1024 }; /* at the clock, while a run is read */

/* What is told of a file once it is read. */
struct losses {
    uint64_t count;
    uint64_t offset;
    char first[200];
};

static void note_damage(struct losses *s, const struct event_damage *damage)
{
    if (damage->kind == EVENTLOG_DAMAGE_UTF8) /* such texts are shown with U+FFFD */
        return;
    if (!s->count++) {
        s->offset = damage->offset;
        event_damage_text(damage, s->first, sizeof s->first);
    }
}

/* Tells of damage once, and again when there is twice as much. */
static void tell_damage(struct loader *l, struct log_follow_file *file, struct losses *s)
{
    uint64_t told = file->infinite & 0xffffffff, all = (file->infinite >> 32) + s->count;

    if (s->count && (!told || all >= 2 * told)) {
        say(l, LOADER_WARNING, "%s:%llu: %s%s", file->path, (unsigned long long)s->offset, s->first,
            all > 1 ? "; this file has more damage" : "");
        told = all;
    }
    file->infinite = (all & 0x7fffffff) << 32 | (told & 0x7fffffff);
    s->count = 0;
}

static void tell_unread(struct loader *l, struct log_follow_file *file, const struct error *e)
{
    if (file->told || log_input_gone(file->path, e))
        return;
    file->told = 1;
    say(l, LOADER_WARNING, "%s; is tried again", e->message);
}

static void add_progress(struct loader *l, uint64_t points, uint64_t bytes)
{
    pthread_mutex_lock(&l->lock);
    l->points += points;
    l->bytes += bytes;
    pthread_mutex_unlock(&l->lock);
}

/* After RUN_DATA_AGAIN: 1. Without memory: 0, and the run is read again in the next round. */
static int again_or_later(struct loader *l, struct loader_run *run, struct log_follow_run *files, int rc,
                          const struct error *e)
{
    run_data_restart(run->data, rc == RUN_DATA_AGAIN);
    log_follow_again(files);
    if (rc == RUN_DATA_AGAIN)
        return 1;
    say(l, LOADER_WARNING, "%s; is tried again", e->message);
    return 0;
}

/* A run while it is read. */
struct reading {
    struct loader *loader;
    struct loader_run *run;
    struct losses losses;
    double due;           /* the next view */
    uint64_t points;      /* of the run, when progress was last told */
    uint64_t bytes;       /* read since then */
    struct error *error;  /* for what takes an event: to clear one takes longer than that */
    uint64_t next_pieces; /* the offset from which on pieces of the current file may be read again */
};

/* What has been read since the last time. */
static void tell_progress(struct reading *r)
{
    const uint64_t now = run_data_points(r->run->data);

    if (now > r->points || r->bytes)
        add_progress(r->loader, now > r->points ? now - r->points : 0, r->bytes);
    r->points = now;
    r->bytes = 0;
}

/* Takes an event; 0: the run could not be continued. */
static int take_event(struct reading *r, struct log_follow_run *files, const struct event *event)
{
    const struct log_follow_file *file = &files->files[files->at_file];
    uint64_t offset;
    size_t length;
    int rc;

    event_reader_record(file->reader, &length, &offset);
    r->bytes += length + RECORD_OVERHEAD;
    rc = run_data_event(r->run->data, files->at_file, file->path, event, offset, r->error);
    return rc == OK || again_or_later(r->loader, r->run, files, rc, r->error);
}

/* Shows what has been read, if it is time. */
static void look_at_clock(struct reading *r)
{
    if (clock_monotonic_coarse() < r->due)
        return;
    tell_progress(r);
    view_run(r->loader, r->run);
    r->due = clock_monotonic_coarse() + VIEW_EVERY;
}

static void note_piece_damage(void *context, const struct event_damage *damage)
{
    note_damage(&((struct reading *)context)->losses, damage);
}

static int go_on(void *context)
{
    struct reading *r = context;

    look_at_clock(r);
    return !__atomic_load_n(&r->loader->stop, __ATOMIC_RELAXED);
}

/* Reads a large file by all processors, if no other run is left for them. 0: the run could not be continued. */
static int read_pieces(struct reading *r, struct log_follow_run *files)
{
    struct loader *l = r->loader;
    struct log_follow_file *file = &files->files[files->at_file];
    const struct file_pieces pieces = { FILE_PIECES_LENGTH, r, note_piece_damage, go_on };
    const uint64_t before = event_reader_offset(file->reader);
    struct error e = { 0 };
    int rc;

    if (before < r->next_pieces || event_reader_left(file->reader) < 2 * pieces.length || l->threads < 2 ||
        __atomic_load_n(&l->reading, __ATOMIC_RELAXED) > 1)
        return 1;
    rc = file_pieces_read(&pieces, file->reader, r->run->data, files->at_file, file->path, &e);
    r->bytes += event_reader_offset(file->reader) - before;
    r->next_pieces = event_reader_offset(file->reader) + 2 * pieces.length;
    return rc == OK || again_or_later(l, r->run, files, rc, &e);
}

static void read_run(struct loader *l, struct loader_run *run, struct log_follow_run *files, struct log_input *input)
{
    struct error e = { 0 };
    struct reading r = { .loader = l, .run = run, .due = clock_monotonic_coarse() + VIEW_FIRST, .error = &e };
    struct event_damage damage;
    struct event event;
    int rc;

    r.points = run_data_points(run->data);
    for (uint64_t n = 1; !__atomic_load_n(&l->stop, __ATOMIC_RELAXED) &&
                         (rc = log_follow_next_of(&l->follow, files, input, &event, &damage, &e)) != LOG_FOLLOW_END;
         n++) {
        struct log_follow_file *file = files->at_file < files->count ? &files->files[files->at_file] : NULL;

        if (rc == EVENTLOG_READ_EVENT && !take_event(&r, files, &event))
            break;
        if (rc == EVENTLOG_READ_RESTARTED)
            run_data_restart(run->data, 0);
        else if (rc == EVENTLOG_READ_DAMAGE)
            note_damage(&r.losses, &damage);
        else if (rc < 0 && file)
            tell_unread(l, file, &e);
        if (rc == LOG_FOLLOW_FILE_END && file) {
            tell_damage(l, file, &r.losses);
            file->told = 0;
            r.next_pieces = 0;
        }
        if (n % EVENTS_BETWEEN_LOOKS == 0) {
            look_at_clock(&r);
            if (rc == EVENTLOG_READ_EVENT && !files->again && !read_pieces(&r, files))
                break;
        }
        if (rc < 0)
            e = (struct error){ 0 };
    }
    tell_progress(&r);
    view_run(l, run);
}

/* ---- rounds ---------------------------------------------------------------------------------------------------- */

static void *read_runs(void *context)
{
    struct loader *l = context;
    struct log_input input = { 0 };

    for (size_t i;
         (i = __atomic_fetch_add(&l->next_run, 1, __ATOMIC_RELAXED)) < (l->all ? l->run_count : l->hot_count);) {
        size_t run = l->all ? i : l->hot[i];

        read_run(l, &l->runs[run], &l->follow.runs[run], &input);
    }
    __atomic_fetch_sub(&l->reading, 1, __ATOMIC_RELAXED);
    log_input_release(&input);
    return NULL;
}

static size_t threads_allowed(const struct loader *l)
{
    size_t most = l->options.threads > 0 ? (size_t)l->options.threads : (size_t)sysconf(_SC_NPROCESSORS_ONLN);

    return most > THREADS_MOST ? THREADS_MOST : most;
}

/* Reads the runs of this round, with as many threads as are allowed and useful. */
static void read_round(struct loader *l)
{
    const size_t runs = l->all ? l->run_count : l->hot_count, most = threads_allowed(l),
                 wanted = most < runs ? most : runs + !runs;
    pthread_t threads[THREADS_MOST];
    size_t others = 0;

    l->next_run = 0;
    l->threads = most;
    l->reading = wanted; /* threads that cannot be started count, too: then large files are read by one */
    while (others + 1 < wanted && pthread_create(&threads[others], NULL, read_runs, l) == 0)
        others++;
    read_runs(l);
    for (size_t i = 0; i < others; i++)
        pthread_join(threads[i], NULL);
}

static int every_run(void *context, const char *run)
{
    (void)context;
    (void)run;
    return 1;
}

/* Waits until something has changed, or it is time to look. *list: whether to list. 0: there is no further round. */
static int wait_round(struct loader *l, int *list)
{
    struct pollfd waits[] = { { l->stop_event, POLLIN, 0 }, { l->watch.fd, POLLIN, 0 } };
    double reload = l->options.reload < LOADER_PAUSE_LEAST ? LOADER_PAUSE_LEAST : l->options.reload;
    double pause = 10 * l->show_cost > ROUND_PAUSE ? 10 * l->show_cost : ROUND_PAUSE;
    int all = !l->complete;

    pause = pause < ROUND_PAUSE_MOST ? pause : ROUND_PAUSE_MOST;
    for (size_t i = 0; i < l->hot_count; i++)
        l->is_hot[l->hot[i]] = 0;
    l->hot_count = 0;
    if (l->options.reload < 0)
        return 0;
    /* First only for the end: what changes meanwhile is read together. Both are `reload` seconds together. */
    if (!poll(waits, 1, (int)(1000 * pause) + 1))
        poll(waits, l->watch.fd >= 0 ? 2 : 1, (int)(1000 * (reload - pause)));
    *list = note_changes(l, &all);
    l->all = (*list ? all : !l->hot_count) || clock_monotonic() - l->looked >= reload;
    *list = *list || (l->all && (!l->complete || clock_monotonic() - l->listed > LIST_EVERY));
    return !__atomic_load_n(&l->stop, __ATOMIC_RELAXED);
}

/* Shows what has been lost so far, if more has been since the last time. */
static void show_report(struct loader *l)
{
    struct run_view *view, *old;

    if (!l->report || !loss_report_view(l->report, (double)time(NULL), &view))
        return;
    pthread_mutex_lock(&l->lock);
    old = l->report_view;
    l->report_view = view;
    l->views_changed = 1;
    pthread_mutex_unlock(&l->lock);
    run_view_drop(old);
}

/* Lists, if told to, then reads and shows. */
static void do_round(struct loader *l, int list)
{
    struct error e = { 0 };

    if (list && list_runs(l, &e) != OK)
        say(l, LOADER_WARNING, "%s", e.message);
    l->looked = l->all ? clock_monotonic() : l->looked;
    read_round(l);
    show_report(l);
    pthread_mutex_lock(&l->lock);
    show(l);
    l->rounds++;
    pthread_mutex_unlock(&l->lock);
}

static void *load(void *context)
{
    struct loader *l = context;
    int list;

    l->all = 1;
    do_round(l, 1);
    /* To watch many directories takes longer than to read what is in them, and they must be listed again after that. */
    if (l->options.notify && l->options.reload >= 0) {
        log_watch_open(&l->watch);
        do_round(l, 1);
    }
    while (wait_round(l, &list))
        do_round(l, list);
    return NULL;
}

int loader_start(struct loader **out, const struct loader_options *options, struct snapshot *snapshot, struct error *e)
{
    struct loader *l = calloc(1, sizeof *l);
    int failed;

    *out = NULL;
    if (!l)
        return error_memory(e, NULL, "to load");
    l->options = *options;
    l->snapshot = snapshot;
    l->roots = (struct log_roots){ .roots = options->roots,
                                   .count = options->root_count,
                                   .follow_links = options->follow_links,
                                   .left_out = say_left_out,
                                   .context = l };
    l->follow = (struct log_follow){
        .input = &l->input, .wanted = every_run, .whole_runs = 1, .forgets = 1, .open_most = OPEN_MOST
    };
    l->watch = (struct log_watch)LOG_WATCH_NONE;
    pthread_mutex_init(&l->lock, NULL);
    if (options->report && loss_report_open(&l->report, e) != OK) {
        free(l);
        return ERR_IO;
    }
    l->stop_event = eventfd(0, EFD_CLOEXEC);
    if ((failed = l->stop_event < 0 ? -1 : pthread_create(&l->thread, NULL, load, l)) != 0) {
        if (l->stop_event >= 0)
            close(l->stop_event);
        loss_report_close(l->report);
        free(l);
        return error_set(e, ERR_NOMEM, "cannot start the thread that loads: %s", strerror(failed > 0 ? failed : 0));
    }
    *out = l;
    return OK;
}

struct loader_progress loader_progress(struct loader *l)
{
    struct loader_progress p;

    pthread_mutex_lock(&l->lock);
    p = (struct loader_progress){ l->run_count, l->points, l->bytes, l->rounds };
    pthread_mutex_unlock(&l->lock);
    return p;
}

void loader_stop(struct loader *l)
{
    uint64_t one = 1;

    if (!l)
        return;
    __atomic_store_n(&l->stop, 1, __ATOMIC_RELAXED);
    if (write(l->stop_event, &one, sizeof one) < 0) {
        /* the counter is full: the thread is woken anyway */
    }
    pthread_join(l->thread, NULL);
    log_follow_release(&l->follow);
    for (size_t i = 0; i < l->run_count; i++) {
        run_data_free(l->runs[i].data);
        run_view_drop(l->runs[i].view);
    }
    run_view_drop(l->report_view);
    loss_report_close(l->report);
    free(l->runs);
    free(l->watched);
    free(l->hot);
    free(l->is_hot);
    tag_index_release(&l->names);
    log_watch_close(&l->watch);
    log_roots_release(&l->roots);
    log_input_release(&l->input);
    close(l->stop_event);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
