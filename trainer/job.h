/*
 * job.h - starts the job that a command line asks for, instead of taking part in it: with --resource-info on several
 * hosts, with --restarts again after a failure. It knows how many workers and servers the strategy takes, and which
 * checkpoints there are; trainer/launch/ knows how ranks are started, and what is a failure.
 */
#ifndef TRAINER_JOB_H
#define TRAINER_JOB_H

#include "base/program/log.h"
#include "trainer/train_options.h"

/* 1: call job_start() instead of world_open(). ERR_ARG: a job is asked for, but this process is a rank of one. */
int job_wanted(const struct train_options *o, struct error *e);

/* Starts the job, and becomes it, or with --restarts waits for it. Returns the exit status: the job's, or after
 * --dry-run or an error, which is logged. */
int job_start(const struct train_options *o, struct log *log);

#endif
