#include "tests/fuzz/made_events.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "eventlog/check/log_check.h"
#include "eventlog/read/log_input.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct judge {
    const struct made_events *m;
    struct error *e;
    int fd;
    char path[64];
};

/* Says what is wrong; 0. */
static int fail(struct judge *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail(struct judge *j, const char *format, ...)
{
    char what[200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    error_set(j->e, ERR_CORRUPT, "damage %s at %zu: %s", j->m->damage, j->m->damage_from, what);
    return 0;
}

static int same_number(double a, double b)
{
    return double_bits(a) == double_bits(b) || (isnan(a) && isnan(b));
}

static int same_bytes(const struct made_events *m, const struct made_span *s, const void *bytes, size_t n)
{
    return n == s->length && (!n || !memcmp(made_bytes_of(m, s), bytes, n));
}

/* 1: with the first n bytes of the file a reader cannot know that it is one of events. */
static int no_event_file(const struct made_events *m, size_t n)
{
    const char *p = m->file.data;

    if (n < RECORD_HEADER || get_le32(p + 8) == crc32c_mask(crc32c(p, 8)))
        return 0;
    for (size_t i = 0; i < m->record_count; i++)
        if (m->records[i].whole && m->records[i].offset + m->records[i].size <= n)
            return 0;
    return 1;
}

/* ---- verify ---------------------------------------------------------------------------------------------------- */

static int check_file(struct judge *j, struct log_check *c)
{
    struct log_input in = { 0 };
    struct record_file f;
    struct record r;
    struct error e = { 0 };
    int rc = log_input_open(&in, j->path, &f, &e);

    if (rc == OK)
        rc = log_check_file(c, "events.out.tfevents.1700000000.host", &e);
    while (rc == OK) {
        if ((rc = record_file_next(&f, &r, &e)) == RECORD_DATA)
            rc = log_check_record(c, r.offset, r.data, r.length, &e);
        else if (rc == RECORD_DAMAGE)
            rc = log_check_damage(c, &r, &e);
        else
            break;
    }
    if (rc == RECORD_MORE)
        rc = log_check_end(c, f.parser.offset, f.size, &e);
    if (rc == OK)
        rc = log_check_finish(c, &e);
    record_file_close(&f);
    log_input_release(&in);
    return rc == OK ? 1 : fail(j, "verify: %s", e.message);
}

/* The findings' words are each followed by a blank. */
static int is_among(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (; *words; words += strcspn(words, " ") + 1)
        if (!strncmp(words, word, n) && words[n] == ' ')
            return 1;
    return 0;
}

static int judge_findings(struct judge *j, const struct log_check *c)
{
    const struct made_events *m = j->m;
    uint64_t counted = 0;
    size_t count;
    const struct log_finding *findings = log_check_findings(c, &count);
    int told = m->verdict == MADE_SOUND;

    for (size_t i = 0; i < count; i++) {
        const struct log_finding_text *text = log_finding_text(findings[i].kind);
        uint64_t at = findings[i].offset;

        told |= at == m->damage_from && is_among(m->findings, text->word);
        if (text->level == LOG_DAMAGE && (m->verdict == MADE_SOUND || at < m->damage_from || at >= m->damage_to))
            return fail(j, "verify: %s at %llu, where nothing is damaged", text->word, (unsigned long long)at);
    }
    if (!told)
        return fail(j, "verify: does not say %s", m->findings);
    for (size_t i = 0; i < m->record_count; i++)
        counted += (uint64_t)m->records[i].counted;
    if (log_check_totals(c).records != counted)
        return fail(j, "verify: %llu sound records, not %llu", (unsigned long long)log_check_totals(c).records,
                    (unsigned long long)counted);
    return 1;
}

static int judge_check(struct judge *j)
{
    struct log_check *c;
    int good;

    if (log_check_new(&c, "run", NULL) != OK)
        abort();
    good = check_file(j, c) && (j->m->verdict == MADE_EITHER || judge_findings(j, c));
    log_check_free(c);
    return good;
}

/* ---- reader ---------------------------------------------------------------------------------------------------- */

static int same_rows(const struct made_events *m, const struct made_value *v, const struct eventlog_bucket *rows,
                     size_t count)
{
    double want[3];

    if (v->rows.length != count * sizeof want)
        return 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(want, made_bytes_of(m, &v->rows) + i * sizeof want, sizeof want);
        if (!same_number(rows[i].left, want[0]) || !same_number(rows[i].right, want[1]) ||
            !same_number(rows[i].count, want[2]))
            return 0;
    }
    return 1;
}

static int judge_content(struct judge *j, struct eventlog_reader *r, const struct made_value *v)
{
    const struct eventlog_bucket *rows;
    struct eventlog_tensor t;
    struct eventlog_blobs b;
    size_t count;
    int rc = eventlog_reader_tensor(r, &t, NULL);

    if (v->stored == EVENTLOG_STORED_TENSOR && v->elements_wrong && rc != EVENTLOG_ERROR_CORRUPT)
        return fail(j, "reader: a tensor of another size than its shape's is accepted");
    if (v->stored == EVENTLOG_STORED_TENSOR && !v->elements_wrong &&
        (rc != EVENTLOG_OK || t.dtype != v->dtype || !same_bytes(j->m, &v->elements, t.data, t.bytes)))
        return fail(j, "reader: a tensor of type %d has other elements", v->dtype);
    if (v->stored == EVENTLOG_STORED_TENSOR && !v->elements_wrong && t.string_count != v->strings)
        return fail(j, "reader: %zu strings, not %zu", t.string_count, v->strings);
    rc = eventlog_reader_histogram(r, &rows, &count, NULL);
    if (v->kind == EVENTLOG_KIND_HISTOGRAM && v->has_rows && !v->elements_wrong &&
        (rc != EVENTLOG_OK || !same_rows(j->m, v, rows, count)))
        return fail(j, "reader: other buckets, %zu of them", count);
    rc = eventlog_reader_blobs(r, &b, NULL);
    if (v->kind == EVENTLOG_KIND_IMAGE && v->pictures &&
        (rc != EVENTLOG_OK || b.count != v->pictures || b.width != v->width || b.height != v->height))
        return fail(j, "reader: %zu pictures of %lldx%lld, not %zu of %lldx%lld", b.count, (long long)b.width,
                    (long long)b.height, v->pictures, (long long)v->width, (long long)v->height);
    for (size_t i = 0; rc == EVENTLOG_OK && i < b.count; i++)
        crc32c(b.items[i].data, b.items[i].length); /* they are there */
    return 1;
}

static int judge_values(struct judge *j, struct eventlog_reader *r, const struct made_record *want)
{
    const struct eventlog_value *v;
    size_t i = 0;

    for (; (v = eventlog_reader_value(r)); i++) {
        const struct made_value *w = &j->m->values[want->first_value + i];

        if (i == want->values)
            return fail(j, "reader: more than %zu values in the event at %zu", want->values, want->offset);
        if (!same_bytes(j->m, &w->tag, v->series->tag, v->series->tag_length) || v->kind != w->kind ||
            v->stored != w->stored || v->dtype != w->dtype || v->step != want->step ||
            double_bits(v->wall_time) != double_bits(want->wall_time) ||
            !same_bytes(j->m, &w->data, v->data, v->length) ||
            (w->kind == EVENTLOG_KIND_SCALAR && !same_number(v->number, w->number)))
            return fail(j,
                        "reader: value %zu of the event at %zu: kind %d, stored %d, type %d, number %.17g; not %d, "
                        "%d, %d, %.17g",
                        i, want->offset, (int)v->kind, (int)v->stored, v->dtype, v->number, (int)w->kind,
                        (int)w->stored, w->dtype, w->number);
        if (!judge_content(j, r, w))
            return 0;
    }
    return i == want->values
               ? 1
               : fail(j, "reader: %zu values in the event at %zu, not %zu", i, want->offset, want->values);
}

static int judge_event(struct judge *j, struct eventlog_reader *r, const struct made_record *want)
{
    const struct eventlog_event *e = eventlog_reader_event(r);

    if (!want)
        return fail(j, "reader: an event at %llu that should not come out", (unsigned long long)e->offset);
    if (e->offset != want->offset || e->what != want->what || e->step != want->step ||
        double_bits(e->wall_time) != double_bits(want->wall_time) ||
        !same_bytes(j->m, &want->data, e->data, e->length) ||
        !same_bytes(j->m, &want->payload, e->payload, e->payload_length))
        return fail(j,
                    "reader: an event at %llu of kind %d, step %lld, wall time %.17g; should be at %zu of %d, %lld, "
                    "%.17g",
                    (unsigned long long)e->offset, (int)e->what, (long long)e->step, e->wall_time, want->offset,
                    (int)want->what, (long long)want->step, want->wall_time);
    return judge_values(j, r, want);
}

static const struct made_record *next_given(const struct made_events *m, size_t *at)
{
    while (*at < m->record_count && !m->records[*at].given)
        ++*at;
    return *at < m->record_count ? &m->records[(*at)++] : NULL;
}

/* Reads to the end of the first n bytes; *at: the record that comes next. */
static int read_on(struct judge *j, struct eventlog_reader *r, size_t n, size_t *at, uint64_t *damage)
{
    struct eventlog_error e = { 0 };
    int rc;

    while ((rc = eventlog_reader_next(r, &e)) != EVENTLOG_READ_END) {
        if (rc == EVENTLOG_ERROR_IO && no_event_file(j->m, n))
            continue; /* told once, until the file changes */
        if (rc != EVENTLOG_READ_EVENT && rc != EVENTLOG_READ_DAMAGE)
            return fail(j, "reader: %d: %s", rc, e.message);
        if (rc == EVENTLOG_READ_DAMAGE && j->m->verdict == MADE_SOUND)
            return fail(j, "reader: %s", eventlog_reader_damage(r)->text);
        *damage += rc == EVENTLOG_READ_DAMAGE;
        if (rc == EVENTLOG_READ_EVENT && j->m->verdict != MADE_EITHER && !judge_event(j, r, next_given(j->m, at)))
            return 0;
    }
    return 1;
}

static int judge_end(struct judge *j, const struct eventlog_reader *r, size_t at, uint64_t damage)
{
    const struct eventlog_reader_totals t = eventlog_reader_totals(r);
    const struct made_record *left = next_given(j->m, &at);
    int waits = !strncmp(j->m->findings, "partial", 7), all = 1;

    if (j->m->verdict == MADE_EITHER)
        return 1;
    if (left)
        return fail(j, "reader: the event at %zu does not come out", left->offset);
    for (size_t i = 0; i < j->m->record_count; i++)
        all &= j->m->records[i].given || j->m->records[i].inside;
    if (waits && t.unfinished != 1)
        return fail(j, "reader: does not say that the file goes on");
    if (!all && !damage && j->m->verdict == MADE_DAMAGED && !waits && !no_event_file(j->m, j->m->file.length))
        return fail(j, "reader: an event is left out without a word");
    if (j->m->verdict == MADE_SOUND && (t.lost || t.damaged || t.unfinished))
        return fail(j, "reader: %llu bytes lost, %llu damaged", (unsigned long long)t.lost,
                    (unsigned long long)t.damaged);
    return 1;
}

/* The file as it is read when n bytes of it are written first, and then all. */
static int judge_reader(struct judge *j, size_t n)
{
    struct eventlog_reader *r;
    const struct timespec later[2] = { { 2000000000, 0 }, { 2000000000, 0 } };
    uint64_t damage = 0;
    size_t at = 0;
    int good;

    if (ftruncate(j->fd, j->m->zeros_behind ? (off_t)j->m->file.length : 0) < 0 ||
        pwrite(j->fd, j->m->file.data, n, 0) != (ssize_t)n ||
        eventlog_reader_open(&r, j->path, NULL, NULL) != EVENTLOG_OK)
        abort();
    good = read_on(j, r, n, &at, &damage);
    if (pwrite(j->fd, j->m->file.data + n, j->m->file.length - n, (off_t)n) != (ssize_t)(j->m->file.length - n) ||
        futimens(j->fd, later) < 0) /* what changes within a tick of the file system's clock is not noticed */
        abort();
    good = good && read_on(j, r, j->m->file.length, &at, &damage) && judge_end(j, r, at, damage);
    eventlog_reader_close(r);
    return good;
}

/* ---- points ---------------------------------------------------------------------------------------------------- */

/* The record of each value, and whether a later session start takes its points away. */
static int starts_behind(const struct made_events *m, const struct made_record *r)
{
    for (const struct made_record *s = r + 1; s < m->records + m->record_count; s++)
        if (s->given && s->starts_session && s->step <= r->step)
            return 1;
    return 0;
}

static int judge_series(struct judge *j, const struct eventlog_points *p, size_t index, enum eventlog_view view,
                        size_t *values)
{
    const struct eventlog_series *series = eventlog_points_series(p, index);
    size_t count, at = 0;
    const struct eventlog_point *points = eventlog_points_of(p, index, &count);

    for (size_t i = 0; i < j->m->record_count; i++) {
        const struct made_record *r = &j->m->records[i];

        for (size_t k = 0; k < r->values; k++) {
            const struct made_value *v = &j->m->values[r->first_value + k];

            if (!v->known || !same_bytes(j->m, &v->tag, series->tag, series->tag_length))
                continue;
            ++*values;
            if (!r->given || v->kind != EVENTLOG_KIND_SCALAR ||
                (view == EVENTLOG_VIEW_SESSION && starts_behind(j->m, r)))
                continue;
            if (at == count || points[at].step != r->step || !same_number(points[at].value, v->number) ||
                double_bits(points[at].wall_time) != double_bits(r->wall_time))
                return fail(j, "points: the point of the event at %zu is missing or another", r->offset);
            at++;
        }
    }
    return at == count ? 1 : fail(j, "points: %zu of a series, not %zu", count, at);
}

static int judge_points(struct judge *j, enum eventlog_view view)
{
    struct eventlog_error e = { 0 };
    struct eventlog_points *p;
    size_t values = 0, known = 0;
    int rc = eventlog_points_read(&p, j->path, view, NULL, &e), good = 1;

    if (rc == EVENTLOG_ERROR_IO && no_event_file(j->m, j->m->file.length))
        return 1;
    if (rc != EVENTLOG_OK)
        return fail(j, "points: %s", e.message);
    for (size_t i = 0; good && j->m->verdict != MADE_EITHER && eventlog_points_series(p, i); i++)
        good = judge_series(j, p, i, view, &values);
    for (size_t i = 0; i < j->m->value_count; i++)
        known += (size_t)j->m->values[i].known;
    if (good && j->m->verdict != MADE_EITHER && values != known)
        good = fail(j, "points: %zu values belong to the series, not %zu", values, known);
    if (good && j->m->verdict == MADE_SOUND && eventlog_points_damaged(p))
        good = fail(j, "points: damage in a sound file");
    eventlog_points_free(p);
    return good;
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

int made_events_judge(const struct made_events *m, struct error *e)
{
    struct judge j = { .m = m, .e = e, .fd = memfd_create("tfevents", MFD_CLOEXEC) };
    size_t first = m->cut;
    int starts = 0, good;

    if (j.fd < 0)
        abort();
    snprintf(j.path, sizeof j.path, "/proc/self/fd/%d", j.fd);
    for (size_t i = 0; i < m->record_count; i++) {
        starts |= m->records[i].starts_session;
        /* While the file ends inside a record behind a broken one, a reader may go on at one that is inside it. */
        if (m->records[i].inside && m->verdict != MADE_SOUND)
            first = m->file.length;
    }
    good = judge_reader(&j, m->verdict == MADE_EITHER ? m->file.length : first) && judge_check(&j) &&
           judge_points(&j, EVENTLOG_VIEW_ALL);
    if (good && starts && strcmp(m->damage, "wall_infinite") != 0) /* a start at no time may be heeded or not */
        good = judge_points(&j, EVENTLOG_VIEW_SESSION);
    close(j.fd);
    return good ? OK : ERR_CORRUPT;
}
