/* The sentence on who reads what. */
#include "trainer/advice.h"

#include "tests/check.h"

static void test_texts(void **state)
{
    const struct dataset d = { .files = "a.bin, b.bin", .count = 200, .element = ELEMENT_UINT8 };
    const struct dataset words = { .files = "a.txt", .count = 20, .element = ELEMENT_INT32 };
    char text[200], small[10];

    (void)state;
    assert_string_equal(
        share_text(&(struct shard){ SHARD_FILES, 3, 1, SHARD_MODULO }, &d, "rank 1 on host b", text, sizeof text),
        "rank 1 on host b reads a.bin, b.bin: 200 images");
    assert_string_equal(
        share_text(&(struct shard){ SHARD_RECORDS, 3, 0, SHARD_MODULO }, &d, "rank 0", text, sizeof text),
        "each of 3 workers reads a.bin, b.bin: 200 images, of which it takes its part of each epoch");
    assert_string_equal(share_text(&(struct shard){ SHARD_NONE, 2, 0, SHARD_MODULO }, &d, "rank 0", text, sizeof text),
                        "each of 2 workers reads a.bin, b.bin: 200 images, all of them in an order of its own");
    assert_string_equal(
        share_text(&(struct shard){ SHARD_FILES, 2, 0, SHARD_MODULO }, &words, "rank 0", text, sizeof text),
        "rank 0 reads a.txt: 20 words");
    assert_string_equal(
        share_text(&(struct shard){ SHARD_NONE, 2, 0, SHARD_MODULO }, &d, "rank 0", small, sizeof small), "each of 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_texts) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
