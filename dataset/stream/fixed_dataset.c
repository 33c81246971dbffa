#include "dataset/stream/fixed_dataset.h"

#include "dataset/stream/streamed.h"

#include <stdlib.h>

static int open_all(struct fixed_records **out, int32_t **labels, const struct fixed_layout *layout,
                    const struct data_files *files, const struct dataset_reading *how, struct error *e)
{
    int rc = fixed_records_open(out, layout, (const char *const *)files->paths, files->count, 0, e);

    *labels = NULL;
    if (rc < 0)
        return rc;
    if (!(*labels = malloc(fixed_records_count(*out) * sizeof **labels)))
        return error_memory(e, files->paths[0], "for %zu labels", fixed_records_count(*out));
    return fixed_records_labels(*out, how, *labels, e);
}

int fixed_dataset_classes(const struct fixed_layout *layout, const struct data_files *files,
                          const struct dataset_reading *how, struct error *e)
{
    struct fixed_records *x;
    int32_t *labels;
    int classes = open_all(&x, &labels, layout, files, how, e);

    free(labels);
    fixed_records_free(x);
    return classes;
}

/* The files of the worker, whose paths stay those of `files`. */
static int take_own(struct data_files *own, const struct data_files *files, const struct shard *shard, struct error *e)
{
    *own = (struct data_files){ 0 };
    if (shard->kind == SHARD_FILES && (size_t)shard->index >= files->count)
        return error_set(e, ERR_ARG,
                         "worker %d of %d has no file: there are only %zu; use fewer workers, or share single records",
                         shard->index, shard->count, files->count);
    if (!(own->paths = malloc(files->count * sizeof *own->paths)))
        return error_memory(e, files->paths[0], "for its name");
    for (size_t i = 0; i < files->count; i++)
        if (shard_has_file(shard, i, files->count))
            own->paths[own->count++] = files->paths[i];
    return OK;
}

int fixed_dataset_open(struct dataset_owned *o, const struct fixed_layout *layout, const struct data_files *files,
                       int classes, enum dataset_split split, const struct shard *shard,
                       const struct dataset_reading *how, struct error *e)
{
    static const struct sample_stream_format format = { fixed_records_read, fixed_records_free };
    struct dataset_reading reading = *how;
    struct fixed_records *x;
    struct data_files own;
    int32_t *labels;
    int rc = take_own(&own, files, shard, e);

    reading.classes = classes;
    if (rc == OK && !classes && own.count < files->count) {
        rc = fixed_dataset_classes(layout, files, how, e);
        reading.classes = rc;
    }
    if (rc < 0) {
        free(own.paths);
        return rc;
    }
    rc = open_all(&x, &labels, layout, &own, &reading, e);
    o->labels = labels;
    if (rc < 0) {
        fixed_records_free(x);
        free(own.paths);
        return rc;
    }
    for (size_t i = 0; i < own.count; i++)
        dataset_owned_add_file(o, own.paths[i]);
    free(own.paths);
    o->d.classes = rc;
    o->d.height = layout->height;
    o->d.width = layout->width;
    o->d.channels = layout->channels;
    o->d.element = layout->type == FIXED_UINT8 ? ELEMENT_UINT8 : ELEMENT_FLOAT32;
    return streamed_take(o, &format, x, fixed_records_count(x), split, how, e);
}
