#!/usr/bin/env python3
"""Runs all programs on one log for a long time, restarts some of them again and again, and looks whether any of them
grows, loses or repeats something, or leaves something behind. Called by `make soak SECONDS=...`.

usage: soak.py --build DIR [--seconds N] [--restart-every SECONDS] [--seed N]

Two trainings save a checkpoint a second, each with an evaluator beside it; `eventlog tail -f` and, in terminals,
`eventlog watch` follow the log; it is exported all the time. One training with its evaluator, a tail and a watch run from
start to end, the others are ended every few seconds, by SIGKILL or SIGTERM as the seed says. Memory and descriptors are
looked at every second. Ends with a table; status 0 if they are flat after the first minute (of runs of five minutes and
more) and nothing is missing, twice or left behind.
"""
import argparse
import collections
import contextlib
import csv
import json
import os
import pathlib
import pty
import random
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from waiting import wait_for  # noqa: E402

LOG_EVERY = 1000  # steps: about a point a second
WARM = 60  # seconds until what grows at first has grown; of a short run, a third
JUDGED = 5 * WARM  # seconds of a run of which growth can be told from the beginning
FILE, POINT = 3, 1 / 16  # KiB that a reader knows of each file, and a watch holds of each point, for as long as it runs
DESCRIPTORS = 64  # that a reader may have: far fewer than there are files in the end
SLACK = {"RSS": 1024, "maps": 8, "descriptors": 4}  # what chance alone makes of a median: KiB, anonymous maps, descriptors
# By SIGTERM; any of them dies of it before it has set up what it does then.
ENDED = {"trainer": {143, -signal.SIGTERM}, "evaluator": {0, -signal.SIGTERM}, "tail": {-signal.SIGTERM},
         "watch": {-signal.SIGTERM}, "export": {-signal.SIGTERM}}


class Broken(Exception):
    """What must hold does not."""


def look(pid):
    """{name: figure} of a process, or None if it is gone."""
    try:
        status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        return {"RSS": int(status["VmRSS"].split()[0]), "maps": sum(len(line.split()) == 5 for line in maps),
                "descriptors": descriptors}
    except (OSError, KeyError):
        return None


def windows(samples, seconds):
    """The samples, (time, figures), of the first third after warming up, and of the last."""
    warm = min(WARM, seconds / 3)
    third = (seconds - warm) / 3
    return ([figures for at, figures in samples if warm <= at < warm + third],
            [figures for at, figures in samples if at >= seconds - third])


def growth(samples, seconds, middle=statistics.median):
    """{name: (early, late)}; empty without samples."""
    early, late = windows(samples, seconds)
    if not early or not late:
        return {}
    return {name: tuple(middle(figures[name] for figures in part) for part in (early, late))
            for name in SLACK if name in early[0]}


def grown(figures, held=0):
    """The names of those that are not flat; held: KiB of what has come to the log and is kept by right."""
    return [name for name, (early, late) in figures.items()
            if late > 1.02 * early + SLACK[name] + (held if name == "RSS" else 0)]


class Program:
    """One that runs all the time, in lives if it is ended now and then."""

    def __init__(self, soak, kind, name, command, restarts):
        self.soak, self.kind, self.name, self.command, self.restarts = soak, kind, name, command, restarts
        self.lives, self.samples, self.terminal, self.ending = 0, [], None, False
        self.killed = 0
        self.start()

    def start(self):
        self.lives += 1
        self.began = time.monotonic()
        limit = DESCRIPTORS if self.kind in ("tail", "watch") else None
        streams = {"stdin": subprocess.DEVNULL}
        if self.kind == "watch":
            self.terminal, inner = pty.openpty()
            os.set_blocking(self.terminal, False)
            streams = {"stdin": inner, "stdout": inner}
        with contextlib.ExitStack() as files:
            # Of a tail, what this life has printed; of others, all that any has said.
            out = files.enter_context(open(self.out(), "wb" if self.kind == "tail" else "ab"))
            err = files.enter_context(open(self.soak.directory / f"{self.name}.err", "ab"))
            self.process = subprocess.Popen(
                self.command, **{"stdout": out, **streams}, stderr=err, env=self.soak.environment, start_new_session=True,
                preexec_fn=lambda: limit and resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        if self.terminal is not None:
            os.close(inner)

    def out(self):
        return self.soak.directory / f"{self.name}.out"

    def drain(self):
        """The screen of a watch is looked at by nobody, but has to be taken away."""
        with contextlib.suppress(BlockingIOError, OSError):
            while self.terminal is not None and os.read(self.terminal, 65536):
                pass

    def end(self, number):
        self.ending = number
        self.killed += number == signal.SIGKILL
        self.process.send_signal(number)

    def ended(self):
        """Whether it has, as it was to; takes away what is left of the process."""
        self.drain()
        code = self.process.poll()
        if code is None:
            return False
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None
        by_itself = self.kind == "export" and code == 0
        wanted = {-signal.SIGKILL} if self.ending == signal.SIGKILL else ENDED[self.kind] if self.ending else set()
        if code not in wanted and not by_itself:
            said = (self.soak.directory / f"{self.name}.err").read_text(errors="replace")[-500:]
            raise Broken(f"{self.name} ended with status {code}: {said}")
        self.ending = False
        return True

    def sample(self):
        """Of one that is restarted, only the later half of each life: what it grows at first is no growth. An export lives
        for a moment."""
        settled = self.kind == "export" or not self.restarts or (
            time.monotonic() - self.began >= self.soak.restart_every / 2)
        if settled and not self.ending and (figures := look(self.process.pid)):
            self.samples.append((self.soak.now(), figures))


class Soak:
    def __init__(self, build, directory, seconds, restart_every, seed, say):
        self.directory, self.seconds, self.restart_every, self.say = directory, seconds, restart_every, say
        self.chance, self.began, self.rows = random.Random(seed), time.monotonic(), 0
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        self.mark = f"EVALBOARD_SOAK={os.getpid()}.{seed}"
        name, value = self.mark.split("=")
        self.environment = {**os.environ, name: value, "TMPDIR": str(self.temporary), "TERM": "xterm",
                            "OPENBLAS_NUM_THREADS": "1"}
        self.tool, self.log = build / "bin/eventlog", directory / "runs"
        self.exported = directory / "all.csv"
        data = ["--model", "lenet", "--data", "fashion-mnist"]
        self.programs = {}
        for name, restarts in ("steady", False), ("restarted", True):
            checkpoints = directory / "checkpoints" / name
            self.add("evaluator", name, restarts, [
                build / "bin/evaluator", "--checkpoint-dir", checkpoints, "--eval-dir", self.log / name / "eval", *data,
                "--num-examples", "50", "--forever", "--pin", "--keep-best", "2"])
            self.add("trainer", name, restarts, [
                "nice", build / "bin/trainer", *data, "--batch-size", "1", "--checkpoint-dir", checkpoints, "--max-steps", "1000000000",
                "--save-checkpoint-seconds", "1", "--log-dir", self.log / name / "train", "--log-every", str(LOG_EVERY)])
            self.add("tail", name, restarts, [self.tool, "tail", "-f", "-n", "-1", "--json", self.log])
            self.add("watch", name, restarts, [self.tool, "watch", self.log])
        wait_for(lambda: self.evaluated("steady"), "a point")
        self.add("export", "restarted", True, [self.tool, "export", "--format=csv", self.log, "-o", self.exported])
        self.next = {p: self.restart_every * self.chance.uniform(0.5, 1.5) for p in self.programs.values() if p.restarts}

    def add(self, kind, name, restarts, command):
        self.programs[f"{kind} {name}"] = Program(self, kind, f"{kind}-{name}", list(map(str, command)), restarts)

    def now(self):
        return time.monotonic() - self.began

    def turn(self):
        """What is due: ends, starts, and every second a look."""
        for program in self.programs.values():
            if program.ended():
                self.start_again(program)
            if program.restarts and not program.ending and self.now() >= self.next[program]:
                program.end(self.chance.choice((signal.SIGKILL, signal.SIGTERM)))
                self.next[program] = self.now() + self.restart_every * self.chance.uniform(0.5, 1.5)

    def start_again(self, program):
        if program.kind == "export":  # also one that was killed may have written its file
            self.look_at_export()
        program.start()

    def look_at_export(self):
        """It is whole, and has at least what it had before."""
        if not self.exported.exists():
            return
        with open(self.exported, newline="") as file:
            rows = list(csv.reader(file))
        if any(len(row) != len(rows[0]) for row in rows) or len(rows) < self.rows:
            raise Broken(f"an export of {len(rows)} rows, after one of {self.rows}")
        self.rows = len(rows)
        self.exported.unlink()

    def run(self):
        looked = told = 0
        while self.now() < self.seconds:
            self.turn()
            if self.now() >= looked + 1:
                looked = self.now()
                for program in self.programs.values():
                    program.sample()
            self.programs["export restarted"].sample()
            if self.now() >= told + 60:
                told += 60
                self.say(f"soak: {told} of {self.seconds} s")
            time.sleep(0.05)

    # ---- the end -----------------------------------------------------------------------------------------------------

    def stop(self, kinds):
        going = [p for p in self.programs.values() if p.kind in kinds]
        for program in going:
            if not program.ending:
                program.end(signal.SIGTERM)
        for program in going:
            wait_for(program.ended, f"the end of {program.name}")

    def trains(self, name):
        state = self.directory / "checkpoints" / name / "training.json"
        return state.exists() and json.loads(state.read_text())["pid"] == self.programs[f"trainer {name}"].process.pid

    def evaluated(self, name):
        path = self.log / name / "eval/evaluations.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def finish(self):
        """Ends them in the order in which each can do all of its work. The last lives end as they are told to."""
        for program in self.programs.values():
            if program.ending:
                wait_for(program.ended, f"the end of {program.name}")
                self.start_again(program)
        for name in "steady", "restarted":
            wait_for(lambda: self.trains(name), "the start of a trainer, which takes away what one before has left")
        self.stop({"trainer", "export"})
        self.look_at_export()
        for name in "steady", "restarted":
            there = {path.stem for path in (self.directory / "checkpoints" / name).glob("*.index")}
            wait_for(lambda: there <= {r["checkpoint"] for r in self.evaluated(name)}, f"the evaluation of {there}")
        self.stop({"evaluator"})
        points = sorted(self.export())
        for program in self.programs.values():
            if program.kind == "tail":
                wait_for(lambda: len(program.out().read_text().splitlines()) >= len(points), "the last line of a tail")
        self.stop({"tail", "watch"})
        for program in self.programs.values():
            if program.kind == "tail" and sorted(program.out().read_text().splitlines()) != points:
                raise Broken(f"{program.name} printed other points than the log holds")

    def export(self, *options):
        done = subprocess.run([self.tool, "export", "--format=jsonl", *options, self.log], text=True,
                              env=self.environment, stdout=subprocess.PIPE)
        if done.returncode > 1:  # 1: a training that never came so far as to have a point
            raise Broken(f"export ended with status {done.returncode}")
        return done.stdout.splitlines()

    def check_evaluations(self, name):
        """A line a checkpoint and a point a line, wherever it was killed."""
        records = self.evaluated(name)
        if len({(r["checkpoint"], r["digest"]) for r in records}) != len(records):
            raise Broken(f"{name}: a checkpoint twice in the ledger")
        if others := {r["status"] for r in records} - {"done", "gone"}:
            raise Broken(f"{name}: evaluations that are {others}")
        wanted, found = collections.Counter(), collections.Counter()
        for r in records:
            run = f"{name}/eval" + (f"_{r['run']}" if r["status"] == "done" and r["run"] else "")
            if r["status"] == "done":
                wanted.update((run, tag, r["step"], r["metrics"][tag]) for tag in ("precision", "loss"))
        for point in map(json.loads, self.export("--run", f"{name}/eval*", "--tag", "precision", "--tag", "loss")):
            found[point["run"], point["tag"], point["step"], point["value"]] += 1
        close = {(run, tag, step): value for run, tag, step, value in found}
        if set(close) != {key[:3] for key in wanted} or len(close) != len(found) or any(
                abs(close[key[:3]] - key[3]) > 1e-6 * max(1, abs(key[3])) for key in wanted):
            raise Broken(f"{name}: other points than the ledger has")
        if repeated := sum(found.values()) - len(found):
            raise Broken(f"{name}: {repeated} points twice")
        gone = sum(r["status"] == "gone" for r in records)
        self.say(f"{name}: {len(records) - gone} evaluations, {gone} checkpoints deleted before theirs")

    def check_training(self, name):
        steps = [json.loads(line)["step"] for line in self.export("--view=session", "--run", f"{name}/train", "--tag", "loss")]
        if steps != sorted(set(steps)) or set(range(LOG_EVERY, max(steps, default=0), LOG_EVERY)) - set(steps):
            raise Broken(f"{name}: steps of the training are missing or twice")

    def check_left(self):
        """Files and processes."""
        allowed = re.compile(r"checkpoints/\w+/(checkpoint|training\.json|model\.ckpt-\d+\.(index|data-00000-of-00001))|"
                             r"runs/\w+/(train|eval(_\d+)?)/events\.out\.tfevents\.[^/]*\.\d+|"
                             r"runs/\w+/eval/(\.points|evaluator\.lock|work\.json|evaluations\.jsonl|logs/[^/]*\.log)|"
                             r"runs/\w+/eval/best/(\.evaluator|checkpoint|model\.ckpt-\d+\.(index|data-00000-of-00001))|"
                             r"[\w-]+\.(out|err)")
        left = [str(path.relative_to(self.directory)) for path in self.directory.rglob("*") if not path.is_dir()]
        if left := sorted(path for path in left if not allowed.fullmatch(path)):
            raise Broken(f"{len(left)} files are left behind, {left[:5]}")
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in path.read_bytes().split(b"\0"):
                    raise Broken(f"process {path.parent.name} is left behind")

    def table(self):
        """Prints it; what is not flat, as texts."""
        bad, spans = [], " -> ".join
        files = FILE * len(list(self.log.rglob("*tfevents*")))
        held = {"tail": files, "watch": files + POINT * self.rows}
        self.say(f"{'program':20}{'starts':>7}{'killed':>7}{'RSS KiB':>18}{'anonymous maps':>16}{'descriptors':>12}")
        for name, program in self.programs.items():
            # Of exports it is by chance how far each was when it was looked at.
            figures = growth(program.samples, self.seconds, max if program.kind == "export" else statistics.median)
            cells = [spans(f"{x:.0f}" for x in figures[key]) if key in figures else "-" for key in SLACK]
            wrong = [] if self.seconds < JUDGED else grown(figures, held.get(program.kind, 0)) if figures else [
                "no samples"]
            self.say(f"{name:20}{program.lives:7}{program.killed:7}{cells[0]:>18}{cells[1]:>16}{cells[2]:>12}")
            bad += [f"{name} is not flat: {', '.join(wrong)}"] if wrong else []
        return bad

    def close(self):
        for program in self.programs.values():
            if program.process.poll() is None:
                os.killpg(program.process.pid, signal.SIGKILL)
                program.process.wait()


def soak(build, directory, seconds, restart_every, seed, say):
    """What was wrong, as texts."""
    work = Soak(build, directory, seconds, restart_every, seed, say)
    wrong = []
    try:
        work.run()
        work.finish()
    except (Broken, AssertionError) as error:
        work.table()
        return [str(error)]
    finally:
        work.close()
    for check in (lambda: work.check_evaluations("steady"), lambda: work.check_evaluations("restarted"),
                  lambda: work.check_training("steady"), lambda: work.check_training("restarted"), work.check_left):
        try:
            check()
        except Broken as error:
            wrong.append(str(error))
    return [*wrong, *work.table()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--restart-every", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    say = lambda text: print(text, flush=True)  # noqa: E731
    say(f"soak: {arguments.seconds} s, --seed {arguments.seed}")
    for number in signal.SIGINT, signal.SIGTERM:  # also behind an &: the programs end with it
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    os.nice(5)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="soak."))
    wrong = soak(arguments.build.resolve(), directory, arguments.seconds, arguments.restart_every, arguments.seed, say)
    for text in wrong:
        say(f"soak: {text}")
    if wrong:
        say(f"soak: failed; the files are in {directory}")
        return 1
    subprocess.run(["rm", "-rf", directory], check=True)
    say("soak: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
