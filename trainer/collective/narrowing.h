/*
 * narrowing.h - exchange vectors on their way between ranks with gradients as bfloat16, half as many bytes. Elements
 * below `rounded` are rounded, to nearest, ties to even; the others, statistics and the batch's weight, stay float32.
 * rounded 0: nothing changes. Pure functions.
 */
#ifndef TRAINER_COLLECTIVE_NARROWING_H
#define TRAINER_COLLECTIVE_NARROWING_H

#include "model/real.h"
#include "trainer/collective/exchange.h"

#include <stddef.h>

/* Bytes that elements [x.from, x.to) take on their way. */
size_t narrowing_bytes(struct extent x, size_t rounded);

/* Packs v[x.from .. x.to) into bytes, which may be v + x.from itself. */
void narrowing_pack(const real *v, struct extent x, size_t rounded, void *bytes);
/* The reverse. bytes may be v + x.from. */
void narrowing_unpack(const void *bytes, struct extent x, size_t rounded, real *v);

/* What packing and unpacking make of them. */
void narrowing_round(real *v, struct extent x, size_t rounded);

#endif
