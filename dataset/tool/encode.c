/* dataset encode: runs a trained model over the images of captions, tile by tile, and keeps its outputs as features. */
#include "base/clock.h"
#include "base/file.h"
#include "base/program/log.h"
#include "base/program/options.h"
#include "base/program/subcommand.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_match.h"
#include "dataset/captions/caption_set.h"
#include "dataset/stream/image_bilinear.h"
#include "dataset/stream/image_decode.h"
#include "dataset/stream/image_resize.h"
#include "dataset/tool/command.h"
#include "dataset/transform.h"
#include "model/file/model_file.h"
#include "model/network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TILES_MAX = 16, SIDE_MAX = 4096 };

struct encode {
    const char *model_name, *checkpoint, *grid, *directory;
    int64_t side, resize;
    int rows, columns, force;
    struct model_file *file; /* NULL: a built-in model */
    const struct model *model;
    const struct transform *transform;
    struct dataset shape; /* of a tile: what transforms read of a data set */
    struct network *network;
    uint8_t *scaled, *tile; /* (side, side, 3), and in the model's channels */
    float *inputs;          /* (tiles) of the model */
    struct log log;
};

/* ---- the model --------------------------------------------------------------------------------------------------- */

static int find_model(struct encode *c, struct error *e)
{
    int rc;

    if (model_file_is_path(c->model_name)) {
        if ((rc = model_file_open(&c->file, c->model_name, e)) < 0 || (rc = model_file_check_complete(c->file, e)) < 0)
            return rc;
        c->model = &c->file->model;
    } else if (!(c->model = model_find(c->model_name))) {
        const char *near;
        size_t known = 0;

        while (model_names()[known])
            known++;
        near = options_nearest(c->model_name, model_names(), known);
        return error_set(e, ERR_ARG, "--model %.60s: there is no such model%s%s%s", c->model_name,
                         near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
    if (c->model->integers)
        return error_set(e, ERR_ARG, "--model %s: reads words, not images", c->model->name);
    return OK;
}

static int load(struct encode *c, struct error *e)
{
    struct tensor_bundle *b = NULL;
    size_t count, wrong;
    const struct variable *v = network_variables(c->network, &count);
    struct tensor_match *matches = calloc(count + 1, sizeof *matches);
    int rc = matches ? tensor_bundle_open(&b, c->checkpoint, e) : error_memory(e, c->checkpoint, "to read it");

    for (size_t i = 0; i < count && rc == OK; i++)
        matches[i] = (struct tensor_match){
            .name = v[i].name, .rank = v[i].rank, .shape = v[i].shape, .entry = tensor_bundle_find(b, v[i].name)
        };
    if (rc == OK && (wrong = tensor_match(matches, count)) > 0) {
        struct buffer why = BUFFER_EMPTY;

        tensor_match_complain(matches, count, "; ", &why);
        rc = error_set(e, ERR_ARG, "%s is not a checkpoint of model %s: %zu of %zu variables do not fit: %.300s",
                       c->checkpoint, c->model->name, wrong, count, buffer_text(&why));
        buffer_release(&why);
    }
    for (size_t i = 0; i < count && rc == OK; i++)
        rc = tensor_bundle_read_float(b, matches[i].entry,
                                      v[i].offset + (v[i].kind == VARIABLE_WEIGHT ? network_parameters(c->network)
                                                                                  : network_statistics(c->network)),
                                      v[i].count, e);
    tensor_bundle_close(b);
    free(matches);
    return rc;
}

/* --resize gives values from 0 to 1, of which not all transforms can be made. */
static int check_resize(const struct encode *c, struct error *e)
{
    const char *transform = c->model->transform;

    if (!c->resize)
        return OK;
    if (c->side)
        return error_set(e, ERR_ARG, "--resize and --image-size: give one of them");
    if (c->model->channels != 3 || (strcmp(transform, "symmetric") != 0 && strcmp(transform, "unit") != 0))
        return error_set(e, ERR_ARG,
                         "--resize: for models that read three colours with the transform symmetric or unit; %s has %d "
                         "channels and %s",
                         c->model->name, c->model->channels, transform);
    if (c->resize < c->model->height || c->resize < c->model->width)
        return error_set(e, ERR_ARG, "--resize %lld: model %s reads images of %dx%d, which cannot be cut out of that",
                         (long long)c->resize, c->model->name, c->model->height, c->model->width);
    return OK;
}

static int prepare(struct encode *c, struct error *e)
{
    const int tiles = c->rows * c->columns;
    int rc = find_model(c, e);
    size_t size;

    if (rc < 0)
        return rc;
    if (!(c->transform = transform_find(c->model->transform)))
        return error_set(e, ERR_ARG, "model %s: unknown transform '%s'", c->model->name, c->model->transform);
    snprintf(c->shape.name, sizeof c->shape.name, "a tile");
    c->shape.height = c->side                                              ? (int)c->side
                      : c->transform->height > 24 || !c->transform->height ? c->model->height
                                                                           : 32;
    c->shape.width = c->side ? (int)c->side : c->shape.height == 32 ? 32 : c->model->width;
    c->shape.channels = c->model->channels;
    c->shape.element = ELEMENT_UINT8;
    c->shape.count = 1;
    if (c->model->channels != 1 && c->model->channels != 3)
        return error_set(e, ERR_ARG, "model %s reads images of %d channels, not 1 or 3", c->model->name,
                         c->model->channels);
    if ((rc = transform_check(c->transform, &c->shape, e)) < 0)
        return error_prefix(e, "model %s", c->model->name);
    if (!c->transform->height && (c->shape.height != c->model->height || c->shape.width != c->model->width))
        return error_set(e, ERR_ARG, "--image-size %lld: model %s reads images of %dx%d", (long long)c->side,
                         c->model->name, c->model->height, c->model->width);
    if ((rc = check_resize(c, e)) < 0)
        return rc;
    size = (size_t)c->shape.height * (size_t)c->shape.width * 3;
    c->scaled = malloc(size);
    c->tile = malloc(size);
    c->inputs = aligned_alloc(64, ((size_t)tiles * (size_t)c->model->height * (size_t)c->model->width *
                                       (size_t)c->model->channels * sizeof *c->inputs +
                                   63) /
                                      64 * 64);
    if (!c->scaled || !c->tile || !c->inputs)
        return error_memory(e, NULL, "for tiles");
    if ((rc = network_new(&c->network, c->model, tiles, e)) < 0)
        return rc;
    return load(c, e);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* Grey is the mean of the three colours, which of a grey picture is itself. */
static const uint8_t *in_channels(const struct encode *c)
{
    const size_t pixels = (size_t)c->shape.height * (size_t)c->shape.width;

    if (c->shape.channels == 3)
        return c->scaled;
    for (size_t i = 0; i < pixels; i++)
        c->tile[i] = (uint8_t)((c->scaled[3 * i] + c->scaled[3 * i + 1] + c->scaled[3 * i + 2] + 1) / 3);
    return c->tile;
}

/* Cut out of the whole: what is left over of a height or width that the grid does not divide is not used. */
static int cut_tile(const struct encode *c, const struct image *whole, int row, int column, struct image *out,
                    struct error *e)
{
    const int height = whole->height / c->rows, width = whole->width / c->columns;

    *out = (struct image){ height, width, malloc((size_t)height * (size_t)width * 3 + 1) };
    if (!out->pixels)
        return error_memory(e, NULL, "for a tile");
    for (int y = 0; y < height; y++)
        memcpy(out->pixels + (size_t)y * (size_t)width * 3,
               whole->pixels + ((size_t)(row * height + y) * (size_t)whole->width + (size_t)(column * width)) * 3,
               (size_t)width * 3);
    return OK;
}

/* The input of the model, as the tile has it when TensorFlow 1 scales it. */
static void resize_tile(const struct encode *c, const struct image *tile, float *input)
{
    const size_t n = (size_t)c->model->height * (size_t)c->model->width * 3;

    image_bilinear(tile, (int)c->resize, c->model->height, c->model->width, input);
    if (!strcmp(c->model->transform, "symmetric"))
        for (size_t i = 0; i < n; i++)
            input[i] = (input[i] - 0.5f) * 2.0f;
}

static int encode_pixels(struct encode *c, const char *path, const struct image *whole, float *out, struct error *e)
{
    const size_t input = (size_t)c->model->height * (size_t)c->model->width * (size_t)c->model->channels;
    const int tiles = c->rows * c->columns;
    struct field inputs;

    if (whole->height < c->rows || whole->width < c->columns)
        return error_set(e, ERR_ARG, "%s: %dx%d pixels cannot be cut into %dx%d tiles", path, whole->height,
                         whole->width, c->rows, c->columns);
    for (int k = 0; k < tiles; k++) {
        struct image tile;
        int rc = cut_tile(c, whole, k / c->columns, k % c->columns, &tile, e);

        if (rc == OK && c->resize)
            resize_tile(c, &tile, c->inputs + (size_t)k * input);
        else if (rc == OK)
            rc = image_resize(&tile, path, c->shape.height, c->shape.width, c->scaled, e);
        free(tile.pixels);
        if (rc < 0)
            return rc;
        if (!c->resize)
            c->transform->apply(&c->shape, in_channels(c), 0, 0, k, c->inputs + (size_t)k * input);
    }
    inputs = model_input(c->model, c->inputs, tiles);
    network_infer(c->network, &inputs, out);
    return OK;
}

static int encode_image(struct encode *c, const char *path, float *out, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    struct image whole = { 0 };
    int rc = file_read(path, IMAGE_BYTES_MAX, &bytes, e);

    if (rc == OK)
        rc = image_decode((const uint8_t *)bytes.data, bytes.length, path, &whole, e);
    if (rc == OK)
        rc = encode_pixels(c, path, &whole, out, e);
    free(whole.pixels);
    buffer_release(&bytes);
    return rc;
}

/* ---- a part ------------------------------------------------------------------------------------------------------ */

static int encode_all(struct encode *c, const struct caption_paths *paths, const struct caption_file *f,
                      struct error *e)
{
    const size_t width = (size_t)(c->rows * c->columns) * (size_t)c->model->classes * (size_t)model_labels(c->model);
    float *features = calloc(f->image_count + 1, width * sizeof *features);
    int64_t *ids = calloc(f->image_count + 1, sizeof *ids);
    const double began = clock_monotonic();
    char path[PATH_MAX];
    int rc = features && ids ? OK : error_memory(e, paths->features, "for the features of %zu images", f->image_count);

    for (size_t i = 0; i < f->image_count && rc == OK; i++) {
        ids[i] = f->images[i].id;
        if ((rc = file_join(path, sizeof path, paths->images, f->images[i].file_name, e)) == OK)
            rc = encode_image(c, path, features + i * width, e);
        log_progress_work(&c->log, began, (double)(i + 1) / (double)f->image_count, NULL, "%s",
                          file_base_name(paths->images));
    }
    log_progress_end(&c->log);
    if (rc == OK)
        rc = feature_table_write(paths->features, features, ids, f->image_count, width, e);
    if (rc == OK)
        printf("%s: %zu features of each of %zu images\n", paths->features, width, f->image_count);
    free(features);
    free(ids);
    return rc;
}

static int encode_part(struct encode *c, enum dataset_split split, struct error *e)
{
    struct caption_paths paths;
    struct caption_file f;
    char folder[PATH_MAX];
    int rc;

    if ((rc = caption_paths_find(&paths, c->directory, split, e)) < 0)
        return rc;
    if (!c->force && access(paths.features, F_OK) == 0)
        return error_set(e, ERR_ARG, "%s exists, and checkpoints may be trained with it; --force replaces it",
                         paths.features);
    if ((rc = file_join(folder, sizeof folder, c->directory, "features", e)) < 0 ||
        (rc = file_make_directories(folder, e)) < 0 || (rc = caption_file_read(&f, paths.annotations, e)) < 0)
        return rc;
    if (f.image_count == 0)
        rc = error_set(e, ERR_CORRUPT, "%s: has no images", paths.annotations);
    else
        rc = encode_all(c, &paths, &f, e);
    caption_file_release(&f);
    return rc;
}

static void release(struct encode *c)
{
    network_free(c->network);
    model_file_free(c->file);
    free(c->scaled);
    free(c->tile);
    free(c->inputs);
}

int command_encode(int argc, char **argv)
{
    struct encode c = { .grid = "1" };
    struct option table[] = {
        { OPTION_TEXT, 0, "model", &c.model_name, "MODEL",
          .help = "Encode with this model, one of 'trainer models' or a model file; required." },
        { OPTION_TEXT, 0, "checkpoint", &c.checkpoint, "PREFIX",
          .help = "Take its weights from this checkpoint, such as ckpt/model.ckpt-700, of TensorFlow (V2 or V1); "
                  "required." },
        { OPTION_TEXT, 0, "tiles", &c.grid, "ROWSxCOLUMNS",
          .help = "Cut each image into so many tiles, up to 16x16, and encode each of them; one number stands for both "
                  "(default: 1, the whole image)." },
        { OPTION_INT, 0, "image-size", &c.side, "N",
          .help = "Scale each tile to NxN before the model's own transform (default: as the model reads them).",
          .minimum = 1, .maximum = SIDE_MAX },
        { OPTION_INT, 0, "resize", &c.resize, "N",
          .help = "Scale each tile to NxN as TensorFlow 1 does, without regard of its proportions, and cut out the "
                  "middle; im2txt's is 346 (default: scale it, with its proportions, as the model reads it).",
          .minimum = 1, .maximum = SIDE_MAX },
        { OPTION_FLAG, 'f', "force", &c.force, .help = "Replace existing features." },
    };
    const struct options options = {
        .program = "dataset encode",
        .usage = "--model MODEL --checkpoint PREFIX [OPTION...] DIR",
        .summary =
            "Run a trained model, whose weights stay as they are, over the images of the captions in DIR, and keep "
            "what it gives as their features: DIR/features/PART.safetensors with \"features\" (images, numbers) "
            "and \"image_id\" (images), for the training part and the test part. show_and_tell reads them. Any "
            "other program may write such files instead. With tiles, the features of one tile follow those of "
            "the tile before, row by row.",
        .examples = "  dataset encode captions --model lenet --checkpoint ckpt/model.ckpt-1000 --tiles 2\n"
                    "  dataset encode coco --model inception_v3 --resize 346 --checkpoint inception_v3.ckpt\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .most = 1,
        .wanted = "name one directory of captions;",
    };
    struct error e = { 0 };
    int count = 0, rc = options_parse(&options, argc, argv, &count, &e);

    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    log_init(&c.log, options.program, 2);
    c.directory = argv[1];
    if (rc == OK && (!c.model_name || !c.checkpoint))
        rc = error_set(&e, ERR_ARG, "name the encoder with --model and --checkpoint");
    if (rc == OK && (rc = command_grid("--tiles", c.grid, TILES_MAX, &c.rows, &c.columns, &e)) == OK)
        rc = prepare(&c, &e);
    for (int split = 0; split < 2 && rc == OK; split++)
        rc = encode_part(&c, (enum dataset_split)split, &e);
    release(&c);
    return rc < 0 ? command_fail(options.program, &e) : EXIT_DONE;
}
