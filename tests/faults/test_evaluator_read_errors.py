"""The evaluator where reading fails now and then, as on network file systems: that is no verdict on a checkpoint."""
import concurrent.futures
import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from waiting import wait_for

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))

from evaluators import WRITER  # noqa: E402  where what follows is, is known now
from injected import ALWAYS, Fault, Place  # noqa: E402

FAST = ("--poll-interval", 0.02, "--quiet-time", 0.05)
HOW = {"file": ("--pattern", "m_{step}.pt", "--ready", "quiet:0.05", "--exec", "echo value 1"),
       "directory": ("--pattern", "step{step}/", "--ready", "quiet:0.05", "--exec", "echo value 1"),
       "marked": ("--pattern", "m_{step}.pt", "--ready", "marker:{name}.ok", "--exec", "echo value 1"),
       "bundle": ("--exec", "echo value 1")}


class Evaluations:
    def __init__(self, tmp_path, kind, steps=range(100, 500, 100)):
        self.place, self.kind, self.steps = Place(tmp_path / "place", BUILD / "tests/campaign/inject.so"), kind, list(steps)
        top = self.place.work / "ckpt"
        if kind == "bundle":
            subprocess.run([WRITER, "--directory", top, "--last", str(self.steps[-1])], check=True, stdout=subprocess.DEVNULL)
            return
        for step in self.steps:
            files = {"file": [f"m_{step}.pt"], "marked": [f"m_{step}.pt", f"m_{step}.pt.ok"],
                     "directory": [f"step{step}/shard{i}/part" for i in range(2)] + [f"step{step}/meta.json"]}[kind]
            for name in files:
                (top / name).parent.mkdir(parents=True, exist_ok=True)
                (top / name).write_text(f"{{\"{step}\": 1}}")

    def start(self, fault=None, *more):
        return self.place.run([BUILD / "bin/evaluator", "--checkpoint-dir", "ckpt", "--eval-dir", "eval", *HOW[self.kind],
                               *FAST, *(more or ["--once"])], "evaluator", fault)

    def ledger(self):
        path = self.place.work / "eval/evaluations.jsonl"
        return [(r["step"], r["status"]) for r in map(json.loads, path.read_text().splitlines())] if path.exists() else []

    def all_done(self):
        return [(step, "done") for step in self.steps]


def fault(name, call=1, times=1, **more):
    return Fault(name, call, getattr(errno, name), times=times, match="/ckpt", looks=True, **more)


@pytest.mark.parametrize("kind", HOW)
@pytest.mark.parametrize("name", ["ESTALE", "EIO", "EACCES", "ENOENT", "ETIMEDOUT"])
def test_one_call_fails(tmp_path, kind, name):
    """Each of the first calls, before the checkpoints are scored and after: each is done once, and stays so."""
    work = Evaluations(tmp_path, kind)
    outcome = work.start(fault(name, 3))
    assert outcome.fired and outcome.status == 0 and sorted(work.ledger()) == work.all_done(), outcome.said
    for call in range(1, 40, 3):
        outcome = work.start(fault(name, call))
        assert outcome.status == 0 and sorted(work.ledger()) == work.all_done(), (outcome.fired, outcome.said)


@pytest.mark.parametrize("kind", HOW)
def test_two_in_a_hundred_calls_fail(tmp_path, kind):
    work = Evaluations(tmp_path, kind, range(100, 1100, 100))
    outcome = work.start(fault("ESTALE", 1, ALWAYS, share=20), "--until-step", "1000", "--idle-timeout", "60")
    assert outcome.status == 0 and sorted(work.ledger()) == work.all_done(), outcome.said


@pytest.mark.parametrize("kind", ["file", "directory", "marked"])
def test_new_name_cannot_be_looked_at(tmp_path, kind):
    """inotify says its name, but looking at it fails at first: it is not taken for deleted."""
    work = Evaluations(tmp_path, kind)
    top, name = work.place.work / "ckpt", "step500" if kind == "directory" else "m_500.pt"

    def add():
        wait_for(lambda: work.ledger() == work.all_done(), "the others")
        new = top / ".new"
        if kind == "directory":
            shutil.copytree(top / "step400", new)
        else:
            new.write_text("{\"500\": 1}")
        (top / f"{name}.ok").touch()
        new.rename(top / name)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        added = pool.submit(add)
        outcome = work.start(Fault("ESTALE", 1, errno.ESTALE, times=3, match=f"fstatat {top / name}", looks=True),
                             "--until-step", "500", "--idle-timeout", "60")
        added.result()
    work.steps.append(500)
    assert outcome.fired and outcome.status == 0 and work.ledger() == work.all_done(), outcome.said


def test_never_readable(tmp_path):
    """--once gives up in the end, with the reason, and the next start tries again. What is done stays done."""
    work = Evaluations(tmp_path, "file")
    unreadable = Fault("EIO", 1, errno.EIO, times=ALWAYS, match="/ckpt/m_200.pt", looks=True)
    opens = Fault("EACCES", 1, errno.EACCES, times=ALWAYS, match="openat " + str(work.place.work / "ckpt/m_200.pt"))
    outcome = work.start(opens)
    assert outcome.status == 1 and "m_200.pt: failed: cannot be read: " in outcome.said and "Permission denied" in outcome.said
    assert outcome.said.count("trying again") == 1
    assert sorted(work.ledger()) == [(100, "done"), (200, "failed"), (300, "done"), (400, "done")]
    assert work.start().status == 0 and work.ledger()[-1] == (200, "done")
    before = work.ledger()
    for again in opens, unreadable:
        outcome = work.start(again)
        assert outcome.fired and outcome.status == 0 and work.ledger() == before, outcome.said


def test_directory_cannot_be_listed(tmp_path):
    """Not even --once takes that for an empty one."""
    work = Evaluations(tmp_path, "file")
    outcome = work.start(Fault("ESTALE", 1, errno.ESTALE, times=4, match=f"open {work.place.work / 'ckpt'}\n"))
    assert outcome.fired and outcome.status == 0 and work.ledger() == work.all_done(), outcome.said
