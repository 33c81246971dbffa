/*
 * picture.h - what is drawn: panels of curves over an axis, and how their values are scaled, smoothed, marked and
 * written. Pure. picture_range.h chooses the range of the axes; picture_svg.h makes an SVG document, chart.h lines of
 * text.
 */
#ifndef EVENTLOG_TOOL_PICTURE_PICTURE_H
#define EVENTLOG_TOOL_PICTURE_PICTURE_H

#include <stddef.h>

/* ---- run style --------------------------------------------------------------------------------------------------- */

/*
 * Which style, a colour and a dash, each run of a picture has. Runs of a strategy of the trainer have
 * that one's colour in every picture, whatever else is drawn: mpi/eval, round-1/ps-async-4/train. All others take the
 * colours that are left, in turn. Pure.
 *
 * A style is a number: its colour is that number modulo RUN_COLOURS; styles of one colour have different dashes.
 */

enum { RUN_COLOURS = 8 };

/* The colour of the strategy that a directory in the run's name is named after: just that, or with its options and a
 * number of workers behind it, as `trainer compare` names them. -1: none is. */
int run_strategy_colour(const char *name);

/* Sets styles[0] to styles[count - 1]. name: that of a run, by its number. */
void run_styles(const char *(*name)(const void *context, size_t run), const void *context, size_t count,
                size_t *styles);

/* ---- picture ----------------------------------------------------------------------------------------------------- */

enum picture_axis { PICTURE_STEP, PICTURE_RELATIVE_STEP, PICTURE_WALL, PICTURE_RELATIVE, PICTURE_AXES };

struct picture_point {
    double x, y; /* x: step, or seconds; y may be NaN or infinite: a gap with a mark */
};

struct picture_curve {
    size_t run;                         /* index into the runs, and of its letter */
    const struct picture_point *points; /* in drawing order */
    size_t count;
    /* The edges of a band around the curve, which is then not smoothed: as many points, at the same x; NULL: no
     * band. */
    const struct picture_point *low, *high;
};

struct picture_panel {
    const char *title; /* title_length bytes */
    size_t title_length;
    const struct picture_curve *curves;
    size_t count;
    enum picture_axis axis; /* what the curves run over */
    int better;             /* -1: lower is better, 1: higher is, 0: neither, so there is no best value */
};

enum picture_clip { PICTURE_CLIP_AUTO, PICTURE_CLIP_ON, PICTURE_CLIP_OFF }; /* picture_range.h says what they mean */

struct picture {
    const char *title;       /* of the whole picture; NULL: none */
    const char *settings;    /* the options chosen below and for the points, in words; NULL: none */
    const char *const *runs; /* their names, by number */
    const size_t *styles;    /* by number; NULL: the numbers themselves */
    size_t run_count;
    const struct picture_panel *panels;
    size_t panel_count;
    size_t columns;   /* how many panels in a row; 0: as many as look good */
    double smoothing; /* weight of the past in the moving average, from 0 (none) to below 1; the raw curve is still
                       * drawn, faintly */
    int log_y;        /* 1: logarithmic values; values that are not above 0 are gaps */
    double low, high; /* ends of the axis of values; NaN: chosen to suit the curves */
    enum picture_clip clip;
};

/* ---- axes ------------------------------------------------------------------------------------------------------ */

/* The words of --x, as choices, and the word for an axis. */
#define PICTURE_AXIS_WORDS "step|relative-step|wall|relative"
const char *picture_axis_word(enum picture_axis axis);
/* Takes the first word off *words, a list separated by commas: 1 and its axis, or 0 at the end. */
int picture_axis_next(const char **words, enum picture_axis *axis);
int picture_axis_counts(enum picture_axis axis); /* 1 for steps, 0 for time */

/* A point on an axis from x0 to x1, as text: a step with all its digits, a time with its date if the axis spans several
 * days. */
void picture_point_text(enum picture_axis axis, double v, double x0, double x1, char *out, size_t size);
/* The title of the axis: "step", "time (UTC), 1 Feb 2026", "time since the run's first point". */
void picture_axis_name(enum picture_axis axis, double x0, double x1, char *out, size_t size);

/* The ticks of an axis and their labels, from its low to its high end: 1, 2 or 5 times a power of ten; whole minutes,
 * hours and days for time; powers of ten on a logarithmic scale that spans two or more. `most`: about how many. */
enum { PICTURE_TICKS_MOST = 40, PICTURE_TICK_TEXT = 24 };
struct picture_ticks {
    size_t count;
    double at[PICTURE_TICKS_MOST];
    char text[PICTURE_TICKS_MOST][PICTURE_TICK_TEXT];
};
void picture_axis_ticks(enum picture_axis axis, double x0, double x1, int most, struct picture_ticks *out);
void picture_value_ticks(const struct picture *p, double y0, double y1, int most, struct picture_ticks *out);

/* ---- curves ---------------------------------------------------------------------------------------------------- */

/* The run's style. */
static inline size_t picture_style(const struct picture *p, size_t run)
{
    return p->styles ? p->styles[run] : run;
}

/* Its colour where there are so many, at most RUN_COLOURS. */
static inline size_t picture_colour(const struct picture *p, size_t run, size_t colours)
{
    return picture_style(p, run) % RUN_COLOURS % colours;
}

/* 1: two runs have the same of so many colours. */
int picture_shares_colours(const struct picture *p, size_t colours);

/* A letter or digit for each run: A to Z, a to z, 0 to 9, and from the start again. */
char picture_letter(size_t run);

/* How many bytes of the text fit on a line of this many columns, breaking at a blank if it is too long; not 0 unless
 * the text is empty. The text is ASCII. */
size_t picture_line_length(const char *text, size_t columns);

/* Moves ascending places apart so that each is at least `least` from the one before and all are from low to high, each
 * as near to its old place as the ones before it allow. (count - 1) * least must be at most high - low. */
void picture_spread(double *places, size_t count, double least, double low, double high);

/* A moving average as TensorBoard's page draws it: exponential, corrected for its start; values that are not finite
 * pass through. */
struct picture_average {
    double smoothing, sum, weight; /* smoothing as in struct picture; the others start as 0 */
};
double picture_smooth(struct picture_average *a, double y);

/* What to draw at a point. */
enum picture_mark {
    PICTURE_LINE, /* a point of the line */
    PICTURE_NAN,  /* NaN: a mark at the height of the finite value before it, or else of the first finite value */
    PICTURE_PLUS, /* infinite: a mark at the upper edge (PLUS) or the lower one (MINUS) */
    PICTURE_MINUS,
    PICTURE_ABOVE, /* points of the line too, but outside the range of values: a mark at that edge */
    PICTURE_BELOW,
    PICTURE_GAP, /* cannot be placed: not above 0 on a logarithmic scale, or without a time */
    PICTURE_MARKS
};
static inline int picture_draws_line(enum picture_mark mark)
{
    return mark == PICTURE_LINE || mark == PICTURE_ABOVE || mark == PICTURE_BELOW;
}

/* The weight of the past with which the curve is drawn. */
double picture_smoothing_of(const struct picture *p, const struct picture_curve *c);

/* Beyond this even differences overflow: values are limited to it, and no range is wider. */
#define PICTURE_FAR 1e300

/* A walk over the points of a curve as drawn, smoothed and scaled, in a range of values y0 to y1. */
struct picture_walk {
    const struct picture *picture;
    const struct picture_curve *curve;
    double y0, y1, height; /* height: of the last finite value */
    struct picture_average average;
    size_t next;
    int plain; /* neither smoothed nor on another scale */
};
struct picture_walk picture_walk_begin(const struct picture *p, const struct picture_curve *c, double smoothing,
                                       double y0, double y1);
/* 1 and the next point: where its line goes, or where its mark is; 0 at the end. The usual point, drawn unchanged, is
 * handled inline: pictures of 10^6 points are walked several times. */
int picture_walk_on(struct picture_walk *w, struct picture_point *point, enum picture_mark *mark); /* any other */
static inline int picture_walk_next(struct picture_walk *w, struct picture_point *point, enum picture_mark *mark)
{
    if (w->next == w->curve->count)
        return 0;
    *point = w->curve->points[w->next];
    if (!w->plain || !(point->y >= w->y0 && point->y <= w->y1 && point->x < PICTURE_FAR && point->x > -PICTURE_FAR))
        return picture_walk_on(w, point, mark);
    w->next++;
    w->height = point->y;
    *mark = PICTURE_LINE;
    return 1;
}

/* Clips the line from a to b to y0..y1: 1, with a and b moved onto the edges if they were outside; 0: no part is
 * inside. */
int picture_clip(double y0, double y1, struct picture_point *a, struct picture_point *b);

/* Last point, whatever its value, and the best of the finite ones; NULL: none. */
struct picture_summary {
    const struct picture_point *last, *best;
};
struct picture_summary picture_summary_of(const struct picture_curve *c, int better);

#endif
