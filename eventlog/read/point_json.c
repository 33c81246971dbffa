#include "eventlog/read/point_json.h"

#include "base/bytes.h"

#include <string.h>

enum { DEPTH = 64 };

static void blank(struct point_json *j)
{
    while (j->next < j->end && memchr(" \t\r\n", *j->next, 4))
        j->next++;
}

/* Takes this character, with blanks around it: 1 if it is there. */
static int point_json_take(struct point_json *j, char c)
{
    blank(j);
    if (j->next == j->end || *j->next != c)
        return 0;
    j->next++;
    blank(j);
    return 1;
}

int point_json_begin(struct point_json *j, const char *line, size_t n)
{
    *j = (struct point_json){ line, line + n, 0 };
    return point_json_take(j, '{');
}

static int hex4(struct point_json *j, uint32_t *out)
{
    if (j->end - j->next < 4)
        return 0;
    *out = 0;
    for (int i = 0; i < 4; i++) {
        char c = *j->next++;
        const char *digits = "0123456789abcdef", *at = memchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c, 16);

        if (!at)
            return 0;
        *out = *out << 4 | (uint32_t)(at - digits);
    }
    return 1;
}

/* Behind the backslash. */
static int escape(struct point_json *j, struct buffer *b)
{
    static const char plain[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    const char *at;

    if (j->next == j->end)
        return 0;
    if (*j->next != 'u') {
        if (!(at = memchr(plain, *j->next, sizeof plain - 1)))
            return 0;
        j->next++;
        buffer_append_byte(b, means[at - plain]);
        return 1;
    }
    j->next++;
    if (!hex4(j, &c))
        return 0;
    if (c >= 0xd800 && c < 0xdc00) { /* the first half of a character above U+FFFF */
        if (j->end - j->next < 2 || j->next[0] != '\\' || j->next[1] != 'u')
            return 0;
        j->next += 2;
        if (!hex4(j, &low) || low < 0xdc00 || low > 0xdfff)
            return 0;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if ((c >= 0xdc00 && c <= 0xdfff) || !c) {
        return 0; /* a NUL would end the name */
    }
    buffer_append_utf8(b, c);
    return 1;
}

/* Reads a string into b; NULL: skips it. */
static int string(struct point_json *j, struct buffer *b)
{
    if (j->next == j->end || *j->next != '"')
        return 0;
    j->next++;
    while (j->next < j->end && *j->next != '"') {
        unsigned char c = (unsigned char)*j->next++;

        if (c == '\\' ? !escape(j, b) : c < 0x20)
            return 0;
        if (c != '\\')
            buffer_append_byte(b, c);
    }
    if (j->next == j->end)
        return 0;
    j->next++;
    return 1;
}

static int word(struct point_json *j, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(j->end - j->next) < n || memcmp(j->next, text, n) != 0)
        return 0;
    j->next += n;
    return 1;
}

static int number(struct point_json *j, struct buffer *b)
{
    const char *from = j->next;

    if (!word(j, "NaN") && !word(j, "Infinity") && !word(j, "-Infinity"))
        while (j->next < j->end && memchr("+-.0123456789eE", *j->next, 15))
            j->next++;
    buffer_append(b, from, (size_t)(j->next - from));
    return j->next > from;
}

/* Skips an object or an array: counts brackets and skips strings; the rest is not checked. */
static int nested(struct point_json *j, struct buffer *b)
{
    char open[DEPTH];
    int depth = 0;

    do {
        char c;

        if (j->next == j->end)
            return 0;
        c = *j->next;
        if (c == '"') {
            if (!string(j, b))
                return 0;
            continue;
        }
        j->next++;
        if (c == '{' || c == '[') {
            if (depth == DEPTH)
                return 0;
            open[depth++] = c;
        } else if ((c == '}' || c == ']') && open[--depth] != (c == '}' ? '{' : '[')) {
            return 0;
        }
    } while (depth);
    buffer_clear(b);
    return 1;
}

static int value(struct point_json *j, struct point_json_member *m)
{
    if (j->next == j->end)
        return 0;
    m->kind = *j->next == '"'                         ? POINT_JSON_STRING
              : memchr("-0123456789NI", *j->next, 13) ? POINT_JSON_NUMBER
                                                      : POINT_JSON_OTHER;
    if (m->kind == POINT_JSON_STRING)
        return string(j, &m->text);
    if (m->kind == POINT_JSON_NUMBER)
        return number(j, &m->text);
    if (*j->next == '{' || *j->next == '[')
        return nested(j, &m->text);
    return word(j, "true") || word(j, "false") || word(j, "null");
}

int point_json_next(struct point_json *j, struct point_json_member *m)
{
    buffer_clear(&m->key);
    buffer_clear(&m->text);
    if (point_json_take(j, '}'))
        return j->next == j->end ? 0 : -1;
    if (j->begun && !point_json_take(j, ','))
        return -1;
    j->begun = 1;
    blank(j);
    if (!string(j, &m->key) || !point_json_take(j, ':') || !value(j, m) || !buffer_ok(&m->key) || !buffer_ok(&m->text))
        return -1;
    return 1;
}
