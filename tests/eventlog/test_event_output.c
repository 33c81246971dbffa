/*
 * Writers without a directory: what goes to memory or to a caller's functions is what a file gets, byte for byte but for
 * the time in its first record; each function and each allocation fails in turn.
 */
#include "eventlog/eventlog.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/file.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/record.h"
#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"
#include "tests/failing_allocation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OBJECTS = 64, STEPS = 6 };

/* An object store in memory, whose call number fail_at fails, and later ones too where it stays so. */
struct object {
    struct store *store;
    char name[200];
    struct buffer bytes;
    int ended, synced;
};

struct store {
    struct object objects[OBJECTS];
    size_t count;
    long calls, fail_at;
    int error, stays;
};

static struct eventlog_error error;

static int refuses(struct store *s)
{
    s->calls++;
    return s->fail_at && (s->stays ? s->calls >= s->fail_at : s->calls == s->fail_at) ? s->error : 0;
}

static int store_begin(void *context, const char *name, void **object)
{
    struct store *s = context;
    struct object *o = &s->objects[s->count];
    int system = refuses(s);

    if (system)
        return system;
    assert_true(s->count < OBJECTS);
    if (s->count && o[-1].bytes.length)
        assert_true(strcmp(o[-1].name, name) < 0);
    o->store = s;
    strncpy(o->name, name, sizeof o->name - 1);
    s->count++;
    *object = o;
    return 0;
}

static int store_write(void *object, const void *bytes, size_t n)
{
    struct object *o = object;
    int system = refuses(o->store);

    assert_false(o->ended);
    if (!system)
        buffer_append(&o->bytes, bytes, n);
    return system;
}

static int store_sync(void *object)
{
    struct object *o = object;

    o->synced++;
    return refuses(o->store);
}

static int store_end(void *object)
{
    struct object *o = object;

    assert_int_equal(o->ended++, 0);
    return refuses(o->store);
}

static struct eventlog_output output_of(struct store *s)
{
    return (struct eventlog_output){ s, store_begin, store_write, store_sync, store_end };
}

static void store_release(struct store *s)
{
    for (size_t i = 0; i < s->count; i++)
        buffer_release(&s->objects[i].bytes);
    memset(s, 0, sizeof *s);
}

/* The first record's length, and the events after it in n bytes, which are whole records. */
static size_t first_length(const void *bytes)
{
    return (size_t)get_le64(bytes) + RECORD_OVERHEAD;
}

static size_t count_events(const struct buffer *b)
{
    struct record_parser p;
    struct record r;
    size_t count = 0;

    if (!b->length)
        return 0;
    record_parser_init(&p, 0, 0);
    while (record_next(&p, (uint8_t *)b->data + p.position, b->length - p.position, b->length, &r) == RECORD_DATA) {
        struct event event;

        assert_int_equal(event_decode(r.data, r.length, &event, NULL), OK);
        assert_int_equal(event.what == EVENT_FILE_VERSION, count == 0);
        count++;
    }
    assert_int_equal(p.offset, b->length);
    return count - 1;
}

/* Four events of a step; how many are accepted. */
static size_t log_step(struct eventlog_writer *w, int64_t step)
{
    static const float values[] = { 0, 0.25f, 0.5f, 1 };
    const struct eventlog_value_options options = { .display_name = "shown", .description = "described" };
    int rc[4];

    rc[0] = eventlog_writer_scalar(w, "loss", step, 5, (float)step, &error);
    rc[1] = eventlog_writer_histogram_floats(w, "h", step, 5, values, 4, &options, &error);
    rc[2] = eventlog_writer_text(w, "t", step, 5, "hello", &options, &error);
    rc[3] = eventlog_writer_image_floats(w, "i", step, 5, values, 1, 2, 2, 1, NULL, &error);
    return (size_t)(!rc[0] + !rc[1] + !rc[2] + !rc[3]);
}

/* What a file gets. */
static void write_file(const struct eventlog_writer_options *options, struct buffer *bytes)
{
    char directory[] = "/tmp/test_event_output.XXXXXX";
    struct eventlog_writer *w;

    assert_non_null(mkdtemp(directory));
    assert_int_equal(eventlog_writer_open(&w, directory, options, NULL), EVENTLOG_OK);
    for (int64_t step = 0; step < STEPS; step++)
        assert_int_equal(log_step(w, step), 4);
    assert_int_equal(eventlog_writer_flush(w, NULL), EVENTLOG_OK);
    assert_int_equal(file_read(eventlog_writer_path(w), 1 << 20, bytes, NULL), OK);
    assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
    assert_int_equal(remove_tree(directory), 0);
}

static void assert_same(const struct buffer *a, const struct buffer *b)
{
    size_t first = first_length(b->data);

    assert_int_equal(a->length, b->length);
    assert_int_equal(first_length(a->data), first);
    assert_memory_equal(a->data + first, b->data + first, b->length - first);
}

static const struct eventlog_writer_options ways[] = {
    { 0 }, { .buffer_bytes = 64 }, { .queue_bytes = 1 << 20 }, { .source = "other", .buffer_bytes = 500 }
};

static void test_memory_is_the_file(void **state)
{
    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct buffer wanted = BUFFER_EMPTY, found = BUFFER_EMPTY;
        struct eventlog_writer *w;
        void *bytes;
        size_t n;

        write_file(&ways[way], &wanted);
        assert_int_equal(eventlog_writer_open_memory(&w, &ways[way], NULL), EVENTLOG_OK);
        assert_non_null(strstr(eventlog_writer_path(w), "events.out.tfevents."));
        for (int64_t step = 0; step < STEPS; step++) {
            assert_int_equal(log_step(w, step), 4);
            if (step % 2) {
                assert_int_equal(eventlog_writer_take(w, &bytes, &n, NULL), EVENTLOG_OK);
                buffer_append(&found, bytes, n);
                eventlog_free(bytes);
            }
        }
        assert_int_equal(eventlog_writer_take(w, &bytes, &n, NULL), EVENTLOG_OK);
        assert_null(bytes);
        assert_int_equal(n, 0);
        assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
        assert_same(&found, &wanted);
        buffer_release(&wanted);
        buffer_release(&found);
    }
}

static void test_objects_are_files(void **state)
{
    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct store store = { 0 };
        struct eventlog_output output = output_of(&store);
        struct buffer wanted = BUFFER_EMPTY;
        struct eventlog_writer *w;

        write_file(&ways[way], &wanted);
        assert_int_equal(eventlog_writer_open_output(&w, &output, &ways[way], NULL), EVENTLOG_OK);
        for (int64_t step = 0; step < STEPS; step++)
            assert_int_equal(log_step(w, step), 4);
        assert_string_equal(eventlog_writer_path(w), store.objects[0].name);
        assert_int_equal(eventlog_writer_sync(w, NULL), EVENTLOG_OK);
        assert_int_equal(store.objects[0].synced, 1);
        assert_int_equal(store.objects[0].ended, 0);
        assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
        assert_int_equal(store.count, 1);
        assert_int_equal(store.objects[0].ended, 1);
        assert_same(&store.objects[0].bytes, &wanted);
        store_release(&store);
        buffer_release(&wanted);
    }
}

static void test_rotation(void **state)
{
    (void)state;
    for (int queue = 0; queue < 2; queue++) {
        const struct eventlog_writer_options options = { .rotate_bytes = 700, .queue_bytes = queue ? 1 << 20 : 0 };
        struct store store = { 0 };
        struct eventlog_output output = output_of(&store);
        struct eventlog_writer_statistics s;
        struct eventlog_writer *w;
        size_t events = 0;

        assert_int_equal(eventlog_writer_open_output(&w, &output, &options, NULL), EVENTLOG_OK);
        for (int64_t step = 0; step < STEPS; step++)
            assert_int_equal(log_step(w, step), 4);
        assert_int_equal(eventlog_writer_flush(w, NULL), EVENTLOG_OK);
        assert_int_equal(eventlog_writer_statistics(w, &s, NULL), EVENTLOG_OK);
        assert_int_equal(s.files, store.count);
        assert_true(store.count > 2);
        assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
        for (size_t i = 0; i < store.count; i++) {
            assert_in_range(store.objects[i].bytes.length, 1, 700);
            assert_int_equal(store.objects[i].ended, 1);
            events += count_events(&store.objects[i].bytes);
        }
        assert_int_equal(events, 4 * STEPS);
        store_release(&store);
    }
}

/* Each call fails in turn, once or from then on: nothing is written twice, and what was accepted is there unless the
 * end says how much is lost. */
static void test_failing_calls(void **state)
{
    (void)state;
    for (int way = 0; way < 8; way++) {
        const struct eventlog_writer_options options = { .buffer_bytes = 64,
                                                         .queue_bytes = way & 1 ? 1 << 20 : 0,
                                                         .rotate_bytes = way & 2 ? 700 : 0,
                                                         .sync = EVENTLOG_SYNC_AT_FLUSH };
        long n = 1;

        for (int done = 0; !done; n++) {
            struct store store = { .fail_at = n, .error = n % 2 ? EDQUOT : -1, .stays = way & 4 };
            struct eventlog_output output = output_of(&store);
            size_t accepted = 0, events = 0;
            struct eventlog_writer *w;
            int rc = eventlog_writer_open_output(&w, &output, &options, &error), closed = EVENTLOG_OK;

            if (rc == EVENTLOG_OK) {
                for (int64_t step = 0; step < STEPS; step++)
                    accepted += log_step(w, step);
                eventlog_writer_flush(w, NULL);
                closed = eventlog_writer_close(w, &error);
            }
            assert_true((rc == EVENTLOG_OK && closed == EVENTLOG_OK) || error.code == EVENTLOG_ERROR_IO);
            if (rc != EVENTLOG_OK)
                assert_int_equal(error.system, n % 2 ? EDQUOT : EIO);
            for (size_t i = 0; i < store.count; i++) {
                assert_int_equal(store.objects[i].ended, 1);
                events += count_events(&store.objects[i].bytes);
            }
            assert_in_range(events, closed == EVENTLOG_OK ? accepted : 0, 4 * STEPS);
            done = store.calls < n;
            store_release(&store);
        }
        assert_true(n > 5);
    }
}

static void test_failing_allocations(void **state)
{
    long n = 1;

    (void)state;
    for (int done = 0; !done; n++) {
        struct buffer found = BUFFER_EMPTY;
        struct eventlog_writer *w;
        size_t accepted = 0;
        void *bytes;
        size_t length;
        int rc;

        atomic_store(&calls, 0);
        atomic_store(&fail_at, n);
        if ((rc = eventlog_writer_open_memory(&w, &ways[n % 3], &error)) == EVENTLOG_OK) {
            for (int64_t step = 0; step < 2; step++)
                accepted += log_step(w, step);
            rc = eventlog_writer_take(w, &bytes, &length, &error);
            done = atomic_load(&calls) < n;
            atomic_store(&fail_at, 0);
            /* The next try succeeds: the events have waited. */
            if (rc != EVENTLOG_OK) {
                assert_int_equal(error.system, ENOMEM);
                assert_int_equal(eventlog_writer_take(w, &bytes, &length, NULL), EVENTLOG_OK);
            }
            buffer_append(&found, bytes, length);
            eventlog_free(bytes);
            assert_in_range(count_events(&found), accepted, 8);
            assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
        } else {
            atomic_store(&fail_at, 0);
            assert_true(error.code == EVENTLOG_ERROR_MEMORY || error.system == ENOMEM);
        }
        buffer_release(&found);
    }
    assert_true(n > 20);
}

static void test_refused(void **state)
{
    struct store store = { 0 };
    const struct eventlog_embedding embedding = {
        .name = "a", .values = (float[]){ 0, 1 }, .points = 1, .dimensions = 2
    };
    struct eventlog_output output = output_of(&store), bad = output;
    struct eventlog_writer *w;
    void *bytes;
    size_t n;

    (void)state;
    assert_int_equal(eventlog_writer_open_output(&w, NULL, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    bad.write = NULL;
    assert_int_equal(eventlog_writer_open_output(&w, &bad, NULL, &error), EVENTLOG_ERROR_ARGUMENT);
    bad = output;
    bad.begin = NULL;
    assert_int_equal(
        eventlog_writer_open_output(&w, &bad, &(struct eventlog_writer_options){ .rotate_bytes = 1 }, &error),
        EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_open_memory(&w, &(struct eventlog_writer_options){ .rotate_seconds = 1 }, &error),
                     EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(
        eventlog_writer_open_memory(&w, &(struct eventlog_writer_options){ .resume = EVENTLOG_RESUME_APPEND }, &error),
        EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_open_memory(&w, &(struct eventlog_writer_options){ .leave_lost = 1 }, &error),
                     EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(store.calls, 0);
    assert_int_equal(eventlog_writer_open_output(&w, &output, NULL, NULL), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_take(w, &bytes, &n, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_int_equal(eventlog_writer_projector(w, &embedding, 1, &error), EVENTLOG_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "no directory"));
    assert_int_equal(eventlog_writer_make_again(w, NULL), EVENTLOG_OK);
    assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
    store_release(&store);
}

/* A forked child ends nothing, and writes nothing. */
static void test_fork(void **state)
{
    (void)state;
    for (int queue = 0; queue < 2; queue++) {
        const struct eventlog_writer_options options = { .queue_bytes = queue ? 1 << 20 : 0 };
        struct store store = { 0 };
        struct eventlog_output output = output_of(&store);
        struct eventlog_writer *w;
        int status;
        pid_t child;

        assert_int_equal(eventlog_writer_open_output(&w, &output, &options, NULL), EVENTLOG_OK);
        assert_int_equal(log_step(w, 1), 4);
        assert_int_equal(eventlog_writer_flush(w, NULL), EVENTLOG_OK);
        if (!(child = fork())) {
            long before = store.calls;

            _exit(eventlog_writer_close(w, NULL) != EVENTLOG_ERROR_ARGUMENT || store.calls != before);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
        assert_int_equal(count_events(&store.objects[0].bytes), 4);
        store_release(&store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_the_file),
        cmocka_unit_test(test_objects_are_files),
        cmocka_unit_test(test_rotation),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
