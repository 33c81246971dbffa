#include "eventlog/read/step_list.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void step_list_release(struct step_list *l)
{
    free(l->items);
    memset(l, 0, sizeof *l);
}

int step_list_add(struct step_list *l, int64_t step, int mark)
{
    struct step_stretch *s = l->count ? &l->items[l->count - 1] : NULL;

    if (s && step >= s->last && mark == s->mark) {
        uint64_t stride = (uint64_t)step - (uint64_t)s->last;

        if (s->count == 1)
            s->stride = stride;
        if (stride == s->stride) {
            s->last = step;
            s->count++;
            l->steps++;
            return 1;
        }
    }
    if (!ARRAY_ROOM(l->items, l->capacity, l->count + 1))
        return 0;
    l->items[l->count++] = (struct step_stretch){ step, step, 0, 1, mark };
    l->steps++;
    return 1;
}

void step_list_cut(struct step_list *l, int64_t step)
{
    while (l->count && l->items[l->count - 1].first >= step)
        l->steps -= l->items[--l->count].count;
    if (l->count && l->items[l->count - 1].last >= step) {
        struct step_stretch *s = &l->items[l->count - 1];
        uint64_t kept = ((uint64_t)step - (uint64_t)s->first - 1) / s->stride + 1; /* strictly rising: stride > 0 */

        l->steps -= s->count - kept;
        s->count = kept;
        s->last = (int64_t)((uint64_t)s->first + (kept - 1) * s->stride);
        s->stride = kept > 1 ? s->stride : 0;
    }
}

uint64_t step_list_marked(const struct step_list *l, int mark)
{
    uint64_t count = 0;

    for (size_t i = 0; i < l->count; i++)
        count += l->items[i].mark == mark ? l->items[i].count : 0;
    return count;
}

static int by_step(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int count_distinct(const struct step_list *l, uint64_t *distinct)
{
    int64_t *steps = l->steps < SIZE_MAX / sizeof *steps ? malloc((size_t)l->steps * sizeof *steps) : NULL;
    size_t n = 0;

    if (!steps)
        return 0;
    for (size_t i = 0; i < l->count; i++)
        for (uint64_t k = 0; k < l->items[i].count; k++)
            steps[n++] = (int64_t)((uint64_t)l->items[i].first + k * l->items[i].stride);
    qsort(steps, n, sizeof *steps, by_step);
    *distinct = n > 0;
    for (size_t i = 1; i < n; i++)
        *distinct += steps[i] != steps[i - 1];
    free(steps);
    return 1;
}

int step_list_figures(const struct step_list *l, struct step_figures *f)
{
    memset(f, 0, sizeof *f);
    f->first = f->least = f->most = l->items[0].first;
    f->last = l->items[l->count - 1].last;
    for (size_t i = 0; i < l->count; i++) {
        const struct step_stretch *s = &l->items[i];

        f->least = s->first < f->least ? s->first : f->least;
        f->most = s->last > f->most ? s->last : f->most;
        f->distinct += s->stride ? s->count : 1;
        f->out_of_order += i && s->first < l->items[i - 1].last;
        f->distinct -= i && s->first == l->items[i - 1].last;
    }
    return !f->out_of_order || count_distinct(l, &f->distinct);
}

int step_list_back(const struct step_list *l, size_t *at, int64_t *before, int64_t *after)
{
    while (++*at < l->count)
        if (l->items[*at].first < l->items[*at - 1].last) {
            *before = l->items[*at - 1].last;
            *after = l->items[*at].first;
            return 1;
        }
    return 0;
}
