/*
 * snappy_block.h - unpacks a block that snappy has packed, as checkpoint indexes of other programs may have them. Ours
 * are not packed. Pure; nothing beyond the given bytes is read or written, whatever they are.
 */
#ifndef CHECKPOINT_SNAPPY_BLOCK_H
#define CHECKPOINT_SNAPPY_BLOCK_H

#include <stddef.h>
#include <stdint.h>

/* No block unpacks to more than this many times its bytes: no element makes more than 64 bytes of 3. */
enum { SNAPPY_BLOCK_EXPANSION = 22 };

/* The length that the block says it unpacks to. 1; 0: it says none. */
int snappy_block_length(const void *block, size_t n, size_t *length);

/* Unpacks the block to exactly `length` bytes, which snappy_block_length() gave. 1; 0: it is damaged, and out has
 * anything. */
int snappy_block_unpack(const void *block, size_t n, void *out, size_t length);

#endif
