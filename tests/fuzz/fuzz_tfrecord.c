/*
 * A TFRecord file as a data set, opened and read: the first byte picks the options, then each piece is a byte with the
 * length of its content and whether it is a sound record, or stays as it is.
 */
#include "base/record_frame.h"
#include "tests/fuzz/fuzz_dataset.h"
#include "tests/fuzz/fuzz_directory.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct dataset_reading how = { .example_keys = "image=i,label=l,format=f,height=h,width=w,channels=c" };
    uint8_t record[128 + RECORD_OVERHEAD];
    char path[128];
    FILE *f;

    if (size == 0)
        return 0;
    snprintf(path, sizeof path, "%s/file", fuzz_directory());
    if (!(f = fopen(path, "wb")))
        abort();
    for (size_t i = 1; i < size;) {
        const size_t n = bytes[i] % 128u < size - i - 1 ? bytes[i] % 128u : size - i - 1;
        const int sound = bytes[i] < 128;

        i++;
        memcpy(record + RECORD_HEADER, bytes + i, n);
        record_seal(record, n);
        fwrite(sound ? record : bytes + i, 1, sound ? n + RECORD_OVERHEAD : n, f);
        i += n;
    }
    fclose(f);
    how.skip_bad = bytes[0] & 1;
    how.classes = bytes[0] >> 1 & 3;
    how.height = how.width = bytes[0] >> 3 & 3;
    fuzz_dataset_read("tfrecord", path, bytes[0] & 32 ? DATASET_TEST : DATASET_TRAIN, NULL, &how, NULL);
    return 0;
}
