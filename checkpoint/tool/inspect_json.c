#include "checkpoint/tool/inspect.h"

#include "base/json.h"
#include "base/number.h"
#include "checkpoint/tool/command.h"

#include <string.h>

static void put_metadata(struct buffer *b, const struct source *s)
{
    const struct safetensors_header *h = safetensors_contents(s->safetensors);
    const char *comma = "";

    buffer_append_text(b, ",\"metadata\":{");
    for (size_t i = 0; i < h->pair_count; i++)
        if (!source_is_hint(&h->pairs[i])) {
            buffer_append_text(b, comma);
            json_span(b, h->pairs[i].key, h->pairs[i].key_length, 0);
            buffer_append_byte(b, ':');
            json_span(b, h->pairs[i].value, h->pairs[i].value_length, 0);
            comma = ",";
        }
    buffer_append_byte(b, '}');
}

void inspect_json_begin(struct inspect *x, const struct source *s)
{
    struct buffer *b = &x->out.text;

    buffer_append_text(b, "{\"type\":\"inspect\",\"version\":1,\"path\":");
    json_text(b, s->path);
    buffer_format(b, ",\"format\":\"%s\",\"step\":", s->format);
    buffer_format(b, s->step < 0 ? "null" : "%lld", (long long)s->step);
    buffer_format(b, ",\"shards\":%d", (int)s->shards);
    if (s->safetensors)
        put_metadata(b, s);
    buffer_append_text(b, ",\"tensors\":[");
    x->first = 1;
}

static void put_statistics(struct buffer *b, int type, const struct tensor_statistics *n)
{
    const char *const names[] = { "mean", "std" };
    const double values[] = { n->mean, tensor_statistics_deviation(n) };
    char bound[NUMBER_TEXT_MAX];

    for (int i = 0; i < 2; i++) {
        buffer_format(b, ",\"%s\":", names[i]);
        if (n->finite)
            json_double(b, values[i]);
        else
            buffer_append_text(b, "null");
    }
    for (int i = 0; i < 2; i++) {
        inspect_bound(type, n, i, bound);
        buffer_format(b, ",\"%s\":%s", i ? "max" : "min", n->finite ? bound : "null");
    }
    buffer_format(b, ",\"nan\":%llu,\"inf\":%llu", (unsigned long long)n->nan, (unsigned long long)n->infinite);
}

int inspect_json_tensor(struct inspect *x, const struct source *s, const struct inspected *t, struct error *e)
{
    const struct source_tensor *tensor = t->tensor;
    struct buffer *b = &x->out.text;
    int rc = OK;

    buffer_append_text(b, x->first ? "\n{\"name\":" : ",\n{\"name\":");
    x->first = 0;
    json_span(b, tensor->name, tensor->name_length, 0);
    buffer_format(b, ",\"role\":\"%s\",\"dtype\":\"%s\",\"shape\":", tensor_role_name(tensor->role), tensor->type_name);
    command_shape(b, tensor->rank, tensor->shape);
    buffer_format(b, ",\"elements\":%llu,\"bytes\":%llu", (unsigned long long)tensor->elements,
                  (unsigned long long)tensor->bytes);
    if (tensor->slices)
        buffer_format(b, ",\"slices\":%zu", tensor->slices);
    else
        buffer_format(b, ",\"shard\":%d,\"offset\":%llu", (int)tensor->shard, (unsigned long long)tensor->offset);
    if (x->statistics && tensor->type == TENSOR_STRING)
        buffer_format(b, ",\"shortest\":%zu,\"longest\":%zu,\"length\":%llu", t->shortest, t->longest,
                      (unsigned long long)t->length);
    else if (x->statistics && tensor_kind(tensor->type))
        put_statistics(b, tensor->type, &t->numbers);
    if (x->statistics && tensor->role == TENSOR_ROLE_BOOKKEEPING) {
        buffer_append_text(b, ",\"value\":");
        json_span(b, buffer_text(&t->value), t->value.length, 0);
    }
    if (x->values) {
        buffer_append_text(b, ",\"values\":");
        rc = inspect_values_json(x, s, tensor, e);
    }
    buffer_append_byte(b, '}');
    output_put(&x->out);
    return rc;
}

void inspect_json_end(struct inspect *x)
{
    buffer_format(&x->out.text,
                  "\n],\"total\":{\"tensors\":%llu,\"elements\":%llu,\"bytes\":%llu,\"nan\":%llu,"
                  "\"inf\":%llu,\"not_read\":%llu}}\n",
                  (unsigned long long)x->count, (unsigned long long)x->elements, (unsigned long long)x->bytes,
                  (unsigned long long)x->nan, (unsigned long long)x->inf, (unsigned long long)x->unread);
}
