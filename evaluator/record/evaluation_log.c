#include "evaluator/record/evaluation_log.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/record_frame.h"
#include "checkpoint/directory/training_state.h"
#include "evaluator/score/evaluation.h"
#include "evaluator/score/evaluation_detail.h"
#include "eventlog/eventlog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- session settings -------------------------------------------------------------------------------------------- */

/*
 * The settings of a training as hyperparameters of its evaluation's run, so that trainings can be
 * compared in TensorBoard's HParams tab: from training.json (training_state.h), else from the evaluator's own options.
 *
 *   model, data, optimizer, run_option   texts
 *   world_size, batch_size, learning_rate   numbers; batch_size is one worker's
 * Unknown ones are left out.
 */

enum { SESSION_SETTINGS_MAX = 8 };

struct session_settings {
    struct training_state training; /* the texts of items point into it */
    struct eventlog_hparam items[SESSION_SETTINGS_MAX];
    size_t count;
};

static void add_text(struct session_settings *s, const char *name, const char *known, const char *told)
{
    const char *text = *known ? known : told;

    if (text && *text)
        s->items[s->count++] = (struct eventlog_hparam){ .name = name, .type = EVENTLOG_HPARAM_STRING, .text = text };
}

static void add_number(struct session_settings *s, const char *name, double x)
{
    if (isfinite(x) && x > 0)
        s->items[s->count++] = (struct eventlog_hparam){ .name = name, .type = EVENTLOG_HPARAM_NUMBER, .number = x };
}

/* training: NULL if there is no training.json. model, data: the evaluator's options, or NULL; borrowed. */
static void session_settings_fill(struct session_settings *s, const struct training_state *training, const char *model,
                                  const char *data)
{
    memset(s, 0, sizeof *s);
    if (training)
        s->training = *training;
    add_text(s, "model", s->training.model, model);
    add_text(s, "data", s->training.data, data);
    add_text(s, "optimizer", s->training.optimizer, NULL);
    add_text(s, "run_option", s->training.run_option, NULL);
    add_number(s, "world_size", (double)s->training.world_size);
    add_number(s, "batch_size", (double)s->training.batch_size);
    add_number(s, "learning_rate", s->training.learning_rate);
}

/* ---- evaluation intent ------------------------------------------------------------------------------------------- */

/*
 * EVAL/.points: the run and the step of the newest point, and, from before an evaluation's events
 * are written until its line is in the ledger, that line and the place of the events. So after a crash between the two
 * the next process knows whether the events are in the event file, and then only the line is missing: no event and no
 * line is written twice, and nothing is computed again.
 *
 *   "run step\n", each 20 columns wide; while a line is missing, also
 *   "crc before events FILE\n": CRC-32C of what follows it in hex, the length of the event file before these events,
 *                               how many they are, and the file's name in the directory of the run; then the line
 *
 * If a part of the events is missing, the process was killed in the middle of a write, or the machine lost power. The
 * part that is there is cut off, and the checkpoint is evaluated again. Every process makes a file of its own, so no
 * bytes are appended to that one later: who has read it further, as TensorBoard may have, meets its end. One thread.
 */

struct evaluation_intent {
    int64_t run, step; /* step -1: there is no point in the run */
    char *line;        /* of the ledger, with its newline; NULL: none is missing. Owned */
    char file[NAME_MAX + 1];
    uint64_t before, events;
};

enum { POINTS_LIMIT = 64 << 20, HEAD = 42 };

static void evaluation_intent_release(struct evaluation_intent *i)
{
    free(i->line);
    *i = (struct evaluation_intent){ .step = -1 };
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* Of the text behind the head. Without a whole one there is no line: it was not written to its end. */
static int read_line(const char *text, size_t n, struct evaluation_intent *out, struct error *e)
{
    const char *name = memchr(text, ' ', n), *newline = name ? memchr(name, '\n', (size_t)(text + n - name)) : NULL;
    const size_t length = newline ? (size_t)(text + n - newline - 1) : 0;
    unsigned crc;
    int at = 0;

    if (!newline || sscanf(text, "%8x %" SCNu64 " %" SCNu64 " %n", &crc, &out->before, &out->events, &at) != 3 || !at ||
        crc32c(text + 8, n - 8) != crc || newline - text - at > NAME_MAX ||
        memchr(text + at, '/', (size_t)(newline - text - at)))
        return OK;
    snprintf(out->file, sizeof out->file, "%.*s", (int)(newline - text - at), text + at);
    return (out->line = strndup(newline + 1, length)) ? OK : error_memory(e, NULL, "for a line of the ledger");
}

/* Reads EVAL/.points into *out; without the file, run 0 and step -1. ERR_ARG: it is a link, or somebody else's. On OK
 * release it. */
static int evaluation_intent_read(const char *eval_directory, struct evaluation_intent *out, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    struct error why = { 0 };
    char path[PATH_MAX];
    long long run, step;
    size_t known;
    int rc;

    *out = (struct evaluation_intent){ .step = -1 };
    if ((rc = file_join(path, sizeof path, eval_directory, ".points", e)) != OK)
        return rc;
    rc = file_read_plain(path, POINTS_LIMIT, &text, &why);
    if (rc == ERR_IO && why.system == ENOENT) {
        buffer_release(&text);
        return OK;
    }
    known = rc == OK ? strspn(buffer_text(&text), "-0123456789 \n") : 0;
    if (rc != OK)
        error_set(e, rc, "%s", why.message);
    else if (known < HEAD && !file_begins(buffer_text(&text) + known, text.length - known, " ")) /* not even zeros */
        rc = error_set(e, ERR_ARG, "%s: is not a file of the evaluator; move it elsewhere", path);
    else if (sscanf(buffer_text(&text), "%20lld %20lld", &run, &step) == 2 && run >= 0 && step >= -1) {
        out->run = run;
        out->step = step;
        if (text.length > HEAD)
            rc = read_line(buffer_text(&text) + HEAD, text.length - HEAD, out, e);
    }
    buffer_release(&text);
    return rc;
}

static int open_points(const char *eval_directory, int flags, char path[PATH_MAX], int *fd, struct error *e)
{
    int rc = file_join(path, PATH_MAX, eval_directory, ".points", e);

    return rc == OK ? file_open_plain(NULL, path, O_WRONLY | flags, fd, e) : rc;
}

/* Writes and syncs it. */
static int evaluation_intent_write(const char *eval_directory, const struct evaluation_intent *i, struct error *e)
{
    struct buffer rest = BUFFER_EMPTY, text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int fd, rc;

    if ((rc = open_points(eval_directory, O_CREAT, path, &fd, e)) != OK)
        return rc;
    buffer_format(&text, "%20lld %20lld\n", (long long)i->run, (long long)i->step);
    if (i->line) {
        buffer_format(&rest, " %" PRIu64 " %" PRIu64 " %s\n", i->before, i->events, i->file);
        buffer_append_text(&rest, i->line);
        buffer_format(&text, "%08x", crc32c(buffer_text(&rest), rest.length));
        buffer_append(&text, rest.data, rest.length);
    }
    if (!buffer_ok(&text) || !buffer_ok(&rest))
        rc = error_memory(e, path, "for a line of the ledger");
    else if (file_write_at(fd, text.data, text.length, 0) < 0 || ftruncate(fd, (off_t)text.length) < 0)
        rc = error_system(e, "%s: cannot write", path);
    else if (fdatasync(fd) < 0)
        rc = error_system(e, "%s: cannot sync", path);
    buffer_release(&rest);
    buffer_release(&text);
    close(fd);
    return rc;
}

/* The line is in the ledger: takes it from the file and from i, which keeps its run and step. If that fails, or is lost
 * with the power, the next process finds the line in the ledger. */
static void evaluation_intent_done(const char *eval_directory, struct evaluation_intent *i)
{
    char path[PATH_MAX];
    int fd;

    if (!i->line)
        return;
    free(i->line);
    i->line = NULL;
    if (open_points(eval_directory, 0, path, &fd, NULL) != OK)
        return;
    if (ftruncate(fd, HEAD) < 0)
        errno = 0; /* as the header says */
    close(fd);
}

/* ---- the events -------------------------------------------------------------------------------------------------- */

/* 1: the record there is whole; *end becomes where it ends. */
static int record_whole(int fd, uint64_t at, uint64_t *end)
{
    uint8_t header[RECORD_HEADER], footer[RECORD_FOOTER], piece[1 << 14];
    uint64_t length, done = 0;
    uint32_t crc = 0;

    if (file_read_at(fd, header, sizeof header, at) != sizeof header || !record_header_right(header, &length))
        return 0;
    at += RECORD_HEADER;
    while (done < length) {
        const size_t n = length - done < sizeof piece ? (size_t)(length - done) : sizeof piece;

        if (file_read_at(fd, piece, n, at + done) != (ssize_t)n)
            return 0;
        crc = crc32c_extend(crc, piece, n);
        done += n;
    }
    *end = at + length + RECORD_FOOTER;
    return file_read_at(fd, footer, sizeof footer, at + length) == sizeof footer &&
           get_le32(footer) == crc32c_mask(crc);
}

/* Looks at the event file in the directory of the run. 1: all events are in it. 0: none is, any more. ERR_IO: it cannot
 * be read, or not be cut. */
static int evaluation_intent_settle(const char *run_directory, const struct evaluation_intent *i, struct error *e)
{
    struct error why = { 0 };
    uint64_t at = i->before, whole = 0;
    char path[PATH_MAX];
    int fd, rc;

    if ((rc = file_join(path, sizeof path, run_directory, i->file, e)) != OK)
        return rc;
    if ((rc = file_open_plain(NULL, path, O_RDWR, &fd, &why)) != OK)
        return why.system == ENOENT || why.system == ENOTDIR ? 0 : error_copy(e, &why);
    while (whole < i->events && record_whole(fd, at, &at))
        whole++;
    rc = whole == i->events;
    if (!rc && lseek(fd, 0, SEEK_END) > (off_t)i->before && (ftruncate(fd, (off_t)i->before) < 0 || fsync(fd) < 0))
        rc = error_system(e, "%s: cannot cut off events of an evaluation that was not finished", path);
    close(fd);
    return rc;
}

/* ---- evaluation log ---------------------------------------------------------------------------------------------- */

enum { RUNS_MAX = 1000000 };

struct evaluation_log {
    char *directory;
    const struct evaluation_tags *tags;
    int64_t run, step; /* those of the last point; step -1: none in this run */
    int64_t *newest;   /* the highest step of each run; -1: none */
    size_t runs, runs_capacity;
    int rewound;                    /* 1: all goes to `run` */
    struct eventlog_writer *writer; /* NULL: not open */
    size_t held;                    /* points of this process in its file, synced */
    int64_t writer_run;             /* the run of the open file, or of the last one; -1: none */
    char *closed;                   /* path of the open file, or of the last one */
    struct evaluation_log_files *files;
    struct evaluation_log *newer, *older; /* in the list of logs with an open file */
    struct session_settings settings;     /* count 0: none */
    int64_t described;                    /* the newest run described by this process; -1: none */
    size_t pending;                       /* points added to the writer but not synced yet */
    int noted;                            /* 1: the intent is on disk, so they may be written */
    struct evaluation_intent intent; /* as in EVAL/.points; its line: an evaluation that is not in the ledger yet */
};

#define BEST_PRECISION EVALUATION_BEST EVALUATION_PRECISION

static const struct evaluation_tags presets[] = {
    { .tags = { { "precision", EVALUATION_PRECISION, 0 },
                { "best_precision", BEST_PRECISION, 0 },
                { "loss", EVALUATION_LOSS, 0 } } },
    { .preset = "homework",
      .tags = { { "precision", EVALUATION_PRECISION, 0 }, { "best_precision", BEST_PRECISION, 0 } } },
    { .preset = "tutorial", .tags = { { "Precision @ 1", EVALUATION_PRECISION, 0 } } },
    { .preset = "resnet",
      .tags = { { "Precision", EVALUATION_PRECISION, 0 }, { "Best Precision", BEST_PRECISION, 0 } } },
    { .preset = "im2txt", .tags = { { "Perplexity", EVALUATION_CROSS_ENTROPY, 1 } } },
    /* All metrics, named as by the callback TensorBoard and by SidecarEvaluator. */
    { .preset = "keras",
      .before = "evaluation_",
      .behind = "_vs_iterations",
      .tags = { { "evaluation_loss_vs_iterations", EVALUATION_LOSS, 0 },
                { "evaluation_accuracy_vs_iterations", EVALUATION_PRECISION, 0 } } },
    { .preset = "estimator", .tags = { { "accuracy", EVALUATION_PRECISION, 0 }, { "loss", EVALUATION_LOSS, 0 } } },
};

static const char *const basic[] = { EVALUATION_PRECISION, BEST_PRECISION, EVALUATION_LOSS, EVALUATION_CROSS_ENTROPY };

static const struct evaluation_tags plain = { .preset = "" };

const struct evaluation_tags *evaluation_tags_plain(void)
{
    return &plain;
}

const struct evaluation_tags *evaluation_tags_find(const char *preset)
{
    if (!preset)
        return &presets[0];
    for (size_t i = 1; i < sizeof presets / sizeof *presets; i++)
        if (!strcmp(presets[i].preset, preset))
            return &presets[i];
    return NULL;
}

int evaluation_log_open(struct evaluation_log **out, const char *directory, const struct evaluation_tags *tags,
                        struct evaluation_log_files *files, int64_t last_run, int64_t last_step, struct error *e)
{
    struct evaluation_log *l = calloc(1, sizeof *l);
    int rc;

    *out = NULL;
    if (!l || !(l->directory = strdup(directory))) {
        free(l);
        return error_memory(e, directory, "for the event log");
    }
    l->tags = tags;
    l->step = -1;
    l->files = files;
    l->writer_run = -1;
    l->described = -1;
    if ((rc = evaluation_log_seen(l, last_run, last_step, e)) != OK ||
        (rc = evaluation_intent_read(l->directory, &l->intent, e)) != OK ||
        (rc = evaluation_log_seen(l, l->intent.run, l->intent.step, e)) != OK) {
        evaluation_log_close(l, NULL);
        return rc;
    }
    *out = l;
    return OK;
}

void evaluation_log_rewind(struct evaluation_log *l, int64_t run)
{
    l->run = run;
    l->step = -1;
    l->rewound = 1;
}

static int room_for(struct evaluation_log *l, int64_t run, struct error *e)
{
    if (run >= RUNS_MAX)
        return error_set(e, ERR_ARG, "%s: run %lld: more than %d runs", l->directory, (long long)run, RUNS_MAX);
    if (!ARRAY_ROOM(l->newest, l->runs_capacity, (size_t)run + 1))
        return error_memory(e, l->directory, "for the steps of its runs");
    while (l->runs <= (size_t)run)
        l->newest[l->runs++] = -1;
    return OK;
}

int evaluation_log_seen(struct evaluation_log *l, int64_t run, int64_t step, struct error *e)
{
    int rc;

    if (run < 0 || (step < 0 && l->runs))
        return OK;
    if ((rc = room_for(l, run, e)) != OK)
        return rc;
    if (step > l->newest[run])
        l->newest[run] = step;
    l->run = run;
    l->step = l->newest[run];
    return OK;
}

int64_t evaluation_log_newest(const struct evaluation_log *l)
{
    return l->run;
}

/* Of two runs with the same newest step the later one goes on. */
int64_t evaluation_log_run(const struct evaluation_log *l, int64_t step)
{
    int64_t run = -1;

    if (l->rewound || l->step < 0 || step == l->step)
        return l->run;
    for (size_t k = 0; k < l->runs; k++)
        if (l->newest[k] >= 0 && l->newest[k] < step && (run < 0 || l->newest[k] >= l->newest[run]))
            run = (int64_t)k;
    return run >= 0 ? run : (int64_t)l->runs;
}

int evaluation_log_directory(const char *eval_directory, int64_t run, char *out, size_t size, struct error *e)
{
    size_t length = strlen(eval_directory);
    int n;

    while (length > 1 && eval_directory[length - 1] == '/') /* EVAL_1 is beside EVAL, also when it was given as EVAL/ */
        length--;
    n = run ? snprintf(out, size, "%.*s_%lld", (int)length, eval_directory, (long long)run)
            : snprintf(out, size, "%.*s", (int)length, eval_directory);
    return n >= 0 && (size_t)n < size ? OK : error_set(e, ERR_ARG, "%s: path too long", eval_directory);
}

/* Before the events of points are written. line: of the ledger, for one point; NULL: for many. */
static int note(struct evaluation_log *l, const char *line, struct error *e)
{
    struct evaluation_intent *i = &l->intent;
    char *copy = line ? strdup(line) : NULL;

    if (line && !copy)
        return error_memory(e, l->directory, "for a line of the ledger");
    free(i->line);
    i->line = copy;
    i->run = l->run;
    i->step = l->step;
    return evaluation_intent_write(l->directory, i, e);
}

static int from_eventlog(const struct eventlog_error *why, struct error *e)
{
    int code = why->code == EVENTLOG_ERROR_IO ? ERR_IO : why->code == EVENTLOG_ERROR_MEMORY ? ERR_NOMEM : ERR_ARG;

    error_set(e, code, "%s", why->message);
    if (e)
        e->system = why->system;
    return code;
}

static int close_writer(struct evaluation_log *l, struct error *e)
{
    struct evaluation_log_files *files = l->files;
    struct eventlog_error why = { 0 };
    int rc;

    if (l->writer) {
        free(l->closed);
        l->closed = strdup(eventlog_writer_path(l->writer));
    }
    rc = eventlog_writer_close(l->writer, &why) == EVENTLOG_OK ? OK : from_eventlog(&why, e);
    if (l->writer && files) {
        *(l->newer ? &l->newer->older : &files->newest) = l->older;
        *(l->older ? &l->older->newer : &files->oldest) = l->newer;
        files->count--;
    }
    l->newer = l->older = NULL;
    l->writer = NULL;
    return rc;
}

/* Counts one more open file; others may have to close theirs, but not one with unsynced points. */
static void add_open(struct evaluation_log *l)
{
    struct evaluation_log_files *files = l->files;

    if (!files)
        return;
    for (struct evaluation_log *o = files->oldest, *newer; o && files->count >= files->limit; o = newer) {
        newer = o->newer;
        if (!o->pending)
            close_writer(o, NULL);
    }
    l->older = files->newest;
    *(l->older ? &l->older->newer : &files->oldest) = l;
    files->newest = l;
    files->count++;
}

static int open_writer(struct evaluation_log *l, struct error *e)
{
    /* Events are written only by the sync, so only the sync can fail, and can be repeated. */
    struct eventlog_writer_options options = { .flush_seconds = 1e9,
                                               .buffer_bytes = (size_t)64 << 20,
                                               .leave_lost = 1 };
    struct eventlog_error why = { 0 };
    char directory[PATH_MAX];
    int rc;

    if (l->writer && l->writer_run == l->run)
        return OK;
    close_writer(l, NULL);
    if ((rc = evaluation_log_directory(l->directory, l->run, directory, sizeof directory, e)) != OK)
        return rc;
    if (l->writer_run == l->run)
        options.resume = EVENTLOG_RESUME_APPEND; /* in the file that was closed because of the limit */
    if (eventlog_writer_open(&l->writer, directory, &options, &why) != EVENTLOG_OK) {
        l->writer_run = -1; /* damaged, or no longer ours: the next try makes a new one */
        return from_eventlog(&why, e);
    }
    if (l->writer_run != l->run || !l->closed || strcmp(eventlog_writer_path(l->writer), l->closed) != 0)
        l->held = 0;
    l->writer_run = l->run;
    add_open(l);
    return OK;
}

int evaluation_tags_name(const struct evaluation_tags *tags, const struct evaluation_metric *metric, char *out,
                         float *value)
{
    const struct evaluation_tag *t = tags->tags;
    const int framed = tags->before && !strchr(metric->name, '/') &&
                       strncmp(metric->name, EVALUATION_BEST, strlen(EVALUATION_BEST)) != 0;

    *value = (float)metric->value;
    for (; t->tag; t++)
        if (!strcmp(t->metric, metric->name)) {
            *value = (float)(t->exponential ? exp(metric->value) : metric->value);
            snprintf(out, EVALUATION_TAG_MAX, "%s", t->tag);
            return 1;
        }
    for (size_t i = 0; tags != &plain && i < sizeof basic / sizeof *basic; i++)
        if (!strcmp(basic[i], metric->name))
            return 0;
    snprintf(out, EVALUATION_TAG_MAX, "%s%s%s", framed ? tags->before : "", metric->name, framed ? tags->behind : "");
    return 1;
}

void evaluation_log_describe(struct evaluation_log *l, const struct training_state *training, const char *model,
                             const char *data)
{
    session_settings_fill(&l->settings, training, model, data);
}

static int hand_over(struct evaluation_log *l, const struct evaluation_point *p, struct error *e)
{
    struct eventlog_error why = { 0 };

    if (l->settings.count && l->described != l->run) {
        if (eventlog_writer_session_start(l->writer, p->wall_time, l->settings.items, l->settings.count, NULL, &why) !=
            EVENTLOG_OK)
            return from_eventlog(&why, e);
        l->described = l->run;
    }
    for (size_t i = 0; i < p->metrics->count; i++) {
        char tag[EVALUATION_TAG_MAX];
        float value;

        if (evaluation_tags_name(l->tags, &p->metrics->items[i], tag, &value) &&
            eventlog_writer_scalar(l->writer, tag, p->step, p->wall_time, value, &why) != EVENTLOG_OK)
            return from_eventlog(&why, e);
    }
    if (p->detail && evaluation_detail_write(p->detail, l->writer, p->step, p->wall_time, &why) != EVENTLOG_OK)
        return from_eventlog(&why, e);
    l->pending++;
    return OK;
}

static int open_for(struct evaluation_log *l, const struct evaluation_point *p, struct error *e)
{
    const int64_t run = evaluation_log_run(l, p->step);
    const int rc = room_for(l, run, e);

    if (rc != OK)
        return rc;
    l->run = run;
    l->step = p->step;
    if (p->step > l->newest[run])
        l->newest[run] = p->step;
    return open_writer(l, e);
}

static int sync_events(struct evaluation_log *l, struct error *e)
{
    struct eventlog_error why = { 0 };

    if (eventlog_writer_sync(l->writer, &why) != EVENTLOG_OK)
        return from_eventlog(&why, e);
    l->held += l->pending;
    l->pending = 0;
    return OK;
}

/* Where the events of a point will be, which the writer has in memory. */
static int place_intent(struct evaluation_log *l, struct error *e)
{
    struct eventlog_writer_statistics s;
    struct eventlog_error why = { 0 };
    struct stat st;

    if (stat(eventlog_writer_path(l->writer), &st) < 0)
        return error_system(e, "%s", eventlog_writer_path(l->writer));
    if (eventlog_writer_statistics(l->writer, &s, &why) != EVENTLOG_OK)
        return from_eventlog(&why, e);
    l->intent.before = (uint64_t)st.st_size;
    l->intent.events = s.queued;
    snprintf(l->intent.file, sizeof l->intent.file, "%s", file_base_name(eventlog_writer_path(l->writer)));
    return OK;
}

int evaluation_log_point(struct evaluation_log *l, const struct evaluation_point *p, struct error *e)
{
    int rc;

    if (!l->pending) {
        l->noted = 0;
        if ((rc = open_for(l, p, e)) != OK || (rc = hand_over(l, p, e)) != OK)
            return rc;
    }
    if (!l->noted && ((rc = place_intent(l, e)) != OK || (rc = note(l, p->line, e)) != OK))
        return rc;
    l->noted = 1;
    return sync_events(l, e);
}

int evaluation_log_add(struct evaluation_log *l, const struct evaluation_point *p, struct error *e)
{
    int rc = open_for(l, p, e);

    return rc == OK ? hand_over(l, p, e) : rc;
}

int evaluation_log_sync(struct evaluation_log *l, struct error *e)
{
    int rc = l->pending ? note(l, NULL, e) : OK;

    return rc == OK && l->pending ? sync_events(l, e) : rc;
}

size_t evaluation_log_held(const struct evaluation_log *l)
{
    return l->writer ? l->held : 0;
}

const char *evaluation_log_path(const struct evaluation_log *l)
{
    return l->writer ? eventlog_writer_path(l->writer) : NULL;
}

int evaluation_log_restore(struct evaluation_log *l)
{
    const char *before = evaluation_log_path(l);

    if (!l->writer || eventlog_writer_make_again(l->writer, NULL) != EVENTLOG_OK ||
        eventlog_writer_path(l->writer) == before)
        return 0;
    if (l->pending && !l->noted)
        return 1;
    snprintf(l->intent.file, sizeof l->intent.file, "%s", file_base_name(eventlog_writer_path(l->writer)));
    if (!l->intent.line || evaluation_intent_write(l->directory, &l->intent, NULL) == OK)
        eventlog_writer_sync(l->writer, NULL);
    return 1; /* what failed here is tried again with the next point */
}

const char *evaluation_log_unrecorded(const struct evaluation_log *l)
{
    return l->intent.line;
}

int evaluation_log_settle(const struct evaluation_log *l, struct error *e)
{
    char directory[PATH_MAX];
    int rc = evaluation_log_directory(l->directory, l->intent.run, directory, sizeof directory, e);

    return rc == OK ? evaluation_intent_settle(directory, &l->intent, e) : rc;
}

void evaluation_log_recorded(struct evaluation_log *l)
{
    evaluation_intent_done(l->directory, &l->intent);
}

int evaluation_log_close(struct evaluation_log *l, struct error *e)
{
    int rc;

    if (!l)
        return OK;
    rc = close_writer(l, e);
    evaluation_intent_release(&l->intent);
    free(l->newest);
    free(l->closed);
    free(l->directory);
    free(l);
    return rc;
}
