/*
 * window.h - the window of a convolution or a pool, sliding over an image with padding around it. Output (i, j) is
 * computed from rows i stride_height - top + [0, height) and columns j stride_width - left + [0, width). Padding is
 * less than the window on each side, so that every window has pixels of the image.
 */
#ifndef MODEL_WINDOW_H
#define MODEL_WINDOW_H

/* As in TensorFlow. SAME: ceil(n / stride) outputs, half the padding (rounded down) before. VALID: EXPLICIT, all 0. */
enum padding { PADDING_EXPLICIT, PADDING_SAME };

struct window {
    int height, width, stride_height, stride_width;
    int top, bottom, left, right; /* of EXPLICIT padding */
    enum padding padding;
};

static inline struct window window_valid(int size, int stride) /* a square */
{
    return (struct window){ .height = size, .width = size, .stride_height = stride, .stride_width = stride };
}

static inline struct window window_same(int size, int stride)
{
    struct window w = window_valid(size, stride);

    w.padding = PADDING_SAME;
    return w;
}

/* Makes padding explicit for this image size. 0: a stride is not positive, or a window would have only padding. */
int window_fit(struct window *w, int height, int width);

/* The output's size, once the window fits; 0: the image is too small. */
int window_rows(const struct window *w, int height);
int window_columns(const struct window *w, int width);

#endif
