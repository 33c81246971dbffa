/* The bytes are decisions of how an event file is made, sound or damaged in one place (made_events.h): verify, reader
 * and points must say of it what was made. */
#include "tests/fuzz/made_events.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct made_events m;
    struct error e = { 0 };

    made_events_make(&m, decisions_from_bytes(data, size));
    if (made_events_judge(&m, &e) != OK) {
        fprintf(stderr, "%s\n", e.message);
        abort();
    }
    made_events_release(&m);
    return 0;
}
