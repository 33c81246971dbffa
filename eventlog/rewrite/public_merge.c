/* The public function that merges event files; eventlog.h describes it. */
#include "base/file.h"
#include "base/io.h"
#include "eventlog/public.h"
#include "eventlog/rewrite/log_group.h"
#include "eventlog/rewrite/log_merging.h"
#include "eventlog/rewrite/log_replace.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLUSH = 256 * 1024 };

struct merger {
    struct log_input input;
    struct log_directory directory;
    struct log_merging *merging;
    struct log_replace_file new;
    struct buffer pending;
    struct eventlog_merged done;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int read_records(struct merger *m, struct record_file *f, struct error *e)
{
    struct record r;
    int rc;

    while ((rc = record_file_next(f, &r, e)) == RECORD_DATA || rc == RECORD_DAMAGE) {
        struct event event;

        if (rc == RECORD_DAMAGE || !log_rewrite_sound(r.data, r.length, &event))
            m->done.damaged++;
        else if ((rc = log_merging_record(m->merging, r.offset, r.data, r.length, &event, e)) != OK)
            return rc;
    }
    if (rc == RECORD_MORE)
        m->done.torn += f->size - f->parser.offset;
    return rc == RECORD_MORE ? OK : rc;
}

static int read_file(struct merger *m, const char *path, struct error *e)
{
    struct record_file f;
    int rc = log_input_open(&m->input, path, &f, e);

    if (rc == OK)
        rc = record_file_check(&f, e);
    if (rc == OK)
        rc = read_records(m, &f, e);
    record_file_close(&f);
    return rc;
}

static int read_all(struct merger *m, int join, struct error *e)
{
    const struct log_directory *d = &m->directory;
    int rc = OK;

    for (size_t i = 0; rc == OK && i < d->count; i++)
        for (size_t k = 0; rc == OK && k < d->runs[i].file_count; k++)
            if ((rc = log_merging_file(m->merging, join ? 0 : i, d->runs[i].name, d->runs[i].files[k], e)) == OK)
                rc = read_file(m, d->runs[i].files[k], e);
    return rc == OK ? log_merging_finish(m->merging, e) : rc;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_pending(struct merger *m, struct error *e)
{
    if (!buffer_ok(&m->pending))
        return error_memory(e, m->new.temporary, "for it");
    if (m->pending.length && io_write_full(m->new.io, m->new.fd, m->pending.data, m->pending.length) < 0)
        return error_system(e, "%s: cannot write", m->new.temporary);
    m->done.bytes += m->pending.length;
    buffer_clear(&m->pending);
    return OK;
}

static int put(void *context, const char *run, double share, struct error *e)
{
    struct merger *m = context;

    (void)run;
    (void)share;
    return buffer_ok(&m->pending) && m->pending.length < FLUSH ? OK : write_pending(m, e);
}

static int is_input(const struct merger *m, const struct stat *st)
{
    const struct log_directory *d = &m->directory;
    struct stat other;

    for (size_t i = 0; i < d->count; i++)
        for (size_t k = 0; k < d->runs[i].file_count; k++)
            if (stat(d->runs[i].files[k], &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino)
                return 1;
    return 0;
}

static int write_file(struct merger *m, const char *path, struct error *e)
{
    int rc = log_replace_open(&m->new, &io_real, path, e);

    if (rc != OK)
        return rc;
    if ((rc = log_merging_write(m->merging, &m->input, &m->pending, put, m, e)) == OK)
        rc = write_pending(m, e);
    return log_replace_close(&m->new, path, -1, NULL, rc, e);
}

static int write_to(struct merger *m, const char *directory, int force, struct error *e)
{
    char name[LOG_MERGING_NAME_MAX], path[PATH_MAX];
    struct stat st;
    int rc, made;

    log_merging_name(m->merging, name);
    if ((rc = file_join(path, sizeof path, directory, name, e)) != OK)
        return rc;
    if (!force && log_directory_holds_files(directory))
        return error_set(e, ERR_ARG, "%s: already holds event files; choose another directory, or force it", directory);
    if (stat(path, &st) == 0 && is_input(m, &st))
        return error_set(e, ERR_ARG, "%s: is one of the input files; choose another directory", path);
    made = stat(directory, &st) < 0;
    if ((rc = file_make_directories(directory, e)) == OK && (rc = write_file(m, path, e)) != OK && made)
        rmdir(directory);
    return rc;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int merge(struct merger *m, char *const *paths, size_t count, const char *directory,
                 const struct eventlog_merge_options *o, struct error *e)
{
    struct eventlog_merged totals;
    int rc;

    if (!count || !directory || !*directory)
        return error_set(e, ERR_ARG, "a merge needs paths to read and a directory to write to");
    if (o->overlap < EVENTLOG_OVERLAP_LAST || o->overlap > EVENTLOG_OVERLAP_ERROR)
        return error_set(e, ERR_ARG, "overlap %d is not a policy", (int)o->overlap);
    if (o->join && o->prefix)
        return error_set(e, ERR_ARG, "join and prefix contradict each other");
    if ((rc = log_directory_list(&m->directory, &m->input, paths, count, e)) != OK)
        return rc;
    if (m->directory.unreadable)
        return error_set(e, ERR_IO, "%s", m->directory.problems[m->directory.unreadable - 1]);
    if (!m->directory.count)
        return error_set(e, ERR_ARG, "%s: no event files", paths[0]);
    if ((rc = log_group_files(&m->directory, e)) != OK ||
        (o->join && (rc = log_group_by_start(&m->directory, &m->input, e)) != OK) ||
        (rc = log_merging_new(&m->merging, o->overlap, o->prefix, e)) != OK || (rc = read_all(m, o->join, e)) != OK ||
        (rc = write_to(m, directory, o->force, e)) != OK)
        return rc;
    totals = log_merging_totals(m->merging);
    totals.bytes = m->done.bytes;
    totals.damaged = m->done.damaged;
    totals.torn = m->done.torn;
    m->done = totals;
    return OK;
}

int eventlog_merge(const char *const *paths, size_t count, const char *directory,
                   const struct eventlog_merge_options *options, struct eventlog_merged *out,
                   struct eventlog_error *error)
{
    struct eventlog_merge_options o = { 0 };
    struct merger m = { 0 };
    struct error e = { 0 };
    char *const *listed; /* only read, but as main() gets them */
    int rc;

    memcpy(&listed, &paths, sizeof listed);
    if (options)
        o = *options;
    rc = merge(&m, listed, count, directory, &o, &e);
    if (out)
        *out = rc == OK ? m.done : (struct eventlog_merged){ 0 };
    log_merging_free(m.merging);
    log_directory_release(&m.directory);
    log_input_release(&m.input);
    buffer_release(&m.pending);
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
}
