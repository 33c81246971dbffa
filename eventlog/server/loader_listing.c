#include "base/array.h"
#include "base/clock.h"
#include "eventlog/server/loader_state.h"

#include <stdlib.h>
#include <string.h>

/* Knows the runs that are followed. */
static int know_runs(struct loader *l, struct error *e)
{
    size_t wanted = l->follow.count;
    unsigned char *is_hot = realloc(l->is_hot, wanted + 1);
    size_t *hot = realloc(l->hot, (wanted + 1) * sizeof *hot);
    int good;

    l->is_hot = is_hot ? is_hot : l->is_hot;
    l->hot = hot ? hot : l->hot;
    pthread_mutex_lock(&l->lock);
    good = is_hot && hot && ARRAY_ROOM_ZERO(l->runs, l->run_capacity, wanted);
    while (good && l->run_count < wanted) {
        struct loader_run *run = &l->runs[l->run_count];
        const char *name = l->follow.runs[l->run_count].name;

        good = (run->data || (run->data = run_data_new(name, l->options.merge))) &&
               tag_index_add(&l->names, name, strlen(name)) == l->run_count;
        if (good)
            l->is_hot[l->run_count++] = 0;
    }
    pthread_mutex_unlock(&l->lock);
    return good ? OK : error_memory(e, NULL, "for %zu runs", wanted);
}

/* Shows runs as they were saved, until they have been read; those that are NULL are none. */
static void show_previews(struct loader *l, struct run_view *const *views, size_t count)
{
    pthread_mutex_lock(&l->lock);
    if (previews_add(&l->previews, views, count)) {
        l->views_changed = 1;
        loader_show(l);
    }
    pthread_mutex_unlock(&l->lock);
}

void loader_preview_large(struct loader *l)
{
    struct saved_preview *runs = calloc(l->run_count + 1, sizeof *runs);
    struct run_view **views = calloc(l->run_count + 1, sizeof *views);
    size_t count = 0;

    for (size_t i = 0; runs && views && i < l->run_count; i++)
        if (!l->runs[i].view)
            runs[count++] = (struct saved_preview){ &l->follow.runs[i], &l->runs[i].saved, NULL };
    if (count && l->options.cache && l->options.cache->directory) {
        saved_runs_preview(&l->saved, runs, count, loader_threads(l));
        for (size_t i = 0; i < count; i++)
            views[i] = runs[i].view;
        show_previews(l, views, count);
    }
    free(runs);
    free(views);
}

static void preview_small(struct loader *l, struct saved_pack *pack)
{
    struct run_view **views = calloc(pack->pack.count + 1, sizeof *views);

    if (!views)
        return;
    saved_pack_preview(pack, loader_threads(l), views);
    show_previews(l, views, pack->pack.count);
    free(views);
}

void loader_end_previews(struct loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->views_changed |= l->previews.count != 0;
    previews_drop(&l->previews);
    pthread_mutex_unlock(&l->lock);
}

void loader_bring_small_back(struct loader *l)
{
    struct saved_pack pack;
    struct error e = { 0 };
    int rc = ERR_NOMEM;

    if (!saved_pack_open(&pack, &l->saved))
        return;
    preview_small(l, &pack);
    if (saved_pack_load(&pack, loader_threads(l)) && (rc = log_follow_list(&l->follow, &pack.listing, &e)) == OK)
        rc = know_runs(l, &e);
    for (size_t i = 0; rc == OK && i < pack.listing.count; i++) {
        const char *name = pack.listing.runs[i].name;
        size_t number = tag_index_find(&l->names, name, strlen(name));
        struct loader_run *run = &l->runs[number];

        if (saved_pack_take(&pack, i, &run->saved, &run->data, &run->view, &l->follow.runs[number]))
            loader_add_progress(l, run_data_points(run->data), 0);
    }
    pthread_mutex_lock(&l->lock);
    l->views_changed = 1;
    loader_show(l);
    pthread_mutex_unlock(&l->lock);
    saved_pack_close(&pack);
}

static void make_hot(struct loader *l, size_t run)
{
    if (!l->is_hot[run]) {
        l->is_hot[run] = 1;
        l->hot[l->hot_count++] = run;
    }
}

/* Runs that have files which were not read yet, or have lost all of theirs. */
static void make_unread_hot(struct loader *l)
{
    for (size_t i = 0; i < l->run_count; i++) {
        const struct log_follow_run *run = &l->follow.runs[i];
        int unread = run->forget;

        for (size_t k = 0; k < run->count && !unread; k++)
            unread = !run->files[k].reader;
        if (unread)
            make_hot(l, i);
    }
}

/* Runs that were brought back before they were listed are read again if they have other files. */
static void check_listed(struct loader *l, const struct log_directory *d)
{
    for (size_t i = 0; i < d->count; i++) {
        size_t number = tag_index_find(&l->names, d->runs[i].name, strlen(d->runs[i].name));

        if (number == TAG_INDEX_NONE || saved_run_listed(&l->runs[number].saved, &l->follow.runs[number], &d->runs[i]))
            continue;
        log_follow_forget(&l->follow, &l->follow.runs[number]);
        run_data_restart(l->runs[number].data, 0);
        make_hot(l, number);
    }
}

/* The number of the watch of a run's directory; -1: none. */
static int watch_of(struct loader *l, const struct log_directory *d, const struct log_run *run)
{
    const int *mark = run->place < d->directory_count ? d->directories[run->place].mark : NULL;

    if (mark)
        return *mark;
    log_watch_directory(&l->watch, run->directory);
    return l->watch.number;
}

/* Watches the directories of a listing. Returns 1 if one was not watched before: it may have changed since. */
static int watch_listing(struct loader *l, const struct log_directory *d)
{
    int again = 0;

    for (size_t i = 0; i < d->directory_count; i++) {
        int *mark = d->directories[i].mark;

        if (mark && *mark >= 0)
            continue; /* an unchanged directory is still watched, with that number */
        again |= log_watch_directory(&l->watch, d->directories[i].path);
        if (mark)
            *mark = l->watch.number;
    }
    l->complete = d->directory_count > 0 && !l->watch.missed;
    if (l->watch.last >= 0 && !ARRAY_ROOM_ZERO(l->watched, l->watch_count, (size_t)l->watch.last + 1))
        return again;
    memset(l->watched, 0, l->watch_count * sizeof *l->watched);
    for (size_t i = 0; i < d->count; i++) {
        size_t run = tag_index_find(&l->names, d->runs[i].name, strlen(d->runs[i].name));
        int number = watch_of(l, d, &d->runs[i]);

        if (number >= 0 && (size_t)number < l->watch_count && run != TAG_INDEX_NONE) {
            size_t *place = &l->watched[number];

            *place = *place && *place != run + 1 ? WATCH_SEVERAL : run + 1;
        }
    }
    return again;
}

int loader_list_runs(struct loader *l, struct error *e)
{
    int rc = OK, again = 1;

    if (l->all && l->follows_listing && l->watch.fd < 0 && log_roots_are_same(&l->roots)) {
        l->listed = clock_monotonic();
        return OK;
    }
    l->follows_listing = 0;
    for (int round = 0; round < 8 && again && rc == OK; round++) {
        struct log_directory d;

        again = 0;
        if ((rc = log_roots_list(&l->roots, &d, &l->input, e)) != OK)
            return rc;
        for (size_t i = 0; i < d.problem_count && !l->problem_told; i++)
            loader_say(l, LOADER_WARNING, "%s", d.problems[i]);
        l->problem_told = d.problem_count != 0;
        check_listed(l, &d);
        rc = log_follow_list(&l->follow, &d, e);
        if (rc == OK)
            rc = know_runs(l, e);
        if (rc == OK)
            make_unread_hot(l);
        if (rc == OK && l->watch.fd >= 0)
            again = watch_listing(l, &d);
        log_directory_release(&d);
    }
    l->follows_listing = rc == OK;
    l->listed = clock_monotonic();
    return rc;
}

int loader_note_changes(struct loader *l, int *all)
{
    int number, contents, listing = 0;

    while (log_watch_next(&l->watch, &number, &contents)) {
        size_t run = number >= 0 && (size_t)number < l->watch_count ? l->watched[number] : 0;

        listing |= !contents || !run || run == WATCH_SEVERAL;
        *all |= number < 0 || run == WATCH_SEVERAL;
        if (run && run != WATCH_SEVERAL)
            make_hot(l, run - 1);
    }
    return listing;
}
