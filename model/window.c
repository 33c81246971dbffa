#include "model/window.h"

static int fit_axis(enum padding padding, int n, int size, int stride, int *before, int *after)
{
    if (stride < 1)
        return 0;
    if (padding == PADDING_SAME) {
        const int total = (n - 1) / stride * stride + size - n;

        *before = total > 0 ? total / 2 : 0;
        *after = total > 0 ? total - *before : 0;
    }
    return *before >= 0 && *before < size && *after >= 0 && *after < size; /* so size is not 0 */
}

int window_fit(struct window *w, int height, int width)
{
    const int fits = fit_axis(w->padding, height, w->height, w->stride_height, &w->top, &w->bottom) &&
                     fit_axis(w->padding, width, w->width, w->stride_width, &w->left, &w->right);

    w->padding = PADDING_EXPLICIT;
    return fits;
}

static int count(int n, int size, int stride)
{
    return n < size ? 0 : (n - size) / stride + 1;
}

int window_rows(const struct window *w, int height)
{
    return count(height + w->top + w->bottom, w->height, w->stride_height);
}

int window_columns(const struct window *w, int width)
{
    return count(width + w->left + w->right, w->width, w->stride_width);
}
