#include "base/number.h"

#include "base/bytes.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* printf and strtod use the thread's locale; numbers in files never do. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int is_prepared; /* so that numbers need no call to find out */
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

/* The same where both neighbours are equally far, without the comparisons that need all bits: from the double in units
 * of 10^k, as a whole number and 64 bits of its fraction, and from half the interval, which are at most two units of
 * their last bit away from the truth. 0: it is too close to call. */
static inline uint64_t quick_digits(uint64_t c, int q, int *exponent)
{
    const uint64_t ten = (uint64_t)10 << 60, middle = (uint64_t)1 << 63;
    const int k = log10_of_2(q), h = q + log2_of_10(-k) + 1; /* 1 to 4 */
    const struct power g = powers[-k - POWER_MIN];
    const unsigned __int128 product = (unsigned __int128)g.high * (c << h) +
                                      (uint64_t)((unsigned __int128)g.low * (c << h) >> 64);
    const uint64_t below = (uint64_t)(product >> 64), fraction = (uint64_t)product, last = below % 10;
    const uint64_t half = g.high >> (5 - h), above_ten = last << 60 | fraction >> 4; /* of 2^-60 */
    const int down = above_ten < half, up = ten - above_ten < half;

    *exponent = k;
    if (above_ten - half + 4 <= 8 || ten - above_ten - half + 4 <= 8 || fraction - middle + 4 <= 8)
        return 0;
    return below + (down || up ? up * (uint64_t)10 - last : fraction >> 63);
}

static void number_prepare(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    prepare_powers();
    atomic_store_explicit(&is_prepared, 1, memory_order_release);
}

static inline void prepare(void)
{
    if (!atomic_load_explicit(&is_prepared, memory_order_acquire))
        pthread_once(&once, number_prepare);
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

/* Sixteen digits of text, in a register where there is one. */
#ifdef __SSE2__

typedef __m128i sixteen;

/* first, second < 10^8; as in eight(), for all digits at once. */
static inline sixteen sixteen_of(uint32_t first, uint32_t second)
{
    const __m128i all = _mm_set_epi64x(second, first);
    __m128i parts = _mm_srli_epi64(_mm_mul_epu32(all, _mm_set1_epi32((int)0xd1b71759)), 45); /* / 10^4 */
    const __m128i quarters = _mm_or_si128(
        parts, _mm_slli_epi64(_mm_sub_epi32(all, _mm_mul_epu32(parts, _mm_set1_epi32(10000))), 32));
    __m128i pairs_of_digits;

    parts = _mm_srli_epi32(_mm_mulhi_epu16(quarters, _mm_set1_epi32(5243)), 3); /* / 100 */
    pairs_of_digits = _mm_or_si128(
        parts, _mm_slli_epi32(_mm_sub_epi16(quarters, _mm_mullo_epi16(parts, _mm_set1_epi32(100))), 16));
    parts = _mm_mulhi_epu16(pairs_of_digits, _mm_set1_epi16(6554)); /* / 10 */
    return _mm_or_si128(
        _mm_set1_epi8('0'),
        _mm_or_si128(parts,
                     _mm_slli_epi16(_mm_sub_epi16(pairs_of_digits, _mm_mullo_epi16(parts, _mm_set1_epi16(10))), 8)));
}

static inline void put_sixteen(char *out, sixteen digits)
{
    _mm_storeu_si128((__m128i *)(void *)out, digits);
}

static inline uint64_t first_eight(sixteen digits)
{
    return (uint64_t)_mm_cvtsi128_si64(digits);
}

/* How many digits are left without the zeros behind them. */
static inline int sixteen_used(sixteen digits)
{
    const unsigned zeros = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(digits, _mm_set1_epi8('0')));

    return 31 - __builtin_clz((~zeros & 0xffff) << 1 | 1);
}

#else

typedef struct {
    uint64_t first, second;
} sixteen;

static inline sixteen sixteen_of(uint32_t first, uint32_t second)
{
    return (sixteen){ eight(first), eight(second) };
}

static inline void put_sixteen(char *out, sixteen digits)
{
    put_le64(out, digits.first);
    put_le64(out + 8, digits.second);
}

static inline uint64_t first_eight(sixteen digits)
{
    return digits.first;
}

static inline int sixteen_used(sixteen digits)
{
    const uint64_t nonzero = digits.second ^ EIGHT_ZEROS, nonzero_first = digits.first ^ EIGHT_ZEROS;

    return nonzero ? 16 - __builtin_clzll(nonzero) / 8 : nonzero_first ? 8 - __builtin_clzll(nonzero_first) / 8 : 0;
}

#endif

/* Wall times nearly always are whole microseconds: for 1e9 <= x < 2^32 the spacing of doubles is below one unit of the
 * sixth decimal, so if the nearest microsecond divides back to x, its sixteen digits are the shortest. They go from a
 * register to where they belong: to read a part of bytes just written makes the processor wait for the writing. */
static int microseconds(double x, char *out)
{
    const int64_t nearest = (int64_t)(x * 1e6 + 0.5);
    const uint64_t high = (uint64_t)nearest / 100000000;
    const sixteen digits = sixteen_of((uint32_t)high, (uint32_t)((uint64_t)nearest - high * 100000000));
    const int used = sixteen_used(digits);

    if ((double)nearest / 1e6 != x)
        return 0;
    put_sixteen(out + 1, digits);
    put_le64(out, first_eight(digits));
    two(out + 8, (uint32_t)((uint64_t)nearest / 1000000 % 100));
    out[10] = '.';
    return used > 10 ? used + 1 : 12;
}

/* The powers of ten below 10^17, and how many digits a number of so many bits has at least. */
static const uint64_t ten_to[18] = { 1,
                                     10,
                                     100,
                                     1000,
                                     10000,
                                     100000,
                                     1000000,
                                     10000000,
                                     100000000,
                                     1000000000,
                                     10000000000,
                                     100000000000,
                                     1000000000000,
                                     10000000000000,
                                     100000000000000,
                                     1000000000000000,
                                     10000000000000000,
                                     100000000000000000 };

/* 0 < digits < 10^17; a double that is not subnormal has 16 or 17 */
static inline int count_digits(uint64_t digits)
{
    const int least = (64 - __builtin_clzll(digits)) * 1233 >> 12;

    return digits >= ten_to[15] ? 16 + (digits >= ten_to[16]) : least + (digits >= ten_to[least]);
}

/* The first of eight digits and a decimal point behind `point` (1 to 7) of them. */
static inline uint64_t with_point(uint64_t digits, int point)
{
    const uint64_t before = ((uint64_t)1 << 8 * point) - 1;

    return (digits & before) | (uint64_t)'.' << 8 * point | (digits & ~before) << 8;
}

/* A first digit and sixteen more, of which `used` in all are no zeros at the end. */
static int scientific(char first, sixteen more, int used, int point, char *out)
{
    int e = point > 0 ? point - 1 : 1 - point, length = used > 1 ? used + 1 : 1;

    out[0] = first;
    out[1] = '.';
    put_sixteen(out + 2, more);
    out[length++] = 'e';
    out[length++] = point > 0 ? '+' : '-';
    if (e >= 100)
        out[length++] = (char)('0' + e / 100);
    two(out + length, (uint32_t)e % 100);
    return length + 2;
}

/* digits 10^exponent, digits > 0, as repr() writes it; out has room for NUMBER_TEXT_MAX - 2. All seventeen digits are
 * written, also the zeros behind the text. */
static inline int lay_out(uint64_t digits, int exponent, char *out)
{
    const int n = count_digits(digits), point = n + exponent; /* the place of the point relative to the first digit */
    const uint64_t whole = digits * ten_to[17 - n], first = whole / ten_to[16], rest = whole - first * ten_to[16];
    const uint64_t high = rest / ten_to[8];
    const sixteen more = sixteen_of((uint32_t)high, (uint32_t)(rest - high * ten_to[8]));
    const int used = 1 + sixteen_used(more);

    if (point > 16 || point <= -4)
        return scientific((char)('0' + first), more, used, point, out);
    if (point <= 0) {
        memcpy(out, "0.000", 5);
        out[2 - point] = (char)('0' + first);
        put_sixteen(out + 3 - point, more);
        return 2 - point + used;
    }
    put_sixteen(out + 2, more);
    if (point < 8) {
        put_le64(out, with_point(first_eight(more) << 8 | ('0' + first), point));
    } else {
        char text[16];

        put_sixteen(text, more);
        out[0] = (char)('0' + first);
        memcpy(out + 1, text, (size_t)point - 1);
        out[point] = '.';
    }
    return used > point ? used + 1 : point + 2;
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
    prepare();
    digits = biased && fraction ? quick_digits(fraction | (uint64_t)1 << 52, biased - 1075, &exponent) : 0;
    if (!digits && biased)
        digits = shortest_digits(fraction | (uint64_t)1 << 52, biased - 1075, !fraction && biased > 1, &exponent);
    else if (!digits)
        digits = shortest_digits(fraction, -1074, 0, &exponent);
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
    prepare();
    digits = biased && fraction ? quick_digits(fraction | 1u << 23, biased - 150, &exponent) : 0;
    if (!digits && biased)
        digits = shortest_digits(fraction | 1u << 23, biased - 150, !fraction && biased > 1, &exponent);
    else if (!digits)
        digits = shortest_digits(fraction, -149, 0, &exponent);
    n += lay_out(digits, exponent, out + n);
    out[n] = '\0';
    return n;
}

int number_text_integer(int64_t v, char *out)
{
    const int negative = v < 0;
    uint64_t rest = negative ? 0 - (uint64_t)v : (uint64_t)v, digits;
    int n = negative, zeros;

    out[0] = '-';
    if (rest >= ten_to[16]) { /* up to four digits before the last sixteen */
        n += number_text_integer((int64_t)(rest / ten_to[16]), out + n);
        rest %= ten_to[16];
        put_le64(out + n, eight((uint32_t)(rest / ten_to[8])));
        n += 8;
    } else if (rest >= ten_to[8]) {
        digits = eight((uint32_t)(rest / ten_to[8]));
        zeros = __builtin_ctzll(digits ^ EIGHT_ZEROS) / 8;
        put_le64(out + n, digits >> 8 * zeros);
        n += 8 - zeros;
    } else {
        digits = eight((uint32_t)rest);
        zeros = __builtin_ctzll((digits ^ EIGHT_ZEROS) | (uint64_t)1 << 56) / 8; /* the last digit is written always */
        put_le64(out + n, digits >> 8 * zeros);
        return n + 8 - zeros;
    }
    put_le64(out + n, eight((uint32_t)(rest % ten_to[8])));
    return n + 8;
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

    prepare();
    if (!*text || strchr(" \t\n\r\f\v", *text))
        return 0;
    errno = 0;
    v = strtod_l(text, &end, c_locale);
    if (*end || end == text || (errno && fabs(v) > 1))
        return 0;
    *out = v;
    return 1;
}
