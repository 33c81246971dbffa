/*
 * checkpoint verify: is a checkpoint, or a directory of them, intact to the last byte? Opening a bundle checks the
 * index, its lengths and slices; here come the bytes of each tensor, tensors that lie over each other, slices that
 * nobody lists, and what the state file says.
 */
#include "base/buffer.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/checkpoint_directory.h"
#include "checkpoint/state_file.h"
#include "checkpoint/tensor_stream.h"
#include "checkpoint/tool/command.h"
#include "checkpoint/tool/find.h"
#include "checkpoint/tool/loose_slice.h"
#include "checkpoint/tool/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 18, STATE_FILE_MAX = 64 << 20 };

struct verify {
    struct output out;
    struct selection wanted;
    int first_path, first_finding;
    uint64_t findings, here; /* in all, in this checkpoint */
    uint64_t tensors, bytes; /* read of this checkpoint */
    struct buffer notes;     /* of it, as JSON */
    int failed;              /* a path was no checkpoint at all */
};

/* ---- telling --------------------------------------------------------------------------------------------------- */

static void begin_path(struct verify *v, const char *path)
{
    v->here = v->tensors = v->bytes = 0;
    v->first_finding = 1;
    if (!v->out.json)
        return;
    buffer_append_text(&v->out.text, v->first_path ? "\n{\"path\":" : ",\n{\"path\":");
    v->first_path = 0;
    json_text(&v->out.text, path);
    buffer_append_text(&v->out.text, ",\"findings\":[");
}

static void finding(void *context, const struct error *e)
{
    struct verify *v = context;

    v->here++;
    v->findings++;
    if (v->out.json) {
        buffer_append_text(&v->out.text, v->first_finding ? "" : ",");
        json_text(&v->out.text, e->message);
        v->first_finding = 0;
    } else {
        text_append_safe(&v->out.text, e->message, strlen(e->message));
        buffer_append_text(&v->out.text, "\n");
    }
    output_put(&v->out);
}

/* What is no damage, but good to know. */
static void note(struct verify *v, const struct error *e)
{
    if (v->out.json) {
        buffer_append_text(&v->notes, v->notes.length ? "," : "");
        json_text(&v->notes, e->message);
        return;
    }
    buffer_append_text(&v->out.text, "note: ");
    text_append_safe(&v->out.text, e->message, strlen(e->message));
    buffer_append_byte(&v->out.text, '\n');
    output_put(&v->out);
}

static void end_path(struct verify *v, const char *path)
{
    struct buffer *b = &v->out.text;
    char size[HUMAN_TEXT_MAX];

    if (v->out.json) {
        buffer_append_text(b, "],\"notes\":[");
        buffer_append(b, buffer_text(&v->notes), v->notes.length);
        b->failed |= v->notes.failed;
        buffer_format(b, "],\"tensors\":%llu,\"bytes\":%llu}", (unsigned long long)v->tensors,
                      (unsigned long long)v->bytes);
        buffer_clear(&v->notes);
    } else {
        text_append_safe(b, path, strlen(path));
        if (v->here)
            buffer_format(b, ": %llu finding%s", (unsigned long long)v->here, v->here == 1 ? "" : "s");
        else
            buffer_append_text(b, ": ok");
        if (v->tensors)
            buffer_format(b, ", %llu tensor%s, %s", (unsigned long long)v->tensors, v->tensors == 1 ? "" : "s",
                          human_bytes(v->bytes, size));
        buffer_append_byte(b, '\n');
    }
    output_put(&v->out);
}

/* ---- one checkpoint -------------------------------------------------------------------------------------------- */

struct stored { /* all entries with bytes of their own */
    const struct tensor_entry **items;
    size_t count;
};

static int compare_places(const void *a, const void *b)
{
    const struct tensor_entry *x = *(const struct tensor_entry *const *)a;
    const struct tensor_entry *y = *(const struct tensor_entry *const *)b;

    if (x->shard != y->shard)
        return (x->shard > y->shard) - (x->shard < y->shard);
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int list_stored(const struct tensor_bundle *b, struct stored *out, struct error *e)
{
    size_t slices = tensor_bundle_slice_count(b), whole = tensor_bundle_count(b);

    out->count = 0;
    if (!(out->items = malloc((slices + whole + 1) * sizeof(struct tensor_entry *))))
        return error_set(e, ERR_NOMEM, "no memory to list the tensors");
    for (size_t i = 0; i < slices; i++)
        if (!tensor_bundle_slice(b, i)->slices)
            out->items[out->count++] = tensor_bundle_slice(b, i);
    for (size_t i = 0; i < whole; i++)
        if (!tensor_bundle_entry(b, i)->slices)
            out->items[out->count++] = tensor_bundle_entry(b, i);
    return OK;
}

/* Tensors of a shard share no bytes. */
static void check_overlaps(struct verify *v, const struct tensor_bundle *b, struct stored *all)
{
    const struct tensor_entry *before = NULL; /* the one that reaches furthest so far */
    char path[PATH_MAX];

    if (all->count)
        qsort(all->items, all->count, sizeof *all->items, compare_places);
    for (size_t i = 0; i < all->count; i++) {
        const struct tensor_entry *entry = all->items[i];
        struct error e = { .code = OK };

        if (!entry->size)
            continue;
        if (before && before->shard == entry->shard && entry->offset < before->offset + before->size &&
            tensor_bundle_shard_path(b, entry->shard, path, sizeof path, &e) == OK) {
            error_set(&e, ERR_CORRUPT, "%s: tensor %s begins at byte %lld, inside tensor %s, which ends at %lld", path,
                      bundle_entry_label(entry), (long long)entry->offset, bundle_entry_label(before),
                      (long long)(before->offset + before->size));
            finding(v, &e);
        }
        if (!before || before->shard != entry->shard || entry->offset + entry->size > before->offset + before->size)
            before = entry;
    }
}

struct checking {
    struct verify *verify;
    const char *prefix;
};

/* A key or a name is not what was written. */
static void take_loose_slice(void *context, const struct tensor_entry *slice)
{
    struct checking *c = context;
    struct error why = { .code = OK };

    error_set(&why, ERR_CORRUPT, "%s.index: no variable lists this slice of %s", c->prefix,
              bundle_entry_label(slice));
    finding(c->verify, &why);
}

static int check_bytes(struct tensor_bundle *b, const struct tensor_entry *entry, struct error *e)
{
    struct tensor_stream *stream;
    char *piece = malloc(PIECE);
    size_t got = 0;
    int rc = piece ? tensor_stream_open(&stream, b, entry, e) : error_set(e, ERR_NOMEM, "no memory to read");

    if (rc == OK) {
        while ((rc = tensor_stream_read(stream, piece, PIECE, &got, e)) == OK && got)
            ;
        tensor_stream_close(stream);
    }
    free(piece);
    return rc;
}

static int verify_bundle(struct verify *v, struct tensor_bundle *b, const char *prefix, struct error *e)
{
    struct checking checking = { v, prefix };
    struct stored all = { NULL, 0 };
    int rc;

    if ((rc = list_stored(b, &all, e)) == OK && (rc = loose_slices(b, take_loose_slice, &checking, e)) == OK) {
        check_overlaps(v, b, &all);
        for (size_t i = 0; i < all.count; i++) {
            const struct tensor_entry *entry = all.items[i];
            struct error why = { .code = OK };

            if (!selection_wants(&v->wanted, bundle_entry_label(entry)))
                continue;
            v->tensors++;
            if (!tensor_type_size(entry->type) && entry->type != TENSOR_STRING && entry->type != TENSOR_VARIANT) {
                error_set(&why, ERR_CORRUPT, "%s.index: tensor %s: dtype %d (%s) cannot be stored in a checkpoint",
                          prefix, bundle_entry_label(entry), entry->type, tensor_type_name(entry->type));
                finding(v, &why);
                continue;
            }
            /* Missing and short shards were told when the bundle was opened. */
            if ((uint64_t)(entry->offset + entry->size) > tensor_bundle_shard_size(b, entry->shard))
                continue;
            if (check_bytes(b, entry, &why) != OK)
                finding(v, &why);
            else
                v->bytes += (uint64_t)entry->size;
        }
    }
    free(all.items);
    return rc;
}

/* One that cannot be read was told already, as every tensor. */
static void check_step(struct verify *v, struct tensor_bundle *b, const char *prefix)
{
    int64_t named = checkpoint_name_step(file_base_name(prefix)), step = source_global_step(b, NULL);
    struct error e = { .code = OK };

    if (step < 0 || named < 0 || step == named)
        return;
    source_step_differs(prefix, named, step, &e);
    note(v, &e);
}

static void verify_prefix(struct verify *v, const char *prefix)
{
    struct error e = { .code = OK };
    struct tensor_bundle *b = NULL;
    int rc;

    begin_path(v, prefix);
    rc = tensor_bundle_open_damaged(&b, prefix, finding, v, &e);
    if (rc == OK)
        rc = verify_bundle(v, b, prefix, &e);
    if (rc != OK)
        finding(v, &e);
    else
        check_step(v, b, prefix);
    tensor_bundle_close(b);
    end_path(v, prefix);
}

/* A file without an index: safetensors. It has no CRCs; its header and lengths are all that can be checked, and the
 * strings that `checkpoint convert` put into it. */
static void verify_file(struct verify *v, const char *path)
{
    struct error e = { .code = OK };
    struct source s;
    char *bytes;
    int rc;

    begin_path(v, path);
    if ((rc = source_open(&s, path, 0, &e)) != OK)
        finding(v, &e);
    for (size_t i = 0; rc == OK && i < s.count; i++) {
        if (!selection_wants(&v->wanted, s.tensors[i].name))
            continue;
        v->tensors++;
        if (s.tensors[i].type == TENSOR_STRING && source_read(&s, &s.tensors[i], &bytes, &e) != OK)
            finding(v, &e);
        else if (s.tensors[i].type == TENSOR_STRING)
            free(bytes);
        v->bytes += s.tensors[i].bytes;
    }
    if (rc == OK && s.notes[1].code != OK)
        note(v, &s.notes[1]);
    source_close(&s);
    end_path(v, path);
}

/* ---- a directory ----------------------------------------------------------------------------------------------- */

static int index_here(const char *directory, const char *path)
{
    char index[PATH_MAX];

    return snprintf(index, sizeof index, "%s/%s.index", directory, file_base_name(path)) < (int)sizeof index &&
           access(index, F_OK) == 0;
}

/* A directory that was moved is no surprise; one whose state file means another that is there is one. */
static void check_place(struct verify *v, const char *path, const char *directory, const char *listed)
{
    struct error e = { .code = OK };

    if (!checkpoint_leads_elsewhere(directory, listed))
        return;
    error_set(&e, ERR_ARG, "%s: %s is outside %s", path, listed, directory);
    note(v, &e);
}

static void check_state(struct verify *v, const char *path, const char *directory, const struct state_file *state)
{
    struct error e = { .code = OK };
    int listed = state->count == 0;

    if (!state->newest) {
        error_set(&e, ERR_CORRUPT, "%s: names no newest checkpoint (model_checkpoint_path)", path);
        finding(v, &e);
    }
    for (size_t i = 0; i < state->count; i++) {
        listed |= state->newest && strcmp(state->newest, state->paths[i]) == 0;
        check_place(v, path, directory, state->paths[i]);
        if (index_here(directory, state->paths[i]))
            continue;
        error_set(&e, ERR_CORRUPT, "%s: lists %s, which has no index in %s", path, state->paths[i], directory);
        finding(v, &e);
    }
    if (state->newest && !listed) {
        error_set(&e, ERR_CORRUPT, "%s: the newest checkpoint, %s, is not among the checkpoints it lists", path,
                  state->newest);
        finding(v, &e);
    }
    if (state->newest && !state->count)
        check_place(v, path, directory, state->newest);
    if (state->newest && !state->count && !index_here(directory, state->newest)) {
        error_set(&e, ERR_CORRUPT, "%s: the newest checkpoint, %s, has no index in %s", path, state->newest, directory);
        finding(v, &e);
    }
    if (state->timestamp_count && state->timestamp_count != state->count) {
        error_set(&e, ERR_CORRUPT, "%s: %zu timestamps for %zu checkpoints", path, state->timestamp_count,
                  state->count);
        finding(v, &e);
    }
}

static void verify_state(struct verify *v, const char *directory)
{
    struct buffer text = BUFFER_EMPTY;
    struct error e = { .code = OK };
    struct state_file state;
    char path[PATH_MAX];
    int rc;

    if (file_join(path, sizeof path, directory, "checkpoint", NULL) != OK ||
        (access(path, F_OK) < 0 && errno == ENOENT))
        return; /* checkpoints can do without */
    begin_path(v, path);
    if ((rc = file_read(path, STATE_FILE_MAX, &text, &e)) == OK &&
        (rc = state_file_parse(buffer_text(&text), text.length, &state, &e)) != OK)
        error_prefix(&e, "%s", path);
    if (rc == OK) {
        check_state(v, path, directory, &state);
        state_file_release(&state);
    } else {
        finding(v, &e);
    }
    buffer_release(&text);
    end_path(v, path);
}

static void verify_directory(struct verify *v, const char *directory)
{
    struct error e = { .code = OK };
    struct checkpoint_list list;
    char path[PATH_MAX];
    int rc = checkpoint_directory_list_all(directory, &list, &e);

    if (rc == OK && !list.count)
        rc = error_set(&e, ERR_ARG, "%s: no checkpoint in this directory", directory);
    for (size_t i = 0; rc == OK && i < list.count; i++)
        if ((rc = file_join(path, sizeof path, directory, list.items[i].name, &e)) == OK)
            (list.items[i].format == CHECKPOINT_FORMAT_SAFETENSORS ? verify_file : verify_prefix)(v, path);
    if (rc == OK)
        verify_state(v, directory);
    else
        v->failed = output_fail(&v->out, &e);
    checkpoint_list_release(&list);
}

static void verify_path(struct verify *v, const char *path)
{
    struct error e = { .code = OK };
    struct found found;
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        verify_directory(v, path);
    else if (find_checkpoint(path, 0, &found, &e) != OK)
        v->failed = output_fail(&v->out, &e);
    else
        (found.is_file ? verify_file : verify_prefix)(v, found.path);
}

int command_verify(int argc, char **argv)
{
    struct verify v = { .first_path = 1 };
    struct option table[] = {
        COMMAND_TENSOR_OPTION(v.wanted),
        OUTPUT_OPTIONS(v.out),
    };
    const struct options options = {
        .program = "checkpoint verify", .usage = "[OPTION...] PATH...",
        .summary = "Check every CRC of the index and of each tensor, and every length; check that the tensors of a "
                   "shard do not overlap, that slices add up to their variables, and that no shard is missing. "
                   "Safetensors files have no CRCs: check their header and lengths. For a directory, check all its "
                   "checkpoints and its state file, checkpoint. Each finding names the file and the byte. With "
                   "--tensor, read only the selected tensors; the index is always checked completely. Status 0: no "
                   "findings; 1: findings, or --tensor matched nothing; 2: usage, or no such checkpoint.",
        .examples = "  checkpoint verify ckpt/model.ckpt-700\n  checkpoint verify ckpt --json\n",
        .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .wanted = "name one or more checkpoints;",
    };
    struct error e = { .code = OK };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    v.out.program = options.program;
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc != OK || (rc = output_open(&v.out, &e)) != OK)
        return output_fail(&v.out, &e);
    if (v.out.json)
        buffer_append_text(&v.out.text, "{\"type\":\"verify\",\"version\":1,\"checkpoints\":[");
    for (int i = 1; i <= count; i++)
        verify_path(&v, argv[i]);
    if (v.out.json)
        buffer_format(&v.out.text, "\n],\"total\":{\"findings\":%llu}}\n", (unsigned long long)v.findings);
    buffer_release(&v.notes);
    status = v.failed ? EXIT_USAGE : v.findings ? EXIT_NO : EXIT_DONE;
    return output_close(&v.out, command_selected(&v.wanted, &v.out, status));
}
