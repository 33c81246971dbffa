#include "eventlog/tool/watch/watch_model.h"

#include "base/program/time_text.h"
#include "base/text.h"
#include "eventlog/tool/picture/chart.h"
#include "eventlog/tool/picture/tag_better.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHART_COLUMNS = 60, CHART_ROWS = 13, LINES_BESIDE_LIST = 5 };

void watch_model_release(struct watch_model *m)
{
    for (size_t i = 0; i < m->run_count; i++)
        scalar_run_release(&m->runs[i].scalars);
    free(m->runs);
    free(m->order);
    free(m->shown_tags);
    tag_index_release(&m->tags);
}

/* ---- runs ------------------------------------------------------------------------------------------------------ */

int watch_model_add_run(struct watch_model *m, const char *name, struct error *e)
{
    struct watch_run *runs = realloc(m->runs, (m->run_count + 1) * sizeof *runs);
    size_t *order, at = m->run_count;

    if (runs)
        m->runs = runs;
    if (!runs || !(order = realloc(m->order, (m->run_count + 1) * sizeof *order)))
        return error_memory(e, name, "for it");
    m->order = order;
    runs[m->run_count] = (struct watch_run){ .name = name };
    scalar_run_init(&runs[m->run_count].scalars, EVENTLOG_VIEW_ALL, 0, 1);
    for (; at && text_natural_order(runs[order[at - 1]].name, name) > 0; at--)
        order[at] = order[at - 1];
    order[at] = m->run_count++;
    m->run = m->run_count == 1 ? 0 : m->run;
    m->version++;
    return OK;
}

void watch_model_forget(struct watch_model *m, size_t run)
{
    scalar_run_restart(&m->runs[run].scalars);
    m->runs[run].known = 0;
    m->version++;
}

/* How long the run may be silent: ten times the interval between the last points of its most recently written
 * series. */
static double limit_of(const struct scalar_series *s)
{
    enum { LAST = 20, TIMES = 10 };
    size_t n = s->count < LAST ? s->count : LAST;
    double span = n > 1 ? time_in_seconds(s->points[s->count - 1].wall_time) -
                              time_in_seconds(s->points[s->count - n].wall_time)
                        : 0;
    double limit = n > 1 ? (double)TIMES * span / (double)(n - 1) : 0;

    return fmin(fmax(limit, WATCH_STALLED_LEAST), WATCH_OLD_SECONDS);
}

struct watch_status watch_status_of(const struct watch_run *r, double now, double stalled_after)
{
    struct watch_status status = { .state = WATCH_EMPTY };
    const struct scalar_series *newest = NULL;

    for (size_t i = 0; i < r->scalars.count; i++) {
        const struct scalar_series *s = &r->scalars.series[i];
        const struct eventlog_point *p = s->count ? &s->points[s->count - 1] : NULL;

        if (!p)
            continue;
        if (!status.newest || p->wall_time >= status.newest->wall_time) {
            status.newest = p;
            newest = s;
        }
        if (!isfinite(p->value) && (!status.diverged || isnan(p->value)))
            status.diverged = s;
    }
    if (status.newest) {
        const double limit = stalled_after > 0 ? stalled_after : limit_of(newest);
        const double written = time_in_seconds(status.newest->wall_time);

        status.age = now > written ? now - written : 0;
        status.state = status.age <= limit                      ? WATCH_LIVE
                       : status.age < (double)WATCH_OLD_SECONDS ? WATCH_STALLED
                                                                : WATCH_OLD;
        if (status.state == WATCH_STALLED && r->ended)
            status.state = WATCH_ENDED;
    }
    if (r->gone)
        status.state = WATCH_GONE;
    return status;
}

/* ---- tags ------------------------------------------------------------------------------------------------------ */

const struct scalar_series *watch_model_series(const struct watch_model *m, const struct watch_run *r, size_t tag)
{
    const struct tag_index_entry *wanted = &m->tags.entries[tag];

    for (size_t i = 0; i < r->scalars.count; i++) {
        const struct scalar_series *s = &r->scalars.series[i];

        if (s->count && s->tag_length == wanted->length && !memcmp(s->tag, wanted->text, wanted->length))
            return s;
    }
    return NULL;
}

static size_t place_of(const size_t *numbers, size_t count, size_t number)
{
    size_t at = 0;

    while (at < count && numbers[at] != number)
        at++;
    return at;
}

/* Matches a part of the name, or a shell pattern, ignoring case. */
static int matches(const struct watch_model *m, const char *tag)
{
    char pattern[WATCH_FILTER_MAX + 2] = "*";

    strcat(strcat(pattern, m->filter), "*");
    return !*m->filter || !fnmatch(pattern, tag, FNM_CASEFOLD);
}

static void filter_tags(struct watch_model *m)
{
    m->shown_tag_count = 0;
    for (size_t i = 0; i < m->tags.count; i++) {
        const char *name = m->tags.entries[i].text;
        size_t at = m->shown_tag_count;

        if (!matches(m, name))
            continue;
        for (; at && text_natural_order(m->tags.entries[m->shown_tags[at - 1]].text, name) > 0; at--)
            m->shown_tags[at] = m->shown_tags[at - 1];
        m->shown_tags[at] = i;
        m->shown_tag_count++;
    }
    if (m->shown_tag_count && place_of(m->shown_tags, m->shown_tag_count, m->tag) == m->shown_tag_count)
        m->tag = m->shown_tags[0];
    m->version++;
}

/* Until the user chooses: the first tag for which it is known whether higher or lower is better, such as loss or
 * accuracy. */
static void choose_tag(struct watch_model *m)
{
    m->tag = m->shown_tag_count ? m->shown_tags[0] : m->tag;
    for (size_t i = 0; i < m->shown_tag_count; i++)
        if (tag_better(m->tags.entries[m->shown_tags[i]].text)) {
            m->tag = m->shown_tags[i];
            break;
        }
}

int watch_model_update(struct watch_model *m, struct error *e)
{
    size_t tags = m->tags.count, *shown;
    uint64_t version = m->version;

    for (size_t i = 0; i < m->run_count; i++) {
        struct watch_run *r = &m->runs[i];

        for (size_t k = 0; r->known != r->scalars.numbered && k < r->scalars.count; k++) {
            const struct scalar_series *s = &r->scalars.series[k];

            if (s->count && tag_index_add(&m->tags, s->tag, s->tag_length) == TAG_INDEX_NONE)
                return error_memory(e, r->name, "for its tags");
        }
        m->version += r->known != r->scalars.numbered;
        r->known = r->scalars.numbered;
    }
    if (m->tags.count == tags)
        return OK;
    if (!(shown = realloc(m->shown_tags, m->tags.count * sizeof *shown)))
        return error_memory(e, NULL, "for %zu tags", m->tags.count);
    m->shown_tags = shown;
    filter_tags(m);
    if (!m->tag_chosen)
        choose_tag(m);
    m->version = version + 1;
    return OK;
}

/* ---- layout ---------------------------------------------------------------------------------------------------- */

/* Lays out as many charts side by side and one below another as can be read well. */
static void lay_out_charts(struct watch_model *m, struct watch_layout *l)
{
    int across = l->area.columns / CHART_COLUMNS, down = l->area.rows / CHART_ROWS, most;

    across = across < 1 ? 1 : across;
    down = down < 1 ? 1 : down;
    if (m->single)
        across = down = 1;
    most = m->shown_tag_count < (size_t)(across * down) ? (int)m->shown_tag_count : across * down;
    if (!most || l->area.columns < CHART_COLUMNS_LEAST || l->area.rows < CHART_ROWS_LEAST + CHART_BARE_LINES)
        return;
    most = most < WATCH_CHARTS_MOST ? most : WATCH_CHARTS_MOST;
    across = across < most ? across : most;
    down = (most + across - 1) / across;
    across = (most + down - 1) / down; /* 2 x 2 rather than 3 and 1 */
    l->first_tag = place_of(m->shown_tags, m->shown_tag_count, m->tag) / (size_t)most * (size_t)most;
    for (int i = 0; i < most && l->first_tag + (size_t)i < m->shown_tag_count; i++) {
        int width = l->area.columns / across, height = l->area.rows / down;

        l->charts[l->chart_count++] = (struct watch_rectangle){ l->area.column + i % across * width,
                                                                l->area.row + i / across * height, width - (across > 1),
                                                                height };
    }
}

/* A line for the title, one above the list and two below it, the list, the charts, a line for keys. */
void watch_model_lay_out(struct watch_model *m)
{
    struct watch_layout l = { .chart_count = 0 };
    size_t at = place_of(m->order, m->run_count, m->run), runs = m->run_count;
    int room = m->rows - LINES_BESIDE_LIST > 1 ? m->rows - LINES_BESIDE_LIST : 1, most = room * 2 / 5;

    most = most > 3 ? most : room < 3 ? room : 3;
    l.list = (struct watch_rectangle){ 0, 2, m->columns, runs < (size_t)most ? (int)runs : most };
    l.area = (struct watch_rectangle){ 0, l.list.row + l.list.rows + 2, m->columns, 0 };
    l.area.rows = m->rows - 1 > l.area.row ? m->rows - 1 - l.area.row : 0;
    lay_out_charts(m, &l);
    m->layout = l;
    if (m->top + (size_t)l.list.rows > runs)
        m->top = runs - (size_t)l.list.rows;
    if (at < m->top)
        m->top = at;
    if (at >= m->top + (size_t)l.list.rows && l.list.rows)
        m->top = at + 1 - (size_t)l.list.rows;
}

/* ---- keys and mouse -------------------------------------------------------------------------------------------- */

void watch_model_resize(struct watch_model *m, int columns, int rows)
{
    if (m->columns == columns && m->rows == rows)
        return;
    m->columns = columns;
    m->rows = rows;
    m->version++;
}

static void move_run(struct watch_model *m, long by)
{
    long at = (long)place_of(m->order, m->run_count, m->run) + by, last = (long)m->run_count - 1;

    if (m->run_count)
        m->run = m->order[at < 0 ? 0 : at > last ? last : at];
}

/* Beyond the last comes the first. */
static void move_tag(struct watch_model *m, long by)
{
    long count = (long)m->shown_tag_count, at = (long)place_of(m->shown_tags, m->shown_tag_count, m->tag) + by;

    if (count)
        m->tag = m->shown_tags[((at % count) + count) % count];
    m->tag_chosen = 1;
    m->version++;
}

static void show_or_hide(struct watch_model *m)
{
    if (m->run_count)
        m->runs[m->run].hidden = !m->runs[m->run].hidden;
    m->version++;
}

static void next_axis(struct watch_model *m)
{
    static const enum picture_axis next[PICTURE_AXES] = {
        [PICTURE_STEP] = PICTURE_RELATIVE,
        [PICTURE_RELATIVE] = PICTURE_WALL,
    };

    m->axis = next[m->axis];
    m->version++;
}

static void next_smoothing(struct watch_model *m)
{
    static const double weights[] = { 0.6, 0.9, 0.97 };
    double next = 0;

    for (size_t i = sizeof weights / sizeof *weights; i-- > 0;)
        if (weights[i] > m->smoothing)
            next = weights[i];
    m->smoothing = next;
    m->version++;
}

static void toggle(struct watch_model *m, int *what)
{
    *what = !*what;
    m->version++;
}

/* The end of the filter's last character goes. */
static void erase(struct watch_model *m)
{
    size_t n = strlen(m->filter);

    while (n && ((unsigned char)m->filter[--n] & 0xc0) == 0x80)
        ;
    m->filter[n] = '\0';
}

static void type(struct watch_model *m, int key)
{
    size_t n = strlen(m->filter);

    if (key == WATCH_KEY_ENTER || key == '\r' || key == WATCH_KEY_ESCAPE)
        m->filtering = 0;
    if (key == WATCH_KEY_ESCAPE)
        m->filter[0] = '\0';
    else if (key == WATCH_KEY_BACKSPACE || key == 0x7f || key == '\b')
        erase(m);
    else if (key >= ' ' && key < 256 && n + 1 < sizeof m->filter) {
        m->filter[n] = (char)key;
        m->filter[n + 1] = '\0';
    }
    m->tag_chosen = 1;
    filter_tags(m);
}

static void move(struct watch_model *m, int key)
{
    int page = m->layout.list.rows > 1 ? m->layout.list.rows - 1 : 1;

    switch (key) {
    case WATCH_KEY_UP:
    case 'k': move_run(m, -1); break;
    case WATCH_KEY_DOWN:
    case 'j': move_run(m, 1); break;
    case WATCH_KEY_PAGE_UP: move_run(m, -page); break;
    case WATCH_KEY_PAGE_DOWN: move_run(m, page); break;
    case WATCH_KEY_HOME:
    case 'g': move_run(m, -(long)m->run_count); break;
    case WATCH_KEY_END:
    case 'G': move_run(m, (long)m->run_count); break;
    case WATCH_KEY_RIGHT:
    case WATCH_KEY_TAB: move_tag(m, 1); break;
    case WATCH_KEY_LEFT:
    case WATCH_KEY_BACK_TAB: move_tag(m, -1); break;
    default: break;
    }
}

int watch_model_key(struct watch_model *m, int key)
{
    m->message[0] = '\0';
    if (m->filtering) {
        type(m, key);
        return 1;
    }
    if (m->help) { /* any key leads back */
        m->help = 0;
        return key != 'q';
    }
    switch (key) {
    case 'q': return 0;
    case '?':
    case 'h': m->help = 1; break;
    case ' ': show_or_hide(m); break;
    case '/': m->filtering = 1; break;
    case 'x': next_axis(m); break;
    case 'l': toggle(m, &m->log_y); break;
    case 's': next_smoothing(m); break;
    case 'c': toggle(m, &m->single); break;
    default: move(m, key); break;
    }
    return 1;
}

static int inside(const struct watch_rectangle *r, int column, int row)
{
    return column >= r->column && column < r->column + r->columns && row >= r->row && row < r->row + r->rows;
}

void watch_model_click(struct watch_model *m, int column, int row)
{
    const struct watch_layout *l = &m->layout;

    if (m->help) {
        m->help = 0;
    } else if (inside(&l->list, column, row)) {
        m->run = m->order[m->top + (size_t)(row - l->list.row)];
        if (column < WATCH_SIGN_COLUMNS)
            show_or_hide(m);
    }
    for (size_t i = 0; i < l->chart_count; i++)
        if (inside(&l->charts[i], column, row)) {
            m->tag = m->shown_tags[l->first_tag + i];
            m->tag_chosen = 1;
            m->version++;
        }
}

void watch_model_wheel(struct watch_model *m, int column, int row, int direction)
{
    if (inside(&m->layout.area, column, row))
        move_tag(m, direction * (m->layout.chart_count ? (long)m->layout.chart_count : 1));
    else
        move_run(m, direction);
}
