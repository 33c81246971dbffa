/* From the lines of a model file to its settings and calls: repeats, variables, names of values, parameters. */
#include "base/array.h"
#include "base/number.h"
#include "base/text.h"
#include "model/file/argument.h"
#include "model/file/model_file_internal.h"
#include "model/file/model_lines.h"
#include "model/file/model_settings.h"
#include "model/layers/layers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYER_ADDRESS(name) &layer_call_##name,
static const struct layer_call *const kinds[] = { LAYERS(LAYER_ADDRESS) NULL };
enum { KINDS = sizeof kinds / sizeof *kinds - 1, SETTINGS_MAX = 32, WORDS_MAX = 64, VARIABLES_MAX = 8 };

/* A name that stands for FIRST..LAST or for one of some words. */
struct variable {
    char name[MODEL_FILE_WORD_MAX];
    int64_t first, count;
    const char *word; /* of this iteration, up to a comma or the end; NULL: numbers */
    size_t length;
};

struct block {
    size_t begin; /* line after `repeat` */
    int line;
    int64_t iteration, count;
    struct variable variables[VARIABLES_MAX];
    int variable_count;
    char text[MODEL_FILE_LINE_MAX + 1]; /* its line */
};

struct value_name {
    char name[MODEL_FILE_WORD_MAX];
    int value;
};

struct reader {
    struct model_file *f;
    struct error *e;
    struct model_lines lines;
    size_t at; /* next line */
    int line;  /* its number */
    struct block blocks[MODEL_FILE_DEPTH_MAX];
    int depth;
    int settings[SETTINGS_MAX]; /* line that gave it, 0: none */
    struct argument defaults[KINDS][CALL_PARAMETERS_MAX];
    char has_default[KINDS][CALL_PARAMETERS_MAX];
    struct value_name *names;
    size_t name_count, name_room;
    char text[MODEL_FILE_LINE_MAX + 1]; /* the line with its variables replaced, cut into words */
    char *words[WORDS_MAX];
    size_t word_count;
};

const struct layer_call *const *model_layer_kinds(void)
{
    return kinds;
}

#define FAIL(r, ...) fail(r, error_set((r)->e, ERR_ARG, __VA_ARGS__))

static int fail(struct reader *r, int code)
{
    error_prefix(r->e, "%s: line %d", r->f->path, r->line);
    return code;
}

static int is_name(const char *text, const char *more)
{
    for (const char *c = text; *c; c++)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9') && *c != '_' &&
            !strchr(more, *c))
            return 0;
    return *text != '\0';
}

/* " (did you mean x?)", or "" if none is near. `name` gives the k-th name, NULL after the last. */
static const char *suggest(const char *word, const char *(*name)(const void *, size_t), const void *context, char *out,
                           size_t size)
{
    size_t best = 3;

    *out = '\0';
    for (size_t k = 0; name(context, k); k++) {
        const size_t d = text_distance(word, name(context, k));

        if (d < best && d < strlen(word)) {
            best = d;
            snprintf(out, size, " (did you mean %s?)", name(context, k));
        }
    }
    return out;
}

static const char *statement_name(const void *context, size_t k)
{
    static const char *const more[] = { "default", "repeat", "end" };
    size_t settings;
    const struct model_setting *table = model_settings(&settings);

    (void)context;
    return k < KINDS                  ? kinds[k]->name
           : k < KINDS + settings     ? table[k - KINDS].name
           : k < KINDS + settings + 3 ? more[k - KINDS - settings]
                                      : NULL;
}

static const char *parameter_name(const void *context, size_t k)
{
    return ((const struct layer_call *)context)->parameters[k].name;
}

static const char *layer_name(const void *context, size_t k)
{
    (void)context;
    return k < KINDS ? kinds[k]->name : NULL;
}

/* ---- repeats ----------------------------------------------------------------------------------------------------- */

/* Appends what {name} stands for. 1; 0: no such variable; -1: too long. */
static int append_variable(const struct reader *r, const char *name, size_t n, char *to, size_t *at)
{
    for (int d = r->depth - 1; d >= 0; d--)
        for (int k = 0; k < r->blocks[d].variable_count; k++) {
            const struct block *b = &r->blocks[d];
            const struct variable *v = &b->variables[k];
            const char *text;
            char number[24];
            size_t length;

            if (strlen(v->name) != n || memcmp(v->name, name, n) != 0)
                continue;
            text = v->word ? v->word : number;
            length = v->length;
            if (!v->word)
                length = (size_t)snprintf(number, sizeof number, "%" PRId64, v->first + b->iteration);
            if (*at + length > MODEL_FILE_LINE_MAX)
                return -1;
            memcpy(to + *at, text, length);
            *at += length;
            return 1;
        }
    return 0;
}

/* Fills r->text and r->words from a line. */
static int take_words(struct reader *r, const char *line)
{
    size_t at = 0;

    for (const char *c = line; *c; c++) {
        const char *end = *c == '{' ? strchr(c, '}') : NULL;
        const int found = end ? append_variable(r, c + 1, (size_t)(end - c) - 1, r->text, &at) : 1;

        if (*c == '{' && (!end || !found))
            return FAIL(r, "%.40s: this is no variable of a repeat around it", c);
        if (found < 0 || at >= MODEL_FILE_LINE_MAX)
            return FAIL(r, "it is longer than %d bytes with its variables", MODEL_FILE_LINE_MAX);
        if (end)
            c = end;
        else
            r->text[at++] = *c;
    }
    r->text[at] = '\0';
    r->word_count = 0;
    for (char *rest = r->text, *word; rest;) {
        word = rest;
        if ((rest = strchr(rest, ' ')))
            *rest++ = '\0';
        if (r->word_count == WORDS_MAX)
            return FAIL(r, "it has more than %d words", WORDS_MAX);
        r->words[r->word_count++] = word;
    }
    return OK;
}

/* "NAME=1..5", "NAME=a,b". */
static int take_variable(struct reader *r, struct block *b, char *word)
{
    struct variable *v = &b->variables[b->variable_count];
    char *text = strchr(word, '='), *dots;
    int64_t last;

    if (!text)
        return FAIL(r, "'%.40s' is not NAME=FIRST..LAST or NAME=WORD,WORD...", word);
    *text++ = '\0';
    if (!is_name(word, "") || strlen(word) >= sizeof v->name)
        return FAIL(r, "'%.40s' is no name of a variable: use letters, digits and _", word);
    snprintf(v->name, sizeof v->name, "%s", word);
    if ((dots = strstr(text, ".."))) {
        *dots = '\0';
        if (!number_parse_int(text, &v->first) || !number_parse_int(dots + 2, &last) || v->first < 0 ||
            last < v->first || last > INT64_MAX / 2)
            return FAIL(r, "%s=%.40s..%.40s: use FIRST..LAST, whole numbers from 0, in this order", word, text,
                        dots + 2);
        v->count = last - v->first + 1;
    } else {
        v->word = b->text + (text - r->text); /* r->text will change */
        v->length = strcspn(text, ",");
        v->count = 1;
        for (const char *c = text; *c; c++) {
            v->count += *c == ',';
            if (*text == ',' || (*c == ',' && (!c[1] || c[1] == ',')))
                return FAIL(r, "%s=%.40s: a word is missing", word, text);
        }
        if (!*text)
            return FAIL(r, "%s=: a word is missing", word);
    }
    b->count = v->count;
    b->variable_count++;
    return OK;
}

static int begin_repeat(struct reader *r)
{
    struct block *b = &r->blocks[r->depth];
    int64_t count = 0;

    if (r->depth == MODEL_FILE_DEPTH_MAX)
        return FAIL(r, "more than %d repeats within each other", MODEL_FILE_DEPTH_MAX);
    *b = (struct block){ .begin = r->at, .line = r->line };
    if (r->word_count < 2 || r->word_count > VARIABLES_MAX + 1)
        return FAIL(r, "expected 1 to %d of NAME=FIRST..LAST or NAME=WORD,WORD... after repeat", VARIABLES_MAX);
    memcpy(b->text, r->text, sizeof b->text);
    for (size_t k = 1; k < r->word_count; k++) {
        if (take_variable(r, b, r->words[k]) < 0)
            return ERR_ARG;
        if (k > 1 && b->count != count)
            return FAIL(r, "%s has %" PRId64 " values, and %s %" PRId64, b->variables[0].name, count,
                        b->variables[k - 1].name, b->count);
        count = b->count;
    }
    r->depth++;
    return OK;
}

static int end_repeat(struct reader *r)
{
    struct block *b;

    if (r->word_count > 1 || !r->depth)
        return FAIL(r, r->depth ? "nothing may follow end" : "this end has no repeat before it");
    b = &r->blocks[r->depth - 1];
    if (++b->iteration == b->count) {
        r->depth--;
        return OK;
    }
    r->at = b->begin;
    for (int k = 0; k < b->variable_count; k++) {
        struct variable *v = &b->variables[k];

        if (v->word) {
            v->word += v->length + 1;
            v->length = strcspn(v->word, ",");
        }
    }
    return OK;
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static int find_kind(const char *word)
{
    for (int k = 0; k < KINDS; k++)
        if (!strcmp(kinds[k]->name, word))
            return k;
    return -1;
}

static const char *value_name(const void *context, size_t k)
{
    const struct reader *r = context;

    return k < r->name_count ? r->names[k].name : NULL;
}

/* A value by its name. */
static int find_value(struct reader *r, const char *name, size_t n, int *out)
{
    char word[MODEL_FILE_WORD_MAX], near[120];

    snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), name);
    if (!strcmp(word, "input")) {
        *out = 0;
        return OK;
    }
    for (size_t k = 0; k < r->name_count; k++)
        if (!strcmp(r->names[k].name, word)) {
            *out = r->names[k].value;
            return OK;
        }
    return FAIL(r, "no line before it names its result '%s'%s; write '%s = LAYER ...' there", word,
                suggest(word, value_name, r, near, sizeof near), *word ? word : "NAME");
}

static int set_name(struct reader *r, const char *name, int value)
{
    if (!is_name(name, "") || strlen(name) >= sizeof r->names->name || !strcmp(name, "input"))
        return FAIL(r, "'%.40s' cannot name a value: use letters, digits and _, but not input", name);
    for (size_t k = 0; k < r->name_count; k++)
        if (!strcmp(r->names[k].name, name)) {
            r->names[k].value = value;
            return OK;
        }
    if (!ARRAY_ROOM(r->names, r->name_room, r->name_count + 1))
        return error_memory(r->e, r->f->path, "for names of values");
    snprintf(r->names[r->name_count].name, sizeof r->names->name, "%s", name);
    r->names[r->name_count++].value = value;
    return OK;
}

/* The parameter of that name, or -1 with a sentence. */
static int find_parameter(struct reader *r, const struct layer_call *kind, const char *name)
{
    char near[120];

    for (int k = 0; kind->parameters[k].name; k++)
        if (!strcmp(kind->parameters[k].name, name))
            return k;
    FAIL(r, "%s has no parameter '%.40s'%s", kind->name, name, suggest(name, parameter_name, kind, near, sizeof near));
    return -1;
}

/* "NAME=VALUE", or "NAME" for a flag. */
static int take_argument(struct reader *r, const struct layer_call *kind, char *word, struct argument *to, char *given)
{
    char *value = strchr(word, '=');
    int k;

    if (value)
        *value++ = '\0';
    if ((k = find_parameter(r, kind, word)) < 0)
        return ERR_ARG;
    if (!value && kind->parameters[k].kind != PARAMETER_FLAG)
        return FAIL(r, "%s: %s needs a value: %s=%s", kind->name, word, word, argument_form(&kind->parameters[k]));
    if (given[k])
        return FAIL(r, "%s: %s is there twice", kind->name, word);
    given[k] = 1;
    if (argument_parse(&kind->parameters[k], value ? value : "yes", &to[k], r->e) < 0) {
        error_prefix(r->e, "%s: %s", kind->name, word);
        return fail(r, ERR_ARG);
    }
    return OK;
}

static int take_default(struct reader *r)
{
    char given[CALL_PARAMETERS_MAX] = { 0 }, near[120];
    const int kind = r->word_count > 2 ? find_kind(r->words[1]) : 0;

    if (r->word_count < 3)
        return FAIL(r, "expected LAYER PARAMETER=VALUE... after default");
    if (kind < 0)
        return FAIL(r, "there is no layer '%.40s'%s", r->words[1],
                    suggest(r->words[1], layer_name, NULL, near, sizeof near));
    for (size_t k = 2; k < r->word_count; k++)
        if (take_argument(r, kinds[kind], r->words[k], r->defaults[kind], given) < 0)
            return ERR_ARG;
    for (int k = 0; k < CALL_PARAMETERS_MAX; k++)
        r->has_default[kind][k] |= given[k];
    return OK;
}

/* "of=a" and "with=b,c". */
static int take_inputs(struct reader *r, struct model_file_call *call, const char *of, const char *with)
{
    if (of && find_value(r, of, strlen(of), &call->inputs[0]) < 0)
        return ERR_ARG;
    if (!of)
        call->inputs[0] = (int)r->f->call_count;
    call->input_count = 1;
    while (with) {
        const size_t n = strcspn(with, ",");

        if (call->input_count == call->kind->inputs_most)
            return FAIL(r, "%s takes %d value%s, and more are given by of and with", call->kind->name,
                        call->kind->inputs_most, call->kind->inputs_most == 1 ? "" : "s");
        if (find_value(r, with, n, &call->inputs[call->input_count++]) < 0)
            return ERR_ARG;
        with = with[n] ? with + n + 1 : NULL;
    }
    if (call->input_count < call->kind->inputs_least)
        return FAIL(r, "%s needs another value: with=VALUE", call->kind->name);
    return OK;
}

static int take_name(struct reader *r, struct model_file_call *call, size_t *word)
{
    const struct layer_call *kind = call->kind;
    const char *name = *word < r->word_count ? r->words[*word] : "";

    if (!kind->named)
        return OK;
    if (!*name || strchr(name, '='))
        return FAIL(r, "%s needs the name of its %s: %s NAME ...", kind->name, kind->named, kind->name);
    if (!is_name(name, "./-") || strlen(name) >= sizeof call->name || *name == '/')
        return FAIL(r, "'%.60s' cannot name a variable: use at most %d letters, digits, and _ . / -", name,
                    CALL_NAME_MAX - 1);
    snprintf(call->name, sizeof call->name, "%s", name);
    ++*word;
    return OK;
}

/* What the line does not say. */
static int fill_defaults(struct reader *r, struct model_file_call *call, int kind, const char *given)
{
    for (int k = 0; kinds[kind]->parameters[k].name; k++) {
        const struct call_parameter *p = &kinds[kind]->parameters[k];

        if (given[k])
            continue;
        if (r->has_default[kind][k])
            call->arguments[k] = r->defaults[kind][k];
        else if (!p->standard)
            return FAIL(r, "%s needs %s=%s", kinds[kind]->name, p->name, argument_form(p));
        else if (argument_parse(p, p->standard, &call->arguments[k], r->e) < 0)
            return fail(r, ERR_ARG);
    }
    return OK;
}

/* words[first] is the layer. */
static int take_layer(struct reader *r, int kind, size_t first, const char *result)
{
    char given[CALL_PARAMETERS_MAX] = { 0 };
    const char *of = NULL, *with = NULL;
    struct model_file_call call = { .kind = kinds[kind], .line = r->line };
    size_t word = first + 1;

    if (r->f->call_count == MODEL_FILE_LAYERS_MAX)
        return FAIL(r, "more than %d layers", MODEL_FILE_LAYERS_MAX);
    if (take_name(r, &call, &word) < 0)
        return ERR_ARG;
    for (; word < r->word_count; word++) {
        char *w = r->words[word];

        if (!strncmp(w, "of=", 3))
            of = w + 3;
        else if (!strncmp(w, "with=", 5))
            with = w + 5;
        else if (take_argument(r, kinds[kind], w, call.arguments, given) < 0)
            return ERR_ARG;
    }
    if (take_inputs(r, &call, of, with) < 0 || fill_defaults(r, &call, kind, given) < 0)
        return ERR_ARG;
    if (!ARRAY_ROOM(r->f->calls, r->f->call_room, r->f->call_count + 1))
        return error_memory(r->e, r->f->path, "for its layers");
    r->f->calls[r->f->call_count++] = call;
    return result ? set_name(r, result, (int)r->f->call_count) : OK;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static int take_setting(struct reader *r, const struct model_setting *s, int *line)
{
    if (r->depth)
        return FAIL(r, "%s is a setting, and cannot be in a repeat", s->name);
    if (*line)
        return FAIL(r, "%s is already given in line %d", s->name, *line);
    *line = r->line;
    if (s->parse(r->f, r->words + 1, r->word_count - 1, r->e) < 0) {
        error_prefix(r->e, "%s", s->name);
        return fail(r, ERR_ARG);
    }
    return OK;
}

static int take_statement(struct reader *r)
{
    const int named = r->word_count > 1 && !strcmp(r->words[1], "=");
    const char *word = named ? (r->word_count > 2 ? r->words[2] : "") : r->words[0];
    const int kind = find_kind(word);
    char near[120];
    size_t settings;
    const struct model_setting *table = model_settings(&settings);

    if (kind >= 0)
        return take_layer(r, kind, named ? 2 : 0, named ? r->words[0] : NULL);
    if (!named && !strcmp(word, "repeat"))
        return begin_repeat(r);
    if (!named && !strcmp(word, "end"))
        return end_repeat(r);
    if (!named && !strcmp(word, "default"))
        return take_default(r);
    for (size_t k = 0; k < settings && !named; k++)
        if (!strcmp(table[k].name, word))
            return take_setting(r, &table[k], &r->settings[k]);
    if (named)
        return FAIL(r, "'%s =' must be followed by a layer%s", r->words[0],
                    suggest(word, layer_name, NULL, near, sizeof near));
    return FAIL(r, "there is no layer or setting '%.40s'%s", word,
                suggest(word, statement_name, NULL, near, sizeof near));
}

static int read_statements(struct reader *r)
{
    int rc = OK;

    for (int steps = 0; r->at < r->lines.count && rc == OK; steps++) {
        const size_t at = r->at++;

        r->line = r->lines.items[at].number;
        if (steps == MODEL_FILE_STEPS_MAX)
            return FAIL(r, "the repeats come to more than %d lines", MODEL_FILE_STEPS_MAX);
        if ((rc = take_words(r, model_lines_text(&r->lines, at))) == OK)
            rc = take_statement(r);
    }
    if (rc == OK && r->depth) {
        r->line = r->blocks[r->depth - 1].line;
        return FAIL(r, "this repeat has no end");
    }
    return rc;
}

int model_reader_read(struct model_file *f, struct error *e)
{
    struct error own = { 0 };
    struct reader *r = calloc(1, sizeof *r);
    int rc;

    if (!r)
        return error_memory(e, f->path, "to read it");
    r->f = f;
    r->e = &own;
    if ((rc = model_lines_read(&r->lines, f->text, f->length, &own)) < 0)
        error_prefix(&own, "%s", f->path);
    else
        rc = read_statements(r);
    model_lines_release(&r->lines);
    free(r->names);
    free(r);
    return rc < 0 ? error_copy(e, &own) : rc;
}
