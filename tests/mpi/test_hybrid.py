"""--run-option hybrid on real text: the hash of one rank, its bytes, resuming by other strategies, and a server killed."""
import os
import re
import signal

import pytest

import ranks

TEXT = ["--model", "next_word", "--data", "text", "--reproducible", "--global-batch", 32, "--hash-every", 4, "--json"]


def hashes(said):
    return dict(re.findall(r"^step: (\d+), weights: ([0-9a-f]{16})$", said, re.M))


@pytest.fixture(scope="module")
def alone():
    return hashes(ranks.train(0, *TEXT, "--max-steps", 8)[1])


@pytest.mark.parametrize("count,options", [(2, []), (5, ["--servers", 2, "--partitions", 5, "--transport", "mpi"])],
                         ids=["1x1", "3x2"])
def test_one_hash(count, options, alone):
    assert list(alone) == ["4", "8"]
    summary, said = ranks.train(count, *TEXT, "--max-steps", 8, "--run-option", "hybrid", *options)
    assert hashes(said) == alone and summary["weights"] == alone["8"]


def test_resumed_by_others(alone, tmp_path):
    """Tables and their slots come from the servers into the checkpoint, and back."""
    options = [*TEXT, "--checkpoint-dir", tmp_path]
    ranks.train(4, *options, "--run-option", "hybrid", "--servers", 2, "--max-steps", 3)
    ranks.train(2, *options, "--run-option", "mpi", "--max-steps", 5)
    summary, _ = ranks.train(3, *options, "--run-option", "hybrid", "--max-steps", 8)
    assert summary["weights"] == alone["8"]


def test_stopped(tmp_path):
    """A server that gets SIGTERM ends the run with a checkpoint."""
    process = ranks.start(3, *TEXT, "--run-option", "hybrid", "--max-steps", 100000, "--checkpoint-dir", tmp_path,
                          "--save-checkpoint-steps", 2)
    ranks.wait_for(process, (tmp_path / "model.ckpt-2.index").exists, "a checkpoint")
    os.kill(ranks.rank_processes(process)[2], signal.SIGTERM)
    process.communicate()
    assert ranks.training_json(tmp_path)["state"] == "stopped"


def test_without_tables():
    """lenet has none: all ranks are workers, and the user is told."""
    _, said = ranks.train(2, "--model", "lenet", "--data", "fashion-mnist", "--run-option", "hybrid", "--max-steps", 1)
    assert "lenet has no tables, so --run-option hybrid is the same as mpi, and all ranks are workers" in said
    assert "mpi, 2 ranks" in said
