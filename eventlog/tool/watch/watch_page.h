/*
 * watch_page.h - the live page of `eventlog watch`: a model (watch_model.h) as a grid of cells. Pure but for the time
 * zone (TZ).
 */
#ifndef EVENTLOG_TOOL_WATCH_WATCH_PAGE_H
#define EVENTLOG_TOOL_WATCH_WATCH_PAGE_H

#include "eventlog/tool/picture/cell_grid.h"
#include "eventlog/tool/watch/watch_model.h"

/* all zero at first except ascii and colour */
struct watch_page {
    int ascii, colour;       /* as in struct chart (chart.h) */
    struct cell_grid grid;   /* the page */
    struct cell_grid charts; /* of the model's version `drawn`: redrawn only when that changes */
    uint64_t drawn;
    size_t *styles; /* of the model's runs (picture.h) */
};

/* Lays the model out and draws it. now: seconds since 1970. OK or ERR_NOMEM. */
int watch_page_draw(struct watch_page *p, struct watch_model *m, double now, struct error *e);
void watch_page_release(struct watch_page *p);

#endif
