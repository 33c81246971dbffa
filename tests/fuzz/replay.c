/*
 * Runs a fuzz harness over its committed inputs, in `make test` and without libFuzzer: each input, the input cut short,
 * the input with a byte changed. Linked with a fuzz_<name>.c as replay_<name>; the inputs are in
 * tests/fuzz/corpus/<name>.txt as hexadecimal lines with an empty line between two of them.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 65536, CHANGES = 4000 /* of all inputs together, about */ };

/* Copies, so that a sanitizer sees one byte too many. */
static void run(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);

    if (!copy)
        abort();
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static void run_around(uint8_t *data, size_t n, size_t changes)
{
    size_t step = n * 2 / (changes + 1) + 1;

    run(data, n);
    for (size_t i = 0; i < n; i += step) {
        uint8_t byte = data[i];

        run(data, i);
        data[i] ^= (uint8_t)(1u << i % 8);
        run(data, n);
        data[i] = byte;
    }
}

/* The next input of the file into data; its length, or -1 at the end. */
static long next_input(FILE *f, uint8_t *data)
{
    char line[512];
    size_t n = 0;
    int any = 0;

    while (fgets(line, sizeof line, f)) {
        const char *c = line;

        if (*line == '#')
            continue;
        if (*line == '\n' && any)
            break;
        for (; isxdigit((unsigned char)c[0]) && isxdigit((unsigned char)c[1]) && n < INPUT_MAX; c += 2) {
            const char pair[] = { c[0], c[1], '\0' };

            data[n++] = (uint8_t)strtoul(pair, NULL, 16);
            any = 1;
        }
    }
    return any ? (long)n : -1;
}

int main(int argc, char **argv)
{
    const char *mark = strstr(argv[0], "replay_"), *name = mark ? mark + strlen("replay_") : NULL;
    static uint8_t data[INPUT_MAX];
    char path[PATH_MAX];
    FILE *f, *told = fdopen(dup(1), "w");
    size_t inputs = 0;
    long n;

    (void)argc;
    /* What is tried out may print: that is not the result. */
    if (!name || !told || dup2(open("/dev/null", O_WRONLY), 1) < 0)
        return 2;
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s.txt", name);
    fprintf(told, "1..1\n");
    fflush(told);
    if (!(f = fopen(path, "r"))) {
        fprintf(told, "not ok 1 - %s: %s\n", path, strerror(errno));
        fclose(told);
        return 1;
    }
    run(data, 0);
    while (next_input(f, data) >= 0)
        inputs++;
    rewind(f);
    while ((n = next_input(f, data)) >= 0)
        run_around(data, (size_t)n, CHANGES / (inputs ? inputs : 1));
    fclose(f);
    fprintf(told, "%sok 1 - %s: %zu inputs\n", inputs ? "" : "not ", name, inputs);
    fclose(told);
    return inputs ? 0 : 1;
}
