/*
 * media: images, clips, texts, arrays, and what plugins that are not TensorBoard's own keep in bytes, as files, and a
 * list of them: `run,tag,step,index,kind,file,wall_time`, file as a path below the directory.
 */
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/unfinished.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/format/value_content.h"
#include "eventlog/tool/export/export.h"
#include "eventlog/tool/output_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- media directory --------------------------------------------------------------------------------------------- */

/*
 * Files DIR/run/tag/step/index.ext. Runs and tags become single safe names: every byte outside A-Z
 * a-z 0-9 . _ + @ = - and a leading '.' become '_', and names are cut at 200 bytes; names that become equal get -2, -3,
 * ... in order of arrival. No link is followed below DIR, so nothing is ever written outside it. Files appear once
 * complete.
 */

struct media_directory {
    const char *path; /* borrowed */
    int fd, force;
    struct tag_index run_names, tag_names, step_names; /* names in use: of all runs; of the tags and of run/tag/step in
                                                        * this run */
    struct tag_index runs, tags; /* all runs, the tags of this run; value: the number of the name */
};

/* ---- directory below --------------------------------------------------------------------------------------------- */

/*
 * Files below a directory, which appear whole by rename. Their directories are made where they are
 * missing and entered part by part, never through a link: nothing lands outside.
 */

/* a file that is being written */
struct directory_below {
    const char *root_path, *path, *base; /* base: its name in the directory `at` */
    int at, fd;
    char temporary[64];
    struct unfinished *unfinished;
};

/* The directory that the file lies in, and in *base its name there; or a negative code. */
static int enter(int root, const char *root_path, const char *path, const char **base, struct error *e)
{
    char part[NAME_MAX + 1];
    const char *slash;
    int at = dup(root);

    if (at < 0)
        return error_system(e, "%s: cannot enter the directory", root_path);
    for (*base = path; (slash = strchr(*base, '/')); *base = slash + 1) {
        size_t n = (size_t)(slash - *base);
        int next = -1, rc = OK;

        if (n < sizeof part) {
            memcpy(part, *base, n);
            part[n] = '\0';
            if (mkdirat(at, part, 0777) == 0 || errno == EEXIST)
                next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        } else {
            errno = ENAMETOOLONG;
        }
        if (next < 0)
            rc = error_system(e, "%s/%s: cannot enter directory '%.*s' (links are not followed)", root_path, path,
                              (int)n, *base);
        close(at);
        if ((at = next) < 0)
            return rc;
    }
    return at;
}

/* root: a descriptor; root_path: for sentences. path: of a file below it, no part of it ".." or empty; borrowed until
 * the close. ERR_ARG where it exists and force is 0. After an error there is nothing to close. */
static int directory_below_open(struct directory_below *f, int root, const char *root_path, const char *path, int force,
                                mode_t mode, struct error *e)
{
    struct stat st;
    int rc;

    *f = (struct directory_below){ .root_path = root_path, .path = path, .fd = -1 };
    if ((f->at = enter(root, root_path, path, &f->base, e)) < 0)
        return f->at;
    snprintf(f->temporary, sizeof f->temporary, ".eventlog.%ld.tmp", (long)getpid());
    if (!force && fstatat(f->at, f->base, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        rc = error_set(e, ERR_ARG, "%s/%s: already exists; use -f to overwrite it", root_path, path);
    } else {
        f->unfinished = unfinished_begin(f->at, f->temporary);
        unlinkat(f->at, f->temporary, 0); /* of a killed process with our number */
        f->fd = openat(f->at, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (f->fd >= 0)
            return OK;
        rc = error_system(e, "%s/%s: cannot create", root_path, path);
        unfinished_end(f->unfinished);
    }
    close(f->at);
    return rc;
}

/* rc: what the writing came to. If it is OK, the file takes its place, else it is removed. */
static int directory_below_close(struct directory_below *f, int rc, struct error *e)
{
    if (close(f->fd) < 0 && rc == OK)
        rc = error_system(e, "%s/%s: cannot close", f->root_path, f->path);
    if (rc == OK && renameat(f->at, f->temporary, f->at, f->base) < 0)
        rc = error_system(e, "%s/%s: cannot rename into place", f->root_path, f->path);
    if (rc != OK)
        unlinkat(f->at, f->temporary, 0);
    unfinished_end(f->unfinished);
    close(f->at);
    return rc;
}

/* ---- media directory --------------------------------------------------------------------------------------------- */

enum { PART_BYTES = 200 };

/* force: files may be overwritten. Release d also after an error. */
static int media_directory_open(struct media_directory *d, const char *path, int force, struct error *e)
{
    int rc;

    memset(d, 0, sizeof *d);
    d->path = path;
    d->force = force;
    d->fd = -1;
    if ((rc = file_make_directories(path, e)) != OK)
        return rc;
    if ((d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return error_system(e, "%s: cannot open the directory", path);
    return OK;
}

static void media_directory_run(struct media_directory *d);

static void media_directory_release(struct media_directory *d)
{
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
    media_directory_run(d);
    tag_index_release(&d->runs);
    tag_index_release(&d->run_names);
}

/* Begins another run, or the same one again. */
static void media_directory_run(struct media_directory *d)
{
    tag_index_release(&d->tags);
    tag_index_release(&d->tag_names);
    tag_index_release(&d->step_names);
}

/* Appends text, or text-2, text-3, ...: the first that `used` does not have with the same `before`. Returns its number
 * in `used`, TAG_INDEX_NONE if memory runs out. */
static size_t append_free(struct tag_index *used, struct buffer *out, const char *text)
{
    size_t from = out->length;

    for (unsigned long number = 1;; number++) {
        size_t count = used->count, at;

        buffer_append_text(out, text);
        if (number > 1)
            buffer_format(out, "-%lu", number);
        at = buffer_ok(out) ? tag_index_add(used, buffer_text(out), out->length) : TAG_INDEX_NONE;
        if (at == count || at == TAG_INDEX_NONE)
            return at;
        out->length = from;
    }
}

/* Appends the name of a run or tag, one of `all`, choosing a name in `used` when it first comes. */
static int append_part(struct tag_index *all, struct tag_index *used, struct buffer *out, const char *text, size_t n)
{
    struct buffer safe = BUFFER_EMPTY, chosen = BUFFER_EMPTY;
    size_t known = all->count, number = tag_index_add(all, text, n), name = TAG_INDEX_NONE;

    if (number < known) {
        name = all->entries[number].value;
    } else if (number == known) {
        output_directory_safe(&safe, text, n < PART_BYTES ? n : PART_BYTES);
        if (!safe.length)
            buffer_append_byte(&safe, '_');
        else if (safe.data[0] == '.')
            safe.data[0] = '_';
        if (buffer_ok(&safe))
            name = append_free(used, &chosen, buffer_text(&safe));
        all->entries[number].value = name;
    }
    if (name != TAG_INDEX_NONE)
        buffer_append_text(out, used->entries[name].text);
    buffer_release(&safe);
    buffer_release(&chosen);
    return name != TAG_INDEX_NONE;
}

/* Chooses the directory of a value, "run/tag/step", and puts it into name. A step that comes again is "step-2" and so
 * on. */
static int media_directory_value(struct media_directory *d, const char *run, const char *tag, size_t tag_length,
                                 int64_t step, struct buffer *name, struct error *e)
{
    char text[24];
    int good;

    buffer_clear(name);
    good = append_part(&d->runs, &d->run_names, name, run, strlen(run));
    buffer_append_byte(name, '/');
    good = good && append_part(&d->tags, &d->tag_names, name, tag, tag_length);
    buffer_append_byte(name, '/');
    snprintf(text, sizeof text, "%lld", (long long)step);
    good = good && append_free(&d->step_names, name, text) != TAG_INDEX_NONE;
    return good && buffer_ok(name) ? OK : error_memory(e, d->path, "for the names in it");
}

/* Writes `file` into that directory, which is made if missing. */
static int media_directory_write(struct media_directory *d, const char *name, const char *file, const void *bytes,
                                 size_t n, struct error *e)
{
    char path[PATH_MAX];
    struct directory_below out;
    int rc = file_join(path, sizeof path, name, file, e);

    if (rc != OK || (rc = directory_below_open(&out, d->fd, d->path, path, d->force, 0666, e)) != OK)
        return rc;
    if (io_write_full(&io_real, out.fd, bytes, n) < 0)
        rc = error_system(e, "%s/%s: cannot write", d->path, path);
    return directory_below_close(&out, rc, e);
}

/* ---- format media ------------------------------------------------------------------------------------------------ */

enum kind { KIND_IMAGES, KIND_AUDIO, KIND_TEXT, KIND_TENSORS, KIND_PAYLOADS, KINDS };
enum { ARRAY_BYTES = 1 << 30 };

static const char *const kind_names[KINDS] = { "images", "audio", "text", "tensors", "payloads" };

struct media {
    struct media_directory directory;
    unsigned kinds;      /* 1 << kind */
    struct buffer lines; /* of the run that is being read */
    struct buffer name;  /* of the value's directory */
    uint64_t files;      /* in lines */
    int force;
};

static int parse_kinds(struct media *m, const char *list, struct error *e)
{
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",");
        int kind = 0;

        while (kind < KINDS && (strlen(kind_names[kind]) != n || memcmp(kind_names[kind], at, n) != 0))
            kind++;
        if (kind == KINDS)
            return error_set(e, ERR_ARG, "--kinds: '%.*s' is not one of images, audio, text, tensors, payloads", (int)n,
                             at);
        m->kinds |= 1u << kind;
        at += n;
        if (!*at)
            return OK;
    }
}

static int media_start(struct export *x, struct error *e)
{
    struct media *m = x->state = calloc(1, sizeof *m);
    int rc;

    if (!m)
        return error_memory(e, NULL, "for files");
    m->directory.fd = -1;
    m->force = x->options->to.force;
    if ((rc = parse_kinds(m, x->options->kinds, e)) != OK)
        return rc;
    output_text(x->out, "run,tag,step,index,kind,file,wall_time\n");
    return media_directory_open(&m->directory, x->options->media, m->force, e);
}

/* One file of the value whose directory has been chosen, and its line. */
static int add_file(struct export *x, const struct scalar_series *s, const struct event *event, enum kind kind,
                    size_t index, const char *extension, const void *bytes, size_t n, struct error *e)
{
    struct media *m = x->state;
    char file[64], text[TIME_TEXT_MAX];
    int rc;

    snprintf(file, sizeof file, "%zu%s", index, extension);
    if ((rc = media_directory_write(&m->directory, buffer_text(&m->name), file, bytes, n, e)) != OK)
        return rc;
    export_field(&m->lines, x->run, strlen(x->run), 0);
    buffer_append_byte(&m->lines, ',');
    export_field(&m->lines, s->tag, s->tag_length, 0);
    buffer_format(&m->lines, ",%lld,%zu,%s,%s/%s,", (long long)event->step, index, kind_names[kind],
                  buffer_text(&m->name), file);
    buffer_append(&m->lines, text, (size_t)export_time(x, event->wall_time, text));
    buffer_append_byte(&m->lines, '\n');
    m->files++;
    return OK;
}

/* The header of a .npy file: the type, the order and the shape as Python writes them, padded to 64 bytes. */
static int npy_header(const struct tensor_content *t, struct buffer *out)
{
    static const char *const types[] = {
        [1] = "<f4",  [2] = "<f8",  [3] = "<i4",  [4] = "|u1",   [5] = "<i2",  [6] = "|i1",  [8] = "<c8",  [9] = "<i8",
        [10] = "|b1", [14] = "|V2", [17] = "<u2", [18] = "<c16", [19] = "<f2", [22] = "<u4", [23] = "<u8",
    };
    size_t length;

    if (t->rank > TENSOR_RANK || t->dtype < 0 || (size_t)t->dtype >= sizeof types / sizeof *types || !types[t->dtype])
        return 0;
    buffer_append(out, "\x93NUMPY\x01\x00\x00\x00", 10);
    buffer_format(out, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[t->dtype]);
    for (int i = 0; i < t->rank; i++)
        buffer_format(out, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    buffer_append_text(out, t->rank == 1 ? ",), }" : "), }");
    while (buffer_ok(out) && (out->length + 1) % 64)
        buffer_append_byte(out, ' ');
    buffer_append_byte(out, '\n');
    if (!buffer_ok(out))
        return 0;
    length = out->length - 10;
    out->data[8] = (char)(length & 0xff);
    out->data[9] = (char)(length >> 8);
    return 1;
}

static int array(struct export *x, const struct scalar_series *s, const struct event *event,
                 const struct tensor_content *t, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    int rc = OK;

    if (!npy_header(t, &bytes) || !tensor_content_bytes(t, ARRAY_BYTES, &bytes))
        x->unread++;
    else
        rc = add_file(x, s, event, KIND_TENSORS, 0, ".npy", bytes.data, bytes.length, e);
    buffer_release(&bytes);
    return rc;
}

/* One string, which the page shows as Markdown; or the cells of a table, or a list. */
static int text(struct export *x, const struct scalar_series *s, const struct event *event, const struct event_value *v,
                const struct tensor_content *t, struct error *e)
{
    struct buffer all = BUFFER_EMPTY;
    int rc = OK;

    if (!export_value_text(v, &all) || !buffer_ok(&all))
        x->unread++;
    else
        rc = add_file(x, s, event, KIND_TEXT, 0, t->elements == 1 ? ".md" : ".txt", buffer_text(&all), all.length, e);
    buffer_release(&all);
    return rc;
}

/* Writes the strings of a tensor as files: for images those after width and height, for audio all, or the first of each
 * pair with a label. */
static int strings(struct export *x, const struct scalar_series *s, const struct event *event, enum kind kind,
                   const struct tensor_content *t, struct error *e)
{
    size_t first = kind == KIND_IMAGES ? 2 : 0, every = kind == KIND_AUDIO && t->rank == 2 && t->shape[1] == 2 ? 2 : 1;
    struct span file;
    size_t at = 0;
    int rc = OK;

    for (size_t i = 0; rc == OK && tensor_content_string(t, &at, &file); i++)
        if (i >= first && (i - first) % every == 0)
            rc = add_file(x, s, event, kind, (i - first) / every, media_extension(file.bytes, file.length), file.bytes,
                          file.length, e);
    return rc;
}

/* TensorBoard's own, whose strings other kinds have, or nobody wants as files. */
static int is_known(const char *plugin)
{
    static const char *const known[] = {
        "scalars",
        "histograms",
        "hparams",
        "images",
        "audio",
        "text",
        "distributions",
        "custom_scalars",
        "pr_curves",
        "beholder",
        "mesh",
        "npmi",
        "graphs",
        "graph_keras_model",
        "graph_run_metadata",
        "graph_run_metadata_graph",
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(plugin, known[i]))
            return 1;
    return 0;
}

static enum kind kind_of(const struct scalar_series *s, const struct event_value *v)
{
    if (!strcmp(s->plugin, "images"))
        return KIND_IMAGES;
    if (!strcmp(s->plugin, "audio"))
        return KIND_AUDIO;
    if (!strcmp(s->plugin, "text"))
        return KIND_TEXT;
    if (v->kind == EVENT_VALUE_TENSOR && v->dtype != EVENT_STRING && strcmp(s->plugin, "scalars") != 0 &&
        strcmp(s->plugin, "histograms") != 0 && strcmp(s->plugin, "hparams") != 0)
        return KIND_TENSORS;
    if (v->kind == EVENT_VALUE_TENSOR && v->dtype == EVENT_STRING && *s->plugin && !is_known(s->plugin))
        return KIND_PAYLOADS;
    return KINDS;
}

static int media_value(struct export *x, const struct scalar_series *s, const struct event *event,
                       const struct event_value *v, struct error *e)
{
    enum kind kind = kind_of(s, v);
    struct media *m = x->state;
    struct tensor_content t;
    struct span file;
    int rc;

    if (kind == KINDS || !(m->kinds & 1u << kind))
        return OK;
    if ((rc = media_directory_value(&m->directory, x->run, s->tag, s->tag_length, event->step, &m->name, e)) != OK)
        return rc;
    if (v->kind == EVENT_VALUE_IMAGE && kind == KIND_IMAGES && image_content_read(v->bytes, v->length, &file))
        return add_file(x, s, event, kind, 0, media_extension(file.bytes, file.length), file.bytes, file.length, e);
    if (v->kind == EVENT_VALUE_AUDIO && kind == KIND_AUDIO && audio_content_read(v->bytes, v->length, &file))
        return add_file(x, s, event, kind, 0, media_extension(file.bytes, file.length), file.bytes, file.length, e);
    if (v->kind != EVENT_VALUE_TENSOR || !tensor_content_read(&t, v->bytes, v->length) ||
        (kind != KIND_TENSORS && t.dtype != EVENT_STRING)) {
        x->unread++;
        return OK;
    }
    return kind == KIND_TENSORS ? array(x, s, event, &t, e)
           : kind == KIND_TEXT  ? text(x, s, event, v, &t, e)
                                : strings(x, s, event, kind, &t, e);
}

/* What this run wrote is written again under the same names. */
static void media_run_again(struct export *x)
{
    struct media *m = x->state;

    buffer_clear(&m->lines);
    m->files = 0;
    media_directory_run(&m->directory);
    m->directory.force = 1;
}

static int media_run_read(struct export *x, const char *run, const struct scalar_run *scalars, struct error *e)
{
    struct media *m = x->state;
    int good = buffer_ok(&m->lines);

    (void)run;
    (void)scalars;
    output_bytes(x->out, buffer_text(&m->lines), m->lines.length);
    x->points += m->files;
    m->files = 0;
    m->directory.force = m->force;
    buffer_clear(&m->lines);
    media_directory_run(&m->directory);
    return good ? OK : error_memory(e, NULL, "for the list of files");
}

static int media_finish(struct export *x, int commit, struct error *e)
{
    struct media *m = x->state;

    (void)commit;
    (void)e;
    if (!m)
        return OK;
    media_directory_release(&m->directory);
    buffer_release(&m->lines);
    buffer_release(&m->name);
    free(m);
    return OK;
}

const struct export_format format_media = {
    .name = "media",
    .extensions = "csv",
    .takes = "time kinds",
    .start = media_start,
    .finish = media_finish,
    .value = media_value,
    .run_read = media_run_read,
    .run_again = media_run_again,
};
