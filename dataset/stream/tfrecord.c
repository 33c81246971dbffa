/*
 * tfrecord.c - TFRecord files of tf.train.Example as a data set: images with a label each, JPEG, PNG or pixels. The
 * records stay on disk; of each only its place and its label are in memory, 20 bytes.
 *
 * Files are those of data_files.h. The order of the samples is that of the files' names and of the records in each.
 *
 * Labels are integers, how->first_label the first class. Unless how->classes says how many there are, the greatest one
 * of the training part does, so these are read when the data set is opened, and nothing else of large records.
 *
 * Pixels (format "raw", or a beginning that is neither JPEG's nor PNG's) are bytes of (height, width, channels);
 * without these parts they have the size asked for. The channels of the data set are those of the first sample that can
 * be read: 3, unless its pixels have another number.
 */
#include "base/array.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/record_frame.h"
#include "dataset/dataset_kind.h"
#include "dataset/stream/data_files.h"
#include "dataset/stream/example.h"
#include "dataset/stream/image_decode.h"
#include "dataset/stream/image_resize.h"
#include "dataset/stream/streamed.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- record index ------------------------------------------------------------------------------------------------ */

/*
 * Where the records of TFRecord files are (base/record_frame.h), so that any of them can be read at
 * any time. Making the index reads each header and checks its CRC, which the next header's place depends on; the data's
 * CRC is checked whenever a record is read.
 *
 * What is broken has a place in the index, too: a damaged or incomplete record, or a piece of a file in which no header
 * is right (then the index continues at the next right one). Reading it is the error that names it.
 */

struct record_place {
    uint64_t offset; /* of its header in the file */
    uint32_t length; /* of its data; RECORD_NONE: here is no record */
    uint32_t file;
};

#define RECORD_NONE UINT32_MAX

struct record_index {
    const char *const *paths; /* borrowed, like the files' bytes: files that are replaced meanwhile are not noticed */
    size_t files;
    int *fds; /* (files), if so many may be open; NULL: each is opened again for each read */
    struct record_place *places;
    size_t count, room;
};

enum { OPEN_MOST = 1024, OPEN_OTHERS = 64, WINDOW = 1 << 16 };

/* A file that is indexed, and a window of it. */
struct indexed_file {
    const char *path;
    int fd;
    uint64_t size, at; /* at: where the window begins */
    size_t have;
    uint8_t window[WINDOW];
};

/* RECORD_HEADER bytes at offset, of which the file has so many; NULL: they cannot be read. */
static const uint8_t *header_at(struct indexed_file *f, uint64_t offset, struct error *e)
{
    ssize_t got;

    if (offset < f->at || offset - f->at > f->have || f->have - (offset - f->at) < RECORD_HEADER) {
        const uint64_t left = f->size - offset;
        /* After a long record little will be wanted of what follows, but its header. */
        const size_t n = offset - f->at < WINDOW && left > WINDOW ? WINDOW : left < 4096 ? (size_t)left : 4096;

        if ((got = file_read_at(f->fd, f->window, n, offset)) < (ssize_t)RECORD_HEADER) {
            if (got < 0)
                error_system(e, "%s: cannot read", f->path);
            else
                error_set(e, ERR_IO, "%s: byte %llu: the file was truncated while it was read", f->path,
                          (unsigned long long)(offset + (uint64_t)got));
            return NULL;
        }
        f->at = offset;
        f->have = (size_t)got;
    }
    return f->window + (offset - f->at);
}

static int fits(const struct indexed_file *f, uint64_t offset, uint64_t length)
{
    return f->size - offset >= RECORD_OVERHEAD && length <= f->size - offset - RECORD_OVERHEAD;
}

/* Lists what begins at *offset, and moves it behind. */
static int list_one(struct record_index *x, struct indexed_file *f, uint32_t file, uint64_t *offset, struct error *e)
{
    struct record_place place = { *offset, RECORD_NONE, file };
    const uint8_t *header;
    uint64_t length;
    int right = 0;

    if (!ARRAY_ROOM(x->places, x->room, x->count + 1))
        return error_memory(e, f->path, "for an index of its records");
    while (!right && f->size - *offset >= RECORD_HEADER) {
        if (!(header = header_at(f, *offset, e)))
            return e && e->code ? e->code : ERR_IO;
        right = record_header_right(header, &length) && fits(f, *offset, length);
        if (!right)
            ++*offset;
    }
    if (right && *offset == place.offset) {
        place.length = (uint32_t)length;
        *offset += RECORD_OVERHEAD + length;
    } else if (!right) {
        *offset = f->size;
    }
    x->places[x->count++] = place;
    return OK;
}

static int list_file(struct record_index *x, uint32_t file, size_t most, struct error *e)
{
    struct indexed_file *f = malloc(sizeof *f);
    uint64_t offset = 0;
    struct stat st;
    int rc = OK;

    if (!f)
        return error_memory(e, x->paths[file], "for reading it");
    f->path = x->paths[file];
    f->at = f->have = 0;
    if ((f->fd = open(f->path, O_RDONLY | O_CLOEXEC)) < 0 || fstat(f->fd, &st) < 0) {
        rc = error_system(e, "%s: cannot open", f->path);
    } else {
        f->size = (uint64_t)st.st_size;
        if (file_read_at(f->fd, f->window, 3, 0) == 3 && !memcmp(f->window, "\x1f\x8b\x08", 3))
            rc = error_set(e, ERR_ARG, "%s: compressed with gzip, so no record can be found in it; unpack it (gunzip)",
                           f->path);
    }
    while (rc == OK && offset < f->size && x->count < most)
        rc = list_one(x, f, file, &offset, e);
    if (x->fds)
        x->fds[file] = f->fd;
    else if (f->fd >= 0)
        close(f->fd);
    free(f);
    return rc;
}

/* Lists the records of the files, at most `most`. ERR_IO: a file cannot be read. ERR_ARG: one is compressed. On OK or
 * not, record_index_release() it. */
static int record_index_make(struct record_index *out, const char *const *paths, size_t files, size_t most,
                             struct error *e)
{
    int rc = OK;

    *out = (struct record_index){ .paths = paths, .files = files };
    if (files <= OPEN_MOST && file_open_room(files + OPEN_OTHERS)) {
        if (!(out->fds = malloc((files ? files : 1) * sizeof *out->fds)))
            return error_memory(e, NULL, "for %zu files", files);
        for (size_t i = 0; i < files; i++)
            out->fds[i] = -1;
    }
    for (size_t i = 0; i < files && rc == OK && out->count < most; i++)
        rc = list_file(out, (uint32_t)i, most, e);
    return rc;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* n bytes of the file at offset. */
static int read_piece(const struct record_index *x, uint32_t file, uint64_t offset, void *out, size_t n,
                      struct error *e)
{
    const char *path = x->paths[file];
    const int own = !x->fds || x->fds[file] < 0, fd = own ? open(path, O_RDONLY | O_CLOEXEC) : x->fds[file];
    ssize_t got = fd < 0 ? -1 : file_read_at(fd, out, n, offset);
    int rc = OK;

    if (fd < 0)
        return error_system(e, "%s: cannot open", path);
    if (got < 0)
        rc = error_system(e, "%s: cannot read", path);
    else if ((size_t)got < n)
        rc = error_set(e, ERR_CORRUPT, "%s: byte %llu: the file ends in a record, but did not when it was listed", path,
                       (unsigned long long)(offset + (uint64_t)got));
    if (own)
        close(fd);
    return rc;
}

static int no_record(const struct record_index *x, const struct record_place *p, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s: byte %llu: broken record: its length is damaged, or the file ends in it",
                     x->paths[p->file], (unsigned long long)p->offset);
}

/* Reads n bytes of record i's data from `from` on, without a check, into out (n). ERR_CORRUPT as above. */
static int record_index_part(const struct record_index *x, size_t i, size_t from, uint8_t *out, size_t n,
                             struct error *e)
{
    const struct record_place *p = &x->places[i];

    if (p->length == RECORD_NONE)
        return no_record(x, p, e);
    return read_piece(x, p->file, p->offset + RECORD_HEADER + from, out, n, e);
}

/* Reads record i's data into `out`, which is emptied first. ERR_CORRUPT: it is broken; the sentence names the file and
 * the byte. Any number of threads may read. */
static int record_index_read(const struct record_index *x, size_t i, struct buffer *out, struct error *e)
{
    const struct record_place *p = &x->places[i];
    const size_t whole = (size_t)p->length + RECORD_OVERHEAD;
    uint64_t length;
    uint8_t *bytes;
    int rc;

    buffer_clear(out);
    if (p->length == RECORD_NONE)
        return no_record(x, p, e);
    if (!(bytes = (uint8_t *)buffer_reserve(out, whole)))
        return error_memory(e, x->paths[p->file], "for a record of %zu bytes", (size_t)p->length);
    if ((rc = read_piece(x, p->file, p->offset, bytes, whole, e)) < 0)
        return rc;
    if (!record_header_right(bytes, &length) || length != p->length ||
        get_le32(bytes + RECORD_HEADER + p->length) != crc32c_mask(crc32c(bytes + RECORD_HEADER, p->length)))
        return error_set(e, ERR_CORRUPT, "%s: byte %llu: broken record: its CRC is wrong", x->paths[p->file],
                         (unsigned long long)p->offset);
    memmove(bytes, bytes + RECORD_HEADER, p->length);
    out->length = p->length;
    return OK;
}

static void record_index_release(struct record_index *x)
{
    for (size_t i = 0; x->fds && i < x->files; i++)
        if (x->fds[i] >= 0)
            close(x->fds[i]);
    free(x->fds);
    free(x->places);
    *x = (struct record_index){ 0 };
}

/* ---- tfrecord ---------------------------------------------------------------------------------------------------- */

enum { SIDE_MOST = 1 << 16, CHANNELS_MOST = 1024, ALL_PARTS = (1 << EXAMPLE_PARTS) - 1, LABEL_NONE = -1 };

struct tfrecord {
    struct data_files files;
    struct record_index index;
    struct example_keys keys;
    int64_t first_label;
    int classes, height, width, channels; /* of the data set; 0: not known yet */
};

/* What a sample's picture is made of. */
struct picture {
    const uint8_t *pixels; /* (height, width, channels); in the record, or own; NULL: only the size is wanted */
    uint8_t *own;          /* by malloc() */
    int height, width, channels;
};

static void tfrecord_free(void *context)
{
    struct tfrecord *t = context;

    if (!t)
        return;
    record_index_release(&t->index);
    data_files_release(&t->files);
    free(t);
}

/* ---- one sample -------------------------------------------------------------------------------------------------- */

/* "FILE: record at byte N", by which a sample is named. */
static const char *name_of(const struct tfrecord *t, size_t i, char *out, size_t size)
{
    const struct record_place *p = &t->index.places[i];

    snprintf(out, size, "%s: record at byte %llu", t->files.paths[p->file], (unsigned long long)p->offset);
    return out;
}

static int broken(const char *name, struct error *e, const char *problem)
{
    return error_set(e, ERR_CORRUPT, "%s: broken sample: %s", name, problem);
}

/* The class of x; ERR_CORRUPT: it has none. */
static int class_of(const struct tfrecord *t, const struct example *x, const char *name, int32_t *out, struct error *e)
{
    const int64_t label = x->number[EXAMPLE_LABEL];
    const int64_t most = t->first_label + (t->classes ? t->classes : DATASET_CLASSES_MAX) - 1;

    if (!(x->found & 1u << EXAMPLE_LABEL))
        return error_set(e, ERR_CORRUPT,
                         "%s: broken sample: it has no \"%.*s\"; --example-keys label=KEY names another", name,
                         (int)t->keys.of[EXAMPLE_LABEL].length, t->keys.of[EXAMPLE_LABEL].text);
    if (label < t->first_label || label > most)
        return error_set(e, ERR_CORRUPT, "%s: broken sample: its label %lld is not in %lld..%lld%s", name,
                         (long long)label, (long long)t->first_label, (long long)most,
                         label < t->first_label ? "; --first-label is that of the first class" : "");
    *out = (int32_t)(label - t->first_label);
    return OK;
}

static int is_raw(const struct example *x)
{
    const uint8_t *image = x->bytes[EXAMPLE_IMAGE];
    const size_t n = x->length[EXAMPLE_IMAGE];

    if (x->found & 1u << EXAMPLE_FORMAT && x->length[EXAMPLE_FORMAT] == 3 &&
        !strncasecmp((const char *)x->bytes[EXAMPLE_FORMAT], "raw", 3))
        return 1;
    return n < 3 || (memcmp(image, "\xff\xd8\xff", 3) != 0 && memcmp(image, "\x89PN", 3) != 0);
}

/* The number of a part that is there and within [1, most]; else `otherwise`. */
static int64_t side_of(const struct example *x, enum example_part part, int64_t most, int64_t otherwise)
{
    const int64_t n = x->number[part];

    return x->found & 1u << part ? (n >= 1 && n <= most ? n : 0) : otherwise;
}

static int take_raw(const struct tfrecord *t, const struct example *x, const char *name, struct picture *out,
                    struct error *e)
{
    const size_t n = x->length[EXAMPLE_IMAGE];
    const int64_t height = side_of(x, EXAMPLE_HEIGHT, SIDE_MOST, t->height);
    const int64_t width = side_of(x, EXAMPLE_WIDTH, SIDE_MOST, t->width), area = height * width;
    const int64_t channels = side_of(x, EXAMPLE_CHANNELS, CHANNELS_MOST, area ? (int64_t)n / area : 0);

    if (n == 0)
        return broken(name, e, "its image is empty");
    if (!area || !channels || channels > CHANNELS_MOST || (uint64_t)(area * channels) != n)
        return error_set(e, ERR_CORRUPT,
                         "%s: broken sample: its image of %zu bytes is neither JPEG nor PNG, nor pixels of "
                         "%lldx%lldx%lld",
                         name, n, (long long)height, (long long)width, (long long)channels);
    *out = (struct picture){ x->bytes[EXAMPLE_IMAGE], NULL, (int)height, (int)width, (int)channels };
    return OK;
}

static int take_picture(const struct tfrecord *t, const struct example *x, const char *name, int size_only,
                        struct picture *out, struct error *e)
{
    struct image image;
    int rc;

    *out = (struct picture){ 0 };
    if (!(x->found & 1u << EXAMPLE_IMAGE))
        return error_set(e, ERR_CORRUPT,
                         "%s: broken sample: it has no \"%.*s\"; --example-keys image=KEY names another", name,
                         (int)t->keys.of[EXAMPLE_IMAGE].length, t->keys.of[EXAMPLE_IMAGE].text);
    if (is_raw(x))
        return take_raw(t, x, name, out, e);
    rc = (size_only ? image_decode_size : image_decode)(x->bytes[EXAMPLE_IMAGE], x->length[EXAMPLE_IMAGE], name, &image,
                                                        e);
    if (rc == OK)
        *out = (struct picture){ image.pixels, image.pixels, image.height, image.width, 3 };
    return rc;
}

/* Brings the picture to the data set's size and channels. */
static int fit_picture(const struct tfrecord *t, const struct picture *p, const char *name, uint8_t *out,
                       struct error *e)
{
    const size_t pixels = (size_t)t->height * (size_t)t->width;
    const int same = p->height == t->height && p->width == t->width;
    struct image image = { p->height, p->width, NULL };

    if (p->channels == t->channels && same) {
        memcpy(out, p->pixels, pixels * (size_t)p->channels);
        return OK;
    }
    if (p->channels == 1 && t->channels == 3 && same) {
        for (size_t i = 0; i < pixels; i++)
            memset(out + 3 * i, p->pixels[i], 3);
        return OK;
    }
    if (p->channels != 3 || t->channels != 3)
        return error_set(e, ERR_CORRUPT,
                         "%s: broken sample: its pixels of %dx%dx%d cannot be brought to %dx%dx%d; only 3 colours are "
                         "scaled",
                         name, p->height, p->width, p->channels, t->height, t->width, t->channels);
    image.pixels = (uint8_t *)(uintptr_t)p->pixels; /* only read */
    return image_resize(&image, name, t->height, t->width, out, e);
}

/* Reads record i, all parts of it; *x points into *bytes. */
static int read_example(const struct tfrecord *t, size_t i, const char *name, struct buffer *bytes, struct example *x,
                        struct error *e)
{
    struct example_scan scan;
    int rc = record_index_read(&t->index, i, bytes, e);

    if (rc == OK && example_scan_whole(&scan, &t->keys, ALL_PARTS, (const uint8_t *)bytes->data, bytes->length) < 0)
        rc = broken(name, e, scan.problem);
    if (rc == OK)
        *x = scan.found;
    return rc;
}

static int tfrecord_read(const void *context, size_t i, void *out, struct error *e)
{
    const struct tfrecord *t = context;
    struct buffer bytes = BUFFER_EMPTY;
    struct picture picture = { 0 };
    struct example x;
    char name[PATH_MAX + 64];
    int32_t class;
    int rc;

    name_of(t, i, name, sizeof name);
    if ((rc = read_example(t, i, name, &bytes, &x, e)) == OK && (rc = class_of(t, &x, name, &class, e)) == OK &&
        (rc = take_picture(t, &x, name, 0, &picture, e)) == OK)
        rc = fit_picture(t, &picture, name, out, e);
    free(picture.own);
    buffer_release(&bytes);
    return rc;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The label of record i, for which only the parts of the record around it are read. */
static int read_label(const struct tfrecord *t, size_t i, struct buffer *room, int32_t *out, struct error *e)
{
    const struct record_place *p = &t->index.places[i];
    char name[PATH_MAX + 64];
    struct example_scan scan;
    int rc = 0;

    name_of(t, i, name, sizeof name);
    example_scan_begin(&scan, &t->keys, 1u << EXAMPLE_LABEL, p->length == RECORD_NONE ? 1 : p->length);
    while (rc == 0) {
        uint8_t *window;

        buffer_clear(room);
        if (!(window = (uint8_t *)buffer_reserve(room, scan.need + 1)))
            return error_memory(e, name, "for its label");
        if ((rc = record_index_part(&t->index, i, scan.position, window, scan.need, e)) < 0)
            return rc;
        rc = example_scan_next(&scan, window, scan.need);
    }
    return rc < 0 ? broken(name, e, scan.problem) : class_of(t, &scan.found, name, out, e);
}

/* labels (t->index.count): of each record, LABEL_NONE of a broken one. *most: the greatest. */
static int read_labels(const struct tfrecord *t, const struct dataset_reading *how, int32_t *labels, int32_t *most,
                       struct error *e)
{
    struct buffer room = BUFFER_EMPTY;
    struct error why = { 0 };
    int rc = OK;

    *most = LABEL_NONE;
    for (size_t i = 0; i < t->index.count && rc == OK; i++) {
        if ((rc = read_label(t, i, &room, &labels[i], &why)) == ERR_CORRUPT && how->skip_bad) {
            labels[i] = LABEL_NONE;
            rc = OK;
        }
        *most = rc == OK && labels[i] > *most ? labels[i] : *most;
    }
    buffer_release(&room);
    if (rc == ERR_CORRUPT)
        return error_set(e, rc, "%.400s (--bad-samples skip leaves such out)", why.message);
    return rc < 0 ? error_copy(e, &why) : OK;
}

/* Lists the records of a part, at most `most`. */
static int open_part(struct tfrecord **out, const char *directory, enum dataset_split split,
                     const struct dataset_reading *how, size_t most, struct error *e)
{
    struct tfrecord *t = *out = calloc(1, sizeof *t);
    int rc;

    if (!t)
        return error_memory(e, directory, "to list it");
    t->first_label = how->first_label;
    t->classes = how->classes;
    t->height = how->height;
    t->width = how->width;
    if ((rc = example_keys_parse(&t->keys, how->example_keys, e)) < 0 ||
        (rc = data_files_list(&t->files, directory, split, how, e)) < 0 ||
        (rc = record_index_make(&t->index, (const char *const *)t->files.paths, t->files.count, most, e)) < 0)
        return rc;
    return t->index.count ? OK
                          : error_set(e, ERR_ARG, "%s: no records in %s%s", directory,
                                      file_base_name(t->files.paths[0]), t->files.count > 1 ? " and the others" : "");
}

/* The size asked for or that of the first sample that can be read, and its channels. */
static int choose_shape(struct tfrecord *t, const struct dataset_reading *how, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    char name[PATH_MAX + 64];
    int rc = ERR_CORRUPT;

    for (size_t i = 0; i < t->index.count && rc == ERR_CORRUPT; i++) {
        struct picture p = { 0 };
        struct example x;

        name_of(t, i, name, sizeof name);
        if ((rc = read_example(t, i, name, &bytes, &x, e)) == OK)
            rc = take_picture(t, &x, name, 1, &p, e);
        if (rc == ERR_CORRUPT && !how->skip_bad)
            break;
        t->channels = p.channels;
        t->height = how->height ? how->height : p.height;
        t->width = how->height ? how->width : p.width;
    }
    buffer_release(&bytes);
    return rc;
}

/* --shard files: of n workers each has every n-th file. */
static int take_files(struct tfrecord *t, const struct shard *shard, int32_t *labels, struct error *e)
{
    size_t kept = 0;

    if (shard->kind == SHARD_FILES && (size_t)shard->index >= t->files.count)
        return error_set(e, ERR_ARG,
                         "worker %d of %d has no file: there are only %zu; use fewer workers, or share single records",
                         shard->index, shard->count, t->files.count);
    for (size_t i = 0; i < t->index.count; i++) {
        if (!shard_has_file(shard, t->index.places[i].file, t->files.count))
            continue;
        labels[kept] = labels[i];
        t->index.places[kept++] = t->index.places[i];
    }
    t->index.count = kept;
    return kept ? OK : error_set(e, ERR_ARG, "worker %d of %d has no record", shard->index, shard->count);
}

/* What the training part says about the test part: shape and number of classes. There may be none. */
static int ask_training(struct tfrecord *t, const char *directory, const struct dataset_reading *how, struct error *e)
{
    struct tfrecord *train;
    int32_t *labels = NULL, most = 0;
    struct error why = { 0 };
    int rc = open_part(&train, directory, DATASET_TRAIN, how, how->classes ? 16 : SIZE_MAX, &why);

    if (rc < 0) {
        tfrecord_free(train);
        return rc == ERR_ARG ? OK : error_copy(e, &why);
    }
    rc = choose_shape(train, how, e);
    if (rc == OK && !how->classes && !(labels = malloc(train->index.count * sizeof *labels)))
        rc = error_memory(e, directory, "for %zu labels", train->index.count);
    if (rc == OK && labels)
        rc = read_labels(train, how, labels, &most, e);
    t->height = train->height;
    t->width = train->width;
    t->channels = train->channels;
    t->classes = labels && rc == OK ? most + 1 : t->classes;
    free(labels);
    tfrecord_free(train);
    return rc;
}

static int open_samples(struct dataset_owned *o, struct tfrecord *t, const char *directory, enum dataset_split split,
                        const struct shard *shard, const struct dataset_reading *how, struct error *e)
{
    int32_t most, *labels = o->labels = malloc(t->index.count * sizeof *labels);
    int rc = labels ? OK : error_memory(e, directory, "for %zu labels", t->index.count);

    if (rc == OK && split == DATASET_TEST)
        rc = ask_training(t, directory, how, e);
    if (rc == OK && !t->channels)
        rc = choose_shape(t, how, e);
    if (rc < 0 || (rc = read_labels(t, how, labels, &most, e)) < 0)
        return rc;
    if (most < 0)
        return error_set(e, ERR_CORRUPT, "%s: none of the %zu samples can be read", directory, t->index.count);
    t->classes = t->classes ? t->classes : most + 1;
    o->d.classes = t->classes;
    o->d.height = t->height;
    o->d.width = t->width;
    o->d.channels = t->channels;
    for (size_t f = 0; f < t->files.count; f++)
        if (shard_has_file(shard, f, t->files.count))
            dataset_owned_add_file(o, t->files.paths[f]);
    return take_files(t, shard, labels, e);
}

static int read_tfrecord(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                         enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                         struct error *e)
{
    static const struct sample_stream_format format = { tfrecord_read, tfrecord_free };
    struct tfrecord *t;
    int rc = open_part(&t, directory, split, how, SIZE_MAX, e);

    (void)kind;
    if (rc < 0 || (rc = open_samples(o, t, directory, split, shard, how, e)) < 0) {
        tfrecord_free(t);
        return rc;
    }
    return streamed_take(o, &format, t, t->index.count, split, how, e);
}

const struct dataset_kind dataset_kind_tfrecord = {
    .how_to_get = "it needs TFRecord files of tf.train.Example, each with an image and its label",
    .takes = DATASET_TAKES_FILES | DATASET_TAKES_LABELS | DATASET_TAKES_KEYS,
    .read = read_tfrecord,
};
