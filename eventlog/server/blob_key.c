#include "eventlog/server/blob_key.h"

#include "base/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/* JSON's short escapes: the letter after the backslash, and what it stands for */
static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void append_base64(struct buffer *out, const char *bytes, size_t n)
{
    char *p = buffer_reserve(out, n / 3 * 4 + 4);
    const uint8_t *b = (const uint8_t *)bytes;
    size_t at = 0;

    if (!p)
        return;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i < 3 ? n - i : 3;
        uint32_t v = (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) | (left > 2 ? b[i + 2] : 0);

        for (size_t k = 0; k <= left; k++)
            p[at++] = digits[v >> (18 - 6 * k) & 63];
    }
    out->length += at;
    p[at] = 0;
}

static void append_json(struct buffer *out, struct span text)
{
    buffer_append_byte(out, '"');
    for (size_t i = 0; i < text.length; i++) {
        int c = text.bytes[i];
        const char *meaning = c && c != '/' ? strchr(meanings, c) : NULL;

        if (meaning)
            buffer_format(out, "\\%c", letters[meaning - meanings]);
        else if (c < 0x20)
            buffer_format(out, "\\u%04x", (unsigned)c);
        else
            buffer_append_byte(out, c);
    }
    buffer_append_byte(out, '"');
}

void blob_key_begin(struct buffer *json, const struct blob_key *key)
{
    buffer_append_byte(json, '[');
    append_json(json, key->experiment);
    buffer_append_byte(json, ',');
    append_json(json, key->run);
    buffer_append_byte(json, ',');
    append_json(json, key->tag);
}

void blob_key_append_of(struct buffer *out, const struct buffer *json, int64_t step, uint64_t index)
{
    struct buffer whole = BUFFER_EMPTY;

    buffer_append(&whole, json->data, json->length);
    buffer_format(&whole, ",%" PRId64 ",%" PRIu64 "]", step, index);
    if (!json->failed && buffer_ok(&whole))
        append_base64(out, whole.data, whole.length);
    else
        out->failed = 1;
    buffer_release(&whole);
}

void blob_key_append(struct buffer *out, const struct blob_key *key)
{
    struct buffer json = BUFFER_EMPTY;

    blob_key_begin(&json, key);
    blob_key_append_of(out, &json, key->step, key->index);
    buffer_release(&json);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int value_of_digit(int c)
{
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* The bytes of base64 text into out, which has room for n. 1 and how many, or 0: not base64. */
static int read_base64(const uint8_t *text, size_t n, char *out, size_t *count)
{
    uint32_t bits = 0, have = 0;

    *count = 0;
    for (size_t padding = 0; padding < 2 && n && text[n - 1] == '='; padding++)
        n--;
    if (n % 4 == 1)
        return 0;
    for (size_t i = 0; i < n; i++) {
        int v = value_of_digit(text[i]);

        if (v < 0)
            return 0;
        bits = (bits << 6 | (uint32_t)v) & 0xffff;
        if ((have += 6) >= 8) {
            have -= 8;
            out[(*count)++] = (char)(bits >> have);
        }
    }
    return !(bits & ((1u << have) - 1));
}

/* What is left of the JSON text. */
struct json_text {
    const char *at, *end;
    char *out; /* where texts without their escapes are written */
};

static void skip_blanks(struct json_text *j)
{
    while (j->at < j->end && strchr(" \t\n\r", *j->at) && *j->at)
        j->at++;
}

/* 1: the character is next, between blanks, and is passed. */
static int pass(struct json_text *j, char c)
{
    skip_blanks(j);
    if (j->at == j->end || *j->at != c)
        return 0;
    j->at++;
    skip_blanks(j);
    return 1;
}

/* Four hexadecimal digits. */
static int take_hex(struct json_text *j, uint32_t *out)
{
    *out = 0;
    if (j->end - j->at < 4)
        return 0;
    for (int i = 0; i < 4; i++) {
        int c = *j->at++, digit = c >= '0' && c <= '9'                     ? c - '0'
                                  : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                           : -1;

        if (digit < 0)
            return 0;
        *out = *out << 4 | (uint32_t)digit;
    }
    return 1;
}

static void put_utf8(struct json_text *j, uint32_t c)
{
    if (c < 0x80) {
        *j->out++ = (char)c;
    } else if (c < 0x800) {
        *j->out++ = (char)(0xc0 | c >> 6);
        *j->out++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *j->out++ = (char)(0xe0 | c >> 12);
        *j->out++ = (char)(0x80 | (c >> 6 & 63));
        *j->out++ = (char)(0x80 | (c & 63));
    } else {
        *j->out++ = (char)(0xf0 | c >> 18);
        *j->out++ = (char)(0x80 | (c >> 12 & 63));
        *j->out++ = (char)(0x80 | (c >> 6 & 63));
        *j->out++ = (char)(0x80 | (c & 63));
    }
}

/* What follows a backslash. */
static int take_escape(struct json_text *j)
{
    uint32_t c, low;
    const char *letter = j->at < j->end && *j->at ? strchr(letters, *j->at) : NULL;

    if (letter) {
        j->at++;
        *j->out++ = meanings[letter - letters];
        return 1;
    }
    if (j->at == j->end || *j->at++ != 'u' || !take_hex(j, &c) || (c >= 0xdc00 && c < 0xe000))
        return 0;
    if (c >= 0xd800 && c < 0xdc00) {
        if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
            return 0;
        j->at += 2;
        if (!take_hex(j, &low) || low < 0xdc00 || low >= 0xe000)
            return 0;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(j, c);
    return 1;
}

static int take_text(struct json_text *j, struct span *out)
{
    char *from = j->out;

    if (j->at == j->end || *j->at++ != '"')
        return 0;
    while (j->at < j->end && *j->at != '"') {
        char c = *j->at++;

        if ((unsigned char)c < 0x20 || (c == '\\' && !take_escape(j)))
            return 0;
        if (c != '\\')
            *j->out++ = c;
    }
    if (j->at++ == j->end)
        return 0;
    *out = (struct span){ (const uint8_t *)from, (size_t)(j->out - from) };
    return utf8_valid(from, out->length, NULL);
}

/* Decimal digits as JSON has them, with a sign if one is allowed. */
static int take_number(struct json_text *j, int with_sign, uint64_t *out)
{
    int negative = with_sign && j->at < j->end && *j->at == '-';
    uint64_t most = !with_sign ? UINT64_MAX : negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    const char *from = j->at += negative;

    *out = 0;
    for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++) {
        uint64_t digit = (uint64_t)(*j->at - '0');

        if (*out > (most - digit) / 10)
            return 0;
        *out = *out * 10 + digit;
    }
    if (j->at == from || (*from == '0' && j->at - from > 1))
        return 0;
    if (negative)
        *out = 0 - *out;
    return 1;
}

int blob_key_read(struct blob_key *key, const uint8_t *text, size_t n, struct error *e)
{
    struct json_text j;
    uint64_t step;
    size_t count;

    memset(key, 0, sizeof *key);
    if (!(key->texts = malloc(2 * n + 1)))
        return error_memory(e, NULL, "for a blob key");
    if (!read_base64(text, n, key->texts, &count)) {
        blob_key_release(key);
        return error_set(e, ERR_ARG, "failed to parse blob key: it is not base64");
    }
    j = (struct json_text){ key->texts, key->texts + count, key->texts + n };
    if (!pass(&j, '[') || !take_text(&j, &key->experiment) || !pass(&j, ',') || !take_text(&j, &key->run) ||
        !pass(&j, ',') || !take_text(&j, &key->tag) || !pass(&j, ',') || !take_number(&j, 1, &step) || !pass(&j, ',') ||
        !take_number(&j, 0, &key->index) || !pass(&j, ']') || j.at != j.end) {
        blob_key_release(key);
        return error_set(e, ERR_ARG, "failed to parse blob key: it is not [experiment, run, tag, step, index]");
    }
    key->step = (int64_t)step;
    return OK;
}

void blob_key_release(struct blob_key *key)
{
    free(key->texts);
    key->texts = NULL;
}
