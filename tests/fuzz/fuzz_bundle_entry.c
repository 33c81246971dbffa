/* Values of an index: the first byte chooses entry, header or strings. An entry that is read is written and read again
 * as the same. */
#include "checkpoint/bundle_entry.h"
#include "checkpoint/string_tensor.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void entry(const uint8_t *data, size_t size)
{
    struct buffer bytes = BUFFER_EMPTY, second = BUFFER_EMPTY;
    struct tensor_entry *one, *two;
    struct error e = { 0 };

    if (bundle_entry_decode("fuzz", "name", 4, data, size, 3, &one, &e) != OK) {
        if (!e.message[0])
            abort();
        return;
    }
    if (one->slices)
        bundle_slices_check("fuzz", one, &e);
    if (bundle_entry_encode(&bytes, one, &e) != OK ||
        bundle_entry_decode("fuzz", "name", 4, bytes.data, bytes.length, 3, &two, &e) != OK ||
        bundle_entry_encode(&second, two, &e) != OK || second.length != bytes.length ||
        (bytes.length && memcmp(second.data, bytes.data, bytes.length) != 0))
        abort();
    buffer_release(&bytes);
    buffer_release(&second);
    free(one);
    free(two);
}

static void strings(const uint8_t *data, size_t size, uint64_t elements)
{
    struct tensor_string items[256];
    struct buffer out = BUFFER_EMPTY;
    uint32_t crc, again;

    if (string_tensor_check(data, size, elements, &crc, NULL) != OK)
        return;
    string_tensor_split(data, size, elements, items);
    again = string_tensor_encode(&out, items, (size_t)elements);
    /* Lengths may have been written longer than need be, which the CRC of the lengths does not cover. */
    if (again != crc || out.length > size)
        abort();
    buffer_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t shards;

    if (size < 2)
        return 0;
    if (data[0] % 4 == 1)
        bundle_header_decode("fuzz", data + 1, size - 1, &shards, NULL);
    else if (data[0] % 4 == 2)
        strings(data + 2, size - 2, data[1]);
    else
        entry(data + 1, size - 1);
    return 0;
}
