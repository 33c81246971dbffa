/*
 * convolution.h - two-dimensional convolution of a few images at a time, behind one interface with several makers:
 * convolution_blas (im2col and matrix products, any shape, also in the double build) and convolution_onednn (oneDNN's
 * compiled kernels; only where the build found oneDNN). convolution_bfloat16 is the latter with operands rounded to
 * bfloat16, in NHWC; convolution_avx512 does the same by kernels of our own, any shape. Their block() is 0 where the
 * processor has no instructions for them (bfloat16.h).
 *
 *   y(n,i,j,o) = sum over r, s, c of x(n, i stride_height + r - top, j stride_width + s - left, c) w(r,s,c,o)
 * with zeros outside. Images are laid out (count, channels / block, height width, block): block = channels is NHWC.
 * Kernels w are HWIO.
 *
 * A plan belongs to one thread at a time. Only _new can fail.
 */
#ifndef MODEL_KERNELS_CONVOLUTION_H
#define MODEL_KERNELS_CONVOLUTION_H

#include "base/error.h"
#include "model/kernels/bfloat16_avx512.h"
#include "model/real.h"
#include "model/window.h"

/* 1 if the build has convolution_onednn and convolution_bfloat16. */
#if ONEDNN && !defined(REAL_DOUBLE)
#define CONVOLUTION_ONEDNN 1
#else
#define CONVOLUTION_ONEDNN 0
#endif

/* 1 if the build has convolution_avx512. */
#define CONVOLUTION_AVX512 BFLOAT16_AVX512_BUILT

struct convolution_shape {
    int images;                         /* maximum per call */
    int height, width, channels, block; /* of x */
    int out_height, out_width, out_channels, out_block;
    struct window window;   /* with explicit padding */
    int need_data_gradient; /* 0: backward_data is never called */
    int bfloat16;           /* 1, for convolution_bfloat16 and convolution_avx512: x, w and dy are rounded to it */
    int forward_only;       /* 1: neither backward_data nor backward_weights is called, nor prepare for them */
};

/* What becomes of each y before it is written: leaky(scale(o) y + offset(o)), or y + what is at its place in `sum`. */
struct convolution_finish {
    const real *scale, *offset; /* (out_channels), aligned to 64 bytes; NULL: none */
    real slope;                 /* leaky(x) = slope x if x < 0, else x; from 0 to 1 */
    const real *sum;            /* laid out as y; NULL: none */
};

struct convolution; /* begins with a pointer to its backend */

struct convolution_backend {
    const char *name;
    /* Loads the library; must be called first; may be repeated, in any thread. ERR_IO. */
    int (*load)(struct error *e);
    /* The instruction sets that its kernels use, as a number of the library. NULL: it has no kernels of its own. */
    unsigned (*instructions)(void);
    /* The block that this backend needs for images of `channels` channels; 0: it does not compute such convolutions.
     * `input`: these are the network's input, whose block is always `channels`. */
    int (*block)(int channels, int input);
    int (*make)(struct convolution **out, const struct convolution_shape *s, struct error *e);
    void (*release)(struct convolution *c);
    /* Takes the kernel of this step; w is borrowed until the next prepare. */
    void (*prepare)(struct convolution *c, const real *w, int backward);
    void (*forward)(struct convolution *c, int images, const real *x, real *y); /* y is overwritten */
    /* dx is overwritten. Right after backward_weights with the same dy it may use what that one made of it. */
    void (*backward_data)(struct convolution *c, int images, const real *dy, real *dx);
    /* Adds the images' weight gradient to the plan's own sum, which prepare cleared. */
    void (*backward_weights)(struct convolution *c, int images, const real *x, const real *dy);
    /* dw = that sum. */
    void (*weights_gradient)(struct convolution *c, real *dw);
    /* forward, and this one thing more. NULL: it cannot. */
    void (*forward_and_finish)(struct convolution *c, int images, const real *x, const struct convolution_finish *f,
                               real *y);
};

extern const struct convolution_backend convolution_blas;
#if CONVOLUTION_ONEDNN
extern const struct convolution_backend convolution_onednn, convolution_bfloat16;
#endif
#if CONVOLUTION_AVX512
extern const struct convolution_backend convolution_avx512;
#endif

#endif
