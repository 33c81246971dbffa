#include "base/text.h"

#include "base/bytes.h"

#include <stdint.h>
#include <string.h>

struct range {
    uint32_t first, last;
};

/* Combining marks and other characters without a width of their own, by blocks. */
static const struct range narrow[] = {
    { 0x0300, 0x036f },   { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a }, { 0x064b, 0x065f },
    { 0x06d6, 0x06dc },   { 0x0900, 0x0902 }, { 0x093c, 0x093c }, { 0x0941, 0x0948 }, { 0x0e34, 0x0e3a },
    { 0x0e47, 0x0e4e },   { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x200b, 0x200f }, { 0x202a, 0x202e },
    { 0x2060, 0x2064 },   { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
    { 0xe0100, 0xe01ef },
};
static const struct range wide[] = {
    { 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x23e9, 0x23ec },   { 0x25fd, 0x25fe },   { 0x2614, 0x2615 },
    { 0x2648, 0x2653 },   { 0x26aa, 0x26ab },   { 0x26bd, 0x26be },   { 0x2705, 0x2705 },   { 0x270a, 0x270b },
    { 0x2728, 0x2728 },   { 0x274c, 0x274c },   { 0x2753, 0x2755 },   { 0x2795, 0x2797 },   { 0x2b1b, 0x2b1c },
    { 0x2e80, 0x303e },   { 0x3041, 0x33ff },   { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },
    { 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
    { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f7e0, 0x1f7eb }, { 0x1f900, 0x1f9ff },
    { 0x1fa70, 0x1faff }, { 0x20000, 0x3fffd },
};

static int within(const struct range *ranges, size_t count, uint32_t c)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (c > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && c >= ranges[low].first;
}

static size_t character_columns(uint32_t c)
{
    if (c < 0x300)
        return 1;
    if (within(narrow, sizeof narrow / sizeof *narrow, c))
        return 0;
    return within(wide, sizeof wide / sizeof *wide, c) ? 2 : 1;
}

/* The length of the next character, at least 1, and its columns. */
static size_t next_character(const char *text, size_t n, size_t *columns)
{
    uint32_t c = 0;
    int length = utf8_character(text, n, &c);

    *columns = length ? character_columns(c) : 1;
    return length ? (size_t)length : 1;
}

size_t text_columns(const char *text, size_t n)
{
    size_t columns = 0, one;

    for (size_t i = 0; i < n; columns += one)
        i += next_character(text + i, n - i, &one);
    return columns;
}

void text_append_safe(struct buffer *out, const char *text, size_t n)
{
    while (n) {
        uint32_t c = 0;
        int length = utf8_character(text, n, &c);

        if (!length || c < 0x20 || (c >= 0x7f && c < 0xa0)) {
            length = length ? length : 1;
            for (int i = 0; i < length; i++)
                buffer_format(out, "\\x%02x", (unsigned char)text[i]);
        } else {
            buffer_append(out, text, (size_t)length);
        }
        text += length;
        n -= (size_t)length;
    }
}

/* How many bytes of the text's beginning fit in `columns`. */
static size_t beginning(const char *text, size_t n, size_t columns)
{
    size_t i = 0, used = 0;

    while (i < n) {
        size_t one, length = next_character(text + i, n - i, &one);

        if (used + one > columns)
            break;
        used += one;
        i += length;
    }
    return i;
}

/* Where the longest end of the text begins that fits in `columns`. */
static size_t end(const char *text, size_t n, size_t columns)
{
    size_t left = text_columns(text, n), i = 0;

    while (i < n && left > columns) {
        size_t one, length = next_character(text + i, n - i, &one);

        left -= one;
        i += length;
    }
    return i;
}

void text_append_cut(struct buffer *out, const char *text, size_t n, size_t columns, int ascii)
{
    const char *mark = ascii ? ".." : "\xe2\x80\xa6";
    size_t mark_columns = ascii ? 2 : 1, rest, head;
    struct buffer safe = BUFFER_EMPTY;

    text_append_safe(&safe, text, n);
    if (text_columns(buffer_text(&safe), safe.length) <= columns) {
        buffer_append(out, buffer_text(&safe), safe.length);
    } else if (columns <= mark_columns) {
        buffer_append(out, buffer_text(&safe), beginning(buffer_text(&safe), safe.length, columns));
    } else {
        rest = columns - mark_columns;
        head = beginning(safe.data, safe.length, (rest + 1) / 2);
        buffer_append(out, safe.data, head);
        buffer_append_text(out, mark);
        rest -= text_columns(safe.data, head);
        head = end(safe.data, safe.length, rest);
        buffer_append(out, safe.data + head, safe.length - head);
    }
    out->failed |= safe.failed;
    buffer_release(&safe);
}

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

static void next_line(struct buffer *out, size_t indent)
{
    buffer_append_byte(out, '\n');
    while (indent--)
        buffer_append_byte(out, ' ');
}

void text_append_wrapped(struct buffer *out, const char *text, size_t at, size_t indent, size_t columns)
{
    size_t most = columns ? columns : SIZE_MAX;
    int begun = at > indent; /* the line has text after its indent */

    while (*text) {
        size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " ");
        size_t taken = text_columns(text + blanks, word);

        if (begun && (at >= most || taken + blanks > most - at)) {
            next_line(out, indent);
            at = indent;
            begun = 0;
        } else {
            buffer_append(out, text, blanks);
            at += blanks;
        }
        text += blanks;
        for (size_t n; word; word -= n, text += n) {
            n = next_character(text, word, &taken);
            if (at + taken > most && begun) {
                next_line(out, indent);
                at = indent;
            }
            buffer_append(out, text, n);
            at += taken;
            begun = 1;
        }
    }
}

/* Compares parts without '/'. */
static int part_order(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const char *x = a, *y = b, *x_end = a + a_length, *y_end = b + b_length;

    while (x < x_end && y < y_end) {
        size_t n = digits(x), m = digits(y), zeros;
        int order;

        if (!n || !m) {
            if (*x != *y)
                return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
            x++;
            y++;
            continue;
        }
        zeros = strspn(x, "0");
        x += zeros < n ? zeros : n - 1;
        n -= zeros < n ? zeros : n - 1;
        zeros = strspn(y, "0");
        y += zeros < m ? zeros : m - 1;
        m -= zeros < m ? zeros : m - 1;
        if (n != m)
            return n < m ? -1 : 1;
        if ((order = memcmp(x, y, n)) != 0)
            return order;
        x += n;
        y += n;
    }
    return x < x_end ? 1 : y < y_end ? -1 : bytes_compare(a, a_length, b, b_length);
}

int text_natural_order(const char *a, const char *b)
{
    for (;;) {
        size_t n = strcspn(a, "/"), m = strcspn(b, "/");
        int order = part_order(a, n, b, m);

        if (order || !a[n] || !b[m])
            return order ? order : (a[n] != '\0') - (b[m] != '\0');
        a += n + 1;
        b += m + 1;
    }
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t text_distance(const char *a, const char *b)
{
    size_t row[TEXT_DISTANCE_MOST + 1], n = strlen(a), m = strlen(b);

    if (n > TEXT_DISTANCE_MOST || m > TEXT_DISTANCE_MOST)
        return TEXT_DISTANCE_MOST;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row[j];

            row[j] = smaller(smaller(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[m];
}

size_t text_stem(const char *text, size_t n, const char *end)
{
    const size_t k = strlen(end);

    return n > k && !memcmp(text + n - k, end, k) ? n - k : 0;
}
