#include "model/file/model_settings.h"

#include "base/number.h"
#include "model/file/argument.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { WORD_OPTIMIZER, WORD_TRANSFORM, WORD_AUGMENT };

static int one(char *const *values, size_t count, const char *form, struct error *e)
{
    (void)values;
    return count == 1 ? OK : error_set(e, ERR_ARG, "expected %s after it", form);
}

static int setting_parse_real(char *const *values, size_t count, double minimum, double maximum, double *out,
                              struct error *e)
{
    const struct call_parameter p = { .kind = PARAMETER_REAL, .minimum = minimum, .maximum = maximum };
    struct argument a;

    if (one(values, count, "a number", e) < 0 || argument_parse(&p, values[0], &a, e) < 0)
        return ERR_ARG;
    *out = a.v[0];
    return OK;
}

static int setting_parse_integer(char *const *values, size_t count, double minimum, double maximum, int64_t *out,
                                 struct error *e)
{
    const struct call_parameter p = { .kind = PARAMETER_INTEGER, .minimum = minimum, .maximum = maximum };
    struct argument a;

    if (one(values, count, "a whole number", e) < 0 || argument_parse(&p, values[0], &a, e) < 0)
        return ERR_ARG;
    *out = (int64_t)a.v[0];
    return OK;
}

static int setting_parse_int(char *const *values, size_t count, int minimum, int maximum, int *out, struct error *e)
{
    int64_t n = 0;
    const int rc = setting_parse_integer(values, count, minimum, maximum, &n, e);

    *out = (int)n;
    return rc;
}

static int setting_parse_word(struct model_file *f, int place, char *const *values, size_t count, const char **out,
                              struct error *e)
{
    if (one(values, count, "a name", e) < 0)
        return ERR_ARG;
    if (strlen(values[0]) >= sizeof f->words[place])
        return error_set(e, ERR_ARG, "'%.40s...' is too long", values[0]);
    strcpy(f->words[place], values[0]);
    *out = f->words[place];
    return OK;
}

static int setting_parse_choice(char *const *values, size_t count, const char *choices, int *out, struct error *e)
{
    const struct call_parameter p = { .kind = PARAMETER_WORD, .choices = choices };
    struct argument a;

    if (one(values, count, choices, e) < 0 || argument_parse(&p, values[0], &a, e) < 0)
        return ERR_ARG;
    *out = (int)a.v[0];
    return OK;
}

static void print_real(struct buffer *out, double x)
{
    char text[ARGUMENT_TEXT_MAX];

    argument_text(&(struct call_parameter){ .kind = PARAMETER_REAL }, &(struct argument){ { x } }, text);
    buffer_append_text(out, text);
}

/* ---- of the model ------------------------------------------------------------------------------------------------ */

static int parse_input(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    int *const to[] = { &f->model.height, &f->model.width, &f->model.channels };
    const char *at = count == 1 ? values[0] : "";

    for (int k = 0; k < 3; k++) {
        const size_t n = strcspn(at, "x");
        char part[16] = "";
        int64_t number = 0;

        if (n < sizeof part)
            snprintf(part, sizeof part, "%.*s", (int)n, at);
        if (!number_parse_int(part, &number) || number < 1 || number > 65536 || (at[n] == 'x') != (k < 2))
            return error_set(e, ERR_ARG,
                             "expected HEIGHTxWIDTHxCHANNELS after it, each from 1 to 65536, as in 28x28x1");
        *to[k] = (int)number;
        at += n + (at[n] == 'x');
    }
    if ((int64_t)f->model.height * f->model.width > (1 << 30) / f->model.channels) {
        return error_set(e, ERR_ARG, "%s is too large: at most %d values", values[0], 1 << 30);
    }
    return OK;
}

static void print_input(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)r;
    buffer_format(out, "%dx%dx%d", m->height, m->width, m->channels);
}

static int parse_classes(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_int(values, count, 1, 1 << 20, &f->model.classes, e);
}

static void print_classes(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)r;
    buffer_format(out, "%d", m->classes);
}

static int parse_task(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_choice(values, count, "classification|next_word", &f->model.integers, e);
}

static void print_task(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)r;
    if (m->integers)
        buffer_append_text(out, "next_word");
}

static int parse_labels(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_int(values, count, 1, 65536, &f->model.labels, e);
}

static void print_labels(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)r;
    if (m->labels)
        buffer_format(out, "%d", m->labels);
}

static int parse_features(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_int(values, count, 1, 65536, &f->model.features, e);
}

static void print_features(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)r;
    if (m->features)
        buffer_format(out, "%d", m->features);
}

static int parse_transform(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_word(f, WORD_TRANSFORM, values, count, &f->model.transform, e);
}

static void print_transform(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)r;
    if (m->transform && strcmp(m->transform, "unit") != 0)
        buffer_append_text(out, m->transform);
}

static int parse_statistics(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_real(values, count, 0, 1, &f->model.statistics_decay, e);
}

static void print_statistics(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)r;
    if (m->statistics_decay > 0)
        print_real(out, m->statistics_decay);
}

static int parse_ties(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_choice(values, count, "lowest|correct", &f->model.ties_are_correct, e);
}

static void print_ties(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)r;
    if (m->ties_are_correct)
        buffer_append_text(out, "correct");
}

/* ---- of the recipe ----------------------------------------------------------------------------------------------- */

static int parse_optimizer(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_word(f, WORD_OPTIMIZER, values, count, &f->recipe.optimizer, e);
}

static void print_optimizer(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    buffer_append_text(out, r->optimizer);
}

static int parse_learning_rate(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_real(values, count, 1e-12, 1e6, &f->recipe.learning_rate, e);
}

static void print_learning_rate(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    print_real(out, r->learning_rate);
}

static int parse_momentum(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_real(values, count, 0, 1, &f->recipe.momentum, e);
}

static void print_momentum(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    if (!strcmp(r->optimizer, "momentum"))
        print_real(out, r->momentum);
}

static int schedule_every(struct rate_curve *c, char *const *values, struct error *e)
{
    const struct call_parameter steps = { .kind = PARAMETER_INTEGER, .minimum = 1, .maximum = 1e15 };
    const struct call_parameter factors = { .kind = PARAMETER_REAL, .maximum = 1e6 };
    struct argument step, factor;

    if (argument_parse(&steps, values[1], &step, e) < 0 || argument_parse(&factors, values[2], &factor, e) < 0)
        return ERR_ARG;
    c->every = (int64_t)step.v[0];
    c->factor = factor.v[0];
    return OK;
}

/* One "STEP:FACTOR". */
static int schedule_drop(struct rate_curve *c, const char *text, struct error *e)
{
    const struct call_parameter steps = { .kind = PARAMETER_INTEGER, .minimum = 1, .maximum = 1e15 };
    const struct call_parameter factors = { .kind = PARAMETER_REAL, .maximum = 1e6 };
    const size_t n = strcspn(text, ":");
    struct argument step, factor;
    char part[24];

    if (!text[n] || n >= sizeof part)
        return error_set(e, ERR_ARG, "'%.40s' is not STEP:FACTOR", text);
    snprintf(part, sizeof part, "%.*s", (int)n, text);
    if (argument_parse(&steps, part, &step, e) < 0 || argument_parse(&factors, text + n + 1, &factor, e) < 0)
        return ERR_ARG;
    if (c->drops == RATE_DROPS_MAX)
        return error_set(e, ERR_ARG, "more than %d steps", RATE_DROPS_MAX);
    if (c->drops && (int64_t)step.v[0] <= c->at[c->drops - 1])
        return error_set(e, ERR_ARG, "step %s is not after the one before", part);
    c->at[c->drops] = (int64_t)step.v[0];
    c->factors[c->drops++] = factor.v[0];
    return OK;
}

static int parse_schedule(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    struct rate_curve *c = &f->recipe.schedule;

    if (count == 3 && !strcmp(values[0], "every"))
        return schedule_every(c, values, e);
    if (!count)
        return error_set(e, ERR_ARG, "expected STEP:FACTOR... or 'every STEPS FACTOR' after it");
    for (size_t k = 0; k < count; k++)
        if (schedule_drop(c, values[k], e) < 0)
            return ERR_ARG;
    return OK;
}

static void print_schedule(struct buffer *out, const struct model *m, const struct recipe *r)
{
    const struct rate_curve *c = &r->schedule;

    (void)m;
    if (c->every) {
        buffer_format(out, "every %" PRId64 " ", c->every);
        print_real(out, c->factor);
    }
    for (int k = 0; k < c->drops && !c->every; k++) {
        buffer_format(out, "%s%" PRId64 ":", k ? " " : "", c->at[k]);
        print_real(out, c->factors[k]);
    }
}

static int parse_warmup(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_integer(values, count, 0, 1e12, &f->recipe.warmup, e);
}

static void print_warmup(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    if (r->warmup)
        buffer_format(out, "%" PRId64, r->warmup);
}

static int parse_clip(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_real(values, count, 1e-12, 1e12, &f->recipe.clip_norm, e);
}

static void print_clip(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    if (r->clip_norm > 0)
        print_real(out, r->clip_norm);
}

static int parse_batch(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_int(values, count, 1, 1 << 20, &f->recipe.batch_size, e);
}

static void print_batch(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    buffer_format(out, "%d", r->batch_size);
}

static int parse_hold_out(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_int(values, count, 0, INT_MAX, &f->recipe.hold_out, e);
}

static void print_hold_out(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    if (r->hold_out)
        buffer_format(out, "%d", r->hold_out);
}

static int parse_seed(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    int64_t n = 0;
    const int rc = setting_parse_integer(values, count, 0, 1LL << 53, &n, e);

    f->recipe.seed = (uint64_t)n;
    return rc;
}

static void print_seed(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    if (r->seed)
        buffer_format(out, "%" PRIu64, r->seed);
}

static int parse_augment(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_word(f, WORD_AUGMENT, values, count, &f->recipe.transform, e);
}

static void print_augment(struct buffer *out, const struct model *m, const struct recipe *r)
{
    if (r->transform && (!m->transform || strcmp(r->transform, m->transform) != 0))
        buffer_append_text(out, r->transform);
}

static int parse_moving_average(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    const int rc = setting_parse_real(values, count, 0, 1, &f->recipe.moving_average, e);

    f->model.moving_averages = f->recipe.moving_average > 0;
    return rc;
}

static void print_moving_average(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    if (r->moving_average > 0)
        print_real(out, r->moving_average);
}

static int parse_loss_average(struct model_file *f, char *const *values, size_t count, struct error *e)
{
    return setting_parse_real(values, count, 0, 1, &f->recipe.loss_average, e);
}

static void print_loss_average(struct buffer *out, const struct model *m, const struct recipe *r)
{
    (void)m;
    if (r->loss_average > 0)
        print_real(out, r->loss_average);
}

static const struct model_setting table[] = {
    { "input", "HEIGHTxWIDTHxCHANNELS", "the input; default: as the data's", 0, parse_input, print_input },
    { "classes", "N", "logits of a sample; default: as the data's", 0, parse_classes, print_classes },
    { "task", "classification|next_word", "of images (default), or of integers such as words", 0, parse_task,
      print_task },
    { "labels", "N", "of next_word: words of a sample, each with the next one as its label; default: one label", 0,
      parse_labels, print_labels },
    { "features", "N", "of next_word: numbers beside the words of a sample, made of an image; default: none", 0,
      parse_features, print_features },
    { "transform", "NAME", "how images become the input; default: unit, which divides by 255", 0, parse_transform,
      print_transform },
    { "statistics_decay", "X", "of the moving statistics of batch_norm; default: 0.9", 0, parse_statistics,
      print_statistics },
    { "ties", "lowest|correct", "equal logits: the lowest class is predicted (default), or the label", 0, parse_ties,
      print_ties },
    { "optimizer", "NAME", "a name of --optimizer; default: momentum", 1, parse_optimizer, print_optimizer },
    { "learning_rate", "X", "before the schedule; default: 0.01", 1, parse_learning_rate, print_learning_rate },
    { "momentum", "X", "of the optimizer momentum; default: 0.9", 1, parse_momentum, print_momentum },
    { "schedule", "STEP:FACTOR...|every STEPS FACTOR", "factors of the learning rate from these steps on", 1,
      parse_schedule, print_schedule },
    { "warmup", "STEPS", "steps over which the learning rate rises; default: 0", 1, parse_warmup, print_warmup },
    { "clip_norm", "X", "the largest norm of a gradient; default: any", 1, parse_clip, print_clip },
    { "batch_size", "N", "samples of a step and worker; default: 128", 1, parse_batch, print_batch },
    { "hold_out", "N", "the first training samples, which it is not trained on; default: 0", 1, parse_hold_out,
      print_hold_out },
    { "seed", "N", "of initial values and of the order of samples; default: 1", 1, parse_seed, print_seed },
    { "augment", "NAME", "how images become the input in training; default: transform", 1, parse_augment,
      print_augment },
    { "moving_average", "X", "keep moving averages of this decay, and evaluate with them", 1, parse_moving_average,
      print_moving_average },
    { "loss_average", "X", "keep moving averages of the losses in checkpoints", 1, parse_loss_average,
      print_loss_average },
};

const struct model_setting *model_settings(size_t *count)
{
    *count = sizeof table / sizeof *table;
    return table;
}
