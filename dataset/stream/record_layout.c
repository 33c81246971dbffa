#include "dataset/stream/record_layout.h"

#include <stdio.h>
#include <string.h>

enum { SIDE_MOST = 65536, CHANNELS_MOST = 1024, SKIP_MOST = 1 << 30 };

static int wrong(const char *text, const char *field, size_t n, const char *why, struct error *e)
{
    return error_set(
        e, ERR_ARG,
        "--record-fields %.200s: %.*s %s; the fields are label=BYTES, image=HxWxC, planes=CxHxW, floats=HxWxC and "
        "skip=BYTES",
        text, n > 60 ? 60 : (int)n, field, why);
}

/* 1 if `field` is "NAME=" and what follows, which is left in *value. */
static int is_field(const char *field, const char *name, const char **value)
{
    const size_t n = strlen(name);

    *value = field + n + 1;
    return !strncmp(field, name, n) && field[n] == '=';
}

/* Whole numbers with 'x' between them, up to a comma or the end: all `count` of them, each within [1, most[i]]. */
static int take_numbers(const char *text, int count, int *out, const int *most)
{
    int end = 0;

    for (int i = 0; i < count; i++) {
        if (text[0] < '0' || text[0] > '9' || sscanf(text, "%10d%n", &out[i], &end) != 1 || out[i] < 1 ||
            out[i] > most[i])
            return 0;
        text += end;
        if (i + 1 < count && *text++ != 'x')
            return 0;
    }
    return *text == ',' || *text == '\0';
}

static int take_input(struct fixed_layout *l, const char *value, int planar, enum fixed_type type)
{
    static const int most[] = { SIDE_MOST, SIDE_MOST, CHANNELS_MOST };
    static const int most_planes[] = { CHANNELS_MOST, SIDE_MOST, SIDE_MOST };
    int n[3];

    if (!take_numbers(value, 3, n, planar ? most_planes : most))
        return 0;
    l->planar = planar;
    l->type = type;
    l->channels = n[planar ? 0 : 2];
    l->height = n[planar ? 1 : 0];
    l->width = n[planar ? 2 : 1];
    l->input_at = l->bytes;
    if ((size_t)l->height * (size_t)l->width > SKIP_MOST / (size_t)l->channels / fixed_type_size(type))
        return 0;
    l->bytes += (size_t)l->height * (size_t)l->width * (size_t)l->channels * fixed_type_size(type);
    return 1;
}

int record_layout_parse(struct fixed_layout *out, const char *text, struct error *e)
{
    static const int label_most[] = { 4 }, skip_most[] = { SKIP_MOST };
    const char *at = text, *value;
    int n;

    *out = (struct fixed_layout){ 0 };
    if (!text || !*text)
        return error_set(e, ERR_ARG,
                         "--data records needs --record-fields, which says what a record consists of, such as "
                         "label=1,image=32x32x3");
    while (*at) {
        const size_t item = strcspn(at, ",");
        int right = 1;

        if (is_field(at, "label", &value)) {
            if (out->label_bytes)
                return wrong(text, at, item, "is a second label", e);
            if ((right = take_numbers(value, 1, &n, label_most) && n != 3)) {
                out->label_at = out->bytes;
                out->bytes += out->label_bytes = (size_t)n;
            }
        } else if (is_field(at, "skip", &value)) {
            if ((right = take_numbers(value, 1, &n, skip_most)))
                out->bytes += (size_t)n;
        } else if (!out->height && is_field(at, "image", &value)) {
            right = take_input(out, value, 0, FIXED_UINT8);
        } else if (!out->height && is_field(at, "planes", &value)) {
            right = take_input(out, value, 1, FIXED_UINT8);
        } else if (!out->height && is_field(at, "floats", &value)) {
            right = take_input(out, value, 0, FIXED_FLOAT_LITTLE);
        } else {
            return wrong(text, at, item, out->height ? "is not possible here" : "is no field", e);
        }
        if (!right || out->bytes > SKIP_MOST)
            return wrong(text, at, item, "is not possible", e);
        at += item + (at[item] == ',');
    }
    if (!out->label_bytes || !out->height)
        return wrong(text, "it", 2, out->height ? "has no label" : "has no image", e);
    return OK;
}
