/* Checkpoints of formats without a digest of their own, replaced while they are opened: contents and digest belong
 * together, or it fails. And what is read of those that are whole. */
#include "evaluator/files/opened_checkpoint.h"

#include "base/bytes.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "evaluator/files/file_tree.h"
#include "tests/check.h"

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURNS = 2000 };

static char directory[PATH_MAX], path[PATH_MAX], other[PATH_MAX];
static sem_t go, done;

static int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/opened.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return !mkdtemp(directory) || file_join(path, sizeof path, directory, "model-1.safetensors", NULL) ||
           file_join(other, sizeof other, directory, "other", NULL);
}

static int tear_down(void **state)
{
    (void)state;
    return file_tree_remove(directory, NULL);
}

/* A file of so many tensors. */
static void put(const char *to, int tensors)
{
    char text[512] = "", json[512] = "{";

    for (int i = 0; i < tensors; i++)
        snprintf(json + strlen(json), sizeof json - strlen(json),
                 "%s\"t%d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i ? "," : "", i, 4 * i,
                 4 * i + 4);
    strcat(json, "}");
    put_le64(text, strlen(json));
    memcpy(text + 8, json, strlen(json));
    assert_int_equal(file_replace(NULL, to, text, 8 + strlen(json) + 4 * (size_t)tensors, NULL), OK);
}

static void *replace(void *context)
{
    (void)context;
    for (int i = 0; i < TURNS; i++) {
        sem_wait(&go);
        rename(other, path);
        sem_post(&done);
    }
    return NULL;
}

static void test_replaced_meanwhile(void **state)
{
    uint64_t digest[3] = { 0 };
    struct opened_checkpoint *c;
    struct error e = { 0 };
    int whole[3] = { 0 };
    pthread_t thread;

    (void)state;
    for (int tensors = 1; tensors <= 2; tensors++) {
        put(path, tensors);
        assert_int_equal(opened_checkpoint_open(&c, CHECKPOINT_SAFETENSORS, path, NULL), OK);
        digest[tensors] = opened_checkpoint_digest(c);
        opened_checkpoint_close(c);
    }
    assert_true(digest[1] != digest[2]);
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, replace, NULL), 0);
    for (int i = 0; i < TURNS; i++) {
        put(path, 1);
        put(other, 2);
        sem_post(&go);
        /* Later from turn to turn, up to where the other is there already. */
        for (int k = 0, there = 0; k < i % 50 && !there; k++)
            sem_getvalue(&done, &there);
        if (opened_checkpoint_open(&c, CHECKPOINT_SAFETENSORS, path, &e) == OK) {
            const size_t tensors = opened_checkpoint_find(c, "t1") ? 2 : 1;

            assert_non_null(opened_checkpoint_find(c, "t0"));
            assert_true(opened_checkpoint_digest(c) == digest[tensors]);
            whole[tensors]++;
            opened_checkpoint_close(c);
        } else {
            assert_non_null(strstr(e.message, "changed while it was read"));
        }
        sem_wait(&done);
    }
    pthread_join(thread, NULL);
    sem_destroy(&go);
    sem_destroy(&done);
    assert_true(whole[1] + whole[2] > 0);
}

/* Steps of bundles: Keras' names count saves, so what its optimizer says counts. */
static void test_steps(void **state)
{
    static const struct {
        const char *names[2];
        int64_t step;
    } cases[] = {
        /* values 500, 501 */
        { { "global_step", "optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE" }, 500 },
        { { "optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE", "save_counter/.ATTRIBUTES/VARIABLE_VALUE" }, 500 },
        { { "model/w/.ATTRIBUTES/VARIABLE_VALUE", "optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE" }, 501 },
        { { "model/w/.ATTRIBUTES/VARIABLE_VALUE", "save_counter/.ATTRIBUTES/VARIABLE_VALUE" }, -1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tensor_bundle_writer *w;
        struct opened_checkpoint *c;

        assert_int_equal(tensor_bundle_writer_open(&w, NULL, path, NULL), OK);
        for (int64_t k = 0; k < 2; k++) {
            const int64_t value = 500 + k;

            assert_int_equal(
                tensor_bundle_writer_add(w, cases[i].names[k], TENSOR_INT64, 0, NULL, &value, sizeof value, NULL), OK);
        }
        assert_int_equal(tensor_bundle_writer_finish(w, NULL), OK);
        assert_int_equal(opened_checkpoint_open(&c, CHECKPOINT_BUNDLE, path, NULL), OK);
        assert_int_equal(opened_checkpoint_step(c, -1, NULL), cases[i].step);
        opened_checkpoint_close(c);
    }
}

/* Values of safetensors become float32, whichever piece they lie in; "a.b" is found as "a/b". */
static void test_floats(void **state)
{
    enum { N = 10000 };
    const int64_t shape[] = { N };
    struct safetensors_tensor tensors[] = {
        { .name = "a.b", .name_length = 3, .dtype = "F16", .rank = 1, .shape = shape },
        { .name = "i", .name_length = 1, .dtype = "I32", .rank = 1, .shape = shape },
        { .name = "f", .name_length = 1, .dtype = "F8_E5M2", .rank = 1, .shape = shape },
    };
    static char bytes[7 * N];
    static float got[N];
    struct opened_checkpoint_floats wanted = { .out = got, .count = N };
    struct safetensors_writer *w;
    struct opened_checkpoint *c;
    struct error e = { 0 };

    (void)state;
    for (unsigned i = 0; i < N; i++) /* 1, 1 + 2^-10, ... 1000 of them, and again; the wider tensor comes first */
        put_le16(bytes + 4 * N + 2 * i, (uint16_t)(0x3c00 + i % 1000));
    assert_int_equal(safetensors_layout(tensors, 3, NULL), OK);
    assert_int_equal(safetensors_writer_open(&w, NULL, path, tensors, 3, NULL, 0, NULL), OK);
    assert_int_equal(safetensors_writer_append(w, bytes, sizeof bytes, NULL), OK);
    assert_int_equal(safetensors_writer_finish(w, NULL), OK);
    assert_int_equal(opened_checkpoint_open(&c, CHECKPOINT_SAFETENSORS, path, NULL), OK);
    assert_non_null(wanted.entry = opened_checkpoint_find(c, "a/b"));
    assert_int_equal(opened_checkpoint_read_floats(c, &wanted, 1, 1, NULL), OK);
    for (unsigned i = 0; i < N; i++)
        assert_true(got[i] == 1 + (float)(i % 1000) / 1024);
    wanted.count--;
    assert_int_equal(opened_checkpoint_read_floats(c, &wanted, 1, 1, &e), ERR_ARG);
    assert_string_equal(e.message, "tensor a.b has 10000 elements, not 9999");
    for (int i = 0; i < 2; i++) {
        wanted = (struct opened_checkpoint_floats){ opened_checkpoint_find(c, i ? "i" : "f"), got, N };
        assert_int_equal(opened_checkpoint_read_floats(c, &wanted, 1, 1, &e), ERR_ARG);
        assert_non_null(strstr(e.message, i ? "tensor i is I32, not" : "tensor f is F8_E5M2, not"));
    }
    assert_null(opened_checkpoint_find(c, "b"));
    opened_checkpoint_close(c);
}

static void test_not_there(void **state)
{
    struct opened_checkpoint *c;
    struct error e = { 0 };

    (void)state;
    assert_int_equal(opened_checkpoint_open(&c, CHECKPOINT_SAFETENSORS, "/nonexistent", &e), ERR_IO);
    assert_null(c);
    assert_int_equal(opened_checkpoint_open(&c, CHECKPOINT_OTHER, directory, &e), ERR_IO);
    assert_string_not_equal(e.message, "");
    put(path, 1);
    assert_int_equal(truncate(path, 60), 0);
    assert_int_equal(opened_checkpoint_open(&c, CHECKPOINT_SAFETENSORS, path, &e), ERR_CORRUPT);
    assert_null(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_replaced_meanwhile, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_not_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_floats, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_steps, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
