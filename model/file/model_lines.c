#include "model/file/model_lines.h"

#include "base/array.h"
#include "model/file/model_description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of one UTF-8 character at s, of at most n; 0: it is none. */
static size_t character(const unsigned char *s, size_t n)
{
    const size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

    if (!length || length > n)
        return 0;
    for (size_t k = 1; k < length; k++)
        if ((s[k] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

static int check_bytes(const char *line, size_t n, int number, struct error *e)
{
    const unsigned char *s = (const unsigned char *)line;

    if (n > MODEL_FILE_LINE_MAX)
        return error_set(e, ERR_ARG, "line %d is longer than %d bytes", number, MODEL_FILE_LINE_MAX);
    for (size_t k = 0, size; k < n; k += size) {
        if (!(size = character(s + k, n - k)))
            return error_set(e, ERR_ARG, "line %d: byte %zu (0x%02x) is not UTF-8", number, k + 1, s[k]);
        if ((s[k] < ' ' && s[k] != '\t') || s[k] == 0x7f)
            return error_set(e, ERR_ARG, "line %d: byte %zu (0x%02x) is a control character", number, k + 1, s[k]);
    }
    return OK;
}

/* Appends the words of a line to the statement at `at`; returns its new end. *more: it is continued. */
static size_t append_words(char *to, size_t begin, size_t at, const char *line, size_t n, int *more)
{
    const char *comment = memchr(line, '#', n);

    n = comment ? (size_t)(comment - line) : n;
    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    *more = n > 0 && line[n - 1] == '\\' && !comment;
    n -= (size_t)*more;
    for (size_t k = 0; k < n; k++) {
        const int blank = line[k] == ' ' || line[k] == '\t';

        if (!blank && (k == 0 || line[k - 1] == ' ' || line[k - 1] == '\t') && at > begin)
            to[at++] = ' ';
        if (!blank)
            to[at++] = line[k];
    }
    return at;
}

static int add(struct model_lines *l, size_t begin, size_t end, int number, struct error *e)
{
    l->text[end] = '\0';
    if (end - begin > MODEL_FILE_LINE_MAX)
        return error_set(e, ERR_ARG, "line %d is longer than %d bytes with the lines that continue it", number,
                         MODEL_FILE_LINE_MAX);
    if (!ARRAY_ROOM(l->items, l->room, l->count + 1))
        return error_memory(e, NULL, "for its lines");
    l->items[l->count++] = (struct model_line){ begin, number };
    return OK;
}

int model_lines_read(struct model_lines *out, const char *text, size_t length, struct error *e)
{
    size_t at = 0, begin = 0;
    int number = 0, first = 0, more = 0, rc = OK;

    *out = (struct model_lines){ 0 };
    if (length > MODEL_FILE_BYTES_MAX)
        return error_set(e, ERR_ARG, "it has %zu bytes, more than a model file may have (%d)", length,
                         MODEL_FILE_BYTES_MAX);
    if (!(out->text = malloc(2 * length + 2))) /* each line adds at most a blank and a NUL */
        return error_memory(e, NULL, "for its lines");
    if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        length -= 3;
    }
    while (length > 0 && rc == OK) {
        const char *end = memchr(text, '\n', length);
        const size_t whole = end ? (size_t)(end - text) + 1 : length;
        size_t n = end ? whole - 1 : length;

        n -= n > 0 && text[n - 1] == '\r';
        number++;
        if ((rc = check_bytes(text, n, number, e)) < 0)
            break;
        if (!more) {
            begin = at;
            first = number;
        }
        at = append_words(out->text, begin, at, text, n, &more);
        text += whole;
        length -= whole;
        if (!more && at > begin)
            rc = add(out, begin, at++, first, e);
    }
    if (rc == OK && more)
        rc = error_set(e, ERR_ARG, "line %d: '\\' continues the last line, but no line follows", number);
    return rc;
}

void model_lines_release(struct model_lines *l)
{
    free(l->text);
    free(l->items);
    *l = (struct model_lines){ 0 };
}

const char *model_lines_text(const struct model_lines *l, size_t k)
{
    return l->text + l->items[k].text;
}
