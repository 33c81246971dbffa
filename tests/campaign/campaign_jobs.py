"""The jobs of the campaign: what runs, and what must hold after a fault and after the clean start behind it.

A job has  calls: the faults hit one of so many calls beneath its place (a few more than it makes);  directories: those
that are taken away;  never, also: kinds of faults it does not have, and has besides;  most: how often a call may fail.
Its reference is the place in which it ran without a fault.
"""
import csv
import fcntl
import json
import os
import random
import re
import shutil
import struct
import subprocess

from injected import ALWAYS, TEMPORARY, Broken, expect, one_line_errors

STEPS = 8


class Job:
    calls, directories, never, also, most, ranks = 100, (), (), (), ALWAYS, ()
    program = "eventlog"

    def __init__(self, name, tools, **settings):
        self.name, self.tools = name, tools
        for key, value in settings.items():
            setattr(self, key, value)

    def tool(self, place, *words, status=(0,)):
        """A program that checks: it runs without a fault."""
        outcome = place.run([self.tools.bin / words[0], *words[1:]], words[0])
        expect(outcome.status in status, f"{' '.join(map(str, words))}: status {outcome.status}: {outcome.said}")
        return outcome

    def prepare(self, place):
        """Makes what is there before, once: each fault has a copy of it."""

    def run(self, place, fault=None):
        return place.run(self.command(place), self.program, fault)

    def check(self, place, outcome, reference):
        """After a fault."""

    def finish(self, place, reference):
        """Starts it without a fault, and checks what is there then."""

    def points(self, place, log, view="all"):
        """{(run, tag): [(step, value), ...]} in the order of the files."""
        if not (place.work / log).exists():
            return {}
        rows = self.tool(place, "eventlog", "export", "--format=csv", f"--view={view}", "--order=file", log,
                         status=(0, 1)).printed.decode()
        found = {}
        for row in csv.DictReader(rows.splitlines()):
            found.setdefault((row["run"], row["tag"]), []).append((int(row["step"]), float(row["value"])))
        return found

    def sound(self, place, log):
        """Event files are whole, but for a last record that is cut."""
        if any("tfevents" in name for name in place.names(log)):
            verified = self.tool(place, "eventlog", "verify", "--format=jsonl", log, status=(0, 1))
            for line in verified.printed.decode().splitlines():
                expect(json.loads(line).get("level") != "damage", f"damaged event file: {line}")


class Trainer(Job):
    """A training of eight steps, saved every third, with a point a step; it must end with the same bits."""
    program, calls, directories = "trainer", 150, ("ckpt", "log")
    strategy, same, stale = ("--run-option", "single"), True, False

    def prepare(self, place):
        """What a trainer left that was killed at a step which is not saved again."""
        (place.work / "ckpt").mkdir()
        (place.work / "ckpt/model.ckpt-5.data-00000-of-00001.tempstate0").write_bytes(b"half")

    def command(self, place):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", len(self.ranks)] if self.ranks else []
        return [*launcher, self.tools.bin / "trainer", *self.strategy, *self.tools.model, "--batch-size", 2,
                "--max-steps", STEPS, "--save-checkpoint-steps", 3, "--keep", 0, "--log-every", 1, "--deadline", 50,
                "--checkpoint-dir", place.work / "ckpt", "--log-dir", place.work / "log"]

    @staticmethod
    def steps(place):
        return {int(found.group(1)) for name in place.names("ckpt") if (found := re.search(r"-(\d+)\.index$", name))}

    def whole(self, place):
        """All that has its final name is whole."""
        names = place.names("ckpt")
        if "ckpt/training.json" in names:
            json.loads(names["ckpt/training.json"].read_text())
        if self.steps(place):
            self.tool(place, "checkpoint", "verify", place.work / "ckpt")
        if "ckpt/checkpoint" in names:
            for named in re.findall(r'model_checkpoint_paths?: "(.*)"', names["ckpt/checkpoint"].read_text()):
                expect(f"ckpt/{named}.index" in names, f"checkpoint names {named}, which is not there")
        self.sound(place, "log")

    def state(self, place):
        path = place.work / "ckpt/training.json"
        return json.loads(path.read_text())["state"] if path.exists() else ""

    def saved(self, place):
        """Waits for those who save what a killed one left: they hold the lock."""
        if (place.work / "ckpt").is_dir():
            fd = os.open(place.work / "ckpt", os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.close(fd)

    def check(self, place, outcome, reference):
        self.saved(place)
        self.whole(place)
        if outcome.unharmed:
            expect(outcome.status == 0, f"status {outcome.status} without harm: {outcome.said[-400:]}")
        one_line_errors(outcome, "trainer")
        if outcome.status == 0 and not place.lost & {"ckpt"}:
            expect(self.state(place) == "finished" and STEPS in self.steps(place), "status 0, but it is not finished")
        could_say = outcome.fault.times == 1 and "training.json" not in outcome.fired and not place.lost
        if outcome.status > 0 and not outcome.killed and could_say:
            expect(self.stale or self.state(place) != "running", f"status {outcome.status}, and training.json: running")
        self.stale = self.state(place) == "running"  # also if the next one does not get as far as to replace it
        state = place.work / "ckpt/checkpoint"
        named = re.search(r'model_checkpoint_path: "model\.ckpt-(\d+)"', state.read_text()) if state.exists() else None
        self.newest = int(named.group(1)) if named else max(self.steps(place), default=None)
        self.confirmed = self.steps(place)
        self.dropped = "not written" in outcome.said or "event" in outcome.said or place.lost

    def finish(self, place, reference):
        outcome = self.run(place)
        expect(outcome.status == 0, f"the next start: status {outcome.status}: {outcome.said[-400:]}")
        if self.newest is not None:
            expect(re.search(rf"model\.ckpt-{self.newest}\b", outcome.said),
                   f"does not resume from {self.newest}: {outcome.said[:400]}")
        self.whole(place)
        expect(self.state(place) == "finished", f"the next start leaves {self.state(place)}")
        expect(self.steps(place) >= self.confirmed | {STEPS}, "checkpoints are missing")
        for name in place.names("ckpt"):
            expect(not TEMPORARY.search(name), f"left behind: {name}")
        if self.same:
            self.tool(place, "checkpoint", "compare", place.work / f"ckpt/model.ckpt-{STEPS}",
                      reference.work / f"ckpt/model.ckpt-{STEPS}")
        self.check_curve(place, reference)

    def check_curve(self, place, reference):
        wanted = self.points(reference, "log")[".", "loss"]
        shown = self.points(place, "log", "tensorboard").get((".", "loss"), [])
        expect(len({step for step, _ in shown}) == len(shown), f"steps twice: {shown}")
        if not self.same:  # it is chance which steps have a point
            return
        expect(set(shown) <= set(wanted), f"other points than {wanted}: {shown}")
        missing = {step for step, _ in wanted} - {step for step, _ in shown}
        expect(not missing or self.dropped, f"points of steps {sorted(missing)} are missing, and nothing was said")


class Evaluator(Job):
    """Five checkpoints, each of them to be evaluated once; then ledger, points and best must agree."""
    program, calls, directories, most = "evaluator", 500, ("ckpt", "eval"), 3
    options, run_name, metric = (), "eval", "precision"

    def prepare(self, place):
        place.run([self.tools.write_checkpoint, "--directory", place.work / "ckpt", "--last", 500, "--finish"], "")

    def command(self, place, *more):
        how = self.tools.model if "--exec" not in self.options else ("--best-metric", "value", "--retries", 1)
        self.metric = "value" if "--exec" in self.options else "precision"
        return [self.tools.bin / "evaluator", "--checkpoint-dir", "ckpt", "--eval-dir", "eval", *how, *self.options,
                "--poll-interval", 0.1, "--quiet-time", 0.3,
                *(more or (() if "--once" in self.options else ("--until-step", 500, "--idle-timeout", 5)))]

    @staticmethod
    def ledger(place):
        path = place.work / "eval/evaluations.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def agree(self, place, reference, harmed):
        """Ledger, points and best; harmed: faults that may have failed an evaluation."""
        self.sound(place, "eval")
        records = self.ledger(place)
        done = [record for record in records if record["status"] == "done"]
        expect(len({(r["checkpoint"], r["digest"]) for r in done}) == len(done), "twice in the ledger")
        expect(harmed or len(done) == len(records), f"failed: {[r.get('reason') for r in records]}")
        wanted = {r["step"]: r["metrics"] for r in self.ledger(reference)}
        best = {}
        for record in done:
            for name in {"value", "precision", "loss", "cross_entropy"} & record["metrics"].keys():
                expect(record["metrics"][name] == wanted[record["step"]][name], f"another value of {name}: {record}")
            value = record["metrics"][self.metric]
            best = record if not best or value > best["metrics"][self.metric] else best
            expect(record["metrics"][f"best_{self.metric}"] == best["metrics"][self.metric],
                   f"best is not the running maximum: {record}")
        for number in {record["run"] for record in done}:
            self.points_agree(place, number, [record for record in done if record["run"] == number])
        return done, best

    def points_agree(self, place, number, records):
        values = {record["step"]: record["metrics"][self.metric] for record in records}
        run = f"eval_{number}" if number else "eval"
        shown = self.points(place, run).get((".", self.metric), [])
        steps = [step for step, _ in shown]
        expect(steps == sorted(set(steps)), f"steps of {run} go down or are there twice: {shown}")
        expect(values.keys() <= set(steps) and len(steps) <= len(values) + self.ahead, f"points {shown} and ledger {values} differ")
        for step, value in shown:
            expect(abs(value - values.get(step, value)) < 1e-6 * max(1, abs(value)), f"value at {step}: {shown}")

    def check(self, place, outcome, reference):
        harmed = not outcome.unharmed
        self.ahead = outcome.signalled or harmed  # a crash between point and line
        failed = any(record["status"] != "done" for record in self.ledger(place))
        self.dirty = getattr(self, "dirty", False) or (harmed and not outcome.signalled)
        if outcome.unharmed:
            expect(outcome.status == (self.dirty and failed), f"status {outcome.status}: {outcome.said[-400:]}")
        one_line_errors(outcome, "evaluator")
        done, _ = self.agree(place, reference, harmed or self.dirty)
        if outcome.status == 0 and not outcome.signalled and not place.lost:
            expect(len(done) == 5, f"status 0, and {len(done)} of 5 are done")
        if not place.lost & {"eval"}:
            expect(getattr(self, "confirmed", set()) <= {r["step"] for r in done}, "what was done is done no more")
            self.confirmed = {r["step"] for r in done}

    def finish(self, place, reference):
        if not (place.work / "ckpt/model.ckpt-500.index").exists():
            shutil.rmtree(place.work / "ckpt", ignore_errors=True)
            shutil.copytree(reference.work / "ckpt", place.work / "ckpt")
        outcome = place.run(self.command(place, "--once", "--retry-failed"), "evaluator")
        expect(outcome.status == 0, f"the next start: status {outcome.status}: {outcome.said[-400:]}")
        self.ahead = False
        done, best = self.agree(place, reference, self.dirty)
        expect({r["step"] for r in done} == {100, 200, 300, 400, 500}, f"not done: {[r['step'] for r in done]}")
        names = place.names("eval")
        for name in names:
            expect(not TEMPORARY.search(name) and not name.startswith("eval/pinned/"), f"left behind: {name}")
        if "--keep-best" in self.options:
            self.check_best(place, best, names)

    def check_best(self, place, best, names):
        text = (place.work / "eval/best/checkpoint").read_text()
        expect(f'model_checkpoint_path: "{best["checkpoint"]}"' in text, f"best is {best['checkpoint']}, not {text}")
        self.tool(place, "checkpoint", "verify", place.work / "eval/best")
        kept = [name for name in names if name.startswith("eval/best/") and name.endswith(".index")]
        expect(len(kept) == 2, f"of the two best there are {kept}")


class Writer(Job):
    """A C program with libeventlog: 300 points, flushed every 40."""
    program, calls, directories = "write_events", 40, ("log",)
    options, COUNT, first, before = (), 300, 0, 0

    def command(self, place, count=COUNT):
        return [self.tools.write_events, place.work / "log", "--first", self.first, "--count", count,
                "--flush-every", 40, "--resume", "append", *self.options]

    def shown(self, place):
        self.sound(place, "log")
        return self.points(place, "log").get((".", "t/0"), [])

    def check(self, place, outcome, reference):
        shown = self.shown(place)
        expect(shown == [(step, step % 1000) for step in sorted({step for step, _ in shown})], f"other points: {shown}")
        first, self.first, before, self.before = self.first, shown[-1][0] + 1 if shown else 0, self.before, len(shown)
        if place.lost:
            return
        flushed = max((int(step) for step in re.findall(rb"flushed 0 (\d+)\n", outcome.printed)), default=first - 1)
        refused = len(re.findall(r"^write_events: ", outcome.said, re.M))
        there = sum(first <= step <= flushed for step, _ in shown)
        expect(there + refused >= flushed - first + 1, f"flushed {flushed} is not there: {shown}")
        if end := re.search(rb"events (\d+) dropped (\d+) errors (\d+)", outcome.printed):
            events, dropped, _ = map(int, end.groups())
            lost = re.search(r"close: the last (\d+) events are lost", outcome.said)
            written = events - (int(lost.group(1)) if lost else 0)
            expect(written == len(shown) - before, f"{written} counted as written, {len(shown) - before} are there")
            expect(outcome.status or (events == self.COUNT and not dropped), f"status 0, {dropped} dropped")
        else:
            expect(outcome.status, "status 0 without an end")
        if outcome.unharmed:
            expect(outcome.status == 0, f"status {outcome.status}: {outcome.said}")

    def finish(self, place, reference):
        before = self.shown(place)
        outcome = place.run(self.command(place, 10), self.program)
        expect(outcome.status == 0, f"the next start: status {outcome.status}: {outcome.said}")
        wanted = before + [(step, step % 1000) for step in range(self.first, self.first + 10)]
        expect(self.shown(place) == wanted, "points are missing after the next start")


def write_log(tools, place, directory, runs=2, damaged=False):
    for run in range(runs):
        place.run([tools.write_events, place.work / directory / f"run{run}", "--count", 60 + run, "--tag", f"tag{run}",
                   "--rotate", 1500], "")
    if damaged:
        path = sorted((place.work / directory / "run0").iterdir())[0]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x40
        path.write_bytes(data)


class Command(Job):
    """A command that makes output of input: what it gives is whole, or is not there, and the input stays."""
    calls, directories = 40, ("in", "out")
    words, output, checks = (), "out", ()
    damaged = False

    def prepare(self, place):
        (place.work / "out").mkdir()
        write_log(self.tools, place, "in", damaged=self.damaged)

    def command(self, place, *more):
        again = ("--force",) if place.runs else ()
        return [self.tools.bin / self.program, *self.words, *again, *more]

    def content(self, place):
        """What it made, to compare; {} where there is none."""
        return {name: path.read_bytes() for name, path in place.names(self.output).items()
                if not TEMPORARY.search(name)}

    def check(self, place, outcome, reference):
        one_line_errors(outcome, self.program)
        if outcome.unharmed:
            expect(outcome.status == 0, f"status {outcome.status} without harm: {outcome.said}")
        wanted, made = self.content(reference), self.content(place)
        whole = made == wanted
        if not place.lost:
            if outcome.status == 0:
                expect(whole, f"status 0, and {sorted(made)} is not {sorted(wanted)}")
            expect(made.items() <= wanted.items(), f"torn: {[n for n in made if made[n] != wanted.get(n)]}")
            expect(self.inputs(place) == self.inputs(reference), "the input has changed")
        self.tidy(place, outcome)

    def tidy(self, place, outcome):
        """Only who had no chance to leaves a file under a temporary name."""
        self.dirty = getattr(self, "dirty", False) or outcome.killed or outcome.fault.kind == "EROFS" or place.lost
        for name in place.names():
            expect(self.dirty or not TEMPORARY.search(name), f"left behind: {name}")

    def inputs(self, place):
        return [path.read_bytes() for path in place.names("in").values()]

    def finish(self, place, reference):
        for directory in self.directories if place.lost else ():
            shutil.rmtree(place.work / directory, ignore_errors=True)
            shutil.copytree(reference.path / "prepared" / directory, place.work / directory)
        outcome = self.run(place)
        expect(outcome.status == 0, f"the next start: status {outcome.status}: {outcome.said}")
        expect(self.content(place) == self.content(reference), "the next start made something else")


class Text(Command):
    """A command that prints."""
    directories = ("in",)

    def command(self, place):
        return [self.tools.bin / self.program, *self.words]

    def check(self, place, outcome, reference):
        one_line_errors(outcome, self.program)
        wanted = reference.printed.splitlines()
        printed = outcome.printed.splitlines()
        if outcome.status == 0 and not place.lost:
            expect(sorted(printed) == sorted(wanted), f"status 0, and {len(printed)} of {len(wanted)} lines")
        expect(set(printed[:-1]) <= set(wanted), "other lines")
        if outcome.unharmed:
            expect(outcome.status == 0, f"status {outcome.status} without harm: {outcome.said}")

    def finish(self, place, reference):
        if not place.lost:
            outcome = self.run(place)
            expect(outcome.status == 0, f"the next start: status {outcome.status}: {outcome.said}")
            expect(outcome.printed == reference.printed, "the next start printed something else")


class Packed(Command):
    """The log as a tar file."""
    def prepare(self, place):
        super().prepare(place)
        subprocess.run(["tar", "-cf", place.work / "in.tar", "-C", place.work, "in"], check=True)
        shutil.rmtree(place.work / "in")
        (place.work / "in").mkdir()
        (place.work / "in.tar").rename(place.work / "in/in.tar")


class InPlace(Command):
    """A command that replaces files: each is the old one or the new one, and the old one stays beside."""
    output, directories, damaged = "in", ("in",), True

    def command(self, place, *more):
        return [self.tools.bin / "eventlog", *self.words, *sorted((place.work / "in/run0").glob("*tfevents*")), *more]

    def prepare(self, place):
        super().prepare(place)
        shutil.copytree(place.work / "in", place.work / "before")

    def check(self, place, outcome, reference):
        one_line_errors(outcome, self.program)
        if outcome.unharmed:
            expect(outcome.status == 0, f"status {outcome.status} without harm: {outcome.said}")
        if place.lost:
            return
        wanted, made = self.content(reference), self.content(place)
        old = {name.replace("before", "in", 1): path.read_bytes() for name, path in place.names("before").items()}
        for name, data in made.items():
            expect(data in (wanted.get(name), old.get(name)), f"torn: {name}")
        for name, data in old.items():
            expect(data in made.values(), f"the old bytes of {name} are gone")
        expect(outcome.status or made == wanted, "status 0, and it is not replaced")
        self.tidy(place, outcome)

    def finish(self, place, reference):
        if not place.lost:
            outcome = place.run(self.command(place), self.program)
            expect(outcome.status == 0, f"the next start: status {outcome.status}: {outcome.said}")
            wanted, made = self.content(reference), self.content(place)
            expect(made.items() >= {n: d for n, d in wanted.items() if "tfevents" in n}.items(), "not all are repaired")


class Convert(Command):
    program = "checkpoint"

    def prepare(self, place):
        (place.work / "out").mkdir()
        place.run([self.tools.write_checkpoint, "--directory", place.work / "in", "--last", 100], "")
        self.tool(place, "checkpoint", "convert", place.work / "in/model.ckpt-100", place.work / "in/m.safetensors")


def jobs(tools):
    exec_words = ("--exec", f"sh {tools.script} {{step}}", "--jobs", "2")
    return [
        Trainer("trainer single", tools),
        Trainer("trainer mpi", tools, strategy=("--run-option", "mpi"), ranks=(0, 1), also=("launcher killed",)),
        Trainer("trainer ps", tools, strategy=("--run-option", "ps"), ranks=(0, 1, 2), also=("launcher killed",)),
        Trainer("trainer ps --async", tools, strategy=("--run-option", "ps", "--async"), ranks=(0, 1, 2), same=False,
                also=("launcher killed",)),
        Evaluator("evaluator", tools, calls=300),
        Evaluator("evaluator --once", tools, options=("--once",), calls=300),
        Evaluator("evaluator --keep-best", tools, options=("--keep-best", "2", "--metrics", "all", "--threads", "2")),
        Evaluator("evaluator --exec", tools, options=exec_words, calls=300),
        Evaluator("evaluator --exec --pin", tools, options=("--pin", *exec_words), calls=400),
        Writer("write_events", tools),
        Writer("write_events --queue", tools, options=("--queue", 4000, "--rotate", 3000)),
        Writer("write_events --sync", tools, options=("--sync", -1, "--buffer", 500)),
        Text("eventlog tail", tools, words=("tail", "-n", "-1", "in")),
        Text("eventlog tail -f", tools, never=("moved", "replaced", "gone"),
             words=("tail", "-n", "-1", "-f", "--interval", "0.02", "--idle-timeout", "0.2", "in")),
        Command("eventlog merge", tools, words=("merge", "in", "-o", "out/merged")),
        Command("eventlog export", tools, words=("export", "in", "-o", "out/points.csv")),
        Command("eventlog export gz", tools, words=("export", "--format=jsonl", "in", "-o", "out/points.jsonl.gz")),
        Packed("eventlog merge tar", tools, words=("merge", "in/in.tar", "-o", "out/merged")),
        Command("eventlog rename-tag", tools, words=("rename-tag", "tag0/0=new/0", "in", "-o", "out/renamed")),
        InPlace("eventlog repair", tools, words=("repair", "--in-place")),
        Convert("checkpoint convert", tools, words=("convert", "in/model.ckpt-100", "out/m.safetensors")),
        Convert("checkpoint convert back", tools, words=("convert", "in/m.safetensors", "out/model.ckpt-1")),
        Convert("checkpoint convert npy", tools, words=("convert", "in/model.ckpt-100", "out/npy/")),
    ]


def write_data(directory):
    """MNIST of 24 images of noise."""
    chance = random.Random(1)
    directory.mkdir()
    for part in "train", "t10k":
        images, labels = chance.randbytes(24 * 28 * 28), bytes(chance.randrange(10) for _ in range(24))
        (directory / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, 24, 28, 28) + images)
        (directory / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, 24) + labels)
