#include "eventlog/server/file_pieces.h"

#include "base/array.h"
#include "base/bytes.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/read/event_pieces.h"
#include "eventlog/server/store/series_info.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
