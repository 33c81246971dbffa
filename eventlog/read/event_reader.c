#include "eventlog/read/event_reader.h"

#include "eventlog/read/log_input.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_LIMIT = 256 * 1024 * 1024 };

/* header and footer of a record that was read */
struct mark {
    uint64_t offset, length;
    uint8_t bytes[RECORD_OVERHEAD];
};

/*
 * first and last are the header and footer of the first and the last record read: if a file that replaces this one has
 * the same bytes there, it is a longer copy and reading continues in it; otherwise it is another file.
 */
struct event_reader {
    char *path;
    struct record_file file; /* closed: at rest */
    struct event_reader_state state;
    struct mark first, last;
    struct stat seen; /* as of the last end, so that an unchanged file costs no read */
    int at_end, records_only;
    int known;           /* whether it is an event file */
    const uint8_t *data; /* of the last record: length bytes, at `offset` in the file */
    size_t length;
    uint64_t offset;
    int utf8_pending; /* the record with a bad string has been reported; now return it */
};

/* Starts at the beginning of the file, whose stat is st. */
static void begin(struct event_reader *r, const struct stat *st)
{
    r->seen = *st;
    record_parser_init(&r->file.parser, 0, RECORD_LIMIT);
    memset(&r->state, 0, sizeof r->state);
    r->at_end = 0;
    r->known = 0;
    r->utf8_pending = 0;
}

/* With a copy of the path, else empty. NULL without memory. */
static struct event_reader *new_reader(const char *path)
{
    struct event_reader *r = calloc(1, sizeof *r);

    if (r && !(r->path = strdup(path))) {
        free(r);
        r = NULL;
    }
    return r;
}

int event_reader_open(struct event_reader **out, struct log_input *in, const char *path, struct error *e)
{
    struct event_reader *r = new_reader(path);
    struct stat st;
    int rc;

    *out = NULL;
    if (!r)
        return error_memory(e, path, "for reading");
    rc = log_input_open(in, r->path, &r->file, e);
    if (rc == OK && fstat(r->file.fd, &st) < 0)
        rc = error_system(e, "%s: cannot stat", path);
    if (rc != OK) {
        event_reader_close(r);
        return rc;
    }
    begin(r, &st);
    record_file_again(&r->file, r->file.fd, (uint64_t)st.st_size);
    *out = r;
    return OK;
}

void event_reader_close(struct event_reader *r)
{
    if (!r)
        return;
    record_file_close(&r->file);
    free(r->path);
    free(r);
}

const uint8_t *event_reader_record(const struct event_reader *r, size_t *length, uint64_t *offset)
{
    *length = r->length;
    *offset = r->offset;
    return r->data;
}

void event_reader_records_only(struct event_reader *r)
{
    r->records_only = 1;
}

void event_reader_rest(struct event_reader *r)
{
    if (r->at_end)
        record_file_close(&r->file);
}

int event_reader_resting(const struct event_reader *r)
{
    return r->file.fd < 0;
}

struct timespec event_reader_changed(const struct event_reader *r)
{
    return r->seen.st_mtim;
}

struct event_reader_state event_reader_state(const struct event_reader *r)
{
    struct event_reader_state state = r->state;

    state.size = r->file.size;
    state.offset = r->file.parser.offset;
    state.lost = r->file.parser.lost;
    state.packed = r->file.packed;
    return state;
}

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

uint64_t event_reader_offset(const struct event_reader *r)
{
    return r->file.parser.offset;
}

uint64_t event_reader_left(const struct event_reader *r)
{
    const struct record_file *f = &r->file;

    return r->at_end || !r->known || r->utf8_pending || f->packed || f->fd < 0 || f->parser.offset > f->size ||
                   f->parser.position != f->parser.offset
               ? 0
               : f->size - f->parser.offset;
}

int event_reader_find(const struct event_reader *r, uint64_t from, uint64_t to, uint64_t *place)
{
    return record_file_find(&r->file, from, to < r->file.size ? to : r->file.size, place) == 1;
}

int event_reader_piece(struct event_reader **out, const struct event_reader *r, uint64_t start, struct error *e)
{
    struct event_reader *piece = new_reader(r->path);
    int fd;

    *out = NULL;
    if (!piece)
        return error_memory(e, r->path, "for a piece");
    if ((fd = fcntl(r->file.fd, F_DUPFD_CLOEXEC, 0)) < 0) {
        free(piece->path);
        free(piece);
        return error_system(e, "%s: cannot be opened once more", r->path);
    }
    begin(piece, &r->seen);
    piece->known = 1;
    piece->file.fd = -1;
    piece->file.path = piece->path;
    record_parser_init(&piece->file.parser, start, RECORD_LIMIT);
    record_file_again(&piece->file, fd, r->file.size);
    *out = piece;
    return OK;
}

void event_reader_pass(struct event_reader *r, const struct event_reader *piece)
{
    const struct event_reader_state *passed = &piece->state;
    const uint64_t lost = r->file.parser.lost + piece->file.parser.lost;

    if (passed->records) {
        if (!r->state.records) {
            r->first = piece->first;
            r->state.first_wall_time = passed->first_wall_time;
        }
        r->last = piece->last;
        r->state.last_wall_time = passed->last_wall_time;
    }
    r->state.records += passed->records;
    r->state.damaged += passed->damaged;
    r->state.lost = lost;
    record_parser_init(&r->file.parser, piece->file.parser.offset, RECORD_LIMIT);
    r->file.parser.lost = lost;
}

/* ---- growth, cuts and replacement ------------------------------------------------------------------------------ */

static void keep_mark(struct mark *m, const struct record *record)
{
    m->offset = record->offset;
    m->length = record->length;
    memcpy(m->bytes, record->data - RECORD_HEADER, RECORD_HEADER);
    memcpy(m->bytes + RECORD_HEADER, record->data + record->length, RECORD_FOOTER);
}

/* 0 if the file has other bytes there. Bytes that cannot be read are taken to be the same: the next read will tell. */
static int mark_there(int fd, const struct mark *m)
{
    uint8_t bytes[RECORD_OVERHEAD];
    ssize_t head = pread(fd, bytes, RECORD_HEADER, (off_t)m->offset), foot;

    foot = pread(fd, bytes + RECORD_HEADER, RECORD_FOOTER, (off_t)(m->offset + RECORD_HEADER + m->length));
    return head < 0 || foot < 0 ||
           (head == RECORD_HEADER && foot == RECORD_FOOTER && !memcmp(bytes, m->bytes, sizeof bytes));
}

/* Whether the file open as fd, with that size, begins with what has been read: the same file, grown, or a copy of it.
 * Not so, even with the same inode, is a file that was truncated and rewritten, and is longer again before the next
 * check. */
static int goes_on(const struct event_reader *r, int fd, uint64_t size)
{
    return size >= r->file.parser.offset &&
           (!r->state.records || (mark_there(fd, &r->first) && mark_there(fd, &r->last)));
}

static int same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static int unchanged(const struct event_reader *r, const struct stat *st)
{
    return st->st_size == r->seen.st_size && st->st_mtim.tv_sec == r->seen.st_mtim.tv_sec &&
           st->st_mtim.tv_nsec == r->seen.st_mtim.tv_nsec;
}

/* Continues in the file open as fd, whose stat is now st. */
static int go_on(struct event_reader *r, int fd, const struct stat *st)
{
    r->seen = *st;
    record_parser_again(&r->file.parser);
    if (r->file.parser.position > (uint64_t)st->st_size)
        r->file.parser.position = r->file.parser.offset;
    record_file_again(&r->file, fd, (uint64_t)st->st_size); /* holes may have been filled since */
    return EVENTLOG_READ_EVENT;
}

static int start_again(struct event_reader *r, int fd, const struct stat *st)
{
    begin(r, st);
    record_file_again(&r->file, fd, (uint64_t)st->st_size);
    return EVENTLOG_READ_RESTARTED;
}

/* Checks whether the path now leads to another file, or must be opened again after event_reader_rest().
 * EVENTLOG_READ_END: no (or it cannot be opened: the old file stays open and the path is tried again later);
 * EVENTLOG_READ_EVENT: yes, to the same file or a copy of it, in which reading continues; or RESTARTED. */
static int follow_name(struct event_reader *r)
{
    struct stat st;
    int fd;

    if (stat(r->path, &st) < 0 || (same_file(&st, &r->seen) && (r->file.fd >= 0 || unchanged(r, &st))))
        return EVENTLOG_READ_END;
    if ((fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        return EVENTLOG_READ_END;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return EVENTLOG_READ_END;
    }
    return goes_on(r, fd, (uint64_t)st.st_size) ? go_on(r, fd, &st) : start_again(r, fd, &st);
}

/* Called after an end. EVENTLOG_READ_EVENT: there may be more now. */
static int look_again(struct event_reader *r, struct error *e)
{
    struct stat st;
    int rc = r->file.packed ? EVENTLOG_READ_END : follow_name(r);

    if (rc != EVENTLOG_READ_END || r->file.fd < 0)
        return rc;
    if (fstat(r->file.fd, &st) < 0)
        return error_system(e, "%s: cannot stat", r->path);
    if (unchanged(r, &st))
        return EVENTLOG_READ_END;
    return goes_on(r, r->file.fd, (uint64_t)st.st_size) ? go_on(r, r->file.fd, &st) : start_again(r, r->file.fd, &st);
}

/* The file ends before the size that it had when it was last checked: EVENTLOG_READ_END if what was read is still its
 * beginning, EVENTLOG_READ_RESTARTED if not. */
static int look_at_cut(struct event_reader *r, struct error *e)
{
    struct stat st;

    if (fstat(r->file.fd, &st) < 0)
        return error_system(e, "%s: cannot stat", r->path);
    return goes_on(r, r->file.fd, (uint64_t)st.st_size) ? EVENTLOG_READ_END : start_again(r, r->file.fd, &st);
}

/* ---- records and events ---------------------------------------------------------------------------------------- */

static int report(struct event_reader *r, struct event_damage *d, enum eventlog_damage_kind kind, uint64_t offset,
                  uint64_t found, uint64_t wanted)
{
    r->state.damaged++;
    *d = (struct event_damage){ .kind = kind, .offset = offset, .found = found, .wanted = wanted };
    return EVENTLOG_READ_DAMAGE;
}

static int take_record(struct event_reader *r, const struct record *record, struct event *event, struct event_damage *d)
{
    size_t bad = 0;

    r->data = record->data;
    r->length = record->length;
    r->offset = record->offset;
    if (r->records_only) {
        if (!r->state.records++)
            keep_mark(&r->first, record);
        keep_mark(&r->last, record);
        return EVENTLOG_READ_EVENT;
    }
    if (event_decode(record->data, record->length, event, &bad) != OK)
        return report(r, d, EVENTLOG_DAMAGE_PROTO, record->offset, bad, 0);
    if (isnan(event->wall_time))
        return report(r, d, EVENTLOG_DAMAGE_WALL_TIME, record->offset, 0, 0);
    if (!event->is_utf8 && !r->utf8_pending) {
        /* Report that first, then come back to the same record and return it. */
        r->utf8_pending = 1;
        record_parser_init(&r->file.parser, record->offset, RECORD_LIMIT);
        r->file.parser.lost = r->state.lost;
        return report(r, d, EVENTLOG_DAMAGE_UTF8, record->offset, 0, 0);
    }
    r->utf8_pending = 0;
    if (!r->state.records++) {
        keep_mark(&r->first, record);
        r->state.first_wall_time = event->wall_time;
    }
    keep_mark(&r->last, record);
    r->state.last_wall_time = event->wall_time;
    return EVENTLOG_READ_EVENT;
}

static int check_file(struct event_reader *r, struct error *e)
{
    struct error why = { 0 };

    if (record_file_check(&r->file, &why) != OK) {
        r->at_end |= !why.system; /* it has no records until it changes; if it cannot be read now, it may be the next
                                   * time */
        if (e)
            *e = why;
        return why.code;
    }
    r->known = 1;
    return OK;
}

int event_reader_check(struct event_reader *r, struct error *e)
{
    return r->known ? OK : check_file(r, e);
}

int event_reader_next(struct event_reader *r, struct event *event, struct event_damage *damage, struct error *e)
{
    struct record record;
    int rc;

    if (r->at_end) {
        if ((rc = look_again(r, e)) != EVENTLOG_READ_EVENT)
            return rc;
        r->at_end = 0;
    }
    if (!r->known && (rc = check_file(r, e)) != OK)
        return rc;
    switch (rc = record_file_next(&r->file, &record, e)) {
    case RECORD_DATA: r->state.lost = r->file.parser.lost; return take_record(r, &record, event, damage);
    case RECORD_DAMAGE:
        report(r, damage,
               record.damage == RECORD_BAD_DATA_CRC     ? EVENTLOG_DAMAGE_DATA_CRC
               : record.damage == RECORD_BAD_LENGTH_CRC ? EVENTLOG_DAMAGE_LENGTH_CRC
               : record.damage == RECORD_TOO_LONG       ? EVENTLOG_DAMAGE_TOO_LONG
                                                        : EVENTLOG_DAMAGE_STREAM,
               record.offset, record.found, record.wanted);
        damage->data = record.data;
        damage->length = record.length;
        return EVENTLOG_READ_DAMAGE;
    case RECORD_MORE:
        if (!r->file.packed && r->file.size < (uint64_t)r->seen.st_size &&
            (rc = look_at_cut(r, e)) != EVENTLOG_READ_END)
            return rc;
        r->at_end = 1;
        if (r->file.packed) /* there will be no more of it */
            record_file_close(&r->file);
        else
            record_file_trim(&r->file);
        return EVENTLOG_READ_END;
    default: return rc;
    }
}

void event_reader_take_usual(struct event_reader *r, int (*take)(void *context, const struct usual_event *event),
                             void *context)
{
    struct record record, last = { 0 };
    struct usual_event event;
    const uint8_t *bytes;
    size_t left;

    if (r->at_end || !r->state.records || r->records_only || r->utf8_pending)
        return;
    bytes = record_file_ahead(&r->file, &left);
    while (left >= RECORD_OVERHEAD && get_le64(bytes) <= USUAL_EVENT_MAX &&
           record_sound(&r->file.parser, bytes, left, &record) && usual_event(record.data, record.length, &event) &&
           !isnan(event.wall_time) && take(context, &event)) {
        record_pass(&r->file.parser, &record);
        bytes += RECORD_OVERHEAD + record.length;
        left -= RECORD_OVERHEAD + record.length;
        r->state.records++;
        r->state.last_wall_time = event.wall_time;
        last = record;
    }
    if (!last.data)
        return;
    keep_mark(&r->last, &last);
    r->data = last.data;
    r->length = last.length;
    r->offset = last.offset;
}

/* ---- words ----------------------------------------------------------------------------------------------------- */

const char *event_damage_word(enum eventlog_damage_kind kind)
{
    static const char *const words[] = { "length_crc", "data_crc", "too_long", "proto", "wall_time", "utf8", "stream" };

    return words[kind];
}

void event_damage_text(const struct event_damage *d, char *out, size_t size)
{
    unsigned long long found = d->found, wanted = d->wanted;

    switch (d->kind) {
    case EVENTLOG_DAMAGE_LENGTH_CRC:
        snprintf(out, size,
                 "the CRC of the record's length is 0x%08llx, not 0x%08llx; reading goes on at the next valid header",
                 found, wanted);
        break;
    case EVENTLOG_DAMAGE_DATA_CRC:
        snprintf(out, size, "the CRC of the record's data is 0x%08llx, not 0x%08llx; record skipped", found, wanted);
        break;
    case EVENTLOG_DAMAGE_TOO_LONG:
        snprintf(out, size, "a record of %llu bytes is over the limit of %llu; skipped", found, wanted);
        break;
    case EVENTLOG_DAMAGE_PROTO:
        snprintf(out, size, "the record is not an Event message, from byte %llu of its data on; skipped", found);
        break;
    case EVENTLOG_DAMAGE_WALL_TIME: snprintf(out, size, "the event's wall time is NaN; event skipped"); break;
    case EVENTLOG_DAMAGE_STREAM:
        snprintf(out, size, "the compressed file is damaged or cut: nothing after this point can be read");
        break;
    case EVENTLOG_DAMAGE_UTF8:
        snprintf(out, size, "a tag or another string is not UTF-8; TensorBoard's default loader gives up on the file");
        break;
    }
}
