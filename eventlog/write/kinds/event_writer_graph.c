#include "eventlog/write/event_writer.h"

#include "eventlog/eventlog.h"

#include <string.h>

/* An Event's graph_def is a serialized GraphDef. VERSION is TensorFlow's graph format that nodes like ours fit. */
enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4, VERSION = 22 };

/* attr["_output_shapes"] = list of one shape: the label on the edges that leave the node. */
static void put_shape(struct wire *w, const int64_t *shape, size_t rank)
{
    size_t entry = wire_begin(w, 5), value, list, dimensions;

    wire_text(w, 1, "_output_shapes");
    value = wire_begin(w, 2);
    list = wire_begin(w, 1);
    dimensions = wire_begin(w, 7);
    event_writer_value_shape(w, shape, rank);
    wire_end(w, dimensions);
    wire_end(w, list);
    wire_end(w, value);
    wire_end(w, entry);
}

static int graph_encode(struct wire *w, const struct eventlog_node *nodes, size_t n, struct error *e)
{
    size_t graph = wire_begin(w, EVENT_FIELD_GRAPH), versions;

    for (size_t i = 0; i < n; i++) {
        size_t node = wire_begin(w, GRAPH_NODE);

        if (!nodes[i].name || !*nodes[i].name)
            return error_set(e, ERR_ARG, "node %zu of the graph has no name", i);
        wire_text(w, 1, nodes[i].name);
        wire_text(w, 2, nodes[i].operation);
        for (size_t j = 0; j < nodes[i].input_count; j++)
            wire_text_always(w, 3, nodes[i].inputs[j]);
        wire_text(w, 4, nodes[i].device);
        if (nodes[i].shape)
            put_shape(w, nodes[i].shape, nodes[i].rank);
        wire_end(w, node);
    }
    versions = wire_begin(w, GRAPH_VERSIONS);
    wire_integer(w, 1, VERSION);
    wire_end(w, versions);
    wire_end(w, graph);
    return OK;
}

int eventlog_writer_graph(struct eventlog_writer *w, double wall_time, const struct eventlog_node *nodes, size_t n,
                          struct eventlog_error *error)
{
    struct wire body = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = graph_encode(&body, nodes, n, &e);

    return event_writer_finish_event(w, rc, 0, wall_time, &body, &e, error);
}

int eventlog_writer_run_metadata(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                                 const void *bytes, size_t n, struct eventlog_error *error)
{
    struct wire body = WIRE_EMPTY;
    struct error e = { 0 };
    size_t metadata = wire_begin(&body, EVENT_FIELD_RUN_METADATA);
    int rc = OK;

    if (!tag || !*tag || tag[strcspn(tag, "\"\\\n")])
        rc = error_set(&e, ERR_ARG,
                       "tag '%.80s' of run metadata is empty or has a quote, a backslash or a newline; TensorBoard "
                       "would not serve it",
                       tag ? tag : "");
    wire_text(&body, 1, tag);
    wire_bytes(&body, 2, bytes, n);
    wire_end(&body, metadata);
    return event_writer_finish_event(w, rc, step, wall_time, &body, &e, error);
}
