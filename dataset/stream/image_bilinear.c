#include "dataset/stream/image_bilinear.h"

enum { COLOURS = 3 };

/* A place between two stored ones: at the first of them, and how far towards the other. */
struct between {
    int lower, upper;
    float part;
};

static struct between between(int stored, int scaled, int i)
{
    const float at = (float)i * ((float)stored / (float)scaled);
    const int lower = (int)at < stored - 1 ? (int)at : stored - 1;

    return (struct between){ lower, lower + 1 < stored ? lower + 1 : lower, at - (float)lower };
}

void image_bilinear(const struct image *from, int scaled, int height, int width, float *out)
{
    const int above = (scaled - height) / 2, left = (scaled - width) / 2;

    for (int y = 0; y < height; y++) {
        const struct between v = between(from->height, scaled, above + y);
        const uint8_t *top = from->pixels + (size_t)v.lower * (size_t)from->width * COLOURS;
        const uint8_t *bottom = from->pixels + (size_t)v.upper * (size_t)from->width * COLOURS;

        for (int x = 0; x < width; x++) {
            const struct between h = between(from->width, scaled, left + x);

            for (int c = 0; c < COLOURS; c++) {
                const float a = (float)top[h.lower * COLOURS + c] / 255, b = (float)top[h.upper * COLOURS + c] / 255;
                const float d = (float)bottom[h.lower * COLOURS + c] / 255;
                const float f = (float)bottom[h.upper * COLOURS + c] / 255;
                const float over = a + (b - a) * h.part, under = d + (f - d) * h.part;

                *out++ = over + (under - over) * v.part;
            }
        }
    }
}
