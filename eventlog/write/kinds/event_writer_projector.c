#include "eventlog/write/event_writer.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/number.h"
#include "eventlog/public.h"
#include "eventlog/write/kinds/image_png.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * TensorBoard looks for <run>/projector_config.pbtxt, a ProjectorConfig in protobuf's text format, and for the files it
 * names beside it. Tensors are read as text: lines of numbers with tabs between. Labels have a line of column names
 * only if they have several columns; the page skips blank lines, so the label of a point must not be blank.
 */
enum { SPRITES_SIDE_MAX = 8192, CHANNELS_MAX = 4 };

static int write_file(struct eventlog_writer *w, size_t k, const char *ending, const void *bytes, size_t n,
                      struct error *e)
{
    char name[64], path[PATH_MAX];

    snprintf(name, sizeof name, "projector_%zu%s", k, ending);
    if (file_join(path, sizeof path, event_writer_directory(w), name, e) != OK)
        return ERR_ARG;
    return file_replace(event_writer_io(w), path, bytes, n, e);
}

static int write_text(struct eventlog_writer *w, size_t k, const char *ending, const struct buffer *b, struct error *e)
{
    if (!buffer_ok(b))
        return error_memory(e, NULL, "for projector_%zu%s", k, ending);
    return write_file(w, k, ending, b->data, b->length, e);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int check_text(const char *text, const char *what, struct error *e)
{
    size_t bad = 0;

    if (!text)
        return error_set(e, ERR_ARG, "%s is missing", what);
    if (!utf8_valid(text, strlen(text), &bad))
        return error_set(e, ERR_ARG, "%s '%.80s' is not UTF-8 at byte %zu", what, text, bad);
    if (text[strcspn(text, "\t\n\r")])
        return error_set(e, ERR_ARG, "%s '%.80s' contains a tab or a line break", what, text);
    return OK;
}

static int check_labels(const struct eventlog_embedding *x, struct error *e)
{
    if (!x->labels)
        return OK;
    if (!x->columns || x->columns > SIZE_MAX / x->points || (x->columns > 1 && !x->column_names))
        return error_set(e, ERR_ARG, "labels in %zu columns %s names; one or more columns, and names for more than one",
                         x->columns, x->column_names ? "with" : "without");
    for (size_t c = 0; x->columns > 1 && c < x->columns; c++)
        if (check_text(x->column_names[c], "the name of a column", e) != OK)
            return ERR_ARG;
    for (size_t i = 0; i < x->points; i++) {
        int blank = 1;

        for (size_t c = 0; c < x->columns; c++) {
            const char *label = x->labels[i * x->columns + c];

            if (check_text(label, "a label", e) != OK)
                return error_prefix(e, "point %zu", i);
            blank &= !label[strspn(label, " \v\f")];
        }
        if (blank)
            return error_set(e, ERR_ARG, "the label of point %zu is blank; TensorBoard would skip it", i);
    }
    return OK;
}

/* *across: pictures in a row of the square. */
static int check_sprites(const struct eventlog_embedding *x, size_t *across, struct error *e)
{
    size_t side;

    *across = 0;
    if (!x->sprites)
        return OK;
    if (!x->sprite_channels || x->sprite_channels > CHANNELS_MAX)
        return error_set(e, ERR_ARG, "pictures have 1 to 4 channels, not %zu", x->sprite_channels);
    side = x->sprite_height > x->sprite_width ? x->sprite_height : x->sprite_width;
    if (!x->sprite_height || !x->sprite_width || side > SPRITES_SIDE_MAX)
        return error_set(e, ERR_ARG, "pictures cannot be %zu x %zu", x->sprite_width, x->sprite_height);
    for (*across = 1; *across <= SPRITES_SIDE_MAX && *across * *across < x->points;)
        ++*across;
    if (*across > SPRITES_SIDE_MAX / side)
        return error_set(e, ERR_ARG, "%zu pictures of %zu x %zu do not fit in %d x %d pixels", x->points,
                         x->sprite_width, x->sprite_height, SPRITES_SIDE_MAX, SPRITES_SIDE_MAX);
    return OK;
}

static int projector_check(const struct eventlog_embedding *all, size_t k, size_t *across, struct error *e)
{
    const struct eventlog_embedding *x = &all[k];

    if (check_text(x->name, "its name", e) != OK)
        return ERR_ARG;
    if (!*x->name || strchr(x->name, ':'))
        return error_set(e, ERR_ARG, "its name '%.80s' is empty or contains a colon", x->name);
    for (size_t i = 0; i < k; i++)
        if (!strcmp(all[i].name, x->name))
            return error_set(e, ERR_ARG, "embedding %zu has the name '%.80s' as well", i, x->name);
    if (!x->values || !x->points || x->dimensions < 2 || x->points > (size_t)INT32_MAX ||
        x->dimensions > (size_t)INT32_MAX / x->points)
        return error_set(e, ERR_ARG, "cannot write %zu points of %zu dimensions", x->points, x->dimensions);
    for (size_t i = 0; i < x->points * x->dimensions; i++)
        if (!isfinite(x->values[i]))
            return error_set(e, ERR_ARG, "point %zu is not finite", i / x->dimensions);
    if (check_labels(x, e) != OK)
        return ERR_ARG;
    return check_sprites(x, across, e);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int write_values(struct eventlog_writer *w, size_t k, const struct eventlog_embedding *x, struct error *e)
{
    struct buffer b = BUFFER_EMPTY;
    int rc;

    for (size_t i = 0; i < x->points * x->dimensions; i++) {
        char *text = buffer_reserve(&b, NUMBER_TEXT_MAX + 1);

        if (!text)
            break;
        b.length += (size_t)number_text_float(x->values[i], text);
        buffer_append_byte(&b, (i + 1) % x->dimensions ? '\t' : '\n');
    }
    rc = write_text(w, k, ".tsv", &b, e);
    buffer_release(&b);
    return rc;
}

static void projector_put_row(struct buffer *b, const char *const *cells, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        buffer_append_text(b, cells[c]);
        buffer_append_byte(b, c + 1 < n ? '\t' : '\n');
    }
}

static int write_labels(struct eventlog_writer *w, size_t k, const struct eventlog_embedding *x, struct error *e)
{
    struct buffer b = BUFFER_EMPTY;
    int rc;

    if (x->columns > 1)
        projector_put_row(&b, x->column_names, x->columns);
    for (size_t i = 0; i < x->points; i++)
        projector_put_row(&b, x->labels + i * x->columns, x->columns);
    rc = write_text(w, k, "_labels.tsv", &b, e);
    buffer_release(&b);
    return rc;
}

/* As many rows as columns, the last ones empty: TensorBoard's page finds the row of a picture by dividing by the number
 * of rows instead of columns, so in a grid that is not square points would get each other's pictures. */
static int write_sprites(struct eventlog_writer *w, size_t k, const struct eventlog_embedding *x, size_t across,
                         struct error *e)
{
    size_t line = x->sprite_width * x->sprite_channels, n;
    uint8_t *pixels = calloc(across * x->sprite_height, across * line);
    void *bytes = NULL;
    int rc;

    if (!pixels)
        return error_memory(e, NULL, "for %zu pictures", x->points);
    for (size_t i = 0; i < x->points; i++)
        for (size_t y = 0; y < x->sprite_height; y++)
            memcpy(pixels + ((i / across * x->sprite_height + y) * across + i % across) * line,
                   x->sprites + (i * x->sprite_height + y) * line, line);
    rc = image_png(pixels, across * x->sprite_height, across * x->sprite_width, x->sprite_channels, 0, &bytes, &n, e);
    free(pixels);
    if (rc == OK)
        rc = write_file(w, k, "_sprites.png", bytes, n, e);
    free(bytes);
    return rc;
}

/* A string of protobuf's text format. */
static void put_quoted(struct buffer *b, const char *text)
{
    buffer_append_byte(b, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buffer_append_byte(b, '\\');
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            buffer_format(b, "\\%03o", (unsigned)(unsigned char)*text);
        else
            buffer_append_byte(b, *text);
    }
    buffer_append_byte(b, '"');
}

static void put_config(struct buffer *b, size_t k, const struct eventlog_embedding *x)
{
    buffer_append_text(b, "embeddings {\n  tensor_name: ");
    put_quoted(b, x->name);
    buffer_format(b, "\n  tensor_shape: %zu\n  tensor_shape: %zu\n  tensor_path: \"projector_%zu.tsv\"\n", x->points,
                  x->dimensions, k);
    if (x->labels)
        buffer_format(b, "  metadata_path: \"projector_%zu_labels.tsv\"\n", k);
    if (x->sprites)
        buffer_format(b,
                      "  sprite {\n    image_path: \"projector_%zu_sprites.png\"\n    single_image_dim: %zu\n"
                      "    single_image_dim: %zu\n  }\n",
                      k, x->sprite_width, x->sprite_height);
    buffer_append_text(b, "}\n");
}

static int write_embedding(struct eventlog_writer *w, size_t k, const struct eventlog_embedding *x, size_t across,
                           struct error *e)
{
    int rc = write_values(w, k, x, e);

    if (rc == OK && x->labels)
        rc = write_labels(w, k, x, e);
    if (rc == OK && x->sprites)
        rc = write_sprites(w, k, x, across, e);
    return rc;
}

int eventlog_writer_projector(struct eventlog_writer *w, const struct eventlog_embedding *embeddings, size_t n,
                              struct eventlog_error *error)
{
    struct buffer config = BUFFER_EMPTY;
    struct error e = { 0 };
    char path[PATH_MAX];
    size_t across;
    int rc = event_writer_check_directory(w, &e);

    if (rc == OK && !n)
        rc = error_set(&e, ERR_ARG, "no embeddings");
    for (size_t k = 0; rc == OK && k < n; k++)
        if ((rc = projector_check(embeddings, k, &across, &e)) != OK)
            error_prefix(&e, "embedding %zu", k);
    if (rc != OK)
        error_prefix(&e, "%s", event_writer_directory(w));
    for (size_t k = 0; rc == OK && k < n; k++) {
        put_config(&config, k, &embeddings[k]);
        check_sprites(&embeddings[k], &across, NULL);
        rc = write_embedding(w, k, &embeddings[k], across, &e);
    }
    if (rc == OK && !buffer_ok(&config))
        rc = error_memory(&e, NULL, "for the projector's config");
    if (rc == OK && (rc = file_join(path, sizeof path, event_writer_directory(w), "projector_config.pbtxt", &e)) == OK)
        rc = file_replace(event_writer_io(w), path, config.data, config.length, &e);
    buffer_release(&config);
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
}
