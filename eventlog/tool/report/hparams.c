/* eventlog hparams: prints the hyperparameters of the runs that are sessions. */
#include "base/array.h"
#include "base/bytes.h"
#include "eventlog/format/summary_metadata.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* a hyperparameter of a session */
struct entry {
    char *name, *text; /* NUL-terminated, for strings only */
    size_t name_length, text_length;
    enum hparam_type type;
    double number;
};

struct metric_value {
    double v;
    int there;
};

struct session {
    const char *run;
    struct entry *entries; /* by name once the run has been read */
    size_t count, capacity;
    struct metric_value *metrics; /* one per --metric */
};

struct metric {
    const char *text; /* as given: the head of its column */
    size_t tag_length;
    enum { METRIC_LAST, METRIC_MIN, METRIC_MAX } which;
};

/* a run without hyperparameters, for sessions that are runs below it */
struct outer {
    const char *run;
    struct metric_value *metrics;
    size_t sessions; /* directly below it */
    uint64_t told;   /* one bit per metric that is left out */
};

struct hparams_work {
    struct session *sessions;
    size_t count;
    struct outer *outer; /* by name, if there are metrics */
    size_t outer_count;
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
    memset(s, 0, sizeof *s);
}

/* A repeated name replaces the one before. */
static int add_entry(void *context, const struct hparam *h)
{
    struct session *s = &((struct hparams_work *)context)->current;
    struct entry new = { copy(&h->name), copy(&h->text), h->name.length, h->text.length, h->type, h->number };

    for (size_t i = 0; new.name &&new.text &&i < s->count; i++)
        if (!by_name(&s->entries[i], &new)) {
            free(s->entries[i].name);
            free(s->entries[i].text);
            s->entries[i] = new;
            return OK;
        }
    if (!new.name || !new.text || !ARRAY_ROOM(s->entries, s->capacity, s->count + 1)) {
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
    struct hparams_work *w = context;
    struct summary_metadata m;

    (void)event;
    if (strcmp(s->plugin, "hparams") != 0 || strcmp(s->tag, "_hparams_/session_start_info") != 0 || !value->metadata)
        return OK;
    summary_metadata_read(&m, value->metadata, value->metadata_length);
    w->current.run = "";
    return summary_metadata_hparams(&m, add_entry, w) ? error_memory(e, NULL, "for hyperparameters") : OK;
}

static void again(void *context)
{
    release_session(&((struct hparams_work *)context)->current);
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
        if (!isnan(s->points[i].value) &&
            (!any || (m->which == METRIC_MIN ? s->points[i].value < *value : s->points[i].value > *value))) {
            *value = s->points[i].value;
            any = 1;
        }
    return 1;
}

/* One per --metric, yours to free; NULL without memory. */
static struct metric_value *take_metrics(const struct hparams_work *w, const struct scalar_run *scalars)
{
    struct metric_value *metrics = calloc(w->metric_count + 1, sizeof *metrics);

    for (size_t i = 0; metrics && i < w->metric_count; i++)
        metrics[i].there = take_metric(&w->metrics[i], scalars, &metrics[i].v);
    return metrics;
}

static int one_run(void *context, const char *name, struct scalar_run *scalars, struct error *e)
{
    struct hparams_work *w = context;
    struct session *s = &w->current, *list;
    struct outer *outer;

    for (size_t i = 0; i < scalars->count; i++)
        if (scalars->series[i].count)
            selection_wants(&w->asked, scalars->series[i].tag);
    if (!s->run) {
        if (!w->metric_count)
            return OK;
        if (!(outer = realloc(w->outer, (w->outer_count + 1) * sizeof *outer)))
            return error_memory(e, NULL, "for run %s", name);
        w->outer = outer;
        outer += w->outer_count;
        *outer = (struct outer){ .run = name };
        if (!(outer->metrics = take_metrics(w, scalars)))
            return error_memory(e, NULL, "for run %s", name);
        w->outer_count++;
        return OK;
    }
    if (!(list = realloc(w->sessions, (w->count + 1) * sizeof *list)))
        return error_memory(e, NULL, "for run %s", name);
    w->sessions = list;
    s->run = name;
    if (!(s->metrics = take_metrics(w, scalars)))
        return error_memory(e, NULL, "for run %s", name);
    if (s->count)
        qsort(s->entries, s->count, sizeof *s->entries, by_name);
    list[w->count++] = *s;
    memset(s, 0, sizeof *s);
    return OK;
}

struct outer_key {
    const char *name;
    size_t length;
};

static int by_run(const void *key, const void *entry)
{
    const struct outer_key *k = key;
    const char *run = ((const struct outer *)entry)->run;

    return bytes_compare(k->name, k->length, run, strlen(run));
}

/* The run directly above this one, NULL if there is none or it is a session itself. */
static struct outer *outer_of(const struct hparams_work *w, const char *run)
{
    const char *slash = strrchr(run, '/');
    struct outer_key key = { slash ? run : ".", slash ? (size_t)(slash - run) : 1 };

    return w->outer_count ? bsearch(&key, w->outer, w->outer_count, sizeof *w->outer, by_run) : NULL;
}

/* PyTorch's add_hparams() makes a session of its own below the run that has the curves: metrics that a session lacks
 * are taken from that run, unless it is above several sessions and could belong to any of them. */
static void take_from_above(struct hparams_work *w, struct log *log)
{
    struct outer *outer;

    for (size_t i = 0; i < w->count; i++)
        if ((outer = outer_of(w, w->sessions[i].run)))
            outer->sessions++;
    for (size_t i = 0; i < w->count; i++) {
        struct session *s = &w->sessions[i];

        outer = outer_of(w, s->run);
        for (size_t k = 0; outer && k < w->metric_count; k++) {
            if (s->metrics[k].there || !outer->metrics[k].there)
                continue;
            if (outer->sessions == 1) {
                s->metrics[k] = outer->metrics[k];
            } else if (!(outer->told >> k & 1)) {
                log_line(log, "run %s: %s could belong to any of the %zu runs with hyperparameters below it; left out",
                         outer->run, w->metrics[k].text, outer->sessions);
                outer->told |= UINT64_C(1) << k;
            }
        }
    }
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* Each name once, in byte order; NULL if memory runs out. The entries are borrowed from the sessions. */
static struct entry *all_names(const struct hparams_work *w, size_t *count)
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

/* An empty text for what a run does not have. */
static void add_value(struct report *r, const struct entry *e)
{
    if (e && e->type == HPARAM_NUMBER)
        report_number(r, e->number);
    else if (e && e->type == HPARAM_BOOL)
        report_flag(r, e->number != 0);
    else
        report_text(r, e ? e->text : "", e ? e->text_length : 0);
}

static void add_long_rows(const struct hparams_work *w, struct report *r)
{
    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->sessions[i].count; k++) {
            const struct entry *e = &w->sessions[i].entries[k];

            report_word(r, w->sessions[i].run);
            report_text(r, e->name, e->name_length);
            add_value(r, e);
        }
}

static void add_wide_rows(const struct hparams_work *w, const struct entry *names, size_t count, struct report *r)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct session *s = &w->sessions[i];

        if (!w->no_run)
            report_word(r, s->run);
        for (size_t k = 0; k < count; k++)
            add_value(r, entry_of(s, &names[k]));
        for (size_t m = 0; m < w->metric_count; m++)
            report_number_if(r, s->metrics[m].there, s->metrics[m].v);
    }
}

/* A number in every run that has it. */
static int is_numeric(const struct hparams_work *w, const struct entry *name)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct entry *e = entry_of(&w->sessions[i], name);

        if (e && e->type != HPARAM_NUMBER)
            return 0;
    }
    return 1;
}

/* The columns of the wide table, yours to free; NULL if memory runs out. On a narrow terminal the metrics and the first
 * hyperparameters stay. */
static struct report_column *wide_columns(const struct hparams_work *w, const struct entry *names, size_t count,
                                          size_t *n)
{
    struct report_column *columns = calloc(1 + count + w->metric_count, sizeof *columns);

    *n = 0;
    if (columns && !w->no_run)
        columns[(*n)++] = (struct report_column){ .key = "run", .cut = 10 };
    for (size_t k = 0; columns && k < count; k++)
        columns[(*n)++] = (struct report_column){ .key = names[k].name,
                                                  .cut = 8,
                                                  .leave_out = (int)k + 2,
                                                  .kind = is_numeric(w, &names[k]) ? REPORT_NUMBER : REPORT_TEXT };
    for (size_t m = 0; columns && m < w->metric_count; m++)
        columns[(*n)++] = (struct report_column){ .key = w->metrics[m].text, .kind = REPORT_NUMBER, .leave_out = 1 };
    return columns;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static int print_sessions(struct scan *s, struct hparams_work *w, int wide, const struct report_options *o, int rc,
                          struct error *e)
{
    static const struct report_column long_columns[] = { { .key = "run" }, { .key = "name" }, { .key = "value" } };
    struct report_layout layout = {
        .type = "hparams", .rows = "rows", .columns = long_columns, .count = 3, .tell_left_out = 1, .header_and_rows = 1
    };
    struct report_column *columns = NULL;
    struct entry *names = NULL;
    struct report *report;
    size_t count = 0;
    int status;

    if (rc == OK && !((names = all_names(w, &count)) && (columns = wide_columns(w, names, count, &layout.count))))
        rc = error_memory(e, NULL, "for a table of %zu columns", count);
    layout.columns = wide ? columns : long_columns;
    layout.count = wide ? layout.count : 3;
    if (rc == OK)
        rc = report_open(&report, &layout, o, e);
    if (rc != OK) {
        status = scan_fail(s, e);
    } else {
        if (wide)
            add_wide_rows(w, names, count, report);
        else
            add_long_rows(w, report);
        status = report_finish(report, s, OK, w->count > 0, e);
    }
    free(columns);
    free(names);
    return status;
}

static int write_sessions(struct scan *s, struct hparams_work *w, int wide, const struct report_options *o,
                          struct error *e)
{
    const struct gather g = { .range = POINT_RANGE_ALL,
                              .run = one_run,
                              .other = other,
                              .again = again,
                              .context = w,
                              .no_points = !w->metric_count };
    int status, rc = gather_runs(s, &g, e);

    take_from_above(w, &s->log);
    if (rc == OK && !w->count && !s->empty) {
        log_line(&s->log, "no run has hyperparameters");
        s->unmatched++;
    } else if (rc == OK) {
        s->unmatched += selection_tell(&w->asked, "--metric", "tag", &s->log);
    }
    status = print_sessions(s, w, wide, o, rc, e);
    for (size_t i = 0; i < w->count; i++)
        release_session(&w->sessions[i]);
    free(w->sessions);
    for (size_t i = 0; i < w->outer_count; i++)
        free(w->outer[i].metrics);
    free(w->outer);
    release_session(&w->current);
    selection_release(&w->asked);
    return status;
}

static int is_tag(const void *context, size_t i, const char *name)
{
    const struct metric *m = (const struct metric *)context + i;

    return strlen(name) == m->tag_length && !memcmp(name, m->text, m->tag_length);
}

/* TAG, TAG:last, TAG:min or TAG:max. Another colon belongs to the tag. */
static void parse_metrics(struct hparams_work *w, const struct option_list *list)
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
    static const struct output_format formats[] = { REPORT_FORMATS };
    struct report_options o = { .sort = NULL };
    struct scan s = { .failed = 0 };
    struct hparams_work w = { .count = 0 };
    struct option_list metrics = { .count = 0 };
    int wide = 0;
    struct option table[] = {
        { OPTION_FLAG, 0, "wide", &wide,
          .help = "Print a row for each run and a column for each hyperparameter in csv and jsonl as well; the other "
                  "formats always do" },
        { OPTION_LIST, 0, "metric", &metrics, .argument = "TAG[:last|min|max]",
          .help = "Add a column with the last (default), lowest or highest value of series TAG in the run, or in the "
                  "run above it (as with PyTorch's add_hparams); may be repeated. Not for rows of run,name,value" },
        { OPTION_FLAG, 0, "no-run", &w.no_run, .help = "Leave out the column 'run' of a wide table" },
        SCAN_RUN_OPTION(s),
        REPORT_OPTIONS(o),
        OUTPUT_OPTIONS(o.to, REPORT_WORDS, "text on a terminal and csv elsewhere",
                       "Print a table, or rows of run,name,value; json: an object with 'header' and 'rows'"),
    };
    const struct options options = {
        .program = "eventlog hparams",
        .usage = "[OPTION...] PATH...",
        .summary = "Print the hyperparameters that runs were started with, as a table or as rows of run,name,value. "
                   "Exit status: 0 done; 1 no run has any, or damage; 2 usage or I/O.",
        .examples = "  eventlog hparams logs\n"
                    "  eventlog hparams logs --wide --metric eval/acc:max --sort eval/acc:max:desc --top 5\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&s, &options, argc, argv, &count, &e);

    if (rc == OK)
        rc = report_settle(&o, formats, sizeof formats / sizeof *formats, "csv", &e);
    wide |= rc == OK && strcmp(o.to.format, "csv") != 0 && strcmp(o.to.format, "jsonl") != 0;
    if (rc == OK && !wide && (metrics.count || w.no_run))
        rc = error_set(&e, ERR_ARG, "--%s needs a wide table; add --wide", metrics.count ? "metric" : "no-run");
    if (rc != OK)
        return scan_leave(&s, rc, &e);
    parse_metrics(&w, &metrics);
    if ((status = scan_open(&s, argv + 1, (size_t)count)) == EXIT_DONE)
        status = write_sessions(&s, &w, wide, &o, &e);
    scan_close(&s);
    return status;
}
