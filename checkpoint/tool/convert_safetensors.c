/* Types without a counterpart are kept as the same bytes of another type, and named in the metadata under
 * "tensorflow.dtype/NAME", which source.c understands: "qint8", "complex128" (F64 with one dimension more), and for
 * strings, which are kept as a bundle stores them, "string[2, 3]" with their shape. */
#include "checkpoint/tool/convert_formats.h"

#include "base/buffer.h"
#include "checkpoint/tool/command.h"

#include <stdlib.h>
#include <string.h>

struct convert_safetensors_writing {
    struct conversion *conversion;
    struct safetensors_writer *writer;
    struct safetensors_header *header; /* as if read; memory of a tensor: a shape that is not the source's */
};

/* Makes a pair of texts, whose key has two parts. */
static int add_pair(struct convert_safetensors_writing *x, const char *before, const char *key, size_t key_length,
                    const char *value, size_t value_length)
{
    struct safetensors_pair *pair = &x->header->pairs[x->header->pair_count];
    size_t n = strlen(before);

    *pair = (struct safetensors_pair){ malloc(n + key_length + 1), malloc(value_length + 1), n + key_length,
                                       value_length };
    if (!pair->key || !pair->value) {
        free(pair->key);
        free(pair->value);
        return ERR_NOMEM;
    }
    memcpy(pair->key, before, n);
    memcpy(pair->key + n, key, key_length);
    pair->key[n + key_length] = '\0';
    memcpy(pair->value, value, value_length);
    pair->value[value_length] = '\0';
    x->header->pair_count++;
    return OK;
}

/* Fills in dtype and shape. 1: done, 0: safetensors has no type for it, < 0: no memory. */
static int describe(struct convert_safetensors_writing *x, const struct source_tensor *tensor,
                    struct safetensors_tensor *out)
{
    struct buffer hint = BUFFER_EMPTY;
    int rc = 1, as = source_kept_as(tensor->type);

    *out = (struct safetensors_tensor){
        .name = tensor->name, .name_length = tensor->name_length, .rank = tensor->rank, .shape = tensor->shape
    };
    if (tensor->section && (!tensor->type || tensor->packed)) {
        out->dtype = tensor->section->dtype; /* F4, F6 and such, from one safetensors file to another */
        out->begin = tensor->section->begin; /* for a type that is not known: how many bytes */
        out->end = tensor->section->end;
        return 1;
    }
    if ((out->dtype = safetensors_dtype(tensor->type)))
        return 1;
    if (!as)
        return 0;
    out->dtype = safetensors_dtype(as);
    buffer_append_text(&hint, tensor->type_name);
    if (tensor->type == TENSOR_STRING || as == TENSOR_DOUBLE) {
        int64_t *shape = malloc(((size_t)tensor->rank + 1) * sizeof *shape);

        if (shape && tensor->type == TENSOR_STRING) {
            command_shape(&hint, tensor->rank, tensor->shape);
            shape[0] = (int64_t)tensor->bytes;
            out->rank = 1;
        } else if (shape) {
            if (tensor->rank)
                memcpy(shape, tensor->shape, (size_t)tensor->rank * sizeof *shape);
            shape[out->rank++] = 2;
        }
        out->memory = shape;
        out->shape = shape;
        rc = shape ? 1 : ERR_NOMEM;
    }
    if (rc == 1 && (!buffer_ok(&hint) || add_pair(x, SOURCE_HINT, tensor->name, tensor->name_length, buffer_text(&hint),
                                                  hint.length) != OK)) {
        free(out->memory);
        rc = ERR_NOMEM;
    }
    buffer_release(&hint);
    return rc;
}

/* Copies the metadata of a safetensors source except for hints, which are made again. */
static int copy_pairs(struct convert_safetensors_writing *x, const struct safetensors_header *h)
{
    for (size_t i = 0; i < h->pair_count; i++)
        if (!source_is_hint(&h->pairs[i]) &&
            add_pair(x, "", h->pairs[i].key, h->pairs[i].key_length, h->pairs[i].value, h->pairs[i].value_length) != OK)
            return ERR_NOMEM;
    return OK;
}

static int list_tensors(struct convert_safetensors_writing *x, struct error *e)
{
    const struct source *s = &x->conversion->source;
    const struct safetensors_header *h = s->safetensors ? safetensors_contents(s->safetensors) : NULL;
    struct safetensors_header *to;
    int rc;

    if ((to = x->header = calloc(1, sizeof *to))) {
        to->tensors = calloc(s->count + 1, sizeof *to->tensors);
        to->pairs = calloc(s->count + (h ? h->pair_count : 0) + 1, sizeof *to->pairs);
    }
    rc = to && to->tensors && to->pairs ? 1 : ERR_NOMEM;
    if (rc == 1 && h && copy_pairs(x, h) != OK)
        rc = ERR_NOMEM;
    for (size_t i = 0; i < s->count && rc >= 0; i++) {
        if (!conversion_takes(x->conversion, &s->tensors[i]))
            continue;
        if ((rc = describe(x, &s->tensors[i], &to->tensors[to->count])) > 0)
            to->count++;
        else if (rc == 0)
            conversion_leave_out(x->conversion, &s->tensors[i], "safetensors");
    }
    return rc < 0 ? error_memory(e, s->path, "to list its tensors") : OK;
}

static int take_piece(void *context, const void *bytes, size_t n, struct error *e)
{
    return safetensors_writer_append(context, bytes, n, e);
}

static int write_tensors(struct convert_safetensors_writing *x, struct error *e)
{
    const struct safetensors_header *h = x->header;
    struct conversion *c = x->conversion;
    int rc = safetensors_writer_open(&x->writer, NULL, c->to, h->tensors, h->count, h->pairs, h->pair_count, e);

    if (rc != OK)
        return rc;
    c->source.as_stored = 1;
    for (size_t i = 0; i < h->count && rc == OK; i++) {
        const struct source_tensor *tensor = source_find(&c->source, h->tensors[i].name, h->tensors[i].name_length);

        rc = source_pieces(&c->source, tensor, take_piece, x->writer, e);
        c->written++;
        c->bytes += tensor->bytes;
    }
    if (rc == OK)
        return safetensors_writer_finish(x->writer, e);
    safetensors_writer_abandon(x->writer);
    return rc;
}

int convert_safetensors(struct conversion *c, struct error *e)
{
    struct convert_safetensors_writing x = { .conversion = c };
    int rc = conversion_check_free(c, c->to, e);

    if (rc == OK && (rc = list_tensors(&x, e)) == OK &&
        (rc = safetensors_layout(x.header->tensors, x.header->count, e)) == OK)
        rc = write_tensors(&x, e);
    safetensors_header_free(x.header);
    return rc;
}
