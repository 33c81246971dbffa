/*
 * A CSV file as a data set, opened as both parts and read: the first two bytes pick the options. And its records: found
 * byte by byte as all at once, and split into fields that are within them.
 */
#include "dataset/stream/csv_record.h"
#include "tests/fuzz/fuzz_dataset.h"
#include "tests/fuzz/fuzz_directory.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_numbers(const struct dataset *d, const void *sample, size_t used)
{
    (void)used;
    for (size_t k = 0; d->element == ELEMENT_FLOAT32 && k < dataset_width(d); k++)
        if (!isfinite(((const float *)sample)[k]))
            abort();
}

/* A record without its line end. */
static void check_fields(const char *record, size_t n, char separator)
{
    char *text = malloc(n + 1), *fields[8];
    const char *problem = NULL;
    size_t count;

    if (!text)
        abort();
    memcpy(text, record, n);
    if (csv_split(text, n, separator, fields, 8, &count, &problem) < 0) {
        if (!problem)
            abort();
    } else {
        for (size_t i = 0; i < count && i < 8; i++)
            if (fields[i] < text || fields[i] + strlen(fields[i]) > text + n ||
                (i && fields[i] <= fields[i - 1] + strlen(fields[i - 1])))
                abort();
    }
    free(text);
}

static void check_records(const char *text, size_t size, char separator)
{
    struct csv_scan whole = { .separator = separator, .line = 1 }, pieces = whole;
    size_t at = 0;

    while (at < size) {
        int ended, last = 0;
        const size_t n = csv_scan_next(&whole, text + at, size - at, &ended);

        for (size_t i = 0; i < n; i++)
            if (csv_scan_next(&pieces, text + at + i, 1, &last) != 1 || (last && i + 1 < n))
                abort();
        if (n == 0 || last != ended || whole.line != pieces.line ||
            csv_scan_quoted(&whole) != csv_scan_quoted(&pieces) || (!ended && at + n != size))
            abort();
        check_fields(text + at, n - (size_t)ended, separator);
        at += n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const formats[] = { NULL,
                                           "header=yes",
                                           "label=1,header=no",
                                           "label=a,skip=b",
                                           "separator=semicolon",
                                           "separator=tab,skip=1",
                                           "pixels=1x2x1",
                                           "label=2" };
    struct dataset_reading how = { 0 };
    char path[128];
    FILE *f;

    if (size < 2)
        return 0;
    snprintf(path, sizeof path, "%s/file", fuzz_directory());
    if (!(f = fopen(path, "wb")))
        abort();
    fwrite(bytes + 2, 1, size - 2, f);
    fclose(f);
    how.csv = formats[bytes[0] & 7];
    how.skip_bad = bytes[0] >> 3 & 1;
    how.classes = bytes[1] & 3;
    how.first_label = bytes[1] >> 2 & 1;
    fuzz_dataset_read("csv", path, bytes[1] & 8 ? DATASET_TEST : DATASET_TRAIN, NULL, &how, check_numbers);
    check_records((const char *)bytes + 2, size - 2, bytes[0] & 4 ? ';' : ',');
    return 0;
}
