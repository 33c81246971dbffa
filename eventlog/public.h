/*
 * public.h - what writer and reader share of eventlog.h: its error, and the reserved words of its structs.
 */
#ifndef EVENTLOG_PUBLIC_H
#define EVENTLOG_PUBLIC_H

#include "base/error.h"
#include "eventlog/eventlog.h"

#include <stddef.h>
#include <stdint.h>

/* Copies `from` to *to, unless that is NULL; returns its code, which equals an EVENTLOG_ERROR_*. */
int public_error(struct eventlog_error *to, const struct error *from);

/* ERR_ARG if one of the n reserved words of a caller's struct is not zero: it is an option of a later version. */
int public_reserved(const uint64_t *words, size_t n, struct error *e);

#endif
