/*
 * file_stamp.h - detects changes of a file without reading it: a number that differs once the file was written,
 * replaced, renamed or linked, and the times of its changes. Pure.
 */
#ifndef EVALUATOR_FILES_FILE_STAMP_H
#define EVALUATOR_FILES_FILE_STAMP_H

#include <stdint.h>
#include <sys/stat.h>

/* Mixes x into h. Digests in ledgers are made with it, so it must never change. */
uint64_t file_stamp_mix(uint64_t h, uint64_t x);

/* Made of device, inode, size and both times. Valid on this machine until it reboots. */
uint64_t file_stamp(const struct stat *st);

/* Wall seconds. changed: of the inode, also when an older file is renamed into place; modified: of the content. */
double file_stamp_changed(const struct stat *st);
double file_stamp_modified(const struct stat *st);

#endif
