/*
 *   Example          1: Features
 *   SequenceExample  1: Features   2: FeatureLists
 *   Features         1: entry, any number: 1: key   2: Feature
 *   Feature          1: BytesList   2: FloatList   3: Int64List
 *   FeatureLists     1: entry, any number: 1: key   2: FeatureList
 *   FeatureList      1: Feature, any number
 *
 * All of them are messages; fields 1 and 2 of an Event are its wall time, of 8 bytes, and its step, an integer. So no
 * record is both.
 */
#include "eventlog/format/foreign_record.h"

#include "eventlog/format/wire.h"

enum example_message { FEATURES, FEATURES_ENTRY, FEATURE, LISTS, LISTS_ENTRY, LIST, ANY };

/* What is in fields 1, 2 and 3 of each. */
static const enum example_message inner[ANY][3] = {
    [FEATURES] = { FEATURES_ENTRY }, [FEATURES_ENTRY] = { ANY, FEATURE }, [FEATURE] = { ANY, ANY, ANY },
    [LISTS] = { LISTS_ENTRY },       [LISTS_ENTRY] = { ANY, LIST },       [LIST] = { FEATURE },
};
static const size_t fields[ANY] = { 1, 2, 3, 1, 2, 1 };

/* 1: it has these fields and no others. Messages nest five deep at most. */
static int is_message(enum example_message m, const uint8_t *p, size_t n)
{
    const uint8_t *end = p + n;
    struct wire_field f;

    if (m == ANY)
        return 1;
    while (p < end)
        if (wire_take(&p, end, &f) != 1 || f.type != WIRE_BYTES || !f.number || f.number > fields[m] ||
            !is_message(inner[m][f.number - 1], f.bytes, f.length))
            return 0;
    return 1;
}

static int is_of_event(const struct wire_field *f)
{
    return f->number == 1   ? f->type == WIRE_FIXED64
           : f->number == 2 ? f->type == WIRE_VARINT
                            : f->number <= 10 && f->type == WIRE_BYTES;
}

enum foreign_kind foreign_record(const uint8_t *data, size_t n)
{
    const uint8_t *p = data, *end = data + n;
    int example = n > 0, lists = 0;
    struct wire_field f;

    while (p < end) {
        if (wire_take(&p, end, &f) != 1 || is_of_event(&f))
            return FOREIGN_NOT;
        example &= f.type == WIRE_BYTES && (f.number == 1 || f.number == 2) &&
                   is_message(f.number == 1 ? FEATURES : LISTS, f.bytes, f.length);
        lists |= f.number == 2;
    }
    return !n ? FOREIGN_NOT : !example ? FOREIGN_OTHER : lists ? FOREIGN_SEQUENCE_EXAMPLE : FOREIGN_EXAMPLE;
}
