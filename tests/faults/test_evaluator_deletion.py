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
