/*
 * image_folder.c - a folder tree of JPEG and PNG files as a data set: the name of a file's folder is its class. The
 * files stay on disk; of each only its name and class are in memory.
 *
 * Parts. If the directory has a folder "train", this holds the classes of the training part, and "test" (or "val")
 * those of the test part, which may only be classes of "train". Else the directory itself holds the classes, for both
 * parts: then trainer and evaluator are given directories of their own.
 *
 * Order. Classes have the order of their names; files that of their names, then of their classes, so that files that
 * are numbered over all classes keep the order of their numbers. Other files, hidden ones, and folders in a class are
 * left out.
 *
 * Size. All are brought to one size (image_resize.h): that asked for, or that of the first image of the training part.
 */
#include "dataset/dataset_kind.h"

#include "base/array.h"
#include "base/buffer.h"
#include "dataset/stream/image_decode.h"
#include "dataset/stream/image_resize.h"
#include "dataset/stream/streamed.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

struct folder_file {
    char *name;
    int class;
};

struct image_folder {
    char directory[PATH_MAX];
    int height, width;
    char **classes; /* in the order of their names */
    size_t class_count, class_room;
    struct folder_file *files;
    size_t count, room;
};

static void folder_free(void *context)
{
    struct image_folder *f = context;

    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++)
        free(f->files[i].name);
    for (size_t i = 0; i < f->class_count; i++)
        free(f->classes[i]);
    free(f->files);
    free(f->classes);
    free(f);
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_file(const void *a, const void *b)
{
    const struct folder_file *one = a, *other = b;
    const int names = strcmp(one->name, other->name);

    return names ? names : (one->class > other->class) - (one->class < other->class);
}

static int is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int is_image(const char *name)
{
    const char *end = strrchr(name, '.');

    return end && end != name && (!strcasecmp(end, ".jpg") || !strcasecmp(end, ".jpeg") || !strcasecmp(end, ".png"));
}

static int list_classes(struct image_folder *f, struct error *e)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *d = opendir(f->directory);
    int rc = OK;

    if (!d)
        return error_system(e, "%s: cannot list", f->directory);
    while (rc == OK && (entry = readdir(d))) {
        if (entry->d_name[0] == '.')
            continue;
        if ((rc = file_join(path, sizeof path, f->directory, entry->d_name, e)) < 0 || !is_directory(path))
            continue;
        if (!ARRAY_ROOM(f->classes, f->class_room, f->class_count + 1) ||
            !(f->classes[f->class_count] = strdup(entry->d_name)))
            rc = error_memory(e, f->directory, "to list it");
        else
            f->class_count++;
    }
    closedir(d);
    if (rc == OK && f->class_count == 0)
        return error_set(e, ERR_ARG, "%s: no folders in it; need one for each class, with its JPEG and PNG files",
                         f->directory);
    if (rc == OK)
        qsort(f->classes, f->class_count, sizeof *f->classes, by_text);
    return rc;
}

static int list_files(struct image_folder *f, int class, struct error *e)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *d;
    int rc;

    if ((rc = file_join(path, sizeof path, f->directory, f->classes[class], e)) < 0)
        return rc;
    if (!(d = opendir(path)))
        return error_system(e, "%s: cannot list", path);
    while (rc == OK && (entry = readdir(d))) {
        if (entry->d_name[0] == '.' || !is_image(entry->d_name))
            continue;
        if (!ARRAY_ROOM(f->files, f->room, f->count + 1) || !(f->files[f->count].name = strdup(entry->d_name)))
            rc = error_memory(e, path, "to list it");
        else
            f->files[f->count++].class = class;
    }
    closedir(d);
    return rc;
}

static int folder_list(struct image_folder **out, const char *directory, struct error *e)
{
    struct image_folder *f = calloc(1, sizeof *f);
    int rc;

    if (!(*out = f))
        return error_memory(e, directory, "to list it");
    if (snprintf(f->directory, sizeof f->directory, "%s", directory) >= (int)sizeof f->directory)
        return error_set(e, ERR_ARG, "%.100s...: path too long", directory);
    rc = list_classes(f, e);
    for (size_t i = 0; rc == OK && i < f->class_count; i++)
        rc = list_files(f, (int)i, e);
    if (rc == OK && f->count == 0)
        return error_set(e, ERR_ARG, "%s: no JPEG or PNG files in its folders", f->directory);
    if (rc == OK)
        qsort(f->files, f->count, sizeof *f->files, by_file);
    return rc;
}

/* The classes of the test part get the numbers that training gave them. */
static int renumber(struct image_folder *test, const struct image_folder *train, struct error *e)
{
    for (size_t i = 0; i < test->count; i++) {
        char *const *name = &test->classes[test->files[i].class];
        char *const *found = bsearch(name, train->classes, train->class_count, sizeof *train->classes, by_text);

        if (!found)
            return error_set(e, ERR_ARG, "%s: class %.100s is not one of those in %s", test->directory, *name,
                             train->directory);
        test->files[i].class = (int)(found - train->classes);
    }
    qsort(test->files, test->count, sizeof *test->files, by_file);
    return OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* What only is named like an image is a broken one. A file that cannot be read now is not. */
static int check_file(const char *path, struct error *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return (errno == ENOENT || errno == ELOOP) && lstat(path, &st) == 0
                   ? error_set(e, ERR_CORRUPT, "%s: broken image: a link that leads to nothing", path)
                   : OK;
    if (!S_ISREG(st.st_mode))
        return error_set(e, ERR_CORRUPT, "%s: broken image: %s, and no file", path,
                         S_ISDIR(st.st_mode) ? "a directory" : "a pipe or a device");
    if (st.st_size > IMAGE_BYTES_MAX)
        return error_set(e, ERR_CORRUPT, "%s: broken image: larger than %d MiB", path, IMAGE_BYTES_MAX >> 20);
    return OK;
}

static int load(const struct image_folder *f, size_t i, int size_only, struct image *image, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    char folder[PATH_MAX], path[PATH_MAX];
    int rc;

    *image = (struct image){ 0 };
    if ((rc = file_join(folder, sizeof folder, f->directory, f->classes[f->files[i].class], e)) < 0 ||
        (rc = file_join(path, sizeof path, folder, f->files[i].name, e)) < 0)
        return rc;
    if ((rc = check_file(path, e)) == OK && (rc = file_read(path, IMAGE_BYTES_MAX, &bytes, e)) == OK)
        rc = (size_only ? image_decode_size : image_decode)((const uint8_t *)bytes.data, bytes.length, path, image, e);
    buffer_release(&bytes);
    return rc;
}

static int folder_read(const void *context, size_t i, void *out, struct error *e)
{
    const struct image_folder *f = context;
    struct image image;
    int rc = load(f, i, 0, &image, e);

    if (rc == OK)
        rc = image_resize(&image, f->files[i].name, f->height, f->width, out, e);
    free(image.pixels);
    return rc;
}

/* The size asked for, or that of the first image whose head can be read. */
static int choose_size(const struct image_folder *train, struct dataset *d, const struct dataset_reading *how,
                       struct error *e)
{
    struct image image;
    int rc = OK;

    d->channels = 3;
    d->height = how->height;
    d->width = how->width;
    for (size_t i = 0; d->height == 0 && i < train->count; i++) {
        rc = load(train, i, 1, &image, e);
        if (rc < 0 && (rc != ERR_CORRUPT || !how->skip_bad))
            return rc;
        d->height = rc == OK ? image.height : 0;
        d->width = image.width;
    }
    return d->height ? OK : rc;
}

/* ---- the data set ------------------------------------------------------------------------------------------------ */

/* The class names and their pointers in one piece, and their hash. */
static int name_classes(struct dataset_owned *o, const struct image_folder *f, struct error *e)
{
    size_t bytes = f->class_count * sizeof(char *), at = bytes;
    const char **names;

    for (size_t i = 0; i < f->class_count; i++)
        bytes += strlen(f->classes[i]) + 1;
    if (!(o->names = names = malloc(bytes)))
        return error_memory(e, f->directory, "for the names of %zu classes", f->class_count);
    o->d.vocabulary = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < f->class_count; i++) {
        const size_t n = strlen(f->classes[i]) + 1;

        names[i] = memcpy((char *)o->names + at, f->classes[i], n);
        for (size_t k = 0; k < n; k++)
            o->d.vocabulary = (o->d.vocabulary ^ (unsigned char)f->classes[i][k]) * 1099511628211u;
        at += n;
    }
    o->d.class_names = names;
    o->d.classes = (int)f->class_count;
    return OK;
}

/* --shard files: of n workers each has every n-th file. */
static int take_share(struct image_folder *f, const struct shard *shard, struct error *e)
{
    size_t kept = 0;

    if (f->count > INT_MAX)
        return error_set(e, ERR_ARG, "%s: %zu images are too many", f->directory, f->count);
    for (size_t i = 0; i < f->count; i++)
        if (shard_has_file(shard, i, f->count))
            f->files[kept++] = f->files[i];
        else
            free(f->files[i].name);
    if (kept == 0)
        error_set(e, ERR_ARG, "worker %d of %d has no file: %s has only %zu images", shard->index, shard->count,
                  f->directory, f->count);
    f->count = kept;
    return kept ? OK : ERR_ARG;
}

static int make_stream(struct dataset_owned *o, struct image_folder *f, enum dataset_split split,
                       const struct dataset_reading *how, struct error *e)
{
    static const struct sample_stream_format format = { folder_read, folder_free };
    const size_t count = f->count;
    int32_t *labels = o->labels = malloc(count * sizeof *labels);
    int rc = labels ? OK : error_memory(e, f->directory, "for %zu labels", count);

    if (rc < 0) {
        folder_free(f);
        return rc;
    }
    for (size_t i = 0; i < count; i++)
        labels[i] = f->files[i].class;
    f->height = o->d.height;
    f->width = o->d.width;
    dataset_owned_add_file(o, f->directory);
    return streamed_take(o, &format, f, count, split, how, e);
}

static int read_folder(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                       enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                       struct error *e)
{
    struct image_folder *train = NULL, *test = NULL, *used;
    char path[PATH_MAX], other[PATH_MAX];
    int rc, parts;

    (void)kind;
    if ((rc = file_join(path, sizeof path, directory, "train", e)) < 0)
        return rc;
    parts = is_directory(path);
    if ((rc = folder_list(&train, parts ? path : directory, e)) == OK && parts && split == DATASET_TEST) {
        if ((rc = file_join(other, sizeof other, directory, "test", e)) == OK && !is_directory(other))
            rc = file_join(other, sizeof other, directory, "val", e);
        if (rc == OK && (rc = folder_list(&test, other, e)) == OK)
            rc = renumber(test, train, e);
    }
    if (rc == OK && (rc = name_classes(o, train, e)) == OK)
        rc = choose_size(train, &o->d, how, e);
    if (rc == OK && split == DATASET_TRAIN)
        rc = take_share(train, shard, e);
    used = test ? test : train;
    if (rc < 0)
        goto done;
    if (test) { /* files have classes of train, which must stay as long as they */
        char **classes = test->classes;
        const size_t count = test->class_count;

        test->classes = train->classes;
        test->class_count = train->class_count;
        train->classes = classes;
        train->class_count = count;
    }
    if (used == train)
        train = NULL;
    else
        test = NULL;
    rc = make_stream(o, used, split, how, e);
done:
    folder_free(train);
    folder_free(test);
    return rc;
}

const struct dataset_kind dataset_kind_folder = {
    .how_to_get = "it needs folders with the names of the classes, and JPEG or PNG files in them",
    .read = read_folder,
};
