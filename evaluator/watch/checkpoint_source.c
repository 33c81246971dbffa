#include "evaluator/watch/checkpoint_source.h"

#include "base/number.h"
#include "base/text.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "evaluator/files/python_json.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- pattern ----------------------------------------------------------------------------------------------------- */

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

/* ---- step rule --------------------------------------------------------------------------------------------------- */

int step_rule_parse(struct step_rule *out, const char *from, int64_t scale, int64_t offset, struct error *e)
{
    const char *colon = from ? strrchr(from, ':') : NULL;

    *out = (struct step_rule){
        .from = STEP_FROM_NAME, .scale = scale ? scale : 1, .offset = offset, .scaled = scale || offset
    };
    if (!from)
        return OK;
    if (!strcmp(from, "count")) {
        out->from = STEP_FROM_COUNT;
    } else if (!strcmp(from, "mtime")) {
        out->from = STEP_FROM_MTIME;
    } else if (!colon || colon == from || !colon[1] || (size_t)(colon - from) >= sizeof out->file) {
        return error_set(e, ERR_ARG, "--step-from '%.200s': use FILE:KEY, count or mtime", from);
    } else {
        out->from = STEP_FROM_FILE;
        snprintf(out->file, sizeof out->file, "%.*s", (int)(colon - from), from);
        out->key = colon + 1;
    }
    return OK;
}

int64_t step_rule_step(const struct step_rule *r, int64_t number)
{
    int64_t step;

    if (number < 0 || __builtin_mul_overflow(number, r->scale, &step) ||
        __builtin_add_overflow(step, r->offset, &step) || step < 0)
        return -1;
    return step;
}

int64_t step_rule_number(const struct step_rule *r, int64_t step)
{
    int64_t scaled;

    if (step < 0 || __builtin_sub_overflow(step, r->offset, &scaled) || scaled < 0)
        return -1;
    return scaled / r->scale;
}

int step_rule_path(const struct step_rule *r, const char *name, int is_directory, char *out, size_t size)
{
    if (strstr(r->file, "{name}"))
        return ready_rule_fill(r->file, name, -1, out, size);
    return snprintf(out, size, "%s%s%s", is_directory ? name : "", is_directory ? "/" : "", r->file) < (int)size;
}

/* The value at a dotted path of members; also finds members with dots in their names. Borrowed; NULL: none. */
static const json_t *find(const json_t *value, const char *key)
{
    const json_t *found = json_object_get(value, key);

    for (const char *dot = key; !found && (dot = strchr(dot, '.')); dot++) {
        const json_t *member = json_object_getn(value, key, (size_t)(dot - key));

        if (json_is_object(member))
            found = find(member, dot + 1);
    }
    return found;
}

int step_rule_find(const struct step_rule *r, const char *path, const char *bytes, size_t n, int64_t *out,
                   struct error *e)
{
    json_error_t why;
    json_t *root = python_json_parse(bytes, n, JSON_ALLOW_NUL, &why);
    const json_t *value = root ? find(root, r->key) : NULL;
    double number = json_number_value(value);
    int rc = OK;

    if (!root)
        rc = error_set(e, ERR_CORRUPT, "%.200s is not complete JSON: line %d: %s", path, why.line, why.text);
    else if (!value)
        rc = error_set(e, ERR_CORRUPT, "%.200s has no member '%.100s'", path, r->key);
    else if ((json_typeof(value) != JSON_INTEGER && json_typeof(value) != JSON_REAL) || number < 0 || number > 9e15 ||
             number != floor(number))
        rc = error_set(e, ERR_CORRUPT, "%.200s: '%.100s' is not a whole number", path, r->key);
    else
        *out = (int64_t)number; /* up to there a double holds every integer exactly */
    json_decref(root);
    return rc;
}

/* ---- ready rule -------------------------------------------------------------------------------------------------- */

static int begins(const char *text, const char *with, const char **rest)
{
    size_t n = strlen(with);

    *rest = text + n;
    return !strncmp(text, with, n);
}

static int parse_one(struct ready_rule *r, const char *text, int *quiet, struct error *e)
{
    const char *rest;

    if (!strcmp(text, "rename")) {
        r->rename = 1;
        return OK;
    }
    if (begins(text, "marker:", &rest) && *rest) {
        if (r->marker_count == READY_MARKERS_MAX)
            return error_set(e, ERR_ARG, "--ready: more than %d markers", READY_MARKERS_MAX);
        r->markers[r->marker_count++] = rest;
        return OK;
    }
    if (begins(text, "latest:", &rest) && *rest) {
        if (r->latest)
            return error_set(e, ERR_ARG, "--ready latest:FILE is given twice");
        r->latest = rest;
        return OK;
    }
    if (!begins(text, "quiet:", &rest) || !number_parse_double(rest, &r->quiet_seconds) || !(r->quiet_seconds >= 0) ||
        r->quiet_seconds > 1e9)
        return error_set(e, ERR_ARG, "--ready '%s': use quiet:SECONDS, marker:FILE, latest:FILE or rename", text);
    return (*quiet)++ ? error_set(e, ERR_ARG, "--ready quiet:SECONDS is given twice") : OK;
}

int ready_rule_parse(struct ready_rule *out, const char *const *texts, size_t count, struct error *e)
{
    int quiet = 0, rc = OK;

    *out = (struct ready_rule){ .quiet_seconds = count ? 0 : READY_QUIET_SECONDS };
    for (size_t i = 0; rc == OK && i < count; i++)
        rc = parse_one(out, texts[i], &quiet, e);
    return rc;
}

int ready_rule_by_name(const struct ready_rule *r)
{
    return r->rename && !r->marker_count && !r->latest && r->quiet_seconds <= 0;
}

int ready_rule_fill(const char *text, const char *name, int64_t step, char *out, size_t size)
{
    const char *p = text, *rest;
    size_t used = 0;

    *out = '\0';
    while (*p && used < size) {
        if (begins(p, "{name}", &rest))
            used += (size_t)snprintf(out + used, size - used, "%s", name);
        else if (begins(p, "{step}", &rest))
            used += (size_t)snprintf(out + used, size - used, "%lld", (long long)step);
        else
            used += (size_t)snprintf(out + used, size - used, "%c", *(rest = p + 1, p));
        p = rest;
    }
    return used < size;
}

int ready_rule_marker_path(const char *marker, const char *name, int64_t step, int is_directory, char *out, size_t size)
{
    if (strstr(marker, "{name}") || strstr(marker, "{step}"))
        return ready_rule_fill(marker, name, step, out, size);
    return snprintf(out, size, "%s%s%s", name, is_directory ? "/" : *marker == '.' ? "" : ".", marker) < (int)size;
}

int ready_rule_says_json(const char *path, const char *bytes, size_t n)
{
    size_t length = strlen(path), blanks = 0;

    if (length >= 5 && !strcasecmp(path + length - 5, ".json"))
        return 1;
    while (blanks < n && bytes[blanks] && strchr(" \t\r\n", bytes[blanks]))
        blanks++;
    return blanks < n && bytes[blanks] == '{';
}

int ready_rule_changed_after(double changed, double marked)
{
    return changed > marked + 1.5 * READY_TICK_SECONDS;
}

int ready_rule_marker_whole(const char *path, const char *bytes, size_t n, struct error *e)
{
    json_error_t why;
    json_t *value;

    if (!ready_rule_says_json(path, bytes, n))
        return OK;
    if (!(value = python_json_parse(bytes, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why)))
        return error_set(e, ERR_CORRUPT, "its marker %.200s is not complete JSON: line %d: %s", path, why.line,
                         why.text);
    json_decref(value);
    return OK;
}

int ready_rule_latest(const struct pattern *p, const char *bytes, size_t n, int64_t *number)
{
    char text[PATTERN_TEXT_MAX];
    const char *name;

    while (n && strchr(" \t\r\n/", bytes[n - 1]) && bytes[n - 1])
        n--;
    while (n && strchr(" \t\r\n", *bytes) && *bytes)
        bytes++, n--;
    if (!n || n >= sizeof text || memchr(bytes, '\0', n))
        return 0;
    memcpy(text, bytes, n);
    text[n] = '\0';
    name = strrchr(text, '/') ? strrchr(text, '/') + 1 : text;
    return pattern_match(p, name, number) || (number_parse_int(name, number) && *number >= 0);
}

/* ---- checkpoint source ------------------------------------------------------------------------------------------- */

int checkpoint_source_init(struct checkpoint_source *s, const struct checkpoint_source_options *options,
                           struct error *e)
{
    int rc;

    *s = (struct checkpoint_source){ .has_pattern = options->pattern != NULL };
    if ((rc = step_rule_parse(&s->steps, options->step_from, options->step_scale, options->step_offset, e)) != OK)
        return rc;
    if (!options->pattern && s->steps.from != STEP_FROM_NAME)
        return error_set(e, ERR_ARG, "--step-from needs --pattern with the name to follow");
    if (options->pattern &&
        (rc = pattern_parse(options->pattern, s->steps.from == STEP_FROM_NAME, &s->pattern, e)) != OK)
        return error_prefix(e, "--pattern");
    if (options->ready_count && !options->pattern)
        return error_set(e, ERR_ARG,
                         "--ready needs --pattern; index and safetensors files show when they are complete");
    if ((rc = ready_rule_parse(&s->ready, options->ready, options->ready_count, e)) == OK && s->ready.latest &&
        s->steps.from != STEP_FROM_NAME)
        rc = error_set(e, ERR_ARG, "--ready latest:FILE needs names with a step; it cannot be used with --step-from");
    return rc;
}

double checkpoint_source_quiet(const struct checkpoint_source *s, const struct sighting *item)
{
    if (item->kind != CHECKPOINT_OTHER)
        return 0;
    return item->in_place && s->ready.quiet_seconds <= 0 ? READY_QUIET_SECONDS : s->ready.quiet_seconds;
}

int checkpoint_witness(enum checkpoint_kind kind, const char *path, char *out, size_t size, struct error *e)
{
    int n = snprintf(out, size, "%s%s", path, kind == CHECKPOINT_BUNDLE ? ".index" : "");

    return n >= 0 && (size_t)n < size ? OK : error_set(e, ERR_ARG, "%.200s...: path too long", path);
}

void checkpoint_source_describe(const struct checkpoint_source *s, char *out, size_t size)
{
    if (s->has_pattern)
        snprintf(out, size, "names like %s%s", s->pattern.text, s->pattern.directory ? "/" : "");
    else
        snprintf(out, size,
                 "files named NAME-STEP.index or NAME-STEP.safetensors, directories NAME-STEP "
                 "with " CHECKPOINT_WEIGHTS_FILE " or " CHECKPOINT_WEIGHTS_INDEX);
}

int64_t checkpoint_source_step(const struct checkpoint_source *s, int64_t number)
{
    return s->steps.from == STEP_FROM_NAME ? step_rule_step(&s->steps, number) : -1;
}

int checkpoint_source_match(const struct checkpoint_source *s, const char *name, int64_t *step)
{
    int64_t number;

    if (!pattern_match(&s->pattern, name, &number))
        return 0;
    *step = checkpoint_source_step(s, number);
    return 1;
}

/* The bytes of a name before a suffix that files of weights have; 0: it has none. */
static size_t weights_stem(const char *name)
{
    static const char *const suffixes[] = { ".pt", ".pth", ".ckpt", ".safetensors", ".npz", ".h5", ".keras", ".pkl" };
    size_t stem = 0;

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && !stem; i++)
        stem = text_stem(name, strlen(name), suffixes[i]);
    return stem;
}

void checkpoint_source_suggest(const char *name, struct buffer *out)
{
    const size_t stem = weights_stem(name), first = strcspn(name, "0123456789");
    size_t last = stem;

    while (last && !isdigit((unsigned char)name[last - 1]))
        last--;
    buffer_append_text(out, "--pattern '");
    for (size_t i = 0, digits; i < stem; i += digits ? digits : 1)
        if (!(digits = strspn(name + i, "0123456789")))
            buffer_append_byte(out, name[i]);
        else
            buffer_append_text(out, i + digits < last ? "{*}" : "{step}");
    buffer_format(out, "%s'%s", name + stem, first < stem ? "" : " --step-from count");
}

size_t checkpoint_source_distance(const struct checkpoint_source *s, const char *name)
{
    const size_t stem = s->has_pattern ? 0 : weights_stem(name);
    char wanted[PATTERN_TEXT_MAX] = "", letters[PATTERN_TEXT_MAX];
    size_t n = 0;

    if (!s->has_pattern)
        return stem ? strcspn(name, "0123456789") >= stem : CHECKPOINT_SOURCE_FAR;
    for (size_t i = 0; i < s->pattern.count; i++)
        if (s->pattern.parts[i].kind == PATTERN_TEXT)
            strncat(wanted, s->pattern.text + s->pattern.parts[i].start, s->pattern.parts[i].length);
    for (; *name && n + 1 < sizeof letters; name++)
        if (!isdigit((unsigned char)*name))
            letters[n++] = *name;
    letters[n] = '\0';
    return text_distance(wanted, letters);
}

int checkpoint_source_name(const struct checkpoint_source *s, const char *file, char *name, size_t size, int64_t *step)
{
    const size_t n = strlen(file), stem = text_stem(file, n, ".index");

    if (!n || *file == '.' || checkpoint_name_temporary(file) ||
        snprintf(name, size, "%.*s", (int)(stem ? stem : n), file) >= (int)size)
        return 0;
    if (s->has_pattern && stem && !s->pattern.directory && checkpoint_source_match(s, name, step))
        return 1;
    if (s->has_pattern)
        return !strstr(file, ".data-") && checkpoint_source_match(s, file, step);
    if (stem)
        return (*step = checkpoint_source_step(s, checkpoint_name_step(name))) >= 0;
    return (*step = checkpoint_source_step(s, checkpoint_name_safetensors(file))) >= 0;
}
