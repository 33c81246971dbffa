"""Resumed otherwise than it was trained: what is different is said in a line, and so is what ends it at once."""
import os
import pathlib
import re

import pytest

import ranks

DATA = "/usr/share/datasets/fashion-mnist"
FASHION = ["--model", "lenet", "--data", "fashion-mnist", "--data-dir", DATA]
MNIST = ["--model", "lenet", "--data", "mnist", "--data-dir", DATA]  # the same files under another name


@pytest.fixture(autouse=True)
def data():
    if not pathlib.Path(DATA).is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is not installed")


def changes(said):
    """[(what it was, what it is)] of all such lines."""
    return re.findall(r"^.*/model\.ckpt-\d+ was trained with (.*); continuing with (.*)$", said, re.M)


@pytest.mark.parametrize("before,after,wanted", [
    ((2, FASHION, ["--run-option", "mpi"]), (3, FASHION, ["--run-option", "ps"]),
     ("--run-option mpi, ranks: 2", "--run-option ps, ranks: 3")),
    ((3, FASHION, ["--run-option", "ps"]), (3, FASHION, ["--run-option", "ps", "--async"]),
     ("--run-option ps", "--run-option ps --async")),
    ((0, FASHION, []), (0, MNIST, []), ("--data fashion-mnist", "--data mnist")),
    ((0, FASHION, []), (0, FASHION, ["--batch-size", 9, "--seed", 5]),
     ("global batch 8, --seed 1", "global batch 9, --seed 5")),
    ((2, FASHION, ["--run-option", "mpi"]), (2, FASHION, ["--run-option", "mpi"]), None)],
    ids=["mpi-ps", "sync-async", "data", "batch-seed", "same"])
def test_changes_are_named(before, after, wanted, tmp_path):
    for (count, model, options), steps in ((before, 2), (after, 4)):
        if "--batch-size" not in options:
            options = [*options, "--batch-size", 8]
        _, said = ranks.train(count, *model, *options, "--max-steps", steps, "--checkpoint-dir", tmp_path)
        assert "resuming from" in said or steps == 2
    assert changes(said) == ([wanted] if wanted else [])


OTHER_BITS = ", which adds gradients in another order: the last bits of weights differ from here on"
SAME_BITS = ", which is the same sum of gradients, bit for bit"


@pytest.mark.parametrize("count,before,after,wanted", [
    (0, [], ["--threads", 2], ("--threads 1", f"--threads 2{OTHER_BITS}")),
    (0, ["--threads", 2], ["--micro-shards", 2], ("--threads 2, --micro-shards 0", f"--threads 1, --micro-shards 2{SAME_BITS}")),
    (0, ["--micro-shards", 4, "--threads", 2], ["--micro-shards", 4], None),
    (2, ["--micro-shards", 4], ["--micro-shards", 8, "--threads", 2], ("--micro-shards 4", f"--micro-shards 8{OTHER_BITS}")),
    (2, ["--threads", 2], ["--micro-shards", 4], ("--threads 2, --micro-shards 0", f"--threads 1, --micro-shards 4{OTHER_BITS}"))],
    ids=["threads", "as-micro-shards", "shared", "micro-shards", "ranks"])
def test_other_threads_are_named(count, before, after, wanted, tmp_path):
    """With what they mean for the bits, which is as it is said where they are the same."""
    options = [*FASHION, "--batch-size", 8, *(["--run-option", "mpi"] if count else []), "--json", "--checkpoint-dir"]
    ranks.train(count, *options, tmp_path / "a", *before, "--max-steps", 2)
    summary, said = ranks.train(count, *options, tmp_path / "a", *after, "--max-steps", 4)
    assert changes(said) == ([wanted] if wanted else [])
    if not wanted or SAME_BITS in wanted[1]:
        whole, _ = ranks.train(count, *options, tmp_path / "b", *before, "--max-steps", 4)
        assert summary["weights"] == whole["weights"]


def test_stop_file_of_an_earlier_run(tmp_path):
    """It ends this run as well; the line says what and why, since when, and what to do."""
    options = [*FASHION, "--batch-size", 8, "--checkpoint-dir", tmp_path]
    (tmp_path / "stop.json").write_text('{"reason": "it does not get any better", "written": 1700000000}')
    _, said = ranks.train(0, *options, "--max-steps", 9)
    assert re.search(r"^trainer: .*/stop\.json was left by an earlier run on 2023-11-1\d \d\d:\d\d:\d\d and ends this one "
                     r"after a step: it does not get any better; delete it to continue$", said, re.M), said
    assert said.count("stop.json") == 1 and ranks.training_json(tmp_path)["global_step"] == 1
    (tmp_path / "stop.json").unlink()
    _, said = ranks.train(0, *options, "--max-steps", 3)
    assert "stop.json" not in said and ranks.training_json(tmp_path)["global_step"] == 3


def wound(file):
    """One byte in the middle is another."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x55
    file.write_bytes(content)


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("part", ["index", "data-00000-of-00001"])
def test_damaged_checkpoints(part, count, tmp_path):
    """The newest is damaged: that is said, and the newest whole one taken. All are: nothing is overwritten."""
    options = [*FASHION, "--batch-size", 8, "--checkpoint-dir", tmp_path, "--save-checkpoint-steps", 2,
               *(["--run-option", "mpi"] if count else [])]
    ranks.train(count, *options, "--max-steps", 6)
    wound(tmp_path / f"model.ckpt-6.{part}")
    _, said = ranks.train(count, *options, "--max-steps", 6, "--resume", 6, status=2)
    assert re.search(rf"^trainer: .*model\.ckpt-6\.{part}: .*; --resume auto resumes from the newest whole checkpoint$",
                     said, re.M), said
    _, said = ranks.train(count, *options, "--max-steps", 5, "--quiet")
    assert re.search(rf"^trainer: .*model\.ckpt-6\.{part}: .*\ntrainer: model\.ckpt-4 is the newest whole checkpoint; "
                     r"--resume STEP resumes from another one$", said, re.M), said
    assert ranks.training_json(tmp_path)["global_step"] == 5
    for step in (0, 2, 4, 5):
        wound(tmp_path / f"model.ckpt-{step}.{part}")
    before = sorted((file.name, file.read_bytes()) for file in tmp_path.iterdir())
    _, said = ranks.train(count, *options, "--max-steps", 6, status=2)
    who = f"rank 0 on host {os.uname().nodename}: " if count else ""
    assert said.endswith(f"trainer: {who}--checkpoint-dir {tmp_path}: no checkpoint in it is whole; to start anew, use "
                         "--resume never\n"), said
    assert before == sorted((file.name, file.read_bytes()) for file in tmp_path.iterdir())
