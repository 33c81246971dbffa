/* Any bytes as a file of equally long records: the first byte says what a record consists of, the second whether broken
 * ones are left out. A record whose label was taken can be read, and no other one. */
#include "dataset/stream/fixed_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TYPES = FIXED_FLOAT_LITTLE + 1, NUMBERS = 2 * 3 * 3 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct fixed_layout layout_of(uint8_t choice)
{
    static const size_t label_bytes[] = { 1, 2, 4 };
    struct fixed_layout l = { .label_at = choice & 1, .label_bytes = label_bytes[choice / 2 % 3], .height = 2 };

    l.width = choice & 32 ? 3 : 1;
    l.channels = choice & 64 ? 3 : 2;
    l.planar = choice >> 7;
    l.type = (enum fixed_type)(choice / 3 % TYPES);
    l.input_at = l.label_at + l.label_bytes;
    l.bytes = l.input_at + (size_t)l.height * (size_t)l.width * (size_t)l.channels * fixed_type_size(l.type) +
              (choice & 16 ? 1 : 0);
    return l;
}

static void read_all(struct fixed_records *x, const struct dataset_reading *how)
{
    const size_t n = fixed_records_count(x);
    int32_t *labels = malloc(n * sizeof *labels);
    struct error e = { 0 };
    float out[NUMBERS];
    int rc;

    if (!labels)
        abort();
    rc = fixed_records_labels(x, how, labels, &e);
    if (rc < 0 && !e.message[0])
        abort(); /* an error without a sentence */
    for (size_t i = 0; rc >= 0 && i < n; i++) {
        e = (struct error){ 0 };
        if ((fixed_records_read(x, i, out, &e) == OK) != (labels[i] >= 0) || (labels[i] < 0 && !e.message[0]))
            abort();
    }
    free(labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct fixed_layout layout = layout_of(size ? bytes[0] : 0);
    const struct dataset_reading how = { .classes = 10, .skip_bad = size > 1 && bytes[1] & 1 };
    const int fd = memfd_create("records", MFD_CLOEXEC);
    char path[32];
    const char *paths[] = { path };
    struct fixed_records *x;
    struct error e = { 0 };

    if (fd < 0 || (size > 2 && write(fd, bytes + 2, size - 2) != (ssize_t)(size - 2)))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fixed_records_open(&x, &layout, paths, 1, 0, &e) == OK)
        read_all(x, &how);
    else if (!e.message[0])
        abort();
    fixed_records_free(x);
    close(fd);
    return 0;
}
