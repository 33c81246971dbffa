/* Every kind of value: byte vectors made with protobuf's own Python library from TensorBoard's .proto files, what is
 * refused, metadata once a tag, and writes that fail. */
#include "eventlog/write/event_writer.h"

#include "base/bytes.h"
#include "eventlog/format/record.h"
#include "tests/check.h"
#include "tests/eventlog/hex.h"
#include "tests/failing_io.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Events at wall time 1e9; all but session, layout and graph at step 3 with tag "t", display name "D", description
 * "d". */
static const char histogram_event[] =
    "090000000065cdcd4110032a5b0a590a0174423e08021208120208021202080322300000000000000000000000000000f03f00000000"
    "00000040000000000000f03f0000000000001040000000000000f83f4a140a0c0a0a686973746f6772616d731201441a0164";
static const char text_event[] =
    "090000000065cdcd4110032a220a200a0174420b080712004205686920c3b64a0e0a060a04746578741201441a0164";
static const char table_event[] =
    "090000000065cdcd4110032a280a260a0174421108071208120208021202080142016142004a0e0a060a04746578741201441a0164";
static const char tensor_event[] =
    "090000000065cdcd4110032a2f0a2d0a01744216080312081202080112020802220801000000feffffff4a100a060a01701201631201"
    "441a01642002";
static const char image_event[] =
    "090000000065cdcd4110032a330a310a0174421a0807120412020803420133420132420a474946383961030002004a100a080a06696d"
    "616765731201441a0164";
static const char audio_event[] =
    "090000000065cdcd4110032a5c0a5a0a017442400807120812020801120208024230524946462800000057415645666d742010000000"
    "01000100401f0000803e00000200100064617461040000000040008042004a130a0b0a05617564696f1202100b1201441a0164";
static const char pr_event[] =
    "090000000065cdcd4110032a5e0a5c0a0174423e0801120812020806120208022230000000400000803f000000400000000000000000"
    "00000040000000000000803f0000003f0000803f0000803f0000003f4a170a0f0a0970725f637572766573120210021201441a0164";
static const char start_event[] =
    "090000000065cdcd412a550a530a1c5f68706172616d735f2f73657373696f6e5f73746172745f696e666f42060801120212004a2b0a"
    "290a0768706172616d73121e1a1c0a0e0a01781209110000000000000000220167290000000065cdcd41";
static const char end_event[] =
    "090000000065cdcd412a420a400a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f42060801120212004a1a0a180a"
    "0768706172616d73120d220b0801110000000065cdcd41";
static const char experiment_event[] =
    "090000000065cdcd412a680a660a145f68706172616d735f2f6578706572696d656e7442060801120212004a460a440a076870617261"
    "6d7312391237190000000065cdcd4122100a017820033209110000000000000040220b0a016220022a040a0220002a0a0a0612046c6f"
    "7373280232016e";
static const char layout_event[] =
    "090000000065cdcd412a5e0a5c0a18637573746f6d5f7363616c6172735f5f636f6e6669675f5f422c08071200422612240a0163120b"
    "0a016c12060a046c6f737312100a016d1a0b0a090a017612016c1a017518014a120a100a0e637573746f6d5f7363616c617273";
static const char graph_event[] =
    "090000000065cdcd4122480a370a016112014122062f4350553a302a270a0e5f6f75747075745f73686170657312150a133a11120b08"
    "ffffffffffffffffff01120208020a090a01621201421a016122020816";
static const char run_metadata_event[] = "090000000065cdcd41100342070a017412020a00";

#define WALL 1e9

static char directory[64];
static struct eventlog_writer *writer;
static struct eventlog_error error;
static uint8_t *contents; /* of the file, after load() */
static size_t size;

static const struct eventlog_value_options labels = { .display_name = "D", .description = "d" };

static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/test_event_kinds.XXXXXX");
    return mkdtemp(directory) && eventlog_writer_open(&writer, directory, NULL, NULL) == EVENTLOG_OK ? 0 : -1;
}

static int teardown(void **state)
{
    DIR *d = opendir(directory);
    char path[400];
    (void)state;

    if (writer)
        eventlog_writer_close(writer, NULL);
    writer = NULL;
    free(contents);
    contents = NULL;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
    return rmdir(directory);
}

static void load(void)
{
    FILE *f = fopen(eventlog_writer_path(writer), "rb");

    assert_non_null(f);
    free(contents);
    contents = malloc(1 << 24);
    size = fread(contents, 1, 1 << 24, f);
    fclose(f);
}

/* Payload number n (0: file_version) of the flushed file, checked; NULL behind the end. */
static const uint8_t *payload(size_t n, size_t *length)
{
    struct record_parser p;
    struct record r;

    assert_int_equal(eventlog_writer_flush(writer, &error), EVENTLOG_OK);
    load();
    record_parser_init(&p, 0, 0);
    for (size_t i = 0;; i++) {
        enum record_result result = record_next(&p, contents + p.position, size - (size_t)p.position, size, &r);

        if (result == RECORD_MORE) {
            assert_false(record_parser_inside(&p, size));
            return NULL;
        }
        assert_int_equal(result, RECORD_DATA);
        if (i == n) {
            *length = r.length;
            return r.data;
        }
    }
}

static size_t count_payloads(void)
{
    size_t n = 0, length;

    while (payload(n, &length))
        n++;
    return n;
}

static void expect(size_t n, const char *hex)
{
    uint8_t want[1000];
    size_t length, wanted = hex_bytes(hex, want);
    const uint8_t *got = payload(n, &length);

    assert_non_null(got);
    assert_int_equal(length, wanted);
    assert_memory_equal(got, want, wanted);
}

static void test_series_bytes(void **state)
{
    static const double edges[] = { 0, 1, 4 }, counts[] = { 2, 1.5 };
    static const char *const cells[] = { "a", "" };
    static const int32_t numbers[] = { 1, -2 };
    static const int64_t shape[] = { 1, 2 };
    struct eventlog_value_options plugin = {
        .display_name = "D", .description = "d", .plugin = "p", .plugin_content = "c", .plugin_content_length = 1
    };
    static const struct eventlog_bytes gif = { "GIF89a\3\0\2\0", 10 };
    static const float samples[] = { 0.5f, -3 };
    static const double tp[] = { 2, 1 }, fp[] = { 2, 0 }, tn[] = { 0, 2 }, fn[] = { 0, 1 };
    static const struct eventlog_pr_counts pr = { tp, fp, tn, fn, NULL, NULL };
    const char *want;
    int rc;
    (void)state;

    for (size_t i = 0; i < 8; i++) {
        switch (i) {
        case 0:
            rc = eventlog_writer_histogram_buckets(writer, "t", 3, WALL, edges, counts, 2, &labels, &error);
            want = histogram_event;
            break;
        case 1:
            rc = eventlog_writer_text(writer, "t", 3, WALL, "hi ö", &labels, &error);
            want = text_event;
            break;
        case 2:
            rc = eventlog_writer_text_table(writer, "t", 3, WALL, cells, 2, 1, &labels, &error);
            want = table_event;
            break;
        case 3:
            rc = eventlog_writer_tensor(writer, "t", 3, WALL, EVENTLOG_DTYPE_INT32, shape, 2, numbers, 8, &plugin,
                                        &error);
            want = tensor_event;
            break;
        case 4:
            rc = eventlog_writer_image_encoded(writer, "t", 3, WALL, &gif, 1, &labels, &error);
            want = image_event;
            break;
        case 5:
            rc = eventlog_writer_audio(writer, "t", 3, WALL, samples, 1, 2, 1, 8000, &labels, &error);
            want = audio_event;
            break;
        case 6:
            rc = eventlog_writer_pr_curve_counts(writer, "t", 3, WALL, &pr, 2, &labels, &error);
            want = pr_event;
            break;
        default: rc = eventlog_writer_run_metadata(writer, "t", 3, WALL, "\n\0", 2, &error); want = run_metadata_event;
        }
        assert_int_equal(rc, EVENTLOG_OK);
        expect(1, want);
        eventlog_writer_close(writer, NULL); /* the same tag is another kind in the next file */
        assert_int_equal(eventlog_writer_open(&writer, directory, NULL, &error), EVENTLOG_OK);
    }
}

static void test_run_bytes(void **state)
{
    static const struct eventlog_hparam x = { .name = "x", .type = EVENTLOG_HPARAM_NUMBER };
    static const struct eventlog_session session = { .group = "g" };
    static const struct eventlog_hparam no = { .type = EVENTLOG_HPARAM_BOOL };
    static const struct eventlog_hparam_info hparams[] = {
        { .name = "x", .type = EVENTLOG_HPARAM_NUMBER, .has_interval = 1, .max = 2 },
        { .name = "b", .type = EVENTLOG_HPARAM_BOOL, .values = &no, .value_count = 1 },
    };
    static const struct eventlog_metric_info metric = { .tag = "loss", .dataset = EVENTLOG_DATASET_VALIDATION };
    static const struct eventlog_experiment experiment = {
        .name = "n", .hparams = hparams, .hparam_count = 2, .metrics = &metric, .metric_count = 1
    };
    static const char *const loss = "loss", *const a = "a";
    static const struct eventlog_margin margin = { "v", "l", "u" };
    static const struct eventlog_chart charts[] = { { .title = "l", .tags = &loss, .tag_count = 1 },
                                                    { .title = "m", .margins = &margin, .margin_count = 1 } };
    static const struct eventlog_category category = { "c", charts, 2, 1 };
    static const int64_t shape[] = { -1, 2 };
    static const struct eventlog_node nodes[] = {
        { .name = "a", .operation = "A", .device = "/CPU:0", .shape = shape, .rank = 2 },
        { .name = "b", .operation = "B", .inputs = &a, .input_count = 1 },
    };
    (void)state;

    assert_int_equal(eventlog_writer_session_start(writer, WALL, &x, 1, &session, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_session_end(writer, WALL, EVENTLOG_SESSION_SUCCESS, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_experiment(writer, WALL, &experiment, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_layout(writer, WALL, &category, 1, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_graph(writer, WALL, nodes, 2, &error), EVENTLOG_OK);
    expect(1, start_event);
    expect(2, end_event);
    expect(3, experiment_event);
    expect(4, layout_event);
    expect(5, graph_event);
}

/* An argument that cannot be, a sentence that names the file, and nothing in it. */
static void refused(int rc, const char *why)
{
    assert_int_equal(rc, EVENTLOG_ERROR_ARGUMENT);
    if (!strstr(error.message, why) || strncmp(error.message, directory, strlen(directory)) != 0)
        fail_msg("'%s' does not say '%s'", error.message, why);
    memset(&error, 0, sizeof error);
}

static void test_series_refused(void **state)
{
    static const float odd[] = { 0, NAN, 2 };
    static const double edges[] = { 0, 2, 1, INFINITY }, counts[] = { 1, 1, 1 }, wide[] = { -1.7e308, 1.7e308 };
    static const double negative[] = { -1, 0, 0 }, rising[] = { 0, 1, 2, 3 };
    static const char *const cells[] = { "a", NULL };
    static const int64_t shape[] = { 2, -1 }, huge[] = { INT64_MAX, INT64_MAX }, three[] = { 3 };
    static const float fine[9];
    static const int32_t corners[] = { 2, 3, 0 };
    static const uint8_t labels_of[] = { 1, 0, 2 };
    struct eventlog_value_options ten = { .buckets = 10 }, bad = { .description = "\xff" }, one = { .thresholds = 1 };
    struct eventlog_value_options thirteen = { .png_level = 13 };
    struct eventlog_value_options scalars = { .plugin = "scalars" };
    static const struct eventlog_bytes junk = { "junk that is no picture and no sound", 36 };
    (void)state;

    refused(eventlog_writer_text(writer, NULL, 0, 0, "x", NULL, &error), "needs a tag");
    refused(eventlog_writer_text(writer, "", 0, 0, "x", NULL, &error), "needs a tag");
    refused(eventlog_writer_text(writer, "a\xc3", 0, 0, "x", NULL, &error), "not UTF-8 at byte 1");
    refused(eventlog_writer_text(writer, "a", 0, NAN, "x", NULL, &error), "wall time");
    refused(eventlog_writer_text(writer, "a", 0, 0, "x\xe0\x80", NULL, &error), "not UTF-8 at byte 1");
    refused(eventlog_writer_text(writer, "a", 0, 0, NULL, NULL, &error), "missing");
    refused(eventlog_writer_text(writer, "a", 0, 0, "x", &bad, &error), "not UTF-8 at byte 0");
    refused(eventlog_writer_text_table(writer, "a", 0, 0, cells, 1, 2, NULL, &error), "text 1 of 2 is missing");
    refused(eventlog_writer_text_table(writer, "a", 0, 0, cells, 0, 2, NULL, &error), "table of 0 x 2");
    refused(eventlog_writer_text_table(writer, "a", 0, 0, cells, SIZE_MAX / 2, 4, NULL, &error), "table of");
    refused(eventlog_writer_histogram_floats(writer, "a", 0, 0, odd, 3, NULL, &error), "value 1 of the histogram");
    refused(eventlog_writer_histogram_doubles(writer, "a", 0, 0, wide, 2, &ten, &error), "too wide");
    refused(eventlog_writer_histogram_buckets(writer, "a", 0, 0, edges, counts, 2, NULL, &error), "from 2 to 1");
    refused(eventlog_writer_histogram_buckets(writer, "a", 0, 0, edges + 2, counts, 1, NULL, &error), "to inf");
    refused(eventlog_writer_histogram_buckets(writer, "a", 0, 0, rising, negative, 3, NULL, &error), "hold -1");
    refused(eventlog_writer_tensor(writer, "a", 0, 0, (enum eventlog_dtype)14, three, 1, odd, 6, NULL, &error),
            "dtype 14");
    refused(eventlog_writer_tensor(writer, "a", 0, 0, EVENTLOG_DTYPE_FLOAT, three, 1, odd, 8, NULL, &error), "need 12");
    refused(eventlog_writer_tensor(writer, "a", 0, 0, EVENTLOG_DTYPE_FLOAT, shape, 2, odd, 8, NULL, &error), "be -1");
    refused(eventlog_writer_tensor(writer, "a", 0, 0, EVENTLOG_DTYPE_FLOAT, huge, 2, odd, 8, NULL, &error),
            "more bytes than memory can hold");
    refused(eventlog_writer_tensor(writer, "a", 0, 0, EVENTLOG_DTYPE_BOOL, three, 1, labels_of, 3, NULL, &error),
            "bools is 2");
    refused(eventlog_writer_tensor(writer, "a", 0, 0, EVENTLOG_DTYPE_FLOAT, three, 1, odd, 12, &scalars, &error),
            "scalars does not take a tensor");
    refused(eventlog_writer_image(writer, "a", 0, 0, labels_of, 1, 1, 1, 5, NULL, &error), "not 5");
    refused(eventlog_writer_image(writer, "a", 0, 0, labels_of, 1, 0, 1, 1, NULL, &error), "1 x 0");
    refused(eventlog_writer_image(writer, "a", 0, 0, labels_of, 1, 60000, 60000, 1, NULL, &error), "60000 x 60000");
    refused(eventlog_writer_image(writer, "a", 0, 0, labels_of, 0, 1, 1, 1, NULL, &error), "0 images");
    refused(eventlog_writer_image(writer, "a", 0, 0, labels_of, 1, 1, 1, 1, &thirteen, &error), "png_level is 13");
    refused(eventlog_writer_image(writer, "a\"", 0, 0, labels_of, 1, 1, 1, 1, NULL, &error), "does not serve");
    refused(eventlog_writer_image_floats(writer, "a", 0, 0, odd, 1, 1, 3, 1, NULL, &error), "value 1 of image 0");
    refused(eventlog_writer_image_encoded(writer, "a", 0, 0, &junk, 1, NULL, &error), "image 0 is not a PNG");
    refused(eventlog_writer_audio(writer, "a", 0, 0, odd, 1, 3, 1, 8000, NULL, &error), "sample 1");
    refused(eventlog_writer_audio(writer, "a", 0, 0, odd, 1, 3, 0, 8000, NULL, &error), "0 channels");
    refused(eventlog_writer_audio(writer, "a", 0, 0, odd, 1, 3, 1, 0, NULL, &error), "0 Hz");
    refused(eventlog_writer_audio(writer, "a", 0, 0, odd, 1, SIZE_MAX / 4, 1, 8000, NULL, &error), "frames");
    refused(eventlog_writer_audio(writer, "a\n", 0, 0, odd, 1, 1, 1, 8000, NULL, &error), "does not serve");
    refused(eventlog_writer_audio_encoded(writer, "a", 0, 0, &junk, 1, NULL, &error), "clip 0 is not a WAV");
    refused(eventlog_writer_pr_curve(writer, "a", 0, 0, labels_of, odd, NULL, 3, NULL, &error), "prediction 1 is nan");
    refused(eventlog_writer_pr_curve(writer, "a", 0, 0, labels_of, odd + 2, NULL, 1, NULL, &error),
            "prediction 0 is 2");
    refused(eventlog_writer_pr_curve(writer, "a", 0, 0, labels_of, odd, odd + 1, 1, NULL, &error), "weight 0 is nan");
    refused(eventlog_writer_pr_curve(writer, "a", 0, 0, labels_of, odd, NULL, 1, &one, &error), "1 thresholds");
    refused(eventlog_writer_mesh(writer, "a", 0, 0,
                                 &(struct eventlog_mesh){ .batch = 1, .vertex_count = 1, .vertices = odd }, NULL,
                                 &error),
            "coordinate 1 of a mesh is nan");
    refused(
        eventlog_writer_mesh(writer, "a", 0, 0,
                             &(struct eventlog_mesh){
                                 .batch = 1, .vertex_count = 3, .vertices = fine, .face_count = 1, .faces = corners },
                             NULL, &error),
        "corner 1 of a mesh's faces is vertex 3, but there are only 3");
    refused(eventlog_writer_mesh(writer, "a", 0, 0,
                                 &(struct eventlog_mesh){ .batch = SIZE_MAX / 2, .vertex_count = 3, .vertices = fine },
                                 NULL, &error),
            "meshes of 3 vertices");
    refused(eventlog_writer_mesh(writer, NULL, 0, 0, &(struct eventlog_mesh){ .batch = 1 }, NULL, &error),
            "needs a tag");
    refused(eventlog_writer_pr_curve_counts(
                writer, "a", 0, 0, &(struct eventlog_pr_counts){ counts, negative, counts, counts, NULL, NULL }, 2,
                NULL, &error),
            "threshold 0");
    assert_int_equal(count_payloads(), 1);
}

static void test_run_refused(void **state)
{
    struct eventlog_hparam x = { .name = "x", .type = EVENTLOG_HPARAM_NUMBER, .number = NAN };
    struct eventlog_hparam_info info = { .name = "x", .type = EVENTLOG_HPARAM_STRING, .values = &x, .value_count = 1 };
    struct eventlog_metric_info metric = { .display_name = "x" };
    struct eventlog_experiment experiment = { .hparams = &info, .hparam_count = 1 };
    struct eventlog_chart chart = { .title = "x" };
    const char *const bad = "\x80";
    struct eventlog_category category = { "x", &chart, 1, 0 };
    struct eventlog_node node = { .operation = "A" };
    (void)state;

    refused(eventlog_writer_session_start(writer, 0, &x, 1, NULL, &error), "'x' is nan");
    x.type = (enum eventlog_hparam_type)7;
    refused(eventlog_writer_session_start(writer, 0, &x, 1, NULL, &error), "type 7");
    x = (struct eventlog_hparam){ .name = "x", .type = EVENTLOG_HPARAM_STRING, .text = bad };
    refused(eventlog_writer_session_start(writer, 0, &x, 1, NULL, &error), "not UTF-8");
    x.name = NULL;
    refused(eventlog_writer_session_start(writer, 0, &x, 1, NULL, &error), "no name");
    refused(eventlog_writer_session_end(writer, INFINITY, EVENTLOG_SESSION_SUCCESS, &error), "wall time");
    refused(eventlog_writer_session_end(writer, 0, (enum eventlog_session_status)9, &error), "status 9");
    x.type = EVENTLOG_HPARAM_BOOL;
    refused(eventlog_writer_experiment(writer, 0, &experiment, &error), "another type");
    info = (struct eventlog_hparam_info){ .name = "x", .type = EVENTLOG_HPARAM_NUMBER, .has_interval = 1, .min = 1 };
    refused(eventlog_writer_experiment(writer, 0, &experiment, &error), "from 1 to 0");
    experiment = (struct eventlog_experiment){ .metrics = &metric, .metric_count = 1 };
    refused(eventlog_writer_experiment(writer, 0, &experiment, &error), "no tag");
    refused(eventlog_writer_layout(writer, 0, &category, 1, &error), "either tags or margins");
    chart.tags = &bad;
    chart.tag_count = 1;
    refused(eventlog_writer_layout(writer, 0, &category, 1, &error), "not UTF-8");
    refused(eventlog_writer_graph(writer, 0, &node, 1, &error), "no name");
    node.name = bad;
    refused(eventlog_writer_graph(writer, 0, &node, 1, &error), "not UTF-8");
    refused(eventlog_writer_run_metadata(writer, "a\\", 0, 0, "", 0, &error), "would not serve");
    refused(eventlog_writer_run_metadata(writer, "\xff", 0, 0, "", 0, &error), "not UTF-8");
    assert_int_equal(count_payloads(), 1);
}

/* Does payload n hold this text? */
static int holds(size_t n, const char *text)
{
    size_t length;
    const uint8_t *got = payload(n, &length);

    return got && memmem(got, length, text, strlen(text)) != NULL;
}

/* Plugin and content stand with every value, for readers that remember nothing; name and description once a file. */
static void test_metadata(void **state)
{
    char tag[32];
    (void)state;

    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 100; i++) {
            snprintf(tag, sizeof tag, "tag %d", i);
            assert_int_equal(eventlog_writer_text(writer, tag, round, WALL, "x", &labels, &error), EVENTLOG_OK);
        }
    for (size_t i = 1; i <= 200; i += 33)
        assert_true(holds(i, "\n\4text") && holds(i, "\x12\1D\x1a\1d") == (i <= 100));
    refused(eventlog_writer_image(writer, "tag 7", 0, 0, (const uint8_t *)"x", 1, 1, 1, 1, NULL, &error),
            "belongs to text");
    eventlog_writer_close(writer, NULL);
    assert_int_equal(eventlog_writer_open(&writer, directory, NULL, &error), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_text(writer, "tag 7", 2, WALL, "x", &labels, &error), EVENTLOG_OK);
    assert_true(holds(1, "\n\4text") && holds(1, "\x12\1D\x1a\1d"));
}

/* A value longer than all buffers is written whole, and what it took is given back. */
static void test_longer_than_all_buffers(void **state)
{
    struct eventlog_writer_options options = { .buffer_bytes = 100, .flush_seconds = 1000 };
    static uint8_t bytes[3000000];
    static const int64_t shape[] = { sizeof bytes };
    const uint8_t *last;
    size_t length;
    (void)state;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 >> 3);
    eventlog_writer_close(writer, NULL);
    assert_int_equal(eventlog_writer_open(&writer, directory, &options, &error), EVENTLOG_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(eventlog_writer_scalar(writer, "s", i, WALL, 1, &error), EVENTLOG_OK);
        assert_int_equal(eventlog_writer_tensor(writer, "a", i, WALL, EVENTLOG_DTYPE_UINT8, shape, 1, bytes,
                                                sizeof bytes, NULL, &error),
                         EVENTLOG_OK);
    }
    assert_int_equal(count_payloads(), 7);
    last = payload(6, &length);
    assert_non_null(memmem(last, length, bytes, sizeof bytes));
}

/* Every write fails for a while: whole records only, each accepted value there in the end, metadata with the first. */
static void test_full_disk_then_room(void **state)
{
    struct eventlog_writer_options options = { .buffer_bytes = 200, .flush_seconds = 1000 };
    (void)state;

    eventlog_writer_close(writer, NULL);
    for (long n = 1; n < 8; n++) {
        struct io_failing failing = { .error_number = ENOSPC, .stay_failed = 1, .short_writes = 1 };
        struct io io = io_failing_table(&failing);
        size_t accepted = 0, refusals = 0;

        assert_int_equal(event_writer_open_io(&writer, directory, &options, &io, &error), EVENTLOG_OK);
        failing.fail_at = failing.calls + n;
        for (int i = 0; i < 300; i++) {
            int rc = eventlog_writer_text(writer, i % 2 ? "odd" : "even", i, WALL, "some words to say", &labels,
                                          &error);

            if (rc == EVENTLOG_OK || !strstr(error.message, "refused"))
                accepted++;
            else
                refusals++;
        }
        assert_true(refusals > 10);
        failing.fail_at = 0;
        assert_int_equal(count_payloads(), accepted + 1);
        assert_true(holds(1, "\x12\1D") && holds(2, "\x12\1D") && !holds(3, "\x12\1D") && holds(3, "\n\4text"));
        assert_int_equal(eventlog_writer_close(writer, NULL), EVENTLOG_OK);
        writer = NULL;
    }
}

static void test_forked_child(void **state)
{
    int status;
    pid_t pid;
    (void)state;

    if ((pid = fork()) == 0)
        _exit(eventlog_writer_text(writer, "a", 0, 0, "x", NULL, &error) == EVENTLOG_ERROR_ARGUMENT &&
                      strstr(error.message, "forked")
                  ? 0
                  : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(count_payloads(), 1);
}

/* Values at the borders of the default buckets: counts and edges are known. */
static void test_default_buckets(void **state)
{
    static const double values[] = { -1e-12, 0, 0, 5e-13, 1e-12, 1e300, -1e300 };
    double rows[7 * 3];
    const uint8_t *got;
    size_t length;
    (void)state;

    assert_int_equal(eventlog_writer_histogram_doubles(writer, "a", 0, WALL, values, 7, NULL, &error), EVENTLOG_OK);
    got = payload(1, &length);
    /* event, summary, value, tensor and metadata keys; the rows stand before the 16 bytes of metadata */
    got += length - sizeof rows - 16;
    for (size_t i = 0; i < 21; i++)
        rows[i] = bits_double(get_le64(got + i * 8));
    /* -1e300; nothing up to -1e-12; it; 0 0 5e-13; 1e-12; nothing; 1e300 */
    assert_true(rows[0] == -1e300 && rows[2] == 1);
    assert_true(rows[5] == 0 && rows[4] == -1e-12 && rows[6] == -1e-12 && rows[7] == 0 && rows[8] == 1);
    assert_true(rows[9] == 0 && rows[10] == 1e-12 && rows[11] == 3);
    assert_true(rows[12] == 1e-12 && rows[14] == 1 && rows[17] == 0);
    assert_true(rows[19] == 1e300 && rows[20] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_series_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_run_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_series_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_run_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_metadata, setup, teardown),
        cmocka_unit_test_setup_teardown(test_longer_than_all_buffers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_disk_then_room, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forked_child, setup, teardown),
        cmocka_unit_test_setup_teardown(test_default_buckets, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
