/*
 * log_archive.h - an archive: finished logs in one compressed file, whose members can be read one by one. All integers
 * are little-endian:
 *
 *   magic      8 bytes 89 54 46 5a 0d 0a 1a 0a ("\x89TFZ\r\n\x1a\n"), u32 version 1, u32 0
 *   members    each a zlib stream (RFC 1950), one after another, in the order of the directory
 *   directory  for each member: u32 length of the name, u32 permissions (st_mode & 07777), u64 offset and u64 length
 *              of its stream, u64 length of its contents, i64 time of change in nanoseconds since 1970, u32 CRC-32C of
 *              the contents, u32 CRC-32C of the stream, then the name
 *   footer     u64 offset and u64 length of the directory, u64 members, u32 CRC-32C of the directory, u32 CRC-32C of
 *              the 28 bytes before, 8 bytes "TFZ end\n"
 *
 * Names are relative paths with '/', of parts that are neither empty nor "." nor "..", without NUL, in strictly
 * ascending byte order. A flipped or missing byte anywhere is found: streams by their CRCs, the rest by the
 * directory's, the footer's, and their having to fit together without gaps.
 */
#ifndef EVENTLOG_READ_LOG_ARCHIVE_H
#define EVENTLOG_READ_LOG_ARCHIVE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { LOG_ARCHIVE_NAME_MOST = 4095, LOG_ARCHIVE_MODE = 07777 };

struct log_archive_entry {
    char *name;
    uint32_t mode;
    uint64_t offset, packed, size; /* bytes */
    int64_t mtime;                 /* nanoseconds since 1970 */
    uint32_t crc, packed_crc;      /* of the contents, of the stream */
};

/* ---- writing ---- */

struct log_archive_writer;

/* Starts an archive in fd, which stays the caller's and is at offset 0; path (borrowed) names it in errors. level: 1
 * fast to 9 small. On OK *out is yours: log_archive_writer_free() it, which does not finish the archive. */
int log_archive_writer_new(struct log_archive_writer **out, int fd, const char *path, int level, struct error *e);
void log_archive_writer_free(struct log_archive_writer *w); /* NULL is fine */

/* Adds the next member: everything that can be read from `from` (from_path in errors). ERR_ARG: the name is not
 * allowed, or does not sort after the one before. *size (may be NULL): bytes read. */
int log_archive_writer_add(struct log_archive_writer *w, const char *name, uint32_t mode, int64_t mtime, int from,
                           const char *from_path, uint64_t *size, struct error *e);
/* Writes directory and footer. The caller syncs the file. */
int log_archive_writer_finish(struct log_archive_writer *w, struct error *e);

/* ---- reading ---- */

struct log_archive {
    int fd;
    char *path;
    struct log_archive_entry *entries; /* count of them, names ascending */
    size_t count;
};

/* ERR_CORRUPT: it is not an archive, or is truncated or damaged outside its members. Release also after an error. */
int log_archive_open(struct log_archive *a, const char *path, struct error *e);
/* The same from a descriptor, which it takes over even on error; path names it in errors. */
int log_archive_take(struct log_archive *a, int fd, const char *path, struct error *e);
void log_archive_release(struct log_archive *a);

/* Passes the contents of a member to sink in pieces, never more than entry->size bytes. ERR_CORRUPT: they differ from
 * what was archived, which may be known only after the last piece. */
typedef int log_archive_sink(void *context, const void *bytes, size_t n, struct error *e);
int log_archive_read(const struct log_archive *a, const struct log_archive_entry *entry, log_archive_sink *sink,
                     void *context, struct error *e);

/* 1 if a member may have this name: it cannot lead outside the directory that it is extracted into. */
int log_archive_name_allowed(const char *name, size_t n);

/* The pure half of open. log_archive_footer() takes the 40 bytes at the end of a file of file_size bytes and returns
 * where the directory is; log_archive_directory() takes the directory's bytes and returns its entries, which are yours:
 * log_archive_entries_free() them. */
enum { LOG_ARCHIVE_FOOTER = 40 };
struct log_archive_place {
    uint64_t offset, length, members;
    uint32_t crc;
};
int log_archive_footer(struct log_archive_place *place, const uint8_t *footer, uint64_t file_size, struct error *e);
int log_archive_directory(struct log_archive_entry **entries, size_t *count, const struct log_archive_place *place,
                          const uint8_t *bytes, struct error *e);
void log_archive_entries_free(struct log_archive_entry *entries, size_t count);

#endif
