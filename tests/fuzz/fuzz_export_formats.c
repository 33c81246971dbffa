/* Any bytes as a log of one or two runs, through every format of `eventlog export` and the commands that read as it
 * does. The first byte chooses the command, the second its options; then each record is a byte with its length and
 * so many bytes of an event; 255 begins another file, 254 another run. */
#include "eventlog/record.h"
#include "eventlog/tool/command.h"

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

enum { WORDS = 4 };

static const struct {
    int (*run)(int argc, char **argv);
    const char *words[WORDS];
} commands[] = {
    { command_export, { "export", "--format=csv" } },
    { command_export, { "export", "--format=csv", "--order=file" } },
    { command_export, { "export", "--format=wide", "--wall-time" } },
    { command_export, { "export", "--format=json" } },
    { command_export, { "export", "--format=jsonl" } },
    { command_export, { "export", "--format=jsonl-series" } },
    { command_export, { "export", "--format=tb-csv" } },
    { command_export, { "export", "--format=tb-json", "--multirun" } },
    { command_export, { "export", "--format=reduce", "--lax-tags", "--dup=last" } },
    { command_export, { "export", "--format=reduce", "--min-runs=1", "--ops=mean,std,min,max,median,sum,count,var" } },
    { command_export, { "export", "--format=prom" } },
    { command_export, { "export", "--format=histograms" } },
    { command_export, { "export", "--media" } },
    { command_export, { "export", "--format=sqlite" } },
    { command_stats, { "stats" } },
    { command_stats, { "stats", "--json" } },
    { command_tags, { "tags", "--format=tb-json" } },
    { command_hparams, { "hparams", "--wide", "--metric=a:min" } },
    { command_hparams, { "hparams", "--json", "--metric=a" } },
    { command_inspect, { "inspect", "--json" } },
    { command_inspect, { "inspect", "--tree" } },
    { command_inspect, { "inspect", "--format=tb" } },
};
static const char *const extra[] = { NULL, "--view=tensorboard", "--view=session", "--nonfinite=drop",
                                     "--float32=short",
                                     "--from-step=1", "--tsv", "--crlf" };

static char directory[64];
static int standard_error, nowhere;

static void prepare(void)
{
    snprintf(directory, sizeof directory, "%s/evalboard-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(directory))
        abort();
    /* What the commands say is not for here; what the sanitizers say is. */
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
    char text[12][128], *argv[13];
    size_t which;
    int argc = 0;

    if (size < 2)
        return 0;
    if (!*directory)
        prepare();
    which = data[0] % (sizeof commands / sizeof *commands);
    snprintf(text[0], sizeof text[0], "%s/log", directory);
    if (mkdir(directory, 0777) < 0 || mkdir(text[0], 0777) < 0)
        nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS), mkdir(directory, 0777), mkdir(text[0], 0777);
    write_log(data + 2, size - 2);
    for (int i = 0; i < WORDS && commands[which].words[i]; i++)
        snprintf(text[argc++], sizeof *text, "%s", commands[which].words[i]);
    if (!strcmp(text[argc - 1], "--media"))
        snprintf(text[argc++], sizeof *text, "%s/media", directory);
    if (extra[data[1] % 8])
        snprintf(text[argc++], sizeof *text, "%s", extra[data[1] % 8]);
    if (data[1] & 8)
        snprintf(text[argc++], sizeof *text, "--tag=a*");
    snprintf(text[argc++], sizeof *text, "-f");
    snprintf(text[argc++], sizeof *text, "-o%s/out.prom%s", directory, data[1] & 16 ? "/" : "");
    snprintf(text[argc++], sizeof *text, "%s/log", directory);
    for (int i = 0; i < argc; i++)
        argv[i] = text[i];
    argv[argc] = NULL;
    dup2(nowhere, 2);
    commands[which].run(argc, argv);
    dup2(standard_error, 2);
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
