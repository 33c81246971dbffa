/* Every kind of value refuses at the call what makes a loader give the file up: a tag that is not UTF-8, a wall time
 * that is NaN or infinite; texts in it that are not UTF-8. Nothing of it is written, and the writer goes on. */
#include "eventlog/write/event_writer.h"

#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct eventlog_error error;
static const float floats[] = { 0, 0.5f, 1, 0.25f };
static const double doubles[] = { 0, 0.5, 1, 2 };
static const uint8_t bytes[] = { 0, 1, 0, 1 };
static const int64_t shape[] = { 2, 2 };
static const char gif[] = "GIF89a\x01\0\x01\0\0\0\0", wav[] = "RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0"
                                                              "\x80\x3e\0\0\x02\0\x10\0"
                                                              "data\0\0\0\0";

typedef int call(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o);

static int scalar(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    (void)o;
    return eventlog_writer_scalar(w, tag, 1, wall, 1, &error);
}

static int histogram_floats(struct eventlog_writer *w, const char *tag, double wall,
                            const struct eventlog_value_options *o)
{
    return eventlog_writer_histogram_floats(w, tag, 1, wall, floats, 4, o, &error);
}

static int histogram_doubles(struct eventlog_writer *w, const char *tag, double wall,
                             const struct eventlog_value_options *o)
{
    return eventlog_writer_histogram_doubles(w, tag, 1, wall, doubles, 4, o, &error);
}

static int histogram_buckets(struct eventlog_writer *w, const char *tag, double wall,
                             const struct eventlog_value_options *o)
{
    return eventlog_writer_histogram_buckets(w, tag, 1, wall, doubles, doubles, 3, o, &error);
}

static int text(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    return eventlog_writer_text(w, tag, 1, wall, "x", o, &error);
}

static int text_table(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    static const char *const cells[] = { "a", "b" };

    return eventlog_writer_text_table(w, tag, 1, wall, cells, 2, 1, o, &error);
}

static int tensor(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    return eventlog_writer_tensor(w, tag, 1, wall, EVENTLOG_DTYPE_FLOAT, shape, 2, floats, sizeof floats, o, &error);
}

static int image(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    return eventlog_writer_image(w, tag, 1, wall, bytes, 1, 2, 2, 1, o, &error);
}

static int image_floats(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    return eventlog_writer_image_floats(w, tag, 1, wall, floats, 1, 2, 2, 1, o, &error);
}

static int image_encoded(struct eventlog_writer *w, const char *tag, double wall,
                         const struct eventlog_value_options *o)
{
    struct eventlog_bytes file = { gif, sizeof gif - 1 };

    return eventlog_writer_image_encoded(w, tag, 1, wall, &file, 1, o, &error);
}

static int audio(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    return eventlog_writer_audio(w, tag, 1, wall, floats, 1, 4, 1, 8000, o, &error);
}

static int audio_encoded(struct eventlog_writer *w, const char *tag, double wall,
                         const struct eventlog_value_options *o)
{
    struct eventlog_bytes file = { wav, sizeof wav - 1 };

    return eventlog_writer_audio_encoded(w, tag, 1, wall, &file, 1, o, &error);
}

static int pr_curve(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    return eventlog_writer_pr_curve(w, tag, 1, wall, bytes, floats, NULL, 4, o, &error);
}

static int pr_curve_counts(struct eventlog_writer *w, const char *tag, double wall,
                           const struct eventlog_value_options *o)
{
    struct eventlog_pr_counts counts = {
        .true_positives = doubles, .false_positives = doubles, .true_negatives = doubles, .false_negatives = doubles
    };

    return eventlog_writer_pr_curve_counts(w, tag, 1, wall, &counts, 4, o, &error);
}

static int mesh(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    static const float corners[] = { 0, 0, 0, 1, 0, 0, 0, 1, 0 };
    struct eventlog_mesh m = { .batch = 1, .vertex_count = 3, .vertices = corners };

    return eventlog_writer_mesh(w, tag, 1, wall, &m, o, &error);
}

static int run_metadata(struct eventlog_writer *w, const char *tag, double wall, const struct eventlog_value_options *o)
{
    (void)o;
    return eventlog_writer_run_metadata(w, tag, 1, wall, "", 0, &error);
}

static const struct {
    const char *name;
    call *call;
    int described;
} kinds[] = {
    { "scalar", scalar, 0 },
    { "histogram_floats", histogram_floats, 1 },
    { "histogram_doubles", histogram_doubles, 1 },
    { "histogram_buckets", histogram_buckets, 1 },
    { "text", text, 1 },
    { "text_table", text_table, 1 },
    { "tensor", tensor, 1 },
    { "image", image, 1 },
    { "image_floats", image_floats, 1 },
    { "image_encoded", image_encoded, 1 },
    { "audio", audio, 1 },
    { "audio_encoded", audio_encoded, 1 },
    { "pr_curve", pr_curve, 1 },
    { "pr_curve_counts", pr_curve_counts, 1 },
    { "mesh", mesh, 1 },
    { "run_metadata", run_metadata, 0 },
};

/* Those without a tag of the caller's. */
static void refuse_times(struct eventlog_writer *w, double wall)
{
    struct eventlog_experiment experiment = { .name = "e" };
    struct eventlog_hparam rate = { "rate", EVENTLOG_HPARAM_NUMBER, 1, NULL };
    struct eventlog_node node = { .name = "a", .operation = "Const" };

    assert_int_equal(eventlog_writer_experiment(w, wall, &experiment, NULL), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_session_start(w, wall, &rate, 1, NULL, NULL), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_session_end(w, wall, EVENTLOG_SESSION_SUCCESS, NULL), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_layout(w, wall, NULL, 0, NULL), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_graph(w, wall, &node, 1, NULL), EVENTLOG_ERROR_ARGUMENT);
}

static void refuse_all(size_t queue_bytes)
{
    static const double walls[] = { NAN, INFINITY, -INFINITY };
    static const struct eventlog_value_options bad[] = { { .display_name = "\xff" }, { .description = "a\xc3" } };
    struct eventlog_writer_options options = { .queue_bytes = queue_bytes };
    char directory[] = "/tmp/test_refused.XXXXXX", path[300], tag[40];
    struct eventlog_writer_statistics s;
    struct eventlog_writer *w;

    assert_non_null(mkdtemp(directory));
    assert_int_equal(eventlog_writer_open(&w, directory, &options, &error), EVENTLOG_OK);
    snprintf(path, sizeof path, "%s", eventlog_writer_path(w));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        snprintf(tag, sizeof tag, "%s/%zu", kinds[k].name, k);
        for (size_t i = 0; i < 3; i++)
            if (kinds[k].call(w, tag, walls[i], NULL) != EVENTLOG_ERROR_ARGUMENT || !strstr(error.message, "finite"))
                fail_msg("%s at %g: %s", kinds[k].name, walls[i], error.message);
        if (kinds[k].call(w, "a\xc0", 1, NULL) != EVENTLOG_ERROR_ARGUMENT || !strstr(error.message, "UTF-8"))
            fail_msg("%s of a tag: %s", kinds[k].name, error.message);
        if (kinds[k].call(w, NULL, 1, NULL) != EVENTLOG_ERROR_ARGUMENT)
            fail_msg("%s without a tag", kinds[k].name);
        for (size_t i = 0; i < 2 && kinds[k].described; i++)
            if (kinds[k].call(w, tag, 1, &bad[i]) != EVENTLOG_ERROR_ARGUMENT || !strstr(error.message, "UTF-8"))
                fail_msg("%s described: %s", kinds[k].name, error.message);
        eventlog_writer_statistics(w, &s, NULL);
        assert_int_equal(s.events, k); /* the good ones of the kinds before */
        if (kinds[k].call(w, tag, 1, NULL) != EVENTLOG_OK)
            fail_msg("%s: %s", kinds[k].name, error.message);
    }
    for (size_t i = 0; i < 3; i++)
        refuse_times(w, walls[i]);
    eventlog_writer_statistics(w, &s, NULL);
    assert_int_equal(s.events, sizeof kinds / sizeof *kinds);
    assert_int_equal(s.dropped, 0);
    assert_int_equal(eventlog_writer_close(w, &error), EVENTLOG_OK);
    unlink(path);
    rmdir(directory);
}

static void test_every_kind(void **state)
{
    (void)state;
    refuse_all(0);
    refuse_all(1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_kind) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
