/* Requests of several threads are answered from whole states while files grow, are damaged, replaced and removed.
 * What a sanitizer of threads sees of the loader and the answers, it sees here. */
#include "eventlog/server/data_answer.h"
#include "eventlog/server/loader.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/record_frame.h"
#include "eventlog/format/wire.h"
#include "eventlog/server/blob_key.h"
#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 6, TURNS = 60, CHANGES_A_TURN = 5, ASKING = 3, DEADLINE = 600 };

static char home[] = "/tmp/test_answers_while_loading.XXXXXX";
static struct data_source source;
static int ended; /* atomic */

enum { PATH_ROOM = 128 };

static void path_of_run(char out[PATH_ROOM], int run, const char *file)
{
    snprintf(out, PATH_ROOM, "%s/log/r%d%s%s", home, run, *file ? "/" : "", file);
}

/* Appends an event with a number and an image. */
static void put_event(FILE *file, int64_t step)
{
    static const uint8_t number[] = { 0x0a, 1, 'a', 0x15, 0, 0, 0x80, 0x3f },
                         image[] = { 0x0a, 1, 'i', 0x22, 8, 0x08, 2, 0x10, 2, 0x22, 2, 'x', 'y' };
    uint8_t record[256];
    struct wire w = WIRE_EMPTY;
    size_t summary;

    wire_number_always(&w, 1, 1e9 + (double)step);
    wire_integer(&w, 2, step);
    summary = wire_begin(&w, 5);
    wire_bytes(&w, 1, number, sizeof number);
    wire_bytes(&w, 1, image, sizeof image);
    wire_end(&w, summary);
    assert_int_equal(wire_check(&w, "event", NULL), OK);
    memcpy(record + RECORD_HEADER, w.bytes.data, w.bytes.length);
    record_seal(record, w.bytes.length);
    assert_int_equal(fwrite(record, w.bytes.length + RECORD_OVERHEAD, 1, file), 1);
    wire_release(&w);
}

static void put_events(const char *path, const char *mode, int64_t from, int64_t to)
{
    FILE *file = fopen(path, mode);

    assert_non_null(file);
    while (from < to)
        put_event(file, from++);
    assert_int_equal(fclose(file), 0);
}

static void change(int number)
{
    static int64_t steps[RUNS];
    const int run = number % RUNS;
    char path[PATH_ROOM], other[PATH_ROOM];
    FILE *file;

    path_of_run(path, run, "");
    mkdir(path, 0777);
    path_of_run(path, run, "events.out.tfevents.1");
    switch (number % 7) {
    case 0: /* replaced */
        path_of_run(other, run, "new");
        put_events(other, "wb", 0, 20);
        assert_int_equal(rename(other, path), 0);
        break;
    case 1: /* gone */
        path_of_run(path, run, "");
        remove_tree(path);
        steps[run] = 0;
        break;
    case 2: /* damaged */
        assert_non_null(file = fopen(path, "ab"));
        fputs("no record of any kind", file);
        fclose(file);
        break;
    default: put_events(path, "ab", steps[run], steps[run] + 30); steps[run] += 30;
    }
}

/* The answer, which must come; release it. */
static enum data_code ask(struct data_request *r, struct buffer *out)
{
    const struct data_patience patience = { 0, NULL };
    char message[DATA_ANSWER_MESSAGE];

    *out = (struct buffer)BUFFER_EMPTY;
    return data_answer(&source, r, &patience, out, message);
}

static void *ask_for_all(void *context)
{
    const struct span plugins[] = { { (const uint8_t *)"scalars", 7 }, { (const uint8_t *)"images", 6 } };
    struct blob_key key = { .run = { (const uint8_t *)"r0", 2 }, .tag = { (const uint8_t *)"i", 1 }, .index = 2 };
    size_t *answers = context;
    struct buffer text = BUFFER_EMPTY, out;

    blob_key_append(&text, &key);
    while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
        struct data_request r = { .has_limit = 1 };
        enum data_code code;

        for (r.limit = 1; r.limit <= 1000; r.limit *= 10)
            for (int m = DATA_LIST_PLUGINS; m < DATA_READ_BLOB; m++)
                for (int p = 0; p < 2; p++) {
                    r.method = (enum data_method)m;
                    r.plugin = plugins[p];
                    if (ask(&r, &out) != DATA_OK)
                        abort();
                    buffer_release(&out);
                    ++*answers;
                }
        r.method = DATA_READ_BLOB;
        r.blob_key = (struct span){ (const uint8_t *)text.data, text.length };
        if ((code = ask(&r, &out)) != DATA_OK && code != DATA_NOT_FOUND)
            abort();
        buffer_release(&out);
    }
    buffer_release(&text);
    return NULL;
}

static int listed(const char *run)
{
    struct data_request r = { .method = DATA_LIST_RUNS };
    struct buffer out;
    int found;

    assert_int_equal(ask(&r, &out), DATA_OK);
    found = out.length && memmem(out.data, out.length, run, strlen(run)) != NULL;
    buffer_release(&out);
    return found;
}

/* Until a number of rounds is over, or with a run: until that is shown. */
static void wait_for_rounds(struct loader *l, uint64_t rounds, const char *run)
{
    const double end = clock_monotonic() + (double)DEADLINE;

    while (run ? !listed(run) : loader_progress(l).rounds < rounds) {
        assert_true(clock_monotonic() < end);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}

static void said(void *context, enum loader_level level, const char *text)
{
    (void)text;
    *(size_t *)context += level == LOADER_WARNING;
}

static void test_answers_while_loading(void **state)
{
    char log[64], path[PATH_ROOM];
    const struct log_root root = { log, NULL };
    struct snapshot snapshot;
    size_t warnings = 0, answers[ASKING] = { 0 };
    struct loader_options options = { .roots = &root,
                                      .root_count = 1,
                                      .merge = 1,
                                      .notify = 1,
                                      .report = 1,
                                      .reload = 1,
                                      .threads = 3,
                                      .message = said,
                                      .context = &warnings };
    pthread_t threads[ASKING];
    struct loader *l;

    (void)state;
    assert_non_null(mkdtemp(home));
    snprintf(log, sizeof log, "%s/log", home);
    assert_int_equal(mkdir(log, 0777), 0);
    assert_int_equal(snapshot_init(&snapshot), OK);
    source = (struct data_source){ .snapshot = &snapshot, .location = log, .values = value_source_new() };
    assert_non_null(source.values);
    assert_int_equal(loader_start(&l, &options, &snapshot, NULL), OK);
    for (int i = 0; i < ASKING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_all, &answers[i]), 0);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < CHANGES_A_TURN; i++)
            change(turn * CHANGES_A_TURN + i);
        wait_for_rounds(l, loader_progress(l).rounds + 1, NULL);
    }
    snprintf(path, sizeof path, "%s/last", log);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof path, "%s/last/events.out.tfevents.1", log);
    put_events(path, "wb", 0, 5);
    wait_for_rounds(l, 0, "last");
    __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < ASKING; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(answers[i] > 0);
    }
    assert_true(loader_progress(l).bytes > 0);
    loader_stop(l);
    assert_true(warnings > 0);
    value_source_free(source.values);
    snapshot_release(&snapshot);
    remove_tree(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_answers_while_loading) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
