#include "trainer/training_status.h"

#include "checkpoint/directory/checkpoint_directory.h"

#include <stdlib.h>
#include <string.h>

const char *const training_condition_names[CONDITIONS] = {
    [CONDITION_RUNNING] = "running", [CONDITION_FINISHED] = "finished", [CONDITION_STOPPED] = "stopped",
    [CONDITION_FAILED] = "failed",   [CONDITION_DIED] = "died",         [CONDITION_SILENT] = "silent",
};

static enum training_condition condition_of(const struct training_state *s, enum process_state process, double age)
{
    for (int c = CONDITION_FINISHED; c <= CONDITION_FAILED; c++)
        if (!strcmp(s->state, training_condition_names[c]))
            return (enum training_condition)c;
    if (s->process.pid > 0 && process == PROCESS_GONE)
        return CONDITION_DIED;
    return age > (double)TRAINING_SILENT_SECONDS ? CONDITION_SILENT : CONDITION_RUNNING;
}

void training_status_judge(const struct training_state *state, enum process_state process, double now,
                           struct training_status *out)
{
    const double steps = (double)(state->max_steps - state->global_step);

    memset(out, 0, sizeof *out);
    out->state = *state;
    out->process = process;
    out->checkpoint = -1;
    out->updated_age = state->updated > 0 ? now - state->updated : -1;
    out->stepped_age = state->stepped > 0 ? now - state->stepped : -1;
    out->condition = condition_of(state, process, out->updated_age);
    out->left = -1;
    if (out->condition == CONDITION_RUNNING && state->steps_per_second > 0) {
        /* Later steps may have ended that the file does not show. */
        out->left = steps / state->steps_per_second - (out->stepped_age > 0 ? out->stepped_age : 0);
        out->left = out->left > 0 ? out->left : 0;
    }
}

int training_status_read(const char *checkpoint_directory, double now, struct training_status *out, struct error *e)
{
    struct training_state state;
    char name[256];
    const char *step;
    int rc = training_state_read(checkpoint_directory, &state, e);

    if (rc != 1)
        return rc;
    training_status_judge(&state, process_judge(&state.process), now, out);
    if (checkpoint_directory_newest(checkpoint_directory, name, sizeof name, NULL) == 1 && (step = strrchr(name, '-')))
        out->checkpoint = strtoll(step + 1, NULL, 10);
    return 1;
}
