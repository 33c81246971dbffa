/* Model files: the built-in models as files and back, with the same variables and bits; every mistake with its line. */
#include "model/file/argument.h"
#include "model/file/model_file.h"
#include "model/file/model_lines.h"
#include "model/file/model_print.h"
#include "model/network.h"
#include "tests/check.h"
#include "tests/model/images_batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct model_file *parse(const char *text)
{
    struct model_file *f = NULL;
    struct error e = { 0 };

    if (model_file_parse(&f, "dir/net.model", text, strlen(text), &e) < 0)
        fail_msg("%s", e.message);
    return f;
}

static struct network *build(const struct model *m, int batch)
{
    struct network *n = NULL;
    struct error e = { 0 };

    if (network_new(&n, m, batch, &e) < 0)
        fail_msg("%s", e.message);
    return n;
}

static const struct recipe plain = { .optimizer = "sgd", .learning_rate = 0.5, .batch_size = 3 };

static void assert_same_network(const struct network *a, const struct network *b)
{
    const struct model *m = network_model(a), *f = network_model(b);
    size_t count, other;
    const struct variable *v = network_variables(a, &count), *w = network_variables(b, &other);

    assert_int_equal(count, other);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(v[i].name, w[i].name);
        assert_true(v[i].kind == w[i].kind && v[i].rank == w[i].rank && v[i].count == w[i].count);
        assert_memory_equal(v[i].shape, w[i].shape, (size_t)v[i].rank * sizeof v[i].shape[0]);
        assert_true(v[i].decay == w[i].decay && v[i].initial == w[i].initial);
        assert_true(v[i].initial_value == w[i].initial_value && v[i].row_width == w[i].row_width);
        assert_string_equal(v[i].debias_scope, w[i].debias_scope);
    }
    assert_true(m->height == f->height && m->width == f->width && m->channels == f->channels);
    assert_true(m->classes == f->classes && m->integers == f->integers && m->labels == f->labels);
    assert_true(m->ties_are_correct == f->ties_are_correct && m->statistics_decay == f->statistics_decay);
    if (m->transform)
        assert_string_equal(m->transform, f->transform);
    else
        assert_null(f->transform);
}

/* One step from the same start gives the same gradients, statistics and score. */
static void assert_same_step(struct network *a, struct network *b)
{
    enum { BATCH = 3 };
    const struct model *m = network_model(a);
    const size_t size = (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    real *images = calloc(BATCH * size, sizeof *images);
    int32_t *words = calloc(BATCH * size, sizeof *words);
    int32_t *labels = calloc(BATCH * (size_t)model_labels(m), sizeof *labels);
    int64_t samples[BATCH] = { 5, 6, 7 };
    struct score score[2];

    for (size_t i = 0; i < BATCH * size; i++) {
        images[i] = (real)((double)(i * 7919 % 1000) / 1000);
        words[i] = (int32_t)(i * 7919 % 10000);
    }
    for (int i = 0; i < BATCH * model_labels(m); i++)
        labels[i] = (i + 1) % 3;
    for (int k = 0; k < 2; k++) {
        struct network *n = k ? b : a;
        const struct batch batch = images_batch(network_model(n), m->integers ? (const void *)words : images, labels,
                                                samples, BATCH);

        network_initialize(n, 5);
        assert_int_equal(network_train(n, &batch, 9, NULL, &score[k]), 1);
    }
    assert_memory_equal(network_parameters(a), network_parameters(b), network_parameter_count(a) * sizeof(real));
    assert_memory_equal(network_exchange(a), network_exchange(b), network_exchange_count(a) * sizeof(real));
    assert_true(score[0].loss == score[1].loss);
    free(images);
    free(words);
    free(labels);
}

enum { LARGE = 5000000 }; /* a step of such a model takes seconds: its table of variables is compared */

/* Each built-in model as a file gives its network, bit for bit, and the file again. */
static void test_built_in_models(void **state)
{
    (void)state;
    for (const char *const *name = model_names(); *name; name++) {
        struct network *built_in = build(model_find(*name), 0), *own;
        const int large = network_parameter_count(built_in) > LARGE;
        struct buffer text = BUFFER_EMPTY, again = BUFFER_EMPTY;
        struct model_file *f;

        model_print(&text, built_in, &plain);
        f = parse(buffer_text(&text));
        if (!large) {
            network_free(built_in);
            built_in = build(model_find(*name), 3);
        }
        own = build(&f->model, large ? 0 : 3);
        assert_same_network(built_in, own);
        if (!large)
            assert_same_step(built_in, own);
        model_print(&again, own, &f->recipe);
        assert_string_equal(buffer_text(&again), buffer_text(&text));
        for (const char *line = buffer_text(&text); *line; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= 80);
        network_free(own);
        network_free(built_in);
        model_file_free(f);
        buffer_release(&text);
        buffer_release(&again);
    }
}

/* The multiply-adds of the specification of the seed models. */
static void test_multiplications(void **state)
{
    static const struct {
        const char *name;
        double wanted;
    } rows[] = { { "lenet", 480500 },
                 { "cifar10_cnn", 18470784 },
                 { "resnet32", 68862592 },
                 { "mnist_cnn", 395900160 },
                 { "mnist_lstm", 660096 },
                 { "mnist_lstm_128", 2237696 },
                 { "show_and_tell", 167968768 },
                 { "inception_v3", 5711168096 },
                 { "resnet50", 3857973248 },
                 { "resnet50b", 4089184256 },
                 { "resnet50_torchvision", 4089184256 },
                 { "language_model", 20 * (400 * 800 + 200 * 10000) } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct network *n = build(model_find(rows[i].name), 0);
        size_t count, parameters = 0;
        const struct network_call *calls = network_calls(n, &count);
        double sum = 0;

        for (size_t k = 0; k < count; k++) {
            sum += calls[k].multiplications;
            parameters += calls[k].parameters;
        }
        assert_true(sum == rows[i].wanted);
        assert_int_equal(parameters, network_parameter_count(n));
        network_free(n);
    }
}

/* Repeats, variables, defaults, named values, continued lines, CRLF, a byte order mark: what they stand for. */
static void test_language(void **state)
{
    static const char text[] = "\xef\xbb\xbf# gr\xc3\xbc\xc3\x9f\r\n"
                               "input 8x8x3\r\nclasses 4\r\n"
                               "default convolution size=3 padding=same \\\r\n  initial=he\r\n"
                               "repeat stage=1..2 channels=4,8\n"
                               "\tx = convolution s{stage}/in channels={channels} # here\n"
                               "  repeat n=0..1\n"
                               "    convolution s{stage}/{n} channels={channels} of=x\n"
                               "    x = add with=x\n"
                               "  end\n"
                               "end\n"
                               "convolution rest channels=2 size=1x3 stride=2x1 padding=0,0,1,2\n"
                               "concat with=x of=x\ndense out outputs=4\nbias b initial=0.5 relu\ncross_entropy";
    static const char wanted[] = "# the model\ninput 8x8x3\nclasses 4\n\n# how it is trained\noptimizer momentum\n"
                                 "learning_rate 0.01\nmomentum 0.9\nbatch_size 128\n\n# layers\n"
                                 "x1 = convolution s1/in channels=4 size=3 padding=same initial=he\n"
                                 "convolution s1/0 channels=4 size=3 padding=same initial=he\n"
                                 "x2 = add with=x1\n"
                                 "convolution s1/1 channels=4 size=3 padding=same initial=he\n"
                                 "add with=x2\n"
                                 "x3 = convolution s2/in channels=8 size=3 padding=same initial=he\n"
                                 "convolution s2/0 channels=8 size=3 padding=same initial=he\n"
                                 "x4 = add with=x3\n"
                                 "convolution s2/1 channels=8 size=3 padding=same initial=he\n"
                                 "x5 = add with=x4\n"
                                 "convolution rest channels=2 size=1x3 stride=2x1 padding=0,0,1,2 initial=he\n"
                                 "concat of=x5 with=x5\ndense out outputs=4\nbias b initial=0.5 relu\ncross_entropy\n";
    struct model_file *f = parse(text);
    struct network *n = build(&f->model, 0);
    struct buffer out = BUFFER_EMPTY;

    (void)state;
    model_print(&out, n, &f->recipe);
    assert_string_equal(buffer_text(&out), wanted);
    assert_string_equal(f->model.name, "net.model");
    buffer_release(&out);
    network_free(n);
    model_file_free(f);
}

/* What no built-in model has: these lines come back as they are, and give the variables that they say. */
static void test_other_layers(void **state)
{
    static const char text[] = "convolution a channels=8 size=1x7\nbatch_norm n unbiased gamma=no\nrelu\n"
                               "lstm l units=5 gives=every\ndense d outputs=6 each\nbias b initial=normal(0.5)\n"
                               "global_average_pool\ndense e outputs=10\nbias f initial=0.5\nbias g initial=glorot\n"
                               "cross_entropy\n";
    static const char *const names[] = {
        "a", "n/beta", "n/moving_mean", "n/moving_variance", "l/kernel", "l/bias", "d", "b", "e", "f", "g"
    };
    char whole[sizeof text + 64];
    struct buffer out = BUFFER_EMPTY;
    const struct variable *v;
    struct model_file *f;
    struct network *n;
    size_t count;

    (void)state;
    snprintf(whole, sizeof whole, "input 28x28x1\nclasses 10\n%s", text);
    f = parse(whole);
    n = build(&f->model, 0);
    model_print(&out, n, &f->recipe);
    assert_non_null(strstr(buffer_text(&out), text));
    v = network_variables(n, &count);
    assert_int_equal(count, sizeof names / sizeof *names);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(v[i].name, names[i]);
    assert_int_equal(v[6].shape[0], 5);
    assert_true(v[7].initial == INITIAL_NORMAL && v[7].initial_value == 0.5);
    assert_true(v[9].initial == INITIAL_CONSTANT && v[9].initial_value == 0.5);
    assert_true(v[10].initial == INITIAL_UNIFORM && v[10].initial_value == sqrt(6.0 / (10 + 10)));
    buffer_release(&out);
    network_free(n);
    model_file_free(f);
}

static void test_recipe(void **state)
{
    static const char text[] = "optimizer adam\nlearning_rate 0.25\nmomentum 0.5\nschedule 10:0.5 20:0.25\nwarmup 7\n"
                               "clip_norm 2.5\nbatch_size 64\naugment cifar-resnet-train\nmoving_average 0.99\n"
                               "loss_average 0.8\nties correct\ncross_entropy\n";
    struct model_file *f = parse(text);
    const struct recipe *r = &f->recipe;

    (void)state;
    assert_string_equal(r->optimizer, "adam");
    assert_true(r->learning_rate == 0.25 && r->momentum == 0.5 && r->warmup == 7 && r->clip_norm == 2.5);
    assert_true(r->batch_size == 64 && r->moving_average == 0.99 && r->loss_average == 0.8);
    assert_true(f->model.moving_averages && f->model.ties_are_correct);
    assert_string_equal(r->transform, "cifar-resnet-train");
    assert_true(rate_curve_rate(&r->schedule, 8, 9) == 8 && rate_curve_rate(&r->schedule, 8, 10) == 4);
    assert_true(rate_curve_rate(&r->schedule, 8, 20) == 2);
    assert_int_equal(f->model.height, 0);
    assert_int_equal(model_file_check_complete(f, NULL), ERR_ARG);
    model_file_complete(f, 4, 5, 6, 7);
    assert_int_equal(model_file_check_complete(f, NULL), OK);
    model_file_complete(f, 1, 1, 1, 1);
    assert_true(f->model.height == 4 && f->model.width == 5 && f->model.channels == 6 && f->model.classes == 7);
    model_file_free(f);
}

#define HEAD "input 6x6x2\nclasses 3\n"

/* What is wrong is said with its line: when the file is read, or when its network is built. */
static void test_mistakes(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "net.model: it has no layers" },
        { "dense a outputs=3", "line 1: the last layer is dense; end with cross_entropy" },
        { "cross_entropy\nlrn", "line 2: lrn comes after the cross_entropy" },
        { "\nconvolutoin a", "line 2: there is no layer or setting 'convolutoin' (did you mean convolution?)" },
        { "x = bais b", "line 1: 'x =' must be followed by a layer (did you mean bias?)" },
        { "x =", "line 1: 'x =' must be followed by a layer" },
        { "default dens outputs=3", "there is no layer 'dens' (did you mean dense?)" },
        { "default dense", "expected LAYER PARAMETER=VALUE... after default" },
        { "dense outputs=3", "dense needs the name of its kernel: dense NAME ..." },
        { "dense a*b outputs=3", "'a*b' cannot name a variable" },
        { "dense a", "dense needs outputs=N" },
        { "dense a outputs", "dense: outputs needs a value: outputs=N" },
        { "dense a output=3", "dense has no parameter 'output' (did you mean outputs?)" },
        { "dense a outputs=3 outputs=4", "dense: outputs is there twice" },
        { "dense a outputs=x", "dense: outputs: 'x' is not a whole number" },
        { "dense a outputs=0", "dense: outputs: 0 is not between 1 and 1048576" },
        { "dropout keep=2", "dropout: keep: 2 is not between 1e-06 and 1" },
        { "dropout keep=nan", "dropout: keep: 'nan' is not a number" },
        { "dense a outputs=3 initial=gloro", "initial: 'gloro' is not one of X|normal(X)|" },
        { "dense a outputs=3 initial=normal(", "initial: 'normal(' is not one of" },
        { "leaky gradient=two", "gradient: 'two' is not one of one|slope" },
        { "bias a relu=maybe", "relu: 'maybe' is not one of no|yes" },
        { "max_pool size=2x2x2", "size: '2' is not one of N|HEIGHTxWIDTH" },
        { "max_pool size=2 padding=samee", "padding: 'samee' is not one of valid|same|TOP" },
        { "max_pool size=2 padding=1,2", "padding: '1,2' is not one of valid|same|TOP" },
        { "max_pool size=2 of=y", "line 1: no line before it names its result 'y'; write 'y = LAYER ...' there" },
        { "xy = max_pool size=2\nlrn of=xyz", "'xyz' (did you mean xy?); write 'xyz = LAYER ...'" },
        { "lrn with=input", "lrn takes 1 value, and more are given by of and with" },
        { "add", "add needs another value: with=VALUE" },
        { "input = lrn", "'input' cannot name a value" },
        { "repeat", "expected 1 to 8 of NAME=FIRST..LAST" },
        { "repeat n", "'n' is not NAME=FIRST..LAST or NAME=WORD,WORD..." },
        { "repeat n!=1..2", "'n!' is no name of a variable" },
        { "repeat n=2..1", "n=2..1: use FIRST..LAST" },
        { "repeat n=1..2 m=a,b,c", "n has 2 values, and m 3" },
        { "repeat n=a,,b", "a word is missing" },
        { "repeat n=", "n=: a word is missing" },
        { "lrn\nrepeat n=1..2\nlrn", "line 2: this repeat has no end" },
        { "end", "this end has no repeat before it" },
        { "repeat n=1..2\nend now", "line 2: nothing may follow end" },
        { "repeat n=1..1000000000\nend", "the repeats come to more than 100000 lines" },
        { "repeat n=1..5000\nlrn\nend", "line 2: more than 4096 layers" },
        { "repeat a=1..2\nrepeat a=1..2\nrepeat a=1..2\nrepeat a=1..2\nrepeat a=1..2\nrepeat a=1..2\nrepeat a=1..2\n"
          "repeat a=1..2\nrepeat a=1..2\n",
          "line 9: more than 8 repeats within each other" },
        { "dense {n}", "{n}: this is no variable of a repeat around it" },
        { "dense {n", "{n: this is no variable of a repeat around it" },
        { "repeat n=1..2\nclasses 3\nend", "line 2: classes is a setting, and cannot be in a repeat" },
        { "classes 3\nclasses 3", "line 2: classes is already given in line 1" },
        { "classes 0", "classes: 0 is not between 1 and 1048576" },
        { "classes", "classes: expected a whole number after it" },
        { "input 3x3", "input: expected HEIGHTxWIDTHxCHANNELS after it" },
        { "input 3x3x3x3", "input: expected HEIGHTxWIDTHxCHANNELS after it" },
        { "input 65536x65536x2", "input: 65536x65536x2 is too large" },
        { "task sorting", "task: 'sorting' is not one of classification|next_word" },
        { "learning_rate fast", "learning_rate: 'fast' is not a number" },
        { "schedule", "schedule: expected STEP:FACTOR..." },
        { "schedule 5", "schedule: '5' is not STEP:FACTOR" },
        { "schedule 5:1 5:1", "schedule: step 5 is not after the one before" },
        { "task next_word\ntransform unit\ncross_entropy", "the task next_word reads no images" },
        { "labels 3\ncross_entropy", "labels is for the task next_word; an image has one" },
        { "labels 0", "labels: 0 is not between 1 and 65536" },
        { "task next_word\ninput 1x5x1\nlabels 5\ncross_entropy", "with labels 5 the input is 5x1x1, not 1x5x1" },
        { "lrn \\", "line 1: '\\' continues the last line, but no line follows" },
        { "lrn\nl\x01rn", "line 2: byte 2 (0x01) is a control character" },
        { "lrn # \xff", "line 1: byte 7 (0xff) is not UTF-8" },
        { "lrn # \xed\xa0\x80", "line 1: byte 7 (0xed) is not UTF-8" },
        /* of the network */
        { HEAD "convolution a size=7 channels=2\ncross_entropy",
          "line 3: convolution of 6x6x2: its output would have no pixels" },
        { HEAD "dense a outputs=4\ncross_entropy",
          "line 4: cross_entropy of 1x1x4: its input is not one logit a class for each label (1 label, 3 classes)" },
        { HEAD "dense a outputs=3\ndense a outputs=3\ncross_entropy",
          "line 4: dense of 1x1x3: two variables are named a" },
        { HEAD "x = dense a outputs=3\nbias b\nbias c of=x\ncross_entropy",
          "line 5: bias of 1x1x3: its input was changed in place by an earlier layer" },
        { HEAD "x = dense a outputs=2\ndense b outputs=3\nadd with=x\ncross_entropy",
          "line 5: add of 1x1x3 and 1x1x2: its inputs differ in shape" },
        { HEAD "embedding t rows=5 width=2\ncross_entropy", "line 3: embedding of 6x6x2: " },
        { "input 1024x1024x1024\nclasses 3\ndense a outputs=65536\ncross_entropy",
          "line 3: dense of 1024x1024x1024: its variable a would have none or too many values" },
        { "input 1024x1024x1000\nclasses 3\nrepeat n=1..20\nmax_pool size=1\nend\ncross_entropy",
          "line 4: max_pool of 1024x1024x1000: the values up to here are too many" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_file *f = NULL;
        struct network *n = NULL;
        struct error e = { 0 };
        int rc = model_file_parse(&f, "dir/net.model", cases[i].text, strlen(cases[i].text), &e);

        if (rc == OK)
            rc = network_describe(&n, &f->model, &e);
        if (rc != ERR_ARG || !strstr(e.message, cases[i].says) || strncmp(e.message, "dir/net.model", 13) != 0)
            fail_msg("case %zu, '%s' (%d), says: %s", i, cases[i].text, rc, e.message);
        network_free(n);
        model_file_free(f);
    }
}

static void test_sizes(void **state)
{
    static char text[MODEL_FILE_BYTES_MAX + 1];
    struct model_file *f = NULL;
    struct error e = { 0 };

    (void)state;
    memset(text, ' ', sizeof text);
    assert_int_equal(model_file_parse(&f, "n", text, sizeof text, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "more than a model file may have"));
    assert_int_equal(model_file_parse(&f, "n", text, MODEL_FILE_LINE_MAX + 1, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "n: line 1 is longer than 4096 bytes"));
    assert_int_equal(model_file_parse(&f, "n", "lrn\0", 4, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "line 1: byte 4 (0x00) is a control character"));
    assert_int_equal(model_file_open(&f, "/nowhere/net.model", &e), ERR_IO);
}

/* Comments, blanks and the recipe do not make another model. */
static void test_same(void **state)
{
    static const char a[] = "dense a outputs=3 # one\nlearning_rate 1\ncross_entropy\n";
    static const struct {
        const char *text, *says; /* NULL: the same */
    } cases[] = {
        { "# new\n  dense  a\toutputs=3\r\ncross_entropy\noptimizer adam", NULL },
        { "dense a outputs=4\ncross_entropy", "line 1 is 'dense a outputs=4', and was 'dense a outputs=3'" },
        { "dense a outputs=3", "the line 'cross_entropy' is missing" },
        { "dense a outputs=3\ncross_entropy\n\nlrn", "line 4, 'lrn', is new" },
        { "\xff", "not UTF-8" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };
        const int same = model_file_same(cases[i].text, strlen(cases[i].text), a, strlen(a), &e);

        assert_int_equal(same, cases[i].says == NULL);
        if (cases[i].says && !strstr(e.message, cases[i].says))
            fail_msg("case %zu says: %s", i, e.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_built_in_models), cmocka_unit_test(test_multiplications),
        cmocka_unit_test(test_language),        cmocka_unit_test(test_other_layers),
        cmocka_unit_test(test_recipe),          cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_sizes),           cmocka_unit_test(test_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
