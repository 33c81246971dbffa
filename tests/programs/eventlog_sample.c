/*
 * eventlog_sample.c - writes the logs that tests read: the sample log of the export formats' documentation, the golden
 * file of the event format, and series of many shapes. Everything that is not a scalar of the library's own writer is
 * encoded with protobuf-c from proto/event.proto.
 *
 * usage: eventlog_sample sample|golden|restart|many|reduce DIRECTORY
 */
#include "eventlog/eventlog.h"
#include "eventlog/format/record.h"
#include "proto/event.pb-c.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static FILE *file;

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "eventlog_sample: %s failed\n", what);
    exit(1);
}

/* protobuf-c's structs want char *; the copies live long enough for one record. */
static char *text(const char *constant)
{
    static char copies[8][64];
    static int next;

    next = (next + 1) % 8;
    return strcpy(copies[next], constant);
}

static void open_file(const char *directory, const char *run, const char *name)
{
    char path[4096];

    mkdir(directory, 0777);
    snprintf(path, sizeof path, "%s/%s", directory, run);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", directory, run, name);
    check((file = fopen(path, "wb")) != NULL, path);
}

static void put(double wall_time, int64_t step, Eventlog__Event__WhatCase what, void *content)
{
    Eventlog__Event event;
    uint8_t record[2000];
    size_t n;

    eventlog__event__init(&event);
    event.wall_time = wall_time;
    event.step = step;
    event.what_case = what;
    event.summary = content; /* all pointer members of the oneof share their place */
    if (what == EVENTLOG__EVENT__WHAT_GRAPH_DEF)
        event.graph_def = *(ProtobufCBinaryData *)content;
    n = eventlog__event__pack(&event, record + RECORD_HEADER);
    record_seal(record, n);
    check(fwrite(record, 1, n + RECORD_OVERHEAD, file) == n + RECORD_OVERHEAD, "write");
}

static void start(double wall_time)
{
    char version[] = "brain.Event:2";

    put(wall_time, 0, EVENTLOG__EVENT__WHAT_FILE_VERSION, version);
}

static void value(double wall_time, int64_t step, Eventlog__Summary__Value *v)
{
    Eventlog__Summary__Value *values[] = { v };
    Eventlog__Summary summary;

    eventlog__summary__init(&summary);
    summary.n_value = 1;
    summary.value = values;
    put(wall_time, step, EVENTLOG__EVENT__WHAT_SUMMARY, &summary);
}

static Eventlog__Summary__Value tagged(const char *tag, Eventlog__Summary__Value__ValueCase kind)
{
    Eventlog__Summary__Value v;

    eventlog__summary__value__init(&v);
    v.tag = text(tag);
    v.value_case = kind;
    return v;
}

static void simple(double wall_time, int64_t step, const char *tag, float x)
{
    Eventlog__Summary__Value v = tagged(tag, EVENTLOG__SUMMARY__VALUE__VALUE_SIMPLE_VALUE);

    v.simple_value = x;
    value(wall_time, step, &v);
}

static void tensor(double wall_time, int64_t step, const char *tag, const char *plugin, Eventlog__TensorProto *t)
{
    Eventlog__SummaryMetadata metadata;
    Eventlog__SummaryMetadata__PluginData data;
    Eventlog__Summary__Value v = tagged(tag, t ? EVENTLOG__SUMMARY__VALUE__VALUE_TENSOR
                                               : EVENTLOG__SUMMARY__VALUE__VALUE__NOT_SET);
    uint8_t content[] = { 0x1a, 0x00 };

    eventlog__summary_metadata__init(&metadata);
    eventlog__summary_metadata__plugin_data__init(&data);
    data.plugin_name = text(plugin);
    if (!strcmp(plugin, "hparams"))
        data.content = (ProtobufCBinaryData){ 2, content };
    metadata.plugin_data = &data;
    v.metadata = &metadata;
    v.tensor = t;
    value(wall_time, step, &v);
}

static Eventlog__TensorProto tensor_of(int dtype)
{
    Eventlog__TensorProto t;

    eventlog__tensor_proto__init(&t);
    t.dtype = dtype;
    return t;
}

static void number(double wall_time, int64_t step, const char *tag, int dtype, double x)
{
    Eventlog__TensorProto t = tensor_of(dtype);
    Eventlog__TensorShapeProto shape;
    float single = (float)x;

    eventlog__tensor_shape_proto__init(&shape);
    t.tensor_shape = &shape;
    if (dtype == 1) {
        t.float_val = &single;
        t.n_float_val = 1;
    } else {
        t.double_val = &x;
        t.n_double_val = 1;
    }
    tensor(wall_time, step, tag, "scalars", &t);
}

static void session(double wall_time, int64_t step, int status)
{
    Eventlog__SessionLog log;

    eventlog__session_log__init(&log);
    log.status = status;
    put(wall_time, step, EVENTLOG__EVENT__WHAT_SESSION_LOG, &log);
}

/* The nine points of the documentation, two runs. */
static void sample(const char *directory)
{
    open_file(directory, ".", "events.out.tfevents.1700000000.host.1.0");
    start(1700000000);
    simple(1700000000, 0, "loss", 0.7f);
    number(1700000000, 0, "lr", 1, 1e-5f);
    simple(1700000010.25, 10, "loss", 0.1f);
    simple(1700000020.5, 20, "loss", NAN);
    fclose(file);
    open_file(directory, "eval", "events.out.tfevents.1700000000.host.1.0");
    start(1700000000);
    number(1700000012.000001, 10, "acc, \"top\" 1", 2, 0.9);
    simple(1700000022.123456, 20, "loss", INFINITY);
    simple(1700000023, 20, "loss", 0.25f);
    simple(1700000012, 10, "loss", 3);
    simple(1700000030, 9007199254740992, "größe", 16777216);
    fclose(file);
}

/* The golden file of the event format: one record of each kind, then a restart. */
static void golden(const char *directory)
{
    double limits[] = { 0, 2, DBL_MAX }, buckets[] = { 1, 2, 1 }, w = 1e9;
    uint8_t png[] = { 0x89, 0x50, 0x4e, 0x47 }, riff[] = "RIFF", hello[] = "hello";
    uint8_t graph[] = { 0x0a, 0x0a, 0x0a, 0x01, 'a', 0x12, 0x05, 'C', 'o', 'n', 's', 't' };
    Eventlog__HistogramProto histogram;
    Eventlog__Summary__Image image;
    Eventlog__Summary__Audio audio;
    Eventlog__Summary__Value v;
    Eventlog__TensorProto note = tensor_of(7);
    Eventlog__TensorShapeProto shape;
    Eventlog__TensorShapeProto__Dim dim, *dims[] = { &dim };
    ProtobufCBinaryData string = { 5, hello }, graph_def = { sizeof graph, graph };

    open_file(directory, ".", "events.out.tfevents.1000000000.host.1.0");
    start(w);
    for (int i = 0; i < 3; i++)
        simple(w + 1 + i, i, "loss", (float[]){ 2, 1, 0.5f }[i]);
    v = tagged("w", EVENTLOG__SUMMARY__VALUE__VALUE_HISTO);
    eventlog__histogram_proto__init(&histogram);
    histogram.min = -1;
    histogram.max = 3;
    histogram.num = 4;
    histogram.sum = 2;
    histogram.sum_squares = 14;
    histogram.n_bucket_limit = histogram.n_bucket = 3;
    histogram.bucket_limit = limits;
    histogram.bucket = buckets;
    v.histo = &histogram;
    value(w + 4, 0, &v);
    v = tagged("img", EVENTLOG__SUMMARY__VALUE__VALUE_IMAGE);
    eventlog__summary__image__init(&image);
    image.height = 2;
    image.width = 3;
    image.colorspace = 3;
    image.encoded_image_string = (ProtobufCBinaryData){ 4, png };
    v.image = &image;
    value(w + 5, 0, &v);
    v = tagged("snd", EVENTLOG__SUMMARY__VALUE__VALUE_AUDIO);
    eventlog__summary__audio__init(&audio);
    audio.sample_rate = 8000;
    audio.num_channels = audio.length_frames = 1;
    audio.encoded_audio_string = (ProtobufCBinaryData){ 4, riff };
    audio.content_type = text("audio/wav");
    v.audio = &audio;
    value(w + 6, 0, &v);
    eventlog__tensor_shape_proto__init(&shape);
    eventlog__tensor_shape_proto__dim__init(&dim);
    dim.size = 1;
    shape.n_dim = 1;
    shape.dim = dims;
    note.tensor_shape = &shape;
    note.n_string_val = 1;
    note.string_val = &string;
    tensor(w + 7, 0, "note", "text", &note);
    put(w + 8, 0, EVENTLOG__EVENT__WHAT_GRAPH_DEF, &graph_def);
    tensor(w + 9, 0, "_hparams_/session_start_info", "hparams", NULL);
    simple(w + 20, 1, "loss", 0.75f);
    fclose(file);
}

/* Two files of a run with a restart between them, told by a SessionLog; a double, and an infinite wall time. */
static void restart(const char *directory)
{
    open_file(directory, "r", "events.out.tfevents.1700000000.host.1.0");
    start(1700000000);
    session(1700000000, 0, 1);
    for (int i = 0; i < 4; i++) {
        simple(1700000001 + i, i * 10, "loss", (float)i);
        simple(1700000001 + i, i * 10, "acc", (float)i / 4);
    }
    fclose(file);
    open_file(directory, "r", "events.out.tfevents.1700000100.host.1.0");
    start(1700000100);
    session(1700000100, 20, 1);
    simple(1700000101, 20, "loss", 7);
    number(1700000102, 30, "loss", 2, 8.5);
    simple(INFINITY, 5, "loss", 9);
    fclose(file);
}

/* Two runs of unequal length, for the figures over runs. */
static void reduce(const char *directory)
{
    static const float loss[2][3] = { { 0.5f, 0.25f, 0 }, { 0.75f, 0.5f, 0.125f } };
    static const float acc[2][2] = { { 0.5f, 0.75f }, { 0.25f, 1.0f } };

    for (int run = 0; run < 2; run++) {
        open_file(directory, run ? "b" : "a", "events.out.tfevents.1700000000.host.1.0");
        start(1700000000);
        for (int i = 0; i < 2 + run; i++) {
            simple(1700000001 + i, i * 10, "loss", loss[run][i]);
            if (i < 2)
                simple(1700000001 + i, i * 10, "acc", acc[run][i]);
        }
        fclose(file);
    }
}

/* Twenty thousand scalars through the writer: many tags, steps up to the largest, odd values. */
static void many(const char *directory)
{
    struct eventlog_writer *w;
    struct eventlog_error e;
    char tag[64];

    check(eventlog_writer_open(&w, directory, NULL, &e) == EVENTLOG_OK, "open");
    for (int i = 0; i < 20000; i++) {
        float x = i % 1000 == 7 ? NAN : i % 1000 == 8 ? INFINITY : i % 1000 == 9 ? -INFINITY : (float)sin(i) / 3;
        int64_t step = i < 19900 ? i / 100 : INT64_MAX - 20000 + i;

        snprintf(tag, sizeof tag, i % 100 < 3 ? "größe/π %d 😀" : "layer/%d", i % 100);
        check(eventlog_writer_scalar(w, tag, step, 1700000000 + i / 64.0, x, &e) == EVENTLOG_OK, e.message);
    }
    check(eventlog_writer_close(w, &e) == EVENTLOG_OK, "close");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (!strcmp(argv[1], "sample"))
        sample(argv[2]);
    else if (!strcmp(argv[1], "golden"))
        golden(argv[2]);
    else if (!strcmp(argv[1], "restart"))
        restart(argv[2]);
    else if (!strcmp(argv[1], "many"))
        many(argv[2]);
    else if (!strcmp(argv[1], "reduce"))
        reduce(argv[2]);
    else
        return 2;
    return 0;
}
