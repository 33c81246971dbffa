#include "eventlog/server/store/series_sample.h"

#include "base/array.h"
#include "base/bytes.h"
#include "eventlog/server/store/snapshot.h"

#include <math.h>
#include <stdlib.h>

/* What is collected of a series: rows with their place in the order. */
struct ranked_row {
    uint64_t order;
    uint32_t row;
};

struct ranking {
    struct ranked_row *rows;
    size_t count, capacity;
};

static int add_row(struct ranking *r, uint64_t order, size_t row)
{
    if (!ARRAY_ROOM(r->rows, r->capacity, r->count + 1))
        return 0;
    r->rows[r->count++] = (struct ranked_row){ order, (uint32_t)row };
    return 1;
}

static int by_order(const void *a, const void *b)
{
    uint64_t x = ((const struct ranked_row *)a)->order, y = ((const struct ranked_row *)b)->order;

    return x < y ? -1 : x > y;
}

static int by_row(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static float value_at(const struct series_view *v, size_t row)
{
    return bits_float((uint32_t)series_view_at(v, row, COLUMN_VALUE));
}

/* The rows before the last on both sides of where a curve begins or ceases to be finite: at most `most`, the first by
 * order. 0: no memory. */
static int rank_turns(const struct series_view *v, size_t most, struct ranking *turns)
{
    uint64_t values[COLUMN_BLOCK_ROWS];
    int before = 1;

    if (v->info->class != SERIES_SCALARS)
        return 1;
    for (size_t b = 0; b < v->block_count; b++) {
        size_t n = column_block_rows(v->blocks[b]);

        column_block_read(v->blocks[b], COLUMN_VALUE, 0, n, values);
        for (size_t i = 0; i < n; i++) {
            size_t row = b * COLUMN_BLOCK_ROWS + i;
            int finite = isfinite(bits_float((uint32_t)values[i])) != 0;

            for (size_t side = row - (row > 0); row && finite != before && side <= row; side++)
                if (side + 1 < v->count && !(turns->count && turns->rows[turns->count - 1].row == side) &&
                    !add_row(turns, series_sample_order((int64_t)series_view_at(v, side, COLUMN_STEP)), side))
                    return 0;
            before = finite;
        }
    }
    if (turns->count > most) {
        qsort(turns->rows, turns->count, sizeof *turns->rows, by_order);
        turns->count = most;
    }
    return 1;
}

/* All rows but the last whose place in the order is below the limit. */
static int rank_below(const struct series_view *v, uint64_t limit, struct ranking *out)
{
    uint64_t steps[COLUMN_BLOCK_ROWS];

    out->count = 0;
    for (size_t b = 0; b < v->block_count; b++) {
        size_t n = column_block_rows(v->blocks[b]);

        column_block_read(v->blocks[b], COLUMN_STEP, 0, n, steps);
        for (size_t i = 0; i < n; i++) {
            uint64_t order = series_sample_order((int64_t)steps[i]);

            if (order <= limit && b * COLUMN_BLOCK_ROWS + i + 1 < v->count &&
                !add_row(out, order, b * COLUMN_BLOCK_ROWS + i))
                return 0;
        }
    }
    return 1;
}

/* At least `wanted` rows, the first of them by order; the limit is such that there are hardly more. */
static int rank_first(const struct series_view *v, size_t wanted, struct ranking *out)
{
    double share = ((double)wanted * 1.1 + 64) / (double)v->count;

    for (;; share *= 2) {
        if (!rank_below(v, share < 1 ? (uint64_t)(share * 0x1p64) : UINT64_MAX, out))
            return 0;
        if (out->count >= wanted || share >= 1)
            break;
    }
    qsort(out->rows, out->count, sizeof *out->rows, by_order);
    return 1;
}

static struct series_sample *by_chance(const struct series_view *v, size_t wanted)
{
    struct series_sample *s = malloc(sizeof *s + wanted * sizeof *s->rows);
    struct ranking turns = { 0 }, first = { 0 };
    int good = s != NULL;

    if (good)
        s->count = 0;
    good = good && rank_turns(v, (wanted - 1) / 4, &turns) && (wanted == 1 || rank_first(v, wanted - 1, &first));
    for (size_t i = 0; good && i < turns.count; i++)
        s->rows[s->count++] = turns.rows[i].row;
    if (good)
        qsort(s->rows, s->count, sizeof *s->rows, by_row);
    for (size_t i = 0; good && i < first.count && s->count + 1 < wanted; i++)
        if (!bsearch(&first.rows[i].row, s->rows, turns.count, sizeof *s->rows, by_row))
            s->rows[s->count++] = first.rows[i].row;
    free(turns.rows);
    free(first.rows);
    if (!good) {
        free(s);
        return NULL;
    }
    s->rows[s->count++] = (uint32_t)(v->count - 1);
    qsort(s->rows, s->count, sizeof *s->rows, by_row);
    return s;
}

/* The rows in [from, to) with the least and the greatest value; a value that is not finite counts as the greatest. */
static void extremes_of(const struct series_view *v, size_t from, size_t to, size_t *least, size_t *most)
{
    double low = INFINITY, high = -INFINITY;

    *least = from;
    *most = to - 1;
    for (size_t i = from; i < to; i++) {
        double value = (double)value_at(v, i);

        if (value < low && isfinite(value)) {
            low = value;
            *least = i;
        }
        if ((isfinite(value) && value > high) || (!isfinite(value) && high < INFINITY)) {
            high = isfinite(value) ? value : INFINITY;
            *most = i;
        }
    }
    if (*least == *most)
        *least = *most == from ? from + 1 : from;
}

/* wanted at least 3 */
static struct series_sample *by_extremes(const struct series_view *v, size_t wanted)
{
    struct series_sample *s = malloc(sizeof *s + wanted * sizeof *s->rows);
    size_t stretches = (wanted - 1) / 2, all = v->count - 1, next = 0;

    if (!s)
        return NULL;
    s->count = 0;
    for (size_t i = 0; i < stretches; i++) {
        size_t least, most;

        extremes_of(v, all * i / stretches, all * (i + 1) / stretches, &least, &most);
        s->rows[s->count++] = (uint32_t)(least < most ? least : most);
        s->rows[s->count++] = (uint32_t)(least < most ? most : least);
    }
    for (; s->count + 1 < wanted; next++) /* one more if their number is odd: the first row that is not among them */
        if (next == s->count || s->rows[next] != next)
            s->rows[s->count++] = (uint32_t)next;
    s->rows[s->count++] = (uint32_t)(v->count - 1);
    qsort(s->rows, s->count, sizeof *s->rows, by_row);
    return s;
}

const struct series_sample *series_sample_take(struct series_view *v, size_t wanted, int extremes)
{
    struct series_sample *kept = __atomic_load_n((struct series_sample **)&v->sample, __ATOMIC_ACQUIRE), *s;
    void *none = NULL;

    if (kept && kept->wanted == wanted && kept->extremes == extremes)
        return kept;
    if (v->count > UINT32_MAX)
        return NULL;
    s = extremes && v->info->class == SERIES_SCALARS && wanted >= 3 ? by_extremes(v, wanted) : by_chance(v, wanted);
    if (!s)
        return NULL;
    s->wanted = wanted;
    s->extremes = extremes;
    if (!kept && wanted > 1)
        __atomic_compare_exchange_n(&v->sample, &none, (void *)s, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return s;
}

void series_sample_drop(struct series_view *v, const struct series_sample *s)
{
    if (s != __atomic_load_n((struct series_sample **)&v->sample, __ATOMIC_ACQUIRE))
        free((struct series_sample *)(uintptr_t)s);
}
