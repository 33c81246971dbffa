/* Any bytes as a log of some runs, through the commands that make other logs of it, and those that draw or print it. The
 * first byte chooses the command; then each record is a byte with its length and so many bytes of an event; 255 begins
 * another file, 254 another run. What a command writes must be sound records end to end, at which no loader stops. */
#include "eventlog/log_repair.h"
#include "eventlog/record.h"
#include "eventlog/tool/command.h"

#include <fcntl.h>
#include <ftw.h>
#include <sanitizer/common_interface_defs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_report_fd(void *fd) __attribute__((weak)); /* not in every build */

enum { WORDS = 6 };

static const struct {
    int (*run)(int argc, char **argv);
    int writes; /* a log, to a directory */
    const char *words[WORDS];
} commands[] = {
    { command_merge, 1, { "merge", "--keep-runs" } },
    { command_merge, 1, { "merge", "--prefix" } },
    { command_merge, 1, { "merge", "--join", "--overlap=first" } },
    { command_merge, 1, { "merge", "--join", "--overlap=keep" } },
    { command_merge, 1, { "merge", "--join", "--overlap=error", "--json" } },
    { command_rename_tag, 1, { "rename-tag", "--regex", "-e^(.*)a=b\\1" } },
    { command_rename_tag, 1, { "rename-tag", "-ea=b", "-eb=a" } },
    { command_drop_tag, 1, { "drop-tag", "-ta*" } },
    { command_downsample, 1, { "downsample", "--max-points=3" } },
    { command_downsample, 1, { "downsample", "--every=2", "--json" } },
    { command_split, 1, { "split", "--tags=x=a*", "--tags=y=b*", "--rest=z" } },
    { command_split, 1, { "split", "--steps=x=:2", "--steps=y=1:9" } },
    { command_split, 1, { "split", "--by=session" } },
    { command_split, 1, { "split", "--by=run" } },
    { command_split, 1, { "split", "--size=100" } },
    { command_tail, 0, { "tail", "--all", "-n-1" } },
    { command_tail, 0, { "tail", "--all", "-n3", "--json" } },
    { command_plot, 0, { "plot", "--ascii", "--log-y", "--smoothing=0.5" } },
    { command_plot, 0, { "plot", "--x=wall", "--color=always", "--width=30" } },
    { command_compare, 0, { "compare" } },
};

static char directory[64];
static int standard_error = -1, standard_output, nowhere;

static void prepare(void)
{
    if (standard_error >= 0)
        return;
    snprintf(directory, sizeof directory, "%s/evalboard-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(directory))
        abort();
    /* What the commands say is not for here; what the sanitizers say is. */
    standard_output = fcntl(1, F_DUPFD_CLOEXEC, 10);
    standard_error = fcntl(2, F_DUPFD_CLOEXEC, 10);
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (__sanitizer_set_report_fd)
        __sanitizer_set_report_fd((void *)(intptr_t)standard_error);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* A file of the new log: sound from start to end. */
static int check_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    struct log_repair r;

    (void)walk;
    if (kind != FTW_F)
        return 0;
    if (!strstr(path, "tfevents") || strstr(path, ".tmp") || !st->st_size ||
        log_repair_copy(NULL, path, -1, path, &r, NULL) != 0 || r.places || r.refused || r.cut || r.bytes != r.size)
        abort();
    return 0;
}

static FILE *begin_file(int run, int file)
{
    char path[128];

    snprintf(path, sizeof path, "%s/log/%d", directory, run);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/log/%d/x.tfevents.%d", directory, run, file);
    return fopen(path, "wb");
}

static void write_log(const uint8_t *data, size_t size)
{
    static uint8_t record[256 + RECORD_OVERHEAD];
    int run = 0, file = 0;
    FILE *f = begin_file(run, file);

    for (size_t i = 0; i < size && f;) {
        size_t n = data[i++];

        if (n >= 254) {
            fclose(f);
            run += n == 254;
            f = run + ++file < 8 ? begin_file(run, file) : NULL;
            continue;
        }
        n = n < size - i ? n : size - i;
        memcpy(record + RECORD_HEADER, data + i, n);
        record_seal(record, n);
        fwrite(record, 1, n + RECORD_OVERHEAD, f);
        i += n;
    }
    if (f)
        fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[WORDS + 2][128], *argv[WORDS + 3];
    size_t which;
    int argc = 0, status;

    if (size < 2)
        return 0;
    prepare();
    which = data[0] % (sizeof commands / sizeof *commands);
    mkdir(directory, 0777);
    snprintf(text[0], sizeof text[0], "%s/log", directory);
    mkdir(text[0], 0777);
    write_log(data + 1, size - 1);
    for (int i = 0; i < WORDS && commands[which].words[i]; i++)
        snprintf(text[argc++], sizeof *text, "%s", commands[which].words[i]);
    if (commands[which].writes)
        snprintf(text[argc++], sizeof *text, "-o%s/new", directory);
    snprintf(text[argc++], sizeof *text, "%s/log", directory);
    for (int i = 0; i < argc; i++)
        argv[i] = text[i];
    argv[argc] = NULL;
    fflush(stdout);
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    status = commands[which].run(argc, argv);
    fflush(stdout);
    dup2(standard_output, 1);
    dup2(standard_error, 2);
    snprintf(text[0], sizeof text[0], "%s/new", directory);
    if (status == 2 && access(text[0], F_OK) == 0)
        abort(); /* something failed, but not all of it was taken back */
    nftw(text[0], check_one, 16, FTW_PHYS);
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
