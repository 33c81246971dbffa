/*
 * write_made_checkpoints DIRECTORY SEED COUNT - writes the made checkpoints (tests/fuzz/made_checkpoint.h) of COUNT seeds
 * from SEED on as DIRECTORY/made-SEED.*, and prints a line of JSON for each: what was done to it, what our reader says of
 * it ("error": null or its sentence), and its tensors: as we read them, or where we refuse those that were made. Names and
 * bytes are hexadecimal; of strings each has its length before it, 8 bytes little-endian.
 */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/json.h"
#include "checkpoint/bundle_check.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/tensor_stream.h"
#include "tests/fuzz/made_checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void append_hex(struct buffer *out, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buffer_format(out, "%02x", (unsigned)(uint8_t)bytes[i]);
}

/* Strings one after another, each behind its length. */
static void append_strings(struct buffer *out, const char *stored, size_t n, uint64_t elements)
{
    struct tensor_string *strings = calloc((size_t)elements + 1, sizeof *strings);
    uint8_t length[8];

    if (!strings)
        abort();
    string_tensor_split(stored, n, elements, strings);
    for (uint64_t i = 0; i < elements; i++) {
        put_le64(length, strings[i].length);
        append_hex(out, (const char *)length, sizeof length);
        append_hex(out, strings[i].bytes, strings[i].length);
    }
    free(strings);
}

/* bytes: n as tensor_bundle_read gives them; null in the line where they are no strings, but damaged. */
static void append_tensor(struct buffer *out, const struct tensor_entry *t, const char *bytes, size_t n)
{
    uint32_t crc;

    buffer_append_text(out, out->length ? ",{\"name\":\"" : "{\"name\":\"");
    append_hex(out, t->name, t->name_length);
    buffer_format(out, "\",\"type\":%d,\"shape\":[", t->type);
    for (int d = 0; d < t->rank; d++)
        buffer_format(out, d ? ",%lld" : "%lld", (long long)t->shape[d]);
    buffer_format(out, "],\"sliced\":%s,\"bytes\":", t->slices ? "true" : "false");
    if (t->type == TENSOR_STRING && string_tensor_check(bytes, n, t->elements, &crc, NULL) != OK) {
        buffer_append_text(out, "null}");
        return;
    }
    buffer_append_byte(out, '"');
    if (t->type == TENSOR_STRING)
        append_strings(out, bytes, n, t->elements);
    else
        append_hex(out, bytes, n);
    buffer_append_text(out, "\"}");
}

static int append_read(struct buffer *out, struct tensor_bundle *b, const struct tensor_entry *entry, struct error *e)
{
    const size_t n = (size_t)tensor_entry_bytes(entry);
    struct tensor_stream *s = NULL;
    char *bytes = malloc(n + 1);
    size_t got;
    int rc = bytes ? tensor_stream_open(&s, b, entry, e) : ERR_NOMEM;

    if (rc == OK)
        rc = tensor_stream_read(s, bytes, n, &got, e);
    if (rc == OK)
        append_tensor(out, entry, bytes, n);
    tensor_stream_close(s);
    free(bytes);
    return rc;
}

static void take_problem(void *context, const struct error *problem)
{
    struct error *first = context;

    if (first->code == OK)
        *first = *problem;
}

/* Opens, reads and checks; the first thing wrong is in e. */
static int read_checkpoint(const char *prefix, struct buffer *out, struct error *e)
{
    struct bundle_check check = { .problem = take_problem, .context = e };
    struct tensor_bundle *b = NULL;
    int rc = tensor_bundle_open(&b, prefix, e);

    for (size_t i = 0; rc == OK && i < tensor_bundle_count(b); i++)
        rc = append_read(out, b, tensor_bundle_entry(b, i), e);
    if (rc == OK && (rc = bundle_check(&check, b, e)) == OK)
        rc = e->code;
    tensor_bundle_close(b);
    return rc;
}

static void put_line(const struct made_checkpoint *made, const char *prefix)
{
    static const char *const verdicts[] = { "sound", "damaged", "either" };
    struct buffer tensors = BUFFER_EMPTY, line = BUFFER_EMPTY;
    struct error e = { 0 };

    buffer_append_text(&line, "{\"prefix\":");
    json_text(&line, prefix);
    buffer_format(&line, ",\"verdict\":\"%s\",\"damage\":\"%s\",\"error\":", verdicts[made->verdict],
                  buffer_text(&made->damage));
    if (read_checkpoint(prefix, &tensors, &e) == OK) {
        buffer_append_text(&line, "null");
    } else {
        json_text(&line, e.message);
        buffer_clear(&tensors);
        for (size_t i = 0; i < made->count; i++) {
            const struct made_tensor *t = &made->tensor[i];
            struct tensor_entry entry = {
                .name = t->name.data, .name_length = t->name.length, .type = t->type, .rank = t->rank, .shape = t->shape
            };

            if (bundle_shape_elements(t->rank, t->shape, &entry.elements) != OK)
                abort();
            append_tensor(&tensors, &entry, buffer_text(&t->bytes), t->bytes.length);
        }
    }
    buffer_format(&line, ",\"tensors\":[%s]}", buffer_text(&tensors));
    if (!buffer_ok(&line) || !buffer_ok(&tensors))
        abort();
    puts(line.data);
    buffer_release(&line);
    buffer_release(&tensors);
}

int main(int argc, char **argv)
{
    char prefix[512];

    if (argc != 4) {
        fprintf(stderr, "usage: write_made_checkpoints DIRECTORY SEED COUNT\n");
        return 2;
    }
    for (uint64_t seed = strtoull(argv[2], NULL, 10), end = seed + strtoull(argv[3], NULL, 10); seed < end; seed++) {
        struct made_checkpoint made;

        snprintf(prefix, sizeof prefix, "%s/made-%" PRIu64, argv[1], seed);
        made_checkpoint_init(&made, decisions_from_seed(seed));
        made_checkpoint_write(&made, prefix);
        put_line(&made, prefix);
        made_checkpoint_release(&made);
    }
    return fflush(stdout) || ferror(stdout) ? 2 : 0;
}
