#include "evaluator/watch_log.h"

#include "base/buffer.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void say(const struct evaluation_watch *w, const char *level, const char *fields, const char *format,
                va_list args)
{
    struct buffer more = BUFFER_EMPTY;
    char text[WATCH_LOG_MAX];

    vsnprintf(text, sizeof text, format, args);
    if (w->settings.name && w->log->json) {
        buffer_append_text(&more, "\"watch\":");
        json_text(&more, w->settings.name);
        buffer_format(&more, "%s%s", fields ? "," : "", fields ? fields : "");
        fields = buffer_text(&more);
    }
    if (w->settings.name)
        log_event(w->log, level, fields, "%s: %s", w->settings.name, text);
    else
        log_event(w->log, level, fields, "%s", text);
    buffer_release(&more);
}

void watch_log_say(const struct evaluation_watch *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(w, "info", NULL, format, args);
    va_end(args);
}

void watch_log_warn(const struct evaluation_watch *w, const char *level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(w, level, NULL, format, args);
    va_end(args);
}

void watch_log_of(const struct evaluation_watch *w, const struct ledger_record *r, const char *level,
                  const char *format, ...)
{
    struct buffer fields = BUFFER_EMPTY;
    va_list args;

    if (w->log->json) {
        buffer_format(&fields, "\"step\":%" PRId64 ",\"checkpoint\":", r->checkpoint.step);
        json_file_name(&fields, r->checkpoint.name);
        if (r->status == LEDGER_DONE && r->metrics.count) {
            buffer_append_text(&fields, ",\"metrics\":");
            evaluation_metrics_json(&r->metrics, &fields);
        }
    }
    va_start(args, format);
    say(w, level, buffer_text(&fields), format, args);
    va_end(args);
    buffer_release(&fields);
}
