#include "trainer/initial_weights.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/file_kind.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_match.h"
#include "checkpoint/tensor_role.h"
#include "checkpoint/tensor_value.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SHOWN = 10 }; /* variables that are named */

struct source {
    char path[PATH_MAX];
    struct tensor_bundle *bundle; /* one of these two */
    struct safetensors *safetensors;
    struct tensor_entry *entries; /* of safetensors */
};

struct taking {
    struct source *from;
    const struct variable *variables;
    struct tensor_match *matches; /* (count) */
    char *wanted;                 /* (count) 1: it is in a scope */
    real **values;                /* (count) read, and not in the network yet */
    size_t count;
};

/* ---- the checkpoint ---------------------------------------------------------------------------------------------- */

static int open_safetensors(struct source *s, struct error *e)
{
    const struct safetensors_header *h;
    int rc = safetensors_open(&s->safetensors, s->path, e);

    if (rc < 0)
        return rc;
    h = safetensors_contents(s->safetensors);
    if (!(s->entries = calloc(h->count + 1, sizeof *s->entries)))
        return error_memory(e, s->path, "for %zu tensors", h->count);
    for (size_t i = 0; i < h->count; i++)
        s->entries[i] = (struct tensor_entry){ .name = h->tensors[i].name,
                                               .name_length = h->tensors[i].name_length,
                                               .type = safetensors_tensor_type(h->tensors[i].dtype),
                                               .rank = h->tensors[i].rank,
                                               .shape = h->tensors[i].shape,
                                               .elements = h->tensors[i].elements };
    return OK;
}

static int open_source(struct source *s, const char *path, struct error *e)
{
    char newest[NAME_MAX + 1];
    enum file_kind kind;
    struct stat st;
    int rc;

    memset(s, 0, sizeof *s);
    if (strlen(path) >= sizeof s->path)
        return error_set(e, ERR_ARG, "%s: path too long", path);
    strcpy(s->path, path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if ((rc = checkpoint_directory_newest(path, newest, sizeof newest, e)) < 0)
            return rc;
        if (rc == 0 && checkpoint_weights_within(AT_FDCWD, path, s->path, sizeof s->path))
            return open_safetensors(s, e);
        if (rc == 0)
            return error_set(e, ERR_ARG, "%s: no complete checkpoint in this directory", path);
        if ((rc = file_join(s->path, sizeof s->path, path, newest, e)) < 0)
            return rc;
    } else if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        kind = file_kind_of(path);
        if (kind == FILE_KIND_SAFETENSORS || (kind == FILE_KIND_JSON && safetensors_is_index(path)))
            return open_safetensors(s, e);
        if (kind != FILE_KIND_TABLE)
            return error_set(e, ERR_ARG, "%s: not a checkpoint, but %s%s", path, file_kind_text(kind),
                             kind == FILE_KIND_TORCH || kind == FILE_KIND_PICKLE
                                 ? "; save its tensors with safetensors.torch.save_file()"
                                 : "");
    }
    const size_t n = strlen(s->path), suffix = sizeof ".index" - 1;
    if (n > suffix && !strcmp(s->path + n - suffix, ".index"))
        s->path[n - suffix] = '\0';
    return tensor_bundle_open(&s->bundle, s->path, e);
}

static void close_source(struct source *s)
{
    tensor_bundle_close(s->bundle);
    safetensors_close(s->safetensors);
    free(s->entries);
}

static size_t tensor_count(const struct source *s)
{
    return s->bundle ? tensor_bundle_count(s->bundle) : safetensors_contents(s->safetensors)->count;
}

static const struct tensor_entry *entry_at(const struct source *s, size_t i)
{
    return s->bundle ? tensor_bundle_entry(s->bundle, i) : &s->entries[i];
}

/* In safetensors files, whose names come from PyTorch, "a.b" is also "a/b". */
static const struct tensor_entry *find_entry(const struct source *s, const char *name)
{
    if (s->bundle)
        return tensor_bundle_find(s->bundle, name);
    for (int dotted = 0; dotted < 2; dotted++)
        for (size_t i = 0; i < tensor_count(s); i++) {
            const struct tensor_entry *t = &s->entries[i];
            size_t k = 0;

            while (k < t->name_length && (name[k] == t->name[k] || (dotted && name[k] == '/' && t->name[k] == '.')))
                k++;
            if (k == t->name_length && !name[k])
                return t;
        }
    return NULL;
}

static int read_floats(struct source *s, const struct tensor_entry *entry, float *out, struct error *e)
{
    enum { PIECE = 4096 };
    const size_t each = tensor_type_size(entry->type), count = (size_t)entry->elements;
    int rc = OK;

    if (s->bundle)
        return tensor_bundle_read_float(s->bundle, entry, out, count, e);
    for (size_t done = 0; rc == OK && done < count; done += PIECE) {
        const size_t n = count - done < PIECE ? count - done : PIECE;
        unsigned char bytes[PIECE * sizeof(double)];

        rc = safetensors_read(s->safetensors, &safetensors_contents(s->safetensors)->tensors[entry - s->entries],
                              done * each, bytes, n * each, e);
        if (rc == OK)
            tensor_floats(entry->type, bytes, n, out + done);
    }
    return rc;
}

/* ---- what is taken ----------------------------------------------------------------------------------------------- */

/* 1 and the variable's name in the checkpoint, if it is in one of the scopes. */
static int name_there(const char *scopes, const char *name, char *out, size_t size)
{
    if (!scopes)
        return snprintf(out, size, "%s", name) < (int)size;
    while (*scopes) {
        const size_t n = strcspn(scopes, ","), ours = strcspn(scopes, ",=");
        char scope[256];

        snprintf(scope, sizeof scope, "%.*s", (int)ours, scopes);
        if (model_in_scope(scope, name)) {
            const char *theirs = ours < n ? scopes + ours + 1 : scopes;
            const int length = (int)(ours < n ? n - ours - 1 : ours);
            const char *rest = name + ours;

            /* "A=" is for what has no scope in the checkpoint: without the separator. */
            return snprintf(out, size, "%.*s%s", length, theirs, !length && *rest ? rest + 1 : rest) < (int)size;
        }
        scopes += n + (scopes[n] == ',');
    }
    return 0;
}

/* Each scope must have a variable. */
static int check_scopes(const struct taking *t, const char *scopes, struct error *e)
{
    while (scopes && *scopes) {
        const size_t n = strcspn(scopes, ","), ours = strcspn(scopes, ",=");
        char scope[256];
        size_t found = 0;

        snprintf(scope, sizeof scope, "%.*s", (int)ours, scopes);
        for (size_t i = 0; i < t->count && !found; i++)
            found = model_in_scope(scope, t->variables[i].name);
        if (!found)
            return error_set(e, ERR_ARG,
                             "--scope: the model has no variables under '%s'; 'trainer describe' names them", scope);
        scopes += n + (scopes[n] == ',');
    }
    return OK;
}

static int match(struct taking *t, const char *scopes, struct error *e)
{
    struct buffer wrong = BUFFER_EMPTY;
    size_t unfit = 0, fit = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct variable *v = &t->variables[i];
        char name[512];

        t->wanted[i] = (char)name_there(scopes, v->name, name, sizeof name);
        t->matches[i] = (struct tensor_match){ .name = v->name,
                                               .rank = v->rank,
                                               .shape = v->shape,
                                               .pixels = v->pixels,
                                               .entry = t->wanted[i] ? find_entry(t->from, name) : NULL };
    }
    tensor_match_torch(t->matches, t->count, t->from->safetensors && safetensors_from_torch(t->from->safetensors));
    tensor_match(t->matches, t->count);
    for (size_t i = 0; i < t->count; i++) {
        fit += t->wanted[i] && t->matches[i].flaw == TENSOR_FITS;
        if (!t->wanted[i] || t->matches[i].flaw == TENSOR_FITS)
            continue;
        if (unfit++ < 3)
            tensor_match_complain(&t->matches[i], 1, "", (buffer_append_text(&wrong, unfit > 1 ? "; " : ""), &wrong));
    }
    if (!fit || (scopes && unfit))
        error_set(e, ERR_ARG, "%s: %zu of %zu variables%s do not fit: %s%s", t->from->path, unfit, fit + unfit,
                  scopes ? " of --scope" : "", buffer_text(&wrong), unfit > 3 ? "; ..." : "");
    buffer_release(&wrong);
    return fit && !(scopes && unfit) ? OK : ERR_ARG;
}

static int read_all(struct taking *t, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; i < t->count && rc == OK; i++) {
        const struct tensor_match *m = &t->matches[i];
        float *room;

        if (!t->wanted[i] || m->flaw != TENSOR_FITS)
            continue;
        room = malloc(t->variables[i].count * sizeof *room);
        t->values[i] = reals_new(t->variables[i].count);
        rc = room && t->values[i] ? read_floats(t->from, m->entry, room, e)
                                  : error_memory(e, t->from->path, "for variable %s", t->variables[i].name);
        if (rc == OK)
            tensor_match_values(m, room, (float *)(void *)t->values[i]);
        free(room);
    }
    return rc;
}

static void put(const struct taking *t, struct network *n)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct variable *v = &t->variables[i];
        real *to = (v->kind == VARIABLE_WEIGHT ? network_parameters(n) : network_statistics(n)) + v->offset;

        if (t->values[i])
            memcpy(to, t->values[i], v->count * sizeof *to);
    }
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static void report_left(const struct taking *t, struct log *log)
{
    size_t left = 0;

    for (size_t i = 0; i < t->count; i++) {
        struct buffer why = BUFFER_EMPTY;

        if (t->values[i] || left++ >= SHOWN)
            continue;
        if (!t->wanted[i])
            buffer_format(&why, "%s is in no --scope", t->variables[i].name);
        else
            tensor_match_complain(&t->matches[i], 1, "", &why);
        log_line(log, "not taken: %s", buffer_text(&why));
        buffer_release(&why);
    }
    if (left > SHOWN)
        log_line(log, "not taken: and %zu more variables of the model", left - SHOWN);
}

static void report_unused(const struct taking *t, struct log *log)
{
    struct buffer names = BUFFER_EMPTY;
    size_t unused = 0;

    for (size_t k = 0; k < tensor_count(t->from); k++) {
        const struct tensor_entry *entry = entry_at(t->from, k);
        int used = 0;

        for (size_t i = 0; i < t->count && !used; i++)
            used = t->values[i] && t->matches[i].entry == entry;
        if (!used && tensor_role(entry->name, entry->type, entry->elements) == TENSOR_ROLE_WEIGHT && unused++ < SHOWN)
            buffer_format(&names, "%s%s", unused > 1 ? ", " : "", entry->name);
    }
    if (unused)
        log_line(log, "not used, of the checkpoint: %s%s", buffer_text(&names), unused > SHOWN ? ", ..." : "");
    buffer_release(&names);
}

static void report(const struct taking *t, struct log *log, int quiet)
{
    size_t taken = 0, values = 0;

    if (quiet)
        return;
    for (size_t i = 0; i < t->count; i++)
        if (t->values[i]) {
            taken++;
            values += t->variables[i].count;
        }
    log_line(log, "began with %zu of %zu variables (%zu values) of %s%s", taken, t->count, values, t->from->path,
             t->matches[0].torch ? ", in PyTorch's order" : "");
    report_left(t, log);
    report_unused(t, log);
}

int initial_weights_load(struct network *n, const char *path, const char *scopes, struct log *log, int quiet,
                         struct error *e)
{
    struct source from;
    struct taking t = { .from = &from };
    int rc;

    if ((rc = open_source(&from, path, e)) < 0)
        goto done;
    t.variables = network_variables(n, &t.count);
    t.matches = calloc(t.count + 1, sizeof *t.matches);
    t.wanted = calloc(t.count + 1, sizeof *t.wanted);
    t.values = calloc(t.count + 1, sizeof *t.values);
    if (!t.matches || !t.wanted || !t.values)
        rc = error_memory(e, path, "to read it");
    if (rc == OK && (rc = check_scopes(&t, scopes, e)) == OK && (rc = match(&t, scopes, e)) == OK &&
        (rc = read_all(&t, e)) == OK) {
        put(&t, n);
        report(&t, log, quiet);
    }
done:
    for (size_t i = 0; t.values && i < t.count; i++)
        free(t.values[i]);
    free(t.matches);
    free(t.wanted);
    free(t.values);
    close_source(&from);
    return rc;
}
