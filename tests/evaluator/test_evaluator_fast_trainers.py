"""Trainers that save faster than anybody should, keep five, and say little: every checkpoint is evaluated, none twice.

EVALBOARD_CHECKPOINTS and EVALBOARD_RATE (a second) make the rows of the acceptance table literal: 1000 at 10, 300 at
100.
"""
import contextlib
import os
import signal
import time

import pytest

from evaluators import Evaluator, Exec, ledger, script, steps, write
from interposed import HELD_SYNC, held_data, interposed
from waiting import DEADLINE, wait_for

COUNT = int(os.environ.get("EVALBOARD_CHECKPOINTS", "60"))
RATE = float(os.environ.get("EVALBOARD_RATE", "10"))
KEEP = 5


def publish(directory, state, pinned=True):
    """Renames checkpoints that were written beforehand into place, at the rate, and deletes all but the newest five.

    state: "list" names the kept ones in the state file, "newest" only the last, None writes none. pinned: none is deleted
    before the evaluator has pinned it, for which a busy machine may need longer than one lives; at the rates of the table
    the trainer does not wait.
    """
    checkpoints, stash = directory / "ckpt", directory / "stash"
    begin = time.monotonic()
    for step in range(1, COUNT + 1):
        time.sleep(max(0, begin + step / RATE - time.monotonic()))  # the pace of the trainer
        for end in (".data-00000-of-00001", ".index"):
            os.rename(stash / f"model.ckpt-{step}{end}", checkpoints / f"model.ckpt-{step}{end}")
        kept = range(max(1, step - KEEP + 1), step + 1)
        if state:
            lines = [f'all_model_checkpoint_paths: "model.ckpt-{s}"\n' for s in (kept if state == "list" else [step])]
            (checkpoints / "checkpoint.tmp").write_text(f'model_checkpoint_path: "model.ckpt-{step}"\n' + "".join(lines))
            os.rename(checkpoints / "checkpoint.tmp", checkpoints / "checkpoint")
        if step > KEEP:
            if pinned and "EVALBOARD_RATE" not in os.environ:
                wait_for(lambda: list(directory.glob(f"eval/pinned/[0-9]*-{step - KEEP}-*")) or
                         step - KEEP in steps(ledger(directory)), f"a pin of step {step - KEEP}")
            for end in (".index", ".data-00000-of-00001"):
                (checkpoints / f"model.ckpt-{step - KEEP}{end}").unlink()


def prepare(directory):
    (directory / "ckpt").mkdir()
    write(directory, "--first", 1, "--step", 1, "--last", COUNT, "--stateless", checkpoints="stash")


def check(directory):
    records = ledger(directory)
    assert steps(records) == list(range(1, COUNT + 1)) and len(records) == COUNT
    assert {r["run"] for r in records} == {0}


@pytest.mark.parametrize("state", ["list", "newest", None])
def test_built_in(tmp_path, state):
    prepare(tmp_path)
    with Evaluator(tmp_path, "--pin", "--until-step", COUNT) as evaluator:
        evaluator.says("watching")
        publish(tmp_path, state)
        evaluator.ends(0)
    check(tmp_path)


def test_while_the_data_is_read(tmp_path):
    """Pinned before the first can be evaluated: a data set may take longer to read than a checkpoint lives."""
    write(tmp_path, "--first", 1, "--step", 1, "--last", 20, "--stateless", checkpoints="stash")
    checkpoints = tmp_path / "ckpt"
    checkpoints.mkdir()
    environment, hold = held_data(tmp_path)
    with Evaluator(tmp_path, "--pin", "--max-evaluations", 20, env=environment) as evaluator:
        evaluator.says("watching")
        for step in range(1, 21):
            for end in (".data-00000-of-00001", ".index"):
                os.rename(tmp_path / "stash" / f"model.ckpt-{step}{end}", checkpoints / f"model.ckpt-{step}{end}")
            wait_for(lambda: list((tmp_path / "eval").glob(f"pinned/*-{step}-*")), f"a pin of step {step}")
            for path in checkpoints.iterdir():
                path.unlink()
        assert not ledger(tmp_path)
        hold.unlink()
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == list(range(1, 21))


def opened(process, name):
    """A descriptor of the process is on a file of that name."""
    for descriptor in os.scandir(f"/proc/{process.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(descriptor.path).endswith(f"/{name}"):
                return True
    return False


@pytest.mark.parametrize("how", ["--pin", "--no-pin"])
def test_while_the_ledger_is_synced(tmp_path, how):
    """Pinned, or held open, though a sync takes longer than a checkpoint lives: more than one come and go meanwhile."""
    hold, begun = tmp_path / "hold", tmp_path / "begun"
    hold.touch()
    environment = interposed(tmp_path, "held_sync", HELD_SYNC, HOLD_NAME="evaluations.jsonl", HOLD_WHILE=hold, HOLD_SAYS=begun)
    write(tmp_path, "--last", 100)
    with Evaluator(tmp_path, how, "--until-step", 400, env=environment) as evaluator:
        wait_for(begun.exists, "a sync of the ledger")
        for step in (200, 300, 400):
            write(tmp_path, "--first", step, "--last", step)
            if how == "--pin":
                wait_for(lambda: list((tmp_path / "eval").glob(f"pinned/[0-9]*-{step}-*")), f"a pin of step {step}")
            else:
                wait_for(lambda: opened(evaluator.process, f"model.ckpt-{step}.data-00000-of-00001"),
                         f"step {step} held open")
            for path in (tmp_path / "ckpt").iterdir():
                path.unlink()
        assert "step: 100," not in evaluator.said()  # it is said when its line is on the disk
        hold.unlink()
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == [100, 200, 300, 400]


def test_command(tmp_path):
    prepare(tmp_path)
    command = script(tmp_path, 'test -s "$1.index" && echo loss 1\n') + " {checkpoint}"
    with Exec(tmp_path, command, "--pin", "--until-step", COUNT, "--jobs", 2) as evaluator:
        evaluator.says("watching")
        publish(tmp_path, "list")
        evaluator.ends(0)
    check(tmp_path)
    assert not list((tmp_path / "eval" / "pinned").iterdir())


def test_command_without_pin(tmp_path):
    """What vanished before its turn, since its command is slow, is counted and named; each has exactly one outcome."""
    prepare(tmp_path)
    over = tmp_path / "over"
    command = script(tmp_path, f"test -s $1.index || exit 1; while [ ! -e '{over}' ]; do sleep 0.02; done; echo loss 1\n")
    with Exec(tmp_path, f"{command} {{checkpoint}}", "--done-file", over) as evaluator:
        evaluator.says("watching")
        publish(tmp_path, None, pinned=False)
        over.touch()
        evaluator.process.wait(DEADLINE)
        said = evaluator.said()
    records = ledger(tmp_path)
    gone = steps(records, "gone")
    assert gone and not steps(records, "failed") and evaluator.process.returncode == 1
    assert len({r["step"] for r in records}) == len(records)
    assert f"{len(steps(records))} done, 0 failed, {len(gone)} gone" in said
    assert all(f"model.ckpt-{step}: gone" in said for step in gone)


@pytest.mark.parametrize("exec_of_models", [False, True])
def test_gone_between_two_looks(tmp_path, exec_of_models):
    """Checkpoints that come and go while the evaluator does not run at all are named nevertheless."""
    prepare(tmp_path)
    command = script(tmp_path, "echo loss 1\n") + " {checkpoint}"
    pattern = ["--pattern", "m_{step}.pt", "--ready", "rename"] if exec_of_models else []
    with Exec(tmp_path, command, "--done-file", tmp_path / "over", *pattern) as evaluator:
        evaluator.says("watching")
        os.kill(evaluator.process.pid, signal.SIGSTOP)
        for step in range(1, 6):
            for end in [".index"] if exec_of_models else [".data-00000-of-00001", ".index"]:
                stash = tmp_path / "stash" / f"model.ckpt-{step}{end}"
                name = tmp_path / "ckpt" / (f"m_{step}.pt" if exec_of_models else stash.name)
                os.rename(stash, name)
                if step != 3:
                    name.unlink()
        (tmp_path / "over").touch()  # so its first look on waking is its last
        os.kill(evaluator.process.pid, signal.SIGCONT)
        evaluator.process.wait(DEADLINE)
        records = ledger(tmp_path)
    assert sorted(steps(records, "gone")) == [1, 2, 4, 5] and len(records) == 5
    assert steps(records) == [3]
