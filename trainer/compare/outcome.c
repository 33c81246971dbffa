#include "trainer/compare/outcome.h"

#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void outcome_release(struct outcome *o)
{
    free(o->evaluations);
    o->evaluations = NULL;
    o->evaluation_count = o->evaluation_room = 0;
}

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* Copies a text of JSON, and so UTF-8; one that is too long ends after a whole character. */
static void copy_text(char *out, size_t size, const char *text)
{
    size_t n = text ? strlen(text) : 0;

    if (n >= size)
        for (n = size - 1; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
            n--;
    if (n > 0)
        memcpy(out, text, n);
    out[n] = '\0';
}

static void text_of(const json_t *object, const char *name, char *out, size_t size)
{
    copy_text(out, size, json_string_value(json_object_get(object, name)));
}

/* ---- what programs wrote ----------------------------------------------------------------------------------------- */

/* The mean share of the workers' time in which they waited. */
static double waiting_of(const json_t *times)
{
    double sum = 0;
    size_t workers = 0;

    for (size_t i = 0; i < json_array_size(times); i++) {
        const json_t *t = json_array_get(times, i);
        const double seconds = number_of(t, "seconds");

        if (json_is_true(json_object_get(t, "server")) || !(seconds > 0))
            continue;
        sum += number_of(t, "waiting") / seconds;
        workers++;
    }
    return workers ? sum / (double)workers : 0;
}

/* Seconds a step of each phase, mean over workers; and what share of their time the servers worked. */
static void add_phases(struct outcome *o, const json_t *times)
{
    double idle = 0, all = 0;
    size_t workers = 0;

    memset(o->phases, 0, sizeof o->phases);
    for (size_t i = 0; i < json_array_size(times); i++) {
        const json_t *t = json_array_get(times, i);
        const double steps = number_of(t, "steps");

        if (json_is_true(json_object_get(t, "server"))) {
            idle += number_of(t, phase_names[PHASE_WAITING]);
            all += number_of(t, "seconds");
        } else if (steps > 0) {
            for (int p = 0; p < PHASE_COUNT; p++)
                o->phases[p] += number_of(t, phase_names[p]) / steps;
            workers++;
        }
    }
    for (int p = 0; p < PHASE_COUNT && workers; p++)
        o->phases[p] /= (double)workers;
    o->serving = all > 0 ? 1 - idle / all : -1;
}

static void add_links(struct outcome *o, const json_t *root)
{
    const json_t *links = json_object_get(root, "links"), *busiest = json_object_get(root, "busiest_link");

    o->sent = 0;
    for (size_t i = 0; i < json_array_size(links); i++)
        o->sent += number_of(json_array_get(links, i), "sent_per_step");
    o->busiest[0] = '\0';
    if (!json_is_object(busiest))
        return;
    o->busiest_sent = number_of(busiest, "sent_per_step");
    o->busiest_received = number_of(busiest, "received_per_step");
    if (json_object_get(busiest, "rank"))
        snprintf(o->busiest, sizeof o->busiest, "%.20s %.0f", json_string_value(json_object_get(busiest, "role")),
                 number_of(busiest, "rank"));
    else
        text_of(busiest, "host", o->busiest, sizeof o->busiest);
}

/* Gradients that made no update; -1: not counted. */
static double dropped_of(const json_t *root)
{
    const json_t *value = json_object_get(root, "gradients_dropped");

    return json_is_number(value) ? json_number_value(value) : -1;
}

int outcome_add_summary(struct outcome *o, const char *json, size_t n, struct error *e)
{
    json_t *root = json_loadb(json, n, 0, NULL);
    const double speed = number_of(root, "steps_per_second");

    if (!json_is_object(root) || !json_is_integer(json_object_get(root, "global_step"))) {
        json_decref(root);
        return error_set(e, ERR_CORRUPT, "the trainer wrote no summary on standard output");
    }
    o->steps = json_integer_value(json_object_get(root, "steps"));
    o->seconds = number_of(root, "seconds");
    o->steps_per_second = speed;
    o->samples_per_step = speed > 0 ? number_of(root, "samples_per_second") / speed : 0;
    o->waiting = waiting_of(json_object_get(root, "time"));
    add_phases(o, json_object_get(root, "time"));
    o->staleness_mean = number_of(root, "staleness_mean");
    o->staleness_max = number_of(root, "staleness_max");
    o->dropped = dropped_of(root);
    text_of(root, "weights", o->weights, sizeof o->weights);
    add_links(o, root);
    json_decref(root);
    return OK;
}

static int add_evaluation(struct outcome *o, const struct evaluation *evaluation, struct error *e)
{
    if (!ARRAY_ROOM(o->evaluations, o->evaluation_room, o->evaluation_count + 1))
        return error_memory(e, NULL, "for evaluations");
    o->evaluations[o->evaluation_count++] = *evaluation;
    return OK;
}

int outcome_add_ledger(struct outcome *o, const char *lines, size_t n, struct error *e)
{
    double first = NAN;
    int rc = OK;

    while (n > 0 && rc == OK) {
        const char *end = memchr(lines, '\n', n);
        const size_t length = end ? (size_t)(end - lines) : n, all = end ? length + 1 : n;
        json_t *line = json_loadb(lines, length, 0, NULL);
        const json_t *precision = json_object_get(json_object_get(line, "metrics"), "precision");

        if (json_is_number(precision)) {
            const double time = number_of(line, "point_time");

            first = isnan(first) ? time : first;
            rc = add_evaluation(o,
                                &(struct evaluation){ .step = json_integer_value(json_object_get(line, "step")),
                                                      .seconds = time - first,
                                                      .precision = json_number_value(precision) },
                                e);
        }
        json_decref(line);
        lines += all;
        n -= all;
    }
    return rc;
}

void outcome_reason(const char *log, char *out, size_t size)
{
    const char *found = NULL, *any = NULL;

    for (const char *line = log; *line && !found; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
        const size_t n = strcspn(line, "\n");
        const char *trainer = strstr(line, "trainer: ");

        if (trainer && trainer < line + n)
            found = trainer + strlen("trainer: ");
        if (!any && strspn(line, "- \t") < n)
            any = line;
    }
    found = found ? found : any ? any : "it wrote nothing";
    snprintf(out, size, "%.*s", (int)strcspn(found, "\n"), found);
}

/* ---- a line of the results --------------------------------------------------------------------------------------- */

enum kind { TEXT, INTEGER, NUMBER };

/* In the order in which they are written. */
static const struct member {
    const char *name;
    enum kind kind;
    size_t place, size;
} members[] = {
#define MEMBER(name, kind) \
    { \
#name, kind, offsetof(struct outcome, name), sizeof((struct outcome *)0)->name \
    }
    MEMBER(cell, TEXT),
    MEMBER(strategy, TEXT),
    MEMBER(workers, INTEGER),
    MEMBER(round, INTEGER),
    MEMBER(ranks, INTEGER),
    MEMBER(cores, INTEGER),
    MEMBER(status, INTEGER),
    MEMBER(reason, TEXT),
    MEMBER(steps, INTEGER),
    MEMBER(seconds, NUMBER),
    MEMBER(steps_per_second, NUMBER),
    MEMBER(steady, NUMBER),
    MEMBER(samples_per_step, NUMBER),
    MEMBER(waiting, NUMBER),
    MEMBER(sent, NUMBER),
    MEMBER(busiest_sent, NUMBER),
    MEMBER(busiest_received, NUMBER),
    MEMBER(busiest, TEXT),
    MEMBER(staleness_mean, NUMBER),
    MEMBER(staleness_max, NUMBER),
    MEMBER(dropped, NUMBER),
    MEMBER(weights, TEXT),
};
enum { MEMBERS = sizeof members / sizeof *members };

void outcome_write(const struct outcome *o, const char *training, struct buffer *out)
{
    buffer_append_text(out, "{\"training\":");
    json_text(out, training);
    for (size_t i = 0; i < MEMBERS; i++) {
        const char *at = (const char *)o + members[i].place;

        buffer_format(out, ",\"%s\":", members[i].name);
        if (members[i].kind == TEXT)
            json_text(out, at);
        else if (members[i].kind == INTEGER)
            buffer_format(out, "%lld", (long long)*(const int64_t *)(const void *)at);
        else
            json_double(out, *(const double *)(const void *)at);
    }
    buffer_append_text(out, ",\"phases\":{");
    for (int p = 0; p < PHASE_COUNT; p++) {
        buffer_format(out, "%s\"%s\":", p ? "," : "", phase_names[p]);
        json_double(out, o->phases[p]);
    }
    buffer_append_text(out, "},\"serving\":");
    json_double(out, o->serving);
    buffer_append_text(out, ",\"others\":");
    json_double(out, o->others);
    buffer_append_text(out, ",\"evaluations\":[");
    for (size_t i = 0; i < o->evaluation_count; i++) {
        buffer_format(out, "%s{\"step\":%lld,\"seconds\":", i ? "," : "", (long long)o->evaluations[i].step);
        json_double(out, o->evaluations[i].seconds);
        buffer_append_text(out, ",\"precision\":");
        json_double(out, o->evaluations[i].precision);
        buffer_append_byte(out, '}');
    }
    buffer_append_text(out, "]}\n");
}

/* 1: the value is at its place. */
static int take(struct outcome *o, const struct member *m, const json_t *value)
{
    char *at = (char *)o + m->place;

    if (m->kind == TEXT)
        copy_text(at, m->size, json_string_value(value));
    else if (m->kind == INTEGER)
        *(int64_t *)(void *)at = json_integer_value(value);
    else
        *(double *)(void *)at = json_number_value(value);
    return m->kind == TEXT      ? json_is_string(value)
           : m->kind == INTEGER ? json_is_integer(value)
                                : json_is_number(value);
}

static int read_evaluations(struct outcome *o, const json_t *list, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; i < json_array_size(list) && rc == OK; i++) {
        const json_t *item = json_array_get(list, i);
        const struct evaluation evaluation = {
            .step = json_integer_value(json_object_get(item, "step")),
            .seconds = number_of(item, "seconds"),
            .precision = number_of(item, "precision"),
        };

        rc = add_evaluation(o, &evaluation, e);
    }
    return rc;
}

static double known_share(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : -1;
}

/* Results of an earlier version do not have them. */
static void read_later(struct outcome *o, const json_t *root)
{
    const json_t *phases = json_object_get(root, "phases");

    for (int p = 0; p < PHASE_COUNT; p++)
        o->phases[p] = number_of(phases, phase_names[p]);
    o->serving = known_share(json_object_get(root, "serving"));
    o->others = known_share(json_object_get(root, "others"));
}

int outcome_read(struct outcome *o, char *training, size_t size, const char *line, size_t n, struct error *e)
{
    json_t *root = json_loadb(line, n, 0, NULL);
    int rc = OK;

    memset(o, 0, sizeof *o);
    text_of(root, "training", training, size);
    for (size_t i = 0; i < MEMBERS && rc == OK; i++)
        if (!take(o, &members[i], json_object_get(root, members[i].name)))
            rc = error_set(e, ERR_CORRUPT, "not a line of results: no \"%s\"", members[i].name);
    if (rc == OK && (o->workers < 1 || o->workers > CELL_WORKERS_MOST || o->round < 1))
        rc = error_set(e, ERR_CORRUPT, "not a line of results: workers or round out of range");
    read_later(o, root);
    if (rc == OK)
        rc = read_evaluations(o, json_object_get(root, "evaluations"), e);
    json_decref(root);
    if (rc < 0)
        outcome_release(o);
    return rc;
}
