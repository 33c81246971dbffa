#include "evaluator/record/same_failures.h"

#include <ctype.h>
#include <string.h>

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void kind_of(const char *reason, char *out)
{
    const char *tail = reason + strcspn(reason, ":(,'"), *see = strstr(reason, "; see ");
    const char *status = strstr(reason, "exit status "), *end = see ? see : reason + strlen(reason);

    if (!status || status > tail)
        end = tail < end ? tail : end; /* the class is enough */
    while (reason < end) {
        size_t n = 1, digits = 0;

        while (is_word(*reason) && reason + n < end && is_word(reason[n]))
            n++;
        for (size_t i = 0; i < n; i++)
            digits += isdigit((unsigned char)reason[i]) != 0;
        if (reason > tail && digits) {
            *out++ = '#';
        } else {
            memcpy(out, reason, n);
            out += n;
        }
        reason += n;
    }
    *out = '\0';
}

void same_failures_note(struct same_failures *s, const struct ledger_record *r)
{
    char kind[sizeof s->kind];

    if (r->has_metrics) {
        *s = (struct same_failures){ 0 };
    } else if (r->status == LEDGER_FAILED && r->command) {
        kind_of(r->reason, kind);
        s->count = strcmp(kind, s->kind) ? 1 : s->count + 1;
        strcpy(s->kind, kind);
    }
}
