/*
 * Every row of "what today's readers do with odd input" as a run made here, and the finding that it must give; sound
 * runs give none, and want of memory is told. Rows are built field by field, as writers other than ours would.
 */
#include "tests/eventlog/checked_run.h"
#include "tests/failing_allocation.h"

#include <math.h>
#include <stdio.h>

/* ---- the rows ------------------------------------------------------------------------------------------------ */

/* a log each, in one line if it fits */
/* clang-format off */
static struct bytes image(const char *begin) { return part(4, both(integer(1, 1), words(4, begin))); }
static struct bytes png(void) { return image("\x89PNG"); }
static struct bytes strings(int n)
{
    struct bytes b = none();

    while (n--)
        b = both(b, words(8, "RIFF"));
    return b;
}
static struct bytes histogram(int limits, int counts, double outer)
{
    struct bytes b = real(1, 0);

    for (int i = 0; i < limits; i++)
        b = both(b, real(6, i));
    for (int i = 0; i < counts; i++)
        b = both(b, real(7, i && i < counts - 1 ? 1 : outer));
    return part(5, b);
}

static void length_crc(void) { begin(); damage(RECORD_BAD_LENGTH_CRC); add(event(5, 1, scalar("t", 1))); end(); }
static void data_crc(void) { begin(); damage(RECORD_BAD_DATA_CRC); add(event(5, 1, scalar("t", 1))); end(); }
static void too_long(void) { begin(); damage(RECORD_TOO_LONG); end(); }
static void no_log(void)
{
    file("a.tfevents");
    damage(RECORD_BAD_LENGTH_CRC);
    if (!failed)
        good(log_check_end(check, 0, place, NULL));
}
static void stream(void) { begin(); damage(RECORD_BAD_STREAM); end(); }
static void compressed(void) { begin(); failed ? (void)0 : good(log_check_compressed(check, NULL)); end(); }
static void torn(void) { begin(); failed ? (void)0 : good(log_check_end(check, place, place + 20, NULL)); }
static void empty_file(void) { file("a.tfevents"); end(); }
static void empty_record(void) { begin(); add(none()); end(); }
static void no_version(void) { file("a.tfevents"); add(event(5, 1, scalar("t", 1))); end(); }
static void not_utf8(void) { one(scalar("t\xff", 1)); }
static void note_not_utf8(void) { begin(); add(both(real(1, 5), part(7, words(3, "\xc0\x80")))); end(); }
static void group_end(void) { begin(); add(both(event(5, 1, scalar("t", 1)), (struct bytes){ { 0x0c }, 1 })); end(); }
/* A tf.Example of one feature, "label": an integer. */
static void example(void)
{
    begin();
    add(part(1, part(1, both(words(1, "label"), part(2, part(3, integer(1, 7)))))));
    end();
}
static void wire_type(void) { begin(); add(both(integer(1, 5), part(5, scalar("t", 1)))); end(); }
static void wire_type_deep(void) { one(value("t", integer(2, 1))); }
static void not_protobuf(void) { begin(); add((struct bytes){ { 0x0f }, 1 }); end(); }
static void wall_nan(void) { begin(); add(event(NAN, 1, scalar("t", 1))); end(); }
static void wall_infinite(void) { begin(); add(event(-INFINITY, 1, scalar("t", 1))); end(); }
static void wall_unit(void) { begin(); add(event(1.7e12, 1, scalar("t", 1))); end(); }
static void double_scalar(void) { one(with(tensor(2, "", real(6, 1)), "scalars", 0)); }
static void int32_scalar(void) { one(with(tensor(3, "", integer(7, 1)), "scalars", 0)); }
static void int64_scalar(void) { one(with(tensor(9, "", integer(10, 1)), "scalars", 0)); }
static void half_scalar(void) { one(with(tensor(19, "", integer(13, 1)), "scalars", 0)); }
static void bool_scalar(void) { one(with(tensor(10, "", integer(11, 1)), "scalars", 0)); }
static void shape_1(void) { one(with(tensor(1, "1", single(5, 1)), "scalars", 0)); }
static void bfloat16(void) { one(with(tensor(14, "", integer(13, 1)), "scalars", 0)); }
static void two_floats(void) { one(with(tensor(1, "2", both(single(5, 1), single(5, 2))), "scalars", 0)); }
static void no_float(void) { one(with(tensor(1, "", none()), "scalars", 0)); }
static void scalar_image(void) { two(scalar("t", 1), value("t", png())); }
static void image_scalar(void) { two(value("t", png()), scalar("t", 1)); }
static void blob_quote(void) { one(value("a\"b", png())); }
static void blob_newline(void) { one(value("a\nb", png())); }
static void unknown_plugin(void) { one(with(tensor(1, "", single(5, 1)), "mine", 0)); }
static void no_plugin(void) { one(value("t", tensor(1, "", single(5, 1)))); }
static void no_value(void) { one(with(none(), "scalars", 0)); }
static void audio_pairs_class(void) { one(with(tensor(7, "12", strings(2)), "audio", 3)); }
static void graph_rank_0_class(void) { one(with(tensor(7, "", strings(1)), "graph_keras_model", 3)); }
static void legacy_class(void) { one(with(single(2, 1), "histograms", 2)); }
static void data_class_9(void) { one(with(tensor(1, "", single(5, 1)), "scalars", 9)); }
static void edges(void) { one(value("t", histogram(3, 3, 0))); }
static void lengths(void) { one(value("t", histogram(2, 3, 1))); }
static void tensor_count(void) { one(with(tensor(1, "3", both(single(5, 1), single(5, 2))), "mine", 2)); }
static void hparams_empty(void) { one(with(none(), "hparams", 0)); }
static void mesh(void) { one(with(tensor(1, "", single(5, 1)), "mesh", 0)); }
static void layout(void) { one(with(tensor(7, "", strings(1)), "custom_scalars", 0)); }
static void webp(void) { one(value("t", part(4, words(4, "RIFFxxxxWEBP")))); }
static void strings_for_image(void) { one(with(tensor(7, "22", strings(4)), "images", 0)); }
static void twice(void) { begin(); add(event(5, 1, both(scalar("t", 1), scalar("t", 2)))); end(); }
static void back(void) { begin(); add(event(5, 9, scalar("t", 1))); add(event(6, 3, scalar("t", 2))); end(); }
static struct bytes start(int64_t step)
{
    return both(both(real(1, 7), integer(2, step)), part(7, integer(1, 1)));
}
static void second_start(void)
{
    begin();
    add(start(0));
    add(event(5, 9, scalar("t", 1)));
    add(start(5));
    add(event(8, 10, scalar("t", 1)));
    end();
}
static void torch_purge(void)
{
    begin();
    add(event(5, 9, scalar("t", 1)));
    end();
    begin_at("events.out.tfevents.2.h.1.0", 6);
    add(start(5));
    add(event(8, 10, scalar("t", 1)));
    end();
}
static void stale_tail(void)
{
    begin();
    add(event(5, 9, scalar("t", 1)));
    add(event(5, 9, scalar("u", 1)));
    add(start(5));
    add(event(8, 10, scalar("t", 1)));
    end();
}
static void interleaved(void)
{
    for (int k = 0; k < 2; k++) {
        begin_at(k ? "events.out.tfevents.1.h.2.0" : "events.out.tfevents.1.h.1.0", 1);
        for (int i = k; i < 20; i += 2)
            add(event(10 + i, i, scalar("t", 1)));
        end();
    }
}
static void ten_before_two(void)
{
    begin_at("events.out.tfevents.1.h.7.10", 3);
    end();
    begin_at("events.out.tfevents.1.h.7.2", 2);
    end();
}
static void short_seconds(void)
{
    begin_at("events.out.tfevents.1000.h.7.0", 3);
    end();
    begin_at("events.out.tfevents.999.h.7.0", 2);
    end();
}
static void copy(void) { begin_at("x.tfevents.y.bak", 1); end(); }
static void metadata_once(void)
{
    one(with(tensor(7, "12", strings(2)), "audio", 0));
    begin_at("events.out.tfevents.2.h.1.0", 7);
    add(event(8, 2, value("t", tensor(7, "12", strings(2)))));
    end();
}

static void no_picture(void) { one(with(tensor(7, "2", strings(2)), "images", 0)); }
static void later_without(void)
{
    two(with(tensor(7, "3", strings(3)), "images", 3), value("t", tensor(7, "0", none())));
}
static void graph_of(struct bytes graph) { begin(); add(both(real(1, 5), part(4, graph))); end(); }
static void graph_cut(void) { graph_of((struct bytes){ { 0x0a, 5, 0x0a, 1, 'a' }, 5 }); }
static void graph_not_utf8(void) { graph_of(part(1, both(words(1, "a"), part(5, words(1, "\xff"))))); }
static void graph_empty(void) { graph_of(part(4, integer(1, 22))); }
static struct bytes texts(const char *name, const char *description)
{
    return part(9, both(words(2, name), words(3, description)));
}
static void name_lost(void) { one(value("t", both(single(2, 1), part(9, words(2, "name"))))); }
static void description_lost(void) { one(value("t", both(png(), part(9, words(3, "what"))))); }
static void late_name(void) { two(scalar("t", 1), value("t", both(single(2, 1), texts("a", "")))); }
static void other_description(void)
{
    struct bytes first = part(9, both(part(1, words(1, "scalars")), both(words(2, "a"), words(3, "b"))));

    two(value("t", both(tensor(1, "", single(5, 1)), first)),
        value("t", both(tensor(1, "", single(5, 2)), texts("a", "c"))));
}

/* The first damage is no sign of another kind of file where it is another damage, or not at the start. */
static void damage_alone(uint64_t offset, enum record_damage kind)
{
    file("a.tfevents");
    place = offset;
    damage(kind);
    if (!failed)
        good(log_check_end(check, 0, place, NULL));
}
static void later_damage(void) { damage_alone(30, RECORD_BAD_LENGTH_CRC); }
static void data_damage(void) { damage_alone(0, RECORD_BAD_DATA_CRC); }
static void short_png(void) { one(value("t", image("\x89PN"))); }
static void short_jpeg(void) { one(value("t", image("\xff\xd8"))); }
static void one_letter(void) { one(value("t", image("B"))); }
static void bytes_like_gif(void) { one(value("t", image("GIF7"))); }
static void layout_of_the_same_length(void)
{
    one(value("custom_scalars__CONFIG__", both(tensor(7, "", strings(1)), metadata("custom_scalars", 0))));
}
static void with_content(const char *plugin, struct bytes content)
{
    one(value("t", both(tensor(1, "", single(5, 1)), part(9, part(1, both(words(1, plugin), part(2, content)))))));
}
static const struct bytes not_a_field = { { 0x0f }, 1 };
static void hparams_not_protobuf(void) { with_content("hparams", both(part(2, none()), not_a_field)); }
static void hparams_version(void) { with_content("hparams", both(part(2, none()), integer(1, 1))); }
static void hparams_other_fields(void) { with_content("hparams", both(both(part(1, none()), integer(3, 1)), part(5, none()))); }
static void mesh_not_protobuf(void) { with_content("mesh", both(integer(6, 1), not_a_field)); }
static void negative_class(void) { one(with(tensor(1, "", single(5, 1)), "scalars", -1)); }
/* Said again in the next file, once. */
static void in_two_files(struct bytes v)
{
    one(v);
    begin_at("events.out.tfevents.2.h.1.0", 7);
    add(event(8, 2, v));
    add(event(9, 3, v));
    end();
}
static void overflow(void)
{
    one(with(tensor(1, "9999999999999999999999", both(single(5, 1), single(5, 2))), "mine", 2));
}
static void empty_buckets(void) { one(value("t", part(5, both(part(6, none()), both(real(7, 1), part(7, none())))))); }
static void bad_step(void)
{
    struct bytes b = real(1, 6);

    for (int i = 0; i < 20; i++)
        b = both(b, (struct bytes){ { i ? 0xff : 0x10 }, 1 });
    one(scalar("t", 1));
    add(b);
}
static void audio_of_three(void) { one(with(tensor(7, "13", strings(3)), "audio", 3)); }
static void texts_of_rank_2(void) { one(with(tensor(7, "12", strings(2)), "text", 3)); }
static void two_of_rank_0(void) { one(with(tensor(7, "", strings(2)), "graph_keras_model", 3)); }
static void audio_of_rank_0(void) { one(with(tensor(7, "", strings(1)), "audio", 3)); }
static void image_of_rank_0(void) { one(with(tensor(7, "", strings(1)), "images", 3)); }
static void other_of_rank_0(void) { one(with(tensor(7, "", strings(1)), "mine", 3)); }
static void hparams_once(void)
{
    struct bytes content = part(2, part(3, none()));

    one(value("h", part(9, part(1, both(words(1, "hparams"), content)))));
    begin_at("events.out.tfevents.2.h.1.0", 7);
    add(event(8, 2, value("h", none())));
    end();
}

/* Sound ones. */
static void once(const char *dims, int count, const char *plugin, int data_class)
{
    one(with(tensor(7, dims, strings(count)), plugin, data_class));
    begin_at("events.out.tfevents.2.h.1.0", 7);
    add(event(8, 2, value("t", tensor(7, dims, strings(count)))));
    end();
}
static void once_of_rank_1(void) { once("3", 3, "images", 0); }
static void once_with_class(void) { once("3", 3, "images", 3); }
static void jpeg(void) { one(value("t", image("\xff\xd8\xff"))); }
static void gif(void) { one(value("t", image("GIF89a"))); }
static void bmp(void) { one(value("t", image("BM"))); }
static void layout_as_it_should_be(void)
{
    one(value("custom_scalars__config__", both(tensor(7, "1", strings(1)), metadata("custom_scalars", 0))));
}
static void mesh_with_shape(void) { with_content("mesh", integer(6, 1)); }
static void number_before_tag(void)
{
    one(scalar("t", 1));
    add(event(6, 2, part(1, both(single(2, 1), words(1, "t")))));
    add(event(7, 3, part(1, both(words(1, "u"), single(2, 1)))));
    add(event(8, 300, scalar("t", 1)));
}
static void plain(void) { two(scalar("t", 1), scalar("t", 2)); }
static void many_tags(void)
{
    char tag[32];

    begin();
    for (int i = 0; i < 3000; i++) {
        snprintf(tag, sizeof tag, "tag_%d", i % 300);
        add(event(5, i / 300 * 1000, scalar(tag, NAN)));
    }
    end();
}
static void tensor_scalar(void)
{
    two(with(tensor(1, "", single(5, 1)), "scalars", 0), value("t", tensor(1, "", words(4, "abcd"))));
}
static void blobs(void)
{
    one(both(value("a", png()), with(tensor(7, "3", strings(3)), "images", 0)));
    add(event(9, 1, value("s", both(tensor(7, "12", strings(2)), metadata("audio", 0)))));
}
static void repeated_one(void) { one(with(tensor(1, "35", single(5, 1)), "pr_curves", 0)); }
static void full_histogram(void) { one(value("t", histogram(3, 3, 1))); }
static void hparams(void)
{
    struct bytes content = part(2, part(3, none()));

    one(value("_hparams_/session_start_info", part(9, part(1, both(words(1, "hparams"), content)))));
}
static void restart(void)
{
    begin();
    add(start(0));
    add(event(5, 4, scalar("t", 1)));
    end();
    begin_at("events.out.tfevents.2.h.1.0", 9);
    add(start(5));
    add(event(10, 5, scalar("t", 1)));
    end();
}
/* The whole seconds of TensorFlow's first record lie before the last point of the file that this one follows. */
static void restart_at_once(void)
{
    begin_at("events.out.tfevents.1.h.1.0", 1);
    for (int i = 0; i < 5; i++)
        add(event(1.1 + i / 10.0, i, scalar("t", 1)));
    end();
    begin_at("events.out.tfevents.1.h.2.0", 1);
    add(event(1.6, 3, scalar("t", 1)));
    end();
}
static void graph_good(void)
{
    graph_of(both(part(1, both(words(1, "a"), both(words(2, "Relu"), integer(1, 3)))), part(4, integer(1, 22))));
}
static void texts_kept(void)
{
    struct bytes described = part(9, both(part(1, words(1, "scalars")), both(words(2, "a"), words(3, "b"))));

    two(value("t", both(tensor(1, "", single(5, 1)), described)),
        value("t", both(tensor(1, "", single(5, 2)), described)));
    add(event(9, 3, value("u", both(single(2, 1), part(9, both(part(1, words(1, "scalars")),
                                                               both(words(2, "a"), integer(4, 1))))))));
}
static void hosts(void)
{
    begin_at("events.out.tfevents.1.host10.7.0", 1);
    end();
    begin_at("events.out.tfevents.1.host2.7.0", 1);
    end();
    begin_at("events.out.tfevents.1.host3.10.0", 1);
    end();
    begin_at("events.out.tfevents.1.host3.9.0", 1);
    end();
}
static void unknown_fields(void)
{
    begin();
    add(both(event(5, 1, scalar("t", 1)), (struct bytes){ { 0xa3, 6, 8, 1, 0xa4, 6, 0xa8, 6, 9 }, 9 }));
    end();
}

/* An event with so many groups one in the other in its summary. */
static void groups(size_t depth)
{
    struct bytes b = none();

    for (size_t i = 0; i < 2 * depth; i++)
        b = both(b, (struct bytes){ { i < depth ? 0xa3 : 0xa4, 6 }, 2 });
    begin();
    add(both(real(1, 5), part(5, b)));
    end();
}
static void groups_99(void) { groups(99); }
static void groups_100(void) { groups(100); }
/* clang-format on */

static const struct {
    const char *name;
    void (*make)(void);
    enum log_finding_kind want; /* LOG_KINDS: none */
} rows[] = {
    { "length CRC", length_crc, LOG_LENGTH_CRC },
    { "data CRC", data_crc, LOG_DATA_CRC },
    { "length 2^62", too_long, LOG_TOO_LONG },
    { "no_log", no_log, LOG_NO_LOG },
    { "stream", stream, LOG_STREAM },
    { "compressed", compressed, LOG_COMPRESSED },
    { "torn tail", torn, LOG_PARTIAL },
    { "empty file", empty_file, LOG_EMPTY_FILE },
    { "record of 0 bytes", empty_record, LOG_WALL_ZERO },
    { "no version", no_version, LOG_NO_VERSION },
    { "tag not UTF-8", not_utf8, LOG_UTF8 },
    { "session text not UTF-8", note_not_utf8, LOG_UTF8 },
    { "end-group tag", group_end, LOG_GROUP_END },
    { "tf.Example", example, LOG_EXAMPLE },
    { "wall time as varint", wire_type, LOG_WIRE_TYPE },
    { "simple_value as varint", wire_type_deep, LOG_WIRE_TYPE },
    { "wire type 7", not_protobuf, LOG_PROTOBUF },
    { "100 groups in a message", groups_100, LOG_PROTOBUF },
    { "wall time NaN", wall_nan, LOG_WALL_NAN },
    { "wall time -inf", wall_infinite, LOG_WALL_INFINITE },
    { "wall time in ms", wall_unit, LOG_WALL_UNIT },
    { "DT_DOUBLE", double_scalar, LOG_SCALAR_FORM },
    { "DT_INT32", int32_scalar, LOG_SCALAR_FORM },
    { "DT_INT64", int64_scalar, LOG_SCALAR_FORM },
    { "DT_HALF", half_scalar, LOG_SCALAR_FORM },
    { "DT_BOOL", bool_scalar, LOG_SCALAR_FORM },
    { "shape [1]", shape_1, LOG_SCALAR_FORM },
    { "BFLOAT16", bfloat16, LOG_SCALAR_VALUE },
    { "two floats", two_floats, LOG_SCALAR_VALUE },
    { "float tensor without value", no_float, LOG_SCALAR_VALUE },
    { "scalar, then image", scalar_image, LOG_SCALAR_CHANGED },
    { "image, then scalar", image_scalar, LOG_KIND_CHANGED },
    { "quote in a blob's tag", blob_quote, LOG_BLOB_TAG },
    { "newline in a blob's tag", blob_newline, LOG_BLOB_TAG },
    { "unknown plugin", unknown_plugin, LOG_NO_CLASS },
    { "no plugin", no_plugin, LOG_NO_CLASS },
    { "value without member", no_value, LOG_NO_VALUE },
    { "audio [n,2], class 3", audio_pairs_class, LOG_BLOB_SHAPE },
    { "graph of rank 0, class 3", graph_rank_0_class, LOG_BLOB_SHAPE },
    { "old scalar, class 2", legacy_class, LOG_LEGACY_CLASS },
    { "data class 9", data_class_9, LOG_DATA_CLASS },
    { "empty outer buckets", edges, LOG_HISTOGRAM_EDGES },
    { "unequal lengths", lengths, LOG_HISTOGRAM_LENGTHS },
    { "two of three elements", tensor_count, LOG_TENSOR_COUNT },
    { "hparams without content", hparams_empty, LOG_HPARAMS },
    { "mesh without shape", mesh, LOG_MESH_SHAPE },
    { "layout under another tag", layout, LOG_LAYOUT_TAG },
    { "WebP", webp, LOG_IMAGE_TYPE },
    { "strings [2,2] as image", strings_for_image, LOG_BLOB_FORM },
    { "step twice", twice, LOG_STEP_TWICE },
    { "step back", back, LOG_STEP_BACK },
    { "second START", second_start, LOG_START_AGAIN },
    { "torch purge_step", torch_purge, LOG_START_FIRST },
    { "stale tail", stale_tail, LOG_STALE_TAIL },
    { "two interleaved files", interleaved, LOG_INTERLEAVED },
    { ".10 before .2", ten_before_two, LOG_NAME_ORDER },
    { "seconds without zeros", short_seconds, LOG_NAME_ORDER },
    { "x.tfevents.y.bak", copy, LOG_BACKUP_NAME },
    { "metadata once", metadata_once, LOG_METADATA_ONCE },
    { "an images tensor of two strings", no_picture, LOG_NO_PICTURE },
    { "later an empty images tensor", later_without, LOG_NO_PICTURE },
    { "a graph that is cut", graph_cut, LOG_GRAPH },
    { "a graph's attribute not UTF-8", graph_not_utf8, LOG_GRAPH },
    { "a graph without nodes", graph_empty, LOG_GRAPH },
    { "a simple_value's name", name_lost, LOG_TEXT_LOST },
    { "an image's description", description_lost, LOG_TEXT_LOST },
    { "a name after the first value", late_name, LOG_TEXT_LATE },
    { "another description", other_description, LOG_TEXT_LATE },
    { "restart within a second", restart_at_once, LOG_STEP_BACK },
    { "damage later and no more", later_damage, LOG_LENGTH_CRC },
    { "damaged data and no more", data_damage, LOG_DATA_CRC },
    { "three bytes of a PNG", short_png, LOG_IMAGE_TYPE },
    { "two bytes of a JPEG", short_jpeg, LOG_IMAGE_TYPE },
    { "one byte of a BMP", one_letter, LOG_IMAGE_TYPE },
    { "four bytes like a GIF", bytes_like_gif, LOG_IMAGE_TYPE },
    { "layout under a tag as long", layout_of_the_same_length, LOG_LAYOUT_TAG },
    { "hparams that are not protobuf", hparams_not_protobuf, LOG_HPARAMS },
    { "hparams of version 1", hparams_version, LOG_HPARAMS },
    { "hparams of other fields", hparams_other_fields, LOG_HPARAMS },
    { "mesh that is not protobuf", mesh_not_protobuf, LOG_MESH_SHAPE },
    { "data class -1", negative_class, LOG_DATA_CLASS },
    { "more elements than a number", overflow, LOG_TENSOR_COUNT },
    { "empty lists of buckets", empty_buckets, LOG_HISTOGRAM_LENGTHS },
    { "a step of 19 bytes", bad_step, LOG_PROTOBUF },
    { "audio [1,3]", audio_of_three, LOG_BLOB_FORM },
    { "texts [1,2]", texts_of_rank_2, LOG_BLOB_FORM },
    { "two graphs of rank 0", two_of_rank_0, LOG_BLOB_FORM },
    { "audio of rank 0", audio_of_rank_0, LOG_BLOB_FORM },
    { "image of rank 0", image_of_rank_0, LOG_BLOB_FORM },
    { "rank 0 of another plugin", other_of_rank_0, LOG_BLOB_FORM },
    { "hparams' metadata once", hparams_once, LOG_METADATA_ONCE },
    { "metadata of rank 1 once", once_of_rank_1, LOG_KINDS },
    { "metadata with a class once", once_with_class, LOG_KINDS },
    { "JPEG", jpeg, LOG_KINDS },
    { "GIF", gif, LOG_KINDS },
    { "BMP", bmp, LOG_KINDS },
    { "a layout", layout_as_it_should_be, LOG_KINDS },
    { "a mesh", mesh_with_shape, LOG_KINDS },
    { "scalars in other forms", number_before_tag, LOG_KINDS },
    { "scalars", plain, LOG_KINDS },
    { "many tags", many_tags, LOG_KINDS },
    { "tensor scalars", tensor_scalar, LOG_KINDS },
    { "blobs", blobs, LOG_KINDS },
    { "one element for all", repeated_one, LOG_KINDS },
    { "histogram", full_histogram, LOG_KINDS },
    { "hparams", hparams, LOG_KINDS },
    { "restart", restart, LOG_KINDS },
    { "a graph", graph_good, LOG_KINDS },
    { "names that stay", texts_kept, LOG_KINDS },
    { "hosts and process ids", hosts, LOG_KINDS },
    { "unknown fields and groups", unknown_fields, LOG_KINDS },
    { "99 groups in a message", groups_99, LOG_KINDS },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct log_finding *found;
        size_t count, hits = 0, others = 0;
        enum log_level level = rows[i].want == LOG_KINDS ? LOG_NOTE : log_finding_text(rows[i].want)->level;

        assert_int_equal(log_check_new(&check, "run", NULL), OK);
        rows[i].make();
        assert_int_equal(log_check_finish(check, NULL), OK);
        found = log_check_findings(check, &count);
        for (size_t k = 0; k < count; k++) {
            hits += found[k].kind == rows[i].want;
            /* Beside it at most notes: a START that is not the first is also one above steps that were logged. */
            others += found[k].kind != rows[i].want &&
                      (level == LOG_NOTE
                           ? log_finding_text(found[k].kind)->level != LOG_NOTE || rows[i].want == LOG_KINDS
                           : log_finding_text(found[k].kind)->level >= level);
        }
        if (others || (rows[i].want != LOG_KINDS && hits != 1))
            fail_msg("%s: found %zu times, %zu others, first %s", rows[i].name, hits, others,
                     count ? log_finding_text(found[0].kind)->word : "-");
        log_check_free(check);
    }
}

/* A series without a class, or with one that does not exist, is told of once in each file. */
static void test_each_file(void **state)
{
    const struct log_finding *found;
    size_t count;

    (void)state;
    for (int data_class = 0; data_class <= 9; data_class += 9) {
        assert_int_equal(log_check_new(&check, "run", NULL), OK);
        in_two_files(with(tensor(1, "", single(5, 1)), "mine", data_class));
        found = log_check_findings(check, &count);
        assert_int_equal(count, 2);
        for (size_t i = 0; i < count; i++)
            assert_true(found[i].kind == (data_class ? LOG_DATA_CLASS : LOG_NO_CLASS) && found[i].file == i);
        log_check_free(check);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    may_fail = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (long n = 1, more = rows[i].make != many_tags; more; n++) {
            calls = 0;
            fail_at = n;
            failed = log_check_new(&check, ".run", NULL) != OK;
            rows[i].make();
            if (!failed)
                good(log_check_finish(check, NULL));
            fail_at = 0;
            more = calls >= n;
            assert_int_equal(failed, more);
            log_check_free(check);
        }
    may_fail = failed = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_each_file),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
