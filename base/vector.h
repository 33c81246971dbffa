/*
 * vector.h - gives kernels vector code without compiler flags for one machine: plain loops over a fixed small number of
 * elements, compiled once for each instruction set; the right one is chosen when the program is loaded.
 */
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

/* The maximum number of elements in one inner loop. */
enum { VECTOR_WIDTH_MAX = 16 };

/* Runs statement for elements [c, c + width) until c reaches block, with width a constant: 16 while that many are left,
 * then 8, 4 or 1, so that loops over it become whole vectors. c is the caller's, 0 before. */
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

/* The code that chooses runs before a sanitizer's runtime is ready, so sanitized builds do without it. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTOR_CLONES
#endif

/* Put before a loop whose iterations touch different elements, which the compiler cannot know. */
#ifdef __clang__
#define VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define VECTOR_LOOP _Pragma("GCC ivdep")
#else
#define VECTOR_LOOP
#endif

/* The body of a kernel, compiled into each of its clones with the number of elements known. */
#define VECTOR_BODY static inline __attribute__((always_inline))

#endif
