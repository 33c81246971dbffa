/*
 * event_writing DIRECTORY COUNT [QUEUE_BYTES]: writes COUNT scalars of four series into one event file, from one
 * thread, with the default options (or with a queue), and prints the seconds from open until close has returned.
 */
#include "eventlog/eventlog.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    static const char *const tags[] = { "loss", "accuracy", "learning_rate", "gradient/norm" };
    struct eventlog_writer_options options = { 0 };
    struct eventlog_writer *w;
    struct eventlog_error e = { 0 };
    long count = argc > 2 ? atol(argv[2]) : 0;
    double start = now();
    int rc;

    if (count <= 0) {
        fprintf(stderr, "usage: event_writing DIRECTORY COUNT [QUEUE_BYTES]\n");
        return 2;
    }
    options.queue_bytes = argc > 3 ? (size_t)atol(argv[3]) : 0;
    rc = eventlog_writer_open(&w, argv[1], &options, &e);
    for (long i = 0; rc == EVENTLOG_OK && i < count; i++)
        rc = eventlog_writer_scalar(w, tags[i & 3], i >> 2, 0, (float)i, &e);
    if (rc == EVENTLOG_OK)
        rc = eventlog_writer_close(w, &e);
    if (rc != EVENTLOG_OK) {
        fprintf(stderr, "event_writing: %s\n", e.message);
        return 1;
    }
    printf("%.6f\n", now() - start);
    return 0;
}
