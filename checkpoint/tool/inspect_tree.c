/* checkpoint inspect --tree: tensors by the scopes in their names, with the size of each scope. */
#include "checkpoint/tool/inspect.h"

#include "base/human.h"
#include "checkpoint/tool/command.h"

#include <stdlib.h>
#include <string.h>

struct leaf {
    const struct source_tensor *tensor;
    const char *name;
    size_t length; /* of the name, without what TensorFlow 2 appends to it */
};

struct tree {
    struct inspect *x;
    struct leaf *leaves;
    char separator;
};

/* The members of a scope come right after it: the separator sorts before any other byte. */
static int compare_leaves(const void *a, const void *b, void *context)
{
    const struct leaf *x = a, *y = b;
    const char separator = *(const char *)context;
    size_t i = 0;

    while (i < x->length && i < y->length && x->name[i] == y->name[i])
        i++;
    if (i == x->length || i == y->length)
        return (x->length > y->length) - (x->length < y->length);
    if (x->name[i] == separator || y->name[i] == separator)
        return x->name[i] == separator ? -1 : 1;
    return (unsigned char)x->name[i] < (unsigned char)y->name[i] ? -1 : 1;
}

/* The length of the part of the name that begins at `at`. */
static size_t part_length(const struct tree *t, const struct leaf *leaf, size_t at)
{
    const char *end = memchr(leaf->name + at, t->separator, leaf->length - at);

    return end ? (size_t)(end - leaf->name) - at : leaf->length - at;
}

/* The end of the leaves that have the same part there as the one at `from`. */
static size_t same_part(const struct tree *t, size_t from, size_t to, size_t at, size_t length)
{
    size_t i = from + 1;

    while (i < to && t->leaves[i].length >= at + length && part_length(t, &t->leaves[i], at) == length &&
           memcmp(t->leaves[i].name + at, t->leaves[from].name + at, length) == 0)
        i++;
    return i;
}

static void put_row(struct tree *t, size_t from, size_t to, size_t at, size_t length, int depth)
{
    const struct source_tensor *first = t->leaves[from].tensor;
    struct table *table = &t->x->table;
    struct buffer text = BUFFER_EMPTY;
    uint64_t values = 0, bytes = 0;
    char size[HUMAN_TEXT_MAX];

    for (size_t i = from; i < to; i++) {
        values += t->leaves[i].tensor->elements;
        bytes += t->leaves[i].tensor->bytes;
    }
    buffer_format(&text, "%*s", 2 * depth, "");
    buffer_append(&text, t->leaves[from].name + at, length);
    table_text(table, buffer_text(&text), text.length);
    table->cells.failed |= text.failed;
    table_cell(table, "%zu", to - from);
    table_cell(table, "%llu", (unsigned long long)values);
    table_cell(table, "%s", human_bytes(bytes, size));
    buffer_clear(&text);
    if (to - from == 1) {
        buffer_format(&text, "%s ", first->type_name);
        command_shape(&text, first->rank, first->shape);
    }
    table_text(table, buffer_text(&text), text.length);
    table->cells.failed |= text.failed;
    buffer_release(&text);
}

/* The leaves from..to have the same name up to byte `at`. */
static void put_scope(struct tree *t, size_t from, size_t to, size_t at, int depth)
{
    while (from < to) {
        const struct leaf *leaf = &t->leaves[from];
        size_t length = part_length(t, leaf, at), end = same_part(t, from, to, at, length);

        /* Parts without a branch are printed together. */
        while (at + length < leaf->length) {
            size_t next = part_length(t, leaf, at + length + 1);

            if (same_part(t, from, end, at + length + 1, next) != end)
                break;
            length += 1 + next;
        }
        put_row(t, from, end, at, length, depth);
        from += leaf->length == at + length; /* a tensor with the scope's own name */
        if (depth + 1 < t->x->depth && end - from > 0 && t->leaves[end - 1].length > at + length)
            put_scope(t, from, end, at + length + 1, depth + 1);
        from = end;
    }
}

int inspect_tree(struct inspect *x, const struct source_tensor **tensors, size_t count, struct error *e)
{
    static const char attribute[] = "/.ATTRIBUTES/VARIABLE_VALUE";
    static const struct table_column columns[] = {
        { .title = "scope", .cut = 20 },
        { .title = "tensors", .right = 1 },
        { .title = "values", .right = 1, .leave_out = 2 },
        { .title = "size", .right = 1 },
        { .title = "tensor", .cut = 12, .leave_out = 1 },
    };
    struct tree t = { x, calloc(count + 1, sizeof *t.leaves), '.' };

    if (!t.leaves)
        return error_memory(e, NULL, "for the tree");
    for (size_t i = 0; i < count; i++) {
        size_t n = tensors[i]->name_length, end = sizeof attribute - 1;

        if (n > end && memcmp(tensors[i]->name + n - end, attribute, end) == 0)
            n -= end;
        t.leaves[i] = (struct leaf){ tensors[i], tensors[i]->name, n };
        if (memchr(tensors[i]->name, '/', n))
            t.separator = '/'; /* else PyTorch's names */
        x->elements += tensors[i]->elements;
        x->bytes += tensors[i]->bytes;
    }
    x->count = count;
    qsort_r(t.leaves, count, sizeof *t.leaves, compare_leaves, &t.separator);
    table_init(&x->table, columns, sizeof columns / sizeof *columns);
    put_scope(&t, 0, count, 0, 0);
    command_table(&x->table, &x->out);
    free(t.leaves);
    return OK;
}
