#include "checkpoint/loose_slice.h"

#include <stdint.h>
#include <stdlib.h>

static int compare_addresses(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(const struct tensor_entry *const *)a;
    uintptr_t y = (uintptr_t)*(const struct tensor_entry *const *)b;

    return (x > y) - (x < y);
}

int loose_slices(const struct tensor_bundle *b, loose_slice *visit, void *context, struct error *e)
{
    const struct tensor_entry **known, *slice;
    size_t count = 0, used = 0;

    if (!tensor_bundle_slice_count(b))
        return OK;
    for (size_t i = 0; i < tensor_bundle_count(b); i++)
        count += tensor_bundle_entry(b, i)->slices;
    if (!(known = malloc((count + 1) * sizeof(struct tensor_entry *))))
        return error_memory(e, NULL, "to list the slices");
    for (size_t i = 0; i < tensor_bundle_count(b); i++)
        for (size_t k = 0; k < tensor_bundle_entry(b, i)->slices; k++)
            if (tensor_bundle_find_slice(b, tensor_bundle_entry(b, i), k, &slice, NULL) == OK)
                known[used++] = slice;
    qsort(known, used, sizeof *known, compare_addresses);
    for (size_t i = 0; i < tensor_bundle_slice_count(b); i++) {
        slice = tensor_bundle_slice(b, i);
        if (!bsearch(&slice, known, used, sizeof *known, compare_addresses))
            visit(context, slice);
    }
    free(known);
    return OK;
}
