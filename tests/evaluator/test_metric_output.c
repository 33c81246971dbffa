/* What of a command's output is a metric: a table, fed whole and byte by byte. */
#include "evaluator/score/metric_output.h"

#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *output, *want;
} cases[] = {
    /* want: "name=value ...", or "!" and a word of the error */
    { "accuracy 0.91\n", "accuracy=0.91" },
    { "accuracy 0.91", "accuracy=0.91" },
    { "accuracy\t 9.1e-1 \r\n", "accuracy=0.91" },
    { "accuracy=0.91\nloss = 0.25\n", "accuracy=0.91 loss=0.25" },
    { "loss: 0.25, accuracy: 0.91\n", "loss=0.25 accuracy=0.91" },
    { "loss=0.25 accuracy=0.91;top-5=1\n", "loss=0.25 accuracy=0.91 top-5=1" },
    { "{\"accuracy\": 0.91, \"n\": 5}\n", "accuracy=0.91 n=5" },
    { "  {\"b\": 1e3, \"text\": \"7\", \"yes\": true, \"list\": [1], \"object\": {\"x\": 1}, \"no\": null}\n",
      "b=1000" },
    { "{\"loss\": NaN, \"a\": -Infinity, \"NaN\": 3, \"text\": \"a \\\" NaN\"}\n", "loss=nan a=-inf NaN=3" },
    { "{\"loss\": \"NaN\", \"other\": \"nan\"}\n", "loss=nan" },
    { "loss nan\na -inf\nb +Infinity\n", "loss=nan a=-inf b=inf" },
    { "val/loss 1\nrecall@10 0.5\nclass#3 -1\n", "val/loss=1 recall@10=0.5 class#3=-1" },
    { "step 500\nglobal_step=500\nloss 1\n", "loss=1" },
    { "talk\nloading 5 files\nloss 1\n0.5 loss\nloss\n=5\nloss= \nloss 1 2\n", "loss=1" },
    { "loss=1 talk\nloss 2\n", "loss=2" }, /* half a line does not count */
    { "{\"loss\": 1\n{\"loss\": 2} x\n[1]\nloss 3\n", "loss=3" },
    { "loss 0x10\nloss 1e\nloss --1\nloss 1\n", "loss=1" },
    { "loss 1\nloss 1.0\n", "loss=1" }, /* twice the same is once */
    { "loss nan\nloss nan\n", "loss=nan" },
    { "\n\n \nloss 1\n", "loss=1" },
    { "loss 1\nloss 2\n", "!'loss' is named twice" },
    { "loss 1\nacc 2\n{\"loss\": 2}\n", "!in line 3" },
    { "{\"loss\": 1, \"loss\": 2}\n", "!twice" },
    { "{'accuracy': 0.7, 'loss': 1.25}\n", "accuracy=0.7 loss=1.25" },
    { " {'a': tensor(0.5, device='cuda:0'), \"b\": np.float64(0.25), 'c': True, 'd': [1, {'x': 2}], 'e': nan } \r\n",
      "a=0.5 b=0.25 e=nan" },
    { "{'a': 1}}\n{'a': 1} x\n{'a' 1}\n{'a': 1, 2}\n{'a: 1}\n{'b': 2}\n", "b=2" },
    { "{'a': 'x, \\'}', 'b': 2}\nc 1\n", "c=1" }, /* an escaped quote: not understood, so nothing of it counts */
    { "{}\nloss 1\n", "loss=1" },
    { "accuracy: tensor(0.7)\n", "accuracy=0.7" },
    { "accuracy tensor(0.7, device='cuda:0')\nloss=Array(1.5, dtype=float32), n=5\n", "accuracy=0.7 loss=1.5 n=5" },
    { "accuracy: tensor([0.7])\naccuracy: tensor(\naccuracy: f(0.7\nloss 1\n", "loss=1" },
    { "Test accuracy: 0.703\n", "Test accuracy=0.703" },
    { "Test accuracy: 0.703, Test loss = 1.25\n", "Test accuracy=0.703 Test loss=1.25" },
    { "Accuracy: 70.3%\n", "Accuracy=0.703" },
    { "Top 1 accuracy: 50 %\nx: 25%\n", "x=0.25" },
    { "Loss: 1.25\nAccuracy: 70.3%\n", "Loss=1.25 Accuracy=0.703" },
    { "Downloading: 10%\nDownloading: 20%\naccuracy 0.5\n", "accuracy=0.5" }, /* of progress no value counts */
    { "accuracy: 50%\naccuracy 0.51\n", "accuracy=0.51" },
    { "Downloading: 10%\nDownloading: 20%\n", "!'Downloading' is named twice" },
    { "Test accuracy 0.703\n", "!the last 'Test accuracy 0.703'" },
    { "hello\n 0.7 \r\n", "!'0.7' is a number without a name; give --metric" },
    { "", "!no metric in its output (0 lines)" },
    { "talk only\nand more of it\n", "!no metric in its output (2 lines, the last 'and more of it')" },
    { "step 5\n", "!no metric" },
};

static void show(const struct evaluation_metrics *m, char *out, size_t size)
{
    size_t used = 0;

    *out = '\0';
    for (size_t i = 0; i < m->count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s=%g", i ? " " : "", m->items[i].name, m->items[i].value);
}

static void test_outputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece < 100; piece += piece < 4 ? 1 : 95) {
            struct evaluation_metrics m = { NULL, 0, 0 };
            struct metric_output o;
            struct error e = { 0 };
            size_t n = strlen(cases[i].output);
            char got[512];
            int rc;

            metric_output_init(&o, NULL);
            for (size_t at = 0; at < n; at += piece)
                metric_output_add(&o, cases[i].output + at, n - at < piece ? n - at : piece, &m);
            rc = metric_output_finish(&o, &m, &e);
            show(&m, got, sizeof got);
            if (*cases[i].want == '!') {
                assert_true(rc < 0);
                if (!strstr(e.message, cases[i].want + 1))
                    fail_msg("no '%s' in: %s", cases[i].want + 1, e.message);
            } else {
                assert_int_equal(rc, OK);
                assert_string_equal(got, cases[i].want);
            }
            metric_output_release(&o);
            evaluation_metrics_release(&m);
        }
}

/* A number alone has the caller's name. */
static void test_alone(void **state)
{
    static const char output[] = "loading 5\n 0.7 \nloss 1\n";
    struct evaluation_metrics m = { NULL, 0, 0 };
    struct metric_output o;
    char got[64];

    (void)state;
    metric_output_init(&o, "accuracy");
    metric_output_add(&o, output, strlen(output), &m);
    assert_int_equal(metric_output_finish(&o, &m, NULL), OK);
    show(&m, got, sizeof got);
    assert_string_equal(got, "loading=5 accuracy=0.7 loss=1");
    metric_output_release(&o);
    evaluation_metrics_release(&m);
}

/* Memory is bounded, whatever is printed; what follows a line that is too long still counts. */
static void test_long(void **state)
{
    struct evaluation_metrics m = { NULL, 0, 0 };
    struct metric_output o;
    static char chunk[1 << 16];

    (void)state;
    memset(chunk, 'x', sizeof chunk);
    metric_output_init(&o, NULL);
    for (int i = 0; i < 100; i++)
        metric_output_add(&o, chunk, sizeof chunk, &m);
    assert_true(o.line.capacity <= 4 * METRIC_LINE_MAX);
    metric_output_add(&o, " 5\nloss 1\n", 10, &m);
    assert_int_equal(metric_output_finish(&o, &m, NULL), OK);
    assert_int_equal(m.count, 1);
    metric_output_release(&o);
    evaluation_metrics_release(&m);

    metric_output_init(&o, NULL);
    for (int i = 0; i < EVALUATION_METRICS_MAX + 5; i++) {
        int n = snprintf(chunk, sizeof chunk, "m%d %d\n", i, i);

        metric_output_add(&o, chunk, (size_t)n, &m);
    }
    assert_int_equal(metric_output_finish(&o, &m, NULL), ERR_ARG);
    assert_int_equal(m.count, EVALUATION_METRICS_MAX);
    metric_output_release(&o);
    evaluation_metrics_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_outputs), cmocka_unit_test(test_alone),
                                        cmocka_unit_test(test_long) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
