#include "eventlog/write/event_writer_value.h"

#include "base/bytes.h"
#include "eventlog/public.h"

#include <string.h>

int event_writer_value_check_tag(const char *tag, size_t n, struct error *e)
{
    size_t bad = 0;

    return utf8_valid(tag, n, &bad)
               ? OK
               : error_set(e, ERR_ARG,
                           "the tag is not UTF-8 at byte %zu (0x%02x); TensorBoard would give up on the file", bad,
                           (unsigned char)tag[bad]);
}

int event_writer_value_check(const struct event_writer_value *v, struct error *e)
{
    if (!v->tag || !*v->tag)
        return error_set(e, ERR_ARG, "a value needs a tag");
    if (event_writer_value_check_tag(v->tag, strlen(v->tag), e) != OK)
        return ERR_ARG;
    if (v->blob && v->tag[strcspn(v->tag, "\"\\\n")])
        return error_set(e, ERR_ARG,
                         "tag '%.80s': TensorBoard does not serve %s whose tag has a quote, a backslash or a newline",
                         v->tag, v->plugin);
    return OK;
}

void event_writer_value_shape(struct wire *w, const int64_t *shape, size_t rank)
{
    for (size_t i = 0; i < rank; i++) {
        size_t dimension = wire_begin(w, 2);

        wire_integer(w, 1, shape[i]);
        wire_end(w, dimension);
    }
}

size_t event_writer_value_tensor(struct wire *w, int dtype, const int64_t *shape, size_t rank)
{
    size_t tensor = wire_begin(w, VALUE_FIELD_TENSOR), dimensions;

    wire_integer(w, TENSOR_FIELD_DTYPE, dtype);
    dimensions = wire_begin(w, TENSOR_FIELD_SHAPE);
    event_writer_value_shape(w, shape, rank);
    wire_end(w, dimensions);
    return tensor;
}

uint8_t *event_writer_value_room(struct wire *w, int dtype, const int64_t *shape, size_t rank, size_t n)
{
    size_t tensor = event_writer_value_tensor(w, dtype, shape, rank);
    size_t content = n ? wire_begin(w, TENSOR_FIELD_CONTENT) : 0;
    char *room = n ? buffer_reserve(&w->bytes, n) : NULL;

    if (room) {
        memset(room, 0, n);
        w->bytes.length += n;
    }
    if (n)
        wire_end(w, content);
    wire_end(w, tensor);
    return n && buffer_ok(&w->bytes) ? (uint8_t *)w->bytes.data + w->bytes.length - n : NULL;
}

void event_writer_value_metadata(struct wire *out, const struct event_writer_value *v, const char *display_name,
                                 const char *description)
{
    size_t metadata = wire_begin(out, 9), plugin = wire_begin(out, 1);

    wire_text(out, 1, v->plugin);
    if (v->content_length)
        wire_bytes(out, 2, v->content, v->content_length);
    wire_end(out, plugin);
    wire_text(out, 2, display_name);
    wire_text(out, 3, description);
    wire_integer(out, 4, v->data_class);
    wire_end(out, metadata);
}

int event_writer_value_encode(struct wire *out, const struct event_writer_value *v, const struct wire *member,
                              const struct wire *metadata, struct error *e)
{
    size_t summary = wire_begin(out, EVENT_FIELD_SUMMARY), value = wire_begin(out, 1);

    wire_text(out, 1, v->tag);
    buffer_append(&out->bytes, member->bytes.data, member->bytes.length);
    buffer_append(&out->bytes, metadata->bytes.data, metadata->bytes.length);
    wire_end(out, value);
    wire_end(out, summary);
    return wire_check(out, v->plugin, e);
}
