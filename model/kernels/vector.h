/*
 * vector.h - how the kernels get vector code without flags for one machine: plain loops over a fixed small number of
 * channels, compiled once for each instruction set and chosen when the program is loaded.
 */
#ifndef MODEL_KERNELS_VECTOR_H
#define MODEL_KERNELS_VECTOR_H

/* The most channels that one inner loop handles. */
enum { VECTOR_CHANNELS = 16 };

/* Runs statement for channels [c, c + width) until c reaches block, width being a constant 16 where so many are left,
 * then 8, 4 or 1, so that loops over them become whole vectors. c is the caller's, 0 before. */
#define VECTOR_EACH(c, block, width, statement) \
    do { \
        for (; c + 16 <= (block); c += 16) { \
            enum { width = 16 }; \
            statement; \
        } \
        for (; c + 8 <= (block); c += 8) { \
            enum { width = 8 }; \
            statement; \
        } \
        for (; c + 4 <= (block); c += 4) { \
            enum { width = 4 }; \
            statement; \
        } \
        for (; c < (block); c++) { \
            enum { width = 1 }; \
            statement; \
        } \
    } while (0)

/* The choice is made by code that runs before a sanitizer's runtime is ready, so sanitized builds go without. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTOR_CLONES
#endif

/* Before a loop whose turns touch different elements, though the compiler cannot know. */
#ifdef __clang__
#define VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define VECTOR_LOOP _Pragma("GCC ivdep")
#else
#define VECTOR_LOOP
#endif

/* The body of a kernel, compiled into each of its clones with the number of channels known. */
#define VECTOR_BODY static inline __attribute__((always_inline))

#endif
