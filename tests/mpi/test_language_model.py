"""The recurrent language model: a label for each word of a sequence, the same bits from every strategy, and its perplexity."""
import json
import math
import subprocess

import pytest

import ranks
from licenses import words_of_test_part

MODEL = ["--model", "language_model", "--data", "text"]
STEPS = 20  # words of a sequence
SAME = [*MODEL, "--reproducible", "--micro-shards", 4, "--global-batch", 8, "--max-steps", 3, "--log-every", 1, "--json"]


@pytest.fixture(scope="module")
def alone():
    return ranks.train(0, *SAME)[0]["weights"]


@pytest.mark.parametrize("count, options", [
    (0, ["mirrored", "--threads", 2]), (3, ["mpi"]), (3, ["mpi", "--sparse-exchange", "all-gather"]), (2, ["ring"]), (3, ["ps"]), (5, ["hybrid", "--servers", 2]), (3, ["hybrid", "--threads", 2]),
    (2, ["mpi", "--sparse-exchange", "all-gather", "--threads", 2])],
    ids=lambda x: x[0] if isinstance(x, list) else f"{x}")
def test_one_hash(count, options, alone):
    assert ranks.train(count, *SAME, "--run-option", *options)[0]["weights"] == alone


def test_learns(tmp_path):
    """From the loss of guessing; the evaluator scores each word of the test part's sequences, and its perplexity is e to the
    mean loss of a word."""
    ranks.train(0, *MODEL, "--max-steps", 60, "--batch-size", 16, "--checkpoint-dir", tmp_path / "ckpt", "--log-every", 1,
                "--log-dir", tmp_path / "log")
    curves = ranks.curves(tmp_path / "log")
    assert abs(curves["loss"][0][1] - math.log(10000)) < 0.1 and curves["loss"][-1][1] < 7.5
    subprocess.run([ranks.BUILD / "bin/evaluator", *MODEL, "--checkpoint-dir", tmp_path / "ckpt", "--eval-dir",
                    tmp_path / "eval", "--once", "--tags", "im2txt"], check=True, capture_output=True)
    records = [json.loads(line) for line in (tmp_path / "eval/evaluations.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == [0, 60]
    words = words_of_test_part()
    assert all(record["examples"] == (len(words) - 1) // STEPS * STEPS for record in records)
    assert abs(records[0]["metrics"]["cross_entropy"] - math.log(10000)) < 0.1  # of a word, not of a sequence
    metrics = records[1]["metrics"]
    assert metrics["precision"] > words.count("the") / len(words) / 2 and metrics["cross_entropy"] < 7.5
    perplexity = dict(ranks.curves(tmp_path / "eval")["Perplexity"])
    assert perplexity[60] == pytest.approx(math.exp(metrics["cross_entropy"]), rel=1e-5)


def test_hold_out(tmp_path):
    """Sequences are held out, not words."""
    (tmp_path / "text").mkdir()
    (tmp_path / "text/a.train").write_text(" ".join(f"w{n}" for n in range(STEPS * 4)))  # and <end>: four sequences
    options = [*MODEL, "--data-dir", tmp_path / "text", "--max-steps", 1, "--json"]
    _, said = ranks.train(0, *options, "--batch-size", 4)
    assert "4 sequences" in said, said
    _, said = ranks.train(0, *options, "--batch-size", 2, "--hold-out", 3, status=2)
    assert "would take 2 sequences" in said and "has 1" in said, said
    _, said = ranks.train(0, *options, "--hold-out", 4, status=2)
    assert "have only 4 sequences" in said, said


def test_refused(tmp_path):
    _, said = ranks.train(0, "--model", "language_model", "--data", "fashion-mnist", status=2)
    assert "language_model: fashion-mnist has no text, of which the model reads 20 words in a row" in said
    (tmp_path / "text").mkdir()
    (tmp_path / "text/a.train").write_text("seven words are not enough for it")
    _, said = ranks.train(0, *MODEL, "--data-dir", tmp_path / "text", status=2)
    assert "has only 8 words; a sample takes 20 and the next one" in said
