/*
 * watch_model.h - the state of the live page of `eventlog watch`: runs with their points, tags, what is selected,
 * hidden and filtered, and how curves are drawn; and how keys and the mouse change it. Pure. watch_page.h draws it.
 */
#ifndef EVENTLOG_TOOL_WATCH_WATCH_MODEL_H
#define EVENTLOG_TOOL_WATCH_WATCH_MODEL_H

#include "base/error.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/read/scalar_series.h"
#include "eventlog/tool/picture/picture.h"

#include <stddef.h>
#include <stdint.h>

enum { WATCH_FILTER_MAX = 128, WATCH_CHARTS_MOST = 36 };
enum { WATCH_SIGN_COLUMNS = 4 }; /* of the list, for the marks of the selected run and of each run's colour */

struct watch_run {
    const char *name;          /* borrowed */
    struct scalar_run scalars; /* points in reading order, never sorted */
    int gone;                  /* its files are gone */
    int ended;                 /* the processes that wrote them were on this host and are gone */
    int hidden;                /* from the charts */
    uint64_t known;            /* scalars.numbered when its tags were last examined */
};

enum watch_state {
    WATCH_EMPTY, /* no point yet */
    WATCH_LIVE,
    WATCH_STALLED, /* no point for longer than its limit */
    WATCH_ENDED,   /* the same, and nobody is left to write one */
    WATCH_OLD,     /* no point for WATCH_OLD_SECONDS */
    WATCH_GONE,
    WATCH_STATES
};
enum { WATCH_OLD_SECONDS = 86400, WATCH_STALLED_LEAST = 60 };

struct watch_status {
    enum watch_state state;
    const struct eventlog_point *newest;  /* by wall time; NULL: no point */
    double age;                           /* of that, in seconds, not below 0 */
    const struct scalar_series *diverged; /* a series whose last value is not finite, NaN before infinite; NULL: none */
};

struct watch_rectangle {
    int column, row, columns, rows;
};

/* where things are on a page; all 0: not shown */
struct watch_layout {
    struct watch_rectangle list; /* of runs, without its title */
    struct watch_rectangle area; /* of all charts */
    struct watch_rectangle charts[WATCH_CHARTS_MOST];
    size_t chart_count, first_tag; /* first_tag: its place in shown_tags */
};

/* all zero at first except what the caller chooses */
struct watch_model {
    const char *title;    /* what is watched */
    double stalled_after; /* seconds; 0: depends on the run's usual interval */
    enum picture_axis axis;
    int log_y;
    double smoothing;
    int single, help, filtering; /* one chart only; the page of keys; a filter is being typed */
    int columns, rows;           /* of the page */
    char filter[WATCH_FILTER_MAX];
    char message[256];      /* of an error, or "" */
    struct watch_run *runs; /* by number */
    size_t run_count;
    size_t *order;         /* numbers of runs in natural order of their names */
    size_t run, top;       /* the number of the selected run; the index in order of the first one listed */
    struct tag_index tags; /* those with points */
    size_t *shown_tags;    /* numbers, in natural order, that match the filter */
    size_t shown_tag_count;
    size_t tag;     /* the number of the selected tag */
    int tag_chosen; /* by the user */
    struct watch_layout layout;
    uint64_t version; /* grows whenever charts must be redrawn */
};

/* beside characters */
enum watch_key {
    WATCH_KEY_UP = 256,
    WATCH_KEY_DOWN,
    WATCH_KEY_LEFT,
    WATCH_KEY_RIGHT,
    WATCH_KEY_PAGE_UP,
    WATCH_KEY_PAGE_DOWN,
    WATCH_KEY_HOME,
    WATCH_KEY_END,
    WATCH_KEY_BACK_TAB,
    WATCH_KEY_BACKSPACE,
    WATCH_KEY_ENTER = '\n',
    WATCH_KEY_ESCAPE = 27,
    WATCH_KEY_TAB = '\t'
};

void watch_model_release(struct watch_model *m);

/* Adds a run with the next number and initialises its scalars. OK or ERR_NOMEM. */
int watch_model_add_run(struct watch_model *m, const char *name, struct error *e);

/* Forgets the points of the run. */
void watch_model_forget(struct watch_model *m, size_t run);

/* Takes account of new points: call it before drawing the page. OK or ERR_NOMEM. */
int watch_model_update(struct watch_model *m, struct error *e);

/* Lays out the page, with the selected run among those listed. Keys and the mouse refer to the last layout. */
void watch_model_lay_out(struct watch_model *m);

/* Sets the size of the page. */
void watch_model_resize(struct watch_model *m, int columns, int rows);

/* Handles a key: a character's byte or an enum watch_key. 0: the user quits, 1: go on. */
int watch_model_key(struct watch_model *m, int key);
/* Handles a click, or a turn of the wheel up (-1) or down (1), in a cell. */
void watch_model_click(struct watch_model *m, int column, int row);
void watch_model_wheel(struct watch_model *m, int column, int row, int direction);

/* now: seconds since 1970. */
struct watch_status watch_status_of(const struct watch_run *r, double now, double stalled_after);

/* The run's series of a tag, by number, or NULL. */
const struct scalar_series *watch_model_series(const struct watch_model *m, const struct watch_run *r, size_t tag);

#endif
