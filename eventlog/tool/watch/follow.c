#include "eventlog/tool/watch/follow.h"

#include "base/clock.h"

#include <math.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

enum { SHARE = 20, RARELY = 30 };

static int run_wanted(void *context, const char *run)
{
    return scan_run_wanted(context, run);
}

/* A missing path is reported once, not at every look. */
static void tell_missing(struct follow *f, const char *path)
{
    if (path && path != f->missing)
        log_line(&f->scan->log, "%s: does not exist; waiting for it", path);
    f->scan->empty |= path != NULL;
    f->missing = path;
}

/* A change of what a link leads to is noticed where that is. */
static int has_link(const struct log_directory *d)
{
    struct stat st;

    for (size_t i = 0; i < d->count; i++)
        for (size_t k = 0; k < d->runs[i].file_count; k++)
            if (lstat(d->runs[i].files[k], &st) == 0 && S_ISLNK(st.st_mode))
                return 1;
    return 0;
}

static void watch_directories(struct follow *f, const struct log_directory *d)
{
    f->unwatched = 0;
    for (size_t i = 0; i < d->directory_count; i++)
        f->unwatched |= log_watch_directory(&f->watch, d->directories[i].path);
    f->watched = !f->watch.missed && !d->missing && !has_link(d);
}

int follow_look(struct follow *f, int first, struct error *e)
{
    struct log_directory d;
    int rc = first && !f->waits ? log_directory_list(&d, &f->scan->input, f->paths, f->path_count, e)
                                : log_directory_list_there(&d, &f->scan->input, f->paths, f->path_count, e);

    if (f->watch.fd >= 0)
        log_watch_drain(&f->watch);
    f->began = clock_monotonic();
    f->watched = 0;
    f->scan->paths = f->paths;
    f->scan->path_count = f->path_count;
    if (rc == ERR_IO && !first) { /* what is known stays, and is tried again */
        if (!f->listing_told)
            log_line(&f->scan->log, "%s; waiting for it", e->message);
        f->listing_told = 1;
        log_directory_release(&d);
        return OK;
    }
    f->listing_told = 0;
    if (rc == OK)
        tell_missing(f, d.missing);
    if (f->natural_order)
        scan_natural_order(&d);
    for (size_t i = 0; first && i < d.problem_count; i++) {
        log_line(&f->scan->log, "%s", d.problems[i]);
        f->scan->failed = 1;
    }
    f->log.input = &f->scan->input;
    f->log.wanted = run_wanted;
    f->log.context = f->scan;
    f->log.whole_runs = f->sink.restart != NULL;
    if (rc == OK)
        rc = log_follow_list(&f->log, &d, e);
    if (rc == OK && f->watch.fd >= 0)
        watch_directories(f, &d);
    log_directory_release(&d);
    for (; rc == OK && f->known < f->log.count; f->known++)
        rc = f->sink.run(f->sink.context, f->known, first, e);
    return rc;
}

/* A file that cannot be opened or read is reported once and tried again later. */
static void tell_unread(struct follow *f, struct log_follow_file *file, const struct error *e)
{
    if (file->gone ? log_input_gone(file->path, e) : scan_gone(f->scan, file->path, e)) {
        file->gone = 1;
        return;
    }
    if (!file->told)
        log_line(&f->scan->log, "%s", e->message);
    file->told = 1;
}

/* Handles a result of log_follow_next() other than the end of the round. */
static int follow_take(struct follow *f, int found, const struct event *event, const struct event_damage *damage,
                       struct error *e)
{
    size_t run = f->log.at_run;
    struct log_follow_file *file = &f->log.runs[run].files[f->log.at_file];
    const struct follow_sink *sink = &f->sink;

    switch (found) {
    case EVENTLOG_READ_EVENT:
        scan_foreign(f->scan, file->path, file->reader, event);
        f->scan->units |= 1u << time_unit_of(event->wall_time);
        return sink->event(sink->context, run, event, e);
    case EVENTLOG_READ_DAMAGE:
        scan_damage(f->scan, file->path, damage, event_reader_state(file->reader).damaged);
        return OK;
    case EVENTLOG_READ_RESTARTED:
        log_line(&f->scan->log, "%s: was truncated or replaced; reading it again from its start", file->path);
        if (sink->restart)
            sink->restart(sink->context, run);
        return OK;
    case LOG_FOLLOW_FILE_END: file->told = file->gone = 0; break;
    case ERR_IO: tell_unread(f, file, e); break;
    default: return found;
    }
    return sink->end && log_follow_last_file(&f->log) ? sink->end(sink->context, run, e) : OK;
}

int follow_read(struct follow *f, struct error *e)
{
    struct event_damage damage;
    struct event event;
    int found, rc = OK;

    while (rc == OK && (found = log_follow_next(&f->log, &event, &damage, e)) != LOG_FOLLOW_END)
        rc = follow_take(f, found, &event, &damage, e);
    return rc;
}

static void sleep_for(double seconds)
{
    const struct timespec pause = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    nanosleep(&pause, NULL);
}

void follow_wait(struct follow *f, double interval, double most)
{
    struct pollfd p = { .fd = f->watch.fd, .events = POLLIN };
    double longest = fmin(f->watched ? (double)RARELY * interval : interval, most);
    double least = fmin(fmin((SHARE - 1) * (clock_monotonic() - f->began), interval), most);

    if (f->unwatched) /* what came before the watches */
        return;
    sleep_for(least);
    poll(&p, p.fd >= 0, (int)ceil(fmax(longest - least, 0) * 1e3));
}

int follow_failed(const struct follow *f)
{
    int failed = 0;

    for (size_t i = 0; i < f->log.count; i++)
        for (size_t k = 0; k < f->log.runs[i].count; k++)
            failed |= f->log.runs[i].files[k].told;
    return failed;
}

void follow_release(struct follow *f)
{
    log_watch_close(&f->watch);
    log_follow_release(&f->log);
}
