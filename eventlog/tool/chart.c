#include "eventlog/tool/chart.h"

#include "base/bytes.h"
#include "base/json.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 10, COLOURS = 6, TICKS_MOST = 20 };

static const char *const colours[COLOURS] = { "\033[34m", "\033[31m", "\033[32m", "\033[35m", "\033[33m", "\033[36m" };
static const char signs[] = "*+ox#@%&=$";
static const char plain[] = "\033[0m";

struct canvas {
    const struct picture *p;
    const struct chart *chart;
    int across, down;          /* dots */
    int wide, high;            /* characters */
    int lettered;
    uint8_t *dots;             /* of each character: bits of braille, or the sign */
    uint8_t *runs;             /* of each character: 1 + who drew there last */
    char *letters;             /* of each character: that of a curve which ends there, or 0 */
    double x0, x1, y0, y1;     /* y on its scale */
};

/* ---- dots ------------------------------------------------------------------------------------------------------ */

static void dot(struct canvas *c, int x, int y, size_t run)
{
    static const uint8_t bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
    int per_x = c->chart->ascii ? 1 : 2, per_y = c->chart->ascii ? 1 : 4, at;

    if (x < 0 || y < 0 || x >= c->across || y >= c->down)
        return;
    at = y / per_y * c->wide + x / per_x;
    if (c->chart->ascii)
        c->dots[at] = (uint8_t)signs[run % (sizeof signs - 1)];
    else
        c->dots[at] |= bits[y % 4][x % 2];
    c->runs[at] = (uint8_t)(1 + run % 255);
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

static char letter_of(size_t run)
{
    return (char)('A' + run % 26);
}

static void draw_curve(struct canvas *c, const struct picture_curve *curve)
{
    struct picture_average average = { c->p->smoothing, 0, 0 };
    int down = 0, last_x = 0, last_y = 0;

    for (size_t i = 0; i < curve->count; i++) {
        double y = picture_scale(c->p, picture_smooth(&average, curve->points[i].y));
        int px, py;

        if (!picture_placeable(curve->points[i].x, y)) {
            down = 0;
            continue;
        }
        px = place(curve->points[i].x, c->x0, c->x1, c->across);
        py = c->down - 1 - place(y, c->y0, c->y1, c->down);
        line(c, down ? last_x : px, down ? last_y : py, px, py, curve->run);
        down = 1;
        last_x = px;
        last_y = py;
    }
    /* Without colours braille curves look alike: a letter stands at the end of each. */
    if (down && c->lettered) {
        int at = last_y / 4 * c->wide + last_x / 2;

        while (at % c->wide && c->letters[at])
            at--;
        c->letters[at] = letter_of(curve->run);
        c->runs[at] = c->runs[at] ? c->runs[at] : (uint8_t)(1 + curve->run % 255);
    }
}

/* What the drawn points span. */
static void span(struct canvas *c, const struct picture_panel *panel)
{
    int any = 0;

    c->x0 = c->y0 = 0;
    c->x1 = c->y1 = 1;
    for (size_t i = 0; i < panel->count; i++) {
        struct picture_average average = { c->p->smoothing, 0, 0 };

        for (size_t k = 0; k < panel->curves[i].count; k++) {
            double x = panel->curves[i].points[k].x;
            double y = picture_scale(c->p, picture_smooth(&average, panel->curves[i].points[k].y));

            if (!picture_placeable(x, y))
                continue;
            if (!any++) {
                c->x0 = c->x1 = x;
                c->y0 = c->y1 = y;
            }
            c->x0 = fmin(c->x0, x);
            c->x1 = fmax(c->x1, x);
            c->y0 = fmin(c->y0, y);
            c->y1 = fmax(c->y1, y);
        }
    }
    if (!(c->x1 - c->x0 > fabs(c->x1) * 1e-12)) {
        c->x0 -= fmax(0.5, fabs(c->x1) * 1e-9);
        c->x1 += fmax(0.5, fabs(c->x1) * 1e-9);
    }
    if (!(c->y1 - c->y0 > fabs(c->y1) * 1e-9)) {
        double air = fabs(c->y1) * 0.1 + 1e-30;

        c->y0 -= air;
        c->y1 += air;
    }
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

static void paint(struct buffer *b, const struct chart *chart, size_t run)
{
    if (chart->colour)
        buffer_append_text(b, colours[run % COLOURS]);
}

static void unpaint(struct buffer *b, const struct chart *chart)
{
    if (chart->colour)
        buffer_append_text(b, plain);
}

/* A name in at most `most` characters, control characters escaped. */
static void name(struct buffer *b, const char *text, size_t n, int ascii, int most)
{
    struct buffer escaped = BUFFER_EMPTY;
    const char *p;

    json_escaped(&escaped, text, n, ascii);
    p = buffer_text(&escaped);
    for (const char *end = p + escaped.length; p < end && most; most--) {
        int length = utf8_character(p, (size_t)(end - p), NULL);

        buffer_append(b, p, (size_t)(length ? length : 1));
        p += length ? length : 1;
    }
    buffer_release(&escaped);
}

static void braille(struct buffer *b, unsigned bits)
{
    char text[3] = { (char)0xe2, (char)(0xa0 | bits >> 6), (char)(0x80 | (bits & 63)) };

    buffer_append(b, text, sizeof text);
}

static void value_text(const struct picture *p, double at, char *out, size_t size)
{
    snprintf(out, size, "%.5g", p->log_y ? pow(10, at) : at == 0 ? 0 : at);
}

/* The rows of the plot, labels at those where a tick falls. */
static void print_rows(struct buffer *b, const struct canvas *c)
{
    double step = picture_tick_step(c->y1 - c->y0, c->high / 3 > 2 ? c->high / 3 : 2, 0);
    double next = floor(c->y1 / step) * step;

    if (c->p->log_y && c->y1 - c->y0 > 2 && step < 1) {
        step = 1;
        next = floor(c->y1);
    }
    for (int row = 0; row < c->high; row++) {
        double from = c->y1 - (c->y1 - c->y0) * (row + 0.5) / c->high, half = (c->y1 - c->y0) / c->high / 2;
        char text[40] = "";
        size_t run = 0;

        if (next >= from - half) {
            value_text(c->p, next, text, sizeof text);
            while (next >= from - half) /* short rows may pass over several */
                next -= step;
        }
        buffer_format(b, "%*.*s %s", LABEL, LABEL, text, c->chart->ascii ? *text ? "+" : "|" : *text ? "┤" : "│");
        for (int column = 0; column < c->wide; column++) {
            int at = row * c->wide + column;

            if (c->runs[at] && c->runs[at] != run) {
                unpaint(b, c->chart);
                paint(b, c->chart, c->runs[at] - 1u);
            }
            run = c->runs[at] ? c->runs[at] : run;
            if (c->chart->ascii)
                buffer_append_byte(b, c->dots[at] ? c->dots[at] : ' ');
            else if (c->letters[at])
                buffer_append_byte(b, c->letters[at]);
            else if (c->dots[at])
                braille(b, c->dots[at]);
            else
                buffer_append_byte(b, ' ');
        }
        if (run)
            unpaint(b, c->chart);
        while (b->length && b->data[b->length - 1] == ' ')
            b->length--;
        buffer_append_byte(b, '\n');
    }
}

/* The axis below: a line with ticks, then their labels. */
static void print_axis(struct buffer *b, const struct canvas *c, const struct picture_panel *panel)
{
    static const char *const names[] = { "step", "time (UTC)", "time since the run's first point" };
    int ticks = c->wide / 14 > 1 ? c->wide / 14 : 1, used = 0, at;
    double step = picture_tick_step(c->x1 - c->x0, ticks, panel->axis != PICTURE_STEP), tick;
    char labels[CHART_COLUMNS_MOST + 80], text[64];

    if (panel->axis == PICTURE_STEP && step < 1)
        step = 1;
    memset(labels, ' ', sizeof labels);
    tick = ceil(c->x0 / step) * step;
    buffer_format(b, "%*s %s", LABEL, "", c->chart->ascii ? "+" : "└");
    for (int column = 0; column < c->wide; column++) {
        if (tick > c->x1 || place(tick, c->x0, c->x1, c->wide) != column) {
            buffer_append_text(b, c->chart->ascii ? "-" : "─");
            continue;
        }
        buffer_append_text(b, c->chart->ascii ? "+" : "┬");
        picture_axis_text(panel->axis, tick, c->x1 - c->x0, text, sizeof text);
        at = column - (int)strlen(text) / 2;
        at = at < 0 ? 0 : at;
        if (!used || at > used) { /* a blank between two of them */
            memcpy(labels + at, text, strlen(text));
            used = at + (int)strlen(text);
        }
        tick += step;
    }
    buffer_append_byte(b, '\n');
    buffer_format(b, "%*s  %.*s\n", LABEL, "", used, labels);
    buffer_format(b, "%*s  %s%s\n", LABEL, "", names[panel->axis], c->p->log_y ? ", logarithmic values" : "");
}

static void print_legend(struct buffer *b, const struct canvas *c, const struct picture_panel *panel)
{
    for (size_t i = 0; i < panel->count; i++) {
        const struct picture_curve *curve = &panel->curves[i];
        struct picture_summary s = picture_summary_of(curve, panel->lower_is_better);
        char at[64];

        buffer_format(b, "%*s  ", LABEL, "");
        paint(b, c->chart, curve->run);
        if (c->chart->ascii)
            buffer_append_byte(b, signs[curve->run % (sizeof signs - 1)]);
        else if (c->lettered)
            buffer_append_byte(b, letter_of(curve->run));
        else
            buffer_append_text(b, "━");
        unpaint(b, c->chart);
        buffer_append_byte(b, ' ');
        name(b, c->p->runs[curve->run], strlen(c->p->runs[curve->run]), c->chart->ascii, 60);
        if (s.last) {
            picture_axis_text(panel->axis, s.best->x, c->x1 - c->x0, at, sizeof at);
            buffer_format(b, "  final %.5g, best %.5g at %s\n", s.last->y, s.best->y, at);
        } else {
            buffer_append_text(b, "  no finite value\n");
        }
    }
}

static int draw_panel(struct buffer *b, struct canvas *c, const struct picture_panel *panel)
{
    size_t size = (size_t)c->wide * (size_t)c->high;

    memset(c->dots, 0, size);
    memset(c->runs, 0, size);
    memset(c->letters, 0, size);
    c->lettered = !c->chart->ascii && !c->chart->colour && panel->count > 1;
    span(c, panel);
    for (size_t i = 0; i < panel->count; i++)
        draw_curve(c, &panel->curves[i]);
    buffer_format(b, "%*s  ", LABEL, "");
    name(b, panel->title, panel->title_length, c->chart->ascii, c->wide);
    buffer_append_byte(b, '\n');
    print_rows(b, c);
    print_axis(b, c, panel);
    print_legend(b, c, panel);
    return buffer_ok(b);
}

static int within(int v, int least, int most)
{
    return v < least ? least : v > most ? most : v;
}

void chart_draw(struct buffer *b, const struct picture *p, const struct chart *chart)
{
    struct canvas c = { .p = p, .chart = chart };

    c.wide = within(chart->columns, CHART_COLUMNS_LEAST, CHART_COLUMNS_MOST) - LABEL - 2;
    c.high = within(chart->rows, CHART_ROWS_LEAST, CHART_ROWS_MOST);
    c.across = c.wide * (chart->ascii ? 1 : 2);
    c.down = c.high * (chart->ascii ? 1 : 4);
    c.dots = malloc((size_t)c.wide * (size_t)c.high);
    c.runs = malloc((size_t)c.wide * (size_t)c.high);
    c.letters = malloc((size_t)c.wide * (size_t)c.high);
    if (!c.dots || !c.runs || !c.letters)
        b->failed = 1;
    if (p->title) {
        buffer_format(b, "%*s  ", LABEL, "");
        name(b, p->title, strlen(p->title), chart->ascii, c.wide);
        buffer_append_text(b, "\n\n");
    }
    for (size_t i = 0; i < p->panel_count && buffer_ok(b); i++) {
        if (i)
            buffer_append_byte(b, '\n');
        draw_panel(b, &c, &p->panels[i]);
    }
    free(c.dots);
    free(c.runs);
    free(c.letters);
}
