/* Several tensors with several threads: the same bytes and the same findings as one by one; a writer whose CRCs are
 * added up by a thread beside writes the same files. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "checkpoint/string_tensor.h"
#include "checkpoint/tensor_batch.h"
#include "checkpoint/tensor_bundle.h"

enum { LARGE = 3000001, TENSORS = 6 }; /* 12 MB: several pieces, the last a short one */

static float *numbers(void)
{
    float *values = malloc(LARGE * sizeof *values);

    for (size_t i = 0; i < LARGE; i++)
        values[i] = (float)(i * 2654435761u % 100003);
    return values;
}

static void write_bundle(struct fixture *f, const char *name, int use_thread)
{
    const int64_t large[1] = { LARGE }, three[1] = { 3 }, none[2] = { 0, 5 }, rows[2] = { 4, 2 };
    const int64_t start[2][2] = { { 0, 0 }, { 3, 0 } }, length[2][2] = { { 3, -1 }, { 1, -1 } };
    const struct tensor_string strings[3] = { { "a", 1 }, { "", 0 }, { "bcd", 3 } };
    struct tensor_bundle_writer *w;
    float *values = numbers();

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, name), NULL), OK);
    tensor_bundle_writer_use_thread(w, use_thread);
    assert_int_equal(tensor_bundle_writer_add(w, "a", TENSOR_FLOAT, 1, large, values, LARGE * 4, NULL), OK);
    assert_int_equal(tensor_bundle_writer_add_strings(w, "b", 1, three, strings, 3, NULL), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "c", TENSOR_FLOAT, 1, three, values + 7, 12, NULL), OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tensor_bundle_writer_add_slice(w, "d", TENSOR_FLOAT, 2, rows, start[i], length[i],
                                                        values + 6 * i, i ? 8 : 24, NULL),
                         OK);
    assert_int_equal(tensor_bundle_writer_add(w, "e", TENSOR_FLOAT, 2, none, "", 0, NULL), OK);
    assert_int_equal(tensor_bundle_writer_begin(w, "f", TENSOR_FLOAT, 1, large, NULL), OK);
    assert_int_equal(tensor_bundle_writer_append(w, values + 5, (LARGE - 5) * 4, NULL), OK);
    assert_int_equal(tensor_bundle_writer_append(w, values, 20, NULL), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, NULL), OK);
    free(values);
}

struct tensors {
    struct tensor_bundle *bundle;
    struct tensor_batch_item items[TENSORS];
};

static void open_all(struct fixture *f, const char *name, struct tensors *t)
{
    assert_int_equal(tensor_bundle_open(&t->bundle, fixture_path(f, name), NULL), OK);
    assert_int_equal(tensor_bundle_count(t->bundle), TENSORS);
    for (size_t i = 0; i < TENSORS; i++) {
        const struct tensor_entry *entry = tensor_bundle_entry(t->bundle, i);
        const size_t bytes = (size_t)tensor_entry_bytes(entry);

        t->items[i] = (struct tensor_batch_item){ entry, malloc(bytes + 1), bytes };
    }
}

static void close_all(struct tensors *t)
{
    for (size_t i = 0; i < TENSORS; i++)
        free(t->items[i].out);
    tensor_bundle_close(t->bundle);
}

static void test_equals_one_by_one(void **state)
{
    struct tensors t;

    write_bundle(*state, "m-1", 0);
    for (int threads = -1; threads <= 70; threads = threads < 4 ? threads + 1 : threads + 33) {
        open_all(*state, "m-1", &t);
        assert_int_equal(tensor_batch_read(t.bundle, t.items, TENSORS, threads, NULL), OK);
        for (size_t i = 0; i < TENSORS; i++) {
            char *alone = malloc(t.items[i].bytes + 1);

            assert_int_equal(tensor_bundle_read(t.bundle, t.items[i].entry, alone, t.items[i].bytes, NULL), OK);
            assert_memory_equal(alone, t.items[i].out, t.items[i].bytes);
            free(alone);
        }
        assert_int_equal(tensor_batch_read(t.bundle, t.items, 0, threads, NULL), OK);
        close_all(&t);
    }
}

static void test_thread_beside_writes_the_same(void **state)
{
    static const char *const files[] = { ".index", ".data-00000-of-00001" };

    write_bundle(*state, "m-1", 0);
    write_bundle(*state, "m-2", 1);
    for (int i = 0; i < 2; i++) {
        struct buffer one, two;
        char name[64];

        snprintf(name, sizeof name, "m-1%s", files[i]);
        fixture_read(*state, name, &one);
        snprintf(name, sizeof name, "m-2%s", files[i]);
        fixture_read(*state, name, &two);
        assert_int_equal(one.length, two.length);
        assert_memory_equal(one.data, two.data, one.length);
        buffer_release(&one);
        buffer_release(&two);
    }
}

static void test_damage_is_found(void **state)
{
    static const struct {
        off_t at;
        const char *says;
    } places[] = {
        { 100, "tensor a" },           { 4 * LARGE - 1, "tensor a" },
        { 4 * LARGE + 8, "tensor b" }, { 4 * LARGE + 30, "tensor d" },
        { 8 * LARGE, "tensor f" },
    };
    struct tensors t;

    write_bundle(*state, "m-1", 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int fd = open(fixture_path(*state, "m-1.data-00000-of-00001"), O_RDWR);
        struct error e = { 0 };
        char good, bad;

        assert_int_equal(pread(fd, &good, 1, places[i].at), 1);
        bad = good ^ 4;
        assert_int_equal(pwrite(fd, &bad, 1, places[i].at), 1);
        open_all(*state, "m-1", &t);
        assert_int_equal(tensor_batch_read(t.bundle, t.items, TENSORS, 3, &e), ERR_CORRUPT);
        assert_says(e, places[i].says);
        t.items[0].bytes--;
        assert_int_equal(tensor_batch_read(t.bundle, t.items, TENSORS, 3, &e), ERR_ARG);
        close_all(&t);
        assert_int_equal(pwrite(fd, &good, 1, places[i].at), 1);
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_equals_one_by_one, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_thread_beside_writes_the_same, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damage_is_found, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
