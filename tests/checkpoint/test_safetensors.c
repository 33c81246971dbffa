/* safetensors: the vector, what must be refused, files and failing disks. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "base/bytes.h"
#include "base/io.h"
#include "checkpoint/safetensors.h"
#include "tests/failing_io.h"

#include <errno.h>

/* Written by safetensors 0.8.0 in Python: save_file({step, b, w}, metadata={"step": "700"}). */
static const char vector[] =
    "\xc8\0\0\0\0\0\0\0"
    "{\"__metadata__\":{\"step\":\"700\"},\"step\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
    "\"w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[16,24]}}   "
    "\xbc\x02\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\xbf\0\0\0\x3f\0\0\x80\x3e";
enum { VECTOR = 232, VECTOR_DATA = 208 };

static void test_reads_the_vector(void **state)
{
    struct fixture *f = *state;
    const struct safetensors_header *h;
    struct safetensors *s;
    struct error e = { 0 };
    uint8_t bytes[8];

    assert_int_equal(sizeof vector - 1, VECTOR);
    fixture_write(f, "v.safetensors", vector, VECTOR);
    if (safetensors_open(&s, fixture_path(f, "v.safetensors"), &e) != OK)
        fail_msg("%s", e.message);
    h = safetensors_contents(s);
    assert_int_equal(h->count, 3);
    assert_int_equal(h->pair_count, 1);
    assert_string_equal(h->pairs[0].key, "step");
    assert_string_equal(h->pairs[0].value, "700");
    assert_string_equal(h->tensors[0].name, "step");
    assert_string_equal(h->tensors[2].dtype, "F32");
    assert_true(h->tensors[2].rank == 2 && h->tensors[2].shape[0] == 2 && h->tensors[2].shape[1] == 1);
    assert_int_equal(safetensors_read(s, &h->tensors[2], 4, bytes, 4, &e), OK);
    assert_true(bits_float(get_le32(bytes)) == 0.25f);
    assert_int_equal(safetensors_read(s, &h->tensors[2], 4, bytes, 5, &e), ERR_ARG);
    safetensors_close(s);
    for (size_t n = 0; n < VECTOR; n++) { /* cut anywhere, it is refused */
        fixture_write(f, "cut", vector, n);
        assert_int_equal(safetensors_open(&s, fixture_path(f, "cut"), &e), ERR_CORRUPT);
    }
    assert_int_equal(safetensors_open(&s, fixture_path(f, "none"), &e), ERR_IO);
    assert_int_equal(safetensors_open(&s, f->directory, &e), ERR_IO);
    fixture_write(f, "pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", 67);
    assert_int_equal(safetensors_open(&s, fixture_path(f, "pointer"), &e), ERR_CORRUPT);
    assert_says(e, "pointer: not a safetensors file, but a Git LFS pointer");
}

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
    const char *json;
    uint64_t data;
    const char *says; /* NULL: it is right */
} headers[] = {
    { "{}", 0, NULL },
    { "{}      ", 0, NULL },
    { "{ \"a\" : " T("U8", "[0]", "[0,0]") " , \"b\":" T("U8", "[ 2 ]", "[0, 2]") "}", 2, NULL },
    { "{\"a\":" T("F4", "[2,3]", "[0,3]") "}", 3, NULL },
    { "{\"a\":" T("F6_E2M3", "[4]", "[0,3]") "}", 3, NULL },
    { "{\"\\u0000\":" T("BOOL", "[]", "[0,1]") ",\"\":" T("BOOL", "[]", "[1,2]") "}", 2, NULL },
    { "{\"__metadata__\":{},\"a\":" T("U8", "[]", "[0,1]") "}", 1, NULL },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"more\":{\"x\":[1]}}}", 1, NULL },
    { "", 0, "begin with '{'" },
    { " {}", 0, "begin with '{'" },
    { "{}\n", 0, "only blanks" },
    { "{}{}", 0, "only blanks" },
    { "{", 0, "a name in quotes" },
    { "{\"a\"", 0, "expected ':'" },
    { "{\"a\":", 0, "does not end" },
    { "{\"a\":1}", 0, "dtype, shape" },
    { "{\"a\":" T("U8", "[]", "[0,1]") ",}", 1, "a name in quotes" },
    { "{\"a\":" T("U8", "[]", "[0,1]") ",\"a\":" T("U8", "[]", "[1,2]") "}", 2, "is repeated" },
    { "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, "duplicate" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "is repeated" },
    { "{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", 0, "is repeated" },
    { "{\"__metadata__\":{\"a\":1}}", 0, "only strings" },
    { "{\"__metadata__\":[]}", 0, "expected '{'" },
    { "{\"__metadata__\":{} 1}", 0, "',' or '}'" },
    { "{\"a\":" T("F32\\u0000", "[]", "[0,4]") "}", 4, "its dtype F32 is no name of a type" },
    { "{\"a\":" T("", "[]", "[0,4]") "}", 4, "is no name of a type" },
    { "{\"a\":" T("F 32", "[]", "[0,4]") "}", 4, "is no name of a type" },
    { "{\"a\":" T("F33333333333333333333333333333333", "[]", "[0,4]") "}", 4, "is no name of a type" },
    { "{\"a\":" T("F128", "[]", "[0,16]") ",\"b\":" T("MXFP5_32", "[3,7]", "[16,31]") "}", 31, NULL },
    { "{\"a\":" T("F128", "[]", "[0,16]") ",\"b\":" T("F128", "[]", "[17,31]") "}", 31, "the one before ends at 16" },
    { "{\"a\":" T("F128", "[4611686018427387904,4]", "[0,16]") "}", 16, "too many bytes" },
    { "{\"a\":" T("F128", "[]", "[16,0]") "}", 16, "ends before" },
    { "{\"a\":" T("U8", "[-1]", "[0,1]") "}", 1, "not negative" },
    { "{\"a\":" T("U8", "[1.0]", "[0,1]") "}", 1, "integers" },
    { "{\"a\":" T("U8", "[true]", "[0,1]") "}", 1, "integers" },
    { "{\"a\":" T("U8", "[99999999999999999999]", "[0,1]") "}", 1, "too big" },
    { "{\"a\":" T("U8", "[4611686018427387904,4]", "[0,1]") "}", 1, "too many bytes" },
    { "{\"a\":" T("F64", "[4611686018427387904]", "[0,1]") "}", 1, "too many bytes" },
    { "{\"a\":" T("F4", "[3]", "[0,2]") "}", 2, "a fraction of a byte" },
    { "{\"a\":" T("U8", "[1]", "[1,0]") "}", 1, "ends before" },
    { "{\"a\":" T("U8", "[2]", "[0,1]") "}", 1, "shape and dtype need 2" },
    { "{\"a\":" T("U8", "[1]", "[0,1,2]") "}", 1, "dtype, shape" },
    { "{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,1]}}", 1, "dtype, shape" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, "dtype, shape" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":1}}", 1, "dtype, shape" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 1, "dtype, shape" },
    { "{\"a\":" T("U8", "[1]", "[-1,1]") "}", 1, "not negative" },
    { "{\"a\":" T("U8", "[0]", "[0,0]") ",\"b\":" T("U8", "[0]", "[0,0]") ",\"c\":" T("U8", "[]", "[0,1]") "}", 1,
      NULL },
    { "{\"a\":" T("U8", "[1]", "[1,2]") "}", 2, "the one before ends at 0" },
    { "{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[2]", "[1,3]") "}", 3, "the one before ends at 2" },
    { "{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[0]", "[1,1]") "}", 2, "the one before ends at 2" },
    { "{\"a\":" T("U8", "[1]", "[0,1]") "}", 2, "2 bytes of data, but the tensors need 1" },
    { "{\"a\":" T("U8", "[2]", "[0,2]") "}", 1, "1 bytes of data, but the tensors need 2" },
    { "{}", 1, "1 bytes of data" },
    { "{\"\xff\":1}", 0, "not UTF-8" },
    { "{\"a\\ud800\":1}", 0, "invalid header" },
};

static void test_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        size_t n = strlen(headers[i].json);
        char *exact = malloc(n ? n : 1); /* so that a byte read behind it is seen */
        struct safetensors_header *h;
        struct error e = { 0 };
        int rc;

        memcpy(exact, headers[i].json, n);
        rc = safetensors_header_parse("f", exact, n, headers[i].data, &h, &e);
        if (rc != (headers[i].says ? ERR_CORRUPT : OK) || (headers[i].says && !strstr(e.message, headers[i].says)))
            fail_msg("%s: %d %s", headers[i].json, rc, e.message);
        safetensors_header_free(h);
        free(exact);
    }
}

static void test_hostile_headers(void **state)
{
    enum { N = 1 << 20 };
    static const char *const patterns[] = { "[", "{\"a\":", "\"", "{\"a\":[1,", "0,", "\\\"", "{}" };
    char *json = malloc(N), long_length[8];
    struct safetensors_header *h;
    struct error e = { 0 };
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        size_t length = strlen(patterns[i]);

        memcpy(json, "{\"a\":", 5);
        for (size_t at = 5; at < N; at++)
            json[at] = patterns[i][(at - 5) % length];
        assert_int_equal(safetensors_header_parse("f", json, N, 0, &h, &e), ERR_CORRUPT);
    }
    put_le64(long_length, 100000001);
    assert_int_equal(safetensors_header_length("f", long_length, (uint64_t)1 << 40, &n, &e), ERR_CORRUPT);
    assert_says(e, "over the limit");
    put_le64(long_length, UINT64_MAX);
    assert_int_equal(safetensors_header_length("f", long_length, 100, &n, &e), ERR_CORRUPT);
    put_le64(long_length, 93);
    assert_int_equal(safetensors_header_length("f", long_length, 100, &n, &e), ERR_CORRUPT);
    assert_says(e, "only 100");
    free(json);
}

/* 254 dimensions, and JSON of 64 KiB for one tensor, are the most. */
static void test_limits(void **state)
{
    static const struct {
        int rank;
        size_t more;
        const char *says;
    } cases[] = {
        { 254, 0, NULL },
        { 255, 0, "more than 254 dimensions" },
        { 1, 65000, NULL },
        { 1, 66000, "more JSON" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer json = BUFFER_EMPTY;
        struct safetensors_header *h;
        struct error e = { 0 };
        int rc;

        buffer_append_text(&json, "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1],\"more\":\"");
        for (size_t k = 0; k < cases[i].more; k++)
            buffer_append_byte(&json, 'x');
        buffer_append_text(&json, "\",\"shape\":[1");
        for (int d = 1; d < cases[i].rank; d++)
            buffer_append_text(&json, ",1");
        buffer_append_text(&json, "]}}");
        rc = safetensors_header_parse("f", json.data, json.length, 1, &h, &e);
        if (rc != (cases[i].says ? ERR_CORRUPT : OK) || (cases[i].says && !strstr(e.message, cases[i].says)))
            fail_msg("case %zu: %d %s", i, rc, e.message);
        safetensors_header_free(h);
        buffer_release(&json);
    }
}

static int write_vector(struct fixture *f, const struct io *io, struct error *e)
{
    static const int64_t two[] = { 2, 1 };
    static char key[] = "step", value[] = "700";
    const struct safetensors_pair pair = { key, value, 4, 3 };
    struct safetensors_tensor tensors[] = {
        { .name = "w", .name_length = 1, .dtype = "F32", .rank = 2, .shape = two },
        { .name = "b", .name_length = 1, .dtype = "F32", .rank = 1, .shape = two },
        { .name = "step", .name_length = 4, .dtype = "I64" },
    };
    struct safetensors_writer *w;
    int rc;

    if ((rc = safetensors_layout(tensors, 3, e)) != OK ||
        (rc = safetensors_writer_open(&w, io, fixture_path(f, "w.safetensors"), tensors, 3, &pair, 1, e)) != OK)
        return rc;
    for (size_t at = VECTOR_DATA; at < VECTOR && rc == OK; at += 5)
        rc = safetensors_writer_append(w, vector + at, VECTOR - at < 5 ? VECTOR - at : 5, e);
    if (rc == OK)
        return safetensors_writer_finish(w, e);
    safetensors_writer_abandon(w);
    return rc;
}

static void assert_only(struct fixture *f, const char *name)
{
    DIR *d = opendir(f->directory);
    struct dirent *entry;

    while ((entry = readdir(d)))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, name) != 0)
            fail_msg("%s was left", entry->d_name);
    closedir(d);
}

static void test_writes_the_vector(void **state)
{
    struct fixture *f = *state;
    struct error e = { 0 };
    struct buffer got;
    char left_over[64];
    int failures = 0;

    snprintf(left_over, sizeof left_over, "w.safetensors.tmp%ld", (long)getpid());

    for (long n = 1; n < 100; n++) { /* each system call fails once: an error, and nothing is left */
        struct io_failing failing = { .fail_at = n, .error_number = ENOSPC };
        struct io io = io_failing_table(&failing);

        fixture_write(f, left_over, "killed", 6); /* by a process that had our number */
        if (write_vector(f, &io, &e) == OK)
            break;
        assert_true(e.code == ERR_IO && e.system == ENOSPC);
        if (!fixture_exists(f, "w.safetensors"))
            assert_only(f, "");
        failures++;
        unlink(fixture_path(f, "w.safetensors"));
    }
    assert_int_equal(failures, 12); /* open, six writes, fsync, close, rename, open and fsync of the directory */
    assert_only(f, "w.safetensors");
    fixture_read(f, "w.safetensors", &got);
    assert_int_equal(got.length, VECTOR);
    assert_memory_equal(got.data, vector, VECTOR);
    buffer_release(&got);
}

static void test_wrong_writing(void **state)
{
    static const int64_t one[] = { 1 }, huge[] = { INT64_MAX }, quarter[] = { (INT64_MAX >> 2) - 1 };
    struct fixture *f = *state;
    struct safetensors_tensor t[2] = { { .name = "a", .name_length = 1, .dtype = "U8", .rank = 1, .shape = one },
                                       { .name = "a", .name_length = 1, .dtype = "U8", .rank = 1, .shape = one } };
    struct safetensors_tensor large[5];
    struct safetensors_writer *w;
    struct error e = { 0 };

    for (int i = 0; i < 5; i++)
        large[i] = (struct safetensors_tensor){
            .name = &"abcde"[i], .name_length = 1, .dtype = "U8", .rank = 1, .shape = quarter
        };
    assert_int_equal(safetensors_layout(large, 4, &e), OK);
    assert_int_equal(safetensors_layout(large, 5, &e), ERR_ARG);
    assert_says(e, "more bytes than a file can hold");
    assert_int_equal(safetensors_layout(t, 2, &e), ERR_ARG);
    assert_says(e, "is given twice");
    t[1].name = "__metadata__";
    t[1].name_length = 12;
    assert_int_equal(safetensors_layout(t, 2, &e), ERR_ARG);
    t[1].name = "\xff";
    t[1].name_length = 1;
    assert_int_equal(safetensors_layout(t, 2, &e), ERR_ARG);
    t[1].name = "b";
    t[1].dtype = "F4";
    assert_int_equal(safetensors_layout(t, 2, &e), ERR_ARG);
    t[1].dtype = "U8";
    t[1].shape = huge;
    assert_int_equal(safetensors_layout(t, 2, &e), ERR_ARG);
    assert_int_equal(safetensors_layout(t, 1, &e), OK);
    assert_int_equal(safetensors_writer_open(&w, NULL, fixture_path(f, "x"), t, 1, NULL, 0, &e), OK);
    assert_int_equal(safetensors_writer_append(w, "ab", 2, &e), ERR_ARG);
    assert_int_equal(safetensors_writer_finish(w, &e), ERR_ARG);
    assert_says(e, "missing");
    assert_only(f, "");
    for (int type = 0; type < 40; type++)
        if (safetensors_dtype(type))
            assert_int_equal(safetensors_tensor_type(safetensors_dtype(type)), type);
}

/* Where the step is, and what is none. */
static void test_steps(void **state)
{
    static const struct {
        const char *json;
        const char *bytes;
        size_t n;
        int64_t step;
        int torch;
    } cases[] = {
        { "{\"global_step\":" T("I32", "[]", "[0,4]") "}", "\x05\0\0\0", 4, 5, 0 },
        { "{\"global_step\":" T("I64", "[1]", "[0,8]") "}", "\x06\0\0\0\0\0\0\0", 8, 6, 0 },
        { "{\"global_step\":" T("I32", "[]", "[0,4]") ",\"__metadata__\":{\"step\":\"7\"}}", "\xff\xff\xff\xff", 4, 7,
          0 },
        { "{\"global_step\":" T("F32", "[]", "[0,4]") ",\"__metadata__\":{\"format\":\"pt\"}}", "\x05\0\0\0", 4, -1,
          1 },
        { "{\"global_step\":" T("I32", "[2]", "[0,8]") ",\"__metadata__\":{\"format\":\"tf\"}}", "\0\0\0\0\0\0\0\0", 8,
          -1, 0 },
        { "{\"__metadata__\":{\"global_step\":\"x\",\"step\":\"-1\"}}", "", 0, -1, 0 },
        { "{\"__metadata__\":{\"global_step\":\"8\",\"step\":\"9\"}}", "", 0, 8, 0 },
        { "{}", "", 0, -1, 0 },
    };
    struct fixture *f = *state;
    struct error e = { 0 };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t n = strlen(cases[i].json);
        struct safetensors *s;
        uint8_t file[256] = { 0 };

        put_le64(file, n);
        memcpy(file + 8, cases[i].json, n);
        memcpy(file + 8 + n, cases[i].bytes, cases[i].n);
        fixture_write(f, "s", file, 8 + n + cases[i].n);
        if (safetensors_open(&s, fixture_path(f, "s"), &e) != OK)
            fail_msg("%s", e.message);
        assert_int_equal(safetensors_step(s, &e), cases[i].step);
        assert_int_equal(safetensors_from_torch(s), cases[i].torch);
        assert_int_equal(safetensors_bytes(s), 8 + n + cases[i].n);
        if (safetensors_contents(s)->count) {
            const struct safetensors_tensor *t = safetensors_contents(s)->tensors;

            assert_int_equal(safetensors_read(s, t, cases[i].n + 1, file, 0, &e), ERR_ARG);
            assert_int_equal(truncate(fixture_path(f, "s"), (off_t)(8 + n)), 0); /* after it was opened */
            assert_int_equal(safetensors_read(s, t, 0, file, 1, &e), ERR_CORRUPT);
        }
        safetensors_close(s);
    }
}

static void test_writes_nothing(void **state)
{
    struct fixture *f = *state;
    struct safetensors_writer *w;
    struct safetensors *s;
    struct error e = { 0 };
    char path[PATH_MAX + 1];

    assert_int_equal(safetensors_writer_open(&w, NULL, fixture_path(f, "x"), NULL, 0, NULL, 0, &e), OK);
    assert_int_equal(safetensors_writer_append(w, "", 0, &e), OK);
    assert_int_equal(safetensors_writer_finish(w, &e), OK);
    assert_int_equal(safetensors_open(&s, fixture_path(f, "x"), &e), OK);
    assert_int_equal(safetensors_contents(s)->count, 0);
    safetensors_close(s);
    memset(path, 'a', PATH_MAX);
    path[PATH_MAX] = '\0';
    assert_int_equal(safetensors_writer_open(&w, NULL, path, NULL, 0, NULL, 0, &e), ERR_ARG);
    safetensors_writer_abandon(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_the_vector, fixture_setup, fixture_teardown),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_limits),
        cmocka_unit_test_setup_teardown(test_writes_the_vector, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_writing, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_steps, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_writes_nothing, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
