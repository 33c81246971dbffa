/* eventlog archive: finished logs in one compressed file. */
#include "base/human.h"
#include "base/json.h"
#include "base/program/terminal.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/output_stream.h"
#include "eventlog/tool/rewrite/archiving.h"
#include "eventlog/tool/scan.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct work {
    struct log log;
    struct archiving archive;
    int delete, json;
    int64_t level;
    size_t skipped;
    struct stat target; /* of the output, if it is there already */
    int has_target;
};

/* ---- what goes in ---------------------------------------------------------------------------------------------- */

static int archive_list(struct work *a, char *path, struct error *e)
{
    char *paths[] = { path, NULL };
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    size_t start = archiving_name_start(path);
    int rc = tree ? OK : error_system(e, "%s: cannot be read", path);

    for (FTSENT *entry; rc == OK && (entry = fts_read(tree));) {
        const char *name = entry->fts_path + start;

        switch (entry->fts_info) {
        case FTS_F:
            if (a->has_target && entry->fts_statp->st_ino == a->target.st_ino &&
                entry->fts_statp->st_dev == a->target.st_dev)
                break; /* the archive that is to be replaced */
            while (*name == '/')
                name++;
            rc = archiving_add(&a->archive, name, entry->fts_path, entry->fts_statp, e);
            break;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
            if (entry->fts_level > FTS_ROOTLEVEL && entry->fts_errno == ENOENT)
                break; /* removed since its directory was read */
            rc = error_set(e, ERR_IO, "%s: cannot be read: %s", entry->fts_path, strerror(entry->fts_errno));
            break;
        case FTS_D:
        case FTS_DP: break;
        default: /* links, sockets, pipes */
            log_line(&a->log, "%s: not a regular file; left out", entry->fts_path);
            a->skipped++;
        }
    }
    if (tree)
        fts_close(tree);
    return rc;
}

/* ---- --delete -------------------------------------------------------------------------------------------------- */

static int delete_all(struct archiving *a, char *const *paths, size_t count, struct error *e)
{
    int rc = archiving_check(a, e);

    for (size_t i = 0; rc == OK && i < a->count; i++)
        if (unlink(a->files[i].path) < 0 && errno != ENOENT) /* a path within another one's was there twice */
            rc = error_system(e, "%s: cannot be deleted", a->files[i].path);
    for (size_t i = 0; rc == OK && i < count; i++) { /* directories that nothing is left in */
        char *roots[] = { paths[i], NULL };
        FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

        for (FTSENT *entry; tree && (entry = fts_read(tree));)
            if (entry->fts_info == FTS_DP)
                rmdir(entry->fts_path);
        if (tree)
            fts_close(tree);
    }
    return rc;
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static void archive_print(const struct work *w)
{
    const struct archiving *a = &w->archive;
    char files[HUMAN_TEXT_MAX], size[HUMAN_TEXT_MAX], packed[HUMAN_TEXT_MAX];
    FILE *out = output_stream_is(a->output) ? stderr : stdout;
    struct buffer b = BUFFER_EMPTY;

    if (w->json) {
        buffer_append_text(&b, "{\"type\":\"archive\",\"version\":1,\"output\":");
        json_text(&b, a->output);
        buffer_format(&b,
                      ",\"deleted\":%s,\"total\":{\"files\":%zu,\"bytes\":%llu,\"packed\":%llu,"
                      "\"skipped\":%zu}}",
                      w->delete ? "true" : "false", a->count, (unsigned long long)a->bytes,
                      (unsigned long long)a->packed, w->skipped);
        fprintf(out, "%s\n", buffer_text(&b));
    } else {
        buffer_format(&b, "%s: %s, %s in %s%s", output_stream_is(a->output) ? "standard output" : a->output,
                      human_count(a->count, "file", files), human_bytes(a->bytes, size), human_bytes(a->packed, packed),
                      w->delete ? "; checked, and the files deleted" : "");
        terminal_put_line(out, buffer_text(&b));
    }
    buffer_release(&b);
}

int command_archive(int argc, char **argv)
{
    struct work a = { .level = 6 };
    struct option table[] = {
        { OPTION_TEXT, 'o', "output", &a.archive.output, "FILE",
          .help = "Write the archive to FILE, such as logs.tfz, which appears once it is complete" },
        { OPTION_FLAG, 0, "delete", &a.delete,
          .help = "Delete the files, and directories left empty, once the archive is on disk and every member was read "
                  "back and compared" },
        { OPTION_INT, 0, "level", &a.level, "N", .help = "Compress from 1, fast, to 9, small (default 6)", .minimum = 1,
          .maximum = 9 },
        { OPTION_FLAG, 'f', "force", &a.archive.force,
          .help = "Overwrite an existing FILE, and archive files that are being written as they are now" },
        { OPTION_FLAG, 0, "json", &a.json, .help = "Print what was done as a JSON object" },
    };
    const struct options options = {
        .program = "eventlog archive",
        .usage = "[OPTION...] PATH... -o FILE",
        .summary = "Pack all files of directories, or single files, into one archive. Each is compressed (zlib) by "
                   "itself, so it can be read alone, and has a CRC-32C, so damage is detected. 'eventlog cat' lists, "
                   "checks and extracts them. Names in the archive begin with the last part of PATH. Files that are "
                   "being written or change meanwhile are refused; links and special files are left out and reported. "
                   "Exit status: 0 done; 1 no files; 2 usage or I/O.",
        .examples = "  eventlog archive logs/2024 -o logs-2024.tfz\n"
                    "  eventlog archive --delete logs/old -o /backup/old.tfz\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    struct error e = { 0 };
    int count = 0, status = EXIT_DONE, rc = options_parse(&options, argc, argv, &count, &e);

    log_init(&a.log, options.program, 2);
    a.archive.log = &a.log;
    a.archive.level = (int)a.level;
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK && !a.archive.output)
        rc = error_set(&e, ERR_ARG, "no output given; add -o FILE");
    if (rc == OK && a.delete &&a.archive.force)
        rc = error_set(&e, ERR_ARG, "--delete contradicts -f: files that are being written must not be deleted");
    if (rc == OK && output_stream_is(a.archive.output) && (a.delete || a.json))
        rc = error_set(&e, ERR_ARG, "--%s contradicts '-o -', which writes the archive to standard output",
                       a.delete ? "delete" : "json");
    a.has_target = rc == OK && stat(a.archive.output, &a.target) == 0;
    for (int i = 1; rc == OK && i <= count; i++)
        rc = archive_list(&a, argv[i], &e);
    if (rc == OK && !a.archive.count) {
        log_line(&a.log, "%s: contains no files", argv[1]);
        status = EXIT_NO;
    } else if (rc == OK && (rc = archiving_write(&a.archive, &e)) == OK && a.delete) {
        rc = delete_all(&a.archive, argv + 1, (size_t)count, &e);
    }
    if (rc == OK && a.archive.count)
        archive_print(&a);
    if (rc == OK && fflush(stdout) != 0)
        rc = error_system(&e, "standard output: cannot write");
    if (rc != OK) {
        log_line(&a.log, "%s", e.message);
        status = EXIT_USAGE;
    }
    archiving_release(&a.archive);
    return status;
}
