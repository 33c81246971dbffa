#include "eventlog/write/kinds/image_header.h"

#include "base/bytes.h"

#include <string.h>

/*
 * Where the size is:
 *   PNG   signature of 8, length 13, "IHDR", width and height as 4 bytes, big end first
 *   GIF   "GIF87a" or "GIF89a", width and height as 2 bytes, little end first
 *   BMP   "BM", 12 bytes, length of the header that follows (12: 2-byte sizes, else 4-byte), width, height (may be
 *         negative: rows from the top)
 *   JPEG  0xff 0xd8, then segments 0xff marker length(2, big end first, itself included) ...; a start-of-frame marker
 *         (c0..cf but c4, c8, cc) has precision, height, width
 */
static int read_png(const uint8_t *p, size_t n, uint32_t *width, uint32_t *height)
{
    if (n < 24 || memcmp(p, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", 16) != 0)
        return 0;
    *width = get_be32(p + 16);
    *height = get_be32(p + 20);
    return 1;
}

static int read_gif(const uint8_t *p, size_t n, uint32_t *width, uint32_t *height)
{
    if (n < 10 || (memcmp(p, "GIF87a", 6) != 0 && memcmp(p, "GIF89a", 6) != 0))
        return 0;
    *width = get_le16(p + 6);
    *height = get_le16(p + 8);
    return 1;
}

static int read_bmp(const uint8_t *p, size_t n, uint32_t *width, uint32_t *height)
{
    uint32_t header;

    if (n < 26 || memcmp(p, "BM", 2) != 0)
        return 0;
    header = get_le32(p + 14);
    *width = header == 12 ? get_le16(p + 18) : get_le32(p + 18);
    *height = header == 12 ? get_le16(p + 20) : get_le32(p + 22);
    if (header != 12 && *height > INT32_MAX)
        *height = 0 - *height;
    return header == 12 || header >= 40;
}

static int read_jpeg(const uint8_t *p, size_t n, uint32_t *width, uint32_t *height)
{
    size_t at = 2;

    if (n < 4 || p[0] != 0xff || p[1] != 0xd8)
        return 0;
    while (n - at >= 4) {
        uint8_t marker = p[at + 1];
        size_t length = (size_t)p[at + 2] << 8 | p[at + 3];

        if (p[at] != 0xff)
            return 0;
        if (marker == 0xff) { /* fill */
            at++;
            continue;
        }
        if (length < 2 || length > n - at - 2)
            return 0;
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
            if (length < 7)
                return 0;
            *height = (uint32_t)p[at + 5] << 8 | p[at + 6];
            *width = (uint32_t)p[at + 7] << 8 | p[at + 8];
            return 1;
        }
        if (marker == 0xda || marker == 0xd9) /* the picture itself, or the end, without a frame before */
            return 0;
        at += 2 + length;
    }
    return 0;
}

enum image_kind image_header_read(const void *bytes, size_t n, uint32_t *width, uint32_t *height)
{
    enum image_kind kind = IMAGE_UNKNOWN;

    *width = *height = 0;
    if (read_png(bytes, n, width, height))
        kind = IMAGE_PNG;
    else if (read_gif(bytes, n, width, height))
        kind = IMAGE_GIF;
    else if (read_bmp(bytes, n, width, height))
        kind = IMAGE_BMP;
    else if (read_jpeg(bytes, n, width, height))
        kind = IMAGE_JPEG;
    if (kind == IMAGE_UNKNOWN || !*width || !*height || *width > INT32_MAX || *height > INT32_MAX) {
        *width = *height = 0;
        return IMAGE_UNKNOWN;
    }
    return kind;
}
