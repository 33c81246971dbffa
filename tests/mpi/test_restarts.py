"""--restarts: a training whose rank is killed is started again from its newest checkpoint, and ends with the bits of one that
nobody disturbed; what should not be started again is not."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import ranks
from interposed import SLOW_PRODUCTS, interposed
from waiting import DEADLINE, wait_for

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8, "--seed", 3]


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """Steps of about 50 ms, so that a rank is killed between two checkpoints."""
    return {**interposed(tmp_path_factory.mktemp("slow"), "slow_products", SLOW_PRODUCTS), "SLOW_MICROSECONDS": "2000"}


def begin(directory, *options, hosts=None, **variables):
    """A training that supervises itself; hosts: the list of --resource-info."""
    where = []
    if hosts:
        (directory / "hosts.txt").write_text(hosts)
        where = ["--resource-info", directory / "hosts.txt"]
    ranks.started.append(subprocess.Popen(
        [ranks.TRAINER, *map(str, [*LENET, *where, "--checkpoint-dir", directory / "ckpt", *options])], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**ranks.ENVIRONMENT, **variables}))
    return ranks.started[-1]


class Pid:
    def __init__(self, pid):
        self.pid = pid


def child(process):
    """The number of what it supervises, or None."""
    text = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(text[0]) if text else None


def checkpoint_above(directory, step):
    return max([int(path.name[11:-6]) for path in (directory / "ckpt").glob("model.ckpt-*.index")], default=-1) > step


def ended(process):
    _, said = process.communicate(timeout=DEADLINE)
    return process.returncode, said, re.findall(r"^trainer: the training ended.*$", said, re.M)


def test_killed_rank(tmp_path, slow):
    """Of three ranks that mpirun started."""
    process = begin(tmp_path, "--run-option", "mpi", "--max-steps", 16, "--save-checkpoint-steps", 4, "--restarts", 2,
                    hosts="localhost:0-2\n", **slow)
    ranks.wait_for(process, lambda: checkpoint_above(tmp_path, 0), "a checkpoint")
    os.kill(ranks.rank_processes(Pid(child(process)))[1], signal.SIGKILL)
    status, said, told = ended(process)
    assert status == 0, said
    line, = told
    assert re.fullmatch(r"trainer: the training ended with status 137; starting it again from model\.ckpt-\d+ "
                        r"\(restart 1 of 2\)", line)
    assert said.count("resuming from ") == 1
    assert ranks.training_json(tmp_path / "ckpt")["state"] == "finished"
    ranks.train(3, *LENET, "--run-option", "mpi", "--max-steps", 16, "--quiet", "--checkpoint-dir", tmp_path / "straight")
    assert ranks.variables(tmp_path / "ckpt" / "model.ckpt-16") == ranks.variables(tmp_path / "straight" / "model.ckpt-16")


def test_status_of_success(tmp_path, slow):
    """mpirun may end with 0 after it has lost a host; training.json knows better."""
    words = f'{shutil.which("mpirun")} "$@"'
    (tmp_path / "mpirun").write_text(f'#!/bin/sh\n[ "$*" != --version ] || exec {words}\n{words}\nexit 0\n')
    (tmp_path / "mpirun").chmod(0o755)
    process = begin(tmp_path, "--run-option", "mpi", "--max-steps", 16, "--save-checkpoint-steps", 4, "--restarts", 2,
                    hosts="localhost:0-1\n", **{**slow, "PATH": f"{tmp_path}:{slow['PATH']}"})
    ranks.wait_for(process, lambda: checkpoint_above(tmp_path, 0), "a checkpoint")
    os.kill(ranks.training_json(tmp_path / "ckpt")["pid"], signal.SIGKILL)
    status, said, told = ended(process)
    assert status == 0 and ranks.training_json(tmp_path / "ckpt")["state"] == "finished", said
    assert len(told) == 1 and "ended with status 1; starting it again from model.ckpt-" in told[0]


def kill_child(process, directory):
    """Once training.json has the number of the child's process, and there is a checkpoint."""
    def at_work():
        found = ranks.training_json(directory / "ckpt")
        return found.get("pid") == child(process) and checkpoint_above(directory, -1) and child(process)
    pid = ranks.wait_for(process, at_work, "a start")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: child(process) != pid, "its end")


def test_no_progress(tmp_path, slow):
    """Without mpirun. Restarts are left, but the second start made no checkpoint."""
    process = begin(tmp_path, "--max-steps", 10**9, "--restarts", 9, **slow)
    kill_child(process, tmp_path)
    kill_child(process, tmp_path)
    status, said, told = ended(process)
    assert status == 137
    assert [line.partition(" with ")[2] for line in told] == [
        "status 137; starting it again from model.ckpt-0 (restart 1 of 9)",
        "status 137 again, and made no checkpoint since its last start; it is not started again"], said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal(tmp_path, slow, number):
    """It reaches the ranks once, so they save, and is no reason to start again."""
    process = begin(tmp_path, "--max-steps", 10**9, "--restarts", 9, **slow)
    ranks.wait_for(process, lambda: ranks.training_json(tmp_path / "ckpt").get("global_step", 0) >= 0 and
                   checkpoint_above(tmp_path, -1), "a start")
    process.send_signal(number)
    status, said, told = ended(process)
    assert (status, told) == (128 + number, []), said
    assert ranks.training_json(tmp_path / "ckpt")["state"] == "stopped"


def test_supervisor_killed(tmp_path, slow):
    """Its child is told to end, and saves."""
    process = begin(tmp_path, "--max-steps", 10**9, "--restarts", 9, **slow)
    ranks.wait_for(process, lambda: ranks.training_json(tmp_path / "ckpt").get("state") == "running" and
                   checkpoint_above(tmp_path, -1), "a start")
    process.kill()
    wait_for(lambda: ranks.training_json(tmp_path / "ckpt")["state"] == "stopped", "its child to save and end")
    process.communicate(timeout=DEADLINE)


def test_no_failure(tmp_path):
    """Wrong input, as ranks find it, and what the supervisor itself refuses; a training that ends is not started again."""
    for options, status, sentence in (
            (["--restarts", 3, "--data-dir", tmp_path / "none"], 2, str(tmp_path / "none")),
            (["--restarts", 3, "--max-steps", 2], 0, "step 2")):
        status_found, said, told = ended(begin(tmp_path, *options))
        assert (status_found, told) == (status, []) and sentence in said, said
    run = subprocess.run([ranks.TRAINER, *map(str, LENET), "--restarts", "1"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (2, "trainer: --restarts needs --checkpoint-dir\n")
    _, said = ranks.train(2, *LENET, "--run-option", "mpi", "--restarts", 1, "--checkpoint-dir", tmp_path / "two", status=2)
    assert said.count("trainer: --restarts starts the ranks itself, but mpirun has started this program") == 1
