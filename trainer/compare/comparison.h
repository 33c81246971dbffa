/*
 * comparison.h - all rounds of all cells, brought together: for each cell the median of each figure over its rounds,
 * and how far the rounds lie apart. Pure.
 *
 * Equal steps are the last step that every run has had evaluated. Equal time is, in each round, the time that the
 * fastest cell took to its last checkpoint: what the others had learned by then is their precision at equal time.
 */
#ifndef TRAINER_COMPARE_COMPARISON_H
#define TRAINER_COMPARE_COMPARISON_H

#include "base/buffer.h"
#include "trainer/compare/outcome.h"

#define COMPARISON_DIFFER "differ" /* instead of one hash */

/* Of the rounds in which the figure is known; count 0: of none. */
struct spread {
    double median, least, most;
    size_t count;
};

struct standing {
    char cell[CELL_TEXT + 16], strategy[CELL_TEXT], busiest[40];
    int64_t workers, ranks, cores;
    size_t rounds, failed; /* how many ended well, and not */
    char reason[400];      /* of the last one that failed */
    struct spread steps_per_second, samples_per_second, steady, waiting, sent, busiest_bytes, staleness_mean,
        staleness_max, dropped, at_equal_steps, at_equal_time, at_end, seconds;
    struct spread phases[PHASE_COUNT]; /* seconds a step, mean over workers */
    struct spread serving;             /* share of their time in which servers worked */
    struct spread others;              /* share of the processors that other programs used */
    double samples_per_step;
    double speed_up, efficiency; /* samples a second against one worker; 0: there is none to compare with */
    char weights[20];            /* "": not known; COMPARISON_DIFFER: not the same in all rounds */
};

struct comparison {
    struct standing *rows; /* strategies in the order in which they first came, each with rising workers */
    size_t count;
    size_t rounds;        /* the most that a cell has */
    int64_t equal_step;   /* 0: nothing is evaluated */
    double equal_seconds; /* median over the rounds */
};

/* Of a run twice in the same round the later counts. On OK comparison_release() it. ERR_NOMEM. */
int comparison_make(struct comparison *out, const struct outcome *outcomes, size_t count, struct error *e);
void comparison_release(struct comparison *c);

/* Half the distance from the least to the most, as a part of the median; 0: of a single round. */
double spread_width(const struct spread *s);

/* ---- comparison text --------------------------------------------------------------------------------------------- */

/*
 * A comparison as tables for people, and as CSV and JSON for programs. Pure.
 */

/* how wide lines may be (0: no limit), and whether only ASCII can be shown */
struct text_style {
    int columns, ascii;
};

/* Speed; what was sent, if anything was; precision, if it was evaluated; then what failed. */
void comparison_text(const struct comparison *c, const struct text_style *style, struct buffer *out);

/* A line of names, and one for each cell. */
void comparison_csv(const struct comparison *c, struct buffer *out);

/* {"type":"trainer-compare","version":1,...,"cells":[...]} */
void comparison_json(const struct comparison *c, const char *training, struct buffer *out);

/* A sentence or more, wrapped. */
void comparison_text_note(struct buffer *out, const struct text_style *style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
