#include "eventlog/tool/scan_runs.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/program/ordered_work.h"

#include <stdlib.h>
#include <string.h>

/* Seconds: no progress flashes up for what is done at once. */
#define SHOW_AFTER 0.1

struct item {
    const struct log_run *run;
    struct scan part;
    struct buffer kept;
    struct error error;
    int rc;
    int is_used; /* `one` was given to read() and not yet released */
    max_align_t one[];
};

struct runs_work {
    struct scan *scan;
    const struct scan_runs *calls;
    struct error *error;
    int rc;        /* of the first run that failed: those behind it are not taken */
    uint64_t read; /* bytes, by all threads; read and written atomically */
};

static void read_item(void *context, void *item)
{
    const struct runs_work *w = context;
    struct item *i = item;

    i->is_used = 1;
    i->rc = w->calls->read(w->calls->context, &i->part, i->run, i->one, &i->error);
}

static void show_progress(void *context, const void *item)
{
    struct runs_work *w = context;

    w->scan->bytes_done = __atomic_load_n(&w->read, __ATOMIC_RELAXED);
    scan_progress(w->scan, ((const struct item *)item)->run->name, 0);
}

static void release_item(void *context, void *item)
{
    const struct runs_work *w = context;
    struct item *i = item;

    if (i->is_used)
        w->calls->release(w->calls->context, i->one);
    i->is_used = 0;
    memset(i->one, 0, w->calls->size);
    buffer_release(&i->kept);
}

static void take_item(void *context, void *item)
{
    struct runs_work *w = context;
    struct item *i = item;

    if (w->rc == OK) {
        log_progress_end(&w->scan->log); /* what follows may write to the same terminal */
        w->rc = scan_join(w->scan, &i->part, w->error);
    }
    if (w->rc == OK && i->rc != OK) {
        *w->error = i->error;
        w->rc = i->rc;
    }
    if (w->rc == OK)
        w->rc = w->calls->take(w->calls->context, i->run, i->one, w->error);
    if (w->rc == OK && clock_monotonic() - w->scan->began > SHOW_AFTER)
        show_progress(w, i);
    release_item(w, i);
}

static uint64_t bytes_of(const struct scan *s, const struct log_run *run)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < run->file_count; i++)
        bytes += log_input_bytes(&s->input, run->files[i]);
    return bytes;
}

/* Gives every run to the threads, no more at a time than may be in memory. */
static void give_runs(struct runs_work *w, struct ordered_work *threads)
{
    const uint64_t most = w->calls->bytes_most;
    uint64_t given = 0;

    for (const struct log_run *run = NULL; w->rc == OK && (run = scan_next_run(w->scan, run));) {
        uint64_t bytes = most ? bytes_of(w->scan, run) : 0;
        struct item *i;

        if (given && given + bytes > most) {
            ordered_work_finish(threads);
            given = 0;
        }
        given += bytes;
        i = ordered_work_item(threads);
        i->run = run;
        i->error = (struct error){ .code = OK };
        i->part = scan_part(w->scan, &i->kept, &w->read);
        ordered_work_give(threads);
    }
    ordered_work_finish(threads);
}

static int read_here(struct scan *s, const struct scan_runs *calls, struct error *e)
{
    void *one = malloc(calls->size);
    int rc = one ? OK : error_memory(e, NULL, "for a run");

    for (const struct log_run *run = NULL; rc == OK && (run = scan_next_run(s, run));) {
        memset(one, 0, calls->size);
        rc = calls->read(calls->context, s, run, one, e);
        if (rc == OK)
            rc = calls->take(calls->context, run, one, e);
        calls->release(calls->context, one);
    }
    free(one);
    return rc;
}

int scan_runs(struct scan *s, const struct scan_runs *calls, struct error *e)
{
    struct runs_work w = { .scan = s, .calls = calls, .error = e };
    const struct ordered_work_calls work_calls = {
        .item_size = sizeof(struct item) +
                     (calls->size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t),
        .run = read_item,
        .take = take_item,
        .context = &w,
        .waiting = show_progress,
    };
    struct ordered_work *threads = NULL;

    if (s->matching > 1 && !calls->one_by_one) {
        w.rc = ordered_work_open(&threads, &work_calls, e);
        if (w.rc != OK)
            return w.rc;
    }
    if (!threads || !ordered_work_threads(threads)) {
        ordered_work_close(threads, NULL);
        return read_here(s, calls, e);
    }
    give_runs(&w, threads);
    ordered_work_close(threads, release_item);
    log_progress_end(&s->log);
    return w.rc;
}
