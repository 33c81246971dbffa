#!/usr/bin/env python3
"""What MPICH's mpirun leaves of a training with parameter servers: the last whole update, whatever kills it, and no process.

usage: killed_launcher.py TRAINER MPIRUN
Exit status: 0 so it is; 1 it is not, which is said.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from waiting import wait_for  # noqa: E402  where it is, is known now

TRAINER, MPIRUN = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:])
TRAIN = [MPIRUN, "-n", "3", TRAINER, "--run-option", "ps", "--servers", "1", "--model", "lenet", "--data", "fashion-mnist",
         "--batch-size", "64", "--log-every", "1", "--max-steps"]


def working_in(directory):
    """{pid: name} of the processes that were started with that directory, but for mpirun."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(TRAINER.encode() + b"\0") and (
                    directory.encode() in (entry / "cmdline").read_bytes().split(b"\0")):
                found[int(entry.name)] = (entry / "comm").read_text().rstrip("\n")
        except OSError:
            continue
    return found


def check_killed(number, whom, wanted):
    """Kills one of them in the middle of a training."""
    with tempfile.TemporaryDirectory() as directory:
        log = pathlib.Path(directory, "log")
        with open(log, "wb") as said:
            process = subprocess.Popen([*TRAIN, str(10**9), "--checkpoint-dir", directory], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=said)
        wait_for(lambda: "\nstep: 10," in log.read_text() or process.poll() is not None, "ten steps")
        if whom == "mpirun":
            process.send_signal(number)
        else:
            os.kill(next(pid for pid, name in working_in(directory).items() if name == whom), number)
        process.wait()
        wait_for(lambda: not working_in(directory), "all processes to end")
        state = json.loads(pathlib.Path(directory, "training.json").read_text())
        newest = int(re.search(r'"model\.ckpt-(\d+)"', pathlib.Path(directory, "checkpoint").read_text())[1])
        logged = max(map(int, re.findall(r"^step: (\d+),", log.read_text(), re.M)))
        assert state["state"] == wanted, f"{number.name} to {whom}: {state}\n{log.read_text()}"
        assert wanted == "failed" or newest == state["global_step"] >= logged, f"{number.name}: {newest}, but {logged} was reached"


def check_stopped():
    """A rank that is stopped, which sees nothing, ends with the others after their deadline."""
    with tempfile.TemporaryDirectory() as directory:
        log = pathlib.Path(directory, "log")
        with open(log, "wb") as said:
            process = subprocess.Popen([*TRAIN, str(10**9), "--deadline", "5", "--checkpoint-dir", directory], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=said)
        wait_for(lambda: "\nstep: 10," in log.read_text() or process.poll() is not None, "ten steps")
        os.kill(next(pid for pid, name in working_in(directory).items() if name not in ("stand-in", "trainer: saver")), signal.SIGSTOP)
        process.wait()
        wait_for(lambda: not working_in(directory), "all processes to end")


def check_undisturbed():
    run = subprocess.run([*TRAIN, "12", "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["global_step"] == 12 and len(re.findall(r"^step: \d+,", run.stderr, re.M)) == 12, run


try:
    check_undisturbed()
    for number in (signal.SIGHUP, signal.SIGKILL):
        check_killed(number, "mpirun", "stopped")
    check_killed(signal.SIGKILL, "stand-in", "failed")
    check_stopped()
except AssertionError as error:
    sys.exit(f"FAILED: {error}")
