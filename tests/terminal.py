"""Processes on terminals of a given width, and all that came to their screens."""
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import termios

from waiting import DEADLINE, wait_for

EVENTLOG = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")} | {"LC_ALL": "C.UTF-8", "TERM": "xterm"}


class Terminal:
    """`screen` is all that came to it so far."""

    def __init__(self, columns, command, environment):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {key: value for key, value in environment.items() if key != "COLUMNS"}
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment,
                                        start_new_session=True)
        os.close(slave)
        self.screen = ""

    def shows(self, pattern):
        """Waits until it does, and returns the match."""
        def look():
            if select.select([self.master], [], [], 0)[0]:
                try:
                    self.screen += os.read(self.master, 65536).decode()
                except OSError:
                    pass
            return re.search(pattern, self.screen)

        return wait_for(look, lambda: f"{pattern!r} in {self.screen[-2000:]!r}", DEADLINE)

    def lines(self):
        """What stood on it, one after the other: lines, and what was drawn over."""
        return [line for line in re.split(r"\r?\n|\r\x1b\[K", self.screen) if line]


def on_terminal(columns, *words, status=0, program=EVENTLOG):
    """What the command writes to standard output and error on one terminal. status None: any."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen([program, *map(str, words)], stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT) as process:
        os.close(theirs)
        text = b""
        try:
            while more := os.read(ours, 65536):
                text += more
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    assert status in (None, process.returncode), text.decode()
    return text.decode()
