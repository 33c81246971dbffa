/*
 * old_program DIRECTORY - a program of the first version of eventlog.h, kept as it was written: it must go on compiling
 * with every later header, and running, compiled with its own header (eventlog_0.h), with every later libeventlog.so.0.
 * Writes each kind of value, reads all back, and prints a line a value: a change of what it prints is a change of what
 * old programs see.
 */
#include <eventlog/eventlog.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct eventlog_error error;

static void must(int rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "%s: %d: %s\n", what, rc, error.message);
    exit(1);
}

static void write_plain(struct eventlog_writer *w)
{
    static const float floats[] = { 0, 0.25f, 0.5f, 1 };
    static const double doubles[] = { 1, 2, 3 }, edges[] = { 0, 1, 2 }, counts[] = { 3, 4 };
    static const char *const cells[] = { "a", "b", "c", "d" };
    static const int64_t shape[] = { 2, 2 };
    static const uint8_t pixels[12] = { 255 };
    static const unsigned char gif[] = "GIF89a\3\0\2\0\x80\1\0\0\0\0\xff\xff\xff,\0\0\0\0\3\0\2\0\0\2\2\x84Q\0;";
    const struct eventlog_bytes file = { gif, sizeof gif - 1 };
    const struct eventlog_value_options shown = { .display_name = "shown", .description = "described" };
    const struct eventlog_value_options ten = { .buckets = 10 };

    must(eventlog_writer_scalar(w, "scalar", 1, 1e9, 0.5f, &error), "scalar");
    must(eventlog_writer_histogram_floats(w, "histogram/floats", 1, 1e9, floats, 4, &ten, &error), "floats");
    must(eventlog_writer_histogram_doubles(w, "histogram/doubles", 1, 1e9, doubles, 3, NULL, &error), "doubles");
    must(eventlog_writer_histogram_buckets(w, "histogram/buckets", 1, 1e9, edges, counts, 2, &shown, &error),
         "buckets");
    must(eventlog_writer_text(w, "text", 1, 1e9, "*words*", &shown, &error), "text");
    must(eventlog_writer_text_table(w, "table", 1, 1e9, cells, 2, 2, NULL, &error), "table");
    must(eventlog_writer_tensor(w, "tensor", 1, 1e9, EVENTLOG_DTYPE_FLOAT, shape, 2, floats, sizeof floats, NULL,
                                &error),
         "tensor");
    must(eventlog_writer_image(w, "image", 1, 1e9, pixels, 1, 2, 2, 3, NULL, &error), "image");
    must(eventlog_writer_image_floats(w, "image/floats", 1, 1e9, floats, 1, 2, 2, 1, NULL, &error), "image floats");
    must(eventlog_writer_image_encoded(w, "image/gif", 1, 1e9, &file, 1, NULL, &error), "image encoded");
    must(eventlog_writer_audio(w, "audio", 1, 1e9, floats, 1, 4, 1, 8000, NULL, &error), "audio");
}

static void write_structured(struct eventlog_writer *w)
{
    static const uint8_t labels[] = { 0, 1 };
    static const float predictions[] = { 0.2f, 0.7f }, vertices[] = { 0, 0, 0, 1, 0, 0, 0, 1, 0 };
    static const int32_t faces[] = { 0, 1, 2 };
    static const double zeros[2], ones[] = { 1, 1 };
    static const char *const tags[] = { "scalar" }, *const inputs[] = { "a" };
    const struct eventlog_value_options two = { .thresholds = 2 };
    const struct eventlog_pr_counts counts = { ones, zeros, zeros, ones, NULL, NULL };
    const struct eventlog_mesh mesh = {
        .batch = 1, .vertex_count = 3, .face_count = 1, .vertices = vertices, .faces = faces
    };
    const struct eventlog_hparam setting = { "rate", EVENTLOG_HPARAM_NUMBER, 0.1, NULL };
    const struct eventlog_hparam_info info = {
        .name = "rate", .type = EVENTLOG_HPARAM_NUMBER, .has_interval = 1, .min = 0, .max = 1
    };
    const struct eventlog_metric_info metric = { .tag = "scalar", .dataset = EVENTLOG_DATASET_TRAINING };
    const struct eventlog_experiment experiment = {
        .name = "e", .hparams = &info, .hparam_count = 1, .metrics = &metric, .metric_count = 1
    };
    const struct eventlog_session session = { .group = "g" };
    const struct eventlog_embedding embedding = { .name = "e", .values = vertices, .points = 3, .dimensions = 3 };
    const struct eventlog_margin margin = { "scalar", "lower", "upper" };
    const struct eventlog_chart charts[] = { { .title = "c", .tags = tags, .tag_count = 1 },
                                             { .title = "m", .margins = &margin, .margin_count = 1 } };
    const struct eventlog_category category = { .title = "t", .charts = charts, .chart_count = 2 };
    const struct eventlog_node nodes[] = { { .name = "a", .operation = "Input" },
                                           { .name = "b", .operation = "Dense", .inputs = inputs, .input_count = 1 } };

    must(eventlog_writer_pr_curve(w, "pr", 1, 1e9, labels, predictions, NULL, 2, &two, &error), "pr curve");
    must(eventlog_writer_pr_curve_counts(w, "pr/counts", 1, 1e9, &counts, 2, NULL, &error), "pr counts");
    must(eventlog_writer_mesh(w, "mesh", 1, 1e9, &mesh, NULL, &error), "mesh");
    must(eventlog_writer_experiment(w, 1e9, &experiment, &error), "experiment");
    must(eventlog_writer_session_start(w, 1e9, &setting, 1, &session, &error), "session start");
    must(eventlog_writer_session_end(w, 1e9, EVENTLOG_SESSION_SUCCESS, &error), "session end");
    must(eventlog_writer_layout(w, 1e9, &category, 1, &error), "layout");
    must(eventlog_writer_graph(w, 1e9, nodes, 2, &error), "graph");
    must(eventlog_writer_projector(w, &embedding, 1, &error), "projector");
    must(eventlog_writer_run_metadata(w, "step 1", 1, 1e9, "", 0, &error), "run metadata");
}

static void write_all(const char *directory)
{
    const struct eventlog_writer_options options = {
        .buffer_bytes = 4096, .flush_seconds = 1, .suffix = ".train", .source = "old", .queue_bytes = 1 << 20
    };
    struct eventlog_writer_statistics statistics;
    struct eventlog_writer *w;

    must(eventlog_writer_open(&w, directory, &options, &error), "open");
    write_plain(w);
    write_structured(w);
    must(eventlog_writer_flush(w, &error), "flush");
    must(eventlog_writer_sync(w, &error), "sync");
    must(eventlog_writer_statistics(w, &statistics, &error), "statistics");
    printf("written: %d, dropped: %d, suffix: %d\n", (int)statistics.events, (int)statistics.dropped,
           strstr(eventlog_writer_path(w), ".train") != NULL);
    must(eventlog_writer_close(w, &error), "close");
}

static void print_value(struct eventlog_reader *r, const struct eventlog_value *v)
{
    const struct eventlog_bucket *buckets;
    struct eventlog_tensor tensor;
    struct eventlog_blobs blobs;
    size_t count;

    printf("%s: %s, kind %d, step %d, stored %d, dtype %d", v->series->tag, v->series->plugin, (int)v->kind,
           (int)v->step, (int)v->stored, v->dtype);
    if (v->kind == EVENTLOG_KIND_SCALAR)
        printf(", %g", v->number);
    if (v->kind == EVENTLOG_KIND_HISTOGRAM) {
        must(eventlog_reader_histogram(r, &buckets, &count, &error), "histogram");
        printf(", %d buckets up to %g", (int)count, buckets[count - 1].right);
    }
    if (v->kind == EVENTLOG_KIND_TENSOR) {
        must(eventlog_reader_tensor(r, &tensor, &error), "tensor");
        printf(", %d elements", (int)tensor.elements);
    }
    if (v->kind == EVENTLOG_KIND_IMAGE || v->kind == EVENTLOG_KIND_AUDIO || v->kind == EVENTLOG_KIND_TEXT) {
        must(eventlog_reader_blobs(r, &blobs, &error), "blobs");
        printf(", %d blobs, %d x %d", (int)blobs.count, (int)blobs.width, (int)blobs.height);
    }
    printf(", '%s'\n", v->series->display_name);
}

static void read_all(const char *directory)
{
    const struct eventlog_reader_options none = { .has_first_step = 0 };
    const struct eventlog_value *value;
    struct eventlog_reader_totals totals;
    struct eventlog_points *points;
    struct eventlog_reader *r;
    size_t index, count;
    int found;

    must(eventlog_reader_open(&r, directory, &none, &error), "open to read");
    while ((found = eventlog_reader_next(r, &error)) > EVENTLOG_READ_END) {
        if (found != EVENTLOG_READ_EVENT)
            printf("damage: %s\n", eventlog_reader_damage(r)->text);
        printf("event %d\n", (int)eventlog_reader_event(r)->what);
        while ((value = eventlog_reader_value(r)))
            print_value(r, value);
    }
    must(found, "next");
    totals = eventlog_reader_totals(r);
    printf("runs %d, files %d, damaged %d, unfinished %d\n", (int)totals.runs, (int)totals.files, (int)totals.damaged,
           (int)totals.unfinished);
    eventlog_reader_close(r);
    must(eventlog_points_read(&points, directory, EVENTLOG_VIEW_ALL, NULL, &error), "points");
    if (eventlog_points_find(points, ".", "scalar", &index))
        printf("points: %g\n", eventlog_points_of(points, index, &count)->value);
    eventlog_points_free(points);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    write_all(argv[1]);
    read_all(argv[1]);
    return 0;
}
