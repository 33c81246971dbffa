#include "evaluator/score/metric_output.h"

#include "base/human.h"
#include "base/number.h"
#include "evaluator/files/python_json.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_MAX = 64 }; /* largest number that is read, in bytes */

void metric_output_init(struct metric_output *o)
{
    memset(o, 0, sizeof *o);
    buffer_init(&o->line);
}

void metric_output_release(struct metric_output *o)
{
    buffer_release(&o->line);
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

/* 1 if all of text[0..n) is a number. */
static int parse_number(const char *text, size_t n, double *out)
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

static void complain(struct metric_output *o, int code, const char *sentence, const char *name)
{
    if (!o->error.code)
        error_set(&o->error, code, sentence, name, o->lines);
}

static void metric_output_take(struct metric_output *o, const char *name, double value,
                               struct evaluation_metrics *metrics)
{
    const struct evaluation_metric *before = evaluation_metrics_find(metrics, name);
    struct error why = { 0 };

    if (!strcmp(name, "step") || !strcmp(name, "global_step"))
        return;
    if (before && (before->value == value || (isnan(before->value) && isnan(value))))
        return;
    if (before && !o->error.code)
        error_set(&o->error, ERR_ARG, "the metric '%.200s' is named twice, with %.17g and, in line %zu, %.17g", name,
                  before->value, o->lines, value);
    else if (!before && evaluation_metrics_add(metrics, name, value, &why) != OK && !o->error.code)
        o->error = why;
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

/* Parses the next pair at p: its end, or NULL. *sign: what separates name and number, ' ' for blanks alone. */
static const char *take_pair(const char *p, const char *end, struct pair *out, char *sign)
{
    const char *number;

    if (p == end || !is_letter(*p))
        return NULL;
    out->name = p;
    while (p < end && is_name_byte(*p))
        p++;
    out->length = (size_t)(p - out->name);
    number = blanks(p, end);
    *sign = ' ';
    if (number < end && (*number == '=' || *number == ':'))
        *sign = *number++;
    else if (number == p)
        return NULL;
    number = p = blanks(number, end);
    while (p < end && !strchr(" \t\r,;", *p))
        p++;
    return out->length < EVALUATION_NAME_MAX && parse_number(number, (size_t)(p - number), &out->value) ? p : NULL;
}

/* 0: the line gives no metrics. All of it is checked before any counts: half a line must not count. */
static int take_pairs(struct metric_output *o, const char *line, size_t n, struct evaluation_metrics *metrics)
{
    const char *end = line + n;

    for (int counting = 0; counting < 2; counting++) {
        const char *p = blanks(line, end);
        size_t pairs = 0;

        while (p < end) {
            char name[EVALUATION_NAME_MAX], sign;
            struct pair pair;

            if (!(p = take_pair(p, end, &pair, &sign)) || (sign == ' ' && (pairs || blanks(p, end) != end)))
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

static void take_line(struct metric_output *o, struct evaluation_metrics *metrics)
{
    o->lines++;
    if (!o->too_long && buffer_ok(&o->line) && !take_json(o, buffer_text(&o->line), o->line.length, metrics))
        take_pairs(o, buffer_text(&o->line), o->line.length, metrics);
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

    if (o->line.length)
        take_line(o, metrics);
    if (o->error.code) {
        if (e)
            *e = o->error;
        return o->error.code;
    }
    if (!metrics->count)
        return error_set(e, ERR_ARG,
                         "no metric in its output (%s); print a line such as 'accuracy 0.91', 'accuracy=0.91' or "
                         "'{\"accuracy\": 0.91}'",
                         human_count(o->lines, "line", lines));
    return OK;
}
