#include "dataset/stream/csv_record.h"

#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { AT_START, PLAIN, QUOTED, AFTER_QUOTE }; /* of struct csv_scan */
enum { SIDE_MOST = 65536, CHANNELS_MOST = 1024, PIXELS_MOST = 1 << 24, NUMBER_MOST = 512 };

/* ---- the option -------------------------------------------------------------------------------------------------- */

static int csv_wrong(const char *text, const char *part, size_t n, const char *why, struct error *e)
{
    return error_set(e, ERR_ARG,
                     "--csv-format %.200s: %.*s %s; the parts are label=COLUMN, skip=COLUMN, header=yes|no, "
                     "separator=comma|semicolon|tab and pixels=HxWxC",
                     text, n > 60 ? 60 : (int)n, part, why);
}

static int is_word(const struct csv_column *c, const char *word)
{
    return c->length == strlen(word) && !memcmp(c->text, word, c->length);
}

static int take_separator(struct csv_format *f, const struct csv_column *value)
{
    static const struct {
        const char *name;
        char separator;
    } known[] = { { "comma", ',' }, { "semicolon", ';' }, { "tab", '\t' } };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_word(value, known[i].name)) {
            f->separator = known[i].separator;
            return 1;
        }
    return 0;
}

static int take_pixels(struct csv_format *f, const struct csv_column *value)
{
    int end = 0;

    return value->length > 0 && value->text[0] >= '0' && value->text[0] <= '9' &&
           sscanf(value->text, "%5dx%5dx%5d%n", &f->height, &f->width, &f->channels, &end) == 3 &&
           (size_t)end == value->length && f->height >= 1 && f->height <= SIDE_MOST && f->width >= 1 &&
           f->width <= SIDE_MOST && f->channels >= 1 && f->channels <= CHANNELS_MOST &&
           (int64_t)f->height * f->width <= PIXELS_MOST / f->channels;
}

int csv_format_parse(struct csv_format *out, const char *text, struct error *e)
{
    const char *at = text ? text : "";

    *out = (struct csv_format){ .header = -1, .separator = ',' };
    while (*at) {
        const size_t part = strcspn(at, ","), name = strcspn(at, "=,");
        const struct csv_column value = { at + name + 1, name < part ? part - name - 1 : 0 };
        const struct csv_column key = { at, name };
        int right = value.length > 0;

        if (is_word(&key, "label")) {
            out->label = value;
        } else if (is_word(&key, "skip")) {
            if (out->skip_count == CSV_SKIPS_MOST)
                return csv_wrong(text, at, part, "is one column too many to skip", e);
            out->skips[out->skip_count++] = value;
        } else if (is_word(&key, "header")) {
            out->header = is_word(&value, "yes");
            right = out->header || is_word(&value, "no");
        } else if (is_word(&key, "separator")) {
            right = right && take_separator(out, &value);
        } else if (is_word(&key, "pixels")) {
            right = take_pixels(out, &value);
        } else {
            return csv_wrong(text, at, part, "is no part of it", e);
        }
        if (!right)
            return csv_wrong(text, at, part, "is not possible", e);
        at += part + (at[part] == ',');
    }
    return OK;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

size_t csv_scan_next(struct csv_scan *s, const char *bytes, size_t n, int *ended)
{
    *ended = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = bytes[i];
        const int ends = c == '\n' || c == '\r';

        if (c == '\r' || (c == '\n' && !s->returned))
            s->line++;
        s->returned = c == '\r';
        if (s->state == QUOTED) {
            s->state = c == '"' ? AFTER_QUOTE : QUOTED;
        } else if (ends) {
            s->state = AT_START;
            *ended = 1;
            return i + 1;
        } else if (c == '"' && s->state != PLAIN) {
            s->state = QUOTED; /* a field's first quote, or the second of two */
        } else {
            s->state = c == s->separator ? AT_START : PLAIN;
        }
    }
    return n;
}

int csv_scan_quoted(const struct csv_scan *s)
{
    return s->state == QUOTED;
}

/* The field at *at, in quotes: its end, *out behind what it has; NULL: there is no closing quote. */
static char *unquote(char *at, const char *end, char **out)
{
    char *to = at;

    for (at++; at < end; *to++ = *at++)
        if (*at == '"' && (++at == end || *at != '"')) {
            *out = to;
            return at;
        }
    return NULL;
}

int csv_split(char *text, size_t n, char separator, char **fields, size_t most, size_t *count, const char **problem)
{
    char *at = text, *const end = text + n;

    *count = 0;
    if (memchr(text, '\0', n)) {
        *problem = "it has a byte 0, so it is not text";
        return ERR_CORRUPT;
    }
    for (;;) {
        char *field = at, *last;

        if (at < end && *at == '"') {
            if (!(at = unquote(at, end, &last))) {
                *problem = "a quoted field is not closed";
                return ERR_CORRUPT;
            }
            if (at < end && *at != separator) {
                *problem = "a quoted field goes on after its closing quote";
                return ERR_CORRUPT;
            }
        } else {
            char *found = memchr(at, separator, (size_t)(end - at));

            last = at = found ? found : end;
        }
        if (*count < most)
            fields[*count] = field;
        ++*count;
        const int more = at < end;
        *last = *at = '\0';
        if (!more)
            return OK;
        at++;
    }
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The field without the blanks around it, in room (NUMBER_MOST) if there are some behind it; NULL: too long. */
static const char *without_blanks(const char *field, char *room)
{
    size_t n;

    while (is_blank(*field))
        field++;
    n = strlen(field);
    if (!n || !is_blank(field[n - 1]))
        return field;
    while (n && is_blank(field[n - 1]))
        n--;
    if (n >= NUMBER_MOST)
        return NULL;
    memcpy(room, field, n);
    room[n] = '\0';
    return room;
}

int csv_number(const char *field, float *out)
{
    char room[NUMBER_MOST];
    const char *text = without_blanks(field, room);
    double value;

    /* Not C's hexadecimal numbers, nor nan and inf. */
    if (!text || strpbrk(text, "xX") || !number_parse_double(text, &value) || !(fabs(value) <= FLT_MAX))
        return 0;
    *out = (float)value;
    return 1;
}

int csv_integer(const char *field, int64_t *out)
{
    char room[NUMBER_MOST];
    const char *text = without_blanks(field, room);

    return text && number_parse_int(text, out);
}
