#include "dataset/dataset_reading.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

enum { SIDE_MAX = 4096 };

static const char own_files[] = "data sets that are not published under fixed names: tfrecord, records, idx and csv";

/* In the order of the rows. */
static const char *const names[DATASET_READING_ROWS] = { "--image-size",   "--bad-samples",   "--train-files",
                                                         "--test-files",   "--classes",       "--first-label",
                                                         "--example-keys", "--record-fields", "--csv-format" };
static const struct {
    unsigned takes; /* 0: all data sets do */
    const char *whom;
} for_whom[DATASET_READING_ROWS] = {
    { 0, NULL },
    { 0, NULL },
    { DATASET_TAKES_FILES, own_files },
    { DATASET_TAKES_FILES, own_files },
    { DATASET_TAKES_LABELS, own_files },
    { DATASET_TAKES_LABELS, own_files },
    { DATASET_TAKES_KEYS, "tfrecord" },
    { DATASET_TAKES_RECORD, "records" },
    { DATASET_TAKES_CSV, "csv" },
};

void dataset_reading_rows(struct option *rows, struct dataset_words *values)
{
    const struct option all[DATASET_READING_ROWS] = {
        { OPTION_TEXT, .value = &values->image_size, .argument = "HxW",
          .help = "Scale the images of --data folder and tfrecord to cover HxW pixels, and cut out the middle; N is "
                  "NxN. Default: "
                  "the size of the first training image." },
        { OPTION_CHOICE, .value = &values->bad_samples, .argument = "WHAT", .choices = "fail|skip",
          .help = "End at the first broken sample that is read from disk (fail, the default), or name each and leave "
                  "it out "
                  "(skip): in training the next good one takes its place." },
        { OPTION_TEXT, .value = &values->train_files, .argument = "PATTERN",
          .help = "Train on the files of DIR whose names match PATTERN, such as 'train-*'. Default: those with "
                  "\"train\" in their names, or all that are not of the test part. For --data tfrecord, "
                  "records, idx and csv." },
        { OPTION_TEXT, .value = &values->test_files, .argument = "PATTERN",
          .help = "Evaluate on the files of DIR whose names match PATTERN. Default: those with \"test\", \"val\" or "
                  "\"t10k\" in their names." },
        { OPTION_TEXT, .value = &values->classes, .argument = "N",
          .help = "Expect N classes in such files, and count other labels as broken. Default: as many as the labels of "
                  "the training files need, which are read for this." },
        { OPTION_TEXT, .value = &values->first_label, .argument = "N",
          .help = "Take label N of such files for the first class. Default: 0; TensorFlow's ImageNet begins at 1." },
        { OPTION_TEXT, .value = &values->example_keys, .argument = "LIST",
          .help = "Find the parts of --data tfrecord under these keys: PART=KEY,... with the parts image, format, "
                  "label, height, width and channels. Default: image/encoded, image/format, image/class/label, "
                  "image/height, image/width and image/channels." },
        { OPTION_TEXT, .value = &values->record, .argument = "FIELDS",
          .help = "Read the records of --data records as these fields, in their order: label=BYTES, image=HxWxC or "
                  "planes=CxHxW (a byte for each colour), floats=HxWxC, skip=BYTES. CIFAR-100's are "
                  "skip=1,label=1,planes=3x32x32." },
        { OPTION_TEXT, .value = &values->csv, .argument = "FORMAT",
          .help =
              "Read the files of --data csv so: label=COLUMN, skip=COLUMN (repeated), header=yes|no, "
              "separator=comma|semicolon|tab, pixels=HxWxC, with commas between them. A column is named as in the "
              "header or by its number, from 1. Default: the label is in the column \"label\", else in the last; all "
              "others are numbers; a first record without a number is a header." },
    };

    memcpy(rows, all, sizeof all);
    for (size_t i = 0; i < DATASET_READING_ROWS; i++)
        rows[i].name = names[i] + 2;
}

size_t dataset_reading_line(const struct dataset_words *values, const char **words)
{
    struct dataset_words copy = *values;
    struct option rows[DATASET_READING_ROWS];
    size_t n = 0;

    dataset_reading_rows(rows, &copy);
    for (size_t i = 0; i < DATASET_READING_ROWS; i++) {
        const char *value = *(const char **)rows[i].value;

        if (!value)
            continue;
        words[n++] = names[i];
        words[n++] = value;
    }
    return n;
}

static int parse_size(struct dataset_reading *out, const char *size, struct error *e)
{
    int height, width, end = 0, fields = sscanf(size, "%5dx%5d%n", &height, &width, &end);

    if (fields == 1) { /* N */
        sscanf(size, "%5d%n", &height, &end);
        width = height;
    }
    if (fields < 1 || size[end] || height < 1 || width < 1 || height > SIDE_MAX || width > SIDE_MAX)
        return error_set(e, ERR_ARG, "--image-size %.40s: must be HEIGHTxWIDTH, each 1 to %d, or one number for both",
                         size, SIDE_MAX);
    out->height = height;
    out->width = width;
    return OK;
}

static int parse_number(int64_t *out, const char *name, const char *text, int64_t least, int64_t most, struct error *e)
{
    if (text && (!number_parse_int(text, out) || *out < least || *out > most))
        return error_set(e, ERR_ARG, "%s %.40s: must be a whole number from %lld to %lld", name, text, (long long)least,
                         (long long)most);
    return OK;
}

int dataset_reading_parse(struct dataset_reading *out, const struct dataset_words *words, struct error *e)
{
    struct dataset_words copy = *words;
    struct option rows[DATASET_READING_ROWS];
    int64_t classes = 0;
    int rc;

    *out = (struct dataset_reading){
        .skip_bad = words->bad_samples && !strcmp(words->bad_samples, "skip"),
        .train_files = words->train_files,
        .test_files = words->test_files,
        .example_keys = words->example_keys,
        .record = words->record,
        .csv = words->csv,
    };
    dataset_reading_rows(rows, &copy);
    for (size_t i = 0; i < DATASET_READING_ROWS; i++)
        out->given |= *(const char **)rows[i].value ? for_whom[i].takes : 0;
    if (words->image_size && (rc = parse_size(out, words->image_size, e)) < 0)
        return rc;
    if ((rc = parse_number(&classes, "--classes", words->classes, 1, DATASET_CLASSES_MAX, e)) < 0)
        return rc;
    out->classes = (int)classes;
    return parse_number(&out->first_label, "--first-label", words->first_label, -1000000000, 1000000000, e);
}

int dataset_reading_check(const struct dataset_reading *how, unsigned takes, const char *name, struct error *e)
{
    for (size_t i = 0; i < DATASET_READING_ROWS; i++)
        if (how->given & for_whom[i].takes & ~takes)
            return error_set(e, ERR_ARG, "%s: not for --data %s; it is for %s", names[i], name, for_whom[i].whom);
    return OK;
}
