/* scan_runs.h: runs come in order, none behind one that failed, and what was read of any run is released. */
#include "eventlog/tool/scan_runs.h"

#include "eventlog/eventlog.h"
#include "tests/check.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 40, NONE = RUNS };

struct one {
    char *own; /* the name of the run */
};

struct watched {
    atomic_size_t kept, most, released, records;
    size_t read_fails, take_fails; /* at this run; NONE */
    size_t taken;
    int seen_at; /* unless 0: run r10 has been read when something can be read there */
};

static char directory[] = "/tmp/test_scan_runs_XXXXXX";

static size_t number_of(const struct log_run *run)
{
    return (size_t)atoi(run->name + 1);
}

static int count_record(void *context, const struct event *event, struct error *e)
{
    struct watched *w = context;

    (void)event;
    (void)e;
    atomic_fetch_add(&w->records, 1);
    return OK;
}

static int read_one(void *context, struct scan *s, const struct log_run *run, void *one, struct error *e)
{
    struct watched *w = context;
    const struct scan_sink sink = { .context = w, .event = count_record };
    struct one *o = one;
    size_t now, most = atomic_load(&w->most);

    assert_null(o->own); /* all zero */
    o->own = strdup(run->name);
    now = atomic_fetch_add(&w->kept, 1) + 1;
    while (most < now && !atomic_compare_exchange_weak(&w->most, &most, now))
        continue;
    if (w->seen_at && number_of(run) == 10)
        assert_int_equal(poll(&(struct pollfd){ .fd = w->seen_at, .events = POLLIN }, 1, 60000), 1);
    log_line(&s->log, "%s", run->name);
    if (number_of(run) == w->read_fails)
        return error_set(e, ERR_NOMEM, "read %s", run->name);
    return scan_run(s, run, &sink, e);
}

static int take_one(void *context, const struct log_run *run, void *one, struct error *e)
{
    struct watched *w = context;

    assert_string_equal(((struct one *)one)->own, run->name);
    assert_int_equal(number_of(run), w->taken + 10);
    if (number_of(run) == w->take_fails)
        return error_set(e, ERR_IO, "take %s", run->name);
    w->taken++;
    return OK;
}

static void release_one(void *context, void *one)
{
    struct watched *w = context;

    assert_non_null(((struct one *)one)->own);
    free(((struct one *)one)->own);
    atomic_fetch_sub(&w->kept, 1);
    atomic_fetch_add(&w->released, 1);
}

/* Reads the runs; *said: how many lines were written. */
static int read_all(struct watched *w, int one_by_one, uint64_t bytes_most, size_t *said, struct error *e)
{
    const struct scan_runs calls = { sizeof(struct one), read_one, take_one, release_one, w, one_by_one, bytes_most };
    char *paths[] = { directory }, text[4096];
    struct scan s = { .failed = 0 };
    int ends[2], rc;
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    log_init(&s.log, NULL, ends[1]);
    assert_int_equal(scan_open(&s, paths, 1), EXIT_DONE);
    rc = scan_runs(&s, &calls, e);
    log_line(&s.log, "end");
    assert_true((n = read(ends[0], text, sizeof text)) > 0);
    *said = 0;
    for (ssize_t i = 0; i < n; i++)
        *said += text[i] == '\n';
    (*said)--;
    assert_int_equal(atomic_load(&w->kept), 0);
    assert_int_equal(s.damaged, 0);
    scan_close(&s);
    close(ends[0]);
    close(ends[1]);
    return rc;
}

static void test_all(void **state)
{
    (void)state;
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        struct watched w = { .read_fails = NONE + 10, .take_fails = NONE + 10 };
        struct error e = { 0 };
        size_t said;

        assert_int_equal(read_all(&w, one_by_one, 0, &said, &e), OK);
        assert_int_equal(w.taken, RUNS);
        assert_int_equal(said, RUNS);
        assert_int_equal(atomic_load(&w.released), RUNS);
        assert_int_equal(atomic_load(&w.records), 2 * RUNS); /* with the file version */
        assert_true(!one_by_one || atomic_load(&w.most) == 1);
    }
}

/* No two runs fit: each is taken before the next is read. */
static void test_bytes_most(void **state)
{
    struct watched w = { .read_fails = NONE + 10, .take_fails = NONE + 10 };
    struct error e = { 0 };
    size_t said;
    (void)state;

    assert_int_equal(read_all(&w, 0, 1, &said, &e), OK);
    assert_int_equal(w.taken, RUNS);
    assert_int_equal(atomic_load(&w.most), 1);
}

static void test_failure(void **state)
{
    (void)state;
    for (size_t fails = 10; fails < 10 + RUNS; fails++)
        for (int reading = 0; reading < 2; reading++) {
            struct watched w = { .read_fails = reading ? fails : NONE + 10, .take_fails = reading ? NONE + 10 : fails };
            struct error e = { 0 };
            char text[20];
            size_t said;

            snprintf(text, sizeof text, "%s r%zu", reading ? "read" : "take", fails);
            assert_int_equal(read_all(&w, 0, 0, &said, &e), reading ? ERR_NOMEM : ERR_IO);
            assert_string_equal(e.message, text);
            assert_int_equal(w.taken, fails - 10);
            assert_int_equal(said, fails - 9); /* also of the one that failed */
        }
}

/* While the first run is being read, progress of all is drawn, and erased before its message. */
static void test_progress(void **state)
{
    struct watched w = { .read_fails = NONE + 10, .take_fails = NONE + 10 };
    const struct scan_runs calls = { sizeof(struct one), read_one, take_one, release_one, &w, 0, 0 };
    char *paths[] = { directory }, text[8192];
    struct scan s = { .failed = 0 };
    struct error e = { 0 };
    const char *drawn;
    cpu_set_t cores;
    int ends[2];
    ssize_t n;
    (void)state;

    assert_int_equal(sched_getaffinity(0, sizeof cores, &cores), 0);
    if (CPU_COUNT(&cores) < 2) /* then they are read one after the other */
        return;
    assert_int_equal(pipe(ends), 0);
    log_init(&s.log, NULL, ends[1]);
    s.log.terminal = 1;
    s.log.status_next = 0;
    w.seen_at = ends[0];
    assert_int_equal(scan_open(&s, paths, 1), EXIT_DONE);
    assert_int_equal(scan_runs(&s, &calls, &e), OK);
    assert_true((n = read(ends[0], text, sizeof text - 1)) > 0);
    text[n] = '\0';
    assert_int_equal(strncmp(text, "\r\033[K", 4), 0);
    drawn = strstr(text, "% of ");
    assert_non_null(drawn);
    assert_non_null(strstr(drawn, " in 40 runs: r10\r\033[K"));
    assert_non_null(strstr(drawn, "\r\033[Kr10\n"));
    assert_true(text[n - 1] == 'K' || text[n - 1] == '\n'); /* no progress line stays */
    scan_close(&s);
    close(ends[0]);
    close(ends[1]);
}

static int make_log(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(directory));
    for (int i = 10; i < 10 + RUNS; i++) {
        struct eventlog_writer *w;
        char run[100];

        snprintf(run, sizeof run, "%s/r%d", directory, i);
        assert_int_equal(eventlog_writer_open(&w, run, NULL, NULL), 0);
        assert_int_equal(eventlog_writer_scalar(w, "a", 1, 1, 0.5f, NULL), 0);
        assert_int_equal(eventlog_writer_close(w, NULL), 0);
    }
    return 0;
}

static int remove_log(void **state)
{
    char command[100];
    (void)state;

    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all), cmocka_unit_test(test_bytes_most),
                                        cmocka_unit_test(test_failure), cmocka_unit_test(test_progress) };

    return cmocka_run_group_tests(tests, make_log, remove_log);
}
