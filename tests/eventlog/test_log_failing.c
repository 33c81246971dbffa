/* Each allocation and each system call fails once while a log in all its forms is listed, read, followed and checked. */
#include "eventlog/eventlog.h"

#include "base/file.h"
#include "base/file_kind.h"
#include "eventlog/check/log_check.h"
#include "eventlog/read/log_directory.h"
#include "eventlog/read/log_follow.h"
#include "eventlog/read/run_pieces.h"
#include "eventlog/read/scalar_series.h"
#include "tests/failing_calls.h"
#include "tests/eventlog/made_tar.h"
#include "tests/eventlog/remove_tree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { FILE_MOST = 1 << 16, ROUNDS_MOST = 10000 };

static char directory[64];
static struct buffer plain;

static const char *in_directory(const char *name)
{
    static char path[4][200];
    static int next;
    char *to = path[next++ % 4];

    snprintf(to, sizeof path[0], "%s/%s", directory, name);
    return to;
}

static void put(const char *name, const void *bytes, size_t n)
{
    int fd = open(in_directory(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

/* As one zstd frame of one block that is not compressed. */
static void put_zstd(const char *name)
{
    uint8_t *frame = malloc(9 + plain.length);
    const uint32_t block = (uint32_t)plain.length << 3 | 1;

    memcpy(frame, "\x28\xb5\x2f\xfd\0\x58", 6);
    frame[6] = (uint8_t)block;
    frame[7] = (uint8_t)(block >> 8);
    frame[8] = (uint8_t)(block >> 16);
    memcpy(frame + 9, plain.data, plain.length);
    put(name, frame, 9 + plain.length);
    free(frame);
}

static void put_archive(const char *name)
{
    static const char *const members[] = { "events.out.tfevents.0", "readme", "x/events.out.tfevents.1",
                                           "x/y/events.out.tfevents.2" };
    int to = open(in_directory(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(to >= 0);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        made_tar_put(to, members[i], plain.data, plain.length);
    close(to);
}

static void write_run(void)
{
    static const double numbers[] = { 1, 2, 3 };
    struct eventlog_writer *w;
    char tag[20];

    assert_int_equal(eventlog_writer_open(&w, in_directory("made"), NULL, NULL), 0);
    assert_int_equal(eventlog_writer_histogram_doubles(w, "histogram", 1, 5, numbers, 3, NULL, NULL), 0);
    assert_int_equal(eventlog_writer_text(w, "text", 1, 5, "hello", NULL, NULL), 0);
    for (int i = 0; i < 60; i++) {
        snprintf(tag, sizeof tag, "tag_%d", i % 10);
        assert_int_equal(eventlog_writer_scalar(w, tag, i / 10 % 4, i, 1, NULL), 0);
    }
    assert_int_equal(eventlog_writer_close(w, NULL), 0);
}

static int setup(void **state)
{
    struct log_input input = { 0 };
    struct log_directory d;
    char *path = directory;
    gzFile packed;

    (void)state;
    strcpy(directory, "/tmp/test_log_failing.XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    write_run();
    assert_int_equal(log_directory_list(&d, &input, &path, 1, NULL), OK);
    assert_int_equal(file_read(d.runs[0].files[0], FILE_MOST, &plain, NULL), OK);
    log_directory_release(&d);
    remove_tree(in_directory("made"));
    mkdir(in_directory("a"), 0700);
    mkdir(in_directory("b"), 0700);
    put("a/events.out.tfevents.1", plain.data, plain.length);
    plain.data[plain.length / 2] ^= 1;
    put("a/events.out.tfevents.2", plain.data, plain.length - 5);
    plain.data[plain.length / 2] ^= 1;
    put_zstd("b/events.out.tfevents.1.zst");
    packed = gzopen(in_directory("b/events.out.tfevents.2.gz"), "wb1");
    assert_int_equal(gzwrite(packed, plain.data, (unsigned)plain.length), plain.length);
    assert_int_equal(gzclose(packed), Z_OK);
    put("b/other.txt", "x", 1);
    assert_int_equal(symlink("a", in_directory("link")), 0);
    assert_int_equal(symlink("missing", in_directory("b/nothing")), 0);
    assert_int_equal(symlink("other.txt", in_directory("b/text")), 0);
    mkfifo(in_directory("b/events.out.tfevents.pipe"), 0600);
    assert_int_equal(symlink("events.out.tfevents.pipe", in_directory("b/to_pipe")), 0);
    mkdir(in_directory("c"), 0700);
    assert_int_equal(symlink("..", in_directory("c/up")), 0);
    assert_int_equal(symlink("../b", in_directory("a/out")), 0);
    assert_int_equal(symlink("../b/events.out.tfevents.2.gz", in_directory("a/events.out.tfevents.3.gz")), 0);
    put_archive("logs.tar");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buffer_release(&plain);
    return remove_tree(directory);
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

static int list_with(struct directory_cache *cache, int there, struct error *e)
{
    struct log_input input = { 0 };
    struct log_directory d;
    static const char *const names[] = { "a", "b/../a", "logs.tar", "./b/events.out.tfevents.2.gz", "c", "missing" };
    char paths[6][200], *list[6];
    int rc;

    for (size_t i = 0; i < 6; i++) {
        strcpy(paths[i], in_directory(names[i]));
        list[i] = paths[i];
    }
    if (there)
        rc = log_directory_list_there(&d, &input, list, 6, e);
    else
        rc = log_directory_list_cached(&d, cache, in_directory("a"), &input, list, cache ? 1 : 5, e);
    if (rc == OK && !fail_at && !call_fail_at)
        assert_true(d.count && !d.problem_count);
    log_directory_release(&d);
    log_input_release(&input);
    return rc;
}

/* In the directory itself: relative paths, none at all, several that are missing. */
static int list_here(struct error *e)
{
    static const struct {
        const char *paths[3];
        size_t count, runs;
    } cases[] = {
        { { "a" }, 1, 1 },
        { { "a", "./b//" }, 2, 2 },
        { { "/" }, 0, 0 },
        { { "a", "b/events.out.tfevents.2.gz" }, 2, 2 },
        { { "events.out.tfevents.9" }, 1, 1 },
        { { "none", "nothing", "a" }, 3, 1 },
        { { "a", "ab" }, 2, 1 },
        { { "." }, 0, 0 },
    };
    int rc = OK;

    for (size_t i = 0; i < sizeof cases / sizeof *cases && rc == OK; i++) {
        struct log_input input = { 0 };
        struct log_directory d;
        char paths[3][32] = { "" }, *list[3];

        for (size_t k = 0; k < 3; k++)
            list[k] = strcpy(paths[k], cases[i].paths[k] ? cases[i].paths[k] : "");
        rc = log_directory_list_there(&d, &input, list, cases[i].count, e);
        if (rc == OK && !fail_at && !call_fail_at && d.count < cases[i].runs)
            fail_msg("%s: %zu runs", list[0], d.count);
        log_directory_release(&d);
        log_input_release(&input);
    }
    return rc;
}

static int list_paths(struct error *e)
{
    const int rc = list_with(NULL, 0, e);

    return rc == OK ? list_with(NULL, 1, e) : rc;
}

static int list_cached(struct error *e)
{
    struct directory_cache cache = { 0 };
    int rc = OK;

    for (int i = 0; i < 2 && rc == OK; i++) {
        directory_cache_begin(&cache);
        rc = list_with(&cache, 0, e);
        directory_cache_is_same(&cache);
    }
    directory_cache_release(&cache);
    return rc;
}

static void test_listing(void **state)
{
    char here[PATH_MAX];

    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(directory), 0);
    put("events.out.tfevents.9", plain.data, plain.length);
    with_each_failure(list_here);
    assert_int_equal(unlink("events.out.tfevents.9"), 0);
    assert_int_equal(chdir(here), 0);
    with_each_failure(list_paths);
    with_each_failure(list_cached);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int of_public(int rc, const struct eventlog_error *from, struct error *e)
{
    return rc < 0 ? error_set(e, from->code, "%s", from->message) : rc;
}

static int read_points(struct error *e)
{
    static const struct eventlog_reader_options later = { .has_first_step = 1, .first_step = 2 };
    struct eventlog_error own;
    size_t count;
    int rc = OK;

    for (int view = EVENTLOG_VIEW_ALL; view <= EVENTLOG_VIEW_SESSION && rc == OK; view++) {
        struct eventlog_points *p;

        rc = eventlog_points_read(&p, in_directory("a"), (enum eventlog_view)view, view ? &later : NULL, &own);
        if (rc == OK) {
            assert_null(eventlog_points_of(p, 1000, &count));
            assert_false(eventlog_points_find(p, "a", "none", &count));
        }
        eventlog_points_free(p);
    }
    return of_public(rc, &own, e);
}

/* To the end, whatever fails on the way; the first failure. */
static int read_rounds(struct error *e)
{
    static const char *const all[] = { "*", "none" };
    const struct eventlog_reader_options options = { .runs = all, .run_count = 2, .tags = all, .tag_count = 2 };
    struct eventlog_error own, later;
    struct eventlog_reader *r;
    int rc = eventlog_reader_open(&r, in_directory("b"), &options, &own), failed = OK;

    if (rc != OK)
        return of_public(rc, &own, e);
    eventlog_reader_descriptor(r);
    for (int round = 0, i = 0; round < 2 && i < ROUNDS_MOST; round += rc == EVENTLOG_READ_END, i++) {
        const struct eventlog_bucket *buckets;
        struct eventlog_tensor tensor;
        struct eventlog_blobs blobs;
        size_t count;

        if ((rc = eventlog_reader_next(r, failed < 0 ? &later : &own)) < 0 && failed == OK)
            failed = rc;
        do { /* also before the first value, and of what is of another kind */
            eventlog_reader_tensor(r, &tensor, NULL);
            eventlog_reader_histogram(r, &buckets, &count, NULL);
            eventlog_reader_blobs(r, &blobs, NULL);
        } while (rc == EVENTLOG_READ_EVENT && eventlog_reader_value(r));
    }
    eventlog_reader_wait(r, 0, NULL);
    eventlog_reader_close(r);
    return of_public(failed, &own, e);
}

static int every_run(void *context, const char *run)
{
    (void)context, (void)run;
    return 1;
}

static int follow(struct error *e)
{
    struct log_input input = { 0 };
    struct log_follow f = { .input = &input, .wanted = every_run, .forgets = 1, .whole_runs = 1, .open_most = 2 };
    struct log_directory d;
    struct event_damage damage;
    struct event event;
    char *path = directory;
    int rc = OK;

    for (int round = 0; round < 3 && rc == OK; round++) {
        if ((rc = log_directory_list(&d, &input, &path, 1, e)) == OK && (rc = log_follow_list(&f, &d, e)) == OK)
            while ((rc = log_follow_next(&f, &event, &damage, e)) > 0)
                ;
        log_directory_release(&d);
    }
    log_follow_release(&f);
    log_input_release(&input);
    return rc;
}

/* To the end, at rest, and on from there. */
static int rest(struct error *e)
{
    struct log_input input = { 0 };
    struct event_reader *r;
    struct event_damage damage;
    struct event event;
    int rc = event_reader_open(&r, &input, in_directory("a/events.out.tfevents.1"), e);

    if (rc != OK)
        return rc;
    assert_int_equal(event_reader_left(r), 0);
    while ((rc = event_reader_next(r, &event, &damage, e)) > 0)
        ;
    event_reader_left(r);
    if (rc == OK) {
        event_reader_rest(r);
        event_reader_left(r);
        rc = event_reader_next(r, &event, &damage, e);
    }
    event_reader_close(r);
    log_input_release(&input);
    return rc;
}

static int take_none(void *context, const struct usual_event *event)
{
    (void)event;
    ++*(int *)context;
    return 0;
}

/* What a reader may be asked in any state. */
static void test_states(void **state)
{
    static const char *const names[] = { "a/events.out.tfevents.1", "b/events.out.tfevents.2.gz" };
    struct log_input input = { 0 };
    struct event_damage damage;
    struct event event;
    int usual = 0;

    (void)state;
    for (int i = 0; i < 4; i++) {
        const int packed = i % 2, records_only = i >= 2;
        struct event_reader *r;

        assert_int_equal(event_reader_open(&r, &input, in_directory(names[packed]), NULL), OK);
        if (records_only)
            event_reader_records_only(r);
        event_reader_take_usual(r, take_none, &usual);
        assert_int_equal(event_reader_check(r, NULL), OK);
        assert_int_equal(event_reader_check(r, NULL), OK);
        assert_int_equal(event_reader_next(r, &event, &damage, NULL), EVENTLOG_READ_EVENT);
        assert_int_equal(event_reader_left(r) > 0, !packed);
        while (event_reader_next(r, &event, &damage, NULL) > 0)
            event_reader_take_usual(r, take_none, &usual);
        assert_int_equal(event_reader_left(r), 0);
        usual = 0;
        event_reader_take_usual(r, take_none, &usual);
        assert_int_equal(usual, 0);
        event_reader_close(r);
    }
    log_input_release(&input);
}

static void test_reading(void **state)
{
    (void)state;
    with_each_failure(rest);
    with_each_failure(read_points);
    with_each_failure(read_rounds);
    with_each_failure(follow);
}

/* ---- series ------------------------------------------------------------------------------------------------------ */

static int pass_other(void *context, const struct scalar_series *s, const struct event *event,
                      const struct event_value *value, struct error *e)
{
    (void)context, (void)s, (void)event, (void)value, (void)e;
    return OK;
}

/* One file into runs of every kind. */
static int read_series(struct error *e)
{
    struct log_input input = { 0 };
    int rc = OK;

    for (int view = 0; view < 6 && rc >= OK; view++) {
        struct event_reader *reader;
        struct event_damage damage;
        struct scalar_run run;
        struct event event;

        scalar_run_init(&run, (enum eventlog_view)(view % 3), view / 3, 1);
        run.other = pass_other;
        if ((rc = event_reader_open(&reader, &input, in_directory("a/events.out.tfevents.2"), e)) == OK) {
            scalar_run_begin_file(&run);
            while ((rc = event_reader_next(reader, &event, &damage, e)) > 0)
                if ((rc != EVENTLOG_READ_DAMAGE || scalar_run_damage(&run, &damage, &event)) &&
                    (rc = scalar_run_event(&run, &event, e)) != OK)
                    break;
            event_reader_close(reader);
        }
        if (rc >= OK)
            scalar_run_finish(&run);
        scalar_run_release(&run);
    }
    log_input_release(&input);
    return rc;
}

/* What is larger is read by several threads. */
static int read_pieces(struct error *e)
{
    struct log_input input = { 0 };
    struct event_reader *reader;
    struct event_damage damage;
    struct scalar_run run;
    struct event event;
    int rc;

    scalar_run_init(&run, EVENTLOG_VIEW_ALL, 0, 1);
    if ((rc = event_reader_open(&reader, &input, in_directory("a/events.out.tfevents.1"), e)) == OK) {
        for (int i = 0; i < 3 && rc >= OK; i++)
            if ((rc = event_reader_next(reader, &event, &damage, e)) == EVENTLOG_READ_EVENT)
                rc = scalar_run_event(&run, &event, e);
        if (rc == OK)
            rc = run_pieces_read(reader, &run, 200, NULL, NULL, e);
        event_reader_close(reader);
    }
    scalar_run_release(&run);
    log_input_release(&input);
    return rc;
}

static void test_series(void **state)
{
    (void)state;
    with_each_failure(read_series);
    with_each_failure(read_pieces);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static int check_file(struct log_check *c, struct log_input *input, const char *name, struct error *e)
{
    struct record_file f;
    struct record r;
    int rc = log_check_file(c, file_base_name(name), e), found = RECORD_MORE;

    if (rc != OK)
        return rc;
    if ((rc = log_input_open(input, in_directory(name), &f, e)) == OK) {
        while (rc == OK && (found = record_file_next(&f, &r, e)) != RECORD_MORE)
            rc = found == RECORD_DATA     ? log_check_record(c, r.offset, r.data, r.length, e)
                 : found == RECORD_DAMAGE ? log_check_damage(c, &r, e)
                                          : found;
        if (rc == OK)
            rc = log_check_end(c, f.parser.offset, f.size, e);
    }
    record_file_close(&f);
    return rc;
}

static int check(struct error *e)
{
    static const char *const names[] = { "a/events.out.tfevents.2", "b/events.out.tfevents.1.zst",
                                         "b/events.out.tfevents.2.gz", "logs.tar/x/events.out.tfevents.1" };
    struct log_input input = { 0 };
    const struct log_archive *archive;
    struct log_check *c;
    size_t count;
    int rc = log_check_new(&c, ".run", e);

    if (rc == OK && (rc = log_input_archive(&input, in_directory("logs.tar"), &archive, e)) == 1)
        rc = OK;

    for (size_t i = 0; i < sizeof names / sizeof *names && rc == OK; i++)
        rc = check_file(c, &input, names[i], e);
    if (rc == OK)
        rc = log_check_finish(c, e);
    if (rc == OK)
        log_check_findings(c, &count);
    log_check_free(c);
    log_input_release(&input);
    return rc;
}

static int look(struct error *e)
{
    struct log_input input = { 0 };
    const struct log_archive *archive;
    struct record_file f;
    uint64_t place;
    int fd, rc;

    rc = log_input_archive(&input, in_directory("logs.tar"), &archive, e);
    log_input_bytes(&input, in_directory("logs.tar/x/events.out.tfevents.1"));
    log_input_packed(&input, in_directory("logs.tar"));
    log_input_release(&input);
    if (rc < 0)
        return rc;
    if ((fd = open(in_directory("b/events.out.tfevents.2.gz"), O_RDONLY)) < 0)
        return error_system(e, "open");
    log_input_kind_of_descriptor(fd);
    close(fd);
    if ((rc = record_file_open(&f, in_directory("a/events.out.tfevents.1"), e)) == OK) {
        record_file_holds(&f, 0);
        if (record_file_find(&f, 10, f.size, &place) < 0)
            rc = error_system(e, "find");
        record_file_check(&f, NULL);
    }
    record_file_close(&f);
    return rc;
}

static void test_checking(void **state)
{
    (void)state;
    with_each_failure(check);
    with_each_failure(look);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listing), cmocka_unit_test(test_states),   cmocka_unit_test(test_reading),
        cmocka_unit_test(test_series),  cmocka_unit_test(test_checking),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
