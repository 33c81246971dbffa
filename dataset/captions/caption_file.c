#include "dataset/captions/caption_file.h"

#include "base/buffer.h"
#include "base/file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* An image by its id. */
struct image_place {
    int64_t id;
    size_t index;
};

static int image_by_id(const void *a, const void *b)
{
    const struct image_place *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static int by_image(const void *a, const void *b)
{
    const struct caption *x = a, *y = b;

    if (x->image != y->image)
        return x->image < y->image ? -1 : 1;
    return (x->text > y->text) - (x->text < y->text); /* texts are in the order of the file */
}

/* The array `what` of the root; NULL: there is none. */
static const json_t *find_array(const json_t *root, const char *name, const char *what, struct error *e)
{
    const json_t *array = json_object_get(root, what);

    if (json_is_array(array))
        return array;
    error_set(e, ERR_CORRUPT, "%s: has no array \"%s\"; is it an annotation file of captions, as COCO's?", name, what);
    return NULL;
}

static int bad(const char *name, const char *array, size_t i, const char *why, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s: %s[%zu]: %s", name, array, i, why);
}

/* A name that leads out of the folder of images would let a file read any other one. */
static int is_plain_name(const json_t *text)
{
    const char *name = json_string_value(text);

    return name && *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static size_t text_bytes(const json_t *images, const json_t *annotations)
{
    size_t bytes = 1;

    for (size_t i = 0; i < json_array_size(images); i++)
        bytes += json_string_length(json_object_get(json_array_get(images, i), "file_name")) + 1;
    for (size_t i = 0; i < json_array_size(annotations); i++)
        bytes += json_string_length(json_object_get(json_array_get(annotations, i), "caption")) + 1;
    return bytes;
}

static int take_images(struct caption_file *f, const char *name, const json_t *images, struct image_place *places,
                       char **to, struct error *e)
{
    for (size_t i = 0; i < json_array_size(images); i++) {
        const json_t *image = json_array_get(images, i);
        const json_t *id = json_object_get(image, "id"), *file_name = json_object_get(image, "file_name");

        if (!json_is_integer(id))
            return bad(name, "images", i, "has no integer \"id\"", e);
        if (!is_plain_name(file_name))
            return bad(name, "images", i, "has no \"file_name\" that is the name of a file, without a folder", e);
        places[i] = (struct image_place){ json_integer_value(id), i };
        f->images[i] = (struct caption_image){ places[i].id, *to };
        *to = stpcpy(*to, json_string_value(file_name)) + 1;
    }
    f->image_count = json_array_size(images);
    qsort(places, f->image_count, sizeof *places, image_by_id);
    for (size_t i = 1; i < f->image_count; i++)
        if (places[i].id == places[i - 1].id)
            return bad(name, "images", places[i].index, "has the \"id\" of an earlier image", e);
    return OK;
}

static int take_captions(struct caption_file *f, const char *name, const json_t *annotations,
                         const struct image_place *places, char **to, struct error *e)
{
    for (size_t i = 0; i < json_array_size(annotations); i++) {
        const json_t *annotation = json_array_get(annotations, i);
        const json_t *id = json_object_get(annotation, "image_id"), *text = json_object_get(annotation, "caption");
        const struct image_place key = { json_integer_value(id), 0 }, *found;

        if (!json_is_integer(id))
            return bad(name, "annotations", i, "has no integer \"image_id\"", e);
        if (!json_is_string(text))
            return bad(name, "annotations", i, "has no \"caption\" that is a text", e);
        if (!(found = bsearch(&key, places, f->image_count, sizeof *places, image_by_id)))
            return bad(name, "annotations", i, "is of an \"image_id\" that no image has", e);
        f->captions[i] = (struct caption){ found->index, *to };
        *to = stpcpy(*to, json_string_value(text)) + 1;
    }
    f->count = json_array_size(annotations);
    if (f->count)
        qsort(f->captions, f->count, sizeof *f->captions, by_image);
    return OK;
}

static int take_all(struct caption_file *f, const char *name, const json_t *root, struct error *e)
{
    const json_t *images = find_array(root, name, "images", e), *annotations;
    struct image_place *places;
    char *to;
    int rc;

    if (!images || !(annotations = find_array(root, name, "annotations", e)))
        return ERR_CORRUPT;
    f->images = calloc(json_array_size(images) + 1, sizeof *f->images);
    f->captions = calloc(json_array_size(annotations) + 1, sizeof *f->captions);
    places = calloc(json_array_size(images) + 1, sizeof *places);
    f->texts = to = malloc(text_bytes(images, annotations));
    if (!f->images || !f->captions || !places || !f->texts)
        rc = error_memory(e, name, "for its captions");
    else if ((rc = take_images(f, name, images, places, &to, e)) == OK)
        rc = take_captions(f, name, annotations, places, &to, e);
    free(places);
    return rc;
}

int caption_file_parse(struct caption_file *out, const char *name, const char *json, size_t n, struct error *e)
{
    json_error_t why;
    json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &why);
    int rc;

    *out = (struct caption_file){ 0 };
    if (!root && json_error_code(&why) == json_error_out_of_memory)
        return error_memory(e, name, "to read it");
    if (!root)
        return error_set(e, ERR_CORRUPT, "%s: byte %d: is no JSON: %s", name, why.position, why.text);
    rc = take_all(out, name, root, e);
    json_decref(root);
    if (rc < 0)
        caption_file_release(out);
    return rc;
}

int caption_file_read(struct caption_file *out, const char *path, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc = file_read(path, CAPTION_FILE_BYTES_MAX, &text, e);

    *out = (struct caption_file){ 0 };
    if (rc == OK)
        rc = caption_file_parse(out, path, buffer_text(&text), text.length, e);
    buffer_release(&text);
    return rc;
}

void caption_file_release(struct caption_file *f)
{
    free(f->images);
    free(f->captions);
    free(f->texts);
    *f = (struct caption_file){ 0 };
}
