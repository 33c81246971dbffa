/*
 * fuzz_log.h - any bytes as a log on disk, and a command that runs over it in silence: for harnesses of whole commands.
 * Each record of the log is a byte with its length and so many bytes of an event; 255 begins another file, 254 another
 * run.
 */
#ifndef TESTS_FUZZ_FUZZ_LOG_H
#define TESTS_FUZZ_FUZZ_LOG_H

#include "eventlog/format/record.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Not there in a program without sanitizers. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

/* static, so all zero at first */
struct fuzz_log {
    char directory[64];         /* holds "log" and whatever a command writes */
    int output, error, nowhere; /* standard output and error of the harness; /dev/null */
};

static inline FILE *fuzz_log_file(const struct fuzz_log *f, int run, int file)
{
    char path[128];

    snprintf(path, sizeof path, "%s/log/%d", f->directory, run);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/log/%d/x.tfevents.%d", f->directory, run, file);
    return fopen(path, "wb");
}

static inline void fuzz_log_prepare(struct fuzz_log *f)
{
    if (*f->directory)
        return;
    snprintf(f->directory, sizeof f->directory, "%s/evalboard-fuzz-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(f->directory))
        abort();
    /* What the commands say is not for here; what the sanitizers say is. */
    f->output = fcntl(1, F_DUPFD_CLOEXEC, 10);
    f->error = fcntl(2, F_DUPFD_CLOEXEC, 10);
    f->nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (__sanitizer_set_report_fd)
        __sanitizer_set_report_fd((void *)(intptr_t)f->error);
}

static inline void fuzz_log_write(struct fuzz_log *f, const uint8_t *data, size_t size)
{
    static uint8_t record[256 + RECORD_OVERHEAD];
    int run = 0, number = 0;
    char path[128];
    FILE *file;

    fuzz_log_prepare(f);
    snprintf(path, sizeof path, "%s/log", f->directory);
    mkdir(f->directory, 0777);
    mkdir(path, 0777);
    file = fuzz_log_file(f, run, number);
    for (size_t i = 0; i < size && file;) {
        size_t n = data[i++];

        if (n >= 254) {
            fclose(file);
            run += n == 254;
            file = run + ++number < 8 ? fuzz_log_file(f, run, number) : NULL;
            continue;
        }
        n = n < size - i ? n : size - i;
        memcpy(record + RECORD_HEADER, data + i, n);
        record_seal(record, n);
        fwrite(record, 1, n + RECORD_OVERHEAD, file);
        i += n;
    }
    if (file)
        fclose(file);
}

/* The command's status. */
static inline int fuzz_log_run(const struct fuzz_log *f, int (*command)(int argc, char **argv), int argc, char **argv)
{
    int status;

    fflush(stdout);
    dup2(f->nowhere, 1);
    dup2(f->nowhere, 2);
    status = command(argc, argv);
    fflush(stdout);
    dup2(f->output, 1);
    dup2(f->error, 2);
    return status;
}

static inline int fuzz_log_remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    if (strstr(path, ".eventlog.") && strstr(path, ".tmp"))
        abort();
    return remove(path);
}

/* Removes everything; stops where the command left a temporary file behind. */
static inline void fuzz_log_remove(const struct fuzz_log *f)
{
    nftw(f->directory, fuzz_log_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
