/*
 * write_made_events DIRECTORY SEED COUNT - makes event files by the seeds from SEED on, each as a run of its own in
 * DIRECTORY, and prints a JSON object a file: what was done to it, and what the public reader says of it. For
 * comparison with other readers. Bits of floating-point numbers and tags are hexadecimal.
 */
#include "base/bytes.h"
#include "eventlog/eventlog.h"
#include "tests/fuzz/made_events.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int write_file(const struct made_events *m, const char *path)
{
    FILE *f = fopen(path, "wb");
    int good = f && fwrite(m->file.data, 1, m->file.length, f) == m->file.length;

    return f && fclose(f) == 0 && good;
}

static void append_event(struct buffer *events, const struct eventlog_event *e)
{
    buffer_format(events, "%s[%llu,%d,%lld,\"%016llx\"]", events->length ? "," : "", (unsigned long long)e->offset,
                  (int)e->what, (long long)e->step, (unsigned long long)double_bits(e->wall_time));
}

static void append_point(struct buffer *points, uint64_t offset, const struct eventlog_value *v)
{
    buffer_format(points, "%s[%llu,\"", points->length ? "," : "", (unsigned long long)offset);
    for (size_t i = 0; i < v->series->tag_length; i++)
        buffer_format(points, "%02x", (unsigned char)v->series->tag[i]);
    buffer_format(points, "\",%lld,\"%016llx\",\"%016llx\"]", (long long)v->step,
                  (unsigned long long)double_bits(v->wall_time), (unsigned long long)double_bits(v->number));
}

/* A file that is no event file at all is an error of the reader: then there is nothing of it. */
static void print_reading(const struct made_events *m, unsigned long long seed, const char *path)
{
    static const char *const verdicts[] = { "sound", "damaged", "either" };
    struct buffer events = BUFFER_EMPTY, points = BUFFER_EMPTY;
    const struct eventlog_value *v;
    struct eventlog_reader *r;
    int rc;

    if (eventlog_reader_open(&r, path, NULL, NULL) != EVENTLOG_OK)
        abort();
    while ((rc = eventlog_reader_next(r, NULL)) > 0) {
        if (rc != EVENTLOG_READ_EVENT)
            continue;
        append_event(&events, eventlog_reader_event(r));
        while ((v = eventlog_reader_value(r)))
            if (v->kind == EVENTLOG_KIND_SCALAR)
                append_point(&points, eventlog_reader_event(r)->offset, v);
    }
    eventlog_reader_close(r);
    if (!buffer_ok(&events) || !buffer_ok(&points))
        abort();
    printf("{\"seed\":%llu,\"file\":\"%s\",\"verdict\":\"%s\",\"damage\":\"%s\",\"events\":[%s],\"points\":[%s]}\n",
           seed, path, verdicts[m->verdict], m->damage, buffer_text(&events), buffer_text(&points));
    buffer_release(&events);
    buffer_release(&points);
}

int main(int argc, char **argv)
{
    unsigned long long first = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    unsigned long long count = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
    char path[PATH_MAX];

    if (!count) {
        fprintf(stderr, "usage: write_made_events DIRECTORY SEED COUNT\n");
        return 2;
    }
    for (unsigned long long seed = first; seed < first + count; seed++) {
        struct made_events m;
        int n = snprintf(path, sizeof path, "%s/%llu", argv[1], seed);

        if (n < 0 || (size_t)n > sizeof path - 50 || mkdir(path, 0777) < 0) {
            perror(path);
            return 2;
        }
        snprintf(path + n, sizeof path - (size_t)n, "/events.out.tfevents.1700000000.made");
        made_events_make(&m, decisions_from_seed(seed));
        if (!write_file(&m, path)) {
            perror(path);
            return 2;
        }
        print_reading(&m, seed, path);
        made_events_release(&m);
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 2;
}
