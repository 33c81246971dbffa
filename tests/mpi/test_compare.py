"""trainer compare: cells in rounds, what is written, going on after Ctrl-C and after a failure, wrong usage."""
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

import ranks
import waiting

TRAINING = ["--model", "lenet", "--data", "fashion-mnist", "--max-steps", 6, "--log-every", 1, "--reproducible", "--global-batch", 16,
            "--micro-shards", 2, "--deadline", waiting.DEADLINE]
FASHION = "/usr/share/datasets/fashion-mnist"
FEW = ["--evaluations", 2, "--num-examples", 50]
ENVIRONMENT = {**ranks.ENVIRONMENT, "COLUMNS": "80", "LC_ALL": "C.UTF-8"}


def compare(*words, status=0):
    run = subprocess.run([ranks.TRAINER, "compare", *map(str, words)], capture_output=True, text=True, env=ENVIRONMENT,
                         timeout=waiting.DEADLINE)
    assert run.returncode == status, run.stdout + run.stderr
    return run


def joined(run):
    """The tables without line breaks."""
    return " ".join(run.stdout.split())


def has(run, words):
    """Whether the tables do, wherever their lines break, which may be in the middle of a long path."""
    return "".join(words.split()) in "".join(run.stdout.split())


def results(directory):
    return [json.loads(line) for line in (directory / "results.jsonl").read_text().splitlines()]


def test_two_strategies_on_one_and_two_ranks(tmp_path):
    """One hash; tables as text, CSV and JSON; curves of all cells; nothing is run twice."""
    words = ["--strategies", "mpi,ps", "--ranks", "1,2", "--rounds", 1, "--output", tmp_path / "cmp", *TRAINING, *FEW]
    run = compare(*words)
    assert "with less than 3 rounds the spread is not known" in run.stderr and "(4 of 4)" in run.stderr
    assert max(map(len, run.stdout.splitlines())) <= 80
    lines = results(tmp_path / "cmp")
    assert [line["cell"] for line in lines] == ["mpi-1", "mpi-2", "ps-1", "ps-2"]
    assert len({line["weights"] for line in lines}) == 1 and lines[0]["weights"][:8] in run.stdout
    for line in lines:
        assert line["steps"] == 6 and line["steps_per_second"] > 0 and line["samples_per_step"] == pytest.approx(16)
        assert [e["step"] for e in line["evaluations"]] == [0, 3, 6]
        assert [e["precision"] for e in line["evaluations"]] == [e["precision"] for e in lines[0]["evaluations"]]
        assert line["ranks"] == line["workers"] + line["strategy"].startswith("ps")
    found = subprocess.run([ranks.BUILD / "bin/eventlog", "tags", "--format", "csv", tmp_path / "cmp/round-1"], check=True,
                           capture_output=True, text=True)
    curves = {(row["run"], row["tag"]) for row in csv.DictReader(found.stdout.splitlines())}
    for line in lines:
        assert {(f"{line['cell']}/train", "loss"), (f"{line['cell']}/eval", "precision")} <= curves
    again = compare(*words)
    assert again.stdout == run.stdout and "round 1" not in again.stderr and len(results(tmp_path / "cmp")) == 4

    document = json.loads(compare("--output", tmp_path / "cmp", "--format", "json").stdout)
    assert document["equal_step"] == 6 and [cell["cell"] for cell in document["cells"]] == ["mpi-1", "mpi-2", "ps-1", "ps-2"]
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/man/trainer-compare.txt"
    known = set(re.findall(r"`(\w+)`", page.read_text()))
    assert not {key for part in (document, document["cells"][0], document["cells"][0]["seconds"]) for key in part} - known - {"type", "version"}
    rows = list(csv.DictReader(compare("--output", tmp_path / "cmp", "--format", "csv").stdout.splitlines()))
    assert rows[1]["weights"] == lines[0]["weights"] and float(rows[1]["sent_per_step"]) == lines[1]["sent"] > 0
    # other options are another comparison; another cell of the same is not
    refused = compare(*words, "--seed", 7, status=2)
    assert "has a comparison with other options" in refused.stderr and len(results(tmp_path / "cmp")) == 4


@pytest.mark.parametrize("model, data", [("examples/model/small.model", "fashion-mnist"), ("language_model", "text")])
def test_model_files_and_sequences(model, data, tmp_path):
    """How many samples an epoch has depends on the model, which may be a file."""
    root = pathlib.Path(__file__).resolve().parents[2]
    model = root / model if "/" in model else model
    compare("--strategies", "single", "--ranks", 1, "--rounds", 1, "--output", tmp_path / "cmp", "--model", model, "--data", data,
            "--batch-size", 2, "--evaluate", "never", "--max-steps", 2)
    assert [line["status"] for line in results(tmp_path / "cmp")] == [0]


def test_ctrl_c_and_a_failure(tmp_path):
    """The running training ends in order; a failed cell is named, and run again the next time, without what it left."""
    data, output, saved = tmp_path / "data", tmp_path / "cmp", tmp_path / "saved"
    words = ["--strategies", "single,mirrored", "--ranks", 2, "--rounds", 1, "--output", output, "--model", "lenet", "--data",
             "fashion-mnist", "--data-dir", data, "--batch-size", 4, "--evaluate", "never", "--max-steps"]
    data.symlink_to(FASHION)
    process = subprocess.Popen([str(word) for word in [ranks.TRAINER, "compare", *words, 10**9]], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    try:
        state = output / "round-1/mirrored-2/ckpt/training.json"
        ranks.wait_for(process, lambda: state.exists() and json.loads(state.read_text())["global_step"] > 0, "a step")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=waiting.DEADLINE)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGINT, said
    assert "ended by a signal after 0 of 1 runs; the same command goes on with the others" in said[1]
    assert "left out, because it is impossible: single with 2 workers" in said[1]
    assert json.loads(state.read_text())["state"] == "stopped" and results(output) == []

    shutil.copytree(state.parent, saved)
    start = tmp_path / "start"
    of_start = start / max(saved.glob("*.index")).stem
    words[1:] = ["mirrored", "--init-from", of_start, *words[2:]]
    failed = compare(*words, 3, status=1)
    assert f"round 1, mirrored-2: failed: --init-from: {of_start}" in failed.stderr and has(failed, f"mirrored-2 failed in 1 round: --init-from: {of_start}")
    assert not state.exists() and [line["status"] for line in results(output)] == [2]
    assert "mirrored-2 failed in 1 round" in joined(compare("--output", output, status=1))
    shutil.copytree(saved, start)
    data.unlink()
    assert f"mirrored-2: {data}: no such data directory" in compare(*words, 3, status=2).stderr and len(results(output)) == 1
    data.symlink_to(FASHION)
    whole = compare(*words, 3)
    data.unlink()  # with nothing left to train, data are not asked for
    assert compare(*words, 3).stdout == whole.stdout
    assert [line["status"] for line in results(output)] == [2, 0] and "failed" not in whole.stdout


@pytest.mark.parametrize("words, wanted", [
    (["--model", "lenet"], "--output is missing"),
    (["--output", "cmp"], "cmp has no results to print; give --model and --data to train"),
    (["--output", "cmp", "--model", "lenet"], "mpi-1: --data is missing"),
    (["--output", "cmp", "--model", "lenet", "--data", "mnist", "--strategies", "ps-async"], "did you mean 'ps:async'?"),
    (["--output", "cmp", "--model", "lenet", "--data", "mnist", "--strategies", "ps:asynk"], "did you mean --async?"),
    (["--output", "cmp", "--model", "lenet", "--data", "mnist", "--run-option", "ps"], "leave it out, and use --strategies"),
    (["--output", "cmp", "--model", "lenet", "--data", "mnist", "--resume", "never"], "--resume: each cell has its own; leave it out"),
    (["--output", "cmp", "--model", "lenet", "--data", "mnist", "--rank", "2"], "did you mean --ranks?"),
    (["--output", ".", "--model", "lenet", "--data", "mnist"], ". has files, but no results.jsonl of a comparison"),
])
def test_wrong_usage(tmp_path, monkeypatch, words, wanted):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").write_text("")
    said = compare(*words, status=2).stderr
    assert wanted in said and said.count("\n") == 1 and os.listdir() == ["a file"]


@pytest.mark.parametrize("files, options, wanted", [
    ("train-images train-labels", [], "the evaluator: {data}"),  # no test data
    ("train-images train-labels", ["--evaluate", "never", "--global-batch", 60001], "mpi-1: --global-batch 60001"),
    ("train-images train-labels", ["--evaluate", "never", "--shard", "files"], "mpi-2: worker 1 of 2 has no file"),
    ("train-images train-labels", ["--evaluate", "never", "--batch-size", 40000], "mpi-2: --batch-size 40000: a step of 2 workers"),
    ("train-images train-labels", ["--evaluate", "never", "--global-batch", 33, "--ranks", "1,3,2"], "mpi-2: --global-batch 33"),
    ("train t10k", ["--num-examples", 10001], "the evaluator: --num-examples 10001"),
    ("train-labels t10k", [], "mpi-1: {data}"),
])
def test_data_of_all_cells_are_checked_before_the_first(tmp_path, files, options, wanted):
    data = tmp_path / "data"
    data.mkdir()
    for path in pathlib.Path(FASHION).iterdir():
        if path.name.startswith(tuple(files.split())):
            (data / path.name).symlink_to(path)
    said = compare("--strategies", "mpi", "--ranks", "1,2", "--rounds", 1, "--output", tmp_path / "cmp", "--model", "lenet", "--data",
                   "fashion-mnist", "--data-dir", data, "--max-steps", 2, *options, status=2).stderr
    assert said.startswith("trainer compare: " + wanted.format(data=data)) and said.count("\n") == 1
    assert not (tmp_path / "cmp").exists()


def test_a_busy_machine_is_said(tmp_path):
    """Programs that want all processors get a part of them, as one rank cannot have all; it is kept with the results."""
    burn = "import os\nfor _ in os.sched_getaffinity(0):\n  if not os.fork(): break\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    with subprocess.Popen([sys.executable, "-c", burn], start_new_session=True) as burning:
        try:
            run = compare("--strategies", "single", "--ranks", 1, "--rounds", 1, "--evaluate", "never", *TRAINING, "--output",
                          tmp_path / "cmp")
        finally:
            os.killpg(burning.pid, signal.SIGKILL)
    assert "(1 of 1); other programs used " in run.stderr and "so these speeds say little: single-1" in joined(run)
    assert 0.1 < results(tmp_path / "cmp")[0]["others"] <= 1


def test_checkpoints_at_steps_of_ones_own(tmp_path):
    """--save-checkpoint-steps, for which compare gives each cell its directory."""
    words = ["--strategies", "single", "--ranks", 1, "--rounds", 1, "--output", tmp_path / "cmp", *TRAINING, "--num-examples", 50,
             "--save-checkpoint-steps", 2]
    compare(*words)
    assert [e["step"] for e in results(tmp_path / "cmp")[0]["evaluations"]] == [0, 2, 4, 6]


def test_lines(tmp_path):
    """--dry-run: one a cell; steps from samples, of all workers together or of each."""
    words = ["--strategies", "single,mpi,ps:async:servers=2,mirrored:weights=shared", "--ranks", 2, "--samples", 1000, "--batch-size", 10,
             "--model", "lenet", "--data", "mnist", "--evaluations", 5, "--output", tmp_path / "cmp", "--dry-run"]
    lines = [line.split() for line in compare(*words).stdout.splitlines()]
    assert [line[line.index("--max-steps") + 1] for line in lines] == ["50", "100", "50"]
    assert [line[line.index("--save-checkpoint-steps") + 1] for line in lines] == ["10", "20", "10"]
    assert lines[0][0] == "mpirun" and lines[0][lines[0].index("-n") + 1] == "2" and lines[1][lines[1].index("-n") + 1] == "4"
    assert lines[2][lines[2].index("--threads") + 1] == "2" and not (tmp_path / "cmp").exists()


def test_workers_of_several_threads(tmp_path):
    """One hash with those of one thread; they count as what takes turns on cores. Of mirrored the workers are threads."""
    words = ["--strategies", "mpi,mirrored:weights=shared", "--ranks", "1,2", "--rounds", 1, "--evaluate", "never", *TRAINING]
    run = compare(*words, "--micro-shards", 4, "--threads", 2, "--output", tmp_path / "two")
    compare(*words, "--micro-shards", 4, "--output", tmp_path / "one")
    cells = results(tmp_path / "two")
    assert len({line["weights"] for line in cells + results(tmp_path / "one")}) == 1
    assert {line["cell"]: line["ranks"] for line in cells}["mpi-2"] == 4
    assert [line["ranks"] for line in cells if line["strategy"] != "mpi"] == [1, 2]
    assert ("*: more ranks or threads than cores" in joined(run)) == any(line["ranks"] > line["cores"] for line in cells)
