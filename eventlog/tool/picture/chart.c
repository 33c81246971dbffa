#include "eventlog/tool/picture/chart.h"

#include "base/bytes.h"
#include "base/program/table.h"
#include "base/text.h"
#include "eventlog/tool/picture/picture_range.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLOURS = 6, GUTTER_MOST = 8 };

static const char *const colours[COLOURS] = { "\033[34m", "\033[31m", "\033[32m", "\033[35m", "\033[33m", "\033[36m" };
static const char signs[] = "*+ox#@%&=$";
static const char plain[] = "\033[0m";

/* How marks look, and in ASCII. */
static const struct {
    const char *sign, *ascii, *meaning;
} marks[PICTURE_MARKS] = {
    [PICTURE_NAN] = { "▲", "!", "not a number" },     [PICTURE_PLUS] = { "△", "^", "+inf" },
    [PICTURE_MINUS] = { "▽", "v", "-inf" },           [PICTURE_ABOVE] = { "↑", "^", "above the axis" },
    [PICTURE_BELOW] = { "↓", "v", "below the axis" },
};

struct cell {
    uint8_t dots; /* of braille; or the sign */
    uint8_t mark; /* enum picture_mark; PICTURE_LINE: none */
    char letter;  /* of the curve that ends there, or 0 */
    size_t run;   /* 1 + the last run drawn there, 0: none */
};

struct canvas {
    const struct picture *p;
    const struct chart *chart;
    int label, wide, high, gutter; /* columns of the values beside the axis, of the plot, of letters beside it */
    int across, down;              /* dots */
    int lettered;
    struct cell *cells; /* high lines of wide + gutter */
    const struct picture_range *range;
};

static struct cell *cell_at(const struct canvas *c, int column, int row)
{
    return &c->cells[row * (c->wide + c->gutter) + column];
}

/* ---- dots ------------------------------------------------------------------------------------------------------ */

static char sign_of(size_t run, size_t run_count)
{
    return run_count < sizeof signs ? signs[run % (sizeof signs - 1)] : picture_letter(run);
}

static void dot(struct canvas *c, int x, int y, size_t run)
{
    static const uint8_t bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
    struct cell *cell;

    if (x < 0 || y < 0 || x >= c->across || y >= c->down)
        return;
    cell = c->chart->ascii ? cell_at(c, x, y) : cell_at(c, x / 2, y / 4);
    cell->dots = c->chart->ascii ? (uint8_t)sign_of(run, c->p->run_count) : cell->dots | bits[y % 4][x % 2];
    cell->run = 1 + run;
}

/* Bresenham's line. */
static void line(struct canvas *c, int x, int y, int to_x, int to_y, size_t run)
{
    int dx = abs(to_x - x), dy = -abs(to_y - y), sx = x < to_x ? 1 : -1, sy = y < to_y ? 1 : -1, off = dx + dy;

    for (;;) {
        int twice = 2 * off;

        dot(c, x, y, run);
        if (x == to_x && y == to_y)
            break;
        if (twice >= dy) {
            off += dy;
            x += sx;
        }
        if (twice <= dx) {
            off += dx;
            y += sy;
        }
    }
}

static int place(double v, double from, double to, int dots)
{
    double at = (v - from) / (to - from) * (dots - 1);

    return at < 0 ? 0 : at > dots - 1 ? dots - 1 : (int)(at + 0.5);
}

static int place_x(const struct canvas *c, double x)
{
    return place(x, c->range->x0, c->range->x1, c->across);
}

static int place_y(const struct canvas *c, double y)
{
    return c->down - 1 - place(y, c->range->y0, c->range->y1, c->down);
}

/* Draws one column of a band, in dots: braille is filled sparsely. */
static void shade_column(struct canvas *c, int x, double low, double high, size_t run)
{
    int from = place_y(c, high), to = place_y(c, low);

    if (low > c->range->y1 || high < c->range->y0)
        return;
    for (int y = from; y <= to; y++)
        if (c->chart->ascii) {
            cell_at(c, x, y)->dots = '.';
            cell_at(c, x, y)->run = 1 + run;
        } else if (x % 2 == 0 && y % 4 == x % 4) {
            dot(c, x, y, run);
        }
}

/* Draws the area between the edges of a band, with gaps where they are NaN. */
static void draw_band(struct canvas *c, const struct picture_curve *curve)
{
    struct picture_curve low = { .points = curve->low, .count = curve->count };
    struct picture_curve high = { .points = curve->high, .count = curve->count };
    struct picture_walk below = picture_walk_begin(c->p, &low, 0, c->range->y0, c->range->y1);
    struct picture_walk above = picture_walk_begin(c->p, &high, 0, c->range->y0, c->range->y1);
    struct picture_point l, h, last_l = { 0, 0 }, last_h = { 0, 0 };
    enum picture_mark l_mark, h_mark;
    int last = -1;

    while (picture_walk_next(&below, &l, &l_mark) && picture_walk_next(&above, &h, &h_mark)) {
        int x = place_x(c, h.x),
            drawn = picture_draws_line(h_mark) && (picture_draws_line(l_mark) || l_mark == PICTURE_GAP);

        l.y = l_mark == PICTURE_GAP ? c->range->y0 : l.y; /* below 0 on a logarithmic scale */
        for (int at = drawn && last >= 0 ? last : x; drawn && at <= x; at++) {
            double part = x > last && last >= 0 ? (double)(at - last) / (x - last) : 1;

            shade_column(c, at, last_l.y + (l.y - last_l.y) * part, last_h.y + (h.y - last_h.y) * part, curve->run);
        }
        last = drawn ? x : -1;
        last_l = l;
        last_h = h;
    }
}

static void draw_clipped(struct canvas *c, struct picture_point from, struct picture_point to, size_t run)
{
    if (picture_clip(c->range->y0, c->range->y1, &from, &to))
        line(c, place_x(c, from.x), place_y(c, from.y), place_x(c, to.x), place_y(c, to.y), run);
}

/* Returns 1 and where the curve ends, in characters; 0: nothing of it is drawn. */
static int draw_curve(struct canvas *c, const struct picture_curve *curve, int *column, int *row)
{
    struct picture_walk walk = picture_walk_begin(c->p, curve, picture_smoothing_of(c->p, curve), c->range->y0,
                                                  c->range->y1);
    struct picture_point q, last = { 0, 0 };
    enum picture_mark mark, last_mark = PICTURE_GAP;
    int x = 0, y = 0, any = 0, per_x = c->chart->ascii ? 1 : 2, per_y = c->chart->ascii ? 1 : 4;

    for (; picture_walk_next(&walk, &q, &mark); last = q, last_mark = mark) {
        int last_x = x, last_y = y, joined = picture_draws_line(last_mark);

        if (mark == PICTURE_GAP)
            continue;
        any = 1;
        x = place_x(c, q.x);
        y = place_y(c, q.y);
        if (mark == PICTURE_LINE && (!joined || last_mark == PICTURE_LINE))
            line(c, joined ? last_x : x, joined ? last_y : y, x, y, curve->run);
        else if (picture_draws_line(mark))
            draw_clipped(c, joined ? last : q, q, curve->run);
        if (mark != PICTURE_LINE) {
            cell_at(c, x / per_x, y / per_y)->mark = (uint8_t)mark;
            cell_at(c, x / per_x, y / per_y)->run = 1 + curve->run;
        }
    }
    *column = x / per_x;
    *row = y / per_y;
    return any;
}

/* ---- letters --------------------------------------------------------------------------------------------------- */

/* of a curve, in characters */
struct chart_line_end {
    size_t run;
    int column, row;
};

static int from_above(const void *a, const void *b)
{
    const struct chart_line_end *x = a, *y = b;

    return x->row != y->row ? x->row - y->row : (x->run > y->run) - (x->run < y->run);
}

static void put_letter(struct cell *cell, size_t run)
{
    cell->letter = picture_letter(run);
    cell->run = 1 + run;
}

/* Puts the letter of a curve that ends before the right edge after its last point: 1 if there is room. */
static int put_behind(struct canvas *c, const struct chart_line_end *end)
{
    for (int at = end->column + 1; end->column < c->wide - 2 && at < c->wide; at++)
        if (!cell_at(c, at, end->row)->letter) {
            put_letter(cell_at(c, at, end->row), end->run);
            return 1;
        }
    return 0;
}

/* Puts the other letters to the right of the plot, as near to the rows where the curves end as there is room. */
static void put_beside(struct canvas *c, struct chart_line_end *ends, size_t n, double *places)
{
    size_t most = (size_t)c->gutter * (size_t)c->high;

    n = n < most ? n : most;
    qsort(ends, n, sizeof *ends, from_above);
    for (size_t i = 0; i < n; i++)
        places[i] = ends[i].row * c->gutter;
    picture_spread(places, n, 1, 0, (double)most - 1);
    for (size_t i = 0; i < n; i++)
        put_letter(cell_at(c, c->wide + (int)places[i] % c->gutter, (int)places[i] / c->gutter), ends[i].run);
}

static void draw_curves(struct buffer *b, struct canvas *c, const struct picture_panel *panel)
{
    struct chart_line_end *ends = malloc((panel->count + 1) * sizeof *ends);
    double *places = malloc((panel->count + 1) * sizeof *places);
    size_t n = 0;

    if (!ends || !places)
        b->failed = 1;
    for (size_t i = 0; i < panel->count; i++)
        if (panel->curves[i].low)
            draw_band(c, &panel->curves[i]);
    for (size_t i = 0; buffer_ok(b) && i < panel->count; i++) {
        struct chart_line_end end = { panel->curves[i].run, 0, 0 };

        if (draw_curve(c, &panel->curves[i], &end.column, &end.row) && c->lettered && !put_behind(c, &end))
            ends[n++] = end;
    }
    if (buffer_ok(b) && c->lettered)
        put_beside(c, ends, n, places);
    free(ends);
    free(places);
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

static void paint(struct buffer *b, const struct chart *chart, const struct picture *p, size_t run)
{
    if (chart->colour)
        buffer_append_text(b, colours[picture_colour(p, run, COLOURS)]);
}

static void unpaint(struct buffer *b, const struct chart *chart)
{
    if (chart->colour)
        buffer_append_text(b, plain);
}

/* Appends blanks below the values beside the axis, then the text, cut at the right edge of the chart. */
static void print_text(struct buffer *b, const struct canvas *c, const char *text, size_t n)
{
    buffer_format(b, "%*s  ", c->label, "");
    text_append_cut(b, text, n, (size_t)(c->wide + c->gutter), c->chart->ascii);
    buffer_append_byte(b, '\n');
}

/* The same, on as many lines as needed. */
static void print_lines(struct buffer *b, const struct canvas *c, const char *text)
{
    for (size_t n; *text; text += n + (text[n] == ' ')) {
        n = picture_line_length(text, (size_t)(c->wide + c->gutter));
        print_text(b, c, text, n);
    }
}

static void braille(struct buffer *b, unsigned bits)
{
    char text[3] = { (char)0xe2, (char)(0xa0 | bits >> 6), (char)(0x80 | (bits & 63)) };

    buffer_append(b, text, sizeof text);
}

static void print_cell(struct buffer *b, const struct canvas *c, const struct cell *cell)
{
    if (cell->letter)
        buffer_append_byte(b, cell->letter);
    else if (cell->mark != PICTURE_LINE)
        buffer_append_text(b, c->chart->ascii ? marks[cell->mark].ascii : marks[cell->mark].sign);
    else if (cell->dots && c->chart->ascii)
        buffer_append_byte(b, cell->dots);
    else if (cell->dots)
        braille(b, cell->dots);
    else
        buffer_append_byte(b, ' ');
}

/* About how many ticks the axis of values has. */
static int value_ticks(const struct canvas *c)
{
    return c->high / 3 > 3 ? c->high / 3 : 3;
}

/* The rows of the plot, labels at those where a tick falls. */
static void print_rows(struct buffer *b, const struct canvas *c)
{
    struct picture_ticks ticks;

    picture_value_ticks(c->p, c->range->y0, c->range->y1, value_ticks(c), &ticks);
    for (int row = 0; row < c->high; row++) {
        const char *text = "";
        size_t run = 0;

        for (size_t i = 0; i < ticks.count; i++)
            if (c->high - 1 - place(ticks.at[i], c->range->y0, c->range->y1, c->high) == row)
                text = ticks.text[i];
        buffer_format(b, "%*s %s", c->label, text, c->chart->ascii ? *text ? "+" : "|" : *text ? "┤" : "│");
        for (int column = 0; column < c->wide + c->gutter; column++) {
            const struct cell *cell = cell_at(c, column, row);

            if (cell->run && cell->run != run) {
                unpaint(b, c->chart);
                paint(b, c->chart, c->p, cell->run - 1);
                run = cell->run;
            }
            print_cell(b, c, cell);
        }
        if (run)
            unpaint(b, c->chart);
        while (b->length && b->data[b->length - 1] == ' ')
            b->length--;
        buffer_append_byte(b, '\n');
    }
}

/* The axis below: a line with ticks, then their labels, then its name and what the plot does not show. */
static void print_axis(struct buffer *b, const struct canvas *c, const struct picture_panel *panel)
{
    const struct picture_range *r = c->range;
    struct picture_ticks ticks;
    struct buffer notes = BUFFER_EMPTY;
    char labels[CHART_COLUMNS_MOST], ruler[CHART_COLUMNS_MOST], name[120];
    int used = 0;

    memset(labels, ' ', sizeof labels);
    memset(ruler, '-', sizeof ruler);
    picture_axis_ticks(panel->axis, r->x0, r->x1, c->wide / 14 > 1 ? c->wide / 14 : 1, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        int column = place(ticks.at[i], r->x0, r->x1, c->wide), n = (int)strlen(ticks.text[i]);
        int at = column - n / 2 + n > c->wide + c->gutter ? c->wide + c->gutter - n : column - n / 2;

        at = at < 0 ? 0 : at;
        ruler[column] = '+';
        if (used && at <= used) /* a blank between two of them */
            continue;
        memcpy(labels + at, ticks.text[i], (size_t)n);
        used = at + n;
    }
    buffer_format(b, "%*s %s", c->label, "", c->chart->ascii ? "+" : "└");
    for (int column = 0; column < c->wide + c->gutter; column++)
        if (c->chart->ascii)
            buffer_append_byte(b, ruler[column]);
        else
            buffer_append_text(b, ruler[column] == '+' ? "┬" : "─");
    buffer_append_byte(b, '\n');
    print_text(b, c, labels, (size_t)used);
    if (c->chart->bare)
        return;
    picture_axis_name(panel->axis, r->x0, r->x1, name, sizeof name);
    if (c->p->log_y)
        strncat(name, ", logarithmic values", sizeof name - strlen(name) - 1);
    print_text(b, c, name, strlen(name));
    picture_range_notes(c->p, r, &notes);
    print_lines(b, c, buffer_text(&notes));
    b->failed |= notes.failed;
    buffer_release(&notes);
}

/* Explains the marks that are drawn, in as few lines as possible. */
static void print_meanings(struct buffer *b, const struct canvas *c)
{
    struct buffer items = BUFFER_EMPTY;

    for (int i = 0; i <= PICTURE_MARKS; i++) {
        size_t n = i < PICTURE_MARKS && marks[i].meaning ? strlen(marks[i].meaning) + 2 : 0;
        int there = i < PICTURE_MARKS && n && c->range->marks >> i & 1;

        if (items.length && (i == PICTURE_MARKS || (there && text_columns(buffer_text(&items), items.length) + 3 + n >
                                                                 (size_t)(c->wide + c->gutter)))) {
            print_text(b, c, buffer_text(&items), items.length);
            buffer_clear(&items);
        }
        if (there)
            buffer_format(&items, "%s%s %s", items.length ? "   " : "",
                          c->chart->ascii ? marks[i].ascii : marks[i].sign, marks[i].meaning);
    }
    b->failed |= items.failed;
    buffer_release(&items);
}

static int chart_lettered(const struct chart *chart, const struct picture *p)
{
    return !chart->ascii && picture_shares_colours(p, chart->colour ? COLOURS : 1);
}

void chart_sign(struct buffer *b, const struct chart *chart, const struct picture *p, size_t run)
{
    paint(b, chart, p, run);
    if (chart->ascii)
        buffer_append_byte(b, sign_of(run, p->run_count));
    else if (chart_lettered(chart, p))
        buffer_append_byte(b, picture_letter(run));
    else
        buffer_append_text(b, "━");
    unpaint(b, chart);
}

/* A table of the curves; the sign of each is put before its line. */
static void print_legend(struct buffer *b, const struct canvas *c, const struct picture_panel *panel)
{
    static const char *const at_names[PICTURE_AXES] = { "at step", "after steps", "at", "after" };
    const struct table_column columns[] = {
        { "run", 0, 1, 0 },
        { "final", 1, 0, 0 },
        { panel->better < 0 ? "best (min)" : "best (max)", 1, 0, 1 },
        { at_names[panel->axis], 1, 0, 2 },
    };
    int indent = c->label + 4;
    struct buffer lines = BUFFER_EMPTY;
    struct table t;
    size_t i = 0;

    table_init(&t, columns, panel->better ? 4 : 2);
    for (size_t k = 0; k < panel->count; k++) {
        const struct picture_curve *curve = &panel->curves[k];
        struct picture_summary s = picture_summary_of(curve, panel->better);
        const char *name = c->p->runs[curve->run];
        char at[64] = "-";

        table_text(&t, name, strlen(name));
        if (s.last)
            table_number(&t, s.last->y);
        else
            table_cell(&t, "-");
        if (!panel->better)
            continue;
        if (s.best) {
            picture_point_text(panel->axis, s.best->x, c->range->x0, c->range->x1, at, sizeof at);
            table_number(&t, s.best->y);
        } else {
            table_cell(&t, "-");
        }
        table_cell(&t, "%s", at);
    }
    table_print(&t, (size_t)indent, indent + c->wide + c->gutter - 2, c->chart->ascii, &lines);
    for (const char *at = buffer_text(&lines), *end; (end = strchr(at, '\n')); at = end + 1, i++) {
        buffer_append(b, at, (size_t)c->label + 2);
        if (i)
            chart_sign(b, c->chart, c->p, panel->curves[i - 1].run);
        else
            buffer_append_byte(b, ' ');
        buffer_append(b, at + indent - 1, (size_t)(end + 1 - (at + indent - 1)));
    }
    b->failed |= lines.failed;
    buffer_release(&lines);
    table_release(&t);
}

static void draw_panel(struct buffer *b, struct canvas *c, const struct picture_panel *panel)
{
    memset(c->cells, 0, (size_t)(c->wide + c->gutter) * (size_t)c->high * sizeof *c->cells);
    draw_curves(b, c, panel);
    print_text(b, c, panel->title, panel->title_length);
    print_rows(b, c);
    print_axis(b, c, panel);
    if (c->chart->bare)
        return;
    print_meanings(b, c);
    print_legend(b, c, panel);
}

static int within(int v, int least, int most)
{
    return v < least ? least : v > most ? most : v;
}

/* How wide the values beside the axes of all panels are. */
static int label_width(const struct canvas *c, const struct picture_range *ranges)
{
    struct picture_ticks ticks;
    int most = 1;

    for (size_t i = 0; i < c->p->panel_count; i++) {
        picture_value_ticks(c->p, ranges[i].y0, ranges[i].y1, value_ticks(c), &ticks);
        for (size_t k = 0; k < ticks.count; k++)
            most = (int)strlen(ticks.text[k]) > most ? (int)strlen(ticks.text[k]) : most;
    }
    return most;
}

void chart_draw(struct buffer *b, const struct picture *p, const struct chart *chart)
{
    struct canvas c = { .p = p, .chart = chart };
    struct picture_range *ranges = calloc(p->panel_count + 1, sizeof *ranges);
    int columns = within(chart->columns, CHART_COLUMNS_LEAST, CHART_COLUMNS_MOST);

    for (size_t i = 0; ranges && i < p->panel_count; i++)
        b->failed |= (ranges[i] = picture_range_of(p, &p->panels[i], 0, 0)).failed;
    c.high = within(chart->rows, CHART_ROWS_LEAST, CHART_ROWS_MOST);
    c.lettered = chart_lettered(chart, p);
    c.gutter = c.lettered ? within(1 + (int)(p->run_count / (size_t)c.high), 2, GUTTER_MOST) : 0;
    c.label = ranges ? label_width(&c, ranges) : 0;
    c.wide = columns - c.label - 2 - c.gutter;
    c.across = c.wide * (chart->ascii ? 1 : 2);
    c.down = c.high * (chart->ascii ? 1 : 4);
    c.cells = malloc((size_t)(c.wide + c.gutter) * (size_t)c.high * sizeof *c.cells);
    if (!c.cells || !ranges)
        b->failed = 1;
    if (p->title)
        print_text(b, &c, p->title, strlen(p->title));
    if (p->settings)
        print_lines(b, &c, p->settings);
    if (p->title || p->settings)
        buffer_append_byte(b, '\n');
    for (size_t i = 0; i < p->panel_count && buffer_ok(b); i++) {
        if (i)
            buffer_append_byte(b, '\n');
        c.range = &ranges[i];
        draw_panel(b, &c, &p->panels[i]);
    }
    free(c.cells);
    free(ranges);
}
