"""make in the checkout, from tests that may run at the same time: what it fills in for one PREFIX is another's file, too."""
import contextlib
import fcntl
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def one_at_a_time():
    with open(ROOT / "build" / ".making", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(*words):
    """Runs make as a user would, free of what the make around this test was told; returns what it said."""
    own = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    with one_at_a_time():
        run = subprocess.run(["make", "-s", *map(str, words)], cwd=ROOT, env=own, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout
