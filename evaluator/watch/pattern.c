#include "evaluator/watch/pattern.h"

#include <string.h>

enum { NAME_BYTES_MAX = 255, STEP_DIGITS_MAX = 18 };

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int add(struct pattern *p, enum pattern_part_kind kind, size_t start, size_t length, struct error *e)
{
    if (kind == PATTERN_ANY && p->count && p->parts[p->count - 1].kind == PATTERN_ANY)
        return OK;
    if (p->count == PATTERN_PARTS_MAX)
        return error_set(e, ERR_ARG, "'%s' has more than %d parts", p->text, PATTERN_PARTS_MAX);
    p->parts[p->count++] = (struct pattern_part){ kind, (unsigned short)start, (unsigned short)length };
    return OK;
}

static int check(const struct pattern *p, size_t wanted, struct error *e)
{
    size_t steps = 0;

    for (size_t i = 0; i < p->count; i++) {
        steps += p->parts[i].kind == PATTERN_STEP;
        if (p->parts[i].kind == PATTERN_STEP && i + 1 < p->count && p->parts[i + 1].kind == PATTERN_TEXT &&
            is_digit(p->text[p->parts[i + 1].start]))
            return error_set(e, ERR_ARG, "'%s': a digit right after {step} would be part of the step", p->text);
    }
    if (steps != wanted && wanted)
        return error_set(e, ERR_ARG,
                         "'%s': {step} must occur once, as in 'model_{step}.pt', not %zu times; for names without a "
                         "step use --step-from count",
                         p->text, steps);
    if (steps != wanted)
        return error_set(e, ERR_ARG, "'%s': --step-from gives the step, so use {*} instead of {step}", p->text);
    if (strchr(p->text, '/'))
        return error_set(e, ERR_ARG, "'%s': it is a name in the directory, so '/' may only be at the end", p->text);
    return p->count ? OK : error_set(e, ERR_ARG, "it is empty");
}

int pattern_parse(const char *text, int with_step, struct pattern *out, struct error *e)
{
    static const struct {
        const char *word;
        enum pattern_part_kind kind;
    } words[] = {
        { "{step}", PATTERN_STEP },
        { "{*}", PATTERN_ANY },
        { "{}", PATTERN_ANY },
    };
    size_t n = strlen(text), i = 0;
    int rc = OK;

    memset(out, 0, sizeof *out);
    while (n && text[n - 1] == '/') {
        out->directory = 1;
        n--;
    }
    if (n >= sizeof out->text)
        return error_set(e, ERR_ARG, "'%.40s...' is too long for a file name", text);
    memcpy(out->text, text, n);
    while (rc == OK && i < n) {
        size_t k = 0, end = i;

        while (k < 3 && strncmp(out->text + i, words[k].word, strlen(words[k].word)))
            k++;
        if (k < 3) {
            rc = add(out, words[k].kind, 0, 0, e);
            i += strlen(words[k].word);
            continue;
        }
        if (out->text[i] == '{')
            return error_set(e, ERR_ARG, "'%s': unknown word at byte %zu; use {step} or {*}", out->text, i);
        while (end < n && out->text[end] != '{')
            end++;
        rc = add(out, PATTERN_TEXT, i, end - i, e);
        i = end;
    }
    return rc == OK ? check(out, with_step != 0, e) : rc;
}

struct match {
    const struct pattern *pattern;
    const char *name;
    size_t length;
    int64_t step;
    unsigned char failed[PATTERN_PARTS_MAX + 1][(NAME_BYTES_MAX + 8) / 8]; /* known failures keep it quadratic */
};

static int match(struct match *m, size_t part, size_t at)
{
    const struct pattern_part *p = &m->pattern->parts[part];
    int64_t step = 0;
    size_t end = at;
    int rc = 0;

    if (part == m->pattern->count)
        return at == m->length;
    if (m->failed[part][at / 8] >> at % 8 & 1)
        return 0;
    if (p->kind == PATTERN_TEXT) {
        rc = !strncmp(m->name + at, m->pattern->text + p->start, p->length) && match(m, part + 1, at + p->length);
    } else if (p->kind == PATTERN_ANY) {
        for (; !rc && end <= m->length; end++)
            rc = match(m, part + 1, end);
    } else {
        for (; is_digit(m->name[end]) && end - at < STEP_DIGITS_MAX; end++)
            step = step * 10 + (m->name[end] - '0');
        /* Neither the tail of a number whose head {*} took, nor the head alone. */
        rc = end > at && !is_digit(m->name[end]) && !(at && is_digit(m->name[at - 1]) && p[-1].kind == PATTERN_ANY) &&
             match(m, part + 1, end);
        if (rc)
            m->step = step;
    }
    if (!rc)
        m->failed[part][at / 8] |= (unsigned char)(1u << at % 8);
    return rc;
}

int pattern_match(const struct pattern *p, const char *name, int64_t *step)
{
    struct match m = { .pattern = p, .name = name, .length = strlen(name), .step = -1 };

    if (m.length > NAME_BYTES_MAX || !match(&m, 0, 0))
        return 0;
    *step = m.step;
    return 1;
}
