#include "checkpoint/safetensors.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/file_kind.h"
#include "base/number.h"
#include "base/text.h"
#include "base/unfinished.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_value.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------------------------------- */

struct open_part {
    const char *name;         /* in the index; borrowed from it, so only while the checkpoint is opened */
    struct safetensors *file; /* NULL: missing or damaged */
    uint64_t first;           /* where its data begin among those of all parts, one behind the other */
    size_t end;               /* its tensors, and those of the parts before */
};

/* One file, or an index and its parts. */
struct safetensors {
    char *path;
    int fd;                            /* of one file, else -1 */
    uint64_t data;                     /* where it begins */
    struct safetensors_header *header; /* of all parts: names and shapes are borrowed from those of the parts */
    struct open_part *parts;           /* in order of their names */
    size_t part_count;                 /* 0: one file */
};

static uint64_t data_size(const struct safetensors *s)
{
    return s->header->count ? s->header->tensors[s->header->count - 1].end : 0;
}

static int read_at(const struct safetensors *s, void *out, size_t n, uint64_t offset, struct error *e)
{
    ssize_t got = file_read_at(s->fd, out, n, offset);

    if (got < 0)
        return error_system(e, "%s: cannot read", s->path);
    if ((size_t)got < n)
        return error_set(e, ERR_CORRUPT, "%s: ends at byte %llu (truncated after it was opened)", s->path,
                         (unsigned long long)offset + (unsigned long long)got);
    return OK;
}

static int read_header(struct safetensors *s, struct error *e)
{
    uint8_t head[SAFETENSORS_HEAD] = { 0 };
    uint64_t size;
    struct stat st;
    size_t length;
    char *json;
    int rc;

    if (fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(e, ERR_IO, "%s: not a regular file", s->path);
    size = (uint64_t)st.st_size;
    if ((rc = read_at(s, head, size < SAFETENSORS_HEAD ? 0 : SAFETENSORS_HEAD, 0, e)) != OK ||
        (rc = safetensors_header_length(s->path, head, size, &length, e)) != OK)
        return rc;
    if (!(json = malloc(length + 1)))
        return error_memory(e, s->path, "for its header");
    s->data = SAFETENSORS_HEAD + length;
    if ((rc = read_at(s, json, length, SAFETENSORS_HEAD, e)) == OK)
        rc = safetensors_header_parse(s->path, json, length, size - s->data, &s->header, e);
    free(json);
    return rc;
}

/* For a file of another kind the error names the kind, not what its first bytes would mean here. */
static int say_kind(const struct safetensors *s, int rc, struct error *e)
{
    enum file_kind kind = rc == ERR_CORRUPT ? file_kind_of(s->path) : FILE_KIND_UNKNOWN;

    if (kind == FILE_KIND_UNKNOWN || kind == FILE_KIND_EMPTY || kind == FILE_KIND_SAFETENSORS)
        return rc;
    return error_set(e, rc, "%s: not a safetensors file, but %s", s->path, file_kind_text(kind));
}

/* ---- checkpoints in parts ---------------------------------------------------------------------------------------- */

int safetensors_is_index(const char *path)
{
    const char *name = file_base_name(path);

    return strstr(name, ".safetensors.index") && text_stem(name, strlen(name), ".json");
}

int safetensors_index_open(struct safetensors_index *out, const char *path, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc = file_read(path, SAFETENSORS_HEADER_MAX, &text, e);

    *out = (struct safetensors_index){ 0 };
    if (rc == OK)
        rc = safetensors_index_parse(path, buffer_text(&text), text.length, out, e);
    buffer_release(&text);
    return rc;
}

/* What an index says, held against its parts. */
struct assembling {
    struct safetensors *whole;
    const struct safetensors_index *index;
    char *seen; /* (tensors of the index) enum seen */
    safetensors_problem *problem;
    void *context;
    struct error *e;
    int incomplete;      /* 1: something that the index names cannot be read */
    uint64_t named, all; /* bytes of the tensors that it names, and of all that the parts have */
};
enum seen { SEEN_NOT, SEEN_THERE, SEEN_ELSEWHERE };

/* OK: it was reported. Without anyone to report to, what cannot be read is an error, and all else is passed over. */
static int tell(struct assembling *a, int readable, const struct error *why)
{
    a->incomplete |= !readable;
    if (a->problem)
        a->problem(a->context, why);
    return a->problem || readable ? OK : error_copy(a->e, why);
}

static int open_part(struct assembling *a, struct open_part *part)
{
    struct error why = { 0 };
    char path[PATH_MAX];
    const char *index = a->whole->path;
    const int directory = (int)(file_base_name(index) - index);
    int rc;

    if (snprintf(path, sizeof path, "%.*s%s", directory, index, part->name) >= (int)sizeof path)
        return error_set(a->e, ERR_ARG, "%s: path too long", index);
    if (safetensors_is_index(part->name))
        rc = error_set(&why, ERR_CORRUPT, "%s: names %s, an index, as a part", index, part->name);
    else
        rc = safetensors_open(&part->file, path, &why);
    if (rc == ERR_NOMEM || (rc != OK && error_is_lack(&why)))
        return error_copy(a->e, &why);
    if (why.system == ENOENT) {
        error_set(&why, ERR_IO, "%s: its part %s is missing", index, part->name);
        why.system = ENOENT;
    }
    return rc == OK ? OK : tell(a, 0, &why);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int open_all(struct assembling *a)
{
    struct safetensors *s = a->whole;
    const char **names = calloc(a->index->count + 1, sizeof *names);
    int rc = OK;

    if (!names || !(s->parts = calloc(a->index->count + 1, sizeof *s->parts))) {
        free(names);
        return error_memory(a->e, s->path, "for its parts");
    }
    for (size_t i = 0; i < a->index->count; i++)
        names[i] = a->index->places[i].value;
    qsort(names, a->index->count, sizeof *names, compare_texts);
    for (size_t i = 0; i < a->index->count && rc == OK; i++)
        if (!i || strcmp(names[i], names[i - 1])) {
            s->parts[s->part_count].name = names[i];
            rc = open_part(a, &s->parts[s->part_count++]);
        }
    free(names);
    return rc;
}

/* Takes the tensors that the index places in this part, and the part's pairs. */
static void take_part(struct assembling *a, struct open_part *part)
{
    struct safetensors_header *h = a->whole->header, *from = part->file->header;

    for (size_t i = 0; i < from->count; i++) {
        struct safetensors_tensor *t = &from->tensors[i];
        const struct safetensors_pair *place = safetensors_index_find(a->index, t->name, t->name_length);

        a->all += t->end - t->begin;
        if (!place || strcmp(place->value, part->name))
            continue;
        a->seen[place - a->index->places] = SEEN_THERE;
        a->named += t->end - t->begin;
        h->tensors[h->count] = *t;
        h->tensors[h->count].memory = NULL;
        h->tensors[h->count].begin += part->first;
        h->tensors[h->count++].end += part->first;
    }
    for (size_t i = 0; i < from->pair_count; i++)
        h->pairs[h->pair_count++] = from->pairs[i];
    from->pair_count = 0; /* they have moved */
}

static int compare_moved(const void *a, const void *b)
{
    const struct safetensors_pair *x = a, *y = b;
    const int order = bytes_compare(x->key, x->key_length, y->key, y->key_length);

    return order ? order : bytes_compare(x->value, x->value_length, y->value, y->value_length);
}

/* Parts repeat what holds for all. */
static void keep_each_pair_once(struct safetensors_header *h)
{
    size_t kept = 0;

    if (h->pair_count)
        qsort(h->pairs, h->pair_count, sizeof *h->pairs, compare_moved);
    for (size_t i = 0; i < h->pair_count; i++) {
        struct safetensors_pair *last = kept ? &h->pairs[kept - 1] : NULL, *next = &h->pairs[i];

        if (last && !bytes_compare(last->key, last->key_length, next->key, next->key_length)) {
            free(next->key);
            free(next->value);
        } else {
            h->pairs[kept++] = *next;
        }
    }
    h->pair_count = kept;
}

static int take_all(struct assembling *a)
{
    struct safetensors *s = a->whole;
    struct safetensors_header *h = s->header = calloc(1, sizeof *h);
    size_t pairs = 0;
    uint64_t first = 0;

    for (size_t i = 0; i < s->part_count; i++)
        pairs += s->parts[i].file ? s->parts[i].file->header->pair_count : 0;
    a->seen = calloc(a->index->count + 1, 1);
    if (!h || !a->seen || !(h->tensors = calloc(a->index->count + 1, sizeof *h->tensors)) ||
        !(h->pairs = calloc(pairs + 1, sizeof *h->pairs)))
        return error_memory(a->e, s->path, "for its tensors");
    for (size_t i = 0; i < s->part_count; i++) {
        s->parts[i].first = first;
        if (s->parts[i].file) {
            take_part(a, &s->parts[i]);
            first += data_size(s->parts[i].file);
        }
        s->parts[i].end = h->count;
    }
    keep_each_pair_once(h);
    return OK;
}

/* Tensors of a part that the index does not place there. */
static int check_part(struct assembling *a, const struct open_part *part)
{
    const struct safetensors_header *h = part->file->header;
    const char *path = a->whole->path;
    int rc = OK;

    for (size_t i = 0; i < h->count && rc == OK; i++) {
        const struct safetensors_tensor *t = &h->tensors[i];
        const struct safetensors_pair *place = safetensors_index_find(a->index, t->name, t->name_length);
        struct error why = { 0 };
        char *seen;

        if (place && !strcmp(place->value, part->name))
            continue;
        if (!place) {
            error_set(&why, ERR_CORRUPT, "%s: tensor %s is in %s, but not in the index", path, t->name, part->name);
            rc = tell(a, 1, &why);
            continue;
        }
        seen = &a->seen[place - a->index->places];
        if (*seen == SEEN_THERE)
            error_set(&why, ERR_CORRUPT, "%s: tensor %s is in two parts, %s and %s", path, t->name, place->value,
                      part->name);
        else
            error_set(&why, ERR_CORRUPT, "%s: tensor %s is in %s, not in %s as the index says", path, t->name,
                      part->name, place->value);
        rc = tell(a, *seen == SEEN_THERE, &why);
        *seen = *seen == SEEN_THERE ? SEEN_THERE : SEEN_ELSEWHERE;
    }
    return rc;
}

static int part_is_there(const struct safetensors *s, const char *name)
{
    for (size_t low = 0, high = s->part_count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(s->parts[middle].name, name);

        if (!order)
            return s->parts[middle].file != NULL;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static int check_all(struct assembling *a)
{
    const struct safetensors *s = a->whole;
    const int64_t total = a->index->total_size;
    struct error why = { 0 };
    int rc = OK;

    for (size_t i = 0; i < s->part_count && rc == OK; i++)
        rc = s->parts[i].file ? check_part(a, &s->parts[i]) : OK;
    for (size_t i = 0; i < a->index->count && rc == OK; i++) {
        const struct safetensors_pair *place = &a->index->places[i];

        if (a->seen[i] != SEEN_NOT || !part_is_there(s, place->value))
            continue;
        error_set(&why, ERR_CORRUPT, "%s: tensor %s is not in its part %s", s->path, place->key, place->value);
        rc = tell(a, 0, &why);
    }
    if (rc != OK || a->incomplete || total == SAFETENSORS_TOTAL_NONE)
        return rc;
    if (total == SAFETENSORS_TOTAL_ODD)
        error_set(&why, ERR_CORRUPT, "%s: total_size is not a number of bytes", s->path);
    else if ((uint64_t)total != a->named && (uint64_t)total != a->all)
        error_set(&why, ERR_CORRUPT, "%s: total_size is %lld, but its tensors have %llu bytes", s->path,
                  (long long)total, (unsigned long long)a->named);
    else
        return OK;
    return tell(a, 1, &why);
}

static int open_parts(struct safetensors *s, safetensors_problem *problem, void *context, struct error *e)
{
    struct safetensors_index index;
    struct assembling a = { .whole = s, .index = &index, .problem = problem, .context = context, .e = e };
    int rc = safetensors_index_open(&index, s->path, e);

    if (rc != OK)
        return rc;
    if ((rc = open_all(&a)) == OK && (rc = take_all(&a)) == OK)
        rc = check_all(&a);
    for (size_t i = 0; i < s->part_count; i++)
        s->parts[i].name = NULL;
    free(a.seen);
    safetensors_index_release(&index);
    return rc;
}

int safetensors_open(struct safetensors **out, const char *path, struct error *e)
{
    return safetensors_open_damaged(out, path, NULL, NULL, e);
}

int safetensors_open_damaged(struct safetensors **out, const char *path, safetensors_problem *problem, void *context,
                             struct error *e)
{
    struct safetensors *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return error_memory(e, path, "to open it");
    }
    s->fd = -1;
    /* O_NONBLOCK so that opening a pipe does not wait for a writer. */
    if (safetensors_is_index(path))
        rc = open_parts(s, problem, context, e);
    else if ((s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        rc = error_system(e, "%s: cannot open", path);
    else
        rc = say_kind(s, read_header(s, e), e);
    if (rc != OK)
        safetensors_close(s);
    else
        *out = s;
    return rc;
}

void safetensors_close(struct safetensors *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    safetensors_header_free(s->header);
    for (size_t i = 0; i < s->part_count; i++)
        safetensors_close(s->parts[i].file);
    free(s->parts);
    free(s->path);
    free(s);
}

/* tensor: of s->header. */
static size_t find_part(const struct safetensors *s, const struct safetensors_tensor *tensor)
{
    const size_t place = (size_t)(tensor - s->header->tensors);
    size_t low = 0, high = s->part_count;

    while (low < high) { /* the first part that ends behind it */
        const size_t middle = low + (high - low) / 2;

        if (s->parts[middle].end <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct safetensors_header *safetensors_contents(const struct safetensors *s)
{
    return s->header;
}

int safetensors_read(const struct safetensors *s, const struct safetensors_tensor *tensor, uint64_t at, void *out,
                     size_t n, struct error *e)
{
    uint64_t size = tensor->end - tensor->begin;

    if (at > size || n > size - at)
        return error_set(e, ERR_ARG, "%s: tensor %s has no %zu bytes at its byte %llu", s->path, tensor->name, n,
                         (unsigned long long)at);
    if (s->part_count) {
        const struct open_part *part = &s->parts[find_part(s, tensor)];

        return read_at(part->file, out, n, part->file->data + (tensor->begin - part->first) + at, e);
    }
    return read_at(s, out, n, s->data + tensor->begin + at, e);
}

size_t safetensors_parts(const struct safetensors *s)
{
    return s->part_count ? s->part_count : 1;
}

size_t safetensors_part(const struct safetensors *s, const struct safetensors_tensor *tensor, uint64_t *offset)
{
    const size_t part = s->part_count ? find_part(s, tensor) : 0;

    *offset = tensor->begin - (s->part_count ? s->parts[part].first : 0);
    return part;
}

uint64_t safetensors_bytes(const struct safetensors *s)
{
    uint64_t bytes = s->part_count ? 0 : s->data + data_size(s);

    for (size_t i = 0; i < s->part_count; i++)
        bytes += s->parts[i].file ? safetensors_bytes(s->parts[i].file) : 0;
    return bytes;
}

int safetensors_from_torch(const struct safetensors *s)
{
    const struct safetensors_header *h = s->header;

    for (size_t i = 0; i < h->pair_count; i++)
        if (!strcmp(h->pairs[i].key, "format") && !strcmp(h->pairs[i].value, "pt"))
            return 1;
    return 0;
}

int64_t safetensors_step(const struct safetensors *s, struct error *e)
{
    static const char *const keys[] = { "global_step", "step" };
    const struct safetensors_header *h = s->header;
    uint8_t bytes[8];
    int64_t step;

    for (size_t i = 0; i < h->count; i++) {
        const struct safetensors_tensor *tensor = &h->tensors[i];
        int type = safetensors_tensor_type(tensor->dtype);

        if (strcmp(tensor->name, keys[0]) != 0 || tensor->elements != 1 ||
            (type != TENSOR_INT64 && type != TENSOR_INT32))
            continue;
        if (safetensors_read(s, tensor, 0, bytes, tensor_type_size(type), e) != OK)
            return -1;
        if ((step = (int64_t)tensor_integer(type, bytes)) >= 0)
            return step;
    }
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t i = 0; i < h->pair_count; i++)
            if (strcmp(h->pairs[i].key, keys[k]) == 0 && number_parse_int(h->pairs[i].value, &step) && step >= 0)
                return step;
    return -1;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

struct safetensors_writer {
    const struct io *io;
    char path[PATH_MAX], temporary[PATH_MAX];
    struct unfinished *unfinished;
    int fd;
    uint64_t left; /* bytes of data that are still to come */
};

int safetensors_writer_open(struct safetensors_writer **out, const struct io *io, const char *path,
                            const struct safetensors_tensor *tensors, size_t count,
                            const struct safetensors_pair *pairs, size_t pair_count, struct error *e)
{
    struct safetensors_writer *w = calloc(1, sizeof *w);
    struct buffer head = BUFFER_EMPTY;
    int rc = OK;

    *out = NULL;
    if (!w)
        return error_memory(e, path, "to write it");
    w->io = io ? io : &io_real;
    w->left = count ? tensors[count - 1].end : 0;
    w->fd = -1;
    snprintf(w->path, sizeof w->path, "%s", path);
    if (snprintf(w->temporary, sizeof w->temporary, "%s.tmp%ld", path, (long)getpid()) >= (int)sizeof w->temporary) {
        free(w);
        return error_set(e, ERR_ARG, "%s: path too long", path);
    }
    safetensors_header_encode(&head, tensors, count, pairs, pair_count);
    if (!buffer_ok(&head))
        rc = error_memory(e, path, "for its header");
    else if (head.length - SAFETENSORS_HEAD > SAFETENSORS_HEADER_MAX)
        rc = error_set(e, ERR_ARG, "%s: a header of %zu bytes, over the format's limit", path, head.length);
    if (rc == OK) {
        w->unfinished = unfinished_begin(AT_FDCWD, w->temporary);
        unlink(w->temporary); /* left by a killed process with our process id */
        if ((w->fd = w->io->open(w->io->context, w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
            rc = error_system(e, "%s: cannot create", w->temporary);
        else if (io_write_full(w->io, w->fd, head.data, head.length) < 0)
            rc = error_system(e, "%s: cannot write", w->temporary);
    }
    buffer_release(&head);
    if (rc != OK)
        safetensors_writer_abandon(w);
    else
        *out = w;
    return rc;
}

int safetensors_writer_append(struct safetensors_writer *w, const void *bytes, size_t n, struct error *e)
{
    if (n > w->left)
        return error_set(e, ERR_ARG, "%s: more bytes than its header says", w->path);
    if (n && io_write_full(w->io, w->fd, bytes, n) < 0)
        return error_system(e, "%s: cannot write", w->temporary);
    w->left -= n;
    return OK;
}

int safetensors_writer_finish(struct safetensors_writer *w, struct error *e)
{
    int rc = OK, fd = w->fd;

    if (w->left)
        rc = error_set(e, ERR_ARG, "%s: %llu bytes of data are missing", w->path, (unsigned long long)w->left);
    else if (w->io->fsync(w->io->context, fd) < 0)
        rc = error_system(e, "%s: cannot sync", w->temporary);
    w->fd = -1;
    if (w->io->close(w->io->context, fd) < 0 && rc == OK)
        rc = error_system(e, "%s: cannot close", w->temporary);
    if (rc == OK && w->io->rename(w->io->context, w->temporary, w->path) < 0)
        rc = error_system(e, "%s: cannot rename to %s", w->temporary, w->path);
    if (rc == OK) {
        rc = file_sync_parent(w->io, w->path, e);
        unfinished_end(w->unfinished);
        free(w);
        return rc;
    }
    safetensors_writer_abandon(w);
    return rc;
}

void safetensors_writer_abandon(struct safetensors_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        w->io->close(w->io->context, w->fd);
    unlink(w->temporary);
    unfinished_end(w->unfinished);
    free(w);
}
