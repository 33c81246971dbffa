/* A folder tree of images: its classes and order, broken files, want of memory, and batches by several threads. */
#include "dataset/batch_source.h"
#include "dataset/dataset.h"
#include "dataset/stream/image_decode.h"

#include "tests/dataset/data_files.h"
#include "tests/failing_allocation.h"

#include <jpeglib.h>
#include <png.h>

enum { SIDE = 8, COUNT = 12 };

static char place[PATH_MAX];

/* One grey level tells which image it is. */
static void put_png(const char *folder, const char *name, int level)
{
    uint8_t pixels[SIDE * SIDE];
    png_image image = { .version = PNG_IMAGE_VERSION, .width = SIDE, .height = SIDE, .format = PNG_FORMAT_GRAY };
    char path[PATH_MAX + 64];

    memset(pixels, level, sizeof pixels);
    snprintf(path, sizeof path, "%s/%s", place, folder);
    assert_int_equal(file_make_directories(path, NULL), OK);
    snprintf(path, sizeof path, "%s/%s/%s", place, folder, name);
    assert_true(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
}

static size_t jpeg_bytes(uint8_t *out, size_t room)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    uint8_t row[SIDE * 3] = { 200, 10, 10 }, *rows = row, *memory = NULL;
    unsigned long n = 0;

    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &memory, &n);
    jpeg.image_width = jpeg.image_height = SIDE;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < SIDE)
        jpeg_write_scanlines(&jpeg, &rows, 1);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    assert_true(n <= room);
    memcpy(out, memory, n);
    free(memory);
    return n;
}

/* Images 0 to 11, numbered over the classes in turn; files that are none beside them. */
static int set_up(void **state)
{
    static const char *const classes[] = { "train/elk", "train/cat", "train/dog" };
    char name[32];

    (void)state;
    directory_make(place, sizeof place);
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "%04d.png", i);
        put_png(classes[i % 3], name, i);
    }
    put_png("train/cat", ".hidden.png", 99);
    put_png("train/cat", "notes.txt", 99);
    put_png("val/elk", "1.png", 50);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    directory_remove(place);
    return 0;
}

static struct dataset *open_tree(enum dataset_split split, int skip)
{
    const struct dataset_reading how = { .skip_bad = skip };
    struct dataset *d;
    struct error e;

    if (dataset_open_as(&d, "folder", place, split, NULL, &how, &e) != OK)
        fail_msg("%s", e.message);
    return d;
}

static void test_classes_and_order(void **state)
{
    struct dataset *d = open_tree(DATASET_TRAIN, 0);
    uint8_t room[SIDE * SIDE * 3];
    const void *sample;
    uint64_t classes = d->vocabulary;
    size_t used;

    (void)state;
    assert_int_equal(d->count, COUNT);
    assert_int_equal(d->classes, 3);
    assert_int_equal(d->height, SIDE);
    assert_string_equal(d->class_names[0], "cat");
    assert_string_equal(d->class_names[2], "elk");
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(dataset_read(d, i, room, &sample, &used, NULL), OK);
        assert_int_equal(used, i);
        assert_int_equal(*(const uint8_t *)sample, i);
        assert_int_equal(field_integer(&d->labels, i), (i + 2) % 3);
    }
    assert_int_equal(dataset_hold_out(d, 2, NULL), OK);
    assert_int_equal(dataset_read(d, 0, room, &sample, &used, NULL), OK);
    assert_int_equal(room[0], 2);
    assert_int_equal(field_integer(&d->labels, 0), 1);
    dataset_free(d);
    d = open_tree(DATASET_TEST, 1); /* "elk" is the only class here, but the third of training */
    assert_int_equal(d->count, 1);
    assert_int_equal(field_integer(&d->labels, 0), 2);
    assert_true(d->vocabulary == classes);
    dataset_free(d);
}

/* Ten ways to be broken: each is named, counted once, and the next good image takes its place. */
static void test_broken(void **state)
{
    static const char *const names[] = { "0000.png", "0003.png", "0006.png", "0009.png" };
    uint8_t bytes[4096], room[SIDE * SIDE * 3], whole[4096];
    struct error e = { 0 };
    const void *sample;
    size_t n, png, used;
    char path[PATH_MAX + 64];
    FILE *f;

    snprintf(path, sizeof path, "%s/train/elk/%s", place, names[1]);
    assert_non_null(f = fopen(path, "rb"));
    png = fread(whole, 1, sizeof whole, f);
    fclose(f);
    n = jpeg_bytes(bytes, sizeof bytes);
    (void)state;
    for (int kind = 0; kind < 10; kind++) {
        uint8_t damaged[4096];
        size_t length = kind < 5 ? png : n;
        struct dataset *d;

        memcpy(damaged, kind < 5 ? whole : bytes, length);
        switch (kind) {
        case 0: length = 0; break;
        case 1: length = 8; break;             /* the signature alone */
        case 2: length = png - 20; break;      /* ends in the pixels */
        case 3: damaged[png - 20] ^= 1; break; /* a wrong sum */
        case 4: damaged[25] = 7; break;        /* no such kind of colour */
        case 5: length = 3; break;
        case 6: length = n / 2; break;
        case 7: length = n - 8; break;    /* the last pixels are missing */
        case 8: damaged[1] = 0xd9; break; /* neither */
        default: memset(damaged + 20, 0xff, 40);
        }
        snprintf(path, sizeof path, "%s/train/elk", place);
        file_put(path, names[1], damaged, length);
        d = open_tree(DATASET_TRAIN, 0);
        assert_int_equal(dataset_read(d, 3, room, &sample, &used, &e), ERR_CORRUPT);
        assert_non_null(strstr(e.message, "train/elk/0003.png: broken image: "));
        assert_non_null(strstr(e.message, "--bad-samples skip"));
        dataset_free(d);
        d = open_tree(DATASET_TRAIN, 1);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(dataset_read(d, 3, room, &sample, &used, &e), OK);
            assert_int_equal(used, 4);
            assert_int_equal(room[0], 4);
        }
        assert_int_equal(sample_stream_bad(d->stream), 1);
        assert_true(sample_stream_next_bad(d->stream, &e));
        assert_false(sample_stream_next_bad(d->stream, &e));
        dataset_free(d);
    }
}

/* Names of images that are none: a directory, a pipe, a link to nothing and a file that is too large. */
static void test_no_images(void **state)
{
    uint8_t room[SIDE * SIDE * 3];
    char path[PATH_MAX + 64];
    const void *sample;
    size_t used;

    (void)state;
    snprintf(path, sizeof path, "%s/train/elk/0003.png", place);
    for (int kind = 0; kind < 4; kind++) {
        struct error e = { 0 };
        struct dataset *d;

        assert_int_equal(remove(path), 0);
        switch (kind) {
        case 0: assert_int_equal(mkdir(path, 0777), 0); break;
        case 1: assert_int_equal(mkfifo(path, 0666), 0); break;
        case 2: assert_int_equal(symlink("nothing.png", path), 0); break;
        default:
            snprintf(path, sizeof path, "%s/train/elk", place);
            file_put(path, "0003.png", "", 0);
            snprintf(path, sizeof path, "%s/train/elk/0003.png", place);
            assert_int_equal(truncate(path, (off_t)IMAGE_BYTES_MAX + 1), 0);
        }
        d = open_tree(DATASET_TRAIN, 0);
        assert_int_equal(dataset_read(d, 3, room, &sample, &used, &e), ERR_CORRUPT);
        assert_non_null(strstr(e.message, "train/elk/0003.png: broken image: "));
        dataset_free(d);
        d = open_tree(DATASET_TRAIN, 1);
        assert_int_equal(dataset_read(d, 3, room, &sample, &used, &e), OK);
        assert_int_equal(used, 4);
        assert_int_equal(sample_stream_bad(d->stream), 1);
        dataset_free(d);
    }
}

static void test_want_of_memory(void **state)
{
    uint8_t room[SIDE * SIDE * 3];
    int refused = 0, rc = ERR_NOMEM;

    (void)state;
    for (long at = 1; rc != OK; at++) {
        struct dataset *d = NULL;
        struct error e = { 0 };
        const void *sample;
        size_t used;

        atomic_store(&calls, 0);
        atomic_store(&fail_at, at);
        rc = dataset_open(&d, "folder", place, DATASET_TRAIN, NULL, &e);
        if (rc == OK)
            rc = dataset_read(d, 0, room, &sample, &used, &e);
        atomic_store(&fail_at, 0);
        assert_true(rc == OK || (rc == ERR_NOMEM && strstr(e.message, "no memory")));
        refused += rc != OK;
        dataset_free(d);
    }
    assert_true(refused > 10);
}

/* Several threads read: batches come in order, each what its number says. */
static void test_batches(void **state)
{
    const struct transform *t = transform_find("unit");
    struct dataset *d = open_tree(DATASET_TRAIN, 1);
    int seen[COUNT] = { 0 };

    (void)state;
    for (int step = 0; step < 60; step += 30) {
        struct batch_source_options o = { .transform = t,
                                          .shard = { SHARD_RECORDS, 1, 0, SHARD_MODULO },
                                          .batch_size = 4,
                                          .seed = 1,
                                          .first_step = step };
        struct batch_source *s;
        const struct batch *b;

        assert_int_equal(batch_source_new(&s, d, &o, NULL), OK);
        for (int i = 0; i < 30; i++) {
            assert_int_equal(batch_source_next(s, &b, NULL), OK);
            assert_int_equal(b->step, step + i);
            for (int k = 0; k < 4; k++) {
                const float *image = (const float *)b->fields[FIELD_INPUT].data + (size_t)k * SIDE * SIDE * 3;
                const int which = (int)(image[0] * 255 + 0.5f);

                assert_int_equal(field_integer(&b->fields[FIELD_LABELS], (size_t)k), (which + 2) % 3);
                assert_int_equal(seen[which]++, (step + i) / 3); /* each once an epoch, of 3 steps */
            }
        }
        batch_source_free(s);
    }
    dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_classes_and_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_images, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_want_of_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batches, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
