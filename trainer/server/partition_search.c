#include "trainer/server/partition_search.h"

#include <math.h>

enum { TERMS = 3 }; /* of the model */

void partition_search_init(struct partition_search *s, int first, int most)
{
    *s = (struct partition_search){ .most = most, .partitions = first < most ? first : most };
    s->decided = most == 1;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static double term(int k, double p)
{
    return k == 0 ? 1 : k == 1 ? 1 / p : p - 1;
}

static double size_of(const double *column, size_t n)
{
    double squares = 0;

    for (size_t i = 0; i < n; i++)
        squares += column[i] * column[i];
    return sqrt(squares);
}

static double product(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/*
 * Least squares by orthogonal columns (Gram and Schmidt), since p is from 1 to thousands, which normal equations would
 * square. The columns q are of length 1, r what they are made of. 0: the points do not determine the factors.
 */
static int fit(const struct partition_search *s, double *factors)
{
    double q[TERMS][PARTITION_SEARCH_POINTS], times[PARTITION_SEARCH_POINTS], r[TERMS][TERMS] = { { 0 } }, longest = 0;

    for (size_t i = 0; i < s->count; i++)
        longest = s->points[i].seconds > longest ? s->points[i].seconds : longest;
    for (size_t i = 0; i < s->count; i++)
        times[i] = longest > 0 ? s->points[i].seconds / longest : 0;
    for (int k = 0; k < TERMS; k++) {
        double before;

        for (size_t i = 0; i < s->count; i++)
            q[k][i] = term(k, s->points[i].partitions);
        before = size_of(q[k], s->count);
        for (int j = 0; j < k; j++) {
            r[j][k] = product(q[j], q[k], s->count);
            for (size_t i = 0; i < s->count; i++)
                q[k][i] -= r[j][k] * q[j][i];
        }
        r[k][k] = size_of(q[k], s->count);
        if (!(r[k][k] > 1e-9 * before))
            return 0;
        for (size_t i = 0; i < s->count; i++)
            q[k][i] /= r[k][k];
    }
    for (int k = TERMS - 1; k >= 0; k--) {
        factors[k] = product(q[k], times, s->count);
        for (int j = k + 1; j < TERMS; j++)
            factors[k] -= r[k][j] * factors[j];
        factors[k] /= r[k][k];
    }
    return 1;
}

static double predicted(const double *factors, int p)
{
    double time = 0;

    for (int k = 0; k < TERMS; k++)
        time += factors[k] * term(k, p);
    return time;
}

static const struct partition_point *fastest(const struct partition_search *s)
{
    const struct partition_point *best = &s->points[0];

    for (size_t i = 1; i < s->count; i++)
        best = s->points[i].seconds < best->seconds ? &s->points[i] : best;
    return best;
}

static void decide(struct partition_search *s)
{
    int from = s->points[0].partitions, to = from;
    double factors[TERMS];

    s->decided = 1;
    s->partitions = fastest(s)->partitions;
    if (s->count < TERMS || !fit(s, factors))
        return;
    for (size_t i = 0; i < s->count; i++) {
        from = s->points[i].partitions < from ? s->points[i].partitions : from;
        to = s->points[i].partitions > to ? s->points[i].partitions : to;
    }
    s->partitions = from;
    for (int p = from + 1; p <= to; p++)
        if (predicted(factors, p) < predicted(factors, s->partitions))
            s->partitions = p;
}

/* ---- what to try ------------------------------------------------------------------------------------------------- */

/* Halving begins at half of the first number, the least of those tried until then. */
static int next_lower(const struct partition_search *s)
{
    return (s->halving ? s->partitions : s->points[0].partitions) / 2;
}

/* Compared with the number tried before, in this direction. */
static int was_faster(const struct partition_search *s)
{
    const struct partition_point *now = &s->points[s->count - 1];
    const struct partition_point *before = s->halving && s->points[s->count - 2].partitions > s->points[0].partitions
                                               ? &s->points[0]
                                               : &s->points[s->count - 2];

    return now->seconds < before->seconds;
}

void partition_search_next(struct partition_search *s, double seconds)
{
    int faster;

    s->points[s->count++] = (struct partition_point){ s->partitions, seconds };
    faster = s->count == 1 || was_faster(s);
    if (s->count == PARTITION_SEARCH_POINTS || (s->halving && !faster)) {
        decide(s);
    } else if (!s->halving && faster && s->partitions <= s->most / 2) {
        s->partitions *= 2;
    } else if (next_lower(s) >= 1) {
        s->partitions = next_lower(s);
        s->halving = 1;
    } else {
        decide(s);
    }
}
