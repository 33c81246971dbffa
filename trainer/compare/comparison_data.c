/* comparison_data.c - a comparison as CSV and JSON. */
#include "trainer/compare/comparison.h"

#include "base/json.h"
#include "base/number.h"

#include <string.h>

/* Each with a column, and an object, for median, least and most. */
static const struct spread_member {
    const char *name;
    size_t place;
} spreads[] = {
    { "steps_per_second", offsetof(struct standing, steps_per_second) },
    { "samples_per_second", offsetof(struct standing, samples_per_second) },
    { "steps_101_200_per_second", offsetof(struct standing, steady) },
    { "waiting_share", offsetof(struct standing, waiting) },
    { "input_seconds_per_step", offsetof(struct standing, phases[PHASE_INPUT]) },
    { "forward_seconds_per_step", offsetof(struct standing, phases[PHASE_FORWARD]) },
    { "backward_seconds_per_step", offsetof(struct standing, phases[PHASE_BACKWARD]) },
    { "waiting_seconds_per_step", offsetof(struct standing, phases[PHASE_WAITING]) },
    { "reducing_seconds_per_step", offsetof(struct standing, phases[PHASE_REDUCING]) },
    { "updating_seconds_per_step", offsetof(struct standing, phases[PHASE_UPDATING]) },
    { "saving_seconds_per_step", offsetof(struct standing, phases[PHASE_SAVING]) },
    { "other_seconds_per_step", offsetof(struct standing, phases[PHASE_OTHER]) },
    { "servers_working_share", offsetof(struct standing, serving) },
    { "other_programs_share", offsetof(struct standing, others) },
    { "sent_per_step", offsetof(struct standing, sent) },
    { "busiest_bytes_per_step", offsetof(struct standing, busiest_bytes) },
    { "staleness_mean", offsetof(struct standing, staleness_mean) },
    { "staleness_max", offsetof(struct standing, staleness_max) },
    { "dropped", offsetof(struct standing, dropped) },
    { "precision_at_equal_steps", offsetof(struct standing, at_equal_steps) },
    { "precision_at_equal_time", offsetof(struct standing, at_equal_time) },
    { "precision_at_end", offsetof(struct standing, at_end) },
    { "seconds", offsetof(struct standing, seconds) },
};
enum { SPREADS = sizeof spreads / sizeof *spreads };

static const struct spread *spread_at(const struct standing *s, size_t i)
{
    return (const struct spread *)(const void *)((const char *)s + spreads[i].place);
}

static void csv_text(struct buffer *out, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        buffer_append_text(out, text);
        return;
    }
    buffer_append_byte(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            buffer_append_byte(out, '"');
        buffer_append_byte(out, *text);
    }
    buffer_append_byte(out, '"');
}

static void csv_number(struct buffer *out, double x)
{
    char text[NUMBER_TEXT_MAX];

    buffer_append_byte(out, ',');
    number_text(x, text);
    buffer_append_text(out, text);
}

static void csv_row(struct buffer *out, const struct standing *s)
{
    csv_text(out, s->cell);
    buffer_append_byte(out, ',');
    csv_text(out, s->strategy);
    buffer_format(out, ",%lld,%lld,%lld,%zu,%zu,%s,", (long long)s->workers, (long long)s->ranks, (long long)s->cores,
                  s->rounds, s->failed, s->weights);
    csv_text(out, s->busiest);
    for (int more = 0; more < 2; more++) {
        const double x = more ? s->efficiency : s->speed_up;

        if (x > 0)
            csv_number(out, x);
        else
            buffer_append_byte(out, ',');
    }
    for (size_t i = 0; i < SPREADS; i++) {
        const struct spread *x = spread_at(s, i);

        if (!x->count) {
            buffer_append_text(out, ",,,");
            continue;
        }
        csv_number(out, x->median);
        csv_number(out, x->least);
        csv_number(out, x->most);
    }
    buffer_append_byte(out, '\n');
}

void comparison_csv(const struct comparison *c, struct buffer *out)
{
    buffer_append_text(out, "cell,strategy,workers,ranks,cores,rounds,failed,weights,busiest_link,speed_up,efficiency");
    for (size_t i = 0; i < SPREADS; i++)
        buffer_format(out, ",%s,%s_least,%s_most", spreads[i].name, spreads[i].name, spreads[i].name);
    buffer_append_byte(out, '\n');
    for (size_t i = 0; i < c->count; i++)
        csv_row(out, &c->rows[i]);
}

static void json_number(struct buffer *out, const char *name, double x, int known)
{
    buffer_format(out, ",\"%s\":", name);
    if (known)
        json_double(out, x);
    else
        buffer_append_text(out, "null");
}

static void json_row(struct buffer *out, const struct standing *s)
{
    buffer_append_text(out, "{\"cell\":");
    json_text(out, s->cell);
    buffer_append_text(out, ",\"strategy\":");
    json_text(out, s->strategy);
    buffer_format(out, ",\"workers\":%lld,\"ranks\":%lld,\"cores\":%lld,\"rounds\":%zu,\"failed\":%zu,\"reason\":",
                  (long long)s->workers, (long long)s->ranks, (long long)s->cores, s->rounds, s->failed);
    json_text(out, s->failed ? s->reason : NULL);
    buffer_append_text(out, ",\"weights\":");
    json_text(out, *s->weights ? s->weights : NULL);
    buffer_append_text(out, ",\"busiest_link\":");
    json_text(out, *s->busiest ? s->busiest : NULL);
    json_number(out, "speed_up", s->speed_up, s->speed_up > 0);
    json_number(out, "efficiency", s->efficiency, s->efficiency > 0);
    for (size_t i = 0; i < SPREADS; i++) {
        const struct spread *x = spread_at(s, i);

        buffer_format(out, ",\"%s\":", spreads[i].name);
        if (!x->count) {
            buffer_append_text(out, "null");
            continue;
        }
        buffer_append_text(out, "{\"median\":");
        json_double(out, x->median);
        json_number(out, "least", x->least, 1);
        json_number(out, "most", x->most, 1);
        buffer_append_byte(out, '}');
    }
    buffer_append_byte(out, '}');
}

void comparison_json(const struct comparison *c, const char *training, struct buffer *out)
{
    buffer_append_text(out, "{\"type\":\"trainer-compare\",\"version\":1,\"training\":");
    json_text(out, training);
    buffer_format(out, ",\"rounds\":%zu,\"equal_step\":%lld,\"equal_seconds\":", c->rounds, (long long)c->equal_step);
    json_double(out, c->equal_seconds);
    buffer_append_text(out, ",\"cells\":[");
    for (size_t i = 0; i < c->count; i++) {
        buffer_append_text(out, i ? ",\n" : "\n");
        json_row(out, &c->rows[i]);
    }
    buffer_append_text(out, "]}\n");
}
