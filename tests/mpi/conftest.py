"""For all tests of ranks."""
import os
import signal

import pytest

import ranks


@pytest.fixture(autouse=True)
def nothing_left():
    """A test that fails in the middle leaves no ranks behind."""
    ranks.started.clear()
    yield
    for process in ranks.started:
        if process.poll() is None:
            for pid in [*ranks.rank_processes(process).values(), process.pid]:
                os.kill(pid, signal.SIGKILL)
            process.communicate()
