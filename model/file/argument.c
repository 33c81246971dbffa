#include "model/file/argument.h"

#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By enum initial_kind. */
static const struct {
    const char *name;
    int has_number;
} initials[] = {
    { "constant", 1 },     { "normal", 1 }, { "truncated_normal", 1 }, { "uniform", 1 },          { "glorot", 0 },
    { "unit_scaling", 0 }, { "he", 0 },     { "he_fan_out", 0 },       { "variance_scaling", 0 },
};
enum { INITIALS = sizeof initials / sizeof *initials, INITIAL_IS_CONSTANT = 0 };

static int parse_integer(const struct call_parameter *p, const char *text, double *out, struct error *e)
{
    int64_t n;

    if (!number_parse_int(text, &n))
        return error_set(e, ERR_ARG, "'%.40s' is not a whole number", text);
    if ((double)n < p->minimum || (double)n > p->maximum)
        return error_set(e, ERR_ARG, "%" PRId64 " is not between %.0f and %.0f", n, p->minimum, p->maximum);
    *out = (double)n;
    return OK;
}

static int parse_real(const struct call_parameter *p, const char *text, double *out, struct error *e)
{
    double x;

    if (!number_parse_double(text, &x) || !isfinite(x))
        return error_set(e, ERR_ARG, "'%.40s' is not a number", text);
    if (x < p->minimum || x > p->maximum)
        return error_set(e, ERR_ARG, "%.40s is not between %g and %g", text, p->minimum, p->maximum);
    *out = x;
    return OK;
}

/* "A", or `wanted` numbers with `between` between them. Returns how many there are. */
static int parse_numbers(const struct call_parameter *p, const char *text, char between, int wanted, double *out,
                         struct error *e)
{
    char part[32];
    int count = 0;

    for (;;) {
        const char *end = strchr(text, between);
        const size_t n = end ? (size_t)(end - text) : strlen(text);

        if (count == wanted || n >= sizeof part)
            return error_set(e, ERR_ARG, "'%.40s' is not one of %s", text, argument_form(p));
        memcpy(part, text, n);
        part[n] = '\0';
        if (parse_integer(p, part, &out[count++], e) < 0)
            return ERR_ARG;
        if (!end)
            return count;
        text = end + 1;
    }
}

static int parse_word(const struct call_parameter *p, const char *text, double *out, struct error *e)
{
    const char *at = p->choices;
    const size_t n = strlen(text);

    for (int k = 0;; k++) {
        const size_t length = strcspn(at, "|");

        if (length == n && !memcmp(at, text, n)) {
            *out = k;
            return OK;
        }
        if (!at[length])
            return error_set(e, ERR_ARG, "'%.40s' is not one of %s", text, p->choices);
        at += length + 1;
    }
}

static int parse_initial(const struct call_parameter *p, const char *text, struct argument *out, struct error *e)
{
    char number[32];
    double x;

    *out = (struct argument){ { INITIAL_IS_CONSTANT } };
    if (number_parse_double(text, &x))
        return parse_real(p, text, &out->v[1], e);
    for (int k = 0; k < INITIALS; k++) {
        const size_t n = strlen(initials[k].name), length = strlen(text);

        out->v[0] = k;
        if (!initials[k].has_number && !strcmp(text, initials[k].name))
            return OK;
        if (!initials[k].has_number || strncmp(text, initials[k].name, n) != 0 || text[n] != '(')
            continue;
        if (text[length - 1] != ')' || length - n - 2 >= sizeof number)
            break;
        memcpy(number, text + n + 1, length - n - 2);
        number[length - n - 2] = '\0';
        return parse_real(p, number, &out->v[1], e);
    }
    return error_set(e, ERR_ARG, "'%.40s' is not one of %s", text, argument_form(p));
}

int argument_parse(const struct call_parameter *p, const char *text, struct argument *out, struct error *e)
{
    int n;

    *out = (struct argument){ { 0 } };
    switch (p->kind) {
    case PARAMETER_INTEGER: return parse_integer(p, text, &out->v[0], e);
    case PARAMETER_REAL: return parse_real(p, text, &out->v[0], e);
    case PARAMETER_FLAG: return parse_word(&(struct call_parameter){ .choices = "no|yes" }, text, &out->v[0], e);
    case PARAMETER_WORD: return parse_word(p, text, &out->v[0], e);
    case PARAMETER_INITIAL: return parse_initial(p, text, out, e);
    case PARAMETER_SIZE:
        if (p->standard && !strcmp(text, p->standard) && !strcmp(text, "size"))
            return OK;
        if ((n = parse_numbers(p, text, 'x', 2, out->v, e)) == 1)
            out->v[1] = out->v[0];
        return n < 0 ? n : OK;
    case PARAMETER_PADDING:
    default:
        out->v[0] = !strcmp(text, "same");
        if (out->v[0] != 0 || !strcmp(text, "valid"))
            return OK;
        n = strchr(text, ',') ? parse_numbers(p, text, ',', 4, &out->v[1], e) : 0;
        if (n < 0)
            return n;
        return n == 4 ? OK : error_set(e, ERR_ARG, "'%.40s' is not one of %s", text, argument_form(p));
    }
}

/* The words of `choices` before the k-th and itself are skipped and copied. */
static void choice_text(const char *choices, int k, char *out)
{
    for (; k > 0; k--)
        choices += strcspn(choices, "|") + 1;
    snprintf(out, ARGUMENT_TEXT_MAX, "%.*s", (int)strcspn(choices, "|"), choices);
}

/* "1.0" as people write it: 1 */
static void real_text(double x, char *out)
{
    char number[NUMBER_TEXT_MAX];
    size_t n;

    number_text(x, number);
    n = strlen(number);
    snprintf(out, ARGUMENT_TEXT_MAX, "%.*s", (int)(n > 2 && !strcmp(number + n - 2, ".0") ? n - 2 : n), number);
}

void argument_text(const struct call_parameter *p, const struct argument *a, char *out)
{
    char number[NUMBER_TEXT_MAX];
    const double *v = a->v;

    switch (p->kind) {
    case PARAMETER_INTEGER: snprintf(out, ARGUMENT_TEXT_MAX, "%.0f", v[0]); break;
    case PARAMETER_REAL: real_text(v[0], out); break;
    case PARAMETER_FLAG: snprintf(out, ARGUMENT_TEXT_MAX, "%s", v[0] != 0 ? "yes" : "no"); break;
    case PARAMETER_WORD: choice_text(p->choices, (int)v[0], out); break;
    case PARAMETER_SIZE:
        if (v[0] == v[1])
            snprintf(out, ARGUMENT_TEXT_MAX, "%.0f", v[0]);
        else
            snprintf(out, ARGUMENT_TEXT_MAX, "%.0fx%.0f", v[0], v[1]);
        break;
    case PARAMETER_INITIAL:
        number_text(v[1], number);
        if (v[0] == (double)INITIAL_IS_CONSTANT)
            real_text(v[1], out);
        else if (initials[(int)v[0]].has_number)
            snprintf(out, ARGUMENT_TEXT_MAX, "%s(%s)", initials[(int)v[0]].name, number);
        else
            snprintf(out, ARGUMENT_TEXT_MAX, "%s", initials[(int)v[0]].name);
        break;
    case PARAMETER_PADDING:
    default:
        if (v[0] != 0)
            snprintf(out, ARGUMENT_TEXT_MAX, "same");
        else if (v[1] == 0 && v[2] == 0 && v[3] == 0 && v[4] == 0)
            snprintf(out, ARGUMENT_TEXT_MAX, "valid");
        else
            snprintf(out, ARGUMENT_TEXT_MAX, "%.0f,%.0f,%.0f,%.0f", v[1], v[2], v[3], v[4]);
    }
}

const char *argument_form(const struct call_parameter *p)
{
    switch (p->kind) {
    case PARAMETER_INTEGER: return "N";
    case PARAMETER_REAL: return "X";
    case PARAMETER_FLAG: return "yes|no";
    case PARAMETER_WORD: return p->choices;
    case PARAMETER_SIZE: return "N|HEIGHTxWIDTH";
    case PARAMETER_PADDING: return "valid|same|TOP,BOTTOM,LEFT,RIGHT";
    case PARAMETER_INITIAL:
    default: return "X|normal(X)|truncated_normal(X)|uniform(X)|glorot|unit_scaling|he|he_fan_out|variance_scaling";
    }
}
