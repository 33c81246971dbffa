#include "trainer/compare/published_pairs.h"

#include "base/number.h"
#include "trainer/compare/published_figures.h"

#include <stdio.h>
#include <string.h>

struct list {
    struct published_pair *pairs;
    size_t count;
};

/* The row of that strategy and number of workers. NULL: none went well. */
static const struct standing *row_with(const struct comparison *c, const char *strategy, int64_t workers)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].rounds && c->rows[i].workers == workers && !strcmp(c->rows[i].strategy, strategy))
            return &c->rows[i];
    return NULL;
}

/* The median; 0: not known. */
static double median_of(const struct standing *s, size_t place)
{
    const struct spread *x = s ? (const struct spread *)(const void *)((const char *)s + place) : NULL;

    return x && x->count ? x->median : 0;
}
#define MEDIAN(s, member) median_of(s, offsetof(struct standing, member))

static double quotient(double x, double y)
{
    return x > 0 && y > 0 ? x / y : 0;
}

static void add_pair(struct list *l, const char *figure, const char *system, const char *strategy, int64_t workers,
                     double published, double ours)
{
    struct published_pair *p = &l->pairs[l->count++];

    *p = (struct published_pair){
        .system = system, .strategy = strategy, .workers = workers, .published = published, .ours = ours
    };
    snprintf(p->figure, sizeof p->figure, "%s", figure);
}

static void ps_against_mpi(const struct comparison *c, struct list *l)
{
    const int64_t n = PARALLAX_WORKERS;
    const struct standing *mpi = row_with(c, "mpi", n), *ps = row_with(c, "ps", n);

    add_pair(l, "global_step/s against mpi", "Parallax", "ps", n, PARALLAX_PS_STEPS / PARALLAX_MPI_STEPS,
             quotient(MEDIAN(ps, steps_per_second), MEDIAN(mpi, steps_per_second)));
    add_pair(l, "precision at the end", "Parallax", "mpi", n, PARALLAX_MPI_PRECISION, MEDIAN(mpi, at_end));
    add_pair(l, "precision at the end", "Parallax", "ps", n, PARALLAX_PS_PRECISION, MEDIAN(ps, at_end));
}

static void steps_101_200(const struct comparison *c, struct list *l)
{
    const struct published_speed *first = &published_im2txt[0];

    for (size_t against = 0; against < 2; against++)
        for (size_t k = against; k < IM2TXT_COUNT; k++) {
            const struct published_speed *p = &published_im2txt[k];
            const double ours = MEDIAN(row_with(c, p->ours, IM2TXT_WORKERS), steady);
            const double one = MEDIAN(row_with(c, first->ours, IM2TXT_WORKERS), steady);

            add_pair(l, against ? "steps/s against ps" : "steps/s", p->name, p->ours, IM2TXT_WORKERS,
                     against ? p->steps_per_second / first->steps_per_second : p->steps_per_second,
                     against ? quotient(ours, one) : ours);
        }
}

static void per_worker(const struct comparison *c, struct list *l)
{
    const struct standing *mpi = row_with(c, "mpi", LSTM_WORKERS);

    for (size_t k = 0; k < LSTM_STEPS; k++) {
        char figure[48];

        snprintf(figure, sizeof figure, "test accuracy at step %lld", (long long)published_lstm[k].step);
        add_pair(l, figure, "homework", "mpi", LSTM_WORKERS, published_lstm[k].accuracy, MEDIAN(mpi, at_published[k]));
    }
}

static void ratios(const struct comparison *c, struct list *l)
{
    const double one = MEDIAN(row_with(c, "ring", 1), samples_per_second);

    for (int64_t k = 1; k < COLLECTIVE_MOST; k++)
        add_pair(l, "speed against one machine", "CollectiveAllReduce", "ring", k + 1,
                 published_collective[k] / published_collective[0],
                 quotient(MEDIAN(row_with(c, "ring", k + 1), samples_per_second), one));
    add_pair(l, "speed against ring", "Mirrored", "mirrored", 2, MIRRORED_ONE_MACHINE / published_collective[0],
             quotient(MEDIAN(row_with(c, "mirrored", 2), samples_per_second),
                      MEDIAN(row_with(c, "ring", 2), samples_per_second)));
}

static double epoch_of(const struct standing *s)
{
    return s ? quotient(s->epoch_samples, MEDIAN(s, samples_per_second)) : 0;
}

static void epoch_seconds(const struct comparison *c, struct list *l)
{
    for (int copied = 0; copied < 2; copied++)
        for (size_t k = 0; k < EPOCHS_COUNT; k++) {
            const struct published_epoch *p = &published_epochs[k], *one = &published_epochs[0];
            const char *system = copied ? "NCCL" : "naive", *how = copied ? "mirrored" : "mirrored:weights=shared";
            const double seconds = copied ? p->copied : p->shared, first = copied ? one->copied : one->shared;
            const double ours = epoch_of(row_with(c, how, p->workers)), our_first = epoch_of(row_with(c, how, 1));

            add_pair(l, "seconds an epoch", system, how, p->workers, seconds, ours);
            if (k > 0)
                add_pair(l, "speed-up", system, how, p->workers, first / seconds, quotient(our_first, ours));
        }
}

static const struct {
    const char *name;
    void (*make)(const struct comparison *c, struct list *l);
} tables[] = {
    { "ps-against-mpi", ps_against_mpi }, { "steps-101-200", steps_101_200 },
    { "per-worker", per_worker },         { "ratios", ratios },
    { "epoch-seconds", epoch_seconds },
};

size_t published_pairs(const struct comparison *c, const char *table, struct published_pair *pairs)
{
    struct list l = { pairs, 0 };

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!strcmp(tables[i].name, table))
            tables[i].make(c, &l);
    return l.count;
}

static void number_cell(struct buffer *out, double x)
{
    char text[NUMBER_TEXT_MAX];

    buffer_append_byte(out, ',');
    if (x > 0) {
        number_text(x, text);
        buffer_append_text(out, text);
    }
}

void published_pairs_csv(const struct comparison *c, const char *wanted, struct buffer *out)
{
    buffer_append_text(out, "table,figure,system,strategy,workers,published,ours,ours_against_published\n");
    for (const char *at = wanted; *at; at += strcspn(at, ","), at += *at == ',') {
        struct published_pair pairs[PUBLISHED_PAIRS_MOST];
        char name[40];
        size_t n;

        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        n = published_pairs(c, name, pairs);
        for (size_t i = 0; i < n; i++) {
            buffer_format(out, "%s,%s,%s,%s,%lld", name, pairs[i].figure, pairs[i].system, pairs[i].strategy,
                          (long long)pairs[i].workers);
            number_cell(out, pairs[i].published);
            number_cell(out, pairs[i].ours);
            number_cell(out, quotient(pairs[i].ours, pairs[i].published));
            buffer_append_byte(out, '\n');
        }
    }
}
