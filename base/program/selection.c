#include "base/program/selection.h"

#include "base/buffer.h"
#include "base/text.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* The distance of a pattern from a name: 0 if one contains the other, else by letters, ignoring wildcards. */
static size_t distance(const char *pattern, const char *name)
{
    char letters[64];
    size_t n = 0;

    for (; *pattern && n + 1 < sizeof letters; pattern++)
        if (!strchr("*?[]\\", *pattern))
            letters[n++] = *pattern;
    letters[n] = '\0';
    return n && (strcasestr(name, letters) || strcasestr(letters, name)) ? 0 : text_distance(letters, name);
}

static void keep_if_near(struct selection_pattern *p, const char *pattern, const char *name)
{
    size_t d, at = SELECTION_NEAREST;
    char *copy;

    for (size_t i = 0; i < SELECTION_NEAREST; i++)
        if (p->nearest[i].name && !strcmp(p->nearest[i].name, name))
            return;
    d = distance(pattern, name);
    while (at && (!p->nearest[at - 1].name || p->nearest[at - 1].distance > d))
        at--;
    if (at == SELECTION_NEAREST || !(copy = strdup(name)))
        return;
    free(p->nearest[SELECTION_NEAREST - 1].name);
    memmove(&p->nearest[at + 1], &p->nearest[at], (SELECTION_NEAREST - 1 - at) * sizeof *p->nearest);
    p->nearest[at].name = copy;
    p->nearest[at].distance = d;
}

static int matches(const struct selection *s, size_t i, const char *name)
{
    return s->matches ? s->matches(s->context, i, name) : !fnmatch(s->patterns.items[i], name, 0);
}

int selection_wants(struct selection *s, const char *name)
{
    int wanted = 0;

    if (!s->patterns.count)
        return 1;
    if (!s->asked && !(s->asked = calloc(s->patterns.count, sizeof *s->asked))) {
        for (size_t i = 0; i < s->patterns.count && !wanted; i++)
            wanted = matches(s, i, name);
        return wanted;
    }
    s->names++;
    for (size_t i = 0; i < s->patterns.count; i++) {
        struct selection_pattern *p = &s->asked[i];

        if (matches(s, i, name))
            wanted = p->matched = 1;
        else if (!p->matched)
            keep_if_near(p, s->patterns.items[i], name);
    }
    return wanted;
}

static void tell(const struct selection *s, size_t i, const char *option, const char *noun, struct log *log)
{
    const struct selection_pattern *p = s->asked ? &s->asked[i] : NULL;
    struct buffer b = BUFFER_EMPTY;
    size_t n = 0;

    buffer_format(&b, "%s '", option);
    text_append_cut(&b, s->patterns.items[i], strlen(s->patterns.items[i]), 60, 1);
    buffer_format(&b, "': no %s matches", noun);
    if (!s->names)
        buffer_append_text(&b, "; there is none");
    while (p && n < SELECTION_NEAREST && p->nearest[n].name)
        n++;
    for (size_t k = 0; k < n; k++) {
        buffer_append_text(&b, !k ? "; did you mean '" : k + 1 < n ? ", '" : " or '");
        text_append_cut(&b, p->nearest[k].name, strlen(p->nearest[k].name), 60, 1);
        buffer_append_text(&b, k + 1 < n ? "'" : "'?");
    }
    log_event(log, "error", NULL, "%s", buffer_text(&b));
    buffer_release(&b);
}

size_t selection_tell(struct selection *s, const char *option, const char *noun, struct log *log)
{
    size_t unmatched = 0;

    for (size_t i = 0; i < s->patterns.count; i++) {
        if (s->asked && s->asked[i].matched)
            continue;
        unmatched++;
        if (!(s->told >> i & 1))
            tell(s, i, option, noun, log);
        s->told |= (uint64_t)1 << i;
    }
    return unmatched;
}

void selection_release(struct selection *s)
{
    for (size_t i = 0; s->asked && i < s->patterns.count; i++)
        for (size_t k = 0; k < SELECTION_NEAREST; k++)
            free(s->asked[i].nearest[k].name);
    free(s->asked);
    s->asked = NULL;
    s->names = 0;
    s->told = 0;
}
