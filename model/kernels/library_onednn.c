#include "model/kernels/library_onednn.h"

#include "base/late_library.h"

#include <pthread.h>

#define NAME(function) "dnnl_" #function,
struct library_onednn dnnl;
static const char *const names[] = { LIBRARY_ONEDNN_FUNCTIONS(NAME) };

/* Debian's oneDNN takes its number of threads from OpenMP when a primitive is made. Builds without OpenMP leave these
 * NULL. */
static struct {
    int (*get_max_threads)(void);
    void (*set_num_threads)(int n);
} omp;
static const char *const omp_names[] = { "omp_get_max_threads", "omp_set_num_threads" };

static struct error loading;

static void load_onednn(void)
{
    if (late_library_load(ONEDNN_SONAME, names, sizeof names / sizeof *names, &dnnl, &loading) < 0)
        error_prefix(&loading, "convolutions need oneDNN");
    else
        late_library_load(ONEDNN_SONAME, omp_names, 2, &omp, NULL);
}

int library_onednn_load(struct error *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_onednn);
    return error_copy(e, &loading);
}

/* Instruction sets are bit sets without an order: a smaller one may have a larger number. */
int library_onednn_has(int wanted)
{
#ifdef __x86_64__
    return dnnl.get_effective_cpu_isa && ((int)dnnl.get_effective_cpu_isa() & wanted) == wanted;
#else
    (void)wanted;
    return 0;
#endif
}

int library_onednn_one_thread(void)
{
    const int threads = omp.get_max_threads ? omp.get_max_threads() : 1;

    if (omp.set_num_threads)
        omp.set_num_threads(1);
    return threads;
}

void library_onednn_threads(int threads)
{
    if (omp.set_num_threads)
        omp.set_num_threads(threads);
}
