#include "dataset/cifar10.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDS_A_READ = 64 }; /* 192 KiB: stays in the L2 cache between read(2) and the transposition */

int cifar10_decode(const uint8_t *bytes, size_t n, const char *name, uint64_t offset, uint8_t *images,
                   uint8_t *labels, struct error *e)
{
    if (n % CIFAR10_RECORD)
        return error_set(e, ERR_CORRUPT, "%s: byte %llu: %zu bytes are left, a record of CIFAR-10 is %d", name,
                         (unsigned long long)(offset + n - n % CIFAR10_RECORD), n % CIFAR10_RECORD, CIFAR10_RECORD);
    for (size_t record = 0; record < n / CIFAR10_RECORD; record++) {
        const uint8_t *red = bytes + record * CIFAR10_RECORD + 1;
        const uint8_t *green = red + CIFAR10_PIXELS, *blue = green + CIFAR10_PIXELS;
        uint8_t *restrict image = images + record * CIFAR10_IMAGE;

        if (red[-1] >= CIFAR10_CLASSES)
            return error_set(e, ERR_CORRUPT, "%s: byte %llu: label %d of record %llu is not in 0..9; is this CIFAR-10"
                             " in its binary version?", name, (unsigned long long)(offset + record * CIFAR10_RECORD),
                             red[-1], (unsigned long long)(offset / CIFAR10_RECORD + record));
        labels[record] = red[-1];
        for (size_t p = 0; p < CIFAR10_PIXELS; p++) {
            image[3 * p] = red[p];
            image[3 * p + 1] = green[p];
            image[3 * p + 2] = blue[p];
        }
    }
    return OK;
}

int cifar10_decode_names(const char *text, size_t n, const char *name,
                         char names[CIFAR10_CLASSES][CIFAR10_NAME_MAX], struct error *e)
{
    size_t at = 0;

    for (int i = 0; i < CIFAR10_CLASSES; i++) {
        const char *line = text + at;
        const char *end = at < n ? memchr(line, '\n', n - at) : NULL;
        size_t whole = end ? (size_t)(end - line) : n - at, length = whole;

        if (length && line[length - 1] == '\r')
            length--;
        if (length == 0 || length >= CIFAR10_NAME_MAX || memchr(line, '\0', length))
            return error_set(e, ERR_CORRUPT, "%s: byte %zu: line %d is no class name (1 to %d bytes); wanted %d lines"
                             " with one each", name, at, i + 1, CIFAR10_NAME_MAX - 1, CIFAR10_CLASSES);
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
        return error_set(e, ERR_CORRUPT, "%s: byte %lld: the file ends here, and its length is no multiple of %d, the"
                         " record of CIFAR-10 in its binary version; get the file again", path, (long long)st.st_size,
                         CIFAR10_RECORD);
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
            rc = error_set(e, ERR_CORRUPT, "%s: byte %llu: the file became shorter while it was read", path,
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
