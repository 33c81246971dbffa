#include "trainer/resuming.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_kind.h"
#include "base/program/log.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_match.h"
#include "checkpoint/tensor_role.h"
#include "checkpoint/tensor_value.h"
#include "model/file/model_file.h"
#include "model/network.h"
#include "trainer/training_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- initial weights --------------------------------------------------------------------------------------------- */

/*
 * Begins a training with the variables of another one's checkpoint (--init-from): by name, by
 * scope, of TensorFlow's formats or safetensors, in whose files kernels may have PyTorch's order of dimensions.
 */

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

/* Fills variables of n, weights and moving statistics, from the checkpoint: a prefix, a directory (its newest), or a
 * .safetensors file. scopes: "A[=B],...": variables A, A/... and A.... are B, B/... and B.... there, and all must fit;
 * NULL: all that fit are taken. Nothing is changed after an error. ERR_ARG: nothing fits, or not all of a scope;
 * ERR_IO, ERR_CORRUPT: as tensor_bundle.h. Reports in the log what was taken and what was not, unless `quiet`. */
static int initial_weights_load(struct network *n, const char *path, const char *scopes, struct log *log, int quiet,
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

/* ---- own model --------------------------------------------------------------------------------------------------- */

/*
 * The model file of a training: its copy beside the checkpoints, CKPT/net.model, from which an evaluator
 * knows the model, and by which a resumed training knows that it has the same one.
 */

/* 1: there is a copy, in `text`; 0: there is none. */
static int read_copy(const char *path, struct buffer *text, struct error *e)
{
    int rc;

    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    rc = file_read_plain(path, MODEL_FILE_BYTES_MAX, text, e);
    return rc < 0 ? rc : 1;
}

static int refuse(const struct model_file *file, const char *name, const char *path, const struct buffer *was,
                  struct error *e)
{
    struct error why = { 0 };

    if (!file)
        return error_set(e, ERR_ARG,
                         "--model %s: the checkpoint is of a model file, %s; use --model %s, or start anew with "
                         "--resume never",
                         name, path, path);
    if (model_file_same(file->text, file->length, buffer_text(was), was->length, &why))
        return OK;
    return error_set(e, ERR_ARG,
                     "--model %s: %s; the checkpoint is of %s. Use that file, or start anew with --resume never",
                     file->path, why.message, path);
}

/* Sets path, and reads the copy as read_copy(). */
static int find_copy(const char *checkpoint_directory, char path[PATH_MAX], struct buffer *was, struct error *e)
{
    const int rc = file_join(path, PATH_MAX, checkpoint_directory, CHECKPOINT_MODEL_FILE, e);

    return rc < 0 ? rc : read_copy(path, was, e);
}

/* Before a training goes on from a checkpoint in `checkpoint_directory`: ERR_ARG if what was trained there is another
 * model, and the sentence says which line differs. file NULL: a built-in model of that name. */
static int own_model_check(const struct model_file *file, const char *name, const char *checkpoint_directory,
                           struct error *e)
{
    struct buffer was = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc = find_copy(checkpoint_directory, path, &was, e);

    if (rc > 0)
        rc = refuse(file, name, path, &was, e);
    buffer_release(&was);
    return rc;
}

/* Makes the copy, by rename, before the first checkpoint. file NULL: none, and ERR_ARG if there is one although no
 * checkpoint was resumed from. */
static int own_model_keep(const struct model_file *file, const char *name, const char *checkpoint_directory,
                          struct error *e)
{
    struct buffer was = BUFFER_EMPTY;
    char path[PATH_MAX];
    const int found = find_copy(checkpoint_directory, path, &was, e);
    int rc = found < 0 ? found : OK;

    if (found > 0 && !file)
        rc = error_set(e, ERR_ARG,
                       "--model %s: %s is of an earlier training of a model file; remove it, or use another directory",
                       name, path);
    else if (rc == OK && file &&
             !(found && was.length == file->length && !memcmp(buffer_text(&was), file->text, was.length)))
        rc = file_replace(NULL, path, file->text, file->length, e);
    buffer_release(&was);
    return rc;
}

/* ---- resuming ---------------------------------------------------------------------------------------------------- */

/* settings that affect the curve: old and new */
struct changes {
    struct buffer before, after;
};

static void change_text(struct changes *c, const char *what, const char *before, const char *after)
{
    const char *comma = c->before.length ? ", " : "";

    if (!*before || !strcmp(before, after)) /* "": the checkpoint does not say */
        return;
    buffer_format(&c->before, "%s%s%s", comma, what, before);
    buffer_format(&c->after, "%s%s%s", comma, what, after);
}

static void change_number(struct changes *c, const char *what, int64_t before, int64_t after)
{
    char a[24], b[24];

    snprintf(a, sizeof a, "%" PRId64, before);
    snprintf(b, sizeof b, "%" PRId64, after);
    change_text(c, what, a, b);
}

/* In how many parts the gradient of a step is computed by each worker or, with micro-shards, by all. */
static int64_t parts_of(int64_t micro_shards, int64_t threads)
{
    return micro_shards ? micro_shards : threads ? threads : 1;
}

/* What other micro-shards or threads mean for the bits; "": there are none. Threads that share micro-shards do not
 * count, and those of one worker count as that many micro-shards. */
static const char *change_parts(struct changes *c, const struct resuming *r, const struct training_position *was)
{
    const struct batch_sizes *now = &r->options->sizes;
    const int64_t threads = train_options_parts_of_threads(r->options);
    const int64_t before = parts_of(was->micro_shards, was->threads), after = parts_of(now->micro_shards, threads);

    if (was->threads || (threads && !was->micro_shards))
        change_number(c, "--threads ", was->threads ? was->threads : 1, now->threads > 1 ? now->threads : 1);
    if (was->micro_shards || now->micro_shards)
        change_number(c, "--micro-shards ", was->micro_shards, now->micro_shards);
    if (was->micro_shards == now->micro_shards && was->threads == threads)
        return "";
    return before == after && was->workers == 1 && r->workers == 1
               ? ", which is the same sum of gradients, bit for bit"
               : ", which adds gradients in another order: the last bits of weights differ from here on";
}

/* Reports what differs from the checkpoint, in one line. */
static void warn_of_changes(const struct resuming *r, const char *prefix, const struct training_position *was, int kind)
{
    const struct train_options *o = r->options;
    struct changes c = { BUFFER_EMPTY, BUFFER_EMPTY };
    const char *parts = "";

    if (o->quiet)
        return;
    if (kind == CHECKPOINT_FOREIGN)
        log_line(r->log, "%s has no complete optimizer state for this training; it begins anew", prefix);
    change_text(&c, "--run-option ", was->run_option, o->strategy.label);
    if (was->world_size)
        change_number(&c, "ranks: ", was->world_size, world_size(r->world));
    if (was->workers && was->batch_size)
        change_number(&c, "global batch ", was->global_batch, r->global_batch);
    if (was->workers)
        parts = change_parts(&c, r, was);
    if (o->sizes.micro_shards)
        change_text(&c, "kernels: ", was->kernels, r->position->kernels);
    change_text(&c, "--data ", was->data, o->data);
    change_text(&c, "--shard ", was->shard, train_options_shard(o));
    if (o->seed_given)
        change_number(&c, "--seed ", (int64_t)was->seed, (int64_t)o->seed);
    if (c.before.length && buffer_ok(&c.before) && buffer_ok(&c.after))
        log_line(r->log, "%s was trained with %s; continuing with %s%s", prefix, buffer_text(&c.before),
                 buffer_text(&c.after), parts);
    buffer_release(&c.before);
    buffer_release(&c.after);
}

/* Loads the checkpoint of that name. 1, or an error. */
static int load(const struct resuming *r, const char *name, struct error *e)
{
    const struct train_options *o = r->options;
    const int64_t named = checkpoint_name_step(name);
    struct training_position was = { .seed = o->seed };
    char prefix[4096];
    int rc;

    if ((rc = file_join(prefix, sizeof prefix, o->checkpoint_directory, name, e)) < 0 ||
        (rc = own_model_check(o->file, o->model->name, o->checkpoint_directory, e)) < 0 ||
        (rc = training_checkpoint_load(prefix, r->optimizer, r->losses, &was, e)) < 0)
        return rc;
    if (was.vocabulary && r->position->vocabulary && was.vocabulary != r->position->vocabulary)
        return error_set(e, ERR_ARG,
                         "%s was trained with another vocabulary than that of the files of --data-dir; resume with the "
                         "files that it was trained on",
                         prefix);
    warn_of_changes(r, prefix, &was, rc);
    r->position->global_step = was.global_step;
    if (named >= 0 && named != was.global_step)
        log_line(r->log, "%s: its name says step %" PRId64 ", but its global_step, which is used, is %" PRId64, prefix,
                 named, was.global_step);
    r->position->seed = o->seed_given ? o->seed : was.seed;
    if (!o->quiet)
        log_line(r->log, "resuming from %s", prefix);
    return 1;
}

static int load_step(const struct resuming *r, struct error *e)
{
    struct error why = { 0 };
    char name[64];
    int rc;

    snprintf(name, sizeof name, "model.ckpt-%" PRId64, r->options->resume_step);
    if ((rc = load(r, name, &why)) == ERR_CORRUPT || rc == ERR_IO)
        return error_set(e, rc, "%s; --resume auto resumes from the newest whole checkpoint", why.message);
    return rc < 0 ? error_copy(e, &why) : rc;
}

/* Loads the newest whole checkpoint. 1; 0: there are no checkpoints; or an error, also if all are damaged. */
static int load_newest(const struct resuming *r, const struct checkpoint_list *list, struct error *e)
{
    int rc = 0;

    for (size_t i = list->count; i-- > 0 && rc == 0;) {
        struct error why = { 0 };

        rc = load(r, list->items[i].name, &why);
        if (rc < 0 && rc != ERR_CORRUPT && rc != ERR_IO)
            return error_copy(e, &why);
        if (rc == 1 && i + 1 == list->count &&
            checkpoint_directory_disagrees(r->options->checkpoint_directory, list->items[i].name, &why))
            log_line(r->log, "%s", why.message);
        if (rc == 1 && i + 1 < list->count)
            log_line(r->log, "trainer: %s is the newest whole checkpoint; --resume STEP resumes from another one",
                     list->items[i].name);
        if (rc < 0) {
            world_sign(r->world, world_rank(r->world), &why);
            log_line(r->log, "trainer: %s", why.message);
            rc = 0;
        }
    }
    if (rc == 0 && list->count)
        return error_set(e, ERR_CORRUPT,
                         "--checkpoint-dir %s: no checkpoint in it is whole; to start anew, use --resume never",
                         r->options->checkpoint_directory);
    return rc;
}

/* Takes the lock of the directory, once what an earlier training left is saved. */
static int take_lock(const struct resuming *r, struct error *e)
{
    const struct train_options *o = r->options;
    const struct timespec pause = { 0, 50000000 };
    int told = 0, rc;

    while ((rc = training_lock_take(o->checkpoint_directory, o->take_over, r->lock, e)) == TRAINING_LOCK_SAVING) {
        if (!told)
            log_line(r->log, "%s: waiting until the last state of the training before this one is saved",
                     o->checkpoint_directory);
        told = 1;
        nanosleep(&pause, NULL);
    }
    return rc;
}

/* 1; 0: nothing to resume from, or not wanted; or an error. */
static int resume(const struct resuming *r, struct error *e)
{
    const struct train_options *o = r->options;
    struct checkpoint_list list;
    int rc;

    if (!o->checkpoint_directory)
        return 0;
    if ((rc = file_make_directories(o->checkpoint_directory, e)) < 0 || (rc = take_lock(r, e)) < 0 ||
        (rc = training_files_check(o->checkpoint_directory, e)) < 0)
        return error_prefix(e, "--checkpoint-dir");
    if (*r->lock >= 0)
        training_files_tidy(o->checkpoint_directory);
    if (o->resume == RESUME_STEP)
        return load_step(r, e);
    if ((rc = checkpoint_directory_list_newest_last(o->checkpoint_directory, &list, e)) < 0)
        return error_prefix(e, "--checkpoint-dir %s", o->checkpoint_directory);
    if (o->resume == RESUME_AUTO)
        rc = load_newest(r, &list, e);
    else if (list.count && !o->quiet)
        log_line(r->log, "%s has checkpoints up to %s; starting anew, and replacing those of the same steps",
                 o->checkpoint_directory, list.items[list.count - 1].name);
    checkpoint_list_release(&list);
    return rc;
}

int resuming_start(const struct resuming *r, int64_t *step, struct error *e)
{
    const struct train_options *o = r->options;
    int rc, kept;

    *step = -1;
    r->position->seed = r->options->seed;
    if ((rc = resume(r, e)) < 0)
        return rc;
    if (o->checkpoint_directory && (kept = own_model_keep(o->file, o->model->name, o->checkpoint_directory, e)) < 0)
        return kept;
    if (rc == 1) {
        if (o->init_from && !o->quiet)
            log_line(r->log, "--init-from %s is for a new training, and not used", o->init_from);
        *step = r->position->global_step;
        return OK;
    }
    network_initialize(r->network, r->options->seed);
    if (o->init_from && (rc = initial_weights_load(r->network, o->init_from, o->scope, r->log, o->quiet, e)) < 0)
        return error_prefix(e, "--init-from");
    optimizer_reset(r->optimizer, 0);
    return OK;
}
