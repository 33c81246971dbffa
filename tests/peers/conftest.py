"""For all tests with other programs."""
import os
import pathlib
import subprocess

import pytest

import kinds_log


@pytest.fixture(scope="session")
def kinds(tmp_path_factory):
    """A log with a value of every kind, one for all tests: they only read it."""
    return kinds_log.write(tmp_path_factory.mktemp("kinds") / "log")


@pytest.fixture(scope="session")
def documents():
    """The build directory, with man pages and completions as they are now."""
    root = pathlib.Path(__file__).resolve().parents[2]
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    run = subprocess.run(["make", "-s", "documents"], cwd=root, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
