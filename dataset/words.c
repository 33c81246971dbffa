#include "dataset/words.h"

#include <stdint.h>
#include <string.h>

enum kind { KIND_BLANK, KIND_LETTER, KIND_MARK, KIND_JOINER };

/* A character: its bytes; 0: not UTF-8. */
struct character {
    size_t bytes;
    enum kind kind;
};

static int is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static enum kind kind_of(uint32_t code)
{
    if (code == 0xa0 || (code >= 0x2000 && code <= 0x200f) || (code >= 0x80 && code < 0xa0))
        return KIND_BLANK;
    return (code > 0xa0 && code <= 0xbf) || (code >= 0x2010 && code <= 0x206f) ? KIND_MARK : KIND_LETTER;
}

/* Decodes UTF-8 as RFC 3629 has it: the shortest form only, no surrogates, at most U+10FFFF. */
static struct character decode(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const struct character bad = { 0, KIND_BLANK };
    const size_t bytes = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    uint32_t code = s[0] & (0xffu >> (bytes + 1));

    if (s[0] < 0x80) {
        const enum kind kind = s[0] <= ' ' || s[0] == 0x7f   ? KIND_BLANK
                               : is_letter(s[0])             ? KIND_LETTER
                               : s[0] == '\'' || s[0] == '-' ? KIND_JOINER
                                                             : KIND_MARK;
        return (struct character){ s[0] != 0, kind };
    }
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < bytes)
        return bad;
    for (size_t i = 1; i < bytes; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return bad;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return bad;
    return (struct character){ bytes, kind_of(code) };
}

static int refuse(const char *text, size_t at, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "byte %zu: %02x is not text in UTF-8; convert the file (iconv), or move it away",
                     at, (unsigned)(unsigned char)text[at]);
}

static void make_lower(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] - 'A' + 'a');
}

/* The byte after a word that begins with a letter at `at`. A bad byte ends it, and is found next. */
static size_t word_end(const char *text, size_t n, size_t at)
{
    const unsigned char *s = (const unsigned char *)text;

    while (at < n) {
        const struct character c = decode(s + at, n - at);

        if (c.bytes && c.kind == KIND_LETTER)
            at += c.bytes;
        else if (c.bytes && c.kind == KIND_JOINER && at + 1 < n && decode(s + at + 1, n - at - 1).bytes &&
                 decode(s + at + 1, n - at - 1).kind == KIND_LETTER)
            at++;
        else
            break;
    }
    return at;
}

int words_next(char *text, size_t n, size_t *at, struct word *out, struct error *e)
{
    static const size_t unknown = sizeof WORDS_UNKNOWN - 1;
    struct character c = { 0, KIND_BLANK };
    size_t end;

    for (; *at < n; *at += c.bytes) {
        c = decode((const unsigned char *)text + *at, n - *at);
        if (!c.bytes)
            return refuse(text, *at, e);
        if (c.kind != KIND_BLANK)
            break;
    }
    if (*at >= n)
        return 0;
    end = c.kind == KIND_LETTER ? word_end(text, n, *at) : *at + c.bytes;
    if (n - *at >= unknown && !memcmp(text + *at, WORDS_UNKNOWN, unknown))
        end = *at + unknown;
    make_lower(text + *at, end - *at);
    *out = (struct word){ text + *at, end - *at };
    *at = end;
    return 1;
}

size_t words_skip_lines(const char *text, size_t n, size_t at, int lines)
{
    for (; lines > 0 && at < n; lines--) {
        const char *end = memchr(text + at, '\n', n - at);

        at = end ? (size_t)(end - text) + 1 : n;
    }
    return at;
}
