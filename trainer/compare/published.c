#include "trainer/compare/published.h"

#include "trainer/compare/published_figures.h"

#include <stdio.h>
#include <string.h>

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static const struct standing *row_of(const struct comparison *c, const char *strategy, int64_t workers)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].rounds && c->rows[i].workers == workers && !strcmp(c->rows[i].strategy, strategy))
            return &c->rows[i];
    return NULL;
}

/* The row of that strategy with the fewest workers. */
static const struct standing *smallest_of(const struct comparison *c, const char *strategy)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].rounds && c->rows[i].samples_per_second.count && !strcmp(c->rows[i].strategy, strategy))
            return &c->rows[i];
    return NULL;
}

/* x/y where both are known, else 0. */
static double ratio_of(double x, double y)
{
    return x > 0 && y > 0 ? x / y : 0;
}

static void ratio_cell(struct table *t, double x)
{
    if (x > 0)
        table_cell(t, "%.3f", x);
    else
        table_cell(t, "-");
}

static void figure_cell(struct table *t, double x)
{
    if (x > 0)
        table_cell(t, "%.*f", comparison_text_decimals(x), x);
    else
        table_cell(t, "-");
}

static void table_of(struct table *t, const struct table_column *columns, size_t count, const char *title,
                     struct buffer *out)
{
    buffer_format(out, "%s\n\n", title);
    table_init(t, columns, count);
}

/* ---- a parameter server against all-reduce ----------------------------------------------------------------------- */

void published_ps_against_mpi(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    static const struct table_column columns[] = {
        { .title = "strategy", .cut = 12 },       { .title = "workers", .right = 1 },
        { .title = "global_step/s", .right = 1 }, { .title = "against mpi", .right = 1 },
        { .title = "ours/theirs", .right = 1 },   { .title = "precision", .right = 1 },
    };
    const double published = PARALLAX_PS_STEPS / PARALLAX_MPI_STEPS;
    struct table t;

    table_of(&t, columns, sizeof columns / sizeof *columns, "A parameter server against all-reduce (mpi):", out);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i], *mpi = row_of(c, "mpi", s->workers);
        const double ratio = ratio_of(s->steps_per_second.median, mpi ? mpi->steps_per_second.median : 0);

        if (!s->rounds)
            continue;
        comparison_text_cell(&t, s);
        figure_cell(&t, s->steps_per_second.median);
        ratio_cell(&t, ratio);
        ratio_cell(&t, !strcmp(s->strategy, "ps") ? ratio_of(ratio, published) : 0);
        comparison_text_number(&t, &s->at_end, 3);
    }
    table_cell(&t, "published mpi");
    for (const char *const *cell = (const char *const[]){ "3", "-", "1.000", "-", "0.796", NULL }; *cell; cell++)
        table_cell(&t, "%s", *cell);
    table_cell(&t, "published ps");
    table_cell(&t, "3");
    table_cell(&t, "-");
    ratio_cell(&t, published);
    table_cell(&t, "-");
    table_cell(&t, "0.774");
    comparison_text_table(&t, style, out);
    buffer_append_byte(out, '\n');
    comparison_text_note(
        out, style,
        "Published: Parallax, most likely ResNet-32 on CIFAR-10, 3 workers: mpi at step 3500, ps at step 2600; the "
        "ratio "
        "of these steps supposes that both had the same time, which is not said. Not comparable: the speed itself (one "
        "line of its log has 0.912595 global_step/s, of which strategy is not said) and the precision after other "
        "steps. "
        "Asynchronous steps count each worker's update.");
}

/* ---- steps 101 to 200 -------------------------------------------------------------------------------------------- */

void published_steps_101_200(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    static const struct table_column columns[] = {
        { .title = "strategy", .cut = 12 },     { .title = "workers", .right = 1 },
        { .title = "steps/s", .right = 1 },     { .title = "+-%", .right = 1, .leave_out = 1 },
        { .title = "against ps", .right = 1 },  { .title = "published", .right = 1 },
        { .title = "ours/theirs", .right = 1 },
    };
    struct table t;
    size_t known = 0;

    table_of(&t, columns, sizeof columns / sizeof *columns, "Mean of steps 101 to 200:", out);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i], *ps = row_of(c, "ps", s->workers);
        const double ratio = ratio_of(s->steady.median, ps ? ps->steady.median : 0);
        double published = 0;

        if (!s->rounds)
            continue;
        known += s->steady.count;
        for (size_t k = 0; k < IM2TXT_COUNT; k++)
            if (s->workers == IM2TXT_WORKERS && !strcmp(s->strategy, published_im2txt[k].ours))
                published = published_im2txt[k].steps_per_second / published_im2txt[0].steps_per_second;
        comparison_text_cell(&t, s);
        figure_cell(&t, s->steady.median);
        if (s->steady.count > 1)
            table_cell(&t, "%.1f", 100 * spread_width(&s->steady));
        else
            table_cell(&t, "-");
        ratio_cell(&t, ratio);
        ratio_cell(&t, published);
        ratio_cell(&t, ratio_of(ratio, published));
    }
    for (size_t k = 0; k < IM2TXT_COUNT; k++) {
        char name[40];

        snprintf(name, sizeof name, "published %s", published_im2txt[k].name);
        table_cell(&t, "%s", name);
        table_cell(&t, "2");
        table_cell(&t, "%.6f", published_im2txt[k].steps_per_second);
        table_cell(&t, "-");
        ratio_cell(&t, published_im2txt[k].steps_per_second / published_im2txt[0].steps_per_second);
        table_cell(&t, "-");
        table_cell(&t, "-");
    }
    comparison_text_table(&t, style, out);
    buffer_append_byte(out, '\n');
    comparison_text_note(
        out, style,
        "%sPublished: im2txt on 2 workers, compared with ps, mpi and hybrid here. Not comparable: the speed itself; "
        "and "
        "the published ones saved checkpoints every 10 steps (TensorFlow) or every step, with different optimizers.",
        known ? "" : "No run has 200 steps, or it logs too seldom. ");
}

/* ---- a worker's accuracy and throughput -------------------------------------------------------------------------- */

/* The accuracy at each published step, beside the published one. */
static void add_lstm_curve(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    struct table_column columns[2 + LSTM_STEPS] = { { .title = "test accuracy", .cut = 12 },
                                                    { .title = "workers", .right = 1 } };
    char titles[LSTM_STEPS][24];
    struct table t;

    for (size_t k = 0; k < LSTM_STEPS; k++) {
        snprintf(titles[k], sizeof titles[k], "step %lld", (long long)published_lstm[k].step);
        columns[2 + k] = (struct table_column){ .title = titles[k], .right = 1 };
    }
    table_init(&t, columns, 2 + LSTM_STEPS);
    table_cell(&t, "published");
    table_cell(&t, "%d", LSTM_WORKERS);
    for (size_t k = 0; k < LSTM_STEPS; k++)
        table_cell(&t, "%.2f", published_lstm[k].accuracy);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];

        if (!s->rounds)
            continue;
        comparison_text_cell(&t, s);
        for (size_t k = 0; k < LSTM_STEPS; k++)
            comparison_text_number(&t, &s->at_published[k], 3);
        if (s->workers != LSTM_WORKERS)
            continue;
        table_cell(&t, "ours/theirs");
        table_cell(&t, "%d", LSTM_WORKERS);
        for (size_t k = 0; k < LSTM_STEPS; k++)
            ratio_cell(&t,
                       ratio_of(s->at_published[k].count ? s->at_published[k].median : 0, published_lstm[k].accuracy));
    }
    buffer_append_byte(out, '\n');
    comparison_text_table(&t, style, out);
}

void published_per_worker(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    static const struct table_column columns[] = {
        { .title = "strategy", .cut = 12 },
        { .title = "workers", .right = 1 },
        { .title = "test accuracy", .right = 1 },
        { .title = "throughput (steps/s)", .right = 1 },
        { .title = "samples/s a worker", .right = 1 },
    };
    struct table t;

    table_of(&t, columns, sizeof columns / sizeof *columns, "Accuracy, and throughput of one worker:", out);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i];
        const double steps = s->steps_per_second.median, samples = s->samples_per_second.median;
        /* an asynchronous step is one worker's, so each makes a part of them */
        const double own = s->staleness_mean.count ? steps / (double)s->workers : steps;

        if (!s->rounds)
            continue;
        comparison_text_cell(&t, s);
        comparison_text_number(&t, &s->at_end, 4);
        figure_cell(&t, own);
        figure_cell(&t, samples / (double)s->workers);
    }
    comparison_text_table(&t, style, out);
    add_lstm_curve(c, style, out);
    buffer_append_byte(out, '\n');
    comparison_text_note(
        out, style,
        "A step is the worker's own. Published: an LSTM on MNIST, batch 32, \"test accuracy\" and "
        "\"throughput\" every 50 "
        "steps of 3 workers. Not comparable: its throughputs of 102 to 377 steps/s are of the first interval, and "
        "Parallax's accuracy "
        "of 0.867 at the start is that of an older checkpoint from which it resumed.");
}

/* ---- ratios against one machine ---------------------------------------------------------------------------------- */

static void note_of_mirrored(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    const double published = MIRRORED_ONE_MACHINE / published_collective[0];

    for (size_t i = 0; i < c->count; i++) {
        const struct standing *mirrored = &c->rows[i], *ring = row_of(c, "ring", mirrored->workers);
        const double ratio = ratio_of(mirrored->samples_per_second.median, ring ? ring->samples_per_second.median : 0);

        if (ratio > 0 && !strcmp(mirrored->strategy, "mirrored"))
            comparison_text_note(out, style,
                                 "mirrored against ring with %lld workers: %.3f; published, 8 devices of one machine: "
                                 "%.3f; ours/theirs %.3f.",
                                 (long long)mirrored->workers, ratio, published, ratio / published);
    }
}

void published_ratios(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    static const struct table_column columns[] = {
        { .title = "strategy", .cut = 12 },   { .title = "workers", .right = 1 },
        { .title = "samples/s", .right = 1 }, { .title = "ratio", .right = 1 },
        { .title = "published", .right = 1 }, { .title = "ours/theirs", .right = 1 },
    };
    struct table t;

    table_of(&t, columns, sizeof columns / sizeof *columns, "Ratios against the fewest workers of each strategy:", out);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i], *one = smallest_of(c, s->strategy);
        const double ratio = ratio_of(s->samples_per_second.median, one ? one->samples_per_second.median : 0);
        const int64_t times = one && s->workers % one->workers == 0 ? s->workers / one->workers : 0;
        const double published = times >= 1 && times <= COLLECTIVE_MOST
                                     ? published_collective[times - 1] / published_collective[0]
                                     : 0;

        if (!s->rounds)
            continue;
        comparison_text_cell(&t, s);
        figure_cell(&t, s->samples_per_second.median);
        ratio_cell(&t, ratio);
        ratio_cell(&t, published);
        ratio_cell(&t, ratio_of(ratio, published));
    }
    comparison_text_table(&t, style, out);
    buffer_append_byte(out, '\n');
    comparison_text_note(
        out, style,
        "Published: CollectiveAllReduce, ResNet-50, 1.06, 1.98 and 2.925 global_step/s on 1, 2 and 3 machines with 8 "
        "GPUs each, beside 1, 2 and 3 times the fewest workers here. Not comparable: the speed itself; a worker here "
        "is "
        "one process, whose messages may stay on this host.");
    note_of_mirrored(c, style, out);
}

/* ---- seconds an epoch -------------------------------------------------------------------------------------------- */

static double published_epoch(const char *strategy, int64_t workers)
{
    for (size_t i = 0; i < EPOCHS_COUNT; i++)
        if (published_epochs[i].workers == workers)
            return strstr(strategy, "weights=shared") ? published_epochs[i].shared : published_epochs[i].copied;
    return 0;
}

void published_epoch_seconds(const struct comparison *c, const struct text_style *style, struct buffer *out)
{
    static const struct table_column columns[] = {
        { .title = "strategy", .cut = 12 },     { .title = "workers", .right = 1 },
        { .title = "s/epoch", .right = 1 },     { .title = "speed-up", .right = 1 },
        { .title = "published s", .right = 1 }, { .title = "speed-up", .right = 1 },
        { .title = "ours/theirs", .right = 1 },
    };
    struct table t;

    table_of(&t, columns, sizeof columns / sizeof *columns, "Seconds an epoch:", out);
    for (size_t i = 0; i < c->count; i++) {
        const struct standing *s = &c->rows[i], *one = row_of(c, s->strategy, 1);
        const double ours = ratio_of(s->epoch_samples, s->samples_per_second.median);
        const double published = published_epoch(s->strategy, s->workers);
        const double faster = one ? ratio_of(ratio_of(one->epoch_samples, one->samples_per_second.median), ours) : 0;
        const double faster_published = ratio_of(published_epoch(s->strategy, 1), published);

        if (!s->rounds)
            continue;
        comparison_text_cell(&t, s);
        figure_cell(&t, ours);
        ratio_cell(&t, faster);
        figure_cell(&t, published);
        ratio_cell(&t, faster_published);
        ratio_cell(&t, ratio_of(faster, faster_published));
    }
    comparison_text_table(&t, style, out);
    buffer_append_byte(out, '\n');
    comparison_text_note(out, style,
                         "Published: a CNN of 14 variables on MNIST, 54,272 images an epoch, batch 1024 of all GPUs "
                         "together, on 1, 2, 4 "
                         "and 8 GPUs: one set of weights beside mirrored:weights=shared, a copy each beside all "
                         "others. ours/theirs is "
                         "of the speed-ups. Not comparable: the seconds themselves.");
}
