#include "eventlog/tool/export/export_options.h"

#include "base/program/options.h"
#include "eventlog/tool/time_option.h"

#include <ctype.h>
#include <string.h>

static const char examples[] =
    "  eventlog export logs -o points.csv\n"
    "  eventlog export logs --format=wide --tag='loss*' --run='*/eval' --columns=first\n"
    "  eventlog export logs --format=jsonl --order=file | jq -c 'select(.step > 100)'\n"
    "  eventlog export logs --format=reduce --run='seed-*' --ops=mean,std -o mean.csv\n"
    "  eventlog export logs --format=prom -f -o /var/lib/node_exporter/training.prom\n";

/* Options that only some formats know are refused with the others, not ignored. */
static const struct {
    const char *option, *formats;
} belongs[] = {
    { "tsv", "csv wide histograms" },
    { "crlf", "csv wide histograms" },
    { "kinds", "media" },
    { "view", "csv wide json jsonl jsonl-series tb-csv tb-json reduce prom sqlite" },
    { "nonfinite", "csv wide json jsonl jsonl-series tb-csv tb-json reduce prom sqlite" },
    { "columns", "wide reduce" },
    { "no-run", "wide" },
    { "dup", "wide reduce" },
    { "wall-time", "wide" },
    { "step", "json jsonl" },
    { "time", "csv wide json jsonl histograms media" },
    { "multirun", "tb-json" },
    { "ops", "reduce" },
    { "min-runs", "reduce" },
    { "lax-tags", "reduce" },
    { "events", "reduce" },
    { "prom-prefix", "prom" },
    { "float32", "csv wide json jsonl jsonl-series tb-csv tb-json prom" },
};

/* 1 if the word stands in the list of words. */
static int in_list(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");

        if (length == n && !memcmp(at, word, n))
            return 1;
        at += length;
    }
    return 0;
}

static int check_prom(const struct export_options *a, struct error *e)
{
    const char *p = a->prom_prefix;

    size_t n = a->to.path ? strlen(a->to.path) : 0;

    if (n < 6 || strcmp(a->to.path + n - 5, ".prom") != 0)
        return error_set(e, ERR_ARG, "--format=prom needs -o FILE.prom: Prometheus' textfile collector reads only "
                         "files of that name, at any time");
    for (; *p; p++)
        if (!(*p == '_' || (isascii((unsigned char)*p) && isalnum((unsigned char)*p))))
            break;
    if (*p || p == a->prom_prefix || isdigit((unsigned char)*a->prom_prefix))
        return error_set(e, ERR_ARG, "--prom-prefix=%s: use letters, digits and '_', not beginning with a digit",
                         a->prom_prefix);
    return OK;
}

static int check(const struct options *o, struct export_options *a, struct error *e)
{
    for (size_t i = 0; i < sizeof belongs / sizeof *belongs; i++)
        if (options_given(o, belongs[i].option) && !in_list(belongs[i].formats, a->to.format))
            return error_set(e, ERR_ARG, "--%s does not apply to --format=%s, only to: %s", belongs[i].option,
                             a->to.format, belongs[i].formats);
    if (!strcmp(a->nonfinite, "null") && !in_list("json jsonl jsonl-series tb-json", a->to.format))
        return error_set(e, ERR_ARG, "--nonfinite=null applies only to the JSON formats");
    if (!strcmp(a->order, "file") && in_list("wide reduce", a->to.format))
        return error_set(e, ERR_ARG, "--order=file does not apply to --format=%s, whose rows are always sorted by step",
                         a->to.format);
    if (!strcmp(a->order, "file") && in_list("prom sqlite media", a->to.format))
        return error_set(e, ERR_ARG, "--order does not apply to --format=%s", a->to.format);
    if (!strcmp(a->to.format, "sqlite") && !a->to.path)
        return error_set(e, ERR_ARG, "--format=sqlite needs -o FILE: a database cannot be streamed");
    if (a->events && !a->to.path)
        return error_set(e, ERR_ARG, "--events needs -o DIR/; the runs are DIR-mean/, DIR-std/ and so on");
    if (point_range_settle(&a->range, e) != OK)
        return ERR_ARG;
    return strcmp(a->to.format, "prom") ? OK : check_prom(a, e);
}

/* What follows from what was given, then whether it goes together. path: the first one. */
static int complete(const struct options *o, struct export_options *a, const char *path, struct error *e)
{
    /* Those that a file's extension may mean come before others with that extension. */
    static const struct output_format formats[] = {
        { "csv", "csv tsv", 0 },   { "json", "json", 0 },     { "jsonl", "jsonl ndjson", 0 },
        { "prom", "prom", 1 },     { "sqlite", "sqlite sqlite3 db", 1 },
        { "wide", "csv tsv", 0 },  { "tb-csv", "csv", 0 },    { "tb-json", "json", 0 },
        { "reduce", "csv", 0 },    { "media", "csv", 0 },     { "jsonl-series", "jsonl ndjson", 0 },
        { "histograms", "csv tsv", 0 },
    };

    if (output_format_flag(&a->to, a->media != NULL, "media", e) != OK ||
        output_format_settle(&a->to, formats, sizeof formats / sizeof *formats, "csv", e) != OK)
        return ERR_ARG;
    a->log = path;
    a->wall_time |= a->time && !strcmp(a->to.format, "wide");
    a->tsv |= output_format_extension_is(a->to.path, "tsv");
    if (!strcmp(a->to.format, "reduce")) {
        a->duplicate = options_given(o, "dup") ? a->duplicate : "error";
        a->columns = options_given(o, "columns") ? a->columns : "first";
    }
    return check(o, a, e);
}

int export_options_parse(struct export_options *a, struct scan *s, int argc, char **argv, int *paths,
                         struct error *e)
{
    struct option table[] = {
        OUTPUT_OPTIONS(a->to, "csv|wide|json|jsonl|jsonl-series|tb-csv|tb-json|reduce|prom|sqlite|histograms", "csv",
                       "Write csv, json, jsonl: a row or object for each point; wide: a row for each step with a "
                       "column for each tag; jsonl-series: an object for each series; tb-csv, tb-json: what "
                       "TensorBoard's own download of a series gives, with -o DIR/ a file for each series; reduce: "
                       "mean and more over runs; prom: newest values for Prometheus; sqlite: a database; histograms: "
                       "a row for each bucket"),
        { OPTION_TEXT, 0, "media", &a->media, "DIR", .help = "Extract images, audio clips, texts and arrays as files "
          "DIR/RUN/TAG/STEP/INDEX.EXT instead of exporting points, and print a list of them" },
        { OPTION_TEXT, 0, "kinds", &a->kinds, "LIST", .help = "With --media: extract only these kinds, a list of "
          "images, audio, text and tensors (default: all)" },
        SCAN_RUN_OPTION(*s), SCAN_TAG_OPTION(*s),
        POINT_RANGE_OPTIONS(a->range),
        SCAN_VIEW_OPTION(a->view),
        { OPTION_CHOICE, 0, "order", &a->order, .help = "Sort by run, tag and step, or keep the order of the files, "
          "which needs little memory (default step)", .choices = "step|file" },
        { OPTION_CHOICE, 0, "dup", &a->duplicate, .help = "wide, reduce: Choose which of several points at a step is "
          "used (default last; reduce: error)", .choices = "last|first|mean|error" },
        { OPTION_CHOICE, 0, "float32", &a->float32, .help = "Write float32 values as the double that they equal, or "
          "with the few digits that a float32 needs (default exact)", .choices = "exact|short" },
        { OPTION_CHOICE, 0, "nonfinite", &a->nonfinite, .help = "Write NaN and infinities as text or as null (JSON "
          "only), or leave these points out (default string)", .choices = "string|null|drop" },
        { OPTION_CHOICE, 0, "step", &a->step, .help = "json, jsonl: Write steps as text, for readers that round "
          "numbers beyond 2^53 (default number)", .choices = "number|string" },
        TIME_OPTION(a->time, "; with wide, add a column for them"),
        { OPTION_FLAG, 0, "tsv", &a->tsv, .help = "csv, wide, histograms: Separate fields by tabs and escape with "
          "backslashes instead of quotes" },
        { OPTION_FLAG, 0, "crlf", &a->crlf, .help = "csv, wide, histograms: End lines with CR LF" },
        { OPTION_CHOICE, 0, "columns", &a->columns, .help = "wide, reduce: Order tags by name or by first appearance "
          "(default name; reduce: first)", .choices = "name|first" },
        { OPTION_FLAG, 0, "no-run", &a->no_run, .help = "wide: Leave out the column 'run'; allowed for a single run" },
        { OPTION_FLAG, 0, "wall-time", &a->wall_time, .help = "wide: Add a column with the latest wall time of the "
          "row" },
        { OPTION_FLAG, 0, "multirun", &a->multirun, .help = "tb-json: Write one tag of all runs as an object" },
        { OPTION_TEXT, 0, "ops", &a->ops, "LIST", .help = "reduce: Compute these figures, a list of mean, std, min, "
          "max, median, sum, count and var (default mean,std)" },
        { OPTION_INT, 0, "min-runs", &a->min_runs, "N", .help = "reduce: Write the steps that at least N runs have "
          "(default: as many as have the tag)", .minimum = 1, .maximum = 1e9 },
        { OPTION_FLAG, 0, "lax-tags", &a->lax_tags, .help = "reduce: Accept tags that some runs lack" },
        { OPTION_FLAG, 0, "events", &a->events, .help = "reduce: Write event files to DIR-mean/, DIR-std/ and so on; "
          "needs -o DIR/" },
        { OPTION_TEXT, 0, "prom-prefix", &a->prom_prefix, "NAME", .help = "prom: Begin the names of metrics with NAME "
          "(default tb)" },
    };
    const struct options options = {
        .program = "eventlog export", .usage = "[OPTION...] PATH...",
        .summary = "Write the scalar points of event files in another format, every number exactly. Damaged records "
                   "are skipped and reported. Exit status: 0 done; 1 nothing matched, or damage; 2 usage or I/O.",
        .examples = examples, .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .wanted = "no PATH given;",
    };
    int rc;

    *a = (struct export_options){
        .view = "all", .duplicate = "last", .order = "step", .float32 = "exact", .columns = "name",
        .nonfinite = "string", .step = "number", .prom_prefix = "tb", .ops = "mean,std",
        .kinds = "images,audio,text,tensors", .range = POINT_RANGE_ALL,
    };
    if ((rc = scan_begin(s, &options, argc, argv, paths, e)) != OPTIONS_RUN)
        return rc;
    return complete(&options, a, argv[1], e);
}
