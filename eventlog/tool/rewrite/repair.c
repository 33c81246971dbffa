/* eventlog repair: a damaged event file as a sound one. */
#include "base/human.h"
#include "base/json.h"
#include "base/program/terminal.h"
#include "eventlog/rewrite/log_repair.h"
#include "eventlog/rewrite/log_replace.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/output_stream.h"
#include "eventlog/tool/scan.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of each kind of loss that there was, how much. */
static void print_losses(struct buffer *b, const struct eventlog_repair *r)
{
    const char *before = ": ";
    char text[HUMAN_TEXT_MAX];

    if (r->places) {
        buffer_format(b, "%s%s", before, human_count(r->places, "damaged place", text));
        before = ", ";
    }
    if (r->refused) {
        buffer_format(b, "%s%s at which a loader gives up", before, human_count(r->refused, "record", text));
        before = ", ";
    }
    if (r->cut)
        buffer_format(b, "%san incomplete last record of %s", before, human_bytes(r->cut, text));
}

static void repair_print(FILE *out, int json, const char *path, const char *to, const char *backup,
                         const struct eventlog_repair *r)
{
    struct buffer b = BUFFER_EMPTY;
    char records[HUMAN_TEXT_MAX], size[HUMAN_TEXT_MAX], lost_size[HUMAN_TEXT_MAX];
    unsigned long long kept = r->records, bytes = r->bytes, lost = r->size - r->bytes, places = r->places;
    unsigned long long refused = r->refused, cut = r->cut;

    if (json) {
        buffer_append_text(&b, "{\"type\":\"repair\",\"version\":1,\"file\":");
        json_text(&b, path);
        buffer_append_text(&b, ",\"output\":");
        json_text(&b, to);
        buffer_append_text(&b, ",\"backup\":");
        json_text(&b, backup);
        buffer_format(&b,
                      ",\"records\":%llu,\"bytes\":%llu,\"lost\":%llu,\"places\":%llu,\"refused\":%llu,"
                      "\"cut\":%llu}",
                      kept, bytes, lost, places, refused, cut);
        fprintf(out, "%s\n", buffer_text(&b));
    } else {
        buffer_format(&b, "%s: %s kept (%s), %s lost", path, human_count(kept, "record", records),
                      human_bytes(bytes, size), human_bytes(lost, lost_size));
        print_losses(&b, r);
        if (backup)
            buffer_format(&b, "; the old file is %s", backup);
        else if (!to)
            buffer_append_text(&b, "; nothing to repair");
        terminal_put_line(out, buffer_text(&b));
    }
    buffer_release(&b);
}

static int repair_stream(struct scan *s, const char *path, struct error *e)
{
    struct eventlog_repair r;
    int fd, rc = output_stream_open(&fd, e);

    if (rc != OK)
        return rc;
    if ((rc = log_repair_into(&s->input, path, fd, "standard output", &r, e)) != OK)
        close(fd);
    else if ((rc = output_stream_send(fd, e)) == OK)
        repair_print(stderr, 0, path, "standard output", NULL, &r);
    return rc;
}

static int repair(struct scan *s, const char *path, const char *to, int in_place, int force, int json, struct error *e)
{
    const char *packed = in_place ? log_input_packed(&s->input, path) : NULL;
    char backup[PATH_MAX];
    struct eventlog_repair r;
    int rc;

    if (packed)
        return error_set(e, ERR_ARG, "%s: is %s, which cannot be repaired in place; -o NEW writes a new file", path,
                         packed);
    if (output_stream_is(to))
        return repair_stream(s, path, e);
    if (!in_place) {
        if ((rc = log_repair_to(NULL, &s->input, path, to, force, &r, e)) == OK)
            repair_print(stdout, json, path, to, NULL, &r);
        return rc;
    }
    if ((rc = log_repair_in_place(NULL, path, &r, e)) == OK &&
        (rc = log_replace_backup_name(backup, sizeof backup, path, e)) == OK)
        repair_print(stdout, json, path, r.changed ? path : NULL, r.changed ? backup : NULL, &r);
    return rc;
}

int command_repair(int argc, char **argv)
{
    struct scan s = { .failed = 0 };
    const char *to = NULL;
    int in_place = 0, force = 0, json = 0;
    struct option table[] = {
        { OPTION_TEXT, 'o', "output", &to, "NEW",
          .help = "Write the repaired file to NEW, which appears once it is complete" },
        { OPTION_FLAG, 0, "in-place", &in_place,
          .help = "Replace each FILE and keep the old one beside it as NAME.bak, with every 'tfevents' in NAME changed "
                  "to 'tf-events', so that TensorBoard does not read it" },
        { OPTION_FLAG, 'f', "force", &force, .help = "Overwrite an existing NEW" },
        { OPTION_FLAG, 0, "json", &json, .help = "Print a JSON object for each file" },
    };
    const struct options options = {
        .program = "eventlog repair",
        .usage = "[OPTION...] FILE -o NEW | --in-place FILE...",
        .summary =
            "Repair a damaged event file: keep every sound record, byte for byte and in order, and leave out the rest: "
            "records with a wrong CRC, bytes that are not a record, records at which one of TensorBoard's loaders "
            "gives up (what 'eventlog verify' calls damage), and an incomplete last record. --in-place leaves sound "
            "files alone and refuses a file that is open for writing on this machine or changes meanwhile; -o copies "
            "what is there now. A running TensorBoard reads a replaced file only after a restart. Exit status: 0 done, "
            "or nothing to repair; 2 usage or I/O, not an event file, or nothing in it can be kept.",
        .examples = "  eventlog repair events.out.tfevents.1700000000.host.1.0 -o sound/events.out.tfevents.1\n"
                    "  eventlog repair --in-place logs/train/events.out.tfevents.*\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no FILE given;",
    };
    struct error e = { 0 };
    int count = 0, status = EXIT_DONE, rc = scan_begin(&s, &options, argc, argv, &count, &e);

    if (rc == OK && !to == !in_place)
        rc = error_set(&e, ERR_ARG, "no output given; add -o NEW or --in-place");
    else if (rc == OK && json && output_stream_is(to))
        rc = error_set(&e, ERR_ARG, "--json contradicts '-o -', which writes the repaired file to standard output");
    else if (rc == OK && to && count > 1)
        rc = error_set(&e, ERR_ARG, "-o NEW repairs a single FILE; use --in-place for several");
    if (rc != OK)
        return scan_leave(&s, rc, &e);
    s.input.standard_input = 1;
    for (int i = 1; i <= count; i++)
        if (repair(&s, argv[i], to, in_place, force, json, &e) != OK)
            status = scan_fail(&s, &e);
    if (fflush(stdout) != 0) {
        error_system(&e, "standard output: cannot write");
        status = scan_fail(&s, &e);
    }
    scan_close(&s);
    return status;
}
