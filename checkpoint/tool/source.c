#include "checkpoint/tool/source.h"

#include "base/file.h"
#include "checkpoint/checkpoint_directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The prefix that a path means. */
static int find_prefix(struct source *s, const char *path, struct error *e)
{
    static const char suffix[] = ".index";
    size_t length = strlen(path), end = sizeof suffix - 1;
    char name[NAME_MAX + 1];
    struct stat st;
    int rc;

    if (length >= sizeof s->path)
        return error_set(e, ERR_ARG, "%s: path too long", path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if ((rc = checkpoint_directory_newest(path, name, sizeof name, e)) < 0)
            return rc;
        if (!rc)
            return error_set(e, ERR_ARG, "%s: no whole checkpoint in this directory", path);
        return file_join(s->path, sizeof s->path, path, name, e);
    }
    if (length > end && strcmp(path + length - end, suffix) == 0)
        length -= end;
    memcpy(s->path, path, length);
    s->path[length] = '\0';
    return OK;
}

static int open_bundle(struct source *s, struct error *e)
{
    int rc = tensor_bundle_open(&s->bundle, s->path, e);

    if (rc != OK)
        return rc;
    s->format = "TensorFlow bundle";
    s->shards = tensor_bundle_shards(s->bundle);
    s->count = tensor_bundle_count(s->bundle);
    if (!(s->tensors = calloc(s->count + 1, sizeof *s->tensors)))
        return error_set(e, ERR_NOMEM, "%s: no memory for its tensors", s->path);
    for (size_t i = 0; i < s->count; i++) {
        const struct tensor_entry *entry = tensor_bundle_entry(s->bundle, i);

        s->tensors[i] = (struct source_tensor){
            .name = entry->name, .name_length = entry->name_length, .type = entry->type,
            .type_name = tensor_type_name(entry->type), .rank = entry->rank, .shape = entry->shape,
            .elements = entry->elements, .bytes = tensor_entry_bytes(entry), .shard = entry->shard,
            .offset = (uint64_t)entry->offset, .slices = entry->slices, .entry = entry,
        };
    }
    return OK;
}

int source_open(struct source *s, const char *path, struct error *e)
{
    int rc;

    memset(s, 0, sizeof *s);
    if ((rc = find_prefix(s, path, e)) == OK && (rc = open_bundle(s, e)) == OK)
        s->step = checkpoint_name_step(file_base_name(s->path));
    if (rc != OK)
        source_close(s);
    return rc;
}

void source_close(struct source *s)
{
    tensor_bundle_close(s->bundle);
    free(s->tensors);
    memset(s, 0, sizeof *s);
}

int source_stream_open(struct source_stream *stream, const struct source *s, const struct source_tensor *tensor,
                       struct error *e)
{
    memset(stream, 0, sizeof *stream);
    return tensor_stream_open(&stream->bundle, s->bundle, tensor->entry, e);
}

int source_stream_read(struct source_stream *stream, void *out, size_t n, size_t *got, struct error *e)
{
    return tensor_stream_read(stream->bundle, out, n, got, e);
}

void source_stream_close(struct source_stream *stream)
{
    tensor_stream_close(stream->bundle);
}

int source_read(const struct source *s, const struct source_tensor *tensor, char **out, struct error *e)
{
    struct source_stream stream;
    size_t got = 0, done = 0, bytes = (size_t)tensor->bytes;
    int rc;

    *out = NULL;
    if (tensor->bytes >= SIZE_MAX || !(*out = malloc(bytes + 1)))
        return error_set(e, ERR_NOMEM, "%s: no memory for tensor %s", s->path, tensor->name);
    if ((rc = source_stream_open(&stream, s, tensor, e)) == OK)
        while ((rc = source_stream_read(&stream, *out + done, bytes - done, &got, e)) == OK && got)
            done += got;
    source_stream_close(&stream);
    if (rc == OK)
        return OK;
    free(*out);
    *out = NULL;
    return rc;
}
