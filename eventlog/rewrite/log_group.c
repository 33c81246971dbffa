#include "eventlog/rewrite/log_group.h"

#include "eventlog/format/tag_index.h"
#include "eventlog/read/event_reader.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Whether the run of that number has the file already: 1, 0 and now it has, or -1 without memory. */
static int is_known(struct tag_index *files, size_t run, const char *path)
{
    struct {
        uint64_t run, device, inode;
    } key = { run, 0, 0 };
    struct stat st;
    size_t before = files->count;

    if (stat(path, &st) < 0) /* gone: it is told when it is read */
        return 0;
    key.device = st.st_dev;
    key.inode = st.st_ino;
    if (tag_index_add(files, (const char *)&key, sizeof key) == TAG_INDEX_NONE)
        return -1;
    return files->count == before;
}

/* Moves the files of b to a, the run of that number; none that a has already, unless a is new. */
static int join_runs(struct log_run *a, struct log_run *b, struct tag_index *known, size_t number, struct error *e)
{
    const int is_new = !a->files;
    char **files = realloc(a->files, (a->file_count + b->file_count + 1) * sizeof *files);

    if (!files)
        return error_memory(e, NULL, "for %zu files", a->file_count + b->file_count);
    a->files = files;
    for (size_t i = 0; i < b->file_count; i++) {
        int is = is_known(known, number, b->files[i]);

        if (is > 0 && !is_new)
            free(b->files[i]);
        else
            files[a->file_count++] = b->files[i];
        b->files[i] = NULL;
        if (is < 0)
            return error_memory(e, NULL, "for %zu files", a->file_count);
    }
    return OK;
}

int log_group_files(struct log_directory *d, struct error *e)
{
    struct tag_index names = TAG_INDEX_EMPTY, known = TAG_INDEX_EMPTY;
    size_t kept = 0;
    int rc = OK;

    for (size_t i = 0; i < d->count; i++) {
        struct log_run run = d->runs[i];
        char *slash = strrchr(run.name, '/');
        size_t same;

        memset(&d->runs[i], 0, sizeof run);
        if (run.file_count && !strcmp(run.directory, run.files[0]))
            strcpy(slash ? slash : run.name, slash ? "" : ".");
        same = rc == OK ? tag_index_add(&names, run.name, strlen(run.name)) : TAG_INDEX_NONE;
        if (same == kept) {
            d->runs[kept] = (struct log_run){ .name = run.name, .directory = run.directory };
            run.name = run.directory = NULL;
            kept++;
        }
        if (rc == OK)
            rc = same == TAG_INDEX_NONE ? error_memory(e, NULL, "for %zu runs", d->count)
                                        : join_runs(&d->runs[same], &run, &known, same, e);
        log_run_release(&run);
    }
    d->count = kept;
    for (size_t i = 0; i < kept; i++)
        log_run_sort(&d->runs[i]);
    tag_index_release(&names);
    tag_index_release(&known);
    return rc;
}

/* When a run began: the wall time of its first event, infinity if it has none. */
static double began(struct log_input *in, const struct log_run *run)
{
    struct event_reader *reader;
    struct event_damage damage;
    struct event event;
    double at = INFINITY;
    int rc = 1;

    if (!run->file_count || event_reader_open(&reader, in, run->files[0], NULL) != OK)
        return at;
    while (rc > 0 && (rc = event_reader_next(reader, &event, &damage, NULL)) != EVENTLOG_READ_EVENT)
        ;
    if (rc == EVENTLOG_READ_EVENT && !isnan(event.wall_time))
        at = event.wall_time;
    event_reader_close(reader);
    return at;
}

struct started {
    double at;
    size_t place;
    struct log_run run;
};

static int by_time(const void *x, const void *y)
{
    const struct started *a = x, *b = y;

    return a->at != b->at ? (a->at > b->at) - (a->at < b->at) : (a->place > b->place) - (a->place < b->place);
}

int log_group_by_start(struct log_directory *d, struct log_input *in, struct error *e)
{
    struct started *runs = malloc((d->count + 1) * sizeof *runs);

    if (!runs)
        return error_memory(e, NULL, "for %zu runs", d->count);
    for (size_t i = 0; i < d->count; i++)
        runs[i] = (struct started){ .at = began(in, &d->runs[i]), .place = i, .run = d->runs[i] };
    qsort(runs, d->count, sizeof *runs, by_time);
    for (size_t i = 0; i < d->count; i++)
        d->runs[i] = runs[i].run;
    free(runs);
    return OK;
}
