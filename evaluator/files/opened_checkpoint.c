#include "evaluator/files/opened_checkpoint.h"

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_batch.h"
#include "checkpoint/tensor_value.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- checkpoint identity ----------------------------------------------------------------------------------------- */

struct checkpoint_identity checkpoint_identity_of(const char *name, int64_t step)
{
    struct checkpoint_identity identity = { .step = step };

    snprintf(identity.name, sizeof identity.name, "%s", name);
    return identity;
}

int checkpoint_identity_same(const struct checkpoint_identity *a, const struct checkpoint_identity *b)
{
    return a->step == b->step && a->digest == b->digest && !strcmp(a->name, b->name);
}

/* ---- opened checkpoint ------------------------------------------------------------------------------------------- */

enum {
    INDEX_LIMIT = 256 << 20,
    PIECE_ELEMENTS = 4096,
    THREAD_BYTES = 1 << 20, /* below this a thread costs more than it saves */
};

struct opened_checkpoint {
    enum checkpoint_kind kind;
    uint64_t digest;
    struct tensor_bundle *bundle;    /* BUNDLE, V1; holds index and data open */
    struct safetensors *safetensors; /* SAFETENSORS, or OTHER once entered; holds the file open */
    struct tensor_entry *entries;    /* its tensors as entries; type 0: an unsupported type */
    struct content content;          /* OTHER */
};

uint64_t opened_checkpoint_digest(const struct opened_checkpoint *c)
{
    return c->digest;
}

int opened_checkpoint_readable(const struct opened_checkpoint *c)
{
    return c->bundle || c->safetensors;
}

const struct content *opened_checkpoint_content(const struct opened_checkpoint *c)
{
    return &c->content;
}

void opened_checkpoint_close(struct opened_checkpoint *c)
{
    if (!c)
        return;
    tensor_bundle_close(c->bundle);
    safetensors_close(c->safetensors);
    free(c->entries);
    content_release(&c->content);
    free(c);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int open_variables(struct opened_checkpoint *c, const char *path, struct error *e)
{
    const struct safetensors_header *h;
    int rc;

    if ((rc = safetensors_open(&c->safetensors, path, e)) != OK)
        return rc;
    h = safetensors_contents(c->safetensors);
    if (!(c->entries = calloc(h->count + 1, sizeof *c->entries)))
        return error_memory(e, path, "for %zu tensors", h->count);
    for (size_t i = 0; i < h->count; i++)
        c->entries[i] = (struct tensor_entry){ .name = h->tensors[i].name,
                                               .name_length = h->tensors[i].name_length,
                                               .type = safetensors_tensor_type(h->tensors[i].dtype),
                                               .rank = h->tensors[i].rank,
                                               .shape = h->tensors[i].shape,
                                               .elements = h->tensors[i].elements,
                                               .size = (int64_t)(h->tensors[i].end - h->tensors[i].begin) };
    return OK;
}

static int open_safetensors(struct opened_checkpoint *c, const char *path, struct error *e)
{
    struct content content;
    int rc;

    if ((rc = open_variables(c, path, e)) != OK || (rc = content_read(path, &content, e)) != OK)
        return rc;
    c->digest = content_digest(&content);
    content_release(&content);
    return OK;
}

int opened_checkpoint_enter(struct opened_checkpoint *c, const char *path, struct error *e)
{
    char weights[PATH_MAX];

    if (c->kind != CHECKPOINT_OTHER || c->safetensors ||
        !checkpoint_weights_within(AT_FDCWD, path, weights, sizeof weights))
        return OK;
    return open_variables(c, weights, e);
}

/* Weights in parts are whole when all parts are that their index names. */
static int check_parts(const char *path, struct error *e)
{
    struct safetensors *parts;
    char index[PATH_MAX];
    int rc;

    if (!checkpoint_weights_within(AT_FDCWD, path, index, sizeof index) || !safetensors_is_index(index))
        return OK;
    if ((rc = safetensors_open(&parts, index, e)) == OK)
        safetensors_close(parts);
    return rc;
}

/* A directory that is just being written or deleted has no content yet, or none any more. */
static int open_other(struct opened_checkpoint *c, const char *path, struct error *e)
{
    int rc = content_read(path, &c->content, e);

    if (rc == OK)
        rc = check_parts(path, e);
    if (rc == OK && !c->content.count)
        rc = error_set(e, ERR_IO, "%s: contains no files", path);
    if (rc == OK)
        c->digest = content_digest(&c->content);
    return rc == ERR_ARG ? error_set(e, ERR_CORRUPT, "%s: too many files, or too deep a tree", path) : rc;
}

/* A checkpoint without a digest of its own is digested before and after it is read: both must be equal. */
static int open_unchanged(struct opened_checkpoint *c, const char *path, struct error *e)
{
    uint64_t before, after;
    double changed;
    int rc;

    if (!content_stamp(AT_FDCWD, path, &before, &changed))
        return error_system(e, "%s", path);
    rc = c->kind == CHECKPOINT_SAFETENSORS ? open_safetensors(c, path, e) : open_other(c, path, e);
    if (rc == OK && (!content_stamp(AT_FDCWD, path, &after, &changed) || before != after))
        rc = content_changed(e, path);
    return rc;
}

int opened_checkpoint_open(struct opened_checkpoint **out, enum checkpoint_kind kind, const char *path, struct error *e)
{
    struct opened_checkpoint *c = calloc(1, sizeof *c);
    int rc = OK;

    *out = NULL;
    if (!c)
        return error_memory(e, path, "to open it");
    c->kind = kind;
    switch (kind) {
    case CHECKPOINT_BUNDLE:
    case CHECKPOINT_V1:
        if ((rc = tensor_bundle_open(&c->bundle, path, e)) == OK)
            c->digest = tensor_bundle_digest(c->bundle);
        break;
    case CHECKPOINT_SAFETENSORS:
    case CHECKPOINT_OTHER: rc = open_unchanged(c, path, e); break;
    }
    if (rc == OK)
        *out = c;
    else
        opened_checkpoint_close(c);
    return rc;
}

int opened_checkpoint_raw_digest(enum checkpoint_kind kind, const char *path, uint64_t *digest)
{
    struct buffer bytes = BUFFER_EMPTY;
    struct content content;
    char index[PATH_MAX];
    int rc;

    if (kind != CHECKPOINT_BUNDLE) {
        if (content_read(path, &content, NULL) != OK)
            return 0;
        *digest = ~content_digest(&content);
        content_release(&content);
        return 1;
    }
    rc = snprintf(index, sizeof index, "%s.index", path) < (int)sizeof index &&
         file_read(index, INDEX_LIMIT, &bytes, NULL) == OK;
    if (rc)
        *digest = (uint64_t)crc32c(buffer_text(&bytes), bytes.length) << 32 | (uint32_t)bytes.length;
    buffer_release(&bytes);
    return rc;
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

static const struct tensor_entry *find_entry(const struct opened_checkpoint *c, const char *name)
{
    const struct safetensors_header *h = safetensors_contents(c->safetensors);

    for (size_t i = 0; i < h->count; i++)
        if (h->tensors[i].name_length == strlen(name) && !memcmp(h->tensors[i].name, name, strlen(name)))
            return &c->entries[i];
    return NULL;
}

const struct tensor_entry *opened_checkpoint_find(const struct opened_checkpoint *c, const char *name)
{
    const struct tensor_entry *found;
    char dotted[1024];
    size_t n = strlen(name);

    if (c->bundle)
        return tensor_bundle_find(c->bundle, name);
    if (!c->safetensors)
        return NULL;
    if ((found = find_entry(c, name)) || n >= sizeof dotted)
        return found;
    memcpy(dotted, name, n + 1);
    for (char *p = dotted; (p = strchr(p, '/')); p++)
        *p = '.';
    return find_entry(c, dotted);
}

int opened_checkpoint_from_torch(const struct opened_checkpoint *c)
{
    return c->safetensors && safetensors_from_torch(c->safetensors);
}

static int read_float(struct opened_checkpoint *c, const struct tensor_entry *entry, float *out, size_t count,
                      struct error *e)
{
    const struct safetensors_header *h;
    const struct safetensors_tensor *tensor;
    size_t each = tensor_type_size(entry->type);
    int rc = OK;

    if (c->bundle)
        return tensor_bundle_read_float(c->bundle, entry, out, count, e);
    h = safetensors_contents(c->safetensors);
    tensor = &h->tensors[entry - c->entries];
    if (!tensor_type_is_float(entry->type))
        return error_set(e, ERR_ARG, "tensor %s is %s, not a floating-point type", entry->name, tensor->dtype);
    if (count != entry->elements)
        return error_set(e, ERR_ARG, "tensor %s has %llu elements, not %zu", entry->name,
                         (unsigned long long)entry->elements, count);
    for (size_t done = 0; rc == OK && done < count; done += PIECE_ELEMENTS) {
        size_t n = count - done < PIECE_ELEMENTS ? count - done : PIECE_ELEMENTS;
        unsigned char bytes[PIECE_ELEMENTS * sizeof(double)];

        if ((rc = safetensors_read(c->safetensors, tensor, done * each, bytes, n * each, e)) != OK)
            break;
        tensor_floats(entry->type, bytes, n, out + done);
    }
    return rc;
}

int opened_checkpoint_read_floats(struct opened_checkpoint *c, const struct opened_checkpoint_floats *wanted, size_t n,
                                  int threads, struct error *e)
{
    struct tensor_batch_item *items = calloc(n + 1, sizeof *items);
    int rc = items ? OK : error_memory(e, NULL, "to read %zu tensors", n);
    size_t batch = 0, bytes = 0;

    for (size_t i = 0; i < n && rc == OK; i++) {
        const struct opened_checkpoint_floats *w = &wanted[i];

        if (c->bundle && w->entry->type == TENSOR_FLOAT) {
            items[batch++] = (struct tensor_batch_item){ w->entry, w->out, w->count * sizeof *w->out };
            bytes += w->count * sizeof *w->out;
        } else {
            rc = read_float(c, w->entry, w->out, w->count, e);
        }
    }
    if (bytes / THREAD_BYTES < (size_t)threads)
        threads = (int)(bytes / THREAD_BYTES);
    if (rc == OK && batch)
        rc = tensor_batch_read(c->bundle, items, batch, threads, e);
    free(items);
    return rc;
}

static int64_t check_step(int64_t step, int64_t named, struct error *doubt)
{
    if (step >= 0 && named >= 0 && step != named)
        error_set(doubt, ERR_ARG, "its name says step %lld, but its global_step, which is used, is %lld",
                  (long long)named, (long long)step);
    return step;
}

int opened_checkpoint_integer(struct opened_checkpoint *c, const char *name, int64_t *value)
{
    const struct tensor_entry *entry = c->bundle ? tensor_bundle_find(c->bundle, name) : NULL;

    return entry && tensor_bundle_read_integer(c->bundle, entry, value, NULL) == OK;
}

static int64_t step_of_bundle(struct tensor_bundle *bundle, int64_t named, struct error *doubt)
{
    static const char *const names[] = {
        "global_step", "optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE", /* Keras 2.11 and later, and 3 */
        "optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE", /* Keras before, as its SidecarEvaluator reads it */
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct tensor_entry *entry = tensor_bundle_find(bundle, names[i]);
        int64_t step;

        if (entry && tensor_bundle_read_integer(bundle, entry, &step, i ? NULL : doubt) == OK && step >= 0)
            return i ? step : check_step(step, named, doubt);
    }
    return -1;
}

int64_t opened_checkpoint_step(struct opened_checkpoint *c, int64_t named, struct error *doubt)
{
    if (c->bundle)
        return step_of_bundle(c->bundle, named, doubt);
    return c->safetensors ? check_step(safetensors_step(c->safetensors, doubt), named, doubt) : -1;
}
