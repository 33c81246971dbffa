/* eventlog verify: reports what TensorBoard would drop, hide or stumble over in a log. */
#include "base/file.h"
#include "base/file_kind.h"
#include "base/human.h"
#include "base/json.h"
#include "base/text.h"
#include "eventlog/check/log_check.h"
#include "eventlog/format/log_name.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/report/report.h"
#include "eventlog/tool/scan.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH = 64 };

struct verify {
    struct scan *scan;
    struct output *out; /* lines of text; NULL: */
    struct report *report;
    struct buffer line, runs_json;
    struct log_check_totals totals;
    uint64_t files, runs;
};

/* ---- printing -------------------------------------------------------------------------------------------------- */

static void describe(struct buffer *b, const struct log_finding *f)
{
    char size[HUMAN_TEXT_MAX];

    buffer_append_text(b, log_finding_text(f->kind)->what);
    if (f->kind == LOG_LENGTH_CRC || f->kind == LOG_DATA_CRC)
        buffer_format(b, ": 0x%08llx, should be 0x%08llx", (unsigned long long)f->found, (unsigned long long)f->wanted);
    else if (f->kind == LOG_TOO_LONG)
        buffer_format(b, ": %s", human_bytes(f->found, size));
    else if (f->kind >= LOG_PROTOBUF && f->kind <= LOG_UTF8)
        buffer_format(b, ", from byte %llu of its data on", (unsigned long long)f->found);
    if (f->lost)
        buffer_format(b, "; %s lost", human_bytes(f->lost, size));
}

static const struct report_column columns[] = {
    { .key = "run" },
    { .key = "file" },
    { .key = "offset", .kind = REPORT_NUMBER },
    { .key = "level" },
    { .key = "kind" },
    { .key = "tag" },
    { .key = "count", .kind = REPORT_NUMBER },
    { .key = "lost", .kind = REPORT_BYTES, .if_any = 1 },
    { .key = "what" },
    { .key = "default_loader" },
    { .key = "python_loader" },
};
static const struct report_layout findings_layout = {
    .type = "verify",
    .rows = "findings",
    .columns = columns,
    .count = sizeof columns / sizeof *columns,
};

/* Prints a line, wrapped if a terminal is narrower. */
static void print_line(struct verify *v, const char *text)
{
    struct buffer b = BUFFER_EMPTY;

    text_append_wrapped(&b, text, 0, 4, (size_t)output_columns(v->out));
    buffer_append_byte(&b, '\n');
    output_bytes(v->out, buffer_text(&b), b.length);
    v->line.failed |= b.failed;
    buffer_release(&b);
}

static void print_finding(struct verify *v, const char *path, const struct log_finding *f)
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
    buffer_format(b, "; TensorBoard's default loader %s; its Python loader %s", text->default_loader,
                  text->python_loader);
    print_line(v, buffer_text(b));
}

static void add_finding(struct verify *v, const char *run, const char *path, const struct log_finding *f)
{
    const struct log_finding_text *text = log_finding_text(f->kind);
    struct report *r = v->report;

    report_word(r, run);
    report_word(r, path);
    report_count(r, f->offset);
    report_word(r, log_level_word(text->level));
    report_word(r, text->word);
    if (f->tag)
        report_text(r, f->tag, f->tag_length);
    else
        report_none(r);
    report_count(r, f->count);
    report_count(r, f->lost);
    describe(&v->line, f);
    report_text(r, buffer_text(&v->line), v->line.length);
    report_word(r, text->default_loader);
    report_word(r, text->python_loader);
}

static int print(struct verify *v, const char *run, const char *path, const struct log_finding *f, struct error *e)
{
    log_progress_end(&v->scan->log);
    buffer_clear(&v->line);
    if (v->report)
        add_finding(v, run, path, f);
    else
        print_finding(v, path, f);
    return buffer_ok(&v->line) ? OK : error_memory(e, path, "for a finding");
}

/* The figures of a run, or of all, as members of a JSON object. */
static void append_totals(struct buffer *b, uint64_t files, const struct log_check_totals *t)
{
    const struct {
        const char *key;
        uint64_t v;
    } members[] = {
        { "files", files },
        { "records", t->records },
        { "bytes", t->bytes },
        { "damage", t->by_level[LOG_DAMAGE] },
        { "hidden", t->by_level[LOG_HIDDEN] },
        { "notes", t->by_level[LOG_NOTE] },
        { "lost", t->lost },
    };

    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        buffer_format(b, "%s\"%s\":%llu", i ? "," : "", members[i].key, (unsigned long long)members[i].v);
}

static void print_totals(struct verify *v)
{
    const struct log_check_totals *t = &v->totals;
    char files[HUMAN_TEXT_MAX], records[HUMAN_TEXT_MAX], notes[HUMAN_TEXT_MAX], size[HUMAN_TEXT_MAX];
    char lost[HUMAN_TEXT_MAX];

    buffer_clear(&v->line);
    if (v->report) {
        buffer_append_text(&v->runs_json, v->runs ? "]" : "[]");
        append_totals(&v->line, v->files, t);
        report_member(v->report, "runs", buffer_text(&v->runs_json));
        report_totals(v->report, buffer_text(&v->line));
        return;
    }
    buffer_format(&v->line, "%s, %s, %s: %llu damage (%s lost), %llu hidden, %s", human_count(v->files, "file", files),
                  human_count(t->records, "record", records), human_bytes(t->bytes, size),
                  (unsigned long long)t->by_level[LOG_DAMAGE], human_bytes(t->lost, lost),
                  (unsigned long long)t->by_level[LOG_HIDDEN], human_count(t->by_level[LOG_NOTE], "note", notes));
    print_line(v, buffer_text(&v->line));
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int check_file(struct verify *v, struct log_check *c, const char *run, const char *path, int *began,
                      struct error *e)
{
    struct scan *s = v->scan;
    struct record_file f;
    struct record record;
    struct error other;
    char name[LOG_NAME_MAX];
    int rc = log_input_open(&s->input, path, &f, e);

    if (rc == OK && record_file_check(&f, &other) != OK)
        log_line(&s->log, "%s", other.message); /* and a finding */
    if (rc == OK) {
        scan_progress_file(s, path, f.size);
        rc = log_check_file(c, f.packed ? log_name_plain(name, path) : file_base_name(path), e);
        if (rc == OK && f.packed && file_kind_of(path) != FILE_KIND_UNKNOWN) /* a file, which TensorBoard opens, too */
            rc = log_check_compressed(c, e);
        *began = 1;
    }
    while (rc == OK) {
        if ((rc = record_file_next(&f, &record, e)) == RECORD_DATA)
            rc = log_check_record(c, record.offset, record.data, record.length, e);
        else if (rc == RECORD_DAMAGE)
            rc = log_check_damage(c, &record, e);
        else
            break;
        if (scan_progress_due(s))
            scan_progress(s, run, record.offset);
    }
    if (rc == RECORD_MORE)
        rc = log_check_end(c, f.parser.offset, f.size, e);
    scan_progress_end(s);
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
        rc = error_memory(e, run->name, "for its files");
    for (size_t i = 0; rc == OK && i < run->file_count; i++) {
        int began = 0;

        paths[opened] = i;
        if ((rc = check_file(v, c, run->name, run->files[i], &began, e)) == ERR_IO) {
            scan_unread(v->scan, run->files[i], e);
            rc = OK;
        }
        opened += (size_t)began; /* the check numbers its files in the order given */
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
        buffer_append_text(&v->runs_json, v->runs++ ? ",{\"run\":" : "[{\"run\":");
        json_text(&v->runs_json, run->name);
        buffer_append_byte(&v->runs_json, ',');
        append_totals(&v->runs_json, opened, &totals);
        buffer_append_byte(&v->runs_json, '}');
    }
    free(paths);
    log_check_free(c);
    return rc;
}

/* Reports directories with `tfevents` in their name, which Python's loader opens as files. Does not follow links, which
 * could loop; a run behind a link is checked as a run. Directories that cannot be listed were reported when the runs
 * were listed. */
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

/* Lines of text, or a report. */
static int open_output(struct verify *v, const struct report_layout *layout, const struct report_options *o,
                       struct error *e)
{
    return !strcmp(o->to.format, "text") ? output_open(&v->out, o->to.path, o->to.force, e)
                                         : report_open(&v->report, layout, o, e);
}

static int close_output(struct verify *v, int rc, int matched, struct error *e)
{
    if (rc == OK && (!buffer_ok(&v->line) || !buffer_ok(&v->runs_json)))
        rc = error_memory(e, NULL, "for a finding");
    return v->report ? report_finish(v->report, v->scan, rc, matched, e)
                     : gather_finish(v->scan, v->out, rc, matched, e);
}

/* --kinds: everything that can be found. */
static int list_kinds(struct verify *v, const struct report_options *o, struct error *e)
{
    static const struct report_column kind_columns[] = {
        { .key = "kind" },           { .key = "level" },         { .key = "what" },
        { .key = "default_loader" }, { .key = "python_loader" },
    };
    static const struct report_layout kinds_layout = {
        .type = "kinds", .rows = "kinds", .columns = kind_columns, .count = sizeof kind_columns / sizeof *kind_columns
    };
    int rc = open_output(v, &kinds_layout, o, e);

    if (rc != OK)
        return scan_fail(v->scan, e);
    for (int kind = 0; kind < LOG_KINDS; kind++) {
        const struct log_finding_text *t = log_finding_text((enum log_finding_kind)kind);
        const char *const cells[] = { t->word, log_level_word(t->level), t->what, t->default_loader, t->python_loader };

        for (size_t i = 0; v->report && i < sizeof cells / sizeof *cells; i++)
            report_word(v->report, cells[i]);
        buffer_clear(&v->line);
        buffer_format(&v->line, "%s, %s: %s; TensorBoard's default loader %s; its Python loader %s", cells[1], cells[0],
                      t->what, t->default_loader, t->python_loader);
        if (!v->report)
            print_line(v, buffer_text(&v->line));
    }
    if (v->report)
        report_total(v->report, "kinds", LOG_KINDS);
    return close_output(v, OK, 1, e);
}

static int verify(struct verify *v, const struct report_options *o, char *const *paths, size_t count, int strict,
                  struct error *e)
{
    struct scan *s = v->scan;
    int rc = open_output(v, &findings_layout, o, e);

    if (rc != OK)
        return scan_fail(s, e);
    for (size_t i = 0; rc == OK && !s->runs.patterns.count && i < count; i++)
        rc = check_directories(v, paths[i], 0, e);
    if (!v->report)
        scan_natural_order(&s->directory);
    for (const struct log_run *run = NULL; rc == OK && (run = scan_next_run(s, run));)
        rc = check_run(v, run, e);
    print_totals(v);
    s->damaged = v->totals.by_level[LOG_DAMAGE] + v->totals.by_level[LOG_HIDDEN] +
                 (strict ? v->totals.by_level[LOG_NOTE] : 0);
    return close_output(v, rc, v->runs > 0, e);
}

int command_verify(int argc, char **argv)
{
    static const struct output_format formats[] = { REPORT_FORMATS };
    struct report_options o = { .sort = NULL };
    struct scan s = { .quiet_damage = 1 };
    struct verify v = { .scan = &s, .line = BUFFER_EMPTY, .runs_json = BUFFER_EMPTY };
    int strict = 0, kinds = 0;
    struct option table[] = {
        { OPTION_FLAG, 0, "strict", &strict, .help = "Count notes as findings" },
        { OPTION_FLAG, 0, "kinds", &kinds, .help = "List all kinds of findings; takes no PATH" },
        SCAN_RUN_OPTION(s),
        OUTPUT_OPTIONS(o.to, REPORT_WORDS, "text", "Print a line, a row or an object for each finding"),
    };
    const struct options options = {
        .program = "eventlog verify",
        .usage = "[OPTION...] PATH... | --kinds",
        .summary = "Check both CRCs and the whole message of every record, the names of runs and files, wall times, "
                   "and every value against the rules of its plugin. Each finding is FILE:OFFSET: LEVEL, KIND: what is "
                   "wrong, and what TensorBoard's two loaders do about it. LEVEL is 'damage' for a record at which a "
                   "loader gives up and which 'eventlog repair' removes; 'hidden' for sound data that TensorBoard "
                   "drops, hides or misreads, such as an incomplete last record that is still being written; 'note' "
                   "where the loaders differ, or where a newer point replaces an older one, as after a restart. Damage "
                   "is reported for each record, other findings once for each file, kind and tag. Exit status: 0 "
                   "sound, apart from notes; 1 findings, or no event files; 2 usage, or something could not be read.",
        .examples = "  eventlog verify logs\n  eventlog verify --strict --json logs | jq '.findings[].kind'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&s, &options, argc, argv, &count, &e);

    if (rc == OK && !count == !kinds)
        rc = error_set(&e, ERR_ARG,
                       kinds ? "--kinds takes no PATH" : "no PATH given; run 'eventlog verify --help' for help");
    if (rc == OK)
        rc = report_settle(&o, formats, sizeof formats / sizeof *formats, "text", &e);
    if (rc != OK)
        return scan_leave(&s, rc, &e);
    if (kinds)
        status = list_kinds(&v, &o, &e);
    else if ((status = scan_open(&s, argv + 1, (size_t)count)) == EXIT_DONE)
        status = verify(&v, &o, argv + 1, (size_t)count, strict, &e);
    buffer_release(&v.line);
    buffer_release(&v.runs_json);
    scan_close(&s);
    return status;
}
