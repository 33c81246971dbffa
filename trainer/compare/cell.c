#include "trainer/compare/cell.h"

#include "base/array.h"
#include "base/number.h"
#include "base/program/options.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next part of a list with commas; 0: there is no more. *at moves on. */
static int next_part(const char **at, char *out, size_t size, struct error *e)
{
    const size_t n = strcspn(*at, ",");

    if (!**at)
        return 0;
    if (n == 0 || n >= size)
        return error_set(e, ERR_ARG, n ? "'%.40s...' is too long" : "'%s': nothing before a comma", *at);
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n + ((*at)[n] == ',');
    return 1;
}

/* "ps-async" and "ps --async" are what the option form is taken for. */
static void suggest(const char *word, const char *const *names, char *out, size_t size)
{
    const size_t stem = strcspn(word, "- :");
    size_t count = 0;
    const char *near;

    while (names[count])
        count++;
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == stem && !strncmp(word, names[i], stem) && word[stem + strspn(word + stem, "- :")]) {
            snprintf(out, size, "; did you mean '%s:%s'?", names[i], word + stem + strspn(word + stem, "- :"));
            return;
        }
    near = options_nearest(word, names, count);
    *out = '\0';
    if (near)
        snprintf(out, size, "; did you mean '%s'?", near);
}

static int check_name(const char *word, const char *const *names, struct error *e)
{
    char name[CELL_TEXT], nearest[2 * CELL_TEXT];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, ":"), word);
    for (size_t i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return OK;
    suggest(name, names, nearest, sizeof nearest);
    return error_set(e, ERR_ARG, "--strategies: there is no strategy '%s'%s", name, nearest);
}

static void name_of(struct cell *c)
{
    size_t n = 0;

    for (const char *at = c->strategy; *at && n < CELL_TEXT - 1; at++)
        c->name[n++] = strchr(":=/ ", *at) ? '-' : *at;
    snprintf(c->name + n, sizeof c->name - n, "-%d", c->workers);
}

static int add(struct cell **cells, size_t *count, size_t *capacity, const char *strategy, int workers, struct error *e)
{
    struct cell c = { .workers = workers };

    if (*count == CELLS_MOST)
        return error_set(e, ERR_ARG, "more than %d cells", CELLS_MOST);
    if (!ARRAY_ROOM(*cells, *capacity, *count + 1))
        return error_memory(e, NULL, "for the cells");
    snprintf(c.strategy, sizeof c.strategy, "%s", strategy);
    name_of(&c);
    for (size_t i = 0; i < *count; i++)
        if (!strcmp((*cells)[i].name, c.name))
            return error_set(e, ERR_ARG, "%s with %d worker%s is given twice", strategy, workers,
                             workers == 1 ? "" : "s");
    (*cells)[(*count)++] = c;
    return OK;
}

static int add_all(struct cell **cells, size_t *count, const char *strategy, const char *ranks, struct error *e)
{
    char word[CELL_TEXT];
    const char *at = ranks;
    size_t capacity = *count;
    int rc;

    while ((rc = next_part(&at, word, sizeof word, e)) > 0) {
        int64_t workers;

        if (!number_parse_int(word, &workers) || workers < 1 || workers > CELL_WORKERS_MOST)
            return error_set(e, ERR_ARG, "--ranks: '%s' is not a number of workers from 1 to %d", word,
                             CELL_WORKERS_MOST);
        if ((rc = add(cells, count, &capacity, strategy, (int)workers, e)) < 0)
            return rc;
    }
    return rc;
}

int cells_parse(struct cell **out, size_t *count, const char *strategies, const char *ranks, const char *const *names,
                struct error *e)
{
    char word[CELL_TEXT];
    const char *at = strategies;
    int rc;

    *out = NULL;
    *count = 0;
    while ((rc = next_part(&at, word, sizeof word, e)) > 0)
        if ((rc = check_name(word, names, e)) < 0 || (rc = add_all(out, count, word, ranks, e)) < 0)
            break;
    if (rc == OK && *count == 0)
        rc = error_set(e, ERR_ARG, "nothing to compare; use --strategies mpi,ps --ranks 1,2");
    if (rc < 0) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

int cell_words(const struct cell *c, struct cell_words *out, struct error *e)
{
    char *to = out->text;
    const char *at = c->strategy;

    out->count = 0;
    out->words[out->count++] = "--run-option";
    for (int first = 1; *at; first = 0) {
        const size_t part = strcspn(at, ":"), name = first ? part : strcspn(at, ":=");

        if (name == 0 || out->count + 2 > CELL_WORDS)
            return error_set(e, ERR_ARG, "--strategies: '%s' is not NAME[:OPTION[=VALUE]]...", c->strategy);
        out->words[out->count++] = to;
        to += sprintf(to, "%s%.*s", first ? "" : "--", (int)name, at) + 1;
        if (name < part) {
            out->words[out->count++] = to;
            to += sprintf(to, "%.*s", (int)(part - name - 1), at + name + 1) + 1;
        }
        at += part + (at[part] == ':');
    }
    return OK;
}

size_t cell_turn(size_t count, int rounds, int round, size_t place)
{
    return (place + (size_t)(round - 1) * count / (size_t)rounds) % count;
}
