/* pieces.h - reads a file into a scalar_run, or into what the data server keeps, by one reader or in pieces, and compares
 * what came of it. */
#ifndef TESTS_EVENTLOG_PIECES_H
#define TESTS_EVENTLOG_PIECES_H

#include "eventlog/read/run_pieces.h"
#include "eventlog/server/loader.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The beginning of what is made of a file. */
struct pieces_file {
    const char *path;
    struct event_reader *reader;
    uint64_t damaged, places; /* how often; places: a mixture of where and what */
    size_t passed;            /* pieces */
};

static inline void pieces_note(void *file, const struct event_damage *damage)
{
    struct pieces_file *f = file;

    f->damaged++;
    f->places = f->places * 31 + damage->offset * 8 + (uint64_t)damage->kind + damage->found + damage->wanted;
}

/* length: of a piece; 0: by one reader. event and pieces return 0 where the file cannot be read this way, and so does this
 * function. -1: it is refused at its start, as one is whose compression wants too much memory. */
static inline int pieces_read(struct pieces_file *f, uint64_t length,
                              int (*event)(struct pieces_file *f, const struct event *event),
                              int (*pieces)(struct pieces_file *f, uint64_t length))
{
    struct log_input input = { 0 };
    struct event_damage damage;
    struct event one;
    uint64_t next = 0;
    int rc, good = 1;

    if (event_reader_open(&f->reader, &input, f->path, NULL) != OK) {
        log_input_release(&input);
        return -1;
    }
    while (good && (rc = event_reader_next(f->reader, &one, &damage, NULL)) > 0) {
        if (rc == EVENTLOG_READ_DAMAGE) {
            pieces_note(f, &damage);
            continue;
        }
        good = event(f, &one);
        if (good && length && event_reader_offset(f->reader) >= next) {
            good = pieces(f, length);
            next = event_reader_offset(f->reader) + 2 * length;
        }
    }
    log_input_release(&input);
    return good;
}

/* 1: nothing tells which way the files were read. */
static inline int pieces_same_files(const struct pieces_file *a, const struct pieces_file *b)
{
    const struct event_reader_state s = event_reader_state(a->reader), t = event_reader_state(b->reader);

    return a->damaged == b->damaged && a->places == b->places && s.offset == t.offset && s.records == t.records &&
           s.lost == t.lost && s.damaged == t.damaged && s.first_wall_time == t.first_wall_time &&
           s.last_wall_time == t.last_wall_time;
}

/* ---- a scalar_run ------------------------------------------------------------------------------------------------ */

struct pieces_run {
    struct pieces_file file;
    struct scalar_run run;
};

static inline int pieces_run_other(void *context, const struct scalar_series *s, const struct event *event,
                                   const struct event_value *value, struct error *e)
{
    struct pieces_file *f = context;

    (void)value, (void)e;
    f->places = f->places * 31 + s->number + (uint64_t)event->step;
    return OK;
}

/* Every third step is left out. */
static inline int pieces_run_wanted(void *context, const struct scalar_series *s, const struct eventlog_point *point)
{
    (void)context, (void)s;
    return point->step % 3 != 0;
}

static inline int pieces_run_event(struct pieces_file *f, const struct event *event)
{
    return scalar_run_event(&((struct pieces_run *)f)->run, event, NULL) == OK;
}

static inline void pieces_run_passed(void *context)
{
    ((struct pieces_file *)context)->passed++;
}

static inline int pieces_run_pieces(struct pieces_file *f, uint64_t length)
{
    return run_pieces_read(f->reader, &((struct pieces_run *)f)->run, length, pieces_run_passed, f, NULL) == OK;
}

/* with_other, with_wanted: the run has these calls. As pieces_read(). */
static inline int pieces_run_read(struct pieces_run *p, const char *path, uint64_t length, int with_other,
                                  int with_wanted)
{
    memset(p, 0, sizeof *p);
    p->file.path = path;
    scalar_run_init(&p->run, EVENTLOG_VIEW_ALL, 0, 1);
    p->run.other = with_other ? pieces_run_other : NULL;
    p->run.wanted = with_wanted ? pieces_run_wanted : NULL;
    p->run.context = p;
    return pieces_read(&p->file, length, pieces_run_event, pieces_run_pieces);
}

static inline void pieces_run_release(struct pieces_run *p)
{
    scalar_run_release(&p->run);
    event_reader_close(p->file.reader);
}

static inline int pieces_same_series(const struct scalar_series *s, const struct scalar_series *t)
{
    if (s->tag_length != t->tag_length || memcmp(s->tag, t->tag, s->tag_length) != 0 ||
        strcmp(s->plugin, t->plugin) != 0 || s->first_kind != t->first_kind || s->first_dtype != t->first_dtype ||
        s->metadata_length != t->metadata_length || s->number != t->number || s->from_damage != t->from_damage ||
        s->count != t->count || s->seen != t->seen || s->skipped != t->skipped)
        return 0;
    if (s->skipped && (s->skipped_first != t->skipped_first || s->skipped_last != t->skipped_last ||
                       s->skipped_min != t->skipped_min || s->skipped_max != t->skipped_max))
        return 0;
    for (size_t i = 0; i < s->count; i++)
        if (memcmp(&s->points[i], &t->points[i], sizeof *s->points) != 0 ||
            scalar_series_from(s, i) != scalar_series_from(t, i))
            return 0;
    return 1;
}

static inline int pieces_same_runs(const struct pieces_run *a, const struct pieces_run *b)
{
    if (!pieces_same_files(&a->file, &b->file) || a->run.count != b->run.count || a->run.numbered != b->run.numbered ||
        a->run.rounded != b->run.rounded || memcmp(&a->run.began, &b->run.began, sizeof a->run.began) != 0)
        return 0;
    for (size_t i = 0; i < a->run.count; i++)
        if (!pieces_same_series(&a->run.series[i], &b->run.series[i]))
            return 0;
    return 1;
}

/* ---- what the data server keeps ---------------------------------------------------------------------------------- */

struct pieces_data {
    struct pieces_file file;
    struct run_data *run;
};

static inline int pieces_data_event(struct pieces_file *f, const struct event *event)
{
    uint64_t offset;
    size_t n;

    event_reader_record(f->reader, &n, &offset);
    return run_data_event(((struct pieces_data *)f)->run, 0, f->path, event, offset, NULL) == OK;
}

static inline int pieces_data_passed(void *context)
{
    ((struct pieces_file *)context)->passed++;
    return 1;
}

static inline int pieces_data_pieces(struct pieces_file *f, uint64_t length)
{
    const struct file_pieces pieces = { length, f, pieces_note, pieces_data_passed };

    return file_pieces_read(&pieces, f->reader, ((struct pieces_data *)f)->run, 0, f->path, NULL) == OK;
}

/* As pieces_read(). */
static inline int pieces_data_read(struct pieces_data *p, const char *path, uint64_t length)
{
    memset(p, 0, sizeof *p);
    p->file.path = path;
    if (!(p->run = run_data_new("r", 1)))
        abort();
    return pieces_read(&p->file, length, pieces_data_event, pieces_data_pieces);
}

static inline void pieces_data_release(struct pieces_data *p)
{
    run_data_free(p->run);
    event_reader_close(p->file.reader);
}

static inline int pieces_same_view(const struct series_view *s, const struct series_view *t)
{
    if (s->count != t->count || s->latest != t->latest || s->most_blobs != t->most_blobs ||
        s->info->class != t->info->class || s->info->tag_length != t->info->tag_length ||
        memcmp(s->info->tag, t->info->tag, s->info->tag_length) != 0)
        return 0;
    for (size_t row = 0; row < s->count; row++)
        for (size_t c = 0; c < column_block_columns(s->blocks[0]); c++)
            if (series_view_at(s, row, (enum column)c) != series_view_at(t, row, (enum column)c))
                return 0;
    return 1;
}

static inline int pieces_same_data(const struct pieces_data *a, const struct pieces_data *b)
{
    struct run_view *x, *y;
    int same = pieces_same_files(&a->file, &b->file) && run_data_points(a->run) == run_data_points(b->run);

    if (run_data_view(a->run, &x, NULL) != OK || run_data_view(b->run, &y, NULL) != OK)
        abort();
    same = same && !x == !y && (!x || (x->count == y->count && x->start_time == y->start_time));
    for (size_t i = 0; same && x && i < x->count; i++)
        same = pieces_same_view(x->series[i], y->series[i]);
    run_view_drop(x);
    run_view_drop(y);
    return same;
}

#endif
