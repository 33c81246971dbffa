/* The ledger: lines there and back, every cut, every failing write, the best. */
#include "base/file.h"
#include "base/json.h"
#include "evaluator/record/ledger.h"
#include "tests/check.h"
#include "tests/failing_io.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[PATH_MAX], path[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/ledger.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(directory))
        return -1;
    return file_join(path, sizeof path, directory, "evaluations.jsonl", NULL);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(directory);
}

static struct ledger_record record(int64_t step, double precision)
{
    struct ledger_record r = { .checkpoint = { "", step, 1, 0x00f1000000000000u + (uint64_t)step, 0 },
                               .has_metrics = 1,
                               .correct = 3,
                               .examples = 7,
                               .seconds = 0.5,
                               .started = 1.5e9,
                               .lag = 0.001,
                               .wall_time = 1.5e9 + 0.5,
                               .weights = "variables" };

    snprintf(r.checkpoint.name, sizeof r.checkpoint.name, "model.ckpt-%d", (int)step);
    assert_int_equal(evaluation_metrics_add(&r.metrics, "precision", precision, NULL), OK);
    assert_int_equal(evaluation_metrics_add(&r.metrics, "best_precision", precision, NULL), OK);
    assert_int_equal(evaluation_metrics_add(&r.metrics, "loss", 1.25, NULL), OK);
    assert_int_equal(evaluation_metrics_add(&r.metrics, "cross_entropy", 1, NULL), OK);
    return r;
}

static int count(void *context, const struct ledger_record *r, struct error *e)
{
    int64_t *steps = context; /* how many, and their sum */

    (void)e;
    steps[0]++;
    steps[1] += r->checkpoint.step;
    return OK;
}

static void put(const char *bytes, size_t n)
{
    assert_int_equal(file_replace(NULL, path, bytes, n, NULL), OK);
}

static size_t get(char *out, size_t size)
{
    struct buffer b = BUFFER_EMPTY;
    size_t n;

    assert_int_equal(file_read(path, 1 << 20, &b, NULL), OK);
    n = b.length;
    assert_true(n < size);
    memcpy(out, buffer_text(&b), n + 1);
    buffer_release(&b);
    return n;
}

static void test_line(void **state)
{
    struct ledger_record r = record(700, 0.1 + 0.2), back;
    struct buffer line = BUFFER_EMPTY;

    (void)state;
    strcpy(r.checkpoint.name, "odd \"name\"\\ \xc3\xa4\n-700");
    r.metrics.items[2].value = NAN;
    r.metrics.items[3].value = INFINITY;
    r.status = LEDGER_FAILED;
    strcpy(r.reason, "the loss is NaN");
    ledger_format(&r, &line);
    assert_int_equal(line.data[line.length - 1], '\n');
    assert_null(memchr(line.data, '\n', line.length - 1));
    assert_int_equal(ledger_parse(line.data, line.length - 1, &back, NULL), OK);
    assert_int_equal(back.checkpoint.step, 700);
    assert_string_equal(back.checkpoint.name, r.checkpoint.name);
    assert_true(back.checkpoint.digest == r.checkpoint.digest && back.checkpoint.has_digest);
    assert_int_equal(back.status, LEDGER_FAILED);
    assert_int_equal(back.metrics.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(back.metrics.items[i].name, r.metrics.items[i].name);
    assert_true(back.metrics.items[0].value == 0.1 + 0.2 && isnan(evaluation_metrics_value(&back.metrics, "loss")));
    assert_true(isinf(evaluation_metrics_value(&back.metrics, "cross_entropy")));
    assert_true(back.correct == 3 && back.examples == 7 && back.wall_time == r.wall_time && back.lag == r.lag);
    assert_string_equal(back.reason, r.reason);
    assert_string_equal(back.weights, "variables");
    buffer_release(&line);
    ledger_record_release(&back);
    ledger_record_release(&r);

    /* Byte for byte, since others read these lines too. */
    r = record(691, 0.5);
    ledger_format(&r, &line);
    assert_string_equal(
        buffer_text(&line),
        "{\"step\":691,\"checkpoint\":\"model.ckpt-691\",\"digest\":\"00f10000000002b3\",\"status\":\"done\","
        "\"metrics\":{"
        "\"precision\":0.5,\"best_precision\":0.5,\"loss\":1.25,\"cross_entropy\":1.0},\"correct\":3,\"examples\":7,"
        "\"weights\":\"variables\",\"seconds\":0.5,\"started\":1500000000.0,\"lag\":0.001,\"wall_time\":1500000000.5,"
        "\"run\":0}\n");
    buffer_release(&line);
    ledger_record_release(&r);
}

static void test_odd_lines(void **state)
{
    static const char *const odd[] = {
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"step\":1}",
        "{\"step\":1.5,\"checkpoint\":\"a\",\"status\":\"gone\"}",
        "{\"step\":1,\"checkpoint\":\"a\",\"status\":\"done\"}",
        "{\"step\":1,\"checkpoint\":\"a\",\"status\":\"what\"}",
        "{\"step\":1,\"checkpoint\":\"a\",\"digest\":\"00\",\"status\":\"done\"}",
        "{\"step\":1,\"checkpoint\":\"\",\"status\":\"gone\"}",
        "{\"step\":1,\"step\":1}",
        "{\"step\":99999999999999999999,\"checkpoint\":\"a\",\"status\":\"gone\"}",
        "\xff\xfe",
        "{\"step\":1}x",
    };
    struct ledger_record r;
    struct error e = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        assert_int_equal(ledger_parse(odd[i], strlen(odd[i]), &r, &e), ERR_CORRUPT);
        assert_string_not_equal(e.message, "");
    }
    assert_int_equal(ledger_parse("{\"step\":1,\"checkpoint\":\"a\",\"status\":\"gone\",\"new\":[{}]}", 54, &r, NULL),
                     OK);
    ledger_record_release(&r);
}

static void test_best(void **state)
{
    static const struct {
        double precision;
        int64_t best;
    } cases[] = {
        { NAN, -1 }, { 0.25, 1 }, { 0.5, 2 }, { 0.5, 2 }, { 0.4, 2 }, { NAN, 2 }, { 0.75, 6 }, { 0.75, 6 },
    };
    struct ledger *l;

    (void)state;
    unlink(path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ledger_record r = record((int64_t)i, cases[i].precision);
        const struct ledger_summary *s;

        assert_int_equal(ledger_open(&l, NULL, path, -1, NULL, NULL, NULL, NULL), OK); /* a restart each time */
        assert_int_equal(ledger_append(l, &r, NULL), OK);
        ledger_record_release(&r);
        s = ledger_summary(l);
        assert_int_equal(s->has_best, cases[i].best >= 0);
        if (s->has_best)
            assert_int_equal(s->best.step, cases[i].best);
        assert_int_equal(s->done, i + 1);
        ledger_close(l);
    }
    /* A failed one is not the best, whatever its precision; the run's highest step counts it all the same. */
    assert_int_equal(ledger_open(&l, NULL, path, -1, NULL, NULL, NULL, NULL), OK);
    struct ledger_record failed = record(50, 1);

    failed.status = LEDGER_FAILED;
    assert_int_equal(ledger_append(l, &failed, NULL), OK);
    ledger_record_release(&failed);
    assert_int_equal(ledger_summary(l)->best.step, 6);
    assert_int_equal(ledger_summary(l)->last_step, 50);
    ledger_close(l);
}

/* Any metric, either direction, a minimum change; the order of the names is kept. */
static void test_best_rule(void **state)
{
    static const struct {
        struct ledger_best rule;
        double values[6];
        int64_t best;
        size_t since;
    } cases[] = {
        { { "wer", 1, 0 }, { 0.5, 0.25, 0.25, 0.75, NAN, 0.3 }, 1, 4 },
        { { "wer", 0, 0 }, { 0.5, 0.25, 0.25, 0.75, NAN, 0.3 }, 3, 2 },
        { { "wer", 0, 0.25 }, { 0.5, 0.75, 0.76, 0.9, 1.0, 1.2 }, 5, 0 },
        { { "wer", 1, 0.25 }, { 1, 0.8, 0.75, 0.7, 0.6, 0.5 }, 3, 2 },
        { { "other", 0, 0 }, { 1, 2, 3, 4, 5, 6 }, -1, 6 },
    };
    struct ledger *l;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unlink(path);
        for (int64_t k = 0; k < 6; k++) {
            struct ledger_record r = {
                .checkpoint = { "model_1.pt", k, 1, 7, 0 }, .has_metrics = 1, .correct = -1, .examples = -1
            };

            assert_int_equal(ledger_open(&l, NULL, path, -1, &cases[i].rule, NULL, NULL, NULL), OK);
            assert_int_equal(evaluation_metrics_add(&r.metrics, "wer", cases[i].values[k], NULL), OK);
            assert_int_equal(ledger_append(l, &r, NULL), OK);
            ledger_record_release(&r);
            ledger_close(l);
        }
        assert_int_equal(ledger_open(&l, NULL, path, -1, &cases[i].rule, NULL, NULL, NULL), OK);
        assert_int_equal(ledger_summary(l)->has_best, cases[i].best >= 0);
        if (cases[i].best >= 0)
            assert_int_equal(ledger_summary(l)->best.step, cases[i].best);
        assert_int_equal(ledger_summary(l)->since_best, cases[i].since);
        ledger_close(l);
    }
}

/* What is not a number is passed over, a count that is not there stays away. */
static void test_foreign_metrics(void **state)
{
    static const char line[] = "{\"step\":1,\"checkpoint\":\"a\",\"digest\":\"00000000000000ff\",\"status\":\"done\","
                               "\"metrics\":{\"z\":1,\"a b\":\"NaN\",\"list\":[1],\"text\":\"x\",\"m\":\"-Infinity\"}}";
    struct ledger_record r;
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    assert_int_equal(ledger_parse(line, strlen(line), &r, NULL), OK);
    assert_int_equal(r.metrics.count, 3);
    assert_int_equal(r.examples, -1);
    ledger_format(&r, &out);
    assert_non_null(
        strstr(buffer_text(&out), "\"metrics\":{\"z\":1.0,\"a b\":\"NaN\",\"m\":\"-Infinity\"},\"seconds\""));
    buffer_release(&out);
    ledger_record_release(&r);
}

static void test_runs(void **state)
{
    static const struct {
        int64_t step, run, last_run, last_step, highest;
    } cases[] = {
        { 100, 0, 0, 100, 100 }, { 300, 0, 0, 300, 300 }, { 200, 1, 1, 200, 300 },
        { 250, 1, 1, 250, 300 }, { 150, 2, 2, 150, 300 }, { 400, 2, 2, 400, 400 },
    };
    struct ledger *l;

    (void)state;
    unlink(path);
    assert_int_equal(ledger_open(&l, NULL, path, -1, NULL, NULL, NULL, NULL), OK);
    assert_int_equal(ledger_summary(l)->last_step, -1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ledger_record r = record(cases[i].step, 0.5);

        r.run = cases[i].run;
        assert_int_equal(ledger_append(l, &r, NULL), OK);
        ledger_record_release(&r);
        assert_int_equal(ledger_summary(l)->last_run, cases[i].last_run);
        assert_int_equal(ledger_summary(l)->last_step, cases[i].last_step);
        assert_int_equal(ledger_summary(l)->highest_step, cases[i].highest);
    }
    ledger_close(l);
}

/* A ledger of three lines cut at every byte: whole lines are read, the rest is cut off, and what is appended then
 * stands on a line of its own. */
static void test_every_cut(void **state)
{
    char whole[4096], after[4096];
    size_t length, ends[3] = { 0 };
    struct ledger *l;

    (void)state;
    unlink(path);
    assert_int_equal(ledger_open(&l, NULL, path, -1, NULL, NULL, NULL, NULL), OK);
    for (int i = 0; i < 3; i++) {
        struct ledger_record r = record(i + 1, 0.5);

        assert_int_equal(ledger_append(l, &r, NULL), OK);
        ledger_record_release(&r);
        ends[i] = get(whole, sizeof whole);
    }
    ledger_close(l);
    length = ends[2];
    for (size_t cut = 0; cut <= length; cut++) {
        struct ledger_record r = record(9, 0.5);
        size_t lines = (cut >= ends[0]) + (size_t)(cut >= ends[1]) + (cut >= ends[2]);
        size_t kept = lines ? ends[lines - 1] : 0;
        int64_t steps[2] = { 0, 0 };

        put(whole, cut);
        assert_int_equal(ledger_open(&l, NULL, path, -1, NULL, count, steps, NULL), OK);
        assert_int_equal(steps[0], lines);
        assert_int_equal(ledger_summary(l)->cut_bytes, cut - kept);
        assert_int_equal(ledger_append(l, &r, NULL), OK);
        ledger_record_release(&r);
        ledger_close(l);
        get(after, sizeof after);
        assert_memory_equal(whole, after, kept);
        memset(steps, 0, sizeof steps);
        assert_int_equal(ledger_open(&l, NULL, path, -1, NULL, count, steps, NULL), OK);
        assert_int_equal(steps[0], lines + 1);
        assert_int_equal(ledger_summary(l)->odd_lines, 0);
        ledger_close(l);
    }
    /* A line of rubbish in the middle is passed over and stays. */
    snprintf(after, sizeof after, "%.*s%s%.*s", (int)ends[0], whole, "rubbish\n\n", (int)(ends[1] - ends[0]),
             whole + ends[0]);
    put(after, strlen(after));
    int64_t steps[2] = { 0, 0 };

    assert_int_equal(ledger_open(&l, NULL, path, -1, NULL, count, steps, NULL), OK);
    assert_int_equal(steps[0], 2);
    assert_int_equal(ledger_summary(l)->odd_lines, 1);
    ledger_close(l);
    assert_int_equal(get(whole, sizeof whole), strlen(after));
}

/* The n-th call fails, also after half of its bytes: what OK said is there is there, nothing twice, no torn line, and
 * trying again works. */
static void test_every_failure(void **state)
{
    (void)state;
    for (int mode = 0; mode < 4; mode++)
        for (long n = 1; n < 40; n++) {
            struct io_failing f = { .fail_at = n, .error_number = mode & 1 ? ENOSPC : EIO, .short_writes = mode >> 1 };
            struct io io = io_failing_table(&f);
            int64_t steps[2] = { 0, 0 };
            struct ledger *l;

            unlink(path);
            if (ledger_open(&l, &io, path, -1, NULL, NULL, NULL, NULL) != OK)
                assert_int_equal(ledger_open(&l, &io, path, -1, NULL, NULL, NULL, NULL), OK);
            for (int i = 0; i < 3; i++) {
                struct ledger_record r = record(i + 1, 0.5);
                int tries = 0;

                while (ledger_append(l, &r, NULL) != OK)
                    assert_true(++tries < 3);
                ledger_record_release(&r);
            }
            assert_int_equal(ledger_summary(l)->done, 3);
            ledger_close(l);
            assert_int_equal(ledger_open(&l, NULL, path, -1, NULL, count, steps, NULL), OK);
            assert_int_equal(steps[0], 3);
            assert_int_equal(steps[1], 6);
            assert_int_equal(ledger_summary(l)->odd_lines, 0);
            assert_int_equal(ledger_summary(l)->cut_bytes, 0);
            ledger_close(l);
            if (f.calls < n)
                break;
        }
}

/* Names are bytes: those that are no UTF-8 come back as they were, and the others look as they always did. */
static void test_names(void **state)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        { "model.ckpt-1", "\"model.ckpt-1\"" },
        { "m\xff-1", "\"m/xff-1\"" },
        { "\xc3\xa9\xe9\x80\"-1", "\"\xc3\xa9/xe9/x80\\\"-1\"" },
        { "\xed\xa0\x80-1", "\"/xed/xa0/x80-1\"" },
        { "xff-1", "\"xff-1\"" },
        { "\xef\xbf\xbd-1", "\"\xef\xbf\xbd-1\"" }, /* as ledgers had it before: a name of its own */
    };
    char small[4];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ledger_record r = record(1, 0.5), back;
        struct buffer line = BUFFER_EMPTY;

        snprintf(r.checkpoint.name, sizeof r.checkpoint.name, "%s", cases[i].name);
        ledger_format(&r, &line);
        assert_non_null(strstr(buffer_text(&line), cases[i].text));
        assert_int_equal(ledger_parse(buffer_text(&line), line.length - 1, &back, NULL), OK);
        assert_string_equal(back.checkpoint.name, cases[i].name);
        ledger_record_release(&back);
        ledger_record_release(&r);
        buffer_release(&line);
    }
    assert_int_equal(json_file_name_read("/xff/xf", small, sizeof small), 0);
    assert_int_equal(json_file_name_read("/xff/x", small, sizeof small), 1);
    assert_string_equal(small, "\xff/x");
    assert_int_equal(json_file_name_read("/x00", small, 0), 0);
}

/* A disk that stays full after the n-th call: each append that said OK is there after a restart, and no other is
 * counted as done. */
static void test_disk_stays_full(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++)
        for (long n = 3; n < 20; n++) {
            struct io_failing f = { .fail_at = n, .stay_failed = 1, .error_number = ENOSPC, .short_writes = half };
            struct io io = io_failing_table(&f);
            int64_t steps[2] = { 0, 0 }, good = 0;
            struct ledger *l;

            unlink(path);
            if (ledger_open(&l, &io, path, -1, NULL, NULL, NULL, NULL) != OK)
                continue;
            for (int i = 0; i < 3; i++) {
                struct ledger_record r = record(i + 1, 0.5);

                good += ledger_append(l, &r, NULL) == OK;
                ledger_record_release(&r);
            }
            ledger_close(l);
            assert_int_equal(ledger_open(&l, NULL, path, -1, NULL, count, steps, NULL), OK);
            /* A line whose fsync failed may be there whole after all, when it could not be cut off either. */
            assert_in_range(steps[0], good, good + 1);
            assert_int_equal(ledger_summary(l)->odd_lines, 0);
            ledger_close(l);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_odd_lines),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_every_failure),
        cmocka_unit_test(test_disk_stays_full),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_best_rule),
        cmocka_unit_test(test_foreign_metrics),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
