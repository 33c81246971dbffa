#include "evaluator/evaluation_set.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/directory/training_state.h"
#include "evaluator/watch/watch_inotify.h"
#include "evaluator/watch_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- watch pair -------------------------------------------------------------------------------------------------- */

int watch_pair_parse(char *line, char **name, char **directory, struct error *e)
{
    size_t n;

    line += strspn(line, " \t");
    n = strlen(line);
    while (n && strchr(" \t\r", line[n - 1]))
        line[--n] = '\0';
    if (!n || *line == '#')
        return 0;
    *name = line;
    if (!(*directory = strchr(line, '=')) || *directory == line || !(*directory)[1])
        return error_set(e, ERR_ARG, "'%s': not NAME=DIR", line);
    *(*directory)++ = '\0';
    for (const char *part = line, *slash = line; slash; part = slash ? slash + 1 : part) {
        n = (slash = strchr(part, '/')) ? (size_t)(slash - part) : strlen(part);
        if (!n || (n == 1 && *part == '.') || (n == 2 && !strncmp(part, "..", 2)))
            return error_set(e, ERR_ARG, "'%s': not a name for a run; use a relative path without . and ..", line);
    }
    return 1;
}

/* ---- evaluation set ---------------------------------------------------------------------------------------------- */

enum { DEPTH_MAX = 16, FILE_LIMIT = 16 << 20, RETRY_SECONDS = 10, SPARE_DESCRIPTORS = 32 };
enum member_source { FROM_PAIR, FROM_FILE, FROM_TREE };

struct member {
    char *name, *directory, *eval_directory;
    enum member_source source;
    struct evaluation_watch *watch;  /* NULL: dropped, or not opened yet */
    int listed;                      /* currently in the file or in the tree */
    int was_listed;                  /* while the file is read */
    int finished;                    /* dropped because its work was done */
    struct timespec changed;         /* of the directory, when it was dropped */
    double retry_at;                 /* monotonic: when to try again to open it */
    char said[480];                  /* why */
    struct evaluation_set_past past; /* the counts of its ledger when it was dropped */
};

struct evaluation_set {
    struct evaluation_set_options options;
    struct log *log;
    struct member **members;
    size_t count, capacity;
    struct evaluation_watch **watches;
    size_t watch_count;
    struct watch_inotify *notifier;
    double next_scan;
};

/* ---- members ----------------------------------------------------------------------------------------------------- */

static struct member *find(const struct evaluation_set *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->members[i]->name, name))
            return s->members[i];
    return NULL;
}

static void member_free(struct member *m)
{
    if (!m)
        return;
    evaluation_watch_close(m->watch);
    free(m->name);
    free(m->directory);
    free(m->eval_directory);
    free(m);
}

static int add(struct evaluation_set *s, const char *name, const char *directory, enum member_source source,
               struct error *e)
{
    char path[PATH_MAX];
    struct member *m;

    if (snprintf(path, sizeof path, "%s/%s/eval", s->options.eval_root, name) >= (int)sizeof path)
        return error_set(e, ERR_ARG, "%s/%s/eval: path too long", s->options.eval_root, name);
    if (!ARRAY_ROOM(s->members, s->capacity, s->count + 1))
        return error_memory(e, NULL, "for %zu directories", s->count + 1);
    if (!(m = calloc(1, sizeof *m)) || !(m->name = strdup(name)) || !(m->directory = strdup(directory)) ||
        !(m->eval_directory = strdup(path))) {
        member_free(m);
        return error_memory(e, NULL, "for the directory %s", directory);
    }
    m->source = source;
    m->listed = 1;
    s->members[s->count++] = m;
    return OK;
}

static int open_member(struct evaluation_set *s, struct member *m, struct error *e)
{
    struct evaluation_watch_settings settings = s->options.settings;
    int rc;

    m->retry_at = clock_monotonic() + (double)RETRY_SECONDS;
    if (!file_open_room(SPARE_DESCRIPTORS))
        return error_set(e, ERR_IO, "%s waits: the limit on open files (ulimit -n) is too low for so many directories",
                         m->directory);
    settings.name = m->name;
    settings.checkpoint_directory = m->directory;
    settings.eval_directory = m->eval_directory;
    settings.in_tree = m->source == FROM_TREE;
    settings.watcher.inotify = 0; /* owned by the set, shared by all */
    m->finished = 0;
    if ((rc = evaluation_watch_open(&m->watch, &settings, s->log, e)) == OK)
        *m->said = '\0';
    return rc;
}

/* Opens the directories that are listed but not open. A failure is logged once, and tried again later. */
static void open_listed(struct evaluation_set *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct member *m = s->members[i];
        struct error why = { 0 };

        if (m->watch || m->finished || !m->listed || m->retry_at > clock_monotonic() || open_member(s, m, &why) == OK)
            continue;
        if (strcmp(m->said, why.message))
            log_line(s->log, "%s: %s; trying again every %d s", m->name, why.message, RETRY_SECONDS);
        snprintf(m->said, sizeof m->said, "%s", why.message);
    }
}

static void let_go(const struct evaluation_set *s, struct member *m, const char *why)
{
    const struct evaluation_watch_facts w = evaluation_watch_facts(m->watch);
    const struct watch_log says = { s->log, m->name };

    m->past = (struct evaluation_set_past){ w.record.summary->done, w.record.failed, w.record.gone };
    if (why)
        watch_log_say(&says, "%s", why);
    evaluation_watch_post_end(m->watch, why ? why : "the directory is gone");
    evaluation_watch_close(m->watch);
    m->watch = NULL;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int read_lines(struct evaluation_set *s, char *text, struct error *e)
{
    struct error why = { 0 };
    char *name, *directory;
    int rc = OK, number = 0;

    while (rc == OK && text) {
        char *line = strsep(&text, "\n");
        struct member *m;

        number++;
        if ((rc = watch_pair_parse(line, &name, &directory, &why)) <= 0) {
            if (rc)
                error_set(e, rc, "%s:%d: %s", s->options.file, number, why.message);
            continue;
        }
        rc = OK;
        if (!(m = find(s, name)))
            rc = add(s, name, directory, FROM_FILE, e);
        else if (m->source != FROM_FILE || m->listed)
            rc = error_set(e, ERR_ARG, "%s:%d: the name %s is used twice", s->options.file, number, name);
        else if (strcmp(m->directory, directory))
            rc = error_set(e, ERR_ARG, "%s:%d: %s already means %s; give the new directory another name",
                           s->options.file, number, name, m->directory);
        else
            m->listed = 1;
    }
    return rc;
}

/* If the file has errors, the same directories are served as before. */
static int read_file(struct evaluation_set *s, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    size_t known = s->count;
    int rc;

    if ((rc = file_read(s->options.file, FILE_LIMIT, &text, e)) == OK) {
        for (size_t i = 0; i < known; i++) {
            s->members[i]->was_listed = s->members[i]->listed;
            s->members[i]->listed &= s->members[i]->source != FROM_FILE;
        }
        rc = text.length ? read_lines(s, text.data, e) : OK;
        for (size_t i = 0; i < s->count && rc != OK; i++)
            s->members[i]->listed = i < known && s->members[i]->was_listed;
    }
    buffer_release(&text);
    return rc;
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* A directory in which checkpoints are written: it holds a state file, training.json or a checkpoint. */
static int is_sign(const struct checkpoint_source *source, const char *name)
{
    char checkpoint[NAME_MAX + 1];
    int64_t step;

    if (source->has_pattern)
        return checkpoint_source_name(source, name, checkpoint, sizeof checkpoint, &step);
    return !strcmp(name, "checkpoint") || !strcmp(name, TRAINING_STATE_FILE) ||
           text_stem(name, strlen(name), ".index") || checkpoint_name_safetensors(name) >= 0;
}

static int is_directory(int fd, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR; /* links are not followed: they may form a circle */
    return fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int scan(struct evaluation_set *s, const char *directory, const char *name, int depth, struct error *e);

static int scan_below(struct evaluation_set *s, const char *directory, const char *name, DIR *d, int depth,
                      struct error *e)
{
    struct dirent *entry;
    int rc = OK;

    rewinddir(d);
    while (rc == OK && (entry = readdir(d))) {
        char path[PATH_MAX], below[PATH_MAX];

        if (entry->d_name[0] == '.' || !is_directory(dirfd(d), entry))
            continue;
        if (file_join(path, sizeof path, directory, entry->d_name, NULL) == OK &&
            snprintf(below, sizeof below, "%s%s%s", name, *name ? "/" : "", entry->d_name) < (int)sizeof below)
            rc = scan(s, path, below, depth + 1, e);
    }
    return rc;
}

static int scan(struct evaluation_set *s, const char *directory, const char *name, int depth, struct error *e)
{
    const struct checkpoint_source *source = &s->options.settings.watcher.source;
    struct member *m = *name ? find(s, name) : NULL;
    DIR *d = opendir(directory);
    struct dirent *entry;
    int found = 0, ours = 0, subdirectories = 0, rc = OK;

    if (!d)
        return OK;
    while (!found && !ours && (entry = readdir(d))) {
        /* An eval directory: its best/ would look like a training, and the eval root may be in the tree. */
        ours = !strcmp(entry->d_name, "evaluator.lock") || !strcmp(entry->d_name, "evaluations.jsonl");
        found = is_sign(source, entry->d_name) ||
                (!source->has_pattern && checkpoint_name_weights(dirfd(d), entry->d_name) >= 0);
        subdirectories |= entry->d_name[0] != '.' && is_directory(dirfd(d), entry);
    }
    if (ours) {
        closedir(d);
        return OK;
    }
    if (found && m)
        m->listed = 1;
    else if (found && *name)
        rc = add(s, name, directory, FROM_TREE, e);
    else if (m && m->source == FROM_TREE && m->watch)
        m->listed = 1; /* emptied, but it still exists */
    if (rc == OK && subdirectories && !found && depth < DEPTH_MAX)
        rc = scan_below(s, directory, name, d, depth, e);
    closedir(d);
    return rc == ERR_NOMEM ? rc : OK;
}

static struct timespec changed(const char *directory)
{
    struct stat st;

    return stat(directory, &st) == 0 ? st.st_mtim : (struct timespec){ 0, 0 };
}

static int scan_tree(struct evaluation_set *s, struct error *e)
{
    int rc;

    for (size_t i = 0; i < s->count; i++)
        if (s->members[i]->source == FROM_TREE)
            s->members[i]->listed = 0;
    if ((rc = scan(s, s->options.tree, "", 0, e)) != OK)
        return rc;
    for (size_t i = 0; i < s->count; i++) {
        struct member *m = s->members[i];
        struct timespec now = changed(m->directory);

        if (m->source == FROM_TREE && m->finished &&
            (now.tv_sec != m->changed.tv_sec || now.tv_nsec != m->changed.tv_nsec))
            m->finished = 0; /* something is happening there */
    }
    return OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void close_unlisted(struct evaluation_set *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct member *m = s->members[i];
        struct evaluation_watch_facts w;

        if (!m->watch)
            continue;
        w = evaluation_watch_facts(m->watch);
        if (w.in_flight || w.record.pending || (m->listed && w.intake.queued))
            continue;
        if (!m->listed && (m->source == FROM_FILE || !w.intake.queued)) {
            let_go(s, m, m->source == FROM_FILE ? "not in the file any more" : NULL);
        } else if (w.ended && s->options.tree && m->source == FROM_TREE && !s->options.settings.ending.once) {
            m->changed = changed(m->directory);
            m->finished = 1;
            let_go(s, m, NULL);
        }
    }
}

/* Started even without directories, so that it gets a low descriptor before many are open. */
static void notify(struct evaluation_set *s, struct evaluation_watch **watches, const char *const *paths, size_t n)
{
    const double poll = s->options.settings.watcher.poll_seconds;
    struct error why = { 0 };

    for (size_t i = 0; i < n; i++)
        evaluation_intake_share_inotify(evaluation_watch_intake(watches[i]), NULL, 0);
    watch_inotify_stop(s->notifier);
    if (watch_inotify_start(&s->notifier, paths, n, poll, NULL, &why) != OK && n)
        log_line(s->log, "%.300s; looking every %g s instead", why.message, poll);
    for (size_t i = 0; s->notifier && i < n; i++)
        evaluation_intake_share_inotify(evaluation_watch_intake(watches[i]), s->notifier, i);
}

/* Updates watches and notifier to the current members. */
static int gather(struct evaluation_set *s, int changed_since, struct error *e)
{
    const char **paths = calloc(s->count + 1, sizeof *paths);
    struct evaluation_watch **watches = calloc(s->count + 1, sizeof(void *));
    size_t n = 0;

    if (!paths || !watches) {
        free(paths);
        free(watches);
        return error_memory(e, NULL, "for %zu directories", s->count);
    }
    for (size_t i = 0; i < s->count; i++)
        if (s->members[i]->watch) {
            paths[n] = s->members[i]->directory;
            watches[n++] = s->members[i]->watch;
        }
    if (changed_since && s->options.settings.watcher.inotify)
        notify(s, watches, paths, n);
    free(paths);
    free(s->watches);
    s->watches = watches;
    s->watch_count = n;
    return OK;
}

int evaluation_set_refresh(struct evaluation_set *s, int reread, struct error *e)
{
    struct error why = { 0 };
    size_t before = s->watch_count, kept = 0, n = 0;
    int rc;

    if (reread && s->options.file && (rc = read_file(s, &why)) != OK) {
        if (rc == ERR_NOMEM)
            return error_set(e, rc, "%s", why.message);
        log_line(s->log, "%s; watching the same directories as before", why.message);
    }
    if (s->options.tree && (rc = scan_tree(s, e)) != OK)
        return rc;
    s->next_scan = clock_monotonic() + s->options.settings.watcher.poll_seconds;
    close_unlisted(s);
    for (size_t i = 0; i < s->count; i++)
        kept += s->members[i]->watch != NULL;
    open_listed(s);
    for (size_t i = 0; i < s->count; i++)
        n += s->members[i]->watch != NULL;
    return gather(s, kept != before || n != kept, e);
}

static int open_pairs(struct evaluation_set *s, struct error *e)
{
    for (size_t i = 0; i < s->options.pairs.count; i++) {
        char *copy = strdup(s->options.pairs.items[i]), *name, *directory;
        int rc = copy ? watch_pair_parse(copy, &name, &directory, e) : error_memory(e, NULL, "for a name");

        if (rc == 0)
            rc = error_set(e, ERR_ARG, "'%s': not NAME=DIR", s->options.pairs.items[i]);
        else if (rc > 0)
            rc = find(s, name) ? error_set(e, ERR_ARG, "two directories are named %s", name)
                               : add(s, name, directory, FROM_PAIR, e);
        free(copy);
        if (rc != OK || (rc = open_member(s, s->members[s->count - 1], e)) != OK)
            return rc;
    }
    return OK;
}

int evaluation_set_open(struct evaluation_set **out, const struct evaluation_set_options *options, struct log *log,
                        struct error *e)
{
    struct evaluation_set *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (!s)
        return error_memory(e, NULL, "for a set of directories");
    s->options = *options;
    s->log = log;
    if (options->settings.watcher.inotify)
        notify(s, NULL, NULL, 0);
    if ((rc = open_pairs(s, e)) != OK || (options->file && (rc = read_file(s, e)) != OK) ||
        (rc = evaluation_set_refresh(s, 0, e)) != OK || (rc = gather(s, 1, e)) != OK) {
        evaluation_set_close(s);
        return rc;
    }
    *out = s;
    return OK;
}

void evaluation_set_close(struct evaluation_set *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->watch_count; i++)
        evaluation_intake_share_inotify(evaluation_watch_intake(s->watches[i]), NULL, 0);
    watch_inotify_stop(s->notifier);
    for (size_t i = 0; i < s->count; i++)
        member_free(s->members[i]);
    free(s->members);
    free(s->watches);
    free(s);
}

struct evaluation_watch **evaluation_set_watches(const struct evaluation_set *s, size_t *count)
{
    *count = s->watch_count;
    return s->watches;
}

double evaluation_set_due(const struct evaluation_set *s)
{
    double due = s->options.tree ? s->next_scan : INFINITY, left;

    for (size_t i = 0; i < s->count; i++)
        if (!s->members[i]->watch && s->members[i]->listed && !s->members[i]->finished)
            due = fmin(due, s->members[i]->retry_at);
    left = due - clock_monotonic();
    return left > 0 ? left : 0;
}

int evaluation_set_open_ended(const struct evaluation_set *s)
{
    const struct ending_rules *ending = &s->options.settings.ending;

    return !ending->once && (s->options.tree || (s->options.file && ending->forever));
}

struct evaluation_set_past evaluation_set_past(const struct evaluation_set *s)
{
    struct evaluation_set_past sum = { 0, 0, 0 };

    for (size_t i = 0; i < s->count; i++)
        if (!s->members[i]->watch) {
            sum.done += s->members[i]->past.done;
            sum.failed += s->members[i]->past.failed;
            sum.gone += s->members[i]->past.gone;
        }
    return sum;
}
