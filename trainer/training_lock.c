#include "trainer/training_lock.h"

#include "base/clock.h"
#include "base/directory_lock.h"
#include "trainer/training_status.h"

#include <inttypes.h>
#include <unistd.h>

int training_lock_take(const char *checkpoint_directory, int take_over, int *fd, struct error *e)
{
    struct training_status s;
    int lives = 0, elsewhere = 0, locked = directory_lock(checkpoint_directory, fd, e);

    if (locked < 0)
        return locked;
    if (training_status_read(checkpoint_directory, clock_wall(), &s, NULL) == 1 && s.state.process.pid > 0) {
        const int running = s.condition == CONDITION_RUNNING || s.condition == CONDITION_SILENT;

        lives = running && s.process == PROCESS_LIVES;
        elsewhere = s.condition == CONDITION_RUNNING && s.process == PROCESS_ELSEWHERE;
    }
    if (!locked && !lives && (!elsewhere || take_over))
        return OK;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (!lives && !elsewhere)
        return error_set(e, ERR_PEER, "%s: another process has locked the directory, and training.json does not name "
                         "it", checkpoint_directory);
    return error_set(e, ERR_PEER, "%s: a trainer is already working here, process %" PRId64 " on host %s%s",
                     checkpoint_directory, s.state.process.pid, s.state.process.host,
                     locked || lives ? "" : "; if it is gone, --take-over takes its place");
}
