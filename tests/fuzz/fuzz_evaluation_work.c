/* The text of work.json: what is taken is written again as text that gives the same. */
#include "evaluator/record/evaluation_work.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct evaluation_work work, again;
    struct buffer text = BUFFER_EMPTY;

    if (evaluation_work_parse((const char *)data, size, &work)) {
        evaluation_work_format(&work, &text);
        if (buffer_ok(&text) && (!evaluation_work_parse(buffer_text(&text), text.length, &again) ||
                                 again.pid != work.pid || again.in_hand_count != work.in_hand_count))
            abort();
    }
    buffer_release(&text);
    return 0;
}
