/*
 * value_speed DIRECTORY ROUNDS: how long calls take that write larger values, in processor seconds, the least of ROUNDS:
 * a histogram of 10^6 floats, one of 10^6 doubles, and a picture of 512 x 512 x 3 that looks like a photograph, with its
 * bytes. The picture is written to DIRECTORY/picture.rgb for peers.
 */
#include "base/random.h"
#include "eventlog/eventlog.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { VALUES = 1000000, SIDE = 512 };

static double cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(int rc, const struct eventlog_error *e)
{
    if (rc == EVENTLOG_OK)
        return;
    fprintf(stderr, "value_speed: %s\n", e->message);
    exit(1);
}

/* Slopes, shades and the noise of a sensor. */
static void draw(uint8_t *pixels, struct random *r)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int c = 0; c < 3; c++) {
                double light = 128 + 50 * sin(0.021 * x + 0.013 * y) + 30 * sin(0.07 * x - 0.05 * y + c);
                double noise = 0;

                for (int k = 0; k < 4; k++)
                    noise += (double)(random_u32(r) >> 8) / (1 << 24) - 0.5;
                pixels[(y * SIDE + x) * 3 + c] = (uint8_t)fmin(fmax(light + 5 * noise, 0), 255);
            }
}

int main(int argc, char **argv)
{
    static float floats[VALUES];
    static double doubles[VALUES];
    static uint8_t pixels[SIDE * SIDE * 3];
    struct eventlog_writer_statistics before, after;
    struct eventlog_error e = { 0 };
    struct eventlog_writer *w;
    double least[3] = { INFINITY, INFINITY, INFINITY };
    char path[PATH_MAX];
    struct random r;
    FILE *file;

    if (argc != 3) {
        fprintf(stderr, "usage: value_speed DIRECTORY ROUNDS\n");
        return 2;
    }
    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (int i = 0; i < VALUES; i++) {
        double u = ((double)random_u32(&r) + 1) / 4294967297.0, v = (double)random_u32(&r) / 4294967296.0;

        floats[i] = (float)(doubles[i] = 0.05 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    }
    draw(pixels, &r);
    check(eventlog_writer_open(&w, argv[1], NULL, &e), &e);
    for (int i = 0; i < atoi(argv[2]); i++) {
        double times[4] = { cpu() };

        check(eventlog_writer_histogram_floats(w, "floats", i, 1, floats, VALUES, NULL, &e), &e);
        times[1] = cpu();
        check(eventlog_writer_histogram_doubles(w, "doubles", i, 1, doubles, VALUES, NULL, &e), &e);
        check(eventlog_writer_flush(w, &e), &e);
        check(eventlog_writer_statistics(w, &before, &e), &e);
        times[2] = cpu();
        check(eventlog_writer_image(w, "picture", i, 1, pixels, 1, SIDE, SIDE, 3, NULL, &e), &e);
        times[3] = cpu();
        check(eventlog_writer_flush(w, &e), &e);
        check(eventlog_writer_statistics(w, &after, &e), &e);
        for (int k = 0; k < 3; k++)
            least[k] = fmin(least[k], times[k + 1] - times[k]);
    }
    check(eventlog_writer_close(w, &e), &e);
    snprintf(path, sizeof path, "%s/picture.rgb", argv[1]);
    if (!(file = fopen(path, "wb")) || fwrite(pixels, 1, sizeof pixels, file) != sizeof pixels || fclose(file))
        return 1;
    printf("%.6f %.6f %.6f %llu\n", least[0], least[1], least[2], (unsigned long long)(after.bytes - before.bytes));
    return 0;
}
