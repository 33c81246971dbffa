"""An evaluator as a process, what is written for it, and what it has made of that; for tests of several files.

Checkpoints come from the helper program write_checkpoint (lenet with initial values), data from Debian's package.
"""
import collections
import json
import os
import pathlib
import subprocess

import pytest

from waiting import DEADLINE, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
EVALUATOR = BUILD / "bin" / "evaluator"
WRITER = BUILD / "tests" / "programs" / "write_checkpoint"
KILLS = int(os.environ.get("EVALBOARD_KILLS", "20"))  # random moments; the acceptance table wants 200


class Evaluator:
    """One evaluator process on directory/ckpt and directory/eval; what it says goes to directory/log.

    how: the options that say how to evaluate, instead of the built-in model on so many examples.
    """

    def __init__(self, directory, *arguments, examples=200, how=None, evaluation="eval", checkpoints="ckpt",
                 **keywords):
        how = how or ["--model", "lenet", "--data", "fashion-mnist", "--num-examples", str(examples)]
        self.log_path = directory / "log"
        self.log_path.touch()
        self.log_start = self.log_path.stat().st_size
        self.directory = directory
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [EVALUATOR, "--checkpoint-dir", directory / checkpoints, "--eval-dir", directory / evaluation,
                 *how, *map(str, arguments)],
                stdout=subprocess.PIPE, stderr=log, text=True, **keywords)

    def said(self):
        return self.log_path.read_bytes()[self.log_start:].decode()

    def says(self, text, deadline=DEADLINE):
        wait_for(lambda: text in self.said() or self.process.poll() is not None, f"'{text}'", deadline)
        assert text in self.said(), self.said()

    def ends(self, status, deadline=DEADLINE):
        self.output, _ = self.process.communicate(timeout=deadline)
        assert self.process.returncode == status, self.said()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def write(directory, *arguments, checkpoints="ckpt", **keywords):
    """Runs the writer to its end; returns {step: wall time of the index}."""
    run = subprocess.run([WRITER, "--directory", directory / checkpoints, *map(str, arguments)], capture_output=True,
                         text=True, check=True, **keywords)
    return {int(line.split()[0]): float(line.split()[1]) for line in run.stdout.splitlines()}


def start_writing(directory, *arguments):
    return subprocess.Popen([WRITER, "--directory", directory / "ckpt", *map(str, arguments)], stdout=subprocess.DEVNULL)


def ledger(directory, evaluation="eval"):
    path = directory / evaluation / "evaluations.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def steps(records, status="done"):
    return [record["step"] for record in records if record["status"] == status]


def tensorboard_events(run):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
    for path in sorted(run.glob("events.out.tfevents.*")):
        for event in loader.EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                array = tensor_util.make_ndarray(value.tensor)
                if array.ndim == 0 and array.dtype.kind == "f":  # a scalar; texts, pictures and curves are none
                    yield value.tag, event.step, float(array), event.wall_time


def points(run):
    """{tag: [(step, value, wall time), ...]} in the order TensorBoard reads them; steps must never go down."""
    series = collections.defaultdict(list)
    for tag, step, value, wall in tensorboard_events(run):
        assert not series[tag] or series[tag][-1][0] <= step, f"{run}: {tag} goes down to {step}"
        series[tag].append((step, value, wall))
    return series


class Exec(Evaluator):
    """An evaluator that runs a command; the rest as in Evaluator."""

    def __init__(self, directory, command, *arguments, **keywords):
        super().__init__(directory, *arguments, how=["--exec", command], **keywords)


def script(directory, text):
    """A shell script of these lines; returns the command that runs it."""
    path = directory / "score.sh"
    path.write_text(text)
    return f"sh '{path}'"


def runs(directory):
    """The steps for which a script was started that notes each in `runs`."""
    path = directory / "runs"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Several(Evaluator):
    """One evaluator for a tree of trainings, directory/runs; the rest as in Evaluator."""

    def __init__(self, directory, *arguments, root="runs", how=None, **keywords):
        how = how or ["--model", "lenet", "--data", "fashion-mnist", "--num-examples", "100"]
        self.root, self.log_path, self.log_start = directory / root, directory / "log", 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [EVALUATOR, "--eval-root", self.root, *how, *map(str, arguments)], stdout=subprocess.PIPE, stderr=log, text=True, **keywords)

    def ledger(self, name):
        path = self.root / name / "eval/evaluations.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def steps(self, name):
        return [record["step"] for record in self.ledger(name)]

    def waits_for(self, name, wanted):
        wait_for(lambda: self.steps(name) == wanted or self.process.poll() is not None, f"{wanted} of {name}")
        assert self.steps(name) == wanted, (self.steps(name), self.said())


def write_into(directory, *arguments):
    """The same without the times, straight into a directory."""
    subprocess.run([WRITER, "--directory", directory, *map(str, arguments)], stdout=subprocess.DEVNULL, check=True)


def refused(directory, word, *arguments):
    """An evaluator with a command ends over its options: one line says why."""
    (directory / "ckpt").mkdir()
    with Exec(directory, "true", *arguments) as evaluator:
        evaluator.ends(2)
        assert evaluator.said().count("\n") == 1 and word in evaluator.said()
