/* dataset make-captions: images composed of items of another data set, with sentences, as COCO lays them out. */
#include "base/file.h"
#include "base/json.h"
#include "base/program/log.h"
#include "base/program/options.h"
#include "base/program/subcommand.h"
#include "dataset/dataset.h"
#include "dataset/tool/command.h"
#include "dataset/tool/scene.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 80, IMAGES_MAX = 10000000 };

struct make_captions {
    const char *data, *data_directory, *grid, *directory;
    int64_t images[2], items, seed; /* images: by enum dataset_split */
    int rows, columns;
    struct log log;
};

static const char *const parts[] = { "train", "val" };

/* What one part is made with. */
struct part {
    const struct make_captions *m;
    enum dataset_split split;
    struct dataset *d;
    char (*names)[NAME_BYTES]; /* (classes) */
    char images[PATH_MAX];     /* the folder */
    uint8_t *item, *pixels;    /* one of each */
    struct buffer list, annotations;
};

/* ---- one image --------------------------------------------------------------------------------------------------- */

/* Puts item k in its cell; grey is spread over the three colours. */
static int put_item(struct part *p, const struct scene *s, int k, size_t *sample, struct error *e)
{
    const struct dataset *d = p->d;
    const size_t h = (size_t)d->height, w = (size_t)d->width, c = (size_t)d->channels;
    const void *from;
    int rc = dataset_read(d, s->items[k].sample, p->item, &from, sample, e);

    for (size_t y = 0; rc == OK && y < h; y++)
        for (size_t x = 0; x < w; x++) {
            const uint8_t *pixel = (const uint8_t *)from + (y * w + x) * c;
            const size_t row = (size_t)s->items[k].row * h + y, column = (size_t)s->items[k].column * w + x;
            uint8_t *to = p->pixels + (row * w * (size_t)s->columns + column) * 3;

            for (size_t i = 0; i < 3; i++)
                to[i] = pixel[c == 3 ? i : 0];
        }
    return rc;
}

/* Not synced one by one: the annotations, which come last, say that all are there. */
static int write_file(const char *path, const void *bytes, size_t n, struct error *e)
{
    FILE *f = fopen(path, "wbe");
    int done;

    if (!f)
        return error_system(e, "%s: cannot be written", path);
    done = fwrite(bytes, 1, n, f) == n;
    done &= fclose(f) == 0;
    return done ? OK : error_system(e, "%s: cannot be written", path);
}

static int write_png(const struct part *p, const char *path, struct error *e)
{
    const struct make_captions *m = p->m;
    png_image image = { .version = PNG_IMAGE_VERSION,
                        .width = (png_uint_32)(p->d->width * m->columns),
                        .height = (png_uint_32)(p->d->height * m->rows),
                        .format = PNG_FORMAT_RGB };
    png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(image), bytes = room;
    void *memory = malloc(room);
    int rc;

    if (!memory)
        return error_memory(e, path, "to write it");
    if (!png_image_write_to_memory(&image, memory, &bytes, 0, p->pixels, 0, NULL))
        rc = error_set(e, ERR_IO, "%s: libpng cannot write it: %s", path, image.message);
    else
        rc = write_file(path, memory, bytes, e);
    free(memory);
    return rc;
}

static void describe(struct part *p, const struct scene *s, const char *const *names, int64_t id, const char *file_name)
{
    struct buffer sentence = BUFFER_EMPTY;

    buffer_format(&p->list, "%s{\"id\":%" PRId64 ",\"file_name\":", id > 1 ? ",\n" : "\n", id);
    json_text(&p->list, file_name);
    buffer_format(&p->list, ",\"width\":%d,\"height\":%d}", p->d->width * s->columns, p->d->height * s->rows);
    for (int i = 0; i < SCENE_SENTENCES; i++) {
        buffer_clear(&sentence);
        scene_sentence(s, i, names, &sentence);
        buffer_format(&p->annotations,
                      "%s{\"id\":%" PRId64 ",\"image_id\":%" PRId64 ",\"caption\":", id > 1 || i ? ",\n" : "\n",
                      (id - 1) * SCENE_SENTENCES + i + 1, id);
        json_text(&p->annotations, buffer_text(&sentence));
        buffer_append_byte(&p->annotations, '}');
    }
    p->annotations.failed |= sentence.failed;
    buffer_release(&sentence);
}

static int make_image(struct part *p, int64_t number, struct error *e)
{
    const struct make_captions *m = p->m;
    const size_t size = dataset_width(p->d) / (size_t)p->d->channels * 3 * (size_t)(m->rows * m->columns);
    const char *names[SCENE_ITEMS_MAX];
    char path[PATH_MAX], file_name[64];
    struct random r;
    struct scene s;
    int rc = OK;

    random_init(&r, (uint64_t)m->seed, RANDOM_CAPTIONS, (uint64_t)p->split, (uint64_t)number);
    scene_draw(&s, m->rows, m->columns, (int)m->items, p->d->count, &r);
    memset(p->pixels, 0, size);
    for (int k = 0; k < s.count && rc == OK; k++) {
        size_t sample = 0;

        rc = put_item(p, &s, k, &sample, e);
        names[k] = p->names[field_integer(&p->d->labels, sample)];
    }
    snprintf(file_name, sizeof file_name, "made_%s_%012" PRId64 ".png", parts[p->split], number + 1);
    if (rc < 0 || (rc = file_join(path, sizeof path, p->images, file_name, e)) < 0 || (rc = write_png(p, path, e)) < 0)
        return rc;
    describe(p, &s, names, number + 1, file_name);
    return OK;
}

/* ---- a part ------------------------------------------------------------------------------------------------------ */

/* "annotations/captions_train.json" under the directory. */
static int annotations_path(const struct make_captions *m, enum dataset_split split, char *out, size_t size,
                            struct error *e)
{
    char name[64];

    snprintf(name, sizeof name, "annotations/captions_%s.json", parts[split]);
    return file_join(out, size, m->directory, name, e);
}

static int write_annotations(struct part *p, struct error *e)
{
    struct buffer all = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc = annotations_path(p->m, p->split, path, sizeof path, e);

    buffer_append_text(&all, "{\"info\":{\"description\":\"made by dataset make-captions\"},\"images\":[");
    buffer_append(&all, buffer_text(&p->list), p->list.length);
    buffer_append_text(&all, "],\n\"annotations\":[");
    buffer_append(&all, buffer_text(&p->annotations), p->annotations.length);
    buffer_append_text(&all, "]}\n");
    if (rc == OK && (!buffer_ok(&all) || !buffer_ok(&p->list) || !buffer_ok(&p->annotations)))
        rc = error_memory(e, path, "to write it");
    if (rc == OK)
        rc = file_replace(NULL, path, all.data, all.length, e);
    buffer_release(&all);
    return rc;
}

static int open_part(struct part *p, struct error *e)
{
    const struct make_captions *m = p->m;
    int rc = dataset_open(&p->d, m->data, m->data_directory, p->split, NULL, e);

    if (rc < 0)
        return rc;
    if (p->d->element != ELEMENT_UINT8 || !p->d->class_names)
        return error_set(e, ERR_ARG, "--data %s: has no images of items with names, such as fashion-mnist has",
                         m->data);
    p->names = calloc((size_t)p->d->classes, sizeof *p->names);
    p->item = malloc(dataset_width(p->d));
    p->pixels = malloc(dataset_width(p->d) * 3 * (size_t)(m->rows * m->columns));
    if (!p->names || !p->item || !p->pixels)
        return error_memory(e, m->directory, "for images");
    for (int k = 0; k < p->d->classes; k++)
        scene_name(p->d->class_names[k], p->names[k], sizeof p->names[k]);
    if ((rc = file_join(p->images, sizeof p->images, m->directory, parts[p->split], e)) < 0)
        return rc;
    return file_make_directories(p->images, e);
}

static int make_part(struct make_captions *m, enum dataset_split split, struct error *e)
{
    struct part p = { .m = m, .split = split };
    int rc = open_part(&p, e);

    for (int64_t i = 0; rc == OK && i < m->images[split]; i++) {
        if ((rc = make_image(&p, i, e)) == OK)
            log_progress(&m->log, "%s: %" PRId64 " of %" PRId64 " images", parts[split], i + 1, m->images[split]);
    }
    log_progress_end(&m->log);
    if (rc == OK)
        rc = write_annotations(&p, e);
    dataset_free(p.d);
    buffer_release(&p.list);
    buffer_release(&p.annotations);
    free(p.names);
    free(p.item);
    free(p.pixels);
    return rc;
}

/* Captions that are there are somebody's data. */
static int check_new(const struct make_captions *m, struct error *e)
{
    char path[PATH_MAX];
    int rc;

    for (int split = 0; split < 2; split++) {
        if ((rc = annotations_path(m, (enum dataset_split)split, path, sizeof path, e)) < 0)
            return rc;
        if (access(path, F_OK) == 0)
            return error_set(e, ERR_ARG, "%s exists; make captions in another directory, or remove this one", path);
    }
    if ((rc = file_join(path, sizeof path, m->directory, "annotations", e)) < 0)
        return rc;
    return file_make_directories(path, e);
}

int command_make_captions(int argc, char **argv)
{
    static char choices[512];
    struct make_captions m = { .data = "fashion-mnist", .grid = "2", .images = { 6000, 1000 }, .items = 2, .seed = 1 };
    struct option table[] = {
        { OPTION_CHOICE, 0, "data", &m.data, "NAME", .help = "Take items from this data set (default: fashion-mnist).",
          .choices = options_choices(dataset_names(), choices, sizeof choices) },
        { OPTION_TEXT, 0, "data-dir", &m.data_directory, "DIR", .help = "Find its files in DIR, as trainer does." },
        { OPTION_INT, 0, "train", &m.images[DATASET_TRAIN], "N", .help = "Make N images for training (default: 6000).",
          .minimum = 1, .maximum = IMAGES_MAX },
        { OPTION_INT, 0, "val", &m.images[DATASET_TEST], "N", .help = "Make N images for evaluation (default: 1000).",
          .minimum = 1, .maximum = IMAGES_MAX },
        { OPTION_TEXT, 0, "grid", &m.grid, "ROWSxCOLUMNS",
          .help = "Put items in cells of such a grid, up to 3x3; one number stands for both (default: 2)." },
        { OPTION_INT, 0, "items", &m.items, "N", .help = "Put 1 to N items in an image (default: 2).", .minimum = 1,
          .maximum = SCENE_ITEMS_MAX },
        { OPTION_INT, 0, "seed", &m.seed, "N", .help = "Draw other images than with another N (default: 1).",
          .minimum = 0, .maximum = (double)INT32_MAX },
    };
    const struct options options = {
        .program = "dataset make-captions",
        .usage = "[OPTION...] DIR",
        .summary =
            "Make images with five captions each in DIR, laid out as COCO is: DIR/annotations/captions_train.json "
            "and captions_val.json, DIR/train and DIR/val. An image has items of another data set in the cells "
            "of a grid, and a caption tells them by a small grammar: 'A bag above a shirt.' Items of val images "
            "are from its test part. The same seed gives the same images.",
        .examples = "  dataset make-captions captions\n"
                    "  dataset make-captions captions --data mnist --data-dir mnist --grid 2x3 --items 3\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .most = 1,
        .wanted = "name one directory;",
    };
    struct error e = { 0 };
    int count = 0, rc = options_parse(&options, argc, argv, &count, &e);

    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    log_init(&m.log, options.program, 2);
    if (rc == OK && (rc = command_grid("--grid", m.grid, SCENE_SIDE_MAX, &m.rows, &m.columns, &e)) == OK) {
        m.directory = argv[1];
        rc = check_new(&m, &e);
    }
    for (int split = 0; split < 2 && rc == OK; split++)
        rc = make_part(&m, (enum dataset_split)split, &e);
    if (rc < 0)
        return command_fail(options.program, &e);
    printf("%s: %" PRId64 " images for training, %" PRId64 " for evaluation, with %d captions each\n", m.directory,
           m.images[DATASET_TRAIN], m.images[DATASET_TEST], SCENE_SENTENCES);
    return EXIT_DONE;
}
