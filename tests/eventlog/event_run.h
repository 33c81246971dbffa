/*
 * event_run.h - for tests of the writer: a directory of their own that is a run, and what its files hold. On a file
 * system in memory where there is one: thousands of fsyncs take their time on a disk. Include it behind cmocka.h.
 */
#ifndef TESTS_EVENTLOG_EVENT_RUN_H
#define TESTS_EVENTLOG_EVENT_RUN_H

#include "base/file.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/record.h"
#include "eventlog/format/summary_metadata.h"
#include "eventlog/read/log_directory.h"
#include "eventlog/write/event_writer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct log_input input;
static char directory[64];
static struct eventlog_error error;

static inline int setup(void **state)
{
    (void)state;
    strcpy(directory, "/dev/shm/test_event_run.XXXXXX");
    if (mkdtemp(directory))
        return 0;
    strcpy(directory, "/tmp/test_event_run.XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

/* The run's event files, in the order in which they are read. */
static inline struct log_directory list(void)
{
    struct log_directory d;
    char *path = directory;

    assert_int_equal(log_directory_list(&d, &input, &path, 1, NULL), OK);
    return d;
}

static inline size_t count_files(void)
{
    struct log_directory d = list();
    size_t count = d.count ? d.runs[0].file_count : 0;

    log_directory_release(&d);
    return count;
}

static inline void remove_files(void)
{
    struct log_directory d = list();

    for (size_t i = 0; d.count && i < d.runs[0].file_count; i++)
        unlink(d.runs[0].files[i]);
    log_directory_release(&d);
}

static inline int teardown(void **state)
{
    (void)state;
    remove_files();
    return rmdir(directory);
}

struct seen {
    size_t files, points, versions, starts; /* starts: session starts */
    size_t named, described;                /* points that name their plugin; those that say more in words */
    size_t each[64];                        /* points of each file */
    int64_t steps[4096];
};

/* Reads the run; every file must be whole records, the first one a file_version. */
static inline struct seen read_run(void)
{
    struct log_directory d = list();
    struct seen s = { .files = d.count ? d.runs[0].file_count : 0 };

    assert_true(s.files <= 64);
    for (size_t i = 0; i < s.files; i++) {
        struct buffer bytes = BUFFER_EMPTY;
        struct record_parser p;
        struct record r;
        enum record_result result;

        assert_int_equal(file_read(d.runs[0].files[i], 1 << 28, &bytes, NULL), OK);
        record_parser_init(&p, 0, 0);
        while ((result = record_next(&p, (uint8_t *)bytes.data + p.position, bytes.length - p.position, bytes.length,
                                     &r)) == RECORD_DATA) {
            struct summary_metadata m;
            struct event event;

            assert_int_equal(event_decode(r.data, r.length, &event, NULL), OK);
            assert_true((r.offset == 0) == (event.what == EVENT_FILE_VERSION));
            s.versions += event.what == EVENT_FILE_VERSION;
            s.starts += event.session == EVENT_SESSION_START;
            if (event.what != EVENT_SUMMARY)
                continue;
            if (s.points < 4096)
                s.steps[s.points] = event.step;
            s.points++;
            s.each[i]++;
            s.named += event.first.plugin_length > 0;
            if (!event.first.has_metadata)
                continue;
            summary_metadata_read(&m, event.first.metadata, event.first.metadata_length);
            s.described += m.display_name.length || m.description.length;
        }
        assert_int_equal(result, RECORD_MORE);
        assert_int_equal(p.offset, bytes.length);
        buffer_release(&bytes);
    }
    log_directory_release(&d);
    return s;
}

static inline struct eventlog_writer *open_with(struct eventlog_writer_options options)
{
    struct eventlog_writer *w;
    int rc = eventlog_writer_open(&w, directory, &options, &error);

    if (rc != EVENTLOG_OK)
        fail_msg("%s", error.message);
    return w;
}

static inline void put_steps(struct eventlog_writer *w, const char *tag, int64_t from, int64_t to)
{
    for (int64_t step = from; step < to; step++)
        if (eventlog_writer_scalar(w, tag, step, 5.5, 1, &error) != EVENTLOG_OK)
            fail_msg("step %lld: %s", (long long)step, error.message);
}

static inline void close_well(struct eventlog_writer *w)
{
    if (eventlog_writer_close(w, &error) != EVENTLOG_OK)
        fail_msg("%s", error.message);
}

static const struct eventlog_value_options described = { .description = "what it is" };

static inline struct eventlog_writer_statistics statistics(struct eventlog_writer *w)
{
    struct eventlog_writer_statistics s;

    assert_int_equal(eventlog_writer_statistics(w, &s, NULL), EVENTLOG_OK);
    return s;
}

#endif
