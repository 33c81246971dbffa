/*
 * cache_pack.h - one file for all small runs of a log, because opening a file for each takes longer than reading what
 * is in it.
 *
 *     magic (8), version (4), merge (4)
 *     of each run: length (8), masked CRC of these 8 bytes (4), and the bytes of run_cache.h, which have their own CRC
 *
 * Where a length is wrong the file ends; a run that is damaged is left out. A file that was cut has fewer runs.
 */
#ifndef EVENTLOG_SERVER_CACHE_PACK_H
#define EVENTLOG_SERVER_CACHE_PACK_H

#include "base/buffer.h"
#include "eventlog/server/cache_files.h"

#include <stddef.h>
#include <stdint.h>

enum { CACHE_PACK_RUN_MOST = 16 * 1024, CACHE_PACK_MOST = 64 * 1024 * 1024 }; /* bytes of a run, of all of them */

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct cache_pack {
    struct shared_bytes *bytes;
    struct saved_points *points; /* all of them, for cache_pack_preview() */
    size_t *runs, count;         /* where their bytes begin, after their length */
};

/* What the bytes hold, which are kept. OK, ERR_CORRUPT, ERR_NOMEM; cache_pack_release() it in any case. */
int cache_pack_index(struct cache_pack *p, struct shared_bytes *bytes, int merge, struct error *e);

/* log: which one, and all that the file is named by. Anything but OK: there is none, and nothing to release. */
int cache_pack_read(const struct cache_files *c, struct cache_pack *p, const char *log, int merge, struct error *e);
void cache_pack_release(struct cache_pack *p);

/* Run number i, as run_cache_read(). Several threads may each read another one. */
int cache_pack_run(const struct cache_pack *p, size_t i, int merge, struct run_cache *out, struct error *e);
/* The same by run_cache_preview(); the view keeps the bytes. */
int cache_pack_preview(const struct cache_pack *p, size_t i, int merge, struct run_cache *out, struct error *e);

/* ---- writing --------------------------------------------------------------------------------------------------- */

struct cache_pack_writing {
    struct cache_file file;
    struct buffer run; /* one run's bytes */
    int merge, rc;
};

/* As cache_file_begin(). */
int cache_pack_begin(struct cache_pack_writing *w, struct cache_files *c, const char *log, int merge, struct error *e);
/* 1: it is in, or writing has failed, which cache_pack_end() tells. 0: it is too large, or the file would be. */
int cache_pack_add(struct cache_pack_writing *w, struct run_data *run, const struct run_cache_file *files,
                   size_t count);
int cache_pack_end(struct cache_pack_writing *w, struct error *e); /* as cache_file_end() */

#endif
