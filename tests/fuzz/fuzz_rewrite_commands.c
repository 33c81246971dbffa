/* Any bytes as a log (fuzz_log.h), through the commands that make other logs of it, and those that draw or print it. The
 * first byte chooses the command. What a command writes must be sound records end to end, at which no loader stops. */
#include "tests/fuzz/fuzz_log.h"

#include "eventlog/rewrite/log_repair.h"
#include "eventlog/tool/command.h"

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
    { command_compare, 0, { "compare", "--format=svg", "--smoothing=0.5", "--x=relative-step,wall" } },
    { command_plot, 0, { "plot", "--format=svg", "--band=min-max", "--clip-outliers=on" } },
    { command_plot, 0, { "plot", "--group=*", "--log-y", "--x=relative", "--y-range=0.1," } },
};

/* A file of the new log: sound from start to end. */
static int check_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    struct eventlog_repair r;

    (void)walk;
    if (kind != FTW_F)
        return 0;
    if (!strstr(path, "tfevents") || strstr(path, ".tmp") || !st->st_size ||
        log_repair_copy(NULL, path, -1, path, &r, NULL) != 0 || r.places || r.refused || r.cut || r.bytes != r.size)
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_log on_disk;
    char text[WORDS + 2][128], *argv[WORDS + 3];
    size_t which;
    int argc = 0, status;

    if (size < 2)
        return 0;
    which = data[0] % (sizeof commands / sizeof *commands);
    fuzz_log_write(&on_disk, data + 1, size - 1);
    for (int i = 0; i < WORDS && commands[which].words[i]; i++)
        snprintf(text[argc++], sizeof *text, "%s", commands[which].words[i]);
    if (commands[which].writes)
        snprintf(text[argc++], sizeof *text, "-o%s/new", on_disk.directory);
    snprintf(text[argc++], sizeof *text, "%s/log", on_disk.directory);
    for (int i = 0; i < argc; i++)
        argv[i] = text[i];
    argv[argc] = NULL;
    status = fuzz_log_run(&on_disk, commands[which].run, argc, argv);
    snprintf(text[0], sizeof text[0], "%s/new", on_disk.directory);
    if (status == 2 && access(text[0], F_OK) == 0)
        abort(); /* something failed, but not all of it was taken back */
    nftw(text[0], check_one, 16, FTW_PHYS);
    fuzz_log_remove(&on_disk);
    return 0;
}
