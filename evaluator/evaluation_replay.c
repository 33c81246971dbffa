#include "evaluator/evaluation_replay.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>

int evaluation_replay_is_event_file(const char *name)
{
    static const char head[] = "events.out.tfevents.";

    return !strncmp(name, head, strlen(head));
}

int evaluation_replay_present(const char *directory)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    int present = 0;

    while (d && !present && (entry = readdir(d)))
        present = evaluation_replay_is_event_file(entry->d_name);
    if (d)
        closedir(d);
    return present;
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
    char directory[PATH_MAX];
    int rc = evaluation_replay_end(p, e);

    if (rc != OK || (rc = evaluation_log_directory(p->directory, run, directory, sizeof directory, e)) != OK)
        return rc;
    p->run = run;
    p->passed = p->missing && evaluation_replay_present(directory);
    return p->passed ? OK : evaluation_log_open(&p->log, p->directory, p->tags, NULL, run, -1, e);
}

int evaluation_replay_record(void *context, const struct ledger_record *r, struct error *e)
{
    struct evaluation_replay *p = context;
    const struct evaluation_point point = { r->step, r->point_time > 0 ? r->point_time : r->wall_time, &r->metrics,
                                             NULL };
    int rc;

    if (!r->has_metrics)
        return OK;
    if (r->run > p->run && (rc = begin_run(p, r->run, e)) != OK)
        return rc;
    if (p->passed)
        return OK;
    if ((rc = evaluation_log_add(p->log, &point, e)) == OK)
        p->points++;
    return rc;
}
