/*
 * checkpoint verify: checks that a checkpoint, or a directory of them, is intact to the last byte. Opening a bundle
 * checks the index, its lengths and slices; bundle_check.h checks the rest; this file checks the state file.
 */
#include "base/buffer.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/bundle_check.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/directory/state_file.h"
#include "checkpoint/tool/command.h"
#include "checkpoint/tool/find.h"
#include "checkpoint/tool/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATE_FILE_MAX = 64 << 20 };

struct verify {
    struct output out;
    struct selection wanted;
    int first_path, first_finding;
    uint64_t findings, here; /* in all, in this checkpoint */
    uint64_t tensors, bytes; /* read of this checkpoint */
    struct buffer notes;     /* of it, as JSON */
    int failed;              /* a path was not a checkpoint at all */
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

/* A note: not damage, but good to know. */
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

static int wanted(void *context, const char *tensor)
{
    struct verify *v = context;

    return selection_wants(&v->wanted, tensor);
}

/* Unreadable ones have been reported already, like all tensors. */
static void check_step(struct verify *v, struct tensor_bundle *b, const char *prefix)
{
    int64_t named = checkpoint_name_step(file_base_name(prefix)), step = source_global_step(b, NULL);
    struct error e = { 0 };

    if (step < 0 || named < 0 || step == named)
        return;
    source_step_differs(prefix, named, step, &e);
    note(v, &e);
}

static void verify_prefix(struct verify *v, const char *prefix)
{
    struct bundle_check check = { .problem = finding, .wanted = wanted, .context = v };
    struct error e = { 0 };
    struct tensor_bundle *b = NULL;
    int rc;

    begin_path(v, prefix);
    rc = tensor_bundle_open_damaged(&b, prefix, finding, v, &e);
    if (rc == OK)
        rc = bundle_check(&check, b, &e);
    v->tensors = check.tensors;
    v->bytes = check.bytes;
    if (rc != OK)
        finding(v, &e);
    else
        check_step(v, b, prefix);
    tensor_bundle_close(b);
    end_path(v, prefix);
}

/* A safetensors file has no CRCs: only its header and lengths can be checked, whether an index and its parts agree, and
 * strings that `checkpoint convert` stored in it. */
static void verify_file(struct verify *v, const char *path)
{
    struct safetensors *parts;
    struct error e = { 0 };
    struct source s;
    char *bytes;
    int rc;

    begin_path(v, path);
    if (safetensors_is_index(path)) {
        if (safetensors_open_damaged(&parts, path, finding, v, &e) != OK)
            finding(v, &e);
        safetensors_close(parts);
    }
    if ((rc = source_open(&s, path, 0, &e)) != OK && !v->here)
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

/* A directory may have been moved, but its state file must not name another directory that exists. */
static void check_place(struct verify *v, const char *path, const char *directory, const char *listed)
{
    struct error e = { 0 };

    if (!checkpoint_leads_elsewhere(directory, listed))
        return;
    error_set(&e, ERR_ARG, "%s: %s is outside %s", path, listed, directory);
    note(v, &e);
}

static void check_state(struct verify *v, const char *path, const char *directory, const struct state_file *state)
{
    struct error e = { 0 };
    int listed = state->count == 0;

    if (!state->newest) {
        error_set(&e, ERR_CORRUPT, "%s: names no newest checkpoint (model_checkpoint_path)", path);
        finding(v, &e);
    }
    for (size_t i = 0; i < state->count; i++) {
        listed |= state->newest && strcmp(state->newest, state->paths[i]) == 0;
        check_place(v, path, directory, state->paths[i]);
        if (checkpoint_listed_here(directory, state->paths[i]))
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
    if (state->newest && !state->count && !checkpoint_listed_here(directory, state->newest)) {
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
    struct error e = { 0 };
    struct state_file state;
    char path[PATH_MAX];
    int rc;

    if (file_join(path, sizeof path, directory, "checkpoint", NULL) != OK ||
        (access(path, F_OK) < 0 && errno == ENOENT))
        return; /* checkpoints do not need this file */
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
    struct error e = { 0 };
    struct checkpoint_list list;
    char path[PATH_MAX];
    struct found alone; /* without a step */
    int rc = checkpoint_directory_list_all(directory, &list, &e);

    if (rc == OK && !list.count && (rc = find_checkpoint(directory, 0, &alone, &e)) == OK)
        verify_file(v, alone.path);
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
    struct error e = { 0 };
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
        .program = "checkpoint verify",
        .usage = "[OPTION...] PATH...",
        .summary = "Check every CRC of the index and of each tensor, and every length; check that the tensors of a "
                   "shard do not overlap, that slices add up to their variables, and that no shard is missing. "
                   "Safetensors files have no CRCs: check their header and lengths, and for those in parts whether the "
                   "index and the parts agree. For a directory, check all its "
                   "checkpoints and its state file, checkpoint. Each finding names the file and the byte. With "
                   "--tensor, read only the selected tensors; the index is always checked completely. Status 0: no "
                   "findings; 1: findings, or --tensor matched nothing; 2: usage, or no such checkpoint.",
        .examples = "  checkpoint verify ckpt/model.ckpt-700\n  checkpoint verify ckpt --json\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "name one or more checkpoints;",
    };
    struct error e = { 0 };
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
