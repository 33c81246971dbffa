/*
 * saved_points.h - points that an earlier process has saved, where they are read from when they are asked for: a file,
 * of which only the wanted bytes are read, or memory. They are believed only with their checksum; meanwhile the file
 * may be cut, replaced or removed.
 *
 * Shared by reference counts; any thread.
 */
#ifndef EVENTLOG_SERVER_STORE_SAVED_POINTS_H
#define EVENTLOG_SERVER_STORE_SAVED_POINTS_H

#include "eventlog/server/store/point_series.h"

#include <stddef.h>
#include <stdint.h>

/* What is known of a settled series without its rows, and where they are, as point_series_save_block() gives them. */
struct saved_place {
    uint64_t rows, offset, length;
    int64_t last_step;
    double latest;
    uint64_t most_blobs;
    uint32_t crc; /* CRC-32C of all blocks */
};

struct saved_points;

struct saved_points *saved_points_of_file(const char *path);            /* copied; NULL: no memory */
struct saved_points *saved_points_of_bytes(struct shared_bytes *bytes); /* kept; NULL: no memory */
struct saved_points *saved_points_keep(struct saved_points *s);         /* returns s */
void saved_points_drop(struct saved_points *s);                         /* NULL is fine */

/* The series, all of whose members are set. 1, and point_series_release() it; 0: it is not there. */
int saved_points_read(const struct saved_points *s, const struct saved_place *place, size_t columns,
                      struct point_series *out);

/* The same of its bytes, in `of` or to be copied (NULL); their checksum has been looked at. Pure. */
int saved_points_take(const struct saved_place *place, const uint8_t *bytes, size_t columns, struct shared_bytes *of,
                      struct point_series *out);

#endif
