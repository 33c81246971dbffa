"""How training goes is the same wherever it is computed: learning rates that change, clipped gradients, shares of the data."""
import json
import subprocess

import pytest

import ranks

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8, "--json", "--quiet"]


def points(directory, tag):
    run = subprocess.run([ranks.BUILD / "bin" / "eventlog", "export", "--format=jsonl", "--tag", tag, directory],
                         capture_output=True, text=True, check=True)
    return [json.loads(line)["value"] for line in run.stdout.splitlines()]


def test_schedule_is_of_the_global_step(tmp_path):
    """3 workers by messages, and with 2 servers, stopped at step 5 and resumed: one curve of rates, one result."""
    options = [*LENET, "--scale-learning-rate", "linear", "--warmup", 4, "--decay-at", "6,8", "--log-every", 1]
    for key, count, how, stops in (("mpi", 3, ["mpi"], [9]), ("ps", 5, ["ps", "--servers", 2], [5, 9])):
        for stop in stops:
            ranks.train(count, *options, "--run-option", *how, "--max-steps", stop, "--checkpoint-dir", tmp_path / key,
                        "--log-dir", tmp_path / key / "log")
        want = [0.05, 0.075, 0.1, 0.125, 0.15, 0.15, 0.015, 0.015, 0.0015]
        assert points(tmp_path / key / "log", "learning_rate") == pytest.approx(want, rel=1e-6)
    assert ranks.variables(tmp_path / "mpi/model.ckpt-9") == ranks.variables(tmp_path / "ps/model.ckpt-9")
    assert json.loads((tmp_path / "ps/training.json").read_text())["learning_rate"] == pytest.approx(0.15)


def test_clipping(tmp_path):
    """The norm is of the workers' mean, wherever it was added; it is written beside the loss."""
    options = [*LENET, "--clip-norm", 0.5, "--max-steps", 6, "--log-every", 1]
    for key, how in (("shared", ["--transport", "shared"]), ("messages", ["--transport", "mpi"])):
        ranks.train(3, *options, "--run-option", "mpi", *how, "--checkpoint-dir", tmp_path / key, "--log-dir",
                    tmp_path / key / "log")
    norms = points(tmp_path / "shared/log", "gradient_norm")
    assert len(norms) == 6 and all(0.5 < norm < 10 for norm in norms)
    assert norms == points(tmp_path / "messages/log", "gradient_norm")
    assert ranks.variables(tmp_path / "shared/model.ckpt-6") == ranks.variables(tmp_path / "messages/model.ckpt-6")


WAYS = [("lenet", "ps", servers) for servers in (1, 2, 3)] + [
    ("next_word", how, servers) for how in ("ps", "hybrid") for servers in (1, 2, 3)]


@pytest.fixture(scope="module")
def clipped_alone(tmp_path_factory):
    """{model: the weights and norms of a single process}."""
    return {model: clipped(tmp_path_factory.mktemp(model), model, 0, "single") for model in ("lenet", "next_word")}


def clipped(directory, model, count, *options):
    data, limit = {"lenet": ("fashion-mnist", 0.5), "next_word": ("text", 0.2)}[model]
    ranks.train(count, "--model", model, "--data", data, "--reproducible", "--micro-shards", 8, "--global-batch", 32,
                "--clip-norm", limit, "--max-steps", 5, "--log-every", 1, "--run-option", *options, "--checkpoint-dir",
                directory, "--log-dir", directory / "log", "--quiet")
    norms = points(directory / "log", "gradient_norm")
    assert len(norms) == 5 and all(limit < norm < 50 for norm in norms)
    return ranks.variables(directory / "model.ckpt-5"), norms


@pytest.mark.parametrize("model, how, servers", WAYS)
def test_clipping_by_servers(model, how, servers, clipped_alone, tmp_path):
    """Where every server has a part of the gradient, too."""
    assert clipped(tmp_path, model, 3 + servers, how, "--servers", servers) == clipped_alone[model]


def test_clipping_alone(clipped_alone, tmp_path):
    """Asynchronous workers clip their own gradients: that of the only one is the update's. Backup workers have the norm of
    the gradients that are used."""
    options = [*LENET, "--clip-norm", 0.5, "--max-steps", 6]
    ranks.train(5, *options, "--run-option", "ps", "--replicas-to-aggregate", 2, "--servers", 2, "--log-every", 1,
                "--log-dir", tmp_path / "log")
    norms = points(tmp_path / "log", "gradient_norm")
    assert norms and all(0.5 < norm < 10 for norm in norms)
    ranks.train(0, *options, "--checkpoint-dir", tmp_path / "single")
    ranks.train(3, *options, "--run-option", "ps", "--async", "--servers", 2, "--checkpoint-dir", tmp_path / "async")
    assert ranks.variables(tmp_path / "single/model.ckpt-6") == ranks.variables(tmp_path / "async/model.ckpt-6")


def test_shares_of_the_data(tmp_path):
    """At the start each worker says which files are its own, or one line says what all read; --quiet says nothing."""
    cifar = ["--model", "cifar10_cnn", "--data", "cifar10", "--data-dir", ranks.write_cifar(tmp_path / "data"),
             "--batch-size", 4, "--max-steps", 2, "--run-option", "mpi"]

    def reading(*options, count=3):
        _, said = ranks.train(count, *cifar, *options)
        return sorted(line for line in said.splitlines() if " reads " in line)

    own = reading("--shard", "files", count=5)
    assert [line.split(" reads ")[1].rsplit(": ")[0] for line in own] == [f"data_batch_{i}.bin" for i in range(1, 6)]
    assert all(line.startswith(f"rank {rank} on host ") for rank, line in enumerate(own))
    every = "each of 3 workers reads data_batch_1.bin, data_batch_2.bin, data_batch_3.bin, data_batch_4.bin, data_batch_5"
    for kind, ends in (("records", "its part of each epoch"), ("none", "all of them in an order of its own")):
        said = reading("--shard", kind, "--checkpoint-dir", tmp_path / kind)
        assert len(said) == 1 and said[0].startswith(every) and said[0].endswith(ends)
    assert ranks.variables(tmp_path / "records/model.ckpt-2") != ranks.variables(tmp_path / "none/model.ckpt-2")
    assert reading("--quiet", "--shard", "files", count=5) == []


def test_advice(tmp_path):
    """A rate at which nothing is learned: said once, the run goes on, and nothing of it differs from a quiet one."""
    options = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8, "--learning-rate", 1e-12,
               "--optimizer", "sgd", "--max-steps", 700, "--log-every", 700]
    _, said = ranks.train(0, *options, "--checkpoint-dir", tmp_path / "a")
    assert said.count("does not fall: no better than guessing among 10 classes (2.303)") == 1, said
    _, said = ranks.train(0, *options, "--checkpoint-dir", tmp_path / "b", "--quiet")
    assert said == ""
    assert ranks.variables(tmp_path / "a/model.ckpt-700") == ranks.variables(tmp_path / "b/model.ckpt-700")
    _, said = ranks.train(4, *LENET[:-1], "--run-option", "ps", "--async", "--max-steps", 3)
    assert said.count("with 3 asynchronous workers gradients are about 2 updates old, and momentum 0.9") == 1
