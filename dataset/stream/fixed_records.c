#include "dataset/stream/fixed_records.h"

#include "base/bytes.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_MOST = 1024, OPEN_OTHERS = 64, WINDOW = 1 << 18 };

struct fixed_file {
    char *path; /* owned */
    int fd;     /* -1: opened for each read */
    uint64_t size;
    size_t first, past; /* its records are [first, past) */
};

struct fixed_records {
    struct fixed_layout layout;
    uint64_t header;
    struct fixed_file *files;
    size_t file_count, count;
    int64_t first_label, last_label; /* first > last: labels are not checked */
    uint8_t *seen;                   /* (count) the low byte of each label as fixed_records_labels() found it */
};

size_t fixed_type_size(enum fixed_type type)
{
    static const size_t sizes[] = {
        [FIXED_UINT8] = 1,     [FIXED_INT8] = 1,       [FIXED_INT16_BIG] = 2,    [FIXED_INT32_BIG] = 4,
        [FIXED_FLOAT_BIG] = 4, [FIXED_DOUBLE_BIG] = 8, [FIXED_FLOAT_LITTLE] = 4,
    };

    return sizes[type];
}

void fixed_type_floats(enum fixed_type type, const uint8_t *bytes, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = bytes + i * fixed_type_size(type);

        switch (type) {
        case FIXED_UINT8: out[i] = p[0]; break;
        case FIXED_INT8: out[i] = (int8_t)p[0]; break;
        case FIXED_INT16_BIG: out[i] = (int16_t)(p[0] << 8 | p[1]); break;
        case FIXED_INT32_BIG: out[i] = (float)(int32_t)get_be32(p); break;
        case FIXED_FLOAT_BIG: out[i] = bits_float(get_be32(p)); break;
        case FIXED_DOUBLE_BIG: out[i] = (float)bits_double((uint64_t)get_be32(p) << 32 | get_be32(p + 4)); break;
        case FIXED_FLOAT_LITTLE: out[i] = bits_float(get_le32(p)); break;
        }
    }
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int open_file(struct fixed_records *x, struct fixed_file *f, int keep, struct error *e)
{
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    uint64_t data, records;
    int rc = fd < 0 || fstat(fd, &st) < 0 ? error_system(e, "%s: cannot open", f->path) : OK;

    f->first = f->past = x->count;
    if (rc == OK) {
        f->size = (uint64_t)st.st_size;
        data = f->size < x->header ? 0 : f->size - x->header;
        records = data / x->layout.bytes + (data % x->layout.bytes != 0);
        if (records > UINT32_MAX - x->count)
            rc = error_set(e, ERR_ARG, "%s: more than %u records", f->path, UINT32_MAX);
        else
            f->past = x->count += (size_t)records;
    }
    f->fd = keep ? fd : -1;
    if (!keep && fd >= 0)
        close(fd);
    return rc;
}

int fixed_records_open(struct fixed_records **out, const struct fixed_layout *layout, const char *const *paths,
                       size_t files, uint64_t header, struct error *e)
{
    struct fixed_records *x = *out = calloc(1, sizeof *x);
    const int keep = files <= OPEN_MOST && file_open_room(files + OPEN_OTHERS);
    int rc = OK;

    if (!x || !(x->files = calloc(files ? files : 1, sizeof *x->files))) {
        free(x);
        *out = NULL;
        return error_memory(e, files ? paths[0] : NULL, "for %zu files", files);
    }
    x->layout = *layout;
    x->header = header;
    x->first_label = 1;
    while (x->file_count < files && rc == OK) {
        struct fixed_file *f = &x->files[x->file_count];

        if (!(f->path = strdup(paths[x->file_count])))
            rc = error_memory(e, paths[x->file_count], "for its name");
        else
            rc = open_file(x, f, keep, e);
        f->fd = f->path ? f->fd : -1;
        x->file_count++;
    }
    if (rc == OK && x->count == 0)
        rc = error_set(e, ERR_ARG, "%s: no records", files ? paths[0] : "no file");
    if (rc < 0) {
        fixed_records_free(x);
        *out = NULL;
    }
    return rc;
}

size_t fixed_records_count(const struct fixed_records *x)
{
    return x->count;
}

void fixed_records_free(void *context)
{
    struct fixed_records *x = context;

    if (!x)
        return;
    for (size_t i = 0; i < x->file_count; i++) {
        if (x->files[i].fd >= 0)
            close(x->files[i].fd);
        free(x->files[i].path);
    }
    free(x->files);
    free(x->seen);
    free(x);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static const struct fixed_file *file_of(const struct fixed_records *x, size_t i)
{
    size_t low = 0, high = x->file_count - 1;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (i < x->files[middle].past)
            high = middle;
        else
            low = middle + 1;
    }
    return &x->files[low];
}

static uint64_t byte_of(const struct fixed_records *x, const struct fixed_file *f, size_t i)
{
    return x->header + (uint64_t)(i - f->first) * x->layout.bytes;
}

/* n bytes of the file from there on; *got may be fewer at its end. */
static int read_bytes(const struct fixed_file *f, uint64_t at, uint8_t *out, size_t n, size_t *got, struct error *e)
{
    const int fd = f->fd >= 0 ? f->fd : open(f->path, O_RDONLY | O_CLOEXEC);
    const ssize_t have = fd < 0 ? -1 : file_read_at(fd, out, n, at);
    const int rc = have < 0 ? error_system(e, "%s: cannot read", f->path) : OK;

    *got = have < 0 ? 0 : (size_t)have;
    if (fd >= 0 && f->fd < 0)
        close(fd);
    return rc;
}

/* got: the bytes of the record that are there. */
static int ends_early(const struct fixed_records *x, const struct fixed_file *f, size_t i, size_t got, struct error *e)
{
    if (byte_of(x, f, i) + x->layout.bytes <= f->size)
        return error_set(e, ERR_CORRUPT, "%s: byte %llu: the file was truncated while it was read", f->path,
                         (unsigned long long)(byte_of(x, f, i) + got));
    return error_set(e, ERR_CORRUPT, "%s: byte %llu: broken record: the file ends in it; records have %zu bytes",
                     f->path, (unsigned long long)byte_of(x, f, i), x->layout.bytes);
}

static int64_t label_of(const uint8_t *p, size_t n)
{
    return n == 1 ? p[0] : n == 2 ? get_le16(p) : get_le32(p);
}

static int check_label(const struct fixed_records *x, const struct fixed_file *f, size_t i, int64_t label,
                       struct error *e)
{
    if (x->first_label > x->last_label || (label >= x->first_label && label <= x->last_label))
        return OK;
    return error_set(e, ERR_CORRUPT, "%s: byte %llu: broken record: its label %lld is not in %lld..%lld", f->path,
                     (unsigned long long)byte_of(x, f, i), (long long)label, (long long)x->first_label,
                     (long long)x->last_label);
}

/* The labels of one file. Of small records all is read, of large ones the label alone. */
static int read_labels_of(const struct fixed_records *x, const struct fixed_file *f, uint8_t *room, int skip,
                          int32_t *labels, int32_t *most, struct error *e)
{
    const struct fixed_layout *l = &x->layout;
    const size_t together = l->bytes <= WINDOW / 16 ? WINDOW / l->bytes : 1;
    size_t got, n;
    int rc;

    for (size_t i = f->first; i < f->past; i += n) {
        const size_t wanted = together > 1 ? together * l->bytes : l->label_bytes;

        n = f->past - i < together ? f->past - i : together;
        if ((rc = read_bytes(f, byte_of(x, f, i) + (together > 1 ? 0 : l->label_at), room, wanted, &got, e)) < 0)
            return rc;
        for (size_t k = 0; k < n; k++) {
            const uint8_t *label = together > 1 ? room + k * l->bytes + l->label_at : room;
            const int whole = byte_of(x, f, i + k) + l->bytes <= f->size &&
                              (together > 1 ? (k + 1) * l->bytes <= got : got == l->label_bytes);

            labels[i + k] = -1;
            rc = whole ? check_label(x, f, i + k, label_of(label, l->label_bytes), e) : ends_early(x, f, i + k, 0, e);
            if (rc < 0 && !skip)
                return rc;
            if (rc == OK) {
                labels[i + k] = (int32_t)(label_of(label, l->label_bytes) - x->first_label);
                x->seen[i + k] = label[0];
            }
            if (labels[i + k] > *most)
                *most = labels[i + k];
        }
    }
    return OK;
}

int fixed_records_labels(struct fixed_records *x, const struct dataset_reading *how, int32_t *labels, struct error *e)
{
    uint8_t *room = malloc(WINDOW);
    struct error why = { 0 };
    int32_t most = -1;
    int rc = OK;

    if (!room || !(x->seen = calloc(x->count, 1))) {
        free(room);
        return error_memory(e, x->files[0].path, "for its labels");
    }
    x->first_label = how->first_label;
    x->last_label = how->first_label + (how->classes ? how->classes : DATASET_CLASSES_MAX) - 1;
    for (size_t f = 0; f < x->file_count && rc == OK; f++)
        rc = read_labels_of(x, &x->files[f], room, how->skip_bad, labels, &most, &why);
    free(room);
    if (rc == ERR_CORRUPT)
        return error_set(e, rc, "%.400s (--bad-samples skip leaves such out)", why.message);
    if (rc < 0)
        return error_copy(e, &why);
    if (most < 0)
        return error_set(e, ERR_CORRUPT, "%s: none of the %zu records can be read", x->files[0].path, x->count);
    return how->classes ? how->classes : most + 1;
}

/* The input of a record, from its bytes, as fixed_records_read() gives it. room: of its size in the file, for planes of
 * other numbers than bytes. */
static void take_sample(const struct fixed_layout *l, const uint8_t *input, void *out, uint8_t *room)
{
    const size_t pixels = (size_t)l->height * (size_t)l->width, channels = (size_t)l->channels;
    const size_t size = fixed_type_size(l->type);
    uint8_t *restrict bytes = l->type == FIXED_UINT8 ? out : room;

    if (l->planar && size == 1 && channels == 3) { /* of which there are most: the compiler writes vector code for it */
        const uint8_t *red = input, *green = red + pixels, *blue = green + pixels;

        for (size_t p = 0; p < pixels; p++) {
            bytes[3 * p] = red[p];
            bytes[3 * p + 1] = green[p];
            bytes[3 * p + 2] = blue[p];
        }
        input = bytes;
    } else if (l->planar) {
        for (size_t c = 0; c < channels; c++)
            for (size_t p = 0; p < pixels; p++)
                memcpy(bytes + (p * channels + c) * size, input + (c * pixels + p) * size, size);
        input = bytes;
    }
    if (l->type != FIXED_UINT8)
        fixed_type_floats(l->type, input, pixels * channels, out);
    else if (!l->planar)
        memcpy(out, input, pixels * channels);
}

/* The label of a record that is read again: one of the classes, and as before. */
static int check_record(const struct fixed_records *x, const struct fixed_file *f, size_t i, const uint8_t *label,
                        struct error *e)
{
    int rc = check_label(x, f, i, label_of(label, x->layout.label_bytes), e);

    if (rc == OK && x->seen && label[0] != x->seen[i])
        rc = error_set(e, ERR_CORRUPT,
                       "%s: byte %llu: the label is no longer the one that was read at the start; the file was changed",
                       f->path, (unsigned long long)byte_of(x, f, i) + x->layout.label_at);
    return rc;
}

int fixed_records_read(const void *context, size_t i, void *out, struct error *e)
{
    const struct fixed_records *x = context;
    const struct fixed_layout *l = &x->layout;
    const struct fixed_file *f = file_of(x, i);
    const size_t n = (size_t)l->height * (size_t)l->width * (size_t)l->channels;
    const size_t room = l->planar && l->type != FIXED_UINT8 ? n * fixed_type_size(l->type) : 0;
    uint8_t *record = malloc(l->bytes + room); /* and the input, in our order */
    size_t got;
    int rc = record ? OK : error_memory(e, f->path, "for a record of %zu bytes", l->bytes);

    if (rc == OK && (rc = read_bytes(f, byte_of(x, f, i), record, l->bytes, &got, e)) == OK)
        rc = got < l->bytes   ? ends_early(x, f, i, got, e)
             : l->label_bytes ? check_record(x, f, i, record + l->label_at, e)
                              : OK;
    if (rc == OK)
        take_sample(l, record + l->input_at, out, record + l->bytes);
    free(record);
    return rc;
}
