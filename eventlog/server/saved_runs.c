#include "eventlog/server/saved_runs.h"

#include "base/clock.h"
#include "eventlog/server/workers.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds between two times that a run is saved, at least, while little is new in it. */
#define SAVE_EVERY 30
/* And between two times that all small runs are saved, at least. */
#define PACK_PAUSE 1

/* ---- threads --------------------------------------------------------------------------------------------------- */

enum {
    SMALL_POINTS = 4000, /* with more, a run cannot be small enough for the pack */
    THREADS_MOST_FOR_PACK = 16,
    RUNS_FOR_A_THREAD = 200,
    FILES_FOR_A_THREAD = 20,
};

/* work(context) in several threads, one for so many items each. */
static void in_threads(size_t threads, size_t items, size_t for_each, enum worker_rank rank, void *(*work)(void *),
                       void *context)
{
    const size_t useful = items / for_each + 1,
                 most = threads < THREADS_MOST_FOR_PACK ? threads : THREADS_MOST_FOR_PACK;

    workers_run(useful < most ? useful : most, rank, work, context);
}

static void saved_say(struct saved_runs *s, int warning, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void saved_say(struct saved_runs *s, int warning, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    s->message(s->context, warning, text);
}

/* Where the run is, for the cache: the directory of its first file. 0: nowhere. */
static int directory_of(const struct log_follow_run *files, char *out, size_t size)
{
    const char *path = files->count ? files->files[0].path : NULL, *slash = path ? strrchr(path, '/') : NULL;

    return path && snprintf(out, size, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".") < (int)size;
}

/* ---- bringing back --------------------------------------------------------------------------------------------- */

/* Readers that go on in all saved files; NULL if one is not what it was. */
static struct event_reader **readers_of(const struct run_cache *c)
{
    struct event_reader **readers = c->count ? calloc(c->count, sizeof *readers) : NULL;
    size_t n = 0;

    while (readers && n < c->count &&
           event_reader_continue(&readers[n], c->files[n].path, &c->files[n].place, NULL) == OK)
        n++;
    if (n == c->count)
        return readers;
    while (n)
        event_reader_close(readers[--n]);
    free(readers);
    return NULL;
}

/* Whether the saved files are the first ones of the run. */
static int are_first(const struct run_cache *c, const struct log_follow_run *files)
{
    size_t n = 0;

    if (c->count > files->count)
        return 0;
    while (n < c->count && !strcmp(c->files[n].path, files->files[n].path))
        n++;
    return n == c->count;
}

/* The run is now as it was saved. */
static void come_back(struct saved_runs *s, struct saved_run *run, struct run_data **data, struct run_cache *c,
                      struct event_reader **readers, struct log_follow_run *files)
{
    struct run_data *fresh = *data;

    *data = c->run;
    c->run = fresh;
    run->at = clock_monotonic();
    saved_say(s, 0, "%s: %llu points brought back", files->name, (unsigned long long)run_data_points(*data));
    for (size_t i = 0; i < c->count; i++) {
        uint64_t damage = c->files[i].note >> 32;

        files->files[i].reader = readers[i];
        files->files[i].infinite = c->files[i].note;
        run->bytes += c->files[i].place.offset;
        if (damage)
            saved_say(s, 1, "%s: has damage, in %llu places; 'eventlog verify' names them", c->files[i].path,
                      (unsigned long long)damage);
    }
}

int saved_run_bring_back(struct saved_runs *s, struct saved_run *run, struct run_data **data,
                         struct log_follow_run *files)
{
    struct event_reader **readers = NULL;
    char place[PATH_MAX];
    struct run_cache c;

    if (run->sought || !s->cache || !directory_of(files, place, sizeof place))
        return 0;
    run->sought = 1;
    if (cache_files_read(s->cache, &c, place, files->name, s->merge, NULL) != OK)
        return 0;
    if (are_first(&c, files) && (readers = readers_of(&c)))
        come_back(s, run, data, &c, readers, files);
    run_cache_release(&c);
    free(readers);
    return readers != NULL;
}

/* ---- what is shown before --------------------------------------------------------------------------------------- */

/* Takes the view if all files are what they were. */
static struct run_view *view_of(struct run_cache *c)
{
    struct run_view *view = c->count ? c->view : NULL;

    for (size_t i = 0; i < c->count; i++)
        if (!event_reader_can_continue(c->files[i].path, &c->files[i].place))
            return NULL;
    if (view)
        c->view = NULL;
    return view;
}

struct previewing {
    struct saved_runs *saved;
    struct saved_preview *previews;
    size_t count, next;
};

static void preview_one(struct saved_runs *s, struct saved_preview *p)
{
    char place[PATH_MAX];
    struct run_cache c;
    int rc;

    if (p->run->sought || !s->cache || !directory_of(p->files, place, sizeof place))
        return;
    if ((rc = cache_files_preview(s->cache, &c, place, p->files->name, s->merge, NULL)) == OK &&
        are_first(&c, p->files))
        p->view = view_of(&c);
    p->run->sought = rc == ERR_IO; /* there is no file */
    run_cache_release(&c);
}

static void *preview_some(void *context)
{
    struct previewing *p = context;

    for (size_t i; (i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < p->count;)
        preview_one(p->saved, &p->previews[i]);
    return NULL;
}

void saved_runs_preview(struct saved_runs *s, struct saved_preview *previews, size_t count, size_t threads)
{
    struct previewing p = { s, previews, count, 0 };

    in_threads(threads, count, FILES_FOR_A_THREAD, WORKERS_EQUAL, preview_some, &p);
}

/* ---- bringing small runs back ---------------------------------------------------------------------------------- */

struct saved_small {
    struct run_cache c;
    struct event_reader **readers; /* NULL: it does not count */
    struct run_view *view;
    char **paths;
};

static int is_below(const char *path, const struct saved_runs *s)
{
    for (size_t i = 0; i < s->root_count; i++)
        if (!strncmp(path, s->roots[i].path, strlen(s->roots[i].path)))
            return !strstr(path + strlen(s->roots[i].path), "/..");
    return 0;
}

static int are_below(const struct run_cache *c, const struct saved_runs *s)
{
    for (size_t i = 0; i < c->count; i++)
        if (!is_below(c->files[i].path, s))
            return 0;
    return 1;
}

static void *preview_smalls(void *context)
{
    struct saved_pack *p = context;
    struct run_cache c;

    for (size_t i; (i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < p->pack.count;) {
        if (cache_pack_preview(&p->pack, i, p->saved->merge, &c, NULL) == OK && are_below(&c, p->saved))
            p->views[i] = view_of(&c);
        run_cache_release(&c);
    }
    return NULL;
}

void saved_pack_preview(struct saved_pack *p, size_t threads, struct run_view **views)
{
    memset(views, 0, p->pack.count * sizeof *views);
    p->views = views;
    p->next = 0;
    in_threads(threads, p->pack.count, RUNS_FOR_A_THREAD, WORKERS_EQUAL, preview_smalls, p);
}

static void read_small(struct saved_pack *p, size_t i)
{
    struct saved_small *one = &p->small[i];

    if (cache_pack_run(&p->pack, i, p->saved->merge, &one->c, NULL) != OK || !are_below(&one->c, p->saved) ||
        !(one->paths = calloc(one->c.count + 1, sizeof *one->paths)))
        return;
    for (size_t k = 0; k < one->c.count; k++)
        one->paths[k] = one->c.files[k].path;
    if ((one->readers = readers_of(&one->c)))
        run_data_view(one->c.run, &one->view, NULL);
}

static void *read_smalls(void *context)
{
    struct saved_pack *p = context;

    for (size_t i; (i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < p->pack.count;)
        read_small(p, i);
    return NULL;
}

static void drop_small(struct saved_small *one)
{
    for (size_t k = 0; one->readers && k < one->c.count; k++)
        event_reader_close(one->readers[k]);
    free(one->readers);
    free(one->paths);
    run_view_drop(one->view);
    run_cache_release(&one->c);
    *one = (struct saved_small){ .readers = NULL };
}

/* Those that count first, by name. */
static int small_by_name(const void *a, const void *b)
{
    const struct saved_small *x = a, *y = b;

    if (!x->readers || !y->readers)
        return !x->readers - !y->readers;
    return strcmp(run_data_name(x->c.run), run_data_name(y->c.run));
}

static int list_small(struct saved_pack *p)
{
    struct log_run *runs = calloc(p->pack.count, sizeof *runs);
    size_t count = 0;

    if (!runs)
        return 0;
    qsort(p->small, p->pack.count, sizeof *p->small, small_by_name);
    for (; count < p->pack.count && p->small[count].readers; count++) {
        const struct saved_small *one = &p->small[count];

        runs[count] = (struct log_run){ .files = one->paths, .file_count = one->c.count };
        /* only read */
        runs[count].name = (char *)(uintptr_t)run_data_name(one->c.run);
        if (count && !strcmp(runs[count].name, runs[count - 1].name))
            break; /* no server wrote that */
    }
    p->listing = (struct log_directory){ .runs = runs, .count = count };
    return 1;
}

int saved_pack_open(struct saved_pack *p, struct saved_runs *s)
{
    *p = (struct saved_pack){ .saved = s };
    if (!s->cache || cache_pack_read(s->cache, &p->pack, s->log, s->merge, NULL) != OK)
        return 0;
    if (p->pack.count)
        return 1;
    saved_pack_close(p);
    return 0;
}

int saved_pack_load(struct saved_pack *p, size_t threads)
{
    if (!(p->small = calloc(p->pack.count, sizeof *p->small)))
        return 0;
    p->next = 0;
    in_threads(threads, p->pack.count, RUNS_FOR_A_THREAD, WORKERS_BEHIND, read_smalls, p);
    return list_small(p);
}

int saved_pack_take(struct saved_pack *p, size_t i, struct saved_run *run, struct run_data **data,
                    struct run_view **view, struct log_follow_run *files)
{
    struct saved_small *one = &p->small[i];

    if (files->count != one->c.count || !are_first(&one->c, files))
        return 0;
    come_back(p->saved, run, data, &one->c, one->readers, files);
    free(one->readers);
    one->readers = NULL;
    *view = one->view;
    one->view = NULL;
    run->sought = run->unlisted = run->small = 1;
    p->saved->packed++;
    return 1;
}

void saved_pack_close(struct saved_pack *p)
{
    for (size_t i = 0; p->small && i < p->pack.count; i++)
        drop_small(&p->small[i]);
    free(p->small);
    free(p->listing.runs);
    cache_pack_release(&p->pack);
    *p = (struct saved_pack){ .saved = NULL };
}

int saved_run_listed(struct saved_run *run, const struct log_follow_run *files, const struct log_run *listed)
{
    size_t n = 0;

    if (!run->unlisted)
        return 1;
    run->unlisted = 0;
    while (n < files->count && n < listed->file_count && !strcmp(files->files[n].path, listed->files[n]))
        n++;
    return n == files->count;
}

/* ---- saving ---------------------------------------------------------------------------------------------------- */

/* How far all files of the run have been read; NULL if not all of them are at an end, or one cannot be continued. */
static struct run_cache_file *places_of(const struct log_follow_run *files, uint64_t *bytes)
{
    struct run_cache_file *places = calloc(files->count + 1, sizeof *places);

    *bytes = 0;
    for (size_t i = 0; places && i < files->count; i++) {
        const struct log_follow_file *file = &files->files[i];

        places[i].path = file->path;
        places[i].note = file->infinite;
        if (!file->reader || file->told || !event_reader_place(file->reader, &places[i].place)) {
            free(places);
            return NULL;
        }
        *bytes += places[i].place.offset;
    }
    return places;
}

void saved_run_save(struct saved_runs *s, struct saved_run *run, struct run_data *data,
                    const struct log_follow_run *files)
{
    double now = clock_monotonic(), wait = SAVE_EVERY > 100 * run->cost ? SAVE_EVERY : 100 * run->cost;
    struct run_cache_file *places;
    char place[PATH_MAX];
    struct error e = { 0 };
    uint64_t bytes;
    int due;

    if (!files->there || !directory_of(files, place, sizeof place) || !(places = places_of(files, &bytes)))
        return;
    due = bytes != run->bytes && (bytes < run->bytes || bytes - run->bytes > run->bytes / 8 || now - run->at >= wait);
    run->small = !run->large && run_data_points(data) <= SMALL_POINTS;
    if (due && run->small) {
        s->due++;
        run->bytes = bytes;
        run->at = now;
    } else if (due) {
        if (cache_files_write(s->cache, place, data, s->merge, places, files->count, &e) == ERR_IO)
            saved_say(s, 1, "%s", e.message);
        run->bytes = bytes;
        run->at = clock_monotonic();
        run->cost = run->at - now;
    }
    free(places);
}

/* ---- saving small runs ----------------------------------------------------------------------------------------- */

int saved_pack_due(const struct saved_runs *s)
{
    double since = clock_monotonic() - s->at;

    if (!s->due || (s->at > 0 && since < (PACK_PAUSE > 100 * s->cost ? PACK_PAUSE : 100 * s->cost)))
        return 0;
    return s->due > s->packed / 8 || since >= SAVE_EVERY;
}

int saved_pack_begin(struct saved_runs *s, struct cache_pack_writing *w)
{
    struct error e = { 0 };
    int rc = cache_pack_begin(w, s->cache, s->log, s->merge, &e);

    if (rc == ERR_IO)
        saved_say(s, 1, "%s", e.message);
    s->at = clock_monotonic();
    s->packed = 0;
    s->due = 0;
    return rc > 0;
}

void saved_pack_add(struct saved_runs *s, struct cache_pack_writing *w, struct saved_run *run, struct run_data *data,
                    const struct log_follow_run *files)
{
    struct run_cache_file *places;
    uint64_t bytes;

    if (!run->small || !files->there || !(places = places_of(files, &bytes)))
        return;
    if (cache_pack_add(w, data, places, files->count)) {
        s->packed++;
        run->bytes = bytes;
    } else { /* it gets a file of its own */
        run->large = 1;
        run->bytes = 0;
        saved_run_save(s, run, data, files);
    }
    free(places);
}

void saved_pack_end(struct saved_runs *s, struct cache_pack_writing *w)
{
    struct error e = { 0 };

    if (cache_pack_end(w, &e) == ERR_IO)
        saved_say(s, 1, "%s", e.message);
    s->cost = clock_monotonic() - s->at;
}
