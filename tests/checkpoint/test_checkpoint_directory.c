/* The directory's view: names, listing, newest, committing. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/directory/training_state.h"
#include "tests/failing_io.h"

#include <errno.h>

static void put_checkpoint(struct fixture *f, const char *name)
{
    char file[300];

    snprintf(file, sizeof file, "%s.data-00000-of-00001", name);
    fixture_write(f, file, small_data, SMALL_DATA);
    snprintf(file, sizeof file, "%s.index", name);
    fixture_write(f, file, small_index, SMALL_INDEX);
}

static void assert_file_is(struct fixture *f, const char *name, const char *text)
{
    struct buffer got;

    fixture_read(f, name, &got);
    assert_string_equal(buffer_text(&got), text);
    buffer_release(&got);
}

static void test_names(void **state)
{
    static const struct {
        const char *name;
        int64_t step;
        int temporary;
    } cases[] = {
        { "model.ckpt-700", 700, 0 },
        { "model.ckpt-00000700", 700, 0 },
        { "a-b-3", 3, 0 },
        { "model.ckpt", -1, 0 },
        { "model.ckpt-", -1, 0 },
        { "model.ckpt-7x", -1, 0 },
        { "model.ckpt--7", 7, 0 },
        { "model.ckpt-+7", -1, 0 },
        { "model.ckpt-99999999999999999999", -1, 0 },
        { "model.ckpt-700.data-00000-of-00001.tempstate123", -1, 1 },
        { "model.ckpt-3_temp", -1, 1 },
        { "model.ckpt-3_temp_0123abcd", -1, 1 },
        { "model.ckpt-3_temp/part-00000-of-00002", -1, 1 },
        { "model.ckpt-3.part-00000-of-00002", -1, 1 },
        { "checkpoint.tmp0123456789abcdef", -1, 1 },
        { "my_template.ckpt-5", 5, 0 },
        { "a-00001-of-00002", -1, 0 }, /* its stem has none */
        { "a-7-00001-of-00002", 7, 0 },
        { "a00001-of-00002", 2, 0 }, /* no parts */
        { "00001-of-00002", 2, 0 },
        { "a-of-00002", 2, 0 },
        { "-of-00002", 2, 0 },
        { "of-00002", 2, 0 },
        { "a-0001-of-00002", 2, 0 },
        { "12345", -1, 0 },
        { "a12345", -1, 0 },
        { "a-00000000000000000000000000000000000000001", -1, 0 },
        { "model.partial-5", 5, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int temporary = checkpoint_name_temporary(cases[i].name);

        if (temporary != cases[i].temporary || (!temporary && checkpoint_name_step(cases[i].name) != cases[i].step))
            fail_msg("%s: step %lld, temporary %d", cases[i].name, (long long)checkpoint_name_step(cases[i].name),
                     temporary);
    }
}

static void test_other_formats(void **state)
{
    static const struct {
        const char *file;
        int64_t step;
    } cases[] = {
        { "model-700.safetensors", 700 },
        { "model700.safetensors", 700 },
        { "7.safetensors", 7 },
        { "model-00001-of-00002.safetensors", -1 }, /* a part of a larger one */
        { "model-1-of-2.safetensors", 2 },
        { "model.safetensors", -1 },
        { "model-9999999999999999999.safetensors", -1 },
        { "model-7.safetensors.tmp", -1 },
        { ".safetensors", -1 },
        { "model-7.SAFETENSORS", -1 },
        { "model-7", -1 },
        { "", -1 },
    };
    static const char *const tables[] = { "model.ckpt-3", "model.ckpt-4-00000-of-00002", "model.ckpt-4-00001-of-00002",
                                          "model.ckpt-5.data-00000-of-00001", "model" };
    struct fixture *f = *state;
    int fd = open(f->directory, O_RDONLY | O_DIRECTORY);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (checkpoint_name_safetensors(cases[i].file) != cases[i].step)
            fail_msg("%s: step %lld", cases[i].file, (long long)checkpoint_name_safetensors(cases[i].file));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        fixture_write(f, tables[i], small_index, SMALL_INDEX);
    fixture_write(f, "notes-6", "a text file, which is longer than the footer of a table", 55);
    assert_int_equal(mkfifo(fixture_path(f, "model.ckpt-7"), 0600), 0); /* nobody waits for it */
    assert_int_equal(checkpoint_file_v1(fd, "model.ckpt-3"), 3);
    assert_int_equal(checkpoint_file_v1(fd, "model.ckpt-4-00000-of-00002"), 4);
    assert_int_equal(checkpoint_file_v1(fd, "model.ckpt-4-00001-of-00002"), -1);
    assert_int_equal(checkpoint_file_v1(fd, "model.ckpt-5.data-00000-of-00001"), -1);
    assert_int_equal(checkpoint_file_v1(fd, "model"), -1);
    assert_int_equal(checkpoint_file_v1(fd, "notes-6"), -1);
    assert_int_equal(checkpoint_file_v1(fd, "model.ckpt-7"), -1);
    assert_int_equal(checkpoint_file_v1(fd, "nothing-8"), -1);
    close(fd);
}

static void test_commit_and_newest(void **state)
{
    struct fixture *f = *state;
    struct error e = { 0 };
    struct checkpoint_list list;
    char name[64];

    assert_int_equal(checkpoint_directory_newest(f->directory, name, sizeof name, &e), 0);
    for (int step = 100; step <= 400; step += 100) {
        snprintf(name, sizeof name, "model.ckpt-%d", step);
        put_checkpoint(f, name);
        if (checkpoint_directory_commit(NULL, f->directory, name, 3, &e) != OK)
            fail_msg("%s", e.message);
    }
    assert_file_is(f, "checkpoint",
                   "model_checkpoint_path: \"model.ckpt-400\"\n"
                   "all_model_checkpoint_paths: \"model.ckpt-200\"\n"
                   "all_model_checkpoint_paths: \"model.ckpt-300\"\n"
                   "all_model_checkpoint_paths: \"model.ckpt-400\"\n");
    assert_false(fixture_exists(f, "model.ckpt-100.index"));
    assert_false(fixture_exists(f, "model.ckpt-100.data-00000-of-00001"));
    assert_int_equal(checkpoint_directory_list(f->directory, &list, &e), OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0].name, "model.ckpt-200");
    assert_int_equal(list.items[2].step, 400);
    checkpoint_list_release(&list);
    assert_int_equal(checkpoint_directory_newest(f->directory, name, sizeof name, &e), 1);
    assert_string_equal(name, "model.ckpt-400");
    /* Saved again: it moves to the end. */
    assert_int_equal(checkpoint_directory_commit(NULL, f->directory, "model.ckpt-200", 3, &e), OK);
    assert_file_is(f, "checkpoint",
                   "model_checkpoint_path: \"model.ckpt-200\"\n"
                   "all_model_checkpoint_paths: \"model.ckpt-300\"\n"
                   "all_model_checkpoint_paths: \"model.ckpt-400\"\n"
                   "all_model_checkpoint_paths: \"model.ckpt-200\"\n");
    assert_int_equal(checkpoint_directory_newest(f->directory, name, sizeof name, &e), 1);
    assert_string_equal(name, "model.ckpt-200");
    assert_int_equal(checkpoint_directory_list_newest_last(f->directory, &list, &e), OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0].name, "model.ckpt-300");
    assert_string_equal(list.items[2].name, "model.ckpt-200");
    checkpoint_list_release(&list);
    /* The state's choice is damaged: the highest whole one. */
    fixture_write(f, "model.ckpt-200.index", small_index, SMALL_INDEX - 1);
    fixture_write(f, "model.ckpt-400.data-00000-of-00001", small_data, SMALL_DATA - 1);
    assert_int_equal(checkpoint_directory_newest(f->directory, name, sizeof name, &e), 1);
    assert_string_equal(name, "model.ckpt-300");
    assert_int_equal(checkpoint_directory_newest(f->directory, name, 5, &e), ERR_ARG);
}

/* Every call of a commit fails in turn: an error before the state file is there, afterwards only a remark. */
static void test_commit_on_a_failing_disk(void **state)
{
    struct fixture *f = *state;
    int remarks = 0;

    put_checkpoint(f, "model.ckpt-1");
    assert_int_equal(checkpoint_directory_commit(NULL, f->directory, "model.ckpt-1", 1, NULL), OK);
    for (int n = 1;; n++) {
        struct io_failing failing = { .fail_at = n, .error_number = EIO };
        struct io io = io_failing_table(&failing);
        struct error e = { 0 };
        char name[32];
        int rc;

        snprintf(name, sizeof name, "model.ckpt-%d", n + 1);
        put_checkpoint(f, name);
        rc = checkpoint_directory_commit(&io, f->directory, name, 1, &e);
        if (failing.calls < n)
            break;
        if (rc == CHECKPOINT_OLD_REMAINS) {
            char newest[64];

            remarks++;
            assert_non_null(strstr(e.message, "cannot delete"));
            assert_int_equal(checkpoint_directory_newest(f->directory, newest, sizeof newest, NULL), 1);
            assert_string_equal(newest, name);
        } else if (rc != OK) { /* a close that fails after the sync, or the sync itself: not known to be on the disk */
            assert_int_equal(rc, ERR_IO);
            assert_true(e.message[0] != 0);
        }
    }
    assert_int_equal(remarks, 3); /* index, data, meta */
}

static void test_moved_directory(void **state)
{
    static const char text[] = "model_checkpoint_path: \"/gone/elsewhere/model.ckpt-2\"\n"
                               "all_model_checkpoint_paths: \"/gone/elsewhere/model.ckpt-1\"\n"
                               "all_model_checkpoint_paths: \"/gone/elsewhere/model.ckpt-2\"\n"
                               "all_model_checkpoint_paths: \"/gone/elsewhere/model.ckpt-3\"\n"
                               "unknown_field { a: 1 }\n";
    struct fixture *f = *state;
    struct error e = { 0 };
    char name[64];

    put_checkpoint(f, "model.ckpt-1");
    put_checkpoint(f, "model.ckpt-2");
    put_checkpoint(f, "model.ckpt-9");  /* not listed: never deleted */
    put_checkpoint(f, "model.ckpt-11"); /* its files begin like model.ckpt-1's */
    fixture_write(f, "model.ckpt-1.meta", "x", 1);
    fixture_write(f, "model.ckpt-1.data-00001-of-00002", "x", 1);
    fixture_write(f, "model.ckpt-1.data-00001-of-00002.note", "x", 1);
    fixture_write(f, "checkpoint", text, sizeof text - 1);
    assert_int_equal(checkpoint_directory_newest(f->directory, name, sizeof name, &e), 1);
    assert_string_equal(name, "model.ckpt-2");
    put_checkpoint(f, "model.ckpt-10");
    assert_int_equal(checkpoint_directory_commit(NULL, f->directory, "model.ckpt-10", 2, &e), OK);
    assert_file_is(f, "checkpoint",
                   "model_checkpoint_path: \"model.ckpt-10\"\n"
                   "all_model_checkpoint_paths: \"model.ckpt-2\"\n"
                   "all_model_checkpoint_paths: \"model.ckpt-10\"\n");
    assert_false(fixture_exists(f, "model.ckpt-1.index"));
    assert_false(fixture_exists(f, "model.ckpt-1.meta"));
    assert_false(fixture_exists(f, "model.ckpt-1.data-00001-of-00002"));
    assert_true(fixture_exists(f, "model.ckpt-1.data-00001-of-00002.note"));
    assert_true(fixture_exists(f, "model.ckpt-9.index"));
    assert_true(fixture_exists(f, "model.ckpt-11.index"));
    assert_true(fixture_exists(f, "model.ckpt-11.data-00000-of-00001"));
}

/* The sentence on the state file's text, "" where it agrees with `name`. */
static const char *disagreement(struct fixture *f, const char *text, const char *name, struct error *e)
{
    memset(e, 0, sizeof *e);
    fixture_write(f, "checkpoint", text, strlen(text));
    if (!checkpoint_directory_disagrees(f->directory, name, e))
        assert_int_equal(e->code, OK);
    return e->message;
}

static void test_disagreements(void **state)
{
    struct fixture *f = *state;
    struct error e = { 0 };
    char other[PATH_MAX], text[PATH_MAX + 100];

    snprintf(other, sizeof other, "%s-other", f->directory);
    put_checkpoint(f, "m-5");
    put_checkpoint(f, "m-7");
    assert_int_equal(checkpoint_directory_disagrees(f->directory, "m-7", &e), 0);
    assert_string_equal(disagreement(f, "model_checkpoint_path: \"m-7\"", "m-7", &e), "");
    assert_string_equal(disagreement(f, "", "m-7", &e), "");
    assert_string_equal(disagreement(f, "model_checkpoint_path: \"/moved/away/m-7\"", "m-7", &e), "");
    assert_non_null(strstr(disagreement(f, "model_checkpoint_path: \"m-9\"", "m-7", &e),
                           "/checkpoint: names m-9, which is not here; using m-7"));
    assert_non_null(strstr(disagreement(f, "model_checkpoint_path: ", "m-7", &e),
                           "/checkpoint: cannot be parsed (line 1, column 24: "));
    fixture_write(f, "m-7.data-00000-of-00001", small_data, 3);
    assert_non_null(strstr(disagreement(f, "model_checkpoint_path: \"m-7\"", "m-5", &e), "; using m-5"));
    /* Another directory that is there. */
    assert_int_equal(mkdir(other, 0700), 0);
    snprintf(text, sizeof text, "%s/m-5.index", other);
    assert_int_equal(link(fixture_path(f, "m-5.index"), text), 0);
    snprintf(text, sizeof text, "model_checkpoint_path: \"%s/m-5\"", other);
    assert_non_null(strstr(disagreement(f, text, "m-5", &e), "which is outside this directory; using m-5"));
    snprintf(text, sizeof text, "model_checkpoint_path: \"../%s/m-5\"", file_base_name(other));
    assert_non_null(strstr(disagreement(f, text, "m-5", &e), "which is outside this directory; using m-5"));
    snprintf(text, sizeof text, "model_checkpoint_path: \"../%s/m-5\"", file_base_name(f->directory));
    assert_string_equal(disagreement(f, text, "m-5", &e), "");
    snprintf(text, sizeof text, "%s/m-5.index", other);
    unlink(text);
    rmdir(other);
}

static void test_broken_state_file(void **state)
{
    static const char *const texts[] = { "",
                                         "\xff\xfe",
                                         "model_checkpoint_path: \"cut",
                                         "model_checkpoint_path: \"\"",
                                         "model_checkpoint_path: \"../../etc/passwd\"",
                                         "a: [[[[" };
    struct fixture *f = *state;
    struct checkpoint_list list;
    struct error e = { 0 };
    char name[64];

    put_checkpoint(f, "model.ckpt-5");
    fixture_write(f, "model.ckpt-7.index.tempstate99", small_index, SMALL_INDEX);
    fixture_write(f, "odd_temp.ckpt-6.index", small_index, SMALL_INDEX);
    fixture_write(f, ".index", small_index, SMALL_INDEX);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fixture_write(f, "checkpoint", texts[i], strlen(texts[i]));
        assert_int_equal(checkpoint_directory_list(f->directory, &list, &e), OK);
        assert_int_equal(list.count, 1);
        checkpoint_list_release(&list);
        assert_int_equal(checkpoint_directory_newest(f->directory, name, sizeof name, &e), 1);
        assert_string_equal(name, "model.ckpt-5");
    }
    /* The state file's word lets in a name that looks temporary. */
    fixture_write(f, "checkpoint", "all_model_checkpoint_paths: \"odd_temp.ckpt-6\"", 45);
    assert_int_equal(checkpoint_directory_list(f->directory, &list, &e), OK);
    assert_int_equal(list.count, 2);
    checkpoint_list_release(&list);
    assert_int_equal(checkpoint_directory_list(fixture_path(f, "missing"), &list, &e), ERR_IO);
    assert_int_equal(e.system, ENOENT);
}

/* What is longer than a path can be is refused, or is not there. */
static void test_long_paths(void **state)
{
    struct checkpoint_name item = { .format = CHECKPOINT_FORMAT_BUNDLE, .name = (char[]){ "m-1" } };
    struct training_state training = { .state = "running" };
    struct stop_file stop = { .reason = "enough" };
    struct checkpoint_list list;
    struct error e = { 0 };
    char path[PATH_MAX + 40], out[8];

    (void)state;
    memset(path, 'a', PATH_MAX - 2);
    strcpy(path + PATH_MAX - 2, "");
    assert_int_equal(checkpoint_directory_list(path, &list, &e), ERR_IO);
    assert_int_equal(checkpoint_directory_commit(NULL, path, "m-1", 0, &e), ERR_ARG);
    assert_int_equal(training_state_read(path, &training, &e), ERR_ARG);
    assert_int_equal(training_state_write(path, &training, &e), ERR_ARG);
    assert_int_equal(stop_file_read(path, &stop, &e), ERR_ARG);
    assert_int_equal(stop_file_write(path, &stop, &e), ERR_ARG);
    assert_null(checkpoint_listed_here(path, "m-1"));
    assert_null(checkpoint_listed_here(".", "m-1/"));
    assert_false(checkpoint_listed_whole(path, &item, &e));
    assert_false(checkpoint_leads_elsewhere(path, "m-1"));
    assert_false(checkpoint_leads_elsewhere(".", path));
    assert_false(checkpoint_directory_disagrees(path, "m-1", &e));
    assert_false(checkpoint_weights_within(AT_FDCWD, "checkpoint-7", out, sizeof out));
    assert_int_equal(errno, ENAMETOOLONG);
    strcpy(path + PATH_MAX - 2, "/a-7/model.safetensors");
    assert_int_equal(checkpoint_path_safetensors(path), -1);
    strcpy(path + PATH_MAX - 2, "-7.safetensors.index.json");
    assert_int_equal(checkpoint_path_safetensors(path), -1);
    assert_int_equal(checkpoint_path_safetensors("model.safetensors"), -1);
    assert_int_equal(checkpoint_path_safetensors("a-7/model.safetensors"), 7);
    assert_int_equal(checkpoint_path_safetensors("a-7/model.safetensors.index.json"), 7);
    assert_int_equal(checkpoint_path_safetensors("a/b-8.safetensors.index.json"), 8);
    assert_int_equal(checkpoint_directory_commit(NULL, ".", "", 0, &e), ERR_ARG);
    assert_int_equal(checkpoint_directory_commit(NULL, ".", "a/b", 0, &e), ERR_ARG);
}

/* Only what is named as shards are is deleted with a checkpoint. */
static void test_what_is_kept(void **state)
{
    static const char *const others[] = { "m-1.data-x", "m-1.data-0", "m-1.data-0-of-", "m-1.data-0-of-1x",
                                          "m-1.data" };
    struct fixture *f = *state;
    struct error e = { 0 };

    put_checkpoint(f, "m-1");
    put_checkpoint(f, "m-2");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        fixture_write(f, others[i], "x", 1);
    assert_int_equal(checkpoint_directory_commit(NULL, f->directory, "m-1", 1, &e), OK);
    assert_int_equal(checkpoint_directory_commit(NULL, f->directory, "m-2", 1, &e), OK);
    assert_false(fixture_exists(f, "m-1.index") || fixture_exists(f, "m-1.data-00000-of-00001"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(fixture_exists(f, others[i]));
}

static void test_training_state(void **state)
{
    static const struct {
        const char *text;
        int rc;
        const char *says;
    } cases[] = {
        { "{\"state\":\"finished\",\"global_step\":12,\"new\":[1]}", 1, "" },
        { "{\"state\":\"paused\"}", ERR_CORRUPT, "running, finished, stopped, failed" },
        { "{}", ERR_CORRUPT, "running, finished, stopped, failed" },
        { "{\"state\":\"failed\",\"global_step\":12}", 1, "" },
        { "{\"state\":\"running\",\"pid\":\"7\"}", ERR_CORRUPT, "the wrong type" },
        { "{\"state\":\"running\",\"started\":\"7\"}", ERR_CORRUPT, "the wrong type" },
        { "{\"state\":\"running\",\"model\":7}", ERR_CORRUPT, "the wrong type" },
        { "{\"state\":\"running\"", ERR_CORRUPT, "line 1" },
        { "[]", ERR_CORRUPT, "running" },
        { "", ERR_CORRUPT, "line" },
    };
    struct fixture *f = *state;
    struct training_state s = { .state = "stopped",
                                .run_option = "mpi",
                                .process = { .host = "h\"ost", .boot = "b", .pid = 7, .start = 1234 },
                                .stepped = 1700000001,
                                .steps_per_second = 0.125,
                                .images_per_second = 16,
                                .signal = "SIGTERM",
                                .global_step = 123456789012,
                                .max_steps = 5,
                                .world_size = 4,
                                .started = 1700000000.25,
                                .updated = 1700000001.5,
                                .reason = "a \\ b",
                                .model = "lenet",
                                .data = "mnist",
                                .optimizer = "adam",
                                .batch_size = 128,
                                .learning_rate = 0.1 },
                          got;
    struct buffer text = BUFFER_EMPTY;
    struct error e = { 0 };

    assert_int_equal(training_state_read(f->directory, &got, &e), 0);
    assert_int_equal(training_state_write(f->directory, &s, &e), OK);
    assert_int_equal(training_state_read(f->directory, &got, &e), 1);
    assert_string_equal(got.state, "stopped");
    assert_string_equal(got.signal, "SIGTERM");
    assert_string_equal(got.process.host, "h\"ost");
    assert_string_equal(got.process.boot, "b");
    assert_true(got.process.pid == 7 && got.process.start == 1234);
    assert_true(got.stepped == 1700000001 && got.steps_per_second == 0.125 && got.images_per_second == 16);
    assert_string_equal(got.run_option, "mpi");
    assert_true(got.global_step == 123456789012 && got.max_steps == 5 && got.world_size == 4);
    assert_true(got.started == 1700000000.25 && got.updated == 1700000001.5);
    assert_string_equal(got.reason, "a \\ b");
    assert_string_equal(got.model, "lenet");
    assert_string_equal(got.data, "mnist");
    assert_string_equal(got.optimizer, "adam");
    assert_true(got.batch_size == 128 && got.learning_rate == 0.1);
    s.learning_rate = s.stepped = 0;
    *s.reason = '\0';
    assert_int_equal(training_state_write(f->directory, &s, &e), OK);
    assert_int_equal(training_state_read(f->directory, &got, &e), 1);
    assert_true(got.learning_rate == 0 && !*got.reason);
    assert_int_equal(file_read(fixture_path(f, "training.json"), 4096, &text, &e), OK);
    assert_null(strstr(buffer_text(&text), "learning_rate"));
    assert_null(strstr(buffer_text(&text), "reason"));
    assert_null(strstr(buffer_text(&text), "per_second"));
    buffer_release(&text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture_write(f, "training.json", cases[i].text, strlen(cases[i].text));
        assert_int_equal(training_state_read(f->directory, &got, &e), cases[i].rc);
        assert_true(cases[i].rc < 0 || (got.process.start == -1 && got.process.pid == 0));
        if (cases[i].rc < 0)
            assert_says(e, cases[i].says);
    }
    assert_int_equal(training_state_write(fixture_path(f, "missing"), &s, &e), ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup_teardown(test_other_formats, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_commit_and_newest, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_commit_on_a_failing_disk, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_moved_directory, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_disagreements, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_broken_state_file, fixture_setup, fixture_teardown),
        cmocka_unit_test(test_long_paths),
        cmocka_unit_test_setup_teardown(test_what_is_kept, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_training_state, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
