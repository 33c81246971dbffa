/* Any bytes as an event file under the data server: read in pieces it gives the points, the damage and the place of the
 * reader that it gives to one reader. The first byte is the length of a piece. */
#include "eventlog/server/file_pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzzed {
    struct run_data *run;
    struct event_reader *reader;
    uint64_t damaged, places; /* how often, and a mixture of where and what */
};

static void note(void *context, const struct event_damage *d)
{
    struct fuzzed *f = context;

    f->damaged++;
    f->places = f->places * 31 + d->offset * 8 + (uint64_t)d->kind + d->found + d->wanted;
}

static int go_on(void *context)
{
    (void)context;
    return 1;
}

/* length 0: by one reader. 0: the run cannot be read this way. -1: the file is refused at its start, as one is whose
 * compression wants too much memory. */
static int read_file(struct fuzzed *f, const char *path, uint64_t length)
{
    const struct file_pieces pieces = { length, f, note, go_on };
    struct event_damage damage;
    struct log_input input = { 0 };
    struct event event;
    uint64_t offset, next = 0;
    size_t n;
    int rc, good = 1;

    *f = (struct fuzzed){ .run = run_data_new("r", 1) };
    if (!f->run)
        abort();
    if ((rc = event_reader_open(&f->reader, &input, path, NULL)) < 0)
        return -1;
    while (good && (rc = event_reader_next(f->reader, &event, &damage, NULL)) > 0) {
        if (rc == EVENT_READER_DAMAGE) {
            note(f, &damage);
            continue;
        }
        event_reader_record(f->reader, &n, &offset);
        good = run_data_event(f->run, 0, path, &event, offset, NULL) == OK;
        if (good && length && event_reader_offset(f->reader) >= next) {
            good = file_pieces_read(&pieces, f->reader, f->run, 0, path, NULL) == OK;
            next = event_reader_offset(f->reader) + 2 * length;
        }
    }
    log_input_release(&input);
    return good;
}

static void compare_series(const struct series_view *s, const struct series_view *t)
{
    if (s->count != t->count || s->info->class != t->info->class || s->info->tag_length != t->info->tag_length ||
        memcmp(s->info->tag, t->info->tag, s->info->tag_length) != 0 || s->most_blobs != t->most_blobs)
        abort();
    for (size_t row = 0; row < s->count; row++)
        for (size_t c = 0; c < column_block_columns(s->blocks[0]); c++)
            if (series_view_at(s, row, (enum column)c) != series_view_at(t, row, (enum column)c))
                abort();
}

static void compare(struct fuzzed *a, struct fuzzed *b)
{
    struct event_reader_state s = event_reader_state(a->reader), t = event_reader_state(b->reader);
    struct run_view *x, *y;

    if (a->damaged != b->damaged || a->places != b->places || s.offset != t.offset || s.records != t.records ||
        s.lost != t.lost || s.damaged != t.damaged || run_data_points(a->run) != run_data_points(b->run))
        abort();
    if (run_data_view(a->run, &x, NULL) != OK || run_data_view(b->run, &y, NULL) != OK || !x != !y)
        abort();
    if (!x)
        return;
    if (x->count != y->count || x->start_time != y->start_time)
        abort();
    for (size_t i = 0; i < x->count; i++)
        compare_series(x->series[i], y->series[i]);
    run_view_drop(x);
    run_view_drop(y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzzed one, many;
    char path[64];
    int fd;

    if (!size || (fd = memfd_create("events", MFD_CLOEXEC)) < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
        abort();
    if (read_file(&one, path, 0) != read_file(&many, path, 1 + (uint64_t)*data * 2))
        abort();
    if (one.reader && many.reader)
        compare(&one, &many);
    run_data_free(one.run);
    run_data_free(many.run);
    event_reader_close(one.reader);
    event_reader_close(many.reader);
    close(fd);
    return 0;
}
