/*
 * event_log - writes event files of a given shape and size for the benchmarks of the reading side.
 *
 *   event_log scalars N FILE      N points of 37 tags as simple_value, the values of a random walk
 *   event_log tensors N FILE      the same as TensorFlow 2 writes them: a tensor with metadata in every event
 *   event_log histograms N FILE   N histograms of 8 tags with about 60 buckets each, as TensorFlow 1 writes them
 *   event_log mixed N FILE        N events: seven scalars, every other tag in either form, then a histogram
 *   event_log tags N FILE         N tags with 10 points each
 *   event_log runs N DIRECTORY    N runs of one file with 10 points each
 *   event_log curves N DIRECTORY  N runs of one file with 10 tags of 1,000 points each
 *   event_log large N DIRECTORY   8 runs of one file with N points of 37 tags each
 */
#include "base/bytes.h"
#include "base/random.h"
#include "eventlog/format/record.h"
#include "eventlog/format/wire.h"

#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TAGS = 37,
    HISTOGRAM_TAGS = 8,
    BUCKETS = 60,
    FEW_POINTS = 10,
    RUN_TAGS = 10,
    RUN_POINTS = 10000,
    LARGE_RUNS = 8
};

struct log_file {
    FILE *file;
    struct wire wire;
    struct random random;
    double walk;
};

static void fixed32(struct wire *w, int field, float v)
{
    uint8_t bytes[5] = { (uint8_t)(field << 3 | 5) };

    put_le32(bytes + 1, float_bits(v));
    buffer_append(&w->bytes, bytes, sizeof bytes);
}

static void put_record(struct log_file *l)
{
    static uint8_t record[65536];
    size_t n = l->wire.bytes.length;

    if (n > sizeof record - RECORD_OVERHEAD || wire_check(&l->wire, "event", NULL) != 0)
        exit(1);
    memcpy(record + RECORD_HEADER, l->wire.bytes.data, n);
    record_seal(record, n);
    if (fwrite(record, 1, n + RECORD_OVERHEAD, l->file) != n + RECORD_OVERHEAD)
        exit(1);
    buffer_clear(&l->wire.bytes);
}

static void begin(struct log_file *l, const char *path, unsigned seed)
{
    static const struct wire empty = WIRE_EMPTY;

    l->wire = empty;
    l->walk = 1;
    random_init(&l->random, seed, RANDOM_TEST, 0, 0);
    if (!(l->file = fopen(path, "wb"))) {
        perror(path);
        exit(1);
    }
    setvbuf(l->file, NULL, _IOFBF, 1 << 20);
    wire_number(&l->wire, 1, 1.7e9);
    wire_text(&l->wire, 3, "brain.Event:2");
    put_record(l);
}

static void end(struct log_file *l)
{
    wire_release(&l->wire);
    if (fclose(l->file) != 0)
        exit(1);
}

static double next_value(struct log_file *l)
{
    l->walk += ((double)(random_u32(&l->random) >> 8) / (1 << 24) - 0.5) * 0.01;
    return l->walk;
}

/* Wall times are whole microseconds, as gettimeofday() gives them. */
static size_t begin_event(struct log_file *l, uint64_t i, int64_t step)
{
    wire_number(&l->wire, 1, (double)(1700000000000000ull + i * 1371 + random_u32(&l->random) % 1000) / 1e6);
    wire_integer(&l->wire, 2, step);
    return wire_begin(&l->wire, 5);
}

static void put_scalar(struct log_file *l, uint64_t i, unsigned tags, int tensor)
{
    size_t summary = begin_event(l, i, (int64_t)(i / tags)), value = wire_begin(&l->wire, 1), inner, deeper;
    char tag[40];

    snprintf(tag, sizeof tag, "layer_%02d/loss", (int)(i % tags));
    wire_text(&l->wire, 1, tag);
    if (!tensor) {
        fixed32(&l->wire, 2, (float)next_value(l));
    } else {
        uint8_t bytes[4];

        put_le32(bytes, float_bits((float)next_value(l)));
        inner = wire_begin(&l->wire, 8);
        wire_integer(&l->wire, 1, 1);
        wire_bytes(&l->wire, 2, NULL, 0);
        wire_bytes(&l->wire, 4, bytes, sizeof bytes);
        wire_end(&l->wire, inner);
        inner = wire_begin(&l->wire, 9);
        deeper = wire_begin(&l->wire, 1);
        wire_text(&l->wire, 1, "scalars");
        wire_end(&l->wire, deeper);
        wire_end(&l->wire, inner);
    }
    wire_end(&l->wire, value);
    wire_end(&l->wire, summary);
    put_record(l);
}

static void put_histogram(struct log_file *l, uint64_t i)
{
    size_t summary = begin_event(l, i, (int64_t)(i / HISTOGRAM_TAGS)), value = wire_begin(&l->wire, 1), inner;
    uint8_t limits[8 * BUCKETS], counts[8 * BUCKETS];
    double limit = 1e-3, sum = 0;
    char tag[40];

    snprintf(tag, sizeof tag, "layer_%02d/weights", (int)(i % HISTOGRAM_TAGS));
    wire_text(&l->wire, 1, tag);
    for (int k = 0; k < BUCKETS; k++, limit *= 1.1) {
        double count = random_u32(&l->random) % 1000 + 1;

        put_le64(limits + 8 * k, double_bits(limit));
        put_le64(counts + 8 * k, double_bits(count));
        sum += count;
    }
    inner = wire_begin(&l->wire, 5);
    wire_number(&l->wire, 1, 1e-3);
    wire_number(&l->wire, 2, limit);
    wire_number(&l->wire, 3, sum);
    wire_number(&l->wire, 4, sum);
    wire_number(&l->wire, 5, sum);
    wire_bytes(&l->wire, 6, limits, sizeof limits);
    wire_bytes(&l->wire, 7, counts, sizeof counts);
    wire_end(&l->wire, inner);
    wire_end(&l->wire, value);
    wire_end(&l->wire, summary);
    put_record(l);
}

static void write_runs(uint64_t count, const char *directory, uint64_t points, unsigned tags)
{
    char path[PATH_MAX];
    struct log_file l;

    mkdir(directory, 0777);
    for (uint64_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/run_%05u", directory, (unsigned)i);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/run_%05u/events.out.tfevents.1700000000.host.1.0", directory, (unsigned)i);
        begin(&l, path, (unsigned)i);
        for (uint64_t k = 0; k < points; k++)
            put_scalar(&l, k, tags, 0);
        end(&l);
    }
}

int main(int argc, char **argv)
{
    uint64_t count = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    struct log_file l;

    if (!count) {
        fprintf(stderr, "event_log scalars|tensors|histograms|mixed|tags N FILE, or runs|curves|large N DIRECTORY\n");
        return 2;
    }
    if (!strcmp(argv[1], "runs")) {
        write_runs(count, argv[3], FEW_POINTS, 1);
        return 0;
    }
    if (!strcmp(argv[1], "curves")) {
        write_runs(count, argv[3], RUN_POINTS, RUN_TAGS);
        return 0;
    }
    if (!strcmp(argv[1], "large")) {
        write_runs(LARGE_RUNS, argv[3], count, TAGS);
        return 0;
    }
    begin(&l, argv[3], 1);
    for (uint64_t i = 0; !strcmp(argv[1], "tags") && i < count * FEW_POINTS; i++)
        put_scalar(&l, i, (unsigned)count, 0);
    for (uint64_t i = 0; strcmp(argv[1], "tags") != 0 && i < count; i++)
        if (!strcmp(argv[1], "histograms") || (!strcmp(argv[1], "mixed") && i % 8 == 7))
            put_histogram(&l, i);
        else
            put_scalar(&l, i, TAGS, !strcmp(argv[1], "tensors") || (!strcmp(argv[1], "mixed") && i % TAGS % 2));
    end(&l);
    return 0;
}
