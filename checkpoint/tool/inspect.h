/* inspect.h - what the files of `checkpoint inspect` share. */
#ifndef CHECKPOINT_TOOL_INSPECT_H
#define CHECKPOINT_TOOL_INSPECT_H

#include "base/program/selection.h"
#include "base/program/table.h"
#include "checkpoint/tensor_value.h"
#include "checkpoint/tool/output.h"
#include "checkpoint/tool/source.h"

#include <stdint.h>

struct inspect {
    struct output out;
    struct selection tensors;
    int statistics, all, values, tree;
    int64_t limit, depth; /* of --values and --tree; 0: default */
    int first;            /* of JSON's list */
    int sharded;          /* tensors are in several shards, or in slices */
    struct table table, bookkeeping;
    uint64_t count, elements, bytes, nan, inf, unread;
    int damaged;
};

/* a tensor that was read */
struct inspected {
    const struct source_tensor *tensor;
    struct tensor_statistics numbers;
    size_t shortest, longest; /* of strings */
    uint64_t length;
    struct buffer value; /* of bookkeeping, as text */
};

/* Writes the minimum or maximum of the values, exactly, as text to out, NUMBER_TEXT_MAX bytes. */
void inspect_bound(int type, const struct tensor_statistics *n, int most, char *out);

/* JSON: everything before the list of tensors, one tensor, and the end. */
void inspect_json_begin(struct inspect *x, const struct source *s);
int inspect_json_tensor(struct inspect *x, const struct source *s, const struct inspected *t, struct error *e);
void inspect_json_end(struct inspect *x);

/* Prints the values of a tensor under a line with its name, or as one value of JSON. */
int inspect_values(struct inspect *x, const struct source *s, const struct source_tensor *tensor, struct error *e);
int inspect_values_json(struct inspect *x, const struct source *s, const struct source_tensor *tensor, struct error *e);

/* Prints the wanted tensors, count of them, by the scopes in their names. */
int inspect_tree(struct inspect *x, const struct source_tensor **tensors, size_t count, struct error *e);

/* Lists the checkpoints of a directory. */
int inspect_directory(struct inspect *x, const char *directory, struct error *e);

#endif
