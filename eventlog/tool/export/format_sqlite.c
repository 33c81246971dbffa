/*
 * sqlite: tables of series, points, texts and hyperparameters, with two views of them, written in one transaction to a
 * temporary file that is then renamed. Values are bound, never printed: SQLite stores a bound NaN as NULL, and
 * infinities unchanged. The view `scalars` is the interface; the tables may change with user_version.
 */
#include "eventlog/tool/export/export.h"

#if SQLITE
#include "base/version.h"
#include "eventlog/format/value_content.h"
#include "eventlog/tool/export/value_list.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char schema[] =
    "PRAGMA application_id = 0x54464576;\n" /* "TFEv" */
    "PRAGMA user_version = 1;\n"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;\n"
    "CREATE TABLE series(\n"
    "  series_id    INTEGER PRIMARY KEY,\n"
    "  run          TEXT NOT NULL,\n"
    "  tag          TEXT NOT NULL,\n"
    "  plugin       TEXT NOT NULL DEFAULT 'scalars',\n"
    "  dtype        TEXT NOT NULL CHECK (dtype IN ('float32', 'float64')),\n"
    "  display_name TEXT NOT NULL DEFAULT '',\n"
    "  description  TEXT NOT NULL DEFAULT '',\n"
    "  UNIQUE(run, tag));\n"
    "CREATE TABLE points(\n"
    "  series_id INTEGER NOT NULL REFERENCES series,\n"
    "  seq       INTEGER NOT NULL,                    -- reading order, from 0\n"
    "  step      INTEGER NOT NULL,\n"
    "  wall_time REAL    NOT NULL,\n"
    "  value     REAL,                                -- NULL is NaN\n"
    "  PRIMARY KEY(series_id, seq)) WITHOUT ROWID;\n"
    "CREATE TABLE texts(\n"
    "  series_id INTEGER NOT NULL REFERENCES series,\n"
    "  seq       INTEGER NOT NULL,\n"
    "  step      INTEGER NOT NULL,\n"
    "  wall_time REAL    NOT NULL,\n"
    "  value     TEXT    NOT NULL,\n"
    "  PRIMARY KEY(series_id, seq)) WITHOUT ROWID;\n"
    "CREATE TABLE hparams(\n"
    "  run TEXT NOT NULL, name TEXT NOT NULL, value,  -- REAL, TEXT, or INTEGER 0/1 for a bool\n"
    "  PRIMARY KEY(run, name)) WITHOUT ROWID;\n"
    "CREATE VIEW scalars AS\n"
    "  SELECT s.run, s.tag, p.step, p.value, p.wall_time\n"
    "  FROM points p JOIN series s USING(series_id);\n"
    "CREATE VIEW latest AS\n"
    "  SELECT s.run, s.tag, p.step, p.value, p.wall_time\n"
    "  FROM series s CROSS JOIN points p ON p.series_id = s.series_id\n"
    "   AND p.seq = (SELECT max(seq) FROM points q WHERE q.series_id = s.series_id);\n";

enum statement { META, SERIES, POINT, TEXT, HPARAM, POINTS, STATEMENTS };

/* Rows per statement: this takes a third of the time of single-row statements, each of which searches for its place
 * again. The series is bound once for all rows. */
enum { POINTS_ROWS = 64, POINTS_OWN = 4 };
#define ROWS_4 "(?1,?,?,?,?),(?1,?,?,?,?),(?1,?,?,?,?),(?1,?,?,?,?)"
#define ROWS_16 ROWS_4 "," ROWS_4 "," ROWS_4 "," ROWS_4

static const char *const statements[STATEMENTS] = {
    "INSERT INTO meta VALUES(?, ?)",
    "INSERT INTO series(run, tag, plugin, dtype, display_name, description) VALUES(?, ?, ?, ?, ?, ?)",
    "INSERT INTO points VALUES(?1, ?, ?, ?, ?)",
    "INSERT INTO texts VALUES(?, ?, ?, ?, ?)",
    "INSERT OR REPLACE INTO hparams VALUES(?, ?, ?)",
    "INSERT INTO points VALUES " ROWS_16 "," ROWS_16 "," ROWS_16 "," ROWS_16,
};

struct database {
    sqlite3 *handle;
    struct output *file; /* the temporary file, put in place at the end */
    sqlite3_stmt *statements[STATEMENTS];
    struct value_list texts, sessions; /* of the run that is being read */
};

static int failed(const struct export *x, const struct database *d, struct error *e)
{
    return error_set(e, ERR_IO, "%s: SQLite: %s", x->options->to.path, sqlite3_errmsg(d->handle));
}

static int sqlite_start(struct export *x, struct error *e)
{
    /* The file is ours alone until it is renamed: a crash leaves nothing to recover, so there is no journal and no
     * sync. Large pages are filled and written with less work for each row. */
    static const char begin[] = "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA "
                                "locking_mode = EXCLUSIVE; BEGIN";
    struct database *d = x->state = calloc(1, sizeof *d);
    int rc;

    if (!d)
        return error_memory(e, NULL, "for a database");
    if ((rc = output_open(&d->file, x->options->to.path, x->options->to.force, e)) != OK)
        return rc;
    if (!output_temporary(d->file))
        return error_set(e, ERR_ARG, "%s: not a regular file; a database cannot be streamed", x->options->to.path);
    if (sqlite3_open_v2(output_temporary(d->file), &d->handle,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) ||
        sqlite3_exec(d->handle, begin, NULL, NULL, NULL) || sqlite3_exec(d->handle, schema, NULL, NULL, NULL))
        return failed(x, d, e);
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v2(d->handle, statements[i], -1, &d->statements[i], NULL))
            return failed(x, d, e);
    return OK;
}

/* Text with U+FFFD for bytes that are not UTF-8. A NUL inside is bound unchanged. */
static void bind_text(sqlite3_stmt *s, int at, const void *text, size_t n)
{
    struct buffer sound = BUFFER_EMPTY;

    export_utf8(&sound, text, n);
    if (buffer_ok(&sound))
        sqlite3_bind_text64(s, at, buffer_text(&sound), sound.length, SQLITE_TRANSIENT, SQLITE_UTF8);
    else
        sqlite3_bind_null(s, at); /* out of memory: the row is refused */
    buffer_release(&sound);
}

static int step_row(const struct export *x, struct database *d, enum statement which, struct error *e)
{
    int rc = sqlite3_step(d->statements[which]);

    sqlite3_reset(d->statements[which]);
    return rc == SQLITE_DONE ? OK : failed(x, d, e);
}

/* ---- what is no point ------------------------------------------------------------------------------------------ */

static void sqlite_run_again(struct export *x)
{
    struct database *d = x->state;

    value_list_release(&d->texts);
    value_list_release(&d->sessions);
}

static int sqlite_value(struct export *x, const struct scalar_series *s, const struct event *event,
                        const struct event_value *v, struct error *e)
{
    static const char session[] = "_hparams_/session_start_info";
    struct database *d = x->state;
    struct buffer text = BUFFER_EMPTY;
    int rc = OK;

    if (!strcmp(s->plugin, "hparams") && !strcmp(s->tag, session) && v->metadata)
        return value_list_add(&d->sessions, s->number, event->step, event->wall_time, v->metadata, v->metadata_length,
                              e);
    if (strcmp(s->plugin, "text") != 0 || !export_value_text(v, &text))
        return OK;
    if (!buffer_ok(&text))
        rc = error_memory(e, NULL, "for a text");
    else
        rc = value_list_add(&d->texts, s->number, event->step, event->wall_time, buffer_text(&text), text.length, e);
    buffer_release(&text);
    return rc;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static int add_series(struct export *x, const char *run, const struct scalar_series *s, sqlite3_int64 *id,
                      struct error *e)
{
    struct database *d = x->state;
    sqlite3_stmt *row = d->statements[SERIES];
    struct summary_metadata m;
    int single = 1, rc = SQLITE_CONSTRAINT;

    summary_metadata_read(&m, (const uint8_t *)(s->metadata ? s->metadata : ""), s->metadata_length);
    for (size_t i = 0; i < s->count; i++)
        single &= (scalar_series_from(s, i) & SCALAR_FROM_FLOAT32) != 0;
    /* Replacing bytes that are not UTF-8 may make two names equal: the later one gets a number. */
    for (unsigned number = 1; rc == SQLITE_CONSTRAINT && number < 1000; number++) {
        struct buffer tag = BUFFER_EMPTY;

        buffer_append(&tag, s->tag, s->tag_length);
        if (number > 1)
            buffer_format(&tag, "-%u", number);
        bind_text(row, 1, run, strlen(run));
        bind_text(row, 2, buffer_text(&tag), tag.length);
        bind_text(row, 3, s->plugin, strlen(s->plugin));
        bind_text(row, 4, single ? "float32" : "float64", 7);
        bind_text(row, 5, m.display_name.bytes, m.display_name.length);
        bind_text(row, 6, m.description.bytes, m.description.length);
        rc = sqlite3_step(row);
        sqlite3_reset(row);
        buffer_release(&tag);
    }
    *id = sqlite3_last_insert_rowid(d->handle);
    return rc == SQLITE_DONE ? OK : failed(x, d, e);
}

static void bind_point(sqlite3_stmt *row, int before, size_t number, const struct eventlog_point *p)
{
    sqlite3_bind_int64(row, before + 1, (sqlite3_int64)number);
    sqlite3_bind_int64(row, before + 2, p->step);
    sqlite3_bind_double(row, before + 3, p->wall_time);
    sqlite3_bind_double(row, before + 4, p->value);
}

static int sqlite_series(struct export *x, const char *run, const struct scalar_series *s, struct error *e)
{
    struct database *d = x->state;
    sqlite3_int64 id;
    int rc = add_series(x, run, s, &id, e);

    sqlite3_bind_int64(d->statements[POINT], 1, id);
    sqlite3_bind_int64(d->statements[POINTS], 1, id);
    for (size_t i = 0, rows; i < s->count && rc == OK; i += rows) {
        enum statement which = s->count - i < POINTS_ROWS ? POINT : POINTS;

        rows = which == POINTS ? POINTS_ROWS : 1;
        for (size_t k = 0; k < rows; k++)
            bind_point(d->statements[which], 1 + (int)k * POINTS_OWN, i + k, &s->points[i + k]);
        rc = step_row(x, d, which, e);
    }
    return rc;
}

static int write_texts(struct export *x, const char *run, const struct scalar_series *s, struct error *e)
{
    struct database *d = x->state;
    sqlite3_stmt *row = d->statements[TEXT];
    sqlite3_int64 id = 0, seq = 0;
    int rc = OK;

    for (size_t i = 0; i < d->texts.count && rc == OK; i++) {
        const struct value_item *note = &d->texts.items[i];

        if (note->series != s->number)
            continue;
        if (!seq)
            rc = add_series(x, run, s, &id, e);
        sqlite3_bind_int64(row, 1, id);
        sqlite3_bind_int64(row, 2, seq++);
        sqlite3_bind_int64(row, 3, note->step);
        sqlite3_bind_double(row, 4, note->wall_time);
        bind_text(row, 5, note->bytes, note->length);
        if (rc == OK)
            rc = step_row(x, d, TEXT, e);
    }
    return rc;
}

struct run_hparam {
    struct export *x;
    const char *run;
    struct error *error;
};

static int write_hparam(void *context, const struct hparam *h)
{
    struct run_hparam *c = context;
    struct database *d = c->x->state;
    sqlite3_stmt *row = d->statements[HPARAM];

    bind_text(row, 1, c->run, strlen(c->run));
    bind_text(row, 2, h->name.bytes, h->name.length);
    if (h->type == HPARAM_NUMBER)
        sqlite3_bind_double(row, 3, h->number);
    else if (h->type == HPARAM_BOOL)
        sqlite3_bind_int(row, 3, h->number != 0);
    else if (h->type == HPARAM_TEXT)
        bind_text(row, 3, h->text.bytes, h->text.length);
    else
        sqlite3_bind_null(row, 3);
    return step_row(c->x, d, HPARAM, c->error);
}

static int sqlite_run_read(struct export *x, const char *run, const struct scalar_run *scalars, struct error *e)
{
    struct database *d = x->state;
    struct run_hparam context = { x, run, e };
    int rc = OK;

    for (size_t i = 0; i < scalars->count && rc == OK; i++)
        if (!strcmp(scalars->series[i].plugin, "text"))
            rc = write_texts(x, run, &scalars->series[i], e);
    for (size_t i = 0; i < d->sessions.count && rc == OK; i++) {
        struct summary_metadata m;

        summary_metadata_read(&m, (const uint8_t *)d->sessions.items[i].bytes, d->sessions.items[i].length);
        rc = summary_metadata_hparams(&m, write_hparam, &context);
    }
    sqlite_run_again(x);
    return rc;
}

static int write_meta(struct export *x, const char *key, const char *text, struct error *e)
{
    struct database *d = x->state;

    bind_text(d->statements[META], 1, key, strlen(key));
    bind_text(d->statements[META], 2, text, strlen(text));
    return step_row(x, d, META, e);
}

static int write_all_meta(struct export *x, struct error *e)
{
    char points[24], skipped[24], at[40] = "";
    time_t now = time(NULL);
    struct tm utc;
    int rc;

    snprintf(points, sizeof points, "%llu", (unsigned long long)x->points);
    snprintf(skipped, sizeof skipped, "%llu", (unsigned long long)x->skipped);
    if (gmtime_r(&now, &utc))
        strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if ((rc = write_meta(x, "tool", "eventlog", e)) != OK ||
        (rc = write_meta(x, "tool_version", EVALBOARD_VERSION, e)) != OK ||
        (rc = write_meta(x, "logdir", x->options->log, e)) != OK ||
        (rc = write_meta(x, "view", x->options->view, e)) != OK ||
        (!getenv("SOURCE_DATE_EPOCH") && (rc = write_meta(x, "exported_at", at, e)) != OK) ||
        (rc = write_meta(x, "points", points, e)) != OK)
        return rc;
    return write_meta(x, "skipped", skipped, e);
}

static int sqlite_finish(struct export *x, int commit, struct error *e)
{
    struct database *d = x->state;
    int rc = OK;

    if (!d)
        return OK;
    if (commit && (rc = write_all_meta(x, e)) == OK && sqlite3_exec(d->handle, "COMMIT", NULL, NULL, NULL))
        rc = failed(x, d, e);
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(d->statements[i]);
    if (d->handle && sqlite3_close(d->handle) && rc == OK && commit)
        rc = failed(x, d, e);
    if (d->file) {
        int closed = output_close(d->file, commit && rc == OK, rc == OK ? e : NULL);

        rc = rc == OK ? closed : rc;
    }
    sqlite_run_again(x);
    free(d);
    return rc;
}

#endif

static int sqlite_check(struct export_options *o, const void *own, struct error *e)
{
    (void)own;
    return o->to.path ? OK : error_set(e, ERR_ARG, "--format=sqlite needs -o FILE: a database cannot be streamed");
}

const struct export_format format_sqlite = {
    .name = "sqlite",
    .help = "a database",
    .extensions = "sqlite sqlite3 db",
    .binary = 1,
    .takes = "view nonfinite",
    .check = sqlite_check,
#if SQLITE
    .opens_files = 1,
    .reading_order = 1,
    .start = sqlite_start,
    .series = sqlite_series,
    .finish = sqlite_finish,
    .value = sqlite_value,
    .run_read = sqlite_run_read,
    .run_again = sqlite_run_again,
#else
    .lacks = "SQLite",
#endif
};
