"""An evaluator that finds nothing: it says what is there, and its status says that nothing was evaluated."""
import shlex
import subprocess

import pytest

from evaluators import EVALUATOR, Exec, ledger, steps
from waiting import wait_for


def make(directory, *names):
    (directory / "ckpt").mkdir(exist_ok=True)
    for name in names:
        path = directory / "ckpt" / name
        path.mkdir() if name.endswith("/") else path.write_text("weights")


@pytest.mark.parametrize("pattern, names, words", [
    ("model_{step}.pt", ["model-100.pt", "model-200.pt", "log.txt"], ["3 names there", "'model-100.pt'"]),
    ("model_{step}.pt", ["model_100.pth", "notes"], ["2 names there", "'model_100.pth'"]),
    ("epoch={*}-step={step}.ckpt", ["epoch0_step7.ckpt", "hparams.yaml"], ["'epoch0_step7.ckpt'"]),
    ("last.ckpt", ["lst.ckpt", "other"], ["2 names there", "'lst.ckpt'"]),
    ("step{step}/", ["step100"], ["1 name", "'step100'", "no directory"]),
    ("model_{step}.pt", ["x" * 200], ["1 name", "'xxx"]),
    ("model_{step}.pt", [], ["no checkpoint found"]),
])
def test_once(tmp_path, pattern, names, words):
    make(tmp_path, *names)
    how = ["--step-from", "count"] if "{step}" not in pattern else []
    with Exec(tmp_path, "echo loss 1", "--once", "--pattern", pattern, *how) as evaluator:
        evaluator.ends(1)
        said = evaluator.said()
    assert all(word in said for word in words) and said.count("comes closest") == (len(names) > 0), said
    assert ledger(tmp_path) == []


@pytest.mark.parametrize("names, pattern", [
    (["epoch_010.pt", "epoch_002.pt", "log-1.txt", "best.pt"], "'epoch_002.pt' does with --pattern 'epoch_{step}.pt'"),
    (["mnist5-epoch=1-step=20.ckpt"], "--pattern 'mnist{*}-epoch={*}-step={step}.ckpt'"),
    (["weights_7.h5"], "--pattern 'weights_{step}.h5'"),
    (["last.pth", "notes"], "2 names there, and none matches without --pattern; 'last.pth' does with "
                            "--pattern 'last.pth' --step-from count"),
    (["training.json", "model.ckpt-7.data-00000-of-00001", "log-1.txt", "epoch_1.pt.tmp"], None),
])
def test_without_pattern(tmp_path, names, pattern):
    """A directory of checkpoints that only a pattern finds: says which, once, and it is right."""
    make(tmp_path, *names)
    with Exec(tmp_path, "echo loss 1", "--idle-timeout", "0.1") as evaluator:
        evaluator.ends(0)
        said = evaluator.said()
    assert said.count("matches without --pattern") == (pattern is not None) and (pattern or "") in said, said
    if pattern:
        with Exec(tmp_path, "echo loss 1", "--once", "--ready", "quiet:0.1",
                  *shlex.split(pattern[pattern.rindex("--pattern"):])) as evaluator:
            evaluator.ends(0)
        assert ledger(tmp_path)


def test_said_at_once(tmp_path):
    """While it waits, too, and once: at the start for whatever is there, later for what comes close."""
    make(tmp_path, "readme")
    with Exec(tmp_path, "echo loss 1", "--pattern", "model_{step}.pt", "--ready", "rename", "--until-step", 7) as evaluator:
        evaluator.says("1 name there, and none matches --pattern 'model_{step}.pt'; 'readme' comes closest")
        make(tmp_path, "model-5.pt", "model_7.pt")
        evaluator.ends(0)
        assert evaluator.said().count("comes closest") == 1
    assert steps(ledger(tmp_path)) == [7]


def test_said_later(tmp_path):
    make(tmp_path)
    with Exec(tmp_path, "echo loss 1", "--pattern", "model_{step}.pt") as evaluator:
        evaluator.says("watching")
        make(tmp_path, "training.yaml")
        make(tmp_path, "model-5.pt")
        evaluator.says("'model-5.pt' comes closest")
        assert "training.yaml" not in evaluator.said()


def test_not_ready(tmp_path):
    """A file that may still be being written is no damage, which "not whole" sounded like."""
    make(tmp_path, "model_7.pt")
    with Exec(tmp_path, "echo loss 1", "--pattern", "model_{step}.pt", "--ready", "quiet:100000"):
        status = [EVALUATOR, "status", tmp_path]
        wait_for(lambda: "0 queued, 1 not ready yet" in subprocess.run(status, capture_output=True, text=True).stdout,
                 "a status that says so")


@pytest.mark.parametrize("how", [["--pattern", "model_{step}.pt"], []])
def test_died_with_nothing(tmp_path, how):
    """A training that ends without a checkpoint; with one it is 0, also if an earlier evaluator has scored it."""
    make(tmp_path)
    training = subprocess.Popen(["sleep", "1000"])
    with Exec(tmp_path, "echo loss 1", "--pid", training.pid, *how) as evaluator:
        evaluator.says("watching")
        training.kill()
        training.wait()
        evaluator.ends(1)
        assert "no checkpoint found" in evaluator.said()
    make(tmp_path, "model_7.pt")
    for _ in range(2):
        with Exec(tmp_path, "echo loss 1", "--pid", training.pid, "--pattern", "model_{step}.pt", "--ready",
                  "rename") as evaluator:
            evaluator.ends(0)
