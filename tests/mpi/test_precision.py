"""--precision bfloat16: one hash of the weights for every strategy, a resume, the evaluator, and processors without it,
where weights and scores are those of float32."""
import json
import os
import re
import subprocess

import pytest

import ranks

# Convolutions and a product that are rounded, and logits that are not.
LAYERS = """convolution first/weights channels=16 size=5 stride=2
bias first/biases relu
convolution second/weights channels=32 size=3
bias second/biases relu
max_pool size=2
dense third/weights outputs=64
bias third/biases relu
dense logits/weights outputs=10
bias logits/biases
cross_entropy
"""
BFLOAT16 = ["--precision", "bfloat16"]


def small_model(folder):
    """With the settings of lenet."""
    lines = subprocess.run([ranks.TRAINER, "describe", "lenet", "--format=model"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    layers = next(i for i, line in enumerate(lines) if line.startswith("convolution"))
    place = folder / "small.model"
    place.write_text("\n".join(lines[:layers]) + "\n" + LAYERS)
    return place


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    return ["--model", small_model(tmp_path_factory.mktemp("model")), "--data", "fashion-mnist", "--reproducible",
            "--global-batch", 64, "--micro-shards", 4, "--json"]


@pytest.fixture(scope="module")
def alone(training):
    """What one rank computes in four steps, and whether this processor rounds."""
    summary, said = ranks.train(0, *training, *BFLOAT16, "--max-steps", 4)
    rounds = "training in float32" not in said
    assert (" weights, bfloat16) on " in said) == rounds
    return {**summary, "rounds": rounds}


def test_one_hash(training, alone):
    others = [(3, "--run-option", "mpi"), (2, "--run-option", "ring"), (4, "--run-option", "ps", "--servers", 2),
              (0, "--run-option", "mirrored", "--threads", 2)]
    for count, *options in others:
        assert ranks.train(count, *training, *BFLOAT16, *options, "--max-steps", 4)[0]["weights"] == alone["weights"]
    whole = ranks.train(0, *training, "--max-steps", 4)[0]
    assert (whole["weights"] != alone["weights"]) == alone["rounds"] and abs(whole["loss"] - alone["loss"]) < 0.02 * whole["loss"]


def test_resume_and_evaluate(training, alone, tmp_path):
    """The checkpoint is float32's; a resume with another precision says so; the evaluator takes both."""
    options = [*training, "--checkpoint-dir", tmp_path / "ckpt"]
    ranks.train(0, *options, *BFLOAT16, "--max-steps", 2)
    summary, said = ranks.train(2, *options, *BFLOAT16, "--run-option", "mpi", "--max-steps", 4)
    assert summary["weights"] == alone["weights"] and "bfloat16 was" not in said
    said = ranks.train(0, *options, "--max-steps", 5)[1]
    assert bool(re.search(r"kernels: .*, bfloat16", said)) == alone["rounds"], said
    found = []
    for name, precision in ("float32", []), ("bfloat16", BFLOAT16):
        done = subprocess.run([ranks.BUILD / "bin/evaluator", "--checkpoint-dir", tmp_path / "ckpt", "--eval-dir",
                               tmp_path / name, "--data", "fashion-mnist", "--num-examples", "1000", "--once", *precision],
                              capture_output=True, text=True, check=True)
        assert ("AVX512-BF16" in done.stderr) <= (name == "bfloat16")
        rows = (tmp_path / name / "evaluations.jsonl").read_text().splitlines()
        found.append([row for row in map(json.loads, rows) if row.get("step") == 4][-1])
    whole, rounded = (row["metrics"] for row in found)
    assert abs(whole["precision"] - rounded["precision"]) <= 0.005  # after four steps, images are near ties
    assert (whole["loss"] != rounded["loss"]) == alone["rounds"]
    assert abs(whole["loss"] - rounded["loss"]) < 0.01 * whole["loss"]


def test_other_processors(training):
    """oneDNN is told of a processor without bfloat16."""
    lesser = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
    words = [str(word) for word in (*ranks.command(0, *training), "--max-steps", 1)]
    rounded, whole = (subprocess.run(words + more, capture_output=True, text=True, check=True, env=lesser)
                      for more in (BFLOAT16, []))
    assert rounded.stderr.count("--precision bfloat16: this processor has neither AMX nor AVX512-BF16") == 1
    assert "training in float32" in rounded.stderr and "bfloat16" not in whole.stderr
    assert json.loads(rounded.stdout)["weights"] == json.loads(whole.stdout)["weights"]
