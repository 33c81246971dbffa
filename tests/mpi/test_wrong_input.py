"""What users get wrong: one clear line, the right exit status, nothing lost."""
import json
import os
import pathlib
import re
import socket
import subprocess

import pytest

import ranks
from waiting import DEADLINE

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", "8", "--max-steps", "3"]


def lines_of(said):
    return [line for line in said.splitlines() if line.startswith("trainer: ")]


def refused(count, *options):
    _, said = ranks.train(count, *options, status=2)
    lines = lines_of(said)
    assert len(lines) == 1, said
    return lines[0]


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory):
    """A file system with room for one checkpoint of lenet and not for two."""
    place = tmp_path_factory.mktemp("disk")
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)], capture_output=True)
    if mount.returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("count", [0, 2])
def test_input_errors(count, tmp_path):
    mpi = ["--run-option", "mpi"] if count else []
    cifar = ["--model", "cifar10_cnn", "--data", "cifar10", "--max-steps", "3", "--batch-size", "4"]
    assert "nowhere" in refused(count, *LENET, *mpi, "--data-dir", tmp_path / "nowhere")
    assert "did you mean lenet?" in refused(count, "--model", "lenett", "--data", "mnist", *mpi)
    assert "--batch-size 61000" in refused(count, *LENET, *mpi, "--batch-size", "61000")
    assert "--micro-shards 3: " in refused(count, *LENET, *mpi, "--micro-shards", "3")
    assert "equal parts" in refused(count, *LENET, *mpi, "--micro-shards", "32")
    assert "lenet is for images of 28x28x1" in refused(count, "--model", "lenet", "--data", "cifar10", "--data-dir",
                                                       ranks.write_cifar(tmp_path / "data", 4), *mpi)
    broken = ranks.write_cifar(tmp_path / "odd", 4)
    with open(broken / "data_batch_3.bin", "ab") as file:
        file.write(b"x")
    assert "data_batch_3.bin" in refused(count, *cifar, *mpi, "--data-dir", broken)
    (tmp_path / "file").write_text("not a directory")
    assert "file" in refused(count, *LENET, *mpi, "--checkpoint-dir", tmp_path / "file")
    assert "file" in refused(count, *LENET, *mpi, "--log-dir", tmp_path / "file")
    assert "model.ckpt-77" in refused(count, *LENET, *mpi, "--checkpoint-dir", tmp_path, "--resume", "77")


@pytest.mark.parametrize("size, rank", [("PMI_SIZE", "PMI_RANK"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")])
def test_launcher_of_another_mpi(size, rank):
    """Its ranks would train for themselves, each of them."""
    run = subprocess.run([ranks.TRAINER, *LENET, "--run-option", "mpi"], capture_output=True, text=True,
                         timeout=DEADLINE, env={**ranks.ENVIRONMENT, size: "2", rank: "0"})
    assert run.returncode == 1, run
    assert re.fullmatch(r"trainer: 2 ranks were started, but they do not see each other: this program was built with (Open MPI "
                        r"v|MPICH Version: *)[\w.]+; start it with the mpirun of that\n", run.stderr), run


def test_error_of_one_rank(tmp_path):
    """It names the rank and the host; what all ranks say alike is nobody's own."""
    model = [*LENET, "--run-option", "mpi"]
    for rank, options, also, what in [
            (1, [], ["--data-dir", tmp_path / "nowhere"], "nowhere"), (1, [], ["--batch-size", "x"], "--batch-size"),
            (1, [], ["--model", "lenett"], "lenett"), (0, ["--resume", "77", "--checkpoint-dir", tmp_path], [], "ckpt-77")]:
        _, said = ranks.train(1, *model, *options, also=[*model, *options, *also], status=2)
        assert len(lines_of(said)) == 1, said
        assert re.match(f"trainer: rank {rank} on host {socket.gethostname()}: .*{what}", lines_of(said)[0])
    assert refused(2, *model, "--data-dir", tmp_path / "nowhere").startswith(f"trainer: {tmp_path}/nowhere")


@pytest.mark.parametrize("name", ["training.json", "checkpoint"])
def test_files_of_others(name, tmp_path):
    """What has the name of a file that the trainer replaces, and is none of its own, is left alone."""
    place, elsewhere = tmp_path / "ckpt", tmp_path / "mine"
    place.mkdir()
    for content in (b'{"learning_rate": 0.1}', b"PK\3\4" + bytes(100)):
        (place / name).write_bytes(content)
        assert f"{place}/{name}: was not written by a trainer" in refused(0, *LENET, "--checkpoint-dir", place)
        assert (place / name).read_bytes() == content and len(list(place.iterdir())) == 1
    (place / name).unlink()
    elsewhere.write_bytes(b"")
    for make in (lambda: (place / name).symlink_to(elsewhere), lambda: os.mkfifo(place / name)):
        make()
        assert f"{place}/{name}: is a link or not a regular file" in refused(0, *LENET, "--checkpoint-dir", place)
        assert len(list(place.iterdir())) == 1
        (place / name).unlink()
    for torn in (b"", bytes(100)):  # as a power cut leaves it
        (place / name).write_bytes(torn)
        ranks.train(0, *LENET, "--checkpoint-dir", place)


def test_cut_gzip(tmp_path):
    place = pathlib.Path("/usr/share/datasets/fashion-mnist")
    if not place.is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is not installed")
    for file in place.iterdir():
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(content[:len(content) // 2] if "train-images" in file.name else content)
    assert "train-images" in refused(0, *LENET, "--data-dir", tmp_path)


def test_ranks_and_roles(tmp_path):
    assert "zero ranks as workers" in refused(2, *LENET, "--run-option", "ps", "--servers", "2")
    assert "zero ranks as workers" in refused(0, *LENET, "--run-option", "ps")
    assert "--run-option single is for one rank, but 2 were started" in refused(2, *LENET)
    for count, options, sentence in ((2, ["mpi", "--staleness", "2"], "--staleness needs --run-option ps, not mpi"),
                                     (0, ["single", "--weights", "copied"], "--weights needs --run-option mirrored")):
        assert sentence in refused(count, *LENET, "--run-option", *options)


def test_ranks_that_differ(tmp_path):
    mpi = [*LENET, "--run-option", "mpi"]
    for other, sentence in ((["--learning-rate", "0.5"], "the training options: not the same on rank 2 on host "),
                            (["--bucket-bytes", "1000"], "the strategy's options: not the same on rank 2 on host ")):
        _, said = ranks.train(2, *mpi, status=2, also=[*mpi, *other])
        assert len(lines_of(said)) == 1 and sentence in said


def test_checkpoint_of_another_model(tmp_path):
    ranks.train(0, *LENET, "--checkpoint-dir", tmp_path, "--quiet")
    cifar = ["--model", "cifar10_cnn", "--data", "cifar10", "--data-dir", ranks.write_cifar(tmp_path / "data"),
             "--max-steps", "3", "--batch-size", "4"]
    for count, options in ((0, []), (3, ["--run-option", "ps"])):
        line = refused(count, *cifar, *options, "--checkpoint-dir", tmp_path)
        assert "model.ckpt-3: not a checkpoint of model cifar10_cnn" in line
        assert "conv1/weights has shape [5,5,1,10], wanted [5,5,3,64]" in line and "local3/weights is missing" in line


def test_resume_never_starts_anew(tmp_path):
    ranks.train(0, *LENET, "--checkpoint-dir", tmp_path, "--quiet")
    _, said = ranks.train(0, *LENET, "--checkpoint-dir", tmp_path, "--resume", "never")
    assert "starting anew" in said and "step: 1," in said
    _, said = ranks.train(0, *LENET, "--checkpoint-dir", tmp_path, "--resume", "1", status=2)


@pytest.mark.parametrize("count", [0, 2])
def test_disk_fills_up(count, small_disk):
    """The first checkpoint fits, the second does not: training goes on, the first stays, and the status says so."""
    directory = small_disk / f"ckpt{count}"
    for left in small_disk.glob("*/*"):
        left.unlink()
    mpi = ["--run-option", "mpi"] if count else []
    _, said = ranks.train(count, *LENET, *mpi, "--optimizer", "sgd", "--checkpoint-dir", directory,
                          "--save-checkpoint-steps", "2", status=1)
    assert "No space left on device" in said and "step: 3," in said
    whose = f": rank 0 on host {socket.gethostname()}: {directory}/" if count else f": {directory}/"
    assert f"trainer: no checkpoint of step 2{whose}" in said
    assert '"model.ckpt-0"' in ranks.state_file(directory)
    assert ranks.variables(directory / "model.ckpt-0")
    assert json.loads((directory / "training.json").read_text())["state"] != "finished"


def test_no_room_at_all(small_disk):
    for left in small_disk.glob("*/*"):
        left.unlink()
    assert "No space left on device" in refused(0, *LENET, "--optimizer", "adam", "--checkpoint-dir",
                                                small_disk / "full")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_read_only(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(tmp_path)], check=True)
    try:
        assert "Read-only file system" in refused(0, *LENET, "--checkpoint-dir", tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
