#include "evaluator/record/evaluation_prom.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The index of a tag: usually the one it had in the line before. */
static struct evaluation_newest *prom_place(struct evaluation_series *s, size_t hint, const char *tag, struct error *e)
{
    if (hint < s->count && !strcmp(s->items[hint].tag, tag))
        return &s->items[hint];
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->items[i].tag, tag))
            return &s->items[i];
    if (!ARRAY_ROOM(s->items, s->capacity, s->count + 1))
        goto fail;
    s->items[s->count] = (struct evaluation_newest){ .tag = strdup(tag) };
    if (s->items[s->count].tag)
        return &s->items[s->count++];
fail:
    error_memory(e, NULL, "for the newest value of %s", tag);
    return NULL;
}

int evaluation_series_add(struct evaluation_series *s, const struct evaluation_tags *tags,
                          const struct ledger_record *r, struct error *e)
{
    size_t hint = 0;

    for (size_t i = 0; r->has_metrics && i < r->metrics.count; i++) {
        char tag[EVALUATION_TAG_MAX];
        struct evaluation_newest *n;
        float value;

        if (!evaluation_tags_name(tags, &r->metrics.items[i], tag, &value))
            continue;
        if (!(n = prom_place(s, hint++, tag, e)))
            return ERR_NOMEM;
        n->value = value;
        n->step = r->checkpoint.step;
        n->wall_time = r->point_time > 0 ? r->point_time : r->wall_time;
        n->points++;
    }
    return OK;
}

void evaluation_series_release(struct evaluation_series *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->items[i].tag);
    free(s->items);
    *s = (struct evaluation_series){ NULL, 0, 0 };
}

/* Backslash, quote and newline are escaped; bytes that are not UTF-8 become U+FFFD. */
static void label(struct buffer *b, const char *text)
{
    for (size_t left = strlen(text); left;) {
        size_t n = (size_t)utf8_character(text, left, NULL);

        if (!n)
            buffer_append_text(b, "\xef\xbf\xbd");
        else if (*text == '\\' || *text == '"')
            buffer_format(b, "\\%c", *text);
        else if (*text == '\n')
            buffer_append_text(b, "\\n");
        else
            buffer_append(b, text, n);
        text += n ? n : 1;
        left -= n ? n : 1;
    }
}

static void value(struct buffer *b, double x)
{
    char text[NUMBER_TEXT_MAX];

    if (isfinite(x))
        buffer_append(b, text, (size_t)number_text(x, text));
    else
        buffer_append_text(b, isnan(x) ? "NaN" : x > 0 ? "+Inf" : "-Inf");
    buffer_append_byte(b, '\n');
}

static void head(struct buffer *b, const char *name, const char *type, const char *help)
{
    buffer_format(b, "# HELP tb_%s %s\n# TYPE tb_%s %s\n", name, help, name, type);
}

enum { SCALAR, SCALAR_STEP, SCALAR_TIME, SCALAR_POINTS };

static void scalars(struct buffer *b, int which, const struct evaluation_prom_row *rows, size_t count)
{
    static const struct {
        const char *name, *help;
    } metrics[] = {
        { "scalar", "Newest value of a series in an event log." },
        { "scalar_step", "Step of that value." },
        { "scalar_wall_time_seconds", "Unix time of that value." },
        { "scalar_points", "Points of the series in the log." },
    };

    head(b, metrics[which].name, "gauge", metrics[which].help);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < rows[i].series->count; k++) {
            const struct evaluation_newest *n = &rows[i].series->items[k];

            buffer_format(b, "tb_%s{run=\"", metrics[which].name);
            label(b, rows[i].run);
            buffer_append_text(b, "\",tag=\"");
            label(b, n->tag);
            buffer_append_text(b, "\"} ");
            if (which == SCALAR || which == SCALAR_TIME)
                value(b, which == SCALAR ? (double)n->value : n->wall_time);
            else
                buffer_format(b, "%" PRId64 "\n", which == SCALAR_STEP ? n->step : (int64_t)n->points);
        }
}

enum { LAST_STEP, PENDING, DONE, FAILED, GONE };

static int64_t work_value(int which, const struct evaluation_prom_row *row)
{
    return which == LAST_STEP ? row->last_step
           : which == PENDING ? (int64_t)row->pending
                              : (int64_t)(which == DONE     ? row->summary->done
                                          : which == FAILED ? row->summary->failed
                                                            : row->summary->gone);
}

static void work(struct buffer *b, int which, const struct evaluation_prom_row *rows, size_t count)
{
    static const struct {
        const char *name, *type, *help;
    } metrics[] = {
        { "eval_last_checkpoint_step", "gauge", "Step of the checkpoint whose outcome was recorded last." },
        { "eval_pending", "gauge", "Checkpoints that wait or are being evaluated." },
        { "eval_done_total", "counter", "Checkpoints evaluated." },
        { "eval_failed_total", "counter", "Checkpoints that could not be evaluated." },
        { "eval_gone_total", "counter", "Checkpoints deleted before they could be opened." },
    };

    head(b, metrics[which].name, metrics[which].type, metrics[which].help);
    for (size_t i = 0; i < count; i++) {
        if (which == LAST_STEP && rows[i].last_step < 0)
            continue;
        buffer_format(b, "tb_%s{run=\"", metrics[which].name);
        label(b, rows[i].run);
        buffer_format(b, "\"} %" PRId64 "\n", work_value(which, &rows[i]));
    }
}

static void append_rows(struct buffer *out, const struct evaluation_prom_row *rows, size_t count)
{
    for (int which = SCALAR; which <= SCALAR_POINTS; which++)
        scalars(out, which, rows, count);
    for (int which = LAST_STEP; which <= GONE; which++)
        work(out, which, rows, count);
}

int evaluation_prom_write(const char *path, const struct evaluation_prom_row *rows, size_t count, struct error *e)
{
    struct buffer b = BUFFER_EMPTY;
    int rc;

    append_rows(&b, rows, count);
    rc = buffer_ok(&b) ? file_replace(NULL, path, b.data, b.length, e) : error_memory(e, path, "for its text");
    buffer_release(&b);
    return rc;
}
