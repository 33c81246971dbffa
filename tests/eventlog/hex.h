/* hex.h - test data as hexadecimal text, the way the specifications print it. */
#ifndef TESTS_EVENTLOG_HEX_H
#define TESTS_EVENTLOG_HEX_H

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Bytes of "18 00 0a ..." into out, which is large enough; returns how many. */
static inline size_t hex_bytes(const char *hex, uint8_t *out)
{
    size_t n = 0;

    while (*hex) {
        char pair[3] = { hex[0], hex[1], '\0' };

        if (isspace((unsigned char)*hex)) {
            hex++;
            continue;
        }
        out[n++] = (uint8_t)strtoul(pair, NULL, 16);
        hex += 2;
    }
    return n;
}

#endif
