/* Whole bundles: the vectors, damage, writing, reading. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "base/crc32c.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/directory/state_file.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/table.h"
#include "checkpoint/tensor_bundle.h"
#include "tests/checkpoint/sha256.h"
#include "tests/failing_io.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>

static void write_small(struct fixture *f, const char *prefix)
{
    static const int64_t two[] = { 2 };
    struct tensor_bundle_writer *w;
    struct error e = { 0 };

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, prefix), &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "conv1/biases", TENSOR_FLOAT, 1, two, small_data, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "conv1/biases/ExponentialMovingAverage", TENSOR_FLOAT, 1, two,
                                              small_data + 8, 8, &e),
                     OK);
    assert_int_equal(tensor_bundle_writer_add(w, "global_step", TENSOR_INT64, 0, NULL, small_data + 16, 8, &e), OK);
    if (tensor_bundle_writer_finish(w, &e) != OK)
        fail_msg("%s", e.message);
}

static void test_written_bytes(void **state)
{
    struct fixture *f = *state;
    struct buffer index, data;

    write_small(f, "model.ckpt-700");
    fixture_read(f, "model.ckpt-700.index", &index);
    fixture_read(f, "model.ckpt-700.data-00000-of-00001", &data);
    assert_int_equal(index.length, SMALL_INDEX);
    assert_memory_equal(index.data, small_index, SMALL_INDEX);
    assert_int_equal(data.length, SMALL_DATA);
    assert_memory_equal(data.data, small_data, SMALL_DATA);
    buffer_release(&index);
    buffer_release(&data);
}

static void test_read_small(void **state)
{
    struct fixture *f = *state;
    struct tensor_bundle *b;
    const struct tensor_entry *entry;
    struct error e = { 0 };
    int64_t step;
    float v[2];

    fixture_write(f, "m-700.index", small_index, SMALL_INDEX);
    fixture_write(f, "m-700.data-00000-of-00001", small_data, SMALL_DATA);
    if (tensor_bundle_open(&b, fixture_path(f, "m-700"), &e) != OK)
        fail_msg("%s", e.message);
    assert_int_equal(tensor_bundle_count(b), 3);
    entry = tensor_bundle_find(b, "conv1/biases/ExponentialMovingAverage");
    assert_non_null(entry);
    assert_int_equal(entry->offset, 8);
    assert_int_equal(entry->crc, 0x81eb10ae);
    assert_int_equal(tensor_bundle_read_float(b, entry, v, 2, &e), OK);
    assert_true(v[0] == 0.5f && v[1] == 0.25f);
    assert_int_equal(tensor_bundle_read_integer(b, tensor_bundle_find(b, "global_step"), &step, &e), OK);
    assert_int_equal(step, 700);
    assert_null(tensor_bundle_find(b, "conv1"));
    tensor_bundle_close(b);
}

static void assert_sum(struct fixture *f, const char *name, size_t length, const char *wanted)
{
    struct buffer file;
    char sum[65];

    fixture_read(f, name, &file);
    assert_int_equal(file.length, length);
    sha256_hex(file.data, file.length, sum);
    assert_string_equal(sum, wanted);
    buffer_release(&file);
}

/* Tensors appended in pieces are the same file. */
static void test_written_in_pieces(void **state)
{
    static const int64_t two[] = { 2 }, large[] = { INT64_MAX / 4 + 1 };
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct error e = { 0 };
    struct buffer index, data;

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m-1"), &e), OK);
    for (size_t n = 0; n < 2; n++)
        assert_int_equal(tensor_bundle_writer_append(w, "", n, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_writer_begin(w, "s", TENSOR_STRING, 1, two, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_writer_begin(w, "l", TENSOR_FLOAT, 1, large, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_writer_begin(w, "conv1/biases", TENSOR_FLOAT, 1, two, &e), OK);
    for (size_t at = 0; at < 8; at++) {
        assert_int_equal(tensor_bundle_writer_begin(w, "b", TENSOR_FLOAT, 1, two, &e), ERR_ARG);
        assert_int_equal(tensor_bundle_writer_add(w, "b", TENSOR_FLOAT, 1, two, small_data, 8, &e), ERR_ARG);
        assert_says(e, "bytes are missing");
        assert_int_equal(tensor_bundle_writer_append(w, small_data + at, 1, &e), OK);
    }
    assert_int_equal(tensor_bundle_writer_append(w, small_data, 1, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_writer_add(w, "conv1/biases/ExponentialMovingAverage", TENSOR_FLOAT, 1, two,
                                              small_data + 8, 8, &e),
                     OK);
    assert_int_equal(tensor_bundle_writer_begin(w, "global_step", TENSOR_INT64, 0, NULL, &e), OK);
    assert_int_equal(tensor_bundle_writer_append(w, small_data + 16, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), OK);
    fixture_read(f, "m-1.index", &index);
    fixture_read(f, "m-1.data-00000-of-00001", &data);
    assert_int_equal(index.length, SMALL_INDEX);
    assert_memory_equal(index.data, small_index, SMALL_INDEX);
    assert_memory_equal(data.data, small_data, SMALL_DATA);
    buffer_release(&index);
    buffer_release(&data);
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m-2"), &e), OK);
    assert_int_equal(tensor_bundle_writer_begin(w, "a", TENSOR_FLOAT, 1, two, &e), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), ERR_ARG);
    assert_false(fixture_exists(f, "m-2.index"));
}

static void test_slices(void **state)
{
    static const int64_t shape[] = { 4, 2 }, first[] = { 0, 0 }, second[] = { 2, 0 }, length[] = { 2, -1 };
    static const int64_t left[] = { 4, 1 }, right[] = { 0, 1 }, gap[] = { 1, -1 };
    static const float values[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, columns[] = { 0, 2, 4, 6, 1, 3, 5, 7 };
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct tensor_bundle *b;
    struct error e = { 0 };
    float got[8];

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m-1"), &e), OK);
    assert_int_equal(
        tensor_bundle_writer_add_slice(w, "emb/mat", TENSOR_FLOAT, 2, shape, first, length, values, 16, &e), OK);
    assert_int_equal(
        tensor_bundle_writer_add_slice(w, "emb/mat", TENSOR_FLOAT, 2, shape, second, length, values + 4, 16, &e), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), OK);
    assert_sum(f, "m-1.index", 208, "b0be4f60d94d801366a72e9940122857710f08f48ccf330c1d6f149386f1bca6");
    assert_sum(f, "m-1.data-00000-of-00001", 32, "0571cfe42be5c7b95de9afc7c7ba1286fb7a2ef10a9035f8d6b87d21a3bc8387");
    /* The same tensor cut along its columns, which do not lie together. */
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m-2"), &e), OK);
    assert_int_equal(tensor_bundle_writer_add_slice(w, "emb/mat", TENSOR_FLOAT, 2, shape, first, left, columns, 16, &e),
                     OK);
    assert_int_equal(
        tensor_bundle_writer_add_slice(w, "emb/mat", TENSOR_FLOAT, 2, shape, right, left, columns + 4, 16, &e), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), OK);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(tensor_bundle_open(&b, fixture_path(f, i == 1 ? "m-1" : "m-2"), &e), OK);
        assert_int_equal(tensor_bundle_count(b), 1);
        assert_int_equal(tensor_bundle_entry(b, 0)->slices, 2);
        if (tensor_bundle_read_float(b, tensor_bundle_entry(b, 0), got, 8, &e) != OK)
            fail_msg("%s", e.message);
        assert_memory_equal(got, values, sizeof got);
        tensor_bundle_close(b);
    }
    /* A variable that is not covered is not written. */
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m-3"), &e), OK);
    assert_int_equal(tensor_bundle_writer_add_slice(w, "v", TENSOR_FLOAT, 2, shape, first, gap, values, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), ERR_CORRUPT);
    assert_says(e, "do not cover");
    assert_false(fixture_exists(f, "m-3.data-00000-of-00001.tempstate0"));
}

static void test_strings(void **state)
{
    static const struct tensor_string strings[] = { { "cat", 3 }, { "horse", 5 } };
    static const uint8_t stored[] = "\x03\x05\xef\xcc\xd4\xff"
                                    "cathorse";
    static const int64_t two[] = { 2 }, none[] = { 0 };
    struct tensor_string split[2];
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct tensor_bundle *b;
    struct error e = { 0 };
    uint8_t got[14];

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m-1"), &e), OK);
    assert_int_equal(tensor_bundle_writer_add_strings(w, "animals", 1, two, strings, 2, &e), OK);
    assert_int_equal(tensor_bundle_writer_add_strings(w, "nothing", 1, none, strings, 0, &e), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), OK);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m-1"), &e), OK);
    assert_int_equal(tensor_bundle_find(b, "animals")->crc, 0x215eac22);
    assert_int_equal(tensor_bundle_read(b, tensor_bundle_find(b, "animals"), got, 14, &e), OK);
    assert_memory_equal(got, stored, 14);
    string_tensor_split(got, 14, 2, split);
    assert_memory_equal(split[1].bytes, "horse", 5);
    assert_int_equal(split[1].length, 5);
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "animals"), (float[2]){ 0 }, 2, &e), ERR_ARG);
    tensor_bundle_close(b);
    for (size_t i = 0; i < 18; i++) { /* the second tensor's four bytes too */
        struct buffer file;

        fixture_read(f, "m-1.data-00000-of-00001", &file);
        assert_int_equal(file.length, 18);
        file.data[i] ^= 1;
        fixture_write(f, "m-2.data-00000-of-00001", file.data, file.length);
        buffer_release(&file);
        fixture_read(f, "m-1.index", &file);
        fixture_write(f, "m-2.index", file.data, file.length);
        buffer_release(&file);
        assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m-2"), &e), OK);
        assert_int_equal(tensor_bundle_read(b, tensor_bundle_entry(b, i / 14), got, i < 14 ? 14 : 4, &e), ERR_CORRUPT);
        assert_says(e, i < 14 ? "tensor animals, 14 bytes at byte 0" : "tensor nothing, 4 bytes at byte 14");
        tensor_bundle_close(b);
    }
}

static void test_conversions(void **state)
{
    static const uint16_t halves[] = { 0x3c00, 0xc000, 0x0001, 0x83ff, 0x7c00, 0xfc00, 0x7e00, 0x8000 };
    static const float wanted[] = { 1, -2, 0x1p-24f, -0x1.ff8p-15f, INFINITY, -INFINITY, NAN, -0.0f };
    static const uint16_t brains[] = { 0x3f80, 0xc000 };
    static const double doubles[] = { 0.1, 1e300 }, whole = 12, half = 0.5;
    static const int32_t minus = -5;
    static const int64_t eight[] = { 8 }, two[] = { 2 };
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct tensor_bundle *b;
    struct error e = { 0 };
    int64_t integer;
    float got[8];

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m"), &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "half", TENSOR_HALF, 1, eight, halves, sizeof halves, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "brain", TENSOR_BFLOAT16, 1, two, brains, sizeof brains, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "double", TENSOR_DOUBLE, 1, two, doubles, sizeof doubles, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "int", TENSOR_INT32, 0, NULL, &minus, 4, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "whole", TENSOR_DOUBLE, 0, NULL, &whole, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "part", TENSOR_DOUBLE, 0, NULL, &half, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "bad", TENSOR_FLOAT, 1, two, halves, 4, &e), ERR_ARG);
    assert_says(e, "4 bytes do not match its shape of 2 elements of 4");
    assert_int_equal(tensor_bundle_writer_add(w, "", TENSOR_FLOAT, 1, two, halves, 8, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_writer_add(w, "x", TENSOR_STRING, 1, two, halves, 8, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), OK);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), OK);
    assert_int_equal(tensor_bundle_count(b), 6);
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "half"), got, 8, &e), OK);
    for (int i = 0; i < 8; i++)
        assert_true(isnan(wanted[i]) ? isnan(got[i]) : got[i] == wanted[i] && signbit(got[i]) == signbit(wanted[i]));
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "brain"), got, 2, &e), OK);
    assert_true(got[0] == 1 && got[1] == -2);
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "double"), got, 2, &e), OK);
    assert_true(got[0] == 0.1f && isinf(got[1]));
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "double"), got, 3, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "int"), got, 1, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_read_integer(b, tensor_bundle_find(b, "int"), &integer, &e), OK);
    assert_int_equal(integer, -5);
    assert_int_equal(tensor_bundle_read_integer(b, tensor_bundle_find(b, "whole"), &integer, &e), OK);
    assert_int_equal(integer, 12);
    assert_int_equal(tensor_bundle_read_integer(b, tensor_bundle_find(b, "part"), &integer, &e), ERR_ARG);
    assert_int_equal(tensor_bundle_read_integer(b, tensor_bundle_find(b, "double"), &integer, &e), ERR_ARG);
    tensor_bundle_close(b);
}

static void test_damage(void **state)
{
    static const char git_lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    struct fixture *f = *state;
    struct tensor_bundle *b;
    struct error e = { 0 };
    uint8_t bytes[SMALL_INDEX];

    /* What is missing. */
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), ERR_IO);
    assert_int_equal(e.system, ENOENT);
    fixture_write(f, "m.index", small_index, SMALL_INDEX);
    assert_int_equal(tensor_bundle_open_index(&b, fixture_path(f, "m"), &e), OK);
    assert_int_equal(tensor_bundle_count(b), 3);
    assert_int_equal(tensor_bundle_read(b, tensor_bundle_find(b, "global_step"), bytes, 8, &e), ERR_ARG);
    assert_says(e, "only its index is open");
    tensor_bundle_close(b);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), ERR_IO);
    assert_int_equal(e.system, ENOENT);
    assert_says(e, "m.data-00000-of-00001");
    /* Data that is short, at opening and later. */
    fixture_write(f, "m.data-00000-of-00001", small_data, SMALL_DATA - 1);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), ERR_CORRUPT);
    assert_says(e, "not complete: 23 bytes, but tensor global_step ends at byte 24");
    assert_int_equal(checkpoint_complete(fixture_path(f, "m"), &e), 0);
    fixture_write(f, "m.data-00000-of-00001", small_data, SMALL_DATA);
    assert_int_equal(checkpoint_complete(fixture_path(f, "m"), &e), 1);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), OK);
    assert_int_equal(truncate(fixture_path(f, "m.data-00000-of-00001"), 23), 0);
    assert_int_equal(tensor_bundle_read(b, tensor_bundle_find(b, "global_step"), bytes, 8, &e), ERR_CORRUPT);
    assert_says(e, "truncated after it was opened");
    tensor_bundle_close(b);
    /* A bit of a tensor. */
    memcpy(bytes, small_data, SMALL_DATA);
    bytes[3] ^= 4;
    fixture_write(f, "m.data-00000-of-00001", bytes, SMALL_DATA);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), OK);
    assert_int_equal(tensor_bundle_read(b, tensor_bundle_find(b, "conv1/biases"), bytes, 8, &e), ERR_CORRUPT);
    assert_says(e, "tensor conv1/biases, 8 bytes at byte 0: CRC mismatch");
    tensor_bundle_close(b);
    /* Deleted while open: still readable. */
    fixture_write(f, "m.data-00000-of-00001", small_data, SMALL_DATA);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), OK);
    assert_int_equal(unlink(fixture_path(f, "m.data-00000-of-00001")), 0);
    assert_int_equal(unlink(fixture_path(f, "m.index")), 0);
    assert_int_equal(tensor_bundle_read(b, tensor_bundle_find(b, "conv1/biases"), bytes, 8, &e), OK);
    tensor_bundle_close(b);
    /* A table without a suffix is taken for a V1 checkpoint (test_saved_slices.c). */
    fixture_write(f, "old-5", small_index, SMALL_INDEX);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "old-5"), &e), ERR_CORRUPT);
    assert_says(e, "not a V1 checkpoint");
    /* A big file that is no index: refused by its end, not read. */
    fixture_write(f, "m.index", "", 0);
    assert_int_equal(truncate(fixture_path(f, "m.index"), (off_t)3 << 30), 0);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), ERR_CORRUPT);
    assert_says(e, "bad magic");
    fixture_write(f, "m.index", git_lfs, sizeof git_lfs - 1);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), ERR_CORRUPT);
    assert_says(e, "m.index: not a checkpoint index, but a Git LFS pointer");
}

/* A header is wanted under the first key. */
static void test_no_header(void **state)
{
    struct fixture *f = *state;
    struct buffer file = BUFFER_EMPTY;
    struct table_builder t;
    struct tensor_bundle *b;
    struct error e = { 0 };

    for (int entries = 0; entries < 2; entries++) {
        table_builder_init(&t, &file);
        if (entries)
            table_builder_add(&t, "a", 1, "\x08\x01\x12\x00\x28\x04", 6);
        assert_int_equal(table_builder_finish(&t, &e), OK);
        table_builder_release(&t);
        fixture_write(f, "m.index", file.data, file.length);
        buffer_release(&file);
        assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m"), &e), ERR_CORRUPT);
        assert_says(e, "no header");
    }
}

/* ---- saving on a failing disk, and in a process that is killed ------------------------------------------------- */

static int save(const struct io *io, const char *directory, int step, float value, struct error *e)
{
    static const int64_t shape[] = { 100000 };
    static float values[100000];
    struct tensor_bundle_writer *w;
    char prefix[PATH_MAX], name[32];
    int64_t global_step = step;
    int rc;

    snprintf(name, sizeof name, "model.ckpt-%d", step);
    snprintf(prefix, sizeof prefix, "%s/%s", directory, name);
    for (int i = 0; i < 100000; i++)
        values[i] = value;
    if ((rc = tensor_bundle_writer_open(&w, io, prefix, e)) != OK)
        return rc;
    if ((rc = tensor_bundle_writer_add(w, "global_step", TENSOR_INT64, 0, NULL, &global_step, 8, e)) != OK ||
        (rc = tensor_bundle_writer_add(w, "w", TENSOR_FLOAT, 1, shape, values, sizeof values, e)) != OK ||
        (rc = tensor_bundle_writer_add(w, "v", TENSOR_FLOAT, 1, shape, values, 400000, e)) != OK) {
        tensor_bundle_writer_abandon(w);
        return rc;
    }
    if ((rc = tensor_bundle_writer_finish(w, e)) != OK)
        return rc;
    return checkpoint_directory_commit(io, directory, name, 2, e);
}

/* The newest checkpoint's step, after reading all of it; what the state file names must be there and whole. */
static int64_t newest_step(struct fixture *f)
{
    static float values[100000];
    struct tensor_bundle *b;
    struct error e = { 0 };
    struct state_file listed;
    char name[64], prefix[300];
    struct buffer text;
    int64_t step;

    if (checkpoint_directory_newest(f->directory, name, sizeof name, &e) != 1)
        fail_msg("no whole checkpoint: %s", e.message);
    snprintf(prefix, sizeof prefix, "%s/%s", f->directory, name);
    assert_int_equal(tensor_bundle_open(&b, prefix, &e), OK);
    assert_int_equal(tensor_bundle_read_integer(b, tensor_bundle_find(b, "global_step"), &step, &e), OK);
    for (size_t i = 1; i < 3; i++)
        if (tensor_bundle_read_float(b, tensor_bundle_entry(b, i), values, 100000, &e) != OK)
            fail_msg("%s", e.message);
    tensor_bundle_close(b);
    assert_int_equal(step, checkpoint_name_step(name));
    fixture_read(f, "checkpoint", &text);
    snprintf(prefix, sizeof prefix, "model_checkpoint_path: \"%s\"", name);
    if (!strstr(buffer_text(&text), prefix))
        fail_msg("the newest is %s, the state file says %s", name, buffer_text(&text));
    /* Deletion comes after the list was replaced, so all that is listed is whole. */
    assert_int_equal(state_file_parse(text.data, text.length, &listed, &e), OK);
    for (size_t i = 0; i < listed.count; i++)
        if (!checkpoint_complete(fixture_path(f, listed.paths[i]), &e))
            fail_msg("%s is listed: %s", listed.paths[i], e.message);
    state_file_release(&listed);
    buffer_release(&text);
    return step;
}

/* The set-up need not reach the disk. */
static int no_sync(void *context, int fd)
{
    (void)context, (void)fd;
    return 0;
}

static struct io unsynced(void)
{
    struct io io = io_real;

    io.fsync = no_sync;
    return io;
}

static void start_over(struct fixture *f)
{
    struct io io = unsynced();
    struct error e = { 0 };
    char name[64];

    for (int step = 100; step <= 300; step += 100)
        for (int suffix = 0; suffix < 4; suffix++) {
            static const char *const suffixes[] = { "index", "data-00000-of-00001", "index.tempstate0",
                                                    "data-00000-of-00001.tempstate0" };

            snprintf(name, sizeof name, "model.ckpt-%d.%s", step, suffixes[suffix]);
            unlink(fixture_path(f, name));
        }
    unlink(fixture_path(f, "checkpoint"));
    assert_int_equal(save(&io, f->directory, 100, 1, &e), OK);
    assert_int_equal(save(&io, f->directory, 200, 2, &e), OK);
}

static void test_failing_disk(void **state)
{
    struct fixture *f = *state;
    int failed = 1;

    for (int mode = 0; mode < 4; mode++)
        for (long n = failed = 1; failed; n++) {
            struct io_failing failing = {
                .fail_at = n, .error_number = ENOSPC, .stay_failed = mode & 1, .short_writes = mode >> 1
            };
            struct io io = io_failing_table(&failing), quick = unsynced();
            struct error e = { 0 };
            int64_t step;
            int rc;

            start_over(f);
            rc = save(&io, f->directory, 300, 3, &e);
            failed = failing.calls >= n;
            if (!failed)
                assert_int_equal(rc, OK);
            /* A close that fails after the directory was synced may go unreported. */
            if (rc != OK)
                assert_true(failed && strlen(e.message) > 0);
            step = newest_step(f);
            assert_true(step == 300 || (rc != OK && step == 200));
            assert_false(fixture_exists(f, "model.ckpt-300.data-00000-of-00001.tempstate0"));
            assert_false(fixture_exists(f, "model.ckpt-300.index.tempstate0"));
            assert_int_equal(save(&quick, f->directory, 300, 3, &e), OK);
            assert_int_equal(newest_step(f), 300);
            assert_in_range(n, 1, 100);
        }
}

static void test_killed(void **state)
{
    struct fixture *f = *state;
    int killed = 1;

    for (long n = 1; killed; n++) {
        struct io quick = unsynced();
        struct error e = { 0 };
        int64_t step;
        int status;
        pid_t child;

        start_over(f);
        if ((child = fork()) == 0) {
            struct io_failing failing = { .fail_at = n, .kill = 1 };
            struct io io = io_failing_table(&failing);

            _exit(save(&io, f->directory, 300, 3, &e) == OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        assert_true(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        step = newest_step(f);
        assert_true(step == 300 || (killed && step == 200));
        assert_int_equal(save(&quick, f->directory, 300, 3, &e), OK);
        assert_int_equal(newest_step(f), 300);
        assert_false(fixture_exists(f, "model.ckpt-300.data-00000-of-00001.tempstate0"));
        assert_in_range(n, 1, 100);
    }
}

/* Saving other values under a name that is there: whenever it is killed, what can be opened is not mixed. */
static void test_killed_over_the_same_name(void **state)
{
    static float values[100000];
    struct fixture *f = *state;
    int killed = 1;

    for (long n = 1; killed; n++) {
        struct tensor_bundle *b;
        struct error e = { 0 };
        char name[64];
        int status;
        pid_t child;

        start_over(f);
        if ((child = fork()) == 0) {
            struct io_failing failing = { .fail_at = n, .kill = 1 };
            struct io io = io_failing_table(&failing);

            _exit(save(&io, f->directory, 200, 7, &e) == OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        assert_int_equal(checkpoint_directory_newest(f->directory, name, sizeof name, &e), 1);
        assert_int_equal(tensor_bundle_open(&b, fixture_path(f, name), &e), OK);
        if (tensor_bundle_read_float(b, tensor_bundle_find(b, "w"), values, 100000, &e) != OK)
            fail_msg("killed before call %ld: %s", n, e.message);
        tensor_bundle_close(b);
    }
}

static void test_wrong_writing(void **state)
{
    static const float one = 1;
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct error e = { 0 };

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "missing/m"), &e), ERR_IO);
    assert_null(w);
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m"), &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "a", TENSOR_FLOAT, 0, NULL, &one, 4, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "a", TENSOR_FLOAT, 0, NULL, &one, 4, &e), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), ERR_ARG);
    assert_says(e, "tensor a was added twice");
    assert_false(fixture_exists(f, "m.index"));
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m"), &e), OK);
    tensor_bundle_writer_abandon(w);
    assert_false(fixture_exists(f, "m.data-00000-of-00001.tempstate0"));
    tensor_bundle_writer_abandon(NULL);
    tensor_bundle_close(NULL);
}

#define FIXTURE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_written_bytes),
        FIXTURE_TEST(test_written_in_pieces),
        FIXTURE_TEST(test_read_small),
        FIXTURE_TEST(test_slices),
        FIXTURE_TEST(test_strings),
        FIXTURE_TEST(test_conversions),
        FIXTURE_TEST(test_damage),
        FIXTURE_TEST(test_no_header),
        FIXTURE_TEST(test_failing_disk),
        FIXTURE_TEST(test_killed),
        FIXTURE_TEST(test_killed_over_the_same_name),
        FIXTURE_TEST(test_wrong_writing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
