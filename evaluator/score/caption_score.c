#include "evaluator/score/caption_score.h"

#include <math.h>
#include <string.h>

static int same(const int32_t *a, const int32_t *b, size_t n)
{
    return !memcmp(a, b, n * sizeof *a);
}

/* How often the n words at `gram` occur in a sentence. */
static int64_t occurrences(struct caption_words s, const int32_t *gram, size_t n)
{
    int64_t count = 0;

    for (size_t i = 0; i + n <= s.count; i++)
        count += same(s.words + i, gram, n);
    return count;
}

/* 1: the n words at i came before. Sentences are short, so nothing is hashed. */
static int seen(struct caption_words s, size_t i, size_t n)
{
    for (size_t k = 0; k < i; k++)
        if (same(s.words + k, s.words + i, n))
            return 1;
    return 0;
}

static size_t nearest_length(size_t told, const struct caption_words *references, size_t count)
{
    size_t best = references[0].count;

    for (size_t i = 1; i < count; i++) {
        const size_t n = references[i].count;
        const size_t off = n > told ? n - told : told - n, least = best > told ? best - told : told - best;

        if (off < least || (off == least && n < best))
            best = n;
    }
    return best;
}

void caption_score_add(struct caption_score *s, struct caption_words told, const struct caption_words *references,
                       size_t reference_count)
{
    int exact = 0;

    for (size_t n = 1; n <= CAPTION_SCORE_GRAMS; n++)
        for (size_t i = 0; i + n <= told.count; i++) {
            int64_t own, most = 0;

            s->told[n - 1]++;
            if (seen(told, i, n))
                continue;
            own = occurrences(told, told.words + i, n);
            for (size_t k = 0; k < reference_count; k++) {
                const int64_t there = occurrences(references[k], told.words + i, n);

                most = there > most ? there : most;
            }
            s->found[n - 1] += own < most ? own : most;
        }
    for (size_t k = 0; k < reference_count; k++)
        exact |= references[k].count == told.count &&
                 (!told.count || same(references[k].words, told.words, told.count));
    s->exact += exact;
    s->sentences++;
    s->told_words += (int64_t)told.count;
    s->reference_words += (int64_t)nearest_length(told.count, references, reference_count);
}

double caption_score_bleu(const struct caption_score *s, int n)
{
    double sum = 0, shorter;

    if (!s->sentences)
        return NAN;
    for (int k = 0; k < n; k++) {
        if (!s->found[k])
            return 0;
        sum += log((double)s->found[k] / (double)s->told[k]);
    }
    shorter = 1 - (double)s->reference_words / (double)s->told_words;
    return exp(sum / n + (shorter < 0 ? shorter : 0));
}

double caption_score_exact(const struct caption_score *s)
{
    return s->sentences ? (double)s->exact / (double)s->sentences : NAN;
}
