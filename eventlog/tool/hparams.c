/* eventlog hparams: the hyperparameters of the runs that are sessions. */
#include "base/bytes.h"
#include "base/json.h"
#include "base/number.h"
#include "eventlog/summary_metadata.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/export.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/output_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct entry { /* a hyperparameter of a session */
    char *name, *text; /* with a NUL behind, for strings only */
    size_t name_length, text_length;
    enum hparam_type type;
    double number;
};

struct session {
    const char *run;
    struct entry *entries; /* by name once the run has been read */
    size_t count, capacity;
    double *metrics;       /* one per --metric */
    int *present;
};

struct metric {
    const char *text; /* as given: the head of its column */
    size_t tag_length;
    enum { METRIC_LAST, METRIC_MIN, METRIC_MAX } which;
};

struct work {
    struct session *sessions;
    size_t count;
    struct session current; /* of the run that is being read */
    struct metric metrics[64];
    size_t metric_count;
    struct selection asked; /* the tags of the metrics */
    int no_run;
};

/* ---- gathering ------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return bytes_compare(x->name, x->name_length, y->name, y->name_length);
}

static char *copy(const struct span *s)
{
    char *text = malloc(s->length + 1);

    if (text) {
        memcpy(text, s->bytes, s->length);
        text[s->length] = '\0';
    }
    return text;
}

static void release_session(struct session *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->entries[i].name);
        free(s->entries[i].text);
    }
    free(s->entries);
    free(s->metrics);
    free(s->present);
    memset(s, 0, sizeof *s);
}

/* A name that comes again takes the place of the one before. */
static int add_entry(void *context, const struct hparam *h)
{
    struct session *s = &((struct work *)context)->current;
    struct entry new = { copy(&h->name), copy(&h->text), h->name.length, h->text.length, h->type, h->number };
    struct entry *e;

    for (size_t i = 0; new.name && new.text && i < s->count; i++)
        if (!by_name(&s->entries[i], &new)) {
            free(s->entries[i].name);
            free(s->entries[i].text);
            s->entries[i] = new;
            return OK;
        }
    if (new.name && new.text && s->count == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 16;

        if ((e = realloc(s->entries, capacity * sizeof *e))) {
            s->entries = e;
            s->capacity = capacity;
        }
    }
    if (!new.name || !new.text || s->count == s->capacity) {
        free(new.name);
        free(new.text);
        return ERR_NOMEM;
    }
    s->entries[s->count++] = new;
    return OK;
}

static int other(void *context, const struct scalar_series *s, const struct event *event,
                 const struct event_value *value, struct error *e)
{
    struct work *w = context;
    struct summary_metadata m;

    (void)event;
    if (strcmp(s->plugin, "hparams") != 0 || strcmp(s->tag, "_hparams_/session_start_info") != 0 || !value->metadata)
        return OK;
    summary_metadata_read(&m, value->metadata, value->metadata_length);
    w->current.run = "";
    return summary_metadata_hparams(&m, add_entry, w) ? error_set(e, ERR_NOMEM, "out of memory for "
                                                                  "hyperparameters") : OK;
}

static void again(void *context)
{
    release_session(&((struct work *)context)->current);
}

static int take_metric(const struct metric *m, const struct scalar_run *scalars, double *value)
{
    const struct scalar_series *s = NULL;
    int any = 0;

    for (size_t i = 0; i < scalars->count; i++)
        if (scalars->series[i].count && scalars->series[i].tag_length == m->tag_length &&
            !memcmp(scalars->series[i].tag, m->text, m->tag_length))
            s = &scalars->series[i];
    if (!s)
        return 0;
    if (m->which == METRIC_LAST) {
        *value = s->points[s->count - 1].value;
        return 1;
    }
    *value = NAN;
    for (size_t i = 0; i < s->count; i++)
        if (!isnan(s->points[i].value) && (!any || (m->which == METRIC_MIN ? s->points[i].value < *value
                                                                            : s->points[i].value > *value))) {
            *value = s->points[i].value;
            any = 1;
        }
    return 1;
}

static int one_run(void *context, const char *name, struct scalar_run *scalars, struct error *e)
{
    struct work *w = context;
    struct session *s = &w->current, *list;

    for (size_t i = 0; i < scalars->count; i++)
        if (scalars->series[i].count)
            selection_wants(&w->asked, scalars->series[i].tag);
    if (!s->run)
        return OK; /* no session */
    s->run = name;
    s->metrics = calloc(w->metric_count + 1, sizeof *s->metrics);
    s->present = calloc(w->metric_count + 1, sizeof *s->present);
    if (!s->metrics || !s->present || !(list = realloc(w->sessions, (w->count + 1) * sizeof *list)))
        return error_set(e, ERR_NOMEM, "out of memory for run %s", name);
    for (size_t i = 0; i < w->metric_count; i++)
        s->present[i] = take_metric(&w->metrics[i], scalars, &s->metrics[i]);
    if (s->count)
        qsort(s->entries, s->count, sizeof *s->entries, by_name);
    w->sessions = list;
    list[w->count++] = *s;
    memset(s, 0, sizeof *s);
    return OK;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void csv_value(struct buffer *b, const struct entry *e)
{
    char text[NUMBER_TEXT_MAX];

    if (e->type == HPARAM_NUMBER)
        buffer_append(b, text, (size_t)number_text(e->number, text));
    else if (e->type == HPARAM_BOOL)
        buffer_append_text(b, e->number != 0 ? "True" : "False");
    else
        export_field(b, e->text, e->text_length, 0);
}

static void write_long(struct work *w, struct buffer *b)
{
    buffer_append_text(b, "run,name,value\n");
    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->sessions[i].count; k++) {
            const struct entry *e = &w->sessions[i].entries[k];

            export_field(b, w->sessions[i].run, strlen(w->sessions[i].run), 0);
            buffer_append_byte(b, ',');
            export_field(b, e->name, e->name_length, 0);
            buffer_append_byte(b, ',');
            csv_value(b, e);
            buffer_append_byte(b, '\n');
        }
}

/* All names once, in byte order; NULL without memory. The entries are borrowed from the sessions. */
static struct entry *all_names(const struct work *w, size_t *count)
{
    struct entry *names;
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < w->count; i++)
        n += w->sessions[i].count;
    if (!(names = malloc((n + 1) * sizeof *names)))
        return NULL;
    n = 0;
    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->sessions[i].count; k++)
            names[n++] = w->sessions[i].entries[k];
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++)
        if (!kept || by_name(&names[kept - 1], &names[i]))
            names[kept++] = names[i];
    *count = kept;
    return names;
}

static const struct entry *entry_of(const struct session *s, const struct entry *name)
{
    return s->count ? bsearch(name, s->entries, s->count, sizeof *name, by_name) : NULL;
}

static void between(struct buffer *b, int *first)
{
    if (!*first)
        buffer_append_byte(b, ',');
    *first = 0;
}

static void write_wide(struct work *w, struct buffer *b, const struct entry *names, size_t count)
{
    char text[NUMBER_TEXT_MAX];
    int first = 1;

    if (!w->no_run) {
        between(b, &first);
        buffer_append_text(b, "run");
    }
    for (size_t k = 0; k < count; k++) {
        between(b, &first);
        export_field(b, names[k].name, names[k].name_length, 0);
    }
    for (size_t m = 0; m < w->metric_count; m++) {
        between(b, &first);
        export_field(b, w->metrics[m].text, strlen(w->metrics[m].text), 0);
    }
    buffer_append_byte(b, '\n');
    for (size_t i = 0; i < w->count; i++) {
        const struct session *s = &w->sessions[i];

        first = 1;
        if (!w->no_run) {
            between(b, &first);
            export_field(b, s->run, strlen(s->run), 0);
        }
        for (size_t k = 0; k < count; k++) {
            const struct entry *e = entry_of(s, &names[k]);

            between(b, &first);
            if (e)
                csv_value(b, e);
        }
        for (size_t m = 0; m < w->metric_count; m++) {
            between(b, &first);
            if (s->present[m])
                buffer_append(b, text, (size_t)number_text(s->metrics[m], text));
        }
        buffer_append_byte(b, '\n');
    }
}

static void json_entry(struct buffer *b, const struct entry *e)
{
    if (!e || e->type == HPARAM_OTHER)
        buffer_append_text(b, "\"\"");
    else if (e->type == HPARAM_NUMBER)
        json_double(b, e->number);
    else if (e->type == HPARAM_BOOL)
        buffer_append_text(b, e->number != 0 ? "true" : "false");
    else
        json_span(b, e->text, e->text_length, 1);
}

/* The shape of TensorBoard's own table download. */
static void write_json(struct work *w, struct buffer *b, const struct entry *names, size_t count)
{
    const char *separator = "";

    buffer_append_text(b, "{\"header\": [");
    if (!w->no_run) {
        buffer_append_text(b, "\"run\"");
        separator = ", ";
    }
    for (size_t k = 0; k < count; k++, separator = ", ") {
        buffer_append_text(b, separator);
        json_span(b, names[k].name, names[k].name_length, 1);
    }
    for (size_t m = 0; m < w->metric_count; m++, separator = ", ") {
        buffer_append_text(b, separator);
        json_span(b, w->metrics[m].text, strlen(w->metrics[m].text), 1);
    }
    buffer_append_text(b, "], \"rows\": [");
    for (size_t i = 0; i < w->count; i++) {
        const struct session *s = &w->sessions[i];

        buffer_append_text(b, i ? ", [" : "[");
        separator = "";
        if (!w->no_run) {
            json_span(b, s->run, strlen(s->run), 1);
            separator = ", ";
        }
        for (size_t k = 0; k < count; k++, separator = ", ") {
            buffer_append_text(b, separator);
            json_entry(b, entry_of(s, &names[k]));
        }
        for (size_t m = 0; m < w->metric_count; m++, separator = ", ") {
            buffer_append_text(b, separator);
            if (s->present[m])
                json_double(b, s->metrics[m]);
            else
                buffer_append_text(b, "null");
        }
        buffer_append_text(b, "]");
    }
    buffer_append_text(b, "]}\n");
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

enum layout { LAYOUT_LONG, LAYOUT_WIDE, LAYOUT_JSON };

static int write_sessions(struct scan *s, struct work *w, enum layout layout, const struct output_options *to,
                          struct error *e)
{
    const struct gather g = { .range = POINT_RANGE_ALL, .run = one_run, .other = other,
                              .again = again, .context = w, .no_points = !w->metric_count };
    struct buffer b = BUFFER_EMPTY;
    struct entry *names = NULL;
    struct output *out;
    size_t count = 0;
    int rc = output_open(&out, to->path, to->force, e);

    if (rc != OK)
        return scan_fail(s, e);
    rc = gather_runs(s, &g, e);
    if (rc == OK && !(names = all_names(w, &count)))
        rc = error_set(e, ERR_NOMEM, "out of memory for hyperparameters");
    if (layout == LAYOUT_LONG)
        write_long(w, &b);
    else if (layout == LAYOUT_WIDE && names)
        write_wide(w, &b, names, count);
    else if (names)
        write_json(w, &b, names, count);
    if (rc == OK && !buffer_ok(&b))
        rc = error_set(e, ERR_NOMEM, "out of memory for a table of %zu columns", count);
    output_bytes(out, buffer_text(&b), b.length);
    buffer_release(&b);
    free(names);
    for (size_t i = 0; i < w->count; i++)
        release_session(&w->sessions[i]);
    free(w->sessions);
    release_session(&w->current);
    if (rc == OK && !w->count && !s->empty) {
        log_line(&s->log, "no run has hyperparameters");
        s->unmatched++;
    } else if (rc == OK) {
        s->unmatched += selection_tell(&w->asked, "--metric", "tag", &s->log);
    }
    selection_release(&w->asked);
    return gather_finish(s, out, rc, w->count > 0, e);
}

static int is_tag(const void *context, size_t i, const char *name)
{
    const struct metric *m = (const struct metric *)context + i;

    return strlen(name) == m->tag_length && !memcmp(name, m->text, m->tag_length);
}

/* TAG, TAG:last, TAG:min or TAG:max. Another colon belongs to the tag. */
static void parse_metrics(struct work *w, const struct option_list *list)
{
    static const char *const ends[] = { ":last", ":min", ":max" };

    w->asked = (struct selection){ .patterns = *list, .matches = is_tag, .context = w->metrics };
    for (size_t i = 0; i < list->count; i++) {
        struct metric *m = &w->metrics[w->metric_count++];
        size_t n = strlen(list->items[i]);

        *m = (struct metric){ list->items[i], n, METRIC_LAST };
        for (int k = 0; k < 3; k++)
            if (n >= strlen(ends[k]) && !strcmp(list->items[i] + n - strlen(ends[k]), ends[k])) {
                m->tag_length = n - strlen(ends[k]);
                m->which = k == 0 ? METRIC_LAST : k == 1 ? METRIC_MIN : METRIC_MAX;
            }
    }
}

int command_hparams(int argc, char **argv)
{
    static const struct output_format formats[] = { { "csv", "csv", 0 }, { "json", "json", 0 } };
    struct output_options to = { .format = NULL };
    struct scan s = { .failed = 0 };
    struct work w = { .count = 0 };
    struct option_list metrics = { .count = 0 };
    int json = 0, wide = 0;
    struct option table[] = {
        { OPTION_FLAG, 0, "wide", &wide, .help = "a row a run, a column a hyperparameter" },
        { OPTION_LIST, 0, "metric", &metrics, "TAG[:last|min|max]", .help = "--wide, --json: a column with that point "
          "of a series; may be repeated" },
        { OPTION_FLAG, 0, "no-run", &w.no_run, .help = "--wide, --json: without the column `run`" },
        SCAN_RUN_OPTION(s),
        OUTPUT_OPTIONS(to, "csv|json", "csv", "Print rows; json: the wide table as an object with `header` and `rows`"),
    };
    const struct options options = {
        .program = "eventlog hparams", .usage = "[OPTION...] PATH...",
        .summary = "Prints the hyperparameters that runs were started with: run,name,value, or a table. Status 1: "
        "no run has "
                   "any, or damage; 2: usage or I/O.",
        .examples = "  eventlog hparams logs\n  eventlog hparams logs --wide --metric eval/acc:max --metric loss\n",
        .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .wanted = "which log directory?",
    };
    struct error e = { 0 };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    log_init(&s.log, options.program, 2);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK)
        rc = output_format_settle(&to, formats, sizeof formats / sizeof *formats, "csv", &e);
    json = rc == OK && !strcmp(to.format, "json");
    if (rc == OK && !wide && !json && (metrics.count || w.no_run))
        rc = error_set(&e, ERR_ARG, "--%s is for --wide and --json only", metrics.count ? "metric" : "no-run");
    if (rc != OK)
        return scan_fail(&s, &e);
    parse_metrics(&w, &metrics);
    if ((status = scan_open(&s, options.program, argv + 1, (size_t)count)) == EXIT_DONE)
        status = write_sessions(&s, &w, json ? LAYOUT_JSON : wide ? LAYOUT_WIDE : LAYOUT_LONG, &to, &e);
    scan_close(&s);
    return status;
}
