/* Any bytes as the file of a process that died, with whole records among them: a byte says how many follow, and whether
 * they are sealed as a record. A file that can be gone on with is the old one up to its last whole record, and a prefix
 * of what it was; one that cannot is left as it was. */
#include "eventlog/write/event_resume.h"

#include "base/buffer.h"
#include "base/file.h"
#include "eventlog/format/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_whole(const struct buffer *b)
{
    const uint8_t *data = (const uint8_t *)buffer_text(b);
    struct record_parser p;
    struct record r;

    record_parser_init(&p, 0, 0);
    while (record_next(&p, data + p.position, b->length - p.position, b->length, &r) == RECORD_DATA)
        ;
    if (p.offset != b->length)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer before = BUFFER_EMPTY, after = BUFFER_EMPTY;
    uint8_t record[64 + RECORD_OVERHEAD];
    uint64_t end, cut;
    char path[64];
    FILE *f;
    int fd, rc;

    snprintf(path, sizeof path, "/dev/shm/fuzz_event_resume.%ld", (long)getpid());
    for (size_t i = 0; i < size;) {
        int sealed = data[i] >> 7;
        size_t n = data[i++] & 63;

        n = n < size - i ? n : size - i;
        memcpy(record + RECORD_HEADER, data + i, n);
        record_seal(record, n);
        buffer_append(&before, sealed ? record : record + RECORD_HEADER, n + (sealed ? RECORD_OVERHEAD : 0));
        i += n;
    }
    if (!(f = fopen(path, "wb")) || fwrite(buffer_text(&before), 1, before.length, f) != before.length ||
        fclose(f) != 0)
        abort();
    rc = event_resume_open(&io_real, path, &fd, &end, &cut, NULL);
    if (file_read(path, 1 << 30, &after, NULL) != OK)
        abort();
    if (rc == OK) {
        if (end + cut != before.length || after.length != end || (end && memcmp(after.data, before.data, end) != 0))
            abort();
        check_whole(&after);
        close(fd);
    } else if (rc != ERR_CORRUPT || after.length != before.length || fd != -1) {
        abort();
    }
    buffer_release(&before);
    buffer_release(&after);
    unlink(path);
    return 0;
}
