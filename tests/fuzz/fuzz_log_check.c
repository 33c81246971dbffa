/* Any bytes as the records of a run: a byte with the length, then so many bytes of an event; 255 begins another file.
 * What the check calls sound must be an event for the decoder, too. */
#include "eventlog/check/log_check.h"

#include "eventlog/format/event_decode.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct log_check *c;
    uint64_t sound = 0;
    uint64_t offset = 0;

    if (log_check_new(&c, "run", NULL) != 0 || log_check_file(c, "a.tfevents.1.h.1.10", NULL) != 0)
        abort();
    for (size_t i = 0; i < size;) {
        size_t n = data[i++], place;
        struct event event;
        uint8_t *copy;

        if (n == 255) {
            log_check_end(c, offset, offset, NULL);
            log_check_file(c, "a.tfevents.1.h.1.2", NULL);
            offset = 0;
            continue;
        }
        n = n < size - i ? n : size - i;
        copy = malloc(n ? n : 1);
        memcpy(copy, data + i, n);
        i += n;
        if (log_check_data(copy, n, &place) == LOG_KINDS) {
            sound++;
            if (event_decode(copy, n, &event, NULL) != 0 || !event.is_utf8)
                abort();
        } else if (place > n) {
            abort();
        }
        if (log_check_record(c, offset, copy, n, NULL) != 0)
            abort();
        offset += n + RECORD_OVERHEAD;
        free(copy);
    }
    log_check_end(c, offset, offset + 3, NULL);
    log_check_finish(c, NULL);
    if (log_check_totals(c).records != sound)
        abort();
    log_check_free(c);
    return 0;
}
