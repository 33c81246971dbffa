/* Writes a log with something to look at for each of TensorBoard's pages, for the test that looks at them.
 *
 * usage: event_pages DIRECTORY
 */
#include "eventlog/eventlog.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 20, SAMPLES = 2000, SIDE = 64 };

static struct eventlog_writer *writer;
static struct eventlog_error error;
static uint32_t state = 1;

static void check(int rc)
{
    if (rc == EVENTLOG_OK)
        return;
    fprintf(stderr, "event_pages: %s\n", error.message);
    exit(1);
}

static double wall(int step)
{
    return 1700000000 + 30.0 * step;
}

static double uniform(void)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) / (double)(1 << 24);
}

static double bell(void)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += uniform();
    return sum - 6;
}

static void scalars(double rate)
{
    for (int step = 0; step < STEPS; step++) {
        float loss = (float)(exp(-rate * step) + 0.02 * uniform());

        check(eventlog_writer_scalar(writer, "loss", step, wall(step), loss, &error));
        check(eventlog_writer_scalar(writer, "loss_low", step, wall(step), loss * 0.8f, &error));
        check(eventlog_writer_scalar(writer, "loss_high", step, wall(step), loss * 1.2f, &error));
        check(eventlog_writer_scalar(writer, "precision", step, wall(step), 1 - loss / 2, &error));
    }
}

static void histograms(void)
{
    static float weights[SAMPLES];

    for (int step = 0; step < STEPS; step += 4) {
        for (int i = 0; i < SAMPLES; i++)
            weights[i] = (float)(bell() + step / 5.0);
        check(eventlog_writer_histogram_floats(writer, "weights", step, wall(step), weights, SAMPLES, NULL, &error));
    }
}

static void pictures(void)
{
    static uint8_t pixels[SIDE * SIDE * 3];
    static float tone[8000];
    static const char *const cells[] = { "layer", "size", "**conv1**", "5 x 5", "**fc3**", "512" };

    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            uint8_t *p = pixels + (y * SIDE + x) * 3;

            p[0] = (uint8_t)(x * 4);
            p[1] = (uint8_t)(y * 4);
            p[2] = 200;
        }
    for (int i = 0; i < 8000; i++)
        tone[i] = (float)(0.3 * sin(i * 2 * 3.141592653589793 * 440 / 8000));
    check(eventlog_writer_image(writer, "gradient", 3, wall(3), pixels, 1, SIDE, SIDE, 3, NULL, &error));
    check(eventlog_writer_audio(writer, "tone", 3, wall(3), tone, 1, 8000, 1, 8000, NULL, &error));
    check(eventlog_writer_text_table(writer, "layers", 3, wall(3), cells, 3, 2, NULL, &error));
}

static void pr_curve(void)
{
    static uint8_t labels[SAMPLES];
    static float predictions[SAMPLES];

    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = uniform() < 0.5;
        predictions[i] = (float)(0.6 * uniform() + 0.4 * labels[i]);
    }
    check(eventlog_writer_pr_curve(writer, "digit 7", 3, wall(3), labels, predictions, NULL, SAMPLES, NULL, &error));
}

/* A cube with a colour of its own at each corner. */
static void mesh(void)
{
    static const int32_t faces[] = { 0, 1, 3, 0, 3, 2, 4, 6, 7, 4, 7, 5, 0, 4, 5, 0, 5, 1,
                                     2, 3, 7, 2, 7, 6, 0, 2, 6, 0, 6, 4, 1, 5, 7, 1, 7, 3 };
    float vertices[8 * 3];
    uint8_t colors[8 * 3];
    struct eventlog_mesh cube = { .batch = 1, .vertex_count = 8, .face_count = 12, .vertices = vertices,
                                  .faces = faces, .colors = colors };

    for (int i = 0; i < 8; i++)
        for (int axis = 0; axis < 3; axis++) {
            int bit = i >> (2 - axis) & 1;

            vertices[i * 3 + axis] = bit ? 1 : -1;
            colors[i * 3 + axis] = bit ? 250 : 30;
        }
    check(eventlog_writer_mesh(writer, "cube", 3, wall(3), &cube, NULL, &error));
}

static void layout(void)
{
    static const char *const tags[] = { "loss", "precision" };
    static const struct eventlog_margin margins[] = { { "loss", "loss_low", "loss_high" } };
    static const struct eventlog_chart charts[] = { { .title = "both in one", .tags = tags, .tag_count = 2 },
                                                    { .title = "with a band", .margins = margins, .margin_count = 1 } };
    static const struct eventlog_category categories[] = { { "training", charts, 2, 0 } };

    check(eventlog_writer_layout(writer, wall(0), categories, 1, &error));
}

static void graph(void)
{
    static const char *const a[] = { "images" }, *const b[] = { "conv1" }, *const c[] = { "pool2" };
    static const struct eventlog_node nodes[] = {
        { .name = "images", .operation = "Placeholder" },
        { .name = "conv1", .operation = "Conv2D", .inputs = a, .input_count = 1 },
        { .name = "pool2", .operation = "MaxPool", .inputs = b, .input_count = 1 },
        { .name = "logits", .operation = "MatMul", .inputs = c, .input_count = 1 },
    };

    check(eventlog_writer_graph(writer, wall(0), nodes, 4, &error));
}

static void session(double rate)
{
    const struct eventlog_hparam hparams[] = {
        { .name = "learning_rate", .type = EVENTLOG_HPARAM_NUMBER, .number = rate },
        { .name = "run_option", .type = EVENTLOG_HPARAM_STRING, .text = rate > 0.15 ? "mpi" : "ps" },
    };

    check(eventlog_writer_session_start(writer, wall(0), hparams, 2, NULL, &error));
    check(eventlog_writer_session_end(writer, wall(STEPS), EVENTLOG_SESSION_SUCCESS, &error));
}

int main(int argc, char **argv)
{
    static const char *const runs[] = { "mpi", "ps" };

    if (argc != 2)
        return 2;
    for (int run = 0; run < 2; run++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", argv[1], runs[run]);
        check(eventlog_writer_open(&writer, path, NULL, &error));
        scalars(run ? 0.125 : 0.25);
        session(run ? 0.125 : 0.25);
        if (!run) {
            histograms();
            pictures();
            pr_curve();
            mesh();
            layout();
            graph();
        }
        check(eventlog_writer_close(writer, &error));
    }
    return 0;
}
