/* eventlog drop-tag: a log without some of its series. */
#include "base/human.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/rewrite_command.h"

#include <stdio.h>
#include <unistd.h>

struct dropping {
    struct rewrite rewrite; /* its tags' values: 1 if they go */
    struct selection globs;
    int invert, named; /* named: the globs are those of --tag */
};

/* The first argument is a glob, and those behind it that are no files, but for the last. */
static int drop_tag_arguments(void *context, int count, char **argv, int *first, struct error *e)
{
    struct dropping *d = context;
    int globbing = !(d->named = d->globs.patterns.count > 0);

    for (; globbing && *first <= count; ++*first) {
        globbing = *first + 1 < count && access(argv[*first + 1], F_OK) != 0;
        if (!option_list_add(&d->globs.patterns, argv[*first]))
            return error_set(e, ERR_ARG, "more than %d patterns; combine some of them", OPTION_LIST_MOST);
    }
    return OK;
}

static int drop_tag_choose(void *context, const struct rewrite_value *value, struct log_rewrite_choice *choice,
                           struct error *e)
{
    struct dropping *d = context;

    (void)e;
    if (value->is_new)
        value->tag->value = selection_wants(&d->globs, value->tag->text) != d->invert;
    choice->keep = !value->tag->value;
    return OK;
}

static int drop_tag_tell(void *context)
{
    struct dropping *d = context;
    struct rewrite *w = &d->rewrite;
    char more[80], tags[HUMAN_TEXT_MAX], values[HUMAN_TEXT_MAX];
    size_t hit = 0;

    for (size_t i = 0; i < w->tags.count; i++)
        hit += w->tags.entries[i].value;
    if (w->json)
        snprintf(more, sizeof more, ",\"tags\":%zu", hit);
    else
        snprintf(more, sizeof more, "; %s with %s dropped", human_count(hit, "tag", tags),
                 human_count(w->dropped, "value", values));
    rewrite_print(w, "drop-tag", more);
    w->scan.unmatched += selection_tell(&d->globs, d->named ? "--tag" : "GLOB", "tag", &w->scan.log);
    return hit > 0;
}

int command_drop_tag(int argc, char **argv)
{
    struct dropping d = { .invert = 0 };
    struct option table[] = {
        { OPTION_LIST, 't', "tag", &d.globs.patterns, .argument = "GLOB",
          .help = "Drop series whose tag matches GLOB, and take all arguments as paths; may be repeated" },
        { OPTION_FLAG, 0, "keep", &d.invert, .help = "Keep the series that match and drop the others" },
        REWRITE_OPTIONS(d.rewrite),
        REWRITE_IN_PLACE(d.rewrite),
    };
    const struct options options = {
        .program = "eventlog drop-tag",
        .usage = "[OPTION...] GLOB... PATH... -o DIR | --in-place",
        .summary = "Copy a log without the series whose tag matches GLOB, or drop them in place. GLOB matches as in "
                   "the shell, but * also matches '/'. What stays is copied bit for bit, in the same order; graphs and "
                   "session marks have no tag and stay. Arguments before the first one that is an existing PATH are "
                   "globs; with --tag all arguments are paths. Damaged records are left out and reported. Exit status: "
                   "0 done; 1 no tag matched, or damage; 2 usage or I/O.",
        .examples = "  eventlog drop-tag 'gradients/*' logs -o small\n"
                    "  eventlog drop-tag --keep --tag 'loss*' --tag accuracy --in-place logs/train\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no GLOB or no PATH given;",
    };
    const struct rewrite_command command = {
        &options, &d, .arguments = drop_tag_arguments, .choose = drop_tag_choose, .tell = drop_tag_tell,
    };
    int status = rewrite_command_run(&d.rewrite, &command, argc, argv);

    selection_release(&d.globs);
    return status;
}
