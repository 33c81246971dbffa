#include "base/clock.h"
#include "eventlog/server/file_pieces.h"
#include "eventlog/server/loader_state.h"

enum { EVENTS_BETWEEN_LOOKS = 1024 }; /* at the clock, while a run is read */

/* What is told of a file once it is read. */
struct losses {
    uint64_t count;
    uint64_t offset;
    char first[200];
};

static void note_damage(struct losses *s, const struct event_damage *damage)
{
    if (damage->kind == EVENT_DAMAGE_UTF8) /* such texts are shown with U+FFFD */
        return;
    if (!s->count++) {
        s->offset = damage->offset;
        event_damage_text(damage, s->first, sizeof s->first);
    }
}

/* Tells of damage once, and again when there is twice as much. */
static void tell_damage(struct loader *l, struct log_follow_file *file, struct losses *s)
{
    uint64_t told = file->infinite & 0xffffffff, all = (file->infinite >> 32) + s->count;

    if (s->count && (!told || all >= 2 * told)) {
        loader_say(l, LOADER_WARNING, "%s:%llu: %s%s", file->path, (unsigned long long)s->offset, s->first,
                   all > 1 ? "; this file has more damage" : "");
        told = all;
    }
    file->infinite = (all & 0x7fffffff) << 32 | (told & 0x7fffffff);
    s->count = 0;
}

static void tell_unread(struct loader *l, struct log_follow_file *file, const struct error *e)
{
    if (file->told || log_input_gone(file->path, e))
        return;
    file->told = 1;
    loader_say(l, LOADER_WARNING, "%s; is tried again", e->message);
}

static void add_progress(struct loader *l, uint64_t points, uint64_t bytes)
{
    pthread_mutex_lock(&l->lock);
    l->points += points;
    l->bytes += bytes;
    pthread_mutex_unlock(&l->lock);
}

/* After RUN_DATA_AGAIN: 1. Without memory: 0, and the run is read again in the next round. */
static int again_or_later(struct loader *l, struct loader_run *run, struct log_follow_run *files, int rc,
                          const struct error *e)
{
    run_data_restart(run->data, rc == RUN_DATA_AGAIN);
    log_follow_again(files);
    if (rc == RUN_DATA_AGAIN)
        return 1;
    loader_say(l, LOADER_WARNING, "%s; is tried again", e->message);
    return 0;
}

/* A run while it is read. */
struct reading {
    struct loader *loader;
    struct loader_run *run;
    struct losses losses;
    double due;           /* the next view */
    uint64_t points;      /* of the run, when progress was last told */
    uint64_t bytes;       /* read since then */
    struct error *error;  /* for what takes an event: to clear one takes longer than that */
    uint64_t next_pieces; /* the offset from which on pieces of the current file may be read again */
};

/* What has been read since the last time. */
static void tell_progress(struct reading *r)
{
    const uint64_t now = run_data_points(r->run->data);

    if (now > r->points || r->bytes)
        add_progress(r->loader, now > r->points ? now - r->points : 0, r->bytes);
    r->points = now;
    r->bytes = 0;
}

/* Takes an event; 0: the run could not be continued. */
static int take_event(struct reading *r, struct log_follow_run *files, const struct event *event)
{
    const struct log_follow_file *file = &files->files[files->at_file];
    uint64_t offset;
    size_t length;
    int rc;

    event_reader_record(file->reader, &length, &offset);
    r->bytes += length + RECORD_OVERHEAD;
    rc = run_data_event(r->run->data, files->at_file, file->path, event, offset, r->error);
    return rc == OK || again_or_later(r->loader, r->run, files, rc, r->error);
}

/* Shows what has been read, if it is time. */
static void look_at_clock(struct reading *r)
{
    if (clock_monotonic_coarse() < r->due)
        return;
    tell_progress(r);
    loader_view_run(r->loader, r->run);
    r->due = clock_monotonic_coarse() + VIEW_EVERY;
}

static void note_piece_damage(void *context, const struct event_damage *damage)
{
    note_damage(&((struct reading *)context)->losses, damage);
}

static int go_on(void *context)
{
    struct reading *r = context;

    look_at_clock(r);
    return !__atomic_load_n(&r->loader->stop, __ATOMIC_RELAXED);
}

/* Reads a large file by all processors, if no other run is left for them. 0: the run could not be continued. */
static int read_pieces(struct reading *r, struct log_follow_run *files)
{
    struct loader *l = r->loader;
    struct log_follow_file *file = &files->files[files->at_file];
    const struct file_pieces pieces = { FILE_PIECES_LENGTH, r, note_piece_damage, go_on };
    const uint64_t before = event_reader_offset(file->reader);
    struct error e = { 0 };
    int rc;

    if (before < r->next_pieces || event_reader_left(file->reader) < 2 * pieces.length || l->threads < 2 ||
        __atomic_load_n(&l->reading, __ATOMIC_RELAXED) > 1)
        return 1;
    rc = file_pieces_read(&pieces, file->reader, r->run->data, files->at_file, file->path, &e);
    r->bytes += event_reader_offset(file->reader) - before;
    r->next_pieces = event_reader_offset(file->reader) + 2 * pieces.length;
    return rc == OK || again_or_later(l, r->run, files, rc, &e);
}

void loader_read_run(struct loader *l, struct loader_run *run, struct log_follow_run *files, struct log_input *input)
{
    struct error e = { 0 };
    struct reading r = { .loader = l, .run = run, .due = clock_monotonic_coarse() + VIEW_FIRST, .error = &e };
    struct event_damage damage;
    struct event event;
    int rc;

    r.points = run_data_points(run->data);
    for (uint64_t n = 1; !__atomic_load_n(&l->stop, __ATOMIC_RELAXED) &&
                         (rc = log_follow_next_of(&l->follow, files, input, &event, &damage, &e)) != LOG_FOLLOW_END;
         n++) {
        struct log_follow_file *file = files->at_file < files->count ? &files->files[files->at_file] : NULL;

        if (rc == EVENT_READER_EVENT && !take_event(&r, files, &event))
            break;
        if (rc == EVENT_READER_RESTARTED)
            run_data_restart(run->data, 0);
        else if (rc == EVENT_READER_DAMAGE)
            note_damage(&r.losses, &damage);
        else if (rc < 0 && file)
            tell_unread(l, file, &e);
        if (rc == LOG_FOLLOW_FILE_END && file) {
            tell_damage(l, file, &r.losses);
            file->told = 0;
            r.next_pieces = 0;
        }
        if (n % EVENTS_BETWEEN_LOOKS == 0) {
            look_at_clock(&r);
            if (rc == EVENT_READER_EVENT && !files->again && !read_pieces(&r, files))
                break;
        }
        if (rc < 0)
            e = (struct error){ 0 };
    }
    tell_progress(&r);
    loader_view_run(l, run);
}
