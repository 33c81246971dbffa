#include "evaluator/record/session_settings.h"

#include <math.h>
#include <string.h>

static void add_text(struct session_settings *s, const char *name, const char *known, const char *told)
{
    const char *text = *known ? known : told;

    if (text && *text)
        s->items[s->count++] = (struct eventlog_hparam){ .name = name, .type = EVENTLOG_HPARAM_STRING, .text = text };
}

static void add_number(struct session_settings *s, const char *name, double x)
{
    if (isfinite(x) && x > 0)
        s->items[s->count++] = (struct eventlog_hparam){ .name = name, .type = EVENTLOG_HPARAM_NUMBER, .number = x };
}

void session_settings_fill(struct session_settings *s, const struct training_state *training, const char *model,
                           const char *data)
{
    memset(s, 0, sizeof *s);
    if (training)
        s->training = *training;
    add_text(s, "model", s->training.model, model);
    add_text(s, "data", s->training.data, data);
    add_text(s, "optimizer", s->training.optimizer, NULL);
    add_text(s, "run_option", s->training.run_option, NULL);
    add_number(s, "world_size", (double)s->training.world_size);
    add_number(s, "batch_size", (double)s->training.batch_size);
    add_number(s, "learning_rate", s->training.learning_rate);
}
