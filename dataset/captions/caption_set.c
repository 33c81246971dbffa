#include "dataset/captions/caption_set.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- caption file ------------------------------------------------------------------------------------------------ */

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

/* ---- feature table ----------------------------------------------------------------------------------------------- */

static const char features_name[] = "features", ids_name[] = "image_id";

struct row_place {
    int64_t id;
    size_t row;
};

struct feature_table {
    char path[PATH_MAX];
    int fd;
    uint64_t begin; /* byte of the first row in the file */
    size_t rows, width;
    struct row_place *places; /* (rows) in the order of their ids */
};

static int row_by_id(const void *a, const void *b)
{
    const struct row_place *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static const struct safetensors_tensor *find_tensor(const struct safetensors_header *h, const char *name,
                                                    const char *dtype, int rank)
{
    for (size_t i = 0; i < h->count; i++)
        if (!strcmp(h->tensors[i].name, name))
            return h->tensors[i].rank == rank && !strcmp(h->tensors[i].dtype, dtype) ? &h->tensors[i] : NULL;
    return NULL;
}

static int take_ids(struct feature_table *t, const struct safetensors *s, const struct safetensors_tensor *tensor,
                    struct error *e)
{
    int64_t *ids = malloc(t->rows * sizeof *ids + 1);
    int rc;

    t->places = calloc(t->rows + 1, sizeof *t->places);
    rc = ids && t->places ? safetensors_read(s, tensor, 0, ids, t->rows * sizeof *ids, e)
                          : error_memory(e, t->path, "for the ids of %zu images", t->rows);
    for (size_t i = 0; rc == OK && i < t->rows; i++)
        t->places[i] = (struct row_place){ ids[i], i };
    free(ids);
    if (rc < 0)
        return rc;
    qsort(t->places, t->rows, sizeof *t->places, row_by_id);
    for (size_t i = 1; i < t->rows; i++)
        if (t->places[i].id == t->places[i - 1].id)
            return error_set(e, ERR_CORRUPT, "%s: rows %zu and %zu are of the same image, %lld", t->path,
                             t->places[i - 1].row, t->places[i].row, (long long)t->places[i].id);
    return OK;
}

static int take_tensors(struct feature_table *t, const struct safetensors *s, struct error *e)
{
    const struct safetensors_header *h = safetensors_contents(s);
    const struct safetensors_tensor *features = find_tensor(h, features_name, "F32", 2);
    const struct safetensors_tensor *ids = find_tensor(h, ids_name, "I64", 1);
    unsigned char head[SAFETENSORS_HEAD];
    uint64_t length = 0;

    if (!features || !ids || features->shape[0] != ids->shape[0])
        return error_set(e, ERR_CORRUPT,
                         "%s: must have \"features\", F32 of (images, width), and \"image_id\", I64 of (images)",
                         t->path);
    if (features->shape[0] < 1 || features->shape[1] < 1 || features->shape[1] > FEATURE_TABLE_WIDTH_MAX)
        return error_set(e, ERR_CORRUPT, "%s: has %lld rows of %lld features; must be at least 1 of 1 to %d", t->path,
                         (long long)features->shape[0], (long long)features->shape[1], FEATURE_TABLE_WIDTH_MAX);
    if ((t->fd = open(t->path, O_RDONLY | O_CLOEXEC)) < 0 || file_read_at(t->fd, head, sizeof head, 0) != sizeof head)
        return error_system(e, "%s: cannot be read", t->path);
    for (size_t i = sizeof head; i-- > 0;)
        length = length << 8 | head[i];
    t->begin = SAFETENSORS_HEAD + length + features->begin;
    t->rows = (size_t)features->shape[0];
    t->width = (size_t)features->shape[1];
    return take_ids(t, s, ids, e);
}

int feature_table_open(struct feature_table **out, const char *path, struct error *e)
{
    struct feature_table *t = calloc(1, sizeof *t);
    struct safetensors *s = NULL;
    int rc;

    *out = NULL;
    if (!t)
        return error_memory(e, path, "to read it");
    t->fd = -1;
    if (snprintf(t->path, sizeof t->path, "%s", path) >= (int)sizeof t->path)
        rc = error_set(e, ERR_ARG, "%.100s...: path too long", path);
    else if ((rc = safetensors_open(&s, path, e)) == OK)
        rc = take_tensors(t, s, e);
    safetensors_close(s);
    if (rc < 0) {
        feature_table_close(t);
        return rc;
    }
    *out = t;
    return OK;
}

void feature_table_close(struct feature_table *t)
{
    if (!t)
        return;
    if (t->fd >= 0)
        close(t->fd);
    free(t->places);
    free(t);
}

size_t feature_table_width(const struct feature_table *t)
{
    return t->width;
}

int feature_table_find(const struct feature_table *t, int64_t image_id, size_t *row)
{
    size_t low = 0, high = t->rows;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (t->places[middle].id < image_id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == t->rows || t->places[low].id != image_id)
        return 0;
    *row = t->places[low].row;
    return 1;
}

int feature_table_read(const struct feature_table *t, size_t row, float *out, struct error *e)
{
    const size_t bytes = t->width * sizeof *out;
    const ssize_t n = file_read_at(t->fd, out, bytes, t->begin + row * bytes);

    if (n < 0)
        return error_system(e, "%s: row %zu cannot be read", t->path, row);
    if ((size_t)n < bytes)
        return error_set(e, ERR_CORRUPT, "%s: ends in row %zu; it has become shorter", t->path, row);
    for (size_t k = 0; k < t->width; k++)
        if (!isfinite(out[k]))
            return error_set(e, ERR_CORRUPT, "%s: row %zu: feature %zu is not finite", t->path, row, k);
    return OK;
}

int feature_table_write(const char *path, const float *features, const int64_t *image_ids, size_t rows, size_t width,
                        struct error *e)
{
    const int64_t shape[] = { (int64_t)rows, (int64_t)width };
    struct safetensors_tensor tensors[] = {
        { .name = features_name, .name_length = sizeof features_name - 1, .dtype = "F32", .rank = 2, .shape = shape },
        { .name = ids_name, .name_length = sizeof ids_name - 1, .dtype = "I64", .rank = 1, .shape = shape },
    };
    struct safetensors_writer *w = NULL;
    int rc = safetensors_layout(tensors, 2, e);

    if (rc < 0 || (rc = safetensors_writer_open(&w, NULL, path, tensors, 2, NULL, 0, e)) < 0)
        return rc;
    for (int i = 0; i < 2 && rc == OK; i++)
        rc = tensors[i].rank == 2 ? safetensors_writer_append(w, features, rows * width * sizeof *features, e)
                                  : safetensors_writer_append(w, image_ids, rows * sizeof *image_ids, e);
    if (rc == OK)
        return safetensors_writer_finish(w, e);
    safetensors_writer_abandon(w);
    return rc;
}

/* ---- word list --------------------------------------------------------------------------------------------------- */

static int compare_words(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* qsort has no context: an entry has its word with it. */
struct entry {
    const char *word;
    int32_t number;
};

static int by_word(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int order = strcmp(x->word, y->word);

    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 1;

    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Makes a word of each line: the bytes before its first blank. */
static int take_lines(struct word_list *l, const char *name, size_t n, struct error *e)
{
    for (size_t at = 0; at < n;) {
        const size_t line = strcspn(l->text + at, "\n"), word = strcspn(l->text + at, " \t\r\n");

        if (at + line < n && l->text[at + line] == '\0')
            return error_set(e, ERR_CORRUPT, "%s: line %d: has a NUL byte; it is no vocabulary", name, l->count + 1);
        if (word == 0)
            return error_set(e, ERR_CORRUPT, "%s: line %d: begins with no word; wanted \"WORD COUNT\"", name,
                             l->count + 1);
        if (l->count == WORD_LIST_WORDS_MAX)
            return error_set(e, ERR_CORRUPT, "%s: has more than %d words", name, WORD_LIST_WORDS_MAX);
        l->text[at + line] = l->text[at + word] = '\0';
        l->words[l->count++] = l->text + at;
        at += line + 1;
    }
    return OK;
}

static int sort(struct word_list *l, const char *name, struct error *e)
{
    struct entry *entries = calloc((size_t)l->count + 1, sizeof *entries);
    int rc = OK;

    if (!entries)
        return error_memory(e, name, "for its words");
    for (int32_t i = 0; i < l->count; i++)
        entries[i] = (struct entry){ l->words[i], i };
    qsort(entries, (size_t)l->count, sizeof *entries, by_word);
    for (int32_t i = 0; i < l->count && rc == OK; i++) {
        l->order[i] = entries[i].number;
        if (i && !strcmp(entries[i].word, entries[i - 1].word))
            rc = error_set(e, ERR_CORRUPT, "%s: line %d: the word '%.60s' is in line %d, too", name,
                           entries[i].number + 1, entries[i].word, entries[i - 1].number + 1);
    }
    free(entries);
    return rc;
}

/* -1: it is not in the list. */
static int32_t find(const struct word_list *l, const char *text, size_t length)
{
    int32_t low = 0, high = l->count;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        const char *word = l->words[l->order[middle]];
        const int order = compare_words(text, length, word, strlen(word));

        if (order == 0)
            return l->order[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

static int find_special(struct word_list *l, const char *name, const char *word, int32_t *number, struct error *e)
{
    if ((*number = find(l, word, strlen(word))) >= 0)
        return OK;
    return error_set(e, ERR_CORRUPT,
                     "%s: has no line for %s, which %s a sentence; 'dataset vocabulary' makes such a file", name, word,
                     !strcmp(word, WORD_LIST_START) ? "begins" : "ends");
}

/* FNV-1a of the words, each with a newline. */
static uint64_t hash_words(const struct word_list *l)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (int32_t i = 0; i < l->count; i++) {
        for (const char *c = l->words[i]; *c; c++)
            h = (h ^ (unsigned char)*c) * 0x100000001b3u;
        h = (h ^ '\n') * 0x100000001b3u;
    }
    return h ? h : 1;
}

int word_list_parse(struct word_list *out, const char *name, const char *text, size_t n, struct error *e)
{
    const size_t lines = count_lines(text, n);
    int rc;

    *out = (struct word_list){ 0 };
    out->words = calloc(lines + 1, sizeof *out->words);
    out->order = calloc(lines + 1, sizeof *out->order);
    out->text = malloc(n + 1);
    if (!out->words || !out->order || !out->text) {
        rc = error_memory(e, name, "for its words");
        goto done;
    }
    memcpy(out->text, text, n);
    out->text[n] = '\0';
    if ((rc = take_lines(out, name, n, e)) < 0 || (rc = sort(out, name, e)) < 0 ||
        (rc = find_special(out, name, WORD_LIST_START, &out->start, e)) < 0 ||
        (rc = find_special(out, name, WORD_LIST_END, &out->end, e)) < 0)
        goto done;
    if ((out->unknown = find(out, WORD_LIST_UNKNOWN, sizeof WORD_LIST_UNKNOWN - 1)) < 0) {
        out->words[out->unknown = out->count] = WORD_LIST_UNKNOWN;
        out->count++;
        rc = sort(out, name, e);
    }
    out->hash = hash_words(out);
done:
    if (rc < 0)
        word_list_release(out);
    return rc;
}

static int word_list_read(struct word_list *out, const char *path, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc = file_read(path, WORD_LIST_BYTES_MAX, &text, e);

    *out = (struct word_list){ 0 };
    if (rc == OK)
        rc = word_list_parse(out, path, buffer_text(&text), text.length, e);
    buffer_release(&text);
    return rc;
}

void word_list_release(struct word_list *l)
{
    free(l->words);
    free(l->order);
    free(l->text);
    *l = (struct word_list){ 0 };
}

int32_t word_list_find(const struct word_list *l, struct word w)
{
    const int32_t number = find(l, w.text, w.length);

    return number < 0 ? l->unknown : number;
}

/* ---- caption set ------------------------------------------------------------------------------------------------- */

/* ---- where the files are ----------------------------------------------------------------------------------------- */

/* 1: "captions_train2014.json"; part: "train2014". */
static int is_part(const char *name, enum dataset_split split, char *part, size_t size)
{
    static const char head[] = "captions_", tail[] = ".json";
    const size_t n = strlen(name), around = sizeof head + sizeof tail - 2;

    if (n <= around || strncmp(name, head, sizeof head - 1) != 0 || strcmp(name + n - (sizeof tail - 1), tail) != 0)
        return 0;
    snprintf(part, size, "%.*s", (int)(n - around), name + sizeof head - 1);
    return split == DATASET_TRAIN ? !strncmp(part, "train", 5) : !strncmp(part, "val", 3) || !strncmp(part, "test", 4);
}

static int find_part(const char *annotations, enum dataset_split split, char *part, size_t size, struct error *e)
{
    char name[NAME_MAX + 1];
    struct dirent *entry;
    DIR *d = opendir(annotations);
    int found = 0;

    if (!d)
        return error_system(e,
                            "%s: cannot list; captions are in annotations/captions_train*.json and captions_val*.json, "
                            "as COCO's, or as demo/make_captions.py makes them",
                            annotations);
    while ((entry = readdir(d)))
        if (is_part(entry->d_name, split, name, sizeof name)) {
            found++;
            snprintf(part, size, "%s", name);
        }
    closedir(d);
    if (found == 1)
        return OK;
    return error_set(e, ERR_IO, "%s: has %d files captions_%s*.json; need one", annotations, found,
                     split == DATASET_TRAIN ? "train" : "val");
}

int caption_paths_find(struct caption_paths *out, const char *directory, enum dataset_split split, struct error *e)
{
    char annotations[PATH_MAX], features[PATH_MAX], part[NAME_MAX + 1], name[NAME_MAX + 32];
    int rc;

    if ((rc = file_join(annotations, sizeof annotations, directory, "annotations", e)) < 0 ||
        (rc = file_join(features, sizeof features, directory, "features", e)) < 0 ||
        (rc = file_join(out->vocabulary, sizeof out->vocabulary, directory, CAPTION_SET_VOCABULARY, e)) < 0 ||
        (rc = find_part(annotations, split, part, sizeof part, e)) < 0)
        return rc;
    snprintf(name, sizeof name, "captions_%s.json", part);
    if ((rc = file_join(out->annotations, sizeof out->annotations, annotations, name, e)) < 0 ||
        (rc = file_join(out->images, sizeof out->images, directory, part, e)) < 0)
        return rc;
    snprintf(name, sizeof name, "%s.safetensors", part);
    return file_join(out->features, sizeof out->features, features, name, e);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static int take_words(struct caption_set *s, struct error *e)
{
    size_t count = 0, room = 0;

    if (!(s->starts = calloc(s->file.count + 1, sizeof *s->starts)))
        return error_memory(e, s->paths.annotations, "for its captions");
    for (size_t i = 0; i < s->file.count; i++) {
        char *text = s->file.captions[i].text;
        size_t at = 0, n = strlen(text);
        struct word w;
        int rc;

        s->starts[i] = count;
        while ((rc = words_next(text, n, &at, &w, e)) > 0) {
            if (!ARRAY_ROOM(s->tokens, room, count + 1))
                return error_memory(e, s->paths.annotations, "for its captions");
            s->tokens[count++] = word_list_find(&s->words, w);
        }
        if (rc < 0)
            return error_prefix(e, "%s: caption %zu", s->paths.annotations, i);
        s->longest = count - s->starts[i] > s->longest ? count - s->starts[i] : s->longest;
    }
    s->starts[s->file.count] = count;
    return OK;
}

/* ---- features ---------------------------------------------------------------------------------------------------- */

static int take_features(struct caption_set *s, int needed, struct error *e)
{
    int rc;

    if (access(s->paths.features, F_OK) < 0 && errno == ENOENT)
        return needed ? error_system(e, "%s: cannot be read; 'dataset encode' makes it", s->paths.features) : OK;
    if ((rc = feature_table_open(&s->features, s->paths.features, e)) < 0)
        return rc;
    if (!(s->rows = malloc((s->file.image_count + 1) * sizeof *s->rows)))
        return error_memory(e, s->paths.features, "for its rows");
    for (size_t i = 0; i < s->file.image_count; i++)
        if (!feature_table_find(s->features, s->file.images[i].id, &s->rows[i]))
            s->rows[i] = SIZE_MAX;
    for (size_t i = 0; i < s->file.count; i++)
        if (s->rows[s->file.captions[i].image] == SIZE_MAX)
            return error_set(e, ERR_CORRUPT, "%s: has no features of image %lld, which %s has; encode the images again",
                             s->paths.features, (long long)s->file.images[s->file.captions[i].image].id,
                             s->paths.annotations);
    return OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

int caption_set_open(struct caption_set **out, const char *directory, enum dataset_split split, int features_needed,
                     struct error *e)
{
    struct caption_set *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s)
        return error_memory(e, directory, "for its captions");
    if ((rc = caption_paths_find(&s->paths, directory, split, e)) < 0)
        goto fail;
    if (access(s->paths.vocabulary, F_OK) < 0) {
        rc = error_system(e, "%s: cannot be read; 'dataset vocabulary %s' makes it", s->paths.vocabulary, directory);
        goto fail;
    }
    if ((rc = word_list_read(&s->words, s->paths.vocabulary, e)) < 0 ||
        (rc = caption_file_read(&s->file, s->paths.annotations, e)) < 0 || (rc = take_words(s, e)) < 0 ||
        (rc = take_features(s, features_needed, e)) < 0)
        goto fail;
    if (!s->file.count) {
        rc = error_set(e, ERR_CORRUPT, "%s: has no captions", s->paths.annotations);
        goto fail;
    }
    *out = s;
    return OK;
fail:
    caption_set_free(s);
    return rc;
}

void caption_set_free(struct caption_set *s)
{
    if (!s)
        return;
    caption_file_release(&s->file);
    word_list_release(&s->words);
    feature_table_close(s->features);
    free(s->rows);
    free(s->tokens);
    free(s->starts);
    free(s);
}

void caption_set_of_image(const struct caption_set *s, size_t image, size_t *first, size_t *end)
{
    size_t low = 0, high = s->file.count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (s->file.captions[middle].image < image)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    while (low < s->file.count && s->file.captions[low].image == image)
        low++;
    *end = low;
}
