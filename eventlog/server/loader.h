/*
 * loader.h - the thread that keeps a snapshot up to date with the files: it finds runs, reads what is new in each, with
 * as many threads as there are processors, and puts new views in place, early while much is to be read. It waits for
 * notifications of the file system, and looks at everything from time to time, since some changes are not notified.
 *
 * Before it: what is left of a large file, read in pieces by all threads.
 */
#ifndef EVENTLOG_SERVER_LOADER_H
#define EVENTLOG_SERVER_LOADER_H

#include "base/error.h"
#include "eventlog/read/event_reader.h"
#include "eventlog/server/log_roots.h"
#include "eventlog/server/store/run_data.h"
#include "eventlog/server/store/snapshot.h"

#include <stddef.h>
#include <stdint.h>

/* ---- file pieces ------------------------------------------------------------------------------------------------- */

/*
 * Reads much of a large file into a run by several threads: they find records, verify CRCs and decode
 * pieces of the file, and the caller's thread adds what they found, in the order of the file. The run, what is told of
 * damage and the reader are the same afterwards as if the reader alone had come so far (event_reader_piece()).
 *
 * What is at hand meanwhile: a few pieces, with 24 bytes for each number and all bytes of other values.
 */

#define FILE_PIECES_LENGTH ((uint64_t)4 << 20) /* bytes: worth a thread */

struct file_pieces {
    uint64_t length; /* of a piece, at least */
    void *context;
    void (*damage)(void *context, const struct event_damage *damage); /* but not its data */
    int (*go_on)(void *context);                                      /* after each piece; 0: read no more */
};

/* Reads on with the reader, whose events are those of file number `file` of the run. It stops before the last pieces,
 * where two do not fit together, and where there is no memory or descriptor for one; then event_reader_next() goes on.
 * OK; RUN_DATA_AGAIN or ERR_NOMEM as run_data_event(): the run must be restarted. */
int file_pieces_read(const struct file_pieces *f, struct event_reader *reader, struct run_data *run, size_t file,
                     const char *path, struct error *e);

/* ---- loader ------------------------------------------------------------------------------------------------------ */

enum loader_level { LOADER_WARNING, LOADER_INFO };

struct loader_options {
    const struct log_root *roots; /* borrowed until loader_stop() */
    size_t root_count;
    double reload; /* seconds between rounds, at least LOADER_PAUSE_LEAST are kept; < 0: one round only */
    int merge;     /* as run_data_new() */
    int follow_links;
    int report;  /* 1: what is lost is shown as a run, too */
    int notify;  /* 0: never wait for notifications */
    int threads; /* 0: as many as there are processors */
    /* Called from several threads, but by one at a time. */
    void (*message)(void *context, enum loader_level level, const char *text);
    void *context;
};

#define LOADER_PAUSE_LEAST 0.2

struct loader_progress {
    size_t runs;
    uint64_t points; /* read since the start */
    uint64_t bytes;  /* of files, read since the start */
    uint64_t rounds; /* completed */
};

struct loader;

/* The snapshot must live longer. On OK *out is yours: loader_stop() it. */
int loader_start(struct loader **out, const struct loader_options *options, struct snapshot *snapshot, struct error *e);
struct loader_progress loader_progress(struct loader *l);
void loader_stop(struct loader *l); /* waits for its threads; NULL is fine */

#endif
