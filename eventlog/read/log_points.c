/* Reads all points of a log at once, as eventlog.h describes: one scalar_run per run, filtered while it is filled. */
#include "eventlog/eventlog.h"

#include "base/array.h"
#include "base/bytes.h"
#include "eventlog/public.h"
#include "eventlog/read/log_filter.h"
#include "eventlog/read/log_follow.h"
#include "eventlog/read/log_series.h"
#include "eventlog/read/run_pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pieces in work take the memory of a few: beside the points of so many that is at most a byte a point. */
enum { PIECES_LEAST = 100 };

struct points_series {
    struct log_series *series;
    struct eventlog_point *points;
    size_t count, mapped; /* for scalar_points_free() */
};

struct points_run {
    char *name;
    struct scalar_run scalars; /* the public series borrow their tags and plugins from it; their points are moved out */
};

struct eventlog_points {
    struct points_run *runs;
    struct points_series *series; /* of all runs */
    size_t run_count, series_count, series_capacity;
    uint64_t damaged;
};

/* The state while one run is read. */
struct reading {
    struct log_input *in;
    const struct log_filter *filter;
    unsigned char *wanted; /* by series number: 0 not asked yet, 1 no, 2 yes */
    size_t wanted_count;
    int all_steps; /* steps are filtered at the end, after the view has been applied */
};

void eventlog_points_free(struct eventlog_points *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->series_count; i++) {
        log_series_free(p->series[i].series);
        scalar_points_free(p->series[i].points, p->series[i].mapped);
    }
    for (size_t i = 0; i < p->run_count; i++) {
        scalar_run_release(&p->runs[i].scalars);
        free(p->runs[i].name);
    }
    free(p->series);
    free(p->runs);
    free(p);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int tag_wanted(struct reading *w, const struct scalar_series *s)
{
    if (!ARRAY_ROOM_ZERO(w->wanted, w->wanted_count, s->number + 1)) /* then log_filter_tag() is called each time */
        return log_filter_tag(w->filter, s->tag);
    if (!w->wanted[s->number])
        w->wanted[s->number] = (unsigned char)(1 + log_filter_tag(w->filter, s->tag));
    return w->wanted[s->number] == 2;
}

static int wanted(void *context, const struct scalar_series *s, const struct eventlog_point *point)
{
    struct reading *w = context;

    return tag_wanted(w, s) && (w->all_steps || log_filter_step(w->filter, point->step)) && !isinf(point->wall_time);
}

/* EVENTLOG_READ_END, EVENTLOG_READ_RESTARTED, or an error. */
static int points_read_file(struct eventlog_points *p, struct scalar_run *scalars, struct event_reader *reader,
                            struct error *e)
{
    struct event_damage damage;
    struct event event;
    int rc, tried = 0;

    scalar_run_begin_file(scalars);
    while ((rc = event_reader_next(reader, &event, &damage, e)) > 0 && rc != EVENTLOG_READ_RESTARTED) {
        if (rc == EVENTLOG_READ_DAMAGE) {
            p->damaged++;
            if (!scalar_run_damage(scalars, &damage, &event))
                continue;
        }
        if ((rc = scalar_run_event(scalars, &event, e)) != OK)
            break;
        if (!scalars->follow_loader)
            event_reader_take_usual(reader, scalar_run_usual, scalars);
        if (!tried && event_reader_left(reader) >= PIECES_LEAST * RUN_PIECES_LENGTH &&
            (rc = run_pieces_read(reader, scalars, RUN_PIECES_LENGTH, NULL, NULL, e)) != OK)
            break;
        tried = 1;
    }
    return rc;
}

static void forget_points(struct scalar_run *scalars, struct reading *w)
{
    scalar_run_restart(scalars);
    free(w->wanted); /* series are numbered anew */
    w->wanted = NULL;
    w->wanted_count = 0;
}

static int read_run(struct eventlog_points *p, struct scalar_run *scalars, const struct log_run *run, struct reading *w,
                    struct error *e)
{
    const uint64_t damaged = p->damaged;
    struct event_reader *reader;
    struct log_follow_run files;
    int found, rc = OK;

    scalars->wanted = wanted;
    scalars->context = w;
    log_follow_listed(&files, run);
    while (rc == OK && (found = log_follow_begin_file(NULL, &files, w->in, &reader, e)) != LOG_FOLLOW_END) {
        const char *path = run->files[files.at_file];

        if (found == LOG_FOLLOW_FILE)
            found = log_follow_end_file(NULL, &files, points_read_file(p, scalars, reader, e), e);
        if (found == EVENTLOG_READ_RESTARTED) {
            forget_points(scalars, w);
            p->damaged = damaged;
        } else if (found < 0 && (!strcmp(run->directory, path) || !log_input_gone(path, e))) {
            rc = found;
        }
    }
    log_follow_forget(NULL, &files);
    if (rc == OK)
        scalar_run_finish(scalars);
    return rc;
}

/* ---- series ---------------------------------------------------------------------------------------------------- */

/* Takes the points over, but for those of other steps. */
static void move_points(struct points_series *to, struct scalar_series *s, const struct log_filter *filter)
{
    for (size_t i = 0; i < s->count; i++)
        if (log_filter_step(filter, s->points[i].step))
            s->points[to->count++] = s->points[i];
    s->count = to->count;
    scalar_series_fit(s);
    to->points = s->points;
    to->mapped = s->mapped;
    free(s->marks);
    s->points = NULL;
    s->marks = NULL;
    s->count = s->capacity = s->mapped = 0;
}

static int points_add_series(struct eventlog_points *p, struct points_run *run, struct reading *w, struct error *e)
{
    for (size_t i = 0; i < run->scalars.count; i++) {
        struct scalar_series *s = &run->scalars.series[i];
        struct points_series *to;

        if (!tag_wanted(w, s) || (w->filter->numbers_only && !s->seen))
            continue;
        if (!ARRAY_ROOM(p->series, p->series_capacity, p->series_count + 1))
            return error_memory(e, NULL, "for %zu series", p->series_count + 1);
        to = &p->series[p->series_count++];
        memset(to, 0, sizeof *to);
        if (!(to->series = log_series_new(run->name, s, 1)))
            return error_memory(e, NULL, "for a series");
        move_points(to, s, w->filter);
    }
    return OK;
}

static int points_add_run(struct eventlog_points *p, struct log_input *in, const struct log_run *listed,
                          enum eventlog_view view, const struct log_filter *filter, struct error *e)
{
    struct reading w = { .in = in, .filter = filter, .all_steps = view != EVENTLOG_VIEW_ALL };
    struct points_run *run = &p->runs[p->run_count];
    int rc;

    if (!(run->name = strdup(listed->name)))
        return error_memory(e, listed->name, "for it");
    scalar_run_init(&run->scalars, view, 0, 1);
    p->run_count++;
    if ((rc = read_run(p, &run->scalars, listed, &w, e)) == OK) {
        scalar_run_sort(&run->scalars);
        rc = points_add_series(p, run, &w, e);
    }
    run->scalars.context = NULL;
    free(w.wanted);
    return rc;
}

int eventlog_points_read(struct eventlog_points **out, const char *path, enum eventlog_view view,
                         const struct eventlog_reader_options *options, struct eventlog_error *error)
{
    struct eventlog_points *p = calloc(1, sizeof *p);
    char *const paths[] = { p ? strdup(path) : NULL };
    struct log_directory d = { 0 };
    struct log_input in = { 0 };
    struct log_filter filter;
    struct error e = { 0 };
    int rc = log_filter_init(&filter, options, &e);

    *out = NULL;
    if (rc == OK && !paths[0])
        rc = error_memory(&e, path, "for its points");
    if (rc == OK && (rc = log_directory_list(&d, &in, paths, 1, &e)) == OK && d.unreadable)
        rc = error_set(&e, ERR_IO, "%s", d.problems[d.unreadable - 1]);
    if (rc == OK && !(p->runs = calloc(d.count + 1, sizeof *p->runs)))
        rc = error_memory(&e, path, "for %zu runs", d.count);
    for (size_t i = 0; rc == OK && i < d.count; i++)
        if (log_filter_run(&filter, d.runs[i].name))
            rc = points_add_run(p, &in, &d.runs[i], view, &filter, &e);
    log_directory_release(&d);
    log_input_release(&in);
    log_filter_release(&filter);
    free(paths[0]);
    if (rc != OK) {
        eventlog_points_free(p);
        return public_error(error, &e);
    }
    *out = p;
    return EVENTLOG_OK;
}

/* ---- looking --------------------------------------------------------------------------------------------------- */

const char *eventlog_points_run(const struct eventlog_points *p, size_t index)
{
    return index < p->run_count ? p->runs[index].name : NULL;
}

const struct eventlog_series *eventlog_points_series(const struct eventlog_points *p, size_t index)
{
    return index < p->series_count ? &p->series[index].series->shown : NULL;
}

const struct eventlog_point *eventlog_points_of(const struct eventlog_points *p, size_t index, size_t *count)
{
    *count = index < p->series_count ? p->series[index].count : 0;
    return *count ? p->series[index].points : NULL;
}

struct wanted_series {
    const char *run, *tag;
    size_t length;
};

static int points_by_name(const void *wanted, const void *series)
{
    const struct wanted_series *w = wanted;
    const struct eventlog_series *s = &((const struct points_series *)series)->series->shown;
    int order = strcmp(w->run, s->run);

    return order ? order : bytes_compare(w->tag, w->length, s->tag, s->tag_length);
}

/* Runs are listed by name, and the series of each are sorted by tag. */
int eventlog_points_find(const struct eventlog_points *p, const char *run, const char *tag, size_t *index)
{
    const struct wanted_series wanted = { run, tag, strlen(tag) };
    const struct points_series *found = p->series_count ? bsearch(&wanted, p->series, p->series_count, sizeof *found,
                                                                  points_by_name)
                                                        : NULL;

    if (!found)
        return 0;
    *index = (size_t)(found - p->series);
    return 1;
}

uint64_t eventlog_points_damaged(const struct eventlog_points *p)
{
    return p->damaged;
}
