/*
 * log_check.h - finds everything in the files of one run that makes TensorBoard drop, hide or misread data. Pure: takes
 * names, records and damage in reading order (files in byte order of their names), and keeps findings.
 *
 * Each damage is one finding, up to LOG_CHECK_EACH per kind and file; the last of these counts the rest of that kind.
 * Everything else is one finding per file, kind and series, at its first record, with a count. Memory grows with tags
 * and findings, not with points. A check is for one thread at a time.
 */
#ifndef EVENTLOG_CHECK_LOG_CHECK_H
#define EVENTLOG_CHECK_LOG_CHECK_H

#include "base/error.h"
#include "eventlog/check/log_finding.h"
#include "eventlog/format/record.h"

/* ---- log naming -------------------------------------------------------------------------------------------------- */

/*
 * Finds names that mislead readers, which read every file of a run that looks like an event file, in
 * byte order of names, and may skip a directory that begins with a dot. Pure.
 */

/*
 * 1 if the numbers in two file names, given in byte order, have the opposite order: `.10` before `.2`. Only numbers
 * that tell when a file was begun count: the seconds after `tfevents.`, or the last number of names that are equal up
 * to it. A process id or a number in a host name tells nothing.
 */
int log_naming_order_broken(const char *former, const char *name);

/* 1 if the file name ends like that of a backup, a part or an archive. */
int log_naming_is_copy(const char *name);

/* 1 if the name of the run's directory, or of one above it in the log, begins with a dot and is not "." itself. */
int log_naming_is_hidden(const char *run);

/* ---- log check --------------------------------------------------------------------------------------------------- */

enum { LOG_CHECK_EACH = 1000 };

struct log_check;

/* run: its name, relative to the log directory. On OK *out is yours: log_check_free(), NULL is fine. */
int log_check_new(struct log_check **out, const char *run, struct error *e);
void log_check_free(struct log_check *c);

/* The next file begins. name: without its directory; copied. */
int log_check_file(struct log_check *c, const char *name, struct error *e);
/* The file is compressed and is where TensorBoard will find it; its records are the unpacked ones. */
int log_check_compressed(struct log_check *c, struct error *e);
/* A record with correct CRCs at this offset of the file. */
int log_check_record(struct log_check *c, uint64_t offset, const uint8_t *data, size_t n, struct error *e);
/* Damage of the framing, as record_next() returned it. */
int log_check_damage(struct log_check *c, const struct record *damage, struct error *e);
/* The file ends. whole: the offset up to which it was read; less than size: the last record is incomplete. */
int log_check_end(struct log_check *c, uint64_t whole, uint64_t size, struct error *e);
/* The run ends: finds what only shows then. */
int log_check_finish(struct log_check *c, struct error *e);

struct log_check_totals {
    uint64_t records, bytes; /* sound records, bytes of all files */
    uint64_t by_level[3];    /* findings' counts, enum log_level */
    uint64_t lost;           /* bytes of damage */
};
struct log_check_totals log_check_totals(const struct log_check *c);
/* Findings so far, by file and then in order of discovery. Borrowed until the next call. */
const struct log_finding *log_check_findings(const struct log_check *c, size_t *count);

/* Why a reader fails on the data of this record, LOG_PROTOBUF to LOG_WALL_NAN, or LOG_KINDS if none does; *place: the
 * offset in the data. A repair leaves such records out. */
enum log_finding_kind log_check_data(const uint8_t *data, size_t n, size_t *place);

#endif
