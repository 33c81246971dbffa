#include "trainer/compare/outcome.h"

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/program/options.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- cell -------------------------------------------------------------------------------------------------------- */

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

/* ---- curve ------------------------------------------------------------------------------------------------------- */

static double speed(double steps, double seconds)
{
    return steps > 0 && seconds > 0 ? steps / seconds : 0;
}

double curve_speed(const struct curve_point *points, size_t count)
{
    const size_t first = count > 2 ? 1 : 0;

    if (count < 2)
        return 0;
    return speed((double)(points[count - 1].step - points[first].step), points[count - 1].time - points[first].time);
}

/* When the step was done; 0: it is not within the points. */
static int time_of(const struct curve_point *points, size_t count, int64_t step, double *time)
{
    for (size_t i = 0; i < count; i++) {
        const struct curve_point *p = &points[i];

        if (p->step == step) {
            *time = p->time;
            return 1;
        }
        if (i > 0 && p[-1].step < step && step < p->step) {
            *time = p[-1].time + (p->time - p[-1].time) * (double)(step - p[-1].step) / (double)(p->step - p[-1].step);
            return 1;
        }
    }
    return 0;
}

double curve_speed_between(const struct curve_point *points, size_t count, int64_t from, int64_t to)
{
    double begin, end;

    if (!time_of(points, count, from, &begin) || !time_of(points, count, to, &end))
        return 0;
    return speed((double)(to - from), end - begin);
}

const struct evaluation *curve_evaluation(const struct evaluation *e, size_t count, int64_t step, double seconds)
{
    const struct evaluation *found = NULL;

    for (size_t i = 0; i < count; i++)
        if (e[i].step <= step && e[i].seconds <= seconds)
            found = &e[i];
    return found;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

enum { FILE_MOST = 256 << 20 }; /* bytes */

/* 1: there is nothing in it, or no such directory. */
static int is_empty(const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *item;
    int found = 0;

    while (d && !found && (item = readdir(d)))
        found = strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0;
    if (d)
        closedir(d);
    return !found;
}

static int take_line(struct results *r, const char *line, size_t n, size_t number, struct error *e)
{
    char training[RESULTS_TRAINING];
    int rc;

    if (!ARRAY_ROOM(r->items, r->capacity, r->count + 1))
        return error_memory(e, NULL, "for the results");
    if ((rc = outcome_read(&r->items[r->count], training, sizeof training, line, n, e)) < 0) {
        error_prefix(e, "%s:%zu", r->path, number);
        return rc;
    }
    r->count++;
    snprintf(r->training, sizeof r->training, "%s", training);
    return OK;
}

int results_open(struct results *r, const char *directory, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    size_t at = 0, number = 1;
    int rc;

    memset(r, 0, sizeof *r);
    if ((rc = file_join(r->path, sizeof r->path, directory, RESULTS_FILE, e)) < 0)
        return rc;
    if (access(r->path, F_OK) < 0 && errno == ENOENT)
        return is_empty(directory)
                   ? OK
                   : error_set(e, ERR_ARG, "%s has files, but no " RESULTS_FILE " of a comparison; use a new directory",
                               directory);
    if ((rc = file_read_plain(r->path, FILE_MOST, &text, e)) < 0)
        return rc;
    while (at < text.length && rc == OK) {
        const char *line = buffer_text(&text) + at, *end = memchr(line, '\n', text.length - at);

        if (!end) {
            if (truncate(r->path, (off_t)at) < 0)
                rc = error_system(e, "%s: remove an incomplete line", r->path);
            break;
        }
        rc = take_line(r, line, (size_t)(end - line), number++, e);
        at += (size_t)(end - line) + 1;
    }
    buffer_release(&text);
    return rc;
}

void results_release(struct results *r)
{
    for (size_t i = 0; i < r->count; i++)
        outcome_release(&r->items[i]);
    free(r->items);
    r->items = NULL;
    r->count = r->capacity = 0;
}

static int append(const char *path, const struct buffer *text, struct error *e)
{
    struct stat st;
    int rc = OK, fd;

    if (!buffer_ok(text))
        return error_memory(e, path, "for a line");
    if ((rc = file_open_plain(NULL, path, O_WRONLY | O_CREAT, &fd, e)) < 0)
        return rc;
    if (fstat(fd, &st) < 0 || file_write_at(fd, text->data, text->length, (uint64_t)st.st_size) < 0 || fsync(fd) < 0)
        rc = error_system(e, "write %s", path);
    close(fd);
    return rc;
}

int results_begin(const struct results *r, const char *directory, struct error *e)
{
    const struct buffer nothing = BUFFER_EMPTY;
    const int rc = file_make_directories(directory, e);

    return rc < 0 ? rc : append(r->path, &nothing, e);
}

int results_add(struct results *r, struct outcome *o, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc;

    if (!ARRAY_ROOM(r->items, r->capacity, r->count + 1))
        return error_memory(e, NULL, "for the results");
    outcome_write(o, r->training, &text);
    if ((rc = append(r->path, &text, e)) == OK) {
        r->items[r->count++] = *o;
        memset(o, 0, sizeof *o);
    }
    buffer_release(&text);
    return rc;
}

int results_has(const struct results *r, const char *cell, int64_t round)
{
    int has = 0;

    for (size_t i = 0; i < r->count; i++)
        if (r->items[i].round == round && !strcmp(r->items[i].cell, cell))
            has = r->items[i].status == 0;
    return has;
}

/* ---- outcome ----------------------------------------------------------------------------------------------------- */

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
