#include "eventlog/event_wire.h"

#include "base/bytes.h"
#include "eventlog/wire.h"

enum { MESSAGE_DEPTH = 100 }; /* protobuf's own limit */

/* ---- the messages ---------------------------------------------------------------------------------------------- */

enum message { NONE, EVENT, SUMMARY, VALUE, IMAGE, HISTOGRAM, AUDIO, TENSOR, SHAPE, DIM, METADATA, PLUGIN_DATA, SOURCE,
               LOG_MESSAGE, SESSION_LOG, RUN_METADATA, RESOURCE, RESOURCE_SHAPE, VARIANT, MESSAGES };
/* How a field stands on the wire: one letter each. v varint, d fixed64, f fixed32, s string, b bytes, m message (sub),
 * and repeated numbers, which may be packed: V, D, F. */
struct known {
    char form;
    enum message sub;
};
enum { FIELDS = 19 };

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
};

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
        return f->type == (form == 'V' ? WIRE_VARINT : form == 'D' ? WIRE_FIXED64 : WIRE_FIXED32)
                   ? EVENT_SOUND : EVENT_OTHER_WIRE_TYPE;
    case 's':
        if (f->type == WIRE_BYTES)
            return utf8_valid(f->bytes, f->length, NULL) ? EVENT_SOUND : EVENT_NOT_UTF8;
        return EVENT_OTHER_WIRE_TYPE;
    default:
        return f->type == WIRE_BYTES ? EVENT_SOUND : EVENT_OTHER_WIRE_TYPE;
    }
}

static enum event_fault walk(const uint8_t *p, const uint8_t *end, enum message message, int depth,
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
        known = f.number < FIELDS ? &fields[message][f.number] : &fields[NONE][0];
        if (!known->form)
            continue;
        if ((fault = field_fault(&f, known->form)) != EVENT_SOUND)
            return fault;
        if (known->form != 'm')
            continue;
        if (depth == MESSAGE_DEPTH)
            return EVENT_NOT_PROTOBUF;
        if ((fault = walk(f.bytes, f.bytes + f.length, known->sub, depth + 1, place)) != EVENT_SOUND)
            return fault;
    }
    return EVENT_SOUND;
}

enum event_fault event_wire_check(const uint8_t *bytes, size_t n, size_t *place)
{
    const uint8_t *at = bytes;
    enum event_fault fault = walk(bytes, bytes + n, EVENT, 1, &at);

    if (place)
        *place = (size_t)(at - bytes);
    return fault;
}
