#include "eventlog/server/store/snapshot.h"

#include "base/bytes.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static void *keep(void *thing, unsigned *references)
{
    __atomic_fetch_add(references, 1, __ATOMIC_RELAXED);
    return thing;
}

/* 1: that was the last one. */
static int drop(unsigned *references)
{
    return __atomic_fetch_sub(references, 1, __ATOMIC_ACQ_REL) == 1;
}

/* ---- series ---------------------------------------------------------------------------------------------------- */

struct series_view *series_view_new(struct series_info *info, struct column_block *const *blocks, size_t block_count)
{
    struct series_view *v = calloc(1, sizeof *v + block_count * sizeof *v->blocks);
    const struct column_block *last = block_count ? blocks[block_count - 1] : NULL;

    if (!v)
        return NULL;
    v->info = series_info_keep(info);
    v->references = 1;
    v->block_count = block_count;
    for (size_t i = 0; i < block_count; i++)
        v->blocks[i] = column_block_keep(blocks[i]);
    if (last) {
        v->count = (block_count - 1) * COLUMN_BLOCK_ROWS + column_block_rows(last);
        v->last_step = (int64_t)column_block_at(last, column_block_rows(last) - 1, COLUMN_STEP);
    }
    return v;
}

static int by_tag(const void *a, const void *b)
{
    const struct series_info *x = (*(struct series_view *const *)a)->info, *y = (*(struct series_view *const *)b)->info;

    return bytes_compare(x->tag, x->tag_length, y->tag, y->tag_length);
}

void series_views_sort(struct series_view **series, size_t count)
{
    if (count)
        qsort(series, count, sizeof *series, by_tag);
}

struct series_view *series_view_keep(struct series_view *v)
{
    return keep(v, &v->references);
}

void series_view_drop(struct series_view *v)
{
    if (!v || !drop(&v->references))
        return;
    for (size_t i = 0; i < v->block_count; i++)
        column_block_drop(v->blocks[i]);
    series_info_drop(v->info);
    free(v->sample);
    free(v);
}

uint64_t series_view_at(const struct series_view *v, size_t row, enum column column)
{
    return column_block_at(v->blocks[row / COLUMN_BLOCK_ROWS], row % COLUMN_BLOCK_ROWS, column);
}

size_t series_view_find(const struct series_view *v, int64_t step)
{
    size_t low = 0, high = v->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((int64_t)series_view_at(v, middle, COLUMN_STEP) < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->count && (int64_t)series_view_at(v, low, COLUMN_STEP) == step ? low : (size_t)-1;
}

/* ---- runs ------------------------------------------------------------------------------------------------------ */

struct file_names *file_names_new(char *const *paths, size_t count)
{
    struct file_names *f = calloc(1, sizeof *f + count * sizeof *f->paths);

    if (!f)
        return NULL;
    f->references = 1;
    for (; f->count < count; f->count++)
        if (!(f->paths[f->count] = strdup(paths[f->count]))) {
            file_names_drop(f);
            return NULL;
        }
    return f;
}

void file_names_drop(struct file_names *f)
{
    if (!f || !drop(&f->references))
        return;
    for (size_t i = 0; i < f->count; i++)
        free(f->paths[i]);
    free(f);
}

struct run_view *run_view_new(const char *name, double start_time, struct file_names *files,
                              struct series_view *const *series, size_t count)
{
    struct run_view *v = malloc(sizeof *v + count * sizeof *v->series);

    if (!v)
        return NULL;
    *v = (struct run_view){ .name = strdup(name), .start_time = start_time, .references = 1, .count = count };
    if (!v->name) {
        free(v);
        return NULL;
    }
    v->name_length = strlen(name);
    v->files = keep(files, &files->references);
    for (size_t i = 0; i < count; i++)
        v->series[i] = series_view_keep(series[i]);
    return v;
}

struct run_view *run_view_keep(struct run_view *v)
{
    return keep(v, &v->references);
}

void run_view_drop(struct run_view *v)
{
    if (!v || !drop(&v->references))
        return;
    for (size_t i = 0; i < v->count; i++)
        series_view_drop(v->series[i]);
    file_names_drop(v->files);
    free(v->name);
    free(v);
}

struct series_view *run_view_find(const struct run_view *v, const char *tag, size_t n)
{
    size_t low = 0, high = v->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct series_info *info = v->series[middle]->info;
        int order = bytes_compare(info->tag, info->tag_length, tag, n);

        if (!order)
            return v->series[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- the log --------------------------------------------------------------------------------------------------- */

static int compare_names(const struct run_view *a, const struct run_view *b)
{
    return bytes_compare(a->name, a->name_length, b->name, b->name_length);
}

static int by_start(const void *a, const void *b)
{
    const struct run_view *x = *(struct run_view *const *)a, *y = *(struct run_view *const *)b;

    return x->start_time != y->start_time ? (x->start_time < y->start_time ? -1 : 1) : compare_names(x, y);
}

static int by_run_name(const void *a, const void *b, void *runs)
{
    struct run_view *const *all = runs;

    return compare_names(all[*(const uint32_t *)a], all[*(const uint32_t *)b]);
}

struct log_view *log_view_new(struct run_view *const *runs, size_t count)
{
    struct log_view *v = calloc(1, sizeof *v);

    if (!v || !(v->runs = malloc((count + 1) * sizeof *v->runs)) ||
        !(v->by_name = malloc((count + 1) * sizeof *v->by_name))) {
        if (v)
            free(v->runs);
        free(v);
        return NULL;
    }
    v->references = 1;
    v->count = count;
    for (size_t i = 0; i < count; i++) {
        v->runs[i] = run_view_keep(runs[i]);
        v->by_name[i] = (uint32_t)i;
    }
    qsort(v->runs, count, sizeof *v->runs, by_start);
    qsort_r(v->by_name, count, sizeof *v->by_name, by_run_name, v->runs);
    return v;
}

void log_view_drop(struct log_view *v)
{
    if (!v || !drop(&v->references))
        return;
    for (size_t i = 0; i < v->count; i++)
        run_view_drop(v->runs[i]);
    free(v->runs);
    free(v->by_name);
    free(v);
}

size_t log_view_find(const struct log_view *v, const char *name, size_t n)
{
    size_t low = 0, high = v->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct run_view *run = v->runs[v->by_name[middle]];
        int order = bytes_compare(run->name, run->name_length, name, n);

        if (!order)
            return v->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return (size_t)-1;
}

int snapshot_init(struct snapshot *s)
{
    s->current = log_view_new(NULL, 0);
    pthread_mutex_init(&s->lock, NULL);
    return s->current ? OK : ERR_NOMEM;
}

void snapshot_release(struct snapshot *s)
{
    log_view_drop(s->current);
    pthread_mutex_destroy(&s->lock);
}

struct log_view *snapshot_take(struct snapshot *s)
{
    struct log_view *v;

    pthread_mutex_lock(&s->lock);
    v = keep(s->current, &s->current->references);
    pthread_mutex_unlock(&s->lock);
    return v;
}

void snapshot_put(struct snapshot *s, struct log_view *view)
{
    struct log_view *old;

    pthread_mutex_lock(&s->lock);
    old = s->current;
    s->current = view;
    pthread_mutex_unlock(&s->lock);
    log_view_drop(old);
}
