/* eventlog compare: runs beside each other, as a table, for programs, or as a picture. */
#include "base/buffer.h"
#include "base/text.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/picture/curves_picture.h"
#include "eventlog/tool/report/report.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static const struct report_column columns[] = {
    { .key = "run" },
    { .key = "tag" },
    { .key = "points", .kind = REPORT_NUMBER, .leave_out = 5 },
    { .key = "first_step", .title = "first step", .kind = REPORT_NUMBER },
    { .key = "last_step", .title = "last step", .kind = REPORT_NUMBER, .leave_out = 2 },
    { .key = "first", .kind = REPORT_NUMBER, .leave_out = 7, .value = 1 },
    { .key = "last", .kind = REPORT_NUMBER, .value = 1 },
    { .key = "better" },
    { .key = "best", .kind = REPORT_NUMBER, .if_any = 1, .value = 1 },
    { .key = "best_step", .title = "at step", .kind = REPORT_NUMBER, .leave_out = 1, .if_any = 1 },
    { .key = "reached_step", .title = "reached at", .kind = REPORT_NUMBER },
    { .key = "reached_seconds", .title = "after", .kind = REPORT_SECONDS },
    { .key = "wall_seconds", .title = "wall span", .kind = REPORT_SECONDS, .leave_out = 3 },
    { .key = "steps_per_second", .title = "steps/s", .kind = REPORT_NUMBER, .leave_out = 4 },
    { .key = "nan", .kind = REPORT_NUMBER, .leave_out = 1, .if_any = 1 },
    { .key = "inf", .kind = REPORT_NUMBER, .leave_out = 6, .if_any = 1 },
    { .key = "label", .title = "run", .cut = 12 },
};

static const struct report_layout layout = {
    .type = "compare",
    .rows = "series",
    .columns = columns,
    .count = sizeof columns / sizeof *columns,
    .people = "label points nan inf first last_step last best best_step wall_seconds steps_per_second",
};
static const char csv[] =
    "run tag points first_step last_step first last better best best_step wall_seconds steps_per_second nan inf label";
static const char people_reach[] = "label reached_step reached_seconds points nan inf first last_step last best "
                                   "best_step wall_seconds steps_per_second";

struct comparison {
    struct curves curves;
    struct report_options options;
    double reach; /* NaN: not asked for */
};

struct compare_figures {
    const struct eventlog_point *first, *last;
    const struct eventlog_point *best, *reached; /* of the finite values; the first that is at least as good; NULL:
                                                * none */
    double span, speed;                          /* seconds; steps a second, NaN if unknown */
    size_t nan, infinite;
};

/* A value stored as a float32 is compared as one: 0.97 is reached by the float32 nearest to it. */
static int is_as_good(double value, double wanted, int better)
{
    if (value == (double)(float)value && fabs(wanted) <= (double)FLT_MAX)
        wanted = (double)(float)wanted;
    return isfinite(value) && (better < 0 ? value <= wanted : better > 0 && value >= wanted);
}

static struct compare_figures figures_of(const struct scalar_series *s, int better, double reach)
{
    struct compare_figures f = { &s->points[0], &s->points[s->count - 1], NULL, NULL, 0, NAN, 0, 0 };
    double from = NAN, to = NAN;

    for (size_t i = 0; i < s->count; i++) {
        const struct eventlog_point *p = &s->points[i];

        f.nan += isnan(p->value) != 0;
        f.infinite += isinf(p->value) != 0;
        if (better && isfinite(p->value) &&
            (!f.best || (better < 0 ? p->value < f.best->value : p->value > f.best->value)))
            f.best = p;
        if (!f.reached && is_as_good(p->value, reach, better))
            f.reached = p;
        if (isfinite(p->wall_time)) { /* fmin and fmax ignore the NaN that from and to may begin as */
            from = fmin(from, p->wall_time);
            to = fmax(to, p->wall_time);
        }
    }
    f.span = isnan(from) ? 0 : to - from;
    if (f.span > 0)
        f.speed = ((double)f.last->step - (double)f.first->step) / f.span;
    return f;
}

/* 1 if the series reached the value of --reach. */
static int add_row(const struct comparison *c, size_t run, const struct curves_tag *tag, const struct scalar_series *s,
                   struct report *r)
{
    const struct curves *w = &c->curves;
    struct compare_figures f = figures_of(s, tag->better, c->reach);

    report_word(r, w->names[run]);
    report_text(r, tag->text, tag->length);
    report_count(r, s->count);
    report_integer(r, f.first->step);
    report_integer(r, f.last->step);
    report_number(r, f.first->value);
    report_number(r, f.last->value);
    report_word(r, !tag->better ? NULL : tag->better < 0 ? "min" : "max");
    report_number_if(r, f.best != NULL, f.best ? f.best->value : 0);
    report_step(r, f.best);
    report_step(r, f.reached);
    report_number_if(r, f.reached != NULL, f.reached ? f.reached->wall_time - w->starts[run].wall_time : 0);
    report_number(r, f.span);
    report_number_if(r, !isnan(f.speed), f.speed);
    report_count(r, f.nan);
    report_count(r, f.infinite);
    report_word(r, w->labels[run]);
    return f.reached != NULL;
}

/* People see which runs lack the tag. */
static void add_missing(const struct curves *w, size_t run, const struct curves_tag *tag, struct report *r)
{
    report_word(r, w->names[run]);
    report_text(r, tag->text, tag->length);
    report_count(r, 0);
    for (size_t i = 3; i + 1 < layout.count; i++)
        report_none(r);
    report_word(r, w->labels[run]);
}

/* --reach makes sense only if one direction is better. */
static int check_directions(const struct comparison *c, struct error *e)
{
    for (size_t i = 0; !isnan(c->reach) && i < c->curves.tag_count; i++)
        if (!c->curves.tags[i].better)
            return error_set(e, ERR_ARG,
                             "--reach: the name of %s does not tell whether higher or lower is better; add --higher "
                             "'%s' or --lower '%s', or choose others with --tag",
                             c->curves.tags[i].text, c->curves.tags[i].text, c->curves.tags[i].text);
    return OK;
}

static int print_tables(const struct comparison *c, struct error *e)
{
    const struct curves *w = &c->curves;
    struct report_layout shown = layout;
    struct report *r;
    uint64_t series = 0, reached = 0;
    int asked = !isnan(c->reach), rc = check_directions(c, e);

    shown.people = asked ? people_reach : layout.people;
    shown.csv = asked ? NULL : csv;
    if (rc == OK)
        rc = report_open(&r, &shown, &c->options, e);
    if (rc != OK)
        return scan_fail(w->scan, e);
    for (size_t i = 0; i < w->tag_count; i++) {
        const struct curves_tag *tag = &w->tags[i];
        struct buffer heading = BUFFER_EMPTY;

        text_append_safe(&heading, tag->text, tag->length);
        buffer_append_text(&heading, tag->better < 0 ? ", best (min)" : tag->better ? ", best (max)" : "");
        report_section(r, buffer_text(&heading), NULL, tag->better);
        buffer_release(&heading);
        for (size_t k = 0; k < w->count; k++) {
            const struct scalar_series *s = curves_series(w, k, tag);

            if (s)
                reached += add_row(c, k, tag, s, r);
            else if (report_for_people(r))
                add_missing(w, k, tag, r);
            series += s != NULL;
        }
    }
    report_total(r, "series", series);
    report_total(r, "damage", w->scan->damaged);
    if (asked && series && !reached) {
        log_line(&w->scan->log, "no run reached %.6g", c->reach);
        w->scan->unmatched++;
    }
    return report_finish(r, w->scan, OK, series > 0, e);
}

/* ---- pictures -------------------------------------------------------------------------------------------------- */

static int draw(struct curves *w, const struct output_options *to, struct error *e)
{
    struct output *out;
    int rc;

    if (!w->tag_count)
        return scan_status(w->scan, 0); /* nothing to draw */
    if ((rc = output_open(&out, to->path, to->force, e)) != OK)
        return scan_fail(w->scan, e);
    rc = curves_picture_print(w, to->format, out, e);
    return gather_finish(w->scan, out, rc, 1, e);
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static int compare(struct comparison *c, struct error *e)
{
    struct curves *w = &c->curves;
    int picture = curves_picture_is(c->options.to.format), rc = curves_read(w, e);

    if (rc == OK && !picture)
        rc = curves_sort_by_step(w, e);
    if (rc == OK)
        rc = curves_choose_tags(w, e);
    if (rc != OK)
        return scan_fail(w->scan, e);
    return picture ? draw(w, &c->options.to, e) : print_tables(c, e);
}

static int compare_check(const struct comparison *c, struct error *e)
{
    const struct report_options *o = &c->options;
    const struct curves *w = &c->curves;

    if (curves_picture_is(o->to.format) && !isnan(c->reach))
        return error_set(e, ERR_ARG, "--reach is not for pictures; leave it out");
    if (curves_picture_is(o->to.format))
        return o->sort || o->top
                   ? error_set(e, ERR_ARG, "--%s does not apply to pictures; leave it out", o->sort ? "sort" : "top")
                   : OK;
    if (w->groups.count || w->band)
        return error_set(e, ERR_ARG, "--group and --band apply only to pictures; add -o FILE.svg or -o FILE.png");
    return OK;
}

int command_compare(int argc, char **argv)
{
    static const struct output_format formats[] = { REPORT_FORMATS, { "svg", "svg", 0 }, { "png", "png", 1 } };
    struct scan s = { .failed = 0 };
    struct comparison c = { .curves = { .scan = &s, CURVES_DEFAULTS }, .reach = NAN };
    struct option table[] = {
        { OPTION_LIST, 0, "tag", &s.tags.patterns, .argument = "GLOB",
          .help = "Compare these tags; may be repeated (default: those that all runs have)" },
        SCAN_RUN_OPTION(s),
        { OPTION_DOUBLE, 0, "reach", &c.reach, .argument = "VALUE",
          .help = "Show at which step, and how long after its first point, each run first reached VALUE or better",
          .minimum = -DBL_MAX, .maximum = DBL_MAX },
        CURVES_OPTIONS(c.curves),
        REPORT_OPTIONS(c.options),
        OUTPUT_OPTIONS(c.options.to, REPORT_WORDS "|svg|png", "text",
                       "Print a table for each tag, rows or objects for programs, or a picture of the curves"),
    };
    const struct options options = {
        .program = "eventlog compare",
        .usage = "[OPTION...] RUN...",
        .summary = "Compare runs: for each tag the first, last and best value, when they occurred, and the speed. RUN "
                   "is the directory of a run, or a log directory with several. --sort and --top apply within a tag; "
                   "values are sorted best first. Exit status: 0 done; 1 nothing to compare, no run with the value of "
                   "--reach, or damage; 2 usage or I/O.",
        .examples = "  eventlog compare mpi/eval ps/eval\n"
                    "  eventlog compare logs --tag accuracy --sort last --top 5\n"
                    "  eventlog compare logs --tag accuracy --reach 0.97 --sort reached_seconds\n"
                    "  eventlog compare logs -o curves.svg --tag precision --x step,relative --smoothing 0.6\n"
                    "  eventlog compare logs -o seeds.png --tag loss --group 'seed-*' --band min-max\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no RUN given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&s, &options, argc, argv, &count, &e);

    if (rc == OK)
        rc = report_settle(&c.options, formats, sizeof formats / sizeof *formats, "text", &e);
    if (rc == OK)
        rc = curves_settle(&c.curves, &e);
    if (rc == OK)
        rc = compare_check(&c, &e);
    if (rc != OK)
        return scan_leave(&s, rc, &e);
    if ((status = scan_open(&s, argv + 1, (size_t)count)) == EXIT_DONE)
        status = compare(&c, &e);
    curves_release(&c.curves);
    scan_close(&s);
    return status;
}
