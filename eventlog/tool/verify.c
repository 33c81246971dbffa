/* eventlog verify: what in a log TensorBoard would drop, hide or stumble over. */
#include "base/file.h"
#include "base/json.h"
#include "eventlog/log_check.h"
#include "eventlog/record_file.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/output.h"
#include "eventlog/tool/output_format.h"
#include "eventlog/tool/scan.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PROGRESS_EVERY = 262144, DEPTH = 64 };

struct verify {
    struct scan *scan;
    struct output *out;
    struct buffer line;
    int json, printed; /* printed: findings so far, for the commas between them */
    struct log_check_totals totals;
    uint64_t files, runs;
};

/* ---- printing -------------------------------------------------------------------------------------------------- */

static void describe(struct buffer *b, const struct log_finding *f)
{
    buffer_append_text(b, log_finding_text(f->kind)->what);
    if (f->kind == LOG_LENGTH_CRC || f->kind == LOG_DATA_CRC)
        buffer_format(b, ": 0x%08llx, should be 0x%08llx", (unsigned long long)f->found,
                      (unsigned long long)f->wanted);
    else if (f->kind == LOG_TOO_LONG)
        buffer_format(b, ": %llu bytes", (unsigned long long)f->found);
    else if (f->kind >= LOG_PROTOBUF && f->kind <= LOG_UTF8)
        buffer_format(b, ", from byte %llu of its data on", (unsigned long long)f->found);
    if (f->lost)
        buffer_format(b, "; %llu bytes lost", (unsigned long long)f->lost);
}

static void print_text(struct verify *v, const char *path, const struct log_finding *f)
{
    const struct log_finding_text *text = log_finding_text(f->kind);
    struct buffer *b = &v->line;

    buffer_format(b, "%s:%llu: %s, %s: ", path, (unsigned long long)f->offset, log_level_word(text->level), text->word);
    if (f->tag) {
        json_span(b, f->tag, f->tag_length, 0);
        buffer_append_text(b, ": ");
    }
    describe(b, f);
    if (f->count > 1)
        buffer_format(b, " (%llu times)", (unsigned long long)f->count);
    buffer_format(b, "; TensorBoard's default loader %s; its Python loader %s\n", text->default_loader,
                  text->python_loader);
}

static void print_json(struct verify *v, const char *run, const char *path, const struct log_finding *f)
{
    const struct log_finding_text *text = log_finding_text(f->kind);
    struct buffer *b = &v->line;

    buffer_append_text(b, v->printed ? ",\n{\"run\":" : "\n{\"run\":");
    json_text(b, run);
    buffer_append_text(b, ",\"file\":");
    json_text(b, path);
    buffer_format(b, ",\"offset\":%llu,\"level\":\"%s\",\"kind\":\"%s\"", (unsigned long long)f->offset,
                  log_level_word(text->level), text->word);
    if (f->tag) {
        buffer_append_text(b, ",\"tag\":");
        json_span(b, f->tag, f->tag_length, 0);
    }
    buffer_format(b, ",\"count\":%llu,\"lost\":%llu,\"what\":", (unsigned long long)f->count,
                  (unsigned long long)f->lost);
    {
        struct buffer what = BUFFER_EMPTY;

        describe(&what, f);
        json_text(b, buffer_text(&what));
        b->failed |= what.failed;
        buffer_release(&what);
    }
    buffer_append_text(b, ",\"default_loader\":");
    json_text(b, text->default_loader);
    buffer_append_text(b, ",\"python_loader\":");
    json_text(b, text->python_loader);
    buffer_append_text(b, "}");
}

static int print(struct verify *v, const char *run, const char *path, const struct log_finding *f, struct error *e)
{
    log_progress_end(&v->scan->log);
    buffer_clear(&v->line);
    if (v->json)
        print_json(v, run, path, f);
    else
        print_text(v, path, f);
    v->printed = 1;
    if (!buffer_ok(&v->line))
        return error_set(e, ERR_NOMEM, "%s: out of memory for a finding", path);
    output_bytes(v->out, v->line.data, v->line.length);
    return OK;
}

static void print_totals(struct verify *v)
{
    struct buffer *b = &v->line;
    const struct log_check_totals *t = &v->totals;
    unsigned long long notes = t->by_level[LOG_NOTE], hidden = t->by_level[LOG_HIDDEN];
    unsigned long long damage = t->by_level[LOG_DAMAGE], lost = t->lost;

    buffer_clear(b);
    if (v->json)
        buffer_format(b, "],\"runs\":%llu,\"files\":%llu,\"records\":%llu,\"bytes\":%llu,\"damage\":%llu,"
                      "\"hidden\":%llu,\"notes\":%llu,\"lost\":%llu}\n", (unsigned long long)v->runs,
                      (unsigned long long)v->files, (unsigned long long)t->records, (unsigned long long)t->bytes,
                      damage, hidden, notes, lost);
    else
        buffer_format(b, "%llu files, %llu records, %llu bytes: %llu damage (%llu bytes lost), %llu hidden, %llu "
                      "notes\n", (unsigned long long)v->files, (unsigned long long)t->records,
                      (unsigned long long)t->bytes, damage, lost, hidden, notes);
    output_text(v->out, buffer_text(b));
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int check_file(struct verify *v, struct log_check *c, const char *run, const char *path, int *began,
                      struct error *e)
{
    struct scan *s = v->scan;
    struct record_file f;
    struct record record;
    uint64_t since = 0;
    int rc = record_file_open(&f, path, e);

    if (rc == OK) {
        rc = log_check_file(c, file_base_name(path), e);
        *began = 1;
    }
    while (rc == OK) {
        if ((rc = record_file_next(&f, &record, e)) == RECORD_DATA)
            rc = log_check_record(c, record.offset, record.data, record.length, e);
        else if (rc == RECORD_DAMAGE)
            rc = log_check_damage(c, &record, e);
        else
            break;
        if (++since % PROGRESS_EVERY == 0)
            scan_progress(s, run, record.offset);
    }
    if (rc == RECORD_MORE)
        rc = log_check_end(c, f.parser.offset, f.size, e);
    s->bytes_done += f.size;
    v->files += rc == OK;
    record_file_close(&f);
    return rc;
}

static int check_run(struct verify *v, const struct log_run *run, struct error *e)
{
    struct log_check *c;
    struct log_check_totals totals;
    const struct log_finding *findings;
    size_t count, *paths = NULL, opened = 0;
    int rc = log_check_new(&c, run->name, e);

    if (rc == OK && !(paths = calloc(run->file_count + 1, sizeof *paths)))
        rc = error_set(e, ERR_NOMEM, "run %s: out of memory for its files", run->name);
    for (size_t i = 0; rc == OK && i < run->file_count; i++) {
        int began = 0;

        paths[opened] = i;
        if ((rc = check_file(v, c, run->name, run->files[i], &began, e)) == ERR_IO) {
            v->scan->failed = 1;
            log_line(&v->scan->log, "%s", e->message);
            rc = OK;
        }
        opened += (size_t)began; /* the check numbers the files it was told of */
    }
    if (rc == OK)
        rc = log_check_finish(c, e);
    log_progress_end(&v->scan->log);
    if (rc == OK) {
        findings = log_check_findings(c, &count);
        for (size_t i = 0; rc == OK && i < count; i++)
            rc = print(v, run->name, run->files[paths[findings[i].file]], &findings[i], e);
        totals = log_check_totals(c);
        v->totals.records += totals.records;
        v->totals.bytes += totals.bytes;
        v->totals.lost += totals.lost;
        for (int i = 0; i < 3; i++)
            v->totals.by_level[i] += totals.by_level[i];
        v->runs++;
    }
    free(paths);
    log_check_free(c);
    return rc;
}

/* Directories with `tfevents` in their name, which Python's loader opens as files. Links are not followed: where they
 * lead to a run, it is read, and a loop ends nothing. What cannot be listed was told when the runs were. */
static int check_directories(struct verify *v, const char *path, int depth, struct error *e)
{
    DIR *dir = depth < DEPTH ? opendir(path) : NULL;
    struct dirent *entry;
    int rc = OK;

    if (!dir)
        return OK;
    while (rc == OK && (entry = readdir(dir))) {
        struct log_finding finding = { .kind = LOG_DIRECTORY_NAME, .count = 1 };
        char inner[4096];
        struct stat st;

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
            file_join(inner, sizeof inner, path, entry->d_name, NULL) != OK ||
            (entry->d_type == DT_UNKNOWN && (lstat(inner, &st) < 0 || !S_ISDIR(st.st_mode))))
            continue;
        if (strstr(entry->d_name, "tfevents")) {
            v->totals.by_level[LOG_HIDDEN]++;
            rc = print(v, inner, inner, &finding, e);
        }
        if (rc == OK)
            rc = check_directories(v, inner, depth + 1, e);
    }
    closedir(dir);
    return rc;
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

/* What can be found at all. */
static int list_kinds(struct verify *v, const struct output_options *to, struct error *e)
{
    struct buffer *b = &v->line;
    int rc = output_open(&v->out, to->path, to->force, e);

    if (rc != OK)
        return rc;
    if (v->json)
        buffer_append_text(b, "{\"type\":\"kinds\",\"version\":1,\"kinds\":[");
    for (int kind = 0; kind < LOG_KINDS; kind++) {
        const struct log_finding_text *t = log_finding_text((enum log_finding_kind)kind);
        const struct { const char *name, *text; } members[] = {
            { "level", log_level_word(t->level) }, { "what", t->what }, { "default_loader", t->default_loader },
            { "python_loader", t->python_loader },
        };

        if (!v->json) {
            buffer_format(b, "%s, %s: %s; TensorBoard's default loader %s; its Python loader %s\n",
                          log_level_word(t->level), t->word, t->what, t->default_loader, t->python_loader);
            continue;
        }
        buffer_format(b, "%s\n{\"kind\":\"%s\"", kind ? "," : "", t->word);
        for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
            buffer_format(b, ",\"%s\":", members[i].name);
            json_text(b, members[i].text);
        }
        buffer_append_byte(b, '}');
    }
    if (v->json)
        buffer_append_text(b, "]}\n");
    if (!buffer_ok(b))
        rc = error_set(e, ERR_NOMEM, "out of memory for the kinds of findings");
    output_text(v->out, buffer_text(b));
    buffer_release(b);
    if (rc == OK)
        return output_close(v->out, 1, e);
    output_close(v->out, 0, NULL);
    return rc;
}

int command_verify(int argc, char **argv)
{
    struct scan s = { .quiet_damage = 1 };
    struct verify v = { .scan = &s, .line = BUFFER_EMPTY };
    static const struct output_format formats[] = { { "text", "txt", 0 }, { "json", "json", 0 } };
    struct output_options to = { .format = NULL };
    int strict = 0, kinds = 0;
    struct option table[] = {
        { OPTION_FLAG, 0, "strict", &strict, .help = "notes count as findings, too" },
        { OPTION_FLAG, 0, "kinds", &kinds, .help = "only list what can be found; without PATH" },
        SCAN_RUN_OPTION(s),
        OUTPUT_OPTIONS(to, "text|json", "text", "Print a line for each finding, or JSON"),
    };
    const struct options options = {
        .program = "eventlog verify", .usage = "[OPTION...] PATH... | --kinds",
        .summary = "Checks both CRCs and the whole message of every record, names, wall times, and every value against "
                   "the rules of its plugin, and says what TensorBoard's two loaders make of what is wrong, as "
                   "FILE:OFFSET: LEVEL, KIND: what. Levels: 'damage' is a record at which a loader gives up, and which "
                   "'eventlog repair' takes out; 'hidden' is sound, but TensorBoard drops, hides or misreads it (the "
                   "last record not being whole is one: it may be just being written); 'note' is where the loaders "
                   "differ, or an older point gives way to a newer one, as after a restart. Damage is a line a record, "
                   "the others a line a file, kind and tag, at the first. Status 0: sound, but for notes; 1: findings, "
                   "or no event files; 2: usage, or something could not be read.",
        .examples = "  eventlog verify logs\n  eventlog verify --strict --json logs | jq '.findings[].kind'\n",
        .table = table, .count = sizeof table / sizeof *table,
    };
    struct error e = { 0 };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    log_init(&s.log, options.program, 2);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK && !count == !kinds)
        rc = error_set(&e, ERR_ARG, "%s 'eventlog verify --help' tells more", kinds ? "--kinds goes without a log;"
                                                                                    : "which log?");
    if (rc == OK)
        rc = output_format_settle(&to, formats, sizeof formats / sizeof *formats, "text", &e);
    v.json = rc == OK && !strcmp(to.format, "json");
    if (rc == OK && kinds && (rc = list_kinds(&v, &to, &e)) == OK)
        return EXIT_DONE;
    if (rc != OK)
        return scan_fail(&s, &e);
    if ((status = scan_open(&s, options.program, argv + 1, (size_t)count)) != EXIT_DONE)
        return status;
    if ((rc = output_open(&v.out, to.path, to.force, &e)) == OK) {
        if (v.json)
            output_text(v.out, "{\"type\":\"verify\",\"version\":1,\"findings\":[");
        for (int i = 1; rc == OK && !s.runs.patterns.count && i <= count; i++)
            rc = check_directories(&v, argv[i], 0, &e);
        for (size_t i = 0; rc == OK && i < s.directory.count; i++)
            if (scan_run_wanted(&s, s.directory.runs[i].name))
                rc = check_run(&v, &s.directory.runs[i], &e);
        print_totals(&v);
        s.damaged = v.totals.by_level[LOG_DAMAGE] + v.totals.by_level[LOG_HIDDEN] +
                    (strict ? v.totals.by_level[LOG_NOTE] : 0);
        status = scan_status(&s, v.runs > 0);
        if (rc == OK)
            rc = output_close(v.out, 1, &e);
        else
            output_close(v.out, 0, NULL);
    }
    if (rc != OK)
        status = scan_fail(&s, &e);
    buffer_release(&v.line);
    scan_close(&s);
    return status;
}
