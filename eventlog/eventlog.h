/*
 * eventlog.h - the public interface of libeventlog: writes event files that an unmodified TensorBoard shows, and reads
 * event files of any writer, finished or growing.
 *
 * The only header that users need; usable from C11 and C++. Functions return EVENTLOG_OK (0) or a negative
 * EVENTLOG_ERROR_*, with a message in *error (which may be NULL). Nothing here prints, exits or installs handlers.
 */
#ifndef EVENTLOG_EVENTLOG_H
#define EVENTLOG_EVENTLOG_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header, for #if. */
#define EVENTLOG_VERSION_MAJOR 0
#define EVENTLOG_VERSION_MINOR 1
#define EVENTLOG_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) /* libeventlog.so exports exactly these functions */
#endif

enum {
    EVENTLOG_OK = 0,
    EVENTLOG_ERROR_IO = -1,      /* the operating system refused a call; eventlog_error.system is errno */
    EVENTLOG_ERROR_CORRUPT = -2, /* a file breaks its format */
    EVENTLOG_ERROR_MEMORY = -3,
    EVENTLOG_ERROR_ARGUMENT = -4, /* a tag that is not UTF-8, a wall time that is NaN, ... */
};

struct eventlog_error {
    int code;
    int system;        /* errno, or 0 */
    char message[480]; /* one line, no newline */
};

/* The version of the library that the program runs with: "0.1.0". A newer one has all that an older header declares. */
const char *eventlog_version(void);

/*
 * A writer appends to an event file of its own. The first record (brain.Event:2) is in the file when open returns. Only
 * whole records are written; after a failed append the file is truncated to the last whole record, and the writer can
 * be used again once there is room. One writer is for one thread at a time, unless it has a queue (queue_bytes): then
 * all functions except close may be called from any thread at any time. A writer belongs to the process that opened it:
 * in a forked child its functions fail with EVENTLOG_ERROR_ARGUMENT and write nothing; the child must open its own.
 *
 * If the event file or its directory is deleted, moved or replaced, the next flush, sync, rotation or close notices it,
 * and other writes notice it within a second. The writer makes the directory and a new file, copies everything from the
 * old file, which it still has open, and continues there. The call that noticed it returns EVENTLOG_ERROR_IO once, with
 * a message; do not repeat its event. A file that was moved has the same events: readers of both see them twice. While
 * no new file can be made, flush and sync fail, events go to the old file and count as lost, and the writer tries again
 * at each flush and each second. Lost for good are events in files that rotation had closed, events not copied before
 * close, and on NFS those in a file that another host deleted. With options->leave_lost the writer does not make a lost
 * file again by itself.
 */
struct eventlog_writer;

/* when events survive a power cut, not only the end of the program */
enum eventlog_sync {
    EVENTLOG_SYNC_NEVER,    /* when the system writes them, or after eventlog_writer_sync() */
    EVENTLOG_SYNC_AT_FLUSH, /* eventlog_writer_flush() and close sync too */
    EVENTLOG_SYNC_EVERY,    /* sync at most sync_seconds after a write, and at close */
};

/* if the directory already has event files of this run */
enum eventlog_resume {
    EVENTLOG_RESUME_NEW,
    EVENTLOG_RESUME_APPEND,
    EVENTLOG_RESUME_PURGE,
};

enum eventlog_when_full { EVENTLOG_WHEN_FULL_WAIT, EVENTLOG_WHEN_FULL_DROP };

/* all zero, or NULL: the defaults */
struct eventlog_writer_options {
    size_t buffer_bytes;  /* events are buffered up to this many bytes before a write; default 65536 */
    double flush_seconds; /* ... and no longer than this since the last write, checked at each call; default 2 */
    const char *suffix;   /* added to the file's name, for example ".train"; default none */
    const char *source;   /* source_metadata.writer; default "evalboard" */

    enum eventlog_sync sync;
    double sync_seconds; /* for EVENTLOG_SYNC_EVERY: > 0, checked at each call; with a queue by its thread */

    /* Rotation: starts a new file before this one exceeds rotate_bytes, or when it is older than rotate_seconds and
     * another event comes; 0: never. The new file begins with its own first record and metadata, and its name sorts
     * after that of the old one, which is complete and closed by then. TensorBoard shows one series across the files:
     * its default loader follows all files of a run, the Python one (--load_fast=false) moves on to the next when it
     * has read a file. If no new file can be made, the old one is used further, and the writer tries again after ten
     * seconds at the earliest. */
    uint64_t rotate_bytes;
    double rotate_seconds;

    /*
     * NEW: a new file; older ones stay unchanged. If points are logged again at steps that older files have,
     * TensorBoard's default loader drops the older points of each tag from the first new step on; the Python one shows
     * both.
     * APPEND: appends to the newest file by name, after reading through it once, or makes one if there is none. If its
     * tail is torn, as a crash can leave it, the tail is cut off and a new file is made anyway: a running TensorBoard
     * may have read half of the record and would give up on the file if other bytes followed. A file that a writer has
     * open is refused with EVENTLOG_ERROR_IO, system EBUSY: writers of this library lock their file (flock); other
     * writers are detected through the kernel, on this machine and not on NFS or SMB. A living child that the old
     * process forked counts as a writer. A file with damage before its end is refused with EVENTLOG_ERROR_CORRUPT:
     * `eventlog repair` it, or use NEW.
     * PURGE: a new file that hides the points at steps >= purge_step, for training that restarts from a checkpoint. The
     * Python loader drops them all, at two SessionLog START events. The default loader ignores these events: it drops
     * the old points of a tag from the first step at which the tag is logged again, so the old points of a tag that is
     * not logged again stay, and so do points between purge_step and that first step.
     */
    enum eventlog_resume resume;
    int64_t purge_step;

    /*
     * A queue with its own thread: calls put events in memory, up to queue_bytes (0: no queue; at least buffer_bytes),
     * and return; the thread writes them. When the queue is full, WAIT waits until some have been written, or refuses
     * the event with EVENTLOG_ERROR_IO if writing fails; DROP never waits: the event is counted as dropped and the call
     * returns EVENTLOG_OK. The next flush, sync or close waits for the thread and returns its errors;
     * eventlog_writer_statistics() has them too. buffer_bytes and flush_seconds apply without further calls.
     */
    size_t queue_bytes;
    enum eventlog_when_full when_full;

    /* 1: a file that is deleted, moved or replaced is made again only by eventlog_writer_make_again(). Until then
     * flush, sync and close fail with EVENTLOG_ERROR_IO, system ENOENT, and events go to the old file, as if no new one
     * could be made. For programs with other files in the directory. 0: as described at struct eventlog_writer. */
    int64_t leave_lost;
};

/* Makes directory (with its parents) and a new file events.out.tfevents.<seconds>.<host>.<pid>.<n><suffix> in it (but
 * see options->resume). The name sorts after those of all event files there, so the seconds may be ahead of the clock.
 * On OK *out is yours until eventlog_writer_close(). options is copied. */
int eventlog_writer_open(struct eventlog_writer **out, const char *directory,
                         const struct eventlog_writer_options *options, struct eventlog_error *error);

/*
 * Where a writer's bytes go in the place of a directory: to an object store, a socket, another library. An object is
 * what a file would be. A function returns 0, or an errno (EIO if it has none), which makes the writer's call fail as a
 * file's would. One is called at a time, during the writer's calls, or with a queue by its thread; none may use that
 * writer. None is called in a forked child.
 */
struct eventlog_output {
    void *context;
    /* An object of this name begins. It has the form of a file's name and sorts after earlier ones, but comes again if
     * the first record of its object could not be written. It is valid during the call. *object is for the functions
     * below. NULL: there is one object, whose *object is context. */
    int (*begin)(void *context, const char *name, void **object);
    /* Takes all of the n bytes, whole records that follow those of earlier calls, or none. After an error the same
     * bytes come again, perhaps with more behind them. */
    int (*write)(void *object, const void *bytes, size_t n);
    /* All that was written must survive a power cut when it returns; as options->sync says. NULL: it does already. */
    int (*sync)(void *object);
    /* Nothing follows: the object is complete, or, where its first record could not be written, of no use. Called once
     * for each that was begun, at close or after a rotation has begun the next one. May be NULL. */
    int (*end)(void *object);
};

/* Opens a writer whose files are objects of *output, which is copied; context must live until close. The bytes are
 * those of files, and all functions work but eventlog_writer_projector(). EVENTLOG_ERROR_ARGUMENT: options->resume is
 * APPEND, leave_lost is set, or there is rotation without `begin`. eventlog_writer_path() is the object's name. */
int eventlog_writer_open_output(struct eventlog_writer **out, const struct eventlog_output *output,
                                const struct eventlog_writer_options *options, struct eventlog_error *error);

/* Opens a writer whose file is in memory, without rotation; else as eventlog_writer_open_output(). Without memory for
 * more, writing fails with EVENTLOG_ERROR_IO, system ENOMEM. What was not taken is freed at close. */
int eventlog_writer_open_memory(struct eventlog_writer **out, const struct eventlog_writer_options *options,
                                struct eventlog_error *error);
/* Flushes, and hands over the bytes since the last call, or since open: whole records, of which the first call has the
 * first. All of them one after the other are the file. *bytes are *n bytes, yours to eventlog_free(); NULL and 0 if
 * there is nothing new. EVENTLOG_ERROR_ARGUMENT: the writer is not one of eventlog_writer_open_memory(). */
int eventlog_writer_take(struct eventlog_writer *writer, void **bytes, size_t *n, struct eventlog_error *error);

/* One point of a scalar series. tag: UTF-8, copied; wall_time: seconds since 1970, finite, or 0 for now; step: the
 * global step. NaN and infinite values are allowed. EVENTLOG_ERROR_IO: a write failed; events not yet in the file stay
 * buffered, up to 16 buffers, and the next call tries again; beyond that the event is refused. */
int eventlog_writer_scalar(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time, float value,
                           struct eventlog_error *error);

/* a point of a batch */
struct eventlog_scalar {
    uint64_t tag; /* its number among the tags of the call */
    int64_t step;
    double wall_time; /* seconds since 1970, or 0 for now */
    double value;     /* rounded to a float, as the format has it */
};

/* Writes n points, one after the other as eventlog_writer_scalar() would, for callers to which each call is
 * expensive: foreign languages, logs that are converted. Stops at the first error; *accepted (may be NULL) is how many
 * points are done with: go on with the next one, after EVENTLOG_ERROR_ARGUMENT with the one after that. */
int eventlog_writer_scalars(struct eventlog_writer *writer, const char *const *tags, size_t tag_count,
                            const struct eventlog_scalar *points, size_t n, size_t *accepted,
                            struct eventlog_error *error);

/* As eventlog_writer_scalars(), for callers that any signal interrupts, as interpreters are, and that end without
 * warning: a point that an earlier call has done with is passed over, and what waits is in the file on
 * return, unless writing fails or the file is an output; so it outlives the process. The points have the numbers first,
 * first + 1, ...; those below *done are done with, and *done grows with each, refused ones too. Call it again until
 * *done is first + n. One such call at a time. EVENTLOG_ERROR_ARGUMENT: the last point done with was refused; or, with
 * *done as it was, as of eventlog_writer_scalars(). n may be 0. */
int eventlog_writer_scalars_once(struct eventlog_writer *writer, const char *const *tags, size_t tag_count,
                                 const struct eventlog_scalar *points, size_t n, uint64_t first, uint64_t *done,
                                 struct eventlog_error *error);

/* Writes an event that is encoded already: the n bytes of a serialized tensorboard.Event with its own wall time and
 * step, of any kind, up to 1 GiB. For programs that have such messages, and values that have no function here, such as
 * the older forms that PyTorch writes. EVENTLOG_ERROR_ARGUMENT: a loader would give up on it; what its values mean is
 * not checked. */
int eventlog_writer_event(struct eventlog_writer *writer, const void *event, size_t n, struct eventlog_error *error);

/*
 * ---- the other kinds of values --------------------------------------------------------------------------------------
 * For all of them: tag is UTF-8, not empty, and used for a single kind within a run; tag, texts and arrays are only
 * read during the call. step, wall_time (0: now), errors and buffering are as for a scalar; an event may be up to 1 GiB
 * long, whatever buffer_bytes is. The metadata that tells readers the kind is written with every value; display_name
 * and description only with the first value of each tag in the file. EVENTLOG_ERROR_ARGUMENT if TensorBoard would hide
 * the value or stop: texts that are not UTF-8, a tag that this file has as another kind (scalars are not checked),
 * shapes that do not match. Then nothing is written.
 */
/* all zero, or NULL: the defaults */
struct eventlog_value_options {
    const char *display_name;   /* shown instead of the tag where the plugin does so */
    const char *description;    /* Markdown, shown beside the series */
    size_t buckets;             /* histograms: this many of equal width; 0: TensorFlow's limits, 10 % apart */
    const char *plugin;         /* tensors: the plugin that shows them; default "tensors", which TensorBoard itself does
                                 * not have */
    const void *plugin_content; /* tensors: plugin_content_length bytes for that plugin */
    size_t plugin_content_length;
    size_t thresholds;  /* PR curves from predictions; default 201 */
    uint64_t png_level; /* images from pixels or numbers: how PNG packs them, from 1, quick, to 12, small; 0: quick */
};

/* a file's contents */
struct eventlog_bytes {
    const void *data;
    size_t length;
};

/* The distribution of n finite values, for the tabs Histograms and Distributions. n may be 0. By default the buckets
 * are those of TensorFlow's histograms (limits 1e-12 * 1.1^k and their negatives, and 0; from the smallest to the
 * largest value, with runs of empty buckets joined); with options->buckets = k there are k of equal width between the
 * smallest and the largest value, as tf.summary.histogram writes them with k = 30. */
int eventlog_writer_histogram_floats(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                                     const float *values, size_t n, const struct eventlog_value_options *options,
                                     struct eventlog_error *error);
int eventlog_writer_histogram_doubles(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                                      const double *values, size_t n, const struct eventlog_value_options *options,
                                      struct eventlog_error *error);
/* Buckets of your own: bucket i of n holds counts[i] values from edges[i] up to edges[i + 1] (n + 1 edges, finite, not
 * descending; counts finite, not negative). */
int eventlog_writer_histogram_buckets(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                                      const double *edges, const double *counts, size_t n,
                                      const struct eventlog_value_options *options, struct eventlog_error *error);

/* One text, shown as Markdown. */
int eventlog_writer_text(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                         const char *text, const struct eventlog_value_options *options, struct eventlog_error *error);
/* A table: rows x columns cells, row by row, each in Markdown; columns 0: a list of `rows` texts. rows > 0. */
int eventlog_writer_text_table(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                               const char *const *cells, size_t rows, size_t columns,
                               const struct eventlog_value_options *options, struct eventlog_error *error);

/* TensorFlow's numbers of the element types that TensorBoard can read. */
enum eventlog_dtype {
    EVENTLOG_DTYPE_FLOAT = 1,
    EVENTLOG_DTYPE_DOUBLE = 2,
    EVENTLOG_DTYPE_INT32 = 3,
    EVENTLOG_DTYPE_UINT8 = 4,
    EVENTLOG_DTYPE_INT16 = 5,
    EVENTLOG_DTYPE_INT8 = 6,
    EVENTLOG_DTYPE_COMPLEX64 = 8,
    EVENTLOG_DTYPE_INT64 = 9,
    EVENTLOG_DTYPE_BOOL = 10, /* one byte each, 0 or 1 */
    EVENTLOG_DTYPE_UINT16 = 17,
    EVENTLOG_DTYPE_COMPLEX128 = 18,
    EVENTLOG_DTYPE_HALF = 19,
    EVENTLOG_DTYPE_UINT32 = 22,
    EVENTLOG_DTYPE_UINT64 = 23,
};

/* An array of numbers, row-major: shape has rank lengths (rank 0: one number), data has `bytes` bytes, little-endian,
 * exactly as many as shape and dtype need. It is listed under options->plugin with data class tensor; TensorBoard shows
 * it only if it has a plugin of that name that takes tensors ("mesh", "pr_curves", your own). */
int eventlog_writer_tensor(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                           enum eventlog_dtype dtype, const int64_t *shape, size_t rank, const void *data, size_t bytes,
                           const struct eventlog_value_options *options, struct eventlog_error *error);

/* A batch of n > 0 images: pixels (n, height, width, channels), row-major, 8 bits each. channels: 1 grey, 2 grey and
 * alpha, 3 RGB, 4 RGBA. They are packed as PNG; sides up to 65,536, an image up to 2^28 pixels. TensorBoard shows image
 * i of the batch as sample i. Here and for audio, the tag may not contain a quote, a backslash or a newline. */
int eventlog_writer_image(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                          const uint8_t *pixels, size_t n, size_t height, size_t width, size_t channels,
                          const struct eventlog_value_options *options, struct eventlog_error *error);
/* The same from numbers between 0 (dark) and 1; values outside are clamped, NaN is refused. */
int eventlog_writer_image_floats(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                                 const float *values, size_t n, size_t height, size_t width, size_t channels,
                                 const struct eventlog_value_options *options, struct eventlog_error *error);
/* n > 0 images that are already PNG, JPEG, GIF (even animated) or BMP files; the size of the first one is recorded. */
int eventlog_writer_image_encoded(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                                  const struct eventlog_bytes *images, size_t n,
                                  const struct eventlog_value_options *options, struct eventlog_error *error);

/* Audio clips > 0: samples (clips, frames, channels), between -1 and 1 (beyond is clipped, NaN refused); sample_rate in
 * Hz. Written as WAV files of 16 bits a sample. Always write the same number of clips: if a step of a tag has fewer
 * than another, TensorBoard's audio page fails for the missing sample. */
int eventlog_writer_audio(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                          const float *samples, size_t clips, size_t frames, unsigned channels, uint32_t sample_rate,
                          const struct eventlog_value_options *options, struct eventlog_error *error);
/* n > 0 clips that are already WAV files. */
int eventlog_writer_audio_encoded(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                                  const struct eventlog_bytes *clips, size_t n,
                                  const struct eventlog_value_options *options, struct eventlog_error *error);

/* Precision and recall over thresholds j / (thresholds - 1): labels[i] is 0 or not, predictions[i] between 0 and 1,
 * weights[i] >= 0 (NULL: 1 each). A prediction counts as positive from its threshold on. */
int eventlog_writer_pr_curve(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                             const uint8_t *labels, const float *predictions, const float *weights, size_t n,
                             const struct eventlog_value_options *options, struct eventlog_error *error);

/* each with one number per threshold, thresholds ascending */
struct eventlog_pr_counts {
    const double *true_positives, *false_positives, *true_negatives, *false_negatives;
    const double *precision, *recall; /* NULL: computed from the counts */
};

/* The same from counts >= 0; thresholds: how many, at least 2. */
int eventlog_writer_pr_curve_counts(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                                    const struct eventlog_pr_counts *counts, size_t thresholds,
                                    const struct eventlog_value_options *options, struct eventlog_error *error);

struct eventlog_mesh {
    size_t batch, vertex_count, face_count; /* batch > 0 meshes with as many vertices and faces each */
    const float *vertices;                  /* (batch, vertex_count, 3): x, y, z, finite */
    const int32_t *faces;                   /* (batch, face_count, 3): vertices of each triangle; NULL: points only */
    const uint8_t *colors;                  /* (batch, vertex_count, 3): red, green, blue; NULL: none */
    const char *config;                     /* JSON with three.js classes for camera, lights, material; NULL: "{}" */
};

/* Meshes or point clouds, as up to three values <tag>_VERTEX, <tag>_FACE, <tag>_COLOR; if one of them cannot be
 * written, the ones before it stay. */
int eventlog_writer_mesh(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                         const struct eventlog_mesh *mesh, const struct eventlog_value_options *options,
                         struct eventlog_error *error);

/*
 * Hyperparameters. A session is a run with a session start: one training with its settings. The experiment, written
 * once, usually to a run above those of the sessions (the log directory itself), says which settings and metrics the
 * tables show; without it TensorBoard shows what it finds. wall_time is also the time of creation, start or end. If a
 * run has several experiments, starts or ends, TensorBoard uses the first.
 */
enum eventlog_hparam_type { EVENTLOG_HPARAM_STRING = 1, EVENTLOG_HPARAM_BOOL = 2, EVENTLOG_HPARAM_NUMBER = 3 };

struct eventlog_hparam {
    const char *name;
    enum eventlog_hparam_type type;
    double number;    /* NUMBER: finite; BOOL: 0 or not */
    const char *text; /* STRING */
};

/* may all be NULL */
struct eventlog_session {
    const char *group; /* sessions of one group are repetitions; NULL: the run's name */
    const char *model_uri, *monitor_url;
};

struct eventlog_hparam_info {
    const char *name, *display_name, *description;
    enum eventlog_hparam_type type;
    const struct eventlog_hparam *values; /* the values that it can have (their names are ignored), or ... */
    size_t value_count;
    int has_interval; /* ... numbers from min to max, or 0: anything */
    double min, max;
};

enum eventlog_dataset { EVENTLOG_DATASET_UNKNOWN, EVENTLOG_DATASET_TRAINING, EVENTLOG_DATASET_VALIDATION };

/* the last point of a scalar series */
struct eventlog_metric_info {
    const char *group; /* the run below the session's run; NULL or "": the session's run itself */
    const char *tag, *display_name, *description;
    enum eventlog_dataset dataset;
};

struct eventlog_experiment {
    const char *name, *description, *user;
    const struct eventlog_hparam_info *hparams;
    size_t hparam_count;
    const struct eventlog_metric_info *metrics;
    size_t metric_count;
};

enum eventlog_session_status {
    EVENTLOG_SESSION_UNKNOWN,
    EVENTLOG_SESSION_SUCCESS,
    EVENTLOG_SESSION_FAILURE,
    EVENTLOG_SESSION_RUNNING
};

/* Writes the experiment. */
int eventlog_writer_experiment(struct eventlog_writer *writer, double wall_time,
                               const struct eventlog_experiment *experiment, struct eventlog_error *error);
/* Writes the start of a session with its n hyperparameters, whose names differ. session may be NULL. */
int eventlog_writer_session_start(struct eventlog_writer *writer, double wall_time,
                                  const struct eventlog_hparam *hparams, size_t n,
                                  const struct eventlog_session *session, struct eventlog_error *error);
/* Writes the end of the session, with its outcome. */
int eventlog_writer_session_end(struct eventlog_writer *writer, double wall_time, enum eventlog_session_status status,
                                struct eventlog_error *error);

/* Layout of the custom scalars dashboard: categories of charts; TensorBoard uses the last one of each run and merges
 * them by title. A chart has either tags or margins. */
/* a line with a band: three exact tags */
struct eventlog_margin {
    const char *value, *lower, *upper;
};

struct eventlog_chart {
    const char *title;
    const char *const *tags; /* regular expressions; all series whose tag begins with a match are lines */
    size_t tag_count;
    const struct eventlog_margin *margins;
    size_t margin_count;
};

struct eventlog_category {
    const char *title;
    const struct eventlog_chart *charts;
    size_t chart_count;
    int closed; /* shown folded */
};

/* Writes a layout of n categories. */
int eventlog_writer_layout(struct eventlog_writer *writer, double wall_time, const struct eventlog_category *categories,
                           size_t n, struct eventlog_error *error);

/* The run's graph, at step 0; a run has one. Names are paths, "block/conv"; an input is a node's name, "name:k" for its
 * k-th output, or "^name" for order only, and may come after the node that reads it. No single quotes. */
struct eventlog_node {
    const char *name;
    const char *operation; /* "Conv2D", ... */
    const char *const *inputs;
    size_t input_count;
    const char *device;   /* NULL: none; colours the node */
    const int64_t *shape; /* of the output, rank lengths, -1 if a length varies; NULL: unknown */
    size_t rank;
};

/* Writes a graph of n nodes. */
int eventlog_writer_graph(struct eventlog_writer *writer, double wall_time, const struct eventlog_node *nodes, size_t n,
                          struct eventlog_error *error);
/* Times and memory of one step for the graph: n bytes of a serialized tensorflow.RunMetadata. The tag ("step 100")
 * names it in the list and may not contain a quote, a backslash or a newline. */
int eventlog_writer_run_metadata(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time,
                                 const void *bytes, size_t n, struct eventlog_error *error);

/* Points for the embedding projector. */
struct eventlog_embedding {
    const char *name;    /* shown in the list; not empty, without ':', unique */
    const float *values; /* (points, dimensions), finite; dimensions > 1 */
    size_t points, dimensions;
    const char *const *labels;       /* (points, columns), or NULL: none. No tabs or line breaks; no label may be all
                                      * blank */
    const char *const *column_names; /* of the labels, if columns > 1 */
    size_t columns;
    const uint8_t *sprites; /* one picture per point, (points, height, width, channels) as for images; NULL: none */
    size_t sprite_height, sprite_width, sprite_channels;
};

/* Writes the run's embeddings, not as events but as files beside them: projector_config.pbtxt and, for embedding K,
 * projector_K.tsv, projector_K_labels.tsv, projector_K_sprites.png, each put there by rename, the config last. A later
 * call replaces them all; a running TensorBoard keeps what it has already read. The pictures of one embedding are laid
 * out in a square of at most 8192 x 8192 pixels, the limit of browsers. Not for two threads at once in one run. */
int eventlog_writer_projector(struct eventlog_writer *writer, const struct eventlog_embedding *embeddings, size_t n,
                              struct eventlog_error *error);

/* Passes all buffered events to the operating system, so that readers see them. */
int eventlog_writer_flush(struct eventlog_writer *writer, struct eventlog_error *error);
/* The same, and fsync: they survive a power cut. After a failed fsync they may not, whatever a later one returns. */
int eventlog_writer_sync(struct eventlog_writer *writer, struct eventlog_error *error);

/* Makes the directory and the file again if they were deleted, moved or replaced, with everything in the old file;
 * events still in memory follow with the next flush. For a writer with options->leave_lost; others do this by
 * themselves. EVENTLOG_OK also if the file is still at its path. EVENTLOG_ERROR_IO: it could not be made, or some
 * events are lost. */
int eventlog_writer_make_again(struct eventlog_writer *writer, struct eventlog_error *error);

/* The path of the current file. Borrowed until close, even after another file has followed. */
const char *eventlog_writer_path(const struct eventlog_writer *writer);

/* since open */
struct eventlog_writer_statistics {
    uint64_t events;                  /* accepted by a call: written = events - queued - lost */
    uint64_t queued;                  /* of these, still in memory */
    uint64_t dropped;                 /* refused or dropped because writing failed or was too slow, or memory ran out */
    uint64_t bytes;                   /* in files, first records included */
    uint64_t files;                   /* opened: the first one, rotations, and files made again */
    uint64_t writes, syncs;           /* calls of write() and fsync() of a file */
    uint64_t flushes;                 /* calls of eventlog_writer_flush() and eventlog_writer_sync() */
    uint64_t errors;                  /* of writing, syncing, making files; each attempt counts */
    struct eventlog_error last_error; /* the newest of them; code EVENTLOG_OK: none */
    uint64_t lost;                    /* of events: written to files that are gone, as of the last check */
};
/* Copies the current figures of the writer to *statistics. */
int eventlog_writer_statistics(struct eventlog_writer *writer, struct eventlog_writer_statistics *statistics,
                               struct eventlog_error *error);

/* Flushes, and frees the writer even if that fails. EVENTLOG_ERROR_IO: the message says whether events are lost, and
 * how many. NULL is fine. */
int eventlog_writer_close(struct eventlog_writer *writer, struct eventlog_error *error);

/* Without a writer, for any thread. Counts n values in the buckets edges[i] <= x < edges[i + 1], of which the last
 * has its right edge, too, as numpy.histogram() does: edge_count edges, at least 2, finite and not descending. Values
 * outside and NaN are left out. counts: edge_count - 1 of them, which are set. TensorFlow's default edges (0, and on
 * both sides of it 1e-12 times the powers of 1.1 that are below 1e20, by repeated multiplication) take a third of the
 * time of others. */
int eventlog_bucket_counts(const double *values, size_t n, const double *edges, size_t edge_count, uint64_t *counts,
                           struct eventlog_error *error);

/* The same of at least 1 value, and in the same pass *min and *max, the smallest and the largest of all values, also
 * of those that are not counted: both NaN if one of them is; of 0 and -0, which are equal, the first. */
int eventlog_bucket_counts_range(const double *values, size_t n, const double *edges, size_t edge_count,
                                 uint64_t *counts, double *min, double *max, struct eventlog_error *error);

/* Packs a picture of 8-bit pixels (height, width, channels), as of eventlog_writer_image(), as a PNG file. On OK
 * *bytes are *n bytes, yours to eventlog_free(). */
int eventlog_png(const uint8_t *pixels, size_t height, size_t width, size_t channels, void **bytes, size_t *n,
                 struct eventlog_error *error);
/* Frees what a function of this library said is yours to free this way. NULL is fine. */
void eventlog_free(void *bytes);

struct eventlog_repair {     /* what a repair has done */
    int changed;             /* 0: the file was sound, and was left as it is (only in place) */
    uint64_t size;           /* of the damaged file, in bytes */
    uint64_t records, bytes; /* of the repaired file; size - bytes are lost */
    uint64_t places;         /* where the framing of records is broken */
    uint64_t refused;        /* records left out although their CRCs are right, as a loader gives up at them */
    uint64_t cut;            /* bytes of an incomplete last record */
};

/*
 * Repairs an event file: keeps every sound record, byte for byte and in order, and leaves out the rest, as `eventlog
 * repair` does. Where `to` is a path, the repaired copy appears there by rename once it is complete; what is there is
 * replaced if force is not 0. path may then be compressed, or still grow: the copy is of this moment. Where `to` is
 * NULL, the file is repaired in place, and the old one stays beside it as NAME.bak, with every `tfevents` in NAME
 * changed to `tf-events`, so that TensorBoard does not read it. out may be NULL. EVENTLOG_ERROR_ARGUMENT: `to` exists,
 * or, in place, somebody writes to the file, it changed meanwhile, or there is a backup already.
 * EVENTLOG_ERROR_CORRUPT: nothing in it can be kept. Nothing has changed after an error. For any thread.
 */
int eventlog_repair(const char *path, const char *to, int force, struct eventlog_repair *out,
                    struct eventlog_error *error);

/* what to do where steps go back from one file of a run to the next, as after a restart */
enum eventlog_overlap {
    EVENTLOG_OVERLAP_LAST,  /* keep the later points, and leave out the earlier ones from that step on */
    EVENTLOG_OVERLAP_FIRST, /* keep the earlier points */
    EVENTLOG_OVERLAP_KEEP,  /* keep both, sorted by step */
    EVENTLOG_OVERLAP_ERROR, /* fail with EVENTLOG_ERROR_ARGUMENT */
};

/* all zero, or NULL: the defaults */
struct eventlog_merge_options {
    enum eventlog_overlap overlap;
    int prefix; /* 1: tags become RUN/TAG, for runs with the same tags; but hyperparameters and layouts */
    int join;   /* 1: the runs are parts of one that was resumed in new directories, in the order in which they
                           * began */
    int force;  /* 1: also if the directory holds event files; a file of the same name is replaced */
};

/* what a merge has done */
struct eventlog_merged {
    uint64_t files;                  /* read */
    uint64_t records, values, bytes; /* of the new file, the first record included */
    uint64_t restarts;               /* pairs of series and file with a restart, */
    uint64_t restarted;              /* ... and values left out because of them */
    uint64_t doubled;                /* values left out as their series has another at the same step */
    uint64_t repeated;               /* graphs, hyperparameters, layouts left out beyond the one that a run can have */
    uint64_t interleaved;            /* pairs of files with the same series at overlapping times: of two writers */
    uint64_t damaged;                /* places and records left out as they are damaged */
    uint64_t torn;                   /* bytes of incomplete last records, left out */
};

/*
 * Merges all event files that the paths lead to (directories, files, archives; compressed or not) into one, sorted by
 * step, so that TensorBoard's default loader drops no points, as `eventlog merge` does: values stay bit for bit, the
 * same input gives the same bytes. The new file, events.out.tfevents.<seconds>.merged.0, appears in the directory by
 * rename once it is complete; the files that are read stay as they are. Memory: 32 bytes for each value. out may be
 * NULL. EVENTLOG_ERROR_ARGUMENT: there are no event files, two runs have the same tag (see prefix and join), or the
 * directory holds event files. EVENTLOG_ERROR_CORRUPT: a file changed meanwhile. Nothing is written after an error. For
 * any thread.
 */
int eventlog_merge(const char *const *paths, size_t count, const char *directory,
                   const struct eventlog_merge_options *options, struct eventlog_merged *out,
                   struct eventlog_error *error);

/* Chooses at most `most` (at least 2) of the n points of a curve, so that it looks the same: largest triangle three
 * buckets (Steinarsson, 2013). keep: n bytes, which become 1 for the points to keep and 0 for the others; the first and
 * the last are kept. x (steps or times) may be in any order. Without x or y (NULL) the points that are kept are evenly
 * spaced by index, whatever their values. For any thread. */
int eventlog_downsample(const double *x, const double *y, size_t n, size_t most, uint8_t *keep,
                        struct eventlog_error *error);

#include "eventlog/eventlog_reader.h"

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
