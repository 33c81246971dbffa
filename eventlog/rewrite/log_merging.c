#include "eventlog/rewrite/log_merging.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/wire.h"
#include "eventlog/read/log_input.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- record source ----------------------------------------------------------------------------------------------- */

/*
 * Reads records of several files by their offsets, for writing them in another order. Files are read
 * in windows, so one read serves many ascending offsets of a file. Files that must be unpacked stay unpacked until
 * close, all in one file without a name. One thread at a time.
 */

struct record_source;

/* Windows take 64 MiB together, except for long records; opening a file when too many are open closes the others, so as
 * many as the system allows stay open. */
enum { WINDOW_MOST = 64 * 1024, WINDOW_LEAST = 4096, WINDOWS = 64 << 20, FILES_MOST = 16384, FILES_SPARE = 64 };

struct source {
    int fd; /* -1: not open */
    int packed;
    uint64_t origin; /* packed: where its bytes begin in the spool, which is fd then */
    uint8_t *window;
    size_t capacity, have;
    uint64_t base;
};

struct record_source {
    struct log_input *in;
    struct spool spool;
    const char *const *paths;
    struct source *sources;
    size_t count, open, open_most, window;
};

/* How many files may be open here. */
static size_t files_allowed(void)
{
    size_t most = file_open_limit(FILES_MOST);

    return most > 2 * FILES_SPARE ? most - FILES_SPARE : FILES_SPARE;
}

/* paths: count of them, borrowed until close, as is `in`. On OK *out is yours; close takes NULL. */
static int record_source_open(struct record_source **out, struct log_input *in, const char *const *paths, size_t count,
                              struct error *e)
{
    struct record_source *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s || !(s->sources = calloc(count + 1, sizeof *s->sources))) {
        free(s);
        return error_memory(e, NULL, "for %zu files", count);
    }
    for (size_t i = 0; i < count; i++)
        s->sources[i].fd = -1;
    s->in = in;
    s->spool = (struct spool)SPOOL_CLOSED;
    s->paths = paths;
    s->count = count;
    s->window = WINDOWS / (count + 1) / WINDOW_LEAST * WINDOW_LEAST;
    s->window = s->window < WINDOW_LEAST ? WINDOW_LEAST : s->window > WINDOW_MOST ? WINDOW_MOST : s->window;
    s->open_most = files_allowed();
    *out = s;
    return OK;
}

/* All descriptors and windows; where what was unpacked stands is still known. */
static void close_all(struct record_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct source *f = &s->sources[i];

        if (f->fd >= 0 && !f->packed)
            close(f->fd);
        free(f->window);
        *f = (struct source){ .fd = -1, .packed = f->packed, .origin = f->origin };
    }
    s->open = 0;
}

static void record_source_close(struct record_source *s)
{
    if (!s)
        return;
    close_all(s);
    spool_close(&s->spool);
    free(s->sources);
    free(s);
}

/* n bytes of the file from offset on, or NULL with the error. */
static const uint8_t *bytes_at(struct record_source *s, size_t file, uint64_t offset, size_t n, struct error *e)
{
    struct source *f = &s->sources[file];
    size_t keep = 0;

    if (offset >= f->base && offset - f->base <= f->have && f->have - (size_t)(offset - f->base) >= n)
        return f->window + (offset - f->base);
    if (f->capacity < n || !f->window) {
        size_t capacity = n > s->window ? n : s->window;
        uint8_t *bigger = realloc(f->window, capacity);

        if (!bigger) {
            error_memory(e, s->paths[file], "for %zu bytes", capacity);
            return NULL;
        }
        f->window = bigger;
        f->capacity = capacity;
    }
    if (offset >= f->base && offset - f->base < f->have) { /* what is there of it already */
        keep = f->have - (size_t)(offset - f->base);
        memmove(f->window, f->window + (offset - f->base), keep);
    }
    f->base = offset;
    f->have = keep;
    while (f->have < n) {
        ssize_t got = pread(f->fd, f->window + f->have, f->capacity - f->have, (off_t)(f->origin + f->base + f->have));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            error_system(e, "%s: cannot read", s->paths[file]);
        else if (!got)
            error_set(e, ERR_CORRUPT, "%s: was truncated while it was read", s->paths[file]);
        if (got <= 0)
            return NULL;
        f->have += (size_t)got;
    }
    return f->window;
}

/* The bytes of one that is not there as they are: at the end of the spool. */
static int unpack(struct record_source *s, struct source *f, struct record_file *unpacked, const char *path,
                  struct error *e)
{
    int rc = s->spool.fd < 0 ? spool_open(&s->spool, e) : OK;

    f->origin = s->spool.size;
    if (rc == OK && lseek(unpacked->fd, 0, SEEK_SET) < 0)
        rc = error_system(e, "%s: cannot be read", path);
    if (rc == OK)
        rc = spool_append_from(&s->spool, unpacked->fd, path, e);
    f->packed = rc == OK;
    return rc;
}

static int open_source(struct record_source *s, struct source *f, const char *path, struct error *e)
{
    struct record_file file = { .fd = -1 };
    int rc = OK;

    if (!f->packed) {
        if (s->open >= s->open_most)
            close_all(s);
        if ((rc = log_input_open(s->in, path, &file, e)) == OK && file.packed) {
            rc = unpack(s, f, &file, path, e);
        } else if (rc == OK) {
            f->fd = file.fd;
            file.fd = -1; /* it goes on in f */
            s->open++;
        }
        record_file_close(&file);
    }
    if (f->packed)
        f->fd = s->spool.fd;
    return rc;
}

/* The record at this offset, where a whole one was found before: data and length, borrowed until the next call.
 * ERR_CORRUPT: it is no longer there. */
static int record_source_at(struct record_source *s, size_t file, uint64_t offset, struct record *r, struct error *e)
{
    struct source *f = &s->sources[file];
    const uint8_t *p;
    uint64_t length;

    if (f->fd < 0 && open_source(s, f, s->paths[file], e) != OK)
        return e ? e->code : ERR_IO;
    if (!(p = bytes_at(s, file, offset, RECORD_HEADER, e)))
        return e ? e->code : ERR_IO;
    if (!record_header_right(p, &length))
        return error_set(e, ERR_CORRUPT, "%s: changed while it was read", s->paths[file]);
    if (!(p = bytes_at(s, file, offset, (size_t)length + RECORD_OVERHEAD, e)))
        return e ? e->code : ERR_IO;
    if (get_le32(p + RECORD_HEADER + length) != crc32c_mask(crc32c(p + RECORD_HEADER, (size_t)length)))
        return error_set(e, ERR_CORRUPT, "%s: changed while it was read", s->paths[file]);
    r->offset = offset;
    r->data = p + RECORD_HEADER;
    r->length = (size_t)length;
    return OK;
}

/* ---- log merging ------------------------------------------------------------------------------------------------- */

struct log_merging {
    struct log_merge *plan;
    struct log_rewrite *records;
    int prefix;
    const char **paths, **runs; /* of the files by their number in the plan */
    size_t count;
    struct buffer version;              /* the first record of the new file, without framing */
    double start;                       /* its wall time; NaN: none yet */
    double earliest;                    /* finite wall time above 0 of all events; NaN: none */
    const char *run;                    /* being read */
    struct buffer tag;                  /* with the prefix */
    const struct log_merge_item *items; /* that are being written: those of one record */
    size_t item_count, item_next;
};

int log_merging_new(struct log_merging **out, enum eventlog_overlap overlap, int prefix, struct error *e)
{
    struct log_merging *m = calloc(1, sizeof *m);
    int rc;

    *out = NULL;
    if (!m)
        return error_memory(e, NULL, "for a merge");
    m->prefix = prefix;
    m->start = m->earliest = NAN;
    if ((rc = log_merge_new(&m->plan, overlap, e)) == OK)
        rc = log_rewrite_new(&m->records, e);
    if (rc == OK)
        *out = m;
    else
        log_merging_free(m);
    return rc;
}

void log_merging_free(struct log_merging *m)
{
    if (!m)
        return;
    log_merge_free(m->plan);
    log_rewrite_free(m->records);
    buffer_release(&m->version);
    buffer_release(&m->tag);
    free(m->paths);
    free(m->runs);
    free(m);
}

int log_merging_file(struct log_merging *m, size_t number, const char *run, const char *path, struct error *e)
{
    const char **paths = realloc(m->paths, (m->count + 1) * sizeof *paths), **runs;

    if (paths)
        m->paths = paths;
    if (!paths || !(runs = realloc(m->runs, (m->count + 1) * sizeof *runs)))
        return error_memory(e, NULL, "for %zu files", m->count + 1);
    m->runs = runs;
    m->paths[m->count] = path;
    m->run = m->runs[m->count++] = run;
    return log_merge_file(m->plan, number, run, e);
}

size_t log_merging_files(const struct log_merging *m)
{
    return m->count;
}

int log_merging_finish(struct log_merging *m, struct error *e)
{
    return log_merge_finish(m->plan, e);
}

/* ---- first pass: what is there ----------------------------------------------------------------------------------- */

/* The tag in the new log: RUN/TAG, except for tags that TensorBoard needs unchanged. */
static const char *merging_new_tag(struct log_merging *m, const char *run, const char *tag, size_t *n)
{
    static const char *const fixed[] = { "_hparams_/", "custom_scalars__config__" };

    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (*n >= strlen(fixed[i]) && !memcmp(tag, fixed[i], strlen(fixed[i])))
            return tag;
    if (!m->prefix || !strcmp(run, "."))
        return tag;
    buffer_clear(&m->tag);
    buffer_append_text(&m->tag, run);
    buffer_append_byte(&m->tag, '/');
    buffer_append(&m->tag, tag, *n);
    *n = m->tag.length;
    return buffer_ok(&m->tag) ? m->tag.data : NULL;
}

static int merging_plan_values(struct log_merging *m, uint64_t offset, const struct event *event, struct error *e)
{
    struct event_values values;
    const struct event_value *v;
    uint32_t number = 0;
    int rc = OK;

    event_values_init(&values, event);
    while (rc == OK && (v = event_values_next(&values))) {
        size_t n = v->tag_length;
        const char *tag = merging_new_tag(m, m->run, v->tag, &n);

        if (!tag)
            return error_memory(e, m->run, "for a tag");
        rc = log_merge_value(m->plan, offset, number++, tag, n, event->step, event->wall_time, e);
        if (rc == OK)
            rc = log_rewrite_remember(m->records, tag, n, v, e);
    }
    return rc;
}

static int merging_plan_run_metadata(struct log_merging *m, uint64_t offset, const uint8_t *data, size_t n,
                                     const struct event *event, struct error *e)
{
    const uint8_t *end = data + n;
    struct wire_field f, inner;
    const char *tag = "";
    size_t length = 0;

    while (wire_take(&data, end, &f) == 1)
        for (const uint8_t *q = f.bytes, *stop = q + f.length; f.number == 8 && q < stop;) {
            if (wire_take(&q, stop, &inner) != 1)
                break;
            if (inner.number == 1) {
                tag = (const char *)inner.bytes;
                length = inner.length;
            }
        }
    return log_merge_run_metadata(m->plan, offset, tag, length, event->step, event->wall_time, e);
}

static int merging_plan_version(struct log_merging *m, const uint8_t *data, size_t n, const struct event *event,
                                struct error *e)
{
    if (m->start <= event->wall_time)
        return OK;
    buffer_clear(&m->version);
    buffer_append(&m->version, data, n);
    m->start = event->wall_time;
    return buffer_ok(&m->version) ? OK : error_memory(e, m->run, "for it");
}

int log_merging_record(struct log_merging *m, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                       struct error *e)
{
    if (isfinite(event->wall_time) && event->wall_time > 0)
        m->earliest = fmin(m->earliest, event->wall_time);
    switch (event->what) {
    case EVENT_FILE_VERSION: return merging_plan_version(m, data, n, event, e);
    case EVENT_SUMMARY:
        return event->values ? merging_plan_values(m, offset, event, e)
                             : log_merge_event(m->plan, offset, LOG_MERGE_OTHER, event->step, e);
    case EVENT_RUN_METADATA: return merging_plan_run_metadata(m, offset, data, n, event, e);
    case EVENT_GRAPH: return log_merge_event(m->plan, offset, LOG_MERGE_GRAPH, event->step, e);
    case EVENT_META_GRAPH: return log_merge_event(m->plan, offset, LOG_MERGE_META_GRAPH, event->step, e);
    case EVENT_SESSION_LOG:
        return log_merge_event(m->plan, offset,
                               event->session == EVENT_SESSION_START ? LOG_MERGE_SESSION_START : LOG_MERGE_SESSION,
                               event->step, e);
    default: return log_merge_event(m->plan, offset, LOG_MERGE_OTHER, event->step, e);
    }
}

/* ---- second pass: the new file ----------------------------------------------------------------------------------- */

static int merging_choose(void *context, const struct event *event, const struct event_value *v, size_t number,
                          struct log_rewrite_choice *choice, struct error *e)
{
    struct log_merging *m = context;
    size_t n = v ? v->tag_length : 0;
    const char *tag;

    (void)event;
    if (!v)
        return OK;
    choice->keep = m->item_next < m->item_count && m->items[m->item_next].value == number;
    m->item_next += choice->keep != 0;
    if (!(tag = merging_new_tag(m, m->run, v->tag, &n)))
        return error_memory(e, m->run, "for a tag");
    if (tag != v->tag) {
        choice->tag = tag;
        choice->tag_length = n;
    }
    return OK;
}

static int write_start(const struct log_merging *m, struct buffer *out, struct error *e)
{
    if (isnan(m->start))
        return event_encode_start(out, isnan(m->earliest) ? 0 : m->earliest, "evalboard", e);
    event_encode_record(out, m->version.data, m->version.length);
    return OK;
}

/* The items in order; those of one record go together. */
static int write_items(struct log_merging *m, struct record_source *source, struct buffer *out, log_merging_put *put,
                       void *context, struct error *e)
{
    size_t count, next;
    const struct log_merge_item *items = log_merge_items(m->plan, &count);
    int rc = OK;

    for (size_t i = 0; rc == OK && i < count; i = next) {
        struct record record = { 0 };
        struct event event;

        for (next = i + 1; next < count && items[next].file == items[i].file && items[next].offset == items[i].offset;)
            next++;
        m->items = items + i;
        m->item_count = items[i].value == LOG_MERGE_EVENT ? 0 : next - i;
        m->item_next = 0;
        m->run = m->runs[items[i].file];
        if ((rc = record_source_at(source, items[i].file, items[i].offset, &record, e)) != OK)
            break;
        if (!log_rewrite_sound(record.data, record.length, &event))
            rc = error_set(e, ERR_CORRUPT, "%s: changed while it was read", m->paths[items[i].file]);
        if (rc == OK)
            rc = log_rewrite_record(m->records, record.data, record.length, &event, merging_choose, m, out, e);
        if (rc == OK)
            rc = put(context, m->run, (double)next / (double)count, e);
    }
    return rc;
}

int log_merging_write(struct log_merging *m, struct log_input *in, struct buffer *out, log_merging_put *put,
                      void *context, struct error *e)
{
    struct record_source *source = NULL;
    int rc;

    if ((rc = record_source_open(&source, in, m->paths, m->count, e)) == OK && (rc = write_start(m, out, e)) == OK)
        rc = write_items(m, source, out, put, context, e);
    record_source_close(source);
    return rc;
}

void log_merging_name(const struct log_merging *m, char name[LOG_MERGING_NAME_MAX])
{
    double seconds = isnan(m->start) ? m->earliest : m->start;

    snprintf(name, LOG_MERGING_NAME_MAX, "events.out.tfevents.%010lld.merged.0",
             seconds > 0 && seconds < 1e12 ? (long long)seconds : 0);
}

struct eventlog_merged log_merging_totals(const struct log_merging *m)
{
    const struct log_rewrite_totals written = log_rewrite_totals(m->records);
    struct eventlog_merged t = log_merge_totals(m->plan);

    t.files = m->count;
    t.records = written.records + 1; /* with the first one */
    t.values = written.values;
    return t;
}
