/* Sizes of pictures from their first bytes: a table of headers, and every cut of each. */
#include "eventlog/write/kinds/image_header.h"

#include "tests/check.h"
#include "tests/eventlog/hex.h"

#include <string.h>

static const struct {
    const char *name, *hex;
    enum image_kind kind;
    uint32_t width, height;
    size_t need; /* bytes without which it is unknown */
} cases[] = {
    { "png", "89504e470d0a1a0a 0000000d 49484452 00000102 00000003 0802000000", IMAGE_PNG, 258, 3, 24 },
    { "png, width 0", "89504e470d0a1a0a 0000000d 49484452 00000000 00000003", IMAGE_UNKNOWN, 0, 0, 0 },
    { "png, width over 2^31", "89504e470d0a1a0a 0000000d 49484452 80000000 00000003", IMAGE_UNKNOWN, 0, 0, 0 },
    { "png, no header", "89504e470d0a1a0a 0000000d 49444154 00000001 00000003", IMAGE_UNKNOWN, 0, 0, 0 },
    { "gif 87", "474946383761 0201 0300", IMAGE_GIF, 258, 3, 10 },
    { "gif 89", "474946383961 0300 0201 f0", IMAGE_GIF, 3, 258, 10 },
    { "gif 90", "474946383062 0300 0201 f0", IMAGE_UNKNOWN, 0, 0, 0 },
    { "bmp", "424d 000000000000000000000000 28000000 05000000 07000000", IMAGE_BMP, 5, 7, 26 },
    { "bmp from the top", "424d 000000000000000000000000 28000000 05000000 f9ffffff", IMAGE_BMP, 5, 7, 26 },
    { "bmp of OS/2", "424d 000000000000000000000000 0c000000 0500 0700 0100 1800", IMAGE_BMP, 5, 7, 26 },
    { "bmp, least height", "424d 000000000000000000000000 28000000 05000000 00000080", IMAGE_UNKNOWN, 0, 0, 0 },
    { "jpeg", "ffd8 ffe00004aabb ffff c4 0003 00 ffc0000b08 0102 0003 01011100 ff", IMAGE_JPEG, 3, 258, 27 },
    { "jpeg, progressive", "ffd8 ffc2000b08 0001 0002 01011100", IMAGE_JPEG, 2, 1, 15 },
    { "jpeg, picture first", "ffd8 ffda000b08 0001 0002 01011100", IMAGE_UNKNOWN, 0, 0, 0 },
    { "jpeg, length 1", "ffd8 ffe0000100 ffc2000b08 0001 0002", IMAGE_UNKNOWN, 0, 0, 0 },
    { "jpeg, frame too short", "ffd8 ffc0000608 0001 0002", IMAGE_UNKNOWN, 0, 0, 0 },
    { "webp", "52494646 24000000 57454250 56503820 1800000030010000", IMAGE_UNKNOWN, 0, 0, 0 },
    { "nothing", "", IMAGE_UNKNOWN, 0, 0, 0 },
};

static void test_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[100];
        size_t n = hex_bytes(cases[i].hex, bytes);
        uint32_t width, height;

        if (image_header_read(bytes, n, &width, &height) != cases[i].kind || width != cases[i].width ||
            height != cases[i].height)
            fail_msg("%s: %u x %u", cases[i].name, width, height);
        for (size_t cut = 0; cut < n; cut++) {
            uint8_t *some = malloc(cut ? cut : 1);
            enum image_kind kind;

            memcpy(some, bytes, cut);
            kind = image_header_read(some, cut, &width, &height);
            free(some);
            if (kind != (cut >= cases[i].need ? cases[i].kind : IMAGE_UNKNOWN))
                fail_msg("%s cut at %zu: kind %d", cases[i].name, cut, kind);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_headers) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
