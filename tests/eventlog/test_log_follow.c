/* Many files that grow: all are read, the newest stay open and are read to their end wherever they go, the others rest. */
#include "eventlog/read/log_follow.h"

#include "eventlog/format/event_encode.h"
#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 20, OPEN = 4 };

static char directory[64];
static struct log_input input;

static int setup(void **state)
{
    struct rlimit limit;
    (void)state;

    strcpy(directory, "/tmp/test_log_follow.XXXXXX");
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -1;
    limit.rlim_cur = OPEN * 16;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 || !mkdtemp(directory) ? -1 : 0;
}

static int empty(void **state)
{
    (void)state;
    return empty_tree(directory);
}

static int teardown(void **state)
{
    return empty(state) || rmdir(directory);
}

static const char *in(const char *name)
{
    static char paths[4][128];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", directory, name);
    return paths[turn];
}

static const char *file(int number)
{
    char name[64];

    snprintf(name, sizeof name, "log/r%02d/1.tfevents", number);
    return in(name);
}

/* One event more, of that step, in a file that is said to have changed then. */
static void append(const char *path, int64_t step, time_t changed)
{
    const struct timespec times[2] = { { changed, 0 }, { changed, 0 } };
    uint8_t bytes[200];
    size_t n = event_encode_scalar(bytes, "t", 1, step, 5, 1);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(futimens(fd, times), 0);
    assert_int_equal(close(fd), 0);
}

static int all(void *context, const char *run)
{
    (void)context;
    (void)run;
    return 1;
}

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int count = -1; /* this one */

    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));)
        count += *entry->d_name != '.';
    closedir(d);
    return count;
}

/* A listing and a round: "run:step " an event, "R(run) " what begins again. */
static void expect(struct log_follow *f, const char *wanted)
{
    char path[128], found[1000] = "";
    char *const paths[] = { path };
    struct event_damage damage;
    struct log_directory d;
    struct error e = { 0 };
    struct event event;
    size_t n = 0;
    int rc;

    strcpy(path, in("log"));
    if (access(path, F_OK) == 0) {
        assert_int_equal(log_directory_list(&d, &input, paths, 1, &e), OK);
        assert_int_equal(log_follow_list(f, &d, &e), OK);
        log_directory_release(&d);
    }
    while ((rc = log_follow_next(f, &event, &damage, &e)) != LOG_FOLLOW_END) {
        const char *run = f->runs[f->at_run].name;

        if (rc < 0)
            fail_msg("%s", e.message);
        if (rc == EVENTLOG_READ_EVENT)
            n += (size_t)snprintf(found + n, sizeof found - n, "%s:%lld ", run, (long long)event.step);
        else if (rc == EVENTLOG_READ_RESTARTED)
            n += (size_t)snprintf(found + n, sizeof found - n, "R(%s) ", run);
    }
    assert_string_equal(found, wanted);
}

static void make_log(void)
{
    char name[32];

    assert_int_equal(mkdir(in("log"), 0777), 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "log/r%02d", i);
        assert_int_equal(mkdir(in(name), 0777), 0);
        append(file(i), 1, 1000 + i * 7 % FILES); /* r17 is the newest, then r14, r11, r08 */
    }
}

static void first_round(struct log_follow *f)
{
    char first[FILES * 8] = "";

    for (int i = 0; i < FILES; i++)
        sprintf(first + strlen(first), "r%02d:1 ", i);
    expect(f, first);
}

static void test_newest_stay_open(void **state)
{
    struct log_follow f = { .input = &input, .wanted = all };
    int before = descriptors();
    (void)state;

    make_log();
    first_round(&f);
    assert_int_equal(descriptors(), before + OPEN);
    /* All grow, in every round; no more are open. */
    for (int step = 2; step < 5; step++) {
        char grown[FILES * 8] = "";

        for (int i = 0; i < FILES; i++) {
            append(file(i), step, 1000 * step + i * 7 % FILES);
            sprintf(grown + strlen(grown), "r%02d:%d ", i, step);
        }
        expect(&f, grown);
        expect(&f, "");
        assert_int_equal(descriptors(), before + OPEN);
    }
    /* Renamed out of the log: of the newest, what is still written is read; of another, once it is back. */
    assert_int_equal(rename(file(17), in("new")), 0);
    assert_int_equal(rename(file(8), in("fourth")), 0);
    assert_int_equal(rename(file(5), in("old")), 0);
    append(in("new"), 5, 6000);
    append(in("fourth"), 5, 6000);
    append(in("old"), 5, 6000);
    expect(&f, "r08:5 r17:5 ");
    assert_int_equal(rename(in("old"), file(5)), 0);
    expect(&f, "r05:5 ");
    /* The whole log. */
    assert_int_equal(rename(in("log"), in("away")), 0);
    append(in("away/r05/1.tfevents"), 6, 7000);
    append(in("away/r14/1.tfevents"), 6, 4019);
    expect(&f, "r05:6 r14:6 ");
    assert_int_equal(rename(in("away"), in("log")), 0);
    append(file(2), 6, 7001);
    expect(&f, "r02:6 ");
    /* That one rested, and is among the newest now: it is read on without a name. */
    assert_int_equal(rename(file(2), in("old")), 0);
    append(in("old"), 7, 7002);
    expect(&f, "r02:7 ");
    assert_int_equal(descriptors(), before + OPEN);
    log_follow_release(&f);
    assert_int_equal(descriptors(), before);
}

/* What begins again leaves no reader behind in the list of those that are open. */
static void test_runs_begin_again(void **state)
{
    struct log_follow f = { .input = &input, .wanted = all, .whole_runs = 1, .forgets = 1 };
    int before = descriptors();
    (void)state;

    make_log();
    first_round(&f);
    append(in("log/r17/2.tfevents"), 2, 2000);
    expect(&f, "r17:2 ");
    append(in("new"), 7, 2001);
    append(in("new"), 8, 2001);
    assert_int_equal(rename(in("new"), file(17)), 0);
    expect(&f, "R(r17) r17:7 r17:8 r17:2 ");
    assert_int_equal(descriptors(), before + OPEN);
    assert_int_equal(unlink(file(14)), 0);
    assert_int_equal(rename(in("log/r17"), in("away")), 0);
    append(in("away/2.tfevents"), 3, 3000);
    expect(&f, "R(r14) R(r17) ");
    assert_int_equal(descriptors(), before + OPEN - 3);
    assert_int_equal(rename(in("away"), in("log/r17")), 0);
    append(file(14), 4, 3000);
    expect(&f, "r14:4 r17:7 r17:8 r17:2 r17:3 ");
    assert_int_equal(descriptors(), before + OPEN);
    log_follow_release(&f);
    assert_int_equal(descriptors(), before);
}

/* What a thread does with every other run, first or second: reads it three times, of which the third begins again. */
struct reading {
    struct log_follow *follow;
    size_t first;
    int events;
};

static void *read_every_other(void *context)
{
    struct reading *r = context;
    struct log_input own = { 0 };
    struct event_damage damage;
    struct event event;
    int rc;

    for (int round = 0; round < 3; round++)
        for (size_t i = r->first; i < r->follow->count; i += 2) {
            if (round == 2)
                log_follow_again(&r->follow->runs[i]);
            while ((rc = log_follow_next_of(r->follow, &r->follow->runs[i], &own, &event, &damage, NULL)) > 0)
                r->events += rc == EVENTLOG_READ_EVENT;
        }
    log_input_release(&own);
    return NULL;
}

static void test_threads_read_runs_apart(void **state)
{
    struct log_follow f = { .input = &input, .wanted = all };
    struct reading readings[] = { { &f, 0, 0 }, { &f, 1, 0 } };
    pthread_t threads[2];
    struct log_directory d;
    char path[128];
    char *const paths[] = { path };
    int before = descriptors();

    (void)state;
    make_log();
    strcpy(path, in("log"));
    assert_int_equal(log_directory_list(&d, &input, paths, 1, NULL), OK);
    assert_int_equal(log_follow_list(&f, &d, NULL), OK);
    log_directory_release(&d);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_every_other, &readings[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(readings[0].events, FILES); /* each file has one, which is read in the first round and the third */
    assert_int_equal(readings[1].events, FILES);
    assert_in_range(descriptors() - before, 1, OPEN);
    log_follow_release(&f);
    assert_int_equal(descriptors(), before);
}

/* `count` events from step `first` on, in place of what the file has: more bytes than are read at once. */
static void write_long(const char *path, int first, int count)
{
    uint8_t *bytes = malloc((size_t)count * 200);
    FILE *f = fopen(path, "w");
    size_t n = 0;

    assert_non_null(bytes);
    assert_non_null(f);
    for (int i = 0; i < count; i++)
        n += event_encode_scalar(bytes + n, "t", 1, first + i, 5, 1);
    assert_true(n > 300 * 1024);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(bytes);
}

/* Reads a run of three files once, the last of which is gone. While the second is read, it is written anew, shorter
 * than before, `times` times. */
static int read_once(int times, int *events, struct error *e)
{
    char *files[] = { strdup(file(0)), strdup(in("log/r00/2.tfevents")), strdup(in("log/r00/3.tfevents")) };
    char name[] = "r00";
    const struct log_run listed = { .name = name, .files = files, .file_count = 3 };
    const int before = descriptors();
    int found, rc = OK, written = 0;
    struct event_damage damage;
    struct event_reader *reader;
    struct log_follow_run run;
    struct event event;

    write_long(files[1], 0, 14000);
    *events = 0;
    log_follow_listed(&run, &listed);
    while (rc == OK && (found = log_follow_begin_file(NULL, &run, &input, &reader, e)) != LOG_FOLLOW_END) {
        if (found == LOG_FOLLOW_FILE) {
            assert_int_equal(descriptors(), before + 1);
            while ((found = event_reader_next(reader, &event, &damage, e)) == EVENTLOG_READ_EVENT ||
                   found == EVENTLOG_READ_DAMAGE) {
                if (found == EVENTLOG_READ_DAMAGE)
                    continue;
                if (++*events == 2 && run.at_file == 1 && written < times) {
                    written++;
                    write_long(files[1], written, 14000 - 500 * written);
                }
            }
            found = log_follow_end_file(NULL, &run, found, e);
        }
        if (found == EVENTLOG_READ_RESTARTED)
            *events = 0;
        else if (found < 0 && run.at_file == 2)
            assert_int_equal(e->system, ENOENT);
        else
            rc = found < 0 ? found : OK;
        assert_int_equal(descriptors(), before);
    }
    log_follow_forget(NULL, &run);
    for (int i = 0; i < 3; i++)
        free(files[i]);
    return rc;
}

static void test_read_once(void **state)
{
    struct error e = { 0 };
    int events;
    (void)state;

    make_log();
    for (int times = 0; times <= LOG_FOLLOW_RESTARTS_MOST; times++) {
        assert_int_equal(read_once(times, &events, &e), OK);
        assert_int_equal(events, 1 + 14000 - 500 * times);
    }
    assert_int_equal(read_once(LOG_FOLLOW_RESTARTS_MOST + 1, &events, &e), ERR_IO);
    assert_non_null(strstr(e.message, "again and again"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_newest_stay_open, empty),
        cmocka_unit_test_teardown(test_threads_read_runs_apart, empty),
        cmocka_unit_test_teardown(test_runs_begin_again, empty),
        cmocka_unit_test_teardown(test_read_once, empty),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
