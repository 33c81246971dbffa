/*
 * checkpoint_listing.h - the checkpoints in a directory, by the names that checkpoint_source.h takes, each with its
 * step and with stamps that tell when it changes. Thread-safe.
 */
#ifndef EVALUATOR_WATCH_CHECKPOINT_LISTING_H
#define EVALUATOR_WATCH_CHECKPOINT_LISTING_H

#include "base/error.h"
#include "evaluator/files/opened_checkpoint.h"
#include "evaluator/watch/checkpoint_source.h"
#include "evaluator/watch/sightings.h"

#include <stddef.h>

/* zero: empty */
struct checkpoint_listing {
    struct sighting_seen *items; /* ascending by step, then name; the names are owned here */
    size_t count, capacity;
    char loop[CHECKPOINT_NAME_MAX]; /* a name that is a symbolic link to itself; "": none */
    size_t names;                   /* while none is known and listed: how many names are there */
    char near[CHECKPOINT_NAME_MAX]; /* the one of them that comes closest to the pattern; "": none */
    size_t distance;                /* of that one, in letters; 0: it matches, but is no directory, as it must be */
    struct error unsure;            /* code not OK: why some name could not be looked at, and may be missing here */
};

/* Lists the directory, on which fd is open, into *out, which is empty. Looking through many directories is slow: of
 * those that `known` (NULL: none) lists as opened, each call looks through only the part that `turn`, the number of the
 * listing, selects. wall: now, for ages. ERR_IO: it cannot be listed (e->system is ENOENT if it is gone); ERR_NOMEM. */
int checkpoint_listing_read(struct checkpoint_listing *out, const struct checkpoint_source *s, const char *directory,
                            int fd, const struct sightings *known, size_t turn, double wall, struct error *e);
/* Adds one that is known, as it was, of that age; ERR_NOMEM. sort: to be called after that. */
int checkpoint_listing_keep(struct checkpoint_listing *rows, const struct sighting *item, double age, struct error *e);
void checkpoint_listing_sort(struct checkpoint_listing *rows);
void checkpoint_listing_release(struct checkpoint_listing *rows);

#endif
