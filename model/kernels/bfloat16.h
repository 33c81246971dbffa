/*
 * bfloat16.h - numbers of 16 bits: the upper half of a float32, 8 bits of precision, same range. A bfloat16 here is its
 * bits in a uint16_t. Rounding is to nearest, ties to even, as the processors' own conversion does it; a NaN stays one.
 */
#ifndef MODEL_KERNELS_BFLOAT16_H
#define MODEL_KERNELS_BFLOAT16_H

#include "model/real.h"

#include <stddef.h>
#include <stdint.h>

/* What multiplies bfloat16 here: oneDNN with AMX, several times as fast as AVX-512 multiplies float32; or our own
 * kernels with AVX-512's VDPBF16PS, on AMD's processors up to twice as fast. Intel's run it at half the rate of other
 * instructions. */
enum bfloat16_units { BFLOAT16_NONE, BFLOAT16_AVX512, BFLOAT16_AMX };

/* Once a network was made. */
enum bfloat16_units bfloat16_units(void);
/* 1: it multiplies bfloat16 faster than float32. */
int bfloat16_is_fast(void);

uint16_t bfloat16_of(real x);
float bfloat16_wide(uint16_t x);

/* Room for count of them, aligned to 64 bytes. NULL without memory. Yours to free(). */
uint16_t *bfloat16_new(size_t count);

/* n numbers; `to` does not overlap `from`. */
void bfloat16_round(size_t n, const real *from, uint16_t *to);

#endif
