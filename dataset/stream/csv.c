/*
 * csv.c - CSV files (csv_record.h) as a data set: a label and numbers in each record. The records stay on disk; of each
 * only its place and its class are in memory, 24 bytes.
 *
 * Files are those of data_files.h, all with the same columns. The order of the samples is that of the files' names and
 * of the records in each.
 *
 * If the label of the first training record is a whole number, all are, how->first_label the first class; else labels
 * are names, and the classes are those of the training part, in the order of their bytes. Features are float32 numbers,
 * (1, 1, their number), or, if the option says so, pixels. They are read when a sample is.
 */
#include "dataset/dataset_kind.h"

#include "base/array.h"
#include "base/buffer.h"
#include "dataset/stream/csv_record.h"
#include "dataset/stream/data_files.h"
#include "dataset/stream/streamed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WINDOW = 1 << 16,
    RECORD_MOST = 1 << 24, /* bytes */
    COLUMNS_MOST = 1 << 20,
    OPEN_MOST = 512,    /* files held open; of more, each is opened for each read */
    CLASS_BROKEN = -1,  /* of a record without one */
    CLASS_UNNAMED = -2, /* of a name that is no class */
};

struct csv_place {
    uint64_t offset;
    uint32_t length; /* of the record, its line end included */
    uint32_t file;
    uint32_t line;
    int32_t class;
};

struct csv_name {
    char *text; /* owned */
    int32_t class;
};

/* What the columns and the labels are, found in the first file of the training part. */
struct csv_schema {
    char *header; /* its first record; NULL: it has none */
    char *file;   /* its path, for errors */
    size_t columns, label, features;
    unsigned char *skipped; /* (columns); NULL: nothing is known yet */
    int named;              /* 1: labels are names; 0: numbers; -1: not known yet */
    struct csv_name *names; /* sorted */
    size_t name_count, name_room;
};

struct csv {
    struct data_files files;
    int fds[OPEN_MOST]; /* (files.count), if they are so few */
    struct csv_format format;
    struct csv_schema schema;
    int schema_known; /* 1: labels make no new classes */
    int64_t first_label;
    int classes; /* 0: any number */
    struct csv_place *places;
    size_t count, room;
};

static void csv_free(void *context)
{
    struct csv *c = context;

    if (!c)
        return;
    for (size_t i = 0; i < c->files.count && i < OPEN_MOST; i++)
        if (c->fds[i] >= 0)
            close(c->fds[i]);
    for (size_t i = 0; i < c->schema.name_count; i++)
        free(c->schema.names[i].text);
    free(c->schema.names);
    free(c->schema.skipped);
    free(c->schema.header);
    free(c->schema.file);
    free(c->places);
    data_files_release(&c->files);
    free(c);
}

/* ---- one record -------------------------------------------------------------------------------------------------- */

/* A record in memory, split. */
struct fields {
    char name[PATH_MAX + 32]; /* "FILE: line N", by which the sample is named */
    char *text, **of;
    size_t count;
};

static int csv_broken(const struct fields *r, const char *problem, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s: broken sample: %s", r->name, problem);
}

/* text (n) without its line end; splits it, and wants the schema's number of columns if it is known. */
static int split_record(const struct csv *c, struct fields *r, uint32_t file, uint32_t line, char *text, size_t n,
                        struct error *e)
{
    const size_t most = c->schema.columns ? c->schema.columns : n + 1 < COLUMNS_MOST ? n + 1 : COLUMNS_MOST;
    const char *problem;

    snprintf(r->name, sizeof r->name, "%s: line %u", c->files.paths[file], line);
    r->text = text;
    if (!(r->of = malloc(most * sizeof *r->of)))
        return error_memory(e, r->name, "for %zu fields", most);
    if (csv_split(text, n, c->format.separator, r->of, most, &r->count, &problem) < 0)
        return csv_broken(r, problem, e);
    if (c->schema.columns && r->count != c->schema.columns)
        return error_set(e, ERR_CORRUPT, "%s: broken sample: it has %zu fields, and the first record has %zu", r->name,
                         r->count, c->schema.columns);
    return r->count <= most ? OK : csv_broken(r, "it has too many fields", e);
}

/* Where the name is, or would be. */
static size_t place_of_name(const struct csv_schema *s, const char *name, int *there)
{
    size_t low = 0, high = s->name_count;

    *there = 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(s->names[middle].text, name);

        if (order == 0) {
            *there = 1;
            return middle;
        }
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return low;
}

static int add_name(struct csv_schema *s, size_t at, const char *name, struct error *e)
{
    char *copy;

    if (s->name_count == DATASET_CLASSES_MAX)
        return error_set(e, ERR_ARG, "its labels are more than %d different names; is this the right column?",
                         DATASET_CLASSES_MAX);
    if (!ARRAY_ROOM(s->names, s->name_room, s->name_count + 1) || !(copy = strdup(name)))
        return error_memory(e, NULL, "for the name of a class");
    memmove(s->names + at + 1, s->names + at, (s->name_count - at) * sizeof *s->names);
    s->names[at] = (struct csv_name){ copy, (int32_t)s->name_count };
    s->name_count++;
    return OK;
}

static int class_of_number(const struct csv *c, const struct fields *r, const char *text, int32_t *out, struct error *e)
{
    const int64_t most = c->first_label + (c->classes ? c->classes : DATASET_CLASSES_MAX) - 1;
    int64_t label;

    if (!csv_integer(text, &label))
        return error_set(e, ERR_CORRUPT, "%s: broken sample: its label '%.60s' is not a whole number", r->name, text);
    if (label < c->first_label || label > most)
        return error_set(e, ERR_CORRUPT, "%s: broken sample: its label %lld is not in %lld..%lld%s", r->name,
                         (long long)label, (long long)c->first_label, (long long)most,
                         label < c->first_label ? "; --first-label is that of the first class" : "");
    *out = (int32_t)(label - c->first_label);
    return OK;
}

/* The class of a record. ERR_CORRUPT: it has none. */
static int class_of(const struct csv *c, const struct fields *r, int32_t *out, struct error *e)
{
    const char *text = r->of[c->schema.label];
    size_t at;
    int there;

    if (!c->schema.named)
        return class_of_number(c, r, text, out, e);
    if (!*text)
        return csv_broken(r, "it has no label", e);
    at = place_of_name(&c->schema, text, &there);
    *out = there ? c->schema.names[at].class : CLASS_UNNAMED;
    return there || !c->schema_known ? OK
                                     : error_set(e, ERR_CORRUPT,
                                                 "%s: broken sample: its label '%.60s' is not one of the training "
                                                 "part's",
                                                 r->name, text);
}

static int is_feature(const struct csv_schema *s, size_t column)
{
    return column != s->label && !s->skipped[column];
}

static int take_features(const struct csv *c, const struct fields *r, void *out, struct error *e)
{
    uint8_t *pixels = out;
    float *numbers = out;
    int64_t pixel;

    for (size_t i = 0; i < r->count; i++) {
        if (!is_feature(&c->schema, i))
            continue;
        if (c->format.height) {
            if (!csv_integer(r->of[i], &pixel) || pixel < 0 || pixel > 255)
                return error_set(e, ERR_CORRUPT, "%s: broken sample: '%.60s' in column %zu is not a pixel of 0 to 255",
                                 r->name, r->of[i], i + 1);
            *pixels++ = (uint8_t)pixel;
        } else if (!csv_number(r->of[i], numbers++)) {
            return error_set(e, ERR_CORRUPT,
                             "%s: broken sample: '%.60s' in column %zu is not a number; skip=%zu in --csv-format "
                             "leaves the column out",
                             r->name, r->of[i], i + 1, i + 1);
        }
    }
    return OK;
}

static size_t without_line_end(const char *text, size_t n)
{
    return n && (text[n - 1] == '\n' || text[n - 1] == '\r') ? n - 1 : n;
}

static int read_place(const struct csv *c, const struct csv_place *p, char *text, struct error *e)
{
    const char *path = c->files.paths[p->file];
    const int kept = c->files.count <= OPEN_MOST;
    const int fd = kept ? c->fds[p->file] : open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : file_read_at(fd, text, p->length, p->offset);
    const int number = errno;

    if (fd >= 0 && !kept)
        close(fd);
    errno = number;
    if (got < 0)
        return error_system(e, "%s: cannot read", path);
    return (size_t)got == p->length ? OK : error_set(e, ERR_IO, "%s: became shorter while it was used", path);
}

static int csv_read(const void *context, size_t i, void *out, struct error *e)
{
    const struct csv *c = context;
    const struct csv_place *p = &c->places[i];
    char *text = malloc((size_t)p->length + 1);
    struct fields r = { .of = NULL };
    int32_t class;
    int rc = text ? read_place(c, p, text, e) : error_memory(e, c->files.paths[p->file], "for a record");

    if (rc == OK && (rc = split_record(c, &r, p->file, p->line, text, without_line_end(text, p->length), e)) == OK &&
        (rc = class_of(c, &r, &class, e)) == OK)
        rc = take_features(c, &r, out, e);
    free(r.of);
    free(text);
    return rc;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* The column of this name, or number; r->count: there is none. */
static size_t find_column(const struct fields *r, int header, const struct csv_column *wanted)
{
    size_t number = 0;

    for (size_t i = 0; header && i < r->count; i++)
        if (strlen(r->of[i]) == wanted->length && !memcmp(r->of[i], wanted->text, wanted->length))
            return i;
    for (size_t i = 0; i < wanted->length; i++) {
        if (wanted->text[i] < '0' || wanted->text[i] > '9' || number > COLUMNS_MOST)
            return r->count;
        number = 10 * number + (size_t)(wanted->text[i] - '0');
    }
    return number >= 1 && number <= r->count ? number - 1 : r->count;
}

static int no_column(const struct fields *r, int header, const struct csv_column *wanted, struct error *e)
{
    struct buffer names = BUFFER_EMPTY;
    int rc;

    for (size_t i = 0; header && i < r->count && i < 8; i++)
        buffer_format(&names, "%s%.40s", i ? ", " : ", named ", r->of[i]);
    rc = error_set(e, ERR_ARG, "%s: --csv-format: there is no column %.*s; it has %zu columns%s%s", r->name,
                   wanted->length > 60 ? 60 : (int)wanted->length, wanted->text, r->count, buffer_text(&names),
                   header && r->count > 8 ? ", ..."
                   : header               ? ""
                                          : " and no header");
    buffer_release(&names);
    return rc;
}

/* Sets the label's column and those that are skipped, by names only if there is a header. */
static int find_columns(struct csv *c, const struct fields *r, int header, struct error *e)
{
    static const struct csv_column usual = { "label", 5 };
    const struct csv_format *f = &c->format;
    struct csv_schema *s = &c->schema;

    s->label = find_column(r, header, f->label.text ? &f->label : &usual);
    if (f->label.text && s->label == r->count)
        return no_column(r, header, &f->label, e);
    if (s->label == r->count)
        s->label--;
    memset(s->skipped, 0, r->count);
    for (int k = 0; k < f->skip_count; k++) {
        const size_t column = find_column(r, header, &f->skips[k]);

        if (column == r->count)
            return no_column(r, header, &f->skips[k], e);
        s->skipped[column] = 1;
    }
    s->features = 0;
    for (size_t i = 0; i < r->count; i++)
        s->features += is_feature(s, i);
    return OK;
}

static int has_number(const struct csv_schema *s, const struct fields *r)
{
    float number;

    for (size_t i = 0; i < r->count; i++)
        if (is_feature(s, i) && csv_number(r->of[i], &number))
            return 1;
    return 0;
}

/* Learns the columns from the first record of all; *header: whether it is one. */
static int learn(struct csv *c, const struct fields *r, int *header, struct error *e)
{
    struct csv_schema *s = &c->schema;
    const struct csv_format *f = &c->format;
    struct error why = { 0 };
    int rc;

    if (!(s->skipped = calloc(r->count, 1)) || !(s->file = strdup(c->files.paths[0])))
        return error_memory(e, r->name, "for its columns");
    *header = f->header != 0;
    rc = find_columns(c, r, *header, &why);
    if (f->header < 0 && rc == OK && has_number(s, r)) {
        *header = 0;
        rc = find_columns(c, r, 0, &why);
    }
    if (rc < 0)
        return error_copy(e, &why);
    if (!s->features)
        return error_set(e, ERR_ARG, "%s: there is no column but the label's%s; is the separator '%c'?", r->name,
                         f->skip_count ? " that is not skipped" : "", f->separator);
    if (f->height && (size_t)f->height * (size_t)f->width * (size_t)f->channels != s->features)
        return error_set(
            e, ERR_ARG, "%s: --csv-format pixels=%dx%dx%d are %zu, but it has %zu columns beside the label", r->name,
            f->height, f->width, f->channels, (size_t)f->height * (size_t)f->width * (size_t)f->channels, s->features);
    s->columns = r->count;
    return OK;
}

/* The first record of a file: 1: it is a header; 0: a sample. text (n): as it was before it was split. */
static int begin_file(struct csv *c, const struct fields *r, const char *text, size_t n, struct error *e)
{
    struct csv_schema *s = &c->schema;
    int header = 0, rc;

    if (!s->columns) {
        if ((rc = learn(c, r, &header, e)) < 0)
            return rc;
        if (header && !(s->header = strndup(text, n)))
            return error_memory(e, r->name, "for its header");
        return header;
    }
    if (s->header && n == strlen(s->header) && !memcmp(s->header, text, n))
        return 1;
    if (c->format.header > 0 || (c->format.header < 0 && !has_number(s, r)))
        return error_set(e, ERR_ARG, "%s: its header differs from that of %s; use files with the same columns", r->name,
                         s->file);
    return 0;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

/* Adds a sample; its class may be broken. */
static int list_sample(struct csv *c, const struct fields *r, struct csv_place *place, struct error *e)
{
    struct csv_schema *s = &c->schema;
    int64_t number;
    int there, rc;

    if (s->named < 0)
        s->named = !csv_integer(r->of[s->label], &number);
    if ((rc = class_of(c, r, &place->class, e)) == OK && place->class == CLASS_UNNAMED) {
        const size_t at = place_of_name(s, r->of[s->label], &there);

        if ((rc = add_name(s, at, r->of[s->label], e)) < 0)
            return error_prefix(e, "%s", r->name);
        place->class = s->names[at].class;
    }
    return rc;
}

/* The state of listing one file. */
struct listing {
    struct csv_scan scan;
    struct buffer record, copy; /* the bytes of the record so far; as they were */
    uint64_t offset;            /* where it begins */
    uint32_t file, line;
    int begun; /* 1: a first record was seen */
};

static int list_record(struct csv *c, struct listing *l, int skip, struct error *e)
{
    struct csv_place place = { l->offset, (uint32_t)l->record.length, l->file, l->line, CLASS_BROKEN };
    const size_t n = without_line_end(buffer_text(&l->record), l->record.length);
    struct fields r = { .of = NULL };
    struct error why = { 0 };
    int rc;

    if (n == 0)
        return OK;
    if (!l->begun) {
        buffer_clear(&l->copy);
        buffer_append(&l->copy, l->record.data, n);
    }
    if (!buffer_ok(&l->copy) || !ARRAY_ROOM(c->places, c->room, c->count + 1))
        return error_memory(e, c->files.paths[l->file], "for an index of its records");
    rc = split_record(c, &r, l->file, l->line, l->record.data, n, &why);
    if (rc == OK && !l->begun)
        rc = begin_file(c, &r, l->copy.data, n, &why);
    if (rc == 0)
        rc = list_sample(c, &r, &place, &why);
    l->begun |= rc >= 0;
    free(r.of);
    if (rc < 0 && (rc != ERR_CORRUPT || !c->schema.columns))
        return error_copy(e, &why);
    if (rc == ERR_CORRUPT && !skip)
        return error_set(e, rc, "%.400s (--bad-samples skip leaves such out)", why.message);
    if (rc <= 0)
        c->places[c->count++] = place;
    return OK;
}

/* n bytes of the file, from l->offset + l->record.length on. */
static int list_bytes(struct csv *c, struct listing *l, const char *bytes, size_t n, size_t most, int skip,
                      struct error *e)
{
    int ended, rc = OK;

    while (n && rc == OK && c->count < most) {
        const size_t used = csv_scan_next(&l->scan, bytes, n, &ended);

        buffer_append(&l->record, bytes, used);
        if (!buffer_ok(&l->record))
            return error_memory(e, c->files.paths[l->file], "for a record");
        if (l->record.length > RECORD_MOST)
            return error_set(e, ERR_ARG, "%s: line %u: a record of more than %d MiB; a quote may not be closed",
                             c->files.paths[l->file], l->line, RECORD_MOST >> 20);
        bytes += used;
        n -= used;
        if (!ended)
            continue;
        rc = list_record(c, l, skip, e);
        l->offset += l->record.length;
        l->line = l->scan.line;
        buffer_clear(&l->record);
    }
    return rc;
}

static int list_file(struct csv *c, uint32_t file, size_t most, int skip, struct error *e)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, as spreadsheets write it */
    const char *path = c->files.paths[file];
    struct listing l = { .scan = { .separator = c->format.separator, .line = 1 }, .file = file, .line = 1 };
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *window = malloc(WINDOW);
    ssize_t got = 0;
    int rc = OK;

    if (!window || fd < 0)
        rc = fd < 0 ? error_system(e, "%s: cannot open", path) : error_memory(e, path, "to read it");
    while (rc == OK && c->count < most && (got = file_read_at(fd, window, WINDOW, l.offset + l.record.length)) > 0) {
        size_t skipped = 0;

        if (!l.offset && !l.record.length && got >= 3 && !memcmp(window, mark, 3))
            l.offset = skipped = 3;
        if (!l.begun && got >= 2 && !memcmp(window, "\x1f\x8b", 2))
            rc = error_set(e, ERR_ARG, "%s: is compressed; unpack it first", path);
        else
            rc = list_bytes(c, &l, window + skipped, (size_t)got - skipped, most, skip, e);
    }
    if (rc == OK && got < 0)
        rc = error_system(e, "%s: cannot read", path);
    if (rc == OK && got == 0 && l.record.length && c->count < most)
        rc = list_record(c, &l, skip, e);
    if (fd >= 0 && file < OPEN_MOST && c->files.count <= OPEN_MOST)
        c->fds[file] = fd;
    else if (fd >= 0)
        close(fd);
    buffer_release(&l.record);
    buffer_release(&l.copy);
    free(window);
    return rc;
}

/* Names were numbered as they came; now by their order. */
static int number_names(struct csv *c, struct error *e)
{
    struct csv_schema *s = &c->schema;
    int32_t *rank = malloc((s->name_count + 1) * sizeof *rank);

    if (!rank)
        return error_memory(e, c->files.paths[0], "for %zu classes", s->name_count);
    for (size_t k = 0; k < s->name_count; k++) {
        rank[s->names[k].class] = (int32_t)k;
        s->names[k].class = (int32_t)k;
    }
    for (size_t i = 0; i < c->count; i++)
        if (c->places[i].class >= 0)
            c->places[i].class = rank[c->places[i].class];
    free(rank);
    return OK;
}

/* Lists the records of a part, at most `most`. like: what the training part says, which is moved; NULL: nothing. */
static int open_part(struct csv **out, const char *directory, enum dataset_split split,
                     const struct dataset_reading *how, struct csv *like, size_t most, struct error *e)
{
    struct csv *c = *out = calloc(1, sizeof *c);
    int rc;

    if (!c)
        return error_memory(e, directory, "to list it");
    memset(c->fds, -1, sizeof c->fds);
    c->first_label = how->first_label;
    c->classes = how->classes;
    c->schema.named = -1;
    if (like) {
        c->schema = like->schema;
        c->classes = like->classes;
        c->schema_known = 1;
        like->schema = (struct csv_schema){ 0 };
    }
    if ((rc = csv_format_parse(&c->format, how->csv, e)) < 0 ||
        (rc = data_files_list(&c->files, directory, split, how, e)) < 0)
        return rc;
    for (size_t f = 0; f < c->files.count && c->count < most; f++)
        if ((rc = list_file(c, (uint32_t)f, most, how->skip_bad, e)) < 0)
            return rc;
    if (!c->count)
        return error_set(e, ERR_ARG, "%s: no records in %s%s", directory, file_base_name(c->files.paths[0]),
                         c->files.count > 1 ? " and the others" : "");
    return c->schema.named == 1 && !c->schema_known ? number_names(c, e) : OK;
}

/* How many classes there are. */
static int count_classes(const struct csv *c, const struct dataset_reading *how, struct error *e)
{
    int32_t most = -1;

    if (c->schema.named == 1 && how->classes && c->schema.name_count > (size_t)how->classes)
        return error_set(e, ERR_ARG, "--classes %d: the labels of %s and the others are %zu names", how->classes,
                         file_base_name(c->files.paths[0]), c->schema.name_count);
    if (how->classes)
        return how->classes;
    if (c->schema.named == 1)
        return (int)c->schema.name_count;
    for (size_t i = 0; i < c->count; i++)
        most = c->places[i].class > most ? c->places[i].class : most;
    return most + 1;
}

/* Opens the training part as far as the test part needs it. *out: NULL: there is none. */
static int ask_training(struct csv **out, const char *directory, const struct dataset_reading *how, struct error *e)
{
    struct error why = { 0 };
    size_t most = how->classes ? 1 : SIZE_MAX; /* numbers need no more */
    int rc = open_part(out, directory, DATASET_TRAIN, how, NULL, most, &why);

    if (rc == OK && how->classes && (*out)->schema.named == 1) {
        csv_free(*out);
        rc = open_part(out, directory, DATASET_TRAIN, how, NULL, SIZE_MAX, &why);
    }
    if (rc == OK) {
        (*out)->classes = rc = count_classes(*out, how, e);
        return rc < 0 ? rc : OK;
    }
    if (*out && (*out)->files.count)
        return error_copy(e, &why);
    csv_free(*out);
    *out = NULL;
    return rc == ERR_ARG ? OK : error_copy(e, &why);
}

/* ---- the data set ------------------------------------------------------------------------------------------------ */

/* The names of the classes, those that the files do not have empty. */
static int give_names(struct dataset_owned *o, const struct csv_schema *s, struct error *e)
{
    const size_t classes = (size_t)o->d.classes;
    size_t bytes = 1;
    const char **names;
    char *text;

    for (size_t k = 0; k < s->name_count; k++)
        bytes += strlen(s->names[k].text) + 1;
    if (!(o->names = names = malloc(classes * sizeof *names + bytes)))
        return error_memory(e, o->d.name, "for the names of %zu classes", classes);
    text = (char *)(names + classes);
    for (size_t k = 0; k < classes; k++) {
        const char *name = k < s->name_count ? s->names[k].text : "";

        if (k <= s->name_count) {
            names[k] = text;
            text += strlen(strcpy(text, name)) + (k < s->name_count);
        } else {
            names[k] = names[s->name_count];
        }
    }
    o->d.class_names = names;
    return OK;
}

/* --shard files: of n workers each has every n-th file. */
static int take_files(struct dataset_owned *o, struct csv *c, const struct shard *shard, struct error *e)
{
    int32_t *labels;
    size_t kept = 0;

    if (shard->kind == SHARD_FILES && (size_t)shard->index >= c->files.count)
        return error_set(e, ERR_ARG,
                         "worker %d of %d has no file: there are only %zu; use fewer workers, or share single records",
                         shard->index, shard->count, c->files.count);
    if (!(labels = o->labels = malloc(c->count * sizeof *labels)))
        return error_memory(e, c->files.paths[0], "for %zu labels", c->count);
    for (size_t i = 0; i < c->count; i++) {
        if (!shard_has_file(shard, c->places[i].file, c->files.count))
            continue;
        labels[kept] = c->places[i].class;
        c->places[kept++] = c->places[i];
    }
    c->count = kept;
    for (size_t f = 0; f < c->files.count; f++)
        if (shard_has_file(shard, f, c->files.count))
            dataset_owned_add_file(o, c->files.paths[f]);
    return kept ? OK : error_set(e, ERR_ARG, "worker %d of %d has no record", shard->index, shard->count);
}

static int describe(struct dataset_owned *o, struct csv *c, const struct dataset_reading *how, struct error *e)
{
    const int classes = c->schema_known ? c->classes : count_classes(c, how, e);

    if (classes < 0)
        return classes;
    if (classes == 0)
        return error_set(e, ERR_CORRUPT, "%s: none of its samples has a label", c->files.paths[0]);
    c->schema_known = 1;
    o->d.classes = classes;
    o->d.height = c->format.height ? c->format.height : 1;
    o->d.width = c->format.height ? c->format.width : 1;
    o->d.channels = c->format.height ? c->format.channels : (int)c->schema.features;
    o->d.element = c->format.height ? ELEMENT_UINT8 : ELEMENT_FLOAT32;
    return c->schema.named == 1 ? give_names(o, &c->schema, e) : OK;
}

static int read_csv(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                    enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                    struct error *e)
{
    static const struct sample_stream_format format = { csv_read, csv_free };
    struct csv *c = NULL, *train = NULL;
    int rc = split == DATASET_TEST ? ask_training(&train, directory, how, e) : OK;

    (void)kind;
    if (rc == OK)
        rc = open_part(&c, directory, split, how, train, SIZE_MAX, e);
    csv_free(train);
    if (rc < 0 || (rc = describe(o, c, how, e)) < 0 || (rc = take_files(o, c, shard, e)) < 0) {
        csv_free(c);
        return rc;
    }
    return streamed_take(o, &format, c, c->count, split, how, e);
}

const struct dataset_kind dataset_kind_csv = {
    .how_to_get = "it needs CSV files with a label and numbers in each record",
    .takes = DATASET_TAKES_FILES | DATASET_TAKES_LABELS | DATASET_TAKES_CSV,
    .read = read_csv,
};
