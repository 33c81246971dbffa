"""The evaluator beside a cleaner that deletes checkpoints file by file: what only loses files is no new checkpoint."""
import os
import shutil

import pytest

from evaluators import Exec, ledger, steps
from waiting import wait_for

OPTIONS = ("--pattern", "step{step}/", "--ready", "quiet:0.05", "--poll-interval", "0.02", "--quiet-time", "0.1")
FILES = ["meta.json", ".metadata", "shards/0", "shards/1", "shards/more/2"]


def save(tmp_path, step, text="", files=FILES):
    for name in files:
        path = tmp_path / f"ckpt/step{step}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} of {step}{text}")


def looked(evaluator):
    """Until it has had time to take in what is there: a later checkpoint is done."""
    save(evaluator.directory, looked.next)
    wait_for(lambda: looked.next in steps(ledger(evaluator.directory)), "a later checkpoint")
    looked.next += 1


looked.next = 10000


@pytest.mark.parametrize("pinned", [[], ["--pin"]], ids=["", "pin"])
@pytest.mark.parametrize("order", [FILES, FILES[::-1]], ids=["metadata first", "metadata last"])
def test_file_by_file(tmp_path, order, pinned):
    save(tmp_path, 1)
    with Exec(tmp_path, "sh -c 'echo files $(find \"$EVALUATOR_CHECKPOINT\" -type f | wc -l)'", *OPTIONS, *pinned) as evaluator:
        wait_for(lambda: steps(ledger(tmp_path)) == [1], "the evaluation")
        for name in order:
            (tmp_path / "ckpt/step1" / name).unlink()
            looked(evaluator)
        shutil.rmtree(tmp_path / "ckpt/step1")
        looked(evaluator)
        save(tmp_path, 1, " again")  # under the same name: a new one
        wait_for(lambda: steps(ledger(tmp_path)).count(1) == 2, "the new one of the same name")
        (tmp_path / "ckpt/step1" / order[0]).unlink()
        looked(evaluator)
        save(tmp_path, 1, " for the third time")  # while it is being deleted
        wait_for(lambda: steps(ledger(tmp_path)).count(1) == 3, "the third one")
    assert all(r["status"] == "done" and r["metrics"]["files"] == 5 for r in ledger(tmp_path)), ledger(tmp_path)


def test_deleted_while_it_is_evaluated(tmp_path):
    """What is left is not scored again, and the result is not believed."""
    save(tmp_path, 1)
    command = f"sh -c 'touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo value 1'"
    with Exec(tmp_path, command, *OPTIONS) as evaluator:
        wait_for((tmp_path / "began").exists, "the evaluation")
        (tmp_path / "ckpt/step1/meta.json").unlink()
        (tmp_path / "go").touch()
        wait_for(lambda: ledger(tmp_path), "a line")
        looked(evaluator)
    first = ledger(tmp_path)[0]
    assert first["status"] == "gone" and first["reason"] == "was being deleted while it was evaluated"
    assert 1 not in steps(ledger(tmp_path))


def test_marker_goes_first(tmp_path):
    """Also if the evaluator starts in between."""
    options = ("--pattern", "m_{step}.pt", "--ready", "marker:{name}.ok", *OPTIONS[4:])
    (tmp_path / "ckpt").mkdir()
    (tmp_path / "ckpt/m_1.pt").write_text("1")
    (tmp_path / "ckpt/m_1.pt.ok").touch()
    for _ in range(2):
        with Exec(tmp_path, "echo value 1", *options, "--once") as evaluator:
            evaluator.ends(0)
        (tmp_path / "ckpt/m_1.pt.ok").unlink(missing_ok=True)
    with Exec(tmp_path, "echo value 1", *options, "--once") as evaluator:
        evaluator.ends(0)
    assert [(r["step"], r["status"]) for r in ledger(tmp_path)] == [(1, "done")]


def test_link_to_itself(tmp_path):
    (tmp_path / "ckpt").mkdir()
    os.symlink("last.ckpt", tmp_path / "ckpt/last.ckpt")
    with Exec(tmp_path, "echo value 1", "--pattern", "last.ckpt", "--step-from", "mtime", *OPTIONS[2:]) as evaluator:
        evaluator.says("last.ckpt is a symbolic link to itself")


COUNT = "sh -c 'echo files $(find \"$EVALUATOR_CHECKPOINT\" -type f | wc -l)'"


def remove(tmp_path, step, *names):
    """What it leaves was written a second before."""
    place = tmp_path / f"ckpt/step{step}"
    for name in names:
        (place / name).unlink()
    for path in place.rglob("*"):
        if path.is_file():
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 1))


@pytest.mark.parametrize("options", [OPTIONS, (*OPTIONS, "--ready", "marker:.metadata")], ids=["quiet", "marker"])
def test_found_while_it_is_deleted(tmp_path, options):
    """An evaluator starts again while what it has scored shrinks, each time a bit smaller; a new one of the name counts."""
    for step in (1, 2):
        save(tmp_path, step)
    for left in (FILES, FILES[1:], FILES[2:], FILES[3:]):
        for name in set(FILES) - set(left):
            (tmp_path / "ckpt/step1" / name).unlink(missing_ok=True)
        with Exec(tmp_path, COUNT, *options, "--once") as evaluator:
            evaluator.ends(0)
    assert [(r["step"], r["metrics"]["files"]) for r in ledger(tmp_path)] == [(1, 5), (2, 5)]
    save(tmp_path, 1, " again")
    with Exec(tmp_path, COUNT, *options, "--once") as evaluator:
        evaluator.ends(0)
    assert [(r["step"], r["metrics"]["files"]) for r in ledger(tmp_path)][2:] == [(1, 5)]


def test_first_found_while_it_is_deleted(tmp_path):
    """Never seen whole: it lacks what the later ones have, or a part that its own index names."""
    for step in (1, 2, 3, 4):
        save(tmp_path, step)
    remove(tmp_path, 1, "meta.json", ".metadata", "shards/0")
    remove(tmp_path, 2, "meta.json")
    parts = ["pytorch_model.bin.index.json", "a-1.bin", "a-2.bin"]
    save(tmp_path, 0, files=parts)
    (tmp_path / "ckpt/step0" / parts[0]).write_text('{"weight_map": {"w": "a-1.bin", "v": "a-2.bin"}}')
    remove(tmp_path, 0, "a-2.bin")
    with Exec(tmp_path, COUNT, *OPTIONS, "--until-step", "10000") as evaluator:
        evaluator.says("step2 lacks meta.json")
        evaluator.says("step0 lacks a-2.bin")
        wait_for(lambda: steps(ledger(tmp_path)) == [3, 4], "the whole ones")
        remove(tmp_path, 2, ".metadata")
        shutil.rmtree(tmp_path / "ckpt/step1")
        save(tmp_path, 0, " again", files=parts[1:])  # made whole again
        wait_for(lambda: 0 in steps(ledger(tmp_path)), "the one that is whole again")
        save(tmp_path, 10000)
        evaluator.ends(0)
    assert [(r["step"], r["metrics"]["files"]) for r in ledger(tmp_path)] == [(3, 5), (4, 5), (0, 3), (10000, 5)]


def test_others_are_no_less(tmp_path):
    """Fewer files than others have are no deletion where nothing was removed, or where one later one lacks them, too."""
    save(tmp_path, 1, files=[*FILES, "extra"])
    save(tmp_path, 2, files=FILES[1:])
    save(tmp_path, 3)
    save(tmp_path, 4)
    save(tmp_path, 5, files=[*FILES, "more"])
    for step in (1, 4):
        save(tmp_path, step, files=["temporary"])
        remove(tmp_path, step, "temporary")
    with Exec(tmp_path, COUNT, *OPTIONS, "--once") as evaluator:
        evaluator.ends(0)
    assert sorted(steps(ledger(tmp_path))) == [1, 2, 3, 4, 5]
