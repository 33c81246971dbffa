#include "eventlog/format/event_wire.h"

#include "base/bytes.h"
#include "eventlog/format/wire.h"

enum { MESSAGE_DEPTH = 100 }; /* protobuf's limit on nested messages and groups */

/* ---- the messages ---------------------------------------------------------------------------------------------- */

/* clang-format off */
enum message { NONE, EVENT, SUMMARY, VALUE, IMAGE, HISTOGRAM, AUDIO, TENSOR, SHAPE, DIM, METADATA, PLUGIN_DATA, SOURCE,
               LOG_MESSAGE, SESSION_LOG, RUN_METADATA, RESOURCE, RESOURCE_SHAPE, VARIANT,
               GRAPH, NODE, ATTRIBUTE, CONTENT, LIST, CALL, NODE_ORIGIN, NODE_TYPE, VERSIONS, LIBRARY, FUNCTION,
               ARGUMENT, ARGUMENT_CONTENT, NUMBERED, NAMED, OPERATION, OPERAND, OPERATION_ATTRIBUTE, DEPRECATION,
               ORIGINS, FRAME, FRAME_LINE, TRACE, TRACE_LINES, NAMED_TRACE, TRACE_NUMBER, MESSAGES };
/* How a field is encoded, one letter each. v varint, d fixed64, f fixed32, s string, b bytes, m message (sub), and
 * repeated numbers, which may be packed: V, D, F. */
struct known {
    char form;
    enum message sub;
};
/* clang-format on */
enum { FIELDS = 21 };

/* clang-format off */
static const struct known fields[MESSAGES][FIELDS] = {
    [EVENT] = { [1] = { 'd', 0 }, [2] = { 'v', 0 }, [3] = { 's', 0 }, [4] = { 'b', 0 }, [5] = { 'm', SUMMARY },
                [6] = { 'm', LOG_MESSAGE }, [7] = { 'm', SESSION_LOG }, [8] = { 'm', RUN_METADATA }, [9] = { 'b', 0 },
                [10] = { 'm', SOURCE } },
    [SUMMARY] = { [1] = { 'm', VALUE } },
    [VALUE] = { [1] = { 's', 0 }, [2] = { 'f', 0 }, [3] = { 'b', 0 }, [4] = { 'm', IMAGE }, [5] = { 'm', HISTOGRAM },
                [6] = { 'm', AUDIO }, [7] = { 's', 0 }, [8] = { 'm', TENSOR }, [9] = { 'm', METADATA } },
    [IMAGE] = { [1] = { 'v', 0 }, [2] = { 'v', 0 }, [3] = { 'v', 0 }, [4] = { 'b', 0 } },
    [HISTOGRAM] = { [1] = { 'd', 0 }, [2] = { 'd', 0 }, [3] = { 'd', 0 }, [4] = { 'd', 0 }, [5] = { 'd', 0 },
                    [6] = { 'D', 0 }, [7] = { 'D', 0 } },
    [AUDIO] = { [1] = { 'f', 0 }, [2] = { 'v', 0 }, [3] = { 'v', 0 }, [4] = { 'b', 0 }, [5] = { 's', 0 } },
    [TENSOR] = { [1] = { 'v', 0 }, [2] = { 'm', SHAPE }, [3] = { 'v', 0 }, [4] = { 'b', 0 }, [5] = { 'F', 0 },
                 [6] = { 'D', 0 }, [7] = { 'V', 0 }, [8] = { 'b', 0 }, [9] = { 'F', 0 }, [10] = { 'V', 0 },
                 [11] = { 'V', 0 }, [12] = { 'D', 0 }, [13] = { 'V', 0 }, [14] = { 'm', RESOURCE },
                 [15] = { 'm', VARIANT }, [16] = { 'V', 0 }, [17] = { 'V', 0 } },
    [SHAPE] = { [2] = { 'm', DIM }, [3] = { 'v', 0 } },
    [DIM] = { [1] = { 'v', 0 }, [2] = { 's', 0 } },
    [METADATA] = { [1] = { 'm', PLUGIN_DATA }, [2] = { 's', 0 }, [3] = { 's', 0 }, [4] = { 'v', 0 } },
    [PLUGIN_DATA] = { [1] = { 's', 0 }, [2] = { 'b', 0 } },
    [SOURCE] = { [1] = { 's', 0 } },
    [LOG_MESSAGE] = { [1] = { 'v', 0 }, [2] = { 's', 0 } },
    [SESSION_LOG] = { [1] = { 'v', 0 }, [2] = { 's', 0 }, [3] = { 's', 0 } },
    [RUN_METADATA] = { [1] = { 's', 0 }, [2] = { 'b', 0 } },
    [RESOURCE] = { [1] = { 's', 0 }, [2] = { 's', 0 }, [3] = { 's', 0 }, [4] = { 'v', 0 }, [5] = { 's', 0 },
                   [6] = { 'm', RESOURCE_SHAPE } },
    [RESOURCE_SHAPE] = { [1] = { 'v', 0 }, [2] = { 'm', SHAPE } },
    [VARIANT] = { [1] = { 's', 0 }, [2] = { 'b', 0 }, [3] = { 'm', TENSOR } },

    [GRAPH] = { [1] = { 'm', NODE }, [2] = { 'm', LIBRARY }, [3] = { 'v', 0 }, [4] = { 'm', VERSIONS },
                [5] = { 'm', ORIGINS } },
    [NODE] = { [1] = { 's', 0 }, [2] = { 's', 0 }, [3] = { 's', 0 }, [4] = { 's', 0 }, [5] = { 'm', ATTRIBUTE },
               [6] = { 'm', NODE_ORIGIN }, [7] = { 'm', NODE_TYPE } },
    [ATTRIBUTE] = { [1] = { 's', 0 }, [2] = { 'm', CONTENT } },
    [CONTENT] = { [1] = { 'm', LIST }, [2] = { 'b', 0 }, [3] = { 'v', 0 }, [4] = { 'f', 0 }, [5] = { 'v', 0 },
                  [6] = { 'v', 0 }, [7] = { 'm', SHAPE }, [8] = { 'm', TENSOR }, [9] = { 's', 0 },
                  [10] = { 'm', CALL } },
    [LIST] = { [2] = { 'b', 0 }, [3] = { 'V', 0 }, [4] = { 'F', 0 }, [5] = { 'V', 0 }, [6] = { 'V', 0 },
               [7] = { 'm', SHAPE }, [8] = { 'm', TENSOR }, [9] = { 'm', CALL } },
    [CALL] = { [1] = { 's', 0 }, [2] = { 'm', ATTRIBUTE } },
    [NODE_ORIGIN] = { [1] = { 's', 0 }, [2] = { 's', 0 } },
    [NODE_TYPE] = { [1] = { 'v', 0 }, [2] = { 'm', NODE_TYPE }, [3] = { 's', 0 }, [4] = { 'v', 0 } },
    [VERSIONS] = { [1] = { 'v', 0 }, [2] = { 'v', 0 }, [3] = { 'V', 0 } },
    [LIBRARY] = { [1] = { 'm', FUNCTION }, [2] = { 'm', NAMED }, [3] = { 'm', NAMED } },
    [FUNCTION] = { [1] = { 'm', OPERATION }, [3] = { 'm', NODE }, [4] = { 'm', NAMED }, [5] = { 'm', ATTRIBUTE },
                   [6] = { 'm', NAMED }, [7] = { 'm', ARGUMENT }, [8] = { 'm', NUMBERED } },
    [ARGUMENT] = { [1] = { 'v', 0 }, [2] = { 'm', ARGUMENT_CONTENT } },
    [ARGUMENT_CONTENT] = { [1] = { 'm', ATTRIBUTE } },
    [NUMBERED] = { [1] = { 'v', 0 }, [2] = { 'v', 0 } },
    [NAMED] = { [1] = { 's', 0 }, [2] = { 's', 0 } },
    [OPERATION] = { [1] = { 's', 0 }, [2] = { 'm', OPERAND }, [3] = { 'm', OPERAND },
                    [4] = { 'm', OPERATION_ATTRIBUTE }, [5] = { 's', 0 }, [6] = { 's', 0 }, [8] = { 'm', DEPRECATION },
                    [20] = { 's', 0 } },
    [OPERAND] = { [1] = { 's', 0 }, [2] = { 's', 0 }, [3] = { 'v', 0 }, [4] = { 's', 0 }, [5] = { 's', 0 },
                  [6] = { 's', 0 }, [7] = { 'm', RESOURCE_SHAPE }, [16] = { 'v', 0 }, [17] = { 'm', NODE_TYPE } },
    [OPERATION_ATTRIBUTE] = { [1] = { 's', 0 }, [2] = { 's', 0 }, [3] = { 'm', CONTENT }, [4] = { 's', 0 },
                              [5] = { 'v', 0 }, [6] = { 'v', 0 }, [7] = { 'm', CONTENT } },
    [DEPRECATION] = { [1] = { 'v', 0 }, [2] = { 's', 0 } },
    [ORIGINS] = { [1] = { 's', 0 }, [2] = { 'm', NAMED_TRACE }, [4] = { 'm', FRAME }, [5] = { 'm', TRACE_NUMBER },
                  [6] = { 'm', TRACE } },
    [FRAME] = { [1] = { 'd', 0 }, [2] = { 'm', FRAME_LINE } },
    [FRAME_LINE] = { [1] = { 'v', 0 }, [2] = { 'v', 0 }, [3] = { 'v', 0 }, [4] = { 's', 0 }, [5] = { 's', 0 } },
    [TRACE] = { [1] = { 'd', 0 }, [2] = { 'm', TRACE_LINES } },
    [TRACE_LINES] = { [1] = { 'm', FRAME_LINE }, [2] = { 'D', 0 } },
    [NAMED_TRACE] = { [1] = { 's', 0 }, [2] = { 'm', TRACE_LINES } },
    [TRACE_NUMBER] = { [1] = { 's', 0 }, [2] = { 'd', 0 } },
};
/* clang-format on */

static int packed_good(const struct wire_field *f, char form)
{
    uint64_t v;

    if (form != 'V')
        return f->length % (form == 'D' ? 8 : 4) == 0;
    for (size_t i = 0; i < f->length;) {
        int n = get_varint(f->bytes + i, f->length - i, &v);

        if (n <= 0)
            return 0;
        i += (size_t)n;
    }
    return 1;
}

static enum event_fault field_fault(const struct wire_field *f, char form)
{
    switch (form) {
    case 'v': return f->type == WIRE_VARINT ? EVENT_SOUND : EVENT_OTHER_WIRE_TYPE;
    case 'd': return f->type == WIRE_FIXED64 ? EVENT_SOUND : EVENT_OTHER_WIRE_TYPE;
    case 'f': return f->type == WIRE_FIXED32 ? EVENT_SOUND : EVENT_OTHER_WIRE_TYPE;
    case 'V':
    case 'D':
    case 'F':
        if (f->type == WIRE_BYTES)
            return packed_good(f, form) ? EVENT_SOUND : EVENT_NOT_PROTOBUF;
        return f->type == (form == 'V'   ? WIRE_VARINT
                           : form == 'D' ? WIRE_FIXED64
                                         : WIRE_FIXED32)
                   ? EVENT_SOUND
                   : EVENT_OTHER_WIRE_TYPE;
    case 's':
        if (f->type == WIRE_BYTES)
            return utf8_valid(f->bytes, f->length, NULL) ? EVENT_SOUND : EVENT_NOT_UTF8;
        return EVENT_OTHER_WIRE_TYPE;
    default: return f->type == WIRE_BYTES ? EVENT_SOUND : EVENT_OTHER_WIRE_TYPE;
    }
}

/* lenient: like Python's protobuf, treat a known field of another wire type as unknown. */
static enum event_fault walk(const uint8_t *p, const uint8_t *end, enum message message, int lenient, int depth,
                             const uint8_t **place)
{
    while (p < end) {
        struct wire_field f;
        enum event_fault fault;
        const struct known *known;
        int taken;

        *place = p;
        if ((taken = wire_take(&p, end, &f)) != 1)
            return taken < 0 ? EVENT_STRAY_GROUP_END : EVENT_NOT_PROTOBUF;
        if (f.type == WIRE_GROUP && depth - 1 + f.depth > MESSAGE_DEPTH) /* the event itself does not count */
            return EVENT_NOT_PROTOBUF;
        known = f.number < FIELDS ? &fields[message][f.number] : &fields[NONE][0];
        if (!known->form)
            continue;
        if ((fault = field_fault(&f, known->form)) == EVENT_OTHER_WIRE_TYPE && lenient)
            continue;
        if (fault != EVENT_SOUND)
            return fault;
        if (known->form != 'm')
            continue;
        if (depth == MESSAGE_DEPTH)
            return EVENT_NOT_PROTOBUF;
        if ((fault = walk(f.bytes, f.bytes + f.length, known->sub, lenient, depth + 1, place)) != EVENT_SOUND)
            return fault;
    }
    return EVENT_SOUND;
}

enum event_fault event_wire_check(const uint8_t *bytes, size_t n, size_t *place)
{
    const uint8_t *at = bytes;
    enum event_fault fault = walk(bytes, bytes + n, EVENT, 0, 1, &at);

    if (place)
        *place = (size_t)(at - bytes);
    return fault;
}

enum event_fault graph_wire_check(const uint8_t *bytes, size_t n, size_t *nodes)
{
    const uint8_t *at = bytes, *end = bytes + n;
    enum event_fault fault = walk(bytes, end, GRAPH, 1, 1, &at);
    struct wire_field f;

    *nodes = 0;
    while (wire_take(&bytes, end, &f) == 1)
        *nodes += f.number == 1 && f.type == WIRE_BYTES;
    return fault;
}
