#include "eventlog/server/store/column_block.h"

#include "base/bytes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* value of row i = base + slope * i + distance[i], all modulo 2^64 */
struct column_line {
    uint64_t base, slope;
    uint32_t start; /* of its distances in bytes[] */
    uint32_t width; /* bytes of a distance: 0, 1, 2, 4, 8 */
};

struct column_block {
    atomic_uint references;
    uint16_t rows, columns;
    struct column_line lines[COLUMNS_MOST]; /* only `columns` of them are allocated, and the distances behind them */
};

static const uint8_t *distances_of(const struct column_block *b, enum column column)
{
    return (const uint8_t *)(b->lines + b->columns) + b->lines[column].start;
}

static uint32_t width_of(uint64_t most)
{
    return !most ? 0 : most <= 0xff ? 1 : most <= 0xffff ? 2 : most <= 0xffffffff ? 4 : 8;
}

/* The line through the first and the last row, moved down to the lowest one, so that no distance is negative; or, with
 * slope 0, the lowest row. */
static struct column_line line_of(const struct column_row *rows, size_t n, enum column column, uint64_t slope)
{
    uint64_t first = rows[0].at[column];
    int64_t least = 0, most = 0;

    for (size_t i = 1; i < n; i++) {
        int64_t distance = (int64_t)(rows[i].at[column] - first - slope * i);

        least = distance < least ? distance : least;
        most = distance > most ? distance : most;
    }
    return (struct column_line){ .base = first + (uint64_t)least,
                                 .slope = slope,
                                 .width = width_of((uint64_t)most - (uint64_t)least) };
}

static struct column_line best_line(const struct column_row *rows, size_t n, enum column column)
{
    struct column_line flat = line_of(rows, n, column, 0), line;
    int64_t rise = (int64_t)(rows[n - 1].at[column] - rows[0].at[column]);

    if (n < 3 || !flat.width)
        return flat;
    line = line_of(rows, n, column, (uint64_t)(rise / (int64_t)(n - 1)));
    return line.width < flat.width ? line : flat;
}

static void write_column(uint8_t *out, const struct column_line *line, const struct column_row *rows, size_t n,
                         enum column column)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t distance = rows[i].at[column] - line->base - line->slope * i;

        switch (line->width) {
        case 1: out[i] = (uint8_t)distance; break;
        case 2: put_le16(out + 2 * i, (uint16_t)distance); break;
        case 4: put_le32(out + 4 * i, (uint32_t)distance); break;
        case 8: put_le64(out + 8 * i, distance); break;
        default: break;
        }
    }
}

struct column_block *column_block_new(const struct column_row *rows, size_t n, size_t columns)
{
    struct column_line lines[COLUMNS_MOST] = { { 0 } };
    struct column_block *b;
    size_t size = 0;

    for (size_t c = 0; c < columns; c++) {
        lines[c] = best_line(rows, n, (enum column)c);
        lines[c].start = (uint32_t)size;
        size += n * lines[c].width;
    }
    if (!(b = malloc(offsetof(struct column_block, lines) + columns * sizeof *lines + size)))
        return NULL;
    atomic_init(&b->references, 1);
    b->rows = (uint16_t)n;
    b->columns = (uint16_t)columns;
    memcpy(b->lines, lines, columns * sizeof *lines);
    for (size_t c = 0; c < columns; c++)
        write_column((uint8_t *)(b->lines + columns) + lines[c].start, &lines[c], rows, n, (enum column)c);
    return b;
}

struct column_block *column_block_keep(struct column_block *b)
{
    atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
    return b;
}

void column_block_drop(struct column_block *b)
{
    if (b && atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) == 1)
        free(b);
}

size_t column_block_rows(const struct column_block *b)
{
    return b->rows;
}

size_t column_block_columns(const struct column_block *b)
{
    return b->columns;
}

static inline uint64_t distance_at(const uint8_t *bytes, uint32_t width, size_t i)
{
    switch (width) {
    case 1: return bytes[i];
    case 2: return get_le16(bytes + 2 * i);
    case 4: return get_le32(bytes + 4 * i);
    case 8: return get_le64(bytes + 8 * i);
    default: return 0;
    }
}

uint64_t column_block_at(const struct column_block *b, size_t row, enum column column)
{
    const struct column_line *line = &b->lines[column];

    return line->base + line->slope * row + distance_at(distances_of(b, column), line->width, row);
}

void column_block_read(const struct column_block *b, enum column column, size_t from, size_t n, uint64_t *out)
{
    const struct column_line *line = &b->lines[column];
    const uint8_t *bytes = distances_of(b, column);
    const uint64_t base = line->base, slope = line->slope;

    switch (line->width) {
    case 0:
        for (size_t i = 0; i < n; i++)
            out[i] = base + slope * (from + i);
        break;
    case 1:
        for (size_t i = 0; i < n; i++)
            out[i] = base + slope * (from + i) + bytes[from + i];
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            out[i] = base + slope * (from + i) + get_le16(bytes + 2 * (from + i));
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            out[i] = base + slope * (from + i) + get_le32(bytes + 4 * (from + i));
        break;
    default:
        for (size_t i = 0; i < n; i++)
            out[i] = base + slope * (from + i) + get_le64(bytes + 8 * (from + i));
    }
}

void column_block_rows_read(const struct column_block *b, struct column_row *out)
{
    memset(out, 0, b->rows * sizeof *out);
    for (size_t c = 0; c < b->columns; c++)
        for (size_t i = 0; i < b->rows; i++)
            out[i].at[c] = column_block_at(b, i, (enum column)c);
}
