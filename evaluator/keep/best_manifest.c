#include "evaluator/keep/best_manifest.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 1 << 16 };

static const char head[] = "# files that evaluator --keep-best made here and may delete\n";

void best_names_release(struct best_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
    *n = (struct best_names){ NULL, 0 };
}

int best_names_add(struct best_names *n, const char *name, struct error *e)
{
    char **grown = n->count < FILES_MAX ? realloc(n->items, (n->count + 1) * sizeof *grown) : NULL;

    if (grown)
        n->items = grown;
    if (!grown || !(n->items[n->count] = strdup(name)))
        return error_memory(e, name, "for its files, or too many of them");
    n->count++;
    return OK;
}

size_t best_names_find(const struct best_names *n, const char *name)
{
    size_t i = 0;

    while (i < n->count && strcmp(n->items[i], name) != 0)
        i++;
    return i;
}

void best_names_remove(struct best_names *n, size_t i)
{
    free(n->items[i]);
    memmove(n->items + i, n->items + i + 1, (--n->count - i) * sizeof *n->items);
}

int best_manifest_can_hold(const char *name)
{
    return *name && strlen(name) <= NAME_MAX && !strpbrk(name, "/\n") && strcmp(name, ".") && strcmp(name, "..");
}

int best_manifest_parse(const char *text, size_t n, struct best_names *out, struct error *e)
{
    const char *end = text + n, *newline;
    int rc = OK;

    *out = (struct best_names){ NULL, 0 };
    if (n < sizeof head - 1 || memcmp(text, head, sizeof head - 1) != 0)
        return error_set(e, ERR_CORRUPT, "not a list of the evaluator's own files");
    for (text += sizeof head - 1; rc == OK && text < end; text = newline + 1) {
        char name[NAME_MAX + 1] = "";

        if (!(newline = memchr(text, '\n', (size_t)(end - text))))
            newline = end; /* truncated: a name without its newline may be incomplete */
        else if (newline - text <= NAME_MAX && !memchr(text, '\0', (size_t)(newline - text)))
            memcpy(name, text, (size_t)(newline - text));
        rc = best_manifest_can_hold(name) ? best_names_add(out, name, e)
                                          : error_set(e, ERR_CORRUPT, "a line that is not the name of a file");
    }
    if (rc != OK)
        best_names_release(out);
    return rc;
}

void best_manifest_format(const struct best_names *n, struct buffer *out)
{
    buffer_append_text(out, head);
    for (size_t i = 0; i < n->count; i++) {
        buffer_append_text(out, n->items[i]);
        buffer_append_text(out, "\n");
    }
}
