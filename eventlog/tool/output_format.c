#include "eventlog/tool/output_format.h"

#include "base/buffer.h"
#include "base/file.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* Extensions that --format may not contradict, even if the command writes no such file. Others, such as .txt, say
 * nothing about the contents. */
static const char known[] = "csv db htm html json jsonl markdown md ndjson parquet png sqlite sqlite3 svg tsv";

int output_format_flag(struct output_options *o, int given, const char *name, struct error *e)
{
    if (given && o->format && strcmp(o->format, name) != 0)
        return error_set(e, ERR_ARG, "--%s contradicts --format=%s; give one of them", name, o->format);
    if (given)
        o->format = name;
    return OK;
}

static int in_words(const char *words, const char *word, size_t n)
{
    for (size_t length; n && *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        if (length == n && !strncasecmp(words, word, n))
            return 1;
    }
    return 0;
}

int output_format_in_words(const char *words, const char *word)
{
    return in_words(words, word, strlen(word));
}

/* The extension of a path: n bytes after the last dot of its name, without .gz; n is 0 if there is none. */
struct extension {
    const char *text;
    size_t n;
    int packed;
};

static struct extension extension_of(const char *path)
{
    struct extension x = { "", 0, 0 };
    const char *name = path && strcmp(path, "-") != 0 ? file_base_name(path) : "", *end = name + strlen(name);

    for (int tries = 0; tries < 2; tries++) {
        const char *dot = memrchr(name, '.', (size_t)(end - name));

        if (!dot || dot == name)
            break;
        x.text = dot + 1;
        x.n = (size_t)(end - dot - 1);
        if (x.packed || x.n != 2 || strncasecmp(x.text, "gz", 2) != 0)
            break;
        x = (struct extension){ "", 0, 1 };
        end = dot;
    }
    return x;
}

int output_format_extension_is(const char *path, const char *extension)
{
    const struct extension x = extension_of(path);

    return in_words(extension, x.text, x.n);
}

static const struct output_format *find(const struct output_format *formats, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(formats[i].name, name))
            return &formats[i];
    return NULL;
}

/* Sets the error for an extension that no format has. */
static int unknown(const struct output_format *formats, size_t count, const char *path, const struct extension *x,
                   struct error *e)
{
    struct buffer list = BUFFER_EMPTY;

    for (size_t i = 0; i < count; i++)
        for (const char *at = formats[i].extensions; at && *at; at += strspn(at, " ")) {
            size_t n = strcspn(at, " "), seen = 0;

            for (size_t k = 0; k < i && !seen; k++)
                seen = formats[k].extensions && in_words(formats[k].extensions, at, n);
            if (!seen)
                buffer_format(&list, "%s.%.*s", list.length ? ", " : "", (int)n, at);
            at += n;
        }
    error_set(e, ERR_ARG, "%s: unknown extension '.%.*s'; use one of %s, or name the format with --format", path,
              (int)x->n, x->text, buffer_text(&list));
    buffer_release(&list);
    return ERR_ARG;
}

int output_format_settle(struct output_options *o, const struct output_format *formats, size_t count, const char *usual,
                         struct error *e)
{
    const struct extension x = extension_of(o->path);
    const struct output_format *f;

    if (output_format_flag(o, o->json, "json", e) != OK)
        return ERR_ARG;
    f = o->format ? find(formats, count, o->format) : NULL;
    assert(f || !o->format);
    for (size_t i = 0; !f && i < count; i++)
        if (formats[i].extensions && in_words(formats[i].extensions, x.text, x.n))
            f = &formats[i];
    if (!f && x.n)
        return unknown(formats, count, o->path, &x, e);
    f = f ? f : find(formats, count, usual);
    if (o->format && f->extensions && in_words(known, x.text, x.n) && !in_words(f->extensions, x.text, x.n))
        return error_set(e, ERR_ARG, "%s: the extension '.%.*s' contradicts --format=%s; change one of them", o->path,
                         (int)x.n, x.text, o->format);
    if (f->binary && x.packed)
        return error_set(e, ERR_ARG, "%s: format %s cannot be compressed; leave out .gz", o->path, f->name);
    o->format = f->name;
    o->path = o->path && !strcmp(o->path, "-") ? NULL : o->path;
    return OK;
}
