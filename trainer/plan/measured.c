#include "trainer/plan/measured.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/number.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_STRATEGY, COLUMN_WORKERS, COLUMN_RANKS, COLUMN_STEPS, COLUMNS, WORKERS_MOST = 1 << 20 };
static const char *const column_names[COLUMNS] = { "strategy", "workers", "ranks", "steps_per_second" };

void measured_release(struct measured *m)
{
    free(m->items);
    *m = (struct measured){ 0 };
}

/* Of the name, or of its beginning up to one of its options. */
static const struct plan_strategy *strategy_of(const char *text)
{
    const struct plan_strategy *found = plan_strategy_find(text);
    char name[64];
    char *colon;

    if (snprintf(name, sizeof name, "%s", text) >= (int)sizeof name)
        return NULL;
    while (!found && (colon = strrchr(name, ':'))) {
        *colon = '\0';
        found = plan_strategy_find(name);
    }
    return found;
}

static int add(struct measured *m, const char *strategy, int64_t workers, double steps, const char *path, size_t line,
               struct error *e)
{
    const struct plan_strategy *s = strategy_of(strategy);

    if (workers < 1 || workers > WORKERS_MOST)
        return error_set(e, ERR_ARG, "%s:%zu: %lld workers; wanted 1 to %d", path, line, (long long)workers,
                         WORKERS_MOST);
    if (!(steps > 0) || steps > 1e12)
        return error_set(e, ERR_ARG, "%s:%zu: %g steps a second; wanted a number above 0", path, line, steps);
    if (!s) {
        m->skipped++;
        return OK;
    }
    if (!ARRAY_ROOM(m->items, m->capacity, m->count + 1))
        return error_memory(e, path, "for %zu measurements", m->count);
    m->items[m->count++] = (struct measurement){ s, (int)workers, steps };
    return OK;
}

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

/* Takes the next field, without its quotes, from a line that ends at `end`. 0: there is none. */
static int next_field(const char **at, const char *end, struct buffer *field)
{
    int quoted = 0;

    buffer_clear(field);
    if (!*at)
        return 0;
    for (; *at < end && (quoted || **at != ','); ++*at)
        if (**at == '"')
            quoted = !quoted;
        else if (**at != '\r')
            buffer_append_byte(field, **at);
    *at = *at < end ? *at + 1 : NULL;
    return 1;
}

static void read_names(const char *at, const char *end, int *places, struct buffer *field)
{
    for (int c = 0; c < COLUMNS; c++)
        places[c] = -1;
    for (int i = 0; next_field(&at, end, field); i++)
        for (int c = 0; c < COLUMNS; c++)
            if (places[c] < 0 && !strcmp(buffer_text(field), column_names[c]))
                places[c] = i;
}

static int read_row(struct measured *m, const char *at, const char *end, const int *places, struct buffer *field,
                    const char *path, size_t line, struct error *e)
{
    char strategy[64] = "";
    int64_t workers = 0;
    double steps = 0;
    const int of_workers = places[COLUMN_WORKERS] >= 0 ? places[COLUMN_WORKERS] : places[COLUMN_RANKS];

    for (int i = 0; next_field(&at, end, field); i++) {
        if (i == places[COLUMN_STRATEGY])
            snprintf(strategy, sizeof strategy, "%s", buffer_text(field));
        if (i == of_workers && !number_parse_int(buffer_text(field), &workers))
            return error_set(e, ERR_ARG, "%s:%zu: '%s' is not a number of workers", path, line, buffer_text(field));
        if (i == places[COLUMN_STEPS] && field->length == 0) {
            m->skipped++;
            return OK;
        }
        if (i == places[COLUMN_STEPS] && !number_parse_double(buffer_text(field), &steps))
            return error_set(e, ERR_ARG, "%s:%zu: '%s' is not a number of steps a second", path, line,
                             buffer_text(field));
    }
    return add(m, strategy, workers, steps, path, line, e);
}

static int parse_csv(struct measured *m, const char *text, size_t n, const char *path, struct error *e)
{
    const char *at = text, *const end = text + n;
    struct buffer field = BUFFER_EMPTY;
    int places[COLUMNS], rc = OK;

    for (size_t line = 1; at < end && rc == OK; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        stop = stop ? stop : end;
        if (line == 1) {
            read_names(at, stop, places, &field);
            if (places[COLUMN_STRATEGY] < 0 || places[COLUMN_STEPS] < 0 ||
                (places[COLUMN_WORKERS] < 0 && places[COLUMN_RANKS] < 0))
                rc = error_set(e, ERR_ARG,
                               "%s:1: no columns strategy, ranks and steps_per_second; the first line names the "
                               "columns",
                               path);
        } else if (stop > at && *at != '\r') {
            rc = read_row(m, at, stop, places, &field, path, line, e);
        }
        at = stop + (stop < end);
    }
    buffer_release(&field);
    return rc;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static int read_object(struct measured *m, const json_t *o, const char *path, size_t line, struct error *e)
{
    const json_t *strategy = json_object_get(o, "strategy"), *steps = json_object_get(o, "steps_per_second");
    const json_t *workers = json_object_get(o, "workers");

    if (!workers)
        workers = json_object_get(o, "ranks");
    if (json_is_object(steps))
        steps = json_object_get(steps, "median");
    if (json_is_string(strategy) && json_is_null(steps)) {
        m->skipped++;
        return OK;
    }
    if (!json_is_string(strategy) || !json_is_integer(workers) || !json_is_number(steps))
        return error_set(e, ERR_ARG, "%s:%zu: an object without strategy, ranks and steps_per_second", path, line);
    return add(m, json_string_value(strategy), json_integer_value(workers), json_number_value(steps), path, line, e);
}

static int read_value(struct measured *m, const json_t *root, const char *path, size_t line, struct error *e)
{
    const json_t *cells = json_is_object(root) ? json_object_get(root, "cells") : root;
    int rc = OK;

    if (!json_is_array(cells))
        return read_object(m, root, path, line, e);
    for (size_t i = 0; i < json_array_size(cells) && rc == OK; i++)
        rc = read_object(m, json_array_get(cells, i), path, line, e);
    return rc;
}

static int parse_json(struct measured *m, const char *text, size_t n, const char *path, struct error *e)
{
    size_t at = 0, line = 1;
    int rc = OK;

    while (rc == OK) {
        json_error_t wrong;
        json_t *root;

        while (at < n && strchr(" \t\r\n", text[at]))
            line += text[at++] == '\n';
        if (at == n)
            break;
        root = json_loadb(text + at, n - at, JSON_DISABLE_EOF_CHECK, &wrong);
        if (!root)
            return error_set(e, ERR_ARG, "%s:%zu: not JSON: %s", path,
                             line + (size_t)(wrong.line > 0 ? wrong.line - 1 : 0), wrong.text);
        rc = read_value(m, root, path, line, e);
        json_decref(root);
        for (int i = 0; i < wrong.position; i++)
            line += text[at++] == '\n';
    }
    return rc;
}

int measured_parse(struct measured *out, const char *text, size_t n, const char *path, struct error *e)
{
    size_t at = 0;
    int rc;

    *out = (struct measured){ 0 };
    while (at < n && strchr(" \t\r\n", text[at]))
        at++;
    if (at < n && (text[at] == '[' || text[at] == '{'))
        rc = parse_json(out, text, n, path, e);
    else
        rc = parse_csv(out, text, n, path, e);
    if (rc == OK && out->count == 0)
        rc = error_set(e, ERR_ARG, "%s: no measurements of strategies that have a model", path);
    if (rc < 0)
        measured_release(out);
    return rc;
}
