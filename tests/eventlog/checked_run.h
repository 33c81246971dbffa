/*
 * checked_run.h - for tests of log_check: messages made field by field, as writers other than ours would, and a run of
 * them that is checked.
 */
#ifndef TESTS_EVENTLOG_CHECKED_RUN_H
#define TESTS_EVENTLOG_CHECKED_RUN_H

#include "base/bytes.h"
#include "eventlog/check/log_check.h"
#include "eventlog/format/wire.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages, by value -------------------------------------------------------------------------------------- */

struct bytes {
    uint8_t at[600];
    size_t n;
};

static inline struct bytes none(void)
{
    return (struct bytes){ .n = 0 };
}

static inline struct bytes both(struct bytes a, struct bytes b)
{
    memcpy(a.at + a.n, b.at, b.n);
    a.n += b.n;
    return a;
}

static inline struct bytes integer(int field, int64_t v)
{
    struct bytes b = none();

    b.n = (size_t)put_varint(b.at, (uint64_t)field << 3);
    b.n += (size_t)put_varint(b.at + b.n, (uint64_t)v);
    return b;
}

static inline struct bytes real(int field, double v)
{
    struct bytes b = { .n = 9 };

    b.at[0] = (uint8_t)(field << 3 | WIRE_FIXED64);
    put_le64(b.at + 1, double_bits(v));
    return b;
}

static inline struct bytes single(int field, float v)
{
    struct bytes b = { .n = 5 };

    b.at[0] = (uint8_t)(field << 3 | WIRE_FIXED32);
    put_le32(b.at + 1, float_bits(v));
    return b;
}

static inline struct bytes part(int field, struct bytes inner)
{
    struct bytes b = none();

    b.n = (size_t)put_varint(b.at, (uint64_t)field << 3 | WIRE_BYTES);
    b.n += (size_t)put_varint(b.at + b.n, inner.n);
    return both(b, inner);
}

static inline struct bytes words(int field, const char *text)
{
    struct bytes b = { .n = strlen(text) };

    memcpy(b.at, text, b.n);
    return part(field, b);
}

static inline struct bytes metadata(const char *plugin, int data_class)
{
    struct bytes b = part(1, words(1, plugin));

    return part(9, data_class ? both(b, integer(4, data_class)) : b);
}

static inline struct bytes value(const char *tag, struct bytes content)
{
    return part(1, both(words(1, tag), content));
}

/* dims: "" for rank 0, else one digit a dimension. */
static inline struct bytes tensor(int dtype, const char *dims, struct bytes list)
{
    struct bytes shape = none();

    for (; *dims; dims++)
        shape = both(shape, part(2, integer(1, *dims - '0')));
    return part(8, both(both(integer(1, dtype), part(2, shape)), list));
}

static inline struct bytes event(double wall, int64_t step, struct bytes summary)
{
    return both(both(real(1, wall), integer(2, step)), part(5, summary));
}

static inline struct bytes scalar(const char *tag, float v)
{
    return value(tag, single(2, v));
}

/* ---- a run --------------------------------------------------------------------------------------------------- */

static struct log_check *check;
static uint64_t place;
static int may_fail, failed; /* may_fail: for want of memory; then all that follows is left out */

static inline void good(int rc)
{
    failed |= rc == ERR_NOMEM && may_fail;
    if (!failed)
        assert_int_equal(rc, OK);
}

static inline void file(const char *name)
{
    if (!failed)
        good(log_check_file(check, name, NULL));
    place = 0;
}

static inline void add(struct bytes b)
{
    uint8_t *exact = failed ? NULL : malloc(b.n ? b.n : 1); /* a byte too many is seen by the sanitizer */

    if (!exact) {
        failed = may_fail;
        return;
    }
    memcpy(exact, b.at, b.n);
    good(log_check_record(check, place, exact, b.n, NULL));
    place += b.n + RECORD_OVERHEAD;
    free(exact);
}

static inline void end(void)
{
    if (!failed)
        good(log_check_end(check, place, place, NULL));
}

static inline void begin_at(const char *name, double wall)
{
    file(name);
    add(both(real(1, wall), words(3, "brain.Event:2")));
}

static inline void begin(void)
{
    begin_at("events.out.tfevents.1.h.1.0", 1);
}

static inline void damage(enum record_damage kind)
{
    struct record r = { .offset = place, .damage = kind };

    if (!failed)
        good(log_check_damage(check, &r, NULL));
    place += 30;
}

/* A point of a tag, and that after it another point of the same tag is sound. */
static inline void one(struct bytes v)
{
    begin();
    add(event(5, 1, v));
    end();
}

static inline void two(struct bytes first, struct bytes second)
{
    begin();
    add(event(5, 1, first));
    add(event(6, 2, second));
    end();
}

static inline struct bytes with(struct bytes content, const char *plugin, int data_class)
{
    return value("t", both(content, metadata(plugin, data_class)));
}

#endif
