/*
 * convolution_winograd.h - convolution of 3x3 and 5x5 windows with a stride of 1 by Winograd's algorithm, in AVX-512:
 * 4 and 2.8 times fewer multiplications than the sum has, F(4x4, 3x3) and F(2x2, 5x5), for some more rounding. Blocks
 * of 16 channels, as convolution_onednn and convolution_avx512. With s.bfloat16 what it multiplies at the tiles' points
 * is rounded: 1.1 to 1.4 % of all results together, where rounding the operands alone costs 0.2 %. The layer has it
 * compute gradients, and in networks for inference what goes forward, see there.
 *
 * Which convolutions it takes depends on their shapes and the processor alone, never on a clock, so that the same
 * command gives the same bits. Results do not depend on how many images come in a call, except in bfloat16 the gradient
 * of the window where an image has an odd number of tiles, which convolution_winograd_pays() therefore refuses.
 */
#ifndef MODEL_KERNELS_CONVOLUTION_WINOGRAD_H
#define MODEL_KERNELS_CONVOLUTION_WINOGRAD_H

#include "model/kernels/convolution.h"

/* 1 if the build has convolution_winograd, which the processor must have instructions for, too: its block(). */
#if CONVOLUTION_ONEDNN && defined(__x86_64__) && defined(__GNUC__)
#define CONVOLUTION_WINOGRAD 1
#else
#define CONVOLUTION_WINOGRAD 0
#endif

#if CONVOLUTION_WINOGRAD
extern const struct convolution_backend convolution_winograd;

/* 1: it computes convolutions of this shape. */
int convolution_winograd_can(const struct convolution_shape *s);
/* 1: besides, it is faster there than what else computes it. */
int convolution_winograd_pays(const struct convolution_shape *s);
#endif

#endif
