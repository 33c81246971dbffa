#include "eventlog/write/event_writer.h"

#include "eventlog/eventlog.h"
#include "eventlog/format/value_content.h"

#include <stdint.h>
#include <string.h>

enum { DATA_CLASS_TENSOR = 2, RANK_MAX = 254 }; /* TensorFlow's limit of dimensions */

static int tensor_check(int dtype, const int64_t *shape, size_t rank, const uint8_t *data, size_t bytes,
                        struct error *e)
{
    size_t want = tensor_content_item(dtype);
    int empty = 0;

    if (!want || dtype == EVENTLOG_DTYPE_BFLOAT16) /* cannot be an array in TensorBoard */
        return error_set(e, ERR_ARG, "TensorBoard cannot read tensors of dtype %d", dtype);
    if (rank > RANK_MAX)
        return error_set(e, ERR_ARG, "a tensor of %zu dimensions; at most %d can be written", rank, RANK_MAX);
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return error_set(e, ERR_ARG, "dimension %zu of a tensor cannot be %lld", i, (long long)shape[i]);
        empty = empty || shape[i] == 0;
    }
    for (size_t i = 0; i < rank && !empty; i++) {
        if ((uint64_t)shape[i] > SIZE_MAX / want)
            return error_set(e, ERR_ARG, "the shape of a tensor makes more bytes than memory can hold");
        want *= (size_t)shape[i];
    }
    if (bytes != (empty ? 0 : want))
        return error_set(e, ERR_ARG, "%zu bytes for a tensor whose shape and dtype need %zu", bytes,
                         empty ? (size_t)0 : want);
    for (size_t i = 0; dtype == EVENTLOG_DTYPE_BOOL && i < bytes; i++)
        if (data[i] > 1)
            return error_set(e, ERR_ARG, "element %zu of a tensor of bools is %d, not 0 or 1", i, data[i]);
    return OK;
}

/* Plugins whose series are not tensors: TensorBoard would fail on them or show nothing. */
static int check_plugin(const char *plugin, struct error *e)
{
    static const char *const others[] = { "scalars",
                                          "images",
                                          "audio",
                                          "text",
                                          "hparams",
                                          "custom_scalars",
                                          "graphs",
                                          "graph_run_metadata",
                                          "graph_run_metadata_graph",
                                          "graph_keras_model",
                                          "graph_tagged_run_metadata" };

    if (!*plugin)
        return error_set(e, ERR_ARG, "a tensor needs the name of its plugin");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(plugin, others[i]))
            return error_set(e, ERR_ARG, "plugin %s does not take a tensor of numbers", plugin);
    return OK;
}

int eventlog_writer_tensor(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                           enum eventlog_dtype dtype, const int64_t *shape, size_t rank, const void *data, size_t bytes,
                           const struct eventlog_value_options *options, struct eventlog_error *error)
{
    struct event_writer_value value = { .tag = tag,
                                        .step = step,
                                        .wall_time = wall_time,
                                        .plugin = "tensors",
                                        .data_class = DATA_CLASS_TENSOR,
                                        .options = options };
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc;

    if (options && options->plugin)
        value.plugin = options->plugin;
    if (options && options->plugin_content_length) {
        value.content = options->plugin_content;
        value.content_length = options->plugin_content_length;
    }
    rc = check_plugin(value.plugin, &e);
    if (rc == OK && (rc = tensor_check(dtype, shape, rank, data, bytes, &e)) == OK) {
        size_t tensor = event_writer_value_tensor(&member, dtype, shape, rank);

        if (bytes)
            wire_bytes(&member, TENSOR_FIELD_CONTENT, data, bytes);
        wire_end(&member, tensor);
    }
    return event_writer_finish(w, rc, &value, &member, &e, error);
}
