/*
 * file_stamp.h - what a file looks like from outside, without reading it: a number that is another one after the file
 * was written, replaced, renamed or linked, and the times of its changes. Pure.
 */
#ifndef EVALUATOR_FILES_FILE_STAMP_H
#define EVALUATOR_FILES_FILE_STAMP_H

#include <stdint.h>
#include <sys/stat.h>

/* h with x stirred in. Digests in ledgers are made with it: it stays as it is. */
uint64_t file_stamp_mix(uint64_t h, uint64_t x);

/* Of device, inode, size and both times. For this machine, as long as it runs. */
uint64_t file_stamp(const struct stat *st);

/* Wall seconds. changed: of the inode, which also moves when a file with an old content is renamed into place;
 * modified: of the content. */
double file_stamp_changed(const struct stat *st);
double file_stamp_modified(const struct stat *st);

#endif
