/*
 * The reader of eventlog.h: the golden file of the format's specification, read whole and as it grows at every place;
 * directories whose files and runs come, change and go; filters; damage; what values of each kind hold.
 */
#include "eventlog/eventlog.h"

#include "tests/eventlog/golden_log.h"

#include <math.h>
#include <poll.h>
#include <sys/stat.h>
#include <zlib.h>

static struct eventlog_reader *open_reader(const char *path, const struct eventlog_reader_options *options)
{
    struct eventlog_error error = { 0 };
    struct eventlog_reader *r;

    if (eventlog_reader_open(&r, path, options, &error) != EVENTLOG_OK)
        fail_msg("%s", error.message);
    return r;
}

static int next(struct eventlog_reader *r)
{
    struct eventlog_error error = { 0 };
    int rc = eventlog_reader_next(r, &error);

    if (rc < 0)
        fail_msg("%s", error.message);
    return rc;
}

/* The next value, over the borders of events. */
static const struct eventlog_value *next_value(struct eventlog_reader *r)
{
    const struct eventlog_value *v = eventlog_reader_value(r);

    while (!v && next(r) == EVENTLOG_READ_EVENT)
        v = eventlog_reader_value(r);
    return v;
}

/* All to the next end as a text: a letter an event, a number's value, D damage, R a restart. */
static void summary(struct eventlog_reader *r, char *out, size_t size)
{
    size_t n = 0;
    int rc;

    out[0] = '\0';
    while ((rc = next(r)) != EVENTLOG_READ_END && n + 64 < size) {
        const struct eventlog_event *event = eventlog_reader_event(r);
        const struct eventlog_value *v;

        if (rc == EVENTLOG_READ_DAMAGE)
            n += (size_t)snprintf(out + n, size - n, "D%d ", (int)eventlog_reader_damage(r)->kind);
        if (rc == EVENTLOG_READ_RESTARTED)
            n += (size_t)snprintf(out + n, size - n, "R(%s) ", event->run);
        if (rc == EVENTLOG_READ_EVENT && event->what != EVENTLOG_EVENT_VALUES)
            n += (size_t)snprintf(out + n, size - n, "%d ", (int)event->what);
        while (rc == EVENTLOG_READ_EVENT && (v = eventlog_reader_value(r)))
            n += (size_t)snprintf(out + n, size - n, "%s/%s:%lld=%g ", v->series->run, v->series->tag,
                                  (long long)v->step, v->number);
    }
}

static void test_golden(void **state)
{
    struct eventlog_reader_totals totals;
    const struct eventlog_event *event;
    const struct eventlog_value *v;
    const struct eventlog_bucket *rows;
    struct eventlog_blobs blobs;
    struct eventlog_tensor tensor;
    struct eventlog_reader *r;
    size_t count;
    (void)state;

    put(in("a.tfevents"), O_TRUNC, golden, golden_size);
    r = open_reader(directory, NULL);
    event = eventlog_reader_event(r);
    assert_int_equal(next(r), EVENTLOG_READ_EVENT);
    assert_int_equal(event->what, EVENTLOG_EVENT_FILE_VERSION);
    assert_int_equal(event->payload_length, 13);
    assert_memory_equal(event->payload, "brain.Event:2", 13);
    assert_string_equal(event->run, ".");
    assert_string_equal(event->file, in("a.tfevents"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(next(r), EVENTLOG_READ_EVENT);
        assert_int_equal(event->what, EVENTLOG_EVENT_VALUES);
        assert_non_null(v = eventlog_reader_value(r));
        assert_int_equal(v->kind, EVENTLOG_KIND_SCALAR);
        assert_int_equal(v->stored, EVENTLOG_STORED_SIMPLE_VALUE);
        assert_string_equal(v->series->tag, "loss");
        assert_string_equal(v->series->plugin, "scalars");
        assert_int_equal(v->step, i);
        assert_true(v->number == 2.0 / (1 << i) && v->wall_time == 1e9 + 1 + i);
        assert_null(eventlog_reader_value(r));
    }
    assert_int_equal(event->offset, 122);
    assert_int_equal(event->length, 26);
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_HISTOGRAM);
    assert_int_equal(eventlog_reader_histogram(r, &rows, &count, NULL), EVENTLOG_OK);
    assert_int_equal(count, 3);
    assert_true(rows[0].left == -1 && rows[0].right == 0 && rows[0].count == 1);
    assert_true(rows[2].left == 2 && rows[2].right == 3 && rows[2].count == 1);
    assert_int_equal(eventlog_reader_tensor(r, &tensor, NULL), EVENTLOG_ERROR_ARGUMENT);
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_IMAGE);
    assert_int_equal(eventlog_reader_blobs(r, &blobs, NULL), EVENTLOG_OK);
    assert_int_equal(blobs.count, 1);
    assert_int_equal(blobs.width, 3);
    assert_int_equal(blobs.height, 2);
    assert_int_equal(blobs.items[0].length, 4);
    assert_memory_equal(blobs.items[0].data, "\x89PNG", 4);
    assert_int_equal(eventlog_reader_histogram(r, &rows, &count, NULL), EVENTLOG_ERROR_ARGUMENT);
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_AUDIO);
    assert_int_equal(eventlog_reader_blobs(r, &blobs, NULL), EVENTLOG_OK);
    assert_memory_equal(blobs.items[0].data, "RIFF", 4);
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_TEXT);
    assert_string_equal(v->series->plugin, "text");
    assert_int_equal(eventlog_reader_blobs(r, &blobs, NULL), EVENTLOG_OK);
    assert_memory_equal(blobs.items[0].data, "hello", 5);
    assert_int_equal(eventlog_reader_tensor(r, &tensor, NULL), EVENTLOG_OK);
    assert_int_equal(tensor.dtype, EVENTLOG_DTYPE_STRING);
    assert_int_equal(tensor.rank, 1);
    assert_int_equal(tensor.shape[0], 1);
    assert_int_equal(tensor.string_count, 1);
    assert_int_equal(next(r), EVENTLOG_READ_EVENT);
    assert_int_equal(event->what, EVENTLOG_EVENT_GRAPH);
    assert_int_equal(event->payload_length, 12);
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_OTHER);
    assert_string_equal(v->series->plugin, "hparams");
    assert_int_equal(v->series->plugin_content_length, 2);
    v = next_value(r);
    assert_true(v->step == 1 && v->number == 0.75);
    assert_null(next_value(r));
    totals = eventlog_reader_totals(r);
    assert_true(totals.runs == 1 && totals.files == 1 && totals.records == 11 && !totals.damaged && !totals.unfinished);
    eventlog_reader_close(r);
    assert_int_equal(eventlog_reader_open(&r, in("nothing"), NULL, NULL), EVENTLOG_ERROR_IO);
}

/* The file cut at every place, and the rest added later; and byte by byte. */
static void test_grows_anywhere(void **state)
{
    char whole[1000], first[1000], then[1000];
    struct eventlog_reader *r;
    (void)state;

    put(in("a.tfevents"), O_TRUNC, golden, golden_size);
    r = open_reader(in("a.tfevents"), NULL);
    summary(r, whole, sizeof whole);
    eventlog_reader_close(r);
    for (size_t cut = 0; cut <= golden_size; cut++) {
        put(in("a.tfevents"), O_TRUNC, golden, cut);
        r = open_reader(directory, NULL);
        summary(r, first, sizeof first);
        put(in("a.tfevents"), O_APPEND, golden + cut, golden_size - cut);
        summary(r, then, sizeof then);
        strcat(first, then);
        if (strcmp(first, whole) != 0)
            fail_msg("cut at %zu: %s instead of %s", cut, first, whole);
        assert_int_equal(eventlog_reader_totals(r).unfinished, 0);
        eventlog_reader_close(r);
    }
    put(in("a.tfevents"), O_TRUNC, "", 0);
    r = open_reader(in("a.tfevents"), NULL);
    first[0] = '\0';
    for (size_t i = 0; i < golden_size; i++) {
        put(in("a.tfevents"), O_APPEND, golden + i, 1);
        summary(r, then, sizeof then);
        strcat(first, then);
    }
    assert_string_equal(first, whole);
    eventlog_reader_close(r);
}

static void expect(struct eventlog_reader *r, const char *wanted)
{
    char found[1000];

    summary(r, found, sizeof found);
    assert_string_equal(found, wanted);
}

static void test_directory(void **state)
{
    struct eventlog_reader *r;
    (void)state;

    assert_int_equal(mkdir(in("b"), 0777), 0);
    assert_int_equal(mkdir(in("a"), 0777), 0);
    scalar(in("b/1.tfevents"), 0, "t", 1, 5, 1);
    scalar(in("a/2.tfevents"), 0, "t", 2, 5, 2);
    scalar(in("a/1.tfevents"), 0, "t", 1, 5, 1);
    put(in("a/readme"), 0, "no events", 9);
    r = open_reader(directory, NULL);
    expect(r, "a/t:1=1 a/t:2=2 b/t:1=1 ");
    expect(r, "");
    scalar(in("b/1.tfevents"), O_APPEND, "t", 2, 5, 2); /* bytes, */
    scalar(in("a/0.tfevents"), 0, "u", 9, 5, 9);        /* a file with an earlier name, */
    assert_int_equal(mkdir(in("a/new"), 0777), 0);
    scalar(in("a/new/1.tfevents"), 0, "t", 7, 5, 7); /* a run */
    expect(r, "a/u:9=9 b/t:2=2 a/new/t:7=7 ");
    /* Replaced by another file: the run comes again, all of its files. */
    scalar(in("x.tmp"), 0, "other", 1, 6, 3);
    assert_int_equal(rename(in("x.tmp"), in("a/1.tfevents")), 0);
    expect(r, "R(a) a/other:1=3 a/t:2=2 a/u:9=9 ");
    /* Cut. */
    assert_int_equal(truncate(in("b/1.tfevents"), 0), 0);
    expect(r, "R(b) ");
    scalar(in("b/1.tfevents"), O_APPEND, "t", 3, 5, 3);
    expect(r, "b/t:3=3 ");
    /* One file of a run goes: what was read stays. All files go: so does the run, and it may come again. */
    assert_int_equal(unlink(in("a/2.tfevents")), 0);
    expect(r, "");
    assert_int_equal(unlink(in("b/1.tfevents")), 0);
    expect(r, "R(b) ");
    scalar(in("b/3.tfevents"), 0, "t", 4, 5, 4);
    expect(r, "b/t:4=4 ");
    assert_int_equal(eventlog_reader_totals(r).runs, 3);
    eventlog_reader_close(r);
}

/* The directory goes away and comes again. */
static void test_directory_gone(void **state)
{
    struct eventlog_reader *r;
    (void)state;

    assert_int_equal(mkdir(in("logs"), 0777), 0);
    scalar(in("logs/1.tfevents"), 0, "t", 1, 5, 1);
    r = open_reader(in("logs"), NULL);
    expect(r, "./t:1=1 ");
    assert_int_equal(rename(in("logs"), in("elsewhere")), 0);
    expect(r, "R(.) ");
    expect(r, "");
    assert_int_equal(rename(in("elsewhere"), in("logs")), 0);
    expect(r, "./t:1=1 ");
    eventlog_reader_close(r);
}

/* A file that is renamed out of the log while it is written is read to its end. */
static void test_renamed(void **state)
{
    struct eventlog_reader *r;
    (void)state;

    assert_int_equal(mkdir(in("logs"), 0777), 0);
    scalar(in("logs/1.tfevents"), 0, "t", 1, 5, 1);
    scalar(in("logs/2.tfevents"), 0, "t", 2, 5, 2);
    r = open_reader(in("logs"), NULL);
    expect(r, "./t:1=1 ./t:2=2 ");
    assert_int_equal(rename(in("logs/2.tfevents"), in("elsewhere")), 0);
    scalar(in("elsewhere"), O_APPEND, "t", 3, 5, 3);
    expect(r, "./t:3=3 ");
    eventlog_reader_close(r);
}

static void test_filters(void **state)
{
    static const char *const runs[] = { "a*", "c" }, *const tags[] = { "loss*", "x" };
    struct eventlog_reader_options o = { .runs = runs, .run_count = 2 };
    struct eventlog_reader *r;
    (void)state;

    assert_int_equal(mkdir(in("ab"), 0777), 0);
    assert_int_equal(mkdir(in("b"), 0777), 0);
    put(in("ab/1.tfevents"), 0, golden, golden_size);
    put(in("b/1.tfevents"), 0, golden, golden_size);
    r = open_reader(directory, &o);
    expect(r, "3 ab/loss:0=2 ab/loss:1=1 ab/loss:2=0.5 ab/w:0=0 ab/img:0=0 ab/snd:0=0 ab/note:0=0 4 "
              "ab/_hparams_/session_start_info:0=0 ab/loss:1=0.75 ");
    eventlog_reader_close(r);
    o.tags = tags;
    o.tag_count = 2;
    r = open_reader(directory, &o);
    expect(r, "ab/loss:0=2 ab/loss:1=1 ab/loss:2=0.5 ab/loss:1=0.75 ");
    eventlog_reader_close(r);
    o.has_first_step = 1;
    o.first_step = 1;
    o.has_last_step = 1;
    o.last_step = 1;
    r = open_reader(directory, &o);
    expect(r, "ab/loss:1=1 ab/loss:1=0.75 ");
    eventlog_reader_close(r);
    o = (struct eventlog_reader_options){ .numbers_only = 1 };
    r = open_reader(in("b"), &o);
    expect(r, "./loss:0=2 ./loss:1=1 ./loss:2=0.5 ./loss:1=0.75 ");
    eventlog_reader_close(r);
}

static void test_records(void **state)
{
    const struct eventlog_reader_options o = { .records_only = 1 };
    struct eventlog_reader *r;
    uint8_t record[RECORD_OVERHEAD + 3] = { 0 };
    (void)state;

    memcpy(record + RECORD_HEADER, "\xff\xff\xff", 3); /* no event at all */
    record_seal(record, 3);
    put(in("a.tfevents"), 0, golden, golden_size);
    put(in("a.tfevents"), O_APPEND, record, sizeof record);
    r = open_reader(directory, &o);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(next(r), EVENTLOG_READ_EVENT);
        assert_int_equal(eventlog_reader_event(r)->what, EVENTLOG_EVENT_RECORD);
        assert_null(eventlog_reader_value(r));
    }
    assert_int_equal(eventlog_reader_event(r)->length, 3);
    assert_memory_equal(eventlog_reader_event(r)->data, "\xff\xff\xff", 3);
    assert_int_equal(eventlog_reader_event(r)->offset, golden_size);
    assert_int_equal(next(r), EVENTLOG_READ_END);
    eventlog_reader_close(r);
}

static void test_damage(void **state)
{
    uint8_t bytes[800];
    struct eventlog_reader *r;
    const struct eventlog_damage *d;
    (void)state;

    memcpy(bytes, golden, golden_size);
    bytes[80 + 30] ^= 1; /* the data of the record at 80 */
    bytes[122] ^= 1;     /* the length of the one at 122 */
    put(in("a.tfevents"), 0, bytes, golden_size);
    scalar(in("a.tfevents"), O_APPEND, "loss", 3, INFINITY, 1);
    scalar(in("a.tfevents"), O_APPEND, "loss", 4, NAN, 1);
    scalar(in("a.tfevents"), O_APPEND, "lo\xff", 5, 5, 1);
    r = open_reader(directory, NULL);
    assert_int_equal(next(r), EVENTLOG_READ_EVENT);
    assert_int_equal(next(r), EVENTLOG_READ_EVENT);
    assert_int_equal(next(r), EVENTLOG_READ_DAMAGE);
    d = eventlog_reader_damage(r);
    assert_int_equal(d->kind, EVENTLOG_DAMAGE_DATA_CRC);
    assert_int_equal(d->offset, 80);
    assert_non_null(strstr(d->text, "CRC"));
    assert_null(eventlog_reader_value(r));
    expect(r, "D0 ./w:0=0 ./img:0=0 ./snd:0=0 ./note:0=0 4 ./_hparams_/session_start_info:0=0 ./loss:1=0.75 "
              "D4 D4 D5 ./lo\xff:5=1 ");
    assert_int_equal(eventlog_reader_totals(r).damaged, 5);
    assert_int_equal(eventlog_reader_totals(r).lost, 42 + 42);
    assert_int_equal(eventlog_reader_totals(r).records, 2 + 7 + 1);
    eventlog_reader_close(r);
}

/* Compressed, cut, unpacked again: the points of a file come once. */
static void test_compressed(void **state)
{
    const struct eventlog_point *points;
    struct eventlog_points *all;
    struct eventlog_reader *r;
    size_t count, index;
    gzFile file;
    int rc;
    (void)state;

    scalar(in("1.tfevents"), 0, "t", 1, 5, 1);
    scalar(in("2.tfevents"), 0, "t", 2, 5, 2);
    r = open_reader(directory, NULL);
    expect(r, "./t:1=1 ./t:2=2 ");
    file = gzopen(in("1.tfevents.gz"), "wb"); /* while gzip is at work both are there */
    assert_non_null(file);
    expect(r, "");
    assert_int_equal(gzclose(file), Z_OK);
    assert_int_equal(unlink(in("1.tfevents")), 0);
    expect(r, "");
    eventlog_reader_close(r);

    file = gzopen(in("1.tfevents.gz"), "wb");
    assert_int_equal(gzwrite(file, golden, (unsigned)golden_size), golden_size);
    assert_int_equal(gzclose(file), Z_OK);
    r = open_reader(directory, NULL);
    expect(r, "3 ./loss:0=2 ./loss:1=1 ./loss:2=0.5 ./w:0=0 ./img:0=0 ./snd:0=0 ./note:0=0 4 "
              "./_hparams_/session_start_info:0=0 ./loss:1=0.75 ./t:2=2 ");
    expect(r, "");
    put(in("1.tfevents"), 0, golden, golden_size);
    assert_int_equal(unlink(in("1.tfevents.gz")), 0);
    expect(r, "");
    eventlog_reader_close(r);

    file = gzopen(in("3.tfevents.gz"), "wb");
    assert_int_equal(gzwrite(file, golden, (unsigned)golden_size), golden_size);
    assert_int_equal(gzclose(file), Z_OK);
    assert_int_equal(eventlog_points_read(&all, in("3.tfevents.gz"), EVENTLOG_VIEW_ALL, NULL, NULL), EVENTLOG_OK);
    assert_true(eventlog_points_find(all, ".", "loss", &index));
    points = eventlog_points_of(all, index, &count);
    assert_int_equal(count, 4);
    assert_true(points[0].value == 2 && points[3].value == 0.75);
    assert_int_equal(eventlog_points_damaged(all), 0);
    eventlog_points_free(all);

    assert_int_equal(truncate(in("3.tfevents.gz"), 30), 0);
    r = open_reader(in("3.tfevents.gz"), NULL);
    while ((rc = next(r)) == EVENTLOG_READ_EVENT)
        ;
    assert_int_equal(rc, EVENTLOG_READ_DAMAGE);
    assert_int_equal(eventlog_reader_damage(r)->kind, EVENTLOG_DAMAGE_STREAM);
    assert_int_equal(next(r), EVENTLOG_READ_END);
    assert_int_equal(next(r), EVENTLOG_READ_END);
    eventlog_reader_close(r);
}

static void test_wait(void **state)
{
    struct eventlog_error error = { 0 };
    struct eventlog_reader *r;
    struct pollfd p = { 0, POLLIN, 0 };
    (void)state;

    scalar(in("1.tfevents"), 0, "t", 1, 5, 1);
    r = open_reader(directory, NULL);
    expect(r, "./t:1=1 ");
    p.fd = eventlog_reader_descriptor(r);
    if (p.fd < 0) {
        eventlog_reader_close(r);
        skip(); /* the system has no more of them */
    }
    expect(r, "");
    assert_int_equal(eventlog_reader_wait(r, 0.01, &error), 0);
    scalar(in("1.tfevents"), O_APPEND, "t", 2, 5, 2);
    assert_int_equal(poll(&p, 1, 600000), 1);
    assert_int_equal(eventlog_reader_wait(r, 600, &error), 1);
    expect(r, "./t:2=2 ");
    expect(r, "");
    assert_int_equal(poll(&p, 1, 0), 0);
    /* A run that comes is heard of, and so is what comes into it. */
    assert_int_equal(mkdir(in("new"), 0777), 0);
    assert_int_equal(eventlog_reader_wait(r, 600, &error), 1);
    expect(r, "");
    scalar(in("new/1.tfevents"), 0, "t", 3, 5, 3);
    assert_int_equal(eventlog_reader_wait(r, 600, &error), 1);
    expect(r, "new/t:3=3 ");
    eventlog_reader_close(r);
}

/* What our own writer writes of each kind, value by value. */
static void test_contents(void **state)
{
    static const int64_t shape[] = { 2, 3 };
    static const float pixels[] = { 0, 1, 0.5f, 0.25f }, samples[] = { 0, 0.5f, -0.5f, 1 };
    static const double numbers[] = { 1, 2, 3, 4, 5, 6 }, edges[] = { 0, 1, 2 }, counts[] = { 3, 4 };
    const struct eventlog_value_options o = { .display_name = "Name", .description = "*what*" };
    struct eventlog_error error = { 0 };
    const struct eventlog_bucket *rows;
    const struct eventlog_value *v;
    struct eventlog_writer *w;
    struct eventlog_reader *r;
    struct eventlog_tensor t;
    struct eventlog_blobs b;
    size_t count;
    (void)state;

    assert_int_equal(eventlog_writer_open(&w, directory, NULL, &error), EVENTLOG_OK);
    assert_int_equal(
        eventlog_writer_tensor(w, "tensor", 1, 5, EVENTLOG_DTYPE_DOUBLE, shape, 2, numbers, sizeof numbers, &o, &error),
        EVENTLOG_OK);
    assert_int_equal(eventlog_writer_histogram_buckets(w, "hist", 2, 5, edges, counts, 2, NULL, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_image_floats(w, "image", 3, 5, pixels, 2, 1, 2, 1, NULL, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_audio(w, "audio", 4, 5, samples, 2, 2, 1, 8000, NULL, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_text(w, "text", 5, 5, "hello", NULL, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_close(w, &error), EVENTLOG_OK);
    r = open_reader(directory, NULL);
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_TENSOR);
    assert_string_equal(v->series->display_name, "Name");
    assert_string_equal(v->series->description, "*what*");
    assert_int_equal(eventlog_reader_tensor(r, &t, &error), EVENTLOG_OK);
    assert_int_equal(t.dtype, EVENTLOG_DTYPE_DOUBLE);
    assert_true(t.rank == 2 && t.shape[0] == 2 && t.shape[1] == 3 && t.elements == 6 && t.bytes == sizeof numbers);
    assert_memory_equal(t.data, numbers, sizeof numbers);
    assert_int_equal(eventlog_reader_blobs(r, &b, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "tensor"));
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_HISTOGRAM);
    assert_int_equal(eventlog_reader_histogram(r, &rows, &count, &error), EVENTLOG_OK);
    assert_true(count == 2 && rows[1].left == 1 && rows[1].right == 2 && rows[1].count == 4);
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_IMAGE);
    assert_int_equal(eventlog_reader_blobs(r, &b, &error), EVENTLOG_OK);
    assert_true(b.count == 2 && b.width == 2 && b.height == 1);
    assert_memory_equal(b.items[1].data, "\x89PNG", 4);
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_AUDIO);
    assert_int_equal(eventlog_reader_blobs(r, &b, &error), EVENTLOG_OK);
    assert_int_equal(b.count, 2);
    assert_memory_equal(b.items[1].data, "RIFF", 4);
    v = next_value(r);
    assert_int_equal(v->kind, EVENTLOG_KIND_TEXT);
    assert_int_equal(eventlog_reader_blobs(r, &b, &error), EVENTLOG_OK);
    assert_true(b.count == 1 && b.items[0].length == 5);
    assert_null(next_value(r));
    assert_int_equal(eventlog_reader_tensor(r, &t, &error), EVENTLOG_ERROR_ARGUMENT);
    eventlog_reader_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_golden, empty),     cmocka_unit_test_teardown(test_grows_anywhere, empty),
        cmocka_unit_test_teardown(test_directory, empty),  cmocka_unit_test_teardown(test_directory_gone, empty),
        cmocka_unit_test_teardown(test_renamed, empty),    cmocka_unit_test_teardown(test_filters, empty),
        cmocka_unit_test_teardown(test_records, empty),    cmocka_unit_test_teardown(test_damage, empty),
        cmocka_unit_test_teardown(test_compressed, empty), cmocka_unit_test_teardown(test_wait, empty),
        cmocka_unit_test_teardown(test_contents, empty),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
