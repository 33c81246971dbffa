/*
 * evaluator replay: writes the event files of an eval directory again, from its ledger alone: same tags, steps, times
 * and runs (EVAL, EVAL_1, ...). Without -o they are made in EVAL/.replay and then replace the old ones, which keep
 * names that TensorBoard does not read.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/program/log.h"
#include "base/program/options.h"
#include "base/program/subcommand.h"
#include "evaluator/evaluation_status.h"
#include "evaluator/files/file_tree.h"
#include "evaluator/record/evaluation_lock.h"
#include "evaluator/record/evaluation_log.h"
#include "evaluator/record/evaluation_replay.h"
#include "evaluator/tool/command.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char event_file[] = "events.out.tfevents.", put_aside[] = "before-replay.";

/* Moves the event files of a directory to another one or, if that is NULL, hides them from TensorBoard by name. */
static int move_events(const char *from, const char *to, struct error *e)
{
    DIR *d = opendir(from);
    struct dirent *entry;
    int rc = OK;

    if (!d)
        return errno == ENOENT && !to ? OK : error_system(e, "%s: cannot be listed", from);
    while (rc == OK && (entry = readdir(d))) {
        char source[PATH_MAX], target[PATH_MAX], name[NAME_MAX + sizeof put_aside];

        if (!evaluation_replay_is_event_file(entry->d_name))
            continue;
        snprintf(name, sizeof name, "%s%s", to ? event_file : put_aside, entry->d_name + strlen(event_file));
        if ((rc = file_join(source, sizeof source, from, entry->d_name, e)) == OK &&
            (rc = file_join(target, sizeof target, to ? to : from, name, e)) == OK && rename(source, target) < 0)
            rc = error_system(e, "%s: cannot rename to %s", source, target);
    }
    closedir(d);
    return rc;
}

static int make_events(struct evaluation_replay *p, const char *eval_directory, struct error *e)
{
    char ledger[PATH_MAX];
    int rc = file_make_directories(p->directory, e);

    if (rc == OK && (rc = file_join(ledger, sizeof ledger, eval_directory, LEDGER_FILE, e)) == OK)
        rc = evaluation_replay_ledger(p, ledger, evaluation_replay_record, p, e);
    if (rc == OK)
        return evaluation_replay_end(p, e);
    evaluation_replay_end(p, NULL);
    return rc;
}

/* Replays into a directory that has no event files yet. */
static int replay_into(struct evaluation_replay *p, const char *eval_directory, struct error *e)
{
    if (evaluation_replay_present(p->directory))
        return error_set(e, ERR_ARG, "%s: already has event files; choose another directory", p->directory);
    return make_events(p, eval_directory, e);
}

/* visit: called for every name except . and .. */
typedef int name_visit(const char *directory, const char *name, struct error *e);

static int each_name(const char *directory, name_visit *visit, struct error *e)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    int rc = OK;

    if (!d)
        return error_system(e, "%s: cannot list", directory);
    while (rc == OK && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            rc = visit(directory, entry->d_name, e);
    closedir(d);
    return rc;
}

static int not_ours(const char *directory, const char *name, struct error *e)
{
    return error_set(e, ERR_ARG, "%s/%s: was not made by evaluator replay; move it elsewhere", directory, name);
}

static int check_file(const char *directory, const char *name, struct error *e)
{
    return evaluation_replay_is_event_file(name) || !strcmp(name, ".points") ? OK : not_ours(directory, name, e);
}

static int check_run(const char *directory, const char *name, struct error *e)
{
    const size_t n = strlen("eval");
    char path[PATH_MAX];
    struct stat st;
    int rc = file_join(path, sizeof path, directory, name, e);

    if (rc != OK)
        return rc;
    if (strncmp(name, "eval", n) || (name[n] && (name[n] != '_' || name[n + 1 + strspn(name + n + 1, "0123456789")])) ||
        lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return not_ours(directory, name, e);
    return each_name(path, check_file, e);
}

/* Removes what an interrupted replay left, and nothing else. */
static int remove_left(const char *work, struct error *e)
{
    struct stat st;
    int rc;

    if (lstat(work, &st) < 0)
        return OK;
    if (!S_ISDIR(st.st_mode))
        return error_set(e, ERR_ARG, "%s: is not a directory; move it elsewhere", work);
    return (rc = each_name(work, check_run, e)) == OK ? file_tree_remove(work, e) : rc;
}

static int replace_events(struct evaluation_replay *p, const char *eval_directory, const char *work, struct error *e)
{
    char made[PATH_MAX], from[PATH_MAX], to[PATH_MAX];
    int rc;

    if ((rc = remove_left(work, e)) != OK || (rc = file_join(made, sizeof made, work, "eval", e)) != OK)
        return rc;
    p->directory = made;
    if ((rc = make_events(p, eval_directory, e)) != OK)
        return rc;
    for (int64_t run = 0; p->points && run <= p->run && rc == OK; run++) {
        if ((rc = evaluation_log_directory(made, run, from, sizeof from, e)) == OK &&
            (rc = evaluation_log_directory(eval_directory, run, to, sizeof to, e)) == OK && access(from, F_OK) == 0 &&
            (rc = file_make_directories(to, e)) == OK && (rc = move_events(to, NULL, e)) == OK)
            rc = move_events(from, to, e);
    }
    return rc;
}

/* Takes the lock: a working evaluator would continue to write to the old files. */
static int replay_in_place(struct evaluation_replay *p, const char *eval_directory, const struct evaluation_lock *said,
                           struct error *e)
{
    const struct evaluation_lock_about about = { *said->checkpoint_directory ? said->checkpoint_directory : NULL,
                                                 said->pattern,
                                                 said->step_from,
                                                 said->tags,
                                                 said->step_scale,
                                                 said->step_offset };
    struct evaluation_lock before;
    enum evaluation_lock_state was;
    char path[PATH_MAX], work[PATH_MAX];
    struct evaluation_lock_held lock;
    int rc;

    if ((rc = file_join(path, sizeof path, eval_directory, EVALUATION_LOCK_FILE, e)) != OK ||
        (rc = file_join(work, sizeof work, eval_directory, ".replay", e)) != OK ||
        (rc = evaluation_lock_take(path, &about, 0, &lock, &before, &was, e)) != OK)
        return rc;
    if ((rc = replace_events(p, eval_directory, work, e)) == OK)
        file_tree_remove(work, NULL);
    evaluation_lock_release(path, &lock, *said->why ? said->why : "replayed");
    return rc;
}

static const struct evaluation_tags *find_tags(const char *name)
{
    if (!strcmp(name, "plain"))
        return evaluation_tags_plain();
    return evaluation_tags_find(!*name || !strcmp(name, "default") ? NULL : name);
}

static int replay(const char *directory, const char *output, const char *tags, struct log *log, struct error *e)
{
    struct evaluation_status *s = malloc(sizeof *s);
    struct evaluation_replay p = { .directory = output, .run = -1 };
    int rc;

    if (!s)
        return error_memory(e, directory, "for it");
    if ((rc = evaluation_status_read(directory, clock_wall(), s, e)) == OK) {
        if (!(p.tags = find_tags(tags ? tags : s->lock.tags)))
            rc = error_set(e, ERR_ARG, "%s: unknown tags '%s' of the evaluator; choose tags with --tags", directory,
                           s->lock.tags);
        else
            rc = output ? replay_into(&p, directory, e) : replay_in_place(&p, directory, &s->lock, e);
    }
    if (rc == OK)
        log_line(log, "%s: %" PRId64 " evaluations written%s%s", output ? output : directory, p.points,
                 output ? "" : "; the old files are kept as ", output ? "" : "before-replay.*");
    free(s);
    return rc;
}

int command_replay(int argc, char **argv)
{
    const char *output = NULL, *tags = NULL;
    struct option table[] = {
        { OPTION_TEXT, 'o', "output", .value = &output, .argument = "DIR",
          .help = "Write to DIR (and DIR_1, ... if there were several runs) and leave EVAL as it is." },
        { OPTION_CHOICE, .name = "tags", .value = &tags, .argument = "NAME",
          .help = "Write these tags, as the evaluator's option does; plain: every metric under its own name. Default: "
                  "the tags that the evaluator used.",
          .choices = "default|plain|homework|tutorial|resnet|im2txt|keras|estimator" },
    };
    const struct options options = {
        .program = "evaluator replay",
        .usage = "[-o DIR] EVAL",
        .summary = "Write the event files of an eval directory again from its ledger, with the same tags, steps, times "
                   "and runs. Without -o they replace those in EVAL, in which no evaluator may be working; the old "
                   "files are kept as before-replay.*. Only scalars are written: pictures, curves and texts are not in "
                   "the ledger. Restart a TensorBoard that shows EVAL. Exit status: 0 done, 2 wrong usage or input.",
        .examples = "  evaluator replay runs/mpi/eval\n  evaluator replay -o /tmp/again/eval runs/mpi/eval\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .most = 1,
        .wanted = "which eval directory?",
    };
    struct error e = { 0 };
    struct log log;
    int count = 0, rc;

    log_init(&log, "evaluator replay", STDERR_FILENO);
    if ((rc = options_parse(&options, argc, argv, &count, &e)) == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OPTIONS_RUN && (rc = replay(argv[1], output, tags, &log, &e)) == OK)
        return EXIT_DONE;
    log_line(&log, "%s", e.message);
    return EXIT_USAGE;
}
