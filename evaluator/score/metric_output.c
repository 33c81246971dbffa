#include "evaluator/score/metric_output.h"

#include "base/human.h"
#include "base/number.h"
#include "evaluator/files/python_json.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_MAX = 64 }; /* largest number that is read, in bytes */

void metric_output_init(struct metric_output *o, const char *alone)
{
    memset(o, 0, sizeof *o);
    buffer_init(&o->line);
    o->alone = alone;
}

void metric_output_release(struct metric_output *o)
{
    buffer_release(&o->line);
    evaluation_metrics_release(&o->loose);
    evaluation_metrics_release(&o->clashes);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int is_name_byte(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || (c && strchr("./@%+-#", c));
}

/* 1 if all of text[0..n) is a number without anything around it. */
static int parse_plain(const char *text, size_t n, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {
        { "nan", NAN },
        { "inf", INFINITY },
        { "infinity", INFINITY },
    };
    char copy[NUMBER_MAX];
    const char *plain = copy;

    if (!n || n >= sizeof copy)
        return 0;
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (*plain == '+' || *plain == '-')
        plain++;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(plain, words[i].word)) {
            *out = *copy == '-' ? -words[i].value : words[i].value;
            return 1;
        }
    if (strspn(plain, "0123456789.eE+-") != strlen(plain) || *plain == '+' || *plain == '-')
        return 0;
    return number_parse_double(*copy == '+' ? plain : copy, out);
}

/* The same, or a number in an object of Python's, behind whose first comma may be anything. */
static int parse_number(const char *text, size_t n, double *out)
{
    const char *open = n > 1 && is_letter(*text) && text[n - 1] == ')' ? memchr(text, '(', n) : NULL;
    const char *comma;

    if (!open)
        return parse_plain(text, n, out);
    for (const char *p = text; p < open; p++)
        if (!is_name_byte(*p))
            return 0;
    open++;
    n -= (size_t)(open - text) + 1;
    comma = memchr(open, ',', n);
    return parse_plain(open, comma ? (size_t)(comma - open) : n, out);
}

static void complain(struct metric_output *o, int code, const char *sentence, const char *name)
{
    if (!o->error.code)
        error_set(&o->error, code, sentence, name, o->lines);
}

static void metric_output_take(struct metric_output *o, const char *name, double value,
                               struct evaluation_metrics *metrics)
{
    struct error *error = metrics == &o->loose ? &o->loose_error : &o->error;
    const struct evaluation_metric *before = evaluation_metrics_find(metrics, name);
    struct error why = { 0 };

    if (!strcmp(name, "step") || !strcmp(name, "global_step"))
        return;
    if (before && (before->value == value || (isnan(before->value) && isnan(value))))
        return;
    if (before && metrics == &o->loose && evaluation_metrics_add(&o->clashes, name, 0, &why) != OK)
        memset(&why, 0, sizeof why); /* it is among them, or there is no room: o->loose_error stays */
    if (before && !error->code)
        error_set(error, ERR_ARG, "the metric '%.200s' is named twice, with %.17g and, in line %zu, %.17g", name,
                  before->value, o->lines, value);
    else if (!before && evaluation_metrics_add(metrics, name, value, &why) != OK && !error->code)
        *error = why;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static const char *blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

struct pair {
    const char *name;
    size_t length;
    double value;
};

/* The end of the number at p: at a blank, a comma or a semicolon, but not between brackets. */
static const char *number_end(const char *p, const char *end)
{
    int depth = 0;

    for (; p < end && (depth > 0 || !strchr(" \t\r,;", *p)); p++)
        depth += (*p == '(') - (*p == ')');
    return p;
}

/* Parses the next pair at p: its end, or NULL. *sign: what separates name and number, ' ' for blanks alone. loose: a
 * name may have several words, and a number be a percentage. */
static const char *take_pair(const char *p, const char *end, int loose, struct pair *out, char *sign)
{
    const char *number;
    double unit = 1;

    if (p == end || !is_letter(*p))
        return NULL;
    out->name = p;
    while (p < end && (is_name_byte(*p) || (loose && *p == ' ')))
        p++;
    while (p[-1] == ' ')
        p--;
    out->length = (size_t)(p - out->name);
    number = blanks(p, end);
    *sign = ' ';
    if (number < end && (*number == '=' || *number == ':'))
        *sign = *number++;
    else if (number == p)
        return NULL;
    if (loose && *sign == ' ')
        return NULL;
    number = blanks(number, end);
    p = number_end(number, end);
    if (loose && p > number && p[-1] == '%')
        unit = 100;
    if (out->length >= EVALUATION_NAME_MAX || !parse_number(number, (size_t)(p - number) - (unit > 1), &out->value))
        return NULL;
    out->value /= unit;
    return p;
}

/* 0: the line gives no metrics. All of it is checked before any counts: half a line must not count. Loose pairs are for
 * o->loose. */
static int take_pairs(struct metric_output *o, const char *line, size_t n, struct evaluation_metrics *metrics)
{
    const int loose = metrics == &o->loose;
    const char *end = line + n;

    for (int counting = 0; counting < 2; counting++) {
        const char *p = blanks(line, end);
        size_t pairs = 0;

        while (p < end) {
            char name[EVALUATION_NAME_MAX], sign;
            struct pair pair;

            if (!(p = take_pair(p, end, loose, &pair, &sign)) || (sign == ' ' && (pairs || blanks(p, end) != end)))
                return 0;
            pairs++;
            memcpy(name, pair.name, pair.length);
            name[pair.length] = '\0';
            if (counting)
                metric_output_take(o, name, pair.value, metrics);
            p = blanks(p, end);
            if (p < end && (*p == ',' || *p == ';'))
                p = blanks(p + 1, end);
        }
        if (!pairs)
            return 0;
    }
    return 1;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void take_members(struct metric_output *o, json_t *object, struct evaluation_metrics *metrics)
{
    const char *name, *text;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        double x;

        text = json_string_value(value);
        if (json_is_number(value))
            metric_output_take(o, name, json_number_value(value), metrics);
        else if (text && (!strcmp(text, "NaN") || !strcmp(text, "Infinity") || !strcmp(text, "-Infinity")) &&
                 parse_number(text, strlen(text), &x))
            metric_output_take(o, name, x, metrics);
    }
}

/* The end of a value of Python's that begins at p: the comma or bracket behind it. */
static const char *python_end(const char *p, const char *end)
{
    int depth = 0;
    char quote = 0;

    for (; p < end && (quote || depth > 0 || !strchr(",}", *p)); p++) {
        if (quote)
            quote = *p == quote ? 0 : quote;
        else if (*p == '\'' || *p == '"')
            quote = *p;
        else
            depth += (strchr("([{", *p) != NULL) - (strchr(")]}", *p) != NULL);
    }
    return p;
}

/* A dictionary as Python prints it; its numbers, as of a JSON object. All of it is checked before any counts. */
static int take_python(struct metric_output *o, const char *line, size_t n, struct evaluation_metrics *metrics)
{
    const char *end = line + n, *first = blanks(line, end);

    while (end > first && strchr(" \t\r", end[-1]))
        end--;
    if (end - first < 2 || *first != '{' || end[-1] != '}')
        return 0;
    for (int counting = 0; counting < 2; counting++)
        for (const char *p = blanks(first + 1, end); p < end - 1;) {
            const char *name = p + 1, *close = *p == '\'' || *p == '"' ? memchr(name, *p, (size_t)(end - name)) : NULL;
            const char *value = close ? blanks(close + 1, end) : NULL, *after;
            char copy[EVALUATION_NAME_MAX];
            double x;

            if (!value || value == end || *value != ':')
                return 0;
            value = blanks(value + 1, end);
            after = python_end(value, end);
            if (after == end || (*after == '}' && after != end - 1))
                return 0;
            for (p = after; p > value && p[-1] == ' ';)
                p--;
            if (counting && (size_t)(close - name) < sizeof copy && parse_number(value, (size_t)(p - value), &x)) {
                memcpy(copy, name, (size_t)(close - name));
                copy[close - name] = '\0';
                metric_output_take(o, copy, x, metrics);
            }
            p = blanks(after + 1, end);
        }
    return 1;
}

static int take_json(struct metric_output *o, const char *line, size_t n, struct evaluation_metrics *metrics)
{
    const char *first = blanks(line, line + n);
    json_error_t why;
    json_t *object;

    if (first == line + n || *first != '{')
        return 0;
    if (!(object = python_json_parse(line, n, JSON_REJECT_DUPLICATES, &why)) && !*why.text)
        complain(o, ERR_NOMEM, "no memory for what the command printed%s in line %zu", "");
    if (!object && *why.text && json_error_code(&why) == json_error_duplicate_key)
        complain(o, ERR_ARG, "a metric is named twice%s in the JSON of line %zu", "");
    if (object)
        take_members(o, object, metrics);
    json_decref(object);
    return object != NULL;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static int take_alone(struct metric_output *o, const char *line, size_t n, struct evaluation_metrics *metrics)
{
    const char *first = blanks(line, line + n), *end = line + n;
    double x;

    while (end > first && strchr(" \t\r", end[-1]))
        end--;
    if (!o->alone || !parse_number(first, (size_t)(end - first), &x))
        return 0;
    metric_output_take(o, o->alone, x, metrics);
    return 1;
}

static void keep_last_line(struct metric_output *o, const char *line, size_t n)
{
    const char *first = blanks(line, line + n);
    size_t length = (size_t)(line + n - first);

    while (length > 0 && strchr(" \t\r", first[length - 1]))
        length--;
    if (length == 0)
        return;
    length = length < sizeof o->last ? length : sizeof o->last - 1;
    for (size_t i = 0; i < length; i++)
        o->last[i] = (unsigned char)first[i] < 32 || first[i] == 127 ? '?' : first[i];
    o->last[length] = '\0';
    /* No part of a character at the end. */
    if (length == sizeof o->last - 1)
        while (length > 0 && ((unsigned char)o->last[length - 1] & 0x80)) {
            const int lead = ((unsigned char)o->last[--length] & 0xc0) == 0xc0;

            o->last[length] = '\0';
            if (lead)
                break;
        }
}

static void take_line(struct metric_output *o, struct evaluation_metrics *metrics)
{
    const char *line = buffer_text(&o->line);
    const size_t n = o->line.length;

    o->lines++;
    if (!o->too_long && buffer_ok(&o->line)) {
        keep_last_line(o, line, n);
        if (!take_json(o, line, n, metrics) && !take_python(o, line, n, metrics) && !take_alone(o, line, n, metrics) &&
            !take_pairs(o, line, n, metrics))
            take_pairs(o, line, n, &o->loose);
    }
    buffer_clear(&o->line);
    o->too_long = 0;
}

void metric_output_add(struct metric_output *o, const char *bytes, size_t n, struct evaluation_metrics *metrics)
{
    const char *end = bytes + n;

    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t length = (size_t)((newline ? newline : end) - bytes);

        if (o->line.length + length > METRIC_LINE_MAX)
            o->too_long = 1;
        else
            buffer_append(&o->line, bytes, length);
        bytes += length;
        if (newline) {
            take_line(o, metrics);
            bytes++;
        }
    }
}

int metric_output_finish(struct metric_output *o, struct evaluation_metrics *metrics, struct error *e)
{
    char lines[HUMAN_TEXT_MAX];
    double number;

    if (o->line.length)
        take_line(o, metrics);
    for (size_t i = 0; i < o->loose.count && !o->error.code; i++)
        if (!evaluation_metrics_find(&o->clashes, o->loose.items[i].name) &&
            !evaluation_metrics_find(metrics, o->loose.items[i].name))
            metric_output_take(o, o->loose.items[i].name, o->loose.items[i].value, metrics);
    if (!metrics->count && !o->error.code)
        o->error = o->loose_error;
    if (o->error.code) {
        if (e)
            *e = o->error;
        return o->error.code;
    }
    if (metrics->count)
        return OK;
    if (*o->last && parse_number(o->last, strlen(o->last), &number))
        return error_set(e, ERR_ARG,
                         "no metric in its output: '%s' is a number without a name; give --metric accuracy, or "
                         "print 'accuracy %s'",
                         o->last, o->last);
    return error_set(e, ERR_ARG,
                     "no metric in its output (%s%s%s%s); print a line such as 'accuracy 0.91', 'accuracy=0.91' or "
                     "'{\"accuracy\": 0.91}'",
                     human_count(o->lines, "line", lines), *o->last ? ", the last '" : "", o->last,
                     *o->last ? "'" : "");
}
