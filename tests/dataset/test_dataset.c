/* dataset.h: which files are found and loaded, shards of files, and one clear sentence for each thing that is wrong. */
#include "dataset/dataset.h"

#include "tests/dataset/data_files.h"

#include <errno.h>

static char directory[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    directory_make(directory, sizeof directory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    directory_remove(directory);
    return 0;
}

/* Byte i of all images. */
static uint8_t pixel(const struct dataset *d, size_t i)
{
    uint8_t room[3072];
    const void *image;
    struct error e;
    size_t used;

    assert_true(dataset_bytes(d) <= sizeof room);
    if (dataset_read(d, i / dataset_bytes(d), room, &image, &used, &e) != OK)
        fail_msg("%s", e.message);
    return ((const uint8_t *)image)[i % dataset_bytes(d)];
}

/* dataset_open must fail with this code, and the sentence must hold each of the words. */
static void expect_error(const char *name, const char *place, const struct shard *shard, int code, const char *word,
                         const char *other)
{
    struct error e = { 0 };
    struct dataset *d;
    int rc = dataset_open(&d, name, place, DATASET_TRAIN, shard, &e);

    if (rc != code || !strstr(e.message, word) || !strstr(e.message, other) || strchr(e.message, '\n') || d)
        fail_msg("%s: code %d, \"%s\"; wanted code %d with \"%s\" and \"%s\"", name, rc, e.message, code, word, other);
    assert_int_equal(dataset_open(&d, name, place, DATASET_TRAIN, shard, NULL), code);
}

static void test_mnist_names(void **state)
{
    (void)state;
    for (int form = 0; form < 4; form++) {
        char part[PATH_MAX];
        struct dataset *d;
        struct error e;

        snprintf(part, sizeof part, "%.4000s/%d", directory, form);
        assert_int_equal(mkdir(part, 0777), 0);
        mnist_put(part, "train", form & 1 ? '.' : '-', form & 2, 50, 5, 4);
        mnist_put(part, "t10k", form & 1 ? '.' : '-', form & 2, 20, 5, 4);
        for (int test = 0; test < 2; test++) {
            if (dataset_open(&d, "mnist", part, test ? DATASET_TEST : DATASET_TRAIN, NULL, &e) != OK)
                fail_msg("%s", e.message);
            assert_string_equal(d->name, "mnist");
            assert_int_equal(d->count, test ? 20 : 50);
            assert_int_equal(d->height, 5);
            assert_int_equal(d->width, 4);
            assert_int_equal(d->channels, 1);
            assert_int_equal(d->classes, 10);
            assert_string_equal(d->class_names[7], "7");
            for (size_t i = 0; i < d->count; i++) {
                assert_int_equal(field_integer(&d->labels, i), i % 10);
                for (size_t p = 0; p < 20; p++)
                    assert_int_equal(pixel(d, i * 20 + p), pixel_value(i, p));
            }
            dataset_free(d);
        }
    }
}

/* The first samples are left out, images and labels alike; one must be left. */
static void test_hold_out(void **state)
{
    struct dataset *d;
    struct error e;

    (void)state;
    mnist_put(directory, "train", '-', 0, 50, 5, 4);
    assert_int_equal(dataset_open(&d, "mnist", directory, DATASET_TRAIN, NULL, &e), OK);
    assert_int_equal(dataset_hold_out(d, 0, &e), OK);
    assert_int_equal(d->count, 50);
    for (size_t left_out = 13; left_out <= 39; left_out += 13) { /* each time 13 more */
        assert_int_equal(dataset_hold_out(d, 13, &e), OK);
        assert_int_equal(d->count, 50 - left_out);
        assert_int_equal(d->labels.shape[0], 50 - left_out);
        for (size_t i = 0; i < d->count; i++) {
            assert_int_equal(field_integer(&d->labels, i), (i + left_out) % 10);
            for (size_t p = 0; p < 20; p++)
                assert_int_equal(((const uint8_t *)dataset_sample(d, i))[p], pixel_value(i + left_out, p));
        }
    }
    assert_int_equal(dataset_hold_out(d, 11, &e), ERR_ARG);
    assert_string_equal(e.message, "the training data of mnist have only 11 images");
    assert_int_equal(d->count, 11);
    dataset_free(d);
}

static void test_mnist_errors(void **state)
{
    static const uint32_t ten[] = { 10 };
    uint8_t labels[10] = { 0, 1, 2, 3, 4, 5, 6, 7, 10, 9 }, file[64], packed[200];
    char path[PATH_MAX];
    size_t n;

    (void)state;
    expect_error("mnist", NULL, NULL, ERR_ARG, "mnist has no default directory", "cvdf-datasets");
    expect_error("mnist", "/no/such/directory", NULL, ERR_IO, "/no/such/directory: no such data directory", "cvdf");
    expect_error("mnist", directory, NULL, ERR_IO, "no file train-labels-idx1-ubyte", "cvdf-datasets/mnist");
    expect_error("fashion-mnist", directory, NULL, ERR_IO, "train-labels.idx1-ubyte", "apt-get install");
    expect_error("minst", directory, NULL, ERR_ARG, "unknown data set \"minst\"", "did you mean mnist");
    expect_error("imagenet21k", directory, NULL, ERR_ARG, "unknown data set", "known: mnist");

    mnist_put(directory, "train", '-', 0, 11, 4, 4);
    n = idx_pack(1, ten, labels, 10, file);
    file_put(directory, "train-labels-idx1-ubyte", file, n);
    expect_error("mnist", directory, NULL, ERR_CORRUPT, "train-images-idx3-ubyte: byte 4: 11 images", "10 labels");
    mnist_put(directory, "train", '-', 0, 10, 4, 4);
    file_put(directory, "train-labels-idx1-ubyte", file, n);
    expect_error("mnist", directory, NULL, ERR_CORRUPT, "train-labels-idx1-ubyte: byte 16: label 10 of image 8",
                 "is not in 0..9");
    file_put(directory, "train-images-idx3-ubyte", file, n);
    labels[8] = 8;
    file_put(directory, "train-labels-idx1-ubyte", file, idx_pack(1, ten, labels, 10, file));
    expect_error("mnist", directory, NULL, ERR_CORRUPT, "train-images-idx3-ubyte: byte 0: magic 00000801",
                 "wanted 00000803");
    file_join(path, sizeof path, directory, "train-labels-idx1-ubyte", NULL);
    assert_int_equal(unlink(path), 0);
    n = gzip_pack(file, n, packed, sizeof packed);
    file_put(directory, "train-labels-idx1-ubyte.gz", packed, n - 9);
    expect_error("mnist", directory, NULL, ERR_CORRUPT, "train-labels-idx1-ubyte.gz: byte ",
                 "the gzip stream is truncated");
}

static void test_missing_says_so_to_programs(void **state)
{
    struct error e = { 0 };
    struct dataset *d;

    (void)state;
    assert_int_equal(dataset_open(&d, "cifar10", directory, DATASET_TEST, NULL, &e), ERR_IO);
    assert_int_equal(e.system, ENOENT);
    assert_int_equal(dataset_open(&d, "mnist", directory, DATASET_TEST, NULL, &e), ERR_IO);
    assert_int_equal(e.system, ENOENT);
}

static void put_cifar10(const char *where)
{
    char name[32];

    for (size_t f = 1; f <= 5; f++) {
        snprintf(name, sizeof name, "data_batch_%zu.bin", f);
        cifar10_put(where, name, f * 100, 10 + f);
    }
    cifar10_put(where, "test_batch.bin", 0, 7);
}

static void test_cifar10(void **state)
{
    char below[PATH_MAX];
    struct dataset *d;
    struct error e;

    (void)state;
    snprintf(below, sizeof below, "%.4000s/cifar-10-batches-bin", directory);
    assert_int_equal(mkdir(below, 0777), 0);
    put_cifar10(below);
    for (int place = 0; place < 2; place++) {
        if (dataset_open(&d, "cifar10", place ? below : directory, DATASET_TRAIN, NULL, &e) != OK)
            fail_msg("%s", e.message);
        assert_int_equal(d->count, 11 + 12 + 13 + 14 + 15);
        assert_int_equal(d->height, 32);
        assert_int_equal(d->channels, 3);
        assert_string_equal(d->class_names[9], place ? "lorry" : "truck");
        for (size_t f = 1, at = 0; f <= 5; f++) {
            for (size_t i = 0; i < 10 + f; i++, at++) {
                assert_int_equal(field_integer(&d->labels, at), (f * 100 + i) % 10);
                for (size_t p = 0; p < 3072; p += 257)
                    assert_int_equal(pixel(d, at * 3072 + p), pixel_value(f * 100 + i, p));
            }
        }
        dataset_free(d);
        file_put(below, "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nlorry\n\n", 25);
    }
    assert_int_equal(dataset_open(&d, "cifar10", below, DATASET_TEST, NULL, &e), OK);
    assert_int_equal(d->count, 7);
    dataset_free(d);
    file_put(below, "batches.meta.txt", "one", 3);
    expect_error("cifar10", below, NULL, ERR_CORRUPT, "batches.meta.txt: byte 3: line 2", "10 lines");
}

static void test_cifar10_errors(void **state)
{
    static uint8_t odd[3073 + 100];
    char path[PATH_MAX];

    (void)state;
    expect_error("cifar10", directory, NULL, ERR_IO, "no file data_batch_1.bin here nor in cifar-10-batches-bin/",
                 "cifar-10-binary.tar.gz");
    put_cifar10(directory);
    file_put(directory, "data_batch_3.bin", odd, sizeof odd);
    expect_error("cifar10", directory, NULL, ERR_CORRUPT, "data_batch_3.bin: byte 3173", "not a multiple of 3073");
    odd[0] = 255;
    file_put(directory, "data_batch_3.bin", odd, 3073);
    expect_error("cifar10", directory, NULL, ERR_CORRUPT,
                 "data_batch_3.bin: byte 0: broken record: its label 255 is not",
                 "in 0..9 (--bad-samples skip leaves such out); is this CIFAR-10 in its binary version?");
    file_join(path, sizeof path, directory, "data_batch_3.bin", NULL);
    assert_int_equal(unlink(path), 0);
    expect_error("cifar10", directory, NULL, ERR_IO, "data_batch_3.bin: cannot open", "No such file");
}

/* What happens to a file while a training reads from it: cut, or overwritten. Broken records are left out if that is
 * asked for. */
static void test_cifar10_changes(void **state)
{
    static const struct dataset_reading skip = { .skip_bad = 1 };
    static uint8_t none[3073];
    struct dataset *d;
    const void *image;
    uint8_t room[3072];
    char path[PATH_MAX];
    struct error e;
    size_t used;

    (void)state;
    put_cifar10(directory);
    assert_int_equal(dataset_open(&d, "cifar10", directory, DATASET_TRAIN, NULL, &e), OK);
    file_join(path, sizeof path, directory, "data_batch_1.bin", NULL);
    assert_int_equal(truncate(path, 2 * 3073 + 9), 0);
    assert_int_equal(dataset_read(d, 1, room, &image, &used, &e), OK);
    assert_int_equal(dataset_read(d, 2, room, &image, &used, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "data_batch_1.bin: byte 6155: the file was truncated while it was read"));
    none[0] = 3;
    file_put(directory, "data_batch_1.bin", none, sizeof none);
    assert_int_equal(dataset_read(d, 0, room, &image, &used, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "data_batch_1.bin: byte 0: the label is no longer the one"));
    dataset_free(d);

    none[0] = 200;
    file_put(directory, "data_batch_1.bin", none, sizeof none);
    file_join(path, sizeof path, directory, "data_batch_2.bin", NULL);
    assert_int_equal(truncate(path, 3073 + 9), 0);
    assert_int_equal(dataset_open_as(&d, "cifar10", directory, DATASET_TRAIN, NULL, &skip, &e), OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(dataset_read(d, i, room, &image, &used, &e), OK);
        assert_int_equal(used, i == 0 ? 1 : i == 1 ? 1 : 3);
    }
    assert_int_equal(field_integer(&d->labels, 3), 300 % 10);
    dataset_free(d);
}

/* Every record is loaded by exactly one worker, whole files each; a worker too many is an error that names it. */
static void test_shards_of_files(void **state)
{
    struct dataset *d;

    (void)state;
    put_cifar10(directory);
    for (int workers = 1; workers <= 5; workers++) {
        int seen[6] = { 0 };
        size_t total = 0;

        for (int worker = 0; worker < workers; worker++) {
            struct shard shard = { SHARD_FILES, workers, worker, SHARD_MODULO };
            struct error e;

            if (dataset_open(&d, "cifar10", directory, DATASET_TRAIN, &shard, &e) != OK)
                fail_msg("%s", e.message);
            total += d->count;
            assert_true(strstr(d->files, "data_batch_") == d->files);
            for (int f = 1; f <= 5; f++) {
                const char name[] = { 'h', '_', (char)('0' + f), '.', 'b', 'i', 'n', '\0' };

                assert_int_equal(strstr(d->files, name) != NULL, (f - 1) % workers == worker);
            }
            for (size_t i = 0; i < d->count; i++) {
                size_t number = pixel(d, i * 3072) + 256u * pixel(d, i * 3072 + 1), file = number / 100;

                assert_int_equal((file - 1) % (size_t)workers, worker);
                seen[file]++;
            }
            dataset_free(d);
        }
        assert_int_equal(total, 65);
        for (int f = 1; f <= 5; f++)
            assert_int_equal(seen[f], 10 + f);
    }
    assert_int_equal(dataset_open(&d, "cifar10", directory, DATASET_TRAIN,
                                  &(struct shard){ SHARD_FILES, 2, 1, SHARD_CONTIGUOUS }, NULL),
                     OK);
    assert_string_equal(d->files, "data_batch_4.bin, data_batch_5.bin");
    dataset_free(d);
    expect_error("cifar10", directory, &(struct shard){ SHARD_FILES, 7, 6, SHARD_MODULO }, ERR_ARG,
                 "worker 6 of 7 has no file", "at most 5 workers");
    expect_error("cifar10", directory, &(struct shard){ SHARD_FILES, 2, 2, SHARD_MODULO }, ERR_ARG, "worker 2 of 2",
                 "must be from 0");
    expect_error("cifar10", directory, &(struct shard){ SHARD_RECORDS, 0, 0, SHARD_MODULO }, ERR_ARG, "worker 0 of 0",
                 "must be from 0");
    expect_error("mnist", directory, &(struct shard){ SHARD_FILES, 2, 1, SHARD_MODULO }, ERR_ARG,
                 "worker 1 of 2 has no file", "1 file;");
}

/* Debian's Fashion-MNIST, which `make deps` installs: counts, and the first images' labels as published. */
static void test_fashion_mnist(void **state)
{
    struct dataset *d;
    size_t per_class[10] = { 0 };
    struct error e;

    (void)state;
    if (dataset_open(&d, "fashion-mnist", NULL, DATASET_TEST, NULL, &e) != OK)
        fail_msg("%s", e.message);
    assert_int_equal(d->count, 10000);
    assert_int_equal(d->height, 28);
    assert_int_equal(d->width, 28);
    assert_string_equal(d->class_names[field_integer(&d->labels, 0)], "Ankle boot");
    for (size_t i = 0; i < d->count; i++)
        per_class[field_integer(&d->labels, i)]++;
    for (int c = 0; c < 10; c++)
        assert_int_equal(per_class[c], 1000);
    dataset_free(d);
    if (dataset_open(&d, "fashion-mnist", "", DATASET_TRAIN, NULL, &e) != OK)
        fail_msg("%s", e.message);
    assert_int_equal(d->count, 60000);
    dataset_free(d);
    dataset_free(NULL);
}

static void test_names(void **state)
{
    const char *const *names = dataset_names();
    size_t count = 0;

    (void)state;
    while (names[count]) /* the list has an end */
        count++;
    assert_true(count >= 5);
    assert_string_equal(names[0], "mnist");
    assert_string_equal(names[1], "fashion-mnist");
    assert_string_equal(names[2], "cifar10");
    assert_string_equal(names[3], "text");
    assert_string_equal(names[4], "folder");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_mnist_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hold_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mnist_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_says_so_to_programs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cifar10, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cifar10_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cifar10_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shards_of_files, set_up, tear_down),
        cmocka_unit_test(test_fashion_mnist),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
