/*
 * source.h - a checkpoint of any format, as the commands see it: tensors in order of their names, read from first byte
 * to last through a buffer.
 */
#ifndef CHECKPOINT_TOOL_SOURCE_H
#define CHECKPOINT_TOOL_SOURCE_H

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_role.h"
#include "checkpoint/tensor_stream.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* all borrowed from the source */
struct source_tensor {
    const char *name;
    size_t name_length;
    int type; /* enum tensor_type or another DataType; 0: no DataType is the same */
    const char *type_name;
    enum tensor_role role;
    int rank;
    const int64_t *shape;
    uint64_t elements, bytes;
    int32_t shard; /* with offset: where its bytes are; neither is set for a partitioned variable */
    uint64_t offset;
    size_t slices;
    const struct tensor_entry *entry;         /* of a bundle, else NULL */
    const struct safetensors_tensor *section; /* of safetensors, else NULL */
    int packed;                               /* F4: two elements in a byte, but one in each byte that is read here */
    int64_t *own_shape;                       /* NULL, or the memory of shape */
};

struct source {
    char path[PATH_MAX];   /* the prefix or file that was found */
    const char *format;    /* "bundle", "safetensors" */
    int64_t step;          /* from the tensor global_step, else from the name; -1: none */
    struct error notes[2]; /* messages for people, if any: about the state file and the step */
    int32_t shards;
    struct tensor_bundle *bundle; /* one of these two, the other NULL */
    struct safetensors *safetensors;
    struct source_tensor *tensors;
    size_t count;
    int as_stored; /* set by the caller: packed tensors are read as they are */
};

/* path, index_only: as for find_checkpoint(). On OK *s is yours: source_close() it. With index_only no tensor of a
 * TensorFlow checkpoint can be read, and its data files may be missing. */
int source_open(struct source *s, const char *path, int index_only, struct error *e);
void source_close(struct source *s); /* fine on one that is all zero */

/* The tensor global_step of a TensorFlow checkpoint; -1: there is none, or e says why it cannot be read. */
int64_t source_global_step(struct tensor_bundle *b, struct error *e);
/* Sets e to the message that the step differs from the one in the name. */
void source_step_differs(const char *path, int64_t named, int64_t step, struct error *e);

/* NULL: there is no tensor with this name. */
const struct source_tensor *source_find(const struct source *s, const char *name, size_t length);

/* Types that safetensors lacks are stored there as the same bytes of another type; a metadata entry, whose key is this
 * one followed by the tensor's name, gives the real type (convert_safetensors.c). Such tensors have their real type
 * here, unless the bytes do not fit it. */
#define SOURCE_HINT "tensorflow.dtype/"
int source_kept_as(int type); /* the type that it is stored as; 0: it cannot be stored */
int source_is_hint(const struct safetensors_pair *pair);

/* Reads a tensor from its first byte to its last, as tensor_stream.h describes. */
struct source_stream {
    struct tensor_stream *bundle;
    const struct source *source; /* of a safetensors file */
    const struct source_tensor *tensor;
    uint64_t at;
};

int source_stream_open(struct source_stream *stream, const struct source *s, const struct source_tensor *tensor,
                       struct error *e);
int source_stream_read(struct source_stream *stream, void *out, size_t n, size_t *got, struct error *e);
void source_stream_close(struct source_stream *stream);

/* Passes the whole tensor to `take`, in pieces of whole elements. Ends with the first error. */
typedef int source_take(void *context, const void *bytes, size_t n, struct error *e);
int source_pieces(const struct source *s, const struct source_tensor *tensor, source_take *take, void *context,
                  struct error *e);

/* Reads and checks the whole tensor, into new memory, one byte longer; *out is yours to free(). */
int source_read(const struct source *s, const struct source_tensor *tensor, char **out, struct error *e);

/* The strings of a string tensor, with their bytes behind them; yours to free(), NULL after an error. */
int source_strings(const struct source *s, const struct source_tensor *tensor, struct tensor_string **out,
                   struct error *e);

#endif
