#include "eventlog/tool/export/export_options.h"

#include "base/program/options.h"
#include "eventlog/tool/time_option.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char examples[] = "  eventlog export logs -o points.csv\n"
                               "  eventlog export logs --format=wide --tag='loss*' --run='*/eval' --columns=first\n"
                               "  eventlog export logs --format=jsonl --order=file | jq -c 'select(.step > 100)'\n"
                               "  eventlog export logs --format=reduce --run='seed-*' --ops=mean,std -o mean.csv\n"
                               "  eventlog export logs --format=prom -f -o /var/lib/node_exporter/training.prom\n";

#define FORMAT_ADDRESS(name) &format_##name,
static const struct export_format *const formats[] = { EXPORT_FORMATS(FORMAT_ADDRESS) };

enum { TEXT_MAX = 1024, PREFIX_MAX = 256, ROWS_MAX = 64 };

/* The options of all formats: of several first, then those that one alone has. */
struct table {
    struct option rows[ROWS_MAX];
    const struct export_format *owner[ROWS_MAX]; /* NULL: of several */
    size_t count;
    char choices[TEXT_MAX], help[TEXT_MAX], prefixed[ROWS_MAX][PREFIX_MAX]; /* texts made of the table of formats */
};

static int takes(const struct export_format *f, const struct table *t, size_t row)
{
    return t->owner[row] ? t->owner[row] == f : output_format_in_words(f->takes, t->rows[row].name);
}

static void append(char *out, size_t size, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list list;

    va_start(list, format);
    vsnprintf(out + used, size - used, format, list);
    va_end(list);
}

/* The names of the formats that take an option, `between` them, into out; "" where all do. */
static void name_takers(const struct table *t, size_t row, const char *between, char *out, size_t size)
{
    *out = '\0';
    for (size_t i = 0; i < EXPORT_FORMAT_COUNT; i++)
        if (takes(formats[i], t, row))
            append(out, size, "%s%s", *out ? between : "", formats[i]->name);
}

/* Options that only some formats know are refused, not ignored, with other formats. */
static int check(const struct table *t, struct export_options *a, struct error *e)
{
    const struct export_format *f = a->format;
    char names[TEXT_MAX];

    if (f->lacks)
        return error_set(e, ERR_ARG, "--format=%s: this program was built without %s", f->name, f->lacks);
    for (size_t i = 0; i < t->count; i++) {
        name_takers(t, i, " ", names, sizeof names);
        if (t->rows[i].given && *names && !takes(f, t, i))
            return error_set(e, ERR_ARG, "--%s does not apply to --format=%s, only to: %s", t->rows[i].name, f->name,
                             names);
    }
    if (!strcmp(a->nonfinite, "null") && !output_format_in_words(f->takes, "nonfinite=null"))
        return error_set(e, ERR_ARG, "--nonfinite=null applies only to the JSON formats");
    if (!strcmp(a->nonfinite, "keep") && !output_format_in_words(f->takes, "nonfinite=keep"))
        return error_set(e, ERR_ARG, "--nonfinite=keep applies only to --format=reduce; other formats keep all values");
    if (!strcmp(a->order, "file") && f->by_step)
        return error_set(e, ERR_ARG, "--order=file does not apply to --format=%s, whose rows are always sorted by step",
                         f->name);
    if (!strcmp(a->order, "file") && !output_format_in_words(f->takes, "order=file"))
        return error_set(e, ERR_ARG, "--order does not apply to --format=%s", f->name);
    if ((f->check && f->check(a, a->format_own, e) != OK) || point_range_settle(&a->range, e) != OK)
        return ERR_ARG;
    a->duplicate = a->duplicate ? a->duplicate : "last";
    a->columns = a->columns ? a->columns : "name";
    return OK;
}

/* Derives settings from the options, then checks that they fit together. path: the first one. */
static int complete(const struct table *t, struct export_options *a, const char *path, struct error *e)
{
    struct output_format known[EXPORT_FORMAT_COUNT];

    for (size_t i = 0; i < EXPORT_FORMAT_COUNT; i++)
        known[i] = (struct output_format){ formats[i]->name, formats[i]->extensions, formats[i]->binary };
    if (output_format_flag(&a->to, a->media != NULL, "media", e) != OK ||
        output_format_settle(&a->to, known, EXPORT_FORMAT_COUNT, "csv", e) != OK)
        return ERR_ARG;
    if (a->gzip_level && !output_path_is_packed(a->to.path))
        return error_set(e, ERR_ARG, "--gzip-level applies only to -o FILE.gz");
    a->log = path;
    a->tsv |= output_format_extension_is(a->to.path, "tsv");
    for (size_t i = 0; i < EXPORT_FORMAT_COUNT; i++)
        if (!strcmp(formats[i]->name, a->to.format)) {
            a->format = formats[i];
            a->format_own = a->own[i].bytes;
        }
    return check(t, a, e);
}

/* "csv|wide|json", and "Write csv, json: a row for each point; wide: ...". */
static void describe_formats(struct table *t)
{
    append(t->help, TEXT_MAX, "Write");
    for (size_t i = 0; i < EXPORT_FORMAT_COUNT; i++) {
        const char *text = formats[i]->help;
        int told = 0;

        if (!text)
            continue;
        append(t->choices, TEXT_MAX, "%s%s", i ? "|" : "", formats[i]->name);
        for (size_t k = 0; k < i; k++)
            told |= formats[k]->help && !strcmp(formats[k]->help, text);
        for (size_t k = i; k < EXPORT_FORMAT_COUNT && !told; k++)
            if (formats[k]->help && !strcmp(formats[k]->help, text))
                append(t->help, TEXT_MAX, "%s %s", k > i ? "," : i ? ";" : "", formats[k]->name);
        append(t->help, TEXT_MAX, told ? "" : ": %s", text);
    }
    append(t->help, TEXT_MAX, " (default: by the extension of FILE, else csv)");
    t->rows[0].choices = t->choices;
    t->rows[0].help = t->help;
}

/* Makes the table of `common` rows, the first of which is --format, and of what each format has alone. Where the help
 * of one begins with ": ", the formats that take it are named before. */
static void make_table(struct table *t, const struct option *common, size_t count, struct export_options *a)
{
    memset(t, 0, sizeof *t);
    memcpy(t->rows, common, count * sizeof *common);
    t->count = count;
    describe_formats(t);
    for (size_t i = 0; i < EXPORT_FORMAT_COUNT; i++)
        for (size_t n = formats[i]->rows ? formats[i]->rows(t->rows + t->count, a->own[i].bytes) : 0; n; n--)
            t->owner[t->count++] = formats[i];
    for (size_t i = 0; i < t->count; i++)
        if (!strncmp(t->rows[i].help, ": ", 2)) {
            name_takers(t, i, ", ", t->prefixed[i], PREFIX_MAX);
            append(t->prefixed[i], PREFIX_MAX, "%s", t->rows[i].help);
            t->rows[i].help = t->prefixed[i];
        }
}

int export_options_parse(struct export_options *a, struct scan *s, int argc, char **argv, int *paths, struct error *e)
{
    const struct option common[] = {
        OUTPUT_OPTIONS(a->to, NULL, "", ""), /* --format: made of the table of formats */
        { OPTION_TEXT, 0, "media", &a->media, "DIR",
          .help =
              "Extract images, audio clips, texts, arrays and payloads as files DIR/RUN/TAG/STEP/INDEX.EXT instead of "
              "exporting points, and print a list of them" },
        { OPTION_TEXT, 0, "kinds", &a->kinds, "LIST",
          .help = "With --media: extract only these kinds, a list of images, audio, text, tensors and payloads, which "
                  "are what other "
                  "plugins keep in bytes (default: all)" },
        SCAN_RUN_OPTION(*s),
        SCAN_TAG_OPTION(*s),
        POINT_RANGE_OPTIONS(a->range),
        SCAN_VIEW_OPTION(a->view),
        { OPTION_CHOICE, 0, "order", &a->order,
          .help = "Sort by run, tag and step, or keep the order of the files, which needs little memory (default step)",
          .choices = "step|file" },
        { OPTION_CHOICE, 0, "dup", &a->duplicate,
          .help = ": Choose which of several points at the same step to use (default last; reduce: error)",
          .choices = "last|first|mean|error" },
        { OPTION_CHOICE, 0, "float32", &a->float32,
          .help = "Write float32 values with all the digits of a double, or with the few digits that a float32 needs "
                  "(default exact)",
          .choices = "exact|short" },
        { OPTION_CHOICE, 0, "nonfinite", &a->nonfinite,
          .help =
              "Write NaN and infinities as text or as null (JSON only), or leave these points out (default string). "
              "reduce leaves out NaN; with keep, the figures of values with a NaN are NaN",
          .choices = "string|null|drop|keep" },
        { OPTION_CHOICE, 0, "step", &a->step,
          .help = ": Write steps as text, for readers that round numbers beyond 2^53 (default number)",
          .choices = "number|string" },
        TIME_OPTION(a->time, "; with wide, add a column for them"),
        { OPTION_FLAG, 0, "tsv", &a->tsv,
          .help = ": Separate fields with tabs and escape with backslashes instead of quotes" },
        { OPTION_FLAG, 0, "crlf", &a->crlf, .help = ": End lines with CR LF" },
        { OPTION_CHOICE, 0, "columns", &a->columns,
          .help = ": Order tags by name or by first appearance (default name; reduce: first)",
          .choices = "name|first" },
        { OPTION_INT, 0, "gzip-level", &a->gzip_level, "N",
          .help = "Compress FILE.gz quickly, by level 1, to small, by level 9 (default 1)", .minimum = 1,
          .maximum = OUTPUT_GZIP_LEVEL_MAX },
    };
    struct table t;
    struct options options = {
        .program = "eventlog export",
        .usage = "[OPTION...] PATH...",
        .summary = "Write the scalar points of event files in another format, every number exactly. Damaged records "
                   "are skipped and reported. Exit status: 0 done; 1 nothing matched, or damage; 2 usage or I/O.",
        .examples = examples,
        .table = t.rows,
        .least = 1,
        .wanted = "no PATH given;",
    };
    int rc;

    *a = (struct export_options){
        .view = "all",
        .order = "step",
        .float32 = "exact",
        .nonfinite = "string",
        .step = "number",
        .kinds = "images,audio,text,tensors,payloads",
        .range = POINT_RANGE_ALL,
    };
    make_table(&t, common, sizeof common / sizeof *common, a);
    options.count = t.count;
    if ((rc = scan_begin(s, &options, argc, argv, paths, e)) != OPTIONS_RUN)
        return rc;
    return complete(&t, a, argv[1], e);
}
