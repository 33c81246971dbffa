/* What fits a model and what does not, the sentences about it, and what is left of them without memory. */
#include "checkpoint/tensor_match.h"

#include "tests/check.h"
#include "tests/failing_allocation.h"

#include <stdio.h>

static const int64_t small[] = { 3, 64 }, first[] = { 4, 64 }, last[] = { 3, 65 };
static const int64_t many[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, tail[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 8 };

static const struct {
    int rank;
    const int64_t *shape;
    int type, entry_rank; /* type -1: there is no entry */
    const int64_t *entry_shape;
    enum tensor_flaw flaw;
    const char *complaint;
} cases[] = {
    { 2, small, TENSOR_FLOAT, 2, small, TENSOR_FITS, "" },
    { 2, small, TENSOR_DOUBLE, 2, small, TENSOR_FITS, "" },
    { 2, small, TENSOR_HALF, 2, small, TENSOR_FITS, "" },
    { 2, small, TENSOR_BFLOAT16, 2, small, TENSOR_FITS, "" },
    { 0, NULL, TENSOR_FLOAT, 0, NULL, TENSOR_FITS, "" },
    { 9, many, TENSOR_FLOAT, 9, many, TENSOR_FITS, "" },
    { 2, small, -1, 0, NULL, TENSOR_MISSING, "v is missing" },
    { 2, small, TENSOR_INT32, 2, small, TENSOR_WRONG_TYPE, "v has type int32" },
    { 2, small, TENSOR_STRING, 2, small, TENSOR_WRONG_TYPE, "v has type string" },
    { 2, small, 24, 2, small, TENSOR_WRONG_TYPE, "v has type float8_e5m2" },
    { 2, small, 0, 2, small, TENSOR_WRONG_TYPE, "v has type unknown" }, /* F4 and such of safetensors */
    { 2, small, TENSOR_FLOAT, 2, first, TENSOR_WRONG_SHAPE, "v has shape [4,64], wanted [3,64]" },
    { 2, small, TENSOR_FLOAT, 2, last, TENSOR_WRONG_SHAPE, "v has shape [3,65], wanted [3,64]" },
    { 1, small, TENSOR_FLOAT, 2, small, TENSOR_WRONG_SHAPE, "v has shape [3,64], wanted [3]" },
    { 2, small, TENSOR_FLOAT, 1, small, TENSOR_WRONG_SHAPE, "v has shape [3], wanted [3,64]" },
    { 0, NULL, TENSOR_FLOAT, 1, small, TENSOR_WRONG_SHAPE, "v has shape [3], wanted []" },
    { 2, small, TENSOR_INT32, 2, first, TENSOR_WRONG_SHAPE, "v has shape [4,64], wanted [3,64]" },
    { 9, many, TENSOR_FLOAT, 9, tail, TENSOR_WRONG_SHAPE,
      "v has shape [1,2,3,4,5,6,7,8,...], wanted [1,2,3,4,5,6,7,8,...]" },
    { 8, many, TENSOR_FLOAT, 9, many, TENSOR_WRONG_SHAPE,
      "v has shape [1,2,3,4,5,6,7,8,...], wanted [1,2,3,4,5,6,7,8]" },
};
enum { CASES = sizeof cases / sizeof *cases };

/* The cases as wanted tensors, each with its entry; names of "v", or of the case's number. */
static void set_up_cases(struct tensor_match *items, struct tensor_entry *entries, char (*names)[8])
{
    for (size_t i = 0; i < CASES; i++) {
        entries[i] = (struct tensor_entry){
            .name = "of the file", .type = cases[i].type, .rank = cases[i].entry_rank, .shape = cases[i].entry_shape
        };
        items[i] = (struct tensor_match){ .name = "v",
                                          .rank = cases[i].rank,
                                          .shape = cases[i].shape,
                                          .entry = cases[i].type < 0 ? NULL : &entries[i],
                                          .flaw = TENSOR_MISSING };
        if (names) {
            snprintf(names[i], sizeof *names, "%zu", i);
            items[i].name = names[i];
        }
    }
}

static void test_each(void **state)
{
    struct tensor_entry entries[CASES];
    struct tensor_match items[CASES];

    (void)state;
    set_up_cases(items, entries, NULL);
    for (size_t i = 0; i < CASES; i++) {
        struct buffer text = BUFFER_EMPTY;

        assert_int_equal(tensor_match(&items[i], 1), cases[i].flaw != TENSOR_FITS);
        assert_int_equal(items[i].flaw, cases[i].flaw);
        tensor_match_complain(&items[i], 1, "|", &text);
        assert_string_equal(buffer_text(&text), cases[i].complaint);
        buffer_release(&text);
    }
}

/* Separators stand between complaints alone, wherever what fits lies, and behind what is in the buffer already. */
static void test_together(void **state)
{
    struct buffer text = BUFFER_EMPTY, wanted = BUFFER_EMPTY;
    struct tensor_entry entries[CASES];
    struct tensor_match items[CASES];
    char names[CASES][8];
    size_t wrong = 0;

    (void)state;
    set_up_cases(items, entries, names);
    buffer_append_text(&text, "here: ");
    buffer_append_text(&wanted, "here: ");
    for (size_t i = 0; i < CASES; i++)
        if (cases[i].flaw != TENSOR_FITS)
            buffer_format(&wanted, "%s%zu%s", wrong++ ? " and\n" : "", i, cases[i].complaint + 1);
    assert_int_equal(tensor_match(items, CASES), wrong);
    tensor_match_complain(items, CASES, " and\n", &text);
    assert_string_equal(buffer_text(&text), buffer_text(&wanted));
    buffer_release(&text);
    buffer_release(&wanted);
    assert_int_equal(tensor_match(NULL, 0), 0);
    tensor_match_complain(NULL, 0, "; ", &text);
    assert_int_equal(text.length, 0);
}

/* Without memory the verdict stands, and of the sentences a beginning. */
static void test_no_memory(void **state)
{
    struct buffer whole = BUFFER_EMPTY;
    struct tensor_entry entries[CASES];
    struct tensor_match items[CASES];
    size_t wrong;
    int ok = 0;

    (void)state;
    set_up_cases(items, entries, NULL);
    wrong = tensor_match(items, CASES);
    tensor_match_complain(items, CASES, "; ", &whole);
    assert_true(buffer_ok(&whole));
    for (long n = 1; !ok; n++) {
        struct buffer text = BUFFER_EMPTY;

        calls = 0;
        fail_at = n;
        assert_int_equal(tensor_match(items, CASES), wrong);
        tensor_match_complain(items, CASES, "; ", &text);
        fail_at = 0;
        ok = buffer_ok(&text);
        assert_true(ok == (calls < n) && n < 20);
        assert_true(ok ? text.length == whole.length : text.length < whole.length);
        assert_memory_equal(buffer_text(&text), buffer_text(&whole), text.length + (size_t)ok);
        buffer_release(&text);
    }
    buffer_release(&whole);
}

/* PyTorch's order of dimensions: told from all tensors together, named in its own order, and brought into ours. */
static void test_torch(void **state)
{
    static const int64_t kernel[4] = { 1, 2, 3, 2 }, theirs[4] = { 2, 3, 1, 2 }, square[2] = { 2, 2 },
                         wide[2] = { 2, 3 };
    static const int64_t one[1] = { 5 };
    const struct tensor_entry entries[] = {
        { .type = TENSOR_FLOAT, .rank = 4, .shape = theirs, .elements = 12 },
        { .type = TENSOR_FLOAT, .rank = 2, .shape = square, .elements = 4 },
        { .type = TENSOR_FLOAT, .rank = 1, .shape = one, .elements = 5 },
        { .type = TENSOR_FLOAT, .rank = 2, .shape = wide, .elements = 6 },
    };
    struct tensor_match items[] = {
        { .name = "kernel", .rank = 4, .shape = kernel, .entry = &entries[0] },
        { .name = "square", .rank = 2, .shape = square, .entry = &entries[1] },
        { .name = "one", .rank = 1, .shape = one, .entry = &entries[2] },
        { .name = "wide", .rank = 2, .shape = wide, .entry = &entries[3] },
    };
    float from[12], to[12];
    struct buffer text = BUFFER_EMPTY;

    (void)state;
    assert_int_equal(tensor_match_torch(items, 3, 0), 1); /* the kernel decides */
    assert_int_equal(tensor_match(items, 3), 0);
    for (int i = 0; i < 12; i++)
        from[i] = (float)i; /* (out, in, height, width) = (2, 3, 1, 2) */
    tensor_match_values(&items[0], from, to);
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < 3; i++)
            for (int o = 0; o < 2; o++)
                assert_true(to[(w * 3 + i) * 2 + o] == from[(o * 3 + i) * 2 + w]);
    tensor_match_values(&items[1], from, to);
    assert_true(to[0] == 0 && to[1] == 2 && to[2] == 1 && to[3] == 3);
    assert_int_equal(tensor_match_torch(&items[1], 2, 0), 0); /* nothing decides but what is usual */
    assert_int_equal(tensor_match_torch(&items[1], 2, 1), 1);
    assert_int_equal(tensor_match_torch(&items[3], 1, 1), 0); /* it fits as it is */
    items[3].torch = 1;
    assert_int_equal(tensor_match(&items[3], 1), 1);
    tensor_match_complain(&items[3], 1, "", &text);
    assert_string_equal(buffer_text(&text), "wide has shape [2,3], wanted [3,2]");
    buffer_release(&text);
}

/* A matrix whose inputs are an image: 2 x 3 pixels of 2 channels, which PyTorch flattens channel by channel. */
static void test_torch_image(void **state)
{
    enum { PIXELS = 6, CHANNELS = 2, OUTPUTS = 3, ALL = PIXELS * CHANNELS * OUTPUTS };
    static const int64_t ours[2] = { PIXELS * CHANNELS, OUTPUTS }, theirs[2] = { OUTPUTS, PIXELS * CHANNELS };
    const struct tensor_entry entries[] = {
        { .type = TENSOR_FLOAT, .rank = 2, .shape = theirs, .elements = ALL },
        { .type = TENSOR_FLOAT, .rank = 2, .shape = ours, .elements = ALL },
    };
    struct tensor_match item = { .rank = 2, .shape = ours, .entry = &entries[0], .pixels = PIXELS };
    float from[ALL], to[ALL];

    (void)state;
    for (int i = 0; i < ALL; i++)
        from[i] = (float)i;
    assert_int_equal(tensor_match_torch(&item, 1, 0), 1);
    tensor_match_values(&item, from, to);
    for (int p = 0; p < PIXELS; p++)
        for (int c = 0; c < CHANNELS; c++)
            for (int o = 0; o < OUTPUTS; o++)
                assert_true(to[(p * CHANNELS + c) * OUTPUTS + o] == from[(o * CHANNELS + c) * PIXELS + p]);
    item.entry = &entries[1]; /* in our order nothing moves */
    assert_int_equal(tensor_match_torch(&item, 1, 1), 0);
    tensor_match_values(&item, from, to);
    assert_memory_equal(from, to, sizeof to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each),        cmocka_unit_test(test_together),  cmocka_unit_test(test_torch),
        cmocka_unit_test(test_torch_image), cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
