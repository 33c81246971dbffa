#include "eventlog/server/previews.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct run_view *const *)a)->name, (*(struct run_view *const *)b)->name);
}

static int name_of(const void *name, const void *view)
{
    return strcmp(name, (*(struct run_view *const *)view)->name);
}

int previews_add(struct previews *p, struct run_view *const *views, size_t count)
{
    struct run_view **all = realloc(p->views, (p->count + count + 1) * sizeof *all);
    size_t kept = 0;

    for (size_t i = 0; !all && i < count; i++)
        run_view_drop(views[i]);
    if (!all)
        return 0;
    p->views = all;
    for (size_t i = 0; i < count; i++)
        if (views[i])
            all[p->count++] = views[i];
    qsort(all, p->count, sizeof *all, by_name);
    for (size_t i = 0; i < p->count; i++)
        if (kept && !by_name(&all[kept - 1], &all[i]))
            run_view_drop(all[i]); /* no server saved that */
        else
            all[kept++] = all[i];
    p->count = kept;
    return 1;
}

int previews_find(const struct previews *p, const char *name)
{
    return p->count && bsearch(name, p->views, p->count, sizeof *p->views, name_of);
}

void previews_drop(struct previews *p)
{
    for (size_t i = 0; i < p->count; i++)
        run_view_drop(p->views[i]);
    free(p->views);
    *p = (struct previews){ .views = NULL };
}
