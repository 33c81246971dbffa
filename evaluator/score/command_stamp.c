#include "evaluator/score/command_stamp.h"

#include "base/file.h"
#include "evaluator/files/content_digest.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char apart[] = " \t\n'\"`=;&|()<>,";

static uint64_t mix_bytes(uint64_t h, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = file_stamp_mix(h, (unsigned char)bytes[i]);
    return h;
}

/* Not its device, whose number may be another after a reboot. */
static int mix_file(uint64_t *h, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    st.st_dev = 0;
    *h = file_stamp_mix(*h, file_stamp(&st));
    return 1;
}

uint64_t command_stamp(const char *command)
{
    uint64_t h = mix_bytes(1, command, strlen(command));
    int first = 1, written = 0;

    while (*command) {
        const size_t n = strcspn(command, apart);
        char word[PATH_MAX], program[PATH_MAX];

        if (!n) {
            written = *command == '>' || (written && (*command == ' ' || *command == '\t'));
            command++;
            continue;
        }
        if (!written && snprintf(word, sizeof word, "%.*s", (int)n, command) < (int)sizeof word &&
            !mix_file(&h, word) && first && !strchr(word, '/') && file_find_program(word, program))
            mix_file(&h, program);
        first = written = 0;
        command += n;
    }
    return h ? h : 1;
}
