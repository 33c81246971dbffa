#include "model/beam_search.h"

#include <math.h>
#include <string.h>

void beam_search_begin(struct beam_search *s, const struct beam_search_options *options)
{
    memset(s, 0, sizeof *s);
    s->options = *options;
    s->partial[0].words[0] = options->start;
    s->partial[0].count = 1;
    s->partial_count = 1;
}

int beam_search_rows(const struct beam_search *s)
{
    return s->steps + 1 < s->options.longest ? s->partial_count : 0;
}

/* Where a sentence of this score belongs among the best; `most`: nowhere. */
static int place_of(const struct beam_sentence *best, int count, int most, double score)
{
    int at = count;

    while (at > 0 && best[at - 1].score < score)
        at--;
    return at < most ? at : most;
}

/* Puts `from` and one more word among the best. */
static void keep(struct beam_sentence *best, int *count, int most, const struct beam_sentence *from, int row,
                 int32_t word, double log_probability, double score)
{
    const int at = place_of(best, *count, most, score);

    if (at == most)
        return;
    *count += *count < most;
    memmove(best + at + 1, best + at, (size_t)(*count - 1 - at) * sizeof *best);
    best[at] = *from;
    best[at].words[best[at].count++] = word;
    best[at].parent = row;
    best[at].log_probability = log_probability;
    best[at].score = score;
}

/* The most probable words, in order; of equally probable ones the lowest number first. */
static int most_probable(int classes, const real *logits, int most, int32_t *words)
{
    int count = 0;

    for (int c = 0; c < classes; c++) {
        int at = count;

        while (at > 0 && logits[c] > logits[words[at - 1]])
            at--;
        if (at == most || isnan((double)logits[c]))
            continue;
        count += count < most;
        memmove(words + at + 1, words + at, (size_t)(count - 1 - at) * sizeof *words);
        words[at] = c;
    }
    return count;
}

static double log_of_sum(int classes, const real *logits, double max)
{
    double sum = 0;

    for (int c = 0; c < classes; c++)
        sum += exp((double)logits[c] - max);
    return max + log(sum);
}

void beam_search_advance(struct beam_search *s, int classes, const real *logits)
{
    static const double least = -27.631021115928547; /* log 1e-12 */
    const struct beam_search_options *o = &s->options;
    struct beam_sentence before[BEAM_SEARCH_BEAMS_MAX];
    const int rows = s->partial_count;

    memcpy(before, s->partial, (size_t)rows * sizeof *before);
    s->partial_count = 0;
    for (int row = 0; row < rows; row++) {
        const real *own = logits + (size_t)row * (size_t)classes;
        int32_t words[BEAM_SEARCH_BEAMS_MAX];
        const int count = most_probable(classes, own, o->beams, words);
        const double all = count ? log_of_sum(classes, own, (double)own[words[0]]) : 0;

        for (int k = 0; k < count; k++) {
            const double next = (double)own[words[k]] - all, sum = before[row].log_probability + next;
            const int length = before[row].count + 1;

            if (!(next >= least))
                continue;
            if (words[k] == o->end)
                keep(s->complete, &s->complete_count, o->beams, &before[row], row, words[k], sum,
                     o->power > 0 ? sum / pow(length, o->power) : sum);
            else
                keep(s->partial, &s->partial_count, o->beams, &before[row], row, words[k], sum, sum);
        }
    }
    s->steps++;
}

const struct beam_sentence *beam_search_result(const struct beam_search *s, int *count)
{
    *count = s->complete_count ? s->complete_count : s->partial_count;
    return s->complete_count ? s->complete : s->partial;
}
