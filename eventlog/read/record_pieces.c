#include "eventlog/read/record_pieces.h"

int record_pieces_cut(const struct record_file *f, size_t most, uint64_t least, uint64_t *starts)
{
    uint64_t size = f->size, length = most ? size / most : size;
    size_t count = 1;

    length = length < least ? least : length;
    starts[0] = 0;
    while (count < most && size - starts[count - 1] >= 2 * length) {
        uint64_t place = 0;
        int found = record_file_find(f, starts[count - 1] + length, size, &place);

        if (found < 0)
            return -1;
        if (!found)
            break;
        starts[count++] = place;
    }
    starts[count] = size;
    return (int)count;
}

int record_piece_open(struct record_piece *p, const char *path, uint64_t start, uint64_t end, uint64_t size,
                      uint64_t limit, struct error *e)
{
    int rc;

    *p = (struct record_piece){ .end = end };
    if ((rc = record_file_open(&p->file, path, e)) != OK)
        return rc;
    p->file.size = size < p->file.size ? size : p->file.size;
    record_parser_init(&p->file.parser, start, limit);
    return OK;
}

void record_piece_close(struct record_piece *p)
{
    record_file_close(&p->file);
}

int record_piece_next(struct record_piece *p, struct record *r, struct error *e)
{
    int rc;

    if (p->is_held) {
        *r = p->held;
        rc = p->held_result;
    } else {
        rc = record_file_next(&p->file, r, e);
    }
    p->is_held = 0;
    if (rc == RECORD_MORE)
        p->met = p->end == p->file.size; /* what is at the end of the file is the same for everyone */
    if ((rc != RECORD_DATA && rc != RECORD_DAMAGE) || r->offset < p->end)
        return rc;
    p->held = *r;
    p->held_result = rc;
    p->is_held = 1;
    p->met = r->offset == p->end && rc == RECORD_DATA; /* damage is counted by one of them */
    return RECORD_MORE;
}
