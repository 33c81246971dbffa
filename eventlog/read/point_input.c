#include "eventlog/read/point_input.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- point json -------------------------------------------------------------------------------------------------- */

/*
 * Walks the members of a JSON object on one line. Pure; for point_input.c.
 */

enum point_json_kind { POINT_JSON_NUMBER, POINT_JSON_STRING, POINT_JSON_OTHER };

struct point_json_member {
    struct buffer key, text;   /* unescaped; text: of a string, or the number as written */
    enum point_json_kind kind; /* OTHER: true, false, null, an object or an array, all skipped */
};

struct point_json {
    const char *next, *end;
    int begun;
};

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

/* 1 if the line is an object, else 0. */
static int point_json_begin(struct point_json *j, const char *line, size_t n)
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

/* 1: the next member is in *m, whose buffers the caller owns; 0: the object ended, with nothing after it; -1: not JSON,
 * or out of memory, in which case buffer_ok() of key or text is 0. NaN, Infinity and -Infinity count as numbers. */
static int point_json_next(struct point_json *j, struct point_json_member *m)
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

/* ---- point input ------------------------------------------------------------------------------------------------- */

enum { ROW_MOST = 16 << 20, COLUMNS_MOST = 100000 };
/* The meaning of a column or member; in wide rows TAG and above mean a series. */
enum { RUN, NAME, STEP, WALL_TIME, VALUE, SERIES };

struct column {
    int kind;
    char *tag; /* of a series */
};

struct point_input {
    enum point_input_format format;
    const char *tag;
    struct column *columns; /* of CSV, after the header */
    size_t count;
    int lost, is_long, tabs; /* separated by tabs, with backslash escapes */
    struct buffer row;       /* CSV: lines so far, while a quoted field is open */
    int open;
    struct buffer fields; /* of a row, each followed by a NUL */
    size_t *starts, starts_capacity;
    struct point_json_member member;
    struct buffer run, name; /* of a JSON object */
    uint64_t passed_over;
};

int point_input_new(struct point_input **out, enum point_input_format format, const char *tag, struct error *e)
{
    struct point_input *p = *out = calloc(1, sizeof *p);

    if (!p)
        return error_memory(e, NULL, "for a reader of points");
    p->format = format;
    p->tag = tag;
    return OK;
}

void point_input_free(struct point_input *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++)
        free(p->columns[i].tag);
    free(p->columns);
    free(p->starts);
    buffer_release(&p->row);
    buffer_release(&p->fields);
    buffer_release(&p->member.key);
    buffer_release(&p->member.text);
    buffer_release(&p->run);
    buffer_release(&p->name);
    free(p);
}

int point_input_lost(const struct point_input *p)
{
    return p->lost;
}

uint64_t point_input_passed_over(const struct point_input *p)
{
    return p->passed_over;
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

/* Decimal, or one of the words for NaN and infinity. */
static int parse_number(const char *text, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {
        { "nan", NAN },      { "NaN", NAN },        { "inf", INFINITY },        { "-inf", -INFINITY },
        { "Inf", INFINITY }, { "-Inf", -INFINITY }, { "+Inf", INFINITY },       { "Infinity", INFINITY },
        { "-nan", NAN },     { "+inf", INFINITY },  { "-Infinity", -INFINITY },
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].word, text)) {
            *out = words[i].value;
            return 1;
        }
    return !text[strspn(text, "+-.0123456789eE")] && number_parse_double(text, out);
}

/* A whole number; pandas writes "10.0" where a column has gaps. */
static int parse_step(const char *text, int64_t *out)
{
    double v;

    if (number_parse_int(text, out))
        return 1;
    if (!parse_number(text, &v) || v != floor(v) || !(fabs(v) < 9007199254740992.0))
        return 0;
    *out = (int64_t)v;
    return 1;
}

static int bad(struct error *e, const char *what, const char *text)
{
    return error_set(e, ERR_CORRUPT, "'%.60s' is not a %s", text, what);
}

/* ---- CSV ------------------------------------------------------------------------------------------------------- */

/* Starts another field at the end of the fields so far. */
static int begin_field(struct point_input *p, size_t *count, struct error *e)
{
    if (*count == p->starts_capacity) {
        size_t more = p->starts_capacity ? p->starts_capacity * 2 : 16, *bigger;

        if (more > COLUMNS_MOST * 2)
            return error_set(e, ERR_CORRUPT, "more than %d columns", COLUMNS_MOST);
        if (!(bigger = realloc(p->starts, more * sizeof *bigger)))
            return error_memory(e, NULL, "for %zu columns", more);
        p->starts = bigger;
        p->starts_capacity = more;
    }
    p->starts[(*count)++] = p->fields.length;
    return OK;
}

/* As split(), for a row separated by tabs: \t, \n, \r and \\ in fields, no quotes. */
static int split_tabs(struct point_input *p, const char *row, size_t n, size_t *count, struct error *e)
{
    static const char letters[] = "tnr\\", means[] = "\t\n\r\\";
    int rc = begin_field(p, count, e);

    for (size_t i = 0; rc == OK && i < n; i++) {
        const char *letter = row[i] == '\\' && i + 1 < n && row[i + 1] ? strchr(letters, row[i + 1]) : NULL;

        if (letter) {
            buffer_append_byte(&p->fields, means[letter - letters]);
            i++;
        } else if (row[i] == '\t') {
            buffer_append_byte(&p->fields, 0);
            rc = begin_field(p, count, e);
        } else {
            buffer_append_byte(&p->fields, (unsigned char)row[i]);
        }
    }
    buffer_append_byte(&p->fields, 0);
    return rc;
}

/* Splits a row into *count fields, each followed by a NUL, and notes where they start. ERR_CORRUPT: text after a
 * closing quote. */
static int split(struct point_input *p, const char *row, size_t n, size_t *count, struct error *e)
{
    const char *at = row, *end = row + n;
    int rc = OK;

    *count = 0;
    buffer_clear(&p->fields);
    if (p->tabs && (rc = split_tabs(p, row, n, count, e)) != OK)
        return rc;
    while (!p->tabs) {
        if ((rc = begin_field(p, count, e)) != OK)
            return rc;
        if (at < end && *at == '"') {
            for (at++; at < end && (*at != '"' || (at + 1 < end && at[1] == '"')); at++) {
                at += *at == '"';
                buffer_append_byte(&p->fields, (unsigned char)*at);
            }
            at++; /* there is a closing quote, or the row would not be complete */
            if (at < end && *at != ',')
                return error_set(e, ERR_CORRUPT, "text after the quotes of column %zu", *count);
        } else {
            const char *stop = memchr(at, ',', (size_t)(end - at));

            buffer_append(&p->fields, at, (size_t)((stop ? stop : end) - at));
            at = stop ? stop : end;
        }
        buffer_append_byte(&p->fields, 0);
        if (at >= end)
            break;
        at++;
    }
    return buffer_ok(&p->fields) ? OK : error_memory(e, NULL, "for a row of %zu bytes", n);
}

static const char *field(const struct point_input *p, size_t i)
{
    return p->fields.data + p->starts[i];
}

/* The same for a number, without the blanks that people put after commas. */
static const char *number_field(struct point_input *p, size_t i)
{
    char *from = p->fields.data + p->starts[i], *end;

    from += strspn(from, " ");
    for (end = from + strlen(from); end > from && end[-1] == ' ';)
        *--end = '\0';
    return from;
}

static int column_kind(const char *name, int tensorboard)
{
    static const char *const names[] = { "run", "tag", "step", "wall_time", "value" };

    for (int i = RUN; i <= VALUE; i++)
        if (!strcmp(name, names[i]))
            return i;
    if (tensorboard)
        return !strcmp(name, "Step") ? STEP : !strcmp(name, "Wall time") ? WALL_TIME : VALUE;
    return SERIES;
}

static int header(struct point_input *p, const char *row, size_t n, struct error *e)
{
    static const char download[] = "Wall time,Step,Value";
    int tensorboard = n == sizeof download - 1 && !memcmp(row, download, n), has[SERIES + 1] = { 0 };
    size_t count;
    int rc = split(p, row, n, &count, e);

    p->lost = 1;
    if (rc != OK)
        return rc;
    if (!(p->columns = calloc(count, sizeof *p->columns)))
        return error_memory(e, NULL, "for %zu columns", count);
    for (size_t i = 0; i < count; i++) {
        int kind = column_kind(field(p, i), tensorboard);

        if (kind < SERIES && has[kind])
            return error_set(e, ERR_CORRUPT, "two columns are called '%s'", field(p, i));
        has[kind] = 1;
        p->columns[i].kind = kind;
    }
    p->is_long = (has[NAME] || p->tag) && has[VALUE];
    for (p->count = 0; p->count < count; p->count++) {
        struct column *c = &p->columns[p->count];
        const char *name = field(p, p->count);

        /* A wide file may well have a series called "value". */
        if (!p->is_long && (c->kind == NAME || c->kind == VALUE))
            c->kind = SERIES;
        if (p->is_long && c->kind == SERIES)
            continue; /* skipped */
        if (c->kind == SERIES && column_kind(!strncmp(name, "tag:", 4) ? name + 4 : "", 0) != SERIES)
            name += 4;
        has[SERIES] |= c->kind == SERIES;
        if (c->kind == SERIES && !(c->tag = strdup(name)))
            return error_memory(e, NULL, "for %zu columns", count);
    }
    if (!has[STEP] || (!p->is_long && !has[SERIES]))
        return error_set(e, ERR_CORRUPT, "the header has no column 'step'%s",
                         has[STEP] ? " with columns of tags beside it, nor 'tag' and 'value'" : "");
    p->lost = 0;
    return OK;
}

static int row(struct point_input *p, const char *text, size_t n, point_input_visit *visit, void *context,
               struct error *e)
{
    struct point_input_point point = { .tag = p->tag };
    size_t count;
    int rc = split(p, text, n, &count, e);

    if (rc != OK)
        return rc;
    if (count != p->count)
        return error_set(e, ERR_CORRUPT, "%zu columns, but the header has %zu", count, p->count);
    for (size_t i = 0; i < count; i++) {
        int kind = p->columns[i].kind;
        const char *f = kind == RUN || kind == NAME ? field(p, i) : number_field(p, i);

        switch (kind) {
        case RUN: point.run = f; break;
        case NAME: point.tag = f; break;
        case STEP:
            if (!parse_step(f, &point.step))
                return bad(e, "step", f);
            break;
        case WALL_TIME:
            point.has_wall_time = *f != 0;
            if (*f && !parse_number(f, &point.wall_time))
                return bad(e, "wall time", f);
            break;
        case VALUE:
            if (!parse_number(f, &point.value))
                return bad(e, "number", f);
            break;
        default: break;
        }
    }
    if (p->is_long)
        return visit(context, &point, e);
    for (size_t i = 0; i < count && rc == OK; i++) {
        const char *f = number_field(p, i);

        if (p->columns[i].kind != SERIES || !*f)
            continue;
        point.tag = p->columns[i].tag;
        rc = parse_number(f, &point.value) ? visit(context, &point, e) : bad(e, "number", f);
    }
    return rc;
}

/* Whether a quoted field is open at the end of these bytes. */
static int quote_open(const char *text, size_t n)
{
    int open = 0, start = 1;

    for (size_t i = 0; i < n; i++) {
        if (open) {
            if (text[i] == '"' && i + 1 < n && text[i + 1] == '"')
                i++;
            else if (text[i] == '"')
                open = 0;
        } else if (text[i] == '"' && start) {
            open = 1;
        }
        start = !open && text[i] == ',';
    }
    return open;
}

/* The header's separator is the one of the two that comes first, as after "run". */
static int tab_first(const char *line, size_t n)
{
    size_t i = 0;

    while (i < n && line[i] != ',' && line[i] != '\t')
        i++;
    return i < n && line[i] == '\t';
}

static int csv_line(struct point_input *p, const char *line, size_t n, point_input_visit *visit, void *context,
                    struct error *e)
{
    int rc;

    if (p->lost)
        return error_set(e, ERR_CORRUPT, "no header before it");
    if (!p->columns && !p->open)
        p->tabs = tab_first(line, n);
    if (p->open || (!p->tabs && quote_open(line, n))) { /* a field continues on the next line */
        if (p->open)
            buffer_append_byte(&p->row, '\n');
        buffer_append(&p->row, line, n);
        if (!buffer_ok(&p->row) || p->row.length > ROW_MOST) {
            const int memory = buffer_ok(&p->row);

            buffer_clear(&p->row);
            p->open = 0;
            return memory ? error_set(e, ERR_CORRUPT, "a row of more than %d bytes: is a quote not closed?", ROW_MOST)
                          : error_memory(e, NULL, "for a row of several lines");
        }
        if ((p->open = quote_open(p->row.data, p->row.length)))
            return OK;
        line = p->row.data;
        n = p->row.length;
    }
    if (n && line[n - 1] == '\r')
        n--;
    rc = !n ? OK : p->columns ? row(p, line, n, visit, context, e) : header(p, line, n, e);
    buffer_clear(&p->row);
    return rc;
}

/* ---- JSON lines ------------------------------------------------------------------------------------------------ */

static int member_kind(const char *key)
{
    return !strcmp(key, "type") ? SERIES + 1 : column_kind(key, 0);
}

/* Reads the members that apply to all points of the object. given: which of RUN to VALUE, and SERIES + 1 for "type", it
 * has. */
static int object(struct point_input *p, const char *line, size_t n, struct point_input_point *point,
                  int given[SERIES + 2], struct error *e)
{
    struct point_json_member *m = &p->member;
    struct point_json j;
    int rc = point_json_begin(&j, line, n) ? 1 : -1;

    while (rc == 1 && (rc = point_json_next(&j, m)) == 1) {
        const char *text = buffer_text(&m->text);
        int kind = member_kind(buffer_text(&m->key));

        given[kind] = 1;
        if (kind == STEP && !parse_step(text, &point->step))
            return bad(e, "step", text);
        if (kind == WALL_TIME && m->kind != POINT_JSON_OTHER) { /* null: none */
            point->has_wall_time = 1;
            if (!parse_number(text, &point->wall_time))
                return bad(e, "wall time", text);
        }
        if ((kind == RUN || kind == NAME) && m->kind == POINT_JSON_STRING) {
            struct buffer *b = kind == RUN ? &p->run : &p->name;

            buffer_clear(b);
            buffer_append(b, text, m->text.length);
        } else if (kind == RUN || kind == NAME) {
            return error_set(e, ERR_CORRUPT, "\"%s\" is not a string", buffer_text(&m->key));
        }
    }
    if (rc < 0 && !(buffer_ok(&m->key) && buffer_ok(&m->text)))
        return error_memory(e, NULL, "for the name and value of a member");
    if (rc < 0)
        return error_set(e, ERR_CORRUPT, "not a JSON object at column %zu", (size_t)(j.next - line) + 1);
    return OK;
}

/* Visits the members that are numbers: all of a wide object, or "value". After object() there is memory for each. */
static int members(struct point_input *p, const char *line, size_t n, struct point_input_point *point, int is_long,
                   point_input_visit *visit, void *context, size_t *visited, struct error *e)
{
    struct point_json_member *m = &p->member;
    struct point_json j;
    int rc = OK;

    point_json_begin(&j, line, n);
    while (rc == OK && point_json_next(&j, m) == 1) {
        int kind = member_kind(buffer_text(&m->key)), number;

        if (is_long ? kind != VALUE : kind != SERIES && kind != VALUE)
            continue;
        number = m->kind != POINT_JSON_OTHER && parse_number(buffer_text(&m->text), &point->value);
        if (!is_long && m->kind == POINT_JSON_STRING && number && isfinite(point->value))
            number = 0; /* "1" is a text, "NaN" a number */
        if (!number && (is_long || m->kind == POINT_JSON_NUMBER))
            return bad(e, "number", buffer_text(&m->text));
        if (!number)
            continue;
        if (!is_long)
            point->tag = buffer_text(&m->key);
        rc = visit(context, point, e);
        (*visited)++;
    }
    return rc;
}

static int json_line(struct point_input *p, const char *line, size_t n, point_input_visit *visit, void *context,
                     struct error *e)
{
    struct point_input_point point = { .tag = NULL };
    int given[SERIES + 2] = { 0 }, is_long, rc;
    size_t visited = 0;

    while (n && memchr(" \t\r", line[n - 1], 3))
        n--;
    if (!n || (n == 1 && (*line == '[' || *line == ']')) || (n == 2 && !memcmp(line, "[]", 2)))
        return OK;
    n -= line[n - 1] == ',';
    if ((rc = object(p, line, n, &point, given, e)) != OK)
        return rc;
    if (given[SERIES + 1] && !given[VALUE]) {
        p->passed_over++;
        return OK;
    }
    is_long = given[NAME] || (p->tag && given[VALUE]);
    if (!given[STEP] || (is_long && !given[VALUE]))
        return error_set(e, ERR_CORRUPT, "no \"%s\" in the object", given[STEP] ? "value" : "step");
    if (!buffer_ok(&p->run) || !buffer_ok(&p->name))
        return error_memory(e, NULL, "for a name");
    point.run = given[RUN] ? buffer_text(&p->run) : NULL;
    point.tag = given[NAME] ? buffer_text(&p->name) : p->tag;
    rc = members(p, line, n, &point, is_long, visit, context, &visited, e);
    if (rc == OK && !visited)
        p->passed_over++;
    return rc;
}

int point_input_line(struct point_input *p, const char *line, size_t n, point_input_visit *visit, void *context,
                     struct error *e)
{
    size_t blank = 0;

    if (!p->columns && n >= 3 && !memcmp(line, "\xef\xbb\xbf", 3)) { /* a byte order mark */
        line += 3;
        n -= 3;
    }
    while (blank < n && strchr(" \t\r", line[blank]) && line[blank])
        blank++;
    if (blank == n && !p->open)
        return OK;
    if (p->format == POINT_INPUT_AUTO)
        p->format = line[blank] == '{' || line[blank] == '[' ? POINT_INPUT_JSONL : POINT_INPUT_CSV;
    if (memchr(line, 0, n))
        return error_set(e, ERR_CORRUPT, "a NUL byte");
    return p->format == POINT_INPUT_CSV ? csv_line(p, line, n, visit, context, e)
                                        : json_line(p, line, n, visit, context, e);
}

int point_input_end(struct point_input *p, struct error *e)
{
    return p->open ? error_set(e, ERR_CORRUPT, "a quoted field is not closed") : OK;
}
