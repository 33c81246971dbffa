#include "dataset/tool/scene.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void scene_draw(struct scene *s, int rows, int columns, int most, size_t samples, struct random *r)
{
    const int cells = rows * columns, limit = most < cells ? most : cells;
    int left;

    *s = (struct scene){ .rows = rows, .columns = columns, .count = 1 + (int)random_below(r, (uint64_t)limit) };
    left = s->count;
    for (int cell = 0; cell < cells && left; cell++) /* each set of cells is as likely as any other */
        if ((int)random_below(r, (uint64_t)(cells - cell)) < left)
            s->items[s->count - left--] = (struct scene_item){ cell / columns, cell % columns,
                                                               (size_t)random_below(r, samples) };
}

/* " at the top left", "" of a grid of one cell. */
static const char *place(const struct scene *s, const struct scene_item *item, char *out, size_t size)
{
    static const char *const rows[SCENE_SIDE_MAX + 1][SCENE_SIDE_MAX] = {
        { 0 }, { "" }, { "top", "bottom" }, { "top", "middle", "bottom" }
    };
    static const char *const columns[SCENE_SIDE_MAX + 1][SCENE_SIDE_MAX] = {
        { 0 }, { "" }, { "left", "right" }, { "left", "center", "right" }
    };
    const char *row = rows[s->rows][item->row], *column = columns[s->columns][item->column];

    snprintf(out, size, "%s%s%s", row, *row && *column ? " " : "", column);
    return out;
}

/* Where a is, seen from b. */
static const char *relation(const struct scene_item *a, const struct scene_item *b)
{
    static const char *const words[3][3] = { { "above and left of", "above", "above and right of" },
                                             { "left of", "on", "right of" },
                                             { "below and left of", "below", "below and right of" } };

    return words[1 + (a->row > b->row) - (a->row < b->row)][1 + (a->column > b->column) - (a->column < b->column)];
}

static void append_placed(const struct scene *s, int k, const char *name, struct buffer *out)
{
    char where[32];

    place(s, &s->items[k], where, sizeof where);
    buffer_format(out, "%s%s%s", name, *where ? " at the " : "", where);
}

/* "A, B and C", each with its place or not. */
static void append_list(const struct scene *s, const char *const *names, int placed, struct buffer *out)
{
    for (int k = 0; k < s->count; k++) {
        buffer_append_text(out, k == 0 ? "" : k + 1 < s->count ? ", " : " and ");
        if (placed)
            append_placed(s, k, names[k], out);
        else
            buffer_append_text(out, names[k]);
    }
}

static void append_one(const struct scene *s, int which, const char *name, struct buffer *out)
{
    char where[32];
    const int nowhere = !*place(s, &s->items[0], where, sizeof where);

    switch (which) {
    case 0: append_placed(s, 0, name, out); break;
    case 1:
        buffer_append_text(out, "there is ");
        append_placed(s, 0, name, out);
        break;
    case 2:
        if (nowhere)
            buffer_format(out, "this is %s", name);
        else
            buffer_format(out, "the %s has %s", where, name);
        break;
    case 3:
        buffer_append_text(out, "a picture of ");
        append_placed(s, 0, name, out);
        break;
    default:
        if (nowhere)
            buffer_format(out, "here is %s", name);
        else
            buffer_format(out, "at the %s is %s", where, name);
        break;
    }
}

static void append_two(const struct scene *s, int which, const char *const *names, struct buffer *out)
{
    const struct scene_item *a = &s->items[0], *b = &s->items[1];

    switch (which) {
    case 0: buffer_format(out, "%s %s %s", names[0], relation(a, b), names[1]); break;
    case 1: buffer_format(out, "there is %s %s %s", names[0], relation(a, b), names[1]); break;
    case 2: buffer_format(out, "%s %s %s", names[1], relation(b, a), names[0]); break;
    case 3: buffer_format(out, "a picture of %s %s %s", names[1], relation(b, a), names[0]); break;
    default: append_list(s, names, 1, out); break;
    }
}

static void append_several(const struct scene *s, int which, const char *const *names, struct buffer *out)
{
    static const char *const before[SCENE_SENTENCES] = { "", "there are ", "a picture of ", "", "" };

    buffer_append_text(out, before[which]);
    append_list(s, names, which == 4, out);
    buffer_append_text(out, which == 3 ? " in a picture" : "");
}

void scene_sentence(const struct scene *s, int which, const char *const *names, struct buffer *out)
{
    const size_t first = out->length;

    if (s->count == 1)
        append_one(s, which, names[0], out);
    else if (s->count == 2)
        append_two(s, which, names, out);
    else
        append_several(s, which, names, out);
    buffer_append_byte(out, '.');
    if (buffer_ok(out))
        out->data[first] = (char)toupper((unsigned char)out->data[first]);
}

void scene_name(const char *class_name, char *out, size_t size)
{
    static const char *const digits[] = {
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"
    };
    const int digit = class_name[0] >= '0' && class_name[0] <= '9' && !class_name[1];
    const char *name = digit ? digits[class_name[0] - '0'] : class_name;
    const size_t n = strcspn(name, "/");

    snprintf(out, size, "%s %.*s", n && strchr("aeiouAEIOU", name[0]) && strcmp(name, "one") != 0 ? "an" : "a", (int)n,
             name);
    for (char *c = out; *c; c++)
        *c = (char)(*c == '_' ? ' ' : tolower((unsigned char)*c));
}
