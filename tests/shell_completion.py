"""What bash offers at the end of a line: the keys are typed into a bash of its own, on a terminal."""
import fcntl
import os
import pathlib
import pty
import select
import shlex
import struct
import subprocess
import termios
import time

from waiting import DEADLINE

INSERT_ALL = "\x18a"
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
SETUP = """
unset HISTFILE
PS1='ready\\#> '
bind 'set enable-bracketed-paste off'
bind '"\\C-xa": insert-completions'
said() { printf '%s\\0' "$@" >"$SAID"; }
"""


class Bash:
    """bash with the completions of all programs, started in `directory`, for a with statement."""

    def __init__(self, directory, scratch):
        self.words = scratch / "said"
        rc = scratch / "rc"
        rc.write_text(SETUP + "".join(f'source "{path}"\n' for path in sorted((BUILD / "completion/bash").iterdir())))
        self.terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 10000, 0, 0))  # no line is ever wrapped
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--rcfile", rc, "-i"], cwd=directory, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "HOME": str(scratch), "TERM": "dumb", "INPUTRC": "/dev/null",
                 "LC_ALL": "C.UTF-8", "SAID": str(self.words)})
        os.close(theirs)
        self.prompts = 0

    def __enter__(self):
        self.shown = self._until_prompt()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)

    def _until_prompt(self):
        self.prompts += 1
        wanted, shown, end = f"ready{self.prompts}> ".encode(), b"", time.monotonic() + DEADLINE
        while not shown.endswith(wanted):
            assert select.select([self.terminal], [], [], end - time.monotonic())[0], shown
            shown += os.read(self.terminal, 65536)
        return shown.decode()

    def _type(self, keys):
        """What the command line was when all keys were typed. What appeared on the terminal stays in self.shown."""
        os.write(self.terminal, f"{keys}\x01said \n".encode())
        self.shown = self._until_prompt()
        return self.words.read_text().split("\0")[:-1]

    def completes(self, line):
        """The words of the line after TAB."""
        return self._type(line + "\t")

    def offers(self, line):
        """All that is offered for the last word of the line, without the name of its option."""
        before, _, last = line.rpartition(" ")
        after = self._type(line + INSERT_ALL)
        offered = after[len(shlex.split(before)):]
        if offered == [last]:
            return set()
        kept = last[:max(last.rfind("="), last.rfind(":")) + 1]  # what bash does not replace
        whole = offered[:1] + [kept + word for word in offered[1:]]
        return {word.partition("=")[2] if last.startswith("--") and "=" in last else word for word in whole}
