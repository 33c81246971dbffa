/*
 * run_cache.h - the bytes of a cache file: one run as it has been read, and how far each of its files has been read, so
 * that a later process continues there. Numbers are little-endian, texts have their length before them.
 *
 *     points: of each part of each series its blocks, as point_series_save_block() gives them
 *     index: magic (8), version (4), merge (4), name of the run
 *         number of files; of each: path, struct event_reader_place, struct run_file
 *         writers, start time, number of points
 *         number of tags; of each: tag, struct series_info, and of each part: rows, last step, latest time, most blobs,
 *         length of its points, their CRC-32C
 *     length of the index (8), CRC-32C of the index and this length (4)
 *
 * From the index alone all can be told but the points, and these can be read by series, so that a start need not read
 * them. Nothing is taken from a file that is damaged, cut, longer, of another version or of another run. Pure; writing
 * takes 64 KiB.
 */
#ifndef EVENTLOG_SERVER_RUN_CACHE_H
#define EVENTLOG_SERVER_RUN_CACHE_H

#include "base/error.h"
#include "eventlog/read/event_reader.h"
#include "eventlog/server/store/run_data.h"

#include <stddef.h>
#include <stdint.h>

enum { RUN_CACHE_VERSION = 3, RUN_CACHE_END = 12 /* length and CRC of the index */ };

struct run_cache_file {
    char *path;
    struct event_reader_place place;
    uint64_t note; /* the caller's */
};

/* Takes n bytes. 0, or anything else: writing has failed, and ends. */
typedef int run_cache_write_function(void *context, const void *bytes, size_t n);

/* Writes the run, whose files are these in the order of their numbers. OK; ERR_IO: write failed; ERR_NOMEM. */
int run_cache_write(struct run_data *run, const struct run_cache_file *files, size_t count,
                    run_cache_write_function *write, void *context, struct error *e);

struct run_cache {
    struct run_data *run;
    struct run_cache_file *files;
    size_t count;
    struct run_view *view; /* of run_cache_preview() */
};

/* Reads a run from all its bytes; name: of the run, or NULL: as it was saved. of: what the bytes are in; the run's
 * points stay there, and keep it. NULL: they are copied. On OK *out is yours: run_cache_release() it, or take its run.
 * ERR_CORRUPT: throw the file away. ERR_NOMEM. */
int run_cache_read(struct run_cache *out, const char *name, int merge, const uint8_t *bytes, size_t size,
                   struct shared_bytes *of, struct error *e);
void run_cache_release(struct run_cache *c);

/* The bytes of the index and what follows it, from the last RUN_CACHE_END of a run's `size` bytes. 0: none. */
uint64_t run_cache_index_size(const uint8_t end[RUN_CACHE_END], uint64_t size);

/* What is known of a saved run by its index: its files, and a view whose points are in `points` until they are asked
 * for (NULL: it has no event yet); the run itself holds none, and can only be released. index: the last index_size of
 * its `size` bytes, which begin at `offset` in points. As run_cache_read(); also ERR_CORRUPT if points of several files
 * must be merged first. */
struct run_cache_place {
    struct saved_points *points;
    uint64_t offset, size;
};
int run_cache_preview(struct run_cache *out, const char *name, int merge, const uint8_t *index, size_t index_size,
                      const struct run_cache_place *place, struct error *e);

#endif
