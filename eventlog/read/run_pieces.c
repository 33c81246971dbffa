#include "eventlog/read/run_pieces.h"

#include "base/array.h"
#include "base/program/ordered_work.h"

#include <stdlib.h>

enum { SERIES_MOST = 1024 }; /* each piece has to know them all */

/* A piece, whose memory is used again for others. */
struct piece {
    struct event_reader *reader;
    uint64_t end;
    int met; /* it came to its end exactly, and all that it has can be added */
    int failed;
    struct scalar_run run;     /* of this piece; series stay, without points */
    size_t *places;            /* the number in the whole run of each of its series; PLACE_NONE: not known yet */
    size_t place_count, known; /* known: series of the whole run that it has */
};

#define PLACE_NONE ((size_t)-1)

struct work {
    struct event_reader *reader;
    struct scalar_run *run;
    int has_other;
    void (*passed)(void *context);
    void *context;
    struct error *e;
    int rc, stopped;
};

/* ---- one piece, by any thread ------------------------------------------------------------------------------------ */

/* Values that are no points are for the caller, in order. */
static int refuse_piece(void *context, const struct scalar_series *s, const struct event *event,
                        const struct event_value *value, struct error *e)
{
    struct piece *p = context;

    (void)s, (void)event, (void)value, (void)e;
    p->failed = 1;
    return OK;
}

static int take(void *context, const struct usual_event *event)
{
    struct piece *p = context;

    return event_reader_offset(p->reader) < p->end && scalar_run_usual(&p->run, event);
}

static void read_piece(void *context, void *item)
{
    const struct work *w = context;
    struct piece *p = item;
    struct event_damage damage;
    struct event event;

    p->run.other = w->has_other ? refuse_piece : NULL;
    p->run.context = p;
    while (!p->failed && event_reader_offset(p->reader) < p->end) {
        if (event_reader_next(p->reader, &event, &damage, NULL) != EVENT_READER_EVENT ||
            scalar_run_event(&p->run, &event, NULL) != OK)
            p->failed = 1;
        else
            event_reader_take_usual(p->reader, take, p);
    }
    p->met = !p->failed && event_reader_offset(p->reader) == p->end && event_reader_left(p->reader);
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
 * told. */
static int prepare(struct piece *p, const struct scalar_run *run)
{
    if (!p->run.store)
        scalar_run_init(&p->run, SCALAR_VIEW_ALL, 0, 1);
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

static void take_piece(void *context, void *item)
{
    struct work *w = context;
    struct piece *p = item;

    w->stopped |= !p->met || !fits(p, w->run);
    for (size_t i = 0; i < p->run.count && !w->stopped; i++) {
        if (p->places[i] == PLACE_NONE && !(p->run.series[i].seen + p->run.series[i].skipped))
            continue;
        if (p->places[i] == PLACE_NONE)
            p->places[i] = scalar_run_like(w->run, &p->run.series[i]);
        if (p->places[i] == SCALAR_RUN_NONE ||
            !scalar_run_append(w->run, &w->run->series[p->places[i]], &p->run.series[i]))
            w->rc = error_memory(w->e, NULL, "for %llu points", (unsigned long long)w->run->numbered);
        w->stopped = w->rc != OK;
    }
    if (!w->stopped) {
        scalar_run_count(w->run, &p->run);
        event_reader_pass(w->reader, p->reader);
        if (w->passed)
            w->passed(w->context);
    }
    scalar_run_empty(&p->run);
    event_reader_close(p->reader);
    p->reader = NULL;
    p->met = p->failed = 0;
}

static void release_piece(void *context, void *item)
{
    struct piece *p = item;

    (void)context;
    event_reader_close(p->reader);
    scalar_run_release(&p->run);
    free(p->places);
}

int run_pieces_read(struct event_reader *reader, struct scalar_run *run, uint64_t length, void (*passed)(void *context),
                    void *context, struct error *e)
{
    struct work w = { reader, run, run->other != NULL, passed, context, e, OK, 0 };
    const struct ordered_work_calls calls = { sizeof(struct piece), read_piece, take_piece, &w, NULL };
    uint64_t start = event_reader_offset(reader), end = start + event_reader_left(reader), cut;
    struct ordered_work *threads;

    if (end - start < 2 * length || !scalar_run_is_plain(run) || ordered_work_open(&threads, &calls, NULL) != OK)
        return OK;
    while (ordered_work_threads(threads) && !w.stopped && run->count <= SERIES_MOST && end - start >= 2 * length &&
           event_reader_find(reader, start + length, start + 2 * length, &cut)) {
        struct piece *p = ordered_work_item(threads);

        p->end = cut;
        if (!prepare(p, run) || event_reader_piece(&p->reader, reader, start, NULL) != OK)
            break;
        ordered_work_give(threads);
        start = cut;
    }
    ordered_work_finish(threads);
    ordered_work_close(threads, release_piece);
    return w.rc;
}
