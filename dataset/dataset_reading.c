#include "dataset/dataset_reading.h"

#include <stdio.h>
#include <string.h>

enum { SIDE_MAX = 4096 };

/* In the order of the rows. */
static const char *const names[DATASET_READING_ROWS] = { "--image-size", "--bad-samples" };

void dataset_reading_rows(struct option *rows, struct dataset_words *values)
{
    const struct option all[DATASET_READING_ROWS] = {
        { OPTION_TEXT, .value = &values->image_size, .argument = "HxW",
          .help = "Scale the images of --data folder to cover HxW pixels, and cut out the middle; N is NxN. Default: "
                  "the size of the first training image." },
        { OPTION_CHOICE, .value = &values->bad_samples, .argument = "WHAT", .choices = "fail|skip",
          .help = "End at the first broken image of --data folder (fail, the default), or name each and leave it out "
                  "(skip): in training the next good one takes its place." },
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

int dataset_reading_parse(struct dataset_reading *out, const struct dataset_words *words, struct error *e)
{
    *out = (struct dataset_reading){ .skip_bad = words->bad_samples && !strcmp(words->bad_samples, "skip") };
    return words->image_size ? parse_size(out, words->image_size, e) : OK;
}
