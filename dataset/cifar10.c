#include "dataset/cifar10.h"

#include "base/file.h"
#include "dataset/dataset_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RECORDS_A_READ = 64, /* 192 KiB: stays in the L2 cache between read(2) and transposing */
    TRAIN_FILES = 5,
    META_BYTES_MAX = 4096,
};

int cifar10_decode(const uint8_t *bytes, size_t n, const char *name, uint64_t offset, uint8_t *images, uint8_t *labels,
                   struct error *e)
{
    if (n % CIFAR10_RECORD)
        return error_set(e, ERR_CORRUPT, "%s: byte %llu: %zu bytes are left, but a CIFAR-10 record has %d", name,
                         (unsigned long long)(offset + n - n % CIFAR10_RECORD), n % CIFAR10_RECORD, CIFAR10_RECORD);
    for (size_t record = 0; record < n / CIFAR10_RECORD; record++) {
        const uint8_t *red = bytes + record * CIFAR10_RECORD + 1;
        const uint8_t *green = red + CIFAR10_PIXELS, *blue = green + CIFAR10_PIXELS;
        uint8_t *restrict image = images + record * CIFAR10_IMAGE;

        if (red[-1] >= CIFAR10_CLASSES)
            return error_set(
                e, ERR_CORRUPT,
                "%s: byte %llu: label %d of record %llu is not in 0..9; is this CIFAR-10 in its binary version?", name,
                (unsigned long long)(offset + record * CIFAR10_RECORD), red[-1],
                (unsigned long long)(offset / CIFAR10_RECORD + record));
        labels[record] = red[-1];
        for (size_t p = 0; p < CIFAR10_PIXELS; p++) {
            image[3 * p] = red[p];
            image[3 * p + 1] = green[p];
            image[3 * p + 2] = blue[p];
        }
    }
    return OK;
}

int cifar10_decode_names(const char *text, size_t n, const char *name, char names[CIFAR10_CLASSES][CIFAR10_NAME_MAX],
                         struct error *e)
{
    size_t at = 0;

    for (int i = 0; i < CIFAR10_CLASSES; i++) {
        const char *line = text + at;
        const char *end = at < n ? memchr(line, '\n', n - at) : NULL;
        size_t whole = end ? (size_t)(end - line) : n - at, length = whole;

        if (length && line[length - 1] == '\r')
            length--;
        if (length == 0 || length >= CIFAR10_NAME_MAX || memchr(line, '\0', length))
            return error_set(e, ERR_CORRUPT,
                             "%s: byte %zu: line %d is not a class name (1 to %d bytes); need %d lines with one each",
                             name, at, i + 1, CIFAR10_NAME_MAX - 1, CIFAR10_CLASSES);
        memcpy(names[i], line, length);
        names[i][length] = '\0';
        at += whole + (end ? 1 : 0);
    }
    return OK;
}

int cifar10_count(const char *path, size_t *count, struct error *e)
{
    struct stat st;

    *count = 0;
    if (stat(path, &st) < 0)
        return error_system(e, "%s: cannot open", path);
    if (!S_ISREG(st.st_mode))
        return error_set(e, ERR_IO, "%s: not a file", path);
    if (st.st_size == 0 || st.st_size % CIFAR10_RECORD)
        return error_set(e, ERR_CORRUPT,
                         "%s: byte %lld: the file ends here, but its length is not a multiple of %d, the size of a "
                         "record of binary CIFAR-10; get the file again",
                         path, (long long)st.st_size, CIFAR10_RECORD);
    *count = (size_t)(st.st_size / CIFAR10_RECORD);
    return OK;
}

int cifar10_read(const char *path, size_t count, uint8_t *images, uint8_t *labels, struct error *e)
{
    uint8_t *piece = NULL;
    size_t done = 0, want;
    ssize_t got;
    int rc = OK, fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_system(e, "%s: cannot open", path);
    if (!(piece = malloc((size_t)RECORDS_A_READ * CIFAR10_RECORD)))
        rc = error_memory(e, path, "for it");
    while (rc == OK && done < count) {
        want = count - done < RECORDS_A_READ ? count - done : RECORDS_A_READ;
        got = file_read_at(fd, piece, want * CIFAR10_RECORD, (uint64_t)done * CIFAR10_RECORD);
        if (got < 0)
            rc = error_system(e, "%s: cannot read", path);
        else if ((size_t)got < want * CIFAR10_RECORD)
            rc = error_set(e, ERR_CORRUPT, "%s: byte %llu: the file was truncated while it was read", path,
                           (unsigned long long)(done * CIFAR10_RECORD + (size_t)got));
        else
            rc = cifar10_decode(piece, want * CIFAR10_RECORD, path, (uint64_t)done * CIFAR10_RECORD,
                                images + done * CIFAR10_IMAGE, labels + done, e);
        done += want;
    }
    free(piece);
    close(fd);
    return rc;
}

/* The directory with the files: `directory`, or the one in it that its archive unpacks to. */
static int find_files(const char *directory, const char *first, const struct dataset_kind *kind, char *out, size_t size,
                      struct error *e)
{
    static const char *const below[] = { ".", "cifar-10-batches-bin" };
    char path[PATH_MAX];

    for (size_t i = 0; i < 2; i++) {
        if (i == 0 ? snprintf(out, size, "%s", directory) >= (int)size
                   : file_join(out, size, directory, below[i], e) < 0)
            return error_set(e, ERR_ARG, "%.100s...: path too long", directory);
        if (file_join(path, sizeof path, out, first, e) < 0)
            return ERR_ARG;
        if (access(path, F_OK) == 0)
            return OK;
    }
    error_set(e, ERR_IO, "%s: no file %s here nor in %s/ below it; %s", directory, first, below[1], kind->how_to_get);
    if (e)
        e->system = ENOENT;
    return ERR_IO;
}

static int read_class_names(struct dataset_owned *o, const char *directory, struct error *e)
{
    struct class_names {
        char text[CIFAR10_CLASSES][CIFAR10_NAME_MAX];
        const char *list[CIFAR10_CLASSES];
    } * names;
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, directory, "batches.meta.txt", e);

    if (rc < 0 || access(path, F_OK) < 0)
        return rc; /* without the file the well-known names are used */
    if (!(o->names = names = malloc(sizeof *names)))
        return error_memory(e, path, "for it");
    if ((rc = file_read(path, META_BYTES_MAX, &text, e)) == OK)
        rc = cifar10_decode_names(buffer_text(&text), text.length, path, names->text, e);
    for (int i = 0; rc == OK && i < CIFAR10_CLASSES; i++)
        names->list[i] = names->text[i];
    o->d.class_names = names->list;
    buffer_release(&text);
    return rc;
}

static int read_cifar10(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                        enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                        struct error *e)
{
    static const char *const train_files[TRAIN_FILES] = {
        "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
    };
    static const char *const test_files[] = { "test_batch.bin" };
    const char *const *names = split == DATASET_TRAIN ? train_files : test_files;
    const int files = kind->files[split];
    char where[PATH_MAX], path[TRAIN_FILES][PATH_MAX];
    size_t count[TRAIN_FILES] = { 0 }, total = 0, done = 0;
    uint8_t *images, *labels;
    int rc;

    (void)how;
    if ((rc = find_files(directory, names[0], kind, where, sizeof where, e)) < 0 ||
        (rc = read_class_names(o, where, e)) < 0)
        return rc;
    for (int f = 0; f < files; f++) {
        if (!shard_has_file(shard, (uint64_t)f, (uint64_t)files))
            continue;
        if ((rc = file_join(path[f], sizeof path[f], where, names[f], e)) < 0 ||
            (rc = cifar10_count(path[f], &count[f], e)) < 0)
            return rc;
        if (count[f] > UINT32_MAX - total)
            return error_set(e, ERR_CORRUPT, "%s: more records than CIFAR-10 has", path[f]);
        total += count[f];
    }
    images = o->input = total > SIZE_MAX / CIFAR10_IMAGE ? NULL : malloc(total * CIFAR10_IMAGE);
    labels = o->labels = malloc(total);
    if (!images || !labels)
        return error_memory(e, where, "for %zu images", total);
    for (int f = 0; f < files; f++) {
        if (count[f] == 0)
            continue;
        if ((rc = cifar10_read(path[f], count[f], images + done * CIFAR10_IMAGE, labels + done, e)) < 0)
            return rc;
        dataset_owned_add_file(o, path[f]);
        done += count[f];
    }
    o->d.count = total;
    o->d.height = o->d.width = CIFAR10_SIDE;
    o->d.channels = 3;
    return OK;
}

const struct dataset_kind dataset_kind_cifar10 = {
    .how_to_get = "it needs data_batch_1.bin to data_batch_5.bin and test_batch.bin, as unpacked from "
                  "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    .files = { TRAIN_FILES, 1 },
    .classes = CIFAR10_CLASSES,
    .class_names = (const char *const[]){ "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
                                          "ship", "truck" },
    .read = read_cifar10,
};
