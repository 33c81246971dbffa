/* The command line: defaults from the model, and one clear sentence for what cannot be. */
#include "trainer/train_options.h"

#include "base/program/options.h"
#include "tests/check.h"

#include <string.h>

enum { WORDS = 16 };

/* options borrow from the words */
struct parsed {
    struct train_options o;
    char words[WORDS][64];
};

static int parse(const char *const *words, struct parsed *p, struct error *e)
{
    char program[] = "trainer", *argv[WORDS + 2] = { program };
    int argc = 1;

    for (; argc <= WORDS && words[argc - 1]; argc++) {
        strcpy(p->words[argc - 1], words[argc - 1]);
        argv[argc] = p->words[argc - 1];
    }
    return train_options_parse(&p->o, NULL, 0, argc, argv, e);
}

#define GIVEN "--model", "resnet32", "--data", "cifar10"

static void test_defaults(void **state)
{
    const char *const words[] = { GIVEN, NULL };
    struct parsed p;
    const struct train_options *o = &p.o;

    (void)state;
    assert_int_equal(parse(words, &p, NULL), OPTIONS_RUN);
    assert_int_equal(o->sizes.batch_size, 128);
    assert_int_equal(o->optimizer.kind, OPTIMIZER_MOMENTUM);
    assert_true(o->optimizer.learning_rate == 0.1 && o->optimizer.momentum == 0.9);
    assert_true(o->optimizer.moving_average == 0);
    assert_string_equal(o->strategy.kind->name, "single");
    assert_string_equal(o->strategy.label, "single");
    assert_int_equal(o->strategy.synchronous, 1);
    assert_int_equal(o->keep, 0);
    assert_int_equal(o->resume, RESUME_AUTO);
    assert_int_equal(o->augment, 1);
    assert_int_equal(o->scale_learning_rate, 0);
    assert_ptr_equal(o->optimizer.schedule.recipe, &o->recipe->schedule);
    assert_int_equal(o->optimizer.schedule.decays, 0);
    assert_int_equal(o->optimizer.schedule.warmup, 0);
}

static void test_schedule(void **state)
{
    const char *const words[] = { GIVEN, "--scale-learning-rate=linear", "--warmup=5", "--decay-at=7,9", NULL };
    const char *const factor[] = { GIVEN, "--decay-at=7", "--decay-factor=0.5", NULL };
    struct parsed p;

    (void)state;
    assert_int_equal(parse(words, &p, NULL), OPTIONS_RUN);
    assert_int_equal(p.o.scale_learning_rate, 1);
    assert_int_equal(p.o.optimizer.schedule.warmup, 5);
    assert_int_equal(p.o.optimizer.schedule.decays, 2);
    assert_int_equal(p.o.optimizer.schedule.decay_at[1], 9);
    assert_true(p.o.optimizer.schedule.decay_factor == 0.1);
    assert_int_equal(parse(factor, &p, NULL), OPTIONS_RUN);
    assert_true(p.o.optimizer.schedule.decay_factor == 0.5);
}

static void test_given(void **state)
{
    const char *const words[] = { "--model=cifar10_cnn",
                                  "--data=cifar10",
                                  "--run-option=ps",
                                  "--servers=2",
                                  "--async",
                                  "--no-augment",
                                  "--optimizer=adam",
                                  "--learning-rate=0.5",
                                  "--no-moving-average",
                                  "--resume=70",
                                  "--checkpoint-dir=c",
                                  "--keep=0",
                                  "--seed=0",
                                  NULL };
    struct parsed p;
    const struct train_options *o = &p.o;

    (void)state;
    assert_int_equal(parse(words, &p, NULL), OPTIONS_RUN);
    assert_string_equal(o->strategy.kind->name, "ps");
    assert_string_equal(o->strategy.label, "ps --async");
    assert_int_equal(o->strategy.synchronous, 0);
    assert_int_equal(o->strategy.kind->workers(&o->strategy, 5, NULL), 3); /* of --servers */
    assert_int_equal(o->augment, 0);
    assert_int_equal(o->optimizer.kind, OPTIMIZER_ADAM);
    assert_true(o->optimizer.learning_rate == 0.5 && o->optimizer.moving_average == 0);
    assert_int_equal(o->resume, RESUME_STEP);
    assert_int_equal(o->resume_step, 70);
    assert_int_equal(o->keep, 0);
    assert_true(o->seed_given && o->seed == 0);
}

/* The recipe's seed and held-out samples, unless others are given. */
static void test_from_recipe(void **state)
{
    const char *const plain[] = { "--model=mnist_cnn", "--data=mnist", NULL };
    const char *const given[] = {
        "--model=mnist_cnn", "--data=mnist", "--seed=0", "--hold-out=0", "--shard=files", NULL
    };
    struct parsed p, other;

    (void)state;
    assert_int_equal(parse(plain, &p, NULL), OPTIONS_RUN);
    assert_int_equal(p.o.seed, 777);
    assert_int_equal(p.o.seed_given, 0);
    assert_int_equal(p.o.hold_out, 5000);
    assert_int_equal(p.o.sizes.batch_size, 1024);
    assert_int_equal(p.o.optimizer.kind, OPTIMIZER_ADAM);
    assert_int_equal(parse(given, &other, NULL), OPTIONS_RUN);
    assert_int_equal(other.o.seed, 0);
    assert_int_equal(other.o.hold_out, 0);
    other.o = p.o;
    other.o.hold_out++;
    assert_true(train_options_fingerprint(&other.o) != train_options_fingerprint(&p.o));
    assert_true(train_options_training(&other.o) != train_options_training(&p.o));
}

/* The precision is the model's, whose other parts stay; without the option nothing changes. */
static void test_precision(void **state)
{
    const char *const plain[] = { GIVEN, "--freeze=conv1", NULL };
    const char *const given[] = { GIVEN, "--freeze=conv1", "--precision=bfloat16", NULL };
    struct parsed p, other;

    (void)state;
    assert_int_equal(parse(plain, &p, NULL), OPTIONS_RUN);
    assert_int_equal(p.o.model->precision, PRECISION_FLOAT32);
    assert_int_equal(parse(given, &other, NULL), OPTIONS_RUN);
    assert_int_equal(other.o.model->precision, PRECISION_BFLOAT16);
    assert_string_equal(other.o.model->frozen, "conv1");
    assert_true(other.o.model->build == p.o.model->build);
    assert_true(train_options_fingerprint(&other.o) != train_options_fingerprint(&p.o));
    assert_true(train_options_training(&other.o) != train_options_training(&p.o));
    train_options_release(&p.o);
    train_options_release(&other.o);
}

/* What a step is does not depend on the number of workers, whatever else is given. */
static void test_reproducible(void **state)
{
    const char *const plain[] = { GIVEN, "--reproducible", NULL };
    const char *const sizes[] = { GIVEN, "--reproducible", "--micro-shards=16", "--global-batch=512", NULL };
    struct parsed p;

    (void)state;
    assert_int_equal(parse(plain, &p, NULL), OPTIONS_RUN);
    assert_int_equal(p.o.sizes.micro_shards, 8);
    assert_int_equal(p.o.sizes.global_batch, 128);
    assert_int_equal(parse(sizes, &p, NULL), OPTIONS_RUN);
    assert_int_equal(p.o.sizes.micro_shards, 16);
    assert_int_equal(p.o.sizes.global_batch, 512);
}

#define MODELS \
    "lenet|cifar10_cnn|resnet32|next_word|mnist_cnn|mnist_lstm|mnist_lstm_128|language_model|resnet50|resnet50b|" \
    "resnet50_torchvision|show_and_tell|inception_v3"

static void test_refused(void **state)
{
    static const struct {
        const char *words[WORDS], *sentence;
    } cases[] = {
        { { "--data", "cifar10" }, "--model is missing; use one of " MODELS },
        { { "--model", "resnet23", "--data", "cifar10" },
          "'resnet23' is not one of " MODELS " (did you mean resnet32?)" },
        { { "--model", "lenet" }, "--data is missing; use one of mnist|fashion-mnist|cifar10|text" },
        { { "--model", "lenet", "--data", "fashon-mnist" }, "did you mean fashion-mnist?" },
        { { GIVEN, "--save-checkpoint-steps", "5", "--save-checkpoint-seconds", "5" }, "use one" },
        { { GIVEN, "--save-checkpoint-steps", "5" }, "needs --checkpoint-dir" },
        { { GIVEN, "--async" }, "--async needs --run-option ps, not single" },
        { { GIVEN, "--threads", "0", "--run-option", "mirrored" }, "threads" },
        { { GIVEN, "--staleness", "2", "--run-option", "mpi" }, "--staleness needs --run-option ps, not mpi" },
        { { GIVEN, "--servers", "1", "--run-option", "ring" }, "--servers needs --run-option ps" },
        { { GIVEN, "--no-sync", "--run-option", "mpi" }, "--sync needs --run-option ps, not mpi" },
        { { GIVEN, "--transport", "auto", "--run-option", "ps" },
          "--transport needs --run-option mpi or hybrid, not ps" },
        { { GIVEN, "--weights", "copied", "--run-option", "mpi" }, "--weights needs --run-option mirrored, not mpi" },
        { { GIVEN, "--threads", "2", "--run-option", "mirrored", "--shard", "files" }, "read one data set" },
        { { GIVEN, "--run-option", "pss" }, "run-option" },
        { { GIVEN, "--resume", "newest", "--checkpoint-dir", "c" }, "'newest' is not auto, never or a step" },
        { { GIVEN, "--batch-size", "0" }, "batch-size" },
        { { "--model=mnist_cnn", "--data=mnist", "--shard=files" }, "--hold-out 5000: with --shard files" },
        { { GIVEN, "--batch-size", "8", "--global-batch", "8" }, "--batch-size and --global-batch are both given" },
        { { GIVEN, "--run-option", "ps", "--async", "--global-batch", "8" }, "workers of ps --async make no step" },
        { { GIVEN, "--run-option", "ps", "--async", "--hash-every", "8" }, "no two workers of ps --async have" },
        { { GIVEN, "--run-option", "ps", "--async", "--reproducible" }, "train without --async" },
        { { GIVEN, "--reproducible", "--shard", "files" }, "use --shard records" },
        { { GIVEN, "--reproducible", "--shard", "none" }, "use --shard records" },
        { { GIVEN, "--reproducible", "--batch-size", "8" }, "use --global-batch" },
        { { GIVEN, "--reproducible", "--scale-learning-rate", "linear" }, "give the --learning-rate itself" },
        { { GIVEN, "--max-step", "5" }, "max-steps" },
        { { GIVEN, "ckpt" }, "'ckpt'" },
        { { GIVEN, "--decay-at", "9,5" }, "--decay-at: the steps of '9,5' do not rise" },
        { { GIVEN, "--clip-norm", "0" }, "clip-norm" },
        { { GIVEN, "--decay-factor", "0.5" }, "--decay-factor needs --decay-at" },
        { { GIVEN, "--run-option", "ps", "--async", "--scale-learning-rate", "linear" }, "nothing is averaged" },
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct error e = { 0 };
        struct parsed p;

        assert_int_equal(parse(cases[c].words, &p, &e), ERR_ARG);
        if (!strstr(e.message, cases[c].sentence))
            fail_msg("'%s' does not say '%s'", e.message, cases[c].sentence);
    }
}

static void test_fingerprint(void **state)
{
    const char *const one[] = { GIVEN, NULL };
    const char *const others[][WORDS] = { { GIVEN, "--learning-rate", "0.2" },
                                          { GIVEN, "--scale-learning-rate", "linear" },
                                          { GIVEN, "--warmup", "1" },
                                          { GIVEN, "--decay-at", "7" },
                                          { GIVEN, "--clip-norm", "7" } };
    const char *const same[] = { GIVEN, "--quiet", "--log-every", "3", NULL };
    struct parsed a, b, c;

    (void)state;
    parse(one, &a, NULL);
    parse(same, &c, NULL);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(parse(others[i], &b, NULL), OPTIONS_RUN);
        assert_true(train_options_fingerprint(&a.o) != train_options_fingerprint(&b.o));
    }
    assert_true(train_options_fingerprint(&a.o) == train_options_fingerprint(&c.o));
}

/* Options of one strategy alone: what they change of it. */
static void test_own_options(void **state)
{
    static const struct {
        const char *words[WORDS], *label;
        int alike; /* as the row before, to the other ranks */
    } rows[] = {
        { { GIVEN, "--run-option=mpi" }, "mpi", 0 },
        { { GIVEN, "--run-option=mpi", "--transport=auto" }, "mpi", 1 },
        { { GIVEN, "--run-option=mpi", "--transport=shared" }, "mpi", 0 },
        { { GIVEN, "--run-option=mirrored", "--threads=2" }, "mirrored", 0 },
        { { GIVEN, "--run-option=mirrored", "--threads=2", "--weights=copied" }, "mirrored", 1 },
        { { GIVEN, "--run-option=mirrored", "--threads=2", "--weights=shared" }, "mirrored", 0 },
        { { GIVEN, "--run-option=ps" }, "ps", 0 },
        { { GIVEN, "--run-option=ps", "--servers=1", "--sync", "--no-async" }, "ps", 1 },
        { { GIVEN, "--run-option=ps", "--servers=3" }, "ps", 0 },
        { { GIVEN, "--run-option=ps", "--servers=3", "--no-sync" }, "ps --async", 0 },
    };
    uint64_t before = 0;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct parsed p;

        assert_int_equal(parse(rows[i].words, &p, NULL), OPTIONS_RUN);
        assert_string_equal(p.o.strategy.label, rows[i].label);
        assert_int_equal(p.o.strategy.fingerprint == before, rows[i].alike);
        before = p.o.strategy.fingerprint;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_defaults),    cmocka_unit_test(test_given),
                                        cmocka_unit_test(test_schedule),    cmocka_unit_test(test_reproducible),
                                        cmocka_unit_test(test_from_recipe), cmocka_unit_test(test_precision),
                                        cmocka_unit_test(test_refused),     cmocka_unit_test(test_fingerprint),
                                        cmocka_unit_test(test_own_options) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
