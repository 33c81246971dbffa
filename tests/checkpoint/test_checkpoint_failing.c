/* Each allocation and each system call fails once while checkpoints of all formats are written, listed, checked, read. */
#include "tests/checkpoint/checkpoint_fixture.h"
#include "tests/failing_calls.h"

#include "checkpoint/bundle_check.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/directory/state_file.h"
#include "checkpoint/directory/training_state.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/tensor_batch.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_print.h"
#include "checkpoint/tensor_stream.h"
#include "tests/eventlog/remove_tree.h"

enum { COUNT = 8 };
static struct fixture *f;
static const int64_t four_by_two[] = { 4, 2 }, eight[] = { COUNT };
static const float values[COUNT] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static int setup(void **state)
{
    int rc = fixture_setup(state);

    f = *state;
    return rc;
}

static int teardown(void **state)
{
    int rc = remove_tree(f->directory);

    free(*state);
    return rc;
}

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", f->directory, name);
    return path;
}

/* ---- bundles ------------------------------------------------------------------------------------------------------ */

static int add_slices(struct tensor_bundle_writer *w, const char *name, int by_rows, struct error *e)
{
    const int64_t rows[] = { 2, -1 }, columns[] = { -1, 1 };
    int rc = OK;

    for (int64_t i = 0; i < 2 && rc == OK; i++) {
        const int64_t start[] = { by_rows ? 2 * i : 0, by_rows ? 0 : i };

        rc = tensor_bundle_writer_add_slice(w, name, TENSOR_FLOAT, 2, four_by_two, start, by_rows ? rows : columns,
                                            values + 4 * i, 16, e);
    }
    return rc;
}

static int write_bundle(struct error *e)
{
    static const struct tensor_string strings[COUNT] = { { "a", 1 }, { "b", 1 } };
    struct tensor_bundle_writer *w;
    char name[32];
    int rc = tensor_bundle_writer_open(&w, NULL, path_of("model.ckpt-7"), e);

    if (rc != OK)
        return rc;
    if ((rc = add_slices(w, "rows", 1, e)) == OK && (rc = add_slices(w, "columns", 0, e)) == OK &&
        (rc = tensor_bundle_writer_add_strings(w, "strings", 1, eight, strings, COUNT, e)) == OK &&
        (rc = tensor_bundle_writer_begin(w, "pieces", TENSOR_FLOAT, 1, eight, e)) == OK &&
        (rc = tensor_bundle_writer_append(w, values, 4, e)) == OK)
        rc = tensor_bundle_writer_append(w, values + 1, sizeof values - 4, e);
    for (int i = 0; i < 40 && rc == OK; i++) {
        snprintf(name, sizeof name, "tensor_%d", i);
        rc = tensor_bundle_writer_add(w, name, TENSOR_FLOAT, 1, eight, values, sizeof values, e);
    }
    if (rc == OK)
        return tensor_bundle_writer_finish(w, e);
    tensor_bundle_writer_abandon(w);
    return rc;
}

static void count_problem(void *context, const struct error *problem)
{
    (void)problem;
    ++*(int *)context;
}

static int read_stream(struct tensor_bundle *b, const struct tensor_entry *entry, struct error *e)
{
    struct tensor_stream *s;
    uint8_t bytes[12];
    size_t got = 1;
    int rc = tensor_stream_open(&s, b, entry, e);

    while (rc == OK && got)
        rc = tensor_stream_read(s, bytes, sizeof bytes, &got, e);
    tensor_stream_close(s);
    return rc;
}

static int read_all(struct tensor_bundle *b, struct error *e)
{
    struct tensor_batch_item items[64];
    struct tensor_print print;
    struct buffer text = BUFFER_EMPTY;
    float got[64][COUNT];
    size_t count = 0;
    int rc = OK;

    for (size_t i = 0; i < tensor_bundle_count(b) && rc == OK; i++) {
        const struct tensor_entry *entry = tensor_bundle_entry(b, i);

        rc = read_stream(b, entry, e);
        if (entry->type != TENSOR_FLOAT || count == 64)
            continue;
        items[count] = (struct tensor_batch_item){ entry, got[count], (size_t)tensor_entry_bytes(entry) };
        count++;
    }
    if (rc == OK)
        rc = tensor_batch_read(b, items, count, 3, e);
    if (rc != OK || count < COUNT)
        return rc;
    tensor_print_init(&print, 2, four_by_two, COUNT, 4);
    tensor_print_add(&print, TENSOR_FLOAT, got[0], COUNT);
    tensor_print_append(&print, 40, &text);
    tensor_print_release(&print);
    buffer_release(&text);
    return rc;
}

static int read_bundle_of(const char *name, struct error *e)
{
    struct bundle_check check = { .problem = count_problem };
    struct tensor_bundle *b;
    int problems = 0, rc;

    check.context = &problems;
    if ((rc = tensor_bundle_open(&b, path_of(name), e)) != OK)
        return rc;
    rc = read_all(b, e);
    tensor_bundle_close(b);
    if (rc != OK || (rc = tensor_bundle_open_damaged(&b, path_of(name), count_problem, &problems, e)) != OK)
        return rc;
    rc = bundle_check(&check, b, e);
    tensor_bundle_close(b);
    return rc;
}

static int read_bundle(struct error *e)
{
    return read_bundle_of("model.ckpt-7", e);
}

static void test_bundle(void **state)
{
    (void)state;
    with_each_failure(write_bundle);
    with_each_failure(read_bundle);
}

/* ---- safetensors ---------------------------------------------------------------------------------------------------- */

#define PART(name) \
    "{\"__metadata__\":{\"step\":\"7\"},\"" name "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"
static const char index_text[] =
    "{\"metadata\":{\"total_size\":2},\"weight_map\":{"
    "\"a\":\"model-00001-of-00002.safetensors\",\"b\":\"model-00002-of-00002.safetensors\"}}";
enum { PART_LENGTH = sizeof PART("a") - 1 };

static void put_part(const char *name, const char *json)
{
    uint8_t bytes[SAFETENSORS_HEAD + PART_LENGTH + 1] = { PART_LENGTH };

    memcpy(bytes + SAFETENSORS_HEAD, json, PART_LENGTH);
    fixture_write(f, name, bytes, sizeof bytes);
}

static void put_parts(const char *prefix)
{
    char name[300];

    snprintf(name, sizeof name, "%smodel.safetensors.index.json", prefix);
    fixture_write(f, name, index_text, sizeof index_text - 1);
    snprintf(name, sizeof name, "%smodel-00001-of-00002.safetensors", prefix);
    put_part(name, PART("a"));
    snprintf(name, sizeof name, "%smodel-00002-of-00002.safetensors", prefix);
    put_part(name, PART("b"));
}

static int read_parts(struct error *e)
{
    struct safetensors *s;
    uint8_t byte;
    int rc = safetensors_open(&s, path_of("model.safetensors.index.json"), e);

    for (size_t i = 0; rc == OK && i < 2; i++)
        rc = safetensors_read(s, &safetensors_contents(s)->tensors[i], 0, &byte, 1, e);
    if (rc == OK && safetensors_step(s, e) < 0)
        rc = e->code;
    safetensors_close(s);
    return rc;
}

static int write_safetensors(struct error *e)
{
    struct safetensors_tensor tensors[2] = {
        { .name = "b", .name_length = 1, .dtype = "F32", .rank = 1, .shape = eight },
        { .name = "a", .name_length = 1, .dtype = "U8", .rank = 0 }
    };
    struct safetensors_pair pair = { (char[]){ "step" }, (char[]){ "7" }, 4, 1 };
    struct safetensors_writer *w;
    int rc;

    if ((rc = safetensors_layout(tensors, 2, e)) != OK ||
        (rc = safetensors_writer_open(&w, NULL, path_of("written-9.safetensors"), tensors, 2, &pair, 1, e)) != OK)
        return rc;
    if ((rc = safetensors_writer_append(w, values, sizeof values, e)) == OK &&
        (rc = safetensors_writer_append(w, "x", 1, e)) == OK)
        return safetensors_writer_finish(w, e);
    safetensors_writer_abandon(w);
    return rc;
}

static void test_safetensors(void **state)
{
    (void)state;
    put_parts("");
    with_each_failure(write_safetensors);
    with_each_failure(read_parts);
}

/* ---- the directory ---------------------------------------------------------------------------------------------------- */

static const char state_text[] = "model_checkpoint_path: \"odd_temp.ckpt-6\"\nall_model_checkpoint_paths: \"m-1\"\n"
                                 "all_model_checkpoint_paths: \"odd_temp.ckpt-6\"\n"
                                 "all_model_checkpoint_timestamps: 5\nall_model_checkpoint_timestamps: 6\n";

static const char part_index[] = "{\"weight_map\":{\"a\":\"part-5.safetensors\",\"b\":\"part-5.safetensors\"}}";

/* A V2 checkpoint of these names, a directory as Hugging Face's Trainer writes it, two tables as V1 checkpoints, parts. */
static void fill_directory(void)
{
    static const char *const names[] = { "m-1", "odd_temp.ckpt-6" };
    char file[64];

    for (size_t i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s.index", names[i]);
        fixture_write(f, file, small_index, SMALL_INDEX);
        snprintf(file, sizeof file, "%s.data-00000-of-00001", names[i]);
        fixture_write(f, file, small_data, SMALL_DATA);
    }
    fixture_write(f, "m-1", small_index, SMALL_INDEX);
    fixture_write(f, "old-3", small_index, SMALL_INDEX);
    fixture_write(f, "checkpoint", state_text, sizeof state_text - 1);
    for (int i = 20; i < 24; i++) { /* the second has only the name of one */
        snprintf(file, sizeof file, "checkpoint-%d", i);
        mkdir(fixture_path(f, file), 0700);
        if (i < 22) {
            snprintf(file, sizeof file, "checkpoint-%d/", i);
            put_parts(file);
        }
    }
    put_part("checkpoint-22/model.safetensors", PART("a"));
    put_part("part-5.safetensors", PART("a")); /* what the index below names is no checkpoint */
    put_part("whole-5.safetensors", PART("a"));
    fixture_write(f, "x.safetensors.index.json", part_index, sizeof part_index - 1);
    fixture_write(f, "y.safetensors.index.json", "{}", 2);
}

static int list_directory(struct error *e)
{
    struct checkpoint_list list;
    char name[64];
    int rc = checkpoint_directory_list_all(f->directory, &list, e);

    if (rc != OK)
        return rc;
    for (size_t i = 0; i < list.count; i++)
        checkpoint_listed_whole(f->directory, &list.items[i], NULL);
    if (!call_fail_at && !fail_at)
        assert_int_equal(list.count, 7);
    checkpoint_list_release(&list);
    if ((rc = checkpoint_directory_newest(f->directory, name, sizeof name, e)) < 0)
        return rc;
    checkpoint_directory_disagrees(f->directory, "m-1", NULL);
    return OK;
}

/* m-1 and m-2 in turn: the other one is no longer listed, and what is left of it is deleted. */
static int commit_in_directory(struct error *e)
{
    static int times;
    const char *name = times++ % 2 ? "m-1" : "m-2";

    return checkpoint_directory_commit(NULL, f->directory, name, 1, e);
}

static void test_directory(void **state)
{
    static const int passing[] = { EMFILE, ENFILE, ENOMEM, ESTALE };

    (void)state;
    fill_directory();
    with_each_failure(list_directory);
    with_each_failure(commit_in_directory);
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) { /* the state file counts, another time */
        struct error e = { 0 };

        call_error = passing[i];
        call_count = 0;
        call_stays = 1;
        call_fail_at = 1;
        assert_int_equal(commit_in_directory(&e), passing[i] == ENOMEM ? ERR_NOMEM : ERR_IO);
        call_fail_at = 0;
    }
}

static int write_and_read_notes(struct error *e)
{
    struct training_state training = { .state = "running", .reason = "\"" }, training_got;
    struct stop_file stop = { .reason = "enough" }, stop_got;
    int rc;

    if ((rc = training_state_write(f->directory, &training, e)) != OK ||
        (rc = stop_file_write(f->directory, &stop, e)) != OK ||
        (rc = training_state_read(f->directory, &training_got, e)) < 0)
        return rc;
    return stop_file_read(f->directory, &stop_got, e);
}

static void test_notes(void **state)
{
    (void)state;
    with_each_failure(write_and_read_notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bundle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_safetensors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_notes, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
