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
 * One that is no longer listed is forgotten; if nobody had opened it before (NEW, WAITING), it is gone, and reported.
 * One thread at a time.
 */
#ifndef EVALUATOR_WATCH_SIGHTINGS_H
#define EVALUATOR_WATCH_SIGHTINGS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum sighting_state { SIGHTING_NEW, SIGHTING_WAITING, SIGHTING_OPENED, SIGHTING_FAILED };

struct sighting { /* read by those who list and open; written by sightings.c alone */
    char *name;               /* base name of the prefix; owned */
    int64_t step;             /* of the name, -1 without one */
    uint64_t stamp;           /* of the index file: differs when the file was written anew */
    uint64_t data_stamp;      /* the same of the data files; kept up to date while not whole only */
    uint64_t companion_stamp; /* the same of what goes with it, as markers, when that was looked at last */
    double companion_changed; /* monotonic seconds: the last change of those */
    double changed;           /* monotonic seconds: the last change of its files */
    enum sighting_state state;
    int kind;                 /* of the listing; sightings does not look at it */
    double patience;          /* > 0: it waits so long for quiet, not quiet_seconds */
    uint64_t inode;           /* of the file or directory itself; 0: not told */
    int in_place;             /* 1: it is known to be written in place, so what is there may be part of it */
    int disturbed;            /* how often in a row it changed while it was evaluated */
};

struct sighting_seen { /* one line of a listing */
    const char *name;  /* borrowed */
    int64_t step;
    uint64_t stamp;
    double age;        /* seconds since the index file changed, as the file system says; < 0 counts as 0 */
    int kind;
    char *owned;       /* the lister's own, or NULL */
    uint64_t inode;
};

struct sightings {
    struct sighting *items; /* ascending by step, then name */
    size_t count;
    double quiet_seconds;
    int closed;             /* 1: names that are not known yet are ignored (draining before the end) */
};

struct sighting_list {
    struct sighting *items;
    size_t count;
};

void sightings_init(struct sightings *s, double quiet_seconds);
void sightings_release(struct sightings *s);

/* closed: as above. */
void sightings_close(struct sightings *s, int closed);

/* Takes in a listing, ascending by step, then name. *gone gets those that vanished unopened: yours, release it with
 * sighting_list_release(). ERR_NOMEM: nothing has changed. */
int sightings_update(struct sightings *s, const struct sighting_seen *seen, size_t count, double now,
                     struct sighting_list *gone, struct error *e);
void sighting_list_release(struct sighting_list *list);

/* The one of that name and step, NULL where it is not known. Borrowed until the next update. */
const struct sighting *sightings_find(const struct sightings *s, const char *name, int64_t step);

/* 1: somebody should try to open it now. */
int sighting_due(const struct sighting *item);
/* 1: its data files are to be looked at, because they decide about it. */
int sighting_incomplete(const struct sighting *item);

/* What its data files look like now. A change makes a failed one due again and restarts the quiet time. */
void sighting_data(struct sighting *item, uint64_t data_stamp, double age, double now);
/* What goes with it looks like that now. 1: it has not changed for so many seconds. 0: the item waits until then. */
int sighting_settled(struct sighting *item, uint64_t stamp, double age, double seconds, double now);
/* It cannot be looked at before, for want of something else: it waits. */
void sighting_lack(struct sighting *item, double until);
/* It never will be whole. */
void sighting_hopeless(struct sighting *item);
/* Somebody writes it, in place: it waits. */
void sighting_is_written(struct sighting *item);
/* It changed so many times more while it was evaluated: how often in a row by now. And it did not. */
int sighting_disturbed(struct sighting *item, int times);
void sighting_undisturbed(struct sighting *item);
/* 1: the item has not changed for so many seconds. 0: it waits until then. */
int sighting_quiet(struct sighting *item, double seconds, double now);
void sighting_opened(struct sighting *item);
/* It was opened, and is not what it was any more: it is written in place, just now. */
void sighting_changed(struct sighting *item, double now);
/* It could not be opened. 1: it has not changed for the quiet time, and counts as failed from now on. 0: wait. */
int sighting_not_whole(const struct sightings *s, struct sighting *item, double now);

/* How many are WAITING or FAILED. */
size_t sightings_incomplete(const struct sightings *s);
/* How many are NEW or WAITING. */
size_t sightings_undecided(const struct sightings *s);
/* When the quiet time of the next WAITING one is over, monotonic seconds; infinity without one. */
double sightings_deadline(const struct sightings *s);

#endif
