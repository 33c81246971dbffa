"""A folder tree of images: the same bits for any number of ranks, after a resume, and as from the same pixels in memory;
broken files named, left out or fatal."""
import pathlib
import re
import subprocess

import pytest

import ranks

Image = pytest.importorskip("PIL.Image")
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
OPTIONS = ["--model", "cifar10_cnn", "--reproducible", "--micro-shards", 4, "--global-batch", 8, "--json"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The same images as CIFAR-10's binary files, and as a tree of PNG files with their numbers as names."""
    place = pathlib.Path(tmp_path_factory.mktemp("data"))
    cifar = pathlib.Path(ranks.write_cifar(place / "cifar"))
    for split, names in (("train", [f"data_batch_{i}.bin" for i in range(1, 6)]), ("test", ["test_batch.bin"])):
        content = b"".join((cifar / name).read_bytes() for name in names)
        for i in range(0, len(content), 3073):
            planes = [Image.frombytes("L", (32, 32), content[i + 1 + 1024 * c:i + 1025 + 1024 * c]) for c in range(3)]
            folder = place / "tree" / split / CLASSES[content[i]]
            folder.mkdir(parents=True, exist_ok=True)
            Image.merge("RGB", planes).save(folder / f"{i // 3073:05}.png")
    for name in CLASSES:
        (place / "tree" / "train" / name).mkdir(parents=True, exist_ok=True)
    return place


def folder(tree):
    return ["--data", "folder", "--data-dir", tree, "--image-size", 32]


def test_bits(data, tmp_path):
    wanted, of_records = ranks.train(0, *OPTIONS, "--data", "cifar10", "--data-dir", data / "cifar", "--max-steps", 6)
    alone, said = ranks.train(0, *OPTIONS, *folder(data / "tree"), "--max-steps", 6)
    several, _ = ranks.train(3, *OPTIONS, *folder(data / "tree"), "--max-steps", 6, "--run-option", "ps")
    first = [*OPTIONS, *folder(data / "tree"), "--checkpoint-dir", tmp_path / "ckpt"]
    ranks.train(2, *first, "--max-steps", 3, "--run-option", "mpi")
    resumed, _ = ranks.train(0, *first, "--max-steps", 6)
    assert wanted["weights"] == alone["weights"] == several["weights"] == resumed["weights"]
    line = r"waited .* for the first batch, then [\d.]+ % of the time for input"
    assert len(re.findall(line, said)) == len(re.findall(line, of_records)) == 1
    _, from_memory = ranks.train(0, "--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8, "--max-steps", 1)
    assert not re.search(line, from_memory)
    time, start = alone["time"][0], alone["first_batch_seconds"]
    assert start >= 0 and time["input"] == pytest.approx(
        start + alone["input_waiting_share_later"] * (time["seconds"] - start), rel=1e-6, abs=1e-9)


def test_a_built_in_model_as_a_file(data, tmp_path):
    """ResNet-32 as its own description, on PNG files: the bits of the built-in one on CIFAR-10's binary files."""
    with open(tmp_path / "resnet32.model", "w") as file:
        subprocess.run([ranks.TRAINER, "describe", "resnet32", "--format=model"], stdout=file, check=True)
    how = ["--reproducible", "--micro-shards", 2, "--global-batch", 4, "--max-steps", 2, "--json"]
    wanted, _ = ranks.train(0, "--model", "resnet32", "--data", "cifar10", "--data-dir", data / "cifar", *how)
    have, _ = ranks.train(0, "--model", tmp_path / "resnet32.model", *folder(data / "tree"), *how)
    assert wanted["weights"] == have["weights"]


def test_broken_files(data, tmp_path):
    tree = tmp_path / "tree"
    subprocess.run(["cp", "-r", data / "tree", tree], check=True)
    paths = sorted((tree / "train").glob("*/*.png"), key=lambda p: p.name)[:3]
    paths[0].write_bytes(b"")
    paths[1].write_bytes(paths[1].read_bytes()[:200])
    paths[2].write_text("a web page about an image")
    for count in (0, 2):
        how = ["--run-option", "mpi"] if count else []
        _, said = ranks.train(count, *OPTIONS, *folder(tree), "--max-steps", 60, *how, status=1)
        assert len([p for p in paths if f"{p}: broken image" in said]) >= 1 and "--bad-samples skip" in said
    sums = set()
    for count in (0, 2):
        how = ["--run-option", "mpi"] if count else []
        summary, said = ranks.train(count, *OPTIONS, *folder(tree), "--max-steps", 60, "--bad-samples", "skip", *how)
        sums.add(summary["weights"])
        assert all(re.search(re.escape(f"left out {p}: broken image: "), said) for p in paths), said
        speaker = r"rank \d on host \S+" if count else "trainer"
        assert re.search(rf"^{speaker}: left out \d broken samples? in all$", said, re.M) and "(null)" not in said, said
    assert len(sums) == 1


def test_evaluator(data, tmp_path):
    tree = tmp_path / "tree"
    subprocess.run(["cp", "-r", data / "tree", tree], check=True)
    broken = sorted((tree / "test").glob("*/*.png"))[0]
    options = [*OPTIONS, *folder(tree), "--checkpoint-dir", tmp_path / "ckpt", "--max-steps", 1]
    ranks.train(0, *options)

    def evaluate(*more, status=0):
        run = subprocess.run([ranks.BUILD / "bin/evaluator", "--model", "cifar10_cnn", "--once", *map(str, more),
                              "--checkpoint-dir", tmp_path / "ckpt", "--eval-dir", tmp_path / f"eval{len(more)}{status}"],
                             capture_output=True, text=True, env=ranks.ENVIRONMENT)
        assert run.returncode == status, run.stderr
        return re.findall(r"loss: [\d.]+, precision: [\d.]+", run.stderr), run.stderr

    assert evaluate(*folder(tree))[0] == evaluate("--data", "cifar10", "--data-dir", data / "cifar")[0]
    count = len(list((tree / "test").glob("*/*.png")))
    broken.write_bytes(b"")
    assert f"{broken}: broken image: the file is empty" in evaluate(*folder(tree), status=2)[1]
    said = evaluate(*folder(tree), "--bad-samples", "skip")[1]
    assert f"left out {broken}: broken image" in said and f"left out 1 of {count} test images" in said


def test_memory_is_bounded(tmp_path):
    """A tree whose pixels would need 1.5 GiB trains with 400 MiB to write on: the kernel refuses more."""
    for name in ("cat", "dog"):
        (tmp_path / "tree" / name).mkdir(parents=True)
        Image.new("RGB", (512, 512), name == "cat" and "red" or "blue").save(tmp_path / "tree" / name / "0.png")
        for i in range(1, 1000):
            (tmp_path / "tree" / name / f"{i}.png").hardlink_to(tmp_path / "tree" / name / "0.png")
    (tmp_path / "net.model").write_text("max_pool size=8\nmax_pool size=8\ndense d outputs=2\nbias d/biases\ncross_entropy\n"
                                        "optimizer sgd\nlearning_rate 0.001\nbatch_size 8\n")
    run = subprocess.run(["prlimit", f"--data={400 << 20}", ranks.TRAINER, "--model", tmp_path / "net.model", "--data", "folder",
                          "--data-dir", tmp_path / "tree", "--max-steps", "250"], capture_output=True, text=True,
                         env=ranks.ENVIRONMENT)
    assert run.returncode == 0, run.stderr
