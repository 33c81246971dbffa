/* eventlog cat: what is in an archive: lists, checks, restores. */
#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/io.h"
#include "base/program/selection.h"
#include "base/program/terminal.h"
#include "eventlog/read/log_archive.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/directory_below.h"
#include "eventlog/tool/report/report.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct restoring {
    struct scan scan;                  /* its log, damage and filters that matched nothing */
    const struct log_archive *archive; /* the scan's input holds it */
    struct selection names;
    const char *output;
    struct report *report; /* --list */
    int list, check, force, json;
    uint64_t members, bytes, done, all;
    double began; /* monotonic */
    int fd;       /* where the contents go, -1: nowhere */
    const char *to;
    const struct log_archive_entry *entry;
};

static int sink(void *context, const void *bytes, size_t n, struct error *e)
{
    struct restoring *r = context;
    char size[HUMAN_TEXT_MAX];

    if (r->fd >= 0 && io_write_full(&io_real, r->fd, bytes, n) < 0)
        return error_system(e, "%s: cannot write", r->to);
    r->done += n;
    log_progress_work(&r->scan.log, r->began, (double)r->done / (double)r->all, r->entry->name, "%s",
                      human_bytes(r->all, size));
    return OK;
}

/* Permissions and times, down to the disk. */
static int finish(const struct restoring *r, struct error *e)
{
    const struct log_archive_entry *entry = r->entry;
    int64_t second = 1000000000, nanoseconds = entry->mtime % second;
    struct timespec times[2] = { { 0, UTIME_OMIT }, { 0, 0 } };

    times[1].tv_sec = (time_t)(entry->mtime / second - (nanoseconds < 0));
    times[1].tv_nsec = (long)(nanoseconds < 0 ? nanoseconds + second : nanoseconds);
    /* Without set-user-id and the like, whoever made the archive. */
    if (fchmod(r->fd, entry->mode & 0777) < 0 || futimens(r->fd, times) < 0 || fsync(r->fd) < 0)
        return error_system(e, "%s/%s: cannot set permissions and times, or sync", r->output, entry->name);
    return OK;
}

static int restore(struct restoring *r, struct error *e)
{
    struct directory_below file;
    int root = open(r->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

    if (root < 0)
        return error_system(e, "%s: cannot be opened", r->output);
    rc = directory_below_open(&file, root, r->output, r->entry->name, r->force, 0600, e);
    close(root);
    if (rc != OK)
        return rc;
    r->fd = file.fd;
    r->to = r->entry->name;
    if ((rc = log_archive_read(r->archive, r->entry, sink, r, e)) == OK)
        rc = finish(r, e);
    r->fd = -1;
    return directory_below_close(&file, rc, e);
}

static const struct report_column columns[] = {
    { .key = "bytes", .title = "size", .kind = REPORT_BYTES },
    { .key = "packed", .kind = REPORT_BYTES, .leave_out = 1 },
    { .key = "mtime", .title = "changed", .kind = REPORT_TIME, .leave_out = 2 },
    { .key = "mode", .kind = REPORT_NUMBER },
    { .key = "crc32c" },
    { .key = "name", .cut = 20 },
};
static const struct report_layout layout = {
    .type = "members",
    .rows = "members",
    .columns = columns,
    .count = sizeof columns / sizeof *columns,
    .people = "bytes packed mtime name",
};

static void list_one(struct restoring *r)
{
    const struct log_archive_entry *entry = r->entry;
    char crc[9];

    snprintf(crc, sizeof crc, "%08x", (unsigned)entry->crc);
    report_count(r->report, entry->size);
    report_count(r->report, entry->packed);
    report_number(r->report, (double)entry->mtime / 1e9);
    report_count(r->report, entry->mode);
    report_word(r->report, crc);
    report_word(r->report, entry->name);
}

static int one(struct restoring *r, struct error *e)
{
    int rc = OK;

    r->members++;
    r->bytes += r->entry->size;
    if (r->list) {
        list_one(r);
    } else if (r->output) {
        rc = restore(r, e);
    } else {
        r->fd = r->check ? -1 : 1;
        r->to = "standard output";
        rc = log_archive_read(r->archive, r->entry, sink, r, e);
        r->fd = -1;
    }
    if (rc != ERR_CORRUPT)
        return rc;
    log_line(&r->scan.log, "%s", e->message); /* the other members may be sound */
    r->scan.damaged++;
    *e = (struct error){ 0 };
    return OK;
}

static int all(struct restoring *r, struct error *e)
{
    const struct log_archive *a = r->archive;
    int rc = OK;

    r->began = clock_monotonic();
    for (size_t i = 0; i < a->count; i++)
        r->all += selection_wants(&r->names, a->entries[i].name) ? a->entries[i].size : 0;
    if (r->output && !r->list)
        rc = file_make_directories(r->output, e);
    for (size_t i = 0; rc == OK && i < a->count; i++) {
        r->entry = &a->entries[i];
        if (selection_wants(&r->names, r->entry->name))
            rc = one(r, e);
    }
    log_progress_end(&r->scan.log);
    return rc;
}

static void print_result(const struct restoring *r)
{
    unsigned long long members = r->members, bytes = r->bytes, damage = r->scan.damaged;
    struct buffer b = BUFFER_EMPTY;
    char size[HUMAN_TEXT_MAX];

    if (!r->check && !r->output)
        return;
    if (r->json) {
        printf("{\"type\":\"cat\",\"version\":1,\"total\":{\"members\":%llu,\"bytes\":%llu,\"damage\":%llu}}\n",
               members, bytes, damage);
    } else {
        buffer_format(&b, "%s: %llu members, %s%s", r->archive->path, members, human_bytes(r->bytes, size),
                      damage     ? ", damaged"
                      : r->check ? ", all sound"
                                 : "");
        terminal_put_line(stdout, buffer_text(&b));
        buffer_release(&b);
    }
}

/* Lists, checks or restores; returns the status. */
static int cat(struct restoring *r, struct error *e)
{
    const struct report_options o = { .to.format = r->json ? "json" : "text" };
    struct scan *s = &r->scan;
    int rc = r->list ? report_open(&r->report, &layout, &o, e) : OK;

    if (rc == OK)
        rc = all(r, e);
    if (rc == OK)
        s->unmatched = selection_tell(&r->names, "NAME", "member", &s->log);
    if (r->report) {
        report_total(r->report, "members", r->members);
        report_total(r->report, "bytes", r->bytes);
        return report_finish(r->report, s, rc, r->members > 0, e);
    }
    if (rc == OK)
        print_result(r);
    if (rc == OK && fflush(stdout) != 0)
        rc = error_system(e, "standard output: cannot write");
    return rc == OK ? scan_status(s, r->members > 0) : scan_fail(s, e);
}

static int open_archive(struct restoring *r, const char *path, struct error *e)
{
    int rc = log_input_archive(&r->scan.input, path, &r->archive, e);

    if (!rc)
        return error_set(e, ERR_CORRUPT, "%s: not an archive made by 'eventlog archive'", path);
    return rc < 0 ? rc : OK;
}

int command_cat(int argc, char **argv)
{
    struct restoring r = { .fd = -1, .scan.input.standard_input = 1 };
    struct option table[] = {
        { OPTION_TEXT, 'o', "output", &r.output, "DIR",
          .help = "Extract into DIR, which is created if missing, with permissions and times; each file appears once "
                  "it is complete (default: write contents to standard output, one after the other)" },
        { OPTION_FLAG, 'l', "list", &r.list, .help = "List names, sizes and compressed sizes" },
        { OPTION_FLAG, 0, "check", &r.check, .help = "Only decompress and check the members" },
        { OPTION_FLAG, 'f', "force", &r.force, .help = "Overwrite existing files" },
        { OPTION_FLAG, 0, "json", &r.json, .help = "With --list, --check or -o: print a JSON object" },
    };
    const struct options options = {
        .program = "eventlog cat",
        .usage = "[OPTION...] ARCHIVE [NAME...]",
        .summary = "List, check or extract the files of an archive that 'eventlog archive' made: all of them, or those "
                   "whose name matches a pattern NAME ('*' also matches '/'). With -o, nothing is written outside DIR, "
                   "whatever the archive holds, and links in DIR are not followed. A damaged file is reported and not "
                   "extracted; the others are. ARCHIVE '-' is standard input. Exit status: 0 done; 1 no file matched, "
                   "or damage; 2 usage, not an archive, or I/O.",
        .examples = "  eventlog cat --list logs.tfz\n"
                    "  eventlog cat logs.tfz 'logs/train/*' > events.out.tfevents.1\n"
                    "  eventlog cat logs.tfz -o restored\n"
                    "  ssh host cat logs.tfz | eventlog cat - -o restored\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no ARCHIVE given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&r.scan, &options, argc, argv, &count, &e);

    if (rc == OK && (r.list + r.check > 1 || (r.output && (r.list || r.check))))
        rc = error_set(&e, ERR_ARG, "-o, --list and --check contradict each other; give one of them");
    r.output = r.output && !strcmp(r.output, "-") ? NULL : r.output;
    if (rc == OK && r.json && !r.output && !r.list && !r.check)
        rc = error_set(&e, ERR_ARG, "--json: contents go to standard output; add --list, --check or -o DIR");
    for (int i = 2; rc == OK && i <= count; i++)
        if (!option_list_add(&r.names.patterns, argv[i]))
            rc = error_set(&e, ERR_ARG, "more than %d names; use a pattern", OPTION_LIST_MOST);
    if (rc == OK)
        rc = open_archive(&r, argv[1], &e);
    status = rc == OK ? cat(&r, &e) : scan_leave(&r.scan, rc, &e);
    selection_release(&r.names);
    log_input_release(&r.scan.input);
    return status;
}
