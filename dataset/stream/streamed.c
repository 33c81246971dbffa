#include "dataset/stream/streamed.h"

#include <stdlib.h>

static int leave_out_broken(struct dataset_owned *o, size_t count, struct error *e)
{
    int32_t *labels = o->labels;
    void *room = malloc(dataset_bytes(&o->d));
    size_t kept = 0, used;
    int rc = OK;

    if (!room)
        return error_memory(e, o->d.name, "for a sample");
    for (size_t i = 0; rc == OK && i < count; i++) {
        if ((rc = sample_stream_read(o->d.stream, 0, count, i, room, &used, e)) == OK && used == i) {
            o->d.index[kept] = i;
            labels[kept++] = labels[i];
        }
    }
    free(room);
    o->d.count = kept;
    return rc;
}

int streamed_take(struct dataset_owned *o, const struct sample_stream_format *format, void *context, size_t count,
                  enum dataset_split split, const struct dataset_reading *how, struct error *e)
{
    int rc;

    o->d.labels.element = ELEMENT_INT32;
    o->d.count = count;
    if ((rc = sample_stream_new(&o->d.stream, format, context, count, how->skip_bad, e)) < 0)
        return rc;
    if (split == DATASET_TRAIN || !how->skip_bad)
        return OK;
    if (!(o->d.index = malloc((count ? count : 1) * sizeof *o->d.index)))
        return error_memory(e, o->d.files, "for an index of %zu samples", count);
    return leave_out_broken(o, count, e);
}
