/*
 * public.h - what writer and reader share of eventlog.h: its error.
 */
#ifndef EVENTLOG_PUBLIC_H
#define EVENTLOG_PUBLIC_H

#include "base/error.h"
#include "eventlog/eventlog.h"

#include <stddef.h>
#include <stdint.h>

/* Copies `from` to *to, unless that is NULL; returns its code, which equals an EVENTLOG_ERROR_*. */
int public_error(struct eventlog_error *to, const struct error *from);

#endif
