"""The evaluator beside trainings that begin, go back, are moved, stopped and finished: what it evaluates, under which
tags, when it ends, and that it sleeps in between.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from evaluators import EVALUATOR, ROOT, Evaluator, ledger, points, steps, write
from waiting import wait_for


def test_is_notified(tmp_path):
    """The next look is an hour away: inotify tells of each checkpoint. How soon, `make bench` measures (start_up)."""
    (tmp_path / "ckpt").mkdir()
    with Evaluator(tmp_path, "--poll-interval", 3600) as evaluator:
        evaluator.says("watching")
        for step in range(1, 11):
            write(tmp_path, "--first", step, "--last", step)
            wait_for(lambda: len(ledger(tmp_path)) == step, f"the evaluation of step {step}")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)


def test_two_evaluators(tmp_path):
    with Evaluator(tmp_path) as first:
        first.says("does not exist yet")
        with Evaluator(tmp_path) as second:
            second.ends(2)
            talk = second.said().splitlines()
            assert len(talk) == 1 and str(first.process.pid) in talk[0] and "evaluator.lock" in talk[0]
        assert first.process.poll() is None
        write(tmp_path)
        wait_for(lambda: ledger(tmp_path), "an evaluation by the first")
    with Evaluator(tmp_path, "--once") as third:  # the lock of a killed process is no lock
        third.ends(0)


def test_without_state_file(tmp_path):
    with Evaluator(tmp_path, "--until-step", 1000) as evaluator:
        write(tmp_path, "--last", 1000, "--stateless", "--interval", 0.02)
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == list(range(100, 1001, 100))


def test_moved(tmp_path):
    write(tmp_path, "--last", 300)
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(0)
    before = ledger(tmp_path)
    (tmp_path / "ckpt").rename(tmp_path / "moved")
    (tmp_path / "eval").rename(tmp_path / "results")
    with Evaluator(tmp_path, "--once", checkpoints="moved", evaluation="results") as evaluator:
        evaluator.ends(0)
    assert ledger(tmp_path, "results") == before


def test_training_restarted_from_an_earlier_step(tmp_path):
    write(tmp_path, "--last", 1000)
    with Evaluator(tmp_path) as evaluator:
        evaluator.says("step: 1000,")
        write(tmp_path, "--first", 400, "--last", 1200, "--seed", 5, "--interval", 0.05)
        evaluator.says("step: 1200,")
        assert "eval_1" in evaluator.said()
    again = list(range(400, 1201, 100))
    records = ledger(tmp_path)
    assert steps(records) == [*range(100, 1001, 100), *again]
    assert [r["run"] for r in records] == [0] * 10 + [1] * 9
    assert [p[0] for p in points(tmp_path / "eval")["loss"]] == list(range(100, 1001, 100))
    assert [p[0] for p in points(tmp_path / "eval_1")["loss"]] == again
    with Evaluator(tmp_path, "--once") as evaluator:  # and after a restart it goes on in the newer run
        write(tmp_path, "--first", 1300, "--last", 1300)
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(0)
    assert ledger(tmp_path)[-1]["run"] == 1


def test_finished_training(tmp_path):
    with Evaluator(tmp_path) as evaluator:
        write(tmp_path, "--last", 500, "--finish")
        evaluator.ends(0)
        assert "training.json says finished" in evaluator.said()
    # What is left of an earlier training must not end the evaluator of the one that is just starting.
    with Evaluator(tmp_path) as evaluator:
        evaluator.says("watching")
        time.sleep(1)  # the time a trainer needs to come up; that nothing happens in it is what is tested
        assert evaluator.process.poll() is None
        write(tmp_path, "--first", 600, "--last", 1000, "--finish", "--interval", 0.02)
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == list(range(100, 1001, 100))
    with Evaluator(tmp_path) as evaluator:  # but it does end it when nothing starts
        evaluator.ends(0)


def test_stopped_training(tmp_path):
    """A signal stopped the training: what is there is evaluated, and that was it, unless it is to be resumed."""
    def says(state):
        (tmp_path / "ckpt/new.json").write_text(json.dumps({"state": state, "global_step": 300}))
        (tmp_path / "ckpt/new.json").rename(tmp_path / "ckpt/training.json")

    write(tmp_path, "--last", 200)
    says("running")
    with Evaluator(tmp_path) as evaluator:
        evaluator.says("step: 200,")
        write(tmp_path, "--first", 300, "--last", 300)
        says("stopped")
        evaluator.ends(0)
        assert "training.json says stopped" in evaluator.said()
    assert steps(ledger(tmp_path)) == [100, 200, 300]
    says("running")
    with Evaluator(tmp_path, "--wait-for-restart") as evaluator:
        evaluator.says("watching")
        says("stopped")
        evaluator.says("was stopped at step 300; waiting for its restart")
        says("running")
        write(tmp_path, "--first", 400, "--last", 500, "--finish")
        evaluator.ends(0)
        assert "training.json says finished" in evaluator.said()
    assert steps(ledger(tmp_path)) == [100, 200, 300, 400, 500]


@pytest.mark.parametrize("arguments, expected", [
    (["--until-step", 300], [100, 200, 300, 400, 500]), (["--max-evaluations", 2], [100, 200]),
    (["--idle-timeout", 0.3], [100, 200, 300, 400, 500]), (["--from", 300, "--once"], [300, 400, 500]),
    (["--latest-only", "--once"], [500]), (["--every", 2, "--once"], [100, 300, 500]),
    (["--pid", 2 ** 22 + 7], [100, 200, 300, 400, 500]), (["--done-file", "/dev/null"], [100, 200, 300, 400, 500]),
    (["--min-interval", 0.1, "--once"], [100, 200, 300, 400, 500]),
])
def test_ends_and_selections(tmp_path, arguments, expected):
    write(tmp_path, "--last", 500)
    with Evaluator(tmp_path, *arguments) as evaluator:
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == expected
    if "--latest-only" in arguments or "--every" in arguments:  # what was skipped stays skipped after a restart
        with Evaluator(tmp_path, *arguments) as evaluator:
            evaluator.ends(0)
        assert steps(ledger(tmp_path)) == expected


def test_signals(tmp_path):
    write(tmp_path, "--last", 300)
    with Evaluator(tmp_path, "--batch-size", 1, examples=10000) as evaluator:
        evaluator.says("evaluated with")  # the first is in hand
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == [100]
    with Evaluator(tmp_path, "--batch-size", 1, examples=10000) as evaluator:
        evaluator.says("evaluated with")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.says("a second signal")
        evaluator.process.send_signal(signal.SIGINT)
        evaluator.ends(1)
    assert steps(ledger(tmp_path)) == [100]


@pytest.mark.parametrize("arguments, word", [
    (["--model", "lenett"], "--model: 'lenett' is not one of lenet|cifar10_cnn|resnet32|next_word|mnist_cnn|mnist_lstm|mnist_lstm_128|language_model|resnet50|resnet50b|resnet50_torchvision|show_and_tell|inception_v3 (did you mean lenet?)"),
    (["--data", "cifar"], "did you mean cifar10?"), (["--exec", "x"], "exec"),
    (["--metrics", "top5,clases"], "did you mean classes?"), (["--metrics", "top5,"], "'' is not one of basic|all|top5|"),
    (["--data-dir", "/nonexistent"], "/nonexistent"), (["--num-examples", "10001"], "10000"),
    (["--num-examples", "0"], "num-examples"), (["--model", "resnet32"], "resnet32"), (["stray"], "stray"),
    (["--tags", "kears"], "keras"), (["--poll-interval", "nan"], "poll-interval"),
])
def test_wrong_usage(tmp_path, arguments, word):
    (tmp_path / "ckpt").mkdir()
    with Evaluator(tmp_path, *arguments) as evaluator:
        evaluator.ends(2)
        talk = [line for line in evaluator.said().splitlines() if "watching" not in line]
        assert len(talk) == 1 and word in talk[0] and talk[0].startswith("evaluator: ")


@pytest.mark.parametrize("preset, tags", [
    ("homework", {"precision", "best_precision"}), ("tutorial", {"Precision @ 1"}),
    ("resnet", {"Precision", "Best Precision"}), ("im2txt", {"Perplexity"}), ("estimator", {"accuracy", "loss"}),
    ("keras", {"evaluation_loss_vs_iterations", "evaluation_accuracy_vs_iterations"}),
])
def test_tags(tmp_path, preset, tags):
    write(tmp_path, "--last", 200)
    os.utime(tmp_path / "ckpt" / "model.ckpt-100.index", (1e9, 1e9))
    with Evaluator(tmp_path, "--once", "--tags", preset, "--wall-time", "checkpoint") as evaluator:
        evaluator.ends(0)
    series = points(tmp_path / "eval")
    assert set(series) == tags
    text, = re.findall(rf"^\* `{preset}`(.*)$", (ROOT / "docs/man/evaluator.txt").read_text(), re.M)
    assert tags <= set(re.findall("`([^`]+)`", text)), "the man page names each tag"
    assert all([p[0] for p in s] == [100, 200] and s[0][2] == 1e9 for s in series.values())


def test_sleeps_while_it_waits(tmp_path):
    (tmp_path / "ckpt").mkdir()
    with Evaluator(tmp_path) as evaluator:
        evaluator.says("watching")
        stat = pathlib.Path(f"/proc/{evaluator.process.pid}/stat")

        def ticks():
            return sum(map(int, stat.read_text().rsplit(")", 1)[1].split()[11:13]))

        wait_for(lambda: (a := ticks()) == (time.sleep(0.3), ticks())[1] and a, "it to come to rest")
        before = ticks()
        time.sleep(2)  # the interval that is measured
        assert ticks() - before <= 4, "hundredths of a second in two seconds"


def test_late_names(tmp_path):
    """Steps that come in pairs, the higher first, with restarts between: two runs, not one for each pair; replay makes the same."""
    (tmp_path / "ckpt").mkdir()
    how = ["--exec", "sh -c 'echo loss $EVALUATOR_STEP'", "--pattern", "model_{step}.pt", "--ready", "rename"]
    for first in (2, 6, 10):
        with Evaluator(tmp_path, "--max-evaluations", 4, how=how) as evaluator:
            for step in (first, first - 1, first + 2, first + 1):
                (tmp_path / f"ckpt/model_{step}.pt").write_text(f"weights of {step}")
                wait_for(lambda: step in steps(ledger(tmp_path)), f"step {step}")
            evaluator.ends(0)
    live = {path.name: [p[:2] for p in points(path)["loss"]] for path in tmp_path.glob("eval*")}
    assert live == {"eval": [(s, s) for s in range(2, 13, 2)], "eval_1": [(s, s) for s in range(1, 13, 2)]}
    subprocess.run([EVALUATOR, "replay", tmp_path / "eval", "-o", tmp_path / "again/eval"], check=True, capture_output=True)
    assert {path.name: [p[:2] for p in points(path)["loss"]] for path in (tmp_path / "again").glob("eval*")} == live
