/*
 * vector.h - how the kernels get vector code without flags for one machine: plain loops over a fixed small number of
 * channels, compiled once for each instruction set and chosen when the program is loaded.
 */
#ifndef MODEL_KERNELS_VECTOR_H
#define MODEL_KERNELS_VECTOR_H

/* Channels that one inner loop handles; rests are done one by one. */
enum { VECTOR_CHANNELS = 16 };

/* The choice is made by code that runs before a sanitizer's runtime is ready, so sanitized builds go without. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTOR_CLONES
#endif

/* The body of a kernel, compiled into each of its clones with the number of channels known. */
#define VECTOR_BODY static inline __attribute__((always_inline))

#endif
