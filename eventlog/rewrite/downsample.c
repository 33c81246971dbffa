#include "eventlog/rewrite/downsample.h"

#include <math.h>
#include <string.h>

void downsample_every(size_t n, size_t k, uint8_t *keep)
{
    for (size_t i = 0; i < n; i++)
        keep[i] = i % k == 0 || i + 1 == n;
}

void downsample_even(size_t n, size_t most, uint8_t *keep)
{
    if (n <= most) {
        memset(keep, 1, n);
        return;
    }
    memset(keep, 0, n);
    for (size_t i = 0; i < most; i++) /* in double: n and most are far below 2^53 */
        keep[(size_t)((double)i * (double)(n - 1) / (double)(most - 1) + 0.5)] = 1;
}

static int finite_point(const double *x, const double *y, size_t i)
{
    return isfinite(x[i]) && isfinite(y[i]);
}

/* The mean of the finite points in [from, to); where there is none it stays as it is. */
static void mean(const double *x, const double *y, size_t from, size_t to, double *mx, double *my)
{
    double sx = 0, sy = 0;
    size_t count = 0;

    for (size_t i = from; i < to; i++)
        if (finite_point(x, y, i)) {
            sx += x[i];
            sy += y[i];
            count++;
        }
    if (count) {
        *mx = sx / (double)count;
        *my = sy / (double)count;
    }
}

void downsample_curve(const double *x, const double *y, size_t n, size_t most, uint8_t *keep)
{
    double px, py, width;
    size_t buckets, from = 1;

    if (n <= most) {
        memset(keep, 1, n);
        return;
    }
    memset(keep, 0, n);
    keep[0] = keep[n - 1] = 1;
    buckets = most - 2;
    width = buckets ? (double)(n - 2) / (double)buckets : 0;
    px = isfinite(x[0]) ? x[0] : 0;
    py = isfinite(y[0]) ? y[0] : 0;
    for (size_t b = 0; b < buckets; b++) {
        size_t to = b + 1 == buckets ? n - 1 : 1 + (size_t)((double)(b + 1) * width), best = from;
        size_t behind = b + 2 >= buckets ? n - 1 : 1 + (size_t)((double)(b + 2) * width);
        double mx = px, my = py, largest = -1;

        mean(x, y, to, b + 1 == buckets ? n : behind, &mx, &my);
        for (size_t i = from; i < to; i++) {
            double area = finite_point(x, y, i) ? fabs((px - mx) * (y[i] - py) - (px - x[i]) * (my - py)) : -1;

            if (area > largest) {
                largest = area;
                best = i;
            }
        }
        keep[best] = 1;
        if (finite_point(x, y, best)) {
            px = x[best];
            py = y[best];
        }
        from = to;
    }
}
