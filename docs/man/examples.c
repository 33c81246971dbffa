/*
 * The EXAMPLE of each page of libeventlog: the function below the comment with the page's name. Lines have 72 columns
 * at most. main() runs them all, in a directory that it is given; tests/tool/test_documents.py does.
 */
#include <eventlog/eventlog.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* eventlog_writer_open */
static struct eventlog_writer *open_log(const char *directory)
{
    struct eventlog_writer_options options = {
        .queue_bytes = 8 << 20,        /* a thread writes */
        .rotate_bytes = 100 << 20,     /* a new file every 100 MiB */
        .sync = EVENTLOG_SYNC_AT_FLUSH,
    };
    struct eventlog_writer *writer;
    struct eventlog_error error;

    if (eventlog_writer_open(&writer, directory, &options, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return NULL;
    }
    return writer;
}

/* eventlog_writer_scalar */
static int log_loss(struct eventlog_writer *writer, int64_t step,
                    float loss)
{
    struct eventlog_error error;

    if (eventlog_writer_scalar(writer, "train/loss", step, 0, loss,
                               &error)) {
        fprintf(stderr, "%s\n", error.message);
        return error.code == EVENTLOG_ERROR_IO ? 1 : 2;
    }
    return 0;
}

/* for the one below */
static int send_bytes(void *object, const void *bytes, size_t n)
{
    FILE *pipe = object;

    return fwrite(bytes, 1, n, pipe) == n && fflush(pipe) == 0 ? 0 : EIO;
}

/* eventlog_writer_open_output */
static struct eventlog_writer *open_pipe(FILE *pipe)
{
    const struct eventlog_output output = { .context = pipe,
                                            .write = send_bytes };
    struct eventlog_writer *writer;
    struct eventlog_error error;

    if (eventlog_writer_open_output(&writer, &output, NULL, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return NULL;
    }
    return writer;
}

/* eventlog_writer_open_memory */
static int log_in_memory(int (*upload)(const void *bytes, size_t n))
{
    struct eventlog_writer *writer;
    void *bytes;
    size_t n;
    int rc;

    if (eventlog_writer_open_memory(&writer, NULL, NULL))
        return 1;
    eventlog_writer_scalar(writer, "loss", 1, 0, 0.5f, NULL);
    rc = eventlog_writer_take(writer, &bytes, &n, NULL);
    if (rc == EVENTLOG_OK)
        rc = upload(bytes, n);
    eventlog_free(bytes);
    eventlog_writer_close(writer, NULL);
    return rc;
}

/* eventlog_version */
static void tell_version(void)
{
    printf("built with %d.%d.%d, runs with %s\n", EVENTLOG_VERSION_MAJOR,
           EVENTLOG_VERSION_MINOR, EVENTLOG_VERSION_PATCH,
           eventlog_version());
}

/* eventlog_writer_scalars */
static int log_batches(struct eventlog_writer *writer,
                       const struct eventlog_scalar *points, size_t n)
{
    static const char *const tags[] = { "batch/time", "batch/norm" };
    struct eventlog_error error;
    size_t done = 0, accepted;

    while (eventlog_writer_scalars(writer, tags, 2, points + done,
                                   n - done, &accepted, &error)) {
        fprintf(stderr, "%s\n", error.message);
        if (error.code != EVENTLOG_ERROR_ARGUMENT)
            return 1;
        done += accepted + 1; /* without the point that is refused */
    }
    return 0;
}

/* eventlog_writer_scalars_once */
static int log_once(struct eventlog_writer *writer,
                    const struct eventlog_scalar *points, size_t n,
                    uint64_t *done)
{
    static const char *const tags[] = { "once/time", "once/norm" };
    struct eventlog_error error;

    /* *done is 0 before the first call; after an interruption: again */
    while (*done < n)
        if (eventlog_writer_scalars_once(writer, tags, 2, points, n, 0,
                                         done, &error)) {
            fprintf(stderr, "%s\n", error.message);
            if (error.code != EVENTLOG_ERROR_ARGUMENT)
                return 1;
        }
    return 0;
}

/* eventlog_writer_event */
static int log_serialized(struct eventlog_writer *writer,
                          const void *event, size_t n)
{
    struct eventlog_error error;

    if (eventlog_writer_event(writer, event, n, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return 0;
}

/* eventlog_bucket_counts */
static void print_small(const double *values, size_t n)
{
    static const double edges[] = { -1, -0.1, 0.1, 1 };
    uint64_t counts[3];

    if (eventlog_bucket_counts(values, n, edges, 4, counts, NULL) == 0)
        printf("%" PRIu64 " of %zu are small\n", counts[1], n);
}

/* eventlog_bucket_counts_range */
static void print_positive(const double *values, size_t n)
{
    static const double edges[] = { 0, 1e-3, 1e-2, 0.1, 1 };
    uint64_t counts[4];
    double min, max;

    if (eventlog_bucket_counts_range(values, n, edges, 5, counts, &min,
                                     &max, NULL) == 0)
        printf("%g to %g, %" PRIu64 " near 0\n", min, max, counts[0]);
}

/* eventlog_repair */
static int repair_copy(const char *path, const char *to)
{
    struct eventlog_repair done;
    struct eventlog_error error;

    if (eventlog_repair(path, to, 1, &done, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%" PRIu64 " records kept, %" PRIu64 " bytes lost\n",
           done.records, done.size - done.bytes);
    return 0;
}

/* eventlog_merge */
static int merge_parts(const char *const *paths, size_t count,
                       const char *directory)
{
    const struct eventlog_merge_options options = { .join = 1 };
    struct eventlog_merged done;
    struct eventlog_error error;

    if (eventlog_merge(paths, count, directory, &options, &done,
                       &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("%" PRIu64 " values, %" PRIu64 " left out before restarts\n",
           done.values, done.restarted);
    return 0;
}

/* eventlog_downsample */
static void print_thinned(const double *x, const double *y, size_t n)
{
    uint8_t keep[100];

    if (n <= 100 && eventlog_downsample(x, y, n, 3, keep, NULL) == 0)
        for (size_t i = 0; i < n; i++)
            if (keep[i])
                printf("%g %g\n", x[i], y[i]);
}

/* eventlog_png */
static int pack_picture(const char *path, const uint8_t *pixels,
                        size_t height, size_t width)
{
    struct eventlog_error error;
    void *bytes;
    size_t n;
    FILE *file;
    int rc = 1;

    if (eventlog_png(pixels, height, width, 3, &bytes, &n, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if ((file = fopen(path, "wb"))) {
        rc = fwrite(bytes, 1, n, file) != n;
        rc |= fclose(file) != 0;
    }
    eventlog_free(bytes);
    return rc;
}

/* eventlog_writer_histogram_floats */
static void log_weights(struct eventlog_writer *writer, int64_t step,
                        const float *weights, size_t n)
{
    static const double edges[] = { 0, 1, 10, 100 };
    static const double counts[] = { 5, 17, 3 };
    struct eventlog_value_options thirty = { .buckets = 30 };

    eventlog_writer_histogram_floats(writer, "weights", step, 0,
                                     weights, n, &thirty, NULL);
    eventlog_writer_histogram_buckets(writer, "milliseconds", step, 0,
                                      edges, counts, 3, NULL, NULL);
}

/* eventlog_writer_text */
static void log_notes(struct eventlog_writer *writer)
{
    static const char *const cells[] = {
        "class", "recall",
        "cat",   "0.91",
        "dog",   "0.88",
    };

    eventlog_writer_text(writer, "notes", 0, 0,
                         "Started from **checkpoint 700**.", NULL, NULL);
    eventlog_writer_text_table(writer, "classes", 0, 0, cells, 3, 2,
                               NULL, NULL);
}

/* eventlog_writer_tensor */
static void log_vertices(struct eventlog_writer *writer, int64_t step)
{
    static const float values[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    static const int64_t shape[] = { 2, 3 };
    struct eventlog_value_options options = { .plugin = "mine" };

    eventlog_writer_tensor(writer, "values", step, 0,
                           EVENTLOG_DTYPE_FLOAT, shape, 2, values,
                           sizeof values, &options, NULL);
}

/* eventlog_writer_image */
static void log_picture(struct eventlog_writer *writer, int64_t step)
{
    unsigned char pixels[32][32][3] = { 0 }; /* height, width, RGB */

    for (int i = 0; i < 32; i++)
        pixels[i][i][0] = 255; /* a red diagonal */
    eventlog_writer_image(writer, "diagonal", step, 0, &pixels[0][0][0],
                          1, 32, 32, 3, NULL, NULL);
}

/* eventlog_writer_audio */
static void log_tone(struct eventlog_writer *writer, int64_t step)
{
    enum { RATE = 8000 };
    float samples[RATE]; /* one second, one channel */

    for (int i = 0; i < RATE; i++)
        samples[i] = 0.5f * sinf(6.2831853f * 440 * (float)i / RATE);
    eventlog_writer_audio(writer, "tone", step, 0, samples, 1, RATE, 1,
                          RATE, NULL, NULL);
}

/* eventlog_writer_pr_curve */
static void log_curve(struct eventlog_writer *writer, int64_t step)
{
    static const uint8_t labels[] = { 1, 0, 1, 1, 0 };
    static const float predictions[] = { 0.9f, 0.4f, 0.7f, 0.2f, 0.6f };

    eventlog_writer_pr_curve(writer, "is_cat", step, 0, labels,
                             predictions, NULL, 5, NULL, NULL);
}

/* eventlog_writer_pr_curve_counts */
static void log_counted_curve(struct eventlog_writer *writer,
                              int64_t step)
{
    static const double tp[] = { 3, 2, 0 }, fp[] = { 2, 1, 0 };
    static const double tn[] = { 0, 1, 2 }, fn[] = { 0, 1, 3 };
    struct eventlog_pr_counts counts = {
        .true_positives = tp, .false_positives = fp,
        .true_negatives = tn, .false_negatives = fn,
    };

    eventlog_writer_pr_curve_counts(writer, "is_dog", step, 0, &counts,
                                    3, NULL, NULL);
}

/* eventlog_writer_mesh */
static void log_mesh(struct eventlog_writer *writer, int64_t step)
{
    static const float vertices[] = { 0, 0, 0,  1, 0, 0,  0, 1, 0 };
    static const int32_t faces[] = { 0, 1, 2 };
    struct eventlog_mesh triangle = {
        .batch = 1, .vertex_count = 3, .face_count = 1,
        .vertices = vertices, .faces = faces,
    };

    eventlog_writer_mesh(writer, "triangle", step, 0, &triangle, NULL,
                         NULL);
}

/* eventlog_writer_experiment */
static void log_settings(struct eventlog_writer *writer, double rate)
{
    struct eventlog_hparam hparams[] = {
        { .name = "rate", .type = EVENTLOG_HPARAM_NUMBER,
          .number = rate },
        { .name = "optimizer", .type = EVENTLOG_HPARAM_STRING,
          .text = "sgd" },
    };

    eventlog_writer_session_start(writer, 0, hparams, 2, NULL, NULL);
    /* ... train ... */
    eventlog_writer_session_end(writer, 0, EVENTLOG_SESSION_SUCCESS,
                                NULL);
}

/* eventlog_writer_layout */
static void log_layout(struct eventlog_writer *writer)
{
    static const char *const losses[] = { "train/loss", "eval/loss" };
    struct eventlog_chart chart = {
        .title = "loss", .tags = losses, .tag_count = 2,
    };
    struct eventlog_category category = {
        .title = "Both losses", .charts = &chart, .chart_count = 1,
    };

    eventlog_writer_layout(writer, 0, &category, 1, NULL);
}

/* eventlog_writer_graph */
static void log_graph(struct eventlog_writer *writer)
{
    static const char *const inputs[] = { "input" };
    struct eventlog_node nodes[] = {
        { .name = "input", .operation = "Placeholder" },
        { .name = "block/relu", .operation = "Relu", .inputs = inputs,
          .input_count = 1 },
    };

    eventlog_writer_graph(writer, 0, nodes, 2, NULL);
}

/* eventlog_writer_projector */
static void log_embedding(struct eventlog_writer *writer)
{
    static const float values[] = { 0.1f, 0.2f,  0.3f, 0.1f };
    static const char *const labels[] = { "cat", "dog" };
    struct eventlog_embedding words = {
        .name = "words", .values = values, .points = 2,
        .dimensions = 2, .labels = labels, .columns = 1,
    };

    eventlog_writer_projector(writer, &words, 1, NULL);
}

/* eventlog_writer_flush */
static int checkpoint_saved(struct eventlog_writer *writer)
{
    struct eventlog_error error;

    /* The curves are on the disk before the checkpoint counts. */
    if (eventlog_writer_sync(writer, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    return 0;
}

/* eventlog_writer_make_again */
static int sync_or_make_again(struct eventlog_writer *writer)
{
    struct eventlog_error error;

    /* Opened with leave_lost. */
    if (eventlog_writer_sync(writer, &error) == EVENTLOG_OK)
        return 0;
    fprintf(stderr, "%s\n", error.message);
    if (error.system != ENOENT ||
        eventlog_writer_make_again(writer, &error))
        return -1;
    return eventlog_writer_sync(writer, &error);
}

/* eventlog_writer_path */
static void tell_path(const struct eventlog_writer *writer)
{
    fprintf(stderr, "writing %s\n", eventlog_writer_path(writer));
}

/* eventlog_writer_statistics */
static void tell_losses(struct eventlog_writer *writer)
{
    struct eventlog_writer_statistics s;

    eventlog_writer_statistics(writer, &s, NULL);
    if (s.dropped + s.lost)
        fprintf(stderr, "%" PRIu64 " of %" PRIu64 " events lost: %s\n",
                s.dropped + s.lost, s.events + s.dropped,
                s.last_error.message);
}

/* eventlog_writer_close */
static int close_log(struct eventlog_writer *writer)
{
    struct eventlog_error error;

    if (eventlog_writer_close(writer, &error)) { /* frees it anyway */
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return 0;
}

/* eventlog_reader_open */
static struct eventlog_reader *open_losses(const char *directory)
{
    static const char *const tags[] = { "*loss*" };
    struct eventlog_reader_options options = {
        .tags = tags, .tag_count = 1, .numbers_only = 1,
    };
    struct eventlog_reader *reader;
    struct eventlog_error error;

    if (eventlog_reader_open(&reader, directory, &options, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return NULL;
    }
    return reader;
}

/* eventlog_reader_next */
static int count_events(struct eventlog_reader *reader)
{
    struct eventlog_error error;
    int events = 0, found;

    while ((found = eventlog_reader_next(reader, &error)) !=
           EVENTLOG_READ_END) {
        if (found < 0)
            fprintf(stderr, "%s\n", error.message);
        else if (found == EVENTLOG_READ_EVENT)
            events++;
        else if (found == EVENTLOG_READ_RESTARTED)
            events = 0; /* of one run; this counts a log with one */
    }
    return events;
}

/* eventlog_reader_event */
static void print_event(const struct eventlog_reader *reader)
{
    const struct eventlog_event *event = eventlog_reader_event(reader);

    printf("%s: step %" PRId64 " at %s:%" PRIu64 "\n", event->run,
           event->step, event->file, event->offset);
}

/* eventlog_reader_damage */
static void print_damage(const struct eventlog_reader *reader)
{
    const struct eventlog_damage *damage =
        eventlog_reader_damage(reader);

    fprintf(stderr, "%s:%" PRIu64 ": %s\n",
            eventlog_reader_event(reader)->file, damage->offset,
            damage->text);
}

/* eventlog_reader_value */
static void print_values(struct eventlog_reader *reader)
{
    const struct eventlog_value *value;

    while ((value = eventlog_reader_value(reader)))
        if (value->kind == EVENTLOG_KIND_SCALAR)
            printf("%s\t%s\t%" PRId64 "\t%.9g\n", value->series->run,
                   value->series->tag, value->step, value->number);
}

/* eventlog_reader_tensor */
static void print_shape(struct eventlog_reader *reader)
{
    struct eventlog_tensor tensor;
    struct eventlog_error error;

    if (eventlog_reader_tensor(reader, &tensor, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return;
    }
    for (size_t i = 0; i < tensor.rank; i++)
        printf("%s%" PRId64, i ? "x" : "", tensor.shape[i]);
    printf(" elements of type %d\n", tensor.dtype);
}

/* eventlog_reader_histogram */
static double count_of(struct eventlog_reader *reader)
{
    const struct eventlog_bucket *buckets;
    double count = 0;
    size_t n;

    if (eventlog_reader_histogram(reader, &buckets, &n, NULL))
        return -1;
    for (size_t i = 0; i < n; i++)
        count += buckets[i].count;
    return count;
}

/* eventlog_reader_blobs */
static int save_picture(struct eventlog_reader *reader,
                        const char *path)
{
    struct eventlog_blobs blobs;
    FILE *file;

    if (eventlog_reader_blobs(reader, &blobs, NULL) || !blobs.count ||
        !(file = fopen(path, "wb")))
        return -1;
    fwrite(blobs.items[0].data, 1, blobs.items[0].length, file);
    return fclose(file);
}

/* eventlog_reader_totals */
static void print_totals(const struct eventlog_reader *reader)
{
    struct eventlog_reader_totals t = eventlog_reader_totals(reader);

    printf("%" PRIu64 " records in %" PRIu64 " files, %" PRIu64
           " bytes lost\n", t.records, t.files, t.lost);
}

/* eventlog_reader_wait */
static int follow(struct eventlog_reader *reader)
{
    do {
        while (eventlog_reader_next(reader, NULL) !=
               EVENTLOG_READ_END)
            print_values(reader);
        fflush(stdout);
    } while (eventlog_reader_wait(reader, 1.0, NULL) >= 0);
    return 0; /* a signal handler ran */
}

/* eventlog_reader_descriptor */
static int follow_two(struct eventlog_reader *a,
                      struct eventlog_reader *b)
{
    struct pollfd wait[] = {
        { .fd = eventlog_reader_descriptor(a), .events = POLLIN },
        { .fd = eventlog_reader_descriptor(b), .events = POLLIN },
    };

    do {
        while (eventlog_reader_next(a, NULL) == EVENTLOG_READ_EVENT)
            print_values(a);
        while (eventlog_reader_next(b, NULL) == EVENTLOG_READ_EVENT)
            print_values(b);
    } while (poll(wait, 2, 1000) > 0);
    return 0; /* nothing new for a second */
}

/* eventlog_points_read */
static int count_points(const char *directory)
{
    struct eventlog_points *points;
    struct eventlog_error error;
    size_t n, total = 0;

    if (eventlog_points_read(&points, directory,
                             EVENTLOG_VIEW_TENSORBOARD, NULL, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    for (size_t i = 0; eventlog_points_series(points, i); i++) {
        eventlog_points_of(points, i, &n);
        total += n;
    }
    eventlog_points_free(points);
    return (int)total;
}

/* eventlog_points_run */
static double last_loss(const struct eventlog_points *points)
{
    const struct eventlog_point *point;
    size_t index, count;

    if (!eventlog_points_find(points, ".", "train/loss", &index))
        return NAN;
    point = eventlog_points_of(points, index, &count);
    return count ? point[count - 1].value : NAN;
}

/* What the examples are called with. */

static int tell_upload(const void *bytes, size_t n)
{
    printf("%zu bytes from %p on\n", n, bytes);
    return n == 0;
}

static int write_elsewhere(const char *path)
{
    FILE *file = fopen(path, "wb");
    struct eventlog_writer *writer = file ? open_pipe(file) : NULL;

    if (!writer || log_loss(writer, 1, 0.5f) ||
        eventlog_writer_close(writer, NULL) || fclose(file))
        return 1;
    return log_in_memory(tell_upload);
}

static int write_all(const char *directory)
{
    uint64_t done = 0;
    static const float weights[] = { -1, 0, 0.5f, 2 };
    static const double numbers[] = { -1, 0, 0.5, 2 };
    static const struct eventlog_scalar points[] = {
        { 0, 1, 0, 0.5 }, { 1, 1, 0, 3.25 }, { 0, 2, 0, 0.25 }
    };
    static const uint8_t pixels[12] = { 255, 0, 0, 0, 255 };
    char path[4096];
    const char *parts[1];
    struct eventlog_writer *writer = open_log(directory);

    if (!writer)
        return 1;
    tell_path(writer);
    for (int step = 0; step < 3; step++) {
        if (log_loss(writer, step, 1.0f / (float)(step + 1)))
            return 1;
        log_weights(writer, step, weights, 4);
        log_vertices(writer, step);
        log_picture(writer, step);
        log_tone(writer, step);
        log_curve(writer, step);
        log_counted_curve(writer, step);
        log_mesh(writer, step);
    }
    tell_version();
    snprintf(path, sizeof path, "%s/picture.png", directory);
    if (log_batches(writer, points, 3) ||
        log_once(writer, points, 3, &done) ||
        log_serialized(writer, "\x09\0\0\0\0\0\x88\xd6\x41\x2a\0", 11) ||
        pack_picture(path, pixels, 2, 2))
        return 1;
    print_small(numbers, 4);
    print_positive(numbers, 4);
    print_thinned(numbers, numbers, 4);
    snprintf(path, sizeof path, "%s/piped", directory);
    if (write_elsewhere(path))
        return 1;
    snprintf(path, sizeof path, "%s/repaired", directory);
    if (eventlog_writer_flush(writer, NULL) ||
        repair_copy(eventlog_writer_path(writer), path))
        return 1;
    parts[0] = eventlog_writer_path(writer);
    snprintf(path, sizeof path, "%s.merged", directory);
    if (merge_parts(parts, 1, path))
        return 1;
    log_notes(writer);
    log_settings(writer, 0.1);
    log_layout(writer);
    log_graph(writer);
    log_embedding(writer);
    tell_losses(writer);
    if (checkpoint_saved(writer) < 0 || sync_or_make_again(writer))
        return 1;
    return close_log(writer);
}

static int read_all(const char *directory, const char *picture)
{
    struct eventlog_reader *all, *losses = open_losses(directory);
    struct eventlog_points *points;
    int found;

    if (!losses || eventlog_reader_open(&all, directory, NULL, NULL))
        return 1;
    while ((found = eventlog_reader_next(all, NULL)) != EVENTLOG_READ_END) {
        const struct eventlog_value *value;

        if (found == EVENTLOG_READ_DAMAGE)
            print_damage(all);
        if (found != EVENTLOG_READ_EVENT)
            continue;
        print_event(all);
        while ((value = eventlog_reader_value(all))) {
            if (value->kind == EVENTLOG_KIND_TENSOR)
                print_shape(all);
            if (value->kind == EVENTLOG_KIND_HISTOGRAM)
                printf("%g values\n", count_of(all));
            if (value->kind == EVENTLOG_KIND_IMAGE && save_picture(all, picture))
                return 1;
        }
    }
    print_totals(all);
    eventlog_reader_close(all);
    printf("%d losses\n", count_events(losses));
    eventlog_reader_close(losses);
    printf("%d points\n", count_points(directory));
    if (eventlog_points_read(&points, directory, EVENTLOG_VIEW_ALL, NULL, NULL))
        return 1;
    printf("last loss %g\n", last_loss(points));
    eventlog_points_free(points);
    return 0;
}

int main(int argc, char **argv)
{
    struct eventlog_reader *a, *b;

    if (argc < 3)
        return 2;
    if (!strcmp(argv[1], "follow")) /* without end */
        return (a = open_losses(argv[2])) ? follow(a) : 1;
    if (write_all(argv[1]) || read_all(argv[1], argv[2]))
        return 1;
    if (!(a = open_losses(argv[1])) || !(b = open_losses(argv[1])))
        return 1;
    follow_two(a, b);
    eventlog_reader_close(a);
    eventlog_reader_close(b);
    return 0;
}
