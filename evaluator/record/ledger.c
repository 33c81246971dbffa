#include "evaluator/record/ledger.h"

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEDGER_LIMIT = 1 << 30 }; /* largest ledger that is read, in bytes */

struct ledger {
    const struct io *io;
    char *path;
    int fd, borrowed;
    off_t length; /* end of the whole lines; anything after it must be cut off */
    int cut;      /* 1: there is something after it */
    struct buffer line;
    struct ledger_summary summary;
};

static const char *const status_names[] = { "done", "failed", "gone", "untried" };

/* ---- one line ---------------------------------------------------------------------------------------------------- */

static void number(struct buffer *out, const char *name, double x)
{
    buffer_format(out, ",\"%s\":", name);
    json_double(out, x);
}

void ledger_format(const struct ledger_record *r, struct buffer *out)
{
    const struct checkpoint_identity *c = &r->checkpoint;

    buffer_format(out, "{\"step\":%lld,\"checkpoint\":", (long long)c->step);
    json_file_name(out, c->name);
    if (c->has_digest)
        buffer_format(out, ",\"digest\":\"%016llx\"", (unsigned long long)c->digest);
    if (c->has_digest && c->digest_after)
        buffer_format(out, ",\"digest_after\":\"%016llx\"", (unsigned long long)c->digest_after);
    buffer_format(out, ",\"status\":\"%s\"", status_names[r->status]);
    if (r->has_metrics) {
        buffer_append_text(out, ",\"metrics\":");
        evaluation_metrics_json(&r->metrics, out);
    }
    if (r->has_metrics && r->correct >= 0)
        buffer_format(out, ",\"correct\":%lld", (long long)r->correct);
    if (r->has_metrics && r->examples >= 0)
        buffer_format(out, ",\"examples\":%lld", (long long)r->examples);
    if (*r->weights) {
        buffer_append_text(out, ",\"weights\":");
        json_text(out, r->weights);
    }
    if (*r->reason) {
        buffer_append_text(out, ",\"reason\":");
        json_text(out, r->reason);
    }
    if (r->status == LEDGER_FAILED && r->command)
        buffer_format(out, ",\"command\":\"%016llx\"", (unsigned long long)r->command);
    number(out, "seconds", r->seconds);
    number(out, "started", r->started);
    number(out, "lag", r->lag);
    number(out, "wall_time", r->wall_time);
    if (r->point_time > 0)
        number(out, "point_time", r->point_time);
    if (r->has_metrics)
        buffer_format(out, ",\"run\":%lld", (long long)r->run);
    buffer_append_text(out, "}\n");
}

static int take_text(const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));

    if (!text || strlen(text) >= size)
        return 0;
    strcpy(out, text);
    return 1;
}

/* A number, or one of the names that json_double() writes for numbers JSON lacks. 1: *out is set. */
static int is_number(const json_t *value, double *out)
{
    const char *text = json_string_value(value);

    if (text && !strcmp(text, "NaN"))
        *out = NAN;
    else if (text && !strcmp(text, "Infinity"))
        *out = INFINITY;
    else if (text && !strcmp(text, "-Infinity"))
        *out = -INFINITY;
    else if (json_is_number(value))
        *out = json_number_value(value);
    else
        return 0;
    return 1;
}

static double take_number(const json_t *object, const char *name)
{
    double value;

    return is_number(json_object_get(object, name), &value) ? value : 0;
}

static int64_t take_count(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : -1;
}

static int take_metrics(json_t *object, struct evaluation_metrics *m, struct error *e)
{
    const char *name;
    json_t *value;
    double x;

    json_object_foreach(object, name, value) /* in the order of the file */
        if (is_number(value, &x) && evaluation_metrics_add(m, name, x, e) == ERR_NOMEM) return ERR_NOMEM;
    return OK;
}

static int take_digest(const json_t *object, const char *name, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(object, name));

    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return 0;
    *out = strtoull(text, NULL, 16);
    return 1;
}

static int take_record(const json_t *object, struct ledger_record *r, struct error *e)
{
    const json_t *step = json_object_get(object, "step");
    json_t *metrics = json_object_get(object, "metrics");
    const char *name = json_string_value(json_object_get(object, "checkpoint"));
    struct checkpoint_identity *c = &r->checkpoint;
    char status[16] = "";
    size_t k = 0, count = sizeof status_names / sizeof *status_names;

    if (!json_is_object(object))
        return error_set(e, ERR_CORRUPT, "not a JSON object");
    if (!json_is_integer(step))
        return error_set(e, ERR_CORRUPT, "\"step\" is not a whole number");
    if (!name || !json_file_name_read(name, c->name, sizeof c->name) || !*c->name)
        return error_set(e, ERR_CORRUPT, "\"checkpoint\" is not a name of up to %d bytes", CHECKPOINT_NAME_MAX - 1);
    take_text(object, "status", status, sizeof status);
    while (k < count && strcmp(status, status_names[k]))
        k++;
    if (k == count)
        return error_set(e, ERR_CORRUPT, "\"status\" is not done, failed, gone or untried");
    c->step = json_integer_value(step);
    r->status = (enum ledger_status)k;
    c->has_digest = take_digest(object, "digest", &c->digest);
    take_digest(object, "digest_after", &c->digest_after);
    take_digest(object, "command", &r->command);
    if (r->status == LEDGER_DONE && !c->has_digest)
        return error_set(e, ERR_CORRUPT, "\"digest\" is not 16 hex digits");
    r->has_metrics = json_is_object(metrics);
    r->correct = take_count(object, "correct");
    r->examples = take_count(object, "examples");
    r->run = json_integer_value(json_object_get(object, "run"));
    r->seconds = take_number(object, "seconds");
    r->started = take_number(object, "started");
    r->lag = take_number(object, "lag");
    r->wall_time = take_number(object, "wall_time");
    r->point_time = take_number(object, "point_time");
    take_text(object, "weights", r->weights, sizeof r->weights);
    take_text(object, "reason", r->reason, sizeof r->reason);
    return r->has_metrics ? take_metrics(metrics, &r->metrics, e) : OK;
}

void ledger_record_release(struct ledger_record *record)
{
    evaluation_metrics_release(&record->metrics);
}

int ledger_parse(const char *line, size_t n, struct ledger_record *out, struct error *e)
{
    json_error_t why;
    json_t *object = json_loadb(line, n, JSON_REJECT_DUPLICATES, &why);
    int rc;

    memset(out, 0, sizeof *out);
    if (!object)
        return error_set(e, ERR_CORRUPT, "not JSON at byte %d: %s", why.position, why.text);
    if ((rc = take_record(object, out, e)) != OK)
        ledger_record_release(out);
    json_decref(object);
    return rc;
}

/* ---- summary ----------------------------------------------------------------------------------------------------- */

int ledger_improves(const struct ledger_summary *s, double value)
{
    if (isnan(value) || !s->has_best)
        return !isnan(value);
    return s->rule.minimum ? value < s->best_value - s->rule.delta : value > s->best_value + s->rule.delta;
}

static void compare_with_best(struct ledger_summary *s, const struct ledger_record *r)
{
    double value = evaluation_metrics_value(&r->metrics, s->rule.metric);

    if (!ledger_improves(s, value)) {
        s->since_best++;
        return;
    }
    s->has_best = 1;
    s->since_best = 0;
    s->best_value = value;
    s->best = r->checkpoint;
}

static void add_up(struct ledger_summary *s, const struct ledger_record *r)
{
    if (r->status == LEDGER_FAILED)
        s->failed++;
    else if (r->status == LEDGER_GONE)
        s->gone++;
    else if (r->status == LEDGER_UNTRIED)
        s->untried++;
    else
        s->done++;
    if (r->status == LEDGER_DONE)
        compare_with_best(s, r);
    if (!r->has_metrics)
        return;
    if (r->checkpoint.step > s->highest_step)
        s->highest_step = r->checkpoint.step;
    if (r->run > s->last_run) {
        s->last_run = r->run;
        s->last_step = -1;
    }
    if (r->run == s->last_run && r->checkpoint.step > s->last_step)
        s->last_step = r->checkpoint.step;
}

/* Visits the records of a text; *whole becomes the bytes of its whole lines. */
static int each_record(const struct buffer *text, ledger_visit *visit, void *context, size_t *odd_lines, size_t *whole,
                       struct error *e)
{
    const char *line = buffer_text(text), *end = line + text->length, *newline;
    int rc = OK;

    for (; rc == OK && line < end && (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1) {
        struct ledger_record record;

        if (ledger_parse(line, (size_t)(newline - line), &record, NULL) == OK) {
            rc = visit(context, &record, e);
            ledger_record_release(&record);
        } else if (newline > line) {
            (*odd_lines)++;
        }
    }
    *whole = text->length - (size_t)(end - line);
    return rc;
}

struct reading {
    struct ledger_summary *summary;
    ledger_visit *visit; /* or NULL */
    void *context;
};

static int take_in(void *context, const struct ledger_record *record, struct error *e)
{
    struct reading *r = context;

    add_up(r->summary, record);
    return r->visit ? r->visit(r->context, record, e) : OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int cut_back(struct ledger *l, struct error *e)
{
    if (!l->cut)
        return OK;
    if (l->io->ftruncate(l->io->context, l->fd, l->length) < 0)
        return error_system(e, "%s: cannot cut off the unfinished line at byte %lld", l->path, (long long)l->length);
    l->cut = 0;
    return OK;
}

int ledger_open(struct ledger **out, const struct io *io, const char *path, int fd, const struct ledger_best *best,
                ledger_visit *visit, void *context, struct error *e)
{
    static const struct ledger_best usual = { EVALUATION_PRECISION, 0, 0 };
    struct ledger *l = calloc(1, sizeof *l);
    struct reading reading = { NULL, visit, context };
    struct buffer text = BUFFER_EMPTY;
    size_t whole;
    int rc = OK;

    *out = NULL;
    if (!l || !(l->path = strdup(path))) {
        free(l);
        return error_memory(e, path, "for the ledger");
    }
    l->io = io ? io : &io_real;
    l->summary.rule = best ? *best : usual;
    l->summary.last_step = l->summary.highest_step = -1;
    buffer_init(&l->line);
    l->fd = fd;
    l->borrowed = fd >= 0;
    if (fd < 0 && (rc = file_open_plain(l->io, path, LEDGER_FLAGS, &l->fd, e)) != OK)
        goto fail;
    reading.summary = &l->summary;
    if ((rc = file_read(path, LEDGER_LIMIT, &text, e)) != OK ||
        (rc = each_record(&text, take_in, &reading, &l->summary.odd_lines, &whole, e)) != OK)
        goto fail;
    if (!ledger_lines(&l->summary) && !file_begins(buffer_text(&text), text.length, "{\"step\":")) {
        rc = error_set(e, ERR_ARG, "%s: is not a ledger; move it elsewhere", path);
        goto fail;
    }
    l->length = (off_t)whole;
    l->summary.cut_bytes = text.length - whole;
    l->cut = text.length > whole;
    if ((rc = cut_back(l, e)) != OK)
        goto fail;
    if (!text.length && (rc = file_sync_parent(l->io, path, e)) != OK)
        goto fail;
    buffer_release(&text);
    *out = l;
    return OK;
fail:
    buffer_release(&text);
    ledger_close(l);
    return rc;
}

int ledger_read(const char *path, ledger_visit *visit, void *context, size_t *odd_lines, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    size_t odd = 0, whole;
    int rc;

    if (access(path, F_OK) < 0 && errno == ENOENT)
        return OK;
    if ((rc = file_read_plain(path, LEDGER_LIMIT, &text, e)) == OK)
        rc = each_record(&text, visit, context, odd_lines ? odd_lines : &odd, &whole, e);
    buffer_release(&text);
    return rc;
}

void ledger_close(struct ledger *l)
{
    if (!l)
        return;
    if (l->fd >= 0 && !l->borrowed)
        l->io->close(l->io->context, l->fd);
    buffer_release(&l->line);
    free(l->path);
    free(l);
}

int ledger_append(struct ledger *l, const struct ledger_record *record, struct error *e)
{
    int rc;

    buffer_clear(&l->line);
    ledger_format(record, &l->line);
    if (!buffer_ok(&l->line))
        return error_memory(e, l->path, "for a line");
    if ((rc = cut_back(l, e)) != OK)
        return rc;
    l->cut = 1; /* until all of it is synced */
    if (io_write_full(l->io, l->fd, l->line.data, l->line.length) < 0)
        rc = error_system(e, "%s: cannot append at byte %lld", l->path, (long long)l->length);
    else if (l->io->fsync(l->io->context, l->fd) < 0)
        rc = error_system(e, "%s: cannot sync", l->path);
    if (rc != OK) {
        cut_back(l, NULL); /* now if possible, otherwise before the next append */
        return rc;
    }
    l->cut = 0;
    l->length += (off_t)l->line.length;
    add_up(&l->summary, record);
    return OK;
}

int ledger_move(struct ledger *l, int fd, struct error *e)
{
    char piece[1 << 14];

    for (off_t done = 0; done < l->length;) {
        const size_t left = (size_t)(l->length - done), n = left < sizeof piece ? left : sizeof piece;

        if (file_read_at(l->fd, piece, n, (uint64_t)done) != (ssize_t)n)
            return error_system(e, "%s: cannot read it any more", l->path);
        if (io_write_full(l->io, fd, piece, n) < 0)
            return error_system(e, "%s: cannot write", l->path);
        done += (off_t)n;
    }
    if (l->io->fsync(l->io->context, fd) < 0)
        return error_system(e, "%s: cannot sync", l->path);
    l->fd = fd;
    l->borrowed = 1;
    l->cut = 0;
    return file_sync_parent(l->io, l->path, e);
}

const struct ledger_summary *ledger_summary(const struct ledger *l)
{
    return &l->summary;
}

size_t ledger_lines(const struct ledger_summary *s)
{
    return s->done + s->failed + s->gone;
}

/* ---- outcomes ---------------------------------------------------------------------------------------------------- */

void outcomes_init(struct outcomes *o, int by_step)
{
    *o = (struct outcomes){ .by_step = by_step };
}

/* The index of the first one that does not come before (name, step). */
static size_t outcomes_place(const struct outcomes *o, const char *name, int64_t step)
{
    size_t low = 0, high = o->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(o->items[middle].name, name);

        if (order < 0 || (order == 0 && o->items[middle].step < step))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int insert(struct outcomes *o, size_t at, const struct ledger_record *r, int64_t step, struct error *e)
{
    char *name;

    if (!ARRAY_ROOM(o->items, o->capacity, o->count + 1))
        return error_memory(e, NULL, "for what became of %zu checkpoints", o->count + 1);
    if (!(name = strdup(r->checkpoint.name)))
        return error_memory(e, NULL, "for what became of %s", r->checkpoint.name);
    memmove(o->items + at + 1, o->items + at, (o->count++ - at) * sizeof *o->items);
    o->items[at] = (struct outcome){ .name = name,
                                     .step = step,
                                     .status = r->status,
                                     .digest = r->checkpoint.digest,
                                     .digest_after = r->checkpoint.digest_after,
                                     .command = r->command,
                                     .unread = r->status == LEDGER_FAILED && !r->checkpoint.has_digest };
    return OK;
}

static void take_out(struct outcomes *o, size_t i)
{
    free(o->items[i].name);
    memmove(o->items + i, o->items + i + 1, (--o->count - i) * sizeof *o->items);
}

int outcomes_note(struct outcomes *o, const struct ledger_record *r, struct error *e)
{
    const int64_t step = o->by_step ? r->checkpoint.step : 0; /* -1: it failed before its step was known */
    size_t i = outcomes_place(o, r->checkpoint.name, o->by_step ? -1 : 0);

    if (r->status != LEDGER_DONE) {
        i = outcomes_place(o, r->checkpoint.name, step);
        if (i == o->count || strcmp(o->items[i].name, r->checkpoint.name) || o->items[i].step != step)
            return insert(o, i, r, step, e);
        o->items[i].status = r->status;
        o->items[i].digest = r->checkpoint.digest;
        o->items[i].digest_after = r->checkpoint.digest_after;
        o->items[i].command = r->command;
        o->items[i].unread = o->items[i].unread && !r->checkpoint.has_digest;
        return OK;
    }
    while (i < o->count && !strcmp(o->items[i].name, r->checkpoint.name)) {
        if (o->items[i].step >= 0 && o->items[i].step != step) {
            i++;
            continue;
        }
        take_out(o, i);
    }
    return OK;
}

void outcomes_read(struct outcomes *o, const char *name)
{
    size_t i = outcomes_place(o, name, INT64_MIN);

    while (i < o->count && !strcmp(o->items[i].name, name)) {
        if (o->items[i].unread)
            take_out(o, i);
        else
            i++;
    }
}

int outcomes_is(const struct outcomes *o, const char *name, int64_t step, enum ledger_status status)
{
    const int64_t own = o->by_step ? step : 0;
    const size_t i = outcomes_place(o, name, own);

    return i < o->count && !strcmp(o->items[i].name, name) && o->items[i].step == own && o->items[i].status == status;
}

size_t outcomes_count(const struct outcomes *o, enum ledger_status status)
{
    size_t n = 0;

    for (size_t i = 0; i < o->count; i++)
        n += o->items[i].status == status;
    return n;
}

void outcomes_release(struct outcomes *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->items[i].name);
    free(o->items);
    *o = (struct outcomes){ .by_step = o->by_step };
}

/* ---- same failures ----------------------------------------------------------------------------------------------- */

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void kind_of(const char *reason, char *out)
{
    const char *tail = reason + strcspn(reason, ":(,'"), *see = strstr(reason, "; see ");
    const char *status = strstr(reason, "exit status "), *end = see ? see : reason + strlen(reason);

    if (!status || status > tail)
        end = tail < end ? tail : end; /* the class is enough */
    while (reason < end) {
        size_t n = 1, digits = 0;

        while (is_word(*reason) && reason + n < end && is_word(reason[n]))
            n++;
        for (size_t i = 0; i < n; i++)
            digits += isdigit((unsigned char)reason[i]) != 0;
        if (reason > tail && digits) {
            *out++ = '#';
        } else {
            memcpy(out, reason, n);
            out += n;
        }
        reason += n;
    }
    *out = '\0';
}

void same_failures_note(struct same_failures *s, const struct ledger_record *r)
{
    char kind[sizeof s->kind];

    if (r->has_metrics) {
        *s = (struct same_failures){ 0 };
    } else if (r->status == LEDGER_FAILED && r->command) {
        kind_of(r->reason, kind);
        s->count = strcmp(kind, s->kind) ? 1 : s->count + 1;
        strcpy(s->kind, kind);
    }
}
