"""eventlog watch in a terminal: what its screen shows, what keys and the mouse do, and how it leaves the terminal."""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest

from waiting import wait_for

pyte = pytest.importorskip("pyte")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL = BUILD / "bin/eventlog"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR", "LC_ALL", "LANG")}
NAMES = ("mpi/train", "other/a-long-name-that-has-to-be-cut-in-the-middle-of-it/train", "ps/train")


class Terminal(pyte.Screen):
    """pyte's, with xterm's REP (repeat the last character), and no wrap due once wrapping was off in the last column."""

    def set_mode(self, *modes, **kwargs):
        self.cursor.x = min(self.cursor.x, self.columns - 1)
        super().set_mode(*modes, **kwargs)

    def draw(self, data):
        self.last = data[-1:]
        super().draw(data)

    def repeat(self, count=1):
        self.draw(self.last * count)


class Stream(pyte.ByteStream):
    csi = {**pyte.ByteStream.csi, "b": "repeat"}
    events = pyte.ByteStream.events | {"repeat"}


class Watch:
    """eventlog watch in a pseudo-terminal of its own session, and what it shows."""

    def __init__(self, *arguments, columns=80, rows=24, interval=0.05, **environment):
        self.master, self.slave = pty.openpty()
        self.screen, self.sent = Terminal(columns, rows), b""
        self.stream = Stream(self.screen)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [TOOL, "watch", "--interval", str(interval), *map(str, arguments)], stdin=self.slave, stdout=self.slave,
            stderr=self.slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**ENVIRONMENT, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TZ": "UTC", **environment})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)

    def read(self):
        while select.select([self.master], [], [], 0)[0]:
            data = os.read(self.master, 65536)
            self.sent += data
            self.stream.feed(data)
        return "\n".join(self.screen.display)

    def shows(self, pattern):
        """Waits for a screen that matches; returns it. It comes from above, in pieces: what is further below may be late."""
        return wait_for(lambda: (text := self.read()) and re.search(pattern, text, re.M) and text,
                        lambda: f"{pattern!r} on\n{self.read()}")

    def lacks(self, pattern):
        return wait_for(lambda: not re.search(pattern, text := self.read(), re.M) and text,
                        lambda: f"no {pattern!r} on\n{self.read()}")

    def press(self, keys):
        os.write(self.master, keys.encode())

    def mouse(self, button, row, column):
        """As xterm tells it, from 1 on; a button is let go again."""
        at = f"\033[<{button};{column + 1};{row + 1}"
        self.press(at + "M" + (at + "m" if button < 64 else ""))

    def row_of(self, pattern):
        return next(i for i, line in enumerate(self.screen.display) if re.search(pattern, line))

    def colours(self, row):
        return {self.screen.buffer[row][i].fg for i in range(self.screen.columns)}

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ends(self):
        """Waits for the end; the terminal is as it was before. Returns the status."""
        wait_for(lambda: (self.read(), self.process.poll() is not None)[1], "the end")
        self.read()
        assert termios.tcgetattr(self.slave) == self.before
        last = self.sent.rfind
        assert last(b"\033[?1049l") > last(b"\033[?1049h") >= 0, "still on the other screen"
        assert last(b"\033[?25h") > last(b"\033[?25l") >= 0, "the cursor is still hidden"
        assert last(b"\033[?1000l") > last(b"\033[?1000h") or last(b"\033[?1006;1000l") > last(b"\033[?1006;1000h") >= 0, \
            "the mouse is still taken"
        return self.process.returncode


def write(log, run, rows):
    text = "step,wall_time,loss,accuracy\n" + "".join(f"{s},{w},{l},{a}\n" for s, w, l, a in rows)
    subprocess.run([TOOL, "write", "--dir", log / run, "-"], input=text, text=True, check=True)


@pytest.fixture
def log(tmp_path):
    now = time.time()
    for name in NAMES:
        write(tmp_path / "log", name, [(s, now - 50 + s / 2, 1 / (s + 1), s / 100) for s in range(100)])
    return tmp_path / "log"


def test_points_runs_and_files_as_they_come_and_go(log):
    with Watch(log) as watch:
        text = watch.shows(r"> ━ mpi/train +99 .* live +0\.9900")
        assert "3 runs" in text and f"eventlog watch {log}"[:20] in text
        watch.shows("┤(.*\n)+.*⠉")
        write(log, "mpi/train", [(100, time.time(), 0.5, 0.25)])
        watch.shows(r"mpi/train +100 .* live +0\.2500")
        write(log, "mpi/eval", [(7, time.time(), 0.5, 0.125)])
        assert "4 runs" in watch.shows(r"mpi/eval +7 .* live +0\.1250")
        shutil.rmtree(log / "mpi/eval")
        assert "1 gone" in watch.shows(r"mpi/eval +7 .* gone")
        write(log, "mpi/eval", [(8, time.time(), 0.5, 0.125)])
        watch.shows(r"mpi/eval +8 .* live")
        watch.press("q")
        assert watch.ends() == 0


def test_a_file_that_is_replaced_is_read_again(log):
    with Watch(log, "--run", "ps/train") as watch:
        watch.shows(r"ps/train +99 ")
        other = log.parent / "other"
        write(other, ".", [(3, time.time(), 0.5, 0.5)])
        old, new = (next(p for p in d.iterdir() if "tfevents" in p.name) for d in (log / "ps/train", other))
        os.replace(new, old)
        watch.shows(r"ps/train +3 .* live +0\.5")
        watch.shows("reading it again from its start")
        watch.press("q")
        assert watch.ends() == 0
        assert "was truncated or replaced; reading it again" in watch.sent[watch.sent.rfind(b"1049l"):].decode()


def test_not_finite_and_stalled(log):
    now = time.time()
    write(log, "ps/train", [(s, now, "nan", "inf") for s in range(100, 103)])
    with Watch(log, "--stalled-after", 1e5) as watch:
        assert "1 NaN or inf" in watch.shows(r"ps/train +102 .* live, NaN +inf")
        assert "red" in watch.colours(watch.row_of("ps/train +102")) and "red" not in watch.colours(watch.row_of("mpi/train"))
        watch.press("G")
        watch.shows(r"^ps/train: step 102 at .*; loss is NaN since step 100")
        watch.press("\t")
        watch.shows("▲")
    write(log, "ps/train", [(103, time.time(), 1, 1)])
    with Watch(log, "--stalled-after", 0.001) as watch:
        assert " stalled" not in watch.shows(r"ps/train +103 .* ended +1\.")  # eventlog write, which wrote it, has
    for i, file in enumerate(sorted((log / "ps/train").iterdir())):  # as if this process wrote them
        file.rename(file.with_name(f"events.out.tfevents.170000000{i}.{socket.gethostname()}.{os.getpid()}.0"))
    with Watch(log, "--stalled-after", 0.001) as watch:
        assert "1 stalled" in watch.shows(r"ps/train +103 .* stalled +1\.")
        watch.press("j")
        assert watch.shows(r"^other/a-long") and "brown" in watch.colours(watch.row_of("ps/train +103"))


def test_keys(log):
    with Watch(log) as watch:
        watch.shows("> ━ mpi/train")
        watch.press("j")
        watch.shows("> ━ other/a-long")
        watch.press("\033OB")  # the arrow, as xterm's terminfo has it
        watch.shows("> ━ ps/train")
        watch.press(" ")
        watch.shows("^>   ps/train.*\n(.*\n)*ps/train: .*; hidden")
        watch.press(" k")
        watch.shows("> ━ other/a-long.*\n  ━ ps/train")
        watch.shows("^ +run .* accuracy(.*\n)+tag 1 of 2; x: step ")
        watch.press("\t")
        watch.shows("^ +run .* loss")
        watch.press("\033[Z")  # Shift and Tab
        watch.shows("^ +run .* accuracy")
        watch.press("xls")
        watch.shows("time since the start; smoothing 0.6; logarithmic")
        watch.press("/lo")
        watch.shows("filter tags: lo_")
        watch.press("\n")
        watch.shows("tag 1 of 1, filter 'lo'")
        watch.press("?")
        watch.shows("show or hide the selected run")
        watch.press("q")
        assert watch.ends() == 0


def test_mouse(log):
    with Watch(log, columns=130) as watch:
        watch.shows("tags 1-2 of 2")
        watch.mouse(0, watch.row_of("ps/train"), 20)
        watch.shows("> ━ ps/train")
        watch.mouse(0, watch.row_of("other/a-long"), 2)
        watch.shows(">   other/a-long")
        watch.mouse(65, 3, 20)
        watch.shows("> ━ ps/train")
        watch.mouse(64, 3, 20)
        watch.shows(">   other/a-long")
        watch.mouse(0, 15, 100)
        watch.shows("^ +run .* loss +accuracy")


def test_sizes(log):
    with Watch(log, columns=60) as watch:
        watch.shows("other/a-l.*….*train(.*\n)+tag 1 of 2")
        watch.resize(200, 50)
        text = watch.shows("tags 1-2 of 2(.*\n)+q quit.*c charts *$")
        assert NAMES[1] in text and len(text.splitlines()) == 50
        watch.resize(30, 5)
        watch.shows(r"^q quit  \? help")
        watch.resize(80, 24)
        watch.shows(r"tag 1 of 2(.*\n)+.*q quit")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"LC_ALL": "C"}, {"TERM": "vt100"}, {"TERM": "linux"}])
def test_plain_terminals(log, environment):
    with Watch(log, **environment) as watch:
        text = watch.shows("mpi/train +99 .* live(.*\n)+q quit")
        if environment.get("LC_ALL") == "C":
            assert text.isascii() and "*" in text and ".." in text
            assert watch.shows("[|] .*[*+o]")
        if environment.keys() & {"NO_COLOR", "TERM"} and environment.get("TERM") != "linux":
            assert all(watch.colours(row) == {"default"} for row in range(24)) and "> A mpi/train" in text
        watch.press("q")
        wait_for(lambda: (watch.read(), watch.process.poll() is not None)[1], "the end")
        assert watch.process.returncode == 0 and termios.tcgetattr(watch.slave) == watch.before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(log, number):
    """It dies of the signal, as a shell expects, with the terminal as it was."""
    with Watch(log) as watch:
        watch.shows("mpi/train")
        if number == signal.SIGINT:
            watch.press("\003")
        else:
            watch.process.send_signal(number)
        assert watch.ends() == -number


def test_the_terminal_goes_away(log):
    """Also where no signal tells so: reading gives nothing at all times."""
    with Watch(log) as watch:
        watch.shows("mpi/train")
        os.close(watch.slave)
        os.close(watch.master)
        watch.master = watch.slave = -1
        wait_for(lambda: watch.process.poll() is not None, "the end")


def test_does_not_spin(log):
    """Less than a quarter of one processor over some looks, however busy the others are."""
    def seconds(watch):
        fields = pathlib.Path(f"/proc/{watch.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    with Watch(log, interval=1) as watch:
        first = watch.shows(r"\d\d:\d\d:\d\d$").splitlines()[0]
        began, used = time.monotonic(), seconds(watch)
        for _ in range(3):
            first = wait_for(lambda: (line := watch.read().splitlines()[0]) != first and line, "the clock to go on")
        assert seconds(watch) - used < (time.monotonic() - began) / 4


def test_refused(log):
    run = subprocess.run([TOOL, "watch", log], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert run.returncode == 2 and run.stdout == "" and run.stderr.count("\n") == 1
    assert "is not a terminal; 'eventlog tail -f' prints" in run.stderr and "'eventlog plot'" in run.stderr
    for term in ("dumb", "no-such-terminal"):
        with Watch(log, TERM=term) as watch:
            wait_for(lambda: watch.process.poll() is not None, "the end")
            assert watch.process.returncode == 2 and f"the terminal '{term}' (TERM)" in watch.read().replace("\n", "")


def test_nothing_there_yet(tmp_path):
    with Watch(tmp_path / "none") as watch:
        watch.shows("no event files .* yet; waiting(.*\n)+.*/none: does not exist; waiting for it")
        watch.press("q")
        assert watch.ends() == 1
        assert watch.sent[watch.sent.rfind(b"1049l"):].count(b"waiting for it") == 1
    with Watch(tmp_path / "none") as watch:
        watch.shows("does not exist")
        write(tmp_path / "none", "a", [(1, time.time(), 1, 1)])
        watch.shows("a +1 .* live")
        (tmp_path / "none").rename(tmp_path / "away")
        watch.shows("a +1 .* gone")
        (tmp_path / "away").rename(tmp_path / "none")
        write(tmp_path / "none", "a", [(2, time.time(), 1, 1)])
        watch.shows("a +2 .* live")
        watch.press("q")
        assert watch.ends() == 0
    (tmp_path / "log").mkdir()
    with Watch(tmp_path / "log") as watch:
        watch.shows("no event files .* yet; waiting")
        write(tmp_path / "log", "a", [(1, time.time(), 1, 1)])
        watch.shows("a +1 .* live")
        watch.press("q")
        assert watch.ends() == 0
    shutil.rmtree(tmp_path / "log/a")
    with Watch(tmp_path / "log") as watch:
        watch.shows("waiting")
        watch.press("q")
        assert watch.ends() == 1


def test_filters(log):
    with Watch(log, "--run", "mpi/*", "--tag", "acc*") as watch:
        assert "ps/" not in watch.shows("1 run (.*\n)+tag 1 of 1;")
        watch.press("q")
        assert watch.ends() == 0
    with Watch(log, "--tag", "los") as watch:
        watch.shows("no scalars yet")
        watch.press("q")
        assert watch.ends() == 1
        assert "--tag 'los': no tag matches; did you mean 'loss'" in watch.sent[watch.sent.rfind(b"1049l"):].decode()
