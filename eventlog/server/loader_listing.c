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
