#include "trainer/resuming.h"

#include "base/buffer.h"
#include "base/file.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "trainer/initial_weights.h"
#include "trainer/own_model.h"
#include "trainer/training_lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* settings that affect the curve: old and new */
struct changes {
    struct buffer before, after;
};

static void change_text(struct changes *c, const char *what, const char *before, const char *after)
{
    const char *comma = c->before.length ? ", " : "";

    if (!*before || !strcmp(before, after)) /* "": the checkpoint does not say */
        return;
    buffer_format(&c->before, "%s%s%s", comma, what, before);
    buffer_format(&c->after, "%s%s%s", comma, what, after);
}

static void change_number(struct changes *c, const char *what, int64_t before, int64_t after)
{
    char a[24], b[24];

    snprintf(a, sizeof a, "%" PRId64, before);
    snprintf(b, sizeof b, "%" PRId64, after);
    change_text(c, what, a, b);
}

/* In how many parts the gradient of a step is computed by each worker or, with micro-shards, by all. */
static int64_t parts_of(int64_t micro_shards, int64_t threads)
{
    return micro_shards ? micro_shards : threads ? threads : 1;
}

/* What other micro-shards or threads mean for the bits; "": there are none. Threads that share micro-shards do not
 * count, and those of one worker count as that many micro-shards. */
static const char *change_parts(struct changes *c, const struct resuming *r, const struct training_position *was)
{
    const struct batch_sizes *now = &r->options->sizes;
    const int64_t threads = train_options_parts_of_threads(r->options);
    const int64_t before = parts_of(was->micro_shards, was->threads), after = parts_of(now->micro_shards, threads);

    if (was->threads || (threads && !was->micro_shards))
        change_number(c, "--threads ", was->threads ? was->threads : 1, now->threads > 1 ? now->threads : 1);
    if (was->micro_shards || now->micro_shards)
        change_number(c, "--micro-shards ", was->micro_shards, now->micro_shards);
    if (was->micro_shards == now->micro_shards && was->threads == threads)
        return "";
    return before == after && was->workers == 1 && r->workers == 1
               ? ", which is the same sum of gradients, bit for bit"
               : ", which adds gradients in another order: the last bits of weights differ from here on";
}

/* Reports what differs from the checkpoint, in one line. */
static void warn_of_changes(const struct resuming *r, const char *prefix, const struct training_position *was, int kind)
{
    const struct train_options *o = r->options;
    struct changes c = { BUFFER_EMPTY, BUFFER_EMPTY };
    const char *parts = "";

    if (o->quiet)
        return;
    if (kind == CHECKPOINT_FOREIGN)
        log_line(r->log, "%s has no complete optimizer state for this training; it begins anew", prefix);
    change_text(&c, "--run-option ", was->run_option, o->strategy.label);
    if (was->world_size)
        change_number(&c, "ranks: ", was->world_size, world_size(r->world));
    if (was->workers && was->batch_size)
        change_number(&c, "global batch ", was->global_batch, r->global_batch);
    if (was->workers)
        parts = change_parts(&c, r, was);
    if (o->sizes.micro_shards)
        change_text(&c, "kernels: ", was->kernels, r->position->kernels);
    change_text(&c, "--data ", was->data, o->data);
    change_text(&c, "--shard ", was->shard, train_options_shard(o));
    if (o->seed_given)
        change_number(&c, "--seed ", (int64_t)was->seed, (int64_t)o->seed);
    if (c.before.length && buffer_ok(&c.before) && buffer_ok(&c.after))
        log_line(r->log, "%s was trained with %s; continuing with %s%s", prefix, buffer_text(&c.before),
                 buffer_text(&c.after), parts);
    buffer_release(&c.before);
    buffer_release(&c.after);
}

/* Loads the checkpoint of that name. 1, or an error. */
static int load(const struct resuming *r, const char *name, struct error *e)
{
    const struct train_options *o = r->options;
    const int64_t named = checkpoint_name_step(name);
    struct training_position was = { .seed = o->seed };
    char prefix[4096];
    int rc;

    if ((rc = file_join(prefix, sizeof prefix, o->checkpoint_directory, name, e)) < 0 ||
        (rc = own_model_check(o->file, o->model->name, o->checkpoint_directory, e)) < 0 ||
        (rc = training_checkpoint_load(prefix, r->optimizer, r->losses, &was, e)) < 0)
        return rc;
    if (was.vocabulary && r->position->vocabulary && was.vocabulary != r->position->vocabulary)
        return error_set(e, ERR_ARG,
                         "%s was trained with another vocabulary than that of the files of --data-dir; resume with the "
                         "files that it was trained on",
                         prefix);
    warn_of_changes(r, prefix, &was, rc);
    r->position->global_step = was.global_step;
    if (named >= 0 && named != was.global_step)
        log_line(r->log, "%s: its name says step %" PRId64 ", but its global_step, which is used, is %" PRId64, prefix,
                 named, was.global_step);
    r->position->seed = o->seed_given ? o->seed : was.seed;
    if (!o->quiet)
        log_line(r->log, "resuming from %s", prefix);
    return 1;
}

static int load_step(const struct resuming *r, struct error *e)
{
    struct error why = { 0 };
    char name[64];
    int rc;

    snprintf(name, sizeof name, "model.ckpt-%" PRId64, r->options->resume_step);
    if ((rc = load(r, name, &why)) == ERR_CORRUPT || rc == ERR_IO)
        return error_set(e, rc, "%s; --resume auto resumes from the newest whole checkpoint", why.message);
    return rc < 0 ? error_copy(e, &why) : rc;
}

/* Loads the newest whole checkpoint. 1; 0: there are no checkpoints; or an error, also if all are damaged. */
static int load_newest(const struct resuming *r, const struct checkpoint_list *list, struct error *e)
{
    int rc = 0;

    for (size_t i = list->count; i-- > 0 && rc == 0;) {
        struct error why = { 0 };

        rc = load(r, list->items[i].name, &why);
        if (rc < 0 && rc != ERR_CORRUPT && rc != ERR_IO)
            return error_copy(e, &why);
        if (rc == 1 && i + 1 == list->count &&
            checkpoint_directory_disagrees(r->options->checkpoint_directory, list->items[i].name, &why))
            log_line(r->log, "%s", why.message);
        if (rc == 1 && i + 1 < list->count)
            log_line(r->log, "trainer: %s is the newest whole checkpoint; --resume STEP resumes from another one",
                     list->items[i].name);
        if (rc < 0) {
            world_sign(r->world, world_rank(r->world), &why);
            log_line(r->log, "trainer: %s", why.message);
            rc = 0;
        }
    }
    if (rc == 0 && list->count)
        return error_set(e, ERR_CORRUPT,
                         "--checkpoint-dir %s: no checkpoint in it is whole; to start anew, use --resume never",
                         r->options->checkpoint_directory);
    return rc;
}

/* Takes the lock of the directory, once what an earlier training left is saved. */
static int take_lock(const struct resuming *r, struct error *e)
{
    const struct train_options *o = r->options;
    const struct timespec pause = { 0, 50000000 };
    int told = 0, rc;

    while ((rc = training_lock_take(o->checkpoint_directory, o->take_over, r->lock, e)) == TRAINING_LOCK_SAVING) {
        if (!told)
            log_line(r->log, "%s: waiting until the last state of the training before this one is saved",
                     o->checkpoint_directory);
        told = 1;
        nanosleep(&pause, NULL);
    }
    return rc;
}

/* 1; 0: nothing to resume from, or not wanted; or an error. */
static int resume(const struct resuming *r, struct error *e)
{
    const struct train_options *o = r->options;
    struct checkpoint_list list;
    int rc;

    if (!o->checkpoint_directory)
        return 0;
    if ((rc = file_make_directories(o->checkpoint_directory, e)) < 0 || (rc = take_lock(r, e)) < 0 ||
        (rc = training_files_check(o->checkpoint_directory, e)) < 0)
        return error_prefix(e, "--checkpoint-dir");
    if (*r->lock >= 0)
        training_files_tidy(o->checkpoint_directory);
    if (o->resume == RESUME_STEP)
        return load_step(r, e);
    if ((rc = checkpoint_directory_list_newest_last(o->checkpoint_directory, &list, e)) < 0)
        return error_prefix(e, "--checkpoint-dir %s", o->checkpoint_directory);
    if (o->resume == RESUME_AUTO)
        rc = load_newest(r, &list, e);
    else if (list.count && !o->quiet)
        log_line(r->log, "%s has checkpoints up to %s; starting anew, and replacing those of the same steps",
                 o->checkpoint_directory, list.items[list.count - 1].name);
    checkpoint_list_release(&list);
    return rc;
}

int resuming_start(const struct resuming *r, int64_t *step, struct error *e)
{
    const struct train_options *o = r->options;
    int rc, kept;

    *step = -1;
    r->position->seed = r->options->seed;
    if ((rc = resume(r, e)) < 0)
        return rc;
    if (o->checkpoint_directory && (kept = own_model_keep(o->file, o->model->name, o->checkpoint_directory, e)) < 0)
        return kept;
    if (rc == 1) {
        if (o->init_from && !o->quiet)
            log_line(r->log, "--init-from %s is for a new training, and not used", o->init_from);
        *step = r->position->global_step;
        return OK;
    }
    network_initialize(r->network, r->options->seed);
    if (o->init_from && (rc = initial_weights_load(r->network, o->init_from, o->scope, r->log, o->quiet, e)) < 0)
        return error_prefix(e, "--init-from");
    optimizer_reset(r->optimizer, 0);
    return OK;
}
