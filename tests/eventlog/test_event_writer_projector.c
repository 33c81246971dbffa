/* What the projector's page would misread is refused before any file is touched; what is written is exact. */
#include "eventlog/write/event_writer.h"

#include "base/file.h"
#include "tests/check.h"
#include "tests/failing_io.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];
static const char *const files[] = { "projector_config.pbtxt", "projector_0.tsv", "projector_0_labels.tsv",
                                     "projector_0_sprites.png", "projector_1.tsv" };

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/test_projector.XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static void path_of(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s/%s", directory, name);
}

static int remove_files(void)
{
    char path[200];
    int there = 0;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        path_of(path, sizeof path, files[i]);
        there += unlink(path) == 0;
    }
    return there;
}

static int teardown(void **state)
{
    (void)state;
    remove_files();
    return rmdir(directory);
}

static void expect_file(const char *name, const char *text)
{
    struct buffer b = BUFFER_EMPTY;
    char path[200];

    path_of(path, sizeof path, name);
    assert_int_equal(file_read(path, 1 << 20, &b, NULL), OK);
    assert_string_equal(buffer_text(&b), text);
    buffer_release(&b);
}

static const float values[] = { 0.1f, -0.0f, 1e30f, 3, 2, 1 };
static const char *const labels[] = { "a", " b \"c\"" };

static struct eventlog_embedding good(void)
{
    return (struct eventlog_embedding){
        .name = "a\nb", .values = values, .points = 2, .dimensions = 3, .labels = labels, .columns = 1
    };
}

static void close_and_remove(struct eventlog_writer *w)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s", eventlog_writer_path(w));
    assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
    unlink(path);
}

static void test_files(void **state)
{
    struct eventlog_embedding x[] = { good(), good() };
    struct eventlog_writer *w;
    struct eventlog_error e;
    (void)state;

    x[0].name = "say \"x\\y\" \x01";
    x[1].name = "größe";
    x[1].labels = NULL;
    assert_int_equal(eventlog_writer_open(&w, directory, NULL, NULL), EVENTLOG_OK);
    if (eventlog_writer_projector(w, x, 2, &e) != EVENTLOG_OK)
        fail_msg("%s", e.message);
    expect_file("projector_0.tsv", "0.1\t-0.0\t1e+30\n3.0\t2.0\t1.0\n");
    expect_file("projector_0_labels.tsv", "a\n b \"c\"\n");
    expect_file("projector_config.pbtxt",
                "embeddings {\n  tensor_name: \"say \\\"x\\\\y\\\" \\001\"\n  tensor_shape: 2\n  tensor_shape: 3\n"
                "  tensor_path: \"projector_0.tsv\"\n  metadata_path: \"projector_0_labels.tsv\"\n}\n"
                "embeddings {\n  tensor_name: \"größe\"\n  tensor_shape: 2\n  tensor_shape: 3\n"
                "  tensor_path: \"projector_1.tsv\"\n}\n");
    assert_int_equal(remove_files(), 4);
    close_and_remove(w);
}

static void refuse(struct eventlog_writer *w, struct eventlog_embedding x, const char *words)
{
    struct eventlog_error e;

    assert_int_equal(eventlog_writer_projector(w, &x, 1, &e), EVENTLOG_ERROR_ARGUMENT);
    if (!strstr(e.message, words))
        fail_msg("'%s' does not say '%s'", e.message, words);
}

static void test_refused(void **state)
{
    static const char *const tabs[] = { "a\tb", "c" }, *const blank[] = { "a", "  " }, *const bytes[] = { "a", "\xff" },
                             *const missing[] = { "a", NULL };
    static const float infinite[] = { 1, 2, 3, 4, 5, INFINITY };
    static const uint8_t pixels[2 * 3];
    struct eventlog_embedding x = good(), two[] = { good(), good() };
    struct eventlog_writer *w;
    (void)state;

    assert_int_equal(eventlog_writer_open(&w, directory, NULL, NULL), EVENTLOG_OK);
    refuse(w, x, "line break");
    x.name = "a:0", refuse(w, x, "colon");
    x.name = "", refuse(w, x, "empty");
    x.name = NULL, refuse(w, x, "missing");
    x.name = "a\xc3", refuse(w, x, "not UTF-8 at byte 1");
    x.name = "a";
    x.values = infinite, refuse(w, x, "point 1 is not finite");
    x.values = NULL, refuse(w, x, "2 points of 3 dimensions");
    x.values = values;
    x.points = SIZE_MAX, refuse(w, x, "dimensions");
    x.points = 2, x.dimensions = 1, refuse(w, x, "1 dimensions");
    x.dimensions = 3;
    x.labels = tabs, refuse(w, x, "tab");
    x.labels = blank, refuse(w, x, "point 1 is blank");
    x.labels = bytes, refuse(w, x, "not UTF-8");
    x.labels = missing, refuse(w, x, "point 1: a label is missing");
    x.labels = labels;
    x.columns = 2, refuse(w, x, "without names");
    x.columns = 1;
    x.sprites = pixels, refuse(w, x, "channels");
    x.sprite_channels = 3, refuse(w, x, "0 x 0");
    x.sprite_height = 8192, x.sprite_width = 1, refuse(w, x, "do not fit");
    x.sprites = NULL;
    two[0].name = two[1].name = "same";
    assert_int_equal(eventlog_writer_projector(w, two, 2, NULL), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_projector(w, two, 0, NULL), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(remove_files(), 0);
    close_and_remove(w);
}

/* The n-th call fails: the config is there only with all that it names. */
static void test_failing_calls(void **state)
{
    static const uint8_t pixels[2 * 2 * 2];
    (void)state;

    for (long n = 1;; n++) {
        struct io_failing failing = { .error_number = ENOSPC, .short_writes = 1 };
        struct io io = io_failing_table(&failing);
        struct eventlog_embedding x = good();
        struct eventlog_writer *w;
        char path[200];
        int rc, there;

        x.name = "a";
        x.sprites = pixels;
        x.sprite_height = x.sprite_width = 2;
        x.sprite_channels = 1;
        assert_int_equal(event_writer_open_io(&w, directory, NULL, &io, NULL), EVENTLOG_OK);
        failing.fail_at = failing.calls + n;
        rc = eventlog_writer_projector(w, &x, 1, NULL);
        path_of(path, sizeof path, files[0]);
        there = access(path, F_OK) == 0;
        assert_true(rc != EVENTLOG_OK || there);
        assert_int_equal(remove_files() == 4, there);
        there = failing.calls < failing.fail_at;
        failing.fail_at = 0;
        close_and_remove(w);
        if (there)
            break;
        assert_true(rc == EVENTLOG_ERROR_IO || rc == EVENTLOG_OK); /* closing a directory does not matter */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_failing_calls),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
