/* pieces_run.h - reads a file into a scalar_run, by one reader or in pieces, and compares what came of it. */
#ifndef TESTS_EVENTLOG_PIECES_RUN_H
#define TESTS_EVENTLOG_PIECES_RUN_H

#include "eventlog/read/run_pieces.h"

#include <stdlib.h>
#include <string.h>

struct pieces_run {
    struct scalar_run run;
    struct event_reader *reader;
    uint64_t damaged, others, places; /* how often; places: a mixture of where and what */
    size_t passed;                    /* pieces */
};

static int pieces_other(void *context, const struct scalar_series *s, const struct event *event,
                        const struct event_value *value, struct error *e)
{
    struct pieces_run *p = context;

    (void)value, (void)e;
    p->others++;
    p->places = p->places * 31 + s->number + (uint64_t)event->step;
    return OK;
}

/* Every third step is left out. */
static int pieces_wanted(void *context, const struct scalar_series *s, const struct scalar_point *point)
{
    (void)context, (void)s;
    return point->step % 3 != 0;
}

static void pieces_passed(void *context)
{
    ((struct pieces_run *)context)->passed++;
}

/* length: of a piece; 0: by one reader. with_other, with_wanted: the run has these calls. 1; 0: the file cannot be
 * opened. */
static inline int pieces_run_read(struct pieces_run *p, const char *path, uint64_t length, int with_other,
                                  int with_wanted)
{
    struct log_input input = { 0 };
    struct event_damage damage;
    struct event event;
    uint64_t next = 0;
    int rc;

    memset(p, 0, sizeof *p);
    scalar_run_init(&p->run, SCALAR_VIEW_ALL, 0, 1);
    p->run.other = with_other ? pieces_other : NULL;
    p->run.wanted = with_wanted ? pieces_wanted : NULL;
    p->run.context = p;
    if (event_reader_open(&p->reader, &input, path, NULL) != OK) {
        log_input_release(&input);
        return 0;
    }
    while ((rc = event_reader_next(p->reader, &event, &damage, NULL)) > 0) {
        if (rc == EVENT_READER_DAMAGE) {
            p->damaged++;
            p->places = p->places * 31 + damage.offset * 8 + (uint64_t)damage.kind + damage.found;
            continue;
        }
        if (scalar_run_event(&p->run, &event, NULL) != OK)
            abort();
        if (!length || event_reader_offset(p->reader) < next)
            continue;
        if (run_pieces_read(p->reader, &p->run, length, pieces_passed, p, NULL) != OK)
            abort();
        next = event_reader_offset(p->reader) + 2 * length;
    }
    log_input_release(&input);
    return 1;
}

static inline void pieces_run_release(struct pieces_run *p)
{
    scalar_run_release(&p->run);
    event_reader_close(p->reader);
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

/* 1: nothing tells which way they were read. */
static inline int pieces_same(const struct pieces_run *a, const struct pieces_run *b)
{
    const struct event_reader_state s = event_reader_state(a->reader), t = event_reader_state(b->reader);

    if (a->damaged != b->damaged || a->others != b->others || a->places != b->places || s.offset != t.offset ||
        s.records != t.records || s.lost != t.lost || s.damaged != t.damaged || a->run.count != b->run.count ||
        a->run.numbered != b->run.numbered || a->run.rounded != b->run.rounded ||
        memcmp(&a->run.began, &b->run.began, sizeof a->run.began) != 0)
        return 0;
    for (size_t i = 0; i < a->run.count; i++)
        if (!pieces_same_series(&a->run.series[i], &b->run.series[i]))
            return 0;
    return 1;
}

#endif
