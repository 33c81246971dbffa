"""A model as a file: every built-in model trains from its file to the same bits, on one rank and on several; the copy beside
the checkpoints; what is refused."""
import os
import pathlib
import re
import subprocess

import pytest

import ranks

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
FASHION = ["--data", "fashion-mnist"]


def describe(*arguments):
    return subprocess.run([BUILD / "bin/trainer", "describe", *map(str, arguments)], check=True, capture_output=True,
                          text=True).stdout


def model_file(folder, name):
    path = folder / f"{name}.model"
    path.write_text(describe(name, "--format=model"))
    return path


def cifar(folder):
    """Noise in the format of CIFAR-10."""
    folder.mkdir()
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        (folder / name).write_bytes(b"".join(bytes([i % 10]) + bytes((i * 37 + k * k) % 251 for k in range(3072))
                                             for i in range(8)))
    return ["--data", "cifar10", "--data-dir", folder]


DATA = {"lenet": lambda folder: FASHION, "cifar10_cnn": cifar, "resnet32": cifar, "next_word": lambda folder: ["--data", "text"],
        "language_model": lambda folder: ["--data", "text"]}


@pytest.mark.parametrize("count", [0, 2], ids=["single", "mpi"])
@pytest.mark.parametrize("name", DATA)
def test_bits_of_the_built_in_model(name, count, tmp_path):
    options = [*DATA[name](tmp_path / "data"), "--batch-size", 2, "--max-steps", 3, "--json", "--log-every", 1]
    options += ["--run-option", "mpi"] if count else []
    built_in, said = ranks.train(count, "--model", name, *options)
    own, told = ranks.train(count, "--model", model_file(tmp_path, name), *options)
    curve = re.compile(r"^step: \d+, loss: .*$", re.M)
    assert own["weights"] == built_in["weights"] and curve.findall(told) == curve.findall(said)
    assert len(curve.findall(said)) == 3


def test_servers_get_the_shape(tmp_path):
    """A parameter server reads no data, and the example leaves its shape to the data."""
    example = ROOT / "examples/model/small.model"
    options = ["--model", example, *FASHION, "--batch-size", 4, "--max-steps", 2, "--json"]
    summary, _ = ranks.train(3, *options, "--run-option", "ps")
    assert summary["weights"] and "\ninput " not in example.read_text()


def test_copy_and_resume(tmp_path):
    example = (ROOT / "examples/model/small.model").read_text()
    path, ckpt = tmp_path / "my.model", tmp_path / "ckpt"
    options = [*FASHION, "--batch-size", 4, "--checkpoint-dir", ckpt, "--json", "--max-steps"]
    path.write_text(example)
    ranks.train(0, "--model", path, *options, 2)
    assert (ckpt / "net.model").read_text() == example
    run = subprocess.run([BUILD / "bin/evaluator", "--checkpoint-dir", ckpt, "--eval-dir", tmp_path / "eval", *FASHION,
                          "--num-examples", "10", "--once"], capture_output=True, text=True)
    assert run.returncode == 0 and "2 evaluated" in run.stderr, run.stderr
    path.write_text("# faster\n" + example.replace("learning_rate 0.001", "learning_rate 0.01"))  # the recipe may change
    ranks.train(0, "--model", path, *options, 3)
    assert (ckpt / "net.model").read_text() == path.read_text()
    kept = path.read_text()
    path.write_text(example.replace("dropout keep=0.8", "dropout keep=0.7"))
    for model, wanted in ((path, "line 12 is 'dropout keep=0.7', and was 'dropout keep=0.8'"),
                          ("lenet", "the checkpoint is of a model file")):
        run = subprocess.run([BUILD / "bin/trainer", "--model", model, *map(str, options), "4"], capture_output=True, text=True)
        assert run.returncode == 2 and wanted in run.stderr, run.stderr
    assert (ckpt / "net.model").read_text() == kept


@pytest.mark.parametrize("before,after,wanted", [
    ("optimizer adam", "optimizer adm", "optimizer: 'adm' is not one of"),
    ("outputs=10", "outputs=9", "cross_entropy of 1x1x9: its input is not one logit a class"),
    ("batch_size 64", "task next_word", "its task is next_word, but fashion-mnist has images"),
    ("batch_size 64", "augment mirror", "augment: there is no transform 'mirror'"),
])
def test_refused(before, after, wanted, tmp_path):
    path = tmp_path / "wrong.model"
    path.write_text((ROOT / "examples/model/small.model").read_text().replace(before, after))
    run = subprocess.run([BUILD / "bin/trainer", "--model", path, *FASHION], capture_output=True, text=True)
    assert run.returncode == 2 and wanted in run.stderr and "wrong.model" in run.stderr, run.stderr


def test_describe_larger_than_memory(tmp_path):
    """28 GB of weights: a table of layers needs no memory for them."""
    path = tmp_path / "large.model"
    path.write_text("input 8x8x3\nclasses 10\nrepeat n=1..3\nconvolution c{n} channels=20000 size=3\nend\n"
                    "dense d outputs=10\ncross_entropy\n")
    run = subprocess.run(["prlimit", f"--data={256 << 20}", BUILD / "bin/trainer", "describe", path], capture_output=True, text=True)
    assert run.returncode == 0 and "7201340000 parameters" in run.stdout, run.stderr
