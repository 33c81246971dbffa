"""The faults of the campaign: which there are, how one is drawn, and a program that runs with one (inject.c)."""
import dataclasses
import errno
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

DEADLINE = 120  # seconds for what ends by itself
# While one thread starts a process, no other writes files that programs want for themselves: until it is another program,
# the new process has them open as well.
STARTING = threading.Lock()
ALWAYS = 1 << 30

SIGNALS = {"kill": signal.SIGKILL, "segfault": signal.SIGSEGV, "terminate": signal.SIGTERM, "interrupt": signal.SIGINT,
           "stop": signal.SIGSTOP}
ERRORS = ("ENOSPC", "EDQUOT", "EIO", "EFBIG", "EMFILE", "EROFS")
PASSING = ("ESTALE", "EACCES", "ENOENT", "ETIMEDOUT")  # of reading, on network file systems; not drawn
DIRECTORY = ("gone", "moved", "replaced")
HARMLESS = ("stop", "slow", "clock", "short")  # after which all must be as without a fault
KINDS = (*SIGNALS, *ERRORS, *DIRECTORY, "slow", "clock", "short")


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str
    call: int            # before which of the calls beneath the place it happens
    number: int = 0
    times: int = 1
    directory: str = ""  # below the place
    rank: str = ""
    match: str = ""      # only such calls count, as "pwrite /tmp/place/work/eval/.points"
    share: int = 0       # of a thousand calls so many fail
    looks: bool = False  # looking at a name is a call, too

    def __str__(self):
        times = "" if self.times == 1 else ", always" if self.times == ALWAYS else f", {self.times} times"
        of = f" of '{self.match}'" if self.match else ""
        return (f"{self.kind}{f' {self.number:+}' if self.kind == 'clock' else ''} at call {self.call}{of}{times}"
                f"{f' of {self.directory}/' if self.directory else ''}{f' in rank {self.rank}' if self.rank else ''}")

    def environment(self, place, program):
        kind = ("signal" if self.kind in SIGNALS else "errno" if self.kind in ERRORS + PASSING else
                "launcher" if self.kind.startswith("launcher") else self.kind)
        values = {"UNDER": place.work, "PROGRAM": program, "KIND": kind, "CALL": self.call, "NUMBER": self.number,
                  "TIMES": self.times, "FIRED": place.fired, "DIRECTORY": place.work / self.directory}
        optional = (("RANK", self.rank), ("MATCH", self.match), ("SHARE", self.share), ("LOOKS", int(self.looks)))
        values |= {name: value for name, value in optional if value}
        return {f"FAULT_{name}": str(value) for name, value in values.items()}


def draw(chance, job):
    """One fault for this job."""
    kind = chance.choice(sorted(set(KINDS) - set(job.never) | set(job.also)))
    fault = {"kind": kind, "call": chance.randint(1, job.calls)}
    if job.ranks:
        fault["rank"] = str(chance.choice(job.ranks))
    if kind in SIGNALS:
        fault["number"] = int(SIGNALS[kind])
    elif kind in ERRORS:
        fault |= {"number": getattr(errno, kind), "times": chance.choice([1, chance.randint(2, 9), job.most])}
    elif kind in DIRECTORY:
        fault["directory"] = chance.choice(job.directories)
    elif kind == "launcher killed":
        fault["number"] = int(signal.SIGKILL)
    elif kind == "slow":
        fault |= {"number": 2000, "times": 50}
    elif kind == "clock":
        fault["number"] = chance.choice([-1, 1]) * chance.choice([1, 60, 3700, 100000, 40000000])
    else:
        fault["times"] = chance.choice([1, ALWAYS])
    return Fault(**fault)


class Broken(Exception):
    """An invariant does not hold; the text says which."""


@dataclasses.dataclass
class Outcome:
    """How a program ended."""
    status: int
    said: str
    printed: bytes
    fault: Fault
    fired: str  # "CALL PATH"; empty: nothing happened

    @property
    def killed(self):
        """It had no chance to tidy up, or to say anything."""
        return bool(self.fired) and self.fault.kind in ("kill", "segfault", "launcher killed")

    @property
    def signalled(self):
        return bool(self.fired) and (self.killed or self.fault.kind in ("terminate", "interrupt"))

    @property
    def unharmed(self):
        return not self.fired or self.fault.kind in HARMLESS

    @property
    def lost(self):
        """The directory that was taken away."""
        return self.fault.directory if self.fired and self.fault.kind in DIRECTORY else ""


class Place:
    """Where one fault happens: a directory with work/, in which it can hit, and what was said beside."""

    def __init__(self, path, injector):
        self.path, self.injector = pathlib.Path(path).resolve(), injector
        self.work, self.fired = self.path / "work", self.path / "fired"
        self.work.mkdir(parents=True)
        self.runs = 0
        self.lost = set()  # directories that were taken away so far

    def run(self, words, program, fault=None, cwd=None):
        """Runs a program to its end, through a stop if the fault is one; checks that it left no process behind."""
        self.runs += 1
        name = self.path / f"{self.runs}"
        environment = {**os.environ, "CAMPAIGN_PLACE": str(self.path), "TMPDIR": str(self.path),
                       "OPENBLAS_NUM_THREADS": "1", "OMPI_MCA_orte_execute_quiet": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if fault:
            environment |= {**fault.environment(self, program), "LD_PRELOAD": str(self.injector)}
        self.fired.unlink(missing_ok=True)
        with open(f"{name}.said", "wb") as said, open(f"{name}.printed", "wb") as printed:
            said.write(f"$ {' '.join(map(str, words))}\n# {fault or 'no fault'}\n".encode())
            said.flush()
            with STARTING:
                process = subprocess.Popen([str(word) for word in words], stdout=printed, stderr=said, cwd=cwd or self.work,
                                           env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
            self.wait(process, fault)
        fired = self.fired.read_text().strip() if self.fired.exists() else ""
        text = pathlib.Path(f"{name}.said").read_text(errors="replace").split("\n", 2)[2]
        outcome = Outcome(process.returncode, text, pathlib.Path(f"{name}.printed").read_bytes(), fault, fired)
        self.lost |= {outcome.lost} - {""} if fault else set()
        return outcome

    def wait(self, process, fault):
        end = time.monotonic() + DEADLINE
        while process.poll() is None:
            if fault and fault.kind == "stop":
                for pid in self.processes("T"):
                    time.sleep(0.02)  # for which it stands still
                    os.kill(pid, signal.SIGCONT)
            if time.monotonic() > end:
                self.end_all()
                process.wait()
                raise Broken(f"it hangs: {DEADLINE} s")
            try:
                process.wait(0.005 if fault and fault.kind == "stop" else 1)
            except subprocess.TimeoutExpired:
                pass
        end = time.monotonic() + 60
        while left := self.processes():
            if time.monotonic() > end:
                names = ", ".join(f"{pid} {self.name(pid)}" for pid in left)
                self.end_all()
                raise Broken(f"left behind: {names}")
            time.sleep(0.01)

    def processes(self, state=""):
        """Those that were started here; with state, of the letters of /proc/PID/stat only one of these."""
        mark, found = f"CAMPAIGN_PLACE={self.path}\0".encode(), []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if mark not in (entry / "environ").read_bytes():
                    continue
                is_in = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if is_in in (state or "RSDTtI"):
                found.append(int(entry.name))
        return found

    @staticmethod
    def name(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120]
        except OSError:
            return "(gone)"

    def end_all(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def names(self, directory=""):
        """{path below work: bytes} of all files."""
        top = self.work / directory
        return {str(path.relative_to(self.work)): path for path in sorted(top.rglob("*")) if not path.is_dir()}


TEMPORARY = re.compile(r"\.tmp|\.tempstate|\.part\b")


def expect(holds, text):
    if not holds:
        raise Broken(text() if callable(text) else text)


def one_line_errors(outcome, program):
    """An ending with an error says why."""
    if outcome.status > 0 and not outcome.signalled:
        expect(re.search(rf"^{program}[ :]", outcome.said, re.M), f"status {outcome.status} without a word")
