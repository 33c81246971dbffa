"""The eval directory is deleted, moved away or replaced under a running evaluator: it notices, says so, makes it again."""
import json
import pathlib
import shutil
import signal
import tempfile

import pytest

from evaluators import Evaluator, Several, ledger, points, steps, write
from waiting import wait_for


EXEC = ["--exec", "echo precision 0.5"]


def remove(path):
    """At one moment: the evaluator may make something in it meanwhile."""
    elsewhere = pathlib.Path(tempfile.mkdtemp())
    path.rename(elsewhere / "removed")
    shutil.rmtree(elsewhere)


def deleted(runs):
    remove(runs / "eval")


def moved(runs):
    (runs / "eval").rename(runs / "eval.moved")


def replaced(runs):
    moved(runs)
    (runs / "eval").mkdir()


def deleted_with_its_parent(runs):
    remove(runs)


def ledger_deleted(runs):
    (runs / "eval/evaluations.jsonl").unlink()


def start(directory, *arguments, how=EXEC, **keywords):
    return Evaluator(directory, *arguments, how=how, evaluation="runs/eval", **keywords)


def records(directory):
    return ledger(directory, "runs/eval")


FAULTS = [deleted, moved, replaced, deleted_with_its_parent, ledger_deleted]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.__name__ for fault in FAULTS])
def test_made_again(tmp_path, fault):
    """Ledger, points of this process and of the one before, best and lock are there again; later ones join them."""
    runs = tmp_path / "runs"
    write(tmp_path, "--last", 200)
    with start(tmp_path, "--once") as evaluator:
        evaluator.ends(0)
    before = records(tmp_path)
    write(tmp_path, "--first", 300, "--last", 300)
    with start(tmp_path, "--until-step", 500, "--keep-best") as evaluator:
        wait_for(lambda: steps(records(tmp_path)) == [100, 200, 300], "the third")
        fault(runs)
        evaluator.says("was deleted, moved or replaced; made again with 3 lines of the ledger")
        assert steps(records(tmp_path)) == [100, 200, 300] and records(tmp_path)[:2] == before
        assert json.loads((runs / "eval/evaluator.lock").read_text())["state"] == "running"
        wait_for((runs / "eval/best/model.ckpt-100.index").exists, "the best")
        write(tmp_path, "--first", 400, "--last", 400)
        wait_for(lambda: steps(records(tmp_path)) == [100, 200, 300, 400], "the fourth")
        shutil.rmtree(runs / "eval.moved", ignore_errors=True)
        fault(runs)
        write(tmp_path, "--first", 500, "--last", 500)
        evaluator.ends(0)
    assert steps(records(tmp_path)) == [100, 200, 300, 400, 500]
    assert [step for step, _, _ in points(runs / "eval")["precision"]] == [100, 200, 300, 400, 500]
    assert json.loads((runs / "eval/evaluator.lock").read_text())["state"] == "ended"


def test_cannot_be_made_again(tmp_path):
    """What cannot be recorded is not: said, tried again, and if it stays so the status is not 0."""
    runs = tmp_path / "runs"
    write(tmp_path)
    with start(tmp_path) as evaluator:
        wait_for(lambda: steps(records(tmp_path)) == [100], "the first")
        remove(runs)
        runs.write_text("a file in its place")
        evaluator.says("nothing can be recorded, trying again every 1 s")
        write(tmp_path, "--first", 200, "--last", 200)
        runs.unlink()
        wait_for(lambda: steps(records(tmp_path)) == [100, 200], "both")
        remove(runs)
        runs.write_text("a file in its place")
        wait_for(lambda: evaluator.said().count("nothing can be recorded") == 2, "the second time")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(1)


def test_another_ledger_is_not_overwritten(tmp_path):
    runs = tmp_path / "runs"
    write(tmp_path)
    with start(tmp_path) as evaluator:
        wait_for(lambda: steps(records(tmp_path)) == [100], "the first")
        moved(runs)
        shutil.copytree(runs / "eval.moved", runs / "other")
        (runs / "other").rename(runs / "eval")
        evaluator.says("evaluations.jsonl: is no longer the file that this evaluator writes to")
        write(tmp_path, "--first", 200, "--last", 200)
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(1)
    assert steps(records(tmp_path)) == [100]


def test_pins(tmp_path):
    """What waits pinned is found again where the trainer has not deleted it."""
    go = tmp_path / "go"
    wait = ["--exec", f"sh -c 'until [ -e {go} ]; do sleep 0.01; done; echo precision 0.5'"]
    write(tmp_path, "--last", 300)
    with start(tmp_path, "--pin", "--until-step", 300, how=wait) as evaluator:
        wait_for(lambda: len(list((tmp_path / "runs/eval/pinned").glob("[0-9]*"))) == 3, "three pins")
        deleted(tmp_path / "runs")
        evaluator.says("made again with 0 lines")
        wait_for(lambda: len(list((tmp_path / "runs/eval/pinned").glob("[0-9]*"))) >= 2, "two pins")
        go.touch()
        evaluator.ends(0)
    assert steps(records(tmp_path)) == [100, 200, 300] and "failed:" not in evaluator.said()


def test_run_of_a_tree(tmp_path):
    """Whoever deletes a run with its eval directory means it; where only the eval directory went, it is made again."""
    for name in "ab":
        (tmp_path / "tree" / name).mkdir(parents=True)
        (tmp_path / "tree" / name / "m-1.pt").write_text("a checkpoint")
    with Several(tmp_path, "--watch-tree", tmp_path / "tree", root="tree",
                 how=["--exec", "echo precision 1", "--pattern", "m-{step}.pt", "--ready", "rename"]) as several:
        for name in "ab":
            several.waits_for(name, [1])
        remove(tmp_path / "tree/b/eval")
        several.says("b: " + str(tmp_path / "tree/b/eval") + " was deleted")
        several.waits_for("b", [1])
        remove(tmp_path / "tree/a")
        (tmp_path / "tree/b/m-2.pt").write_text("a checkpoint")
        several.waits_for("b", [1, 2])
        several.process.send_signal(signal.SIGTERM)
        several.ends(0)
    assert not (tmp_path / "tree/a/eval/evaluations.jsonl").exists()
    assert "a: " + str(tmp_path / "tree/a/eval") not in several.said()
