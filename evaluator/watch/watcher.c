#include "evaluator/watch/watcher.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/text.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/safetensors.h"
#include "evaluator/files/content_digest.h"
#include "evaluator/files/opened_checkpoint.h"
#include "evaluator/record/pin.h"
#include "evaluator/watch/checkpoint_listing.h"
#include "evaluator/watch/checkpoint_ready.h"
#include "evaluator/watch/sightings.h"
#include "evaluator/watch/watch_inotify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- checkpoint data --------------------------------------------------------------------------------------------- */

/* of one incomplete checkpoint */
struct data_files {
    struct sighting *item;
    uint64_t sum;
    double newest;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct data_files *)a)->item->name, ((const struct data_files *)b)->item->name);
}

static void add_data_file(int directory_fd, const char *file, struct data_files *files, size_t count)
{
    const char *mark = strstr(file, ".data-"), *next;
    char name[NAME_MAX + 1];
    struct sighting key_item = { .name = name };
    struct data_files key = { .item = &key_item }, *found;
    struct stat st;

    while (mark && (next = strstr(mark + 1, ".data-"))) /* the last one: the name itself may contain this text */
        mark = next;
    if (!mark || snprintf(name, sizeof name, "%.*s", (int)(mark - file), file) >= (int)sizeof name ||
        !(found = bsearch(&key, files, count, sizeof *files, by_name)) || fstatat(directory_fd, file, &st, 0) < 0)
        return;
    found->sum += file_stamp(&st);
    if (file_stamp_changed(&st) > found->newest)
        found->newest = file_stamp_changed(&st);
}

int checkpoint_data_look(struct sightings *s, int directory_fd, double now, double wall, struct error *e)
{
    size_t count = 0, incomplete = sightings_incomplete(s);
    struct data_files *files;
    struct dirent *entry;
    DIR *d = NULL;
    int fd;

    if (!incomplete)
        return OK;
    if (!(files = calloc(incomplete, sizeof *files)))
        return error_memory(e, NULL, "for %zu checkpoints that are not whole", incomplete);
    if ((fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 || !(d = fdopendir(fd))) {
        if (fd >= 0)
            close(fd);
        free(files);
        return OK; /* deleted meanwhile: the next look will notice */
    }
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].kind == CHECKPOINT_BUNDLE && sighting_incomplete(&s->items[i]))
            files[count++] = (struct data_files){ &s->items[i], 1, 0 }; /* 0 would mean: not looked yet */
    qsort(files, count, sizeof *files, by_name);
    while ((entry = readdir(d)))
        add_data_file(directory_fd, entry->d_name, files, count);
    closedir(d);
    for (size_t i = 0; i < count; i++)
        sighting_data(files[i].item, files[i].sum ? files[i].sum : 1,
                      files[i].newest > 0 ? wall - files[i].newest : wall, now);
    free(files);
    return OK;
}

/* ---- checkpoint remains ------------------------------------------------------------------------------------------ */

static int has(int directory_fd, const char *name, const char *file)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s", name, file) >= (int)sizeof path ||
           faccessat(directory_fd, path, F_OK, 0) == 0;
}

/* model.safetensors.index.json, pytorch_model.bin.index.json. */
static int index_lacks(int fd, const char *name, char *lacks, size_t size)
{
    struct safetensors_index index;
    char path[PATH_MAX];
    int found = 0;

    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", fd, name);
    if (safetensors_index_open(&index, path, NULL) != OK)
        return 0;
    for (size_t i = 0; i < index.count && !found; i++)
        if ((found = faccessat(fd, index.places[i].value, F_OK, 0) < 0))
            snprintf(lacks, size, "%s", index.places[i].value);
    safetensors_index_release(&index);
    return found;
}

static DIR *open_names(int directory_fd, const char *name)
{
    const int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !d)
        close(fd);
    return d;
}

/* 1: the directory's own index of parts (NAME.index.json with a weight_map) names a file that is missing, or at least
 * two later checkpoints, brothers (count), all have a file in them that this one lacks; `lacks` becomes its name. 0: it
 * does not, is no directory, or cannot be listed. Names are relative to directory_fd. */
static int checkpoint_remains_lacks(int directory_fd, const char *name, const char *const *brothers, size_t count,
                                    char *lacks, size_t size)
{
    DIR *own = open_names(directory_fd, name), *d = NULL;
    struct dirent *entry;
    int found = 0;

    if (!own)
        return 0;
    while (!found && (entry = readdir(own)))
        found = text_stem(entry->d_name, strlen(entry->d_name), ".index.json") &&
                index_lacks(dirfd(own), entry->d_name, lacks, size);
    if (!found && count >= 2)
        d = open_names(directory_fd, brothers[0]);
    while (d && !found && (entry = readdir(d))) {
        found = faccessat(dirfd(own), entry->d_name, F_OK, 0) < 0;
        for (size_t i = 1; found && i < count; i++)
            found = has(directory_fd, brothers[i], entry->d_name);
        if (found)
            snprintf(lacks, size, "%s", entry->d_name);
    }
    if (d)
        closedir(d);
    closedir(own);
    return found;
}

/* 1: a directory in it lost a file, or another name, after the newest file in it was written. */
static int checkpoint_remains_trace(int directory_fd, const char *name)
{
    double file, directory;

    return content_times(directory_fd, name, &file, &directory) && directory > file;
}

/* 1: nothing in it was written after `wall`. */
static int checkpoint_remains_older(int directory_fd, const char *name, double wall)
{
    double file, directory;

    return content_times(directory_fd, name, &file, &directory) && file <= wall;
}

/* ---- watcher ----------------------------------------------------------------------------------------------------- */

enum { TROUBLE_MAX = 480, SPARE_DESCRIPTORS = 8, MISSING_TRIES = 3, READ_TRIES = 3, REMAINS_BROTHERS = 16 };
#define REMAINS_MINUTES 10.0

struct watcher {
    char *directory;
    struct watcher_options options;
    struct queue *queue;
    watcher_tell *tell;
    void *context;                 /* of tell */
    struct watch_inotify *inotify; /* NULL: poll only */
    struct watch_inotify *own;     /* the same if it is not shared */
    size_t place;                  /* index of the directory in it */
    struct buffer names;           /* names that inotify reported before this look, each with its NUL */
    struct sightings sightings;
    int there;        /* -1: not looked yet */
    double next_poll; /* monotonic */
    double wall;      /* wall: when the current look began, the same moment as its `now` */
    size_t looks;
    int64_t counted;                /* checkpoints found so far, of STEP_FROM_COUNT */
    char trouble[TROUBLE_MAX];      /* said last */
    char loop[CHECKPOINT_NAME_MAX]; /* said last */
    int looked, near_said;          /* 1: once at least; that no name matches */
    int unsure;                     /* how many looks in a row could not see all of the directory */
    int closing;                    /* 1: names are to be closed as soon as all was seen */
};

static void watcher_say(const struct watcher *w, enum watcher_news_kind kind,
                        const struct checkpoint_identity *checkpoint, const char *text)
{
    w->tell(w->context, &(struct watcher_news){ .kind = kind, .checkpoint = checkpoint, .text = text });
}

static void say_trouble(struct watcher *w, const char *sentence)
{
    if (!strcmp(w->trouble, sentence))
        return;
    snprintf(w->trouble, sizeof w->trouble, "%s", sentence);
    if (*sentence)
        watcher_say(w, WATCHER_TROUBLE, NULL, sentence);
}

int watcher_open(struct watcher **out, const char *directory, const struct watcher_options *options,
                 struct queue *queue, watcher_tell *tell_news, void *context, struct error *e)
{
    struct watcher *w = calloc(1, sizeof *w);
    struct error why = { 0 };

    *out = NULL;
    if (!w || !(w->directory = strdup(directory))) {
        free(w);
        return error_memory(e, directory, "to watch it");
    }
    w->options = *options;
    w->queue = queue;
    w->tell = tell_news;
    w->context = context;
    w->there = -1;
    w->counted = options->counted;
    sightings_init(&w->sightings, options->quiet_seconds);
    if (options->inotify &&
        watch_inotify_start(&w->own, (const char *const[]){ directory }, 1, options->poll_seconds, NULL, &why) != OK) {
        char sentence[TROUBLE_MAX];

        snprintf(sentence, sizeof sentence, "%.300s; looking every %g s instead", why.message, options->poll_seconds);
        say_trouble(w, sentence);
    }
    w->inotify = w->own;
    *out = w;
    return OK;
}

void watcher_share_inotify(struct watcher *w, struct watch_inotify *shared, size_t place)
{
    watch_inotify_stop(w->own);
    w->own = NULL;
    w->inotify = shared;
    w->place = place;
    w->next_poll = 0;
}

void watcher_look_soon(struct watcher *w)
{
    w->next_poll = 0;
}

void watcher_close(struct watcher *w)
{
    if (!w)
        return;
    watch_inotify_stop(w->own);
    sightings_release(&w->sightings);
    buffer_release(&w->names);
    free(w->directory);
    free(w);
}

int watcher_descriptor(const struct watcher *w)
{
    return w->inotify ? watch_inotify_descriptor(w->inotify) : -1;
}

double watcher_due(const struct watcher *w)
{
    double deadline = sightings_deadline(&w->sightings);
    double left = (deadline < w->next_poll ? deadline : w->next_poll) - clock_monotonic();

    return left > 0 ? left : 0;
}

int watcher_should_look(struct watcher *w)
{
    if (w->inotify && watch_inotify_take(w->inotify, w->place))
        return 1;
    return watcher_due(w) <= 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* It says nothing about the checkpoint that it could not be read: it is tried again, without end unless that is all
 * that keeps the work from ending. What was evaluated before is not failed then. */
static void unread(struct watcher *w, struct sighting *item, double now, const struct error *why)
{
    const struct checkpoint_identity c = checkpoint_identity_of(item->name, item->step);
    const int times = sighting_unread(item, w->options.poll_seconds, now);
    char sentence[TROUBLE_MAX];

    if (times > WATCHER_TRIES && w->closing) {
        sighting_hopeless(item);
        sighting_readable(item);
        if (!queue_knows_name(w->queue, item->name))
            watcher_say(w, WATCHER_UNREAD, &c, why->message);
        return;
    }
    if (times > 1)
        return;
    snprintf(sentence, sizeof sentence, "%.380s; trying again, less and less often", why->message);
    watcher_say(w, WATCHER_TROUBLE, NULL, sentence);
}

/* Without a step in its name a checkpoint is overwritten, often in place: a link would change with it. */
static int named_by_step(const struct watcher *w)
{
    return w->options.source.steps.from == STEP_FROM_NAME;
}

/* 1: what is left of a directory that an earlier process evaluated: nothing in it is newer. */
static int was_evaluated(struct watcher *w, int directory_fd, const struct sighting *item)
{
    const double by = queue_evaluated(w->queue, item->name);

    return by > 0 && named_by_step(w) && checkpoint_remains_older(directory_fd, item->name, by);
}

/* 1: what is left of one that nobody saw whole, as it lacks what its index or the later ones have, and lost files not
 * long ago. */
static int is_left_over(struct watcher *w, int directory_fd, const struct sighting *item, double now)
{
    const struct sighting *end = w->sightings.items + w->sightings.count, *later = item + 1;
    const char *brothers[REMAINS_BROTHERS];
    char lacks[NAME_MAX + 1], sentence[TROUBLE_MAX];
    size_t count = 0;

    for (; later < end && count < REMAINS_BROTHERS; later++)
        if (later->kind == item->kind && later->step > item->step)
            brothers[count++] = later->name;
    if (!named_by_step(w) || item->whole.count || now - item->changed > 60 * REMAINS_MINUTES ||
        !checkpoint_remains_lacks(directory_fd, item->name, brothers, count, lacks, sizeof lacks) ||
        !checkpoint_remains_trace(directory_fd, item->name))
        return 0;
    snprintf(sentence, sizeof sentence,
             "%.150s lacks %.150s, which its index or the later ones have: it is being deleted, and not evaluated; if "
             "it stays as it is, a start after %.0f minutes evaluates it",
             item->name, lacks, REMAINS_MINUTES);
    watcher_say(w, WATCHER_TROUBLE, NULL, sentence);
    return 1;
}

/* 1: what is left of a checkpoint that was seen whole, or was evaluated; only its marker may be missing. */
static int is_going(struct watcher *w, int directory_fd, const struct sighting *item, const char *path)
{
    struct content now;
    int going;

    if (item->kind != CHECKPOINT_OTHER || content_read(path, &now, NULL) != OK)
        return 0;
    going = content_shrank(&item->whole, &now) || queue_knows(w->queue, item->name, content_digest(&now)) ||
            (!now.count && queue_knows_name(w->queue, item->name)) || was_evaluated(w, directory_fd, item);
    content_release(&now);
    return going;
}

static int not_whole(struct watcher *w, int directory_fd, struct sighting *item, const char *path, double now,
                     const struct error *why, struct error *e)
{
    struct checkpoint_identity failed = checkpoint_identity_of(item->name, item->step);

    if (error_may_pass(why)) {
        unread(w, item, now, why);
        return OK;
    }

    if (error_is_lack(why)) {
        say_trouble(w, why->message);
        sighting_lack(item, now + w->options.poll_seconds); /* a lack of resources says nothing about the checkpoint */
        return OK;
    }
    if (why->code == ERR_ARG) /* what will never be whole is not waited for */
        sighting_hopeless(item);
    else if (!sighting_not_whole(&w->sightings, item, now))
        return OK;
    /* A file of it that is listed may be missing for a moment on a network file system. */
    if (why->system == ENOENT && item->unread < MISSING_TRIES) {
        sighting_unread(item, w->options.poll_seconds, now);
        return OK;
    }
    sighting_readable(item);
    if (is_going(w, directory_fd, item, path))
        return OK;
    if (item->kind == CHECKPOINT_OTHER && is_left_over(w, directory_fd, item, now)) {
        content_read(path, &item->whole, NULL); /* with which it is compared from now on */
        return OK;
    }
    failed.has_digest = opened_checkpoint_raw_digest((enum checkpoint_kind)item->kind, path, &failed.digest);
    if (failed.has_digest) {
        int rc;

        if (queue_knows(w->queue, item->name, failed.digest))
            return OK;
        if ((rc = queue_remember(w->queue, item->name, failed.digest, e)) != OK)
            return rc;
    }
    watcher_say(w, WATCHER_FAILED, &failed, why->message);
    return OK;
}

/* Takes the step from the name if a pattern or scale applies to it; otherwise from the tensor, if there is one, else
 * from the name. OK with a sentence in why if name and tensor disagree. Or as --step-from says. */
static int find_step(const struct watcher *w, int directory_fd, const struct sighting *item,
                     struct opened_checkpoint *checkpoint, const char *witness, int64_t *step, struct error *why)
{
    const struct checkpoint_source *source = &w->options.source;
    double modified;
    int64_t number = -1;
    int rc = OK;

    switch (source->steps.from) {
    case STEP_FROM_NAME:
        if (!source->has_pattern && !source->steps.scaled)
            number = opened_checkpoint_step(checkpoint, item->step, why);
        *step = number >= 0 ? number : item->step;
        return OK;
    case STEP_FROM_FILE:
        rc = checkpoint_ready_number(source, w->directory, directory_fd, item->name, &number, why);
        break;
    case STEP_FROM_COUNT: number = w->counted + 1; break;
    case STEP_FROM_MTIME:
        if (!content_modified(AT_FDCWD, witness, &modified))
            rc = error_system(why, "%.200s", item->name);
        number = (int64_t)modified;
        break;
    }
    *step = rc == OK ? step_rule_step(&source->steps, number) : -1;
    return rc;
}

/* From now on the trainer may delete it. No descriptors are needed, so any number may wait. */
static void pin(struct watcher *w, struct queue_item *offer)
{
    const enum file_tree_means means = named_by_step(w) ? FILE_TREE_LINK_OR_COPY : FILE_TREE_COPY;
    const struct pin pin = { offer->kind, offer->checkpoint };
    double already = (double)queue_pinned_bytes(w->queue);
    char sentence[TROUBLE_MAX];
    struct error why = { 0 };

    if (!w->options.pin_directory || offer->checkpoint.step < 0)
        return;
    if (w->options.pin_limit > 0 && already >= w->options.pin_limit) {
        snprintf(sentence, sizeof sentence,
                 "%.0f MB are pinned, which is all that --pin-limit allows; checkpoints that come now are lost if they "
                 "are deleted before they are evaluated",
                 already / 1e6);
        say_trouble(w, sentence);
        return;
    }
    if (pin_make(w->options.pin_directory, w->directory, &pin, means, &offer->pinned, &offer->pinned_bytes, &why) !=
        OK) {
        snprintf(sentence, sizeof sentence, "%.100s: not pinned: %.300s", pin.checkpoint.name, why.message);
        say_trouble(w, sentence);
        return;
    }
    if (offer->kind != CHECKPOINT_OTHER) {
        opened_checkpoint_close(offer->opened);
        offer->opened = NULL;
    }
}

/* 1: it is unchanged since it was listed, including its step. */
static int unchanged(const struct watcher *w, int directory_fd, const struct sighting *item)
{
    double changed;

    return named_by_step(w) ||
           item->stamp == checkpoint_ready_stamp(&w->options.source, directory_fd, (enum checkpoint_kind)item->kind,
                                                 item->name, item->step, -1, &changed);
}

static int offer(struct watcher *w, int directory_fd, struct sighting *item, const char *witness,
                 struct queue_item *new, struct error *e)
{
    struct stat st;
    int rc;

    new->again = item->disturbed > 0;
    new->written = new->modified = new->found;
    if (stat(witness, &st) == 0) {
        new->written = file_stamp_changed(&st);
        new->modified = file_stamp_modified(&st);
    }
    pin(w, new);
    if (!unchanged(w, directory_fd, item)) {
        if (new->pinned)
            pin_remove(new->pinned);
        sighting_changed(item, clock_monotonic());
        return OK;
    }
    if ((rc = queue_offer(w->queue, new, e)) != QUEUE_ADDED)
        return rc;
    if (w->options.source.steps.from == STEP_FROM_COUNT)
        w->counted++;
    w->tell(w->context, &(struct watcher_news){ .kind = WATCHER_FOUND,
                                                .checkpoint = &new->checkpoint,
                                                .written = new->written,
                                                .full = queue_full(w->queue) });
    return QUEUE_ADDED;
}

static int whole(struct watcher *w, int directory_fd, struct sighting *item, const char *path,
                 struct opened_checkpoint *checkpoint, double now, struct error *e)
{
    struct queue_item new = { .checkpoint = checkpoint_identity_of(item->name, -1),
                              .kind = (enum checkpoint_kind)item->kind,
                              .opened = checkpoint,
                              .found = clock_wall() };
    const struct content *content = opened_checkpoint_content(checkpoint);
    struct error why = { 0 };
    char witness[PATH_MAX];
    int rc, known, going;

    new.checkpoint.has_digest = 1;
    new.checkpoint.digest = opened_checkpoint_digest(checkpoint);
    sighting_opened(item);
    sighting_readable(item);
    known = queue_knows(w->queue, item->name, new.checkpoint.digest);
    going = !known && item->kind == CHECKPOINT_OTHER &&
            (content_shrank(&item->whole, content) ||
             (!item->whole.count && !item->disturbed &&
              (was_evaluated(w, directory_fd, item) || is_left_over(w, directory_fd, item, now))));
    if (going && item->whole.count) {
        opened_checkpoint_close(checkpoint);
        return OK;
    }
    content_release(&item->whole);
    if (content->count && (rc = content_copy(content, &item->whole, e)) != OK) {
        opened_checkpoint_close(checkpoint);
        return rc;
    }
    if (going) {
        opened_checkpoint_close(checkpoint);
        return OK;
    }
    if (known) {
        opened_checkpoint_close(checkpoint);
        watcher_say(w, WATCHER_KNOWN, NULL, item->name);
        return OK;
    }
    if ((rc = checkpoint_witness(new.kind, path, witness, sizeof witness, &why)) != OK ||
        (rc = find_step(w, directory_fd, item, checkpoint, witness, &new.checkpoint.step, &why)) != OK) {
        opened_checkpoint_close(checkpoint);
        return not_whole(w, directory_fd, item, path, now, &why, e);
    }
    if (why.code != OK) {
        error_prefix(&why, "%.200s", item->name);
        say_trouble(w, why.message);
    }
    if ((rc = offer(w, directory_fd, item, witness, &new, e)) != QUEUE_ADDED)
        queue_item_release(&new);
    return rc < 0 ? rc : OK;
}

/* 1: it waits because a process has it open for writing; not forever, as that may have another reason. */
static int still_written(struct watcher *w, struct sighting *item, const char *path, double now)
{
    if (item->kind != CHECKPOINT_OTHER || now - item->changed >= w->options.quiet_seconds || !content_is_written(path))
        return 0;
    sighting_is_written(item);
    return 1;
}

/* Reserves descriptors for evaluating; otherwise waiting checkpoints could use them all up. */
static int open_spare(struct opened_checkpoint **out, enum checkpoint_kind kind, const char *path, struct error *e)
{
    int rc = opened_checkpoint_open(out, kind, path, e);

    for (int tries = 1; rc != OK && error_may_pass(e) && tries < READ_TRIES; tries++)
        rc = opened_checkpoint_open(out, kind, path, e);
    if (rc != OK || kind == CHECKPOINT_OTHER || file_open_room(SPARE_DESCRIPTORS))
        return rc;
    opened_checkpoint_close(*out);
    errno = EMFILE;
    return error_system(e, "%.200s waits", file_base_name(path));
}

static int open_one(struct watcher *w, int directory_fd, struct sighting *item, double now, struct error *e)
{
    const struct checkpoint_source *source = &w->options.source;
    enum checkpoint_readiness readiness;
    struct opened_checkpoint *checkpoint;
    struct error why = { 0 };
    char path[PATH_MAX];
    int rc;

    if (item->again_at > now || !sighting_quiet(item, checkpoint_source_quiet(source, item), now))
        return OK;
    readiness = checkpoint_ready_look(source, w->directory, directory_fd, item, now, w->wall, &why);
    if (readiness == CHECKPOINT_SETTLING)
        return OK;
    rc = readiness == CHECKPOINT_MARKED ? OK : why.code;
    if (file_join(path, sizeof path, w->directory, item->name, rc == OK ? &why : NULL) != OK)
        rc = ERR_ARG;
    if (rc == OK && still_written(w, item, path, now))
        return OK;
    if (rc == OK)
        rc = open_spare(&checkpoint, (enum checkpoint_kind)item->kind, path, &why);
    return rc == OK ? whole(w, directory_fd, item, path, checkpoint, now, e)
                    : not_whole(w, directory_fd, item, path, now, &why, e);
}

struct due {
    size_t place; /* of the sighting */
    double changed;
};

static int by_change(const void *a, const void *b)
{
    const struct due *x = a, *y = b;

    if (x->changed != y->changed)
        return x->changed < y->changed ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* In the order of the steps; if steps are counted, in the order in which the checkpoints came. */
static int open_due(struct watcher *w, int directory_fd, double now, struct error *e)
{
    struct due *due = calloc(w->sightings.count + 1, sizeof *due);
    size_t count = 0;
    int rc = due ? OK : error_memory(e, NULL, "for %zu checkpoints", w->sightings.count);

    for (size_t i = 0; rc == OK && i < w->sightings.count; i++)
        if (sighting_due(&w->sightings.items[i]))
            due[count++] = (struct due){ i, w->sightings.items[i].changed };
    if (count && w->options.source.steps.from == STEP_FROM_COUNT)
        qsort(due, count, sizeof *due, by_change);
    for (size_t i = 0; rc == OK && i < count && !queue_full(w->queue); i++)
        rc = open_one(w, directory_fd, &w->sightings.items[due[i].place], now, e);
    free(due);
    return rc;
}

/* ---- a look ------------------------------------------------------------------------------------------------------ */

static void tell_directory(struct watcher *w, int there)
{
    if (w->there == there)
        return;
    w->there = there;
    watcher_say(w, there ? WATCHER_THERE : WATCHER_NOWHERE, NULL, w->directory);
}

static int is_listed(const struct sighting *items, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(items[i].name, name))
            return 1;
    return 0;
}

/* Files that came and went between two looks were never listed, but inotify has their names. The names are older than
 * the listing, so any file that still exists is in the listing, unless looking at it failed. */
static void tell_unseen(struct watcher *w, int directory_fd, const struct sighting_list *gone)
{
    const char *end = w->names.data + w->names.length, *file = w->names.data;

    for (; buffer_ok(&w->names) && file < end; file += strlen(file) + 1) {
        struct checkpoint_identity c = { .has_digest = 0 };
        struct stat st;

        if (checkpoint_source_name(&w->options.source, file, c.name, sizeof c.name, &c.step) &&
            !sightings_find(&w->sightings, c.name, c.step) && !is_listed(gone->items, gone->count, c.name) &&
            !queue_knows_name(w->queue, c.name) && fstatat(directory_fd, file, &st, 0) < 0 && errno == ENOENT)
            watcher_say(w, WATCHER_LOST, &c, NULL);
    }
}

static int before(const struct sighting *item, const struct sighting_seen *seen)
{
    return item->step != seen->step ? item->step < seen->step : strcmp(item->name, seen->name) < 0;
}

/* 1: a known name that was not listed is there, or nobody can tell. */
static int name_still_there(const struct watcher *w, int directory_fd, const struct sighting *item)
{
    const int weights = item->kind == CHECKPOINT_OTHER && !w->options.source.has_pattern;
    char witness[PATH_MAX];
    struct stat st;

    if (weights && checkpoint_weights_within(directory_fd, item->name, witness, sizeof witness))
        return 1;
    if (!weights &&
        checkpoint_witness((enum checkpoint_kind)item->kind, item->name, witness, sizeof witness, NULL) != OK)
        return 0;
    return (!weights && fstatat(directory_fd, witness, &st, 0) == 0) ||
           (errno != ENOENT && errno != ENOTDIR && errno != ELOOP);
}

/* Adds what the listing lacks only because looking at it failed. */
static int complete(struct watcher *w, int directory_fd, struct checkpoint_listing *rows, double now, struct error *e)
{
    const size_t listed = rows->count;
    size_t i = 0;
    int rc = OK;

    for (size_t k = 0; k < w->sightings.count && rc == OK; k++) {
        const struct sighting *item = &w->sightings.items[k];

        while (i < listed && !before(item, &rows->items[i]) &&
               (rows->items[i].step != item->step || strcmp(rows->items[i].name, item->name)))
            i++;
        if ((i == listed || before(item, &rows->items[i])) && name_still_there(w, directory_fd, item))
            rc = checkpoint_listing_keep(rows, item, now - item->changed, e);
    }
    if (rows->count > listed)
        checkpoint_listing_sort(rows);
    return rc;
}

static int take_in(struct watcher *w, int directory_fd, const struct checkpoint_listing *rows, double now,
                   struct error *e)
{
    struct sighting_list gone;
    int rc = sightings_update(&w->sightings, rows->items, rows->count, now, &gone, e);

    if (rc != OK)
        return rc;
    for (size_t i = 0; i < gone.count; i++) {
        const struct checkpoint_identity c = checkpoint_identity_of(gone.items[i].name, gone.items[i].step);

        if (!queue_knows_name(w->queue, c.name) && !gone.items[i].whole.count)
            watcher_say(w, WATCHER_LOST, &c, NULL);
    }
    if (w->there == 1 && !w->sightings.closed)
        tell_unseen(w, directory_fd, &gone);
    sighting_list_release(&gone);
    return OK;
}

/* With inotify, polling is only for what inotify misses: if a listing takes long (a million names: half a second), the
 * next is delayed, so that listing takes at most a tenth of the time when idle. */
static void spare_poll(struct watcher *w, double listing)
{
    enum { SPARE = 9 };
    double next = clock_monotonic() + (double)SPARE * listing;

    if (w->inotify && next > w->next_poll)
        w->next_poll = next;
}

/* A listing is not a snapshot: of two names that appear while it is read, it may have only the later one, which would
 * then be evaluated first. So it is read again if the directory changed meanwhile, or so shortly before that the
 * kernel's coarse timestamps cannot tell. If changes never cease, the third listing is used. */
static int list(struct watcher *w, int fd, struct checkpoint_listing *rows, struct error *why)
{
    const double timer = 0.01;

    for (int again = 0;; again++) {
        double started = clock_wall();
        int rc = checkpoint_listing_read(rows, &w->options.source, w->directory, fd, &w->sightings, w->looks, w->wall,
                                         why);
        struct stat st;

        if (rc != OK || again == 2 || fstat(fd, &st) < 0 ||
            (!rows->unsure.code && file_stamp_modified(&st) < started - timer)) {
            w->looks++;
            return rc;
        }
        checkpoint_listing_release(rows);
    }
}

static int cannot_see(struct watcher *w, const struct error *why)
{
    if (++w->unsure == 2 || !error_may_pass(why)) /* once is nothing on a network file system */
        say_trouble(w, why->message);
    return OK;
}

static void saw_all(struct watcher *w)
{
    w->unsure = 0;
    say_trouble(w, "");
}

static void say_loop(struct watcher *w, const char *name)
{
    char sentence[TROUBLE_MAX];

    if (*name && strcmp(w->loop, name)) {
        snprintf(sentence, sizeof sentence,
                 "%.200s is a symbolic link to itself, and no checkpoint; make it lead to one, or remove it", name);
        watcher_say(w, WATCHER_TROUBLE, NULL, sentence);
    }
    snprintf(w->loop, sizeof w->loop, "%s", name);
}

/* Nothing matches: says so once, with --pattern at the first look of whatever is there, else of what comes close. */
static void say_near(struct watcher *w, const struct checkpoint_listing *rows)
{
    const int has_pattern = w->options.source.has_pattern;
    const size_t close = has_pattern ? strlen(w->options.source.pattern.text) / 3 : 1;
    struct buffer suggestion = BUFFER_EMPTY;
    char sentence[TROUBLE_MAX], names[HUMAN_TEXT_MAX];

    if (w->near_said || rows->count || w->sightings.count || !rows->names ||
        ((w->looked || !has_pattern) && rows->distance > close))
        return;
    w->near_said = 1;
    if (!has_pattern) {
        checkpoint_source_suggest(rows->near, &suggestion);
        snprintf(sentence, sizeof sentence, "%s there, and none matches without --pattern; '%.100s' does with %.300s",
                 human_count(rows->names, "name", names), rows->near, buffer_text(&suggestion));
        buffer_release(&suggestion);
        watcher_say(w, WATCHER_TROUBLE, NULL, sentence);
        return;
    }
    snprintf(sentence, sizeof sentence, "%s there, and none matches --pattern '%s%s'; '%.100s' comes closest%s",
             human_count(rows->names, "name", names), w->options.source.pattern.text,
             w->options.source.pattern.directory ? "/" : "", rows->near,
             rows->distance ? "" : ", but is no directory; remove the '/'");
    watcher_say(w, WATCHER_TROUBLE, NULL, sentence);
}

static int look(struct watcher *w, struct error *e)
{
    struct checkpoint_listing rows = { 0 };
    struct error why = { 0 };
    double now = clock_monotonic();
    int rc, fd = open(w->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    w->wall = clock_wall();
    w->next_poll = now + w->options.poll_seconds;
    buffer_clear(&w->names);
    if (w->inotify && fd >= 0)
        watch_inotify_names(w->inotify, w->place, &w->names);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        tell_directory(w, 0);
    } else if (fd < 0) {
        error_system(&why, "%s: cannot be listed", w->directory);
        return cannot_see(w, &why); /* what is known stays known */
    } else if (list(w, fd, &rows, &why) != OK) {
        close(fd);
        if (why.system == ENOENT) {
            fd = -1;
            tell_directory(w, 0);
        } else {
            return cannot_see(w, &why);
        }
    } else {
        tell_directory(w, 1);
        say_loop(w, rows.loop);
        say_near(w, &rows);
        if (rows.unsure.code)
            cannot_see(w, &rows.unsure);
        else
            saw_all(w);
    }
    rc = fd >= 0 ? complete(w, fd, &rows, now, e) : OK;
    if (rc == OK)
        rc = take_in(w, fd, &rows, now, e);
    sightings_close(&w->sightings, w->closing && !w->unsure);
    checkpoint_listing_release(&rows);
    spare_poll(w, clock_monotonic() - now);
    if (rc == OK && fd >= 0) {
        if ((rc = checkpoint_data_look(&w->sightings, fd, now, w->wall, e)) == OK)
            rc = open_due(w, fd, now, e);
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

int watcher_look(struct watcher *w, struct error *e)
{
    int rc = look(w, e);

    w->looked = 1;
    queue_publish(w->queue);
    return rc;
}

int watcher_look_last(struct watcher *w, struct error *e)
{
    if (w->inotify)
        watch_inotify_settle(w->inotify);
    return watcher_look(w, e);
}

static struct sighting *find_name(const struct watcher *w, const char *name)
{
    for (size_t i = 0; i < w->sightings.count; i++)
        if (!strcmp(w->sightings.items[i].name, name))
            return &w->sightings.items[i];
    return NULL;
}

int watcher_look_again(struct watcher *w, const char *name, int evaluated)
{
    struct sighting *item = find_name(w, name);

    if (!item)
        return -1;
    sighting_changed(item, clock_monotonic());
    return sighting_disturbed(item, evaluated);
}

void watcher_find_again(struct watcher *w, const char *name)
{
    struct sighting *item = find_name(w, name);

    if (item)
        sighting_again(item);
}

void watcher_uncount(struct watcher *w, int64_t step)
{
    if (w->options.source.steps.from == STEP_FROM_COUNT && w->counted > 0 &&
        step == step_rule_step(&w->options.source.steps, w->counted))
        w->counted--;
}

void watcher_undisturbed(struct watcher *w, const char *name)
{
    struct sighting *item = find_name(w, name);

    if (item)
        sighting_undisturbed(item);
}

void watcher_set_closed(struct watcher *w, int closed)
{
    for (size_t i = 0; closed && !w->closing && i < w->sightings.count; i++)
        if (w->sightings.items[i].unread > 1)
            w->sightings.items[i].unread = 1; /* five more tries from now on */
    w->closing = closed;
    sightings_close(&w->sightings, closed && !w->unsure);
}

size_t watcher_undecided(const struct watcher *w)
{
    return sightings_undecided(&w->sightings) + (w->unsure > 0 && w->unsure <= WATCHER_TRIES);
}
