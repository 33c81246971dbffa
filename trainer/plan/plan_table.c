#include "trainer/plan/plan_table.h"

#include "base/human.h"
#include "base/json.h"
#include "base/number.h"
#include "base/program/table.h"

#include <math.h>
#include <string.h>

enum { ROOM_FOR_NAMES = 100 }; /* columns */

double plan_row_error(const struct plan_row *r)
{
    return r->cost.steps / r->measured - 1;
}

static int any_measured(const struct plan_row *rows, size_t count)
{
    size_t i = 0;

    while (i < count && !(rows[i].measured > 0))
        i++;
    return i < count;
}

/* Servers of the row; 0: the strategy has none. */
static int servers_of(const struct plan_row *r)
{
    return !r->strategy->servers ? 0 : r->shape.servers ? r->shape.servers : plan_hosts(&r->shape);
}

static int hosts_of(const struct plan_row *r)
{
    return r->strategy->devices ? 1 : plan_hosts(&r->shape);
}

static void number_cell(struct table *t, double value)
{
    char text[HUMAN_TEXT_MAX];

    table_cell(t, "%s", human_number(value, text));
}

static void measured_cells(struct table *t, const struct plan_row *r)
{
    if (!(r->measured > 0)) {
        table_cell(t, "-");
        table_cell(t, "-");
        return;
    }
    number_cell(t, 1e3 / r->measured * r->cost.seconds * r->cost.steps);
    if (r->fitted)
        table_cell(t, "fitted");
    else
        table_cell(t, "%+.1f %%", 100 * plan_row_error(r));
}

/* The strategy as --strategies takes it; where there is no room for that, its option without a name: what would be cut
 * out of the middle is more. */
static void name_cell(struct table *t, const char *name, int whole)
{
    const char *option = strchr(name, ':'), *value = option ? strchr(option, '=') : NULL;

    if (whole || !value)
        table_cell(t, "%s", name);
    else
        table_cell(t, "%.*s%s", (int)(option + 1 - name), name, value + 1);
}

static void row_cells(struct table *t, const struct plan_row *r, int measured, int whole)
{
    char text[HUMAN_TEXT_MAX];

    name_cell(t, r->strategy->name, whole);
    table_cell(t, "%d", r->shape.workers);
    table_cell(t, "%d", hosts_of(r));
    if (servers_of(r))
        table_cell(t, "%d", servers_of(r));
    else
        table_cell(t, "-");
    number_cell(t, 1e3 * r->cost.seconds);
    number_cell(t, r->cost.samples);
    table_cell(t, "%.0f %%", 100 * r->efficiency);
    table_cell(t, "%s", r->cost.bytes > 0 ? human_bytes((uint64_t)r->cost.bytes, text) : "-");
    table_cell(t, "%s", plan_limit_names[r->cost.limit]);
    if (measured)
        measured_cells(t, r);
}

void plan_table_text(struct buffer *out, const struct plan_row *rows, size_t count, int columns, int ascii)
{
    static const struct table_column all[] = {
        { .title = "strategy", .cut = 14 },
        { .title = "workers", .right = 1 },
        { .title = "hosts", .right = 1, .leave_out = 1 },
        { .title = "servers", .right = 1, .leave_out = 3 },
        { .title = "ms", .right = 1 },
        { .title = "samples/s", .right = 1 },
        { .title = "eff.", .right = 1, .leave_out = 2 },
        { .title = "busiest", .right = 1, .leave_out = 4 },
        { .title = "limit" },
        { .title = "measured", .right = 1 },
        { .title = "error", .right = 1 },
    };
    const int measured = any_measured(rows, count);
    struct table t;

    table_init(&t, all, sizeof all / sizeof *all - (measured ? 0 : 2));
    for (size_t i = 0; i < count; i++)
        row_cells(&t, &rows[i], measured, !columns || columns >= ROOM_FOR_NAMES);
    table_print(&t, 0, columns, ascii, out);
    table_release(&t);
}

static void csv_number(struct buffer *out, double value, int there)
{
    char text[NUMBER_TEXT_MAX];

    buffer_append_byte(out, ',');
    if (!there)
        return;
    number_text(value, text);
    buffer_append_text(out, text);
}

void plan_table_csv(struct buffer *out, const struct plan_row *rows, size_t count)
{
    buffer_append_text(out,
                       "strategy,ranks,hosts,servers,seconds_per_step,steps_per_second,samples_per_second,efficiency,"
                       "busiest_link_bytes,limit,measured_steps_per_second,fitted,error\n");
    for (size_t i = 0; i < count; i++) {
        const struct plan_row *r = &rows[i];

        buffer_format(out, "%s,%d,%d,%d", r->strategy->name, r->shape.workers, hosts_of(r), servers_of(r));
        csv_number(out, r->cost.seconds, 1);
        csv_number(out, r->cost.steps, 1);
        csv_number(out, r->cost.samples, 1);
        csv_number(out, r->efficiency, 1);
        csv_number(out, r->cost.bytes, 1);
        buffer_format(out, ",%s", plan_limit_names[r->cost.limit]);
        csv_number(out, r->measured, r->measured > 0);
        buffer_format(out, ",%d", r->fitted);
        csv_number(out, r->measured > 0 ? plan_row_error(r) : 0, r->measured > 0);
        buffer_append_byte(out, '\n');
    }
}

static void json_number(struct buffer *out, const char *name, double value, int there)
{
    buffer_format(out, ", \"%s\": ", name);
    if (there)
        json_double(out, value);
    else
        buffer_append_text(out, "null");
}

void plan_table_json(struct buffer *out, const struct plan_row *rows, size_t count)
{
    buffer_append_text(out, "[");
    for (size_t i = 0; i < count; i++) {
        const struct plan_row *r = &rows[i];

        buffer_format(out, "%s\n{\"strategy\": \"%s\", \"ranks\": %d, \"hosts\": %d, \"servers\": %d", i ? "," : "",
                      r->strategy->name, r->shape.workers, hosts_of(r), servers_of(r));
        json_number(out, "seconds_per_step", r->cost.seconds, 1);
        json_number(out, "steps_per_second", r->cost.steps, 1);
        json_number(out, "samples_per_second", r->cost.samples, 1);
        json_number(out, "efficiency", r->efficiency, 1);
        json_number(out, "busiest_link_bytes", r->cost.bytes, 1);
        buffer_format(out, ", \"limit\": \"%s\"", plan_limit_names[r->cost.limit]);
        json_number(out, "measured_steps_per_second", r->measured, r->measured > 0);
        buffer_format(out, ", \"fitted\": %s", r->fitted ? "true" : "false");
        json_number(out, "error", r->measured > 0 ? plan_row_error(r) : 0, r->measured > 0);
        buffer_append_text(out, "}");
    }
    buffer_append_text(out, "]");
}
