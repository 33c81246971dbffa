#include "eventlog/read/log_follow.h"

#include "eventlog/format/log_name.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- which stay open ------------------------------------------------------------------------------------------- */

static int changed_before(const struct event_reader *a, const struct event_reader *b)
{
    struct timespec x = event_reader_changed(a), y = event_reader_changed(b);

    return x.tv_sec != y.tv_sec ? x.tv_sec < y.tv_sec : x.tv_nsec < y.tv_nsec;
}

/* How many files may stay open, given the descriptors that this process may have and what the caller wants. */
static size_t open_limit(size_t wanted)
{
    size_t most = wanted && wanted < LOG_FOLLOW_OPEN_MOST ? wanted : LOG_FOLLOW_OPEN_MOST;
    struct rlimit limit;
    rlim_t part = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 16 : 1;

    return part < 1 ? 1 : part < most ? (size_t)part : most;
}

/* The reader is about to be used: no other thread may close its file until it is at an end again. */
static void take_out(struct log_follow *f, const struct event_reader *r)
{
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->open_count; i++)
        if (f->open[i] == r)
            f->open[i--] = f->open[--f->open_count];
    pthread_mutex_unlock(&f->lock);
}

/* The reader is at an end: keep it open, and if there are too many, close the one that was changed longest ago. */
static void keep_open(struct log_follow *f, struct event_reader *r)
{
    size_t oldest = 0;

    if (event_reader_resting(r))
        return;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->open_count; i++)
        oldest = changed_before(f->open[i], f->open[oldest]) ? i : oldest;
    if (!f->open_limit)
        f->open_limit = open_limit(f->open_most);
    if (f->open_count < f->open_limit) {
        f->open[f->open_count++] = r;
    } else if (changed_before(r, f->open[oldest])) {
        event_reader_rest(r);
    } else {
        event_reader_rest(f->open[oldest]);
        f->open[oldest] = r;
    }
    pthread_mutex_unlock(&f->lock);
}

static void close_reader(struct log_follow *f, struct event_reader *r)
{
    take_out(f, r);
    event_reader_close(r);
}

static void close_files(struct log_follow *f, struct log_follow_run *run)
{
    if (run->listed) {
        event_reader_close(run->only.reader);
        run->only.reader = NULL;
        return;
    }
    for (size_t i = 0; i < run->count; i++) {
        close_reader(f, run->files[i].reader);
        run->files[i].reader = NULL;
        run->files[i].infinite = 0;
        run->files[i].reading = 0;
    }
}

static void forget_files(struct log_follow *f, struct log_follow_run *run)
{
    close_files(f, run);
    if (run->listed)
        return;
    for (size_t i = 0; i < run->count; i++)
        free(run->files[i].path);
    free(run->files);
    run->files = NULL;
    run->count = 0;
    tag_index_release(&run->paths);
}

/* ---- listing --------------------------------------------------------------------------------------------------- */

static struct log_follow_run *run_of(struct log_follow *f, const char *name, struct error *e)
{
    size_t number = tag_index_add(&f->names, name, strlen(name));
    struct log_follow_run *runs;

    if (number < f->count)
        return &f->runs[number];
    if (number == TAG_INDEX_NONE || !(runs = realloc(f->runs, (f->count + 1) * sizeof *runs))) {
        error_memory(e, name, "for it");
        return NULL;
    }
    f->runs = runs;
    runs += f->count++;
    *runs = (struct log_follow_run){ .name = f->names.entries[number].text };
    return runs;
}

/* A file that was compressed or unpacked meanwhile is still the same file; its new name is used only if it has not been
 * opened yet. */
static int follow_add_file(struct log_follow_run *run, const char *path, struct error *e)
{
    size_t n = log_name_length(path), number = tag_index_find(&run->paths, path, n);
    struct log_follow_file *files, *known = number != TAG_INDEX_NONE ? &run->files[number] : NULL;
    char *copy;

    if (known && (known->reader || !strcmp(known->path, path)))
        return OK;
    if (!(copy = strdup(path)))
        return error_memory(e, path, "for it");
    if (known) {
        free(known->path);
        known->path = copy;
        return OK;
    }
    if ((files = realloc(run->files, (run->count + 1) * sizeof *files)))
        run->files = files;
    if (!files || tag_index_add(&run->paths, path, n) == TAG_INDEX_NONE) {
        free(copy);
        return error_memory(e, path, "for it");
    }
    files[run->count++] = (struct log_follow_file){ .path = copy };
    return OK;
}

int log_follow_list(struct log_follow *f, const struct log_directory *d, struct error *e)
{
    for (size_t i = 0; i < f->count; i++)
        f->runs[i].there = 0;
    for (size_t i = 0; i < d->count; i++) {
        struct log_follow_run *run;

        if (!f->wanted(f->context, d->runs[i].name))
            continue;
        if (!(run = run_of(f, d->runs[i].name, e)))
            return ERR_NOMEM;
        run->there = 1;
        for (size_t k = 0; k < d->runs[i].file_count; k++)
            if (follow_add_file(run, d->runs[i].files[k], e) != OK)
                return ERR_NOMEM;
    }
    /* If a directory could not be read, it is unknown what is gone. */
    for (size_t i = 0; f->forgets && i < f->count && !d->unreadable; i++)
        f->runs[i].forget = !f->runs[i].there && f->runs[i].count;
    return OK;
}

void log_follow_listed(struct log_follow_run *run, const struct log_run *listed)
{
    *run = (struct log_follow_run){ .name = listed->name, .count = listed->file_count, .there = 1, .listed = listed };
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static struct log_follow_file *current_file(struct log_follow_run *run)
{
    if (!run->listed)
        return &run->files[run->at_file];
    run->only.path = run->listed->files[run->at_file];
    return &run->only;
}

int log_follow_end_file(struct log_follow *f, struct log_follow_run *run, int result, struct error *e)
{
    struct log_follow_file *file = current_file(run);

    if (result == EVENTLOG_READ_RESTARTED) {
        if (run->listed && run->restarts++ == LOG_FOLLOW_RESTARTS_MOST) {
            result = error_set(e, ERR_IO, "%s: is truncated or replaced again and again", file->path);
        } else {
            if (run->listed || f->whole_runs) {
                close_files(f, run);
                run->next_file = 0;
            }
            return result;
        }
    }
    if (run->listed)
        close_files(f, run);
    else if (file->reader)
        keep_open(f, file->reader);
    file->reading = 0;
    run->next_file = run->at_file + 1;
    return result == EVENTLOG_READ_END ? LOG_FOLLOW_FILE_END : result;
}

int log_follow_begin_file(struct log_follow *f, struct log_follow_run *run, struct log_input *input,
                          struct event_reader **reader, struct error *e)
{
    struct log_follow_file *file;
    int rc;

    if (run->forget) {
        log_follow_forget(f, run);
        return EVENTLOG_READ_RESTARTED;
    }
    if (run->again) {
        close_files(f, run);
        run->next_file = 0;
        run->again = 0;
    }
    run->at_file = run->next_file;
    if (run->at_file >= run->count) {
        run->at_file = run->next_file = 0;
        return LOG_FOLLOW_END;
    }
    file = current_file(run);
    if (!file->reader) {
        if ((rc = event_reader_open(&file->reader, input, file->path, e)) != OK)
            return log_follow_end_file(f, run, rc, e);
        if (f && f->records_only)
            event_reader_records_only(file->reader);
    } else if (!file->reading) {
        take_out(f, file->reader);
    }
    file->reading = 1;
    *reader = file->reader;
    return LOG_FOLLOW_FILE;
}

int log_follow_next_of(struct log_follow *f, struct log_follow_run *run, struct log_input *input, struct event *event,
                       struct event_damage *damage, struct error *e)
{
    struct event_reader *reader;
    int rc = log_follow_begin_file(f, run, input, &reader, e);

    if (rc != LOG_FOLLOW_FILE)
        return rc;
    rc = event_reader_next(reader, event, damage, e);
    return rc == EVENTLOG_READ_EVENT || rc == EVENTLOG_READ_DAMAGE ? rc : log_follow_end_file(f, run, rc, e);
}

int log_follow_next(struct log_follow *f, struct event *event, struct event_damage *damage, struct error *e)
{
    for (; f->at_run < f->count; f->at_run++) {
        struct log_follow_run *run = &f->runs[f->at_run];
        int rc = log_follow_next_of(f, run, f->input, event, damage, e);

        f->at_file = run->at_file;
        if (rc != LOG_FOLLOW_END)
            return rc;
    }
    f->at_run = f->at_file = 0;
    return LOG_FOLLOW_END;
}

void log_follow_again(struct log_follow_run *run)
{
    run->again = 1;
}

void log_follow_forget(struct log_follow *f, struct log_follow_run *run)
{
    forget_files(f, run);
    run->at_file = run->next_file = 0;
    run->forget = run->again = 0;
}

int log_follow_last_file(const struct log_follow *f)
{
    return f->at_file + 1 == f->runs[f->at_run].count;
}

void log_follow_release(struct log_follow *f)
{
    for (size_t i = 0; i < f->count; i++)
        forget_files(f, &f->runs[i]);
    free(f->runs);
    tag_index_release(&f->names);
}
