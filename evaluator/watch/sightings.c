#include "evaluator/watch/sightings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sightings_init(struct sightings *s, double quiet_seconds)
{
    memset(s, 0, sizeof *s);
    s->quiet_seconds = quiet_seconds;
}

void sighting_list_release(struct sighting_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        content_release(&list->items[i].whole);
    }
    free(list->items);
    list->items = NULL;
    list->count = 0;
}

void sightings_release(struct sightings *s)
{
    struct sighting_list all = { s->items, s->count };

    sighting_list_release(&all);
    s->items = NULL;
    s->count = 0;
}

static int compare(const struct sighting *item, const struct sighting_seen *seen)
{
    if (item->step != seen->step)
        return item->step < seen->step ? -1 : 1;
    return strcmp(item->name, seen->name);
}

static double since(double age, double now)
{
    return age > 0 ? now - age : now;
}

static void touch(struct sighting *item, const struct sighting_seen *seen, double now)
{
    if (item->stamp == seen->stamp && item->kind == seen->kind)
        return;
    if (item->inode != seen->inode)
        item->in_place = 0;
    else if (item->inode && item->state == SIGHTING_OPENED)
        item->in_place = 1;
    item->inode = seen->inode;
    item->stamp = seen->stamp;
    item->kind = seen->kind;
    item->changed = since(seen->age, now);
    item->state = SIGHTING_NEW;
    item->again_at = 0;
}

int sightings_update(struct sightings *s, const struct sighting_seen *seen, size_t count, double now,
                     struct sighting_list *gone, struct error *e)
{
    struct sighting *items = calloc(count + 1, sizeof *items), *lost = calloc(s->count + 1, sizeof *lost);
    size_t kept = 0, old = 0, lost_count = 0;

    gone->items = NULL;
    gone->count = 0;
    if (!items || !lost)
        goto no_memory;
    for (size_t i = 0; i < count; i++) { /* names first, while failing still changes nothing */
        while (old < s->count && compare(&s->items[old], &seen[i]) < 0)
            old++;
        if ((old < s->count && compare(&s->items[old], &seen[i]) == 0) || s->closed)
            continue;
        if (!(items[i].name = strdup(seen[i].name)))
            goto no_memory;
    }
    old = 0;
    for (size_t i = 0;; i++) {
        for (; old < s->count && (i == count || compare(&s->items[old], &seen[i]) < 0); old++) {
            if (sighting_due(&s->items[old])) {
                lost[lost_count++] = s->items[old];
            } else {
                free(s->items[old].name);
                content_release(&s->items[old].whole);
            }
        }
        if (i == count)
            break;
        if (old < s->count && compare(&s->items[old], &seen[i]) == 0) {
            struct sighting item = s->items[old++];

            touch(&item, &seen[i], now);
            items[kept++] = item;
        } else if (items[i].name) {
            struct sighting item = { .name = items[i].name,
                                     .step = seen[i].step,
                                     .stamp = seen[i].stamp,
                                     .changed = since(seen[i].age, now),
                                     .state = SIGHTING_NEW,
                                     .kind = seen[i].kind,
                                     .inode = seen[i].inode };

            items[i].name = NULL; /* kept <= i: moving down never overwrites a name that is still needed */
            items[kept++] = item;
        }
    }
    free(s->items);
    s->items = items;
    s->count = kept;
    gone->items = lost;
    gone->count = lost_count;
    return OK;
no_memory:
    for (size_t i = 0; items && i < count; i++)
        free(items[i].name);
    free(items);
    free(lost);
    return error_memory(e, NULL, "for a list of %zu checkpoints", count);
}

const struct sighting *sightings_find(const struct sightings *s, const char *name, int64_t step)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sighting *item = &s->items[middle];
        int order = item->step != step ? (item->step < step ? -1 : 1) : strcmp(item->name, name);

        if (!order)
            return item;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int sighting_due(const struct sighting *item)
{
    return item->state == SIGHTING_NEW || item->state == SIGHTING_WAITING;
}

int sighting_incomplete(const struct sighting *item)
{
    return item->state == SIGHTING_WAITING || item->state == SIGHTING_FAILED;
}

void sighting_data(struct sighting *item, uint64_t data_stamp, double age, double now)
{
    int first = !item->data_stamp;

    if (item->data_stamp == data_stamp)
        return;
    item->data_stamp = data_stamp;
    if (since(age, now) > item->changed)
        item->changed = since(age, now);
    if (!first && item->state == SIGHTING_FAILED)
        item->state = SIGHTING_WAITING;
}

static int wait_until(struct sighting *item, double when, double now)
{
    item->patience = now >= when ? 0 : when - item->changed;
    if (now < when)
        item->state = SIGHTING_WAITING;
    return now >= when;
}

int sighting_settled(struct sighting *item, uint64_t stamp, double age, double seconds, double now)
{
    if (item->companion_stamp != stamp) {
        item->companion_stamp = stamp;
        item->companion_changed = since(age, now);
    }
    return wait_until(item, item->companion_changed + seconds, now);
}

int sighting_quiet(struct sighting *item, double seconds, double now)
{
    return wait_until(item, item->changed + seconds, now);
}

void sighting_lack(struct sighting *item, double until)
{
    item->state = SIGHTING_WAITING;
    item->changed = until;
}

double sighting_pause(double first, int times)
{
    double pause = first;

    while (--times > 0 && pause < (double)SIGHTING_PAUSE_MAX)
        pause *= 2;
    return fmin(pause, SIGHTING_PAUSE_MAX);
}

int sighting_unread(struct sighting *item, double pause, double now)
{
    item->state = SIGHTING_WAITING;
    item->again_at = now + sighting_pause(pause, ++item->unread);
    return item->unread;
}

void sighting_readable(struct sighting *item)
{
    item->unread = 0;
    item->again_at = 0;
}

void sighting_hopeless(struct sighting *item)
{
    item->state = SIGHTING_FAILED;
}

void sighting_is_written(struct sighting *item)
{
    item->in_place = 1;
    item->state = SIGHTING_WAITING;
}

int sighting_disturbed(struct sighting *item, int times)
{
    return item->disturbed += times;
}

void sighting_undisturbed(struct sighting *item)
{
    item->disturbed = 0;
}

void sightings_close(struct sightings *s, int closed)
{
    s->closed = closed;
}

void sighting_opened(struct sighting *item)
{
    item->state = SIGHTING_OPENED;
}

void sighting_again(struct sighting *item)
{
    item->state = SIGHTING_NEW;
}

void sighting_changed(struct sighting *item, double now)
{
    sighting_again(item);
    item->in_place = 1;
    item->changed = now;
}

int sighting_not_whole(const struct sightings *s, struct sighting *item, double now)
{
    if (now - item->changed < s->quiet_seconds) {
        item->state = SIGHTING_WAITING;
        return 0;
    }
    item->state = SIGHTING_FAILED;
    return 1;
}

size_t sightings_incomplete(const struct sightings *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->count; i++)
        n += (size_t)sighting_incomplete(&s->items[i]);
    return n;
}

size_t sightings_undecided(const struct sightings *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->count; i++)
        n += (size_t)sighting_due(&s->items[i]);
    return n;
}

double sightings_deadline(const struct sightings *s)
{
    double earliest = INFINITY;

    for (size_t i = 0; i < s->count; i++) {
        const struct sighting *item = &s->items[i];
        double patience = item->patience > 0 ? item->patience : s->quiet_seconds;
        double due = item->again_at > 0 ? item->again_at : item->changed + patience;

        if (item->state == SIGHTING_WAITING && due < earliest)
            earliest = due;
    }
    return earliest;
}
