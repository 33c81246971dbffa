"""Directories deleted, moved or replaced under a trainer: made again, said once, and no status 0 where anything is lost."""
import contextlib
import csv
import ctypes
import io
import json
import os
import pathlib
import shutil
import subprocess

import pytest

import waiting

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
RANKS = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}


def delete(place):
    shutil.rmtree(place)


def move(place):
    place.rename(place.with_name("aside"))


def replace(place, other):
    """Exchange the two in one call: between two, the trainer could make the directory again."""
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(here, os.fsencode(place), here, os.fsencode(other), exchange) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(place))


def replace_by_directory(place):
    other = place.with_name("aside")
    other.mkdir()
    replace(place, other)


def replace_by_file(place):
    other = place.with_name("aside")
    other.touch()
    replace(place, other)


FAULTS = [delete, move, replace_by_directory]


@contextlib.contextmanager
def training(tmp_path, *options):
    """The process, and what it says so far; stopped by a stop file, that is, at a last step."""
    said = tmp_path / "said"
    with open(said, "w") as file:
        process = subprocess.Popen([BUILD / "bin/trainer", "--model", "lenet", "--data", "fashion-mnist", "--batch-size", "4",
                                    "--max-steps", "1000000000", "--log-every", "1", "--log-dir", tmp_path / "log",
                                    "--checkpoint-dir", tmp_path / "ckpt", *options], stderr=file, env=RANKS)
    try:
        yield process, said.read_text
    finally:
        process.kill()
        process.wait()


def stop(tmp_path, process):
    (tmp_path / "ckpt/stop.json").write_text('{"reason": "a test"}')
    process.wait(timeout=waiting.DEADLINE)
    state = json.loads((tmp_path / "ckpt/training.json").read_text())
    return process.returncode, state["state"], state["global_step"]


def wait_for_steps(said, count=20):
    before = said().count("\nstep: ")
    waiting.wait_for(lambda: said().count("\nstep: ") >= before + count, "more steps")


def lines(said, word):
    return [line for line in said().splitlines() if line.startswith("trainer: ") and word in line]


def steps(log):
    run = subprocess.run([BUILD / "bin/eventlog", "export", "--format=csv", "--tag", "loss", log], capture_output=True,
                         text=True, check=True)
    return [int(row["step"]) for row in csv.DictReader(io.StringIO(run.stdout))]


@pytest.mark.parametrize("fault", FAULTS)
def test_log_directory(fault, tmp_path):
    with training(tmp_path) as (process, said):
        wait_for_steps(said)
        fault(tmp_path / "log")
        waiting.wait_for(lambda: lines(said, "; its events are in events.out.tfevents."), "a word of it")
        wait_for_steps(said)
        status, state, last = stop(tmp_path, process)
        assert (status, state) == (0, "finished")
        assert len(lines(said, "deleted, moved or replaced")) == 1
        assert steps(tmp_path / "log") == list(range(1, last + 1))


def test_log_directory_that_cannot_be_made_again(tmp_path):
    with training(tmp_path) as (process, said):
        wait_for_steps(said)
        replace_by_file(tmp_path / "log")
        waiting.wait_for(lambda: lines(said, "and cannot be made again"), "a word of it")
        wait_for_steps(said)
        assert stop(tmp_path, process)[:2] == (1, "finished")
        assert len(lines(said, "cannot be made again")) == 2  # at once, and with the number at the end
        assert lines(said, " events are lost: ")


@pytest.mark.parametrize("fault", FAULTS)
def test_checkpoint_directory(fault, tmp_path):
    """It is locked again, too. Without saves in between, it is the writing of training.json that notices."""
    with training(tmp_path) as (process, said):
        wait_for_steps(said)
        fault(tmp_path / "ckpt")
        waiting.wait_for(lambda: (tmp_path / "ckpt/training.json").exists(), "training.json")
        second = subprocess.run([BUILD / "bin/trainer", "--model", "lenet", "--data", "fashion-mnist", "--checkpoint-dir",
                                 tmp_path / "ckpt"], capture_output=True, text=True, env=RANKS, timeout=waiting.DEADLINE)
        assert (second.returncode, "already working here" in second.stderr) == (2, True), second.stderr
        status, state, last = stop(tmp_path, process)
        assert (status, state) == (0, "finished")
        assert lines(said, str(tmp_path / "ckpt")) == [
            f"trainer: {tmp_path}/ckpt: deleted, moved or replaced; made again, without the earlier checkpoints",
            f"trainer: {tmp_path}/ckpt/stop.json asks the training to end: a test"]
        assert (tmp_path / f"ckpt/model.ckpt-{last}.index").exists()


def test_checkpoint_directory_that_cannot_be_made_again(tmp_path):
    with training(tmp_path, "--save-checkpoint-steps", "10") as (process, said):
        wait_for_steps(said)
        replace_by_file(tmp_path / "ckpt")
        waiting.wait_for(lambda: lines(said, "no checkpoint of step "), "a word of it")
        process.terminate()
        process.wait(timeout=waiting.DEADLINE)
        assert process.returncode == 1, said()
        assert lines(said, f"{tmp_path}/ckpt: exists, but is not a directory; training goes on")
