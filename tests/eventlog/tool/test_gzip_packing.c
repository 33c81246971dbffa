/* gzip_packing.h: zlib reads back what was added, whatever the pieces; equal bytes give an equal file. */
#include "eventlog/tool/gzip_packing.h"

#include "base/buffer.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void keep(void *context, const void *bytes, size_t n)
{
    buffer_append(context, bytes, n);
}

static struct buffer packed(const char *bytes, size_t n, size_t piece, int level)
{
    struct buffer out = BUFFER_EMPTY;
    struct gzip_packing *p;

    assert_int_equal(gzip_packing_open(&p, level, keep, &out, NULL), OK);
    for (size_t at = 0; at < n; at += piece)
        gzip_packing_add(p, bytes + at, n - at < piece ? n - at : piece);
    assert_int_equal(gzip_packing_finish(p, NULL), OK);
    gzip_packing_close(p);
    return out;
}

/* The members of a gzip file one after the other, as gzip(1) and Python's gzip read them. Returns how many there are. */
static int unpacked(const struct buffer *file, char *out, size_t n)
{
    z_stream z = { .next_in = (Bytef *)file->data, .avail_in = (uInt)file->length, .next_out = (Bytef *)out };
    int members = 0, rc = Z_OK;

    z.avail_out = (uInt)n + 1;
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    do {
        uLong before = z.total_out;

        rc = inflate(&z, Z_FINISH);
        assert_int_equal(rc, Z_STREAM_END);
        members++;
        n -= z.total_out - before;
        if (z.avail_in)
            assert_int_equal(inflateReset(&z), Z_OK); /* total_out, too, is 0 again */
    } while (z.avail_in);
    inflateEnd(&z);
    assert_int_equal(n, 0);
    return members;
}

static char *text_of(size_t n)
{
    char *text = malloc(n + 1);
    uint32_t state = 7;

    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        text[i] = (char)(state >> 31 ? "0123456789,.\nab"[state >> 24 & 7] : 'x');
    }
    return text;
}

static void reads_back(void **state)
{
    static const size_t sizes[] = { 0, 1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20, 12345678 };
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *text = text_of(sizes[i]), *back = malloc(sizes[i] + 1);
        struct buffer a = packed(text, sizes[i], 262144, 1), b = packed(text, sizes[i], 99991, 1);
        int members = unpacked(&a, back, sizes[i]);

        assert_memory_equal(back, text, sizes[i]);
        assert_int_equal(members, sizes[i] ? (sizes[i] + (1 << 20) - 1) >> 20 : 1);
        assert_int_equal(a.length, b.length);
        assert_memory_equal(a.data, b.data, a.length);
        buffer_release(&a);
        buffer_release(&b);
        free(back);
        free(text);
    }
}

static void levels(void **state)
{
    size_t n = 3 << 20, before = SIZE_MAX;
    char *text = text_of(n), *back = malloc(n + 1);
    (void)state;

    for (int level = 1; level <= GZIP_PACKING_LEVEL_MAX; level += 8) {
        struct buffer a = packed(text, n, 1000003, level);

        unpacked(&a, back, n);
        assert_memory_equal(back, text, n);
        assert_true(a.length < before);
        before = a.length;
        buffer_release(&a);
    }
    free(back);
    free(text);
}

static void is_left_at_any_time(void **state)
{
    char *text = text_of(20 << 20);
    (void)state;

    for (size_t n = 0; n <= 20 << 20; n += 3 << 20) {
        struct buffer out = BUFFER_EMPTY;
        struct gzip_packing *p;

        assert_int_equal(gzip_packing_open(&p, 1, keep, &out, NULL), OK);
        gzip_packing_add(p, text, n);
        gzip_packing_close(p);
        buffer_release(&out);
    }
    free(text);
    gzip_packing_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back),
        cmocka_unit_test(levels),
        cmocka_unit_test(is_left_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
