#include "eventlog/read/event_pieces.h"

#include "base/program/ordered_work.h"

struct piece_work {
    const struct event_pieces *calls;
    struct event_reader *reader;
    int stopped;
};

struct usual_of {
    const struct event_pieces *calls;
    struct event_piece *piece;
};

static int take_usual_of_piece(void *context, const struct usual_event *event)
{
    const struct usual_of *u = context;

    return event_reader_offset(u->piece->reader) < u->piece->end && u->calls->usual(u->piece, event);
}

static void read_piece(void *context, void *item)
{
    const struct event_pieces *calls = ((const struct piece_work *)context)->calls;
    struct event_piece *p = item;
    struct usual_of usual = { calls, p };
    struct event_damage damage;
    struct event event;

    while (!p->failed && event_reader_offset(p->reader) < p->end) {
        const int rc = event_reader_next(p->reader, &event, &damage, NULL);

        if (rc == EVENTLOG_READ_EVENT)
            p->failed = !calls->event(calls->context, p, &event);
        else
            p->failed = rc != EVENTLOG_READ_DAMAGE || !calls->damage || !calls->damage(calls->context, p, &damage);
        if (calls->usual && !p->failed)
            event_reader_take_usual(p->reader, take_usual_of_piece, &usual);
    }
    p->met = !p->failed && event_reader_offset(p->reader) == p->end && event_reader_left(p->reader);
}

static void take_piece(void *context, void *item)
{
    struct piece_work *w = context;
    struct event_piece *p = item;

    w->stopped = w->stopped || !p->met || !w->calls->take(w->calls->context, p);
    if (!w->stopped) {
        event_reader_pass(w->reader, p->reader);
        w->stopped = w->calls->passed && !w->calls->passed(w->calls->context);
    }
    w->calls->empty(p);
    event_reader_close(p->reader);
    p->reader = NULL;
    p->met = p->failed = 0;
}

static void release_piece(void *context, void *item)
{
    struct piece_work *w = context;
    struct event_piece *p = item;

    event_reader_close(p->reader);
    w->calls->release(p);
}

void event_pieces_read(const struct event_pieces *pieces, struct event_reader *reader)
{
    struct piece_work w = { pieces, reader, 0 };
    const struct ordered_work_calls calls = { pieces->size, read_piece, take_piece, &w, NULL };
    uint64_t start = event_reader_offset(reader), end = start + event_reader_left(reader), cut;
    struct ordered_work *threads;

    if (end - start < 2 * pieces->length || ordered_work_open(&threads, &calls, NULL) != OK)
        return;
    while (ordered_work_threads(threads) && !w.stopped && end - start >= 2 * pieces->length &&
           event_reader_find(reader, start + pieces->length, start + 2 * pieces->length, &cut)) {
        struct event_piece *p = ordered_work_item(threads);

        p->end = cut;
        if ((pieces->prepare && !pieces->prepare(pieces->context, p)) ||
            event_reader_piece(&p->reader, reader, start, NULL) != OK)
            break;
        ordered_work_give(threads);
        start = cut;
    }
    ordered_work_finish(threads);
    ordered_work_close(threads, release_piece);
}
