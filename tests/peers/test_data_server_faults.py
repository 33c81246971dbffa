"""eventlog-server when the machine does what it should not: a clock that is set back, a network file system, very many files. It serves on, and says what it could not do.
"""
import os
import resource

import pytest

from data_server import DataServer, scalar, write_log
from interposed import CLOCK, interposed
from waiting import wait_for

pytest.importorskip("grpc")
pytest.importorskip("tensorboard")
NAME = "events.out.tfevents.1"

# A file system of another machine that has lost a file: reading from a path with LOST_NAME in it fails, while LOST_WHILE
# exists, with the number LOST_ERROR.
LOST_FILES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int lost(int fd)
{
    char name[64], path[4096] = "";
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (readlink(name, path, sizeof path - 1) <= 0 || !strstr(path, getenv("LOST_NAME")) || access(getenv("LOST_WHILE"), F_OK))
        return 0;
    errno = atoi(getenv("LOST_ERROR"));
    return 1;
}
ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    return lost(fd) ? -1 : ((ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(fd, to, n, at);
}
ssize_t pread64(int fd, void *to, size_t n, off_t at) { return pread(fd, to, n, at); }
ssize_t read(int fd, void *to, size_t n)
{
    return lost(fd) ? -1 : ((ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read"))(fd, to, n);
}
"""

# Whoever waits for a time does not wait, and each wait is counted in the file COUNT_FILE, of 8 bytes.
NO_WAITING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
int poll(struct pollfd *waits, nfds_t n, int timeout)
{
    static uint64_t *count;
    int (*next)(struct pollfd *, nfds_t, int) = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
    if (!count)
        count = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, open(getenv("COUNT_FILE"), O_RDWR | O_CLOEXEC), 0);
    ++*count;
    return next(waits, n, timeout > 0 ? 0 : timeout);
}
"""


def curve(path, steps, wall=None):
    return write_log(path / NAME, *[scalar(step, step / 7, wall=None if wall is None else wall + step) for step in steps])


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def whole(server):
    """{run: number of points of its curve}."""
    return {run: len(data.step) for (run, _), data in server.read("Scalars", "scalars").items()}


@pytest.mark.parametrize("more", [[], ["--no-notify"]], ids=["notified", "polled"])
def test_a_clock_that_is_set_back(tmp_path, more):
    """By a day: files are then of the future."""
    shift, log = tmp_path / "shift", tmp_path / "log"
    shift.write_text("0")
    environment = interposed(tmp_path, "clock", CLOCK, CLOCK_SHIFT_FILE=shift)
    path = curve(log / "r", range(100))
    with DataServer(log, tmp_path, "--report", *more, env=environment) as server:
        server.until_steps("r", "loss", range(100))
        shift.write_text("-86400")
        append(path, scalar(100, 1))
        server.until_steps("r", "loss", range(101))
        curve(log / "s", range(5))
        server.until_steps("s", "loss", range(5))
        # A training that started again with the earlier time: its file goes on from step 50.
        write_log(log / "r" / (NAME + ".2"), *[scalar(step, 2, wall=1.7e9 - 86400 + step) for step in range(50, 120)])
        server.until_steps("r", "loss", range(120))
        assert server.close() == 0 and server.output.read_text() == ""

@pytest.mark.parametrize("more", [[], ["--no-notify"]], ids=["notified", "polled"])
def test_holes_of_a_network_file_system(tmp_path, more):
    """Pages come late and in any order. Zeros at the end are waited for; zeros before other bytes are damage, which is told,
    and what lies behind is read. If they are filled later, the next start reads them.
    """
    records = [scalar(step, step) for step in range(600)]
    data, log = b"".join(records), tmp_path / "log"
    page, at = 4096, len(b"".join(records[:300]))
    path = write_log(log / "tail" / NAME, data[:at], bytes(len(data) - at))
    middle = write_log(log / "middle" / NAME, data[:page], bytes(page), data[2 * page:])
    with DataServer(log, tmp_path, *more) as server:
        server.until_steps("tail", "loss", range(300))
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(data[at:at + 1000])
        server.until(lambda: len(server.steps("tail", "loss")) == 300 + 1000 // len(records[400]))
        with open(path, "r+b") as file:
            file.write(data)
        server.until_steps("tail", "loss", range(600))
        server.until(lambda: server.steps("middle", "loss")[-1:] == [599])
        assert 600 - 3 * page // len(records[400]) < len(server.steps("middle", "loss")) < 600
        server.until(lambda: f"{middle}:" in server.output.read_text())
        assert server.close() == 0 and server.output.read_text().count("\n") == 1
    with open(middle, "r+b") as file:
        file.write(data)
    with DataServer(log, tmp_path, *more) as server:
        server.until_steps("middle", "loss", range(600))
        assert server.close() == 0 and server.output.read_text() == ""


@pytest.mark.parametrize("number", ["ESTALE", "EIO"])
def test_a_file_that_cannot_be_read_for_a_while(tmp_path, number):
    """Others are read meanwhile; it is told once, and read on as soon as it can be."""
    import errno
    lost, log = tmp_path / "lost", tmp_path / "log"
    environment = interposed(tmp_path, "lost_files", LOST_FILES, LOST_NAME="r/" + NAME, LOST_WHILE=lost,
                             LOST_ERROR=getattr(errno, number))
    path = curve(log / "r", range(10))
    with DataServer(log, tmp_path, env=environment) as server:
        server.until_steps("r", "loss", range(10))
        lost.touch()
        append(path, scalar(10, 1))
        curve(log / "s", range(3))
        server.until_steps("s", "loss", range(3))
        server.until(lambda: os.strerror(getattr(errno, number)) in server.output.read_text())
        assert server.steps("r", "loss") == list(range(10))
        lost.unlink()
        append(path, scalar(11, 1))
        server.until_steps("r", "loss", range(12))
        assert server.close() == 0 and server.output.read_text().count("\n") == 1


def test_very_many_files(tmp_path):
    """100,000 files of 20,000 runs, with 64 descriptors; one that grows is still found."""
    log, records = tmp_path / "log", [scalar(step, step) for step in range(6)]
    for i in range(20000):
        directory = f"{log}/{i // 1000}/{i}"
        os.makedirs(directory)
        for step in range(5):
            file = os.open(f"{directory}/{step}.tfevents", os.O_WRONLY | os.O_CREAT)
            os.write(file, records[step])
            os.close(file)
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))  # noqa: E731
    with DataServer(log, tmp_path, preexec_fn=few) as server:
        server.until(lambda: len(server.runs()) == 20000)
        server.until(lambda: set(whole(server).values()) == {5})
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) <= 64
        append(log / "7/7777/4.tfevents", records[5])
        server.until_steps("7/7777", "loss", range(6))
        assert server.close() == 0 and server.output.read_text() == ""


@pytest.mark.parametrize("more", [[], ["--no-notify"]], ids=["notified", "polled"])
def test_memory_stays_over_many_rounds(tmp_path, more):
    """10,000 rounds in which files are replaced now and then, but hold no more than before."""
    log, counted = tmp_path / "log", tmp_path / "count"
    counted.write_bytes(bytes(8))
    for i in range(20):
        curve(log / f"r{i}", range(100))
    environment = interposed(tmp_path, "no_waiting", NO_WAITING, COUNT_FILE=counted)
    with DataServer(log, tmp_path, "--reload=0", *more, env=environment) as server:
        def rounds():
            return int.from_bytes(counted.read_bytes(), "little") // 2  # it waits twice between two rounds

        def pages():
            with open(f"/proc/{server.process.pid}/statm") as file:
                return int(file.read().split()[1])

        def after(wanted):
            """Memory after so many rounds, after changes in between."""
            while (now := rounds()) < wanted:
                (tmp_path / "new").write_bytes((log / f"r{now % 20}" / NAME).read_bytes())
                (tmp_path / "new").rename(log / f"r{now % 20}" / NAME)
                server.until(lambda: rounds() >= min(wanted, now + 200))
            return pages()

        server.until(lambda: set(whole(server).values()) == {100} and len(server.runs()) == 20)
        before, end = after(2000), after(12000)
        assert end - before <= 64, (before, end)  # 256 KiB
        wait_for(lambda: set(whole(server).values()) == {100}, "all points")
        assert server.close() == 0
