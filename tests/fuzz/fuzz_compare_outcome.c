/* A line of results of `trainer compare`: what parses must be written and read back as the same line. Any bytes as the
 * texts of trainer and evaluator, and as names of strategies. */
#include "trainer/compare/outcome.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_line(const char *text, size_t size)
{
    struct buffer line = BUFFER_EMPTY, again = BUFFER_EMPTY;
    struct outcome o, back;
    char training[64];

    if (outcome_read(&o, training, sizeof training, text, size, NULL) != OK)
        return;
    outcome_write(&o, training, &line);
    if (!buffer_ok(&line) || outcome_read(&back, training, sizeof training, line.data, line.length, NULL) != OK)
        abort();
    outcome_write(&back, training, &again);
    if (line.length != again.length || memcmp(line.data, again.data, line.length) != 0)
        abort();
    outcome_release(&o);
    outcome_release(&back);
    buffer_release(&line);
    buffer_release(&again);
}

static void read_others(const char *text, size_t size)
{
    struct outcome o = { 0 };
    char *copy = malloc(size + 1), reason[16];

    outcome_add_summary(&o, text, size, NULL);
    outcome_add_ledger(&o, text, size, NULL);
    if (copy) {
        static const char *const names[] = { "ps", "mpi", NULL };
        struct cell *cells = NULL;
        size_t count;

        memcpy(copy, text, size);
        copy[size] = '\0';
        outcome_reason(copy, reason, sizeof reason);
        if (cells_parse(&cells, &count, copy, "1,2", names, NULL) == OK) {
            struct cell_words words;

            if (cell_words(&cells[0], &words, NULL) == OK && words.count > CELL_WORDS)
                abort();
        }
        free(cells);
    }
    free(copy);
    outcome_release(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_line((const char *)data, size);
    read_others((const char *)data, size);
    return 0;
}
