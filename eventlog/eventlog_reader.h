/* eventlog_reader.h - the second half of eventlog.h, which programs include: what reads. Installed, the two are one. */
#ifndef EVENTLOG_EVENTLOG_H
#include "eventlog/eventlog.h" /* and with it this */
#elif !defined EVENTLOG_EVENTLOG_READER_H
#define EVENTLOG_EVENTLOG_READER_H

/*
 * ---- reading --------------------------------------------------------------------------------------------------------
 * A reader returns the events of one file or of a whole log directory, one after the other, and then those that are
 * added: bytes, files, runs. A run is a directory with event files (regular files with "tfevents" in their name); its
 * name is its path below the given directory, with '/', or "." for that directory itself or a single file. Runs come in
 * the order of their names, files of a run in the order of theirs; later additions come in the order in which they are
 * found.
 *
 * Files may be compressed with gzip, with zstd if the library was built with it, and with xz or bzip2; ".gz", ".zst",
 * ".xz" and ".bz2" at the end of a name are ignored, so a file that is compressed while the reader is at work is not
 * read again, and of "x" and "x.gz" side by side only "x" is read. A path may also be a tar file, compressed or not, or
 * a zip file, which is read like the directory that was packed. For these, and for xz and bzip2, libarchive.so.13 is
 * loaded when the first one is met; without it they are errors. All of these count as finished: each is unpacked when
 * it is opened, into a temporary file without a name in the directory given by TMPDIR in the environment (or /tmp), and
 * is not checked again. Offsets are those of the unpacked bytes. A path "-" is a file of that name.
 *
 * An incomplete record at the end of a file is waited for, and so are zeros there. Damage is reported and skipped: a
 * wrong data CRC loses that record, a wrong header everything up to the next valid header. Memory: the tags, and the
 * largest record; points are not kept. The most recently changed files stay open, at most 64 and at most 1/16 of the
 * descriptors that the process may have: such a file is read to its end even if it is renamed or removed while being
 * written. The others are opened again when they have changed.
 *
 * One reader is for one thread at a time; several readers are independent. All pointers that it returns are its own and
 * valid until the next call of eventlog_reader_next(), unless stated otherwise.
 */
struct eventlog_reader;

/* all zero, or NULL: everything */
struct eventlog_reader_options {
    const char *const *runs; /* shell patterns; a run's name must match one (fnmatch: * also matches '/') */
    size_t run_count;        /* 0: all runs */
    const char *const *tags; /* the same for tags: values of other tags, and events without values, are skipped */
    size_t tag_count;
    int has_first_step, has_last_step;
    int64_t first_step, last_step; /* inclusive; values at other steps, and events without values, are skipped */
    int numbers_only;              /* only events with points of scalar series */
    int records_only;              /* records are returned without reading their data; no filter except runs */
};

/* what eventlog_reader_next() found */
enum eventlog_read {
    EVENTLOG_READ_END = 0,       /* nothing more for now; a later call looks again */
    EVENTLOG_READ_EVENT = 1,     /* eventlog_reader_event(), and its values */
    EVENTLOG_READ_DAMAGE = 2,    /* eventlog_reader_damage(), in the run and file of eventlog_reader_event() */
    EVENTLOG_READ_RESTARTED = 3, /* a file of the run that eventlog_reader_event() names was truncated or replaced, or
                                  * all its files are gone: the events of the run returned so far no longer count, its
                                  * series are freed, and the run is read again from its start */
};

/* path: a directory, an event file or an archive. options are copied. On OK *out is yours: eventlog_reader_close(). */
int eventlog_reader_open(struct eventlog_reader **out, const char *path, const struct eventlog_reader_options *options,
                         struct eventlog_error *error);
void eventlog_reader_close(struct eventlog_reader *reader); /* NULL is fine */

/* An enum eventlog_read, or negative: EVENTLOG_ERROR_MEMORY, or EVENTLOG_ERROR_IO: a file or directory cannot be read,
 * or a file is not an event file. Further calls continue with the others and try it again after the next end (a file
 * that is not an event file only once it has changed). */
int eventlog_reader_next(struct eventlog_reader *reader, struct eventlog_error *error);

/* After an end: sleeps until something may have changed, at most `seconds`. 1: it may have; 0: the time is over;
 * EVENTLOG_ERROR_IO: a signal handler ran. Changes by other machines on a network file system, and to files behind
 * symbolic links, are not noticed: call next after a while in any case. */
int eventlog_reader_wait(struct eventlog_reader *reader, double seconds, struct eventlog_error *error);

/* The descriptor on which the reader waits, for poll(): readable when something may have changed, and no longer once
 * next has returned an end. Get it first, then call next until the end, then poll. -1 if the system has no more of
 * them: then call next from time to time. It belongs to the reader: do not read from it or close it. */
int eventlog_reader_descriptor(struct eventlog_reader *reader);

/* what an event holds, with its number in TensorBoard's Event message */
enum eventlog_what {
    EVENTLOG_EVENT_NOTHING = 0,
    EVENTLOG_EVENT_FILE_VERSION = 3,
    EVENTLOG_EVENT_GRAPH = 4,
    EVENTLOG_EVENT_VALUES = 5,
    EVENTLOG_EVENT_MESSAGE = 6,
    EVENTLOG_EVENT_SESSION = 7,
    EVENTLOG_EVENT_RUN_METADATA = 8,
    EVENTLOG_EVENT_META_GRAPH = 9,
    EVENTLOG_EVENT_RECORD = -1, /* with records_only: not read, wall_time and step are 0 */
};

struct eventlog_event {
    const char *run, *file; /* name of the run, path of the file; until close or RESTARTED */
    enum eventlog_what what;
    int64_t step;
    double wall_time; /* seconds since 1970, finite */
    uint64_t offset;  /* where the record starts in the file */
    const void *data; /* length bytes: the record's data, a serialized tensorboard.Event */
    size_t length;
    const void *payload; /* payload_length bytes of it: file version, GraphDef, MetaGraphDef, the serialized
                              * SessionLog, LogMessage or TaggedRunMetadata; NULL with values */
    size_t payload_length;
};

/* The event that eventlog_reader_next() has found; for damage and a restart, the run and the file that they are in. */
const struct eventlog_event *eventlog_reader_event(const struct eventlog_reader *reader);

enum eventlog_damage_kind {
    EVENTLOG_DAMAGE_LENGTH_CRC, /* of a header: everything up to the next valid header is lost */
    EVENTLOG_DAMAGE_DATA_CRC,   /* the record is lost, here and below */
    EVENTLOG_DAMAGE_TOO_LONG,   /* over 256 MiB */
    EVENTLOG_DAMAGE_PROTO,      /* not an Event message */
    EVENTLOG_DAMAGE_WALL_TIME,  /* NaN or infinite */
    EVENTLOG_DAMAGE_UTF8,       /* a text is not UTF-8, and TensorBoard gives up on the file; the event comes next */
    EVENTLOG_DAMAGE_STREAM,     /* a compressed file is damaged or truncated: the rest is lost */
};

struct eventlog_damage {
    enum eventlog_damage_kind kind;
    uint64_t offset;        /* where the record starts in the file */
    uint64_t found, wanted; /* CRCs or lengths; PROTO: found is the offset in the data */
    const char *text;       /* a sentence for people, without the file */
};

/* The damage that eventlog_reader_next() has found. */
const struct eventlog_damage *eventlog_reader_damage(const struct eventlog_reader *reader);

/* of the files that exist now, as far as they have been read */
struct eventlog_reader_totals {
    uint64_t runs, files;
    uint64_t records;    /* sound ones */
    uint64_t damaged;    /* how often damage was reported */
    uint64_t lost;       /* bytes skipped because of broken framing */
    uint64_t unfinished; /* files that end inside a record: being written, or truncated */
};

/* The current figures of the reader. */
struct eventlog_reader_totals eventlog_reader_totals(const struct eventlog_reader *reader);

/* A series is a tag of a run; its first value says what it is. Valid until close or RESTARTED of its run. */
struct eventlog_series {
    const char *run;
    const char *tag; /* tag_length bytes, then a NUL; may hold NULs and bytes that are not UTF-8 */
    size_t tag_length;
    const char *plugin; /* "scalars", "images", ...; "" if none is named. Legacy values imply theirs */
    const char *display_name, *description; /* "" where there is none; Markdown */
    const void *plugin_content;             /* plugin_content_length bytes */
    size_t plugin_content_length;
};

/* of a value */
enum eventlog_kind {
    EVENTLOG_KIND_OTHER,     /* without content, or of a form that no plugin shows */
    EVENTLOG_KIND_SCALAR,    /* number */
    EVENTLOG_KIND_HISTOGRAM, /* eventlog_reader_histogram() */
    EVENTLOG_KIND_IMAGE,     /* eventlog_reader_blobs(), here and for the next two */
    EVENTLOG_KIND_AUDIO,
    EVENTLOG_KIND_TEXT,
    EVENTLOG_KIND_TENSOR, /* eventlog_reader_tensor() */
};

/* how the file holds it, with its number in TensorBoard's Value message */
enum eventlog_stored {
    EVENTLOG_STORED_NOTHING = 0,
    EVENTLOG_STORED_SIMPLE_VALUE = 2,
    EVENTLOG_STORED_OLD_HISTOGRAM = 3,
    EVENTLOG_STORED_IMAGE = 4,
    EVENTLOG_STORED_HISTOGRAM = 5,
    EVENTLOG_STORED_AUDIO = 6,
    EVENTLOG_STORED_TENSOR = 8,
};

enum { EVENTLOG_DTYPE_STRING = 7, EVENTLOG_DTYPE_BFLOAT16 = 14 }; /* beside enum eventlog_dtype, in files of others */

struct eventlog_value {
    const struct eventlog_series *series;
    enum eventlog_kind kind;
    int64_t step;
    double wall_time;
    double number; /* of a scalar; an integer beyond 2^53 is rounded */
    enum eventlog_stored stored;
    int dtype;        /* of a tensor or simple_value, TensorFlow's number; else 0 */
    const void *data; /* length bytes: the serialized Summary.Value */
    size_t length;
};

/* The next value of the current event that passes the filters, NULL after the last. */
const struct eventlog_value *eventlog_reader_value(struct eventlog_reader *reader);

/* The contents of the current value. Results are valid until the next call of one of these functions or of next.
 * EVENTLOG_ERROR_ARGUMENT: it is of another kind; EVENTLOG_ERROR_CORRUPT: its contents do not match its shape. */
struct eventlog_tensor {
    int dtype;
    size_t rank, elements; /* elements: the product of the shape */
    const int64_t *shape;  /* rank lengths */
    const void *data;      /* `bytes` bytes: the elements row by row, little-endian; NULL for strings */
    size_t bytes;
    const struct eventlog_bytes *strings; /* string_count of them, for DT_STRING; NULL for numbers */
    size_t string_count;
};

/* The shape and the elements of the current value, a tensor of any type. */
int eventlog_reader_tensor(struct eventlog_reader *reader, struct eventlog_tensor *out, struct eventlog_error *error);

/* count values from left up to right */
struct eventlog_bucket {
    double left, right, count;
};

/* The buckets of a histogram of either generation. Legacy ones are as TensorBoard shows them: without empty buckets at
 * the ends, from the smallest to the largest value. */
int eventlog_reader_histogram(struct eventlog_reader *reader, const struct eventlog_bucket **buckets, size_t *count,
                              struct eventlog_error *error);

struct eventlog_blobs {
    const struct eventlog_bytes *items; /* encoded image files; WAV files; texts, row by row */
    size_t count;
    int64_t width, height; /* of images, as recorded with them; else 0 */
};

/* The pictures, clips or texts of the current value. */
int eventlog_reader_blobs(struct eventlog_reader *reader, struct eventlog_blobs *out, struct eventlog_error *error);

/*
 * All points of a log at once, by series: those in the files now, at 24 bytes per point in memory. The result never
 * changes, so several threads may read it.
 */
struct eventlog_points;

struct eventlog_point {
    int64_t step;
    double wall_time, value;
};

enum eventlog_view {
    EVENTLOG_VIEW_ALL,         /* every point of the files, in reading order */
    EVENTLOG_VIEW_TENSORBOARD, /* what TensorBoard's default loader, its data server, would hold without sampling: steps
                                * rise strictly, because a value removes earlier ones at its step or later; a file
                                * counts up to the first record that the loader rejects, which a record with a wrong
                                * data CRC is only if it is no longer an event */
    EVENTLOG_VIEW_SESSION,     /* points still valid after restarts: a session start at a step removes the run's earlier
                                * points at that step or later */
};

/* path and options as for a reader (records_only is ignored; with numbers_only there are no series without points).
 * *out is yours: eventlog_points_free() it. Damage is skipped and counted, points at infinite wall times are left out;
 * EVENTLOG_ERROR_IO if a file cannot be read. A file of 400 MiB and more is read by as many threads as the process may
 * use cores; they block all signals, and have ended when it returns. */
int eventlog_points_read(struct eventlog_points **out, const char *path, enum eventlog_view view,
                         const struct eventlog_reader_options *options, struct eventlog_error *error);
void eventlog_points_free(struct eventlog_points *points); /* NULL is fine */

/* Runs by name, including those without points: index from 0; NULL after the last. */
const char *eventlog_points_run(const struct eventlog_points *points, size_t index);
/* Series by run and tag, both as bytes, including those without points: index from 0; NULL after the last. Valid until
 * eventlog_points_free(), like all of these. */
const struct eventlog_series *eventlog_points_series(const struct eventlog_points *points, size_t index);
/* The points of a series, *count of them (may be 0). */
const struct eventlog_point *eventlog_points_of(const struct eventlog_points *points, size_t index, size_t *count);
/* Finds the series of this run and tag: 1 and its index in *index, or 0. */
int eventlog_points_find(const struct eventlog_points *points, const char *run, const char *tag, size_t *index);
/* How often damage was skipped while reading. */
uint64_t eventlog_points_damaged(const struct eventlog_points *points);

#endif
