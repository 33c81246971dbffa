#include "evaluator/score/evaluation.h"

#include "base/array.h"
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct evaluation_metric *evaluation_metrics_find(const struct evaluation_metrics *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (!strcmp(m->items[i].name, name))
            return &m->items[i];
    return NULL;
}

double evaluation_metrics_value(const struct evaluation_metrics *m, const char *name)
{
    const struct evaluation_metric *found = evaluation_metrics_find(m, name);

    return found ? found->value : NAN;
}

int evaluation_metrics_insert(struct evaluation_metrics *m, size_t at, const char *name, double value, struct error *e)
{
    char *copy;

    assert(at <= m->count);
    if (!*name || strlen(name) >= EVALUATION_NAME_MAX)
        return error_set(e, ERR_ARG, "a metric's name must have 1 to %d bytes, but '%.40s...' has %zu",
                         EVALUATION_NAME_MAX - 1, name, strlen(name));
    if (evaluation_metrics_find(m, name))
        return error_set(e, ERR_ARG, "the metric '%s' is named twice", name);
    if (m->count >= EVALUATION_METRICS_MAX)
        return error_set(e, ERR_ARG, "more than %d metrics", EVALUATION_METRICS_MAX);
    if (!ARRAY_ROOM(m->items, m->capacity, m->count + 1) || !(copy = strdup(name)))
        return error_memory(e, NULL, "for the metric '%s'", name);
    memmove(m->items + at + 1, m->items + at, (m->count - at) * sizeof *m->items);
    m->items[at] = (struct evaluation_metric){ copy, value };
    m->count++;
    return OK;
}

int evaluation_metrics_add(struct evaluation_metrics *m, const char *name, double value, struct error *e)
{
    return evaluation_metrics_insert(m, m->count, name, value, e);
}

void evaluation_metrics_release(struct evaluation_metrics *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->items[i].name);
    free(m->items);
    *m = (struct evaluation_metrics){ NULL, 0, 0 };
}

void evaluation_metrics_text(const struct evaluation_metrics *m, char *text, size_t size)
{
    static const char *const first[] = { EVALUATION_LOSS, EVALUATION_PRECISION, EVALUATION_BEST EVALUATION_PRECISION };
    /* Metrics of single classes, or already in the loss, would only make the line long. */
    const int built_in = evaluation_metrics_find(m, EVALUATION_PRECISION) &&
                         evaluation_metrics_find(m, EVALUATION_LOSS) &&
                         evaluation_metrics_find(m, EVALUATION_CROSS_ENTROPY);
    size_t used = 0;

    *text = '\0';
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        const struct evaluation_metric *metric = evaluation_metrics_find(m, first[i]);

        if (metric)
            used += (size_t)snprintf(text + used, size - used, "%s%s: %.3f", used ? ", " : "",
                                     i == 2 ? "best precision" : first[i], metric->value);
    }
    for (size_t i = 0; i < m->count && used < size; i++) {
        const char *name = m->items[i].name;
        int best = !strncmp(name, EVALUATION_BEST, strlen(EVALUATION_BEST));

        if (strcmp(name, first[0]) && strcmp(name, first[1]) && strcmp(name, first[2]) &&
            !(built_in && (!strcmp(name, EVALUATION_CROSS_ENTROPY) || strchr(name, '/'))))
            used += (size_t)snprintf(text + used, size - used, "%s%s%s: %.6g", used ? ", " : "", best ? "best " : "",
                                     name + (best ? strlen(EVALUATION_BEST) : 0), m->items[i].value);
    }
}

void evaluation_metrics_json(const struct evaluation_metrics *m, struct buffer *out)
{
    buffer_append_text(out, "{");
    for (size_t i = 0; i < m->count; i++) {
        buffer_append_text(out, i ? "," : "");
        json_text(out, m->items[i].name);
        buffer_append_text(out, ":");
        json_double(out, m->items[i].value);
    }
    buffer_append_text(out, "}");
}

const char *evaluation_weights_text(enum evaluation_weights weights)
{
    static const char *const texts[] = { "", "variables", "moving averages", "mixed" };

    return texts[weights];
}

void evaluation_release(struct evaluation *v)
{
    evaluation_metrics_release(&v->metrics);
    if (v->detail && v->detail_free)
        v->detail_free(v->detail);
    *v = (struct evaluation){ .examples = -1, .correct = -1 };
}
