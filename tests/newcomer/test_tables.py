"""make tables: a comparison runs, each published figure has ours under it, and what is there is not run again."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

import waiting

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
sys.path.insert(0, str(ROOT / "bench"))
import published  # noqa: E402
import tables as made  # noqa: E402


def tables(output, *words, status=0):
    run = subprocess.run([sys.executable, ROOT / "bench/tables.py", "--build", BUILD, "--output", output, *map(str, words)],
                         capture_output=True, text=True, timeout=waiting.DEADLINE)
    assert run.returncode == status, run.stdout + run.stderr
    return run


class Found:
    """Figures as if they had been measured: each is 1, but the speeds of ps-3, twice those of mpi-3."""
    steps = 200

    def median(self, strategy, workers, figure):
        return 2.0 if (strategy, figure) == ("ps", "steps_per_second") else 1.0

    def precision_at(self, strategy, workers, step):
        return 0.5

    speed_at = precision_at

    def epoch(self, strategy, workers):
        return type("Epoch", (), {"train": 8.0 / workers, "test": None})


# What the reports state, in their own words and order; ratios are worked out from them.
REPORTS = {
    "resnet32": "0.9 1 0.796 0.97 1.077778 0.774 0.912595 0.189",
    "show_and_tell": "0.157594 1 0.150986 0.95807 0.137008 0.86937",
    "mnist_lstm": """0.1070 0.1028 377.4 369.2 0.4729 0.4947 14.79 12.25 0.6838 0.7344 11.82 11.75 0.7740 0.7797 11.59 11.63
        0.1609 0.4279 12.42 12.73 12.13 0.6284 12.11 11.59 12.04 0.7302 12.12 12.32 11.89 0.7732 11.61 11.08 11.39
        0.8109 10.76 10.66 10.70
        0.867 0.886 8.77 8.83 8.85 0.8947 9.73 9.92 9.84 0.9058 9.17 9.25 9.19 0.8939 9.04 9.09 9.03 0.9203 9.69 9.72 9.45""",
    "resnet50": "1.06 1 1.98 1.86792 2.925 2.75943 1.26 1.18868",
    "mnist_cnn": """7.234 100 0.412 100 3.902 185 0.231 178 2.311 313 0.242 170 2.173 333 0.162 254
        7.348 100 0.415 100 3.877 190 0.229 181 2.208 333 0.143 290 1.448 507 0.095 435""",
}


@pytest.mark.parametrize("name", REPORTS)
def test_every_published_figure(name):
    pairs = getattr(published, name)(Found())
    assert [pair.published for pair in pairs] == pytest.approx([float(word) for word in REPORTS[name].split()], rel=1e-5)


def test_a_parameter_server_was_faster():
    """PS 0.97 against MPI 0.9; ours, twice as fast, is 2 / 1.078 times that."""
    pair = next(pair for pair in published.resnet32(Found()) if (pair.figure, pair.system) == ("against mpi", "ps"))
    assert pair.published == pytest.approx(1.078, abs=5e-4) and pair.ratio == pytest.approx(2 / 1.0778, rel=1e-4)


def test_epochs_against_one_worker():
    pairs = {(pair.figure, pair.system, pair.workers): pair for pair in published.mnist_cnn(Found())}
    assert pairs["train s", "all-sum", 4].ours == 2 and pairs["train %", "all-sum", 4].ours == 400
    assert pairs["test s", "all-sum", 4].ours is None and pairs["test %", "all-sum", 4].ratio is None


def test_published_and_ours(tmp_path):
    words = ["--only", "mnist_lstm", "--scale", "0.2", "--num-examples", "50"]
    run = tables(tmp_path, *words)
    assert "1 of 1: mnist_lstm: an LSTM of 64 units" in run.stderr
    for cell in ("ps-2", "ps-3", "mpi-3", "hybrid-3"):
        assert f"round 1, {cell}" in run.stderr
    rows = list(csv.DictReader((tmp_path / "tables.csv").open()))
    assert len(rows) == len(REPORTS["mnist_lstm"].split())
    first = next(row for row in rows if (row["system"], row["figure"], row["at"]) == ("Horovod", "accuracy", "step 50"))
    assert first["comparison"] == "mnist_lstm" and first["published"] == "0.4279" and first["strategy"] == "mpi"
    assert float(first["ours_against_published"]) == float(first["ours"]) / 0.4279
    assert first["note"] == "Fashion-MNIST: give --mnist-dir"
    last = next(row for row in rows if (row["system"], row["figure"], row["at"]) == ("Horovod", "accuracy", "step 250"))
    assert (last["published"], last["ours"], last["note"]) == ("0.8109", "", "not run here")
    speeds = [row for row in rows if (row["system"], row["figure"], row["at"]) == ("Parallax", "steps/s", "step 50")]
    assert [(row["worker"], row["published"]) for row in speeds] == [("1", "8.77"), ("2", "8.83"), ("3", "8.85")]
    assert all(float(row["ours"]) > 0 and row["note"] == "other machines" for row in speeds)
    text = (tmp_path / "tables.txt").read_text().splitlines()
    assert max(map(len, text)) <= 80
    lines = [line.split() for line in text]
    above = lines.index("Horovod, step 50 3 0.4279 12.42 12.73 12.13".split())
    assert lines[above + 1][:4] == ["here:", "mpi", "3", f"{float(first['ours']):.3g}"]
    log = text[text.index("As the published log has it:"):]
    assert f"step: 50, test accuracy: {float(first['ours']):f}, throughput: " in "\n".join(log[log.index("mpi, 3 workers:"):])
    again = tables(tmp_path, *words)
    assert again.stdout == run.stdout and "round 1" not in again.stderr


def test_what_is_said_in_a_pipe(tmp_path, monkeypatch):
    """A run that lasts is told again and again, with the step of the training that was heard of last."""
    monkeypatch.setattr(made, "BEAT", 0.01)
    state = tmp_path / "resnet32" / "round-1" / "ps-3" / "ckpt" / "training.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"global_step": 40, "max_steps": 250}))
    said, go = "", tmp_path / "go"

    def say(text):
        nonlocal said
        said += text + "\n"
        if said.count("round-1/ps-3") >= 2:
            go.touch()

    monkeypatch.setattr(made.programs, "say", say)
    assert made.run(["sh", "-c", f"while [ ! -e '{go}' ]; do sleep 0.01; done; exit 3"], tmp_path / "resnet32") == 3
    assert "  resnet32: 0 s, resnet32/round-1/ps-3 at step 40 of 250\n" in said
    assert made.how_far(tmp_path / "nothing") == "" and made.BEAT < 10


def test_end(tmp_path):
    """SIGTERM ends what it has started, too, at once; the same command goes on."""
    process = subprocess.Popen([sys.executable, ROOT / "bench/tables.py", "--build", BUILD, "--output", tmp_path, "--only", "mnist_lstm",
                                "--scale", "100"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    path = waiting.wait_for(lambda: next(iter(tmp_path.glob("mnist_lstm/round-*/*/ckpt/training.json")), None), "a training")
    pid = waiting.wait_for(lambda: json.loads(path.read_text())["pid"], "its process")
    process.terminate()
    said = process.communicate(timeout=waiting.DEADLINE)[1]
    assert process.returncode == 128 + 15 and "ended; the same command goes on from here" in said
    waiting.wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the end of the training")


def test_epochs_of_a_log(tmp_path, monkeypatch):
    """Two epochs of four steps, the second of which counts; a step takes 2 s then, before it 3 s."""
    cells = [{"cell": f"mirrored-{n}", "strategy": "mirrored", "workers": n, "rounds": 1} for n in (1, 2)]
    wall = [3.0 * step for step in range(1, 5)] + [12 + 2.0 * step for step in range(1, 5)]

    def read(command):
        words = list(map(str, command))
        if "compare" in words:
            return json.dumps({"cells": cells})
        value = {"loss": lambda step: 2 - step / 8, "precision": lambda step: step / 8}[words[words.index("--tag") + 1]]
        return "step,value,wall_time\n" + "".join(f"{step},{value(step)},{wall[step - 1]}\n" for step in range(1, 9))

    for cell in cells:
        place = tmp_path / "round-1" / cell["cell"] / "eval"
        place.mkdir(parents=True)
        lines = [{"step": step, "status": "done", "seconds": 0.5 / cell["workers"], "metrics": {"precision": step / 10, "loss": 1.5}}
                 for step in (4, 8)]
        (place / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(made, "read", read)
    monkeypatch.setattr(made.programs, "program", lambda build, name: name)
    options = types.SimpleNamespace(build="build", scale=1, max_epochs=None, num_examples=100)
    measured = made.Measured(options, tmp_path)
    assert list(measured.epoch_log()) == [line for cell, seconds in (("mirrored, 1 worker:", "0.50s"), ("mirrored, 2 workers:", "0.25s"))
                                          for line in (
        cell, f"[ 1/ 2] (train) acc: 31.25%, loss: 1.688 | (test) acc: 40.00%, loss: 1.500 | 12.00s, {seconds}",
        f"[ 2/ 2] (train) acc: 81.25%, loss: 1.188 | (test) acc: 80.00%, loss: 1.500 | 8.00s, {seconds}")]
    assert measured.epoch("mirrored", 1) == (8 * 54272 / 256, 0.5 * 9216 / 100) and measured.epoch("mirrored", 4) == (None, None)


def test_programs_that_are_not_built(tmp_path):
    run = tables(tmp_path / "out", "--only", "resnet50", "--build", tmp_path, status=1)
    assert f"{tmp_path}/bin/trainer is not built; run `make`" in run.stderr
