#include "eventlog/read/run_pieces.h"

#include "base/array.h"
#include "eventlog/read/event_pieces.h"

#include <stdlib.h>

enum { SERIES_MOST = 1024 }; /* each piece has to know them all */

/* A piece, whose memory is used again for others. */
struct piece {
    struct event_piece piece;
    int other;                 /* it has values that are no points */
    struct scalar_run run;     /* of this piece; series stay, without points */
    size_t *places;            /* the number in the whole run of each of its series; PLACE_NONE: not known yet */
    size_t place_count, known; /* known: series of the whole run that it has */
};

#define PLACE_NONE ((size_t)-1)

struct work {
    struct scalar_run *run;
    int has_other;
    void (*passed)(void *context);
    void *context;
    struct error *e;
    int rc;
};

/* ---- one piece, by any thread ------------------------------------------------------------------------------------ */

/* Values that are no points are for the caller, in order. */
static int note_other(void *context, const struct scalar_series *s, const struct event *event,
                      const struct event_value *value, struct error *e)
{
    struct piece *p = context;

    (void)s, (void)event, (void)value, (void)e;
    p->other = 1;
    return OK;
}

static int take_usual_points(void *piece, const struct usual_event *event)
{
    return scalar_run_usual(&((struct piece *)piece)->run, event);
}

static int take_points_of_event(const void *context, void *piece, const struct event *event)
{
    struct piece *p = piece;

    (void)context;
    return scalar_run_event(&p->run, event, NULL) == OK && !p->other;
}

/* ---- all of them, in order, by the caller ------------------------------------------------------------------------ */

static int places_room(struct piece *p)
{
    const size_t before = p->place_count;

    if (!ARRAY_ROOM(p->places, p->place_count, p->run.count))
        return 0;
    for (size_t i = before; i < p->place_count; i++)
        p->places[i] = PLACE_NONE;
    return 1;
}

/* Tells the piece of the run's series, so that it takes their values as the run would. 0: no memory, or they cannot be
 * told, or there are too many. */
static int prepare(void *context, void *piece)
{
    const struct work *w = context;
    const struct scalar_run *run = w->run;
    struct piece *p = piece;

    if (run->count > SERIES_MOST)
        return 0;
    if (!p->run.store)
        scalar_run_init(&p->run, EVENTLOG_VIEW_ALL, 0, 1);
    p->run.other = w->has_other ? note_other : NULL;
    p->run.context = p;
    for (; p->known < run->count; p->known++) {
        const size_t number = scalar_run_like(&p->run, &run->series[p->known]);

        if (number == SCALAR_RUN_NONE || !places_room(p))
            return 0;
        p->places[number] = p->known;
    }
    return 1;
}

/* 1: the points of all series can be added to those that the run has. */
static int fits(struct piece *p, struct scalar_run *run)
{
    if (!places_room(p))
        return 0;
    for (size_t i = 0; i < p->run.count; i++) {
        if (p->places[i] == PLACE_NONE)
            p->places[i] = scalar_run_find(run, p->run.series[i].tag, p->run.series[i].tag_length);
        if (!scalar_series_fits(p->places[i] != PLACE_NONE ? &run->series[p->places[i]] : NULL, &p->run.series[i]))
            return 0;
    }
    return 1;
}

static int take_points(void *context, void *piece)
{
    struct work *w = context;
    struct piece *p = piece;

    if (!fits(p, w->run))
        return 0;
    for (size_t i = 0; i < p->run.count; i++) {
        if (p->places[i] == PLACE_NONE && !(p->run.series[i].seen + p->run.series[i].skipped))
            continue;
        if (p->places[i] == PLACE_NONE)
            p->places[i] = scalar_run_like(w->run, &p->run.series[i]);
        if (p->places[i] == SCALAR_RUN_NONE ||
            !scalar_run_append(w->run, &w->run->series[p->places[i]], &p->run.series[i])) {
            w->rc = error_memory(w->e, NULL, "for %llu points", (unsigned long long)w->run->numbered);
            return 0;
        }
    }
    scalar_run_count(w->run, &p->run);
    return 1;
}

static int tell_passed(void *context)
{
    const struct work *w = context;

    if (w->passed)
        w->passed(w->context);
    return 1;
}

static void empty_points(void *piece)
{
    struct piece *p = piece;

    scalar_run_empty(&p->run);
    p->other = 0;
}

static void release_points(void *piece)
{
    struct piece *p = piece;

    scalar_run_release(&p->run);
    free(p->places);
}

int run_pieces_read(struct event_reader *reader, struct scalar_run *run, uint64_t length, void (*passed)(void *context),
                    void *context, struct error *e)
{
    struct work w = { run, run->other != NULL, passed, context, e, OK };
    const struct event_pieces pieces = {
        .size = sizeof(struct piece),
        .length = length,
        .context = &w,
        .event = take_points_of_event,
        .usual = take_usual_points,
        .prepare = prepare,
        .take = take_points,
        .passed = tell_passed,
        .empty = empty_points,
        .release = release_points,
    };

    if (scalar_run_is_plain(run))
        event_pieces_read(&pieces, reader);
    return w.rc;
}
