"""TFRecord files: the same bits as from the same pixels in memory, on any number of ranks and after a resume; the evaluator;
broken records."""
import pathlib
import re
import subprocess

import pytest

import ranks
from tfrecord_files import write_tfrecord

OPTIONS = ["--model", "cifar10_cnn", "--reproducible", "--micro-shards", 4, "--global-batch", 8, "--json"]


def pixels(record):
    """Of a record of CIFAR-10's, whose colours are planes."""
    return bytes(record[1 + 1024 * colour + p] for p in range(1024) for colour in range(3))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The same images as CIFAR-10's binary files, and as TFRecord files with the names and labels (from 1) of ImageNet's."""
    place = pathlib.Path(tmp_path_factory.mktemp("data"))
    cifar = pathlib.Path(ranks.write_cifar(place / "cifar"))
    (place / "tf").mkdir()
    for part, names in (("train", [f"data_batch_{i}.bin" for i in range(1, 6)]), ("validation", ["test_batch.bin"])):
        for number, name in enumerate(names):
            content = (cifar / name).read_bytes()
            write_tfrecord(place / "tf" / f"{part}-{number:05}-of-{len(names):05}", [
                {"image/encoded": pixels(content[i:i + 3073]), "image/format": b"raw", "image/height": 32, "image/width": 32,
                 "image/channels": 3, "image/class/label": content[i] + 1} for i in range(0, len(content), 3073)])
    return place


def tfrecord(place):
    return ["--data", "tfrecord", "--data-dir", place, "--first-label", 1, "--classes", 10]


def evaluate(*options, status=0):
    run = subprocess.run([ranks.BUILD / "bin/evaluator", "--model", "cifar10_cnn", "--once", *map(str, options)],
                         capture_output=True, text=True, env=ranks.ENVIRONMENT)
    assert run.returncode == status, run.stderr
    return re.findall(r"loss: [\d.]+, precision: [\d.]+", run.stderr), run.stderr


def test_bits(data, tmp_path):
    wanted, _ = ranks.train(0, *OPTIONS, "--data", "cifar10", "--data-dir", data / "cifar", "--max-steps", 6)
    several, _ = ranks.train(3, *OPTIONS, *tfrecord(data / "tf"), "--max-steps", 6, "--run-option", "ps")
    first = [*OPTIONS, *tfrecord(data / "tf"), "--checkpoint-dir", tmp_path / "ckpt"]
    ranks.train(2, *first, "--max-steps", 3, "--run-option", "mpi")
    resumed, _ = ranks.train(0, *first, "--max-steps", 6)
    assert wanted["weights"] == several["weights"] == resumed["weights"]
    where = ["--checkpoint-dir", tmp_path / "ckpt", "--eval-dir"]
    assert evaluate(*tfrecord(data / "tf"), *where, tmp_path / "a")[0] == evaluate(
        "--data", "cifar10", "--data-dir", data / "cifar", *where, tmp_path / "b")[0]


def test_broken_records(data, tmp_path):
    place = tmp_path / "tf"
    subprocess.run(["cp", "-r", data / "tf", place], check=True)
    broken = place / "train-00001-of-00005"
    content = bytearray(broken.read_bytes())
    content[1000] ^= 1  # in the pixels of the first record
    content[-1] ^= 1  # the CRC of the last one
    broken.write_bytes(content)
    _, said = ranks.train(2, *OPTIONS, *tfrecord(place), "--max-steps", 40, "--run-option", "mpi", status=1)
    assert re.search(rf"{re.escape(str(broken))}: byte \d+: broken record: its CRC is wrong", said), said
    assert "--bad-samples skip" in said
    sums = set()
    for count in (0, 2):
        how = ["--run-option", "mpi"] if count else []
        summary, said = ranks.train(count, *OPTIONS, *tfrecord(place), "--max-steps", 40, "--bad-samples", "skip", *how)
        sums.add(summary["weights"])
        assert len(set(re.findall(rf"left out {re.escape(str(broken))}: byte (\d+): broken record", said))) == 2, said
    assert len(sums) == 1


@pytest.mark.parametrize("options, words", [
    (["--example-keys", "label"], "--example-keys label: must be PART=KEY"),
    (["--example-keys", "label=digit"], 'it has no "digit"; --example-keys label=KEY names another'),
    (["--train-files", "*.tfrecord"], "--train-files *.tfrecord: no file in"),
    (["--classes", "ten"], "--classes ten: must be a whole number from 1 to 1000000"),
    (["--classes", "3"], "is not in 1..3"),
    (["--image-size", "16"], "the input transform"),
])
def test_mistakes(data, options, words):
    given = [*tfrecord(data / "tf"), *options] if "--classes" not in options else [*tfrecord(data / "tf")[:-2], *options]
    _, said = ranks.train(0, *OPTIONS, *given, status=2)
    assert words in said, said


def test_options_of_other_formats(data):
    _, said = ranks.train(0, *OPTIONS, "--data", "cifar10", "--data-dir", data / "cifar", "--example-keys", "label=x",
                          status=2)
    assert "--example-keys: not for --data cifar10; it is for tfrecord" in said
