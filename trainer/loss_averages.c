#include "trainer/loss_averages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int loss_averages_init(struct loss_averages *a, const struct network *n, double decay, struct error *e)
{
    size_t count;
    const struct variable *v = network_variables(n, &count);

    memset(a, 0, sizeof *a);
    a->decay = decay;
    if (a->decay == 0)
        return OK;
    if (!(a->items = calloc(count + 2, sizeof *a->items)))
        return error_memory(e, NULL, "for the averages of the losses");
    snprintf(a->items[a->count++].name, sizeof a->items->name, "cross_entropy/avg");
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(v[i].name, '/');
        struct loss_average *item = &a->items[a->count];

        if (v[i].kind != VARIABLE_WEIGHT || v[i].decay == 0)
            continue;
        snprintf(item->name, sizeof item->name, "%.*s/weight_loss/avg",
                 (int)(slash ? slash - v[i].name : (ptrdiff_t)strlen(v[i].name)), v[i].name);
        item->variable = &v[i];
        a->count++;
    }
    snprintf(a->items[a->count++].name, sizeof a->items->name, "total_loss/avg");
    return OK;
}

void loss_averages_release(struct loss_averages *a)
{
    free(a->items);
    memset(a, 0, sizeof *a);
}

double loss_averages_before(struct loss_averages *a, const struct network *n)
{
    double sum = 0;

    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].variable)
            sum += a->items[i].loss = network_decay_loss_of(n, a->items[i].variable);
    return sum;
}

void loss_averages_after(struct loss_averages *a, double cross_entropy)
{
    const float follow = (float)(1 - a->decay);
    double total = cross_entropy;

    if (a->count == 0)
        return;
    a->items[0].loss = cross_entropy;
    for (size_t i = 1; i + 1 < a->count; i++)
        total += a->items[i].loss;
    a->items[a->count - 1].loss = total;
    for (size_t i = 0; i < a->count; i++)
        a->items[i].value -= (a->items[i].value - (float)a->items[i].loss) * follow;
}
