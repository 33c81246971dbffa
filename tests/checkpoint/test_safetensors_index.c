/* Safetensors in parts: their index, reading them as one, want of memory. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "base/bytes.h"
#include "checkpoint/safetensors.h"
#include "tests/failing_allocation.h"

static const struct {
    const char *json;
    size_t count;
    int64_t total;
    const char *says; /* NULL: it is right */
} indexes[] = {
    { "{\"weight_map\":{\"a\":\"x\"}}", 1, SAFETENSORS_TOTAL_NONE, NULL },
    { " {\n\"metadata\" : { \"total_size\" : 12 } , \"weight_map\" : { \"b\" : \"x\" , \"a\":\"y\" } }\n", 2, 12,
      NULL },
    { "{\"weight_map\":{\"a\":\"x\"},\"metadata\":{\"total_size\":1.2e1,\"more\":{\"total_size\":3}}}", 1, 12, NULL },
    { "{\"metadata\":{\"total_size\":-1},\"weight_map\":{\"a\":\"x\"}}", 1, SAFETENSORS_TOTAL_ODD, NULL },
    { "{\"metadata\":{\"total_size\":1e300},\"weight_map\":{\"a\":\"x\"}}", 1, SAFETENSORS_TOTAL_ODD, NULL },
    { "{\"metadata\":{\"total_size\":null},\"weight_map\":{\"a\":\"x\"}}", 1, SAFETENSORS_TOTAL_ODD, NULL },
    { "{\"metadata\":{\"total_size\":[{}]},\"weight_map\":{\"a\":\"x\"}}", 1, SAFETENSORS_TOTAL_ODD, NULL },
    { "{\"metadata\":null,\"total_size\":3,\"weight_map\":{\"a\":\"x\"}}", 1, SAFETENSORS_TOTAL_NONE, NULL },
    { "{\"weight_map\":{\"a\\u0000b\":\"x\",\"a\":\"\xc3\xa9\"}}", 2, SAFETENSORS_TOTAL_NONE, NULL },
    { "", 0, 0, "at byte 0: expected '{'" },
    { "[]", 0, 0, "at byte 0: expected '{'" },
    { "{}", 0, 0, "no weight_map" },
    { "{\"weight_map\":{}}", 0, 0, "no weight_map" },
    { "{\"weight_map\":[]}", 0, 0, "at byte 14: expected '{'" },
    { "{\"weight_map\":{\"a\":\"x\"}", 0, 0, "this value does not end" },
    { "{\"weight_map\":{\"a\":\"x\"}}}", 0, 0, "only blanks" },
    { "{\"weight_map\":{\"a\":\"x\"} 1}", 0, 0, "',' or '}'" },
    { "{\"weight_map\":{\"a\":[\"x\"]}}", 0, 0, "weight_map may hold only strings" },
    { "{\"weight_map\":{\"a\":\"x\",\"a\":\"x\"}}", 0, 0, "key a of weight_map is repeated" },
    { "{\"weight_map\":{\"a\":\"x\"},\"weight_map\":{\"b\":\"x\"}}", 0, 0, "weight_map is repeated" },
    { "{\"weight_map\":{\"a\":\"x/y\"}}", 0, 0, "not the name of a file beside" },
    { "{\"weight_map\":{\"a\":\"/y\"}}", 0, 0, "not the name of a file beside" },
    { "{\"weight_map\":{\"a\":\"..\"}}", 0, 0, "not the name of a file beside" },
    { "{\"weight_map\":{\"a\":\"..\\/y\"}}", 0, 0, "not the name of a file beside" },
    { "{\"weight_map\":{\"a\":\"x\\u0000\"}}", 0, 0, "not the name of a file beside" },
    { "{\"weight_map\":{\"a\":\"\"}}", 0, 0, "not the name of a file beside" },
    { "{\"weight_map\":{\"a\":\"\xff\"}}", 0, 0, "not UTF-8" },
    { "{\"metadata\":{\"total_size\":01},\"weight_map\":{\"a\":\"x\"}}", 0, 0, "invalid index at byte" },
};

static void test_indexes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
        size_t n = strlen(indexes[i].json);
        char *exact = malloc(n ? n : 1); /* so that a byte read behind it is seen */
        struct safetensors_index index;
        struct error e = { 0 };
        int rc;

        memcpy(exact, indexes[i].json, n);
        rc = safetensors_index_parse("f", exact, n, &index, &e);
        if (rc != (indexes[i].says ? ERR_CORRUPT : OK) || (indexes[i].says && !strstr(e.message, indexes[i].says)))
            fail_msg("%s: %d %s", indexes[i].json, rc, e.message);
        if (rc == OK && (index.count != indexes[i].count || index.total_size != indexes[i].total))
            fail_msg("%s: %zu tensors, %lld", indexes[i].json, index.count, (long long)index.total_size);
        if (rc == OK) {
            assert_non_null(safetensors_index_find(&index, "a", 1));
            assert_null(safetensors_index_find(&index, "a", 0));
            assert_null(safetensors_index_find(&index, "c", 1));
        }
        safetensors_index_release(&index);
        free(exact);
    }
}

static void test_hostile_indexes(void **state)
{
    enum { N = 1 << 20 };
    static const char *const patterns[] = { "[", "{\"a\":", "\"", "{\"a\":[1,", "0,", "\\\"", "{}" };
    static const char *const starts[] = { "{\"weight_map\":{\"a\":", "{\"metadata\":{\"total_size\":", "{\"a\":" };
    char *json = malloc(N);
    struct safetensors_index index;
    struct error e = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns * 3; i++) {
        const char *pattern = patterns[i / 3], *start = starts[i % 3];

        memcpy(json, start, strlen(start));
        for (size_t at = strlen(start); at < N; at++)
            json[at] = pattern[(at - strlen(start)) % strlen(pattern)];
        assert_int_equal(safetensors_index_parse("f", json, N, &index, &e), ERR_CORRUPT);
    }
    free(json);
}

static void test_names(void **state)
{
    (void)state;
    assert_true(safetensors_is_index("a/model.safetensors.index.json"));
    assert_true(safetensors_is_index("diffusion_pytorch_model.safetensors.index.fp16.json"));
    assert_false(safetensors_is_index("model.safetensors"));
    assert_false(safetensors_is_index("pytorch_model.bin.index.json"));
    assert_false(safetensors_is_index("model.safetensors.index.json/model.safetensors"));
    assert_false(safetensors_is_index("model.safetensors.index"));
}

static void write_part(struct fixture *f, const char *name, const char *json, const char *data)
{
    char file[512];
    size_t n = strlen(json), bytes = strlen(data);

    put_le64(file, n);
    memcpy(file + 8, json, n);
    memcpy(file + 8 + n, data, bytes);
    fixture_write(f, name, file, 8 + n + bytes);
}

static void write_index(struct fixture *f, const char *json)
{
    fixture_write(f, "m.safetensors.index.json", json, strlen(json));
}

#define U8(name, begin, end, shape) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"
#define META "\"__metadata__\":{\"format\":\"pt\",\"step\":\"7\"}"

/* Three parts with five tensors, two of them empty, and an index that does not name the one part's `more`. */
static void write_parts(struct fixture *f)
{
    write_part(f, "1", "{" META "," U8("a", "0", "3", "3") "," U8("end", "3", "3", "0") "}", "abc");
    write_part(f, "2", "{" META "," U8("nothing", "0", "0", "0") "}", "");
    write_part(f, "3", "{" META "," U8("more", "0", "2", "2") "," U8("b", "2", "6", "4") "}", "xxdefg");
    write_index(
        f,
        "{\"metadata\":{\"total_size\":7},\"weight_map\":{\"a\":\"1\",\"b\":\"3\",\"end\":\"1\",\"nothing\":\"2\"}}");
}

static void test_reads_parts_as_one(void **state)
{
    static const struct {
        const char *name, *data;
        size_t part;
        uint64_t offset;
    } wanted[] = { { "a", "abc", 0, 0 }, { "end", "", 0, 3 }, { "nothing", "", 1, 0 }, { "b", "defg", 2, 2 } };
    struct fixture *f = *state;
    const struct safetensors_header *h;
    struct safetensors *s;
    struct error e = { 0 };

    write_parts(f);
    if (safetensors_open(&s, fixture_path(f, "m.safetensors.index.json"), &e) != OK)
        fail_msg("%s", e.message);
    unlink(fixture_path(f, "3")); /* all files are open */
    h = safetensors_contents(s);
    assert_int_equal(h->count, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct safetensors_tensor *t = &h->tensors[i];
        size_t n = strlen(wanted[i].data);
        uint64_t offset;
        char bytes[8];

        assert_string_equal(t->name, wanted[i].name);
        assert_int_equal(t->end - t->begin, n);
        assert_int_equal(safetensors_read(s, t, 0, bytes, n, &e), OK);
        assert_memory_equal(bytes, wanted[i].data, n);
        assert_int_equal(safetensors_read(s, t, 0, bytes, n + 1, &e), ERR_ARG);
        assert_int_equal(safetensors_part(s, t, &offset), wanted[i].part);
        assert_int_equal(offset, wanted[i].offset);
    }
    assert_int_equal(safetensors_parts(s), 3);
    assert_int_equal(h->pair_count, 2); /* of three parts, each once */
    assert_int_equal(safetensors_step(s, &e), 7);
    assert_true(safetensors_from_torch(s));
    safetensors_close(s);
}

static void count_problem(void *context, const struct error *e)
{
    assert_true(e->code < 0 && *e->message);
    ++*(int *)context;
}

static void test_damaged(void **state)
{
    struct fixture *f = *state;
    struct safetensors *s;
    struct error e = { 0 };
    char index[PATH_MAX];
    int problems = 0;

    write_parts(f);
    snprintf(index, sizeof index, "%s", fixture_path(f, "m.safetensors.index.json"));
    assert_int_equal(safetensors_open_damaged(&s, index, count_problem, &problems, &e), OK);
    assert_int_equal(problems, 1); /* `more` */
    safetensors_close(s);
    unlink(fixture_path(f, "2"));
    write_part(f, "1", "{" U8("b", "0", "3", "3") "}", "abc");
    problems = 0;
    assert_int_equal(safetensors_open_damaged(&s, index, count_problem, &problems, &e), OK);
    assert_int_equal(problems, 5); /* `more`; 2 is missing; b is in two parts; a and end are in none */
    assert_int_equal(safetensors_contents(s)->count, 1);
    safetensors_close(s);
    assert_int_equal(safetensors_open(&s, index, &e), ERR_IO);
    assert_true(e.system == ENOENT && !s);
    unlink(index);
    assert_int_equal(safetensors_open_damaged(&s, index, count_problem, &problems, &e), ERR_IO);
}

/* Each allocation fails once: an error, and nothing is lost, which the sanitizer sees. */
static void test_want_of_memory(void **state)
{
    struct fixture *f = *state;
    struct safetensors *s;
    struct error e = { 0 };
    char index[PATH_MAX];
    long n = 0;
    int rc;

    write_parts(f);
    snprintf(index, sizeof index, "%s", fixture_path(f, "m.safetensors.index.json"));
    do {
        atomic_store(&calls, 0);
        atomic_store(&fail_at, ++n);
        rc = safetensors_open(&s, index, &e);
        atomic_store(&fail_at, 0);
        if (rc != OK && (rc != ERR_NOMEM || e.code != rc || s))
            fail_msg("allocation %ld: %d %s", n, rc, e.message);
    } while (rc != OK);
    safetensors_close(s);
    assert_true(n > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_indexes),
        cmocka_unit_test(test_hostile_indexes),
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup_teardown(test_reads_parts_as_one, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damaged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_want_of_memory, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
