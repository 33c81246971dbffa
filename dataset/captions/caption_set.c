#include "dataset/captions/caption_set.h"

#include "base/array.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
                            "as COCO's, or as 'dataset make-captions' makes them",
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
