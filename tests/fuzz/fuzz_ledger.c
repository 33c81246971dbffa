/* One line of a ledger: what parses must be written and read back as the same record. */
#include "evaluator/record/ledger.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ledger_record r, back;
    struct buffer line = BUFFER_EMPTY;

    if (ledger_parse((const char *)data, size, &r, NULL) != OK)
        return 0;
    ledger_format(&r, &line);
    if (!buffer_ok(&line) || ledger_parse(line.data, line.length - 1, &back, NULL) != OK)
        abort();
    if (!checkpoint_identity_same(&r.checkpoint, &back.checkpoint) || r.status != back.status ||
        strcmp(r.reason, back.reason) || r.metrics.count != back.metrics.count)
        abort();
    for (size_t i = 0; i < r.metrics.count; i++)
        if (strcmp(r.metrics.items[i].name, back.metrics.items[i].name))
            abort();
    ledger_record_release(&r);
    ledger_record_release(&back);
    buffer_release(&line);
    return 0;
}
