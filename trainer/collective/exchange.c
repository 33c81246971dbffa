#include "trainer/collective/exchange.h"

#include "trainer/collective/addition.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 1024 }; /* elements added at once, so that their sum stays in the first cache */

size_t bucket_count(size_t total, size_t bucket)
{
    return total == 0 ? 1 : (total - 1) / bucket + 1;
}

struct extent bucket_extent(size_t total, size_t bucket, size_t q)
{
    struct extent x;

    x.to = total - q * bucket;
    x.from = x.to > bucket ? x.to - bucket : 0;
    return x;
}

size_t buckets_ready(size_t total, size_t bucket, size_t low)
{
    if (low == 0)
        return bucket_count(total, bucket);
    return low >= total ? 0 : (total - low) / bucket;
}

struct extent slice_extent(struct extent whole, int n, int r)
{
    size_t length = whole.to - whole.from, a = EXCHANGE_ALIGNMENT;
    size_t lines = (length + a - 1) / a;
    size_t from = lines * (size_t)r / (size_t)n * a, to = lines * ((size_t)r + 1) / (size_t)n * a;
    struct extent x;

    x.from = whole.from + (from < length ? from : length);
    x.to = whole.from + (to < length ? to : length);
    return x;
}

enum { PACKETS_WANTED = 16 }; /* of a server, if they are not too small then */

size_t exchange_piece(size_t total, size_t pieces)
{
    const size_t least = EXCHANGE_LEAST_BYTES / sizeof(real), most = EXCHANGE_MOST_BYTES / sizeof(real);
    size_t count = total / least < pieces ? total / least : pieces;

    if (count < (total + most - 1) / most)
        count = (total + most - 1) / most;
    return count > 1 ? (total + count - 1) / count : total + (total == 0);
}

size_t exchange_bucket(size_t total, size_t bytes, int ranks)
{
    const size_t aligned = EXCHANGE_ALIGNMENT, even = aligned * (size_t)ranks;

    if (!bytes)
        return (exchange_piece(total, 2) + even - 1) / even * even;
    return bytes / sizeof(real) < aligned ? aligned : bytes / sizeof(real) / aligned * aligned;
}

size_t exchange_packet(size_t total, size_t bytes, int beside)
{
    const size_t said = bytes / sizeof(real);

    if (bytes)
        return said ? said : 1;
    return exchange_piece(total, beside ? 2 : PACKETS_WANTED);
}

int exchange_partner(int n, int r, int k)
{
    if ((n & (n - 1)) == 0)
        return r ^ k;
    return (k - r + n) % n;
}

size_t slices_count(size_t total, size_t bucket, int n, int r)
{
    size_t count = 0;

    for (size_t q = 0; q < bucket_count(total, bucket); q++) {
        const struct extent x = slice_extent(bucket_extent(total, bucket, q), n, r);

        count += x.to - x.from;
    }
    return count;
}

void exchange_sum(real *out, const real *const *parts, int count, size_t from, size_t to)
{
    if (count == 1 && out != parts[0])
        memcpy(out + from, parts[0] + from, (to - from) * sizeof *out);
    for (size_t at = from; at < to && count > 1; at += BLOCK) {
        const size_t length = to - at < BLOCK ? to - at : BLOCK;

        addition_both(out + at, parts[0] + at, parts[1] + at, length);
        for (int p = 2; p < count; p++)
            addition_both(out + at, out + at, parts[p] + at, length);
    }
}

uint64_t exchange_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = seed ^ 0xcbf29ce484222325u;
    uint64_t word;

    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 32; /* otherwise a word's high bits would never reach the low ones */
    }
    for (; n > 0; n--)
        h = (h ^ *p++) * 0x100000001b3u;
    return h;
}

uint64_t exchange_table_hash(const struct network *n)
{
    size_t count;
    const struct variable *v = network_variables(n, &count);
    uint64_t h = EXCHANGE_HASH_SEED;

    for (size_t i = 0; i < count; i++) {
        int64_t facts[5] = { (int64_t)v[i].kind, v[i].rank, (int64_t)v[i].offset, (int64_t)v[i].count, sizeof(real) };

        h = exchange_hash(v[i].name, strlen(v[i].name), h);
        h = exchange_hash(v[i].shape, (size_t)v[i].rank * sizeof *v[i].shape, h);
        h = exchange_hash(facts, sizeof facts, h);
        h = exchange_hash(&v[i].decay, sizeof v[i].decay, h);
    }
    return h;
}

uint64_t exchange_replica_hash(struct network *n)
{
    const uint64_t h = exchange_hash(network_parameters(n), network_parameter_count(n) * sizeof(real),
                                     EXCHANGE_HASH_SEED);

    return exchange_hash(network_statistics(n), network_statistic_count(n) * sizeof(real), h);
}

static const char *name_at(const struct network *n, size_t element)
{
    size_t count;
    const struct variable *v = network_variables(n, &count);

    for (size_t i = 0; i < count; i++) {
        const size_t from = network_exchange_place(n, &v[i]);

        if (element >= from && element - from < v[i].count)
            return v[i].name;
    }
    return "the batch's weight";
}

void extent_names(const struct network *n, struct extent x, char *text, size_t size)
{
    const size_t end = network_exchange_count(n) - 1, to = x.to < end ? x.to : end; /* not the weight */
    const char *first = name_at(n, x.from), *last = to > x.from ? name_at(n, to - 1) : first;

    if (!strcmp(first, last))
        snprintf(text, size, "%s", first);
    else
        snprintf(text, size, "%s .. %s", first, last);
}
