/* Any bytes as a log (fuzz_log.h), through every format of `eventlog export` and the commands that read as it does. The
 * first byte chooses the command, the second its options. */
#include "tests/fuzz/fuzz_log.h"

#include "eventlog/tool/command.h"

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
static const char *const extra[] = {
    NULL,    "--view=tensorboard", "--view=session", "--nonfinite=drop", "--float32=short", "--from-step=1", "--tsv",
    "--crlf"
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_log on_disk;
    char text[12][128], *argv[13];
    size_t which;
    int argc = 0;

    if (size < 2)
        return 0;
    which = data[0] % (sizeof commands / sizeof *commands);
    fuzz_log_write(&on_disk, data + 2, size - 2);
    for (int i = 0; i < WORDS && commands[which].words[i]; i++)
        snprintf(text[argc++], sizeof *text, "%s", commands[which].words[i]);
    if (!strcmp(text[argc - 1], "--media"))
        snprintf(text[argc++], sizeof *text, "%s/media", on_disk.directory);
    if (extra[data[1] % 8])
        snprintf(text[argc++], sizeof *text, "%s", extra[data[1] % 8]);
    if (data[1] & 8)
        snprintf(text[argc++], sizeof *text, "--tag=a*");
    snprintf(text[argc++], sizeof *text, "-f");
    snprintf(text[argc++], sizeof *text, "-o%s/out.prom%s", on_disk.directory, data[1] & 16 ? "/" : "");
    snprintf(text[argc++], sizeof *text, "%s/log", on_disk.directory);
    for (int i = 0; i < argc; i++)
        argv[i] = text[i];
    argv[argc] = NULL;
    fuzz_log_run(&on_disk, commands[which].run, argc, argv);
    fuzz_log_remove(&on_disk);
    return 0;
}
