/*
 * The text format of protocol buffers, as far as a CheckpointState can hold it, and all of it for what is skipped:
 *
 *   text     (name [":"] value [","|";"])*        "#" begins a comment up to the end of the line
 *   value    strings | number | word | "[" value ("," value)* "]" | "{" text "}" | "<" text ">"
 *   strings  one or more, in " or ', which join; C escapes; raw bytes of 0x80 and above
 *   name     word | "[" anything up to "]" "]" (an extension)
 */
#include "checkpoint/directory/state_file.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 100, NUMBER_MAX = 400 };

enum field { FIELD_OTHER, FIELD_NEWEST, FIELD_PATHS, FIELD_TIMESTAMPS, FIELD_PRESERVED };

static const struct {
    const char *name;
    enum field field;
} fields[] = {
    { "model_checkpoint_path", FIELD_NEWEST },
    { "all_model_checkpoint_paths", FIELD_PATHS },
    { "all_model_checkpoint_timestamps", FIELD_TIMESTAMPS },
    { "last_preserved_timestamp", FIELD_PRESERVED },
};

struct parser {
    const char *text;
    size_t n, at;
    struct state_file *out;
    size_t path_room, timestamp_room;
    struct buffer string; /* the last one read */
    struct error *e;
};

static int wrong(struct parser *p, const char *what)
{
    size_t line = 1, column = 1;

    for (size_t i = 0; i < p->at && i < p->n; i++) {
        column = p->text[i] == '\n' ? 1 : column + 1;
        line += p->text[i] == '\n';
    }
    return error_set(p->e, ERR_CORRUPT, "line %zu, column %zu: %s", line, column, what);
}

static int no_memory(struct parser *p)
{
    return error_memory(p->e, NULL, "for a state file of %zu bytes", p->n);
}

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

static int is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Letters, digits, and what numbers are made of. */
static int is_scalar(char c)
{
    return is_word(c) || c == '.' || c == '-' || c == '+';
}

/* The next character that is not blank or comment, or -1 at the end. */
static int peek(struct parser *p)
{
    while (p->at < p->n) {
        char c = p->text[p->at];

        if (c == '#') {
            while (p->at < p->n && p->text[p->at] != '\n')
                p->at++;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            p->at++;
        } else {
            return (unsigned char)c;
        }
    }
    return -1;
}

static int hex_value(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Up to `most` digits of the base; -1 when there is none. */
static long read_digits(struct parser *p, int base, int most)
{
    long v = -1;

    for (int i = 0; i < most && p->at < p->n; i++) {
        int digit = hex_value(p->text[p->at]);

        if (digit < 0 || digit >= base)
            break;
        v = (v < 0 ? 0 : v) * base + digit;
        p->at++;
    }
    return v;
}

/* After the backslash. */
static int read_escape(struct parser *p)
{
    static const char plain[] = "a\ab\bf\fn\nr\rt\tv\v\\\\\"\"''??"; /* letter, byte */
    char c;
    long v;

    if (p->at >= p->n)
        return wrong(p, "the string does not end");
    c = p->text[p->at];
    for (size_t i = 0; i + 1 < sizeof plain; i += 2)
        if (plain[i] == c) {
            p->at++;
            buffer_append_byte(&p->string, plain[i + 1]);
            return OK;
        }
    if (c >= '0' && c <= '7') {
        if ((v = read_digits(p, 8, 3)) > 0xff)
            return wrong(p, "an octal escape above \\377");
        buffer_append_byte(&p->string, (int)v);
        return OK;
    }
    p->at++;
    if (c == 'x' || c == 'X') {
        if ((v = read_digits(p, 16, 2)) < 0)
            return wrong(p, "an escape \\x without digits");
        buffer_append_byte(&p->string, (int)v);
        return OK;
    }
    if (c == 'u' || c == 'U') {
        size_t begin = p->at, digits = c == 'u' ? 4 : 8;

        v = read_digits(p, 16, (int)digits);
        if (p->at - begin != digits || v > 0x10ffff)
            return wrong(p, "an escape that is not a character");
        buffer_append_utf8(&p->string, (uint32_t)v);
        return OK;
    }
    return wrong(p, "an unknown escape");
}

/* One or more strings, joined, into p->string. */
static int read_strings(struct parser *p)
{
    int quote, rc;

    buffer_clear(&p->string);
    buffer_append(&p->string, "", 0);
    while ((quote = peek(p)) == '"' || quote == '\'') {
        for (p->at++;;) {
            size_t begin = p->at;

            while (p->at < p->n && p->text[p->at] != quote && p->text[p->at] != '\\' && p->text[p->at] != '\n')
                p->at++;
            buffer_append(&p->string, p->text + begin, p->at - begin);
            if (p->at >= p->n || p->text[p->at] == '\n')
                return wrong(p, "the string does not end");
            if (p->text[p->at++] == quote)
                break;
            if ((rc = read_escape(p)) != OK)
                return rc;
        }
    }
    return buffer_ok(&p->string) ? OK : no_memory(p);
}

/* A number or a word; blanks may follow a minus. */
static int read_scalar(struct parser *p, const char **text, size_t *length)
{
    size_t begin;

    if (peek(p) == '-' && p->at + 1 < p->n && !is_scalar(p->text[p->at + 1])) {
        p->at++;
        peek(p);
    }
    begin = p->at;
    while (p->at < p->n && is_scalar(p->text[p->at]))
        p->at++;
    *text = p->text + begin;
    *length = p->at - begin;
    return *length ? OK : wrong(p, "a value is missing");
}

static int read_name(struct parser *p, enum field *field)
{
    size_t begin = p->at;

    *field = FIELD_OTHER;
    if (peek(p) == '[') { /* an extension or the type of an Any */
        while (p->at < p->n && p->text[p->at] != ']')
            p->at++;
        if (p->at >= p->n)
            return wrong(p, "a name in brackets does not end");
        p->at++;
        return OK;
    }
    begin = p->at;
    while (p->at < p->n && is_word(p->text[p->at]))
        p->at++;
    if (p->at == begin)
        return wrong(p, "a field name is missing");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i].name) == p->at - begin && memcmp(fields[i].name, p->text + begin, p->at - begin) == 0)
            *field = fields[i].field;
    return OK;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static int take_path(struct parser *p, enum field field)
{
    struct state_file *s = p->out;
    char *copy;
    int quote = peek(p), rc;

    if (quote != '"' && quote != '\'')
        return wrong(p, "expected a path in quotes");
    if ((rc = read_strings(p)) != OK)
        return rc;
    if (memchr(buffer_text(&p->string), 0, p->string.length))
        return wrong(p, "a path with a zero byte");
    if (!(copy = strdup(buffer_text(&p->string))))
        return no_memory(p);
    if (field == FIELD_NEWEST) {
        free(s->newest);
        s->newest = *copy ? copy : NULL;
        if (!*copy)
            free(copy);
        return OK;
    }
    if (!ARRAY_ROOM(s->paths, p->path_room, s->count + 1)) {
        free(copy);
        return no_memory(p);
    }
    s->paths[s->count++] = copy;
    return OK;
}

static int take_time(struct parser *p, enum field field)
{
    struct state_file *s = p->out;
    int negative = peek(p) == '-', rc;
    char copy[NUMBER_MAX];
    const char *text;
    size_t length;
    double v;

    if ((rc = read_scalar(p, &text, &length)) != OK)
        return rc;
    if (*text == '-') {
        text++;
        length--;
    }
    if (length > 1 && (text[length - 1] == 'f' || text[length - 1] == 'F') && text[length - 2] != 'n')
        length--; /* 1.5f; but "inf" keeps its f */
    if (length >= sizeof copy)
        return wrong(p, "a number with too many digits");
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (!number_parse_double(copy, &v))
        return wrong(p, "expected a number");
    v = negative ? -v : v;
    if (field == FIELD_PRESERVED) {
        s->last_preserved = v;
        return OK;
    }
    if (!ARRAY_ROOM(s->timestamps, p->timestamp_room, s->timestamp_count + 1))
        return no_memory(p);
    s->timestamps[s->timestamp_count++] = v;
    return OK;
}

/* The value of an unknown field: everything up to where the next field could begin. Brackets are tracked in a stack of
 * their closing brackets, not by recursion. */
static int skip_value(struct parser *p)
{
    char closers[DEPTH_MAX];
    const char *text;
    size_t length, depth = 0;
    int rc, c, value_wanted = 1;

    do {
        c = peek(p);
        if (c < 0)
            return wrong(p, "the text ends inside a value");
        if (depth && c == closers[depth - 1]) {
            p->at++;
            depth--;
            value_wanted = 0;
        } else if (c == '{' || c == '<' || c == '[') {
            if (depth == DEPTH_MAX)
                return wrong(p, "values are nested too deep");
            closers[depth++] = c == '{' ? '}' : c == '<' ? '>' : ']';
            p->at++;
        } else if (c == '"' || c == '\'') {
            if ((rc = read_strings(p)) != OK)
                return rc;
            value_wanted = 0;
        } else if (is_scalar((char)c)) {
            if ((rc = read_scalar(p, &text, &length)) != OK)
                return rc;
            value_wanted = 0;
        } else if (depth && (c == ':' || c == ',' || c == ';' || c == '/')) {
            p->at++;
        } else {
            return wrong(p, "a value is missing");
        }
    } while (depth || value_wanted);
    return OK;
}

static int take_value(struct parser *p, enum field field)
{
    return field == FIELD_NEWEST || field == FIELD_PATHS ? take_path(p, field)
           : field != FIELD_OTHER                        ? take_time(p, field)
                                                         : skip_value(p);
}

/* The values between "[" and "]" of a repeated field. */
static int take_list(struct parser *p, enum field field)
{
    int rc, c;

    p->at++;
    if (peek(p) == ']') {
        p->at++;
        return OK;
    }
    for (;;) {
        if ((rc = take_value(p, field)) != OK)
            return rc;
        if ((c = peek(p)) != ',' && c != ']')
            return wrong(p, "expected , or ] in a list");
        p->at++;
        if (c == ']')
            return OK;
    }
}

static int take_field(struct parser *p)
{
    enum field field;
    int rc, c, colon;

    if ((rc = read_name(p, &field)) != OK)
        return rc;
    colon = peek(p) == ':';
    p->at += (size_t)colon;
    c = peek(p);
    if (!colon && c != '{' && c != '<')
        return wrong(p, "a : is missing after the field name");
    rc = c == '[' && (field == FIELD_PATHS || field == FIELD_TIMESTAMPS) ? take_list(p, field) : take_value(p, field);
    if (rc == OK && ((c = peek(p)) == ',' || c == ';'))
        p->at++;
    return rc;
}

int state_file_parse(const char *text, size_t n, struct state_file *out, struct error *e)
{
    struct parser p = { .text = text, .n = n, .out = out, .e = e };
    int rc = OK;

    memset(out, 0, sizeof *out);
    while (rc == OK && peek(&p) >= 0)
        rc = take_field(&p);
    buffer_release(&p.string);
    if (rc != OK)
        state_file_release(out);
    return rc;
}

void state_file_release(struct state_file *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->paths[i]);
    free(s->paths);
    free(s->timestamps);
    free(s->newest);
    memset(s, 0, sizeof *s);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void append_quoted(struct buffer *out, const char *text)
{
    buffer_append_byte(out, '"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '\n' || *c == '\r' || *c == '\t')
            buffer_format(out, "\\%c", *c == '\n' ? 'n' : *c == '\r' ? 'r' : 't');
        else if (*c == '"' || *c == '\'' || *c == '\\')
            buffer_format(out, "\\%c", *c);
        else if (*c < 0x20 || *c >= 0x7f)
            buffer_format(out, "\\%03o", *c);
        else
            buffer_append_byte(out, *c);
    }
    buffer_append_byte(out, '"');
}

static void append_number(struct buffer *out, const char *name, double v)
{
    char text[NUMBER_TEXT_MAX];

    number_text(v, text);
    buffer_format(out, "%s: %s\n", name, text);
}

void state_file_encode(const struct state_file *s, struct buffer *out)
{
    if (s->newest) {
        buffer_append_text(out, "model_checkpoint_path: ");
        append_quoted(out, s->newest);
        buffer_append_byte(out, '\n');
    }
    for (size_t i = 0; i < s->count; i++) {
        buffer_append_text(out, "all_model_checkpoint_paths: ");
        append_quoted(out, s->paths[i]);
        buffer_append_byte(out, '\n');
    }
    for (size_t i = 0; i < s->timestamp_count; i++)
        append_number(out, "all_model_checkpoint_timestamps", s->timestamps[i]);
    if (s->last_preserved != 0)
        append_number(out, "last_preserved_timestamp", s->last_preserved);
}
