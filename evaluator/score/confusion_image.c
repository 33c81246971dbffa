#include "evaluator/score/confusion_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCALE = 2, /* pixels of a dot */
    GLYPH_WIDTH = 5,
    GLYPH_HEIGHT = 7,
    ADVANCE = (GLYPH_WIDTH + 1) * SCALE,
    LINE = GLYPH_HEIGHT * SCALE,
    GAP = 6, /* around text */
    CELL_HEIGHT = LINE + 2 * GAP,
    NAME_MAX_SHOWN = 16,
    TEXT_MAX = 64,
    PLAIN_SIDE = 1024, /* approximate size of a picture without text */
};

struct glyph {
    char character;
    uint8_t rows[GLYPH_HEIGHT]; /* from the top; the highest of five bits is the leftmost dot */
};

static const struct glyph glyphs[] = {
    { ' ', { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00 } }, { '-', { 0x00, 0x00, 0x00, 0x1f, 0x00, 0x00, 0x00 } },
    { '_', { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1f } }, { '/', { 0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x00 } },
    { '.', { 0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c } }, { ':', { 0x00, 0x0c, 0x0c, 0x00, 0x0c, 0x0c, 0x00 } },
    { '0', { 0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e } }, { '1', { 0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e } },
    { '2', { 0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f } }, { '3', { 0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e } },
    { '4', { 0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02 } }, { '5', { 0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e } },
    { '6', { 0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e } }, { '7', { 0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08 } },
    { '8', { 0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e } }, { '9', { 0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c } },
    { 'A', { 0x0e, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11 } }, { 'B', { 0x1e, 0x11, 0x11, 0x1e, 0x11, 0x11, 0x1e } },
    { 'C', { 0x0e, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0e } }, { 'D', { 0x1c, 0x12, 0x11, 0x11, 0x11, 0x12, 0x1c } },
    { 'E', { 0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f } }, { 'F', { 0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x10 } },
    { 'G', { 0x0e, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0f } }, { 'H', { 0x11, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11 } },
    { 'I', { 0x0e, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e } }, { 'J', { 0x07, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0c } },
    { 'K', { 0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11 } }, { 'L', { 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f } },
    { 'M', { 0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11 } }, { 'N', { 0x11, 0x11, 0x19, 0x15, 0x13, 0x11, 0x11 } },
    { 'O', { 0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e } }, { 'P', { 0x1e, 0x11, 0x11, 0x1e, 0x10, 0x10, 0x10 } },
    { 'Q', { 0x0e, 0x11, 0x11, 0x11, 0x15, 0x12, 0x0d } }, { 'R', { 0x1e, 0x11, 0x11, 0x1e, 0x14, 0x12, 0x11 } },
    { 'S', { 0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e } }, { 'T', { 0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04 } },
    { 'U', { 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e } }, { 'V', { 0x11, 0x11, 0x11, 0x11, 0x11, 0x0a, 0x04 } },
    { 'W', { 0x11, 0x11, 0x11, 0x15, 0x15, 0x15, 0x0a } }, { 'X', { 0x11, 0x11, 0x0a, 0x04, 0x0a, 0x11, 0x11 } },
    { 'Y', { 0x11, 0x11, 0x11, 0x0a, 0x04, 0x04, 0x04 } }, { 'Z', { 0x1f, 0x01, 0x02, 0x04, 0x08, 0x10, 0x1f } },
};

static const uint8_t box[GLYPH_HEIGHT] = { 0x1f, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1f };
static const char title[] = "ROWS: LABELS  COLUMNS: PREDICTED";

struct colour {
    uint8_t red, green, blue;
};

static const struct colour black = { 0, 0, 0 }, white = { 255, 255, 255 };

static void fill(struct confusion_image *image, size_t x, size_t y, size_t width, size_t height, struct colour c)
{
    for (size_t i = y; i < y + height && i < image->height; i++)
        for (size_t j = x; j < x + width && j < image->width; j++) {
            uint8_t *p = image->pixels + (i * image->width + j) * 3;

            p[0] = c.red;
            p[1] = c.green;
            p[2] = c.blue;
        }
}

static const uint8_t *find_glyph(char character)
{
    const char capital = character >= 'a' && character <= 'z' ? (char)(character - 'a' + 'A') : character;

    for (size_t i = 0; i < sizeof glyphs / sizeof *glyphs; i++)
        if (glyphs[i].character == capital)
            return glyphs[i].rows;
    return box;
}

static void write_text(struct confusion_image *image, size_t x, size_t y, const char *text, struct colour c)
{
    for (; *text; text++, x += ADVANCE) {
        const uint8_t *rows = find_glyph(*text);

        for (size_t i = 0; i < GLYPH_HEIGHT; i++)
            for (size_t j = 0; j < GLYPH_WIDTH; j++)
                if (rows[i] >> (GLYPH_WIDTH - 1 - j) & 1)
                    fill(image, x + j * SCALE, y + i * SCALE, SCALE, SCALE, c);
    }
}

/* White for nothing, dark blue for a whole row. */
static struct colour shade(int64_t count, int64_t row)
{
    const double share = row > 0 ? (double)count / (double)row : 0;

    return (struct colour){ (uint8_t)(255 - share * 247), (uint8_t)(255 - share * 207), (uint8_t)(255 - share * 148) };
}

static int64_t row_sum(const int64_t *counts, int classes, int row)
{
    int64_t sum = 0;

    for (int k = 0; k < classes; k++)
        sum += counts[(size_t)row * (size_t)classes + (size_t)k];
    return sum;
}

static int make(struct confusion_image *out, size_t height, size_t width, struct error *e)
{
    *out = (struct confusion_image){ height, width, malloc(height * width * 3) };
    if (!out->pixels)
        return error_memory(e, NULL, "for a picture of %zu x %zu pixels", width, height);
    memset(out->pixels, 255, height * width * 3);
    return OK;
}

static int draw_plain(struct confusion_image *out, const int64_t *counts, int classes, struct error *e)
{
    const size_t n = (size_t)classes, side = PLAIN_SIDE / n;
    int rc = make(out, n * side, n * side, e);

    for (int i = 0; rc == OK && i < classes; i++)
        for (int k = 0; k < classes; k++)
            fill(out, (size_t)k * side, (size_t)i * side, side, side,
                 shade(counts[(size_t)i * n + (size_t)k], row_sum(counts, classes, i)));
    return rc;
}

static void label_of(char text[TEXT_MAX], int row, const char *const *names)
{
    if (names)
        snprintf(text, TEXT_MAX, "%d %.*s", row, NAME_MAX_SHOWN, names[row]);
    else
        snprintf(text, TEXT_MAX, "%d", row);
}

/* Draws text in the middle of the cell whose top left corner is x, y. */
static void write_centred(struct confusion_image *image, size_t x, size_t y, size_t width, const char *text,
                          struct colour c)
{
    const size_t wide = strlen(text) * ADVANCE - SCALE;

    write_text(image, x + (width - wide) / 2, y + GAP, text, c);
}

static int draw_named(struct confusion_image *out, const int64_t *counts, int classes, const char *const *names,
                      struct error *e)
{
    const size_t n = (size_t)classes, top = 2 * CELL_HEIGHT;
    size_t longest = 0, widest = 2, left, cell, width;
    char text[TEXT_MAX];
    int rc;

    for (int i = 0; i < classes; i++) {
        label_of(text, i, names);
        longest = strlen(text) > longest ? strlen(text) : longest;
    }
    for (size_t i = 0; i < n * n; i++) {
        const size_t digits = (size_t)snprintf(text, sizeof text, "%lld", (long long)counts[i]);

        widest = digits > widest ? digits : widest;
    }
    left = longest * ADVANCE + 2 * GAP;
    cell = widest * ADVANCE + 2 * GAP;
    width = left + n * cell + GAP;
    if (width < (sizeof title - 1) * ADVANCE + 2 * GAP)
        width = (sizeof title - 1) * ADVANCE + 2 * GAP;
    if ((rc = make(out, top + n * CELL_HEIGHT + GAP, width, e)) != OK)
        return rc;
    write_text(out, GAP, GAP, title, black);
    for (int i = 0; i < classes; i++) {
        const size_t y = top + (size_t)i * CELL_HEIGHT;
        const int64_t row = row_sum(counts, classes, i);

        label_of(text, i, names);
        write_text(out, GAP, y + GAP, text, black);
        snprintf(text, sizeof text, "%d", i);
        write_centred(out, left + (size_t)i * cell, CELL_HEIGHT, cell, text, black);
        for (int k = 0; k < classes; k++) {
            const int64_t count = counts[(size_t)i * n + (size_t)k];
            const size_t x = left + (size_t)k * cell;

            fill(out, x, y, cell - 1, CELL_HEIGHT - 1, shade(count, row));
            snprintf(text, sizeof text, "%lld", (long long)count);
            write_centred(out, x, y, cell, text, count > row - count ? white : black);
        }
    }
    return OK;
}

int confusion_image_draw(struct confusion_image *out, const int64_t *counts, int classes, const char *const *names,
                         struct error *e)
{
    *out = (struct confusion_image){ 0, 0, NULL };
    if (classes < 1 || classes > CONFUSION_IMAGE_CLASSES_MAX)
        return error_set(e, ERR_ARG, "cannot draw a confusion matrix of %d classes; use 1 to %d", classes,
                         CONFUSION_IMAGE_CLASSES_MAX);
    return classes <= CONFUSION_IMAGE_NAMED ? draw_named(out, counts, classes, names, e)
                                            : draw_plain(out, counts, classes, e);
}

void confusion_image_release(struct confusion_image *image)
{
    free(image->pixels);
    *image = (struct confusion_image){ 0, 0, NULL };
}
