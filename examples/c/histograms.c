/*
 * histograms DIRECTORY - how the weights of a layer are spread, step by step.
 * cc -o histograms histograms.c $(pkg-config --cflags --libs eventlog)
 */
#include <eventlog/eventlog.h>

#include <stdio.h>

enum { WEIGHTS = 5000, STEPS = 20 };

/* The sum of some uniform numbers is nearly normal. */
static float draw(unsigned *state)
{
    float sum = -6;

    for (int i = 0; i < 12; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (float)(*state >> 8) / 16777216.0f;
    }
    return sum;
}

int main(int argc, char **argv)
{
    const struct eventlog_value_options thirty = { .buckets = 30, .description = "after each *update*" };
    const double edges[] = { 0, 1, 10, 100, 1000 }; /* milliseconds */
    static float weights[WEIGHTS];
    struct eventlog_error error;
    struct eventlog_writer *writer;
    unsigned state = 1;
    int rc;

    if (argc != 2) {
        fprintf(stderr, "usage: histograms DIRECTORY\n");
        return 2;
    }
    if ((rc = eventlog_writer_open(&writer, argv[1], NULL, &error)) != EVENTLOG_OK) {
        fprintf(stderr, "histograms: %s\n", error.message);
        return 1;
    }
    for (int step = 0; step < STEPS && rc == EVENTLOG_OK; step++) {
        const double times[] = { 5, 80 - step, 10 + step, 1 };

        for (int i = 0; i < WEIGHTS; i++)
            weights[i] = draw(&state) * (1 + 0.1f * (float)step);
        rc = eventlog_writer_histogram_floats(writer, "layer1/weights", step, 0, weights, WEIGHTS, &thirty, &error);
        if (rc == EVENTLOG_OK) /* counted elsewhere: four buckets, five edges */
            rc = eventlog_writer_histogram_buckets(writer, "input/milliseconds", step, 0, edges, times, 4, NULL,
                                                   &error);
    }
    if (rc == EVENTLOG_OK)
        rc = eventlog_writer_close(writer, &error);
    else
        eventlog_writer_close(writer, NULL);
    if (rc != EVENTLOG_OK)
        fprintf(stderr, "histograms: %s\n", error.message);
    return rc != EVENTLOG_OK;
}
