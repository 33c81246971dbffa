#include "evaluator/watch_log.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void say(const struct watch_log *w, const char *level, const char *fields, const char *format, va_list args)
{
    struct buffer more = BUFFER_EMPTY;
    char text[WATCH_LOG_MAX];

    vsnprintf(text, sizeof text, format, args);
    if (w->name && w->log->json) {
        buffer_append_text(&more, "\"watch\":");
        json_text(&more, w->name);
        buffer_format(&more, "%s%s", fields ? "," : "", fields ? fields : "");
        fields = buffer_text(&more);
    }
    if (w->name)
        log_event(w->log, level, fields, "%s: %s", w->name, text);
    else
        log_event(w->log, level, fields, "%s", text);
    buffer_release(&more);
}

void watch_log_say(const struct watch_log *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(w, "info", NULL, format, args);
    va_end(args);
}

void watch_log_warn(const struct watch_log *w, const char *level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(w, level, NULL, format, args);
    va_end(args);
}

void watch_log_of(const struct watch_log *w, const struct ledger_record *r, const char *level, const char *format, ...)
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

void watch_log_result(const struct watch_log *w, const struct ledger_record *r)
{
    const char *program = w->log->program;
    char text[WATCH_LOG_MAX - 400];

    log_progress_end(w->log);
    if (r->status != LEDGER_DONE)
        watch_log_of(w, r, r->status == LEDGER_GONE ? "warning" : "error", "%s: %s: %s", r->checkpoint.name,
                     r->status == LEDGER_GONE ? "gone" : "failed", r->reason);
    if (!r->has_metrics)
        return;
    evaluation_metrics_text(&r->metrics, text, sizeof text);
    if (!w->log->json)
        w->log->program = NULL; /* people parse this line: do not change it */
    watch_log_of(w, r, "info", "step: %" PRId64 ", %s: %s", r->checkpoint.step, r->checkpoint.name, text);
    w->log->program = program;
}

void watch_log_progress(const struct watch_log *w, const struct ledger_record *r, double share, size_t queued)
{
    char so_far[HUMAN_TEXT_MAX];

    if (!w->log->terminal)
        return;
    if (share < 0)
        human_duration(clock_wall() - r->started, so_far);
    else
        snprintf(so_far, sizeof so_far, "%.0f %%", share * 100);
    log_progress(w->log, "%s%s%s: %s, %zu queued", w->name ? w->name : "", w->name ? ": " : "", r->checkpoint.name,
                 so_far, queued);
}
