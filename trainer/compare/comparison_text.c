#include "trainer/compare/comparison_text.h"

#include "base/human.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STRATEGY_NARROWEST = 12 };

static const struct table_column speed_columns[] = {
    { .title = "strategy", .cut = STRATEGY_NARROWEST },
    { .title = "workers", .right = 1 },
    { .title = "steps/s", .right = 1 },
    { .title = "+-%", .right = 1 },
    { .title = "samples/s", .right = 1 },
    { .title = "efficiency", .right = 1 },
    { .title = "waiting", .right = 1, .leave_out = 1 },
    { .title = "weights" },
};
static const struct table_column sent_columns[] = {
    { .title = "strategy", .cut = STRATEGY_NARROWEST },
    { .title = "workers", .right = 1 },
    { .title = "sent/step", .right = 1 },
    { .title = "busiest", .leave_out = 2 },
    { .title = "bytes/step", .right = 1 },
    { .title = "staleness", .right = 1 },
    { .title = "max", .right = 1 },
    { .title = "dropped", .right = 1, .leave_out = 1 },
};

void comparison_text_cell(struct table *t, const struct standing *s)
{
    table_cell(t, "%s", s->strategy);
    table_cell(t, "%lld%s", (long long)s->workers, s->ranks > s->cores ? "*" : "");
}

int comparison_text_decimals(double x)
{
    return x >= 100 ? 0 : x >= 10 ? 1 : x >= 1 ? 2 : x >= 0.1 ? 3 : 4;
}

void comparison_text_number(struct table *t, const struct spread *s, int decimals)
{
    if (s->count)
        table_cell(t, "%.*f", decimals, s->median);
    else
        table_cell(t, "-");
}

void comparison_text_table(struct table *t, const struct text_style *style, struct buffer *out)
{
    table_print(t, 0, style->columns, style->ascii, out);
    table_release(t);
}

void comparison_text_note(struct buffer *out, const struct text_style *style, const char *format, ...)
{
    char text[1200];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    text_append_wrapped(out, text, 0, 0, (size_t)style->columns);
    buffer_append_byte(out, '\n');
}

static void bytes_cell(struct table *t, const struct spread *s)
{
    char text[HUMAN_TEXT_MAX];

    if (s->count && s->median > 0)
        table_cell(t, "%s", human_bytes((uint64_t)(s->median + 0.5), text));
    else
        table_cell(t, "-");
}

static void percent_cell(struct table *t, double part, int known)
{
    if (known)
        table_cell(t, "%.*f %%", part < 0.0995 ? 1 : 0, 100 * part);
    else
        table_cell(t, "-");
}

static void add_speeds(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    struct table t;

    buffer_append_text(out, "Speed, and the beginning of the hash of the weights:\n\n");
    table_init(&t, speed_columns, sizeof speed_columns / sizeof *speed_columns);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];

        if (!s->rounds)
            continue;
        comparison_text_cell(&t, s);
        comparison_text_number(&t, &s->steps_per_second, comparison_text_decimals(s->steps_per_second.median));
        if (s->steps_per_second.count > 1)
            table_cell(&t, "%.1f", 100 * spread_width(&s->steps_per_second));
        else
            table_cell(&t, "-");
        comparison_text_number(&t, &s->samples_per_second, comparison_text_decimals(s->samples_per_second.median));
        percent_cell(&t, s->efficiency, s->efficiency > 0);
        percent_cell(&t, s->waiting.median, s->waiting.count > 0);
        table_cell(&t, "%.8s", *s->weights ? s->weights : "-");
    }
    comparison_text_table(&t, style, out);
}

static int anything_dropped(const struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].dropped.most > 0)
            return 1;
    return 0;
}

static int anything_sent(const struct comparison *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].sent.median > 0)
            return 1;
    return 0;
}

static void add_sent(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    const int drops = anything_dropped(c);
    struct table t;

    buffer_append_text(out, "\nMessages: bytes of all ranks, and of the busiest link:\n\n");
    table_init(&t, sent_columns, sizeof sent_columns / sizeof *sent_columns - !drops); /* its last column */
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];

        if (!s->rounds)
            continue;
        comparison_text_cell(&t, s);
        bytes_cell(&t, &s->sent);
        table_cell(&t, "%s", *s->busiest ? s->busiest : "-");
        bytes_cell(&t, &s->busiest_bytes);
        comparison_text_number(&t, &s->staleness_mean, 2);
        comparison_text_number(&t, &s->staleness_max, 0);
        if (drops)
            comparison_text_number(&t, &s->dropped, 0);
    }
    comparison_text_table(&t, style, out);
}

static void add_precision(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    char step[48], time[64], duration[HUMAN_TEXT_MAX];
    const struct table_column columns[] = {
        { .title = "strategy", .cut = STRATEGY_NARROWEST },
        { .title = "workers", .right = 1 },
        { .title = step, .right = 1 },
        { .title = "+-", .right = 1, .leave_out = 1 },
        { .title = time, .right = 1 },
        { .title = "at its end", .right = 1, .leave_out = 2 },
        { .title = "after", .right = 1, .leave_out = 3 },
    };
    struct table t;

    snprintf(step, sizeof step, "at step %lld", (long long)c->equal_step);
    snprintf(time, sizeof time, "after %s", human_duration(c->equal_seconds, duration));
    buffer_append_text(out, "\nPrecision on the test data, after equal steps, after equal time, and at the end:\n\n");
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];

        if (!s->rounds)
            continue;
        comparison_text_cell(&t, s);
        comparison_text_number(&t, &s->at_equal_steps, 4);
        if (s->at_equal_steps.count > 1)
            table_cell(&t, "%.4f", (s->at_equal_steps.most - s->at_equal_steps.least) / 2);
        else
            table_cell(&t, "-");
        comparison_text_number(&t, &s->at_equal_time, 4);
        comparison_text_number(&t, &s->at_end, 4);
        table_cell(&t, "%s", human_duration(s->seconds.median, duration));
    }
    comparison_text_table(&t, style, out);
}

static void add_notes(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    int crowded = 0;

    if (c->rounds > 0)
        buffer_append_byte(out, '\n');
    if (c->rounds > 1)
        comparison_text_note(
            out, style, "Medians of up to %zu rounds; +-: half the distance from the least to the most.", c->rounds);
    for (size_t i = 0; i < c->count; i++)
        crowded |= c->rows[i].ranks > c->rows[i].cores;
    if (crowded)
        comparison_text_note(out, style, "*: more ranks than cores, which take turns: the speed says little.");
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].failed)
            comparison_text_note(out, style, "%s failed in %zu round%s: %s", c->rows[i].cell, c->rows[i].failed,
                                 c->rows[i].failed == 1 ? "" : "s", c->rows[i].reason);
}

void comparison_text(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    if (c->rounds > 0)
        add_speeds(c, style, out);
    if (anything_sent(c))
        add_sent(c, style, out);
    if (c->equal_step > 0)
        add_precision(c, style, out);
    add_notes(c, style, out);
}
