/* eventlog drop-tag: a log without some of its series. */
#include "base/human.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/rewrite.h"

#include <stdio.h>
#include <unistd.h>

struct dropping {
    struct rewrite rewrite;
    struct selection globs;
    int invert;
    struct tag_index tags; /* of all runs; value: 1 if it goes */
};

static int drop_tag_choose(void *context, const struct event *event, const struct event_value *v, size_t place,
                           struct log_rewrite_choice *choice, struct error *e)
{
    struct dropping *d = context;
    struct tag_index_entry *tag;
    size_t known = d->tags.count, number;

    (void)event;
    (void)place;
    if (!v)
        return OK;
    if ((number = tag_index_add(&d->tags, v->tag, v->tag_length)) == TAG_INDEX_NONE)
        return error_memory(e, NULL, "for %zu tags", known + 1);
    tag = &d->tags.entries[number];
    if (number == known) /* a new one */
        tag->value = selection_wants(&d->globs, tag->text) != d->invert;
    choice->keep = !tag->value;
    return OK;
}

int command_drop_tag(int argc, char **argv)
{
    struct dropping d = { .invert = 0 };
    struct option table[] = {
        { OPTION_LIST, 't', "tag", &d.globs.patterns, .argument = "GLOB", .help = "Drop series whose tag "
          "matches, instead of those that the first arguments name; may be repeated" },
        { OPTION_FLAG, 0, "keep", &d.invert, .help = "Keep the series that match and drop the others" },
        REWRITE_OPTIONS(d.rewrite), REWRITE_IN_PLACE(d.rewrite),
    };
    const struct options options = {
        .program = "eventlog drop-tag", .usage = "[OPTION...] GLOB... PATH... -o DIR | --in-place",
        .summary = "Copy a log without the series whose tag matches GLOB, or drop them in place. GLOB matches as in "
                   "the shell, but * also matches '/'. What stays is copied bit for bit, in the same order; graphs and "
                   "session marks have no tag and stay. Arguments before the first one that is an existing PATH are "
                   "globs; with --tag all arguments are paths. Damaged records are left out and reported. Exit status: "
                   "0 done; 1 no tag matched, or damage; 2 usage or I/O.",
        .examples = "  eventlog drop-tag 'gradients/*' logs -o small\n"
                    "  eventlog drop-tag --keep --tag 'loss*' --tag accuracy --in-place logs/train\n",
        .table = table, .count = sizeof table / sizeof *table, .least = 1, .wanted = "no GLOB or no PATH given;",
    };
    const struct rewrite_filter filter = { &d, NULL, drop_tag_choose };
    struct error e = { 0 };
    char more[80], tags[HUMAN_TEXT_MAX], values[HUMAN_TEXT_MAX];
    int count = 0, first, globbing = 0, status, rc = scan_begin(&d.rewrite.scan, &options, argc, argv, &count, &e);
    int named = d.globs.patterns.count > 0;
    size_t hit = 0;

    /* The first argument is a glob, and those behind it that are no files, but for the last. */
    for (first = 1; rc == OK && first <= count && (first == 1 ? !named : globbing); first++) {
        globbing = first + 1 < count && access(argv[first + 1], F_OK) != 0;
        if (!option_list_add(&d.globs.patterns, argv[first]))
            rc = error_set(&e, ERR_ARG, "more than %d patterns; combine some of them", OPTION_LIST_MOST);
    }
    if (rc == OK && first > count)
        rc = error_set(&e, ERR_ARG, "no PATH given; run '%s --help' for help", options.program);
    status = rc == OK ? rewrite_open(&d.rewrite, argv + first, (size_t)(count - first + 1))
                      : scan_leave(&d.rewrite.scan, rc, &e);
    if (rc == OK && status == EXIT_DONE) {
        rc = rewrite_filter(&d.rewrite, &filter, &e);
        for (size_t i = 0; i < d.tags.count; i++)
            hit += d.tags.entries[i].value;
        if (d.rewrite.json)
            snprintf(more, sizeof more, ",\"tags\":%zu", hit);
        else
            snprintf(more, sizeof more, "; %s with %s dropped", human_count(hit, "tag", tags),
                     human_count(d.rewrite.dropped, "value", values));
        if (rc == OK)
            rewrite_print(&d.rewrite, "drop-tag", more);
        if (rc == OK)
            d.rewrite.scan.unmatched += selection_tell(&d.globs, named ? "--tag" : "GLOB", "tag", &d.rewrite.scan.log);
        status = rewrite_close(&d.rewrite, rc, hit > 0, &e);
    }
    selection_release(&d.globs);
    tag_index_release(&d.tags);
    return status;
}
