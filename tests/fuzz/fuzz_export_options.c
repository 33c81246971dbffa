/* Any bytes as a command line of `eventlog export`, words separated by NULs: what is accepted goes together. */
#include "eventlog/tool/export/export_options.h"

#include "base/program/options.h"
#include "eventlog/tool/export/export.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), program[] = "export", *argv[WORDS + 2] = { program };
    struct export_options a;
    struct scan s = { .failed = 0 };
    struct error e = { 0 };
    int argc = 1, paths = 0, rc, nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), standard_output = dup(1);

    if (!text || nowhere < 0 || standard_output < 0)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t at = 0; at < size && argc < WORDS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    argv[argc] = NULL;
    fflush(stdout);
    dup2(nowhere, 1); /* --help */
    rc = export_options_parse(&a, &s, argc, argv, &paths, &e);
    fflush(stdout);
    dup2(standard_output, 1);
    close(standard_output);
    close(nowhere);
    if (rc == OPTIONS_RUN && (!paths || !a.log || a.range.from_step > a.range.to_step || !a.to.format))
        abort();
    if (rc < 0 && !*e.message)
        abort();
    free(text);
    return 0;
}
