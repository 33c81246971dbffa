/*
 * sightings.h - what is known of the checkpoints of a directory, and what to do about each: the deciding half of the
 * watcher, without files or clock, so that a test can feed it listings and times.
 *
 *              listed                opened whole
 *   (unknown) --------> NEW ---------------------------------------> OPENED
 *                        |  not whole      quiet time over              |
 *                        `----------> WAITING ------------> FAILED      | index changed
 *                        ^               | files changed: the quiet     |
 *                        |               | time begins again            |
 *                        `---------------+------ files changed ---------'
 * What cannot be read is WAITING, too, with growing pauses. What has only lost files since it was whole stays OPENED.
 * A checkpoint that is no longer listed is forgotten; if it was never opened (NEW, WAITING), it is gone, and reported.
 * One thread at a time.
 */
#ifndef EVALUATOR_WATCH_SIGHTINGS_H
#define EVALUATOR_WATCH_SIGHTINGS_H

#include "base/error.h"
#include "evaluator/files/content_digest.h"

#include <stddef.h>
#include <stdint.h>

enum { SIGHTING_PAUSE_MAX = 60 };

enum sighting_state { SIGHTING_NEW, SIGHTING_WAITING, SIGHTING_OPENED, SIGHTING_FAILED };

/* read by those who list and open; written by sightings.c alone */
struct sighting {
    char *name;               /* base name of the prefix; owned */
    int64_t step;             /* of the name, -1 without one */
    uint64_t stamp;           /* of the index file: changes when the file is rewritten */
    uint64_t data_stamp;      /* of the data files; only updated while not whole */
    uint64_t companion_stamp; /* of its companions, such as markers, at the last look */
    double companion_changed; /* monotonic seconds: their last change */
    double changed;           /* monotonic seconds: the last change of its files */
    enum sighting_state state;
    int kind;             /* from the listing; sightings ignores it */
    double patience;      /* > 0: its quiet time, instead of quiet_seconds */
    uint64_t inode;       /* of the file or directory itself; 0: not known */
    int in_place;         /* 1: it is known to be written in place, so it may be incomplete */
    int disturbed;        /* how often in a row it changed during its evaluation */
    int unread;           /* how often in a row it could not be read */
    struct content whole; /* of one of unknown format: as it was last seen whole; empty: never. Owned */
    double again_at;      /* monotonic seconds: not looked at before, because it could not be read; 0: at once */
};

/* one line of a listing */
struct sighting_seen {
    const char *name; /* borrowed */
    int64_t step;
    uint64_t stamp;
    double age; /* seconds since the index file changed, by the file system's clock; < 0 counts as 0 */
    int kind;
    char *owned; /* the lister's own, or NULL */
    uint64_t inode;
};

struct sightings {
    struct sighting *items; /* ascending by step, then name */
    size_t count;
    double quiet_seconds;
    int closed; /* 1: new names are ignored (draining before the end) */
};

struct sighting_list {
    struct sighting *items;
    size_t count;
};

void sightings_init(struct sightings *s, double quiet_seconds);
void sightings_release(struct sightings *s);

/* closed: see above. */
void sightings_close(struct sightings *s, int closed);

/* Adds a listing, ascending by step, then name. *gone receives those that vanished unopened: yours,
 * sighting_list_release() it. ERR_NOMEM: nothing has changed. */
int sightings_update(struct sightings *s, const struct sighting_seen *seen, size_t count, double now,
                     struct sighting_list *gone, struct error *e);
void sighting_list_release(struct sighting_list *list);

/* The sighting of that name and step; NULL: not known. Borrowed until the next update. */
const struct sighting *sightings_find(const struct sightings *s, const char *name, int64_t step);

/* 1: it should be opened now. */
int sighting_due(const struct sighting *item);
/* 1: its data files must be looked at, because it is incomplete. */
int sighting_incomplete(const struct sighting *item);

/* Reports the state of its data files. A change makes a failed one due again and restarts the quiet time. */
void sighting_data(struct sighting *item, uint64_t data_stamp, double age, double now);
/* Reports the stamp of its companions. 1: unchanged for `seconds`. 0: the item waits until then. */
int sighting_settled(struct sighting *item, uint64_t stamp, double age, double seconds, double now);
/* It cannot be looked at before `until`, for a lack of resources: it waits. */
void sighting_lack(struct sighting *item, double until);
/* It could not be read, which often passes: it waits for `pause` seconds, twice as long each time in a row, up to
 * SIGHTING_PAUSE_MAX. Returns how often in a row. readable: it was read. */
double sighting_pause(double first, int times);
int sighting_unread(struct sighting *item, double pause, double now);
void sighting_readable(struct sighting *item);
/* It will never be whole. */
void sighting_hopeless(struct sighting *item);
/* It is being written in place: it waits. */
void sighting_is_written(struct sighting *item);
/* It changed `times` times more during its evaluation; returns how often in a row. undisturbed: it did not change. */
int sighting_disturbed(struct sighting *item, int times);
void sighting_undisturbed(struct sighting *item);
/* 1: the item has not changed for `seconds`. 0: it waits until then. */
int sighting_quiet(struct sighting *item, double seconds, double now);
void sighting_opened(struct sighting *item);
/* It was opened, and is to be opened again as it is. */
void sighting_again(struct sighting *item);
/* It was opened, and has changed since: it is being written in place. */
void sighting_changed(struct sighting *item, double now);
/* It could not be opened. 1: it has not changed for the quiet time, and has failed now. 0: wait. */
int sighting_not_whole(const struct sightings *s, struct sighting *item, double now);

/* How many are WAITING or FAILED. */
size_t sightings_incomplete(const struct sightings *s);
/* How many are NEW or WAITING. */
size_t sightings_undecided(const struct sightings *s);
/* When the quiet time of the next WAITING one ends, monotonic seconds; infinity: none is WAITING. */
double sightings_deadline(const struct sightings *s);

#endif
