#include "evaluator/record/evaluation_lock.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/version.h"
#include "evaluator/record/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 4 * PATH_MAX, NAMELESS_SECONDS = 2 };

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static void lock_take_text(const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));

    snprintf(out, size, "%s", text ? text : "");
}

/* "host pid", the format of older evaluators. */
static int parse_old(const char *text, size_t n, struct evaluation_lock *out)
{
    char line[HOST_NAME_MAX + 32], *blank, *end;

    if (n >= sizeof line)
        return 0;
    memcpy(line, text, n);
    line[n] = '\0';
    if (!(blank = strchr(line, ' ')) || blank == line || blank - line > HOST_NAME_MAX)
        return 0;
    *blank = '\0';
    out->process.pid = strtoll(blank + 1, &end, 10);
    if (end == blank + 1 || *end || out->process.pid <= 0)
        return 0;
    memcpy(out->process.host, line, (size_t)(blank - line) + 1);
    snprintf(out->state, sizeof out->state, "running");
    return 1;
}

int evaluation_lock_parse(const char *text, size_t n, struct evaluation_lock *out)
{
    const char *newline = memchr(text, '\n', n);
    json_t *object;
    int ok;

    memset(out, 0, sizeof *out);
    out->process.start = -1;
    n = newline ? (size_t)(newline - text) : n;
    if (!(object = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL)))
        return parse_old(text, n, out);
    lock_take_text(object, "state", out->state, sizeof out->state);
    lock_take_text(object, "host", out->process.host, sizeof out->process.host);
    lock_take_text(object, "boot", out->process.boot, sizeof out->process.boot);
    lock_take_text(object, "tags", out->tags, sizeof out->tags);
    lock_take_text(object, "pattern", out->pattern, sizeof out->pattern);
    lock_take_text(object, "step_from", out->step_from, sizeof out->step_from);
    out->step_scale = json_integer_value(json_object_get(object, "step_scale"));
    out->step_offset = json_integer_value(json_object_get(object, "step_offset"));
    lock_take_text(object, "why", out->why, sizeof out->why);
    lock_take_text(object, "checkpoint_dir", out->checkpoint_directory, sizeof out->checkpoint_directory);
    lock_take_text(object, "eval_dir", out->eval_directory, sizeof out->eval_directory);
    out->process.pid = json_integer_value(json_object_get(object, "pid"));
    if (json_is_integer(json_object_get(object, "process_start")))
        out->process.start = json_integer_value(json_object_get(object, "process_start"));
    out->since = json_number_value(json_object_get(object, "since"));
    ok = json_is_object(object) && *out->process.host && out->process.pid > 0 &&
         (!strcmp(out->state, "running") || !strcmp(out->state, "ended"));
    json_decref(object);
    return ok;
}

static void field(struct buffer *b, const char *name, const char *value)
{
    buffer_format(b, "%s\"%s\":", b->length > 1 ? "," : "", name);
    json_text(b, value);
}

static void format(const struct evaluation_lock *l, struct buffer *b)
{
    buffer_append_text(b, "{");
    field(b, "state", l->state);
    if (*l->why)
        field(b, "why", l->why);
    field(b, "host", l->process.host);
    buffer_format(b, ",\"pid\":%" PRId64 ",\"process_start\":%" PRId64, l->process.pid, l->process.start);
    field(b, "boot", l->process.boot);
    buffer_append_text(b, ",\"since\":");
    json_double(b, l->since);
    field(b, "checkpoint_dir", l->checkpoint_directory);
    if (*l->pattern)
        field(b, "pattern", l->pattern);
    if (*l->step_from)
        field(b, "step_from", l->step_from);
    if (l->step_scale || l->step_offset)
        buffer_format(b, ",\"step_scale\":%" PRId64 ",\"step_offset\":%" PRId64, l->step_scale, l->step_offset);
    field(b, "eval_dir", l->eval_directory);
    if (*l->tags)
        field(b, "tags", l->tags);
    field(b, "version", EVALBOARD_VERSION);
    buffer_append_text(b, "}\n");
}

/* ---- judging and taking ------------------------------------------------------------------------------------------ */

static enum evaluation_lock_state judge(const struct evaluation_lock *l)
{
    static const enum evaluation_lock_state of[] = {
        [PROCESS_LIVES] = LOCK_ALIVE,
        [PROCESS_GONE] = LOCK_DEAD,
        [PROCESS_ELSEWHERE] = LOCK_ELSEWHERE,
    };

    return strcmp(l->state, "ended") ? of[process_judge(&l->process)] : LOCK_ENDED;
}

/* ours (may be NULL): 0 if it holds anything but a lock or the remains of one after a crash. */
static enum evaluation_lock_state read_and_judge(int fd, struct evaluation_lock *out, int *ours)
{
    char *text = malloc(TEXT_MAX);
    ssize_t n = text ? pread(fd, text, TEXT_MAX, 0) : -1;
    int known = n > 0 && evaluation_lock_parse(text, (size_t)n, out);

    if (ours)
        *ours = known || (n >= 0 && file_begins(text, (size_t)n, "{\"state\":\""));
    free(text);
    return known ? judge(out) : LOCK_NONE;
}

enum evaluation_lock_state evaluation_lock_read(const char *path, struct evaluation_lock *out)
{
    enum evaluation_lock_state state;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    memset(out, 0, sizeof *out);
    if (fd < 0)
        return LOCK_NONE;
    state = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read_and_judge(fd, out, NULL) : LOCK_NONE;
    close(fd);
    return state;
}

static int write_text(int fd, const struct evaluation_lock *l)
{
    struct buffer b = BUFFER_EMPTY;
    int ok;

    format(l, &b);
    ok = buffer_ok(&b) && file_write_at(fd, b.data, b.length, 0) == 0 && ftruncate(fd, (off_t)b.length) == 0;
    buffer_release(&b);
    return ok;
}

static void absolute(const char *path, char out[PATH_MAX])
{
    char here[PATH_MAX];

    if (!path)
        *out = '\0';
    else if (!realpath(path, out) &&
             (*path == '/' || !getcwd(here, sizeof here) || snprintf(out, PATH_MAX, "%s/%s", here, path) >= PATH_MAX))
        snprintf(out, PATH_MAX, "%s", path); /* not there yet */
}

static void directory_of(const char *path, char out[PATH_MAX])
{
    const size_t n = (size_t)(file_base_name(path) - path);

    snprintf(out, PATH_MAX, "%.*s", n ? (int)n : 1, n ? path : ".");
}

static void describe_self(struct evaluation_lock *l, const char *path, const struct evaluation_lock_about *about)
{
    char directory[PATH_MAX];

    memset(l, 0, sizeof *l);
    snprintf(l->state, sizeof l->state, "running");
    process_self(&l->process);
    l->since = clock_wall();
    snprintf(l->tags, sizeof l->tags, "%s", about->tags ? about->tags : "");
    snprintf(l->pattern, sizeof l->pattern, "%s", about->pattern ? about->pattern : "");
    snprintf(l->step_from, sizeof l->step_from, "%s", about->step_from ? about->step_from : "");
    l->step_scale = about->step_scale;
    l->step_offset = about->step_offset;
    absolute(about->checkpoint_directory, l->checkpoint_directory);
    directory_of(path, directory);
    absolute(directory, l->eval_directory);
}

/* For a lock that somebody holds: the line may still be that of the holder before. */
static enum evaluation_lock_state who_lives(enum evaluation_lock_state said)
{
    return said == LOCK_ENDED || said == LOCK_DEAD || said == LOCK_NONE ? LOCK_NONE : LOCK_ALIVE;
}

static int refuse(const char *path, const struct evaluation_lock *by, enum evaluation_lock_state state, struct error *e)
{
    if (state == LOCK_NONE)
        return error_set(
            e, ERR_PEER,
            "%s: locked by another process, which has not written its name yet, or whose lock file was deleted", path);
    return error_set(e, ERR_PEER, "%s: an evaluator is already working here: process %" PRId64 " on host %s%s", path,
                     by->process.pid, by->process.host,
                     state == LOCK_ELSEWHERE ? "; if it is gone, --take-over takes its place" : "");
}

static int take_file(const char *path, const struct evaluation_lock_about *about, int take_over, int *fd,
                     struct evaluation_lock *before, enum evaluation_lock_state *was, struct error *e)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct evaluation_lock self;
    int f, free_now, ours, rc = file_open_plain(NULL, path, O_RDWR | O_CREAT, &f, e);

    *fd = -1;
    if (rc != OK)
        return rc;
    free_now = fcntl(f, F_SETLK, &lock) == 0;
    if (!free_now && errno != EACCES && errno != EAGAIN && errno != ENOLCK && errno != ENOTSUP) {
        error_system(e, "%s: cannot lock", path);
        close(f);
        return ERR_IO;
    }
    /* Without kernel locks (ENOLCK) only the line counts. */
    free_now = free_now || errno == ENOLCK || errno == ENOTSUP;
    *was = read_and_judge(f, before, &ours);
    if (!free_now || *was == LOCK_ALIVE || (*was == LOCK_ELSEWHERE && !take_over)) {
        close(f);
        if (!free_now)
            *was = who_lives(*was);
        return refuse(path, before, *was, e);
    }
    if (!ours) {
        close(f);
        return error_set(e, ERR_ARG, "%s: is not the lock of an evaluator; move it elsewhere", path);
    }
    describe_self(&self, path, about);
    if (!write_text(f, &self)) {
        error_system(e, "%s: cannot write the lock file", path);
        close(f);
        return ERR_IO;
    }
    *fd = f;
    return OK;
}

enum { LEDGER_IS_LOCKED = 1 };

/* OK: *fd is open; *locked: 1: and locked, 0: locks are not supported. LEDGER_IS_LOCKED: by another process. */
static int take_ledger(const char *path, int *fd, int *locked, struct error *e)
{
    char directory[PATH_MAX], ledger[PATH_MAX];
    int rc;

    directory_of(path, directory);
    if ((rc = file_join(ledger, sizeof ledger, directory, LEDGER_FILE, e)) != OK ||
        (rc = file_open_plain(NULL, ledger, LEDGER_FLAGS, fd, e)) != OK)
        return rc;
    *locked = flock(*fd, LOCK_EX | LOCK_NB) == 0;
    if (*locked || errno != EWOULDBLOCK)
        return OK;
    close(*fd);
    *fd = -1;
    return LEDGER_IS_LOCKED;
}

static int take(const char *path, const struct evaluation_lock_about *about, int take_over,
                struct evaluation_lock_held *held, struct evaluation_lock *before, enum evaluation_lock_state *was,
                struct error *e)
{
    int locked = 0, rc;

    *held = (struct evaluation_lock_held)EVALUATION_LOCK_NOT_HELD;
    if ((rc = take_ledger(path, &held->ledger, &locked, e)) == LEDGER_IS_LOCKED) {
        *was = who_lives(evaluation_lock_read(path, before));
        return refuse(path, before, *was, e);
    }
    if (rc == OK && (rc = take_file(path, about, take_over, &held->file, before, was, e)) != OK) {
        close(held->ledger);
        held->ledger = -1;
    }
    if (rc == OK && locked) {
        close(held->file);
        held->file = -1;
    }
    return rc;
}

int evaluation_lock_take(const char *path, const struct evaluation_lock_about *about, int take_over,
                         struct evaluation_lock_held *held, struct evaluation_lock *before,
                         enum evaluation_lock_state *was, struct error *e)
{
    const double until = clock_monotonic() + (double)NAMELESS_SECONDS;
    const struct timespec pause = { 0, 10000000 };
    int rc;

    /* The child of a killed evaluator holds its lock until it has called exec, or has noticed. */
    while ((rc = take(path, about, take_over, held, before, was, e)) == ERR_PEER && *was == LOCK_NONE &&
           clock_monotonic() < until)
        nanosleep(&pause, NULL);
    return rc;
}

void evaluation_lock_release(const char *path, const struct evaluation_lock_held *held, const char *why)
{
    struct evaluation_lock l = { .state = "" };
    int fd = held->file;

    if (held->ledger < 0)
        return;
    if (fd < 0)
        file_open_plain(NULL, path, O_RDWR, &fd, NULL);
    if (fd >= 0) {
        read_and_judge(fd, &l, NULL);
        if (l.process.pid == getpid() && !strcmp(l.state, "running")) { /* otherwise somebody took it over */
            snprintf(l.state, sizeof l.state, "ended");
            snprintf(l.why, sizeof l.why, "%s", why ? why : "");
            write_text(fd, &l);
        }
        close(fd);
    }
    close(held->ledger);
}
