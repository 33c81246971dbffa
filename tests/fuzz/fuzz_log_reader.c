/*
 * Any bytes as an event file that grows: the first two say after how many bytes it is read for the first time; then each
 * byte says how many of the next are the data of a record (255: so many as the byte behind says stand in the file as
 * they are). Whatever is cut where, reader and points see what a reader of the whole file sees, and every value can be
 * asked for everything.
 */
#include "eventlog/eventlog.h"

#include "eventlog/format/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t events, values, points, damage, sum; /* sum: of what the points hold, in any order */
};

static uint64_t bits(double number)
{
    uint64_t u;

    memcpy(&u, &number, sizeof u);
    return u;
}

static uint64_t mixed(int64_t step, double wall_time, double value)
{
    return ((uint64_t)step ^ bits(wall_time) * 3 ^ bits(value) * 5) * 0x9e3779b97f4a7c15u >> 8;
}

static void look_into(struct eventlog_reader *r, const struct eventlog_value *v)
{
    const struct eventlog_bucket *rows;
    struct eventlog_tensor t;
    struct eventlog_blobs b;
    size_t count, sum = v->series->tag_length + v->series->plugin_content_length + strlen(v->series->plugin);

    if (eventlog_reader_tensor(r, &t, NULL) == EVENTLOG_OK && t.bytes)
        sum += ((const unsigned char *)t.data)[t.bytes - 1];
    if (eventlog_reader_histogram(r, &rows, &count, NULL) == EVENTLOG_OK && count)
        sum += rows[count - 1].count > 0;
    if (eventlog_reader_blobs(r, &b, NULL) == EVENTLOG_OK)
        for (size_t i = 0; i < b.count; i++)
            sum += b.items[i].length ? ((const unsigned char *)b.items[i].data)[b.items[i].length - 1] : 0;
    if (sum == (size_t)-1)
        abort();
}

/* 0: these bytes are refused at their start, as no event file, or as a file of another kind that is damaged. */
static int read_on(struct eventlog_reader *r, struct seen *s)
{
    int rc;

    while ((rc = eventlog_reader_next(r, NULL)) != EVENTLOG_READ_END) {
        const struct eventlog_value *v;

        if ((rc == EVENTLOG_ERROR_IO || rc == EVENTLOG_ERROR_CORRUPT) && !s->events && !s->damage)
            return 0;
        if (rc < 0 || rc == EVENTLOG_READ_RESTARTED)
            abort();
        if (rc == EVENTLOG_READ_DAMAGE && !*eventlog_reader_damage(r)->text)
            abort();
        s->damage += rc == EVENTLOG_READ_DAMAGE;
        s->events += rc == EVENTLOG_READ_EVENT;
        while ((v = eventlog_reader_value(r))) {
            s->values++;
            s->points += v->kind == EVENTLOG_KIND_SCALAR;
            s->sum += v->kind == EVENTLOG_KIND_SCALAR ? mixed(v->step, v->wall_time, v->number) : 0;
            look_into(r, v);
        }
    }
    return 1;
}

/* The file: at most size * (1 + RECORD_OVERHEAD) bytes. */
static size_t make_file(const uint8_t *data, size_t size, uint8_t *file)
{
    size_t total = 0;

    for (size_t i = 0; i < size;) {
        int as_is = data[i] == 255 && i + 1 < size;
        size_t n = data[i += (size_t)as_is];

        i++;
        n = n < size - i ? n : size - i;
        memcpy(file + total + (as_is ? 0 : RECORD_HEADER), data + i, n);
        if (!as_is)
            record_seal(file + total, n);
        total += n + (as_is ? 0 : RECORD_OVERHEAD);
        i += n;
    }
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = { 0 }, parts = { 0 };
    struct eventlog_points *points;
    struct eventlog_reader *r;
    char path[64];
    size_t first, total = 0, count;
    uint64_t sum = 0;
    uint8_t *file;
    int is_log, fd = memfd_create("tfevents", MFD_CLOEXEC);

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || size < 2) {
        close(fd);
        return 0;
    }
    first = (size_t)(data[0] | data[1] << 8);
    if (!(file = malloc(size * (1 + RECORD_OVERHEAD))))
        abort();
    size = make_file(data + 2, size - 2, file);
    first = first < size ? first : size;
    if (write(fd, file, first) != (ssize_t)first)
        abort();
    if (eventlog_reader_open(&r, path, NULL, NULL) != EVENTLOG_OK) { /* such as an archive that is damaged */
        free(file);
        close(fd);
        return 0;
    }
    is_log = read_on(r, &parts);
    if (write(fd, file + first, size - first) != (ssize_t)(size - first))
        abort();
    is_log = is_log && read_on(r, &parts);
    eventlog_reader_close(r);
    if (eventlog_reader_open(&r, path, NULL, NULL) == EVENTLOG_OK)
        is_log = read_on(r, &whole) && is_log;
    else if (is_log && parts.events)
        abort();
    else
        is_log = 0;
    if (is_log && eventlog_reader_totals(r).damaged != whole.damage)
        abort();
    eventlog_reader_close(r);
    if (!is_log) {
        free(file);
        close(fd);
        return 0;
    }
    if (eventlog_points_read(&points, path, EVENTLOG_VIEW_ALL, NULL, NULL) != EVENTLOG_OK)
        abort();
    for (size_t i = 0; eventlog_points_series(points, i); i++, total += count) {
        const struct eventlog_point *of = eventlog_points_of(points, i, &count);

        for (size_t k = 0; k < count; k++)
            sum += mixed(of[k].step, of[k].wall_time, of[k].value);
    }
    /* A header that does not fit yet may be passed over for one behind it that does, so cut files can tell more. */
    if (total != whole.points || sum != whole.sum || (!whole.damage && memcmp(&whole, &parts, sizeof whole) != 0))
        abort();
    eventlog_points_free(points);
    free(file);
    close(fd);
    return 0;
}
