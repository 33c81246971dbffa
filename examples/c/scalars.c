/*
 * scalars DIRECTORY - a training loop that leaves curves.
 * cc -o scalars scalars.c $(pkg-config --cflags --libs eventlog)
 */
#include <eventlog/eventlog.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    const struct eventlog_writer_options options = { .flush_seconds = 10 }; /* what is not said has its default */
    struct eventlog_error error;
    struct eventlog_writer *writer;

    if (argc != 2) {
        fprintf(stderr, "usage: scalars DIRECTORY\n");
        return 2;
    }
    if (eventlog_writer_open(&writer, argv[1], &options, &error) != EVENTLOG_OK) {
        fprintf(stderr, "scalars: %s\n", error.message);
        return 1;
    }
    for (int step = 0; step < 1000; step++) {
        float loss = 1 / (1 + (float)step / 50) + 0.02f * (float)(step % 7); /* the work would be here */

        /* A tag is a curve; tags with the same word before the slash stand together. Wall time 0 means now. A full disk
         * costs points, not the training: later calls try again. */
        if (eventlog_writer_scalar(writer, "train/loss", step, 0, loss, &error) != EVENTLOG_OK)
            fprintf(stderr, "scalars: step %d: %s\n", step, error.message);
        if (step % 100 == 0) {
            eventlog_writer_scalar(writer, "train/learning_rate", step, 0, 0.1f / (float)(1 + step / 500), NULL);
            eventlog_writer_flush(writer, NULL); /* TensorBoard sees them now; otherwise within flush_seconds */
        }
    }
    if (eventlog_writer_close(writer, &error) != EVENTLOG_OK) { /* the last points are written here */
        fprintf(stderr, "scalars: %s\n", error.message);
        return 1;
    }
    return 0;
}
