#include "eventlog/server/loader.h"

#include "base/clock.h"
#include "eventlog/server/loader_state.h"
#include "eventlog/server/workers.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Seconds after which everything is listed anew, whatever the system notifies of. */
#define LIST_EVERY 60
/* Seconds between rounds, at least, and where showing them takes long: many changes are read together. */
#define ROUND_PAUSE 0.02
#define ROUND_PAUSE_MOST 0.1

enum {
    OPEN_MOST = 32, /* files between rounds: the server has 64 descriptors, and one for each client */
};

/* ---- messages -------------------------------------------------------------------------------------------------- */

void loader_say(struct loader *l, enum loader_level level, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (l->report && level == LOADER_WARNING)
        loss_report_note(l->report, text);
    pthread_mutex_lock(&l->lock);
    if (l->options.message)
        l->options.message(l->options.context, level, text);
    pthread_mutex_unlock(&l->lock);
}

static void say_left_out(void *context, const char *path)
{
    loader_say(context, LOADER_WARNING,
               "%s: is a link that leads out of the log directory; left out (--follow-links reads it)", path);
}

/* ---- views ----------------------------------------------------------------------------------------------------- */

void loader_show(struct loader *l)
{
    struct run_view **views;
    struct log_view *view;
    double began = clock_monotonic();
    size_t count = 0;

    if (!l->views_changed || !(views = malloc((l->run_count + 1) * sizeof *views)))
        return;
    for (size_t i = 0; i < l->run_count; i++)
        if (l->runs[i].view)
            views[count++] = l->runs[i].view;
    if (l->report_view && tag_index_find(&l->names, LOSS_REPORT_RUN, strlen(LOSS_REPORT_RUN)) == TAG_INDEX_NONE)
        views[count++] = l->report_view;
    if ((view = log_view_new(views, count))) {
        snapshot_put(l->snapshot, view);
        l->views_changed = 0;
    }
    free(views);
    l->shown = clock_monotonic();
    l->show_cost = l->shown - began;
}

void loader_view_run(struct loader *l, struct loader_run *run)
{
    struct run_view *view, *old;
    double wait;

    if (!run_data_changed(run->data) || run_data_view(run->data, &view, NULL) != OK)
        return;
    pthread_mutex_lock(&l->lock);
    old = run->view;
    run->view = view;
    l->views_changed = 1;
    wait = 20 * l->show_cost > VIEW_FIRST ? 20 * l->show_cost : VIEW_FIRST;
    if (clock_monotonic() - l->shown >= wait)
        loader_show(l);
    pthread_mutex_unlock(&l->lock);
    run_view_drop(old);
}

/* ---- rounds ---------------------------------------------------------------------------------------------------- */

static void *read_runs(void *context)
{
    struct loader *l = context;
    struct log_input input = { 0 };

    for (size_t i;
         (i = __atomic_fetch_add(&l->next_run, 1, __ATOMIC_RELAXED)) < (l->all ? l->run_count : l->hot_count);) {
        size_t run = l->all ? i : l->hot[i];

        loader_read_run(l, &l->runs[run], &l->follow.runs[run], &input);
    }
    __atomic_fetch_sub(&l->reading, 1, __ATOMIC_RELAXED);
    log_input_release(&input);
    return NULL;
}

static size_t threads_allowed(const struct loader *l)
{
    size_t most = l->options.threads > 0 ? (size_t)l->options.threads : (size_t)sysconf(_SC_NPROCESSORS_ONLN);

    return most > WORKERS_MOST ? WORKERS_MOST : most;
}

/* Reads the runs of this round, with as many threads as are allowed and useful. */
static void read_round(struct loader *l)
{
    const size_t runs = l->all ? l->run_count : l->hot_count, most = threads_allowed(l),
                 wanted = most < runs ? most : runs + !runs;

    l->next_run = 0;
    l->threads = most;
    l->reading = wanted; /* threads that cannot be started count, too: then large files are read by one */
    workers_run(wanted, read_runs, l);
}

static int every_run(void *context, const char *run)
{
    (void)context;
    (void)run;
    return 1;
}

/* Waits until something has changed, or it is time to look. *list: whether to list. 0: there is no further round. */
static int wait_round(struct loader *l, int *list)
{
    struct pollfd waits[] = { { l->stop_event, POLLIN, 0 }, { l->watch.fd, POLLIN, 0 } };
    double reload = l->options.reload < LOADER_PAUSE_LEAST ? LOADER_PAUSE_LEAST : l->options.reload;
    double pause = 10 * l->show_cost > ROUND_PAUSE ? 10 * l->show_cost : ROUND_PAUSE;
    int all = !l->complete;

    pause = pause < ROUND_PAUSE_MOST ? pause : ROUND_PAUSE_MOST;
    for (size_t i = 0; i < l->hot_count; i++)
        l->is_hot[l->hot[i]] = 0;
    l->hot_count = 0;
    if (l->options.reload < 0)
        return 0;
    /* First only for the end: what changes meanwhile is read together. Both are `reload` seconds together. */
    if (!poll(waits, 1, (int)(1000 * pause) + 1))
        poll(waits, l->watch.fd >= 0 ? 2 : 1, (int)(1000 * (reload - pause)));
    *list = loader_note_changes(l, &all);
    l->all = (*list ? all : !l->hot_count) || clock_monotonic() - l->looked >= reload;
    *list = *list || (l->all && (!l->complete || clock_monotonic() - l->listed > LIST_EVERY));
    return !__atomic_load_n(&l->stop, __ATOMIC_RELAXED);
}

/* Shows what has been lost so far, if more has been since the last time. */
static void show_report(struct loader *l)
{
    struct run_view *view, *old;

    if (!l->report || !loss_report_view(l->report, (double)time(NULL), &view))
        return;
    pthread_mutex_lock(&l->lock);
    old = l->report_view;
    l->report_view = view;
    l->views_changed = 1;
    pthread_mutex_unlock(&l->lock);
    run_view_drop(old);
}

/* Lists, if told to, then reads and shows. */
static void do_round(struct loader *l, int list)
{
    struct error e = { 0 };

    if (list && loader_list_runs(l, &e) != OK)
        loader_say(l, LOADER_WARNING, "%s", e.message);
    l->looked = l->all ? clock_monotonic() : l->looked;
    read_round(l);
    show_report(l);
    pthread_mutex_lock(&l->lock);
    loader_show(l);
    l->rounds++;
    pthread_mutex_unlock(&l->lock);
}

static void *load(void *context)
{
    struct loader *l = context;
    int list;

    l->all = 1;
    do_round(l, 1);
    /* To watch many directories takes longer than to read what is in them, and they must be listed again after that. */
    if (l->options.notify && l->options.reload >= 0) {
        log_watch_open(&l->watch);
        do_round(l, 1);
    }
    while (wait_round(l, &list))
        do_round(l, list);
    return NULL;
}

int loader_start(struct loader **out, const struct loader_options *options, struct snapshot *snapshot, struct error *e)
{
    struct loader *l = calloc(1, sizeof *l);
    int failed;

    *out = NULL;
    if (!l)
        return error_memory(e, NULL, "to load");
    l->options = *options;
    l->snapshot = snapshot;
    l->roots = (struct log_roots){ .roots = options->roots,
                                   .count = options->root_count,
                                   .follow_links = options->follow_links,
                                   .left_out = say_left_out,
                                   .context = l };
    l->follow = (struct log_follow){
        .input = &l->input, .wanted = every_run, .whole_runs = 1, .forgets = 1, .open_most = OPEN_MOST
    };
    l->watch = (struct log_watch)LOG_WATCH_NONE;
    pthread_mutex_init(&l->lock, NULL);
    if (options->report && loss_report_open(&l->report, e) != OK) {
        free(l);
        return ERR_IO;
    }
    l->stop_event = eventfd(0, EFD_CLOEXEC);
    if ((failed = l->stop_event < 0 ? -1 : pthread_create(&l->thread, NULL, load, l)) != 0) {
        if (l->stop_event >= 0)
            close(l->stop_event);
        loss_report_close(l->report);
        free(l);
        return error_set(e, ERR_NOMEM, "cannot start the thread that loads: %s", strerror(failed > 0 ? failed : 0));
    }
    *out = l;
    return OK;
}

struct loader_progress loader_progress(struct loader *l)
{
    struct loader_progress p;

    pthread_mutex_lock(&l->lock);
    p = (struct loader_progress){ l->run_count, l->points, l->bytes, l->rounds };
    pthread_mutex_unlock(&l->lock);
    return p;
}

void loader_stop(struct loader *l)
{
    uint64_t one = 1;

    if (!l)
        return;
    __atomic_store_n(&l->stop, 1, __ATOMIC_RELAXED);
    if (write(l->stop_event, &one, sizeof one) < 0) {
        /* the counter is full: the thread is woken anyway */
    }
    pthread_join(l->thread, NULL);
    log_follow_release(&l->follow);
    for (size_t i = 0; i < l->run_count; i++) {
        run_data_free(l->runs[i].data);
        run_view_drop(l->runs[i].view);
    }
    run_view_drop(l->report_view);
    loss_report_close(l->report);
    free(l->runs);
    free(l->watched);
    free(l->hot);
    free(l->is_hot);
    tag_index_release(&l->names);
    log_watch_close(&l->watch);
    log_roots_release(&l->roots);
    log_input_release(&l->input);
    close(l->stop_event);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
