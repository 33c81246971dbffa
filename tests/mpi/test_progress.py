"""What a training says while it runs: where it begins, how far it is, how it ended; on a terminal, through mpirun to a
terminal, and into a file."""
import json
import os
import re
import subprocess

import pytest

import ranks
from interposed import SLOW_PRODUCTS, interposed
from terminal import Terminal
from waiting import DEADLINE

LENET = ["--model", "lenet", "--data", "fashion-mnist"]
SLOW = {"SLOW_MICROSECONDS": "2000"}


class Training(Terminal):
    """A training on a terminal of so many columns."""

    def __init__(self, columns, command, variables):
        super().__init__(columns, command, {**ranks.ENVIRONMENT, **variables})
        ranks.started.append(self.process)

    def close(self, heard=True):
        self.process.terminate()
        self.shows(r"steps in " if heard else "")
        self.process.wait(DEADLINE)
        os.close(self.master)


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    return {"LD_PRELOAD": interposed(tmp_path_factory.mktemp("slow"), "slow_products", SLOW_PRODUCTS)["LD_PRELOAD"],
            **SLOW}


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_on_a_terminal(columns, slow):
    """Long steps, no step lines: a line that is drawn anew and never wraps says how far it is and how long it has."""
    command = ranks.command(0, *LENET, "--batch-size", 200, "--max-steps", 1000, "--log-every", 100000)
    terminal = Training(columns, command, slow)
    terminal.shows(r"step 0 of 1000")
    terminal.shows(r"step [1-9]\d* of 1000, .*(to go|…|\.\.)" if columns == 40 else
                   r"step [1-9]\d* of 1000, [\d.]+ steps/s, [\d.]+ images/s, [\w. ]+ to go")
    terminal.close()
    drawn = [line for line in terminal.lines() if line.startswith("step ")]
    assert len(drawn) > 2 and all(len(line) < columns for line in drawn)


def test_through_mpirun_to_a_terminal(slow):
    """The ranks write into mpirun's pipe; that there is a terminal at its end they see all the same."""
    command = ranks.command(2, *LENET, "--run-option", "mpi", "--batch-size", 200, "--max-steps", 1000, "--log-every",
                            100000)
    terminal = Training(80, command, slow)
    first = terminal.shows(r"step (\d+) of 1000, .* images/s, .* to go\r\n")
    line = r"step (?!%s )(\d+) of 1000, ([\d.]+) steps/s, [\d.]+ images/s, [\w. ]+ to go\r\n" % first.group(1)
    second = terminal.shows(line)
    # One every 10 s, not one a minute as into a file: by the steps between them, whatever a step takes.
    assert (int(second.group(1)) - int(first.group(1))) / float(second.group(2)) < 40
    terminal.close(ranks.open_mpi() < 5)


@pytest.mark.parametrize("count,options,says", [
    (0, [], "single; batch 8, 7500 steps an epoch, to step 3; momentum, learning rate 0.05"),
    (2, ["--run-option", "mpi"], "mpi, 2 ranks; global batch 16 (2 x 8), 3750 steps an epoch, to step 3;"),
    (3, ["--run-option", "ps"], "ps, 2 workers and 1 server; global batch 16 (2 x 8), 3750 steps an epoch"),
    (3, ["--run-option", "ps", "--async"], "ps --async, 2 workers and 1 server; batch 8, 7500 steps an epoch")])
def test_into_a_file(count, options, says, tmp_path):
    """A line at the beginning, the lines that people know, and an end that can be read; no progress between."""
    _, said = ranks.train(count, *LENET, *options, "--batch-size", 8, "--max-steps", 3, "--log-every", 1,
                          "--checkpoint-dir", tmp_path)
    lines = said.splitlines()
    assert lines[0].startswith("lenet (21840 weights) on fashion-mnist (60000 images): " + says)
    if count:
        assert lines.pop(1).startswith("each of 2 workers reads train-images-idx3-ubyte.gz: 60000 images")
    assert lines[1] == f"Saving checkpoints for 0 into {tmp_path}/model.ckpt."
    assert re.fullmatch(r"step: [1-3], loss: \d+\.\d{3}, precision: \d\.\d{3}", lines[2])
    end = lines.index(f"finished at step 3 of 3; saved as {tmp_path}/model.ckpt-3")
    assert re.fullmatch(r"3 steps in [\d.]+ s, [\d.e+]+ steps/s, [\d.e+]+ images/s; loss \d\.\d{3}, precision \d\.\d{3}",
                        lines[end + 1])
    assert len(lines) == end + 2 + (count > 1) + ("--async" in options) and not re.search(r"^step \d+ of", said, re.M)
    _, said = ranks.train(count, *LENET, *options, "--batch-size", 8, "--max-steps", 3, "--quiet")
    assert said == ""


@pytest.mark.parametrize("model, each", [("next_word", 1), ("language_model", 20)])
def test_speed_in_words(model, each, tmp_path):
    """Of a text: a sample is one word that is predicted, or a sequence of them. In log, curve and summary."""
    summary, said = ranks.train(0, "--model", model, "--data", "text", "--batch-size", 2, "--max-steps", 2, "--log-every", 1,
                                "--log-dir", tmp_path, "--json")
    assert re.search(r"2 steps in .*, [\d.e+]+ steps/s, [\d.e+]+ words/s; loss", said) and "images" not in said
    assert summary["samples_per_second"] == pytest.approx(2 * summary["steps_per_second"])
    assert summary["words_per_second"] == pytest.approx(2 * each * summary["steps_per_second"])
    assert "images_per_second" not in summary
    tags = subprocess.run([ranks.BUILD / "bin/eventlog", "tags", tmp_path], check=True, capture_output=True, text=True).stdout
    assert "words/sec" in tags and "images/sec" not in tags


def test_training_json_is_renewed(slow, tmp_path):
    """Also in the middle of long steps and with no checkpoint: it says how far, how fast, and that it lives."""
    process = ranks.start(0, *LENET, "--batch-size", 200, "--max-steps", 10**6, "--checkpoint-dir", tmp_path, **slow)
    ranks.wait_for(process, lambda: ranks.training_json(tmp_path).get("global_step", 0) > 0, "a step in training.json")
    state = ranks.training_json(tmp_path)
    assert state["state"] == "running" and state["pid"] == process.pid
    assert 0 < state["steps_per_second"] < 100
    assert state["images_per_second"] == pytest.approx(200 * state["steps_per_second"])
    assert state["started"] < state["stepped"] <= state["updated"]
    with open(f"/proc/{process.pid}/stat") as stat:
        assert state["process_start"] == int(stat.read().rsplit(")", 1)[1].split()[19])
    ranks.wait_for(process, lambda: ranks.training_json(tmp_path)["updated"] > state["updated"], "it to be renewed")
    process.terminate()
    process.communicate(timeout=DEADLINE)
    assert ranks.training_json(tmp_path)["state"] == "stopped"


def test_points_of_a_run_that_died_early(tmp_path):
    """One that died before its first checkpoint, and begins anew: its points are hidden, also by loaders that read all files."""
    for steps in (9, 6):
        ranks.train(0, *LENET, "--max-steps", steps, "--log-every", 3, "--log-dir", tmp_path)
    for view, wanted in (("session", [1, 3, 6]), ("all", [1, 1, 3, 3, 6, 6, 9])):
        run = subprocess.run([ranks.BUILD / "bin/eventlog", "export", f"--view={view}", "--format=jsonl", "--tag", "loss",
                              tmp_path], capture_output=True, text=True, check=True)
        assert [json.loads(line)["step"] for line in run.stdout.splitlines()] == wanted, view
