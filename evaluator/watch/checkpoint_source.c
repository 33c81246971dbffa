#include "evaluator/watch/checkpoint_source.h"

#include "base/text.h"
#include "checkpoint/directory/checkpoint_directory.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

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
