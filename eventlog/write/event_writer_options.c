#include "eventlog/write/event_writer.h"

#include "base/bytes.h"
#include "eventlog/eventlog.h"
#include "eventlog/public.h"

#include <string.h>

enum { SOURCE_MAX = 128 };

int event_writer_check_options(const struct eventlog_writer_options *o, struct error *e)
{
    if (o->buffer_bytes > ((size_t)1 << 30))
        return error_set(e, ERR_ARG, "a buffer of %zu bytes is more than 1 GiB", o->buffer_bytes);
    if (o->queue_bytes > (size_t)1 << 40)
        return error_set(e, ERR_ARG, "a queue of %zu bytes is more than 1 TiB", o->queue_bytes);
    if (!(o->flush_seconds >= 0))
        return error_set(e, ERR_ARG, "flush_seconds %g is not a length of time", o->flush_seconds);
    if (!(o->rotate_seconds >= 0))
        return error_set(e, ERR_ARG, "rotate_seconds %g is not a length of time", o->rotate_seconds);
    if (o->sync < EVENTLOG_SYNC_NEVER || o->sync > EVENTLOG_SYNC_EVERY ||
        (o->sync == EVENTLOG_SYNC_EVERY && !(o->sync_seconds > 0)))
        return error_set(e, ERR_ARG, "sync %d with sync_seconds %g is not a policy", (int)o->sync, o->sync_seconds);
    if (o->resume < EVENTLOG_RESUME_NEW || o->resume > EVENTLOG_RESUME_PURGE)
        return error_set(e, ERR_ARG, "resume %d is not a policy", (int)o->resume);
    if (o->when_full < EVENTLOG_WHEN_FULL_WAIT || o->when_full > EVENTLOG_WHEN_FULL_DROP)
        return error_set(e, ERR_ARG, "when_full %d is not a policy", (int)o->when_full);
    if (o->leave_lost != 0 && o->leave_lost != 1)
        return error_set(e, ERR_ARG, "leave_lost %lld is neither 0 nor 1", (long long)o->leave_lost);
    if (o->suffix && (strchr(o->suffix, '/') || !utf8_valid(o->suffix, strlen(o->suffix), NULL)))
        return error_set(e, ERR_ARG, "suffix '%.80s' contains a slash or is not UTF-8", o->suffix);
    if (o->source && (strlen(o->source) > SOURCE_MAX || !utf8_valid(o->source, strlen(o->source), NULL)))
        return error_set(e, ERR_ARG, "source '%.80s' is longer than %d bytes or not UTF-8", o->source, SOURCE_MAX);
    return OK;
}
