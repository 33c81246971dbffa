/* Writes a log with something to see for each plugin of TensorBoard, for the tests that look at its pages.
 *
 * usage: plugin_pages DIRECTORY
 */
#include "eventlog/eventlog.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 40, WIDTH = 48, HEIGHT = 32, RATE = 8000, CLOUD = 90 };

static struct eventlog_writer *writer;
static struct eventlog_error error;

static void check(int rc)
{
    if (rc == EVENTLOG_OK)
        return;
    fprintf(stderr, "plugin_pages: %s\n", error.message);
    exit(1);
}

static double wall(int step)
{
    return 1700000000 + step * 10.0;
}

static void start(const char *directory, const char *run)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", directory, run);
    check(eventlog_writer_open(&writer, path, NULL, &error));
}

static void stop(void)
{
    check(eventlog_writer_close(writer, &error));
}

/* A wave that falls: two lines that cannot be mistaken for a grid. */
static void scalars(double phase)
{
    for (int step = 0; step < STEPS; step++) {
        double x = exp(-step / 15.0), y = 0.1 * sin(step / 3.0 + phase);

        check(eventlog_writer_scalar(writer, "loss", step, wall(step), (float)(x + y), &error));
        check(eventlog_writer_scalar(writer, "loss/low", step, wall(step), (float)(x + y - 0.2), &error));
        check(eventlog_writer_scalar(writer, "loss/high", step, wall(step), (float)(x + y + 0.2), &error));
        check(eventlog_writer_scalar(writer, "accuracy", step, wall(step), (float)(1 - x), &error));
    }
}

/* Left half red, right half blue, a green square on top of the left. */
static void pictures(void)
{
    static const uint8_t colors[3][3] = { { 200, 30, 40 }, { 20, 90, 220 }, { 40, 180, 60 } };
    static uint8_t pixels[HEIGHT * WIDTH * 3];

    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < 3; c++)
                pixels[(y * WIDTH + x) * 3 + c] = colors[x >= WIDTH / 2 ? 1 : x < 12 && y < 12 ? 2 : 0][c];
    check(eventlog_writer_image(writer, "picture", 3, wall(3), pixels, 1, HEIGHT, WIDTH, 3, NULL, &error));
}

static void tone(void)
{
    static float samples[RATE / 2];

    for (int i = 0; i < RATE / 2; i++)
        samples[i] = (float)(0.5 * sin(i * 2 * 3.14159265358979 * 440 / (double)RATE));
    check(eventlog_writer_audio(writer, "tone", 3, wall(3), samples, 1, RATE / 2, 1, RATE, NULL, &error));
}

static void texts(void)
{
    static const char *const cells[] = { "layer", "size", "**first**", "3x3x16" };

    check(eventlog_writer_text(writer, "note", 0, wall(0), "a *slanted* wörd", NULL, &error));
    check(eventlog_writer_text_table(writer, "table", 0, wall(0), cells, 2, 2, NULL, &error));
}

static void histograms(void)
{
    static double values[400];

    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < 400; i++)
            values[i] = step / 4.0 + sin(i * 0.7) * cos(i * 1.3);
        check(eventlog_writer_histogram_doubles(writer, "weights", step, wall(step), values, 400, NULL, &error));
    }
}

static void curve(void)
{
    static uint8_t labels[1000];
    static float predictions[1000];

    for (int i = 0; i < 1000; i++) {
        predictions[i] = (float)(i * 7919 % 1000) / 1000;
        labels[i] = predictions[i] + 0.4 * sin(i) > 0.5;
    }
    check(eventlog_writer_pr_curve(writer, "curve", 0, wall(0), labels, predictions, NULL, 1000, NULL, &error));
}

/* A cube with a colour a corner, turned so that three sides are seen. */
static void mesh(void)
{
    static const int32_t faces[] = { 0, 1, 3, 0, 3, 2, 4, 6, 7, 4, 7, 5, 0, 4, 5, 0, 5, 1,
                                     2, 3, 7, 2, 7, 6, 0, 2, 6, 0, 6, 4, 1, 5, 7, 1, 7, 3 };
    float vertices[8 * 3];
    uint8_t colors[8 * 3];
    const struct eventlog_mesh cube = {
        .batch = 1, .vertex_count = 8, .face_count = 12, .vertices = vertices, .faces = faces, .colors = colors
    };

    for (int i = 0; i < 8; i++) {
        double x = i & 1 ? 4 : -4, y = i & 2 ? 4 : -4, z = i & 4 ? 4 : -4;
        double side = 0.8 * x + 0.6 * z, depth = 0.8 * z - 0.6 * x;

        vertices[i * 3] = (float)side;
        vertices[i * 3 + 1] = (float)(0.8 * y - 0.6 * depth);
        vertices[i * 3 + 2] = (float)(0.6 * y + 0.8 * depth);
        for (int c = 0; c < 3; c++)
            colors[i * 3 + c] = i >> c & 1 ? 255 : 40;
    }
    check(eventlog_writer_mesh(writer, "cube", 0, wall(0), &cube, NULL, &error));
}

static void graph(void)
{
    static const char *const a[] = { "input" }, *const b[] = { "first/matmul" }, *const c[] = { "first/relu" };
    static const struct eventlog_node nodes[] = {
        { .name = "input", .operation = "Placeholder" },
        { .name = "first/matmul", .operation = "MatMul", .inputs = a, .input_count = 1 },
        { .name = "first/relu", .operation = "Relu", .inputs = b, .input_count = 1 },
        { .name = "result", .operation = "Softmax", .inputs = c, .input_count = 1 },
    };

    check(eventlog_writer_graph(writer, wall(0), nodes, 4, &error));
}

/* Three clouds of points in eight dimensions, with a picture of one colour each. */
static void projector(void)
{
    static const char *const kinds[] = { "red cloud", "green cloud", "blue cloud" };
    static float values[CLOUD * 8];
    static const char *labels[CLOUD];
    static uint8_t sprites[CLOUD * 16 * 16 * 3];
    const struct eventlog_embedding clouds = { .name = "clouds",
                                               .values = values,
                                               .points = CLOUD,
                                               .dimensions = 8,
                                               .labels = labels,
                                               .columns = 1,
                                               .sprites = sprites,
                                               .sprite_height = 16,
                                               .sprite_width = 16,
                                               .sprite_channels = 3 };

    for (int i = 0; i < CLOUD; i++) {
        labels[i] = kinds[i % 3];
        for (int d = 0; d < 8; d++)
            values[i * 8 + d] = (float)((d == i % 3) * 4 + sin(i * 12.9898 + d * 78.233));
        for (int p = 0; p < 16 * 16; p++)
            for (int c = 0; c < 3; c++)
                sprites[(i * 16 * 16 + p) * 3 + c] = c == i % 3 ? 230 : 30;
    }
    check(eventlog_writer_projector(writer, &clouds, 1, &error));
}

static void layout(void)
{
    static const char *const tags[] = { "loss$", "accuracy" };
    static const struct eventlog_margin margins[] = { { "loss", "loss/low", "loss/high" } };
    static const struct eventlog_chart charts[] = { { .title = "lines", .tags = tags, .tag_count = 2 },
                                                    { .title = "band", .margins = margins, .margin_count = 1 } };
    static const struct eventlog_category category = { "chosen", charts, 2, 0 };

    check(eventlog_writer_layout(writer, wall(0), &category, 1, &error));
}

static void trial(double rate, const char *optimizer, float accuracy)
{
    const struct eventlog_hparam hparams[] = {
        { .name = "rate", .type = EVENTLOG_HPARAM_NUMBER, .number = rate },
        { .name = "optimizer", .type = EVENTLOG_HPARAM_STRING, .text = optimizer },
    };

    check(eventlog_writer_session_start(writer, wall(0), hparams, 2, NULL, &error));
    check(eventlog_writer_scalar(writer, "accuracy", STEPS, wall(STEPS), accuracy, &error));
    check(eventlog_writer_session_end(writer, wall(STEPS), EVENTLOG_SESSION_SUCCESS, &error));
}

int main(int argc, char **argv)
{
    static const struct eventlog_hparam_info hparams[] = {
        { .name = "rate", .type = EVENTLOG_HPARAM_NUMBER, .has_interval = 1, .min = 0, .max = 1 },
        { .name = "optimizer", .type = EVENTLOG_HPARAM_STRING },
    };
    static const struct eventlog_metric_info metric = { .tag = "accuracy", .display_name = "Accuracy" };
    static const struct eventlog_experiment experiment = {
        .hparams = hparams, .hparam_count = 2, .metrics = &metric, .metric_count = 1
    };

    if (argc != 2)
        return 2;
    start(argv[1], "train");
    scalars(0);
    pictures();
    tone();
    texts();
    histograms();
    curve();
    mesh();
    graph();
    projector();
    layout();
    stop();
    start(argv[1], "eval");
    scalars(2);
    stop();
    start(argv[1], ".");
    check(eventlog_writer_experiment(writer, wall(0), &experiment, &error));
    stop();
    for (int i = 0; i < 2; i++) {
        start(argv[1], i ? "trial-1" : "trial-0");
        trial(i ? 0.25 : 0.5, i ? "adam" : "momentum", i ? 0.875f : 0.75f);
        stop();
    }
    return 0;
}
