#include "model/file/model_file.h"

#include "base/buffer.h"
#include "base/file.h"
#include "model/file/model_file_internal.h"
#include "model/file/model_lines.h"
#include "model/file/model_settings.h"
#include "model/network_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* Where a mistake is: "net.model: line 7: convolution of 24x24x3". */
static void set_place(char *place, size_t size, const struct model_file *f, const struct model_file_call *call,
                      const struct network_builder *b, const int *values)
{
    int used = snprintf(place, size, "%s: line %d: %s of", f->path, call->line, call->kind->name);

    for (int k = 0; k < call->input_count && used > 0 && (size_t)used < size; k++) {
        const struct shape x = network_builder_shape(b, values[call->inputs[k]]);

        used += snprintf(place + used, size - (size_t)used, "%s %dx%dx%d", k ? " and" : "", x.height, x.width,
                         x.channels);
    }
}

static int build(struct network_builder *b, struct error *e)
{
    const struct model_file *f = b->model->file;
    int *values = calloc(f->call_count + 1, sizeof *values);
    char place[240];

    if (!values)
        return error_memory(e, f->path, "to build its network");
    values[0] = network_builder_images(b);
    b->place = place;
    for (size_t k = 0; k < f->call_count && !b->error.code; k++) {
        const struct model_file_call *call = &f->calls[k];
        int in[CALL_INPUTS_MAX];

        for (int i = 0; i < call->input_count; i++)
            in[i] = values[call->inputs[i]];
        set_place(place, sizeof place, f, call, b, values);
        values[k + 1] = call->kind->build(b, in, call->input_count, call->name, call->arguments);
    }
    b->place = NULL;
    free(values);
    return OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int has_batch_norm(const struct model_file *f)
{
    for (size_t k = 0; k < f->call_count; k++)
        if (!strcmp(f->calls[k].kind->name, "batch_norm"))
            return 1;
    return 0;
}

static int check_end(const struct model_file *f, struct error *e)
{
    for (size_t k = 0; k < f->call_count; k++) {
        const int last = k + 1 == f->call_count, is_end = !strcmp(f->calls[k].kind->name, "cross_entropy");

        if (is_end && !last)
            return error_set(e, ERR_ARG, "%s: line %d: %s comes after the cross_entropy, which must be the last layer",
                             f->path, f->calls[k + 1].line, f->calls[k + 1].kind->name);
        if (last && !is_end)
            return error_set(e, ERR_ARG, "%s: line %d: the last layer is %s; end with cross_entropy", f->path,
                             f->calls[k].line, f->calls[k].kind->name);
    }
    return f->call_count ? OK : error_set(e, ERR_ARG, "%s: it has no layers", f->path);
}

/* The labels of a sample are those of its words. */
static int check_labels(const struct model_file *f, struct error *e)
{
    const struct model *m = &f->model;

    if (!m->integers)
        return error_set(e, ERR_ARG, "%s: labels is for the task next_word; an image has one", f->path);
    if (m->height && (m->height != m->labels || m->width != 1 || m->channels != 1))
        return error_set(e, ERR_ARG, "%s: with labels %d the input is %dx1x1, not %dx%dx%d", f->path, m->labels,
                         m->labels, m->height, m->width, m->channels);
    return OK;
}

int model_file_parse(struct model_file **out, const char *path, const char *text, size_t length, struct error *e)
{
    struct model_file *f = calloc(1, sizeof *f);
    int rc;

    if (!f || !(f->path = strdup(path)) || !(f->text = malloc(length + 1))) {
        rc = error_memory(e, path, "to read it");
        goto fail;
    }
    if (length)
        memcpy(f->text, text, length);
    f->length = length;
    f->model = (struct model){ .name = file_base_name(f->path), .file = f, .build = build };
    f->recipe = (struct recipe){
        .model = f->model.name, .optimizer = "momentum", .learning_rate = 0.01, .momentum = 0.9, .batch_size = 128
    };
    if ((rc = model_reader_read(f, e)) < 0 || (rc = check_end(f, e)) < 0)
        goto fail;
    if (!f->model.integers && !f->model.transform)
        f->model.transform = "unit";
    if (f->model.integers && (f->model.transform || f->recipe.transform)) {
        rc = error_set(e, ERR_ARG, "%s: the task next_word reads no images, which transform and augment are for", path);
        goto fail;
    }
    if (f->model.features && !f->model.integers) {
        rc = error_set(e, ERR_ARG, "%s: features are for the task next_word; an image has none beside it", path);
        goto fail;
    }
    if (f->model.labels && (rc = check_labels(f, e)) < 0)
        goto fail;
    if (f->model.statistics_decay == 0 && has_batch_norm(f))
        f->model.statistics_decay = 0.9;
    *out = f;
    return OK;
fail:
    model_file_free(f);
    return rc;
}

int model_file_open(struct model_file **out, const char *path, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc = file_read(path, MODEL_FILE_BYTES_MAX, &text, e);

    if (rc == OK)
        rc = model_file_parse(out, path, buffer_text(&text), text.length, e);
    buffer_release(&text);
    return rc;
}

void model_file_free(struct model_file *f)
{
    if (!f)
        return;
    free(f->path);
    free(f->text);
    free(f->calls);
    free(f);
}

void model_file_complete(struct model_file *f, int height, int width, int channels, int classes)
{
    if (!f->model.height) {
        f->model.height = height;
        f->model.width = width;
        f->model.channels = channels;
    }
    if (!f->model.classes)
        f->model.classes = classes;
}

int model_file_check_complete(const struct model_file *f, struct error *e)
{
    if (!f->model.height)
        return error_set(e, ERR_ARG,
                         "%s leaves the shape of its input to the data; say it here, too, or add a line "
                         "'input HEIGHTxWIDTHxCHANNELS'",
                         f->path);
    if (!f->model.classes)
        return error_set(e, ERR_ARG,
                         "%s leaves the number of classes to the data; say it here, too, or add a line "
                         "'classes N'",
                         f->path);
    return OK;
}

int model_file_is_path(const char *name)
{
    return strpbrk(name, "/.") != NULL;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static int is_of_recipe(const char *line)
{
    const size_t n = strcspn(line, " ");
    size_t count;
    const struct model_setting *table = model_settings(&count);

    for (size_t k = 0; k < count; k++)
        if (table[k].of_recipe && strlen(table[k].name) == n && !memcmp(table[k].name, line, n))
            return 1;
    return 0;
}

/* The next line that is not of the recipe; the count if there is none. */
static size_t next_of_model(const struct model_lines *l, size_t k)
{
    while (k < l->count && is_of_recipe(model_lines_text(l, k)))
        k++;
    return k;
}

static int compare(const struct model_lines *a, const struct model_lines *b, struct error *e)
{
    size_t i = next_of_model(a, 0), j = next_of_model(b, 0);

    for (; i < a->count && j < b->count; i = next_of_model(a, i + 1), j = next_of_model(b, j + 1))
        if (strcmp(model_lines_text(a, i), model_lines_text(b, j)) != 0) {
            error_set(e, ERR_ARG, "line %d is '%.100s', and was '%.100s'", a->items[i].number, model_lines_text(a, i),
                      model_lines_text(b, j));
            return 0;
        }
    if (i < a->count)
        error_set(e, ERR_ARG, "line %d, '%.100s', is new", a->items[i].number, model_lines_text(a, i));
    else if (j < b->count)
        error_set(e, ERR_ARG, "the line '%.100s' is missing", model_lines_text(b, j));
    return i >= a->count && j >= b->count;
}

int model_file_same(const char *a, size_t a_length, const char *b, size_t b_length, struct error *e)
{
    struct model_lines x = { 0 }, y = { 0 };
    int rc = model_lines_read(&x, a, a_length, e);

    if (rc == OK)
        rc = model_lines_read(&y, b, b_length, e);
    if (rc == OK)
        rc = compare(&x, &y, e);
    else
        rc = 0;
    model_lines_release(&x);
    model_lines_release(&y);
    return rc;
}
