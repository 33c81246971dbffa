#include "model/kernels/blas.h"

#include "base/late_library.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef REAL_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

static struct {
    __typeof__(GEMM) *gemm;
    __typeof__(openblas_get_num_threads) *get_num_threads;
    __typeof__(openblas_set_num_threads) *set_num_threads;
    __typeof__(openblas_get_corename) *get_corename;
} blas;
static const char *const names[] = { TEXT(GEMM), "openblas_get_num_threads", "openblas_set_num_threads",
                                     "openblas_get_corename" };

/* With these OpenBLAS chooses its kernels again. Builds for one processor have none to choose from, and leave them
 * NULL. */
static struct {
    void (*dynamic_init)(void), (*dynamic_quit)(void);
} choice;
static const char *const choice_names[] = { "gotoblas_dynamic_init", "gotoblas_dynamic_quit" };

static struct error loading;

/* The kernels of OpenBLAS for this processor's instructions; NULL: leave it what it chose. */
static const char *kernels_for_instructions(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
#endif
    return NULL;
}

/* OpenBLAS knows processors by their model numbers, and gives one that is newer than itself the kernels for the oldest,
 * Prescott of 2004, which take several times as long. */
static void choose_kernels(void)
{
    static const char variable[] = "OPENBLAS_CORETYPE";
    const char *better = kernels_for_instructions();

    if (!better || getenv(variable) || strcmp(blas.get_corename(), "Prescott") != 0 ||
        late_library_load(OPENBLAS_SONAME, choice_names, 2, &choice, NULL) < 0)
        return;
    setenv(variable, better, 1);
    choice.dynamic_quit();
    choice.dynamic_init();
    unsetenv(variable);
}

/* OpenBLAS starts a thread for every core when it is loaded, and these spin for a while. Only the environment is early
 * enough to prevent that. It is restored afterwards for commands that are started later. */
static void load_blas(void)
{
    static const char threads[] = "OPENBLAS_NUM_THREADS";
    const int given = getenv(threads) != NULL;

    setenv(threads, "1", 0);
    if (late_library_load(OPENBLAS_SONAME, names, sizeof names / sizeof *names, &blas, &loading) < 0)
        error_prefix(&loading, "matrix products need OpenBLAS");
    else if (blas.get_num_threads() != 1)
        blas.set_num_threads(1);
    if (!loading.code)
        choose_kernels();
    if (!given)
        unsetenv(threads);
}

int blas_load(struct error *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_blas);
    return error_copy(e, &loading);
}

const char *blas_kernels(void)
{
    return blas.get_corename();
}

int blas_kernels_are_avx512(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    static const char *const cores[] = { "SkylakeX", "Cooperlake", "SapphireRapids" };

    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (!strcmp(blas_kernels(), cores[i]))
            return __builtin_cpu_supports("avx512f") != 0;
#endif
    return 0;
}

void blas_product(int transpose_a, int transpose_b, int rows, int columns, int inner, const real *a, const real *b,
                  real beta, real *c)
{
    const enum CBLAS_TRANSPOSE ta = transpose_a ? CblasTrans : CblasNoTrans;
    const enum CBLAS_TRANSPOSE tb = transpose_b ? CblasTrans : CblasNoTrans;
    const int lda = transpose_a ? rows : inner, ldb = transpose_b ? inner : columns;

    blas.gemm(CblasRowMajor, ta, tb, rows, columns, inner, 1, a, lda, b, ldb, beta, c, columns);
}
