#include "dataset/dataset.h"

#include "base/buffer.h"
#include "base/program/options.h"
#include "dataset/dataset_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define KIND_ADDRESS(kind, name) &dataset_kind_##kind,
#define KIND_TEXT(kind, name) name,
static const struct dataset_kind *const kinds[] = { DATASET_KINDS(KIND_ADDRESS) };
static const char *const names[] = { DATASET_KINDS(KIND_TEXT) NULL };

enum { KINDS = sizeof kinds / sizeof *kinds };

/* --shard files: a worker takes the files f of the sorted list with f mod count = index; at least one. */
static int check_files(const char *name, const struct shard *shard, int files, struct error *e)
{
    if (files && shard->kind == SHARD_FILES && shard->index >= files)
        return error_set(e, ERR_ARG,
                         "worker %d of %d has no file: the data of %s has %d file%s; use at most %d worker%s, or share "
                         "single records instead of files",
                         shard->index, shard->count, name, files, files == 1 ? "" : "s", files, files == 1 ? "" : "s");
    return OK;
}

const char *const *dataset_names(void)
{
    return names;
}

/* The index in the table; KINDS: unknown. */
static size_t find_kind(const char *name, struct error *e)
{
    const char *near = options_nearest(name, names, KINDS);
    struct buffer known = BUFFER_EMPTY;
    size_t i = 0;

    while (i < KINDS && strcmp(names[i], name) != 0)
        i++;
    if (i < KINDS)
        return i;
    for (size_t k = 0; k < KINDS; k++)
        buffer_format(&known, "%s%s", k ? ", " : "", names[k]);
    error_set(e, ERR_ARG, "unknown data set \"%.60s\"%s%s%s; known: %s", name, near ? ", did you mean " : "",
              near ? near : "", near ? "?" : "", buffer_text(&known));
    buffer_release(&known);
    return i;
}

/* Lets labels be those of the first d->count samples at that place. */
static void set_labels(struct dataset *d, const void *first)
{
    d->labels.data = first;
    d->labels.shape[0] = d->count < INT32_MAX ? (int32_t)d->count : INT32_MAX;
}

int dataset_open(struct dataset **out, const char *name, const char *directory, enum dataset_split split,
                 const struct shard *shard, struct error *e)
{
    return dataset_open_as(out, name, directory, split, shard, NULL, e);
}

int dataset_open_as(struct dataset **out, const char *name, const char *directory, enum dataset_split split,
                    const struct shard *shard, const struct dataset_reading *how, struct error *e)
{
    static const struct dataset_reading as_they_are = { 0 };
    static const struct shard everything = { SHARD_RECORDS, 1, 0, SHARD_MODULO };
    const struct dataset_kind *kind;
    struct dataset_owned *o;
    struct stat st;
    size_t place;
    int rc;

    *out = NULL;
    if (!shard)
        shard = &everything;
    if (!how)
        how = &as_they_are;
    if ((place = find_kind(name, e)) == KINDS)
        return ERR_ARG;
    kind = kinds[place];
    if (dataset_reading_check(how, kind->takes, name, e) < 0)
        return ERR_ARG;
    if (shard->count < 1 || shard->index < 0 || shard->index >= shard->count)
        return error_set(e, ERR_ARG, "worker %d of %d: must be from 0 to the number of workers less 1", shard->index,
                         shard->count);
    if (!directory || !*directory)
        directory = kind->usual_place;
    if (kind->made && directory)
        return error_set(e, ERR_ARG, "--data-dir: %s data are read from no files; leave it out", name);
    if (!kind->made && !directory)
        return error_set(e, ERR_ARG, "%s has no default directory; give one (%s)", name, kind->how_to_get);
    if (!(o = calloc(1, sizeof *o)))
        return error_memory(e, directory, "for it");
    snprintf(o->d.name, sizeof o->d.name, "%s", name);
    o->d.classes = kind->classes;
    o->d.class_names = kind->class_names;
    o->d.element = o->d.labels.element = ELEMENT_UINT8;
    if ((rc = check_files(name, shard, kind->files[split], e)) == OK && directory && stat(directory, &st) < 0)
        rc = error_system(e, "%s: no such data directory (%s)", directory, kind->how_to_get);
    if (rc < 0 || (rc = kind->read(o, kind, directory, split, shard, how, e)) < 0) {
        dataset_free(&o->d);
        return rc;
    }
    if (how->height && (o->d.height != how->height || o->d.width != how->width)) {
        rc = error_set(e, ERR_ARG, "--image-size %dx%d: %s has %s of %dx%d, which are not scaled", how->height,
                       how->width, name, dataset_unit(&o->d), o->d.height, o->d.width);
        dataset_free(&o->d);
        return rc;
    }
    o->d.input = o->input;
    o->d.stride = o->d.stride ? o->d.stride : dataset_width(&o->d);
    o->d.labels.rank = o->d.padded ? 2 : 1;
    o->d.labels.shape[1] = o->d.height; /* of captions; others have one each */
    set_labels(&o->d, o->labels ? o->labels : o->d.labels.data);
    *out = &o->d;
    return OK;
}

static int lay_out(struct dataset_owned *o, int length, struct error *e)
{
    const int rc = o->lay_out(o, length, e);

    if (rc == OK)
        set_labels(&o->d, o->labels);
    return rc;
}

int dataset_sequences(struct dataset *d, int length, struct error *e)
{
    struct dataset_owned *o = (struct dataset_owned *)(void *)d; /* d is its first member */
    const size_t words = d->count + dataset_width(d);

    if (!o->lay_out && (d->element != ELEMENT_INT32 || d->stride != 1))
        return error_set(e, ERR_ARG, "%s has no text, of which the model reads %d words in a row", d->name, length);
    if (!o->lay_out && words <= (size_t)length)
        return error_set(e, ERR_ARG, "%s has only %zu words; a sample takes %d and the next one", d->name, words,
                         length);
    if (!o->lay_out)
        d->count = (words - 1) / (size_t)length;
    d->stride = (size_t)length;
    d->height = length;
    d->width = d->channels = 1;
    d->labels.rank = 2;
    d->labels.shape[1] = length;
    if (o->lay_out)
        return lay_out(o, length, e);
    set_labels(d, (const int32_t *)d->input + 1);
    return OK;
}

/* The names of all classes, of which the last ones occur nowhere. */
static int add_classes(struct dataset *d, int classes, struct error *e)
{
    struct dataset_owned *o = (struct dataset_owned *)(void *)d;
    const char **all = realloc(o->names, (size_t)classes * sizeof *all);

    if (!all)
        return error_memory(e, d->name, "for the names of %d classes", classes);
    for (int k = 0; k < classes; k++)
        all[k] = k < d->classes ? d->class_names[k] : "";
    o->names = all;
    d->class_names = all;
    d->classes = classes;
    return OK;
}

int dataset_fit(struct dataset *d, int features, int classes, struct error *e)
{
    if (features && !d->read_features)
        return error_set(e, ERR_ARG, "%s has no features of images, of which the model reads %d; use --data captions",
                         d->name, features);
    if (features && !d->features)
        return error_set(e, ERR_ARG,
                         "%s has no features of its images yet, of which the model reads %d; 'dataset encode' "
                         "makes them",
                         d->name, features);
    if (features && d->features > features)
        return error_set(e, ERR_ARG, "%s has %d features of an image, and the model reads only %d", d->name,
                         d->features, features);
    d->features = features;
    return d->padded && d->classes < classes ? add_classes(d, classes, e) : OK;
}

int dataset_hold_out(struct dataset *d, size_t n, struct error *e)
{
    if (n >= d->count)
        return error_set(e, ERR_ARG, "the training data of %s have only %zu %s", d->name, d->count, dataset_unit(d));
    d->first += n;
    if (!d->stream)
        d->input = dataset_sample(d, n);
    d->count -= n;
    set_labels(d, field_at(&d->labels, n));
    return OK;
}

int dataset_read(const struct dataset *d, size_t i, void *room, const void **sample, size_t *used, struct error *e)
{
    size_t in_stream;
    int rc;

    *used = i;
    *sample = d->stream ? room : dataset_sample(d, i);
    if (!d->stream)
        return OK;
    if (d->index) /* all of these could be read */
        return sample_stream_read(d->stream, d->index[d->first + i], 1, 0, room, &in_stream, e);
    rc = sample_stream_read(d->stream, d->first, d->count, i, room, &in_stream, e);
    *used = in_stream;
    return rc;
}

void dataset_free(struct dataset *d)
{
    struct dataset_owned *o = (struct dataset_owned *)(void *)d; /* d is its first member */

    if (!o)
        return;
    if (o->release)
        o->release(o);
    free(o->input);
    free(o->labels);
    free(o->names);
    free(o->d.index);
    sample_stream_free(o->d.stream);
    free(o);
}
