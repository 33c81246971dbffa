/*
 * bundle_tool.c - lets a Python test compare checkpoints: reads and writes them through checkpoint/.
 *
 *   dump PREFIX OUT       JSON of all tensors on stdout, their bytes one after another into the file OUT
 *   write PREFIX LIST IN  writes what LIST says, with bytes of the file IN; a line is
 *                         TYPE OFFSET SIZE NAME RANK DIM... [START... LENGTH...]   (a slice where these follow)
 *                         strings (TYPE 7) are stored as in a checkpoint's data, without their check
 *   snappy IN OUT         the same index with compressed data blocks
 *   newest DIRECTORY      the name of the newest whole checkpoint
 */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/tensor_bundle.h"

#include <snappy-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int dump_entry(struct tensor_bundle *b, const struct tensor_entry *entry, struct buffer *json, FILE *out,
                      struct error *e)
{
    size_t n = (size_t)tensor_entry_bytes(entry);
    char *bytes = malloc(n + 1);
    int rc = bytes ? tensor_bundle_read(b, entry, bytes, n, e) : ERR_NOMEM;

    if (rc == OK && fwrite(bytes, 1, n, out) != n)
        rc = error_system(e, "cannot write the bytes");
    buffer_append_text(json, "{\"name\": ");
    json_span(json, entry->name, entry->name_length, 0);
    buffer_format(json, ", \"type\": %d, \"type_name\": \"%s\", \"size\": %zu, \"slices\": %zu, \"shape\": [",
                  entry->type, tensor_type_name(entry->type), n, entry->slices);
    for (int d = 0; d < entry->rank; d++)
        buffer_format(json, d ? ", %lld" : "%lld", (long long)entry->shape[d]);
    buffer_append_text(json, "]}");
    free(bytes);
    return rc;
}

static int dump(const char *prefix, const char *out_path, struct error *e)
{
    struct buffer json = BUFFER_EMPTY;
    struct tensor_bundle *b;
    FILE *out;
    int rc = tensor_bundle_open(&b, prefix, e);

    if (rc != OK)
        return rc;
    if (!(out = fopen(out_path, "wb"))) {
        tensor_bundle_close(b);
        return error_system(e, "%s", out_path);
    }
    buffer_append_byte(&json, '[');
    for (size_t i = 0; i < tensor_bundle_count(b) && rc == OK; i++) {
        if (i)
            buffer_append_text(&json, ",\n");
        rc = dump_entry(b, tensor_bundle_entry(b, i), &json, out, e);
    }
    fclose(out);
    if (rc == OK)
        printf("%s]\n", buffer_text(&json));
    buffer_release(&json);
    tensor_bundle_close(b);
    return rc;
}

/* Strings come as varint lengths and bytes; the writer adds the check between them. */
static int add_strings(struct tensor_bundle_writer *w, const char *name, int rank, const int64_t *shape,
                       const char *bytes, size_t n, struct error *e)
{
    struct tensor_string *strings;
    size_t count = 1, at = 0, begin;
    int rc;

    for (int d = 0; d < rank; d++)
        count *= (size_t)shape[d];
    strings = calloc(count + 1, sizeof *strings);
    for (size_t i = 0; i < count; i++) {
        uint64_t length = 0;

        at += (size_t)get_varint(bytes + at, n - at, &length);
        strings[i].length = (size_t)length;
    }
    begin = at;
    for (size_t i = 0; i < count; i++) {
        strings[i].bytes = bytes + begin;
        begin += strings[i].length;
    }
    rc = tensor_bundle_writer_add_strings(w, name, rank, shape, strings, count, e);
    free(strings);
    return rc;
}

/* One line of LIST. */
static int add_line(struct tensor_bundle_writer *w, const char *line, const struct buffer *in, struct error *e)
{
    int64_t numbers[3 * TENSOR_RANK_MAX] = { 0 };
    int type, rank, used, count = 0;
    size_t offset, size;
    char name[4096];

    if (sscanf(line, "%d %zu %zu %4095s %d%n", &type, &offset, &size, name, &rank, &used) != 5 || rank < 0 ||
        rank > TENSOR_RANK_MAX || offset > in->length || size > in->length - offset)
        return error_set(e, ERR_ARG, "bad line: %s", line);
    for (line += used; count < 3 * rank && sscanf(line, "%ld%n", &numbers[count], &used) == 1; line += used)
        count++;
    if (count == 3 * rank && rank)
        return tensor_bundle_writer_add_slice(w, name, type, rank, numbers, numbers + rank, numbers + 2 * rank,
                                              in->data + offset, size, e);
    if (count != rank)
        return error_set(e, ERR_ARG, "%s: %d numbers for rank %d", name, count, rank);
    if (type == TENSOR_STRING)
        return add_strings(w, name, rank, numbers, in->data + offset, size, e);
    return tensor_bundle_writer_add(w, name, type, rank, numbers, buffer_text(in) + offset, size, e);
}

static int write_bundle(const char *prefix, const char *list_path, const char *in_path, struct error *e)
{
    struct buffer list = BUFFER_EMPTY, in = BUFFER_EMPTY;
    struct tensor_bundle_writer *w = NULL;
    char *line, *rest;
    int rc;

    if ((rc = file_read(list_path, (size_t)1 << 30, &list, e)) != OK ||
        (rc = file_read(in_path, (size_t)1 << 32, &in, e)) != OK ||
        (rc = tensor_bundle_writer_open(&w, NULL, prefix, e)) != OK)
        goto out;
    for (line = strtok_r(list.data, "\n", &rest); line && rc == OK; line = strtok_r(NULL, "\n", &rest))
        rc = add_line(w, line, &in, e);
    if (rc == OK) {
        rc = tensor_bundle_writer_finish(w, e);
        w = NULL;
    }
    tensor_bundle_writer_abandon(w);
out:
    buffer_release(&list);
    buffer_release(&in);
    return rc;
}

static void append_varint(struct buffer *b, uint64_t v)
{
    uint8_t bytes[VARINT_MAX];

    buffer_append(b, bytes, (size_t)put_varint(bytes, v));
}

static void append_le32(struct buffer *b, size_t v)
{
    uint8_t bytes[4];

    put_le32(bytes, (uint32_t)v);
    buffer_append(b, bytes, 4);
}

/* Appends block and trailer; returns its stored size. */
static size_t append_block(struct buffer *file, const char *bytes, size_t n, int compress)
{
    size_t begin = file->length, size = snappy_max_compressed_length(n);

    if (compress) {
        char *packed = malloc(size);

        if (packed && snappy_compress(bytes, n, packed, &size) == SNAPPY_OK)
            buffer_append(file, packed, size);
        free(packed);
    } else {
        buffer_append(file, bytes, n);
    }
    size = file->length - begin;
    buffer_append_byte(file, compress);
    append_le32(file, crc32c_mask(crc32c(file->data + begin, size + 1)));
    return size;
}

/* The index is one that TensorFlow or we wrote, so nothing is checked. Index entries share nothing. */
static int compress_index(const char *from, const char *to, struct error *e)
{
    struct buffer in = BUFFER_EMPTY, out = BUFFER_EMPTY, index = BUFFER_EMPTY, restarts = BUFFER_EMPTY;
    uint64_t at, size, skip, offset, length[3];
    size_t p, end, count = 0, metaindex, index_at;
    int rc = file_read(from, (size_t)1 << 30, &in, e);

    if (rc != OK)
        return rc;
    p = in.length - 48;
    p += (size_t)get_varint(in.data + p, 10, &skip);
    p += (size_t)get_varint(in.data + p, 10, &skip);
    p += (size_t)get_varint(in.data + p, 10, &at);
    get_varint(in.data + p, 10, &size);
    end = (size_t)(at + size);
    end -= 4 + 4 * (size_t)get_le32(in.data + end - 4);
    for (p = (size_t)at; p < end; count++) {
        size_t stored, place = out.length, key;

        for (int i = 0; i < 3; i++)
            p += (size_t)get_varint(in.data + p, 10, &length[i]);
        key = p;
        p += (size_t)length[1];
        p += (size_t)get_varint(in.data + p, 10, &offset);
        p += (size_t)get_varint(in.data + p, 10, &size);
        stored = append_block(&out, in.data + offset, (size_t)size, 1);
        append_le32(&restarts, index.length);
        append_varint(&index, 0);
        append_varint(&index, length[1]);
        append_varint(&index, (uint64_t)varint_size(place) + (uint64_t)varint_size(stored));
        buffer_append(&index, in.data + key, (size_t)length[1]);
        append_varint(&index, place);
        append_varint(&index, stored);
    }
    buffer_append(&index, restarts.data, restarts.length);
    append_le32(&index, count);
    metaindex = out.length;
    append_block(&out, "\0\0\0\0\1\0\0\0", 8, 0);
    index_at = out.length;
    append_block(&out, index.data, index.length, 0);
    end = out.length;
    append_varint(&out, metaindex);
    append_varint(&out, 8);
    append_varint(&out, index_at);
    append_varint(&out, index.length);
    while (out.length < end + 40)
        buffer_append_byte(&out, 0);
    buffer_append(&out, in.data + in.length - 8, 8);
    rc = file_replace(NULL, to, out.data, out.length, e);
    buffer_release(&in);
    buffer_release(&out);
    buffer_release(&index);
    buffer_release(&restarts);
    return rc;
}

int main(int argc, char **argv)
{
    struct error e = { 0 };
    char name[4096];
    int rc = ERR_ARG;

    if (argc == 4 && strcmp(argv[1], "dump") == 0)
        rc = dump(argv[2], argv[3], &e);
    else if (argc == 5 && strcmp(argv[1], "write") == 0)
        rc = write_bundle(argv[2], argv[3], argv[4], &e);
    else if (argc == 4 && strcmp(argv[1], "snappy") == 0)
        rc = compress_index(argv[2], argv[3], &e);
    else if (argc == 3 && strcmp(argv[1], "newest") == 0) {
        rc = checkpoint_directory_newest(argv[2], name, sizeof name, &e);
        if (rc >= 0)
            puts(rc ? name : "");
    } else
        error_set(&e, ERR_ARG, "usage: bundle_tool dump|write|snappy|newest ARGUMENT...");
    if (rc < 0)
        fprintf(stderr, "bundle_tool: %s\n", e.message);
    return rc < 0;
}
