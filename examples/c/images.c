/*
 * images DIRECTORY - pictures: from bytes, and from numbers between 0 and 1.
 * cc -o images images.c $(pkg-config --cflags --libs eventlog)
 */
#include <eventlog/eventlog.h>

#include <stdint.h>
#include <stdio.h>

enum { SIDE = 32, BATCH = 2 };

int main(int argc, char **argv)
{
    static uint8_t colours[BATCH][SIDE][SIDE][3]; /* pictures, rows, columns, channels: as most data sets have them */
    static float grey[SIDE][SIDE];
    const struct eventlog_value_options options = { .display_name = "what the net sees" };
    struct eventlog_error error;
    struct eventlog_writer *writer;
    int rc;

    if (argc != 2) {
        fprintf(stderr, "usage: images DIRECTORY\n");
        return 2;
    }
    if ((rc = eventlog_writer_open(&writer, argv[1], NULL, &error)) != EVENTLOG_OK) {
        fprintf(stderr, "images: %s\n", error.message);
        return 1;
    }
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            for (int i = 0; i < BATCH; i++) {
                colours[i][y][x][0] = (uint8_t)(8 * x);
                colours[i][y][x][1] = (uint8_t)(8 * y);
                colours[i][y][x][2] = (uint8_t)(255 * i);
            }
            grey[y][x] = (float)(x * y) / (SIDE * SIDE);
        }
    /* TensorBoard shows picture i of a batch as sample i of the tag. */
    rc = eventlog_writer_image(writer, "input", 0, 0, &colours[0][0][0][0], BATCH, SIDE, SIDE, 3, &options, &error);
    if (rc == EVENTLOG_OK)
        rc = eventlog_writer_image_floats(writer, "attention", 0, 0, &grey[0][0], 1, SIDE, SIDE, 1, NULL, &error);
    if (rc == EVENTLOG_OK)
        rc = eventlog_writer_close(writer, &error);
    else
        eventlog_writer_close(writer, NULL);
    if (rc != EVENTLOG_OK)
        fprintf(stderr, "images: %s\n", error.message);
    return rc != EVENTLOG_OK;
}
