/* eventlog write: writes points, texts and images from the command line, CSV or JSON lines to a log. */
#include "base/array.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/program/options.h"
#include "eventlog/eventlog.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/read/point_input.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/scan.h"
#include "eventlog/write/event_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- chart option ------------------------------------------------------------------------------------------------ */

/* The charts of TensorBoard's Custom Scalars page from options '[CATEGORY/]TITLE=TAGS'. */

enum { CHART_OPTIONS_MOST = OPTION_LIST_MOST };

struct chart_layout {
    struct eventlog_category categories[CHART_OPTIONS_MOST]; /* count of them */
    size_t count;
    /* private: what they point to */
    struct eventlog_chart charts[CHART_OPTIONS_MOST];
    const char *tags[CHART_OPTIONS_MOST];
    char *words[CHART_OPTIONS_MOST];
    size_t word_count;
};

struct words {
    const char *category, *title, *tags; /* tags: NULL once it is placed */
};

/* Splits an option in a copy, which the layout keeps. */
static int split(struct chart_layout *layout, const char *option, struct words *out, struct error *e)
{
    char *text = strdup(option), *tags, *title;

    if (!text)
        return error_memory(e, NULL, "for a chart");
    layout->words[layout->word_count++] = text;
    if (!(tags = strchr(text, '=')) || !tags[1])
        return error_set(e, ERR_ARG, "--chart: '%.80s' is not [CATEGORY/]TITLE=TAGS", option);
    *tags++ = '\0';
    if ((title = strchr(text, '/')))
        *title++ = '\0';
    *out = (struct words){ title ? text : "charts", title ? title : text, tags };
    if (!*out->category || !*out->title)
        return error_set(e, ERR_ARG, "--chart: '%.80s' has no title", option);
    return OK;
}

/* Categories, charts and tags are in the order in which they were first named; naming a chart again adds tags to it.
 * OK, ERR_ARG or ERR_NOMEM; release it also after an error. The struct points into itself: do not copy it. */
static int chart_layout_parse(struct chart_layout *layout, const struct option_list *list, struct error *e)
{
    struct words words[CHART_OPTIONS_MOST];
    size_t charts = 0, tags = 0;

    *layout = (struct chart_layout){ .count = 0 };
    for (size_t i = 0; i < list->count; i++)
        if (split(layout, list->items[i], &words[i], e) != OK)
            return e->code;
    for (size_t i = 0; i < list->count; i++) {
        struct eventlog_category *category = &layout->categories[layout->count];

        if (!words[i].tags)
            continue;
        *category = (struct eventlog_category){ .title = words[i].category, .charts = layout->charts + charts };
        layout->count++;
        for (size_t k = i; k < list->count; k++) {
            struct eventlog_chart *chart = &layout->charts[charts];

            if (!words[k].tags || strcmp(words[k].category, words[i].category) != 0)
                continue;
            *chart = (struct eventlog_chart){ .title = words[k].title, .tags = layout->tags + tags };
            charts++;
            category->chart_count++;
            for (size_t n = k; n < list->count; n++)
                if (words[n].tags && !strcmp(words[n].category, words[k].category) &&
                    !strcmp(words[n].title, words[k].title)) {
                    layout->tags[tags++] = words[n].tags;
                    chart->tag_count++;
                    words[n].tags = NULL;
                }
        }
    }
    return OK;
}

static void chart_layout_release(struct chart_layout *layout)
{
    for (size_t i = 0; i < layout->word_count; i++)
        free(layout->words[i]);
    layout->word_count = 0;
}

/* ---- write ------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 64 * 1024, ERROR_LINES = 20 };
static const size_t LINE_MOST = (size_t)64 << 20, IMAGE_MOST = (size_t)256 << 20;

struct run_writer {
    struct eventlog_writer *writer;
    int waiting; /* its number is in write.waiting */
};

struct write {
    struct scan scan; /* its log only */
    const char *directory;
    int fresh, doubles, keep_going, json;
    struct tag_index runs;                            /* items: struct run_writer */
    size_t *waiting, waiting_count, waiting_capacity; /* runs written to since the last flush */
    uint64_t points, texts, images, charts, bad_lines, passed_over;
    /* of the command line's values */
    int64_t step;
    double wall_time;
};

/* ---- writers --------------------------------------------------------------------------------------------------- */

static int write_take(struct error *e, const struct eventlog_error *from)
{
    e->code = from->code;
    e->system = from->system;
    memcpy(e->message, from->message, sizeof e->message);
    return from->code;
}

_Static_assert(sizeof(((struct eventlog_error *)0)->message) == sizeof(((struct error *)0)->message),
               "eventlog_error is the public twin of error");

/* The directory of a run must be below that of the log. */
static int run_allowed(const char *run)
{
    if (*run == '/' || !*run)
        return 0;
    for (const char *p = run; *p; p += strcspn(p, "/"), p += *p == '/')
        if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || !p[2]))
            return 0;
    return 1;
}

/* Appends to the run's newest file, or begins one if there is none, another process is writing it, or it is damaged. */
static int open_run(struct write *w, const char *run, struct eventlog_writer **out, struct error *e)
{
    struct eventlog_writer_options options = { .source = "eventlog write" };
    struct eventlog_error error = { 0 };
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, w->directory, strcmp(run, ".") != 0 ? run : "", e);

    if (rc != OK)
        return rc;
    options.resume = w->fresh ? EVENTLOG_RESUME_NEW : EVENTLOG_RESUME_APPEND;
    rc = eventlog_writer_open(out, path, &options, &error);
    if (rc != EVENTLOG_OK && !w->fresh && (error.system == EBUSY || rc == EVENTLOG_ERROR_CORRUPT)) {
        log_line(&w->scan.log, "%s; writing to a new file beside it", error.message);
        options.resume = EVENTLOG_RESUME_NEW;
        rc = eventlog_writer_open(out, path, &options, &error);
    }
    if (rc != EVENTLOG_OK)
        return write_take(e, &error);
    event_writer_exact_times(*out);
    return OK;
}

static struct run_writer *writer_at(const struct write *w, size_t number)
{
    return (struct run_writer *)w->runs.items + number;
}

static int new_run(struct write *w, const char *run, size_t *number, struct error *e)
{
    struct eventlog_writer *writer;
    int rc;

    if (!run_allowed(run))
        return error_set(e, ERR_ARG, "run '%.80s' is not below the log directory", run);
    if ((rc = open_run(w, run, &writer, e)) != OK)
        return rc;
    if ((*number = tag_index_add(&w->runs, run, strlen(run))) == TAG_INDEX_NONE) {
        eventlog_writer_close(writer, NULL);
        return error_memory(e, NULL, "for %zu runs", w->runs.count + 1);
    }
    writer_at(w, *number)->writer = writer;
    return OK;
}

/* For something to be written now. */
static int writer_of(struct write *w, const char *run, struct eventlog_writer **out, struct error *e)
{
    size_t number = tag_index_find(&w->runs, run, strlen(run));
    int rc;

    if (number == TAG_INDEX_NONE && (rc = new_run(w, run, &number, e)) != OK)
        return rc;
    if (!ARRAY_ROOM(w->waiting, w->waiting_capacity, w->waiting_count + 1))
        return error_memory(e, NULL, "for %zu runs", w->runs.count);
    if (!writer_at(w, number)->waiting)
        w->waiting[w->waiting_count++] = number;
    writer_at(w, number)->waiting = 1;
    *out = writer_at(w, number)->writer;
    return OK;
}

/* Those that were written to: asking 10,000 others at each chunk of a stream takes longer than all else. */
static int flush_written(struct write *w, struct error *e)
{
    struct eventlog_error error;

    for (; w->waiting_count; w->waiting_count--) {
        struct run_writer *run = writer_at(w, w->waiting[w->waiting_count - 1]);

        if (eventlog_writer_flush(run->writer, &error) != EVENTLOG_OK)
            return write_take(e, &error);
        run->waiting = 0;
    }
    return OK;
}

static int close_all(struct write *w, struct error *e)
{
    struct eventlog_error error;
    int rc = OK;

    for (size_t i = 0; i < w->runs.count; i++)
        if (eventlog_writer_close(writer_at(w, i)->writer, &error) != EVENTLOG_OK && rc == OK)
            rc = write_take(e, &error);
    free(w->waiting);
    return rc;
}

/* ---- points ---------------------------------------------------------------------------------------------------- */

/* As a tensor DT_DOUBLE of rank 0, which TensorBoard's default loader does not show. */
static int write_double(struct eventlog_writer *writer, const struct point_input_point *p, double wall_time,
                        struct eventlog_error *error)
{
    const struct event_writer_value value = {
        .tag = p->tag, .step = p->step, .wall_time = wall_time, .plugin = "scalars"
    };
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    size_t tensor = event_writer_value_tensor(&member, EVENTLOG_DTYPE_DOUBLE, NULL, 0);
    uint8_t bytes[8];

    put_le64(bytes, double_bits(p->value));
    wire_bytes(&member, TENSOR_FIELD_CONTENT, bytes, sizeof bytes);
    wire_end(&member, tensor);
    return event_writer_finish(writer, OK, &value, &member, &e, error);
}

static int write_visit(void *context, const struct point_input_point *p, struct error *e)
{
    struct write *w = context;
    struct eventlog_writer *writer;
    struct eventlog_error error;
    double wall_time = p->has_wall_time ? p->wall_time : clock_wall();
    int rc = writer_of(w, p->run ? p->run : ".", &writer, e);

    if (rc != OK)
        return rc;
    if (!isfinite(wall_time)) /* TensorBoard drops such a point, or the whole file */
        return error_set(e, ERR_ARG, "tag '%.80s' at step %lld: the wall time is not a finite number", p->tag,
                         (long long)p->step);
    if (!w->doubles && isfinite(p->value) && isinf((float)p->value))
        return error_set(e, ERR_ARG,
                         "tag '%.80s' at step %lld: %g is beyond a float32, which is what TensorBoard shows; use "
                         "--double to write it",
                         p->tag, (long long)p->step, p->value);
    rc = w->doubles ? write_double(writer, p, wall_time, &error)
                    : eventlog_writer_scalar(writer, p->tag, p->step, wall_time, (float)p->value, &error);
    w->points += rc == EVENTLOG_OK;
    return rc == EVENTLOG_OK ? OK : write_take(e, &error);
}

/* ---- streams --------------------------------------------------------------------------------------------------- */

struct stream {
    const char *name;
    struct point_input *input;
    struct buffer line; /* that has begun */
    uint64_t number;
};

/* OK, or the error that ends the stream. With --keep-going, errors in a line itself are skipped. */
static int line(struct write *w, struct stream *s, const char *text, size_t n, struct error *e)
{
    int rc = point_input_line(s->input, text, n, write_visit, w, e);

    if (rc == OK)
        return OK;
    error_prefix(e, "%s:%llu", s->name, (unsigned long long)s->number);
    if ((rc != ERR_CORRUPT && rc != ERR_ARG) || !w->keep_going || point_input_lost(s->input))
        return rc;
    if (w->bad_lines++ < ERROR_LINES)
        log_line(&w->scan.log, "%s", e->message);
    *e = (struct error){ 0 };
    return OK;
}

static int chunk(struct write *w, struct stream *s, const char *bytes, size_t n, struct error *e)
{
    int rc = OK;

    for (const char *at = bytes, *end = bytes + n; rc == OK && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);

        if (!stop || s->line.length) {
            if (s->line.length + length > LINE_MOST)
                return error_set(e, ERR_CORRUPT, "%s:%llu: a line of more than %zu bytes", s->name,
                                 (unsigned long long)s->number + 1, LINE_MOST);
            buffer_append(&s->line, at, length);
            if (!buffer_ok(&s->line))
                return error_memory(e, s->name, "for a line");
        }
        if (stop) {
            s->number++;
            rc = s->line.length ? line(w, s, s->line.data, s->line.length, e) : line(w, s, at, length, e);
            buffer_clear(&s->line);
        }
        at = stop ? stop + 1 : end;
    }
    return rc;
}

/* Reads all lines; everything that has come in is written before the next wait. */
static int read_stream(struct write *w, struct stream *s, int fd, struct error *e)
{
    char *bytes = malloc(CHUNK);
    ssize_t got = 1;
    int rc = bytes ? OK : error_memory(e, NULL, "for reading");

    while (rc == OK && got) {
        got = read(fd, bytes, CHUNK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            rc = error_system(e, "%s: cannot read", s->name);
        else if (got)
            rc = chunk(w, s, bytes, (size_t)got, e);
        if (rc == OK)
            rc = flush_written(w, e);
        log_progress(&w->scan.log, "%s: %llu lines read, %llu points written", s->name, (unsigned long long)s->number,
                     (unsigned long long)w->points);
    }
    log_progress_end(&w->scan.log);
    if (rc == OK && s->line.length) { /* the last line without a newline */
        s->number++;
        rc = line(w, s, s->line.data, s->line.length, e);
    }
    if (rc == OK && (rc = point_input_end(s->input, e)) != OK)
        error_prefix(e, "%s:%llu", s->name, (unsigned long long)s->number);
    free(bytes);
    return rc;
}

static int write_stream(struct write *w, const char *path, const char *format, const char *tag, struct error *e)
{
    struct stream s = { .name = strcmp(path, "-") != 0 ? path : "standard input" };
    enum point_input_format f = !strcmp(format, "csv")     ? POINT_INPUT_CSV
                                : !strcmp(format, "jsonl") ? POINT_INPUT_JSONL
                                                           : POINT_INPUT_AUTO;
    int fd = strcmp(path, "-") != 0 ? open(path, O_RDONLY | O_CLOEXEC) : 0;
    int rc = fd < 0 ? error_system(e, "%s: cannot be opened", path) : point_input_new(&s.input, f, tag, e);

    if (rc == OK)
        rc = read_stream(w, &s, fd, e);
    if (s.input)
        w->passed_over += point_input_passed_over(s.input);
    point_input_free(s.input);
    buffer_release(&s.line);
    if (fd > 0)
        close(fd);
    if (w->bad_lines)
        log_line(&w->scan.log, "%s: skipped %llu bad lines", s.name, (unsigned long long)w->bad_lines);
    return rc;
}

/* ---- the command line's values --------------------------------------------------------------------------------- */

/* TAG=VALUE: the tag copied into *tag (free it); the value borrowed. last: the '=' that counts. */
static int halves(const char *text, int last, char **tag, const char **value, struct error *e)
{
    const char *at = last ? strrchr(text, '=') : strchr(text, '=');

    if (!at || at == text)
        return error_set(e, ERR_ARG, "'%.80s' is not TAG=%s", text, last ? "NUMBER" : "...");
    if (!(*tag = strndup(text, (size_t)(at - text))))
        return error_memory(e, NULL, "for a tag");
    *value = at + 1;
    return OK;
}

static int write_number(struct write *w, const char *text, struct error *e)
{
    struct point_input_point p = { .step = w->step, .has_wall_time = 1, .wall_time = w->wall_time };
    const char *value;
    char *tag = NULL;
    int rc = halves(text, 1, &tag, &value, e);

    p.tag = tag;
    if (rc == OK && !number_parse_double(value, &p.value))
        rc = error_set(e, ERR_ARG, "'%.80s': '%.40s' is not a number", text, value);
    if (rc == OK)
        rc = write_visit(w, &p, e);
    free(tag);
    return rc;
}

static int write_text(struct write *w, const char *text, struct error *e)
{
    struct eventlog_writer *writer;
    struct eventlog_error error;
    const char *value;
    char *tag = NULL;
    int rc = halves(text, 0, &tag, &value, e);

    if (rc == OK && (rc = writer_of(w, ".", &writer, e)) == OK &&
        eventlog_writer_text(writer, tag, w->step, w->wall_time, value, NULL, &error) != EVENTLOG_OK)
        rc = write_take(e, &error);
    w->texts += rc == OK;
    free(tag);
    return rc;
}

static int write_image(struct write *w, const char *text, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    struct eventlog_writer *writer;
    struct eventlog_error error;
    struct eventlog_bytes image;
    const char *path;
    char *tag = NULL;
    int rc = halves(text, 0, &tag, &path, e);

    if (rc == OK)
        rc = file_read(path, IMAGE_MOST, &bytes, e);
    image = (struct eventlog_bytes){ bytes.data, bytes.length };
    if (rc == OK && (rc = writer_of(w, ".", &writer, e)) == OK &&
        eventlog_writer_image_encoded(writer, tag, w->step, w->wall_time, &image, 1, NULL, &error) != EVENTLOG_OK) {
        rc = write_take(e, &error);
        error_prefix(e, "%s", path);
    }
    w->images += rc == OK;
    buffer_release(&bytes);
    free(tag);
    return rc;
}

/* The layout of the Custom Scalars page: one value, which belongs to no step. */
static int write_charts(struct write *w, const struct option_list *list, struct error *e)
{
    struct chart_layout layout;
    struct eventlog_writer *writer;
    struct eventlog_error error;
    int rc = chart_layout_parse(&layout, list, e);

    if (rc == OK && (rc = writer_of(w, ".", &writer, e)) == OK &&
        eventlog_writer_layout(writer, w->wall_time, layout.categories, layout.count, &error) != EVENTLOG_OK)
        rc = write_take(e, &error);
    for (size_t i = 0; rc == OK && i < layout.count; i++)
        w->charts += layout.categories[i].chart_count;
    chart_layout_release(&layout);
    return rc;
}

struct arguments {
    char **values;
    size_t count;
    struct option_list texts, images, charts;
    const char *input, *format, *tag;
};

static int write_all(struct write *w, const struct arguments *a, struct error *e)
{
    int rc = OK;

    w->wall_time = event_writer_time(w->wall_time); /* one for all of them */
    for (size_t i = 0; rc == OK && i < a->count; i++)
        rc = write_number(w, a->values[i], e);
    for (size_t i = 0; rc == OK && i < a->texts.count; i++)
        rc = write_text(w, a->texts.items[i], e);
    for (size_t i = 0; rc == OK && i < a->images.count; i++)
        rc = write_image(w, a->images.items[i], e);
    if (rc == OK && a->charts.count)
        rc = write_charts(w, &a->charts, e);
    if (rc == OK && a->input)
        rc = write_stream(w, a->input, a->format, a->tag, e);
    return rc;
}

static void print_json(const struct write *w)
{
    struct buffer b = BUFFER_EMPTY;

    buffer_append_text(&b, "{\"type\":\"write\",\"version\":1,\"directory\":");
    json_text(&b, w->directory);
    buffer_append_text(&b, ",\"runs\":[");
    for (size_t i = 0; i < w->runs.count; i++) {
        buffer_append_text(&b, i ? "," : "");
        json_text(&b, w->runs.entries[i].text);
    }
    buffer_format(&b,
                  "],\"total\":{\"points\":%llu,\"texts\":%llu,\"images\":%llu,\"charts\":%llu,\"bad_lines\":%llu,"
                  "\"passed_over\":%llu}}\n",
                  (unsigned long long)w->points, (unsigned long long)w->texts, (unsigned long long)w->images,
                  (unsigned long long)w->charts, (unsigned long long)w->bad_lines, (unsigned long long)w->passed_over);
    fputs(buffer_text(&b), stdout);
    buffer_release(&b);
}

static int check(const struct write *w, struct arguments *a, int stepped, struct error *e)
{
    size_t values;

    if (!w->directory)
        return error_set(e, ERR_ARG, "no log directory given; add --dir DIR");
    if (a->count && !strcmp(a->values[a->count - 1], "-")) {
        if (a->input)
            return error_set(e, ERR_ARG, "'-' contradicts --input; give one of them");
        a->input = a->values[--a->count];
    }
    values = a->count + a->texts.count + a->images.count;
    if (!values && !a->charts.count && !a->input)
        return error_set(e, ERR_ARG,
                         "nothing to write; give TAG=NUMBER, --text, --image, --chart, or '-' to read standard input");
    if (values && !stepped)
        return error_set(e, ERR_ARG, "no step given; add --step N");
    return OK;
}

int command_write(int argc, char **argv)
{
    struct write w = { .runs = TAG_INDEX_OF(struct run_writer) };
    struct arguments a = { .format = "auto" };
    struct option table[] = {
        { OPTION_TEXT, 'd', "dir", &w.directory, "DIR",
          .help = "Write to the log directory DIR or, if the input names runs, to their directories below it; missing "
                  "directories are created" },
        { OPTION_INT, 's', "step", &w.step, "N", .help = "Use step N for the values on the command line" },
        { OPTION_DOUBLE, 0, "wall-time", &w.wall_time, "SECONDS",
          .help = "Use this wall time, in seconds since 1970, for the values on the command line (default: now)",
          .minimum = 0, .maximum = 1e11 },
        { OPTION_LIST, 0, "text", &a.texts, "TAG=TEXT",
          .help = "Write a text, which TensorBoard shows as Markdown; may be repeated" },
        { OPTION_LIST, 0, "image", &a.images, "TAG=FILE",
          .help = "Write a picture: PNG, JPEG, GIF or BMP; may be repeated" },
        { OPTION_LIST, 0, "chart", &a.charts, .argument = "[CATEGORY/]TITLE=TAGS",
          .help =
              "Add a chart to TensorBoard's Custom Scalars page, with the series of all runs whose tags begin with a "
              "match of the regular expression TAGS. May be repeated; the same TITLE again adds curves to its chart" },
        { OPTION_TEXT, 'i', "input", &a.input, "FILE",
          .help =
              "Read points from FILE, or from standard input if it is '-'; a '-' as the last argument does the same" },
        { OPTION_CHOICE, 0, "format", &a.format,
          .help = "Choose the format of the input (default auto: by its first line)", .choices = "auto|csv|jsonl" },
        { OPTION_TEXT, 0, "tag", &a.tag, "TAG",
          .help = "Use TAG for points without a tag, as in TensorBoard's own CSV" },
        { OPTION_FLAG, 0, "keep-going", &w.keep_going,
          .help = "Report bad lines and skip them, and exit with status 1" },
        { OPTION_FLAG, 0, "new", &w.fresh,
          .help =
              "Begin a new event file (default: append to the run's newest, unless another process is writing it)" },
        { OPTION_FLAG, 0, "double", &w.doubles,
          .help = "Write 64-bit numbers, which TensorBoard's Python loader shows but its default loader does not "
                  "(default: 32 bits, as other writers do)" },
        { OPTION_FLAG, 0, "json", &w.json, .help = "Print what was written as a JSON object" },
    };
    const struct options options = {
        .program = "eventlog write",
        .usage = "--dir DIR [OPTION...] [TAG=NUMBER...] [-]",
        .summary =
            "Write points to a log that TensorBoard can show, from the command line, CSV or JSON lines. CSV needs a "
            "header: tag,step,value with a point in each row, or step and a column for each tag ('eventlog export' "
            "writes both); columns run and wall_time are optional. A line of JSON is "
            "{\"tag\":\"loss\",\"step\":1,\"value\":0.5} or {\"step\":1,\"loss\":0.5,\"acc\":0.9}. Readers see each "
            "line as soon as the command waits for the next one. The command stops at a bad line and reports its "
            "number; points before it stay written. Exit status: 0 done; 1 bad lines skipped; 2 usage, input or I/O.",
        .examples = "  eventlog write --dir logs/shell --step 10 loss=0.5 acc=0.9\n"
                    "  eventlog write --dir logs/shell --step 10 --text 'note=**best** so far' --image plot=plot.png\n"
                    "  eventlog write --dir logs/shell --chart 'speed/images a second=images/sec$'\n"
                    "  eventlog export old -o - | eventlog write --dir new -\n"
                    "  tail -f train.jsonl | eventlog write --dir logs --keep-going -\n",
        .table = table,
        .count = sizeof table / sizeof *table,
    };
    struct error e = { 0 }, closing = { 0 };
    int count = 0, rc = scan_begin(&w.scan, &options, argc, argv, &count, &e);

    a.values = argv + 1;
    a.count = (size_t)count;
    if (rc == OK && (rc = check(&w, &a, options_given(&options, "step"), &e)) == OK) {
        file_open_limit(SIZE_MAX); /* a descriptor a run */
        rc = write_all(&w, &a, &e);
        if (close_all(&w, &closing) != OK && rc == OK) { /* only now it is written */
            e = closing;
            rc = e.code;
        }
        if (rc == OK && w.json)
            print_json(&w);
        if (rc == OK && fflush(stdout) != 0)
            rc = error_system(&e, "standard output: cannot write");
        tag_index_release(&w.runs);
    }
    return rc != OK ? scan_leave(&w.scan, rc, &e) : w.bad_lines ? EXIT_NO : EXIT_DONE;
}
