/*
 * Reading a TensorFlow V2 checkpoint.
 *
 *   PREFIX.index                 a table (table.c): "" -> header; tensor name -> entry; 00... -> entry of one slice
 *   PREFIX.data-SSSSS-of-NNNNN   bytes of tensors where the entries say; nothing else, no header
 *
 * An entry gives type, shape, shard, offset, size and masked CRC. A partitioned variable's entry lists slices instead;
 * each is found under its own key (saved_slices.h) and may lie in any shard. All checks that need no tensor bytes are
 * made when the bundle is opened; the CRC of a tensor is checked when it is read, as a whole (tensor_bundle_values.c)
 * or in pieces.
 *
 * A V1 checkpoint (saved_slices.h) is decoded as a whole when it is opened. Its values are then in a file of their own
 * in memory, as if that were shard 0 of 1, and all else is as above.
 */
#include "checkpoint/tensor_bundle.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/file_kind.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/saved_slices.h"
#include "checkpoint/table.h"

#include <errno.h>
#include <fcntl.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAMES_FREE = 64 << 20, /* bytes all names may take, and this many more for each byte of the index: a key shares */
    NAMES_PER_BYTE = 64,   /* its beginning with the one before, so few bytes can make very long names */
};
static const uint64_t INDEX_MAX = (uint64_t)4 << 30;

struct shard {
    int32_t number;
    int fd;
    uint64_t size;
};

/* ascending by name */
struct entries {
    struct tensor_entry **items;
    size_t count, room;
};

struct tensor_bundle {
    char *prefix, *index_path;
    int32_t shards; /* the number in the header, part of the file names */
    int have_header;
    struct entries whole, slices;
    struct shard *shard; /* those that entries refer to, ascending by number */
    size_t shard_count;
    uint64_t digest, names, names_limit;
    int index_only; /* shards were not opened */
    int version_1;
    tensor_bundle_problem *problem; /* receives errors outside the index; NULL: they end the opening */
    void *problem_context;
};

/* ---- opening --------------------------------------------------------------------------------------------------- */

static int entries_add(struct entries *list, struct tensor_entry *entry)
{
    if (!ARRAY_ROOM(list->items, list->room, list->count + 1))
        return ERR_NOMEM;
    list->items[list->count++] = entry;
    return OK;
}

static void entries_release(struct entries *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
}

static int compare_entries(const void *a, const void *b)
{
    const struct tensor_entry *x = *(const struct tensor_entry *const *)a, *y = *(const struct tensor_entry *const *)b;

    return bytes_compare(x->name, x->name_length, y->name, y->name_length);
}

static int take_entry(void *context, const void *key, size_t key_length, const void *value, size_t value_length,
                      struct error *e)
{
    struct tensor_bundle *b = context;
    int rc, slice = key_length && *(const char *)key == '\0';
    struct tensor_entry *entry;

    if (!b->have_header) {
        if (key_length)
            return error_set(e, ERR_CORRUPT, "%s: no header: the first key is not the empty one", b->index_path);
        b->have_header = 1;
        return bundle_header_decode(b->index_path, value, value_length, &b->shards, e);
    }
    b->names += key_length;
    if (b->names > b->names_limit)
        return error_set(e, ERR_CORRUPT, "%s: its names take more than %llu bytes", b->index_path,
                         (unsigned long long)b->names_limit);
    rc = bundle_entry_decode(b->index_path, key, key_length, value, value_length, b->shards, &entry, e);
    if (rc != OK)
        return rc;
    if (entries_add(slice ? &b->slices : &b->whole, entry) != OK) {
        free(entry);
        return error_memory(e, b->index_path, "for its entries");
    }
    return OK;
}

/* FNV-1a, 64 bits: it covers every tensor's CRC, and nobody gains from a collision. */
static uint64_t digest_bytes(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* Opens a regular file for reading; O_NONBLOCK so that opening a pipe does not wait for a writer. */
static int open_file(int directory_fd, const char *path, int *fd, uint64_t *size, struct error *e)
{
    struct stat st;

    if ((*fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        return error_system(e, "%s: cannot open", path);
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode)) {
        *size = (uint64_t)st.st_size;
        return OK;
    }
    close(*fd);
    *fd = -1;
    return error_set(e, ERR_IO, "%s: not a regular file", path);
}

int tensor_bundle_ends_as_index(int directory_fd, const char *path)
{
    uint8_t footer[TABLE_FOOTER];
    uint64_t size;
    int fd, yes;

    if (open_file(directory_fd, path, &fd, &size, NULL) != OK)
        return 0;
    yes = size >= TABLE_FOOTER && file_read_at(fd, footer, sizeof footer, size - TABLE_FOOTER) == TABLE_FOOTER &&
          table_footer_valid(footer);
    close(fd);
    return yes;
}

/* Reads a file that must be a table into bytes, which are released after an error. */
static int read_table_file(const char *path, struct buffer *bytes, struct error *e)
{
    uint8_t footer[TABLE_FOOTER];
    enum file_kind kind;
    uint64_t size;
    ssize_t got;
    int fd, rc = open_file(AT_FDCWD, path, &fd, &size, e);

    if (rc != OK)
        return rc;
    /* Reads the end first: nothing is allocated for a huge file that is not an index. */
    if (size > INDEX_MAX) {
        rc = error_set(e, ERR_NOMEM, "%s: %llu bytes, too large for an index", path, (unsigned long long)size);
        goto out;
    }
    if (size >= TABLE_FOOTER && file_read_at(fd, footer, sizeof footer, size - TABLE_FOOTER) == TABLE_FOOTER &&
        !table_footer_valid(footer)) {
        kind = file_kind_of(path);
        rc = kind == FILE_KIND_UNKNOWN
                 ? error_set(e, ERR_CORRUPT, "%s: bad magic number at byte %llu: not a checkpoint index, or incomplete",
                             path, (unsigned long long)(size - 8))
                 : error_set(e, ERR_CORRUPT, "%s: not a checkpoint index, but %s", path, file_kind_text(kind));
        goto out;
    }
    if (!buffer_reserve(bytes, (size_t)size)) {
        rc = error_memory(e, path, "for %llu bytes", (unsigned long long)size);
        goto out;
    }
    if ((got = file_read_at(fd, bytes->data, (size_t)size, 0)) < 0)
        rc = error_system(e, "%s: cannot read", path);
    else
        bytes->length = (size_t)got;
out:
    if (rc != OK)
        buffer_release(bytes);
    close(fd);
    return rc;
}

static int reader_read_index(struct tensor_bundle *b, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    int rc = read_table_file(b->index_path, &bytes, e);

    if (rc != OK)
        return rc;
    b->digest = digest_bytes(bytes.data, bytes.length);
    b->names_limit = NAMES_FREE + NAMES_PER_BYTE * (uint64_t)bytes.length;
    rc = table_read(b->index_path, bytes.data, bytes.length, take_entry, b, e);
    if (rc == OK && !b->have_header)
        rc = error_set(e, ERR_CORRUPT, "%s: no header: the table is empty", b->index_path);
    buffer_release(&bytes);
    return rc;
}

/* ---- V1 -------------------------------------------------------------------------------------------------------- */

/* The number of shards of a V1 checkpoint, which are named P-00000-of-NNNNN, and in state files P-, five question
 * marks, -of-NNNNN; *place is where the number of a shard is. 0: the name is that of the only file. */
static int version_1_shards(const char *prefix, size_t *place)
{
    const size_t n = strlen(prefix), tail = sizeof "-00000-of-00000" - 1;
    const char *at = n > tail ? prefix + n - tail : "";
    int shards = 0;

    if (at[0] != '-' || strncmp(at + 6, "-of-", 4) != 0)
        return 0;
    for (int i = 1; i <= 5; i++)
        if (at[i] != '?' && !isdigit((unsigned char)at[i]))
            return 0;
    for (int i = 10; i < 15; i++) {
        if (!isdigit((unsigned char)at[i]))
            return 0;
        shards = shards * 10 + (at[i] - '0');
    }
    *place = (size_t)(at - prefix) + 1;
    return shards;
}

/* The file of a shard; number 0 is also that of a checkpoint in one file. */
static int version_1_path(const char *prefix, int number, char *out, size_t size, struct error *e)
{
    char digits[16];
    size_t place;

    if (strlen(prefix) >= size)
        return error_set(e, ERR_ARG, "%s: path too long", prefix);
    strcpy(out, prefix);
    if (version_1_shards(prefix, &place)) {
        snprintf(digits, sizeof digits, "%05d", number);
        memcpy(out + place, digits, 5);
    }
    return OK;
}

static int is_version_1(const struct tensor_bundle *b)
{
    char path[PATH_MAX];

    return access(b->index_path, F_OK) < 0 && errno == ENOENT &&
           version_1_path(b->prefix, 0, path, sizeof path, NULL) == OK && tensor_bundle_ends_as_index(AT_FDCWD, path);
}

/* Lets shard 0 be a file in memory with these bytes. */
static int keep_in_memory(struct tensor_bundle *b, const struct buffer *data, struct error *e)
{
    struct shard *shard;

    if (!(b->shard = malloc(sizeof *b->shard)))
        return error_memory(e, b->prefix, "to open it");
    shard = &b->shard[0];
    *shard = (struct shard){ .fd = memfd_create("checkpoint", MFD_CLOEXEC), .size = data->length };
    if (shard->fd < 0)
        return error_system(e, "%s: cannot make a file in memory for its values", b->prefix);
    b->shard_count = 1;
    return io_write_full(&io_real, shard->fd, data->data, data->length) < 0
               ? error_system(e, "%s: cannot keep its values in memory", b->prefix)
               : OK;
}

static int take_saved(struct tensor_bundle *b, struct saved_slices *s, struct error *e)
{
    for (size_t i = 0; i < s->entry_count; i++) {
        struct tensor_entry *entry = s->entries[i];

        if (entries_add(entry->name_length && !*entry->name ? &b->slices : &b->whole, entry) != OK)
            return error_memory(e, b->prefix, "for its entries");
        s->entries[i] = NULL;
    }
    return keep_in_memory(b, &s->data, e);
}

static int same_names(const struct entries *list)
{
    for (size_t i = 1; i < list->count; i++)
        if (compare_entries(&list->items[i - 1], &list->items[i]) == 0)
            return 1;
    return 0;
}

static int sort_entries(struct tensor_bundle *b, struct entries *list, struct error *e)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare_entries);
    return same_names(list) ? error_set(e, ERR_CORRUPT, "%s: it has a tensor twice", b->prefix) : OK;
}

static int read_version_1(struct tensor_bundle *b, struct error *e)
{
    struct saved_slices s = { 0 };
    char path[PATH_MAX];
    size_t place;
    const int shards = version_1_shards(b->prefix, &place);
    int rc = OK;

    b->version_1 = 1;
    b->shards = 1;
    for (int i = 0; i < (shards ? shards : 1) && rc == OK; i++) {
        struct buffer bytes = BUFFER_EMPTY;

        if ((rc = version_1_path(b->prefix, i, path, sizeof path, e)) != OK ||
            (rc = read_table_file(path, &bytes, e)) != OK)
            break;
        b->digest = b->digest * 0x100000001b3u ^ digest_bytes(bytes.data, bytes.length);
        rc = saved_slices_read(&s, path, bytes.data, bytes.length, e);
        buffer_release(&bytes);
    }
    if (rc == OK && (rc = saved_slices_finish(&s, b->prefix, e)) == OK && (rc = take_saved(b, &s, e)) == OK &&
        (rc = sort_entries(b, &b->whole, e)) == OK)
        rc = sort_entries(b, &b->slices, e);
    saved_slices_release(&s);
    return rc;
}

static int compare_shards(const void *a, const void *b)
{
    const struct shard *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

int tensor_bundle_shard_path(const struct tensor_bundle *b, int32_t number, char *out, size_t size, struct error *e)
{
    if (b->version_1)
        return version_1_path(b->prefix, 0, out, size, e);
    if ((size_t)snprintf(out, size, "%s.data-%05d-of-%05d", b->prefix, number, b->shards) >= size)
        return error_set(e, ERR_ARG, "%s: path too long", b->prefix);
    return OK;
}

/* Handles the error of a check: ends the opening, or passes it on if the caller wants all of them. */
static int found(const struct tensor_bundle *b, int rc, const struct error *why, struct error *e)
{
    if (rc == OK)
        return OK;
    if (b->problem && rc != ERR_NOMEM) {
        b->problem(b->problem_context, why);
        return OK;
    }
    return error_copy(e, why);
}

/* Opens each shard that an entry with bytes refers to. */
static int open_shards(struct tensor_bundle *b, struct error *e)
{
    size_t count = 0, all = b->whole.count + b->slices.count;
    struct error why = { 0 };
    char path[PATH_MAX];
    int rc = OK;

    if (!(b->shard = malloc((all + 1) * sizeof *b->shard)))
        return error_memory(e, b->index_path, "for its shards");
    for (size_t i = 0; i < b->whole.count; i++)
        if (!b->whole.items[i]->slices)
            b->shard[count++] = (struct shard){ .number = b->whole.items[i]->shard, .fd = -1 };
    for (size_t i = 0; i < b->slices.count; i++)
        b->shard[count++] = (struct shard){ .number = b->slices.items[i]->shard, .fd = -1 };
    if (count)
        qsort(b->shard, count, sizeof *b->shard, compare_shards);
    for (size_t i = 0; i < count && rc == OK; i++) { /* each once, in front of those that are looked at */
        struct shard *shard = &b->shard[b->shard_count];

        if (b->shard_count && shard[-1].number == b->shard[i].number)
            continue;
        *shard = b->shard[i];
        if ((rc = tensor_bundle_shard_path(b, shard->number, path, sizeof path, &why)) == OK)
            rc = open_file(AT_FDCWD, path, &shard->fd, &shard->size, &why);
        if ((rc = found(b, rc, &why, e)) == OK)
            b->shard_count++;
    }
    return rc;
}

static struct shard *find_shard(const struct tensor_bundle *b, int32_t number)
{
    const struct shard key = { .number = number };

    return b->shard_count ? bsearch(&key, b->shard, b->shard_count, sizeof key, compare_shards) : NULL;
}

static int check_length(const struct tensor_bundle *b, const struct tensor_entry *entry, struct error *e)
{
    const struct shard *shard = find_shard(b, entry->shard);
    uint64_t end = (uint64_t)(entry->offset + entry->size);

    if (!shard || end <= shard->size || shard->fd < 0)
        return OK;
    return error_set(e, ERR_CORRUPT, "%s.data-%05d-of-%05d: not complete: %llu bytes, but tensor %s ends at byte %llu",
                     b->prefix, shard->number, b->shards, (unsigned long long)shard->size, bundle_entry_label(entry),
                     (unsigned long long)end);
}

static const struct tensor_entry *entries_find(const struct entries *list, const char *name, size_t length)
{
    const struct tensor_entry key = { .name = name, .name_length = length }, *wanted = &key;
    struct tensor_entry *const *at = NULL;

    if (list->count)
        at = bsearch(&wanted, list->items, list->count, sizeof *list->items, compare_entries);
    return at ? *at : NULL;
}

/* The entry of one slice of a partitioned variable, which must have its type and the slice's shape. */
int tensor_bundle_find_slice(const struct tensor_bundle *b, const struct tensor_entry *full, size_t i,
                             const struct tensor_entry **out, struct error *e)
{
    struct buffer key = BUFFER_EMPTY;
    const struct tensor_entry *found;

    slice_key_append(&key, full->name, full->name_length, full->rank, full->slice[i].start, full->slice[i].length);
    if (!buffer_ok(&key)) {
        buffer_release(&key);
        return error_memory(e, b->index_path, "for a key");
    }
    found = entries_find(&b->slices, key.data, key.length);
    buffer_release(&key);
    *out = found;
    if (!found)
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: slice %zu is listed but has no entry", b->index_path,
                         full->name, i);
    if (found->type != full->type || found->rank != full->rank || found->slices)
        return error_set(e, ERR_CORRUPT, "%s: tensor %s: slice %zu is %s of rank %d, the tensor %s of rank %d",
                         b->index_path, full->name, i, tensor_type_name(found->type), found->rank,
                         tensor_type_name(full->type), full->rank);
    for (int d = 0; d < full->rank; d++)
        if (found->shape[d] != bundle_slice_length(full, i, d))
            return error_set(e, ERR_CORRUPT, "%s: tensor %s: slice %zu has %lld in dimension %d where %lld are listed",
                             b->index_path, full->name, i, (long long)found->shape[d], d,
                             (long long)bundle_slice_length(full, i, d));
    return OK;
}

static int check_entries(const struct tensor_bundle *b, struct error *e)
{
    const struct tensor_entry *part;
    struct error why = { 0 };
    int rc;

    for (size_t i = 0; i < b->slices.count; i++)
        if (!b->slices.items[i]->slices && (rc = found(b, check_length(b, b->slices.items[i], &why), &why, e)) != OK)
            return rc;
    for (size_t i = 0; i < b->whole.count; i++) {
        const struct tensor_entry *entry = b->whole.items[i];

        if (!entry->slices && (rc = found(b, check_length(b, entry, &why), &why, e)) != OK)
            return rc;
        for (size_t k = 0; k < entry->slices; k++)
            if ((rc = found(b, tensor_bundle_find_slice(b, entry, k, &part, &why), &why, e)) != OK)
                return rc;
        if (entry->slices && (rc = found(b, bundle_slices_check(b->index_path, entry, &why), &why, e)) != OK)
            return rc;
    }
    return OK;
}

static int open_bundle(struct tensor_bundle **out, const char *prefix, int index_only, tensor_bundle_problem *problem,
                       void *context, struct error *e)
{
    struct tensor_bundle *b = calloc(1, sizeof *b);
    size_t n = strlen(prefix);
    int rc;

    *out = NULL;
    if (!b || !(b->prefix = strdup(prefix)) || !(b->index_path = malloc(n + sizeof ".index"))) {
        tensor_bundle_close(b);
        return error_memory(e, prefix, "to open it");
    }
    b->index_only = index_only;
    b->problem = problem;
    b->problem_context = context;
    memcpy(b->index_path, prefix, n);
    memcpy(b->index_path + n, ".index", sizeof ".index");
    if (is_version_1(b))
        rc = read_version_1(b, e);
    else if ((rc = reader_read_index(b, e)) == OK && !index_only)
        rc = open_shards(b, e);
    if (rc != OK || (rc = check_entries(b, e)) != OK) {
        tensor_bundle_close(b);
        return rc;
    }
    *out = b;
    return OK;
}

int tensor_bundle_open(struct tensor_bundle **out, const char *prefix, struct error *e)
{
    return open_bundle(out, prefix, 0, NULL, NULL, e);
}

int tensor_bundle_open_damaged(struct tensor_bundle **out, const char *prefix, tensor_bundle_problem *problem,
                               void *context, struct error *e)
{
    return open_bundle(out, prefix, 0, problem, context, e);
}

int tensor_bundle_open_index(struct tensor_bundle **out, const char *prefix, struct error *e)
{
    return open_bundle(out, prefix, 1, NULL, NULL, e);
}

void tensor_bundle_close(struct tensor_bundle *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->shard_count; i++)
        if (b->shard[i].fd >= 0)
            close(b->shard[i].fd);
    free(b->shard);
    entries_release(&b->whole);
    entries_release(&b->slices);
    free(b->index_path);
    free(b->prefix);
    free(b);
}

const char *tensor_bundle_prefix(const struct tensor_bundle *b)
{
    return b->prefix;
}

size_t tensor_bundle_count(const struct tensor_bundle *b)
{
    return b->whole.count;
}

const struct tensor_entry *tensor_bundle_entry(const struct tensor_bundle *b, size_t i)
{
    return i < b->whole.count ? b->whole.items[i] : NULL;
}

const struct tensor_entry *tensor_bundle_find(const struct tensor_bundle *b, const char *name)
{
    return entries_find(&b->whole, name, strlen(name));
}

uint64_t tensor_bundle_digest(const struct tensor_bundle *b)
{
    return b->digest;
}

size_t tensor_bundle_slice_count(const struct tensor_bundle *b)
{
    return b->slices.count;
}

const struct tensor_entry *tensor_bundle_slice(const struct tensor_bundle *b, size_t i)
{
    return i < b->slices.count ? b->slices.items[i] : NULL;
}

int32_t tensor_bundle_shards(const struct tensor_bundle *b)
{
    return b->shards;
}

uint64_t tensor_bundle_shard_size(const struct tensor_bundle *b, int32_t number)
{
    const struct shard *shard = find_shard(b, number);

    return shard ? shard->size : 0;
}

/* ---- reading pieces -------------------------------------------------------------------------------------------- */

int tensor_bundle_bad_tensor(const struct tensor_bundle *b, const struct tensor_entry *entry, const char *why,
                             struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s.data-%05d-of-%05d: tensor %s, %lld bytes at byte %lld: %s", b->prefix,
                     entry->shard, b->shards, bundle_entry_label(entry), (long long)entry->size,
                     (long long)entry->offset, why);
}

int tensor_bundle_read_piece(const struct tensor_bundle *b, const struct tensor_entry *entry, uint64_t at, void *out,
                             size_t n, uint32_t *crc, struct error *e)
{
    const struct shard *shard = entry->slices ? NULL : find_shard(b, entry->shard);
    ssize_t got;

    if (b->index_only)
        return error_set(e, ERR_ARG, "%s: only its index is open", b->prefix);
    if (!shard || at > (uint64_t)entry->size || n > (uint64_t)entry->size - at)
        return error_set(e, ERR_ARG, "%s: tensor %s has no %zu bytes at its byte %llu", b->prefix,
                         bundle_entry_label(entry), n, (unsigned long long)at);
    if (shard->fd < 0)
        return error_set(e, ERR_IO, "%s.data-%05d-of-%05d: was not there when %s was opened", b->prefix, shard->number,
                         b->shards, b->index_path);
    if ((got = file_read_at(shard->fd, out, n, (uint64_t)entry->offset + at)) < 0)
        return error_system(e, "%s.data-%05d-of-%05d: cannot read", b->prefix, shard->number, b->shards);
    if ((size_t)got < n)
        return tensor_bundle_bad_tensor(b, entry, "the file was truncated after it was opened", e);
    *crc = crc32c_extend(*crc, out, n);
    return OK;
}

int tensor_bundle_check_crc(const struct tensor_bundle *b, const struct tensor_entry *entry, uint32_t crc,
                            struct error *e)
{
    return crc32c_mask(crc) == entry->crc ? OK : tensor_bundle_bad_tensor(b, entry, "CRC mismatch", e);
}
