/* The text of --decay-at: read or refused; what was read rises, and rates from it are numbers that never rise. */
#include "trainer/optimizers/schedule.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct schedule s = { .decay_factor = 0.1 };
    char *text = malloc(size + 1), described[64];
    double before = 1;
    struct error e;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (schedule_parse_decays(&s, text, &e) == OK) {
        if (s.decays < 1 || s.decays > SCHEDULE_DECAYS_MAX)
            abort();
        for (int i = 0; i < s.decays; i++) {
            const double rate = schedule_rate(&s, 1, s.decay_at[i]);

            if (s.decay_at[i] < 1 || (i > 0 && s.decay_at[i] <= s.decay_at[i - 1]) || !(rate < before))
                abort();
            before = rate;
        }
        schedule_describe(&s, 1, described, sizeof described);
        if (strlen(described) >= sizeof described)
            abort();
    } else if (s.decays) {
        abort();
    }
    free(text);
    return 0;
}
