#include "evaluator/record/evaluation_replay.h"

#include "base/file.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

int evaluation_replay_is_event_file(const char *name)
{
    static const char head[] = "events.out.tfevents.";

    return !strncmp(name, head, strlen(head));
}

/* Not counting the name `but`, which may be NULL. */
static int others_present(const char *directory, const char *but)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    int present = 0;

    while (d && !present && (entry = readdir(d)))
        present = evaluation_replay_is_event_file(entry->d_name) && (!but || strcmp(entry->d_name, but) != 0);
    if (d)
        closedir(d);
    return present;
}

int evaluation_replay_present(const char *directory)
{
    return others_present(directory, NULL);
}

int evaluation_replay_end(struct evaluation_replay *p, struct error *e)
{
    struct evaluation_log *log = p->log;
    int rc = log ? evaluation_log_sync(log, e) : OK;

    p->log = NULL;
    if (rc == OK)
        return evaluation_log_close(log, e);
    evaluation_log_close(log, NULL);
    return rc;
}

static int begin_run(struct evaluation_replay *p, int64_t run, struct error *e)
{
    const char *own = run == p->own_run ? p->own : NULL;
    char directory[PATH_MAX], path[PATH_MAX];
    int rc = evaluation_replay_end(p, e);

    if (rc != OK || (rc = evaluation_log_directory(p->directory, run, directory, sizeof directory, e)) != OK)
        return rc;
    p->run = run;
    p->passed = p->missing && others_present(directory, own);
    if (p->missing && !p->passed && own) {
        if ((rc = file_join(path, sizeof path, directory, own, e)) != OK)
            return rc;
        unlink(path);
    }
    if (p->passed || (rc = evaluation_log_open(&p->log, p->directory, p->tags, NULL, run, -1, e)) != OK)
        return rc;
    evaluation_log_rewind(p->log, run);
    return OK;
}

int evaluation_replay_ledger(struct evaluation_replay *p, const char *ledger, ledger_visit *visit, void *context,
                             struct error *e)
{
    int rc = OK;

    for (p->wanted = 0; rc == OK && p->wanted < (p->runs ? p->runs : 1); p->wanted++)
        rc = ledger_read(ledger, visit, context, NULL, e);
    return rc;
}

int evaluation_replay_record(void *context, const struct ledger_record *r, struct error *e)
{
    struct evaluation_replay *p = context;
    const struct evaluation_point point = { r->checkpoint.step, r->point_time > 0 ? r->point_time : r->wall_time,
                                            &r->metrics, NULL, NULL };
    int rc;

    if (!r->has_metrics)
        return OK;
    if (r->run >= p->runs)
        p->runs = r->run + 1;
    if (r->run != p->wanted)
        return OK;
    if (r->run != p->run && (rc = begin_run(p, r->run, e)) != OK)
        return rc;
    if (p->passed)
        return OK;
    if ((rc = evaluation_log_add(p->log, &point, e)) == OK)
        p->points++;
    return rc;
}
