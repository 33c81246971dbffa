"""The models of MNIST: what their checkpoints hold, the same bits with every strategy, copies at the start."""
import re
import subprocess

import pytest

import ranks

CNN = [f"{scope}/{name}" for scope in ("Conv", "Conv_1", "Conv_2", "Conv_3", "Conv_4", "Conv_5", "fully_connected")
       for name in ("weights", "biases")]
LSTM = ["rnn/lstm_cell/kernel", "rnn/lstm_cell/bias", "dense/kernel", "dense/bias"]
ADAM = {"global_step", "beta1_power", "beta2_power"}
DATA = ["--data", "fashion-mnist", "--json"]


@pytest.mark.parametrize("threads, copies", [(1, 0), (2, 42), (4, 126), (8, 294)])
def test_copies_at_the_start(threads, copies):
    """14 variables with two slots each for every thread after the first."""
    summary, said = ranks.train(0, "--model", "mnist_cnn", *DATA, "--batch-size", 1, "--run-option", "mirrored", "--threads",
                                threads, "--max-steps", 1)
    assert summary["variables_copied"] == copies
    assert "mnist_cnn (1014922 weights) on fashion-mnist (55000 images)" in said


@pytest.mark.parametrize("model, names, batch", [("mnist_cnn", CNN, 4), ("mnist_lstm", LSTM, 32)])
def test_same_bits(model, names, batch, tmp_path):
    ways = {"single": (0, []), "threads": (0, ["--run-option", "mirrored", "--threads", 3, "--weights", "shared"]),
            "ring": (2, ["--run-option", "ring"]), "ps": (3, ["--run-option", "ps"])}
    found = {}
    for way, (count, options) in ways.items():
        directory = [] if way != "single" else ["--checkpoint-dir", tmp_path]
        summary, _ = ranks.train(count, "--model", model, *DATA, *options, "--reproducible", "--global-batch", batch,
                                 "--micro-shards", 4, "--max-steps", 2, *directory)
        found[way] = summary["weights"]
    assert set(found.values()) == {found["single"]}, found
    slots = {name + slot for name in names for slot in ("", "/Adam", "/Adam_1")}
    saved = {name for name in ranks.variables(tmp_path / "model.ckpt-2") if not name.startswith("evalboard/")}
    assert saved == slots | ADAM


def test_lstm_learns(tmp_path):
    """The recipe as it is; the evaluator scores its checkpoints. TensorFlow's curve on MNIST itself is alike."""
    ranks.train(0, "--model", "mnist_lstm", *DATA, "--max-steps", 120, "--save-checkpoint-steps", 60, "--checkpoint-dir", tmp_path)
    run = subprocess.run([ranks.BUILD / "bin/evaluator", "--model", "mnist_lstm", *DATA[:2], "--checkpoint-dir", tmp_path,
                          "--eval-dir", tmp_path / "eval", "--once"], capture_output=True, text=True, env=ranks.ENVIRONMENT)
    found = [float(word) for word in re.findall(r"ckpt-\d+: loss: [\d.]+, precision: ([\d.]+)", run.stderr)]
    assert run.returncode == 0 and len(found) == 3, run.stderr
    assert found[0] < 0.25 and found[1] > 0.4 and found[2] > 0.5, found


def test_held_out_samples(tmp_path):
    """Those after the first N are what is trained on; that nothing is left is said with the option's name."""
    _, said = ranks.train(0, "--model", "mnist_cnn", *DATA, "--hold-out", 60000, status=2)
    assert "--hold-out 60000: the training data of fashion-mnist have only 60000 images" in said
    _, said = ranks.train(0, "--model", "lenet", *DATA, "--hold-out", 59990, "--batch-size", 8, "--max-steps", 1)
    assert "10 images" in said and "1.25 steps an epoch" in said
