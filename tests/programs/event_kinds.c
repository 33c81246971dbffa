/* Writes runs with every kind of value into a directory, for the tests that read them with TensorBoard's own code.
 * The tests make the same numbers again in Python. GIF and WAV are files that are written as they are.
 *
 * usage: event_kinds DIRECTORY GIF WAV
 */
#include "eventlog/eventlog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct eventlog_writer *writer;
static struct eventlog_error error;

static void check(int rc, const char *what)
{
    if (rc == EVENTLOG_OK)
        return;
    fprintf(stderr, "event_kinds: %s: %s\n", what, error.message);
    exit(1);
}

static double wall(int step)
{
    return 1700000000 + step / 4.0;
}

/* A fixed sequence of exact numbers between -1 and 1. */
static double number(int i)
{
    return (double)(i * 7919 % 4001 - 2000) / 2048;
}

static const struct eventlog_value_options labels = { .display_name = "Größe", .description = "*how* much" };

static void histograms(void)
{
    struct eventlog_value_options thirty = { .buckets = 30 };
    static const double edges[] = { -1, 0, 0.5, 4 }, counts[] = { 2, 0, 5 };
    static float floats[1000];
    static double doubles[1000];
    static const double same[] = { 2.5, 2.5, 2.5 };

    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 1000; i++) {
            floats[i] = (float)number(i + step);
            doubles[i] = number(i + step) * 3;
        }
        check(eventlog_writer_histogram_floats(writer, "histogram/default", step, wall(step), floats, 1000, &labels,
                                               &error),
              "histogram");
        check(eventlog_writer_histogram_doubles(writer, "histogram/equal", step, wall(step), doubles, 1000, &thirty,
                                                &error),
              "histogram");
        check(eventlog_writer_histogram_buckets(writer, "histogram/own", step, wall(step), edges, counts, 3, NULL,
                                                &error),
              "histogram");
    }
    check(eventlog_writer_histogram_doubles(writer, "histogram/same", 0, wall(0), same, 3, &thirty, &error), "same");
    check(eventlog_writer_histogram_doubles(writer, "histogram/none", 0, wall(0), same, 0, &thirty, &error), "none");
    check(eventlog_writer_histogram_doubles(writer, "histogram/empty", 0, wall(0), same, 0, NULL, &error), "empty");
}

static void texts(void)
{
    static const char *const cells[] = { "a", "**b**", "", "größe", "e", "f" };

    check(eventlog_writer_text(writer, "text/one", 0, wall(0), "*hello* wörld", &labels, &error), "text");
    check(eventlog_writer_text(writer, "text/one", 1, wall(1), "", NULL, &error), "text");
    check(eventlog_writer_text_table(writer, "text/table", 0, wall(0), cells, 3, 2, NULL, &error), "table");
    check(eventlog_writer_text_table(writer, "text/list", 0, wall(0), cells, 6, 0, NULL, &error), "list");
}

static void tensors(void)
{
    static const int64_t shape[] = { 2, 3 }, none[] = { 4, 0 }, single[] = { 1 };
    static const struct {
        const char *tag;
        enum eventlog_dtype dtype;
        size_t size;
    } types[] = {
        { "tensor/uint8", EVENTLOG_DTYPE_UINT8, 1 },
        { "tensor/int8", EVENTLOG_DTYPE_INT8, 1 },
        { "tensor/int16", EVENTLOG_DTYPE_INT16, 2 },
        { "tensor/uint16", EVENTLOG_DTYPE_UINT16, 2 },
        { "tensor/int32", EVENTLOG_DTYPE_INT32, 4 },
        { "tensor/uint32", EVENTLOG_DTYPE_UINT32, 4 },
        { "tensor/int64", EVENTLOG_DTYPE_INT64, 8 },
        { "tensor/uint64", EVENTLOG_DTYPE_UINT64, 8 },
        { "tensor/float32", EVENTLOG_DTYPE_FLOAT, 4 },
        { "tensor/float64", EVENTLOG_DTYPE_DOUBLE, 8 },
        { "tensor/float16", EVENTLOG_DTYPE_HALF, 2 },
        { "tensor/complex64", EVENTLOG_DTYPE_COMPLEX64, 8 },
        { "tensor/complex128", EVENTLOG_DTYPE_COMPLEX128, 16 },
    };
    static unsigned char bytes[6 * 16];
    static const unsigned char truth[] = { 1, 0, 0, 1, 1, 1 };
    double x = 0.1;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 5 + 1);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        check(eventlog_writer_tensor(writer, types[t].tag, 0, wall(0), types[t].dtype, shape, 2, bytes,
                                     6 * types[t].size, &labels, &error),
              types[t].tag);
    check(eventlog_writer_tensor(writer, "tensor/bool", 0, wall(0), EVENTLOG_DTYPE_BOOL, shape, 2, truth, 6, NULL,
                                 &error),
          "bool");
    check(
        eventlog_writer_tensor(writer, "tensor/none", 0, wall(0), EVENTLOG_DTYPE_FLOAT, none, 2, NULL, 0, NULL, &error),
        "none");
    check(eventlog_writer_tensor(writer, "tensor/number", 0, wall(0), EVENTLOG_DTYPE_DOUBLE, NULL, 0, &x, 8, NULL,
                                 &error),
          "number");
    check(eventlog_writer_tensor(writer, "tensor/single", 0, wall(0), EVENTLOG_DTYPE_DOUBLE, single, 1, &x, 8, NULL,
                                 &error),
          "single");
}

static void images(const char *gif, size_t length)
{
    static uint8_t pixels[2 * 5 * 7 * 4];
    static float values[5 * 7 * 3];
    static const char *const tags[] = { "image/grey", "image/grey alpha", "image/rgb", "image/rgba" };
    struct eventlog_bytes files[] = { { gif, length }, { gif, length } };
    static uint8_t large[1200 * 1000 * 3];
    uint32_t noise = 1;

    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)number((int)i) * 1.25f;
    for (size_t channels = 1; channels <= 4; channels++)
        check(eventlog_writer_image(writer, tags[channels - 1], 0, wall(0), pixels, 2, 5, 7, channels, &labels, &error),
              "image");
    check(eventlog_writer_image(writer, "image/rgb", 1, wall(1), pixels, 1, 5, 7, 3, NULL, &error), "image");
    check(eventlog_writer_image_floats(writer, "image/floats", 0, wall(0), values, 1, 5, 7, 3, NULL, &error), "floats");
    check(eventlog_writer_image_encoded(writer, "image/gif", 0, wall(0), files, 2, NULL, &error), "encoded");
    /* Noise does not pack: longer than all the writer's buffers together. */
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (uint8_t)((noise = noise * 1664525 + 1013904223) >> 24);
    check(eventlog_writer_image(writer, "image/large", 0, wall(0), large, 1, 1000, 1200, 3, NULL, &error), "large");
}

static void clips(const char *wav, size_t length)
{
    static float samples[2 * 400 * 2];
    struct eventlog_bytes files[] = { { wav, length } };

    for (int i = 0; i < 1600; i++)
        samples[i] = (float)number(i) * 1.25f;
    check(eventlog_writer_audio(writer, "audio/stereo", 0, wall(0), samples, 2, 400, 2, 8000, &labels, &error),
          "audio");
    check(eventlog_writer_audio(writer, "audio/stereo", 1, wall(1), samples, 2, 400, 2, 8000, NULL, &error), "audio");
    check(eventlog_writer_audio_encoded(writer, "audio/file", 0, wall(0), files, 1, NULL, &error), "audio file");
}

static void curves(void)
{
    static uint8_t truth[500];
    static float predictions[500], weights[500];
    struct eventlog_value_options eleven = { .display_name = "PR", .description = "*curve*", .thresholds = 11 };
    static const double tp[] = { 75, 64, 21, 5, 0 }, fp[] = { 150, 105, 18, 0, 0 }, tn[] = { 0, 45, 132, 150, 150 };
    static const double fn[] = { 0, 11, 54, 70, 75 };
    struct eventlog_pr_counts counts = {
        .true_positives = tp, .false_positives = fp, .true_negatives = tn, .false_negatives = fn
    };

    for (int i = 0; i < 500; i++) {
        predictions[i] = (float)((number(i) + 1) / 2);
        truth[i] = number(i + 100) + number(i) > 0;
        weights[i] = (float)(i % 4) / 2;
    }
    for (int step = 0; step < 2; step++)
        check(
            eventlog_writer_pr_curve(writer, "pr/plain", step, wall(step), truth, predictions, NULL, 500, NULL, &error),
            "pr curve");
    check(eventlog_writer_pr_curve(writer, "pr/weights", 0, wall(0), truth, predictions, weights, 500, &eleven, &error),
          "pr curve");
    check(eventlog_writer_pr_curve_counts(writer, "pr/counts", 0, wall(0), &counts, 5, NULL, &error), "pr counts");
}

static void meshes(void)
{
    static float vertices[2 * 4 * 3];
    static const int32_t faces[2 * 2 * 3] = { 0, 1, 2, 1, 2, 3, 3, 2, 1, 0, 1, 3 };
    static uint8_t colors[2 * 4 * 3];
    struct eventlog_mesh mesh = {
        .batch = 2, .vertex_count = 4, .face_count = 2, .vertices = vertices, .faces = faces, .colors = colors
    };
    struct eventlog_mesh points = { .batch = 1, .vertex_count = 8, .vertices = vertices, .config = "{\"a\": 1}" };

    for (int i = 0; i < 24; i++) {
        vertices[i] = (float)number(i);
        colors[i] = (uint8_t)(i * 11);
    }
    for (int step = 0; step < 2; step++)
        check(eventlog_writer_mesh(writer, "mesh/faces", step, wall(step), &mesh, &labels, &error), "mesh");
    check(eventlog_writer_mesh(writer, "mesh/points", 0, wall(0), &points, NULL, &error), "mesh");
}

static void layout(void)
{
    static const char *const tags[] = { "loss", "acc.*" };
    static const struct eventlog_margin margins[] = { { "loss", "loss/low", "loss/high" } };
    static const struct eventlog_chart charts[] = { { .title = "both", .tags = tags, .tag_count = 2 },
                                                    { .title = "band", .margins = margins, .margin_count = 1 } };
    static const struct eventlog_category categories[] = { { "first", charts, 2, 0 }, { "zwölf", charts, 1, 1 } };

    for (int step = 0; step < 3; step++) {
        float loss = 1 / (float)(1 + step);

        check(eventlog_writer_scalar(writer, "loss", step, wall(step), loss, &error), "scalar");
        check(eventlog_writer_scalar(writer, "loss/low", step, wall(step), loss / 2, &error), "scalar");
        check(eventlog_writer_scalar(writer, "loss/high", step, wall(step), loss * 2, &error), "scalar");
        check(eventlog_writer_scalar(writer, "accuracy", step, wall(step), 1 - loss, &error), "scalar");
    }
    check(eventlog_writer_layout(writer, wall(0), categories, 2, &error), "layout");
}

static void graph(void)
{
    static const char *const a[] = { "block/a" }, *const both[] = { "block/a", "block/b", "^block/b" };
    static const int64_t shape[] = { -1, 28, 28, 1 };
    static const struct eventlog_node nodes[] = {
        { .name = "block/a", .operation = "Placeholder", .shape = shape, .rank = 4 },
        { .name = "block/b", .operation = "Relu", .inputs = a, .input_count = 1, .device = "/CPU:0" },
        { .name = "sum", .operation = "AddN", .inputs = both, .input_count = 3 },
    };
    /* step_stats {dev_stats {device "/CPU:0" node_stats {node_name "sum" all_start_micros 5}}} */
    static const char statistics[] = "\x0a\x13\x0a\x11\x0a\x06/CPU:0\x12\x07\x0a\x03sum\x10\x05";

    check(eventlog_writer_graph(writer, wall(0), nodes, 3, &error), "graph");
    check(eventlog_writer_run_metadata(writer, "step 1", 1, wall(1), statistics, sizeof statistics - 1, &error),
          "run metadata");
}

static void experiment(void)
{
    static const struct eventlog_hparam names[] = { { .type = EVENTLOG_HPARAM_STRING, .text = "sgd" },
                                                    { .type = EVENTLOG_HPARAM_STRING, .text = "adam" } };
    static const struct eventlog_hparam_info hparams[] = {
        { .name = "optimizer",
          .display_name = "Optimierer",
          .description = "*which*",
          .type = EVENTLOG_HPARAM_STRING,
          .values = names,
          .value_count = 2 },
        { .name = "rate", .type = EVENTLOG_HPARAM_NUMBER, .has_interval = 1, .min = 0, .max = 0.5 },
        { .name = "augment", .type = EVENTLOG_HPARAM_BOOL },
    };
    static const struct eventlog_metric_info metrics[] = {
        { .tag = "loss", .display_name = "Loss" },
        { .group = "eval", .tag = "acc", .description = "right answers", .dataset = EVENTLOG_DATASET_VALIDATION },
    };
    static const struct eventlog_experiment e = { .name = "search",
                                                  .description = "over rates",
                                                  .user = "größe",
                                                  .hparams = hparams,
                                                  .hparam_count = 3,
                                                  .metrics = metrics,
                                                  .metric_count = 2 };

    check(eventlog_writer_experiment(writer, wall(0), &e, &error), "experiment");
}

static void session(int trial)
{
    const struct eventlog_hparam hparams[] = {
        { .name = "optimizer", .type = EVENTLOG_HPARAM_STRING, .text = trial ? "adam" : "sgd" },
        { .name = "rate", .type = EVENTLOG_HPARAM_NUMBER, .number = trial ? 0.25 : 0 },
        { .name = "augment", .type = EVENTLOG_HPARAM_BOOL, .number = trial },
    };
    const struct eventlog_session info = { .group = trial ? "second" : NULL, .model_uri = "file:model" };

    check(eventlog_writer_session_start(writer, wall(1), hparams, 3, &info, &error), "session start");
    check(eventlog_writer_scalar(writer, "loss", 1, wall(1), (float)(1 + trial), &error), "scalar");
    check(eventlog_writer_scalar(writer, "loss", 2, wall(2), (float)(1 + trial) / 4, &error), "scalar");
    check(eventlog_writer_session_end(writer, wall(3), trial ? EVENTLOG_SESSION_FAILURE : EVENTLOG_SESSION_SUCCESS,
                                      &error),
          "session end");
}

static void start(const char *directory, const char *run)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", directory, run);
    check(eventlog_writer_open(&writer, path, NULL, &error), "open");
}

static void stop(void)
{
    check(eventlog_writer_close(writer, &error), "close");
}

static size_t load(const char *path, char *bytes, size_t size)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(bytes, 1, size, f) : 0;

    if (!n) {
        fprintf(stderr, "event_kinds: %s: cannot read\n", path);
        exit(1);
    }
    fclose(f);
    return n;
}

int main(int argc, char **argv)
{
    static char gif[10000], wav[10000];
    size_t gif_length, wav_length;

    if (argc != 4)
        return 2;
    gif_length = load(argv[2], gif, sizeof gif);
    wav_length = load(argv[3], wav, sizeof wav);
    start(argv[1], "kinds");
    histograms();
    texts();
    tensors();
    images(gif, gif_length);
    clips(wav, wav_length);
    curves();
    meshes();
    layout();
    graph();
    stop();
    start(argv[1], ".");
    experiment();
    stop();
    for (int trial = 0; trial < 2; trial++) {
        start(argv[1], trial ? "trial-1" : "trial-0");
        session(trial);
        stop();
    }
    return 0;
}
