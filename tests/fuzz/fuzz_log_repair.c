/* Any bytes as a damaged file, with whole records among them: a byte says how many follow, and whether they are sealed
 * as a record. The repaired file must be records end to end, and a second repair must change nothing. */
#include "eventlog/rewrite/log_repair.h"

#include "base/buffer.h"
#include "eventlog/format/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int from = memfd_create("from", 0), to = memfd_create("to", 0);
    char from_path[40], to_path[40];
    struct eventlog_repair r, again;
    uint8_t record[64 + RECORD_OVERHEAD];

    snprintf(from_path, sizeof from_path, "/proc/self/fd/%d", from);
    snprintf(to_path, sizeof to_path, "/proc/self/fd/%d", to);
    for (size_t i = 0; i < size;) {
        int sealed = data[i] >> 7;
        size_t n = data[i++] & 63;

        n = n < size - i ? n : size - i;
        memcpy(record + RECORD_HEADER, data + i, n);
        record_seal(record, n);
        if (write(from, sealed ? record : record + RECORD_HEADER, n + (sealed ? RECORD_OVERHEAD : 0)) < 0)
            abort();
        i += n;
    }
    if (log_repair_copy(NULL, from_path, to, to_path, &r, NULL) != 0 ||
        log_repair_copy(NULL, to_path, -1, to_path, &again, NULL) != 0 || r.bytes > r.size || again.size != r.bytes ||
        again.bytes != again.size || again.records != r.records || again.places || again.refused || again.cut)
        abort();
    close(from);
    close(to);
    return 0;
}
