#include "eventlog/server/saved_runs.h"

#include "base/clock.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds between two times that a run is saved, at least, while little is new in it. */
#define SAVE_EVERY 30

static void say(struct saved_runs *s, int warning, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(struct saved_runs *s, int warning, const char *format, ...)
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

/* The saved files are the first ones of the run, and what they were: readers of all of them. 0: not so. */
static int continue_files(const struct run_cache *c, struct log_follow_run *files)
{
    size_t n = 0;

    if (c->count > files->count || !c->count)
        return 0;
    for (; n < c->count && !strcmp(c->files[n].path, files->files[n].path); n++) {
        struct log_follow_file *file = &files->files[n];

        if (event_reader_continue(&file->reader, file->path, &c->files[n].place, NULL) != OK)
            break;
        file->infinite = c->files[n].note;
    }
    if (n == c->count)
        return 1;
    for (size_t i = 0; i < n; i++) {
        event_reader_close(files->files[i].reader);
        files->files[i].reader = NULL;
        files->files[i].infinite = 0;
    }
    return 0;
}

int saved_run_bring_back(struct saved_runs *s, struct saved_run *run, struct run_data **data,
                         struct log_follow_run *files)
{
    struct run_data *fresh = *data;
    char place[PATH_MAX];
    struct run_cache c;
    int came = 0;

    if (run->sought || !s->cache || !directory_of(files, place, sizeof place))
        return 0;
    run->sought = 1;
    if (cache_files_read(s->cache, &c, place, files->name, s->merge, NULL) != OK)
        return 0;
    if ((came = continue_files(&c, files))) {
        *data = c.run;
        c.run = fresh;
        run->at = clock_monotonic();
        say(s, 0, "%s: %llu points brought back", files->name, (unsigned long long)run_data_points(*data));
        for (size_t i = 0; i < c.count; i++) {
            uint64_t damage = c.files[i].note >> 32;

            run->bytes += c.files[i].place.offset;
            if (damage)
                say(s, 1, "%s: has damage, in %llu places; 'eventlog verify' names them", c.files[i].path,
                    (unsigned long long)damage);
        }
    }
    run_cache_release(&c);
    return came;
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

    if (!files->there || !directory_of(files, place, sizeof place) || !(places = places_of(files, &bytes)))
        return;
    if (bytes != run->bytes &&
        (bytes < run->bytes || bytes - run->bytes > run->bytes / 8 || now - run->at >= wait)) {
        if (cache_files_write(s->cache, place, data, s->merge, places, files->count, &e) == ERR_IO)
            say(s, 1, "%s", e.message);
        run->bytes = bytes;
        run->at = clock_monotonic();
        run->cost = run->at - now;
    }
    free(places);
}
