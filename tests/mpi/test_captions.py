"""Captions from the command that makes them to the perplexity of a decoder, the same bits from every strategy."""
import json
import math
import subprocess

import pytest

import captions
import ranks


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("captions")
    return directory, ["--model", directory / "decoder.model", "--data", "captions", "--data-dir", captions.make(directory)]


def same(made):
    return [*made[1], "--reproducible", "--micro-shards", 4, "--global-batch", 8, "--max-steps", 4, "--log-every", 1, "--json"]


@pytest.fixture(scope="module")
def alone(made):
    return ranks.train(0, *same(made))[0]["weights"]


@pytest.mark.parametrize("count, options", [
    (0, ["mirrored", "--threads", 2]), (3, ["mpi"]), (2, ["ring"]), (3, ["ps"]), (5, ["hybrid", "--servers", 2])],
    ids=lambda x: x[0] if isinstance(x, list) else f"{x}")
def test_one_hash(count, options, made, alone):
    assert ranks.train(count, *same(made), "--run-option", *options)[0]["weights"] == alone


def test_learns(made, tmp_path):
    """From the loss of guessing; the evaluator scores each word of the captions, and nothing behind their ends."""
    ranks.train(0, *made[1], "--optimizer", "adam", "--learning-rate", 0.01, "--max-steps", 300, "--checkpoint-dir", tmp_path / "ckpt",
                "--save-checkpoint-steps", 300, "--log-every", 1, "--log-dir", tmp_path / "log")
    curve = [value for _, value in ranks.curves(tmp_path / "log")["loss"]]
    assert abs(curve[0] - math.log(64)) < 0.1 and sum(curve[-20:]) / 20 < 1.6
    subprocess.run([ranks.BUILD / "bin/evaluator", *made[1][2:], "--checkpoint-dir", tmp_path / "ckpt", "--eval-dir",
                    tmp_path / "eval", "--once", "--tags", "im2txt"], check=True, capture_output=True)
    records = [json.loads(line) for line in (tmp_path / "eval/evaluations.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == [0, 300]
    annotations = json.loads((made[0] / "made/annotations/captions_val.json").read_text())["annotations"]
    words = sum(len(one["caption"].replace(".", " .").replace(",", " ,").split()) + 1 for one in annotations)
    assert [record["examples"] for record in records] == [words, words]  # with </S>
    assert abs(records[0]["metrics"]["cross_entropy"] - math.log(64)) < 0.1
    loss = records[1]["metrics"]["cross_entropy"]
    assert loss < 1.6
    assert dict(ranks.curves(tmp_path / "eval")["Perplexity"])[300] == pytest.approx(math.exp(loss), rel=1e-5)


def test_refused(made):
    _, said = ranks.train(0, *made[1][2:], "--model", "lenet", status=2)
    assert "has no" in said or "words" in said, said
    _, said = ranks.train(0, "--model", "show_and_tell", "--data", "text", status=2)
    assert "show_and_tell: text has no features of images, of which the model reads 2048" in said


def test_told(made, tmp_path):
    """A caption of each image, compared with people's by BLEU and exact match, and eight with their images in the log."""
    ranks.train(0, *made[1], "--optimizer", "adam", "--learning-rate", 0.01, "--max-steps", 150, "--checkpoint-dir",
                tmp_path / "ckpt", "--save-checkpoint-steps", 150)
    evaluator = [ranks.BUILD / "bin/evaluator", *made[1][2:], "--checkpoint-dir", tmp_path / "ckpt", "--once", "--eval-dir"]
    subprocess.run([*evaluator, tmp_path / "eval", "--metrics", "captions"], check=True, capture_output=True)
    first, last = (json.loads(line)["metrics"] for line in (tmp_path / "eval/evaluations.jsonl").read_text().splitlines())
    names = ["bleu_1", "bleu_2", "bleu_3", "bleu_4", "exact_match"]
    assert [name for name in last if name in names] == names and all(0 <= last[name] <= 1 for name in names)
    assert last["bleu_1"] > first["bleu_1"] and last["bleu_1"] >= last["bleu_2"] >= last["bleu_3"] >= last["bleu_4"]
    subprocess.run([ranks.BUILD / "bin/eventlog", "export", "--media", tmp_path / "media", tmp_path / "eval"], check=True,
                   capture_output=True)
    pictures = {p.read_bytes() for p in (tmp_path / "media").rglob("*.png")}
    assert pictures == {p.read_bytes() for p in sorted((made[0] / "made/val").iterdir())[:8]}
    texts = "\n".join(p.read_text() for p in (tmp_path / "media").rglob("*.txt")) + "\n".join(
        p.read_text() for p in (tmp_path / "media").rglob("*.md"))
    annotations = json.loads((made[0] / "made/annotations/captions_val.json").read_text())["annotations"]
    assert all("- " + one["caption"].lower().replace(".", " .").replace(",", " ,") in texts for one in annotations[:5])
    refused = subprocess.run([ranks.BUILD / "bin/evaluator", "--checkpoint-dir", made[0] / "lenet", "--eval-dir", tmp_path / "no",
                              "--model", "lenet", "--data", "fashion-mnist", "--once", "--metrics", "captions"],
                             capture_output=True, text=True)
    assert refused.returncode == 2 and "model lenet tells no captions" in refused.stderr
