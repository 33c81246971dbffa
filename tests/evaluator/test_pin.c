/* Pins of files, directories and bundles: what they hold and weigh when the original is gone, after a restart too. */
#include "evaluator/record/pin.h"

#include "base/file.h"
#include "checkpoint/tensor_bundle.h"
#include "evaluator/files/file_tree.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/killed_at.h"

static char top[PATH_MAX], ckpt[PATH_MAX], eval[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "%s/pin.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(top) || file_join(ckpt, sizeof ckpt, top, "ckpt", NULL) ||
        file_join(eval, sizeof eval, top, "eval", NULL))
        return -1;
    return file_make_directories(ckpt, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    return file_tree_remove(top, NULL);
}

static const char *path_of(const char *directory, const char *name)
{
    static char path[2 * PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void put(const char *name, const char *text)
{
    assert_int_equal(file_replace(NULL, path_of(ckpt, name), text, strlen(text), NULL), OK);
}

static uint64_t digest_of(enum checkpoint_kind kind, const char *path)
{
    struct opened_checkpoint *c;
    uint64_t digest;

    assert_int_equal(opened_checkpoint_open(&c, kind, path, NULL), OK);
    digest = opened_checkpoint_digest(c);
    opened_checkpoint_close(c);
    return digest;
}

/* A checkpoint of each kind that can be pinned; sizes are those of its files. */
static void make_checkpoints(struct pin pins[3], uint64_t sizes[3])
{
    struct tensor_bundle_writer *w;
    struct stat index, data;

    put("weights-1.pt", "0123456789");
    assert_int_equal(mkdir(path_of(ckpt, "checkpoint-2"), 0777), 0);
    assert_int_equal(mkdir(path_of(ckpt, "checkpoint-2/deep"), 0777), 0);
    put("checkpoint-2/weights", "abcdef");
    put("checkpoint-2/deep/state", "ghi");
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, path_of(ckpt, "m-3"), NULL), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "v", TENSOR_FLOAT, 0, NULL, "abcd", 4, NULL), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, NULL), OK);
    put("m-33.index", "of another one");
    assert_int_equal(stat(path_of(ckpt, "m-3.index"), &index), 0);
    assert_int_equal(stat(path_of(ckpt, "m-3.data-00000-of-00001"), &data), 0);
    pins[0] = (struct pin){ CHECKPOINT_OTHER, { "weights-1.pt", 1, 1, 0, 0 } };
    pins[1] = (struct pin){ CHECKPOINT_OTHER, { "checkpoint-2", 2, 1, 0, 0 } };
    pins[2] = (struct pin){ CHECKPOINT_BUNDLE, { "m-3", 3, 1, 0, 0 } };
    for (int i = 0; i < 3; i++)
        pins[i].checkpoint.digest = digest_of(pins[i].kind, path_of(ckpt, pins[i].checkpoint.name));
    sizes[0] = 10;
    sizes[1] = 9;
    sizes[2] = (uint64_t)(index.st_size + data.st_size);
}

struct found {
    const struct pin *pins;
    const uint64_t *sizes;
    int count;
};

static int visit(void *context, const struct pin *pin, const char *path, uint64_t bytes, struct error *e)
{
    struct found *f = context;
    const struct pin *want = &f->pins[pin->checkpoint.step - 1];

    (void)e;
    assert_string_equal(pin->checkpoint.name, want->checkpoint.name);
    assert_int_equal(pin->kind, want->kind);
    assert_true(pin->checkpoint.digest == want->checkpoint.digest &&
                digest_of(pin->kind, path) == want->checkpoint.digest);
    assert_int_equal(bytes, f->sizes[pin->checkpoint.step - 1]);
    f->count++;
    pin_remove(path);
    return OK;
}

/* Links in EVAL beside the checkpoints; copies where it is on another file system. */
static void pin_and_recover(const char *eval_directory)
{
    struct pin pins[3];
    uint64_t sizes[3];
    struct found found = { pins, sizes, 0 };

    make_checkpoints(pins, sizes);
    for (int i = 0; i < 3; i++) {
        uint64_t bytes;
        char *path;

        assert_int_equal(pin_make(eval_directory, ckpt, &pins[i], FILE_TREE_LINK_OR_COPY, &path, &bytes, NULL), OK);
        assert_int_equal(bytes, sizes[i]);
        assert_true(digest_of(pins[i].kind, path) == pins[i].checkpoint.digest);
        free(path);
    }
    assert_int_equal(file_tree_remove(ckpt, NULL), OK);
    assert_int_equal(file_make_directories(path_of(eval_directory, "pinned/.unfinished-3-4-5"), NULL), OK);
    assert_int_equal(pin_recover(eval_directory, visit, &found, NULL), OK);
    assert_int_equal(found.count, 3);
    assert_int_equal(rmdir(path_of(eval_directory, "pinned")), 0); /* nothing is left in it */
}

static void test_links(void **state)
{
    (void)state;
    pin_and_recover(eval);
}

static void test_copies(void **state)
{
    char elsewhere[] = "/dev/shm/pin.XXXXXX";
    struct stat here, there;

    (void)state;
    if (!mkdtemp(elsewhere))
        skip();
    if (stat(elsewhere, &there) < 0 || stat(ckpt, &here) < 0 || here.st_dev == there.st_dev) {
        rmdir(elsewhere);
        skip();
    }
    pin_and_recover(elsewhere);
    assert_int_equal(rmdir(elsewhere), 0);
}

/* Gone or another one by now: nothing is left behind. */
static void test_refused(void **state)
{
    struct pin pin = { CHECKPOINT_OTHER, { "weights-1.pt", 1, 1, 7, 0 } };
    struct found none = { NULL, NULL, 0 };
    struct error e = { 0 };
    uint64_t bytes;
    char *path;

    (void)state;
    assert_int_equal(pin_make(eval, ckpt, &pin, FILE_TREE_LINK_OR_COPY, &path, &bytes, &e), ERR_IO);
    put("weights-1.pt", "0123456789");
    assert_int_equal(pin_make(eval, ckpt, &pin, FILE_TREE_LINK_OR_COPY, &path, &bytes, &e), ERR_IO);
    assert_non_null(strstr(e.message, "changed while it was pinned"));
    assert_null(path);
    assert_int_equal(pin_recover(eval, visit, &none, NULL), OK);
    assert_int_equal(rmdir(path_of(eval, "pinned")), 0);
}

static int remove_one(void *context)
{
    pin_remove(context);
    return 0;
}

/* Killed while a pin is removed: the next start finds it whole, or finds nothing and leaves nothing. */
static void test_killed_while_removed(void **state)
{
    struct pin pins[3];
    uint64_t sizes[3];

    (void)state;
    make_checkpoints(pins, sizes);
    for (int i = 0; i < 3; i++)
        for (int calls = 0, over = 0; !over; calls++) {
            struct found found = { pins, sizes, 0 };
            uint64_t bytes;
            char *path;

            assert_int_equal(pin_make(eval, ckpt, &pins[i], FILE_TREE_LINK_OR_COPY, &path, &bytes, NULL), OK);
            over = killed_at(remove_one, path, calls);
            assert_int_equal(pin_recover(eval, visit, &found, NULL), OK);
            assert_true(found.count <= !over);
            assert_int_equal(rmdir(path_of(eval, "pinned")), 0);
            free(path);
            assert_true(calls < 500);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_while_removed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
