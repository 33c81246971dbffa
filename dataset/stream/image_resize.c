#include "dataset/stream/image_resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 22 }; /* of a weight after the point */

/* How the wanted places [0, count) along one side are made of the stored ones. */
struct side {
    int taps;         /* the most stored places that one needs */
    int *first;       /* (count) */
    int *number;      /* (count), each <= taps */
    int32_t *weights; /* (count, taps), a place's add up to about 1 << BITS */
};

static void side_release(struct side *s)
{
    free(s->first);
    free(s->number);
    free(s->weights);
}

/* stored places scaled to `scaled` ones, of which [from, from + count) are wanted. 0: out of memory. */
static int side_init(struct side *s, int stored, int scaled, int from, int count)
{
    const double step = (double)stored / scaled, reach = step > 1 ? step : 1;

    s->taps = (int)ceil(reach) * 2 + 1;
    s->first = malloc((size_t)count * sizeof *s->first);
    s->number = malloc((size_t)count * sizeof *s->number);
    s->weights = malloc((size_t)count * (size_t)s->taps * sizeof *s->weights);
    if (!s->first || !s->number || !s->weights)
        return 0;
    for (int i = 0; i < count; i++) {
        const double middle = (from + i + 0.5) * step;
        const int first = middle - reach + 0.5 > 0 ? (int)(middle - reach + 0.5) : 0;
        const int end = middle + reach + 0.5 < stored ? (int)(middle + reach + 0.5) : stored;
        double sum = 0;

        s->first[i] = first;
        s->number[i] = end - first < s->taps ? end - first : s->taps;
        for (int pass = 0; pass < 2; pass++)
            for (int k = 0; k < s->number[i]; k++) {
                const double away = fabs((k + first - middle + 0.5) * (1 / reach)), weight = away < 1 ? 1 - away : 0;

                if (pass == 0)
                    sum += weight;
                else
                    s->weights[(size_t)i * (size_t)s->taps + (size_t)k] = (int32_t)(weight * (1 / sum) * (1 << BITS) +
                                                                                    0.5);
            }
    }
    return 1;
}

static uint8_t to_byte(int64_t sum)
{
    const int64_t value = (sum + (1 << (BITS - 1))) >> BITS;

    return (uint8_t)(value > 255 ? 255 : value);
}

/* One wanted pixel of stored ones that are `stride` bytes apart. */
static void mix(const struct side *s, int i, const uint8_t *from, size_t stride, uint8_t out[3])
{
    const int32_t *weights = s->weights + (size_t)i * (size_t)s->taps;
    int64_t sum[3] = { 0 };

    for (int k = 0; k < s->number[i]; k++, from += stride)
        for (int c = 0; c < 3; c++)
            sum[c] += (int64_t)weights[k] * from[c];
    for (int c = 0; c < 3; c++)
        out[c] = to_byte(sum[c]);
}

/* Rows first, into `narrow`, then columns. */
static int resize(const struct image *from, const struct side *across, const struct side *down, int height, int width,
                  uint8_t *out)
{
    const size_t line = (size_t)width * 3;
    const int top = down->first[0], bottom = down->first[height - 1] + down->number[height - 1];
    uint8_t *narrow = malloc((size_t)(bottom - top) * line);

    if (!narrow)
        return 0;
    for (int y = top; y < bottom; y++)
        for (int x = 0; x < width; x++)
            mix(across, x, from->pixels + ((size_t)y * (size_t)from->width + (size_t)across->first[x]) * 3, 3,
                narrow + (size_t)(y - top) * line + (size_t)x * 3);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            mix(down, y, narrow + (size_t)(down->first[y] - top) * line + (size_t)x * 3, line,
                out + (size_t)y * line + (size_t)x * 3);
    free(narrow);
    return 1;
}

int image_resize(const struct image *from, const char *name, int height, int width, uint8_t *out, struct error *e)
{
    const double tall = (double)height / from->height, wide = (double)width / from->width;
    const double most = tall > wide ? tall : wide;
    const int scaled_height = tall >= wide ? height : (int)fmax(height, floor(from->height * most + 0.5));
    const int scaled_width = wide >= tall ? width : (int)fmax(width, floor(from->width * most + 0.5));
    struct side across = { 0 }, down = { 0 };
    int done;

    if (from->height == height && from->width == width) {
        memcpy(out, from->pixels, (size_t)height * (size_t)width * 3);
        return OK;
    }
    done = side_init(&across, from->width, scaled_width, (scaled_width - width) / 2, width) &&
           side_init(&down, from->height, scaled_height, (scaled_height - height) / 2, height) &&
           resize(from, &across, &down, height, width, out);
    side_release(&across);
    side_release(&down);
    return done ? OK : error_memory(e, name, "for its pixels at %dx%d", height, width);
}
