#include "dataset/stream/example.h"

#include "base/bytes.h"

#include <string.h>

/* An entry that does not end in the window is looked into this far for its key. */
enum { HEAD = 256, FIELD_HEAD_MAX = 2 * VARINT_MAX };
enum { VARINT, FIXED64, DELIMITED, FIXED32 = 5 };

static const char *const part_names[EXAMPLE_PARTS] = { "image", "format", "label", "height", "width", "channels" };
static const char *const usual_keys[EXAMPLE_PARTS] = { "image/encoded", "image/format", "image/class/label",
                                                       "image/height",  "image/width",  "image/channels" };

int example_keys_parse(struct example_keys *out, const char *text, struct error *e)
{
    for (int part = 0; part < EXAMPLE_PARTS; part++) {
        out->of[part].text = usual_keys[part];
        out->of[part].length = strlen(usual_keys[part]);
    }
    while (text && *text) {
        const size_t item = strcspn(text, ","), name = strcspn(text, "=,");
        int part = 0;

        while (part < EXAMPLE_PARTS && (strlen(part_names[part]) != name || strncmp(text, part_names[part], name) != 0))
            part++;
        if (part == EXAMPLE_PARTS || name + 1 >= item)
            return error_set(e, ERR_ARG,
                             "--example-keys %.*s: must be PART=KEY, where PART is image, format, label, height, width "
                             "or channels",
                             item > 80 ? 80 : (int)item, text);
        out->of[part].text = text + name + 1;
        out->of[part].length = item - name - 1;
        text += item + (text[item] == ',');
    }
    return OK;
}

/* ---- the wire format --------------------------------------------------------------------------------------------- */

struct piece {
    const uint8_t *bytes;
    size_t n;
};

struct wire_field {
    uint64_t number, value; /* value: of a varint; of DELIMITED its length */
    int type;
    struct piece body; /* of DELIMITED, as far as it is there */
};

/* Reads the head of the next field of p, and its body unless that is longer than p; p then begins after what was
 * read. Returns 0: cut off in the head or in a number; -1: not possible in protobuf. */
static int take_field(struct piece *p, struct wire_field *f)
{
    uint64_t tag;
    size_t n;
    int used = get_varint(p->bytes, p->n, &tag);

    if (used <= 0)
        return used;
    n = (size_t)used;
    *f = (struct wire_field){ .number = tag >> 3, .type = (int)(tag & 7) };
    if (f->number == 0 || f->number > 0x1fffffff)
        return -1;
    if (f->type == VARINT || f->type == DELIMITED) {
        if ((used = get_varint(p->bytes + n, p->n - n, &f->value)) <= 0)
            return used;
        n += (size_t)used;
    } else if (f->type == FIXED64 || f->type == FIXED32) {
        const size_t width = f->type == FIXED64 ? 8 : 4;

        if (p->n - n < width)
            return 0;
        n += width;
    } else {
        return -1; /* groups are not in these messages */
    }
    p->bytes += n;
    p->n -= n;
    if (f->type == DELIMITED) {
        f->body = (struct piece){ p->bytes, f->value < p->n ? (size_t)f->value : p->n };
        p->bytes += f->body.n;
        p->n -= f->body.n;
    }
    return 1;
}

/* The same in a message that is whole: a field that ends behind it is an error, too. 0: at its end. */
static int take_whole(struct piece *p, struct wire_field *f)
{
    int rc = p->n ? take_field(p, f) : 0;

    if (p->n == 0 && rc == 0)
        return 0;
    return rc == 1 && (f->type != DELIMITED || f->value == f->body.n) ? 1 : -1;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

struct value_list {
    int kind; /* 1 bytes, 2 floats, 3 integers; 0: none */
    size_t count;
    struct piece last_bytes;
    int64_t last_number;
};

static int list_integers(struct piece packed, struct value_list *out)
{
    while (packed.n) {
        uint64_t value;
        int used = get_varint(packed.bytes, packed.n, &value);

        if (used <= 0)
            return -1;
        packed.bytes += used;
        packed.n -= (size_t)used;
        out->last_number = (int64_t)value;
        out->count++;
    }
    return 0;
}

static int read_list(struct piece list, int kind, struct value_list *out)
{
    struct wire_field f;
    int rc;

    *out = (struct value_list){ .kind = kind };
    while ((rc = take_whole(&list, &f)) > 0) {
        if (f.number != 1)
            continue;
        if (kind == 1 && f.type == DELIMITED) {
            out->last_bytes = f.body;
            out->count++;
        } else if (kind == 3 && f.type == VARINT) {
            out->last_number = (int64_t)f.value;
            out->count++;
        } else if (kind == 3 && f.type == DELIMITED && list_integers(f.body, out) < 0) {
            return -1;
        }
    }
    return rc;
}

static int read_feature(struct piece feature, struct value_list *out)
{
    struct wire_field f;
    int rc;

    *out = (struct value_list){ 0 };
    while ((rc = take_whole(&feature, &f)) > 0)
        if (f.type == DELIMITED && f.number >= 1 && f.number <= 3 && read_list(f.body, (int)f.number, out) < 0)
            return -1;
    return rc;
}

static const char *const wrong_kind[EXAMPLE_PARTS] = {
    "its image is no list of bytes", "its format is no list of bytes", "its label is no integer",
    "its height is no integer",      "its width is no integer",        "its number of channels is no integer",
};
static const char *const wrong_count[EXAMPLE_PARTS] = {
    "it has several images, or none under the key",
    "its format has not one value",
    "its label has not one value",
    "its height has not one value",
    "its width has not one value",
    "its number of channels has not one value",
};

static int take_value(struct example_scan *s, enum example_part part, struct piece feature)
{
    const int kind = part == EXAMPLE_IMAGE || part == EXAMPLE_FORMAT ? 1 : 3;
    struct value_list list;

    if (read_feature(feature, &list) < 0) {
        s->problem = "a value is no Feature";
        return ERR_CORRUPT;
    }
    if (list.kind != kind || list.count != 1) {
        s->problem = list.kind != kind && list.kind ? wrong_kind[part] : wrong_count[part];
        return ERR_CORRUPT;
    }
    s->found.found |= 1u << part;
    s->found.bytes[part] = list.last_bytes.bytes;
    s->found.length[part] = list.last_bytes.n;
    s->found.number[part] = list.last_number;
    return OK;
}

/* The part whose key this is; EXAMPLE_PARTS: of none that is wanted. */
static enum example_part part_of(const struct example_scan *s, struct piece key)
{
    int part = 0;

    while (part < EXAMPLE_PARTS && (!(s->wanted & 1u << part) || s->keys->of[part].length != key.n ||
                                    memcmp(s->keys->of[part].text, key.bytes, key.n) != 0))
        part++;
    return (enum example_part)part;
}

/* 1: this beginning of an entry tells that nothing in it is wanted. */
static int may_be_skipped(const struct example_scan *s, struct piece head)
{
    struct wire_field f;

    return take_field(&head, &f) == 1 && f.number == 1 && f.type == DELIMITED && f.value == f.body.n &&
           part_of(s, f.body) == EXAMPLE_PARTS;
}

static int take_entry(struct example_scan *s, struct piece entry)
{
    struct piece key = { (const uint8_t *)"", 0 }, feature = key;
    enum example_part part;
    struct wire_field f;
    int rc;

    if (may_be_skipped(s, entry))
        return OK;
    while ((rc = take_whole(&entry, &f)) > 0) {
        if (f.type == DELIMITED && f.number == 1)
            key = f.body;
        else if (f.type == DELIMITED && f.number == 2)
            feature = f.body;
    }
    if (rc < 0) {
        s->problem = "an entry is damaged";
        return ERR_CORRUPT;
    }
    part = part_of(s, key);
    return part == EXAMPLE_PARTS ? OK : take_value(s, part, feature);
}

/* ---- the record -------------------------------------------------------------------------------------------------- */

void example_scan_begin(struct example_scan *s, const struct example_keys *keys, unsigned wanted, size_t size)
{
    *s = (struct example_scan){ .keys = keys, .wanted = wanted, .size = size };
    s->need = size < HEAD ? size : HEAD;
}

static int not_an_example(struct example_scan *s)
{
    s->problem = "it is no tf.train.Example";
    return ERR_CORRUPT;
}

/* Goes on at s->position + n; of what is left there, the next window has at least `wanted` bytes. */
static int go_on(struct example_scan *s, size_t n, size_t wanted)
{
    s->position += n;
    s->need = s->size - s->position < wanted ? s->size - s->position : wanted;
    return 0;
}

int example_scan_next(struct example_scan *s, const uint8_t *window, size_t n)
{
    struct piece left = { window, n < s->size - s->position ? n : s->size - s->position };

    for (;;) {
        const size_t from = (size_t)(left.bytes - window), at = s->position + from;
        const size_t end = s->end ? s->end : s->size, inside = end - at;
        struct piece field = { left.bytes, left.n < inside ? left.n : inside };
        struct wire_field f;
        size_t head;
        int rc;

        if (at == end && s->end) {
            s->end = 0;
            continue;
        }
        if (at == end)
            return 1;
        if (left.n < FIELD_HEAD_MAX && left.n < s->size - at)
            return go_on(s, from, HEAD);
        if ((rc = take_field(&field, &f)) <= 0)
            return not_an_example(s);
        head = (size_t)(field.bytes - left.bytes) - f.body.n;
        if (f.type == DELIMITED && f.value > inside - head)
            return not_an_example(s);
        if (!s->end && f.type == DELIMITED && f.number == 1) { /* Features: what is in them comes next */
            if (f.value)
                s->end = at + head + (size_t)f.value;
            left.bytes += head;
            left.n -= head;
            continue;
        }
        if (f.type == DELIMITED && f.value > f.body.n) { /* ends behind the window */
            const int entry = s->end && f.number == 1;

            if (entry && f.body.n < HEAD && !may_be_skipped(s, f.body))
                return from ? go_on(s, from, head + HEAD) : go_on(s, 0, head + (size_t)f.value);
            if (entry && !may_be_skipped(s, f.body))
                return go_on(s, from, head + (size_t)f.value);
            return go_on(s, from + head + (size_t)f.value, HEAD);
        }
        if (s->end && f.type == DELIMITED && f.number == 1 && take_entry(s, f.body) < 0)
            return ERR_CORRUPT;
        left.bytes = field.bytes;
        left.n -= (size_t)(field.bytes - window) - from;
    }
}

int example_scan_whole(struct example_scan *s, const struct example_keys *keys, unsigned wanted, const uint8_t *record,
                       size_t n)
{
    example_scan_begin(s, keys, wanted, n);
    return example_scan_next(s, record, n) < 0 ? ERR_CORRUPT : OK;
}
