#include "eventlog/tool/follow.h"

#include "eventlog/log_name.h"

#include <stdlib.h>
#include <string.h>

/* All that the file holds now. A file that cannot be opened or read is told once and asked again later. */
static int read_file(struct follow *f, struct follow_file *file, struct error *e)
{
    const struct follow_sink *sink = &f->sink;
    struct event_damage damage;
    struct event event;
    int rc = OK;

    if (!file->reader)
        rc = event_reader_open(&file->reader, &f->scan->input, file->path, e);
    while (rc == OK && (rc = event_reader_next(file->reader, &event, &damage, e)) > 0) {
        if (rc == EVENT_READER_RESTARTED) {
            log_line(&f->scan->log, "%s: was truncated or replaced; reading it again from its start", file->path);
            if (sink->restart)
                sink->restart(sink->context, file->run);
        } else if (rc == EVENT_READER_DAMAGE) {
            scan_damage(f->scan, file->path, &damage, event_reader_state(file->reader).damaged);
        }
        rc = rc == EVENT_READER_EVENT ? sink->event(sink->context, file->run, &event, e) : OK;
        if (rc != OK)
            return rc;
    }
    if (rc == ERR_IO && (file->gone ? log_input_gone(file->path, e) : scan_gone(f->scan, file->path, e))) {
        file->gone = 1;
        return OK;
    }
    if (rc != ERR_IO) {
        file->told = file->gone = 0;
        return rc;
    }
    if (!file->told)
        log_line(&f->scan->log, "%s", e->message);
    file->told = 1;
    return OK;
}

static int add_run(struct follow *f, const char *name, int first, size_t *number, struct error *e)
{
    struct follow_run *runs;

    if ((*number = tag_index_add(&f->run_names, name, strlen(name))) < f->run_count)
        return OK;
    if (*number == TAG_INDEX_NONE || !(runs = realloc(f->runs, (f->run_count + 1) * sizeof *runs)))
        return error_set(e, ERR_NOMEM, "run %s: out of memory", name);
    f->runs = runs;
    runs[f->run_count++] = (struct follow_run){ .name = f->run_names.entries[*number].text };
    return f->sink.run(f->sink.context, *number, first, e);
}

static int add_file(struct follow *f, const char *path, size_t run, struct error *e)
{
    size_t number = tag_index_add(&f->file_paths, path, log_name_length(path));
    struct follow_file *files;
    char *copy;

    /* Known, maybe from before it was compressed. */
    if (number < f->file_count && (f->files[number].reader || !strcmp(f->files[number].path, path)))
        return OK;
    if (number == TAG_INDEX_NONE || !(copy = strdup(path)))
        return error_set(e, ERR_NOMEM, "%s: out of memory", path);
    if (number < f->file_count) {
        free(f->files[number].path);
        f->files[number].path = copy;
        return OK;
    }
    if (!(files = realloc(f->files, (f->file_count + 1) * sizeof *files))) {
        free(copy);
        return error_set(e, ERR_NOMEM, "%s: out of memory", path);
    }
    f->files = files;
    files[f->file_count++] = (struct follow_file){ .path = copy, .run = run };
    return OK;
}

int follow_look(struct follow *f, int first, struct error *e)
{
    struct log_directory d;
    int rc = log_directory_list(&d, &f->scan->input, f->paths, f->path_count, e);

    f->scan->paths = f->paths;
    f->scan->path_count = f->path_count;
    for (size_t i = 0; i < f->run_count; i++)
        f->runs[i].there = 0;
    if (rc == ERR_IO && !first) { /* what is known stays, and is asked for again */
        if (!f->listing_told)
            log_line(&f->scan->log, "%s; waiting for it", e->message);
        f->listing_told = 1;
        log_directory_release(&d);
        return OK;
    }
    f->listing_told = 0;
    if (f->natural_order)
        scan_natural_order(&d);
    for (size_t i = 0; first && i < d.problem_count; i++) {
        log_line(&f->scan->log, "%s", d.problems[i]);
        f->scan->failed = 1;
    }
    for (size_t i = 0; rc == OK && i < d.count; i++) {
        size_t run;

        if (!scan_run_wanted(f->scan, d.runs[i].name))
            continue;
        if ((rc = add_run(f, d.runs[i].name, first, &run, e)) == OK)
            f->runs[run].there = 1;
        for (size_t k = 0; rc == OK && k < d.runs[i].file_count; k++)
            rc = add_file(f, d.runs[i].files[k], run, e);
    }
    log_directory_release(&d);
    return rc;
}

int follow_read(struct follow *f, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; rc == OK && i < f->file_count; i++) {
        rc = read_file(f, &f->files[i], e);
        if (rc == OK && f->sink.end && (i + 1 == f->file_count || f->files[i + 1].run != f->files[i].run))
            rc = f->sink.end(f->sink.context, f->files[i].run, e);
    }
    return rc;
}

void follow_again(struct follow *f, size_t run)
{
    for (size_t i = 0; i < f->file_count; i++)
        if (f->files[i].run == run) {
            event_reader_close(f->files[i].reader);
            f->files[i].reader = NULL;
        }
}

int follow_failed(const struct follow *f)
{
    int failed = 0;

    for (size_t i = 0; i < f->file_count; i++)
        failed |= f->files[i].told;
    return failed;
}

void follow_release(struct follow *f)
{
    for (size_t i = 0; i < f->file_count; i++) {
        event_reader_close(f->files[i].reader);
        free(f->files[i].path);
    }
    free(f->files);
    free(f->runs);
    tag_index_release(&f->file_paths);
    tag_index_release(&f->run_names);
}
