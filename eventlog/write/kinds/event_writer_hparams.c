#include "eventlog/write/event_writer.h"

#include "eventlog/eventlog.h"

#include <math.h>

/*
 * Everything that the hparams plugin reads is in plugin_data.content, an HParamsPluginData under one of three fixed
 * tags; the value itself is an empty tensor. Field numbers in the order of the messages in tensorboard/plugins/hparams.
 */
enum { DATA_EXPERIMENT = 2, DATA_SESSION_START = 3, DATA_SESSION_END = 4 };

/* A google.protobuf.Value for the hyperparameter; the member of a oneof is written even if it is 0. */
static int hparams_put_value(struct wire *w, int field, const struct eventlog_hparam *h, struct error *e)
{
    size_t value = wire_begin(w, field);

    switch (h->type) {
    case EVENTLOG_HPARAM_NUMBER:
        if (!isfinite(h->number))
            return error_set(e, ERR_ARG, "hyperparameter '%.80s' is %g, not a finite number", h->name ? h->name : "",
                             h->number);
        wire_number_always(w, 2, h->number);
        break;
    case EVENTLOG_HPARAM_STRING: wire_text_always(w, 3, h->text); break;
    case EVENTLOG_HPARAM_BOOL: wire_integer_always(w, 4, h->number != 0); break;
    default:
        return error_set(e, ERR_ARG, "hyperparameter '%.80s' has the unknown type %d", h->name ? h->name : "",
                         (int)h->type);
    }
    wire_end(w, value);
    return OK;
}

static int encode_start(struct wire *w, const struct eventlog_hparam *hparams, size_t n,
                        const struct eventlog_session *session, double start_time, struct error *e)
{
    size_t info = wire_begin(w, DATA_SESSION_START);

    for (size_t i = 0; i < n; i++) {
        size_t entry = wire_begin(w, 1);
        int rc;

        if (!hparams[i].name || !*hparams[i].name)
            return error_set(e, ERR_ARG, "hyperparameter %zu has no name", i);
        wire_text_always(w, 1, hparams[i].name);
        if ((rc = hparams_put_value(w, 2, hparams + i, e)) != OK)
            return rc;
        wire_end(w, entry);
    }
    if (session) {
        wire_text(w, 2, session->model_uri);
        wire_text(w, 3, session->monitor_url);
        wire_text(w, 4, session->group);
    }
    wire_number(w, 5, start_time);
    wire_end(w, info);
    return OK;
}

static int put_hparam_info(struct wire *w, const struct eventlog_hparam_info *h, struct error *e)
{
    size_t info = wire_begin(w, 4), domain;

    if (!h->name || !*h->name)
        return error_set(e, ERR_ARG, "a hyperparameter of the experiment has no name");
    if (h->type < EVENTLOG_HPARAM_STRING || h->type > EVENTLOG_HPARAM_NUMBER)
        return error_set(e, ERR_ARG, "hyperparameter '%.80s' has the unknown type %d", h->name, (int)h->type);
    wire_text(w, 1, h->name);
    wire_text(w, 2, h->display_name);
    wire_text(w, 3, h->description);
    wire_integer(w, 4, h->type);
    if (h->value_count) {
        domain = wire_begin(w, 5);
        for (size_t i = 0; i < h->value_count; i++) {
            struct eventlog_hparam value = h->values[i];
            int rc;

            value.name = h->name;
            if (value.type != h->type)
                return error_set(e, ERR_ARG, "value %zu of hyperparameter '%.80s' has another type", i, h->name);
            if ((rc = hparams_put_value(w, 1, &value, e)) != OK)
                return rc;
        }
        wire_end(w, domain);
    } else if (h->has_interval) {
        if (h->type != EVENTLOG_HPARAM_NUMBER || !isfinite(h->min) || !isfinite(h->max) || h->min > h->max)
            return error_set(e, ERR_ARG, "hyperparameter '%.80s' cannot have an interval from %g to %g", h->name,
                             h->min, h->max);
        domain = wire_begin(w, 6);
        wire_number(w, 1, h->min);
        wire_number(w, 2, h->max);
        wire_end(w, domain);
    }
    wire_end(w, info);
    return OK;
}

static int put_metric_info(struct wire *w, const struct eventlog_metric_info *m, struct error *e)
{
    size_t info = wire_begin(w, 5), name;

    if (!m->tag || !*m->tag)
        return error_set(e, ERR_ARG, "a metric of the experiment has no tag");
    if (m->dataset < EVENTLOG_DATASET_UNKNOWN || m->dataset > EVENTLOG_DATASET_VALIDATION)
        return error_set(e, ERR_ARG, "metric '%.80s' has the unknown data set type %d", m->tag, (int)m->dataset);
    name = wire_begin(w, 1);
    wire_text(w, 1, m->group);
    wire_text(w, 2, m->tag);
    wire_end(w, name);
    wire_text(w, 3, m->display_name);
    wire_text(w, 4, m->description);
    wire_integer(w, 5, m->dataset);
    wire_end(w, info);
    return OK;
}

static int encode_experiment(struct wire *w, const struct eventlog_experiment *x, double created, struct error *e)
{
    size_t experiment = wire_begin(w, DATA_EXPERIMENT);
    int rc = OK;

    wire_text(w, 1, x->description);
    wire_text(w, 2, x->user);
    wire_number(w, 3, created);
    for (size_t i = 0; i < x->hparam_count && rc == OK; i++)
        rc = put_hparam_info(w, x->hparams + i, e);
    for (size_t i = 0; i < x->metric_count && rc == OK; i++)
        rc = put_metric_info(w, x->metrics + i, e);
    wire_text(w, 6, x->name);
    wire_end(w, experiment);
    return rc;
}

/* Writes the content under its tag; releases it. */
static int finish(struct eventlog_writer *w, int rc, const char *tag, double wall_time, struct wire *content,
                  struct error *e, struct eventlog_error *error)
{
    static const int64_t shape[] = { 0 };
    struct event_writer_value value = { .tag = tag, .wall_time = wall_time, .plugin = "hparams" };
    struct wire member = WIRE_EMPTY;

    if (rc == OK)
        rc = wire_check(content, tag, e);
    value.content = content->bytes.data;
    value.content_length = content->bytes.length;
    wire_end(&member, event_writer_value_tensor(&member, EVENTLOG_DTYPE_FLOAT, shape, 1));
    rc = event_writer_finish(w, rc, &value, &member, e, error);
    wire_release(content);
    return rc;
}

int eventlog_writer_experiment(struct eventlog_writer *w, double wall_time,
                               const struct eventlog_experiment *experiment, struct eventlog_error *error)
{
    struct wire content = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = encode_experiment(&content, experiment, event_writer_time(wall_time), &e);

    return finish(w, rc, "_hparams_/experiment", wall_time, &content, &e, error);
}

int eventlog_writer_session_start(struct eventlog_writer *w, double wall_time, const struct eventlog_hparam *hparams,
                                  size_t n, const struct eventlog_session *session, struct eventlog_error *error)
{
    struct wire content = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = encode_start(&content, hparams, n, session, event_writer_time(wall_time), &e);

    return finish(w, rc, "_hparams_/session_start_info", wall_time, &content, &e, error);
}

int eventlog_writer_session_end(struct eventlog_writer *w, double wall_time, enum eventlog_session_status status,
                                struct eventlog_error *error)
{
    struct wire content = WIRE_EMPTY;
    struct error e = { 0 };
    size_t info = wire_begin(&content, DATA_SESSION_END);
    int rc = OK;

    if (status < EVENTLOG_SESSION_UNKNOWN || status > EVENTLOG_SESSION_RUNNING)
        rc = error_set(&e, ERR_ARG, "a session cannot end with the status %d", (int)status);
    wire_integer(&content, 1, status);
    wire_number(&content, 2, event_writer_time(wall_time));
    wire_end(&content, info);
    return finish(w, rc, "_hparams_/session_end_info", wall_time, &content, &e, error);
}
