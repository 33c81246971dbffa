#include "base/number.h"

#include "base/bytes.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* printf and strtod use the thread's locale; numbers in files never do. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

/*
 * ---- the shortest digits: Schubfach (R. Giulietti, "The Schubfach way to render doubles", 2020) --------------------
 *
 * A double is c 2^q; the reals that read back as it are the interval from (c - 1/2) 2^q to (c + 1/2) 2^q, whose ends
 * belong to it if c is even; the lower half is a quarter where c 2^q is a power of two. With 10^k the largest power of
 * ten that is not longer than the interval, a multiple of 10^k lies in it, and at most one of 10^(k+1): that one is
 * the shortest decimal if it exists, else the multiple of 10^k that is nearest to the double.
 *
 * All is compared after multiplication by 4 10^-k. powers[] holds 10^-k as 128 bits, rounded up; the paper shows that
 * the 192-bit product of it and a c of up to 55 bits, cut to its integer part with a last bit that says "and something
 * more" (round_to_odd), compares with whole numbers as the exact product does.
 */
enum { POWER_MIN = -292, POWER_MAX = 324, POWERS = POWER_MAX - POWER_MIN + 1, WORDS = 40, EXACT = 55 };

/* 10^n = (high 2^64 + low) 2^(floor(log2(10^n)) - 127), rounded up */
struct power {
    uint64_t high, low;
};

static struct power powers[POWERS]; /* written under `once`, only read afterwards */

/* floor(log10(2^e)), floor(log10(3/4 2^e)), floor(log2(10^e)): right for all exponents a double can have. */
static int log10_of_2(int e)
{
    return (int)((int64_t)e * 661971961083 >> 41);
}

static int log10_of_3_quarters_2(int e)
{
    return (int)(((int64_t)e * 661971961083 - 274743187321) >> 41);
}

static int log2_of_10(int e)
{
    return (int)((int64_t)e * 913124641741 >> 38);
}

/* The highest 128 bits of the number in 32-bit words, lowest first; exact: what is below them is 0. */
static struct power top_bits(const uint32_t words[WORDS], int exact)
{
    unsigned __int128 top = 0;
    int i = WORDS - 1, shift;

    while (!words[i])
        i--;
    shift = __builtin_clz(words[i]);
    for (int k = 0; k < 4; k++)
        top = top << 32 | (i - k >= 0 ? words[i - k] : 0);
    if (shift)
        top = top << shift | (i >= 4 ? words[i - 4] >> (32 - shift) : 0);
    top += !exact;
    return (struct power){ (uint64_t)(top >> 64), (uint64_t)top };
}

/* Powers of ten have the leading bits of powers of five: those are made by multiplying 1, and dividing a large power of
 * two, by 5 again and again; floor(floor(x / 5) / 5) is floor(x / 25), so no error builds up. */
static void prepare_powers(void)
{
    uint32_t words[WORDS] = { 1 };

    for (int n = 0; n <= POWER_MAX; n++) {
        uint64_t carry = 0;

        powers[n - POWER_MIN] = top_bits(words, n <= EXACT); /* 5^55 has 128 bits */
        for (int i = 0; i < WORDS; i++) {
            carry += (uint64_t)words[i] * 5;
            words[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    memset(words, 0, sizeof words);
    words[WORDS - 1] = 1u << 31;
    for (int n = -1; n >= POWER_MIN; n--) {
        uint64_t rest = 0;

        for (int i = WORDS - 1; i >= 0; i--) {
            rest = rest << 32 | words[i];
            words[i] = (uint32_t)(rest / 5);
            rest %= 5;
        }
        powers[n - POWER_MIN] = top_bits(words, 0);
    }
}

static uint64_t round_to_odd(struct power g, uint64_t c)
{
    unsigned __int128 low = (unsigned __int128)g.low * c, high = (unsigned __int128)g.high * c + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* c 2^q as digits 10^*exponent; uneven: the neighbour below is half as far as the one above. */
static uint64_t shortest_digits(uint64_t c, int q, int uneven, int *exponent)
{
    int k = uneven ? log10_of_3_quarters_2(q) : log10_of_2(q), h = q + log2_of_10(-k) + 1;
    struct power g = powers[-k - POWER_MIN];
    uint64_t odd = c & 1, middle = round_to_odd(g, 4 * c << h);
    uint64_t lower = round_to_odd(g, (4 * c - 2 + (uint64_t)uneven) << h) + odd;
    uint64_t upper = round_to_odd(g, (4 * c + 2) << h) - odd;
    uint64_t below = middle / 4, tens = below / 10;
    int low_in = lower <= 40 * tens, high_in = 40 * tens + 40 <= upper;

    if (low_in != high_in) {
        *exponent = k + 1;
        return tens + (uint64_t)high_in;
    }
    *exponent = k;
    low_in = lower <= 4 * below;
    high_in = 4 * below + 4 <= upper;
    if (low_in != high_in)
        return below + (uint64_t)high_in;
    return below + (middle > 4 * below + 2 || (middle == 4 * below + 2 && below & 1));
}

static void number_prepare(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    prepare_powers();
}

/* ---- layout ---------------------------------------------------------------------------------------------------- */

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                            "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                            "8081828384858687888990919293949596979899";

#define EIGHT_ZEROS ((uint64_t)0x3030303030303030)

static void two(char *out, uint32_t v)
{
    memcpy(out, pairs + 2 * v, 2);
}

/* v < 10^8 as 8 digits, in parts of a word side by side: halves below 10^4, quarters below 100, digits. For these
 * ranges 10486 / 2^20 divides by 100, and 103 / 2^10 by 10, rounding down. The first digit is in the lowest byte. */
static inline uint64_t eight(uint32_t v)
{
    uint64_t halves = v / 10000 | (uint64_t)(v % 10000) << 32, quarters, digits, tens;

    tens = (halves * 10486 >> 20) & 0x7f0000007f;
    quarters = tens | (halves - tens * 100) << 16;
    tens = (quarters * 103 >> 10) & 0x000f000f000f000f;
    digits = tens | (quarters - tens * 10) << 8;
    return digits | EIGHT_ZEROS;
}

/* v < 10^17 as 17 digits. */
static void seventeen(char *out, uint64_t v)
{
    uint64_t high = v / 100000000;

    *out = (char)('0' + high / 100000000);
    put_le64(out + 1, eight((uint32_t)(high % 100000000)));
    put_le64(out + 9, eight((uint32_t)(v % 100000000)));
}

/* Wall times nearly always are whole microseconds: for 1e9 <= x < 2^32 the spacing of doubles is below one unit of the
 * sixth decimal, so if the nearest microsecond divides back to x, its digits are the shortest. They are written from
 * registers to where they belong: to read a part of bytes just written makes the processor wait for the writing. */
static int microseconds(double x, char *out)
{
    const uint64_t k = (uint64_t)(x * 1e6 + 0.5), seconds = k / 1000000;
    const uint64_t decimals = eight((uint32_t)(k % 1000000) * 100), nonzero = decimals ^ EIGHT_ZEROS;

    if ((double)k / 1e6 != x)
        return 0;
    two(out, (uint32_t)(seconds / 100000000));
    put_le64(out + 2, eight((uint32_t)(seconds % 100000000)));
    out[10] = '.';
    put_le64(out + 11, decimals);
    return nonzero ? 19 - __builtin_clzll(nonzero) / 8 : 12;
}

/* digits 10^exponent, digits > 0, as repr() writes it; out has room for NUMBER_TEXT_MAX - 2. Copies of fixed length,
 * quicker than one of n bytes, may leave more behind the text. */
static int lay_out(uint64_t digits, int exponent, char *out)
{
    char text[17 + 16];
    const char *first = text;
    int n, point, start = 0;

    seventeen(text, digits);
    while (*first == '0')
        first++;
    n = (int)(text + 17 - first);
    point = n + exponent; /* the place of the decimal point relative to the first digit */
    while (first[n - 1] == '0')
        n--;
    if (point > 16 || point <= -4) {
        int e = point > 0 ? point - 1 : 1 - point;

        out[start++] = *first;
        if (n > 1)
            out[start++] = '.';
        memcpy(out + start, first + 1, 16);
        start += n - 1;
        out[start++] = 'e';
        out[start++] = point > 0 ? '+' : '-';
        if (e >= 100)
            out[start++] = (char)('0' + e / 100);
        two(out + start, (uint32_t)e % 100);
        return start + 2;
    }
    if (point <= 0) {
        memcpy(out, "0.000", 5);
        memcpy(out + 2 - point, first, 17);
        return 2 - point + n;
    }
    if (point >= n) {
        memcpy(out, first, (size_t)n);
        memset(out + n, '0', (size_t)(point - n));
        memcpy(out + point, ".0", 2);
        return point + 2;
    }
    memcpy(out, first, 16);
    out[point] = '.';
    memcpy(out + point + 1, first + point, point <= 8 ? 16 : 9);
    return n + 1;
}

/* What is not finite, and zero; the sign of a NaN is not kept. */
static int special(uint64_t fraction, int is_zero, int negative, char *out)
{
    const char *text = is_zero ? "-0.0" : fraction ? "-nan" : "-inf";
    int from = !negative || (!is_zero && fraction);

    memcpy(out, text + from, (size_t)(5 - from));
    return 4 - from;
}

int number_text(double x, char *out)
{
    uint64_t bits = double_bits(x), fraction = bits & (((uint64_t)1 << 52) - 1), digits;
    int biased = (int)(bits >> 52) & 2047, negative = (int)(bits >> 63), n = 0, exponent;

    if (biased == 2047 || !(bits << 1))
        return special(fraction, biased != 2047, negative, out);
    if (negative) {
        out[n++] = '-';
        x = -x;
    }
    if (x >= 1e9 && x < 4294967296.0 && (exponent = microseconds(x, out + n)) > 0) {
        n += exponent;
        out[n] = '\0';
        return n;
    }
    pthread_once(&once, number_prepare);
    digits = biased ? shortest_digits(fraction | (uint64_t)1 << 52, biased - 1075, !fraction && biased > 1, &exponent)
                    : shortest_digits(fraction, -1074, 0, &exponent);
    n += lay_out(digits, exponent, out + n);
    out[n] = '\0';
    return n;
}

int number_text_float(float x, char *out)
{
    uint32_t bits = float_bits(x), fraction = bits & ((1u << 23) - 1);
    int biased = (int)(bits >> 23) & 255, negative = (int)(bits >> 31), n = 0, exponent;
    uint64_t digits;

    if (biased == 255 || !(bits << 1))
        return special(fraction, biased != 255, negative, out);
    if (negative)
        out[n++] = '-';
    pthread_once(&once, number_prepare);
    digits = biased ? shortest_digits(fraction | 1u << 23, biased - 150, !fraction && biased > 1, &exponent)
                    : shortest_digits(fraction, -149, 0, &exponent);
    n += lay_out(digits, exponent, out + n);
    out[n] = '\0';
    return n;
}

int number_parse_int(const char *text, int64_t *out)
{
    char *end;
    long long v;

    if (!*text || !strchr("+-0123456789", *text))
        return 0;
    errno = 0;
    v = strtoll(text, &end, 10);
    if (*end || end == text || errno)
        return 0;
    *out = v;
    return 1;
}

int number_parse_double(const char *text, double *out)
{
    char *end;
    double v;

    pthread_once(&once, number_prepare);
    if (!*text || strchr(" \t\n\r\f\v", *text))
        return 0;
    errno = 0;
    v = strtod_l(text, &end, c_locale);
    if (*end || end == text || (errno && fabs(v) > 1))
        return 0;
    *out = v;
    return 1;
}
