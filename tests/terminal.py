"""A process on a terminal of a given width, and all that came to its screen."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

from waiting import DEADLINE, wait_for


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
