#include "eventlog/tool/report/inspect_tree.h"

#include "base/array.h"
#include "base/human.h"
#include "base/program/terminal.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

int inspect_tree_add(struct inspect_tree *t, const struct inspect_run *run, struct error *e)
{
    struct inspect_leaf *leaf;

    if (!ARRAY_ROOM(t->leaves, t->capacity, t->count + 1))
        return error_memory(e, NULL, "for %zu runs", t->count + 1);
    leaf = &t->leaves[t->count++];
    *leaf = (struct inspect_leaf){ .name = run->name, .files = run->file_count };
    for (size_t i = 0; i < run->file_count; i++) {
        leaf->bytes += run->files[i].state.size;
        leaf->damage += run->files[i].damage_count;
        leaf->partial |= run->files[i].state.offset != run->files[i].state.size;
    }
    for (size_t i = 0; i < run->all.count; i++) {
        const struct scalar_series *s = &run->all.series[i];
        const struct step_list *steps;

        if (!s->seen && !s->skipped)
            continue;
        steps = &run->series[s->number].steps;
        for (size_t k = 0; s->seen && k < steps->count; k++) {
            const struct step_stretch *part = &steps->items[k];

            leaf->least = !(leaf->points + k) || part->first < leaf->least ? part->first : leaf->least;
            leaf->most = !(leaf->points + k) || part->last > leaf->most ? part->last : leaf->most;
        }
        leaf->series++;
        leaf->points += s->seen;
        leaf->values += s->skipped;
    }
    return OK;
}

void inspect_tree_release(struct inspect_tree *t)
{
    free(t->leaves);
    *t = (struct inspect_tree)INSPECT_TREE_EMPTY;
}

/* The log directory itself is first. */
static int by_path(const void *a, const void *b)
{
    const char *x = ((const struct inspect_leaf *)a)->name, *y = ((const struct inspect_leaf *)b)->name;
    int dot_x = !strcmp(x, "."), dot_y = !strcmp(y, ".");

    return dot_x || dot_y ? dot_y - dot_x : text_natural_order(x, y);
}

static void count_text(struct buffer *b, uint64_t n, const char *one)
{
    char count[HUMAN_TEXT_MAX];

    buffer_format(b, ", %s", human_count(n, one, count));
}

static void figures(struct buffer *b, const struct inspect_leaf *leaf)
{
    char size[HUMAN_TEXT_MAX];

    buffer_format(b, "  %s", human_bytes(leaf->bytes, size));
    count_text(b, leaf->files, "file");
    count_text(b, leaf->series, "series");
    if (leaf->points) {
        count_text(b, leaf->points, "point");
        buffer_format(b, ", steps %lld to %lld", (long long)leaf->least, (long long)leaf->most);
    }
    if (leaf->values)
        count_text(b, leaf->values, "other value");
    if (leaf->damage)
        buffer_format(b, ", damaged (%zu)", leaf->damage);
    else if (leaf->partial)
        buffer_append_text(b, ", stops inside a record");
}

/* The columns for a name in a line of `columns` (0: no limit) whose other parts take `rest`. */
static size_t room_for_name(int columns, size_t rest)
{
    enum { LEAST_OF_NAME = 24 };

    if (!columns)
        return SIZE_MAX;
    return (size_t)columns > rest + LEAST_OF_NAME ? (size_t)columns - rest : LEAST_OF_NAME;
}

int inspect_tree_print(struct output *out, struct inspect_tree *t, struct error *e)
{
    int columns = output_columns(out), good;
    struct buffer b = BUFFER_EMPTY, line = BUFFER_EMPTY, behind = BUFFER_EMPTY;
    const char *before = "";

    if (t->count)
        qsort(t->leaves, t->count, sizeof *t->leaves, by_path);
    for (size_t i = 0; i < t->count; i++) {
        const char *name = t->leaves[i].name;
        size_t same = 0, depth = 0;

        /* The directories that the run before has already shown: the whole parts that both names begin with. */
        for (size_t k = 0; strcmp(before, ".") != 0; k++) {
            if ((!before[k] || before[k] == '/') && (!name[k] || name[k] == '/'))
                same = k;
            if (!name[k] || name[k] != before[k])
                break;
        }
        for (size_t from = 0; from <= strlen(name); depth++) {
            size_t n = strcspn(name + from, "/");

            if (from + n > same || !same) {
                buffer_format(&b, "%*s", (int)(2 * depth), "");
                buffer_clear(&behind);
                if (!name[from + n])
                    figures(&behind, &t->leaves[i]);
                else
                    buffer_append_byte(&behind, '/');
                buffer_clear(&line);
                text_append_cut(&line, name + from, n, room_for_name(columns, 2 * depth + behind.length),
                                !terminal_utf8());
                buffer_append(&line, buffer_text(&behind), behind.length);
                text_append_wrapped(&b, buffer_text(&line), 2 * depth, 2 * depth + 4, (size_t)columns);
                buffer_append_byte(&b, '\n');
            }
            from += n + 1;
        }
        before = name;
    }
    good = buffer_ok(&b) && buffer_ok(&line) && buffer_ok(&behind);
    buffer_release(&line);
    buffer_release(&behind);
    output_bytes(out, buffer_text(&b), b.length);
    buffer_release(&b);
    return good ? OK : error_memory(e, NULL, "for the tree");
}
